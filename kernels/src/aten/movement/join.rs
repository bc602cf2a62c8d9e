//! Operators that write inputs into parts of their output: joins, padding with a number, and writes into a slice.

use edgepack_executor::kernel::{Kernel, KernelContext, KernelError, Prepare, Run, Views};
use edgepack_executor::tensor::{TensorMut, TensorRef, TensorShape};
use edgepack_format::tensor::Dims;

use super::row;
use super::shape::slice_of;
use super::transfer::{SCRATCH, assign, conversion, transfer};
use crate::aten::elementwise::fill::fill;
use crate::broadcast::{Axis, Walk};
use crate::dims::{dim_of, index_of, size_of};
use crate::promote::{expect_castable, promote};

/// Writes an input into the part of the output that starts at element `start` and steps by `strides`; the sizes of the
/// input in the dimensions of the output are `sizes`, its own strides `input_strides`.
struct Part<'p> {
    sizes: &'p [usize],
    input_strides: &'p [usize],
    input_start: usize,
    strides: &'p [usize],
    start: usize,
}

impl Part<'_> {
    fn write(&self, input: &TensorRef<'_>, out: &mut TensorMut<'_>, scratch: &mut [u8]) -> Result<(), KernelError> {
        let walk = |strides: &[usize], start| {
            let step = |&dim: &u8| Axis { size: self.sizes[dim as usize], stride: strides[dim as usize] as isize };
            Walk::new(out.dim_order.iter().map(step), start)
        };
        let (source, target) = (walk(self.input_strides, self.input_start), walk(self.strides, self.start));
        let change = conversion(input.dtype, out.dtype)?;
        let count = self.sizes.iter().product();
        Ok(transfer(change, (input.bytes(), &source), (out.bytes(), &target), count, scratch)?)
    }
}

/// Whether an input of `cat` is skipped: an empty list of numbers joins anything.
fn is_skipped(meta: &TensorShape<'_>) -> bool {
    meta.sizes == [0]
}

fn join(
    args: &Prepare<'_>,
    run: fn(&mut KernelContext<'_>) -> Result<(), KernelError>,
) -> Result<Box<dyn Run>, KernelError> {
    args.expect_len(4)?;
    let count = args.list_len(0)?;
    if count == 0 {
        return Err(KernelError::argument("`tensors` is empty"));
    }
    let mut common = None;
    for item in 0..count {
        let Some(input) = args.item(0, item)? else { continue };
        let dtype = input.meta.dtype;
        common = match common {
            None => Some(dtype),
            Some(common) => Some(promote(common, dtype).ok_or_else(|| {
                KernelError::argument(format!("`tensors` holds {dtype}, which has no common type with {common}"))
            })?),
        };
        conversion(dtype, args.tensor(2)?.meta.dtype)?;
    }
    if let Some(common) = common {
        expect_castable(common, args.tensor(2)?.meta.dtype)?;
    }
    args.scratch(SCRATCH);
    Ok(Box::new(run))
}

fn cat(cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
    let count = cx.list_len(0)?;
    let mut sizes: Option<(Dims, usize)> = None;
    for item in 0..count {
        let meta = item_meta(cx, item)?;
        if is_skipped(&meta) {
            continue;
        }
        match &mut sizes {
            None => {
                let dim = dim_of("dim", cx.int(1)?, "tensors", meta.rank())?;
                if meta.rank() == 0 {
                    return Err(KernelError::argument(
                        "`tensors` holds a tensor of 0 dimensions, which cannot be joined",
                    ));
                }
                sizes = Some((Dims::from_slice(meta.sizes).unwrap_or_default(), dim));
            }
            Some((sizes, dim)) => {
                let fits = meta.rank() == sizes.len()
                    && meta.sizes.iter().zip(&**sizes).enumerate().all(|(at, (a, b))| at == *dim || a == b);
                if !fits {
                    return Err(KernelError::argument(format!(
                        "`tensors` holds sizes {:?}, which do not join {:?} along dimension {dim}",
                        meta.sizes, &**sizes
                    )));
                }
                sizes[*dim] += meta.sizes[*dim];
            }
        }
    }
    let (sizes, dim) = sizes.unwrap_or_else(|| (Dims::filled(0, 1).unwrap_or_default(), 0));
    cx.resize(2, &sizes)?;
    let views = cx.views();
    let (mut out, scratch) = (views.out(2)?, views.scratch()?);
    let strides = Dims::from_slice(out.strides).unwrap_or_default();
    let mut start = 0;
    for item in 0..count {
        let input = item_of(&views, item)?;
        if is_skipped(&input.meta()) {
            continue;
        }
        let (sizes, input_strides) = (input.sizes, input.strides);
        Part { sizes, input_strides, input_start: 0, strides: &strides, start }.write(&input, &mut out, scratch)?;
        start += input.sizes[dim] * strides[dim];
    }
    Ok(())
}

fn item_meta<'c>(cx: &'c KernelContext<'_>, item: usize) -> Result<TensorShape<'c>, KernelError> {
    cx.list_meta(0, item)?.ok_or_else(|| KernelError::argument(format!("`tensors` holds no tensor at {item}")))
}

fn item_of<'v>(views: &Views<'v>, item: usize) -> Result<TensorRef<'v>, KernelError> {
    views.item(0, item)?.ok_or_else(|| KernelError::argument(format!("`tensors` holds no tensor at {item}")))
}

