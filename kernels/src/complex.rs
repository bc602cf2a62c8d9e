//! Complex element types as arguments: their parts, and the conversions to them.

use bytemuck::Pod;
use edgepack_executor::kernel::KernelError;
use edgepack_format::scalar::ScalarType;

use edgepack_compute::complex::Complex;
use edgepack_compute::convert::{numbers, to_complex};
use edgepack_compute::transfer::Converter;

/// Calls a generic function with the Rust type of the parts of a complex element type.
macro_rules! with_parts {
    ($dtype:expr, $R:ident => $body:expr, else => $other:expr) => {{
        use edgepack_format::scalar::ScalarType;
        match $dtype {
            ScalarType::COMPLEX_HALF => {
                type $R = half::f16;
                $body
            }
            ScalarType::COMPLEX_FLOAT => {
                type $R = f32;
                $body
            }
            ScalarType::COMPLEX_DOUBLE => {
                type $R = f64;
                $body
            }
            _ => $other,
        }
    }};
}
pub(crate) use with_parts;

/// The loop from any numbers to complex ones; real numbers get an imaginary part of 0.
pub fn converter(from: ScalarType, to: ScalarType) -> Option<Converter> {
    with_parts!(to, B => with_parts!(from, A => Some(numbers::<A, B> as Converter), else => {
        edgepack_executor::with_element!(from, A => Some(to_complex::<A, B> as Converter), else => None)
    }), else => None)
}

/// The elements of a complex tensor.
pub fn elements<R: Pod>(bytes: &[u8]) -> Result<&[Complex<R>], KernelError> {
    bytemuck::try_cast_slice(bytes).map_err(|_| misaligned())
}

pub fn misaligned() -> KernelError {
    KernelError::argument("the data of a complex tensor are not aligned to its parts")
}

#[cfg(test)]
mod tests {
    use super::*;

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
