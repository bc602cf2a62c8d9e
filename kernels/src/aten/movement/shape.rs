//! Reshaping, slicing and rearranging: every operator that is a view of its input.

use edgepack_executor::kernel::{Kernel, KernelContext, KernelError, Prepare, Run};
use edgepack_executor::tensor::TensorShape;
use edgepack_format::tensor::{Dims, element_count};

use super::row;
use super::view::{MakeView, prepare};
use crate::dims::{dim_of, index_of, size_of};
use crate::schema::{arguments, position};
use edgepack_compute::view::View;
use edgepack_compute::walk::Axis;

// The input of all.
arguments!("aten::permute_copy.out"; SELF = "self");

/// Returns start and number of elements of a slice, with every bound brought inside the dimension. An error unless
/// `step` is positive.
pub fn slice_of(start: Option<i64>, end: Option<i64>, step: i64, size: usize) -> Result<(usize, usize), KernelError> {
    if step <= 0 {
        return Err(KernelError::argument(format!("`step` is {step}, it must be positive")));
    }
    let size = size as i64;
    let inside = |bound: i64| (if bound < 0 { bound.saturating_add(size) } else { bound }).min(size).max(0);
    let (start, end) = (inside(start.unwrap_or(0)), inside(end.unwrap_or(size)));
    let count = (end - start).max(0) as u64;
    Ok((start as usize, count.div_ceil(step as u64) as usize))
}

/// The dimensions of a list argument, each named once.
fn dims_of(cx: &KernelContext<'_>, arg: usize, name: &str, rank: usize) -> Result<[bool; 16], KernelError> {
    let mut named = [false; 16];
    for dim in cx.ints(arg)?.iter() {
        let index = dim_of(name, dim, "self", rank)?;
        if std::mem::replace(&mut named[index], true) {
            return Err(KernelError::argument(format!("`{name}` holds dimension {dim} twice")));
        }
    }
    Ok(named)
}

fn permute(cx: &KernelContext<'_>) -> Result<View, KernelError> {
    arguments!("aten::permute_copy.out"; DIMS = "dims");
    let meta = cx.meta(SELF)?;
    let dims = cx.ints(DIMS)?;
    if dims.len() != meta.rank() {
        return Err(KernelError::argument(format!(
            "`dims` has {} items, `self` has {} dimensions",
            dims.len(),
            meta.rank()
        )));
    }
    dims_of(cx, DIMS, "dims", meta.rank())?;
    let mut view = View::default();
    for dim in dims.iter() {
        let dim = dim_of("dims", dim, "self", meta.rank())?;
        view.push(meta.sizes[dim], meta.strides[dim] as isize)?;
    }
    Ok(view)
}

fn swapped(meta: &TensorShape<'_>, a: usize, b: usize) -> Result<View, KernelError> {
    let mut view = View::default();
    for dim in 0..meta.rank() {
        let from = if dim == a {
            b
        } else if dim == b {
            a
        } else {
            dim
        };
        view.push(meta.sizes[from], meta.strides[from] as isize)?;
    }
    Ok(view)
}

fn transpose(cx: &KernelContext<'_>) -> Result<View, KernelError> {
    arguments!("aten::transpose_copy.int_out"; DIM0 = "dim0", DIM1 = "dim1");
    let meta = cx.meta(SELF)?;
    let a = dim_of("dim0", cx.int(DIM0)?, "self", meta.rank())?;
    let b = dim_of("dim1", cx.int(DIM1)?, "self", meta.rank())?;
    swapped(&meta, a, b)
}

fn transpose_matrix(cx: &KernelContext<'_>) -> Result<View, KernelError> {
    let meta = cx.meta(SELF)?;
    match meta.rank() {
        0 | 1 => Ok(View::whole(&meta)?),
        2 => swapped(&meta, 0, 1),
        rank => Err(KernelError::argument(format!("`self` has {rank} dimensions, at most 2 can be transposed"))),
    }
}

