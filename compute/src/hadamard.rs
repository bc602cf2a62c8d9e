//! The fast Walsh-Hadamard transform of rows, for lengths that are a power of two or 28 times one.
//!
//! The power of two is scaled by the inverse of its square root, so that transforming twice gives the row back; the factor
//! 28 is a Hadamard matrix of that order without a scale. 16-bit floats are computed in `f32`.

use crate::error::{Error, ErrorKind, expect_elements};
use crate::float::Float;
use crate::number::{Cast, Compute, Number};
use crate::simd::wide;

/// The factor that a length may have besides powers of two: the order of a matrix.
pub const ORDER: usize = 28;
/// The matrix of that order, row by row: a bit per column, the lowest first, is set where the sign is plus.
#[rustfmt::skip]
const SIGNS: [u32; ORDER] = [
    0x3296181, 0x6528382, 0xc854704, 0x92a8e08, 0x2751c10, 0x4ca7820, 0x994b0c0,
    0x4b980bc, 0x9534178, 0x2a6c271, 0x54d8463, 0xa9b0847, 0x536500f, 0xa4ce01e,
    0x7804cda, 0xf009935, 0xe21326a, 0xc6224d5, 0x8e409ab, 0x1e81356, 0x3d0262d,
    0x030ed66, 0x041dacd, 0x083b51b, 0x1072ab6, 0x20e15ec, 0x41c2b59, 0x81856b3,
];

/// Returns the blocks a row of this length is made of and their length, a power of two; `None` if it is not made of such.
fn blocks(length: usize) -> Option<[usize; 2]> {
    let blocks = if length > 0 && length.is_multiple_of(ORDER) { ORDER } else { 1 };
    (length == 0 || (length / blocks).is_power_of_two()).then_some([blocks, length / blocks])
}

/// Returns whether rows of this length can be transformed: 0, a power of two, or [`ORDER`] times one.
pub fn is_length(length: usize) -> bool {
    blocks(length).is_some()
}

/// Transforms rows of `length` elements, one after the other; `row` is scratch of as many.
///
/// # Errors
///
/// [`ErrorKind::Data`] if rows of this length cannot be transformed; [`ErrorKind::Geometry`] if the output or the scratch
/// is too short.
///
/// ```
/// use edgepack_compute::hadamard::transform_rows;
///
/// let mut out = [0.0f64; 4];
/// transform_rows(&[1.0, 0.0, 0.0, 0.0], 4, &mut out, &mut [0.0; 4])?;
/// assert_eq!(out, [0.5; 4]);
/// # Ok::<(), edgepack_compute::Error>(())
/// ```
pub fn transform_rows<T>(input: &[T], length: usize, out: &mut [T], row: &mut [T::Compute]) -> Result<(), Error>
where
    T: Number<Compute: Float>,
{
    let Some([blocks, block]) = blocks(length) else {
        return Err(Error::new(ErrorKind::Data, format!("rows of {length} elements are not transformed")));
    };
    expect_elements("the output", out.len(), input.len())?;
    expect_elements("the scratch for a row", row.len(), length)?;
    if length == 0 {
        return Ok(());
    }
    let row = &mut row[..length];
    for (from, to) in input.chunks_exact(length).zip(out.chunks_exact_mut(length)) {
        row.iter_mut().zip(from).for_each(|(x, from)| *x = from.to_compute());
        for block in row.chunks_exact_mut(block) {
            wide(|| transform(block));
        }
        if blocks == ORDER {
            mix(row, block);
        }
        to.iter_mut().zip(&*row).for_each(|(to, x)| *to = x.cast());
    }
    Ok(())
}

/// The transform of a row whose length is a power of two.
#[inline(always)]
fn transform<C: Float>(row: &mut [C]) {
    let mut half = 1;
    while half < row.len() {
        for pair in row.chunks_exact_mut(2 * half) {
            let (low, high) = pair.split_at_mut(half);
            for (x, y) in low.iter_mut().zip(high) {
                (*x, *y) = (x.plus(*y), x.minus(*y));
            }
        }
        half *= 2;
    }
    let scale = C::of(1.0 / (row.len() as f64).sqrt());
    row.iter_mut().for_each(|x| *x = x.times(scale));
}

/// Multiplies the columns of a row of 28 blocks by the matrix of that order.
fn mix<C: Compute>(row: &mut [C], length: usize) {
    for column in 0..length {
        let mut given = [C::ZERO; ORDER];
        given.iter_mut().zip(row[column..].iter().step_by(length)).for_each(|(given, &x)| *given = x);
        for (x, signs) in row[column..].iter_mut().step_by(length).zip(&SIGNS) {
            let terms = given.iter().enumerate();
            *x = terms.fold(C::ZERO, |sum, (at, &x)| if signs >> at & 1 == 1 { sum.plus(x) } else { sum.minus(x) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_the_matrix_are_orthogonal() {
        for length in [1, 2, 8, 64, 28, 56, 112] {
            let order = if length % ORDER == 0 { ORDER } else { 1 };
            let identity: Vec<f32> =
                (0..length * length).map(|at| f32::from(u8::from(at % (length + 1) == 0))).collect();
            let (mut matrix, mut row) = (vec![0.0; length * length], vec![0.0; length]);
            transform_rows(&identity, length, &mut matrix, &mut row).unwrap();
            for (a, b) in (0..length).flat_map(|a| (0..length).map(move |b| (a, b))) {
                let dot: f32 = (0..length).map(|k| matrix[a * length + k] * matrix[b * length + k]).sum();
                let want = if a == b { order as f32 } else { 0.0 };
                assert!((dot - want).abs() < 1e-4, "{length}: rows {a} and {b} give {dot}");
            }
        }
    }

    #[test]
    fn other_lengths_and_short_slices_are_refused() {
        assert!(is_length(0) && is_length(56) && !is_length(12));
        let run = |length: usize, out: usize, row: usize| {
            transform_rows(&vec![0.0f32; length], length, &mut vec![0.0; out], &mut vec![0.0; row])
        };
        assert_eq!(run(12, 12, 12).unwrap_err().kind, ErrorKind::Data);
        assert_eq!(run(8, 7, 8).unwrap_err().kind, ErrorKind::Geometry);
        assert_eq!(run(8, 8, 7).unwrap_err().kind, ErrorKind::Geometry);
    }
}
