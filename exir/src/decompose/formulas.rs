//! Rules that are formulas: a table of text says what an operator computes, in terms of others.
//!
//! A line of the table is `FLAG NAME: LOCAL = TERM; …; TERM, …`, one term per result, as [`super::formula`] reads it. Flags:
//! `f` computes in floats of at least 32 bits and gives the recorded type, `m` does so for what is floating already, `-`
//! leaves types alone.
//!
//! Invariant: every line parses, and names an operator with a schema; a test holds it.

use super::formula::parse;
use super::maker::Maker;
use super::words::{Evaluator, Types};
use super::{Answer, Composite, Rule};

/// Table of text, one operator per line, as the head of this file explains.
const FORMULAS: &str = include_str!("formulas.txt");

pub(super) fn find(name: &str) -> Option<Rule> {
    line(name).map(|_| expand as Rule)
}

/// The flag and the text of a formula.
fn line(name: &str) -> Option<(&'static str, &'static str)> {
    FORMULAS.lines().find_map(|line| {
        let (head, text) = line.split_once(": ")?;
        let (flag, known) = head.split_once(' ')?;
        (known == name && flag != "#").then_some((flag, text))
    })
}

fn expand(make: &mut Maker<'_>, node: &Composite<'_>) -> Answer {
    let name = node.node.target.to_string();
    let Some((flag, text)) = line(name.strip_prefix("aten::").unwrap_or(&name)) else { return Ok(None) };
    let formula = parse(text).ok_or_else(|| make.error(format!("the formula of {name} does not parse")))?;
    let types = match flag {
        "f" => Types::Floats,
        "m" => Types::WideFloats,
        _ => Types::AsGiven,
    };
    let mut evaluator = Evaluator::new(make, node, types, formula.locals)?;
    evaluator.results(&formula.results).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operators::Operators;

    #[test]
    fn every_formula_parses_and_is_of_an_operator() {
        let operators = Operators::new();
        let mut names = Vec::new();
        for line in FORMULAS.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (head, text) = line.split_once(": ").unwrap_or_else(|| panic!("{line}"));
            let (flag, name) = head.split_once(' ').unwrap();
            assert!(["f", "m", "-"].contains(&flag), "{line}");
            assert!(operators.text(&format!("aten::{name}")).is_some(), "{name} has no schema");
            assert!(parse(text).is_some(), "{line}");
            names.push(name);
        }
        names.sort_unstable();
        for pair in names.windows(2) {
            assert_ne!(pair[0], pair[1]);
        }
    }
}
