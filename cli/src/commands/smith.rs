//! `edgepack smith`: a valid program out of arbitrary bytes.

use std::path::PathBuf;

use edgepack_format::extent::FileExtent;
use edgepack_format::limits::Limits;
use edgepack_format::pte::verify::verify_all;
use edgepack_fuzz::bodies::assembled;
use edgepack_fuzz::rng::Rng;

use crate::session::Session;
use crate::status::{Failure, Status};

/// Bytes a program is made of if none are given.
const TAPE: usize = 256;

/// Make a valid program: random calls of this runtime's operators, for tests and fuzzing
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Decides everything; the same number is the same program
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "bytes")]
    pub seed: u64,

    /// Bytes that decide everything, instead of a number: what a fuzzer hands out
    #[arg(long, value_name = "FILE")]
    pub bytes: Option<PathBuf>,

    /// Where the program goes; - is standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
}

/// Runs the command.
pub fn run(args: &Args, session: &mut Session) -> Result<Status, Failure> {
    let tape = match &args.bytes {
        Some(path) => session.read(path)?,
        None => {
            let mut rng = Rng::new(args.seed);
            (0..TAPE).map(|_| rng.below(256) as u8).collect()
        }
    };
    let program = assembled(&tape);
    let verdict = verify_all(&program, FileExtent::of(&program), &Limits::DEFAULT);
    session.outputs.verified(&args.output, &verdict.findings)?;
    session.write_binary(&args.output, &program)?;
    Ok(Status::Fine)
}