fn expand(cx: &KernelContext<'_>) -> Result<View, KernelError> {
    arguments!("aten::expand_copy.out"; SIZE = "size");
    let meta = cx.meta(SELF)?;
    let sizes = cx.ints(SIZE)?;
    let Some(new) = sizes.len().checked_sub(meta.rank()) else {
        return Err(KernelError::argument(format!(
            "`size` has {} items, `self` has {} dimensions",
            sizes.len(),
            meta.rank()
        )));
    };
    let mut view = View::default();
    for (dim, size) in sizes.iter().enumerate() {
        match dim.checked_sub(new) {
            None => view.push(size_of("size", size)?, 0)?,
            Some(own) => {
                let (have, stride) = (meta.sizes[own], meta.strides[own] as isize);
                match size {
                    -1 => view.push(have, stride)?,
                    size if size == have as i64 => view.push(have, stride)?,
                    size if have == 1 => view.push(size_of("size", size)?, 0)?,
                    size => {
                        return Err(KernelError::argument(format!(
                            "`size` asks for {size}, dimension {own} of `self` has {have}"
                        )));
                    }
                }
            }
        }
    }
    Ok(view)
}

/// The sizes of a list argument, one of which may be -1 and follows from the number of elements.
pub fn infer_sizes(sizes: impl Iterator<Item = i64>, count: usize) -> Result<Dims, KernelError> {
    let mut dims = Dims::new();
    let mut inferred = None;
    for size in sizes {
        if size == -1 && inferred.is_none() {
            inferred = Some(dims.len());
        }
        let size = if size == -1 && inferred == Some(dims.len()) { 1 } else { size_of("size", size)? };
        dims.push(size).ok_or_else(|| KernelError::argument("`size` has more than 16 dimensions"))?;
    }
    let known = element_count(&dims);
    if let Some(dim) = inferred {
        match known {
            Some(known) if known != 0 && count.is_multiple_of(known) => dims[dim] = count / known,
            _ => {
                return Err(KernelError::argument(format!(
                    "`size` {:?} leaves no size for -1 of {count} elements",
                    &*dims
                )));
            }
        }
    } else if known != Some(count) {
        return Err(KernelError::argument(format!("`size` is {:?}, `self` has {count} elements", &*dims)));
    }
    Ok(dims)
}

/// Elements in index order under other sizes. Where the input is not contiguous, each dimension of the result has to
/// fall together with dimensions of the input.
fn reshape(cx: &KernelContext<'_>) -> Result<View, KernelError> {
    arguments!("aten::view_copy.out"; SIZE = "size");
    let meta = cx.meta(SELF)?;
    let sizes = infer_sizes(cx.ints(SIZE)?.iter(), meta.element_count())?;
    let mut view = View::default();
    if meta.is_contiguous() {
        let mut stride = meta.element_count();
        for &size in &*sizes {
            stride /= size.max(1);
            view.push(size, stride as isize)?;
        }
        return Ok(view);
    }
    let mut own = 0;
    for &size in &*sizes {
        let mut steps: Dims<Axis> = Dims::new();
        let mut covered = 1;
        while covered < size && own < meta.rank() {
            covered *= meta.sizes[own];
            steps.push(Axis { size: meta.sizes[own], stride: meta.strides[own] as isize });
            own += 1;
        }
        if covered != size {
            return Err(KernelError::unsupported(format!(
                "`self` of sizes {:?} in dim order {:?} cannot be viewed as {:?}",
                meta.sizes, meta.dim_order, &*sizes
            )));
        }
        view.push_nested(&steps)?;
    }
    Ok(view)
}

fn sliced(meta: &TensorShape<'_>, dim: usize, start: usize, count: usize, step: usize) -> Result<View, KernelError> {
    let mut view = View::default();
    for own in 0..meta.rank() {
        let stride = meta.strides[own];
        if own == dim {
            view.start = start * stride;
            view.push(count, stride.saturating_mul(step) as isize)?;
        } else {
            view.push(meta.sizes[own], stride as isize)?;
        }
    }
    Ok(view)
}

fn expect_dims(meta: &TensorShape<'_>) -> Result<(), KernelError> {
    if meta.rank() > 0 {
        return Ok(());
    }
    Err(KernelError::argument("`self` has 0 dimensions, none to take a part of"))
}

fn slice(cx: &KernelContext<'_>) -> Result<View, KernelError> {
    arguments!("aten::slice_copy.Tensor_out"; DIM = "dim", START = "start", END = "end", STEP = "step");
    let meta = cx.meta(SELF)?;
    expect_dims(&meta)?;
    let dim = dim_of("dim", cx.int(DIM)?, "self", meta.rank())?;
    let step = cx.int(STEP)?;
    let (start, count) = slice_of(cx.int_opt(START)?, cx.int_opt(END)?, step, meta.sizes[dim])?;
    sliced(&meta, dim, start, count, step as usize)
}

