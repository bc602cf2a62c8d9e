//! Operators on nothing but complex numbers.

use edgepack_executor::kernel::{KernelContext, KernelError, Prepare, Run};
use edgepack_format::tensor::Dims;

use super::kernels;
use super::specs;
use crate::check::expect_dtype;
use crate::schema::position;
use edgepack_compute::layout::broadcast;
use edgepack_compute::pointwise::complex::conj;

specs! {
    CONJ: "aten::_conj_physical.out", [Tensor("self")], [], First, conj;
}

/// The parts of complex numbers as a last dimension of two.
fn view_as_real(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    const SELF: usize = position("aten::view_as_real_copy.out", "self");
    const OUT: usize = position("aten::view_as_real_copy.out", "out");
    args.expect_len(OUT + 2)?;
    let (input, out) = (args.tensor(SELF)?.meta, args.tensor(OUT)?.meta);
    if !input.dtype.is_complex() {
        return Err(KernelError::argument(format!("`self` is {}, the operator wants a complex type", input.dtype)));
    }
    expect_dtype("out", out.dtype, input.dtype.part())?;
    if !input.is_contiguous() || !out.is_contiguous() {
        return Err(KernelError::unsupported("`self` and `out` must be contiguous"));
    }
    Ok(Box::new(|cx: &mut KernelContext<'_>| {
        let sizes: Dims = Dims::collect(cx.meta(SELF)?.sizes.iter().copied().chain([2]))
            .ok_or_else(|| KernelError::unsupported("the result has more than 16 dimensions"))?;
        cx.resize(OUT, &sizes)?;
        let views = cx.views();
        views.out(OUT)?.bytes_mut().copy_from_slice(views.tensor(SELF)?.bytes());
        Ok(())
    }))
}

/// Pairs of a last dimension as complex numbers.
fn view_as_complex(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    const SELF: usize = position("aten::view_as_complex_copy.out", "self");
    const OUT: usize = position("aten::view_as_complex_copy.out", "out");
    args.expect_len(OUT + 2)?;
    let (input, out) = (args.tensor(SELF)?.meta, args.tensor(OUT)?.meta);
    if !out.dtype.is_complex() || out.dtype.part() != input.dtype {
        return Err(KernelError::argument(format!("`self` is {}, `out` is {}: no pairs", input.dtype, out.dtype)));
    }
    if !input.is_contiguous() || !out.is_contiguous() {
        return Err(KernelError::unsupported("`self` and `out` must be contiguous"));
    }
    Ok(Box::new(|cx: &mut KernelContext<'_>| {
        let meta = cx.meta(SELF)?;
        let Some((2, outer)) = meta.sizes.split_last().map(|(last, outer)| (*last, outer)) else {
            return Err(KernelError::argument(format!("`self` is {}: no pairs", crate::check::Shape(meta.sizes))));
        };
        let sizes = Dims::from_slice(outer).unwrap_or_default();
        cx.resize(OUT, &sizes)?;
        let views = cx.views();
        views.out(OUT)?.bytes_mut().copy_from_slice(views.tensor(SELF)?.bytes());
        Ok(())
    }))
}

/// Complex numbers of real and imaginary parts, which are repeated to agree.
fn complex(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    const REAL: usize = position("aten::complex.out", "real");
    const IMAG: usize = position("aten::complex.out", "imag");
    const OUT: usize = position("aten::complex.out", "out");
    args.expect_len(OUT + 2)?;
    let (real, imag, out) = (args.tensor(REAL)?.meta, args.tensor(IMAG)?.meta, args.tensor(OUT)?.meta);
    if !out.dtype.is_complex() || out.dtype.part() != real.dtype || imag.dtype != real.dtype {
        let types = format!("`real` is {}, `imag` is {}, `out` is {}", real.dtype, imag.dtype, out.dtype);
        return Err(KernelError::argument(types));
    }
    Ok(Box::new(|cx: &mut KernelContext<'_>| {
        let (real, imag) = (cx.meta(REAL)?, cx.meta(IMAG)?);
        let sizes = broadcast(real.sizes, imag.sizes).ok_or_else(|| {
            let (real, imag) = (crate::check::Shape(real.sizes), crate::check::Shape(imag.sizes));
            KernelError::argument(format!("`real` is {real}, `imag` is {imag}: they do not fit"))
        })?;
        cx.resize(OUT, &sizes)?;
        let views = cx.views();
        let (real, imag, mut out) = (views.tensor(REAL)?, views.tensor(IMAG)?, views.out(OUT)?);
        let width = real.dtype.size().unwrap_or(1);
        let strides = Dims::from_slice(out.strides).unwrap_or_default();
        for at in 0..sizes.iter().product() {
            let (mut rest, mut places) = (at, [0usize; 3]);
            for dim in (0..sizes.len()).rev() {
                let index = rest % sizes[dim];
                rest /= sizes[dim];
                for (place, meta) in places.iter_mut().zip([real.meta(), imag.meta()]) {
                    let own = (dim + meta.rank()).checked_sub(sizes.len()).filter(|&own| meta.sizes[own] != 1);
                    *place += own.map_or(0, |own| index * meta.strides[own]);
                }
                places[2] += index * strides[dim];
            }
            let [a, b, to] = places.map(|place| place * width);
            let to = &mut out.bytes_mut()[2 * to..2 * to + 2 * width];
            to[..width].copy_from_slice(&real.bytes()[a..a + width]);
            to[width..].copy_from_slice(&imag.bytes()[b..b + width]);
        }
        Ok(())
    }))
}

kernels! {
    "aten::_conj_physical.out" => CONJ;
    "aten::view_as_real_copy.out" => view_as_real,
    "aten::view_as_complex_copy.out" => view_as_complex,
    "aten::complex.out" => complex,
}
