//! Stacks of matrices in tensors of any dim order, read and written one matrix at a time, as doubles.

use edgepack_format::tensor::Dims;

use crate::error::{Error, ErrorKind};
use crate::layout::Layout;
use crate::number::Cast;

/// Places of the matrices of a tensor. A vector counts as a matrix of one column.
#[derive(Clone, Copy, Debug)]
pub struct MatrixStack {
    outer: Dims,
    outer_strides: Dims,
    /// Rows of each matrix.
    pub rows: usize,
    /// Columns of each matrix.
    pub columns: usize,
    strides: [usize; 2],
}

impl MatrixStack {
    /// Returns the stack whose matrices are the last two dimensions, or with `vectors` the last one; `None` if there are
    /// not as many.
    pub fn new<'a>(layout: impl Into<Layout<'a>>, vectors: bool) -> Option<MatrixStack> {
        let layout = layout.into();
        let outer = layout.rank().checked_sub(if vectors { 1 } else { 2 })?;
        let columns = if vectors { 1 } else { layout.sizes[outer + 1] };
        let stride = if vectors { 0 } else { layout.strides[outer + 1] };
        Some(MatrixStack {
            outer: Dims::from_slice(&layout.sizes[..outer])?,
            outer_strides: Dims::from_slice(&layout.strides[..outer])?,
            rows: layout.sizes[outer],
            columns,
            strides: [layout.strides[outer], stride],
        })
    }

    /// Returns the sizes of the stack.
    pub fn outer(&self) -> &[usize] {
        &self.outer
    }

    /// Returns the number of elements of one matrix.
    pub fn elements(&self) -> usize {
        self.rows * self.columns
    }

    /// Copies matrix `at` of a stack of sizes `outer`, row by row; a size of 1 of this stack is repeated for all.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Data`] if there is no such matrix among the values: a stack of none next to a stack of some.
    ///
    /// ```
    /// use edgepack_compute::algebra::stack::MatrixStack;
    /// use edgepack_compute::layout::Layout;
    ///
    /// // One matrix, in column order.
    /// let layout = Layout { sizes: &[2, 2], strides: &[1, 2], dim_order: &[1, 0] };
    /// let mut matrix = [0.0; 4];
    /// MatrixStack::new(layout, false).unwrap().read(&[1.0f32, 2.0, 3.0, 4.0], &[], 0, &mut matrix)?;
    /// assert_eq!(matrix, [1.0, 3.0, 2.0, 4.0]);
    /// # Ok::<(), edgepack_compute::Error>(())
    /// ```
    pub fn read<T: Copy + Cast<f64>>(
        &self,
        values: &[T],
        outer: &[usize],
        at: usize,
        to: &mut [f64],
    ) -> Result<(), Error> {
        for (to, place) in to.iter_mut().zip(self.places(outer, at)) {
            *to = values.get(place).ok_or_else(outside)?.cast();
        }
        Ok(())
    }

    /// Puts matrix `at` of a stack of sizes `outer` into its place.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Data`] if the values have no such place.
    pub fn write<T: Copy>(&self, values: &mut [T], outer: &[usize], at: usize, from: &[f64]) -> Result<(), Error>
    where
        f64: Cast<T>,
    {
        for (place, from) in self.places(outer, at).zip(from) {
            *values.get_mut(place).ok_or_else(outside)? = from.cast();
        }
        Ok(())
    }

    /// The places of the elements of a matrix, row by row.
    fn places(&self, outer: &[usize], mut at: usize) -> impl Iterator<Item = usize> + use<> {
        let skip = outer.len() - self.outer.len().min(outer.len());
        let mut start = 0;
        for dim in (0..outer.len()).rev() {
            let index = at % outer[dim].max(1);
            at /= outer[dim].max(1);
            if let Some(own) = dim.checked_sub(skip).filter(|&own| self.outer[own] != 1) {
                start += index * self.outer_strides[own];
            }
        }
        let (columns, [down, right]) = (self.columns, self.strides);
        (0..self.elements()).map(move |i| start + i / columns * down + i % columns * right)
    }
}

fn outside() -> Error {
    Error::new(ErrorKind::Data, "stacks of matrices whose sizes do not fit together")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_matrix_stands_for_all_of_a_stack() {
        let layout = Layout { sizes: &[2, 1, 1, 2], strides: &[2, 2, 2, 1], dim_order: &[0, 1, 2, 3] };
        let stack = MatrixStack::new(layout, false).unwrap();
        let read = |at: usize| {
            let mut matrix = [0.0; 2];
            stack.read(&[1i32, 2, 3, 4], &[2, 3], at, &mut matrix).unwrap();
            matrix
        };
        assert_eq!([read(0), read(2), read(3)], [[1.0, 2.0], [1.0, 2.0], [3.0, 4.0]]);
        let mut values = [0f32; 4];
        stack.write(&mut values, &[2, 1], 1, &[5.0, 6.0]).unwrap();
        assert_eq!(values, [0.0, 0.0, 5.0, 6.0]);
        assert_eq!(stack.read(&[1i32; 3], &[2, 1], 1, &mut [0.0; 2]).unwrap_err().kind, ErrorKind::Data);
        assert!(MatrixStack::new(Layout { sizes: &[2], strides: &[1], dim_order: &[0] }, false).is_none());
    }
}