fn narrow(cx: &KernelContext<'_>) -> Result<View, KernelError> {
    arguments!("aten::narrow_copy.out"; DIM = "dim", START = "start", LENGTH = "length");
    let meta = cx.meta(SELF)?;
    expect_dims(&meta)?;
    let dim = dim_of("dim", cx.int(DIM)?, "self", meta.rank())?;
    let (size, start, length) = (meta.sizes[dim] as i64, cx.int(START)?, cx.int(LENGTH)?);
    let from = if start < 0 { start.saturating_add(size) } else { start };
    if from < 0 || length < 0 || from.saturating_add(length) > size {
        return Err(KernelError::argument(format!(
            "`start` {start} and `length` {length} leave a dimension of {size}"
        )));
    }
    sliced(&meta, dim, from as usize, length as usize, 1)
}

fn select(cx: &KernelContext<'_>) -> Result<View, KernelError> {
    arguments!("aten::select_copy.int_out"; DIM = "dim", INDEX = "index");
    let meta = cx.meta(SELF)?;
    expect_dims(&meta)?;
    let dim = dim_of("dim", cx.int(DIM)?, "self", meta.rank())?;
    let index = index_of("index", cx.int(INDEX)?, meta.sizes[dim])?;
    let mut view = View::starting_at(index * meta.strides[dim]);
    for own in (0..meta.rank()).filter(|&own| own != dim) {
        view.push(meta.sizes[own], meta.strides[own] as isize)?;
    }
    Ok(view)
}

fn unsqueeze(cx: &KernelContext<'_>) -> Result<View, KernelError> {
    arguments!("aten::unsqueeze_copy.out"; DIM = "dim");
    let meta = cx.meta(SELF)?;
    let dim = dim_of("dim", cx.int(DIM)?, "out", meta.rank() + 1)?;
    let mut view = View::default();
    for own in 0..=meta.rank() {
        if own == dim {
            view.push(1, 0)?;
        }
        if let (Some(&size), Some(&stride)) = (meta.sizes.get(own), meta.strides.get(own)) {
            view.push(size, stride as isize)?;
        }
    }
    Ok(view)
}

fn squeezed(meta: &TensorShape<'_>, named: [bool; 16]) -> Result<View, KernelError> {
    let mut view = View::default();
    for dim in (0..meta.rank()).filter(|&dim| !(named[dim] && meta.sizes[dim] == 1)) {
        view.push(meta.sizes[dim], meta.strides[dim] as isize)?;
    }
    Ok(view)
}

fn squeeze_dim(cx: &KernelContext<'_>) -> Result<View, KernelError> {
    arguments!("aten::squeeze_copy.dim_out"; DIM = "dim");
    let meta = cx.meta(SELF)?;
    let mut named = [false; 16];
    named[dim_of("dim", cx.int(DIM)?, "self", meta.rank())?] = true;
    squeezed(&meta, named)
}

fn squeeze_dims(cx: &KernelContext<'_>) -> Result<View, KernelError> {
    arguments!("aten::squeeze_copy.dims_out"; DIM = "dim");
    let meta = cx.meta(SELF)?;
    squeezed(&meta, dims_of(cx, DIM, "dim", meta.rank())?)
}

fn flip(cx: &KernelContext<'_>) -> Result<View, KernelError> {
    arguments!("aten::flip.out"; DIMS = "dims");
    let meta = cx.meta(SELF)?;
    let named = dims_of(cx, DIMS, "dims", meta.rank())?;
    let mut view = View::default();
    for ((&size, &stride), named) in meta.sizes.iter().zip(meta.strides).zip(named) {
        if named && size > 0 {
            view.start += (size - 1) * stride;
            view.push(size, -(stride as isize))?;
        } else {
            view.push(size, stride as isize)?;
        }
    }
    Ok(view)
}

fn repeat(cx: &KernelContext<'_>) -> Result<View, KernelError> {
    arguments!("aten::repeat.out"; REPEATS = "repeats");
    let meta = cx.meta(SELF)?;
    let repeats = cx.ints(REPEATS)?;
    let Some(new) = repeats.len().checked_sub(meta.rank()) else {
        let (have, rank) = (repeats.len(), meta.rank());
        return Err(KernelError::argument(format!("`repeats` has {have} items, `self` has {rank} dimensions")));
    };
    let mut view = View::default();
    for (dim, times) in repeats.iter().enumerate() {
        let again = Axis { size: size_of("repeats", times)?, stride: 0 };
        match dim.checked_sub(new) {
            None => view.push_nested(&[again])?,
            Some(own) => {
                view.push_nested(&[again, Axis { size: meta.sizes[own], stride: meta.strides[own] as isize }])?;
            }
        }
    }
    Ok(view)
}

