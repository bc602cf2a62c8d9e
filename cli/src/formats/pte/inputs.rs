//! Inputs of a method, from files.

use std::collections::BTreeMap;
use std::path::PathBuf;

use edgepack_format::tensor::TensorBuf;
use edgepack_loader::{MethodMeta, ValueMeta};

use crate::cases::{Side, parse_key};
use crate::file::name_of;
use crate::interchange::{self, TensorFile};
use crate::session::Session;
use crate::spelling;
use crate::status::Failure;
use crate::units::count;
use crate::value::Value;

/// The inputs of a method: recorded tensors in the order the method wants, numbers as such, and for what is not
/// recorded the value the program was traced with.
pub fn inputs(meta: &MethodMeta, recorded: &BTreeMap<usize, TensorBuf>) -> Result<Vec<Value>, String> {
    if let Some((last, _)) = recorded.last_key_value()
        && *last >= meta.inputs.len()
    {
        let takes = count(meta.inputs.len(), "input");
        return Err(format!("input {last} is one too many: the method takes {takes}"));
    }
    let one = |(index, wanted): (usize, &ValueMeta)| match (wanted, recorded.get(&index)) {
        (ValueMeta::Tensor(wanted), Some(tensor)) if wanted.layout.sizes().len() != tensor.layout().sizes().len() => {
            let (want, got) = (spelling::layout(&wanted.layout), spelling::layout(tensor.layout()));
            Err(format!("input {index} wants {want}, got {got}"))
        }
        (ValueMeta::Tensor(wanted), Some(tensor)) => {
            let ordered = tensor.in_order(wanted.layout.dim_order());
            ordered.map(Value::Tensor).map_err(|error| format!("input {index}: {error}"))
        }
        (_, Some(tensor)) => match Value::of_scalar(tensor) {
            Some(number) => Ok(number),
            None => {
                let (want, got) = (kind(wanted), spelling::layout(tensor.layout()));
                Err(format!("input {index} wants {want}, got {got}"))
            }
        },
        (ValueMeta::Null, None) => Ok(Value::Null),
        (ValueMeta::Int(value), None) => Ok(Value::Int(*value)),
        (ValueMeta::Bool(value), None) => Ok(Value::Bool(*value)),
        (ValueMeta::Double(value), None) => Ok(Value::Double(*value)),
        (ValueMeta::Text(text), None) => Ok(Value::Text(text.clone())),
        (ValueMeta::Tensor(wanted), None) => {
            Err(format!("input {index} wants {}, got nothing", spelling::layout(&wanted.layout)))
        }
        _ => Err(format!("input {index} is of a kind that cannot be given")),
    };
    meta.inputs.iter().enumerate().map(one).collect()
}

/// The kind of what an input wants, in words.
fn kind(wanted: &ValueMeta) -> &'static str {
    match wanted {
        ValueMeta::Null => "nothing",
        ValueMeta::Int(_) => "an integer",
        ValueMeta::Bool(_) => "a bool",
        ValueMeta::Double(_) => "a double",
        ValueMeta::Text(_) => "text",
        ValueMeta::Tensor(_) => "a tensor",
        _ => "a value that cannot be given",
    }
}

/// The inputs that files give, by index.
pub fn read_inputs(
    paths: &[PathBuf],
    meta: &MethodMeta,
    session: &mut Session,
) -> Result<BTreeMap<usize, TensorBuf>, Failure> {
    let mut given = BTreeMap::new();
    let mut next = 0;
    for path in paths {
        let about = |failure: Failure| failure.about(&name_of(path));
        let bytes = session.read_filled(path)?;
        match interchange::read(&bytes).map_err(|error| about(Failure::unreadable(error)))? {
            TensorFile::Single(tensor) => {
                given.insert(next, tensor);
                next += 1;
            }
            TensorFile::Named(tensors) => {
                for (index, tensor) in by_index(tensors, &meta.name).map_err(about)? {
                    given.insert(index, tensor);
                }
            }
        }
    }
    Ok(given)
}

/// Returns the tensors of this run's inputs, each with the index of the input that its name refers to.
fn by_index(tensors: Vec<(String, TensorBuf)>, method: &str) -> Result<Vec<(usize, TensorBuf)>, Failure> {
    let first =
        tensors.iter().filter_map(|(key, _)| parse_key(key)).filter(|key| key.0 == method).map(|key| key.1).min();
    let single = tensors.len() == 1;
    let mut found = Vec::new();
    for (key, tensor) in tensors {
        let plain = key.strip_prefix("in.").unwrap_or(&key).parse().ok();
        match (plain, parse_key(&key)) {
            (Some(index), _) => found.push((index, tensor)),
            // Other methods, later runs and recorded outputs are not for this run.
            (None, Some((name, run, side, index))) => {
                if name == method && Some(run) == first && side == Side::In {
                    found.push((index, tensor));
                }
            }
            (None, None) if single => found.push((0, tensor)),
            (None, None) => {
                return Err(Failure::usage(format!("the key {key:?} is not I, in.I or METHOD.RUN.in.I")));
            }
        }
    }
    Ok(found)
}
