//! Indexing by tensors: `self[indices]`, and writing to it.
//!
//! Index tensors broadcast against each other; a mask stands for the coordinates of its true elements. The dimensions
//! they select among become those of the broadcast: in place if they are neighbours, else in front. All of that is
//! turned into one list of offsets into the tensor, in scratch; what is left are plain nested loops.

use edgepack_executor::kernel::{Kernel, KernelContext, KernelError, Prepare, Run, Views};
use edgepack_executor::tensor::TensorShape;
use edgepack_executor::with_element;
use edgepack_format::finding::ErrorCode;
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::{Dims, element_count};

use super::row;
use super::transfer::{assign, conversion, expect_same_type};
use crate::broadcast::{Axis, Walk, broadcast, expect_stretch};
use crate::dims::index_of;
use edgepack_compute::number::{Cast, Compute, Number};

/// Where the list of index tensors is.
const INDICES: usize = 1;

fn is_mask(dtype: ScalarType) -> bool {
    matches!(dtype, ScalarType::BOOL | ScalarType::BYTE)
}

/// Which dimensions are selected among, and what the result looks like.
#[derive(Default)]
struct Plan {
    /// Sizes of the broadcast index tensors.
    common: Dims,
    /// Dimensions of the tensor in front of the selected ones, as walked.
    prefix: Dims,
    /// Dimensions of the tensor behind them.
    suffix: Dims,
    /// The sizes of `self[indices]`.
    sizes: Dims,
}

fn full() -> KernelError {
    KernelError::unsupported("the result has more than 16 dimensions")
}

/// True elements of every mask, by position in the list.
fn counts(views: &Views<'_>, items: usize) -> Result<Dims, KernelError> {
    let mut counts = Dims::new();
    for item in 0..items {
        let count = match views.item(INDICES, item)? {
            Some(index) if is_mask(index.dtype) => index.bytes().iter().filter(|&&byte| byte != 0).count(),
            _ => 0,
        };
        counts.push(count).ok_or_else(|| KernelError::argument("`indices` has more than 16 items"))?;
    }
    Ok(counts)
}

impl Plan {
    fn new(cx: &KernelContext<'_>, counts: &Dims) -> Result<Plan, KernelError> {
        let meta = cx.meta(0)?;
        let mut plan = Plan::default();
        let mut dim = 0;
        // First and last selected dimension, and how many: neighbours or not.
        let (mut first, mut last, mut selected) = (usize::MAX, 0, [false; 16]);
        for item in 0..cx.list_len(INDICES)? {
            let Some(index) = cx.list_meta(INDICES, item)? else {
                dim += 1;
                continue;
            };
            let mask = is_mask(index.dtype);
            let takes = if mask { index.rank() } else { 1 };
            let Some(sizes) = meta.sizes.get(dim..dim + takes) else {
                let rank = meta.rank();
                return Err(KernelError::argument(format!(
                    "`indices` select among more than the {rank} dimensions of `self`"
                )));
            };
            if mask && sizes != index.sizes {
                let have = index.sizes;
                return Err(KernelError::argument(format!(
                    "a mask in `indices` has sizes {have:?}, `self` has {sizes:?} there"
                )));
            }
            let count = [counts[item]];
            let shape = if mask { &count[..] } else { index.sizes };
            plan.common = broadcast(&plan.common, shape).ok_or_else(|| {
                KernelError::argument(format!("`indices` of sizes {:?} and {shape:?} do not broadcast", &*plan.common))
            })?;
            first = first.min(dim);
            last = dim + takes;
            selected[dim..dim + takes].fill(true);
            dim += takes;
        }
        if first == usize::MAX {
            return Err(KernelError::argument("`indices` holds no tensor"));
        }
        if dim > meta.rank() {
            return Err(KernelError::argument(format!(
                "`indices` has more items than the {} dimensions of `self`",
                meta.rank()
            )));
        }
        let neighbours = selected[first..last].iter().all(|&selected| selected);
        for dim in (0..meta.rank()).filter(|&dim| !selected[dim]) {
            let side = if neighbours && dim < first { &mut plan.prefix } else { &mut plan.suffix };
            side.push(dim).ok_or_else(full)?;
        }
        let prefix = plan.prefix.iter().map(|&dim| meta.sizes[dim]);
        let suffix = plan.suffix.iter().map(|&dim| meta.sizes[dim]);
        plan.sizes = Dims::collect(prefix.chain(plan.common.iter().copied()).chain(suffix)).ok_or_else(full)?;
        Ok(plan)
    }

