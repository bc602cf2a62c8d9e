//! Products of 16-bit floats, computed as those of `f32` and rounded once.

use edgepack_executor::kernel::{KernelContext, KernelError, Prepare, Run};

use super::{Call, Form, Product, Strides};
use edgepack_compute::gemm::Mat;
use edgepack_compute::half::Narrow;
use edgepack_compute::half_gemm;

/// Looks at one instruction.
pub(super) fn prepare<T: Narrow>(args: &Prepare<'_>, form: &'static Form) -> Result<Box<dyn Run>, KernelError> {
    let (lhs, rhs) = (args.tensor(form.lhs.0)?, args.tensor(form.rhs.0)?);
    let elements = lhs.meta.element_count();
    let sizes = match Product::new(form, &lhs.meta, &rhs.meta) {
        Ok(Product { m, n, k, .. }) => [m, k, n],
        // Bounds need not fit each other as sizes must.
        Err(_) if lhs.dynamic || rhs.dynamic => {
            let k = lhs.meta.sizes.last().copied().unwrap_or(1).max(1);
            [elements / k, k, rhs.meta.element_count()]
        }
        Err(error) => return Err(error),
    };
    let elements = half_gemm::scratch(sizes).saturating_add(elements);
    args.scratch(elements.saturating_mul(size_of::<f32>()));
    Ok(Box::new(move |cx: &mut KernelContext<'_>| run::<T>(form, cx)))
}

fn run<T: Narrow>(form: &Form, cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
    let call = Call::<f32>::new(form, cx)?;
    let Product { batch, m, n, k, .. } = call.product;
    let views = cx.views();
    let (lhs, rhs, add) = call.operands(form, &views)?;
    let strides = Strides::new(form, &call.product, [&lhs.meta(), &rhs.meta()]);
    let mut out = views.out(form.out)?;
    let transposed = super::out_is_transposed(form, &call.product, &out.meta())?;
    let beta = match add {
        Some((add, name)) => {
            super::start(add, name, &mut out)?;
            call.beta
        }
        None => 0.0,
    };
    let (lhs, rhs, out) = (lhs.as_slice::<T>()?, rhs.as_slice::<T>()?, out.into_slice::<T>()?);
    let scratch: &mut [f32] = bytemuck::try_cast_slice_mut(views.scratch()?)
        .map_err(|_| KernelError::unsupported("the scratch memory is not aligned"))?;
    let (floats, scratch) = scratch
        .split_at_mut_checked(lhs.len())
        .ok_or_else(|| KernelError::unsupported("the operand is larger than at load"))?;
    T::widen(lhs, floats);
    if m * n == 0 {
        return Ok(());
    }
    for (index, out) in out.chunks_exact_mut(m * n).enumerate().take(batch) {
        let lhs = Mat::new(floats.get(index * strides.stack[0]..).unwrap_or(&[]), [m, k], strides.lhs)?;
        let rhs = Mat::new(rhs.get(index * strides.stack[1]..).unwrap_or(&[]), [k, n], strides.rhs)?;
        let out_strides = if transposed { [1, m] } else { [n, 1] };
        half_gemm::multiply(lhs, rhs, [call.alpha, beta], (out, out_strides), scratch)?;
    }
    Ok(())
}
