//! `edgepack lower`: export IR to a program.

use crate::formats::{self, Lowering};
use crate::session::Session;
use crate::status::{Failure, Status};

/// Turn what torch.export saved into a program
///
/// Each archive becomes a method of the program; equal weights are stored once.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Archives and options.
    #[command(flatten)]
    lowering: Lowering,
}

/// Runs the command.
pub fn run(args: &Args, session: &mut Session) -> Result<Status, Failure> {
    formats::lower(&args.lowering, session)
}
