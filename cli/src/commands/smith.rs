//! `edgepack smith`: a valid program out of arbitrary bytes.

use std::path::PathBuf;
use std::sync::Arc;

use edgepack_executor::{Input, Method, Options, Registry};
use edgepack_format::extent::FileExtent;
use edgepack_format::limits::Limits;
use edgepack_format::pte::verify::verify_all;
use edgepack_loader::{MemorySource, OpenOptions, ValueMeta};
use edgepack_smith::arbitrary::Unstructured;
use edgepack_smith::{Generator, Rng};

use crate::inputs::fill::Fill;
use crate::session::Session;
use crate::status::{Failure, Status};
use crate::value::Value;

/// Make a valid program that runs: random calls of this runtime's operators, for tests and fuzzing
///
/// Of the programs that follow from the seed the first one is taken that runs with inputs of zeros, since most random
/// calls have types or sizes that their operator refuses when it runs; --any takes the very first.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Seed of all choices; an equal seed makes an equal program
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "bytes")]
    pub seed: u64,

    /// Bytes that decide everything, instead of a seed: input of a fuzzer
    #[arg(long, value_name = "FILE")]
    pub bytes: Option<PathBuf>,

    /// Take the first program of the seed, also if it is one that a runtime refuses to run: for readers and verifiers
    #[arg(long)]
    pub any: bool,

    /// File for the program; - is standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
}

/// Programs that are tried. About one in seven runs.
const MOST: usize = 1000;

/// The first program of a seed that runs with zeros: the one of the seed itself, or one of seeds that follow from it.
fn running(generator: &Generator, seed: u64) -> Result<Vec<u8>, Failure> {
    let (registry, mut rng) = (edgepack_kernels::registry(), Rng::new(seed));
    let seeds = std::iter::once(seed).chain(std::iter::from_fn(|| Some(rng.word())));
    for seed in seeds.take(MOST) {
        let program = generator.program_of(seed).bytes;
        if runs(&program, &registry) {
            return Ok(program);
        }
    }
    Err(Failure::cannot_run(format!("none of {MOST} programs of the seed runs; --any takes the first")))
}

/// Returns whether all methods of a program run, within the limits for files of strangers.
fn runs(bytes: &[u8], registry: &Registry) -> bool {
    let options = OpenOptions { limits: Limits::hostile() };
    let Ok(program) = options.open_source(Arc::new(MemorySource::new(bytes.to_vec()))) else { return false };
    let Ok(names) = program.method_names() else { return false };
    names.iter().all(|name| {
        let Ok(meta) = program.method_meta(name) else { return false };
        let value = |(index, input): (usize, &ValueMeta)| match input {
            ValueMeta::Tensor(tensor) => Fill::Zeros.tensor(&tensor.layout, index).map(Value::Tensor),
            ValueMeta::Null => Some(Value::Null),
            ValueMeta::Int(value) => Some(Value::Int(*value)),
            ValueMeta::Bool(value) => Some(Value::Bool(*value)),
            ValueMeta::Double(value) => Some(Value::Double(*value)),
            ValueMeta::Text(text) => Some(Value::Text(text.clone())),
            _ => None,
        };
        let Some(values) = meta.inputs.iter().enumerate().map(value).collect::<Option<Vec<_>>>() else { return false };
        let inputs: Vec<Input<'_>> = values.iter().filter_map(Value::input).collect();
        let method = Method::load(&program, name, registry, &Options { threads: Some(1), ..Options::default() });
        method.is_ok_and(|mut method| method.run(&inputs).is_ok())
    })
}

/// Runs the command.
pub fn run(args: &Args, session: &mut Session) -> Result<Status, Failure> {
    let registry = edgepack_kernels::registry();
    let operators = registry.names().into_iter().filter_map(|name| registry.find(name));
    let generator = Generator::new()
        .operators(operators.map(|operator| format!("{}{}", operator.name(), operator.schema())))
        .map_err(|error| Failure::usage(error.to_string()))?;
    let searching = session.progress.work("searching for a program that runs");
    let program = match &args.bytes {
        Some(path) => generator.program(&mut Unstructured::new(&session.read(path)?)).bytes,
        None if args.any => generator.program_of(args.seed).bytes,
        None => running(&generator, args.seed)?,
    };
    drop(searching);
    let verdict = verify_all(&program, FileExtent::of(&program), &Limits::DEFAULT);
    session.outputs.verified(&args.output, &verdict.findings)?;
    session.write_binary(&args.output, &program)?;
    Ok(Status::Fine)
}