fn diagonal(cx: &KernelContext<'_>) -> Result<View, KernelError> {
    arguments!("aten::diagonal_copy.out"; OFFSET = "offset", DIM1 = "dim1", DIM2 = "dim2");
    let meta = cx.meta(SELF)?;
    let a = dim_of("dim1", cx.int(DIM1)?, "self", meta.rank())?;
    let b = dim_of("dim2", cx.int(DIM2)?, "self", meta.rank())?;
    if a == b || meta.rank() < 2 {
        return Err(KernelError::argument(format!("`dim1` and `dim2` are both dimension {a}")));
    }
    let offset = cx.int(OFFSET)?;
    let away = usize::try_from(offset.unsigned_abs()).unwrap_or(usize::MAX);
    let (down, right) = if offset < 0 { (away, 0) } else { (0, away) };
    let count = meta.sizes[a].saturating_sub(down).min(meta.sizes[b].saturating_sub(right));
    let mut view = View::default();
    if count > 0 {
        view.start = down * meta.strides[a] + right * meta.strides[b];
    }
    for dim in (0..meta.rank()).filter(|&dim| dim != a && dim != b) {
        view.push(meta.sizes[dim], meta.strides[dim] as isize)?;
    }
    view.push(count, (meta.strides[a] + meta.strides[b]) as isize)?;
    Ok(view)
}

fn unfold(cx: &KernelContext<'_>) -> Result<View, KernelError> {
    arguments!("aten::unfold_copy.out"; DIMENSION = "dimension", SIZE = "size", STEP = "step");
    let meta = cx.meta(SELF)?;
    let dim = dim_of("dimension", cx.int(DIMENSION)?, "self", meta.rank())?;
    let (size, step) = (cx.int(SIZE)?, cx.int(STEP)?);
    let have = meta.sizes.get(dim).copied().unwrap_or(1);
    if step <= 0 || size < 0 || size > have as i64 {
        return Err(KernelError::argument(format!(
            "windows of `size` {size} by `step` {step} do not fit {have} elements"
        )));
    }
    let (size, step) = (size as usize, step as usize);
    let stride = meta.strides.get(dim).copied().unwrap_or(1);
    let mut view = View::default();
    for own in 0..meta.rank() {
        if own == dim {
            view.push((have - size) / step + 1, stride.saturating_mul(step) as isize)?;
        } else {
            view.push(meta.sizes[own], meta.strides[own] as isize)?;
        }
    }
    view.push(size, stride as isize)?;
    Ok(view)
}

fn as_strided(cx: &KernelContext<'_>) -> Result<View, KernelError> {
    arguments!("aten::as_strided_copy.out"; SIZE = "size", STRIDE = "stride", STORAGE_OFFSET = "storage_offset");
    let meta = cx.meta(SELF)?;
    let (sizes, strides) = (cx.ints(SIZE)?, cx.ints(STRIDE)?);
    if sizes.len() != strides.len() {
        return Err(KernelError::argument(format!("`size` has {} items, `stride` has {}", sizes.len(), strides.len())));
    }
    let mut view = View::starting_at(size_of("storage_offset", cx.int_opt(STORAGE_OFFSET)?.unwrap_or(0))?);
    let (mut last, mut empty) = (view.start, false);
    for (size, stride) in sizes.iter().zip(strides.iter()) {
        let (size, stride) = (size_of("size", size)?, size_of("stride", stride)?);
        empty |= size == 0;
        last = last.saturating_add(size.saturating_sub(1).saturating_mul(stride));
        view.push(size, stride as isize)?;
    }
    if !empty && last >= meta.element_count() {
        let count = meta.element_count();
        return Err(KernelError::argument(format!("`size` and `stride` reach element {last}, `self` has {count}")));
    }
    Ok(view)
}

