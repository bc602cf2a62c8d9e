//! Loops from one element type to another, over bytes aligned to both: what a [`Converter`](crate::transfer::Converter) is.
//!
//! Each converts as many elements as fit.

use crate::complex::Complex;
use crate::half::Narrow;
use crate::number::{Cast, Number};

/// Converts numbers; complex ones part by part.
///
/// ```
/// let mut to = [0i16; 2];
/// edgepack_compute::convert::numbers::<f32, i16>(
///     bytemuck::cast_slice(&[1.9f32, -2.9]),
///     bytemuck::cast_slice_mut(&mut to),
/// );
/// assert_eq!(to, [1, -2]);
/// ```
pub fn numbers<A: Number + Cast<B>, B: Number>(from: &[u8], to: &mut [u8]) {
    let (from, to): (&[A], &mut [B]) = (bytemuck::cast_slice(from), bytemuck::cast_slice_mut(to));
    to.iter_mut().zip(from).for_each(|(to, &from)| *to = from.cast());
}

/// Converts real numbers to complex ones, whose imaginary part is 0.
pub fn to_complex<A: Number + Cast<B>, B: Number>(from: &[u8], to: &mut [u8]) {
    let (from, to): (&[A], &mut [Complex<B>]) = (bytemuck::cast_slice(from), bytemuck::cast_slice_mut(to));
    to.iter_mut().zip(from).for_each(|(to, &from)| *to = [from.cast(), B::default()]);
}

/// Converts halves to FLOAT, many at a time.
pub fn widen<T: Narrow>(from: &[u8], to: &mut [u8]) {
    T::widen(bytemuck::cast_slice(from), bytemuck::cast_slice_mut(to));
}

/// Converts FLOAT to halves, many at a time.
pub fn narrow<T: Narrow>(from: &[u8], to: &mut [u8]) {
    T::narrow(bytemuck::cast_slice(from), bytemuck::cast_slice_mut(to));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn real_numbers_become_complex() {
        let mut to = [7.0f32; 4];
        to_complex::<i16, f32>(bytemuck::cast_slice(&[3i16, -2]), bytemuck::cast_slice_mut(&mut to));
        assert_eq!(to, [3.0, 0.0, -2.0, 0.0]);
    }
}