    fn walk(dims: &[usize], meta: &TensorShape<'_>) -> Walk {
        Walk::new(dims.iter().map(|&dim| Axis { size: meta.sizes[dim], stride: meta.strides[dim] as isize }), 0)
    }

    /// Calls `visit` with the offset of every place in front of the suffix, in the order of the result.
    fn for_each_place(
        &self,
        meta: &TensorShape<'_>,
        offsets: &[u64],
        mut visit: impl FnMut(usize) -> Result<(), KernelError>,
    ) -> Result<(), KernelError> {
        // Sizes of no elements can be enormous, and there would be nothing to do at any of the places.
        if offsets.is_empty() || meta.element_count() == 0 {
            return Ok(());
        }
        let count: usize = self.prefix.iter().map(|&dim| meta.sizes[dim]).product();
        for flat in 0..count {
            let (mut rest, mut base) = (flat, 0);
            for &dim in self.prefix.iter().rev() {
                base += rest % meta.sizes[dim] * meta.strides[dim];
                rest /= meta.sizes[dim];
            }
            for &offset in offsets {
                visit(base + offset as usize)?;
            }
        }
        Ok(())
    }
}

/// Adds up, for every element of the broadcast, how far into a tensor of this shape the indices lead.
fn offsets<'s>(
    views: &Views<'_>,
    plan: &Plan,
    meta: &TensorShape<'_>,
    counts: &Dims,
    scratch: &'s mut [u8],
) -> Result<&'s [u64], KernelError> {
    let count = plan.common.iter().product::<usize>();
    let Some(scratch) = scratch.get_mut(..count * 8) else {
        return Err(KernelError::new(ErrorCode::Internal, "the scratch memory is smaller than asked for"));
    };
    let offsets: &mut [u64] = bytemuck::cast_slice_mut(scratch);
    offsets.fill(0);
    let mut dim = 0;
    for item in 0..counts.len() {
        let Some(index) = views.item(INDICES, item)? else {
            dim += 1;
            continue;
        };
        if is_mask(index.dtype) {
            add_mask(&index.meta(), index.bytes(), &meta.strides[dim..], plan, counts[item], offsets);
            dim += index.rank();
            continue;
        }
        let (size, stride) = (meta.sizes[dim], meta.strides[dim] as u64);
        let skip = plan.common.len() - index.rank();
        let steps = plan.common.iter().enumerate().map(|(at, &size)| {
            let own = at.checked_sub(skip).filter(|&own| index.sizes[own] != 1);
            Axis { size, stride: own.map_or(0, |own| index.strides[own] as isize) }
        });
        let walk = Walk::new(steps, 0);
        let mut cursor = walk.cursor();
        let mut block = [0i64; 64];
        for offsets in offsets.chunks_mut(64) {
            if index.dtype == ScalarType::LONG {
                cursor.gather(8, index.bytes(), bytemuck::cast_slice_mut(&mut block[..offsets.len()]));
            } else {
                let mut ints = [0i32; 64];
                cursor.gather(4, index.bytes(), bytemuck::cast_slice_mut(&mut ints[..offsets.len()]));
                block.iter_mut().zip(ints).for_each(|(wide, int)| *wide = i64::from(int));
            }
            for (offset, &index) in offsets.iter_mut().zip(&block) {
                *offset += index_of("indices", index, size)? as u64 * stride;
            }
        }
        dim += 1;
    }
    Ok(offsets)
}

