//! Convolution of 16-bit floats, computed as that of `f32` and rounded once: constant weights are widened when the method is
//! loaded, images in scratch memory.

use edgepack_executor::kernel::{KernelContext, KernelError, Prepare, Run, room};

use super::fast::{Call, Convolution, floats, scratch_bytes};
use super::{OUT, geometry};
use edgepack_compute::half::Narrow;

/// The first step.
pub(super) fn prepare<T: Narrow>(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    let weight = args.tensor(1)?;
    let mut wide = Vec::new();
    if let Some(constant) = weight.constant.filter(|_| args.optimize()) {
        let count = constant.element_count();
        args.retained().reserve(count.saturating_mul(size_of::<f32>()))?;
        wide = room(count)?;
        wide.resize(count, 0.0);
        T::widen(constant.as_slice::<T>()?, &mut wide);
    }
    let mut bytes = scratch_bytes(&args.tensor(0)?.meta, &weight.meta, args.bool(6)? != Some(false));
    for arg in [0, 1, 2, OUT] {
        let elements = args.tensor_opt(arg)?.map_or(0, |tensor| tensor.meta.element_count());
        bytes = bytes.saturating_add(elements.saturating_mul(size_of::<f32>()));
    }
    args.scratch(bytes);
    let inner = Convolution::new(!wide.is_empty(), None);
    Ok(Box::new(Widened { inner, wide, run: run::<T> }))
}

/// One instruction: its weight as `f32`, if that is constant.
struct Widened {
    inner: Convolution,
    wide: Vec<f32>,
    run: fn(&mut Convolution, &[f32], &mut KernelContext<'_>) -> Result<(), KernelError>,
}

impl Run for Widened {
    fn run(&mut self, cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
        (self.run)(&mut self.inner, &self.wide, cx)
    }

    fn retained_bytes(&self) -> usize {
        self.inner.retained_bytes() + size_of_val(&self.wide[..])
    }
}

/// Widens a slice into memory from the front of the scratch memory.
fn widen<'s, T: Narrow>(scratch: &mut &'s mut [f32], from: &[T]) -> Result<&'s [f32], KernelError> {
    let wide = take(scratch, from.len())?;
    T::widen(from, wide);
    Ok(wide)
}

fn take<'s>(scratch: &mut &'s mut [f32], len: usize) -> Result<&'s mut [f32], KernelError> {
    let (taken, rest) = std::mem::take(scratch)
        .split_at_mut_checked(len)
        .ok_or_else(|| KernelError::unsupported("a tensor is larger than at load"))?;
    *scratch = rest;
    Ok(taken)
}

/// One call; the weight is here if it never changes.
fn run<T: Narrow>(inner: &mut Convolution, weight: &[f32], cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
    let (geometry, retained) = (geometry(cx)?, cx.retained());
    let views = cx.views();
    let mut scratch = floats(views.scratch()?)?;
    let input = widen(&mut scratch, views.tensor(0)?.as_slice::<T>()?)?;
    let weight = match weight {
        [] => widen(&mut scratch, views.tensor(1)?.as_slice::<T>()?)?,
        wide => wide,
    };
    let bias = views.tensor_opt(2)?.map(|bias| widen(&mut scratch, bias.as_slice::<T>()?)).transpose()?;
    let out = views.out(OUT)?.into_slice::<T>()?;
    let results = take(&mut scratch, out.len())?;
    inner.convolve(&Call { geometry: &geometry, input, weight, bias }, retained, scratch, results)?;
    T::narrow(results, out);
    Ok(())
}
