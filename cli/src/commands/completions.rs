//! `edgepack completions`: completions for a shell.

use std::io::Write;

use clap::Command;
use serde::Serialize;

use crate::session::Session;
use crate::status::{Failure, Status};

/// Print the completions of a shell
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Name of the shell
    pub shell: clap_complete::Shell,
}

/// The JSON document.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct Completions<'a> {
    /// The script.
    script: &'a str,
    /// The shell that runs it.
    shell: String,
}

/// Runs the command.
pub fn run(args: &Args, mut command: Command, session: &mut Session) -> Result<Status, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "edgepack", &mut script);
    if session.json {
        let script = String::from_utf8_lossy(&script);
        session.document(&Completions { script: &script, shell: args.shell.to_string() })?;
    } else {
        session.out.write_all(&script)?;
    }
    Ok(Status::Fine)
}