/// Adds the coordinates of the true elements, in index order, to every row of offsets.
fn add_mask(mask: &TensorShape<'_>, bytes: &[u8], strides: &[usize], plan: &Plan, count: usize, offsets: &mut [u64]) {
    let Some(&last) = plan.common.last() else { return };
    for row in offsets.chunks_mut(last.max(1)) {
        let mut place = 0;
        for flat in 0..mask.element_count() {
            let (mut rest, mut at, mut offset) = (flat, 0, 0);
            for dim in (0..mask.rank()).rev() {
                let index = rest % mask.sizes[dim];
                rest /= mask.sizes[dim];
                at += index * mask.strides[dim];
                offset += index * strides[dim];
            }
            if bytes[at] == 0 {
                continue;
            }
            if count == 1 {
                row.iter_mut().for_each(|to| *to += offset as u64);
            } else if let Some(to) = row.get_mut(place) {
                *to += offset as u64;
            }
            place += 1;
        }
    }
}

/// Checks the index tensors, and asks for room for the most offsets there may be.
fn check(args: &Prepare<'_>) -> Result<(), KernelError> {
    let mut most: Dims = Dims::new();
    for item in 0..args.list_len(INDICES)? {
        let Some(index) = args.item(INDICES, item)? else { continue };
        let (dtype, sizes) = (index.meta.dtype, index.meta.sizes);
        if !is_mask(dtype) && !matches!(dtype, ScalarType::INT | ScalarType::LONG) {
            return Err(KernelError::argument(format!("`indices` holds a {dtype}, not INT, LONG, BOOL or BYTE")));
        }
        let trues = [index.meta.element_count()];
        let sizes = if is_mask(dtype) { &trues[..] } else { sizes };
        let (long, short) = if sizes.len() > most.len() { (sizes, &*most) } else { (&*most, sizes) };
        let mut next: Dims = Dims::from_slice(long).ok_or_else(full)?;
        let skip = long.len() - short.len();
        next[skip..].iter_mut().zip(short).for_each(|(a, &b)| *a = (*a).max(b));
        most = next;
    }
    let bytes = element_count(&most).and_then(|count| count.checked_mul(8));
    args.scratch(bytes.ok_or_else(|| KernelError::argument("`indices` select more elements than fit memory"))?);
    Ok(())
}

fn get(cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
    let items = cx.list_len(INDICES)?;
    let counts = counts(&cx.views(), items)?;
    let plan = Plan::new(cx, &counts)?;
    cx.resize(2, &plan.sizes)?;
    let views = cx.views();
    let (input, mut out) = (views.tensor(0)?, views.out(2)?);
    if !out.is_contiguous() {
        return Err(KernelError::unsupported(format!(
            "`out` has dim order {:?}, it must be contiguous",
            out.dim_order
        )));
    }
    let meta = input.meta();
    let offsets = offsets(&views, &plan, &meta, &counts, views.scratch()?)?;
    let walk = Plan::walk(&plan.suffix, &meta);
    let width = out.dtype.size().unwrap_or(1);
    let run = plan.suffix.iter().map(|&dim| meta.sizes[dim]).product::<usize>() * width;
    if run == 0 {
        return Ok(());
    }
    let mut places = out.bytes().chunks_exact_mut(run);
    plan.for_each_place(&meta, offsets, |offset| {
        if let Some(to) = places.next() {
            walk.gather(width, &input.bytes()[offset * width..], to);
        }
        Ok(())
    })
}

