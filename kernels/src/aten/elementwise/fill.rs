//! Tensors of one number, of uninitialised content, or of evenly spaced numbers.

use edgepack_executor::kernel::{Alias, Kernel, KernelContext, KernelError, Prepare, Run};
use edgepack_executor::tensor::{Scalar, TensorMut};
use edgepack_executor::with_element;
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::Dims;

use super::engine::scalar_bits;
use crate::convert::converter;
use crate::dims::size_of;
use crate::promote::expect_fit;
use crate::schema::{kernel, position};

/// Fills an output with a number, which has to be in the range of its type.
pub fn fill(out: &mut TensorMut<'_>, name: &str, value: Scalar) -> Result<(), KernelError> {
    let dtype = out.dtype;
    expect_number(dtype)?;
    expect_fit(name, value, dtype)?;
    let word = match dtype {
        dtype if dtype.is_complex() => edgepack_compute::pointwise::complex::bits(value, dtype),
        _ => scalar_bits(value, dtype).into(),
    };
    edgepack_compute::fill::repeat(out.bytes_mut(), dtype.size().unwrap_or(1), word);
    Ok(())
}

fn expect_number(dtype: ScalarType) -> Result<(), KernelError> {
    if converter(dtype, dtype).is_some() {
        return Ok(());
    }
    Err(KernelError::argument(format!("`out` is {dtype}, which holds no single number")))
}

/// Gives output `out` the sizes of list argument `arg`.
fn resize_to(cx: &mut KernelContext<'_>, arg: usize, out: usize) -> Result<(), KernelError> {
    let mut sizes = Dims::new();
    for size in cx.ints(arg)?.iter() {
        let size = size_of("size", size)?;
        sizes.push(size).ok_or_else(|| KernelError::argument("`size` has more than 16 dimensions"))?;
    }
    cx.resize(out, &sizes)
}

fn resize_like(cx: &mut KernelContext<'_>, arg: usize, out: usize) -> Result<(), KernelError> {
    let sizes = Dims::from_slice(cx.meta(arg)?.sizes).unwrap_or_default();
    cx.resize(out, &sizes)
}

