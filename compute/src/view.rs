//! Views: tensors whose dimensions go through the memory of another in one or more nested strides.
//!
//! A view says where element (0, 0, …) is and the strides of each of its dimensions; whatever the dim orders of both
//! tensors are, its walk is right.

use edgepack_format::tensor::Dims;

use crate::error::{Error, ErrorKind};
use crate::layout::Layout;
use crate::walk::{Axis, Walk};

/// A view of a tensor.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// The sizes of the result.
    pub sizes: Dims,
    /// The first element, in elements of the input.
    pub start: usize,
    /// Strides, outermost first within a dimension, and the dimension each belongs to.
    axes: Dims<Axis>,
    dims: Dims<u8>,
}

/// A view has more dimensions or nested strides than a tensor may have.
fn too_many() -> Error {
    Error::new(ErrorKind::Unsupported, "the result has more than 16 dimensions")
}

impl View {
    /// Returns a view of no dimensions: one element.
    pub fn starting_at(start: usize) -> View {
        View { start, ..View::default() }
    }

    /// Appends a dimension of one stride, in elements; negative to walk backwards, 0 to repeat.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`] if there are 16 already.
    pub fn push(&mut self, size: usize, stride: isize) -> Result<(), Error> {
        self.push_nested(&[Axis { size, stride }])
    }

    /// Appends a dimension of nested strides, outermost first; its size is the product of theirs.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`] if there are 16 dimensions or strides already, or the size is not a number.
    ///
    /// ```
    /// use edgepack_compute::view::View;
    /// use edgepack_compute::walk::Axis;
    ///
    /// // Pairs of elements that are three apart, each repeated.
    /// let mut view = View::default();
    /// view.push_nested(&[Axis { size: 2, stride: 3 }, Axis { size: 2, stride: 0 }])?;
    /// let mut to = [0; 4];
    /// view.walk(&[0]).gather(1, &[5, 6, 7, 8], &mut to);
    /// assert_eq!((&*view.sizes, to), (&[4][..], [5, 5, 8, 8]));
    /// # Ok::<(), edgepack_compute::Error>(())
    /// ```
    pub fn push_nested(&mut self, axes: &[Axis]) -> Result<(), Error> {
        let dim = self.sizes.len() as u8;
        let size = axes.iter().try_fold(1usize, |size, axis| size.checked_mul(axis.size)).ok_or_else(too_many)?;
        self.sizes.push(size).ok_or_else(too_many)?;
        for &axis in axes.iter().filter(|axis| axis.size != 1) {
            self.axes.push(axis).ok_or_else(too_many)?;
            self.dims.push(dim).ok_or_else(too_many)?;
        }
        Ok(())
    }

    /// Returns every dimension of a tensor as it is.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`] if there are more than 16.
    pub fn whole<'a>(tensor: impl Into<Layout<'a>>) -> Result<View, Error> {
        let (tensor, mut view) = (tensor.into(), View::default());
        for (&size, &stride) in tensor.sizes.iter().zip(tensor.strides) {
            view.push(size, stride as isize)?;
        }
        Ok(view)
    }

    /// Returns the walk over the elements in the memory order of an output of the sizes of the view.
    pub fn walk(&self, dim_order: &[u8]) -> Walk {
        let axes = dim_order.iter().flat_map(|&dim| {
            let own = self.dims.iter().zip(&*self.axes).filter(move |(owner, _)| **owner == dim);
            own.map(|(_, axis)| *axis)
        });
        Walk::new(axes, self.start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_are_walked_in_the_order_of_their_output() {
        let tensor = Layout { sizes: &[2, 3], strides: &[3, 1], dim_order: &[0, 1] };
        let view = View::whole(tensor).unwrap();
        let gathered = |order: &[u8]| {
            let mut to = [0u8; 6];
            view.walk(order).gather(1, &[0, 1, 2, 3, 4, 5], &mut to);
            to
        };
        assert_eq!((gathered(&[0, 1]), gathered(&[1, 0])), ([0, 1, 2, 3, 4, 5], [0, 3, 1, 4, 2, 5]));
    }

    #[test]
    fn there_are_sixteen_dimensions_at_most() {
        let mut view = View::starting_at(0);
        (0..16).for_each(|_| view.push(2, 1).unwrap());
        assert_eq!(view.push(2, 1).unwrap_err().kind, ErrorKind::Unsupported);
        let mut view = View::default();
        let most = Axis { size: usize::MAX, stride: 1 };
        assert_eq!(view.push_nested(&[most, most]).unwrap_err().kind, ErrorKind::Unsupported);
    }
}