fn put(cx: &mut KernelContext<'_>, out: usize) -> Result<(), KernelError> {
    let items = cx.list_len(INDICES)?;
    let counts = counts(&cx.views(), items)?;
    let plan = Plan::new(cx, &counts)?;
    expect_stretch("values", cx.meta(2)?.sizes, &plan.sizes)?;
    let accumulate = cx.bool(3)?;
    if out != 0 {
        let sizes = Dims::from_slice(cx.meta(0)?.sizes).unwrap_or_default();
        cx.resize(out, &sizes)?;
    }
    let views = cx.views();
    let mut target = views.out(out)?;
    if accumulate && target.dtype.is_complex() {
        return Err(KernelError::unsupported(format!("sums of type {}", target.dtype)));
    }
    if out != 0 {
        let input = views.tensor(0)?;
        assign(conversion(input.dtype, target.dtype)?, &input, &mut target, &mut [])?;
    }
    let meta = target.meta();
    let offsets = offsets(&views, &plan, &meta, &counts, views.scratch()?)?;
    let values = views.tensor(2)?;
    let skip = plan.sizes.len() - values.rank();
    let steps = plan.sizes.iter().enumerate().map(|(dim, &size)| {
        let own = dim.checked_sub(skip).filter(|&own| values.sizes[own] != 1);
        Axis { size, stride: own.map_or(0, |own| values.strides[own] as isize) }
    });
    let source = Walk::new(steps, 0);
    let mut source = source.cursor();
    let walk = Plan::walk(&plan.suffix, &meta);
    let count: usize = plan.suffix.iter().map(|&dim| meta.sizes[dim]).product();
    let width = meta.dtype.size().unwrap_or(1);
    let bytes = target.bytes();
    let mut block = [0u64; 64];
    plan.for_each_place(&meta, offsets, |offset| {
        let mut place = walk.cursor();
        let mut left = count;
        while left > 0 {
            let len = left.min(32);
            let chunk = &mut bytemuck::cast_slice_mut::<u64, u8>(&mut block)[..len * width];
            source.gather(width, values.bytes(), chunk);
            let to = &mut bytes[offset * width..];
            if accumulate {
                // The sum of the present elements and the new ones is written back in their place.
                let mut present = [0u64; 64];
                let present = &mut bytemuck::cast_slice_mut::<u64, u8>(&mut present)[..len * width];
                place.clone().gather(width, to, present);
                with_element!(meta.dtype, T => add::<T>(present, chunk), else => ());
                place.scatter(width, present, to);
            } else {
                place.scatter(width, chunk, to);
            }
            left -= len;
        }
        Ok(())
    })
}

fn add<T: Number>(to: &mut [u8], more: &[u8]) {
    let (to, more): (&mut [T], &[T]) = (bytemuck::cast_slice_mut(to), bytemuck::cast_slice(more));
    to.iter_mut().zip(more).for_each(|(to, more)| *to = to.to_compute().plus(more.to_compute()).cast());
}

fn prepare_put(args: &Prepare<'_>, out: usize, count: usize) -> Result<Box<dyn Run>, KernelError> {
    args.expect_len(count)?;
    expect_same_type(args, 0, out)?;
    let (have, want) = (args.tensor(2)?.meta.dtype, args.tensor(out)?.meta.dtype);
    if have != want {
        return Err(KernelError::argument(format!("`values` is {have}, `self` is {want}: the types differ")));
    }
    check(args)?;
    Ok(Box::new(move |cx: &mut KernelContext<'_>| put(cx, out)))
}

/// The operators of this table.
pub const KERNELS: &[&Kernel] = &[
    &row("aten::index.Tensor_out", "(Tensor self, Tensor?[] indices, *, Tensor(a!) out) -> Tensor(a!)", |args| {
        args.expect_len(4)?;
        expect_same_type(args, 0, 2)?;
        check(args)?;
        Ok(Box::new(get))
    }),
    &row(
        "aten::index_put.out",
        "(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False, *, Tensor(a!) out) -> Tensor(a!)",
        |args| prepare_put(args, 4, 6),
    ),
    &row(
        "aten::index_put_",
        "(Tensor(a!) self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor(a!)",
        |args| prepare_put(args, 0, 5),
    ),
];
