//! Complex numbers: a real and an imaginary part, side by side in memory.
//!
//! Halves are computed through floats, like real halves.

use bytemuck::Pod;
use edgepack_executor::kernel::KernelError;
use edgepack_format::scalar::ScalarType;

pub use edgepack_compute::complex::*;

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

/// The type of the parts.
pub fn part_type(dtype: ScalarType) -> Option<ScalarType> {
    Some(match dtype {
        ScalarType::COMPLEX_HALF => ScalarType::HALF,
        ScalarType::COMPLEX_FLOAT => ScalarType::FLOAT,
        ScalarType::COMPLEX_DOUBLE => ScalarType::DOUBLE,
        _ => return None,
    })
}

/// The elements of a complex tensor.
pub fn elements<R: Pod>(bytes: &[u8]) -> Result<&[Complex<R>], KernelError> {
    bytemuck::try_cast_slice(bytes).map_err(|_| misaligned())
}

pub fn misaligned() -> KernelError {
    KernelError::argument("the data of a complex tensor are not aligned to its parts")
}