fn stack(cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
    let count = cx.list_len(0)?;
    let first = item_meta(cx, 0)?;
    let dim = dim_of("dim", cx.int(1)?, "out", first.rank() + 1)?;
    for item in 1..count {
        let meta = item_meta(cx, item)?;
        if meta.sizes != first.sizes {
            let (have, want) = (meta.sizes, first.sizes);
            return Err(KernelError::argument(format!(
                "`tensors` holds sizes {have:?} and {want:?}, they must be equal"
            )));
        }
    }
    let inserted = |dims: &[usize], value: usize| {
        let (before, after) = dims.split_at(dim);
        Dims::collect(before.iter().copied().chain([value]).chain(after.iter().copied()))
            .ok_or_else(|| KernelError::argument("the result has more than 16 dimensions"))
    };
    let sizes = inserted(first.sizes, count)?;
    cx.resize(2, &sizes)?;
    let views = cx.views();
    let (mut out, scratch) = (views.out(2)?, views.scratch()?);
    let strides = Dims::from_slice(out.strides).unwrap_or_default();
    for item in 0..count {
        let input = item_of(&views, item)?;
        let (sizes, input_strides) = (inserted(input.sizes, 1)?, inserted(input.strides, 0)?);
        let part = Part {
            sizes: &sizes,
            input_strides: &input_strides,
            input_start: 0,
            strides: &strides,
            start: item * strides[dim],
        };
        part.write(&input, &mut out, scratch)?;
    }
    Ok(())
}

fn expect_sizes(name: &str, have: &[usize], want: &[usize]) -> Result<(), KernelError> {
    if have == want {
        return Ok(());
    }
    Err(KernelError::argument(format!("`{name}` has sizes {have:?}, the part to write has {want:?}")))
}

