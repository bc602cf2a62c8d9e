//! Operators that write inputs into parts of their output: joins, padding with a number, and writes into a slice.

use edgepack_executor::kernel::{Kernel, KernelContext, KernelError, Prepare, Run, Views};
use edgepack_executor::tensor::{TensorMut, TensorRef, TensorShape};
use edgepack_format::tensor::Dims;

use super::row;
use super::shape::slice_of;
use super::transfer::{assign, conversion};
use crate::aten::elementwise::fill::fill;
use crate::dims::{dim_of, index_of, size_of};
use crate::promote::{expect_castable, promote};
use crate::schema::arguments;
use edgepack_compute::join::{MOST, Rows};
use edgepack_compute::transfer::{Region, SCRATCH};

arguments!("aten::cat.out"; TENSORS = "tensors", JOIN_DIM = "dim", JOINED = "out");
// Both scatters and the padding have one input; both scatters have one source and one dimension.
arguments!("aten::slice_scatter.out"; SELF = "self", SRC = "src", DIM = "dim", START = "start", END = "end", STEP = "step", SLICED = "out");
arguments!("aten::select_scatter.out"; INDEX = "index", SELECTED = "out");
arguments!("aten::constant_pad_nd.out"; PAD = "pad", VALUE = "value", PADDED = "out");

/// Writes the elements of an input from `input_start` on, by its own strides, into the part of the output that starts at
/// element `start` and has the strides `strides`; all in the dimensions of the output.
struct Part<'p> {
    sizes: &'p [usize],
    input_strides: &'p [usize],
    input_start: usize,
    strides: &'p [usize],
    start: usize,
}

impl Part<'_> {
    fn write(&self, input: &TensorRef<'_>, out: &mut TensorMut<'_>, scratch: &mut [u8]) -> Result<(), KernelError> {
        let region = Region {
            sizes: self.sizes,
            dim_order: out.dim_order,
            from: (self.input_strides, self.input_start),
            to: (self.strides, self.start),
        };
        let change = conversion(input.dtype, out.dtype)?;
        Ok(region.transfer(change, input.bytes(), out.bytes_mut(), scratch)?)
    }
}

/// Returns whether an input of `cat` is skipped: an empty list of numbers joins anything.
fn is_skipped(meta: &TensorShape<'_>) -> bool {
    meta.sizes == [0]
}

