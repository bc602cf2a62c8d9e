//! `edgepack inspect`: what is inside.

use crate::formats;
use crate::many::Files;
use crate::session::Session;
use crate::status::{Failure, Status};

/// Show what is inside files, broken ones included
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Files.
    #[command(flatten)]
    pub files: Files,

    /// Show every value, instruction, stack trace and field
    #[arg(short, long)]
    pub all: bool,
}

/// Runs the command.
pub fn run(args: &Args, session: &mut Session) -> Result<Status, Failure> {
    args.files.each(session, |file, session| {
        let (head, format) = formats::read(&file.path, session)?;
        format.inspect(&head, args.all, session)
    })
}
