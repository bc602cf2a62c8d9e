//! Examples behind the help of every command, from one table that a test runs.

use clap::{Command, CommandFactory};

use crate::args::{Cli, WITHOUT_DOCUMENTS};

/// A line `COMMAND`, then its command lines, each with a remark behind `  # ` if it needs one.
const TABLE: &str = include_str!("examples.txt");

/// The command line with examples at the end of every help text, and `--json` in that of commands with JSON documents.
pub fn command() -> Command {
    let command = with_examples(Cli::command(), "edgepack");
    let Some(json) = command.get_arguments().find(|arg| arg.get_id() == "json").cloned() else { return command };
    WITHOUT_DOCUMENTS
        .into_iter()
        .fold(command, |command, name| command.mut_subcommand(name, |below| below.arg(json.clone().hide(true))))
}

/// Adds the examples of a command and of those below it; `path` is its name, without `edgepack` for those below that.
fn with_examples(command: Command, path: &str) -> Command {
    let names: Vec<String> = command.get_subcommands().map(|below| below.get_name().to_owned()).collect();
    let command = names.into_iter().fold(command, |command, name| {
        let path = if path == "edgepack" { name.clone() } else { format!("{path} {name}") };
        command.mut_subcommand(name, |below| with_examples(below, &path))
    });
    match shown(path) {
        Some(examples) => command.after_help(examples),
        None => command,
    }
}

/// The examples of a command as text, remarks below each other.
fn shown(path: &str) -> Option<String> {
    let block = TABLE.split("\n\n").find(|block| block.lines().next() == Some(path))?;
    let lines: Vec<(&str, &str)> =
        block.lines().skip(1).map(|line| line.trim().split_once("  # ").unwrap_or((line.trim(), ""))).collect();
    // A line that is long by itself has its remark right behind it.
    let width = lines.iter().map(|(line, _)| line.len()).filter(|&width| width <= 60).max().unwrap_or(0);
    let mut text = "Examples:".to_owned();
    for (line, remark) in lines {
        text.push_str("\n  ");
        match remark {
            "" => text.push_str(line),
            remark => text.push_str(&format!("{line:width$}  # {remark}")),
        }
    }
    Some(text)
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
        let mut all = Vec::new();
        paths(&Cli::command(), "edgepack", &mut all);
        for path in &all {
            let text = shown(path).unwrap_or_else(|| panic!("{path} has no examples"));
            assert_eq!(text.lines().count(), 4, "{path}");
            assert!(path == "edgepack" || text.lines().skip(1).all(|line| line.contains(&format!("edgepack {path}"))));
        }
        let blocks = TABLE.split("\n\n").map(|block| block.lines().next().unwrap_or_default());
        for name in blocks.filter(|_| cfg!(feature = "llm")) {
            assert!(all.iter().any(|path| path == name), "there is no command {name}");
        }
    }
}
