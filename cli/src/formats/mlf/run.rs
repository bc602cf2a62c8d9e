//! One run of a module.

use std::path::PathBuf;

use edgepack_format::tensor::TensorBuf;

use super::library::open;
use crate::cases::parse_key;
use crate::file::File;
use crate::file::name_of;
use crate::formats::Execution;
use crate::interchange::{self, TensorFile};
use crate::session::Session;
use crate::status::Failure;
use crate::value::Value;

/// Runs a module once: its name, and what came out.
pub fn run(
    file: &File,
    asked: Option<&str>,
    paths: &[PathBuf],
    how: Execution<'_>,
    session: &mut Session,
) -> Result<(String, Vec<Value>), Failure> {
    let (module, mut runner) = open(file, asked, how.native, &session.limits)?;
    let names: Vec<String> = runner.inputs().into_iter().map(|(name, _)| name).collect();
    let inputs = read_inputs(paths, &names, session)?;
    let outputs = runner.run(&inputs, &[]).map_err(Failure::cannot_run)?;
    Ok((module.info().name.clone(), outputs.into_iter().map(Value::Tensor).collect()))
}

/// Inputs in order: NumPy arrays as given, tensors of a safetensors file by name or number.
pub fn read_inputs(paths: &[PathBuf], names: &[String], session: &mut Session) -> Result<Vec<TensorBuf>, Failure> {
    let mut given = std::collections::BTreeMap::new();
    for path in paths {
        let about = |failure: Failure| failure.about(&name_of(path));
        let bytes = session.read_filled(path)?;
        match interchange::read(&bytes).map_err(|error| about(Failure::unreadable(error)))? {
            TensorFile::Single(tensor) => {
                given.insert(given.len(), tensor);
            }
            TensorFile::Named(tensors) => {
                for (key, tensor) in tensors {
                    let number = key.strip_prefix("in.").unwrap_or(&key).parse().ok();
                    let place = names.iter().position(|name| *name == key).or(number);
                    let place = place.or_else(|| parse_key(&key).map(|(_, _, _, index)| index));
                    let message = || Failure::usage(format!("the key {key:?} is not an input's name or number"));
                    given.insert(place.ok_or_else(|| about(message()))?, tensor);
                }
            }
        }
    }
    if given.keys().enumerate().any(|(want, have)| want != *have) {
        return Err(Failure::usage(format!("inputs {:?} leave one out", given.keys().collect::<Vec<_>>())));
    }
    let contiguous = given.into_values().map(|tensor| tensor.contiguous());
    contiguous.collect::<Result<_, _>>().map_err(Failure::cannot_run)
}
