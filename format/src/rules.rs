//! The catalogue of rules: everything a verifier asks of a file, by stable id.
//!
//! An id is never reused and never changes its meaning. Families follow the formats: `PTE-` programs, `PTD-` data
//! files, `BND-` bundled programs, `TRC-` traces, `DWN-` Edge TPU packages, `TFL-` the models around them, `MLF-` packages
//! of the Model Library Format, `XNN-` payloads of the XNNPACK backend; the letter after the dash groups rules by what
//! they look at.
//! `docs/rules.md` is [`markdown`] of this list.

use alloc::format;
use alloc::string::String;

use crate::finding::Rule;

/// Declares the rules of one family: a static per rule and the list of all.
macro_rules! catalogue {
    ($($name:ident = $id:literal, $severity:ident, $code:expr, $title:literal, $explanation:literal;)*) => {
        $(
            #[doc = $title]
            pub static $name: $crate::finding::Rule = $crate::finding::Rule {
                id: $id,
                severity: $crate::finding::Severity::$severity,
                title: $title,
                explanation: $explanation,
                code: $code,
            };
        )*

        /// All rules of the family, in the order of their ids.
        pub const ALL: &[&$crate::finding::Rule] = &[$(&$name),*];
    };
}

pub mod bundle;
pub mod darwinn;
pub mod exir;
pub mod mlf;
pub mod ptd;
pub mod pte;
pub mod tflite;
pub mod trace;
pub mod xnnpack;

/// A family of rules: the prefix of its ids, what it is about, its rules.
pub struct Family {
    /// `PTE`, `PTD`, …
    pub prefix: &'static str,
    /// Description of the files.
    pub about: &'static str,
    /// The rules, by id.
    pub rules: &'static [&'static Rule],
}

/// The families in the order of the catalogue.
pub const FAMILIES: &[Family] = &[
    Family { prefix: "PTE", about: "Programs (`.pte`)", rules: pte::ALL },
    Family { prefix: "PTD", about: "Data files (`.ptd`, FlatData)", rules: ptd::ALL },
    Family { prefix: "BND", about: "Bundled programs (`.bpte`)", rules: bundle::ALL },
    Family { prefix: "TRC", about: "Traces (`.etdp`)", rules: trace::ALL },
    Family { prefix: "DWN", about: "Edge TPU packages (`DWN1`)", rules: darwinn::ALL },
    Family { prefix: "TFL", about: "TensorFlow Lite models with compiled parts", rules: tflite::ALL },
    Family { prefix: "EXIR", about: "Export IR (`.pt2`)", rules: exir::ALL },
    Family { prefix: "MLF", about: "Model Library Format packages", rules: mlf::ALL },
    Family { prefix: "XNN", about: "Payloads of the XNNPACK backend", rules: xnnpack::ALL },
];

/// Every rule there is.
pub static RULES: &[&Rule] = &JOINED;

const COUNT: usize = pte::ALL.len()
    + ptd::ALL.len()
    + bundle::ALL.len()
    + trace::ALL.len()
    + darwinn::ALL.len()
    + tflite::ALL.len()
    + mlf::ALL.len()
    + exir::ALL.len()
    + xnnpack::ALL.len();

#[allow(clippy::indexing_slicing, clippy::arithmetic_side_effects, reason = "evaluated by the compiler")]
const JOINED: [&Rule; COUNT] = {
    // Any rule serves to fill the array; every place is overwritten.
    let mut out = [pte::ALL[0]; COUNT];
    let (mut family, mut at) = (0, 0);
    while family < FAMILIES.len() {
        let mut index = 0;
        while index < FAMILIES[family].rules.len() {
            out[at] = FAMILIES[family].rules[index];
            index += 1;
            at += 1;
        }
        family += 1;
    }
    out
};

/// The rule of this id, in any case.
pub fn find(id: &str) -> Option<&'static Rule> {
    RULES.iter().find(|rule| rule.id.eq_ignore_ascii_case(id)).copied()
}

/// The catalogue as a page.
pub fn markdown() -> String {
    let mut out = String::from(
        "# Rules\n\nWhat the verifiers ask of a file. An *error* means that the file is refused; a *warning* that it is legal but\n\
         unusual or not portable; an *info* is worth knowing. The code is what ExecuTorch answers where it looks at all.\n\
         This page is generated from the code; `edgepack explain ID` prints one entry.\n",
    );
    out.push_str("\n| prefix | rules of | number |\n| --- | --- | --: |\n");
    let families = || FAMILIES.iter().filter(|family| !family.rules.is_empty());
    for family in families() {
        out.push_str(&format!("| `{}-` | {} | {} |\n", family.prefix, family.about, family.rules.len()));
    }
    for family in families() {
        out.push_str(&format!("\n## {}\n", family.about));
        for rule in family.rules {
            out.push_str(&format!("\n### {} ({}) {}\n\n{}\n", rule.id, rule.severity, rule.title, rule.explanation));
            if let Some(code) = rule.code {
                out.push_str(&format!("\nCode: `{code}` ({:#04x})\n", code.number()));
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_unique_sorted_and_of_their_family() {
        for family in FAMILIES {
            for rule in family.rules {
                assert!(rule.id.strip_prefix(family.prefix).is_some_and(|rest| rest.starts_with('-')), "{}", rule.id);
            }
            let rising = family.rules.windows(2).all(|pair| pair[0].id < pair[1].id);
            assert!(rising, "the ids of {} do not rise", family.prefix);
        }
    }

    #[test]
    fn rules_say_something_and_are_found() {
        for rule in RULES {
            assert!(!rule.title.is_empty() && !rule.title.ends_with('.'), "{}", rule.id);
            assert!(rule.explanation.ends_with('.'), "{}", rule.id);
            assert_eq!(find(&rule.id.to_lowercase()), Some(*rule));
        }
        assert_eq!(RULES.len(), COUNT);
    }

    #[test]
    fn the_page_names_every_rule() {
        let page = markdown();
        assert!(RULES.iter().all(|rule| page.contains(rule.id) && page.contains(rule.explanation)));
    }
}
