//! `edgepack bench` on a package: times of opening, compiling or finding the code, and runs.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use edgepack_executor::mlf::Operand;

use super::run::read_inputs;
use super::{Native, module};
use crate::file::File;
use crate::library::runner::Runner;
use crate::session::Session;
use crate::status::Failure;
use edgepack_format::tensor::TensorBuf;

/// What was measured.
pub struct Times {
    /// The module.
    pub name: String,
    /// Opening and verifying.
    pub open: Duration,
    /// Compiling, or finding what was compiled; planning; setting parameters.
    pub load: Duration,
    /// The first run.
    pub first: Duration,
    /// All others.
    pub steady: Vec<Duration>,
    /// Calls of a run; 1 if there is no graph.
    pub calls: usize,
    /// Bytes of storages.
    pub storage: usize,
}

/// Measures a module.
pub fn run(
    file: &File,
    asked: Option<&str>,
    paths: &[PathBuf],
    native: Native,
    (time, fewest, most): (Duration, usize, usize),
    session: &mut Session,
) -> Result<Times, Failure> {
    let start = Instant::now();
    let module = module(file, asked, &session.limits)?;
    let open = start.elapsed();
    let start = Instant::now();
    let mut runner = Runner::open(&module, &native.options(), &session.limits)
        .map_err(|error| Failure::cannot_run(error).about(&file.name))?;
    let load = start.elapsed();
    let specs = runner.inputs();
    let inputs = match paths.is_empty() {
        true => specs.iter().map(|(name, operand)| zeros(name, operand.as_ref())).collect::<Result<_, _>>()?,
        false => read_inputs(paths, &specs.into_iter().map(|(name, _)| name).collect::<Vec<_>>(), session)?,
    };
    let mut once = || {
        let start = Instant::now();
        runner.run(&inputs, &[]).map_err(Failure::cannot_run)?;
        Ok::<Duration, Failure>(start.elapsed())
    };
    let first = once()?;
    let (mut steady, begin) = (Vec::new(), Instant::now());
    while steady.len() < fewest || (begin.elapsed() < time && steady.len() < most) {
        steady.push(once()?);
    }
    let (calls, storage) = match &runner {
        Runner::Graph(graph) => (graph.call_count(), graph.memory_bytes()),
        Runner::Aot(_) => (1, 0),
    };
    Ok(Times { name: module.info().name.clone(), open, load, first, steady, calls, storage })
}

/// Zeros: an integer may be an index.
fn zeros(name: &str, operand: Option<&Operand>) -> Result<TensorBuf, Failure> {
    let unknown = || Failure::usage(format!("the package does not say what {name} looks like; give --inputs"));
    let layout = operand.and_then(|operand| operand.layout().ok()).ok_or_else(unknown)?;
    let bytes = vec![0; layout.byte_len()];
    TensorBuf::from_bytes(layout, bytes).map_err(Failure::cannot_run)
}
