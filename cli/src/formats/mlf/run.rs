//! One run of a module.

use super::inputs::read_inputs;
use super::library::{label, module, open};
use crate::file::File;
use crate::formats::Execution;
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
