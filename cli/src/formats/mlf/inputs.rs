//! Inputs of a module.

use std::collections::BTreeMap;

use edgepack_format::tensor::TensorBuf;
use edgepack_native::{IoSpec, Runner};

use crate::inputs::{self, Kind, Wanted, fill::Fill};
use crate::options::Inputs;
use crate::session::Session;
use crate::spelling;
use crate::status::Failure;
use crate::units::count;

/// The inputs as the command line and recordings may give them; of a single operator all its arguments.
pub fn wanted(runner: &Runner) -> Vec<Wanted> {
    let wanted = |IoSpec { name, operand }: IoSpec| {
        let layout = operand.and_then(|operand| operand.layout().ok());
        Wanted { name: Some(name), kind: layout.map_or(Kind::Unknown, Kind::Tensor) }
    };
    runner.inputs().into_iter().map(wanted).collect()
}

/// The inputs of a module, in order; those that are not given as `fill` has them.
pub fn read_inputs(
    given: &Inputs,
    fill: Option<Fill>,
    runner: &Runner,
    session: &mut Session,
) -> Result<Vec<TensorBuf>, Failure> {
    let wanted = wanted(runner);
    let read = inputs::read(given, fill, None, &wanted, session)?;
    if fill.is_some()
        && let Some((_, unknown)) = wanted.iter().enumerate().find(|(index, _)| !read.contains_key(index))
    {
        let name = unknown.name.as_deref().unwrap_or_default();
        return Err(Failure::usage(format!("the package does not say what {name} looks like; give --inputs")));
    }
    fit(&wanted, &read, runner).map_err(Failure::usage)?;
    let contiguous = read.into_values().map(|tensor| tensor.contiguous());
    contiguous.collect::<Result<_, _>>().map_err(Failure::cannot_run)
}

/// Compares tensors with the inputs of a module; without a list of them in the package there is nothing to compare with. Of a
/// single operator the last arguments, its outputs, are not given, and elements are counted: its package knows no sizes.
pub fn fit(wanted: &[Wanted], given: &BTreeMap<usize, TensorBuf>, runner: &Runner) -> Result<(), String> {
    if wanted.is_empty() {
        return Ok(());
    }
    let is_operator = runner.outputs().is_empty();
    let past = given.last_key_value().map_or(0, |(last, _)| last + 1);
    if past > wanted.len() {
        return Err(format!("input {} is one too many: the module takes {}", past - 1, count(wanted.len(), "input")));
    }
    let needed = if is_operator { past } else { wanted.len() };
    for (index, Wanted { name, kind }) in wanted.iter().enumerate().take(needed) {
        let named = name.as_ref().map(|name| format!(" ({})", spelling::name(name))).unwrap_or_default();
        let want = match kind {
            Kind::Tensor(layout) => spelling::layout(layout),
            Kind::Scalar(_) | Kind::Unknown => "a tensor".to_owned(),
        };
        let got = match (given.get(&index), kind) {
            (None, _) => "nothing".to_owned(),
            (Some(tensor), Kind::Tensor(layout)) => {
                let have = tensor.layout();
                let is_size = have.sizes() == layout.sizes() || is_operator && have.byte_len() == layout.byte_len();
                if have.scalar_type() == layout.scalar_type() && is_size {
                    continue;
                }
                spelling::layout(have)
            }
            (Some(_), Kind::Scalar(_) | Kind::Unknown) => continue,
        };
        return Err(format!("input {index}{named} wants {want}, got {got}"));
    }
    Ok(())
}
