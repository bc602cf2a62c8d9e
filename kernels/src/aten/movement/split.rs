//! One tensor into many: consecutive parts along a dimension, each into an output of its own.

use edgepack_executor::kernel::{Kernel, KernelContext, KernelError, Prepare, Run, room};
use edgepack_format::tensor::Dims;

use super::row;
use super::transfer::conversion;
use super::view::never_changes;
use crate::dims::{dim_of, size_of};
use crate::schema::{arguments, position};
use edgepack_compute::transfer::{Conversion, SCRATCH, transfer};
use edgepack_compute::walk::{Axis, Walk};

arguments!("aten::split_copy.Tensor_out"; SELF = "self", SPLIT_SIZE = "split_size");
arguments!("aten::split_with_sizes_copy.out"; SPLIT_SIZES = "split_sizes");

/// The dimension and the list of outputs.
#[derive(Clone, Copy)]
struct Arguments {
    dim: usize,
    out: usize,
}

impl Arguments {
    const fn new(name: &str) -> Arguments {
        Arguments { dim: position(name, "dim"), out: position(name, "out") }
    }
}

/// The arguments of both splits, and those of `unbind`.
const SPLIT: Arguments = Arguments::new("aten::split_copy.Tensor_out");
const UNBIND: Arguments = Arguments::new("aten::unbind_copy.int_out");

/// Checks a call, gives its outputs their sizes, and says which dimension is split.
type Plan = fn(&mut KernelContext<'_>) -> Result<usize, KernelError>;

/// Looks at a call. Where nothing changes from run to run, what becomes which output is decided in the first.
fn first(args: &Prepare<'_>, arguments: Arguments, drop: bool, plan: Plan) -> Result<Box<dyn Run>, KernelError> {
    args.expect_len(arguments.out + 2)?;
    let (dtype, count) = (args.tensor(SELF)?.meta.dtype, args.list_len(arguments.out)?);
    let mut keeps = never_changes(args, arguments.out)?;
    for item in 0..count {
        if let Some(out) = args.item(arguments.out, item)? {
            conversion(dtype, out.meta.dtype)?;
            keeps &= !out.dynamic;
        }
    }
    args.scratch(SCRATCH);
    let mut parts = room(count)?;
    let mut is_planned = false;
    Ok(Box::new(move |cx: &mut KernelContext<'_>| {
        if !is_planned {
            let dim = plan(cx)?;
            parts.clear();
            plan_parts(cx, arguments.out, dim, drop, &mut parts)?;
            is_planned = keeps;
        }
        copy(cx, arguments.out, &parts)
    }))
}

fn dim(cx: &KernelContext<'_>, arguments: Arguments) -> Result<(usize, usize), KernelError> {
    let meta = cx.meta(SELF)?;
    if meta.rank() == 0 {
        return Err(KernelError::argument("`self` has 0 dimensions, none to split"));
    }
    let dim = dim_of("dim", cx.int(arguments.dim)?, "self", meta.rank())?;
    Ok((dim, meta.sizes[dim]))
}

fn expect_outs(cx: &KernelContext<'_>, out: usize, parts: usize) -> Result<(), KernelError> {
    let outs = cx.list_len(out)?;
    if outs == parts {
        return Ok(());
    }
    Err(KernelError::argument(format!("`out` holds {outs} tensors for {parts} parts")))
}

