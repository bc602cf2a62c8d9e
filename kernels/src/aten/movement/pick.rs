//! Picking and placing by one index tensor along one dimension.

use edgepack_executor::kernel::{Kernel, KernelContext, KernelError, Prepare, Run};
use edgepack_executor::tensor::{TensorRef, TensorShape};
use edgepack_executor::with_element;
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::Dims;

use super::row;
use super::transfer::{SCRATCH, assign, conversion, expect_same_type, transfer};
use crate::aten::elementwise::engine::scalar_bits;
use crate::broadcast::{Axis, Walk};
use crate::dims::{dim_of, index_of};
use crate::promote::expect_fit;
use edgepack_compute::number::{Cast, Compute, Number};

pub(super) fn expect_indices(args: &Prepare<'_>, arg: usize, name: &str) -> Result<(), KernelError> {
    match args.tensor(arg)?.meta.dtype {
        ScalarType::INT | ScalarType::LONG => Ok(()),
        dtype => Err(KernelError::argument(format!("`{name}` is {dtype}, the operator wants INT or LONG"))),
    }
}

/// Element `at` of an index tensor, in memory order.
pub(super) fn index_at(index: &TensorRef<'_>, at: usize) -> i64 {
    let bytes = index.bytes();
    if index.dtype == ScalarType::LONG {
        bytemuck::pod_read_unaligned(&bytes[at * 8..at * 8 + 8])
    } else {
        i64::from(bytemuck::pod_read_unaligned::<i32>(&bytes[at * 4..at * 4 + 4]))
    }
}

/// Every index of some sizes in index order, as offsets into tensors of other strides.
pub(super) struct Places<'p, const N: usize> {
    sizes: &'p [usize],
    strides: [&'p [usize]; N],
    index: Dims,
    left: usize,
}

impl<'p, const N: usize> Places<'p, N> {
    pub(super) fn new(sizes: &'p [usize], strides: [&'p [usize]; N]) -> Self {
        Places { sizes, strides, index: Dims::filled(0, sizes.len()).unwrap_or_default(), left: sizes.iter().product() }
    }

    /// The next place: its offsets, and its index along `dim`.
    pub(super) fn next(&mut self, dim: usize) -> Option<([usize; N], usize)> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        let offsets =
            self.strides.map(|strides| self.index.iter().zip(strides).map(|(index, stride)| index * stride).sum());
        let along = self.index.get(dim).copied().unwrap_or(0);
        for dim in (0..self.sizes.len()).rev() {
            self.index[dim] += 1;
            if self.index[dim] < self.sizes[dim] {
                break;
            }
            self.index[dim] = 0;
        }
        Some((offsets, along))
    }
}

fn index_select(cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
    let (meta, index) = (cx.meta(0)?, cx.meta(2)?);
    let dim = dim_of("dim", cx.int(1)?, "self", meta.rank())?;
    if index.rank() > 1 {
        return Err(KernelError::argument(format!("`index` has {} dimensions, at most 1 is possible", index.rank())));
    }
    let count = index.element_count();
    let mut sizes = Dims::from_slice(meta.sizes).unwrap_or_default();
    if let Some(size) = sizes.get_mut(dim) {
        *size = count;
    }
    cx.resize(3, &sizes)?;
    let views = cx.views();
    let (input, index, mut out) = (views.tensor(0)?, views.tensor(2)?, views.out(3)?);
    let scratch = views.scratch()?;
    let have = input.sizes.get(dim).copied().unwrap_or(1);
    let (from_stride, to_stride) =
        (input.strides.get(dim).copied().unwrap_or(0), out.strides.get(dim).copied().unwrap_or(0));
    // What is copied per index: everything but `dim`, in the memory order of the output.
    let out_meta = out.meta();
    let walk = |strides: &[usize], start: usize| {
        let dims = out_meta.dim_order.iter().map(|&own| own as usize).filter(|&own| own != dim);
        Walk::new(dims.map(|own| Axis { size: out_meta.sizes[own], stride: strides[own] as isize }), start)
    };
    let rest: usize = sizes.iter().enumerate().filter(|(own, _)| *own != dim).map(|(_, size)| size).product();
    if rest == 0 {
        return Ok(());
    }
    for at in 0..count {
        let from = index_of("index", index_at(&index, at), have)?;
        let (source, target) = (walk(input.strides, from * from_stride), walk(out_meta.strides, at * to_stride));
        let change = conversion(input.dtype, input.dtype)?;
        transfer(change, (input.bytes(), &source), (out.bytes(), &target), rest, scratch)?;
    }
    Ok(())
}

