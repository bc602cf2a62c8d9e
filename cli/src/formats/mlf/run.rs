//! One run of a module.

use edgepack_format::tensor::TensorBuf;
use edgepack_native::{IoSpec, Runner};

use super::library::{label, module, open};
use crate::file::File;
use crate::formats::Execution;
use crate::inputs::{self, Kind, Wanted, fill::Fill};
use crate::options::Inputs;
use crate::session::Session;
use crate::status::Failure;
use crate::value::Value;

/// Runs a module once: its name, and what came out.
pub fn run(
    file: &File,
    asked: Option<&str>,
    given: &Inputs,
    how: Execution<'_>,
    session: &mut Session,
) -> Result<(String, Vec<Value>), Failure> {
    super::not_recorded(how)?;
    let module = module(file, asked.or(how.native.module.as_deref()), &session.limits)?;
    let mut runner = open(&module, how.native, session).map_err(|failure| failure.about(&file.name))?;
    let inputs = read_inputs(given, given.fill(), &runner, session)?;
    let _running = session.progress.work("running");
    let outputs = runner.run(&inputs, &[]).map_err(|error| Failure::cannot_run(error).about(&file.name))?;
    Ok((label(&module, how.native), outputs.into_iter().map(Value::Tensor).collect()))
}

/// The inputs of a module, in order; those that are not given as `fill` has them.
pub fn read_inputs(
    given: &Inputs,
    fill: Option<Fill>,
    runner: &Runner,
    session: &mut Session,
) -> Result<Vec<TensorBuf>, Failure> {
    let wanted = |IoSpec { name, operand }: IoSpec| {
        let layout = operand.and_then(|operand| operand.layout().ok());
        Wanted { name: Some(name), kind: layout.map_or(Kind::Unknown, Kind::Tensor) }
    };
    let wanted: Vec<Wanted> = runner.inputs().into_iter().map(wanted).collect();
    let read = inputs::read(given, fill, None, &wanted, session)?;
    if fill.is_some()
        && let Some((_, unknown)) = wanted.iter().enumerate().find(|(index, _)| !read.contains_key(index))
    {
        let name = unknown.name.as_deref().unwrap_or_default();
        return Err(Failure::usage(format!("the package does not say what {name} looks like; give --inputs")));
    }
    if read.keys().enumerate().any(|(want, have)| want != *have) {
        return Err(Failure::usage(format!("inputs {:?} leave one out", read.keys().collect::<Vec<_>>())));
    }
    let contiguous = read.into_values().map(|tensor| tensor.contiguous());
    contiguous.collect::<Result<_, _>>().map_err(Failure::cannot_run)
}
