//! The engine of views: an output every dimension of which steps through the input in one or more nested strides.
//!
//! An operator only says where element (0, 0, …) is and how far each dimension of its result steps; whatever the dim
//! orders of input and output are, the result is right.

use edgepack_executor::kernel::{KernelContext, KernelError, Prepare, Run};
use edgepack_executor::tensor::TensorMeta;
use edgepack_format::tensor::Dims;

use super::transfer::expect_same_type;
use crate::broadcast::{Axis, Walk};

/// A view of a tensor.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// The sizes of the result.
    pub sizes: Dims,
    /// The first element, in elements of the input.
    pub start: usize,
    /// Strides, outermost first within a dimension, and the dimension each belongs to.
    steps: Dims<Axis>,
    dims: Dims<u8>,
}

/// A view has more dimensions or nested strides than a tensor may have.
fn too_many() -> KernelError {
    KernelError::unsupported("the result has more than 16 dimensions")
}

impl View {
    /// A view of no dimensions: one element.
    pub fn starting_at(start: usize) -> View {
        View { start, ..View::default() }
    }

    /// Appends a dimension of one stride.
    pub fn push(&mut self, size: usize, stride: isize) -> Result<(), KernelError> {
        self.push_nested(&[Axis { size, stride }])
    }

    /// Appends a dimension of nested strides, outermost first; its size is the product of theirs.
    pub fn push_nested(&mut self, steps: &[Axis]) -> Result<(), KernelError> {
        let dim = self.sizes.len() as u8;
        let size = steps.iter().try_fold(1usize, |size, step| size.checked_mul(step.size)).ok_or_else(too_many)?;
        self.sizes.push(size).ok_or_else(too_many)?;
        for &step in steps.iter().filter(|step| step.size != 1) {
            self.steps.push(step).ok_or_else(too_many)?;
            self.dims.push(dim).ok_or_else(too_many)?;
        }
        Ok(())
    }

    /// Every dimension of a tensor as it is.
    pub fn whole(meta: &TensorMeta<'_>) -> Result<View, KernelError> {
        let mut view = View::default();
        for (&size, &stride) in meta.sizes.iter().zip(meta.strides) {
            view.push(size, stride as isize)?;
        }
        Ok(view)
    }

    /// The elements in the memory order of an output of the sizes of the view.
    pub fn walk(&self, dim_order: &[u8]) -> Walk {
        let steps = dim_order.iter().flat_map(|&dim| {
            let own = self.dims.iter().zip(&*self.steps).filter(move |(owner, _)| **owner == dim);
            own.map(|(_, step)| *step)
        });
        Walk::new(steps, self.start)
    }
}

/// What makes the view of an operator from its arguments.
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
