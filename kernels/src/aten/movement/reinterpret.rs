//! The bytes of a tensor as elements of another type.

use edgepack_executor::kernel::{Kernel, KernelContext, KernelError, Prepare, Run};
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::Dims;

use super::row;
use super::transfer::{SCRATCH, assign, conversion};
use crate::check::{Shape, expect_dtype};

/// The operators of this table.
pub const KERNELS: &[&Kernel] = &[&row(
    "aten::view_copy.dtype_out",
    "(Tensor self, ScalarType dtype, *, Tensor(a!) out) -> Tensor(a!)",
    reinterpret,
)];

fn reinterpret(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    args.expect_len(4)?;
    let (input, out) = (args.tensor(0)?.meta, args.tensor(2)?.meta);
    let (from, to) = (width("self", input.dtype)?, width("out", out.dtype)?);
    if from != to && !(input.is_contiguous() && out.is_contiguous()) {
        return Err(KernelError::unsupported("`self` and `out` must be contiguous, their elements differ in size"));
    }
    let change = conversion(out.dtype, out.dtype)?;
    args.scratch(SCRATCH);
    Ok(Box::new(move |cx: &mut KernelContext<'_>| {
        let code = cx.int(1)?;
        let wanted = i8::try_from(code).map_err(|_| KernelError::argument(format!("`dtype` is {code}, not a type")))?;
        expect_dtype("out", cx.meta(2)?.dtype, ScalarType(wanted))?;
        let sizes = sizes(cx.meta(0)?.sizes, from, to)?;
        cx.resize(2, &sizes)?;
        let views = cx.views();
        let (input, mut out) = (views.tensor(0)?, views.out(2)?);
        if from == to {
            return assign(change, &input, &mut out, views.scratch()?);
        }
        out.bytes().copy_from_slice(input.bytes());
        Ok(())
    }))
}

fn width(name: &str, dtype: ScalarType) -> Result<usize, KernelError> {
    dtype.size().ok_or_else(|| KernelError::unsupported(format!("`{name}` is {dtype}")))
}

/// The sizes of a contiguous tensor whose elements of `from` bytes are elements of `to` bytes: the last one is scaled.
fn sizes(own: &[usize], from: usize, to: usize) -> Result<Dims, KernelError> {
    let mut sizes = Dims::from_slice(own).unwrap_or_default();
    if from == to {
        return Ok(sizes);
    }
    let Some(last) = sizes.last_mut() else {
        return Err(KernelError::argument(format!("one element of {from} bytes is not one of {to}")));
    };
    let bytes = last.checked_mul(from).filter(|bytes| bytes.is_multiple_of(to)).ok_or_else(|| {
        let own = Shape(own);
        KernelError::argument(format!("`self` is {own}: rows of {from}-byte elements are not rows of {to}-byte ones"))
    })?;
    *last = bytes / to;
    Ok(sizes)
}
