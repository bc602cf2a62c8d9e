//! `edgepack smith`: a valid program out of arbitrary bytes.

use std::path::PathBuf;

use edgepack_format::extent::FileExtent;
use edgepack_format::limits::Limits;
use edgepack_format::pte::verify::verify_all;
use edgepack_smith::Generator;
use edgepack_smith::arbitrary::Unstructured;

use crate::session::Session;
use crate::status::{Failure, Status};

/// Make a valid program: random calls of this runtime's operators, for tests and fuzzing
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Seed of all choices; an equal seed makes an equal program
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "bytes")]
    pub seed: u64,

    /// Bytes that decide everything, instead of a seed: input of a fuzzer
    #[arg(long, value_name = "FILE")]
    pub bytes: Option<PathBuf>,

    /// File for the program; - is standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
}

/// Runs the command.
pub fn run(args: &Args, session: &mut Session) -> Result<Status, Failure> {
    let registry = edgepack_kernels::registry();
    let operators = registry.names().into_iter().filter_map(|name| registry.find(name));
    let generator = Generator::new()
        .operators(operators.map(|operator| format!("{}{}", operator.name(), operator.schema())))
        .map_err(|error| Failure::usage(error.to_string()))?;
    let program = match &args.bytes {
        Some(path) => generator.program(&mut Unstructured::new(&session.read(path)?)),
        None => generator.program_of(args.seed),
    };
    let program = program.bytes;
    let verdict = verify_all(&program, FileExtent::of(&program), &Limits::DEFAULT);
    session.outputs.verified(&args.output, &verdict.findings)?;
    session.write_binary(&args.output, &program)?;
    Ok(Status::Fine)
}
