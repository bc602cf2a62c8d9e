//! Copies: of the same type, to another type, to another dim order, onto a larger shape.

use edgepack_executor::kernel::{Alias, Kernel, KernelContext, KernelError, Prepare, Run};
use edgepack_format::tensor::Dims;

use super::row;
use super::transfer::{assign, conversion, expect_same_type};
use crate::check::expect_stretch;
use crate::schema::{arguments, position};
use edgepack_compute::transfer::SCRATCH;

// The input of all, and the source of the copies onto it.
arguments!("aten::copy.out"; SELF = "self", SRC = "src", COPIED = "out");

/// A copy of the input to `out`, sizes and all.
fn convert(args: &Prepare<'_>, out: usize) -> Result<Box<dyn Run>, KernelError> {
    args.expect_len(out + 2)?;
    let change = conversion(args.tensor(SELF)?.meta.dtype, args.tensor(out)?.meta.dtype)?;
    args.scratch(SCRATCH);
    Ok(Box::new(move |cx: &mut KernelContext<'_>| {
        let input = cx.meta(SELF)?.sizes;
        if input != cx.meta(out)?.sizes {
            let sizes = Dims::from_slice(input).unwrap_or_default();
            cx.resize(out, &sizes)?;
        }
        let views = cx.views();
        assign(change, &views.tensor(SELF)?, &mut views.out(out)?, views.scratch()?)
    }))
}

fn same(args: &Prepare<'_>, out: usize) -> Result<Box<dyn Run>, KernelError> {
    args.expect_len(out + 2)?;
    expect_same_type(args, SELF, out)?;
    convert(args, out)
}

/// `src`, stretched to the sizes of `self`, into `out`.
fn onto(args: &Prepare<'_>, out: usize, count: usize) -> Result<Box<dyn Run>, KernelError> {
    args.expect_len(count)?;
    let change = conversion(args.tensor(SRC)?.meta.dtype, args.tensor(out)?.meta.dtype)?;
    args.scratch(SCRATCH);
    Ok(Box::new(move |cx: &mut KernelContext<'_>| {
        let sizes = Dims::from_slice(cx.meta(SELF)?.sizes).unwrap_or_default();
        expect_stretch("src", cx.meta(SRC)?.sizes, &sizes)?;
        cx.resize(out, &sizes)?;
        let views = cx.views();
        assign(change, &views.tensor(SRC)?, &mut views.out(out)?, views.scratch()?)
    }))
}

/// A copy in the order of the output, which rewrites put behind what computes it in another: `self`, `out`.
pub(crate) static REORDERED: Kernel = Kernel {
    name: "edgepack::reordered.out",
    schema: "(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    alias: Alias::Disjoint,
    is_pure: true,
    prepare: |args| same(args, 1),
};

macro_rules! copies {
    ($($name:literal => $prepare:ident;)*) => {
        /// The operators of this table.
        pub const KERNELS: &[&Kernel] = &[
            $(&row($name, |args| $prepare(args, const { position($name, "out") })),)*
            &row("aten::copy.out", |args| onto(args, COPIED, COPIED + 2)),
            // Written in place: the arguments up to `non_blocking`, and the result.
            &row("aten::copy_", |args| onto(args, SELF, const { position("aten::copy_", "non_blocking") } + 2)),
        ];
    };
}

copies! {
    "aten::alias_copy.out" => same;
    "aten::detach_copy.out" => same;
    "aten::lift_fresh_copy.out" => same;
    "et_copy::_h2d_copy.out" => same;
    "et_copy::_d2h_copy.out" => same;
    "aten::clone.out" => same;
    "dim_order_ops::_clone_dim_order.out" => same;
    "dim_order_ops::_to_dim_order_copy.out" => convert;
    "aten::_to_copy.out" => convert;
}
