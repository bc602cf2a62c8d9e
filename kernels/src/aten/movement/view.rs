//! Operators whose output is a view of their input.
//!
//! An operator only makes the view; the walk of `edgepack_compute::view` copies it.

use edgepack_executor::kernel::{KernelContext, KernelError, Prepare, Run};

use super::transfer::expect_same_type;
pub use edgepack_compute::view::View;

/// A function that makes the view of an operator from its arguments.
pub type MakeView = fn(&KernelContext<'_>) -> Result<View, KernelError>;

/// The first step of an operator whose output `out` is a view of argument 0.
pub fn prepare(args: &Prepare<'_>, out: usize, make: MakeView) -> Result<Box<dyn Run>, KernelError> {
    args.expect_len(out + 2)?;
    expect_same_type(args, 0, out)?;
    Ok(Box::new(move |cx: &mut KernelContext<'_>| {
        let view = make(cx)?;
        cx.resize(out, &view.sizes)?;
        let views = cx.views();
        let mut target = views.out(out)?;
        let walk = view.walk(target.dim_order);
        let width = target.dtype.size().unwrap_or(1);
        if target.element_count() != 0 {
            walk.gather(width, views.tensor(0)?.bytes(), target.bytes());
        }
        Ok(())
    }))
}