fn embedding(cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
    let (weight, indices) = (cx.meta(0)?, cx.meta(1)?);
    let &[rows, columns] = weight.sizes else {
        return Err(KernelError::argument(format!("`weight` has {} dimensions, not 2", weight.rank())));
    };
    let sizes: Dims = Dims::collect(indices.sizes.iter().copied().chain([columns]))
        .ok_or_else(|| KernelError::unsupported("the result has more than 16 dimensions"))?;
    cx.resize(5, &sizes)?;
    let views = cx.views();
    let (weight, indices, mut out) = (views.tensor(0)?, views.tensor(1)?, views.out(5)?);
    let contiguous = weight.is_contiguous() && indices.is_contiguous() && out.is_contiguous();
    if !contiguous {
        return Err(KernelError::unsupported("`weight`, `indices` and `out` must be contiguous"));
    }
    let run = columns * out.dtype.size().unwrap_or(1);
    if run == 0 {
        return Ok(());
    }
    for (at, to) in out.bytes().chunks_exact_mut(run).enumerate() {
        let index = index_at(&indices, at);
        match usize::try_from(index) {
            Ok(row) if row < rows => to.copy_from_slice(&weight.bytes()[row * run..][..run]),
            _ => return Err(KernelError::argument(format!("`indices` holds {index}, `weight` has {rows} rows"))),
        }
    }
    Ok(())
}

/// An error unless `index` has the rank of a tensor and is nowhere larger, except along `dim`.
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
    let (meta, index) = (cx.meta(0)?, cx.meta(2)?);
    let dim = dim_of("dim", cx.int(1)?, "self", meta.rank())?;
    expect_inside(&index, "self", &meta, Some(dim))?;
    let sizes = Dims::from_slice(index.sizes).unwrap_or_default();
    cx.resize(4, &sizes)?;
    let views = cx.views();
    let (input, index, mut out) = (views.tensor(0)?, views.tensor(2)?, views.out(4)?);
    let width = out.dtype.size().unwrap_or(1);
    let (size, stride) = (input.sizes.get(dim).copied().unwrap_or(1), input.strides.get(dim).copied().unwrap_or(0));
    let strides = Dims::from_slice(out.strides).unwrap_or_default();
    let mut places = Places::new(&sizes, [input.strides, index.strides, &strides]);
    while let Some(([base, at, to], along)) = places.next(dim) {
        let from = base - along * stride + index_of("index", index_at(&index, at), size)? * stride;
        out.bytes()[to * width..][..width].copy_from_slice(&input.bytes()[from * width..][..width]);
    }
    Ok(())
}

/// How scattered elements meet what is there.
#[derive(Clone, Copy, PartialEq)]
enum Meeting {
    Replace,
    Add,
}

/// What is scattered.
#[derive(Clone, Copy, PartialEq)]
enum Scattered {
    Tensor,
    Number,
}

fn scatter(cx: &mut KernelContext<'_>, what: Scattered, meeting: Meeting) -> Result<(), KernelError> {
    let (meta, index) = (cx.meta(0)?, cx.meta(2)?);
    let dim = dim_of("dim", cx.int(1)?, "self", meta.rank())?;
    expect_inside(&index, "self", &meta, Some(dim))?;
    if what == Scattered::Tensor {
        expect_inside(&index, "src", &cx.meta(3)?, None)?;
    }
    let sizes = Dims::from_slice(meta.sizes).unwrap_or_default();
    cx.resize(4, &sizes)?;
    let number = match what {
        Scattered::Number => {
            let value = cx.scalar(3)?;
            expect_fit("value", value, cx.meta(4)?.dtype)?;
            scalar_bits(value, cx.meta(4)?.dtype).to_ne_bytes()
        }
        Scattered::Tensor => [0; 8],
    };
    let views = cx.views();
    let (input, index, mut out) = (views.tensor(0)?, views.tensor(2)?, views.out(4)?);
    assign(conversion(input.dtype, out.dtype)?, &input, &mut out, &mut [])?;
    let source = if what == Scattered::Tensor { Some(views.tensor(3)?) } else { None };
    let width = out.dtype.size().unwrap_or(1);
    let (size, stride) = (sizes.get(dim).copied().unwrap_or(1), out.strides.get(dim).copied().unwrap_or(0));
    let strides = Dims::from_slice(out.strides).unwrap_or_default();
    let source_strides = source.as_ref().map_or(index.strides, |source| source.strides);
    let mut places = Places::new(index.sizes, [source_strides, index.strides, &strides]);
    let dtype = out.dtype;
    while let Some(([from, at, base], along)) = places.next(dim) {
        let to = base - along * stride + index_of("index", index_at(&index, at), size)? * stride;
        let element = match &source {
            Some(source) => &source.bytes()[from * width..][..width],
            None => &number[..width],
        };
        let to = &mut out.bytes()[to * width..][..width];
        match meeting {
            Meeting::Replace => to.copy_from_slice(element),
            Meeting::Add => with_element!(dtype, T => add::<T>(to, element), else => ()),
        }
    }
    Ok(())
}

