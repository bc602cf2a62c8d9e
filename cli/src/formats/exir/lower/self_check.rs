//! Comparison of lowered programs with the exported programs, before anything is written.

use std::io::{self, Write};
use std::sync::Arc;

use edgepack::builder::pte::BuiltProgram;
use edgepack::eager::{self, Dense, Judgement};
use edgepack_executor::{Method, Options};
use edgepack_exir::graph::ExportedProgram;
use edgepack_exir::lower::Options as Lowering;
use edgepack_exir::operators::Operators;
use edgepack_format::ptd::Accept;
use edgepack_loader::{DataFile, MemorySource, NamedDataMap, Program};
use serde::Serialize;

use crate::cases::Recorded;
use crate::formats::pte;
use crate::status::Failure;
use crate::style::{DIM, GOOD, NAME, WARN};
use crate::units::count;

/// Runs with inputs of our own, where none were given.
const RUNS: u64 = 2;

/// Result of checking a method. A method that differs is a failure.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Judged {
    method: String,
    runs: usize,
    /// Operators that both sides computed by the same decomposition.
    composites: Vec<String>,
    /// Reason the method was not checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// Runs every method as it was lowered and as its program says. `cases` are the inputs; without any they are random. A
/// method that cannot be judged is a failure if that was asked for by `must`, and a remark otherwise.
pub fn judge(
    programs: &[(String, ExportedProgram<'_>)],
    built: &BuiltProgram<'_>,
    lowering: &Lowering,
    cases: Option<&[Recorded]>,
    must: bool,
) -> Result<Vec<Judged>, Failure> {
    let bytes = built.to_bytes().map_err(Failure::unreadable)?;
    let file = pte::open(Arc::new(MemorySource::new(bytes)), &lowering.limits)?;
    let mut data: Vec<Arc<dyn NamedDataMap>> = Vec::new();
    for (_, part) in built.data_files() {
        let bytes = Arc::new(MemorySource::new(part.to_bytes().map_err(Failure::unreadable)?));
        data.push(Arc::new(DataFile::from_source(bytes, lowering.limits, Accept::default())?));
    }
    let options = Options { data, backends: edgepack::backends(), ..Options::default() };
    let mut all = Vec::with_capacity(programs.len());
    for (name, program) in programs {
        let judgement = match method(name, program, &file, &options, &lowering.operators, cases) {
            Ok(judgement) => judgement,
            Err(reason) if must => {
                return Err(Failure::cannot_run(reason).about(&format!("method {name} cannot be judged")));
            }
            Err(reason) => {
                let error = Some(reason);
                all.push(Judged { method: name.clone(), runs: 0, composites: Vec::new(), error });
                continue;
            }
        };
        if !judgement.agrees() {
            let differences = judgement.differences.join("; ");
            let message = format!("it differs from its program, so nothing is written: {differences}");
            return Err(Failure::findings(message).about(&format!("method {name}")));
        }
        let Judgement { runs, composites, .. } = judgement;
        all.push(Judged { method: name.clone(), runs, composites, error: None });
    }
    Ok(all)
}

fn method(
    name: &str,
    program: &ExportedProgram<'_>,
    file: &Program,
    options: &Options,
    operators: &Operators,
    cases: Option<&[Recorded]>,
) -> Result<Judgement, String> {
    let registry = edgepack_kernels::registry();
    let mut lowered = Method::load(file, name, &registry, options).map_err(|error| error.to_string())?;
    let recorded = cases.unwrap_or_default().iter().filter(|case| case.method == name);
    let mut runs: Vec<Vec<Dense>> = recorded.map(dense).collect::<Result<_, _>>()?;
    if runs.is_empty() {
        runs = (0..RUNS)
            .map(|run| eager::random_inputs(program, run))
            .collect::<Result<_, _>>()
            .map_err(|error| error.to_string())?;
    }
    eager::lowering(program, &mut lowered, &registry, operators, &runs).map_err(|error| error.to_string())
}

/// The inputs of a recorded run.
fn dense(case: &Recorded) -> Result<Vec<Dense>, String> {
    let one = |tensor: &edgepack_format::tensor::TensorBuf| {
        let order: Vec<u8> = (0..).take(tensor.layout().sizes().len()).collect();
        let tensor = tensor.in_order(&order).map_err(|error| error.to_string())?;
        let sizes = tensor.layout().sizes().iter().map(|size| *size as i64).collect();
        Ok(Dense { scalar_type: tensor.layout().scalar_type(), sizes, bytes: tensor.data().to_vec() })
    };
    case.inputs.values().map(one).collect()
}

/// Says it in lines.
pub fn print(judged: &[Judged], out: &mut dyn Write) -> io::Result<()> {
    for Judged { method, runs, composites, error } in judged {
        match error {
            Some(error) => writeln!(out, "  {NAME}{method}{NAME:#}  {WARN}not judged{WARN:#}: {error}")?,
            None => {
                let runs = count(*runs, "run");
                writeln!(out, "  {NAME}{method}{NAME:#}  {GOOD}gives what its program gives{GOOD:#}, {runs}")?;
            }
        }
        if !composites.is_empty() {
            let composites = composites.join(" ");
            writeln!(out, "    {DIM}computed by the same decomposition on both sides: {composites}{DIM:#}")?;
        }
    }
    Ok(())
}
