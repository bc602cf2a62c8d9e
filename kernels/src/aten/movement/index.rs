//! Indexing by tensors: `self[indices]`, and writing to it. The loops are those of `edgepack_compute::indexing`.

use edgepack_executor::kernel::{Kernel, KernelContext, KernelError, Prepare, Run, Views};
use edgepack_executor::with_element;
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::{Dims, element_count};

use super::row;
use super::transfer::{assign, conversion, expect_same_type};
use crate::check::expect_stretch;
use crate::indices::indices;
use crate::schema::arguments;
use crate::scratch;
use edgepack_compute::indexing::{Selection, Selector, Selectors};
use edgepack_compute::layout::Layout;

arguments!("aten::index.Tensor_out"; SELF = "self", INDICES = "indices", SELECTED = "out");
arguments!("aten::index_put.out"; VALUES = "values", ACCUMULATE = "accumulate", OUT = "out");

fn is_mask(dtype: ScalarType) -> bool {
    matches!(dtype, ScalarType::BOOL | ScalarType::BYTE)
}

/// The index tensors of a call.
fn selectors<'v>(views: &Views<'v>) -> Result<Selectors<'v>, KernelError> {
    let mut selectors = Selectors::new();
    for item in 0..views.context().list_len(INDICES)? {
        let selector = views.item(INDICES, item)?.map(|index| match is_mask(index.dtype) {
            true => Selector::Mask(Layout::from(&index), index.bytes()),
            false => Selector::Places(Layout::from(&index), indices(&index)),
        });
        selectors.push(selector).ok_or_else(|| KernelError::argument("`indices` has more than 16 items"))?;
    }
    Ok(selectors)
}

fn selection(cx: &mut KernelContext<'_>) -> Result<Selection, KernelError> {
    let views = cx.views();
    Ok(Selection::new(views.context().meta(SELF)?.sizes, &selectors(&views)?)?)
}

/// Checks the index tensors, and asks for room for the most offsets there may be.
fn check(args: &Prepare<'_>) -> Result<(), KernelError> {
    let full = || KernelError::unsupported("the result has more than 16 dimensions");
    let mut most: Dims = Dims::new();
    for item in 0..args.list_len(INDICES)? {
        let Some(index) = args.item(INDICES, item)? else { continue };
        let (dtype, sizes) = (index.meta.dtype, index.meta.sizes);
        if !is_mask(dtype) && !matches!(dtype, ScalarType::INT | ScalarType::LONG) {
            return Err(KernelError::argument(format!("`indices` holds a {dtype}, not i32, i64, bool or u8")));
        }
        let trues = [index.meta.element_count()];
        let sizes = if is_mask(dtype) { &trues[..] } else { sizes };
        let (long, short) = if sizes.len() > most.len() { (sizes, &*most) } else { (&*most, sizes) };
        let mut next: Dims = Dims::from_slice(long).ok_or_else(full)?;
        let skip = long.len() - short.len();
        next[skip..].iter_mut().zip(short).for_each(|(a, &b)| *a = (*a).max(b));
        most = next;
    }
    let bytes = element_count(&most).and_then(|count| count.checked_mul(size_of::<u64>()));
    args.scratch(bytes.ok_or_else(|| KernelError::argument("`indices` select more elements than fit memory"))?);
    Ok(())
}

fn get(cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
    let selection = selection(cx)?;
    cx.resize(SELECTED, selection.sizes())?;
    let views = cx.views();
    let (input, mut out) = (views.tensor(SELF)?, views.out(SELECTED)?);
    if !out.is_contiguous() {
        return Err(KernelError::unsupported(format!(
            "`out` has dim order {:?}, it must be contiguous",
            out.dim_order
        )));
    }
    let (selectors, offsets) = (selectors(&views)?, scratch::elements(&views)?);
    let width = out.dtype.size().unwrap_or(1);
    Ok(selection.gather(width, (Layout::from(&input), input.bytes()), &selectors, offsets, out.bytes_mut())?)
}

/// Writes to `self`, which is the output itself or copied to it.
fn put(cx: &mut KernelContext<'_>, out: usize) -> Result<(), KernelError> {
    let selection = selection(cx)?;
    expect_stretch("values", cx.meta(VALUES)?.sizes, selection.sizes())?;
    let accumulate = cx.bool(ACCUMULATE)?;
    if out != SELF {
        let sizes = Dims::from_slice(cx.meta(SELF)?.sizes).unwrap_or_default();
        cx.resize(out, &sizes)?;
    }
    let views = cx.views();
    let mut target = views.out(out)?;
    let unsupported = |dtype: ScalarType| Err(KernelError::unsupported(format!("sums of type {dtype}")));
    if accumulate && target.dtype.is_complex() {
        return unsupported(target.dtype);
    }
    if out != SELF {
        let input = views.tensor(SELF)?;
        assign(conversion(input.dtype, target.dtype)?, &input, &mut target, &mut [])?;
    }
    let (selectors, offsets) = (selectors(&views)?, scratch::elements(&views)?);
    let (values, meta) = (views.tensor(VALUES)?, target.meta());
    let (from, to) = ((Layout::from(&values), values.bytes()), (Layout::from(&meta), target.bytes_mut()));
    if accumulate {
        with_element!(meta.dtype, T => selection.scatter_add::<T>(from, &selectors, offsets, to)?,
            else => return unsupported(meta.dtype));
    } else {
        selection.scatter(meta.dtype.size().unwrap_or(1), from, &selectors, offsets, to)?;
    }
    Ok(())
}

fn prepare_put(args: &Prepare<'_>, out: usize, count: usize) -> Result<Box<dyn Run>, KernelError> {
    args.expect_len(count)?;
    expect_same_type(args, SELF, out)?;
    let (have, want) = (args.tensor(VALUES)?.meta.dtype, args.tensor(out)?.meta.dtype);
    if have != want {
        return Err(KernelError::argument(format!("`values` is {have}, `self` is {want}: the types differ")));
    }
    check(args)?;
    Ok(Box::new(move |cx: &mut KernelContext<'_>| put(cx, out)))
}

/// The operators of this table.
pub const KERNELS: &[&Kernel] = &[
    &row("aten::index.Tensor_out", |args| {
        args.expect_len(SELECTED + 2)?;
        expect_same_type(args, SELF, SELECTED)?;
        check(args)?;
        Ok(Box::new(get))
    }),
    &row("aten::index_put.out", |args| prepare_put(args, OUT, OUT + 2)),
    &row("aten::index_put_", |args| prepare_put(args, SELF, ACCUMULATE + 2)),
];
