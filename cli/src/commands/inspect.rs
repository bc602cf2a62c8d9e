//! `edgepack inspect`: what is inside.

use std::path::PathBuf;

use crate::formats;
use crate::session::Session;
use crate::status::{Failure, Status};

/// Show what is inside a file, broken files included
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The file
    pub file: PathBuf,

    /// Show every value, instruction, stack trace and field
    #[arg(short, long)]
    pub all: bool,
}

/// Runs the command.
pub fn run(args: &Args, session: &mut Session) -> Result<Status, Failure> {
    let (head, format) = formats::read(&args.file, session)?;
    format.inspect(&head, args.all, session)
}
