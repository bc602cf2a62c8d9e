//! Operators on nothing but complex numbers.

use edgepack_executor::kernel::{KernelContext, KernelError, Prepare, Run};
use edgepack_format::tensor::Dims;

use super::kernels;
use super::schema::UNARY;
use super::spec::Input::Tensor;
use super::specs;
use crate::broadcast::broadcast;
use crate::check::expect_dtype;
use crate::complex::part_type;
use edgepack_compute::pointwise::complex::conj;

specs! {
    CONJ: UNARY, [Tensor(0)], [], 1, First, conj;
}

/// The parts of complex numbers as a last dimension of two.
fn view_as_real(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    args.expect_len(3)?;
    let (input, out) = (args.tensor(0)?.meta, args.tensor(1)?.meta);
    let Some(part) = part_type(input.dtype) else {
        return Err(KernelError::argument(format!("`self` is {}, the operator wants a complex type", input.dtype)));
    };
    expect_dtype("out", out.dtype, part)?;
    if !input.is_contiguous() || !out.is_contiguous() {
        return Err(KernelError::unsupported("`self` and `out` must be contiguous"));
    }
    Ok(Box::new(|cx: &mut KernelContext<'_>| {
        let sizes: Dims = Dims::collect(cx.meta(0)?.sizes.iter().copied().chain([2]))
            .ok_or_else(|| KernelError::unsupported("the result has more than 16 dimensions"))?;
        cx.resize(1, &sizes)?;
        let views = cx.views();
        views.out(1)?.bytes().copy_from_slice(views.tensor(0)?.bytes());
        Ok(())
    }))
}

/// Pairs of a last dimension as complex numbers.
fn view_as_complex(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    args.expect_len(3)?;
    let (input, out) = (args.tensor(0)?.meta, args.tensor(1)?.meta);
    if part_type(out.dtype) != Some(input.dtype) {
        return Err(KernelError::argument(format!("`self` is {}, `out` is {}: no pairs", input.dtype, out.dtype)));
    }
    if !input.is_contiguous() || !out.is_contiguous() {
        return Err(KernelError::unsupported("`self` and `out` must be contiguous"));
    }
    Ok(Box::new(|cx: &mut KernelContext<'_>| {
        let meta = cx.meta(0)?;
        let Some((2, outer)) = meta.sizes.split_last().map(|(last, outer)| (*last, outer)) else {
            return Err(KernelError::argument(format!("`self` is {}: no pairs", crate::check::Shape(meta.sizes))));
        };
        let sizes = Dims::from_slice(outer).unwrap_or_default();
        cx.resize(1, &sizes)?;
        let views = cx.views();
        views.out(1)?.bytes().copy_from_slice(views.tensor(0)?.bytes());
        Ok(())
    }))
}

/// Complex numbers of real and imaginary parts, which are repeated to agree.
fn complex(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    args.expect_len(4)?;
    let (real, imag, out) = (args.tensor(0)?.meta, args.tensor(1)?.meta, args.tensor(2)?.meta);
    if part_type(out.dtype) != Some(real.dtype) || imag.dtype != real.dtype {
        let types = format!("`real` is {}, `imag` is {}, `out` is {}", real.dtype, imag.dtype, out.dtype);
        return Err(KernelError::argument(types));
    }
    Ok(Box::new(|cx: &mut KernelContext<'_>| {
        let (real, imag) = (cx.meta(0)?, cx.meta(1)?);
        let sizes = broadcast(real.sizes, imag.sizes).ok_or_else(|| {
            let (real, imag) = (crate::check::Shape(real.sizes), crate::check::Shape(imag.sizes));
            KernelError::argument(format!("`real` is {real}, `imag` is {imag}: they do not fit"))
        })?;
        cx.resize(2, &sizes)?;
        let views = cx.views();
        let (real, imag, mut out) = (views.tensor(0)?, views.tensor(1)?, views.out(2)?);
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
            let to = &mut out.bytes()[2 * to..2 * to + 2 * width];
            to[..width].copy_from_slice(&real.bytes()[a..a + width]);
            to[width..].copy_from_slice(&imag.bytes()[b..b + width]);
        }
        Ok(())
    }))
}

kernels! {
    "aten::_conj_physical.out" => CONJ;
    "aten::view_as_real_copy.out" UNARY => view_as_real,
    "aten::view_as_complex_copy.out" UNARY => view_as_complex,
    "aten::complex.out" "(Tensor real, Tensor imag, *, Tensor(a!) out) -> Tensor(a!)" => complex,
}
