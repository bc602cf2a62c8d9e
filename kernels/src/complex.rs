//! Complex numbers: a real and an imaginary part, side by side in memory.
//!
//! Halves are computed through floats, like real halves. The operators that take complex numbers are those of the stock
//! library: sums, differences, products, quotients, magnitudes, conjugates, and what only moves elements.

use bytemuck::Pod;
use edgepack_executor::kernel::KernelContext;
use edgepack_executor::kernel::KernelError;
use edgepack_format::scalar::ScalarType;

use crate::check::Shape;
use crate::convert::Converter;
pub use edgepack_compute::complex::*;

use edgepack_compute::float::Float;
use edgepack_compute::number::{Cast, Compute, Number};

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

/// The loop from any numbers to complex ones; real numbers get an imaginary part of 0.
pub fn converter(from: ScalarType, to: ScalarType) -> Option<Converter> {
    fn between<A: Number + Cast<B>, B: Number>(from: &[u8], to: &mut [u8]) {
        let (from, to): (&[A], &mut [B]) = (bytemuck::cast_slice(from), bytemuck::cast_slice_mut(to));
        to.iter_mut().zip(from).for_each(|(to, &from)| *to = from.cast());
    }
    fn widen<A: Number + Cast<B>, B: Number + Pod>(from: &[u8], to: &mut [u8]) {
        let (from, to): (&[A], &mut [Complex<B>]) = (bytemuck::cast_slice(from), bytemuck::cast_slice_mut(to));
        to.iter_mut().zip(from).for_each(|(to, &from)| *to = [from.cast(), B::default()]);
    }
    with_parts!(to, B => with_parts!(from, A => Some(between::<A, B> as Converter), else => {
        edgepack_executor::with_element!(from, A => Some(widen::<A, B> as Converter), else => None)
    }), else => None)
}

/// Stacks of matrix products: `bmm` by definition.
pub fn multiply_stacks<R>(cx: &mut KernelContext<'_>) -> Result<(), KernelError>
where
    R: Number<Compute: Float>,
{
    let (a, b) = (cx.meta(0)?, cx.meta(1)?);
    let (&[batch, m, k], &[other, rows, n]) = (a.sizes, b.sizes) else {
        return Err(unfit(a.sizes, b.sizes));
    };
    if batch != other || k != rows {
        return Err(unfit(a.sizes, b.sizes));
    }
    cx.resize(2, &[batch, m, n])?;
    let views = cx.views();
    let (a, b, mut out) = (views.tensor(0)?, views.tensor(1)?, views.out(2)?);
    let (a_strides, b_strides) = (a.strides, b.strides);
    let out_strides: [usize; 3] = [out.strides[0], out.strides[1], out.strides[2]];
    let parts = |x: Complex<R>| -> Complex<R::Compute> { [x[0].to_compute(), x[1].to_compute()] };
    let (a, b): (&[Complex<R>], &[Complex<R>]) = (elements(a.bytes())?, elements(b.bytes())?);
    let out: &mut [Complex<R>] = bytemuck::try_cast_slice_mut(out.bytes()).map_err(|_| misaligned())?;
    for at in 0..batch * m * n {
        let (stack, row, column) = (at / (m * n), at / n % m, at % n);
        let (from, by) = (stack * a_strides[0] + row * a_strides[1], stack * b_strides[0] + column * b_strides[2]);
        let mut sum = [R::Compute::ZERO; 2];
        for inner in 0..k {
            sum = plus(sum, times(parts(a[from + inner * a_strides[2]]), parts(b[by + inner * b_strides[1]])));
        }
        out[stack * out_strides[0] + row * out_strides[1] + column * out_strides[2]] = sum.map(Cast::cast);
    }
    Ok(())
}

/// The elements of a complex tensor.
pub fn elements<R: Pod>(bytes: &[u8]) -> Result<&[Complex<R>], KernelError> {
    bytemuck::try_cast_slice(bytes).map_err(|_| misaligned())
}

fn misaligned() -> KernelError {
    KernelError::argument("the data of a complex tensor are not aligned to its parts")
}

fn unfit(a: &[usize], b: &[usize]) -> KernelError {
    KernelError::argument(format!("`self` is {}, `mat2` is {}: stacks of matrices do not fit", Shape(a), Shape(b)))
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
