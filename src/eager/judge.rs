//! Holds what a program was lowered to against the program itself.

use edgepack_executor::Method;
use edgepack_executor::Registry;
use edgepack_exir::graph::{ExportedProgram, InputKind, Meta, Size};
use edgepack_exir::operators::Operators;
use edgepack_format::scalar::ScalarType;

use super::compute::{self, Compute};
use super::tensor::{Dense, numel};
use super::{EagerError, State, Value};

/// Tolerance of floating point elements, relative part: they may differ by `ATOL + RTOL · |wanted|`.
const RTOL: f64 = 1e-3;
/// See [`RTOL`].
const ATOL: f64 = 1e-4;

/// Result of a comparison.
#[derive(Clone, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct Judgement {
    /// Runs that were compared.
    pub runs: usize,
    /// Places at which results or state differ.
    pub differences: Vec<String>,
    /// Composite operators that both sides computed by the same decomposition, which this therefore does not judge.
    pub composites: Vec<String>,
}

impl Judgement {
    /// Returns whether everything that was compared agrees.
    pub fn agrees(&self) -> bool {
        self.differences.is_empty()
    }
}

/// Runs a program call by call and as it was lowered, on the same inputs in turn, and compares what both give, the inputs
/// that they change and the state they keep. Floating point elements agree within 1e-4 + 1e-3 · |wanted|, NaN with NaN
/// only; everything else exactly.
pub fn lowering(
    program: &ExportedProgram<'_>,
    lowered: &mut Method,
    registry: &Registry,
    operators: &Operators,
    runs: &[Vec<Dense>],
) -> Result<Judgement, EagerError> {
    let mut judgement = Judgement::default();
    let mut compute = Compute::new(operators.clone(), registry.clone());
    let mut state = State::new();
    for (run, inputs) in runs.iter().enumerate() {
        let wanted = super::run(program, inputs, &mut state, &mut compute)?;
        judgement.composites.extend(wanted.composites);
        let found = compute::run(lowered, inputs)?;
        if found.len() != wanted.outputs.len() {
            let (found, wanted) = (found.len(), wanted.outputs.len());
            judgement.differences.push(format!("run {run}: {found} outputs, the program has {wanted}"));
        }
        for (index, (found, wanted)) in found.iter().zip(&wanted.outputs).enumerate() {
            if let Some(difference) = difference(found, wanted) {
                judgement.differences.push(format!("run {run}, output {index}: {difference}"));
            }
        }
        for (name, wanted) in &state {
            let found = match lowered.attribute(name) {
                Ok(found) => found,
                Err(error) => {
                    judgement.differences.push(format!("run {run}: {error}"));
                    continue;
                }
            };
            let layout = found.layout();
            let found = compute::in_order(layout.sizes(), layout.dim_order(), layout.scalar_type(), found.data());
            if let Some(difference) = difference(&Value::Tensor(found), &Value::Tensor(wanted.clone())) {
                judgement.differences.push(format!("run {run}, state `{name}`: {difference}"));
            }
        }
        judgement.runs += 1;
    }
    judgement.composites.sort();
    judgement.composites.dedup();
    Ok(judgement)
}

/// Describes the difference of two values, if there is one.
fn difference(found: &Value, wanted: &Value) -> Option<String> {
    match (found, wanted) {
        (Value::Tensor(found), Value::Tensor(wanted)) => tensors(found, wanted),
        (Value::Float(found), Value::Float(wanted)) if close(*found, *wanted) => None,
        (found, wanted) if found == wanted => None,
        (found, wanted) => Some(format!("{found:?} instead of {wanted:?}")),
    }
}

fn close(found: f64, wanted: f64) -> bool {
    found == wanted || found.is_nan() && wanted.is_nan() || (found - wanted).abs() <= ATOL + RTOL * wanted.abs()
}

fn tensors(found: &Dense, wanted: &Dense) -> Option<String> {
    if found.scalar_type != wanted.scalar_type || found.sizes != wanted.sizes {
        let describe = |dense: &Dense| format!("{} {:?}", dense.scalar_type, dense.sizes);
        return Some(format!("{} instead of {}", describe(found), describe(wanted)));
    }
    let width = wanted.scalar_type.size().unwrap_or(1);
    let mut differing = 0usize;
    let mut first = None;
    for (index, (a, b)) in found.bytes.chunks_exact(width).zip(wanted.bytes.chunks_exact(width)).enumerate() {
        let same = a == b
            || match (wanted.scalar_type.read_float(a), wanted.scalar_type.read_float(b)) {
                (Some(a), Some(b)) => close(a, b),
                _ => complex_close(a, b, wanted.scalar_type),
            };
        if !same {
            differing += 1;
            first = first.or(Some(index));
        }
    }
    first.map(|first| format!("{differing} elements differ, the first is number {first}"))
}

fn complex_close(a: &[u8], b: &[u8], scalar_type: ScalarType) -> bool {
    if !matches!(scalar_type, ScalarType::COMPLEX_FLOAT | ScalarType::COMPLEX_DOUBLE) {
        return false;
    }
    let part = scalar_type.part();
    let half = a.len() / 2;
    a.chunks(half).zip(b.chunks(half)).all(|(a, b)| match (part.read_float(a), part.read_float(b)) {
        (Some(a), Some(b)) => close(a, b),
        _ => false,
    })
}

/// Inputs of the sizes that a program was exported with: floating point numbers between -2 and 2, whole numbers that are 0
/// or 1, so that they can be indices. The same seed gives the same inputs.
pub fn random_inputs(program: &ExportedProgram<'_>, seed: u64) -> Result<Vec<Dense>, EagerError> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut inputs = Vec::new();
    for spec in program.inputs.iter().filter(|spec| spec.kind == InputKind::User) {
        let Some(value) = spec.arg.value().and_then(|value| program.graph.value(value)) else { continue };
        let (scalar_type, sizes) = match &value.meta {
            Meta::Tensor(meta) => {
                let sizes: Option<Vec<i64>> = meta.sizes.iter().map(Size::hint).collect();
                (meta.scalar_type, sizes.ok_or_else(|| EagerError::new("an input of unknown sizes"))?)
            }
            _ => return Err(EagerError::new(format!("input `{}` is not a tensor", value.name))),
        };
        let mut bytes = Vec::new();
        for _ in 0..numel(&sizes)? {
            let random = next() >> 11;
            let number = (random as f64 / (1u64 << 53) as f64) * 4.0 - 2.0;
            let bit = random & 1;
            match scalar_type {
                ScalarType::FLOAT => bytes.extend((number as f32).to_ne_bytes()),
                ScalarType::DOUBLE => bytes.extend(number.to_ne_bytes()),
                ScalarType::HALF => bytes.extend(half::f16::from_f64(number).to_ne_bytes()),
                ScalarType::BFLOAT16 => bytes.extend(half::bf16::from_f64(number).to_ne_bytes()),
                ScalarType::COMPLEX_FLOAT => {
                    bytes.extend([(number as f32), bit as f32].iter().flat_map(|x| x.to_ne_bytes()))
                }
                other => match other.size() {
                    Some(width @ 1..=8) => bytes.extend(bit.to_le_bytes().into_iter().take(width)),
                    _ => return Err(EagerError::new(format!("an input of {other}"))),
                },
            }
        }
        inputs.push(Dense { scalar_type, sizes, bytes });
    }
    Ok(inputs)
}
