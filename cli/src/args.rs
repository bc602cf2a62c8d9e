//! The command line.

use clap::{Parser, Subcommand};

use crate::commands::{
    bench, build, check, compare, completions, convert, darwinn, diff, digest, dump, explain, extract, inspect, join,
    list, lower, man, merge, mutate, ops, parse, patch, print, profile, run, shrink, size, smith, split, verify, view,
};
use crate::options::Common;

/// Show, verify, run and measure on-device model packages.
///
/// Files are recognised by their content, never by their name; `-` is standard input or output.
///
/// Exit status: 0 fine; 1 findings, a mismatch or a difference; 2 wrong usage; 3 a file cannot be read or is of no
/// known kind; 4 a valid file cannot run here or failed while running. For several files the highest counts.
#[derive(Parser, Debug)]
#[command(name = "edgepack", version, propagate_version = true)]
pub struct Cli {
    /// The command to run.
    #[command(subcommand)]
    pub command: Command,

    /// Options of every command.
    #[command(flatten)]
    pub common: Common,
}

/// Names of the commands that print no JSON document: what they write is text or a file of its own form.
pub const WITHOUT_DOCUMENTS: [&str; 4] = ["dump", "print", "smith", "mutate"];

/// Commands, each with the arguments of a module of its own.
#[derive(Subcommand, Debug)]
#[allow(missing_docs, reason = "the arguments say it")]
pub enum Command {
    Inspect(inspect::Args),
    Verify(verify::Args),
    Ops(ops::Args),
    Size(size::Args),
    Run(run::Args),
    Check(check::Args),
    Compare(compare::Args),
    Bench(bench::Args),
    Profile(profile::Args),
    View(view::Args),
    Extract(extract::Args),
    Dump(dump::Args),
    Build(build::Args),
    Print(print::Args),
    Parse(parse::Args),
    Diff(diff::Args),
    Split(split::Args),
    Join(join::Args),
    Merge(merge::Args),
    List(list::Args),
    Digest(digest::Args),
    Lower(lower::Args),
    Patch(patch::Args),
    Convert(convert::Args),
    Smith(smith::Args),
    Mutate(mutate::Args),
    Shrink(shrink::Args),
    #[cfg(feature = "llm")]
    Generate(crate::commands::generate::Args),
    #[cfg(feature = "llm")]
    Chat(crate::commands::chat::Args),
    #[cfg(feature = "llm")]
    Perplexity(crate::commands::perplexity::Args),
    Explain(explain::Args),
    Darwinn(darwinn::Args),
    Completions(completions::Args),
    Man(man::Args),
}

impl Command {
    /// Name of the command, as in the schema of its JSON document.
    pub fn name(&self) -> &'static str {
        match self {
            Command::Inspect(_) => "inspect",
            Command::Verify(_) => "verify",
            Command::Ops(_) => "ops",
            Command::Size(_) => "size",
            Command::Run(_) => "run",
            Command::Check(_) => "check",
            Command::Compare(_) => "compare",
            Command::Bench(_) => "bench",
            Command::Profile(_) => "profile",
            Command::View(_) => "view",
            Command::Extract(_) => "extract",
            Command::Dump(_) => "dump",
            Command::Build(_) => "build",
            Command::Print(_) => "print",
            Command::Parse(_) => "parse",
            Command::Diff(_) => "diff",
            Command::Split(_) => "split",
            Command::Join(_) => "join",
            Command::Merge(_) => "merge",
            Command::List(_) => "list",
            Command::Digest(_) => "digest",
            Command::Lower(_) => "lower",
            Command::Patch(_) => "patch",
            Command::Convert(_) => "convert",
            Command::Smith(_) => "smith",
            Command::Mutate(_) => "mutate",
            Command::Shrink(_) => "shrink",
            #[cfg(feature = "llm")]
            Command::Generate(_) => "generate",
            #[cfg(feature = "llm")]
            Command::Chat(_) => "chat",
            #[cfg(feature = "llm")]
            Command::Perplexity(_) => "perplexity",
            Command::Explain(_) => "explain",
            Command::Darwinn(_) => "darwinn",
            Command::Completions(_) => "completions",
            Command::Man(_) => "man",
        }
    }

    /// Returns whether the command has a JSON document.
    pub fn prints_documents(&self) -> bool {
        !WITHOUT_DOCUMENTS.contains(&self.name())
    }
}
