//! `edgepack ops`: what a file needs of a runtime.

use std::path::PathBuf;

use crate::formats;
use crate::session::Session;
use crate::status::{Failure, Status};

/// List the operators and delegates a program needs, and which of them this runtime has
///
/// Of a Model Library Format package: the functions its graphs call, and which of them it has. Of export IR: what becomes
/// of each operator.
///
/// Exits with 4 if something is missing.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The program, a Model Library Format package, or an archive of export IR
    pub file: PathBuf,
}

/// Runs the command.
pub fn run(args: &Args, session: &mut Session) -> Result<Status, Failure> {
    let (file, format) = formats::open(&args.file, session)?;
    format.ops(&file, session)
}
