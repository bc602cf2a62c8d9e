//! Operators whose output is a view of their input.
//!
//! An operator only makes the view; the walk of `edgepack_compute::view` copies it. Where nothing that it is made of changes, it is
//! made in the first run and kept.

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
    let keeps = never_changes(args, out)? && !args.tensor(out)?.dynamic;
    let mut kept = None;
    Ok(Box::new(move |cx: &mut KernelContext<'_>| {
        let made;
        let walk = match &kept {
            Some(walk) => walk,
            None => {
                let view = make(cx)?;
                cx.resize(out, &view.sizes)?;
                made = view.walk(cx.meta(out)?.dim_order);
                if keeps { kept.insert(made) } else { &made }
            }
        };
        let views = cx.views();
        let mut target = views.out(out)?;
        let width = target.dtype.size().unwrap_or(1);
        if target.element_count() != 0 {
            walk.gather(width, views.tensor(SELF)?.bytes(), target.bytes_mut());
        }
        Ok(())
    }))
}

/// Returns whether sizes, and all arguments between `self` and `out`, are the same in every run.
pub fn never_changes(args: &Prepare<'_>, out: usize) -> Result<bool, KernelError> {
    let is_known = |arg| match (args.tensor(arg), args.ints(arg)) {
        (Ok(tensor), _) => !tensor.dynamic,
        (_, Ok(items)) => items.is_some(),
        _ => args.is_fixed(arg),
    };
    Ok((SELF..out).all(is_known))
}
