//! Running sums, products, extremes and logarithms of sums along one dimension of a dense tensor.
//!
//! Invariant: a line is read and written once, in order; what a line has in common is held in registers.

use crate::error::{Error, expect_elements};
use crate::layout::AxisView;
use crate::number::{Cast, Compute, Number};

/// Writes what each line comes to, element by element, from `start` on; input and output are laid out alike.
///
/// # Errors
///
/// [`ErrorKind::Geometry`](crate::ErrorKind::Geometry) if a slice has fewer elements than the view.
///
/// ```
/// use edgepack_compute::layout::AxisView;
/// use edgepack_compute::scan::accumulate;
///
/// let mut sums = [0.0f64; 4];
/// accumulate(AxisView { outer: 2, size: 2, inner: 1 }, &[1, 2, 3, 4], &mut sums, 0.0, |sum: f64, x: i32| sum + f64::from(x))?;
/// assert_eq!(sums, [1.0, 3.0, 3.0, 7.0]);
/// # Ok::<(), edgepack_compute::Error>(())
/// ```
pub fn accumulate<T: Copy, U, S: Copy + Cast<U>>(
    view: AxisView,
    input: &[T],
    out: &mut [U],
    start: S,
    next: impl Fn(S, T) -> S,
) -> Result<(), Error> {
    expect(view, input.len(), out.len())?;
    for line in lines(view) {
        let mut total = start;
        for at in line {
            total = next(total, input[at]);
            out[at] = total.cast();
        }
    }
    Ok(())
}

/// Writes the greatest element so far, or with `LEAST` the least, and its index along the line. The later one of equals
/// counts, and NaN stays.
///
/// # Errors
///
/// [`ErrorKind::Geometry`](crate::ErrorKind::Geometry) if a slice has fewer elements than the view.
pub fn extremes<T: Number, const LEAST: bool>(
    view: AxisView,
    input: &[T],
    values: &mut [T],
    indices: &mut [i64],
) -> Result<(), Error> {
    expect(view, input.len(), values.len())?;
    expect(view, input.len(), indices.len())?;
    for line in lines(view) {
        let (mut best, mut index) = (T::default(), 0);
        for (here, at) in (0i64..).zip(line) {
            let (x, known) = (input[at].to_compute(), best.to_compute());
            let better = if LEAST { x.less_or_same(known) } else { known.less_or_same(x) };
            if here == 0 || x.is_nan() || !known.is_nan() && better {
                (best, index) = (input[at], here);
            }
            values[at] = best;
            indices[at] = index;
        }
    }
    Ok(())
}

/// Writes the logarithm of the sum of the exponentials so far, in double precision and without overflow.
///
/// # Errors
///
/// [`ErrorKind::Geometry`](crate::ErrorKind::Geometry) if a slice has fewer elements than the view.
pub fn logarithms_of_sums<T: Number>(view: AxisView, input: &[T], out: &mut [T]) -> Result<(), Error>
where
    f64: Cast<T>,
{
    expect(view, input.len(), out.len())?;
    for line in lines(view) {
        let mut total: Option<f64> = None;
        for at in line {
            let x: f64 = input[at].cast();
            let sum = total.map_or(x, |sum| logarithm_of_sum(sum, x));
            total = Some(sum);
            out[at] = sum.cast();
        }
    }
    Ok(())
}

fn expect(view: AxisView, input: usize, out: usize) -> Result<(), Error> {
    expect_elements("the input", input, view.count())?;
    expect_elements("the output", out, view.count())
}

/// The places of the elements of every line, in order.
fn lines(view: AxisView) -> impl Iterator<Item = impl Iterator<Item = usize>> {
    let AxisView { outer, size, inner } = view;
    let first = (0..outer).flat_map(move |block| (0..inner).map(move |lane| block * size * inner + lane));
    first.map(move |first| (0..size).map(move |index| first + index * inner))
}

/// `ln(exp(a) + exp(b))`.
fn logarithm_of_sum(a: f64, b: f64) -> f64 {
    let (low, high) = if b < a { (b, a) } else { (a, b) };
    match () {
        () if a.is_nan() || b.is_nan() => f64::NAN,
        // Of infinities there is no difference.
        () if low == high && high.is_infinite() => high,
        () => high + (low - high).exp().ln_1p(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_followed_in_their_order() {
        let view = AxisView { outer: 1, size: 2, inner: 3 };
        let mut sums = [0i64; 6];
        accumulate(view, &[1i64, 2, 3, 4, 5, 6], &mut sums, 0, |sum: i64, x| sum + x).unwrap();
        assert_eq!(sums, [1, 2, 3, 5, 7, 9]);
        assert!(accumulate(view, &[1i64; 5], &mut sums, 0, |sum: i64, x| sum + x).is_err());
    }

    #[test]
    fn later_equals_count_and_nan_stays() {
        let view = AxisView { outer: 2, size: 3, inner: 1 };
        let x = [1.0f32, 1.0, 0.0, 1.0, f32::NAN, 4.0];
        let (mut values, mut indices) = ([0.0; 6], [0; 6]);
        extremes::<f32, true>(view, &x, &mut values, &mut indices).unwrap();
        assert_eq!(indices, [0, 1, 2, 0, 1, 1]);
        extremes::<f32, false>(view, &x, &mut values, &mut indices).unwrap();
        assert_eq!((indices, values[2], values[5].is_nan()), ([0, 1, 1, 0, 1, 1], 1.0, true));
    }

    #[test]
    fn logarithms_do_not_overflow() {
        let mut out = [0.0; 3];
        logarithms_of_sums(AxisView { outer: 1, size: 3, inner: 1 }, &[1000.0f64, 1000.0, -2000.0], &mut out).unwrap();
        assert!((out[1] - 1000.0 - std::f64::consts::LN_2).abs() < 1e-12 && out[1] == out[2]);
    }
}