fn add<T: Number>(to: &mut [u8], more: &[u8]) {
    let (a, b): (T, T) = (bytemuck::pod_read_unaligned(to), bytemuck::pod_read_unaligned(more));
    let sum: T = a.to_compute().plus(b.to_compute()).cast();
    to.copy_from_slice(bytemuck::bytes_of(&sum));
}

fn prepare_scatter(args: &Prepare<'_>, what: Scattered, meeting: Meeting) -> Result<Box<dyn Run>, KernelError> {
    args.expect_len(6)?;
    expect_same_type(args, 0, 4)?;
    expect_indices(args, 2, "index")?;
    let dtype = args.tensor(0)?.meta.dtype;
    if dtype.is_complex() && (what == Scattered::Number || meeting == Meeting::Add) {
        return Err(KernelError::unsupported(format!("numbers and sums of type {dtype}")));
    }
    if what == Scattered::Tensor {
        let (have, want) = (args.tensor(3)?.meta.dtype, args.tensor(0)?.meta.dtype);
        if have != want {
            return Err(KernelError::argument(format!("`src` is {have}, `self` is {want}: the types differ")));
        }
    }
    Ok(Box::new(move |cx: &mut KernelContext<'_>| scatter(cx, what, meeting)))
}

/// The operators of this table.
pub const KERNELS: &[&Kernel] = &[
    &row("aten::index_select.out", "(Tensor self, int dim, Tensor index, *, Tensor(a!) out) -> Tensor(a!)", |args| {
        args.expect_len(5)?;
        expect_same_type(args, 0, 3)?;
        expect_indices(args, 2, "index")?;
        args.scratch(SCRATCH);
        Ok(Box::new(index_select))
    }),
    &row(
        "aten::embedding.out",
        "(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool scale_grad_by_freq=False, bool sparse=False, *, \
         Tensor(a!) out) -> Tensor(a!)",
        |args| {
            args.expect_len(7)?;
            expect_same_type(args, 0, 5)?;
            expect_indices(args, 1, "indices")?;
            Ok(Box::new(embedding))
        },
    ),
    &row(
        "aten::gather.out",
        "(Tensor self, int dim, Tensor index, *, bool sparse_grad=False, Tensor(a!) out) -> Tensor(a!)",
        |args| {
            args.expect_len(6)?;
            expect_same_type(args, 0, 4)?;
            expect_indices(args, 2, "index")?;
            Ok(Box::new(gather))
        },
    ),
    &row(
        "aten::scatter.src_out",
        "(Tensor self, int dim, Tensor index, Tensor src, *, Tensor(a!) out) -> Tensor(a!)",
        |args| prepare_scatter(args, Scattered::Tensor, Meeting::Replace),
    ),
    &row(
        "aten::scatter.value_out",
        "(Tensor self, int dim, Tensor index, Scalar value, *, Tensor(a!) out) -> Tensor(a!)",
        |args| prepare_scatter(args, Scattered::Number, Meeting::Replace),
    ),
    &row(
        "aten::scatter_add.out",
        "(Tensor self, int dim, Tensor index, Tensor src, *, Tensor(a!) out) -> Tensor(a!)",
        |args| prepare_scatter(args, Scattered::Tensor, Meeting::Add),
    ),
];
