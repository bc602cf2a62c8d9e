//! One run of one method.

use std::path::PathBuf;

use edgepack_executor::{Input, Method};

use super::inputs::{inputs, read_inputs};
use super::open::{Opened, method, options};
use crate::formats::Execution;
use crate::session::Session;
use crate::status::Failure;
use crate::value::Value;

/// Runs a method: its name, and what came out.
pub fn run(
    opened: &Opened,
    asked: Option<&str>,
    paths: &[PathBuf],
    how: Execution<'_>,
    session: &mut Session,
) -> Result<(String, Vec<Value>), Failure> {
    let name = method(&opened.program, asked)?;
    let options = options(how, session)?;
    let meta = opened.program.method_meta(&name)?;
    let given = read_inputs(paths, &meta, session)?;
    let values = inputs(&meta, &given).map_err(Failure::usage)?;
    let mut method = Method::load(&opened.program, &name, &edgepack_kernels::registry(), &options)?;
    let given: Vec<Input<'_>> = values.iter().filter_map(Value::input).collect();
    let outputs: Result<Vec<Value>, _> = method.run(&given)?.iter().map(Value::of).collect();
    Ok((name, outputs.map_err(Failure::cannot_run)?))
}
