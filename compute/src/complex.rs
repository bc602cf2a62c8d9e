//! Complex numbers: a real and an imaginary part, next to each other in memory.

use crate::float::Float;
use crate::number::{Cast, Compute};

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
    let turned = b[0].magnitude().less(b[1].magnitude());
    // With the parts of both swapped, the conjugate of the quotient is what comes out.
    let ([a_great, a_small], [great, small]) = if turned { ([a[1], a[0]], [b[1], b[0]]) } else { (a, b) };
    if great.is_zero() {
        return [a[0].over(great.magnitude()), a[1].over(great.magnitude())];
    }
    let ratio = small.over(great);
    let scale = great.plus(small.times(ratio));
    let real = a_great.plus(a_small.times(ratio)).over(scale);
    let imaginary = a_small.minus(a_great.times(ratio)).over(scale);
    [real, if turned { imaginary.negative() } else { imaginary }]
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
    fn magnitudes_do_not_overflow() {
        assert_eq!(magnitude([3.0f32, -4.0]), 5.0);
        assert_eq!(magnitude([3e30f32, 4e30]), 5e30);
        assert_eq!(conjugate([1.0f32, 2.0]), [1.0, -2.0]);
    }
}
