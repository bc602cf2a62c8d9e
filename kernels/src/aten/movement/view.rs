//! Operators whose output is a view of their input.
//!
//! An operator only makes the view; the walk of `edgepack_compute::view` copies it.

use edgepack_executor::kernel::{KernelContext, KernelError, Prepare, Run};

use super::transfer::expect_same_type;
use crate::schema::arguments;
use edgepack_compute::view::View;

// The input of all.
arguments!("aten::view_copy.out"; SELF = "self");

/// A function that makes the view of an operator from its arguments.
pub type MakeView = fn(&KernelContext<'_>) -> Result<View, KernelError>;

/// Prepares an operator whose output `out` is a view of `self`.
pub fn prepare(args: &Prepare<'_>, out: usize, make: MakeView) -> Result<Box<dyn Run>, KernelError> {
    args.expect_len(out + 2)?;
    expect_same_type(args, SELF, out)?;
    Ok(Box::new(move |cx: &mut KernelContext<'_>| {
        let view = make(cx)?;
        cx.resize(out, &view.sizes)?;
        let views = cx.views();
        let mut target = views.out(out)?;
        let walk = view.walk(target.dim_order);
        let width = target.dtype.size().unwrap_or(1);
        if target.element_count() != 0 {
            walk.gather(width, views.tensor(SELF)?.bytes(), target.bytes_mut());
        }
        Ok(())
    }))
}