fn checked<F>(args: &Prepare<'_>, out: usize, run: F) -> Result<Box<dyn Run>, KernelError>
where
    F: FnMut(&mut KernelContext<'_>) -> Result<(), KernelError> + Send + 'static,
{
    args.expect_len(out + 2)?;
    expect_number(args.tensor(out)?.meta.dtype)?;
    Ok(Box::new(run))
}

fn full(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    const SIZE: usize = position("aten::full.out", "size");
    const FILL_VALUE: usize = position("aten::full.out", "fill_value");
    const OUT: usize = position("aten::full.out", "out");
    checked(args, OUT, |cx| {
        resize_to(cx, SIZE, OUT)?;
        let value = cx.scalar(FILL_VALUE)?;
        fill(&mut cx.views().out(OUT)?, "fill_value", value)
    })
}

fn full_like(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    const SELF: usize = position("aten::full_like.out", "self");
    const FILL_VALUE: usize = position("aten::full_like.out", "fill_value");
    const OUT: usize = position("aten::full_like.out", "out");
    checked(args, OUT, |cx| {
        resize_like(cx, SELF, OUT)?;
        let value = cx.scalar(FILL_VALUE)?;
        fill(&mut cx.views().out(OUT)?, "fill_value", value)
    })
}

fn fill_number(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    const SELF: usize = position("aten::fill.Scalar_out", "self");
    const VALUE: usize = position("aten::fill.Scalar_out", "value");
    const OUT: usize = position("aten::fill.Scalar_out", "out");
    checked(args, OUT, |cx| {
        resize_like(cx, SELF, OUT)?;
        let value = cx.scalar(VALUE)?;
        fill(&mut cx.views().out(OUT)?, "value", value)
    })
}

fn fill_tensor(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    const SELF: usize = position("aten::fill.Tensor_out", "self");
    const VALUE: usize = position("aten::fill.Tensor_out", "value");
    const OUT: usize = position("aten::fill.Tensor_out", "out");
    let dtype = args.tensor(VALUE)?.meta.dtype;
    let to = args.tensor(OUT)?.meta.dtype;
    let Some(convert) = converter(dtype, to) else {
        return Err(KernelError::argument(format!("`value` is {dtype}, which cannot become {to}")));
    };
    checked(args, OUT, move |cx| {
        resize_like(cx, SELF, OUT)?;
        let views = cx.views();
        let value = views.tensor(VALUE)?;
        if value.element_count() != 1 {
            return Err(KernelError::argument(format!("`value` has {} elements, not 1", value.element_count())));
        }
        // The widest element is two words: a complex number.
        let (mut from, mut element) = ([0u64; 2], [0u64; 2]);
        let (from, element): (&mut [u8], &mut [u8]) =
            (bytemuck::cast_slice_mut(&mut from), bytemuck::cast_slice_mut(&mut element));
        let (from, element) = (&mut from[..value.bytes().len()], &mut element[..to.size().unwrap_or(1)]);
        from.copy_from_slice(value.bytes());
        convert(from, element);
        views.out(OUT)?.bytes_mut().chunks_exact_mut(element.len()).for_each(|to| to.copy_from_slice(element));
        Ok(())
    })
}

fn ones(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    const SIZE: usize = position("aten::ones.out", "size");
    const OUT: usize = position("aten::ones.out", "out");
    checked(args, OUT, |cx| {
        resize_to(cx, SIZE, OUT)?;
        fill(&mut cx.views().out(OUT)?, "1", Scalar::Int(1))
    })
}

fn zeros(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    const SIZE: usize = position("aten::zeros.out", "size");
    const OUT: usize = position("aten::zeros.out", "out");
    args.expect_len(OUT + 2)?;
    Ok(Box::new(|cx: &mut KernelContext<'_>| {
        resize_to(cx, SIZE, OUT)?;
        cx.views().out(OUT)?.bytes_mut().fill(0);
        Ok(())
    }))
}

/// The content of an empty tensor is whatever the memory holds.
fn empty(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    const SIZE: usize = position("aten::empty.out", "size");
    const OUT: usize = position("aten::empty.out", "out");
    args.expect_len(OUT + 2)?;
    Ok(Box::new(|cx: &mut KernelContext<'_>| resize_to(cx, SIZE, OUT)))
}

fn scalar_tensor(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    const S: usize = position("aten::scalar_tensor.out", "s");
    const OUT: usize = position("aten::scalar_tensor.out", "out");
    checked(args, OUT, |cx| {
        cx.resize(OUT, &[])?;
        let value = cx.scalar(S)?;
        fill(&mut cx.views().out(OUT)?, "s", value)
    })
}

fn spaced(cx: &mut KernelContext<'_>, start: Scalar, end: Scalar, step: Scalar, out: usize) -> Result<(), KernelError> {
    let (first, last, by) = (start.to_f64(), end.to_f64(), step.to_f64());
    if by == 0.0 || !((last - first) / by).is_finite() {
        return Err(KernelError::argument(format!("from {first} to {last} there is no sequence by `step` {by}")));
    }
    if (last - first) / by < 0.0 {
        return Err(KernelError::argument(format!("`step` {by} does not lead from {first} to {last}")));
    }
    let whole = [start, end, step].iter().all(|number| !number.is_floating());
    let count = if whole {
        let span = i128::from(end.to_i64()) - i128::from(start.to_i64());
        let by = i128::from(step.to_i64());
        usize::try_from((span + by - by.signum()) / by).unwrap_or(usize::MAX)
    } else {
        ((last - first) / by).ceil() as usize
    };
    cx.resize(out, &[count])?;
    let views = cx.views();
    let mut out = views.out(out)?;
    with_element!(out.dtype, T => {
        edgepack_compute::fill::sequence::<T>(out.as_mut_slice()?, start, step, whole);
        Ok(())
    }, else => Err(KernelError::argument(format!("`out` is {}, which holds no single number", out.dtype))))
}

fn arange(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    const END: usize = position("aten::arange.out", "end");
    const OUT: usize = position("aten::arange.out", "out");
    checked(args, OUT, |cx| {
        let end = cx.scalar(END)?;
        spaced(cx, Scalar::Int(0), end, Scalar::Int(1), OUT)
    })
}

fn arange_start(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    const START: usize = position("aten::arange.start_out", "start");
    const END: usize = position("aten::arange.start_out", "end");
    const STEP: usize = position("aten::arange.start_out", "step");
    const OUT: usize = position("aten::arange.start_out", "out");
    checked(args, OUT, |cx| {
        let (start, end, step) = (cx.scalar(START)?, cx.scalar(END)?, cx.scalar(STEP)?);
        spaced(cx, start, end, step, OUT)
    })
}

/// The operators of this table.
pub const KERNELS: &[&Kernel] = &[
    &kernel("aten::full.out", Alias::Disjoint, full),
    &kernel("aten::full_like.out", Alias::Disjoint, full_like),
    &kernel("aten::fill.Scalar_out", Alias::Disjoint, fill_number),
    &kernel("aten::fill.Tensor_out", Alias::Disjoint, fill_tensor),
    &kernel("aten::ones.out", Alias::Disjoint, ones),
    &kernel("aten::zeros.out", Alias::Disjoint, zeros),
    &kernel("aten::empty.out", Alias::Disjoint, empty),
    &kernel("dim_order_ops::_empty_dim_order.out", Alias::Disjoint, empty),
    &kernel("aten::scalar_tensor.out", Alias::Disjoint, scalar_tensor),
    &kernel("aten::arange.out", Alias::Disjoint, arange),
    &kernel("aten::arange.start_out", Alias::Disjoint, arange_start),
];
