//! Copies every index of which comes from another one, dimension by dimension: rolls, and padding with what is there.
//! And the triangles of matrices.

use edgepack_format::tensor::Dims;

use crate::error::{Error, ErrorKind, expect_elements};
use crate::layout::{Layout, reach};

/// The index of the input that an index of the output comes from, along one dimension.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Shift {
    /// The elements beyond the ends.
    pub beyond: Beyond,
    /// Elements that the input is moved by.
    pub by: i64,
    /// Elements of the input.
    pub size: i64,
}

/// The elements beyond the ends of a dimension.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Beyond {
    /// The other end comes in.
    #[default]
    Wrap,
    /// The input goes on backwards, without its last element; by less than the size.
    Reflect,
    /// The last element goes on.
    Repeat,
}

impl Shift {
    /// Returns the shifts that leave sizes as they are.
    pub fn none(sizes: &[usize]) -> Dims<Shift> {
        Dims::collect(sizes.iter().map(|&size| Shift { beyond: Beyond::Wrap, by: 0, size: size as i64 }))
            .unwrap_or_default()
    }

    fn index(self, out: usize) -> usize {
        let at = out as i64 - self.by;
        let last = self.size - 1;
        (match self.beyond {
            Beyond::Wrap => at.rem_euclid(self.size),
            Beyond::Reflect if at < 0 => -at,
            Beyond::Reflect if at > last => 2 * last - at,
            Beyond::Reflect => at,
            Beyond::Repeat => at.min(last).max(0),
        }) as usize
    }

    /// Returns whether every index of an output of this size comes from one of the input.
    fn covers(self, out: usize) -> bool {
        out == 0 || self.size > 0 && [0, out - 1].into_iter().all(|end| self.index(end) < self.size as usize)
    }
}

/// Copies elements of `width` bytes to the indices of an output that the shifts say, one for each dimension. The input has
/// these strides, and the sizes of the shifts.
///
/// # Errors
///
/// [`ErrorKind::Geometry`] if there are other numbers of dimensions, an index comes from outside of the input, or a slice is
/// shorter than the sizes say.
///
/// ```
/// use edgepack_compute::layout::Layout;
/// use edgepack_compute::shift::{Beyond, Shift, copy_shifted};
///
/// let out = Layout { sizes: &[5], strides: &[1], dim_order: &[0] };
/// let mut to = [0; 5];
/// copy_shifted(1, (&[1], &[1, 2, 3]), &[Shift { beyond: Beyond::Reflect, by: 1, size: 3 }], (out, &mut to))?;
/// assert_eq!(to, [2, 1, 2, 3, 2]);
/// # Ok::<(), edgepack_compute::Error>(())
/// ```
pub fn copy_shifted(
    width: usize,
    (strides, from): (&[usize], &[u8]),
    shifts: &[Shift],
    (out, to): (Layout<'_>, &mut [u8]),
) -> Result<(), Error> {
    let fit = [strides.len(), shifts.len()] == [out.rank(); 2]
        && shifts.iter().zip(out.sizes).all(|(shift, &size)| shift.covers(size));
    if !fit {
        let message = format!("indices of an output of sizes {:?} come from outside of {shifts:?}", out.sizes);
        return Err(Error::new(ErrorKind::Geometry, message));
    }
    if out.element_count() == 0 {
        return Ok(());
    }
    let read = reach(shifts.iter().map(|shift| shift.size as usize).zip(strides.iter().copied()));
    let written = reach(out.sizes.iter().copied().zip(out.strides.iter().copied()));
    expect_elements("the input", from.len() / width.max(1), read)?;
    expect_elements("the output", to.len() / width.max(1), written)?;
    let Some((&inner, outer)) = out.sizes.split_last() else {
        to[..width].copy_from_slice(&from[..width]);
        return Ok(());
    };
    let last = outer.len();
    for flat in 0..outer.iter().product::<usize>() {
        let (mut rest, mut source, mut target) = (flat, 0, 0);
        for dim in (0..last).rev() {
            let index = rest % out.sizes[dim];
            rest /= out.sizes[dim];
            target += index * out.strides[dim];
            source += shifts[dim].index(index) * strides[dim];
        }
        for index in 0..inner {
            let source = (source + shifts[last].index(index) * strides[last]) * width;
            let target = (target + index * out.strides[last]) * width;
            to[target..target + width].copy_from_slice(&from[source..source + width]);
        }
    }
    Ok(())
}

/// Copies the lower triangles of contiguous matrices of `rows` by `columns` elements of `width` bytes, up to a diagonal
/// counted from the main one, with zeros above.
///
/// ```
/// let mut to = [9; 4];
/// edgepack_compute::shift::lower_triangles(1, [2, 2], 0, &[1, 2, 3, 4], &mut to);
/// assert_eq!(to, [1, 0, 3, 4]);
/// ```
pub fn lower_triangles(width: usize, [rows, columns]: [usize; 2], diagonal: i64, from: &[u8], to: &mut [u8]) {
    if rows == 0 || columns == 0 || width == 0 {
        return;
    }
    let lines = from.chunks_exact(columns * width).zip(to.chunks_exact_mut(columns * width));
    for (line, (from, to)) in lines.enumerate() {
        let below = diagonal.saturating_add((line % rows) as i64 + 1).min(columns as i64).max(0) as usize * width;
        to[..below].copy_from_slice(&from[..below]);
        to[below..].fill(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shifted(beyond: Beyond, by: i64, out: usize) -> Result<Vec<u8>, ErrorKind> {
        let mut to = vec![0; out];
        let out = Layout { sizes: &[out], strides: &[1], dim_order: &[0] };
        let shifts = [Shift { beyond, by, size: 3 }];
        copy_shifted(1, (&[1], &[1, 2, 3]), &shifts, (out, &mut to)).map_err(|error| error.kind)?;
        Ok(to)
    }

    #[test]
    fn every_kind_of_end() {
        assert_eq!(shifted(Beyond::Wrap, 1, 3).unwrap(), [3, 1, 2]);
        assert_eq!(shifted(Beyond::Repeat, 2, 6).unwrap(), [1, 1, 1, 2, 3, 3]);
        assert_eq!(shifted(Beyond::Repeat, -1, 1).unwrap(), [2]);
        assert_eq!(shifted(Beyond::Reflect, 2, 7).unwrap(), [3, 2, 1, 2, 3, 2, 1]);
        assert_eq!(shifted(Beyond::Reflect, 3, 3).unwrap_err(), ErrorKind::Geometry);
    }

    #[test]
    fn dimensions_are_shifted_by_themselves() {
        // Columns are rolled, rows repeated; the input is in column order.
        let out = Layout { sizes: &[3, 2], strides: &[2, 1], dim_order: &[0, 1] };
        let shifts = [Shift { beyond: Beyond::Repeat, by: 1, size: 2 }, Shift { beyond: Beyond::Wrap, by: 1, size: 2 }];
        let mut to = [0; 6];
        copy_shifted(1, (&[1, 2], &[1, 3, 2, 4]), &shifts, (out, &mut to)).unwrap();
        assert_eq!(to, [2, 1, 2, 1, 4, 3]);
        assert!(copy_shifted(1, (&[1, 2], &[1, 3, 2]), &shifts, (out, &mut to)).is_err());
    }
}
