//! Elements by what they are: the coordinates of those that are not zero, and those under the true elements of a mask.
//!
//! Masks are bytes, true where they are not 0; masks and inputs stretch to common sizes and are walked in index order.

use std::convert::Infallible;

use edgepack_format::scalar::Bool;

use crate::error::{Error, ErrorKind};
use crate::layout::Layout;
use crate::number::{Cast, Number};
use crate::walk::Walk;

/// Returns how many elements are not zero; each has so many numbers, next to each other and at any alignment, and is zero
/// if all of them are: a complex number has two.
pub fn count_true<T: Number>(numbers: usize, bytes: &[u8]) -> usize {
    each_true::<T>(numbers, bytes).count()
}

/// Writes the coordinates of the elements that are not zero, a row each, in the order of memory, which is that of a
/// contiguous tensor of `sizes`. Rows and columns of the output are `strides` apart.
///
/// # Panics
///
/// If the output has fewer rows than there are such elements, or fewer columns than dimensions.
///
/// ```
/// let (values, mut to) = ([0u8, 7, 0, 9], [0; 4]);
/// edgepack_compute::mask::coordinates::<u8>(1, &[2, 2], &values, (&mut to, [2, 1]));
/// assert_eq!(to, [0, 1, 1, 1]);
/// ```
pub fn coordinates<T: Number>(numbers: usize, sizes: &[usize], bytes: &[u8], (out, strides): (&mut [i64], [usize; 2])) {
    for (row, mut at) in each_true::<T>(numbers, bytes).enumerate() {
        for (dim, &size) in sizes.iter().enumerate().rev() {
            out[row * strides[0] + dim * strides[1]] = (at % size) as i64;
            at /= size;
        }
    }
}

/// The places of the elements that are not zero.
fn each_true<T: Number>(numbers: usize, bytes: &[u8]) -> impl Iterator<Item = usize> + '_ {
    let is_true = |number: &[u8]| Cast::<Bool>::cast(bytemuck::pod_read_unaligned::<T>(number)).get();
    let elements = bytes.chunks_exact(numbers.max(1) * size_of::<T>()).enumerate();
    elements.filter(move |(_, element)| element.chunks_exact(size_of::<T>()).any(is_true)).map(|(at, _)| at)
}

/// Calls `visit` with every element of a mask stretched to some sizes, block by block.
fn each_masked<E>(
    sizes: &[usize],
    (mask, bytes): (Layout<'_>, &[u8]),
    mut visit: impl FnMut(usize, bool) -> Result<(), E>,
) -> Result<(), E> {
    let walk = Walk::stretched_by_index(sizes, mask);
    let mut cursor = walk.cursor();
    let count: usize = sizes.iter().product();
    let mut block = [0u8; 256];
    for start in (0..count).step_by(block.len()) {
        let len = block.len().min(count - start);
        cursor.gather(1, bytes, &mut block[..len]);
        for (at, &byte) in block[..len].iter().enumerate() {
            visit(start + at, byte != 0)?;
        }
    }
    Ok(())
}

/// Returns how many elements of a mask stretched to some sizes are true.
pub fn count_masked(sizes: &[usize], mask: (Layout<'_>, &[u8])) -> usize {
    let mut count = 0;
    let Ok(()) = each_masked(sizes, mask, |_, set| {
        count += usize::from(set);
        Ok::<(), Infallible>(())
    });
    count
}

/// Copies the elements of an input, `width` bytes each, that are under true elements of a mask; both stretch to `sizes`.
/// Elements for which there is no place are left out.
pub fn select(
    width: usize,
    sizes: &[usize],
    (input, from): (Layout<'_>, &[u8]),
    mask: (Layout<'_>, &[u8]),
    to: &mut [u8],
) {
    let walk = Walk::stretched_by_index(sizes, input);
    let mut cursor = walk.cursor();
    let mut places = to.chunks_exact_mut(width);
    // The widest elements are two words.
    let mut element = [0u64; 2];
    let Ok(()) = each_masked(sizes, mask, |_, set| {
        let element = &mut bytemuck::cast_slice_mut::<u64, u8>(&mut element)[..width];
        cursor.gather(width, from, element);
        if set && let Some(place) = places.next() {
            place.copy_from_slice(element);
        }
        Ok::<(), Infallible>(())
    });
}

/// Copies an input, elements of `width` bytes, but where a mask is true the elements of a source, one after the other. Input
/// and mask stretch to `sizes`, those of the output, which is contiguous.
///
/// # Errors
///
/// [`ErrorKind::Data`] if the source has fewer elements than the mask is true.
///
/// # Panics
///
/// If the output does not have the sizes.
pub fn scatter(
    width: usize,
    sizes: &[usize],
    (input, from): (Layout<'_>, &[u8]),
    mask: (Layout<'_>, &[u8]),
    source: &[u8],
    to: &mut [u8],
) -> Result<(), Error> {
    Walk::stretched_by_index(sizes, input).cursor().gather(width, from, to);
    let mut elements = source.chunks_exact(width);
    each_masked(sizes, mask, |at, set| {
        if !set {
            return Ok(());
        }
        let Some(element) = elements.next() else {
            let have = source.len() / width;
            let message = format!("`source` has {have} elements, `mask` asks for more");
            return Err(Error::new(ErrorKind::Data, message));
        };
        to[at * width..][..width].copy_from_slice(element);
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: Layout<'_> = Layout { sizes: &[3], strides: &[1], dim_order: &[0] };

    #[test]
    fn zeros_of_any_sign_do_not_count() {
        let floats = [0.0f32, -0.0, f32::NAN, 2.0];
        assert_eq!(count_true::<f32>(1, bytemuck::cast_slice(&floats)), 2);
        assert_eq!(count_true::<f32>(2, bytemuck::cast_slice(&floats)), 1);
    }

    #[test]
    fn masks_stretch_over_rows() {
        let (matrix, mask) = (Layout { sizes: &[2, 3], strides: &[3, 1], dim_order: &[0, 1] }, (LINE, &[1, 0, 3][..]));
        assert_eq!(count_masked(&[2, 3], mask), 4);
        let mut to = [0; 4];
        select(1, &[2, 3], (matrix, &[1, 2, 3, 4, 5, 6]), mask, &mut to);
        assert_eq!(to, [1, 3, 4, 6]);
        let mut to = [0; 6];
        scatter(1, &[2, 3], (LINE, &[1, 2, 3]), mask, &[7, 8, 9, 10], &mut to).unwrap();
        assert_eq!(to, [7, 2, 8, 9, 2, 10]);
        let refused = scatter(1, &[2, 3], (LINE, &[1, 2, 3]), mask, &[7, 8, 9], &mut to).unwrap_err();
        assert_eq!(refused.message, "`source` has 3 elements, `mask` asks for more");
    }
}
