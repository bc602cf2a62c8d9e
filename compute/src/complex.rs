//! Complex numbers: a real and an imaginary part, next to each other in memory.

use crate::float::Float;
use crate::gemm::Mat;
use crate::number::{Cast, Compute, Number};

/// Real part, imaginary part.
pub type Complex<R> = [R; 2];

/// `a + b`.
#[inline(always)]
pub fn plus<R: Compute>(a: Complex<R>, b: Complex<R>) -> Complex<R> {
    [a[0].plus(b[0]), a[1].plus(b[1])]
}

/// `a - b`.
#[inline(always)]
pub fn minus<R: Compute>(a: Complex<R>, b: Complex<R>) -> Complex<R> {
    [a[0].minus(b[0]), a[1].minus(b[1])]
}

/// `a * b`.
#[inline(always)]
pub fn times<R: Compute>(a: Complex<R>, b: Complex<R>) -> Complex<R> {
    [a[0].times(b[0]).minus(a[1].times(b[1])), a[0].times(b[1]).plus(a[1].times(b[0]))]
}

/// `a / b`, scaled by the greater part of `b` so that its square does not leave the range of the type.
#[inline]
pub fn over<R: Float>(a: Complex<R>, b: Complex<R>) -> Complex<R> {
    let swapped = b[0].magnitude().less(b[1].magnitude());
    // With the parts of both swapped, the conjugate of the quotient is what comes out.
    let ([a_great, a_small], [great, small]) = if swapped { ([a[1], a[0]], [b[1], b[0]]) } else { (a, b) };
    if great.is_zero() {
        return [a[0].over(great.magnitude()), a[1].over(great.magnitude())];
    }
    let ratio = small.over(great);
    let scale = great.plus(small.times(ratio));
    let real = a_great.plus(a_small.times(ratio)).over(scale);
    let imaginary = a_small.minus(a_great.times(ratio)).over(scale);
    [real, if swapped { imaginary.negative() } else { imaginary }]
}

/// The distance from 0.
#[inline]
pub fn magnitude<R: Float>(x: Complex<R>) -> R {
    R::of(Cast::<f64>::cast(x[0]).hypot(x[1].cast()))
}

/// The number mirrored at the real axis.
#[inline(always)]
pub fn conjugate<R: Compute>(x: Complex<R>) -> Complex<R> {
    [x[0], x[1].negative()]
}

/// Computes a product of matrices by definition; element `(i, j)` of the output is at `i * strides[0] + j * strides[1]`.
///
/// # Panics
///
/// If the output has fewer elements than the product.
pub fn multiply<R: Number>(
    a: Mat<'_, Complex<R>>,
    b: Mat<'_, Complex<R>>,
    (out, strides): (&mut [Complex<R>], [usize; 2]),
) {
    let parts = |x: Complex<R>| -> Complex<R::Compute> { x.map(R::to_compute) };
    for (row, column) in (0..a.rows).flat_map(|row| (0..b.cols).map(move |column| (row, column))) {
        let (from, by) = (row * a.strides()[0], column * b.strides()[1]);
        let mut sum = [R::Compute::ZERO; 2];
        for inner in 0..a.cols {
            let (x, y) = (a.data()[from + inner * a.strides()[1]], b.data()[by + inner * b.strides()[0]]);
            sum = plus(sum, times(parts(x), parts(y)));
        }
        out[row * strides[0] + column * strides[1]] = sum.map(Cast::cast);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotients_undo_products() {
        for (a, b) in [([1.0f64, 2.0], [3.0, -4.0]), ([5.0, 0.5], [0.25, 8.0]), ([-1.0, 3.0], [0.0, 2.0])] {
            let back = over(times(a, b), b);
            assert!((back[0] - a[0]).abs() < 1e-12 && (back[1] - a[1]).abs() < 1e-12, "{a:?} {b:?} {back:?}");
        }
        assert_eq!(over([1e300, 1e300], [1e300, 1e300]), [1.0, 0.0]);
        assert_eq!(over([1.0f32, -1.0], [0.0, 0.0]), [f32::INFINITY, f32::NEG_INFINITY]);
    }

    #[test]
    fn products_of_matrices_follow_strides() {
        // (1 + i, 2) times (i, 3), as rows and as columns.
        let (a, b) = ([[1.0f32, 1.0], [2.0, 0.0]], [[0.0f32, 1.0], [9.0, 9.0], [3.0, 0.0]]);
        let (lhs, rhs) = (Mat::new(&a, [1, 2], [2, 1]).unwrap(), Mat::new(&b, [2, 1], [2, 1]).unwrap());
        let mut out = [[0.0; 2]];
        multiply(lhs, rhs, (&mut out, [1, 1]));
        assert_eq!(out, [[5.0, 1.0]]);
        let mut outer = [[0.0; 2]; 4];
        multiply(lhs.transposed(), rhs.transposed(), (&mut outer, [1, 2]));
        assert_eq!(outer, [[-1.0, 1.0], [0.0, 2.0], [3.0, 3.0], [6.0, 0.0]]);
    }

    #[test]
    fn magnitudes_do_not_overflow() {
        assert_eq!(magnitude([3.0f32, -4.0]), 5.0);
        assert_eq!(magnitude([3e30f32, 4e30]), 5e30);
        assert_eq!(conjugate([1.0f32, 2.0]), [1.0, -2.0]);
    }
}
