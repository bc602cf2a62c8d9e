//! `edgepack completions`: completions for a shell.

use std::io::Write;

use clap::Command;

use crate::session::Session;
use crate::status::{Failure, Status};

/// Print the completions of a shell
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Name of the shell
    pub shell: clap_complete::Shell,
}

/// Runs the command.
pub fn run(args: &Args, mut command: Command, session: &mut Session) -> Result<Status, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "edgepack", &mut script);
    if session.json {
        let script = String::from_utf8_lossy(&script);
        session.document(&serde_json::json!({ "shell": args.shell.to_string(), "script": script }))?;
    } else {
        session.out.write_all(&script)?;
    }
    Ok(Status::Fine)
}
