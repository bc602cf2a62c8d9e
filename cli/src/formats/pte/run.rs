//! One run of one method.

use edgepack_executor::{Input, Method};
use web_time::Instant;

use super::inputs::{inputs as recorded, wanted};
use super::open::{Opened, method, options};
use crate::formats::Execution;
use crate::inputs;
use crate::options::Inputs;
use crate::session::Session;
use crate::status::Failure;
use crate::value::Value;

/// Runs a method: its name, and what came out.
pub fn run(
    opened: &Opened,
    asked: Option<&str>,
    given: &Inputs,
    how: Execution<'_>,
    session: &mut Session,
) -> Result<(String, Vec<Value>), Failure> {
    let name = method(&opened.program, asked)?;
    let options = options(how, session)?;
    let meta = opened.program.method_meta(&name)?;
    let read = inputs::read(given, given.fill(), Some(&name), &wanted(&meta), session)?;
    let values = recorded(&meta, &read).map_err(Failure::usage)?;
    let start = Instant::now();
    let _running = session.progress.work("loading and running");
    let mut method = Method::load(&opened.program, &name, &edgepack_kernels::registry(), &options)?;
    let given: Vec<Input<'_>> = values.iter().filter_map(Value::input).collect();
    let outputs = match how.recorder {
        None => method.run(&given)?,
        Some(recorder) => {
            let mut recorder = recorder.borrow_mut();
            recorder.loaded(start);
            let outputs = method.run_observed(&given, Some(&mut *recorder))?;
            recorder.outputs(&outputs);
            outputs
        }
    };
    let outputs: Result<Vec<Value>, _> = outputs.iter().map(Value::of).collect();
    Ok((name, outputs.map_err(Failure::cannot_run)?))
}
