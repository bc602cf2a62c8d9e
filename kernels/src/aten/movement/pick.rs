//! Picking and placing by one index tensor along one dimension. The loops are those of `edgepack_compute::gather`.

use edgepack_executor::kernel::{Kernel, KernelContext, KernelError, Prepare, Run};
use edgepack_executor::tensor::TensorShape;
use edgepack_executor::with_element;
use edgepack_format::tensor::Dims;

use super::row;
use super::transfer::{assign, conversion, expect_same_type};
use crate::aten::elementwise::engine::scalar_bits;
use crate::dims::dim_of;
use crate::indices::{expect_indices, indices};
use crate::promote::expect_fit;
use crate::schema::arguments;
use edgepack_compute::gather::{self, Scatter};
use edgepack_compute::layout::Layout;
use edgepack_compute::transfer::SCRATCH;

arguments!("aten::index_select.out"; SELF = "self", DIM = "dim", INDEX = "index", SELECTED = "out");
arguments!("aten::gather.out"; GATHERED = "out");
arguments!("aten::scatter.src_out"; SRC = "src", SCATTERED = "out");
arguments!("aten::scatter.value_out"; VALUE = "value");
arguments!("aten::embedding.out"; WEIGHT = "weight", INDICES = "indices", EMBEDDED = "out");

fn index_select(cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
    let (meta, index) = (cx.meta(SELF)?, cx.meta(INDEX)?);
    let dim = dim_of("dim", cx.int(DIM)?, "self", meta.rank())?;
    if index.rank() > 1 {
        return Err(KernelError::argument(format!("`index` has {} dimensions, at most 1 is possible", index.rank())));
    }
    let count = index.element_count();
    let mut sizes = Dims::from_slice(meta.sizes).unwrap_or_default();
    if let Some(size) = sizes.get_mut(dim) {
        *size = count;
    }
    cx.resize(SELECTED, &sizes)?;
    let views = cx.views();
    let (input, index, mut out) = (views.tensor(SELF)?, views.tensor(INDEX)?, views.out(SELECTED)?);
    let (meta, scratch) = (out.meta(), views.scratch()?);
    let (from, to) = ((Layout::from(&input), input.bytes()), (Layout::from(&meta), out.bytes_mut()));
    Ok(gather::select(meta.dtype.size().unwrap_or(1), dim, from, indices(&index), to, scratch)?)
}

fn embedding(cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
    let (weight, index) = (cx.meta(WEIGHT)?, cx.meta(INDICES)?);
    let &[_, columns] = weight.sizes else {
        return Err(KernelError::argument(format!("`weight` has {} dimensions, not 2", weight.rank())));
    };
    let sizes: Dims = Dims::collect(index.sizes.iter().copied().chain([columns]))
        .ok_or_else(|| KernelError::unsupported("the result has more than 16 dimensions"))?;
    cx.resize(EMBEDDED, &sizes)?;
    let views = cx.views();
    let (weight, index, mut out) = (views.tensor(WEIGHT)?, views.tensor(INDICES)?, views.out(EMBEDDED)?);
    let contiguous = weight.is_contiguous() && index.is_contiguous() && out.is_contiguous();
    if !contiguous {
        return Err(KernelError::unsupported("`weight`, `indices` and `out` must be contiguous"));
    }
    let width = columns * out.dtype.size().unwrap_or(1);
    Ok(gather::rows(width, weight.bytes(), indices(&index), out.bytes_mut())?)
}

/// Returns an error unless `index` has the rank of a tensor and is nowhere larger, except along `dim`.
pub(super) fn expect_inside(
    index: &TensorShape<'_>,
    name: &str,
    meta: &TensorShape<'_>,
    dim: Option<usize>,
) -> Result<(), KernelError> {
    // A tensor without dimensions counts as one element along one.
    let rank = index.rank().max(1);
    let size = |meta: &TensorShape<'_>, at: usize| meta.sizes.get(at).copied().unwrap_or(1);
    let fits = rank == meta.rank().max(1) && (0..rank).all(|at| Some(at) == dim || size(index, at) <= size(meta, at));
    if fits || index.element_count() == 0 {
        return Ok(());
    }
    Err(KernelError::argument(format!("`index` has sizes {:?}, `{name}` has {:?}", index.sizes, meta.sizes)))
}

fn gather(cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
    let (meta, index) = (cx.meta(SELF)?, cx.meta(INDEX)?);
    let dim = dim_of("dim", cx.int(DIM)?, "self", meta.rank())?;
    expect_inside(&index, "self", &meta, Some(dim))?;
    let sizes = Dims::from_slice(index.sizes).unwrap_or_default();
    cx.resize(GATHERED, &sizes)?;
    let views = cx.views();
    let (input, index, mut out) = (views.tensor(SELF)?, views.tensor(INDEX)?, views.out(GATHERED)?);
    let meta = out.meta();
    let from = (Layout::from(&input), input.bytes());
    let index = (Layout::from(&index), indices(&index));
    Ok(gather::gather(meta.dtype.size().unwrap_or(1), dim, from, index, (Layout::from(&meta), out.bytes_mut()))?)
}