/// Resizes every output to its part; a dropped dimension is one of `unbind`.
fn resize(
    cx: &mut KernelContext<'_>,
    out: usize,
    dim: usize,
    drop: bool,
    part: impl Fn(&KernelContext<'_>, usize) -> Result<usize, KernelError>,
) -> Result<(), KernelError> {
    for item in 0..cx.list_len(out)? {
        let size = part(cx, item)?;
        let sizes = cx.meta(SELF)?.sizes.iter().enumerate();
        let sizes: Dims = Dims::collect(
            sizes.filter(|(own, _)| !(drop && *own == dim)).map(|(own, &have)| if own == dim { size } else { have }),
        )
        .unwrap_or_default();
        cx.resize_item(out, item, &sizes)?;
    }
    Ok(())
}

/// Finds the parts, one after the other along `dim`.
fn plan_parts(
    cx: &KernelContext<'_>,
    out: usize,
    dim: usize,
    drop: bool,
    parts: &mut Vec<(Walk, Conversion)>,
) -> Result<(), KernelError> {
    let input = cx.meta(SELF)?;
    let strides = input.strides.iter().enumerate().filter(|&(own, _)| !(drop && own == dim));
    let strides: Dims = Dims::collect(strides.map(|(_, &stride)| stride)).unwrap_or_default();
    let mut start = 0;
    for item in 0..cx.list_len(out)? {
        let Some(part) = cx.list_meta(out, item)? else { continue };
        let axis = |&dim: &u8| Axis { size: part.sizes[dim as usize], stride: strides[dim as usize] as isize };
        parts.push((Walk::new(part.dim_order.iter().map(axis), start), conversion(input.dtype, part.dtype)?));
        start += input.strides[dim] * if drop { 1 } else { part.sizes[dim] };
    }
    Ok(())
}

/// Copies the parts into the outputs.
fn copy(cx: &mut KernelContext<'_>, out: usize, parts: &[(Walk, Conversion)]) -> Result<(), KernelError> {
    let views = cx.views();
    let (input, scratch) = (views.tensor(SELF)?, views.scratch()?);
    for (target, (walk, conversion)) in views.out_list(out)?.zip(parts) {
        let mut target = target?;
        let count = target.element_count();
        if count == 0 {
            continue;
        }
        match conversion.convert {
            None => walk.gather(conversion.from, input.bytes(), target.bytes_mut()),
            Some(_) => {
                let to = (target.bytes_mut(), &Walk::linear(count));
                transfer(*conversion, (input.bytes(), walk), to, count, scratch)?;
            }
        }
    }
    Ok(())
}

fn split_with_sizes(cx: &mut KernelContext<'_>) -> Result<usize, KernelError> {
    let (dim, size) = dim(cx, SPLIT)?;
    let sizes = cx.ints(SPLIT_SIZES)?;
    let mut sum = 0usize;
    for part in sizes.iter() {
        sum = sum.saturating_add(size_of("split_sizes", part)?);
    }
    if sum != size {
        return Err(KernelError::argument(format!("`split_sizes` add up to {sum}, the dimension has {size} elements")));
    }
    expect_outs(cx, SPLIT.out, sizes.len())?;
    resize(cx, SPLIT.out, dim, false, |cx, item| size_of("split_sizes", cx.ints(SPLIT_SIZES)?.at(item).unwrap_or(0)))?;
    Ok(dim)
}

fn split(cx: &mut KernelContext<'_>) -> Result<usize, KernelError> {
    let (dim, size) = dim(cx, SPLIT)?;
    let part = size_of("split_size", cx.int(SPLIT_SIZE)?)?;
    if part == 0 && size != 0 {
        return Err(KernelError::argument(format!("`split_size` is 0, the dimension has {size} elements")));
    }
    expect_outs(cx, SPLIT.out, size.div_ceil(part.max(1)).max(1))?;
    resize(cx, SPLIT.out, dim, false, |_, item| Ok(part.min(size - (item * part).min(size))))?;
    Ok(dim)
}

fn unbind(cx: &mut KernelContext<'_>) -> Result<usize, KernelError> {
    let (dim, size) = dim(cx, UNBIND)?;
    expect_outs(cx, UNBIND.out, size)?;
    resize(cx, UNBIND.out, dim, true, |_, _| Ok(1))?;
    Ok(dim)
}

/// The operators of this table.
pub const KERNELS: &[&Kernel] = &[
    &row("aten::split_copy.Tensor_out", |args| first(args, SPLIT, false, split)),
    &row("aten::split_with_sizes_copy.out", |args| first(args, SPLIT, false, split_with_sizes)),
    &row("aten::unbind_copy.int_out", |args| first(args, UNBIND, true, unbind)),
];
