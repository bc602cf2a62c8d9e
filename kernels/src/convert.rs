//! Element type to element type: one loop of `edgepack_compute::convert` per pair, for every operator.

use edgepack_executor::with_element;
use edgepack_format::scalar::ScalarType;
use half::{bf16, f16};

use crate::complex;
use edgepack_compute::convert::{narrow, numbers, widen};
use edgepack_compute::transfer::Converter;

/// The loop from one element type to another, both of the thirteen that have numbers or the second complex; `None` for
/// others.
pub fn converter(from: ScalarType, to: ScalarType) -> Option<Converter> {
    match (from, to) {
        (ScalarType::HALF, ScalarType::FLOAT) => return Some(widen::<f16>),
        (ScalarType::BFLOAT16, ScalarType::FLOAT) => return Some(widen::<bf16>),
        (ScalarType::FLOAT, ScalarType::HALF) => return Some(narrow::<f16>),
        (ScalarType::FLOAT, ScalarType::BFLOAT16) => return Some(narrow::<bf16>),
        _ => {}
    }
    with_element!(from, A => with_element!(to, B => Some(numbers::<A, B> as Converter), else => complex::converter(from, to)),
        else => complex::converter(from, to))
}

/// Returns whether the bytes start at a multiple of the element size, so that a typed slice can be made of them.
pub fn is_aligned(bytes: &[u8], dtype: ScalarType) -> bool {
    bytes.as_ptr().addr().is_multiple_of(dtype.size().unwrap_or(1).min(8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_convert_and_others_do_not_exist() {
        let mut to = [0u64; 1];
        let loops = converter(ScalarType::FLOAT, ScalarType::SHORT).unwrap();
        loops(bytemuck::cast_slice(&[1.9f32, -2.9]), bytemuck::cast_slice_mut(&mut to));
        assert_eq!(bytemuck::cast_slice::<u64, i16>(&to)[..2], [1, -2]);
        assert!(converter(ScalarType::COMPLEX_FLOAT, ScalarType::FLOAT).is_none());
        let mut to = [7f32; 4];
        let loops = converter(ScalarType::CHAR, ScalarType::COMPLEX_FLOAT).unwrap();
        loops(bytemuck::cast_slice(&[3i8, -4]), bytemuck::cast_slice_mut(&mut to));
        assert_eq!(to, [3.0, 0.0, -4.0, 0.0]);
    }
}