/// The factor of a pixel operator, given as argument `name`, and its dimensions: leading ones, then channels, height, width.
fn pixels(cx: &KernelContext<'_>, arg: usize, name: &str) -> Result<(usize, usize), KernelError> {
    let (rank, factor) = (cx.meta(SELF)?.rank(), cx.int(arg)?);
    if rank < 3 {
        return Err(KernelError::argument(format!("`self` has {rank} dimensions, at least 3 are needed")));
    }
    match u16::try_from(factor) {
        Ok(factor) if factor > 0 => Ok((usize::from(factor), rank - 3)),
        _ => Err(KernelError::argument(format!("`{name}` is {factor}, it must be positive and at most 65535"))),
    }
}

fn pixel_shuffle(cx: &KernelContext<'_>) -> Result<View, KernelError> {
    arguments!("aten::pixel_shuffle.out"; UPSCALE_FACTOR = "upscale_factor");
    let (factor, c) = pixels(cx, UPSCALE_FACTOR, "upscale_factor")?;
    let meta = cx.meta(SELF)?;
    let step = |dim: usize| meta.strides[dim] as isize;
    if !meta.sizes[c].is_multiple_of(factor * factor) {
        return Err(KernelError::argument(format!("{} channels are no multiple of {factor} squared", meta.sizes[c])));
    }
    let mut view = View::default();
    for dim in 0..c {
        view.push(meta.sizes[dim], step(dim))?;
    }
    // Without channels, or without rows, a stride over them may lead beyond any memory, and is never taken.
    let over = |dim: usize, times: usize| step(dim).saturating_mul(times as isize);
    view.push(meta.sizes[c] / (factor * factor), over(c, factor * factor))?;
    let sub = |stride| Axis { size: factor, stride };
    view.push_nested(&[Axis { size: meta.sizes[c + 1], stride: step(c + 1) }, sub(over(c, factor))])?;
    view.push_nested(&[Axis { size: meta.sizes[c + 2], stride: step(c + 2) }, sub(step(c))])?;
    Ok(view)
}

fn pixel_unshuffle(cx: &KernelContext<'_>) -> Result<View, KernelError> {
    arguments!("aten::pixel_unshuffle.out"; DOWNSCALE_FACTOR = "downscale_factor");
    let (factor, c) = pixels(cx, DOWNSCALE_FACTOR, "downscale_factor")?;
    let meta = cx.meta(SELF)?;
    let step = |dim: usize| meta.strides[dim] as isize;
    let (height, width) = (meta.sizes[c + 1], meta.sizes[c + 2]);
    if !height.is_multiple_of(factor) || !width.is_multiple_of(factor) {
        return Err(KernelError::argument(format!("{height} by {width} is not a multiple of {factor}")));
    }
    let mut view = View::default();
    for dim in 0..c {
        view.push(meta.sizes[dim], step(dim))?;
    }
    let sub = |stride| Axis { size: factor, stride };
    view.push_nested(&[Axis { size: meta.sizes[c], stride: step(c) }, sub(step(c + 1)), sub(step(c + 2))])?;
    // As above.
    let over = |dim: usize, times: usize| step(dim).saturating_mul(times as isize);
    view.push(height / factor, over(c + 1, factor))?;
    view.push(width / factor, over(c + 2, factor))?;
    Ok(view)
}

macro_rules! views {
    ($($name:literal => $make:ident;)*) => {
        /// The operators of this table.
        pub const KERNELS: &[&Kernel] = &[$(&row($name, {
            fn first(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
                prepare(args, const { position($name, "out") }, $make as MakeView)
            }
            first
        }),)*];
    };
}

views! {
    "aten::permute_copy.out" => permute;
    "aten::transpose_copy.int_out" => transpose;
    "aten::t_copy.out" => transpose_matrix;
    "aten::expand_copy.out" => expand;
    "aten::view_copy.out" => reshape;
    "aten::slice_copy.Tensor_out" => slice;
    "aten::narrow_copy.out" => narrow;
    "aten::select_copy.int_out" => select;
    "aten::unsqueeze_copy.out" => unsqueeze;
    "aten::squeeze_copy.dim_out" => squeeze_dim;
    "aten::squeeze_copy.dims_out" => squeeze_dims;
    "aten::flip.out" => flip;
    "aten::repeat.out" => repeat;
    "aten::diagonal_copy.out" => diagonal;
    "aten::unfold_copy.out" => unfold;
    "aten::as_strided_copy.out" => as_strided;
    "aten::pixel_shuffle.out" => pixel_shuffle;
    "aten::pixel_unshuffle.out" => pixel_unshuffle;
}
