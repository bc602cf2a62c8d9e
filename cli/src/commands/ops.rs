//! `edgepack ops`: what a file needs of a runtime.

use crate::formats;
use crate::many::Files;
use crate::session::Session;
use crate::status::{Failure, Status};

/// List the operators and delegates that programs need, and which of them this runtime has
///
/// Of a Model Library Format package: the functions its graphs call, and which of them it has. Of export IR: what becomes
/// of each operator.
///
/// Exits with 4 if something is missing.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Files.
    #[command(flatten)]
    pub files: Files,
}

/// Runs the command.
pub fn run(args: &Args, session: &mut Session) -> Result<Status, Failure> {
    args.files.each(session, |file, session| {
        let (file, format) = formats::open(&file.path, session)?;
        format.ops(&file, session)
    })
}
