//! Times of a method.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

use edgepack_compute::threads;
use edgepack_executor::{Input, Method};
use edgepack_format::limits::Limits;
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::{TensorBuf, TensorLayout};
use edgepack_loader::{MethodMeta, ValueMeta};
use half::{bf16, f16};

use super::inputs::{inputs, read_inputs};
use super::open::{Opened, method, options};
use crate::formats::measured::{Measured, Memory, Steady};
use crate::formats::roofline::Watch;
use crate::formats::{Execution, Measurement};
use crate::session::Session;
use crate::spelling;
use crate::status::Failure;
use crate::units::count;
use crate::value::Value;

/// Runs that are watched; the best time of each instruction counts.
const WATCHED: usize = 20;

/// Measures a method of the program that `open` opens: for some time, and with the second every instruction. Without inputs
/// they are arbitrary.
pub fn bench(
    open: &dyn Fn(&Limits) -> Result<Opened, Failure>,
    file: &str,
    asked: Option<&str>,
    paths: &[PathBuf],
    Measurement { time, roofline }: Measurement,
    how: Execution<'_>,
    session: &mut Session,
) -> Result<Measured, Failure> {
    let start = Instant::now();
    let opened = open(&session.limits)?.program;
    let open = start.elapsed();
    let name = method(&opened, asked)?;
    let meta = opened.method_meta(&name)?;
    let given = match paths.is_empty() {
        true => all_arbitrary(&meta, session.limits.arena_bytes)?,
        false => read_inputs(paths, &meta, session)?,
    };
    let values = inputs(&meta, &given).map_err(Failure::usage)?;
    let inputs: Vec<Input<'_>> = values.iter().filter_map(Value::input).collect();
    let options = options(how, session)?;
    let registry = edgepack_kernels::registry();
    let start = Instant::now();
    let mut method = Method::load(&opened, &name, &registry, &options)?;
    let load = start.elapsed();
    let mut once = || {
        let start = Instant::now();
        method.run(&inputs)?;
        Ok(start.elapsed())
    };
    let first_run = once()?;
    let steady = Steady::measure(time, once)?;
    let roofline = match roofline {
        true => {
            let mut watch = Watch::new(how.threads.map_or_else(threads::current, usize::from));
            for _ in 0..WATCHED {
                method.run_observed(&inputs, Some(&mut watch))?;
            }
            Some(watch.finish())
        }
        false => None,
    };
    Ok(Measured {
        file: file.to_owned(),
        method: name,
        threads: how.threads,
        open,
        load,
        first_run,
        steady,
        memory: Memory::of(method.memory_bytes()),
        roofline,
        work: count(meta.instructions, "instruction"),
    })
}

/// Tensors for all inputs that are tensors, unless they are larger than a planned memory may be.
fn all_arbitrary(meta: &MethodMeta, most: u64) -> Result<BTreeMap<usize, TensorBuf>, Failure> {
    let mut given = BTreeMap::new();
    for (index, meta) in meta.inputs.iter().enumerate() {
        if let ValueMeta::Tensor(tensor) = meta
            && tensor.layout.byte_len() as u64 > most
        {
            let (bytes, layout) = (tensor.layout.byte_len(), spelling::layout(&tensor.layout));
            return Err(Failure::cannot_run(format!("input {index}, {layout}, has {bytes} bytes; {most} are allowed")));
        }
        given.extend(arbitrary(meta).map(|tensor| (index, tensor)));
    }
    Ok(given)
}

/// Generates numbers for an input that was not given: floats between -1 and 1, zeros otherwise, since an integer may be
/// an index.
fn arbitrary(meta: &ValueMeta) -> Option<TensorBuf> {
    let ValueMeta::Tensor(meta) = meta else { return None };
    let layout: TensorLayout = meta.layout.clone();
    let mut state = 0x9e37_79b9_u32;
    let mut next = || {
        // A linear congruence is random enough to keep kernels from shortcuts.
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    let count = layout.element_count();
    let data: Vec<u8> = match layout.scalar_type() {
        ScalarType::FLOAT => (0..count).flat_map(|_| next().to_le_bytes()).collect(),
        ScalarType::DOUBLE => (0..count).flat_map(|_| f64::from(next()).to_le_bytes()).collect(),
        ScalarType::HALF => (0..count).flat_map(|_| f16::from_f32(next()).to_le_bytes()).collect(),
        ScalarType::BFLOAT16 => (0..count).flat_map(|_| bf16::from_f32(next()).to_le_bytes()).collect(),
        _ => vec![0; layout.byte_len()],
    };
    TensorBuf::from_bytes(layout, data).ok()
}