/// The first step of an operator that copies `self` (0) into `out` and then writes `src` (1) into a part of it.
fn into_copy(
    args: &Prepare<'_>,
    out: usize,
    run: fn(&mut KernelContext<'_>) -> Result<(), KernelError>,
) -> Result<Box<dyn Run>, KernelError> {
    args.expect_len(out + 2)?;
    for input in [0, 1] {
        conversion(args.tensor(input)?.meta.dtype, args.tensor(out)?.meta.dtype)?;
    }
    args.scratch(SCRATCH);
    Ok(Box::new(run))
}

fn slice_scatter(cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
    let meta = cx.meta(0)?;
    let mut sizes = Dims::from_slice(meta.sizes).unwrap_or_default();
    if meta.rank() == 0 {
        return Err(KernelError::argument("`self` has 0 dimensions, none to take a part of"));
    }
    let dim = dim_of("dim", cx.int(2)?, "self", meta.rank())?;
    let step = cx.int(5)?;
    let (start, count) = slice_of(cx.int_opt(3)?, cx.int_opt(4)?, step, sizes[dim])?;
    cx.resize(6, &sizes)?;
    sizes[dim] = count;
    expect_sizes("src", cx.meta(1)?.sizes, &sizes)?;
    let views = cx.views();
    let (input, src, mut out, scratch) = (views.tensor(0)?, views.tensor(1)?, views.out(6)?, views.scratch()?);
    assign(conversion(input.dtype, out.dtype)?, &input, &mut out, scratch)?;
    let mut strides = Dims::from_slice(out.strides).unwrap_or_default();
    let start = start * strides[dim];
    strides[dim] = strides[dim].saturating_mul(step as usize);
    Part { sizes: &sizes, input_strides: src.strides, input_start: 0, strides: &strides, start }
        .write(&src, &mut out, scratch)
}

fn select_scatter(cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
    let meta = cx.meta(0)?;
    let sizes = Dims::from_slice(meta.sizes).unwrap_or_default();
    if meta.rank() == 0 {
        return Err(KernelError::argument("`self` has 0 dimensions, none to take a part of"));
    }
    let dim = dim_of("dim", cx.int(2)?, "self", meta.rank())?;
    let index = index_of("index", cx.int(3)?, sizes[dim])?;
    cx.resize(4, &sizes)?;
    let want: Dims = Dims::collect(sizes.iter().enumerate().filter(|(own, _)| *own != dim).map(|(_, &size)| size))
        .unwrap_or_default();
    expect_sizes("src", cx.meta(1)?.sizes, &want)?;
    let views = cx.views();
    let (input, src, mut out, scratch) = (views.tensor(0)?, views.tensor(1)?, views.out(4)?, views.scratch()?);
    assign(conversion(input.dtype, out.dtype)?, &input, &mut out, scratch)?;
    let strides = Dims::from_slice(out.strides).unwrap_or_default();
    let (mut part, mut input_strides) = (sizes, Dims::filled(0, sizes.len()).unwrap_or_default());
    part[dim] = 1;
    for own in 0..part.len() {
        if own != dim {
            input_strides[own] = src.strides[if own < dim { own } else { own - 1 }];
        }
    }
    Part { sizes: &part, input_strides: &input_strides, input_start: 0, strides: &strides, start: index * strides[dim] }
        .write(&src, &mut out, scratch)
}

/// Padding per dimension: from the last one backwards, before and after; negative numbers cut elements off.
fn constant_pad(cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
    let meta = cx.meta(0)?;
    let pads = cx.ints(1)?;
    let rank = meta.rank();
    if pads.len() % 2 != 0 || pads.len() / 2 > rank {
        return Err(KernelError::argument(format!("`pad` has {} items, `self` has {rank} dimensions", pads.len())));
    }
    let mut sizes = Dims::from_slice(meta.sizes).unwrap_or_default();
    let mut kept = sizes;
    let zero = Dims::filled(0, rank).unwrap_or_default();
    let (mut skipped, mut shifted) = (zero, zero);
    for pair in 0..pads.len() / 2 {
        let dim = rank - 1 - pair;
        let (before, after) = (pads.at(2 * pair).unwrap_or(0), pads.at(2 * pair + 1).unwrap_or(0));
        let have = sizes[dim] as i64;
        let padded = before.checked_add(after).and_then(|pad| have.checked_add(pad)).unwrap_or(-1);
        let cut = before.min(0).saturating_add(after.min(0)).saturating_add(have);
        if padded < 0 || cut < 0 {
            return Err(KernelError::argument(format!("`pad` {before} and {after} leave nothing of {have} elements")));
        }
        sizes[dim] = size_of("pad", padded)?;
        kept[dim] = cut as usize;
        skipped[dim] = before.min(0).unsigned_abs() as usize;
        shifted[dim] = before.max(0) as usize;
    }
    cx.resize(3, &sizes)?;
    let value = cx.scalar(2)?;
    let views = cx.views();
    let (input, mut out, scratch) = (views.tensor(0)?, views.out(3)?, views.scratch()?);
    fill(&mut out, "value", value)?;
    // Nothing is kept of the input: where it would lie may be beyond any memory.
    if kept.contains(&0) || sizes.contains(&0) {
        return Ok(());
    }
    let at = |index: &[usize], strides: &[usize]| index.iter().zip(strides).map(|(a, b)| a * b).sum();
    let strides = Dims::from_slice(out.strides).unwrap_or_default();
    Part {
        sizes: &kept,
        input_strides: input.strides,
        input_start: at(&skipped, input.strides),
        strides: &strides,
        start: at(&shifted, &strides),
    }
    .write(&input, &mut out, scratch)
}

fn pad(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    args.expect_len(5)?;
    conversion(args.tensor(0)?.meta.dtype, args.tensor(3)?.meta.dtype)?;
    args.scratch(SCRATCH);
    Ok(Box::new(constant_pad))
}

/// The operators of this table.
pub const KERNELS: &[&Kernel] = &[
    &row("aten::cat.out", "(Tensor[] tensors, int dim=0, *, Tensor(a!) out) -> Tensor(a!)", |args| join(args, cat)),
    &row("aten::stack.out", "(Tensor[] tensors, int dim=0, *, Tensor(a!) out) -> Tensor(a!)", |args| join(args, stack)),
    &row(
        "aten::slice_scatter.out",
        "(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1, *, Tensor(a!) out) \
         -> Tensor(a!)",
        |args| into_copy(args, 6, slice_scatter),
    ),
    &row(
        "aten::select_scatter.out",
        "(Tensor self, Tensor src, int dim, SymInt index, *, Tensor(a!) out) -> Tensor(a!)",
        |args| into_copy(args, 4, select_scatter),
    ),
    &row(
        "aten::constant_pad_nd.out",
        "(Tensor self, SymInt[] pad, Scalar value=0, *, Tensor(a!) out) -> Tensor(a!)",
        pad,
    ),
];
