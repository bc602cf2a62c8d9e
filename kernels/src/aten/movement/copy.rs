//! Copies: of the same type, to another type, to another dim order, onto a larger shape.

use edgepack_executor::kernel::{Kernel, KernelContext, KernelError, Prepare, Run};
use edgepack_format::tensor::Dims;

use super::row;
use super::transfer::{SCRATCH, assign, conversion, expect_same_type};
use crate::aten::elementwise::schema::UNARY;
use crate::broadcast::expect_stretch;

/// A copy of argument 0 to `out`, sizes and all.
fn convert(args: &Prepare<'_>, out: usize) -> Result<Box<dyn Run>, KernelError> {
    args.expect_len(out + 2)?;
    let change = conversion(args.tensor(0)?.meta.dtype, args.tensor(out)?.meta.dtype)?;
    args.scratch(SCRATCH);
    Ok(Box::new(move |cx: &mut KernelContext<'_>| {
        let input = cx.meta(0)?.sizes;
        if input != cx.meta(out)?.sizes {
            let sizes = Dims::from_slice(input).unwrap_or_default();
            cx.resize(out, &sizes)?;
        }
        let views = cx.views();
        assign(change, &views.tensor(0)?, &mut views.out(out)?, views.scratch()?)
    }))
}

fn same<const OUT: usize>(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    args.expect_len(OUT + 2)?;
    expect_same_type(args, 0, OUT)?;
    convert(args, OUT)
}

/// `src` (argument 1), stretched to the sizes of `self` (argument 0), into `out`.
fn onto(args: &Prepare<'_>, out: usize, count: usize) -> Result<Box<dyn Run>, KernelError> {
    args.expect_len(count)?;
    let change = conversion(args.tensor(1)?.meta.dtype, args.tensor(out)?.meta.dtype)?;
    args.scratch(SCRATCH);
    Ok(Box::new(move |cx: &mut KernelContext<'_>| {
        let sizes = Dims::from_slice(cx.meta(0)?.sizes).unwrap_or_default();
        expect_stretch("src", cx.meta(1)?.sizes, &sizes)?;
        cx.resize(out, &sizes)?;
        let views = cx.views();
        assign(change, &views.tensor(1)?, &mut views.out(out)?, views.scratch()?)
    }))
}

/// The operators of this table.
pub const KERNELS: &[&Kernel] = &[
    &row("aten::alias_copy.out", UNARY, same::<1>),
    &row("aten::detach_copy.out", UNARY, same::<1>),
    &row("aten::lift_fresh_copy.out", UNARY, same::<1>),
    &row("et_copy::_h2d_copy.out", UNARY, same::<1>),
    &row("et_copy::_d2h_copy.out", UNARY, same::<1>),
    &row(
        "aten::clone.out",
        "(Tensor self, *, MemoryFormat? memory_format=None, Tensor(a!) out) -> Tensor(a!)",
        same::<2>,
    ),
    &row(
        "dim_order_ops::_clone_dim_order.out",
        "(Tensor self, *, bool non_blocking=False, int[]? dim_order=None, Tensor(a!) out) -> Tensor(a!)",
        same::<3>,
    ),
    &row(
        "dim_order_ops::_to_dim_order_copy.out",
        "(Tensor self, *, bool non_blocking=False, int[]? dim_order=None, Tensor(a!) out) -> Tensor(a!)",
        |args| convert(args, 3),
    ),
    &row(
        "aten::_to_copy.out",
        "(Tensor self, *, bool non_blocking=False, MemoryFormat? memory_format=None, Tensor(a!) out) -> Tensor(a!)",
        |args| convert(args, 3),
    ),
    &row(
        "aten::copy.out",
        "(Tensor self, Tensor src, bool non_blocking=False, *, Tensor(a!) out) -> Tensor(a!)",
        |args| onto(args, 3, 5),
    ),
    &row("aten::copy_", "(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)", |args| {
        onto(args, 0, 4)
    }),
];