/// Effect of scattered elements: they replace those of the output, or are added to them.
#[derive(Clone, Copy, PartialEq)]
enum Effect {
    Replace,
    Add,
}

/// The elements that are scattered.
#[derive(Clone, Copy, PartialEq)]
enum Scattered {
    Tensor,
    Number,
}

fn scatter(cx: &mut KernelContext<'_>, what: Scattered, effect: Effect) -> Result<(), KernelError> {
    let (meta, index) = (cx.meta(SELF)?, cx.meta(INDEX)?);
    let dim = dim_of("dim", cx.int(DIM)?, "self", meta.rank())?;
    expect_inside(&index, "self", &meta, Some(dim))?;
    if what == Scattered::Tensor {
        expect_inside(&index, "src", &cx.meta(SRC)?, None)?;
    }
    let sizes = Dims::from_slice(meta.sizes).unwrap_or_default();
    cx.resize(SCATTERED, &sizes)?;
    let number = match what {
        Scattered::Number => {
            let (value, dtype) = (cx.scalar(VALUE)?, cx.meta(SCATTERED)?.dtype);
            expect_fit("value", value, dtype)?;
            scalar_bits(value, dtype).to_ne_bytes()
        }
        Scattered::Tensor => [0; 8],
    };
    let views = cx.views();
    let (input, index, mut out) = (views.tensor(SELF)?, views.tensor(INDEX)?, views.out(SCATTERED)?);
    assign(conversion(input.dtype, out.dtype)?, &input, &mut out, &mut [])?;
    let source = if what == Scattered::Tensor { Some(views.tensor(SRC)?) } else { None };
    let meta = out.meta();
    let scatter = Scatter {
        dim,
        index: Layout::from(&index),
        indices: indices(&index),
        source: source.as_ref().map(Layout::from),
        slices: false,
        out: Layout::from(&meta),
    };
    let (from, to) = (source.as_ref().map_or(&number[..], |source| source.bytes()), out.bytes_mut());
    match effect {
        Effect::Replace => scatter.replace(meta.dtype.size().unwrap_or(1), from, to)?,
        Effect::Add => with_element!(meta.dtype, T => scatter.add::<T>(from, to)?, else => {
            return Err(KernelError::unsupported(format!("sums of type {}", meta.dtype)));
        }),
    }
    Ok(())
}

fn prepare_scatter(args: &Prepare<'_>, what: Scattered, effect: Effect) -> Result<Box<dyn Run>, KernelError> {
    args.expect_len(SCATTERED + 2)?;
    expect_same_type(args, SELF, SCATTERED)?;
    expect_indices(args, INDEX, "index")?;
    let dtype = args.tensor(SELF)?.meta.dtype;
    if dtype.is_complex() && (what == Scattered::Number || effect == Effect::Add) {
        return Err(KernelError::unsupported(format!("numbers and sums of type {dtype}")));
    }
    if what == Scattered::Tensor {
        let have = args.tensor(SRC)?.meta.dtype;
        if have != dtype {
            return Err(KernelError::argument(format!("`src` is {have}, `self` is {dtype}: the types differ")));
        }
    }
    Ok(Box::new(move |cx: &mut KernelContext<'_>| scatter(cx, what, effect)))
}

/// The operators of this table.
pub const KERNELS: &[&Kernel] = &[
    &row("aten::index_select.out", |args| {
        args.expect_len(SELECTED + 2)?;
        expect_same_type(args, SELF, SELECTED)?;
        expect_indices(args, INDEX, "index")?;
        args.scratch(SCRATCH);
        Ok(Box::new(index_select))
    }),
    &row("aten::embedding.out", |args| {
        args.expect_len(EMBEDDED + 2)?;
        expect_same_type(args, WEIGHT, EMBEDDED)?;
        expect_indices(args, INDICES, "indices")?;
        Ok(Box::new(embedding))
    }),
    &row("aten::gather.out", |args| {
        args.expect_len(GATHERED + 2)?;
        expect_same_type(args, SELF, GATHERED)?;
        expect_indices(args, INDEX, "index")?;
        Ok(Box::new(gather))
    }),
    &row("aten::scatter.src_out", |args| prepare_scatter(args, Scattered::Tensor, Effect::Replace)),
    &row("aten::scatter.value_out", |args| prepare_scatter(args, Scattered::Number, Effect::Replace)),
    &row("aten::scatter_add.out", |args| prepare_scatter(args, Scattered::Tensor, Effect::Add)),
];