fn join(
    args: &Prepare<'_>,
    run: fn(&mut KernelContext<'_>) -> Result<(), KernelError>,
) -> Result<Box<dyn Run>, KernelError> {
    args.expect_len(JOINED + 2)?;
    let count = args.list_len(TENSORS)?;
    if count == 0 {
        return Err(KernelError::argument("`tensors` is empty"));
    }
    let mut common = None;
    for item in 0..count {
        let Some(input) = args.item(TENSORS, item)? else { continue };
        let dtype = input.meta.dtype;
        common = match common {
            None => Some(dtype),
            Some(common) => Some(promote(common, dtype).ok_or_else(|| {
                KernelError::argument(format!("`tensors` holds {dtype}, which has no common type with {common}"))
            })?),
        };
        conversion(dtype, args.tensor(JOINED)?.meta.dtype)?;
    }
    if let Some(common) = common {
        expect_castable(common, args.tensor(JOINED)?.meta.dtype)?;
    }
    args.scratch(SCRATCH);
    Ok(Box::new(run))
}

fn cat(cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
    let count = cx.list_len(TENSORS)?;
    let mut sizes: Option<(Dims, usize)> = None;
    for item in 0..count {
        let meta = item_meta(cx, item)?;
        if is_skipped(&meta) {
            continue;
        }
        match &mut sizes {
            None => {
                let dim = dim_of("dim", cx.int(JOIN_DIM)?, "tensors", meta.rank())?;
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
    cx.resize(JOINED, &sizes)?;
    let views = cx.views();
    let (mut out, scratch) = (views.out(JOINED)?, views.scratch()?);
    if count > 0 && join_rows(&views, count, dim, &mut out)? {
        return Ok(());
    }
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

/// Joins tensors of the element type and dim order of the output, whose rows from the dimension on are next to each other;
/// `false` if they are of others, or too many.
fn join_rows(views: &Views<'_>, count: usize, dim: usize, out: &mut TensorMut<'_>) -> Result<bool, KernelError> {
    let (dtype, order) = (out.dtype, out.dim_order);
    let width = dtype.size().unwrap_or(1);
    let Some(place) = order.iter().position(|&at| usize::from(at) == dim).filter(|_| is_dense(&out.meta())) else {
        return Ok(false);
    };
    // Elements from the dimension on.
    let inner = |sizes: &[usize]| order[place..].iter().map(|&at| sizes[usize::from(at)]).product::<usize>();
    let mut all = [Rows::default(); MOST];
    let mut joined = 0;
    for item in 0..count {
        let input = item_of(views, item)?;
        if is_skipped(&input.meta()) {
            continue;
        }
        if joined == MOST || input.dtype != dtype || input.dim_order != order || !is_dense(&input.meta()) {
            return Ok(false);
        }
        all[joined] = Rows { bytes: input.bytes(), len: inner(input.sizes) * width };
        joined += 1;
    }
    let bytes = out.sizes.iter().product::<usize>() * width;
    let Some(bytes) = out.bytes_mut().get_mut(..bytes) else { return Ok(false) };
    edgepack_compute::join::join(&all[..joined], bytes);
    Ok(true)
}

/// Returns whether elements follow each other without gaps, in dim order.
fn is_dense(meta: &TensorShape<'_>) -> bool {
    let mut distance = 1;
    meta.dim_order.iter().rev().all(|&at| {
        let (size, stride) = (meta.sizes[usize::from(at)], meta.strides[usize::from(at)]);
        let next = size <= 1 || stride == distance;
        distance *= size;
        next
    })
}

fn item_meta<'c>(cx: &'c KernelContext<'_>, item: usize) -> Result<TensorShape<'c>, KernelError> {
    cx.list_meta(TENSORS, item)?.ok_or_else(|| KernelError::argument(format!("`tensors` holds no tensor at {item}")))
}

fn item_of<'v>(views: &Views<'v>, item: usize) -> Result<TensorRef<'v>, KernelError> {
    views.item(TENSORS, item)?.ok_or_else(|| KernelError::argument(format!("`tensors` holds no tensor at {item}")))
}

fn stack(cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
    let count = cx.list_len(TENSORS)?;
    let first = item_meta(cx, 0)?;
    let dim = dim_of("dim", cx.int(JOIN_DIM)?, "out", first.rank() + 1)?;
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
    cx.resize(JOINED, &sizes)?;
    let views = cx.views();
    let (mut out, scratch) = (views.out(JOINED)?, views.scratch()?);
    if count > 0 && join_rows(&views, count, dim, &mut out)? {
        return Ok(());
    }
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

/// Prepares an operator that copies `self` into `out` and then writes `src` into a part of it.
fn into_copy(
    args: &Prepare<'_>,
    out: usize,
    run: fn(&mut KernelContext<'_>) -> Result<(), KernelError>,
) -> Result<Box<dyn Run>, KernelError> {
    args.expect_len(out + 2)?;
    for input in [SELF, SRC] {
        conversion(args.tensor(input)?.meta.dtype, args.tensor(out)?.meta.dtype)?;
    }
    args.scratch(SCRATCH);
    Ok(Box::new(run))
}

fn slice_scatter(cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
    let meta = cx.meta(SELF)?;
    let mut sizes = Dims::from_slice(meta.sizes).unwrap_or_default();
    if meta.rank() == 0 {
        return Err(KernelError::argument("`self` has 0 dimensions, none to take a part of"));
    }
    let dim = dim_of("dim", cx.int(DIM)?, "self", meta.rank())?;
    let step = cx.int(STEP)?;
    let (start, count) = slice_of(cx.int_opt(START)?, cx.int_opt(END)?, step, sizes[dim])?;
    cx.resize(SLICED, &sizes)?;
    sizes[dim] = count;
    expect_sizes("src", cx.meta(SRC)?.sizes, &sizes)?;
    let views = cx.views();
    let (input, src, mut out, scratch) =
        (views.tensor(SELF)?, views.tensor(SRC)?, views.out(SLICED)?, views.scratch()?);
    assign(conversion(input.dtype, out.dtype)?, &input, &mut out, scratch)?;
    let mut strides = Dims::from_slice(out.strides).unwrap_or_default();
    let start = start * strides[dim];
    strides[dim] = strides[dim].saturating_mul(step as usize);
    Part { sizes: &sizes, input_strides: src.strides, input_start: 0, strides: &strides, start }
        .write(&src, &mut out, scratch)
}

fn select_scatter(cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
    let meta = cx.meta(SELF)?;
    let sizes = Dims::from_slice(meta.sizes).unwrap_or_default();
    if meta.rank() == 0 {
        return Err(KernelError::argument("`self` has 0 dimensions, none to take a part of"));
    }
    let dim = dim_of("dim", cx.int(DIM)?, "self", meta.rank())?;
    let index = index_of("index", cx.int(INDEX)?, sizes[dim])?;
    cx.resize(SELECTED, &sizes)?;
    let want: Dims = Dims::collect(sizes.iter().enumerate().filter(|(own, _)| *own != dim).map(|(_, &size)| size))
        .unwrap_or_default();
    expect_sizes("src", cx.meta(SRC)?.sizes, &want)?;
    let views = cx.views();
    let (input, src, mut out, scratch) =
        (views.tensor(SELF)?, views.tensor(SRC)?, views.out(SELECTED)?, views.scratch()?);
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
    let meta = cx.meta(SELF)?;
    let pads = cx.ints(PAD)?;
    let rank = meta.rank();
    if pads.len() % 2 != 0 || pads.len() / 2 > rank {
        return Err(KernelError::argument(format!("`pad` has {} items, `self` has {rank} dimensions", pads.len())));
    }
    let mut sizes = Dims::from_slice(meta.sizes).unwrap_or_default();
    let mut left = sizes;
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
        left[dim] = cut as usize;
        skipped[dim] = before.min(0).unsigned_abs() as usize;
        shifted[dim] = before.max(0) as usize;
    }
    cx.resize(PADDED, &sizes)?;
    let value = cx.scalar(VALUE)?;
    let views = cx.views();
    let (input, mut out, scratch) = (views.tensor(SELF)?, views.out(PADDED)?, views.scratch()?);
    fill(&mut out, "value", value)?;
    // Nothing is left of the input: its place in the output may be beyond any memory.
    if left.contains(&0) || sizes.contains(&0) {
        return Ok(());
    }
    let at = |index: &[usize], strides: &[usize]| index.iter().zip(strides).map(|(a, b)| a * b).sum();
    let strides = Dims::from_slice(out.strides).unwrap_or_default();
    Part {
        sizes: &left,
        input_strides: input.strides,
        input_start: at(&skipped, input.strides),
        strides: &strides,
        start: at(&shifted, &strides),
    }
    .write(&input, &mut out, scratch)
}

fn pad(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    args.expect_len(PADDED + 2)?;
    conversion(args.tensor(SELF)?.meta.dtype, args.tensor(PADDED)?.meta.dtype)?;
    args.scratch(SCRATCH);
    Ok(Box::new(constant_pad))
}

/// The operators of this table.
pub const KERNELS: &[&Kernel] = &[
    &row("aten::cat.out", |args| join(args, cat)),
    &row("aten::stack.out", |args| join(args, stack)),
    &row("aten::slice_scatter.out", |args| into_copy(args, SLICED, slice_scatter)),
    &row("aten::select_scatter.out", |args| into_copy(args, SELECTED, select_scatter)),
    &row("aten::constant_pad_nd.out", pad),
];
