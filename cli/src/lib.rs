//! The `edgepack` command as a library: [`run`] is the whole program, with the streams it reads and writes as
//! arguments, and [`run_with`] the same with decoders of your backends' payloads. [`formats`] holds the families of files.
#![deny(unsafe_code)]

pub mod args;
pub mod cases;
pub mod commands;
pub mod compare;
#[cfg(feature = "schemas")]
pub mod documents;
mod edit;
mod error_codes;
mod examples;
mod file;
mod findings;
pub mod formats;
mod html;
mod in_memory;
pub mod inputs;
pub mod interchange;
pub mod interrupt;
pub mod layers;
#[cfg(feature = "llm")]
mod llm;
mod manifest;
mod many;
pub mod options;
mod outputs;
mod profile;
mod progress;
mod ranking;
mod readable;
mod recording;
pub mod remote;
mod session;
mod setting;
mod spelling;
mod status;
mod streams;
mod style;
mod table;
mod units;
pub mod value;
mod view;

use std::ffi::OsString;
use std::io::Write;

use clap::FromArgMatches;
use edgepack_format::payload::Payloads;

use crate::args::{Cli, Command};
use crate::commands::{
    bench, build, check, compare as compare_layers, completions, convert, darwinn, diff, digest, dump, explain,
    extract, inspect, join, list, lower, man, merge, mutate, ops, parse, patch, print, profile as profile_method,
    run as run_once, shrink, size, smith, split, verify, view as view_graph,
};
pub use crate::in_memory::MemoryFiles;
use crate::options::{Color, JsonForm};
use crate::progress::Progress;
use crate::session::{Session, Streams};
pub use crate::status::{Failure, Status};
pub use crate::streams::{ColorStream, HELPER, Io};
pub use formats::mlf::native::serve as serve_native_code;

/// Runs one command line (the first argument is the program's name).
pub fn run(args: impl IntoIterator<Item = OsString>, io: Io) -> Status {
    run_with(args, io, edgepack::payloads())
}

/// Runs one command line that shows the payloads of these backends, too.
pub fn run_with(args: impl IntoIterator<Item = OsString>, io: Io, payloads: Payloads) -> Status {
    let (stdout_color, stderr_color) = io.color;
    let parsed = examples::command().try_get_matches_from(args).and_then(|matches| Cli::from_arg_matches(&matches));
    let cli = match parsed {
        Ok(cli) => cli,
        Err(error) => {
            let text = plain(&error.render().ansi().to_string());
            let mut complaints = ColorStream::new(io.stderr, Color::Auto, stderr_color);
            if error.use_stderr() {
                // Nobody is left to be told that telling failed.
                let _ = write!(complaints, "{text}").and_then(|()| complaints.flush());
                return Status::Usage;
            }
            let mut out = ColorStream::new(io.stdout, Color::Auto, stdout_color);
            let told = write!(out, "{text}").and_then(|()| out.flush());
            return match told {
                Ok(()) => Status::Fine,
                Err(error) => complain(&error.into(), &mut complaints),
            };
        }
    };
    let err = ColorStream::new(io.stderr, cli.common.color, stderr_color);
    let out = ColorStream::new(io.stdout, cli.common.color, stdout_color);
    // Lines that are printed while work goes on would stand in the middle of a bar.
    let mixed = io.terminal && cli.common.json == Some(JsonForm::Lines);
    let progress = Progress::new(io.progress && !mixed, err.has_color());
    let streams = Streams { out, err, stdin: io.stdin, terminal: io.terminal, progress };
    let mut session = Session::new(cli.common, cli.command.name(), payloads, streams, io.files);
    session.helper = io.helper;
    if session.json && !cli.command.prints_documents() {
        let message = format!("`{}` has no JSON document: it is without --json", cli.command.name());
        return complain(&Failure::usage(message), &mut session.err);
    }
    let outcome = match &cli.command {
        Command::Inspect(args) => inspect::run(args, &mut session),
        Command::Verify(args) => verify::run(args, &mut session),
        Command::Ops(args) => ops::run(args, &mut session),
        Command::Size(args) => size::run(args, &mut session),
        Command::Run(args) => run_once::run(args, &mut session),
        Command::Check(args) => check::run(args, &mut session),
        Command::Compare(args) => compare_layers::run(args, &mut session),
        Command::Bench(args) => bench::run(args, &mut session),
        Command::Profile(args) => profile_method::run(args, &mut session),
        Command::View(args) => view_graph::run(args, &mut session),
        Command::Extract(args) => extract::run(args, &mut session),
        Command::Dump(args) => dump::run(args, &mut session),
        Command::Build(args) => build::run(args, &mut session),
        Command::Print(args) => print::run(args, &mut session),
        Command::Parse(args) => parse::run(args, &mut session),
        Command::Diff(args) => diff::run(args, &mut session),
        Command::Split(args) => split::run(args, &mut session),
        Command::Join(args) => join::run(args, &mut session),
        Command::Merge(args) => merge::run(args, &mut session),
        Command::List(args) => list::run(args, &mut session),
        Command::Digest(args) => digest::run(args, &mut session),
        Command::Lower(args) => lower::run(args, &mut session),
        Command::Patch(args) => patch::run(args, &mut session),
        Command::Convert(args) => convert::run(args, &mut session),
        Command::Smith(args) => smith::run(args, &mut session),
        Command::Mutate(args) => mutate::run(args, &mut session),
        Command::Shrink(args) => shrink::run(args, &mut session),
        Command::Explain(args) => explain::run(args, &mut session),
        Command::Darwinn(args) => darwinn::run(args, &mut session),
        Command::Completions(args) => completions::run(args, examples::command(), &mut session),
        #[cfg(feature = "llm")]
        Command::Generate(args) => commands::generate::run(args, &mut session),
        #[cfg(feature = "llm")]
        Command::Chat(args) => commands::chat::run(args, &mut session),
        #[cfg(feature = "llm")]
        Command::Perplexity(args) => commands::perplexity::run(args, &mut session),
        Command::Man(args) => man::run(args, examples::command(), &mut session),
    };
    let outcome = outcome.or_else(|failure| session.fail(failure)).and_then(|status| {
        session.reach(status);
        session.end_documents()?;
        session.out.flush()?;
        Ok(status)
    });
    match outcome {
        Ok(status) => status,
        Err(failure) => {
            // What was written before still goes out; that may fail for the same reason.
            let _ = session.end_documents();
            let _ = session.out.flush();
            let reached = if failure.silent { session.reached() } else { Status::Fine };
            complain(&failure, &mut session.err).max(reached)
        }
    }
}

/// Complaints about numbers, which come from the standard library, in plain words.
fn plain(text: &str) -> String {
    text.replace("invalid digit found in string", "this is not a whole number")
        .replace("cannot parse integer from empty string", "a whole number is wanted")
        .replace("number too large to fit in target type", "the number is too large")
        .replace("number too small to fit in target type", "the number is too small")
        .replace("invalid float literal", "this is not a number")
        .replace("is not in 1..=4294967295", "is not 1 or more")
}

/// Reports why there is no result; returns the exit status.
fn complain(failure: &Failure, complaints: &mut ColorStream) -> Status {
    // Nobody is left to be told that telling failed.
    let _ = failure.print(complaints);
    failure.status
}
