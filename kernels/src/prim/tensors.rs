//! Facts about tensors as numbers, a view that costs nothing where memory allows, and the append of loops.

use edgepack_executor::kernel::{Alias, Kernel, KernelContext, KernelError, Prepare, Run};
use edgepack_executor::tensor::Scalar;
use edgepack_executor::with_element;
use edgepack_format::scalar::{Bool, ScalarType};
use edgepack_format::tensor::Dims;

use super::numbers::write;
use crate::aten::movement::shape::infer_sizes;
use crate::aten::movement::transfer::expect_same_type;
use crate::dims::dim_of;
use crate::schema::{kernel, position};
use edgepack_compute::number::Cast;

fn size(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    const SELF: usize = position("aten::sym_size.int", "self");
    const DIM: usize = position("aten::sym_size.int", "dim");
    args.expect_len(DIM + 2)?;
    args.tensor(SELF)?;
    Ok(Box::new(|cx: &mut KernelContext<'_>| {
        let meta = cx.meta(SELF)?;
        let dim = cx.int(DIM)?;
        let size = match meta.sizes.get(dim_of("dim", dim, "self", meta.rank())?) {
            Some(&size) => size as i64,
            None => return Err(KernelError::argument(format!("`dim` is {dim}, `self` has 0 dimensions"))),
        };
        cx.set_int(DIM + 1, size)
    }))
}

fn count(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    const SELF: usize = position("aten::sym_numel", "self");
    args.expect_len(SELF + 2)?;
    args.tensor(SELF)?;
    Ok(Box::new(|cx: &mut KernelContext<'_>| {
        let count = cx.meta(SELF)?.element_count() as i64;
        cx.set_int(SELF + 1, count)
    }))
}

/// The first element as a number.
fn item(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    const SELF: usize = position("aten::_local_scalar_dense", "self");
    args.expect_len(SELF + 2)?;
    args.tensor(SELF)?;
    Ok(Box::new(|cx: &mut KernelContext<'_>| {
        let value = {
            let views = cx.views();
            let tensor = views.tensor(SELF)?;
            if tensor.element_count() == 0 {
                return Err(KernelError::argument("`self` has no element"));
            }
            let (dtype, bytes) = (tensor.dtype, tensor.bytes());
            with_element!(dtype, T => {
                let value: T = bytemuck::pod_read_unaligned(&bytes[..size_of::<T>()]);
                if dtype == ScalarType::BOOL {
                    Scalar::Bool(Cast::<Bool>::cast(value).get())
                } else if dtype.is_floating() {
                    Scalar::Double(value.cast())
                } else {
                    Scalar::Int(value.cast())
                }
            }, else => return Err(KernelError::argument(format!("`self` is {dtype}, which is not a number"))))
        };
        write(cx, SELF + 1, value)
    }))
}

/// `copy_to` grows to `index + 1` rows, the last of which is `copy_from`.
fn copy_index(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    const COPY_TO: usize = position("executorch_prim::et_copy_index.tensor", "copy_to");
    const COPY_FROM: usize = position("executorch_prim::et_copy_index.tensor", "copy_from");
    const INDEX: usize = position("executorch_prim::et_copy_index.tensor", "index");
    if !(INDEX + 1..=INDEX + 2).contains(&args.len()) {
        args.expect_len(INDEX + 1)?;
    }
    let (to, from) = (args.tensor(COPY_TO)?.meta, args.tensor(COPY_FROM)?.meta);
    if to.dtype != from.dtype {
        let (to, from) = (to.dtype, from.dtype);
        return Err(KernelError::argument(format!("`copy_to` is {to}, `copy_from` is {from}: the types differ")));
    }
    if to.rank() != from.rank() + 1 {
        let (to, from) = (to.rank(), from.rank());
        return Err(KernelError::argument(format!(
            "`copy_to` has {to} dimensions, `copy_from` has {from}, not one less"
        )));
    }
    if !to.is_contiguous() || !from.is_contiguous() {
        return Err(KernelError::unsupported("`copy_to` and `copy_from` must be contiguous"));
    }
    Ok(Box::new(|cx: &mut KernelContext<'_>| {
        let index = cx.int(INDEX)?;
        let (to, from) = (cx.meta(COPY_TO)?, cx.meta(COPY_FROM)?);
        if to.sizes[1..] != *from.sizes {
            return Err(KernelError::argument(format!(
                "`copy_to` has rows of {:?}, `copy_from` is {:?}",
                &to.sizes[1..],
                from.sizes
            )));
        }
        let Some(rows) = usize::try_from(index).ok().and_then(|index| index.checked_add(1)) else {
            return Err(KernelError::argument(format!("`index` is {index}, it must not be negative")));
        };
        let row = from.byte_len();
        let mut sizes = Dims::from_slice(to.sizes).unwrap_or_default();
        sizes[0] = rows;
        cx.resize(COPY_TO, &sizes)?;
        let views = cx.views();
        let from = views.tensor(COPY_FROM)?;
        let mut to = views.out(COPY_TO)?;
        to.bytes_mut()[(rows - 1) * row..][..row].copy_from_slice(from.bytes());
        Ok(())
    }))
}

/// The elements of `self` under other sizes: nothing to do but that where both are the same memory, else a copy.
fn view(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    const SELF: usize = position("executorch_prim::et_view.default", "self");
    const SIZE: usize = position("executorch_prim::et_view.default", "size");
    const OUT: usize = position("executorch_prim::et_view.default", "out");
    if !(OUT + 1..=OUT + 2).contains(&args.len()) {
        args.expect_len(OUT + 1)?;
    }
    expect_same_type(args, SELF, OUT)?;
    Ok(Box::new(|cx: &mut KernelContext<'_>| {
        let sizes = infer_sizes(cx.ints(SIZE)?.iter(), cx.meta(SELF)?.element_count())?;
        cx.resize(OUT, &sizes)?;
        let views = cx.views();
        let input = views.tensor(SELF)?;
        if !input.is_in_place() {
            views.out(OUT)?.bytes_mut().copy_from_slice(input.bytes());
        }
        Ok(())
    }))
}

/// The operators of this table.
pub const KERNELS: &[&Kernel] = &[
    &kernel("aten::sym_size.int", Alias::Disjoint, size),
    &kernel("aten::sym_numel", Alias::Disjoint, count),
    &kernel("aten::_local_scalar_dense", Alias::Disjoint, item),
    &kernel("executorch_prim::et_copy_index.tensor", Alias::Disjoint, copy_index),
    &kernel("executorch_prim::et_view.default", Alias::SameRange, view),
];
