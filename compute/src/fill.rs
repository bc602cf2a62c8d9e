//! Outputs that one number fills, or numbers at even distances.

use crate::element::Scalar;
use crate::number::{Compute, Number};

/// Writes the first `width` bytes of a word over and over: elements of 1, 2, 4, 8 or 16 bytes, native byte order.
///
/// ```
/// let mut to = [0; 4];
/// edgepack_compute::fill::repeat(&mut to, 2, 0x0102);
/// assert_eq!(to, [0x0102u16.to_ne_bytes(), 0x0102u16.to_ne_bytes()].concat()[..]);
/// ```
pub fn repeat(to: &mut [u8], width: usize, word: u128) {
    match width {
        1 => to.fill(word as u8),
        2 => elements(to, (word as u16).to_ne_bytes()),
        4 => elements(to, (word as u32).to_ne_bytes()),
        8 => elements(to, (word as u64).to_ne_bytes()),
        _ => elements(to, word.to_ne_bytes()),
    }
}

/// Writes an element over and over, as often as it fits.
pub fn elements<const N: usize>(to: &mut [u8], element: [u8; N]) {
    to.as_chunks_mut().0.fill(element);
}

/// Writes `start + index * step` to every index of the output.
///
/// Integers are added in 64 bits, wrapping, where start and step are integers (`whole`) or the output is one; everything
/// else is computed in double.
///
/// ```
/// use edgepack_compute::{element::Scalar, fill};
///
/// let mut out = [0f32; 3];
/// fill::sequence(&mut out, Scalar::Double(1.0), Scalar::Double(0.5), false);
/// assert_eq!(out, [1.0, 1.5, 2.0]);
/// ```
pub fn sequence<T: Number>(out: &mut [T], start: Scalar, step: Scalar, whole: bool) {
    for (index, element) in out.iter_mut().enumerate() {
        *element = T::from_scalar(match whole || !T::Compute::FLOATING {
            true => Scalar::Int(start.to_i64().wrapping_add((index as i64).wrapping_mul(step.to_i64()))),
            false => Scalar::Double(start.to_f64() + index as f64 * step.to_f64()),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_of_a_sequence_wrap_and_are_exact() {
        let mut long = [0i64; 3];
        sequence(&mut long, Scalar::Int(i64::MAX), Scalar::Int(1), true);
        assert_eq!(long, [i64::MAX, i64::MIN, i64::MIN + 1]);
        // An output of integers cuts the step.
        let mut int = [0i32; 3];
        sequence(&mut int, Scalar::Double(0.5), Scalar::Double(1.5), false);
        assert_eq!(int, [0, 1, 2]);
    }

    #[test]
    fn every_width_is_repeated() {
        let word = 0x0f0e_0d0c_0b0a_0908_0706_0504_0302_0100u128;
        for width in [1, 2, 4, 8, 16] {
            let mut to = [0xff; 48];
            repeat(&mut to, width, word);
            let element: Vec<u8> = match cfg!(target_endian = "little") {
                true => word.to_le_bytes()[..width].to_vec(),
                false => word.to_be_bytes()[16 - width..].to_vec(),
            };
            assert_eq!(to.to_vec(), element.repeat(48 / width));
        }
    }
}
