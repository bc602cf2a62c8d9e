//! Outputs every index of which comes from an index of the input, dimension by dimension: rolls, and padding with what
//! is there. And the triangle of a matrix. The loops are those of `edgepack_compute::shift`.

use edgepack_executor::kernel::{Kernel, KernelContext, KernelError, Prepare, Run};
use edgepack_format::tensor::Dims;

use super::row;
use super::transfer::expect_same_type;
use crate::dims::dim_of;
use crate::schema::arguments;
use edgepack_compute::layout::Layout;
use edgepack_compute::shift::{Beyond, Shift, copy_shifted, lower_triangles};

arguments!("aten::roll.out"; SELF = "self", SHIFTS = "shifts", DIMS = "dims", ROLLED = "out");
arguments!("aten::reflection_pad1d.out"; PADDING = "padding", PADDED = "out");
arguments!("aten::tril.out"; DIAGONAL = "diagonal", TRIANGLE = "out");

/// Copies every element of the output from where its index comes from.
fn copy(cx: &mut KernelContext<'_>, out: usize, shifts: &Dims<Shift>) -> Result<(), KernelError> {
    let views = cx.views();
    let (input, mut target) = (views.tensor(SELF)?, views.out(out)?);
    let meta = target.meta();
    let width = meta.dtype.size().unwrap_or(1);
    Ok(copy_shifted(width, (input.strides, input.bytes()), shifts, (Layout::from(&meta), target.bytes_mut()))?)
}

fn roll(cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
    let (meta, shifts, dims) = (cx.meta(SELF)?, cx.ints(SHIFTS)?, cx.ints(DIMS)?);
    if shifts.len() != dims.len() || shifts.is_empty() {
        let (shifts, dims) = (shifts.len(), dims.len());
        return Err(KernelError::argument(format!("`shifts` has {shifts} items, `dims` has {dims}")));
    }
    let sizes = Dims::from_slice(meta.sizes).unwrap_or_default();
    let mut shifted = Shift::none(&sizes);
    for (shift, dim) in shifts.iter().zip(dims.iter()) {
        let dim = dim_of("dims", dim, "self", meta.rank())?;
        if let Some(source) = shifted.get_mut(dim).filter(|source| source.size > 0) {
            source.by = (source.by + shift.rem_euclid(source.size)) % source.size;
        }
    }
    cx.resize(ROLLED, &sizes)?;
    copy(cx, ROLLED, &shifted)
}

/// Padding of the last `count` dimensions, the last one first: before and after.
fn pad(cx: &mut KernelContext<'_>, beyond: Beyond, count: usize) -> Result<(), KernelError> {
    let (meta, padding) = (cx.meta(SELF)?, cx.ints(PADDING)?);
    let rank = meta.rank();
    if padding.len() != 2 * count || !(count..=count + 2).contains(&rank) {
        let items = padding.len();
        return Err(KernelError::argument(format!("`padding` has {items} items, `self` has {rank} dimensions")));
    }
    let mut sizes = Dims::from_slice(meta.sizes).unwrap_or_default();
    let mut shifted = Shift::none(&sizes);
    for pair in 0..count {
        let dim = rank - 1 - pair;
        let (before, after) = (padding.at(2 * pair).unwrap_or(0), padding.at(2 * pair + 1).unwrap_or(0));
        let size = sizes[dim] as i64;
        let most = match beyond {
            Beyond::Reflect => size - 1,
            Beyond::Repeat | Beyond::Wrap => i64::from(i32::MAX),
        };
        let padded = before.saturating_add(after).saturating_add(size);
        if before > most || after > most || padded < 1 || size == 0 {
            return Err(KernelError::argument(format!("`padding` {before} and {after} do not fit {size} elements")));
        }
        sizes[dim] = padded as usize;
        shifted[dim] = Shift { beyond, by: before, size };
    }
    cx.resize(PADDED, &sizes)?;
    copy(cx, PADDED, &shifted)
}

fn padding<const COUNT: usize>(args: &Prepare<'_>, beyond: Beyond) -> Result<Box<dyn Run>, KernelError> {
    args.expect_len(PADDED + 2)?;
    expect_same_type(args, SELF, PADDED)?;
    Ok(Box::new(move |cx: &mut KernelContext<'_>| pad(cx, beyond, COUNT)))
}

/// The lower triangle of every matrix, zeros above diagonal `diagonal`.
fn tril(cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
    let meta = cx.meta(SELF)?;
    let sizes = Dims::from_slice(meta.sizes).unwrap_or_default();
    let &[.., rows, columns] = &*sizes else {
        return Err(KernelError::argument(format!("`self` has {} dimensions, at least 2 are needed", meta.rank())));
    };
    let diagonal = cx.int(DIAGONAL)?;
    cx.resize(TRIANGLE, &sizes)?;
    let views = cx.views();
    let (input, mut out) = (views.tensor(SELF)?, views.out(TRIANGLE)?);
    let width = out.dtype.size().unwrap_or(1);
    lower_triangles(width, [rows, columns], diagonal, input.bytes(), out.bytes_mut());
    Ok(())
}

/// The operators of this table.
pub const KERNELS: &[&Kernel] = &[
    &row("aten::roll.out", |args| {
        args.expect_len(ROLLED + 2)?;
        expect_same_type(args, SELF, ROLLED)?;
        Ok(Box::new(roll))
    }),
    &row("aten::reflection_pad1d.out", |args| padding::<1>(args, Beyond::Reflect)),
    &row("aten::reflection_pad2d.out", |args| padding::<2>(args, Beyond::Reflect)),
    &row("aten::reflection_pad3d.out", |args| padding::<3>(args, Beyond::Reflect)),
    &row("aten::replication_pad1d.out", |args| padding::<1>(args, Beyond::Repeat)),
    &row("aten::replication_pad2d.out", |args| padding::<2>(args, Beyond::Repeat)),
    &row("aten::replication_pad3d.out", |args| padding::<3>(args, Beyond::Repeat)),
    &row("aten::tril.out", |args| {
        args.expect_len(TRIANGLE + 2)?;
        expect_same_type(args, SELF, TRIANGLE)?;
        if !args.tensor(SELF)?.meta.is_contiguous() || !args.tensor(TRIANGLE)?.meta.is_contiguous() {
            return Err(KernelError::unsupported("`self` and `out` must be contiguous"));
        }
        Ok(Box::new(tril))
    }),
];
