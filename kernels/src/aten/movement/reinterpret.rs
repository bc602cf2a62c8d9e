//! The bytes of a tensor as elements of another type.

use edgepack_executor::kernel::{Kernel, KernelContext, KernelError, Prepare, Run};
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::Dims;

use super::row;
use super::transfer::{assign, conversion};
use crate::check::{Shape, expect_dtype};
use crate::schema::arguments;
use edgepack_compute::transfer::SCRATCH;

/// The operators of this table.
pub const KERNELS: &[&Kernel] = &[&row("aten::view_copy.dtype_out", reinterpret)];

arguments!("aten::view_copy.dtype_out"; SELF = "self", DTYPE = "dtype", OUT = "out");

fn reinterpret(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    args.expect_len(OUT + 2)?;
    let (input, out) = (args.tensor(SELF)?.meta, args.tensor(OUT)?.meta);
    let (from, to) = (width("self", input.dtype)?, width("out", out.dtype)?);
    if from != to && !(input.is_contiguous() && out.is_contiguous()) {
        return Err(KernelError::unsupported("`self` and `out` must be contiguous, their elements differ in size"));
    }
    let change = conversion(out.dtype, out.dtype)?;
    args.scratch(SCRATCH);
    Ok(Box::new(move |cx: &mut KernelContext<'_>| {
        let code = cx.int(DTYPE)?;
        let wanted = i8::try_from(code).map_err(|_| KernelError::argument(format!("`dtype` is {code}, not a type")))?;
        expect_dtype("out", cx.meta(OUT)?.dtype, ScalarType(wanted))?;
        let sizes = sizes(cx.meta(SELF)?.sizes, from, to)?;
        cx.resize(OUT, &sizes)?;
        let views = cx.views();
        let (input, mut out) = (views.tensor(SELF)?, views.out(OUT)?);
        if from == to {
            return assign(change, &input, &mut out, views.scratch()?);
        }
        out.bytes_mut().copy_from_slice(input.bytes());
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
