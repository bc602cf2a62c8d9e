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
use edgepack_compute::number::{Compute, Number};

/// Writes one element over and over.
pub fn repeat(to: &mut [u8], width: usize, word: u128) {
    let element = word.to_ne_bytes();
    match width {
        1 => to.fill(element[0]),
        2 => bytemuck::cast_slice_mut::<u8, [u8; 2]>(to).fill([element[0], element[1]]),
        4 => bytemuck::cast_slice_mut::<u8, [u8; 4]>(to).fill([element[0], element[1], element[2], element[3]]),
        8 => to.chunks_exact_mut(8).for_each(|to| to.copy_from_slice(&element[..8])),
        _ => to.chunks_exact_mut(16).for_each(|to| to.copy_from_slice(&element)),
    }
}

/// Fills an output with a number, which has to be in the range of its type.
pub fn fill(out: &mut TensorMut<'_>, name: &str, value: Scalar) -> Result<(), KernelError> {
    let dtype = out.dtype;
    expect_number(dtype)?;
    expect_fit(name, value, dtype)?;
    let word = match dtype {
        dtype if dtype.is_complex() => edgepack_compute::pointwise::complex::bits(value, dtype),
        _ => scalar_bits(value, dtype).into(),
    };
    repeat(out.bytes(), dtype.size().unwrap_or(1), word);
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

fn checked<F>(args: &Prepare<'_>, count: usize, out: usize, run: F) -> Result<Box<dyn Run>, KernelError>
where
    F: FnMut(&mut KernelContext<'_>) -> Result<(), KernelError> + Send + 'static,
{
    args.expect_len(count)?;
    expect_number(args.tensor(out)?.meta.dtype)?;
    Ok(Box::new(run))
}

fn full(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    checked(args, 4, 2, |cx| {
        resize_to(cx, 0, 2)?;
        let value = cx.scalar(1)?;
        fill(&mut cx.views().out(2)?, "fill_value", value)
    })
}

fn full_like(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    checked(args, 5, 3, |cx| {
        resize_like(cx, 0, 3)?;
        let value = cx.scalar(1)?;
        fill(&mut cx.views().out(3)?, "fill_value", value)
    })
}

fn fill_number(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    checked(args, 4, 2, |cx| {
        resize_like(cx, 0, 2)?;
        let value = cx.scalar(1)?;
        fill(&mut cx.views().out(2)?, "value", value)
    })
}

fn fill_tensor(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    let dtype = args.tensor(1)?.meta.dtype;
    let to = args.tensor(2)?.meta.dtype;
    let Some(convert) = converter(dtype, to) else {
        return Err(KernelError::argument(format!("`value` is {dtype}, which cannot become {to}")));
    };
    checked(args, 4, 2, move |cx| {
        resize_like(cx, 0, 2)?;
        let views = cx.views();
        let value = views.tensor(1)?;
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
        views.out(2)?.bytes().chunks_exact_mut(element.len()).for_each(|to| to.copy_from_slice(element));
        Ok(())
    })
}

fn ones(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    checked(args, 3, 1, |cx| {
        resize_to(cx, 0, 1)?;
        fill(&mut cx.views().out(1)?, "1", Scalar::Int(1))
    })
}

fn zeros(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    args.expect_len(3)?;
    Ok(Box::new(|cx: &mut KernelContext<'_>| {
        resize_to(cx, 0, 1)?;
        cx.views().out(1)?.bytes().fill(0);
        Ok(())
    }))
}

/// The content of an empty tensor is whatever the memory holds.
fn empty(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    args.expect_len(4)?;
    Ok(Box::new(|cx: &mut KernelContext<'_>| resize_to(cx, 0, 2)))
}

fn scalar_tensor(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    checked(args, 3, 1, |cx| {
        cx.resize(1, &[])?;
        let value = cx.scalar(0)?;
        fill(&mut cx.views().out(1)?, "s", value)
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
        for (index, element) in out.as_slice::<T>()?.iter_mut().enumerate() {
            *element = element_at::<T>(index, start, step, whole);
        }
        Ok(())
    }, else => Err(KernelError::argument(format!("`out` is {}, which holds no single number", out.dtype))))
}

fn element_at<T: Number>(index: usize, start: Scalar, step: Scalar, whole: bool) -> T {
    // Like the reference, in the type of the output where that is an integer, else in double.
    if whole {
        T::from_scalar(Scalar::Int(start.to_i64().wrapping_add((index as i64).wrapping_mul(step.to_i64()))))
    } else if T::Compute::FLOATING {
        T::from_scalar(Scalar::Double(start.to_f64() + index as f64 * step.to_f64()))
    } else {
        T::from_scalar(Scalar::Int(start.to_i64().wrapping_add((index as i64).wrapping_mul(step.to_i64()))))
    }
}

fn arange(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    checked(args, 3, 1, |cx| {
        let end = cx.scalar(0)?;
        spaced(cx, Scalar::Int(0), end, Scalar::Int(1), 1)
    })
}

fn arange_start(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    checked(args, 5, 3, |cx| {
        let (start, end, step) = (cx.scalar(0)?, cx.scalar(1)?, cx.scalar(2)?);
        spaced(cx, start, end, step, 3)
    })
}

const fn row(
    name: &'static str,
    schema: &'static str,
    prepare: fn(&Prepare<'_>) -> Result<Box<dyn Run>, KernelError>,
) -> Kernel {
    Kernel { name, schema, alias: Alias::Disjoint, prepare }
}

/// The operators of this table.
pub const KERNELS: &[&Kernel] = &[
    &row("aten::full.out", "(SymInt[] size, Scalar fill_value, *, Tensor(a!) out) -> Tensor(a!)", full),
    &row(
        "aten::full_like.out",
        "(Tensor self, Scalar fill_value, *, MemoryFormat? memory_format=None, Tensor(a!) out) -> Tensor(a!)",
        full_like,
    ),
    &row("aten::fill.Scalar_out", "(Tensor self, Scalar value, *, Tensor(a!) out) -> Tensor(a!)", fill_number),
    &row("aten::fill.Tensor_out", "(Tensor self, Tensor value, *, Tensor(a!) out) -> Tensor(a!)", fill_tensor),
    &row("aten::ones.out", "(SymInt[] size, *, Tensor(a!) out) -> Tensor(a!)", ones),
    &row("aten::zeros.out", "(SymInt[] size, *, Tensor(a!) out) -> Tensor(a!)", zeros),
    &row(
        "aten::empty.out",
        "(SymInt[] size, *, MemoryFormat? memory_format=None, Tensor(a!) out) -> Tensor(a!)",
        empty,
    ),
    &row(
        "dim_order_ops::_empty_dim_order.out",
        "(int[] size, *, int[]? dim_order=None, Tensor(a!) out) -> Tensor(a!)",
        empty,
    ),
    &row("aten::scalar_tensor.out", "(Scalar s, *, Tensor(a!) out) -> Tensor(a!)", scalar_tensor),
    &row("aten::arange.out", "(Scalar end, *, Tensor(a!) out) -> Tensor(a!)", arange),
    &row(
        "aten::arange.start_out",
        "(Scalar start, Scalar end, Scalar step=1, *, Tensor(a!) out) -> Tensor(a!)",
        arange_start,
    ),
];
