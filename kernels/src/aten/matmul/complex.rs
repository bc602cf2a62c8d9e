//! Stacks of products of complex matrices, by definition.

use edgepack_compute::complex::{Complex, multiply};
use edgepack_compute::gemm::Mat;
use edgepack_compute::number::Number;
use edgepack_executor::kernel::{KernelContext, KernelError};

use super::BMM_FORM;
use crate::check::Shape;
use crate::complex::{elements, misaligned};

/// Runs `aten::bmm.out` on numbers with parts of one type.
pub(super) fn multiply_stacks<R: Number>(cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
    let (a, b) = (cx.meta(BMM_FORM.lhs.0)?, cx.meta(BMM_FORM.rhs.0)?);
    let (&[batch, m, k], &[other, rows, n]) = (a.sizes, b.sizes) else {
        return Err(unfit(a.sizes, b.sizes));
    };
    if batch != other || k != rows {
        return Err(unfit(a.sizes, b.sizes));
    }
    cx.resize(BMM_FORM.out, &[batch, m, n])?;
    let views = cx.views();
    let (a, b, mut out) = (views.tensor(BMM_FORM.lhs.0)?, views.tensor(BMM_FORM.rhs.0)?, views.out(BMM_FORM.out)?);
    let (&[a_stack, a_row, a_column], &[b_stack, b_row, b_column]) = (a.strides, b.strides) else {
        return Err(unfit(a.sizes, b.sizes));
    };
    let [out_stack, out_row, out_column] = [out.strides[0], out.strides[1], out.strides[2]];
    let (a, b): (&[Complex<R>], &[Complex<R>]) = (elements(a.bytes())?, elements(b.bytes())?);
    let out: &mut [Complex<R>] = bytemuck::try_cast_slice_mut(out.bytes_mut()).map_err(|_| misaligned())?;
    if m * n == 0 {
        return Ok(());
    }
    for stack in 0..batch {
        let lhs = Mat::new(a.get(stack * a_stack..).unwrap_or(&[]), [m, k], [a_row, a_column])?;
        let rhs = Mat::new(b.get(stack * b_stack..).unwrap_or(&[]), [k, n], [b_row, b_column])?;
        multiply(lhs, rhs, (&mut out[stack * out_stack..], [out_row, out_column]));
    }
    Ok(())
}

fn unfit(a: &[usize], b: &[usize]) -> KernelError {
    KernelError::argument(format!("`self` is {}, `mat2` is {}: stacks of matrices do not fit", Shape(a), Shape(b)))
}
