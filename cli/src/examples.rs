//! Examples behind the help of every command, from one table that a test runs.

use std::collections::HashMap;
use std::sync::LazyLock;

use clap::{Command, CommandFactory};

use crate::args::{Cli, WITHOUT_DOCUMENTS};

/// A line `COMMAND`, then its command lines, each with a remark behind `  # ` if it needs one.
const TABLE: &str = include_str!("examples.txt");

/// The command line, made once: a process may run many.
static COMMAND: LazyLock<Command> = LazyLock::new(|| {
    let command = with_examples(Cli::command(), "", &blocks());
    let Some(json) = command.get_arguments().find(|arg| arg.get_id() == "json").cloned() else { return command };
    WITHOUT_DOCUMENTS
        .into_iter()
        .fold(command, |command, name| command.mut_subcommand(name, |below| below.arg(json.clone().hide(true))))
});

/// The command line with examples at the end of every help text, and `--json` in that of commands with JSON documents.
pub fn command() -> Command {
    COMMAND.clone()
}

/// Adds the examples of a command and of those below it; `above` is the path of the one above, without `edgepack`.
fn with_examples(command: Command, above: &str, blocks: &HashMap<&str, &str>) -> Command {
    let path = [above, command.get_name()].join(" ").trim_start().to_owned();
    let examples = blocks.get(path.as_str()).map(|block| shown(block));
    let above = if path == "edgepack" { "" } else { &path };
    let command = command.mut_subcommands(|below| with_examples(below, above, blocks));
    match examples {
        Some(examples) => command.after_help(examples),
        None => command,
    }
}

/// The command lines of every command, by its path.
fn blocks() -> HashMap<&'static str, &'static str> {
    TABLE.split("\n\n").filter_map(|block| block.split_once('\n')).collect()
}

/// The examples of a command as text, remarks below each other.
fn shown(block: &str) -> String {
    let lines: Vec<(&str, &str)> =
        block.lines().map(|line| line.trim().split_once("  # ").unwrap_or((line.trim(), ""))).collect();
    let fits = |(line, remark): &(&str, &str)| INDENT.len() + line.len() + 4 + remark.len() <= WIDTH;
    let width = lines.iter().filter(|line| fits(line)).map(|(line, _)| line.len()).max().unwrap_or(0);
    let mut text = "Examples:".to_owned();
    for (line, remark) in lines {
        let folded = |text: &mut String, before: &str, what: &str, between: &str| {
            text.push_str(&format!("\n{INDENT}{before}{}", fold(what).join(between)));
        };
        match remark {
            "" => folded(&mut text, "", line, CONTINUED),
            remark if INDENT.len() + line.len().max(width) + 4 + remark.len() <= WIDTH => {
                text.push_str(&format!("\n{INDENT}{line:width$}  # {remark}"));
            }
            remark => {
                folded(&mut text, "# ", remark, "\n  # ");
                folded(&mut text, "", line, CONTINUED);
            }
        }
    }
    text
}

/// Columns of an example: narrower than terminals, so that the help does not wrap lines where a shell would not go on.
const WIDTH: usize = 78;

/// Space in front of an example.
const INDENT: &str = "  ";

/// Separator of the lines of a long command.
const CONTINUED: &str = " \\\n      ";

/// The parts of a text that fit a line each, divided at spaces outside of quotes.
fn fold(text: &str) -> Vec<String> {
    let (mut lines, mut line, mut quote) = (Vec::new(), String::new(), None);
    let mut word = String::new();
    let mut place = |word: &mut String, line: &mut String| {
        if !line.is_empty() && line.len() + word.len() + 9 > WIDTH {
            lines.push(std::mem::take(line));
        }
        let space = if line.is_empty() { "" } else { " " };
        line.push_str(space);
        line.push_str(&std::mem::take(word));
    };
    for c in text.chars() {
        match (c, quote) {
            (' ', None) => place(&mut word, &mut line),
            ('\'' | '"', None) => {
                quote = Some(c);
                word.push(c);
            }
            (c, open) => {
                quote = open.filter(|open| *open != c);
                word.push(c);
            }
        }
    }
    place(&mut word, &mut line);
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All commands below one, by their path.
    fn paths(command: &Command, path: &str, found: &mut Vec<String>) {
        found.push(path.to_owned());
        for below in command.get_subcommands() {
            let name = below.get_name();
            paths(below, &if path == "edgepack" { name.to_owned() } else { format!("{path} {name}") }, found);
        }
    }

    #[test]
    fn every_command_has_three() {
        let (mut all, blocks) = (Vec::new(), blocks());
        paths(&Cli::command(), "edgepack", &mut all);
        for path in &all {
            let block = blocks.get(path.as_str()).unwrap_or_else(|| panic!("{path} has no examples"));
            let text = shown(block);
            assert!(text.lines().all(|line| line.len() <= WIDTH + 2), "{path}: {text}");
            let whole = text.replace(CONTINUED, " ");
            let shown: Vec<&str> = whole.lines().skip(1).map(str::trim).filter(|line| !line.starts_with('#')).collect();
            let shown: Vec<&str> = shown.iter().map(|line| line.split("  # ").next().unwrap_or(line).trim()).collect();
            let wanted = block.lines().map(|line| line.trim().split("  # ").next().unwrap_or_default());
            assert_eq!(shown, wanted.collect::<Vec<_>>(), "{path}");
            assert_eq!(shown.len(), 3, "{path}");
            assert!(path == "edgepack" || shown.iter().all(|line| line.contains(&format!("edgepack {path}"))));
        }
        for name in blocks.keys().filter(|_| cfg!(feature = "llm")) {
            assert!(all.iter().any(|path| path == name), "there is no command {name}");
        }
    }
}
