//! Element type to element type: one loop per pair, shared by every operator.

use bytemuck::Pod;
use edgepack_executor::with_element;
use edgepack_format::scalar::ScalarType;
use half::{bf16, f16};

use crate::complex::{Complex, with_parts};
use edgepack_compute::half::Narrow;
use edgepack_compute::number::{Cast, Number};

/// Converts as many elements as fit, between slices aligned to their elements.
pub type Converter = fn(&[u8], &mut [u8]);

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
    with_element!(from, A => with_element!(to, B => Some(convert::<A, B> as Converter), else => to_complex(from, to)),
        else => to_complex(from, to))
}

fn convert<A: Number + Cast<B>, B: Number>(from: &[u8], to: &mut [u8]) {
    let (from, to): (&[A], &mut [B]) = (bytemuck::cast_slice(from), bytemuck::cast_slice_mut(to));
    to.iter_mut().zip(from).for_each(|(to, &from)| *to = from.cast());
}

/// The loop from any numbers to complex ones; real numbers get an imaginary part of 0.
fn to_complex(from: ScalarType, to: ScalarType) -> Option<Converter> {
    fn between<A: Number + Cast<B>, B: Number>(from: &[u8], to: &mut [u8]) {
        let (from, to): (&[A], &mut [B]) = (bytemuck::cast_slice(from), bytemuck::cast_slice_mut(to));
        to.iter_mut().zip(from).for_each(|(to, &from)| *to = from.cast());
    }
    fn widen<A: Number + Cast<B>, B: Number + Pod>(from: &[u8], to: &mut [u8]) {
        let (from, to): (&[A], &mut [Complex<B>]) = (bytemuck::cast_slice(from), bytemuck::cast_slice_mut(to));
        to.iter_mut().zip(from).for_each(|(to, &from)| *to = [from.cast(), B::default()]);
    }
    with_parts!(to, B => with_parts!(from, A => Some(between::<A, B> as Converter), else => {
        with_element!(from, A => Some(widen::<A, B> as Converter), else => None)
    }), else => None)
}

fn widen<T: Narrow>(from: &[u8], to: &mut [u8]) {
    T::widen(bytemuck::cast_slice(from), bytemuck::cast_slice_mut(to));
}

fn narrow<T: Narrow>(from: &[u8], to: &mut [u8]) {
    T::narrow(bytemuck::cast_slice(from), bytemuck::cast_slice_mut(to));
}

/// Whether the bytes start at a multiple of the element size, so that a typed slice can be made of them.
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
    #[test]
    fn real_numbers_become_complex() {
        let mut to = [0.0f32; 4];
        converter(ScalarType::SHORT, ScalarType::COMPLEX_FLOAT).unwrap()(
            bytemuck::cast_slice(&[3i16, -2]),
            bytemuck::cast_slice_mut(&mut to),
        );
        assert_eq!(to, [3.0, 0.0, -2.0, 0.0]);
        assert!(converter(ScalarType::COMPLEX_FLOAT, ScalarType::FLOAT).is_none());
    }
}
