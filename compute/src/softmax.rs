//! Softmax and its logarithm along one dimension of a dense tensor.
//!
//! The maximum is taken off before the exponential, so nothing overflows; a NaN, or an infinity of the wrong sign, makes
//! its whole row NaN. 16-bit floats are computed in `f32`. A row does not depend on the others, nor on threads.

mod columns;
mod rows;

use bytemuck::{try_cast_slice, try_cast_slice_mut};
use rten_simd::SimdUnaryOp;

use crate::error::{Error, expect_elements};
use crate::float::Float;
use crate::fold::row_max;
use crate::layout::AxisView;
use crate::number::{Cast, Compute, Number};
use crate::parts::{PARTS, joined};
use crate::simd::float_path::FloatPath;
use crate::simd::wide;
use crate::threads::for_each_piece;

/// Elements worked on at a time; a buffer of them fits the stack.
const BLOCK: usize = 128;

/// A float whose exponentials are computed many at a time.
pub trait Exponential: Float {
    /// Replaces every value by e to its power.
    fn exp_all(values: &mut [Self]);

    /// Writes the softmax of rows of `size` elements; `false`, and nothing is written, if there is no way of its own.
    fn softmax_rows(_size: usize, _input: &[Self], _out: &mut [Self]) -> bool {
        false
    }

    /// Writes the softmax, or with `LOG` its logarithm, of `inner` neighbouring columns of `size` elements; `false`, and nothing is
    /// written, if there is no way of its own.
    fn softmax_columns<const LOG: bool>(_size: usize, _inner: usize, _input: &[Self], _out: &mut [Self]) -> bool {
        false
    }
}

impl Exponential for f32 {
    fn exp_all(values: &mut [f32]) {
        rten_vecmath::Exp {}.map_mut(values);
    }

    fn softmax_rows(size: usize, input: &[f32], out: &mut [f32]) -> bool {
        FloatPath::best().run(rows::Rows { size, input, out });
        true
    }

    fn softmax_columns<const LOG: bool>(size: usize, inner: usize, input: &[f32], out: &mut [f32]) -> bool {
        FloatPath::best().run(columns::Columns::<LOG> { size, inner, input, out });
        true
    }
}

impl Exponential for f64 {
    fn exp_all(values: &mut [f64]) {
        values.iter_mut().for_each(|x| *x = x.exp());
    }
}

/// Writes `exp(x) / Σ exp(x)` along the viewed dimension; input and output are laid out alike.
///
/// # Errors
///
/// [`ErrorKind::Geometry`](crate::ErrorKind::Geometry) if a slice has fewer elements than the view.
///
/// ```
/// use edgepack_compute::layout::AxisView;
/// use edgepack_compute::softmax::softmax;
///
/// let mut out = [0.0f32; 4];
/// softmax(AxisView { outer: 2, size: 2, inner: 1 }, &[3.0, 3.0, 1.0, 1.0], &mut out)?;
/// assert_eq!(out, [0.5; 4]);
/// # Ok::<(), edgepack_compute::Error>(())
/// ```
pub fn softmax<T>(view: AxisView, input: &[T], out: &mut [T]) -> Result<(), Error>
where
    T: Number<Compute: Exponential>,
{
    along::<T, false>(view, input, out)
}

/// Writes `x - ln Σ exp(x)` along the viewed dimension; input and output are laid out alike.
///
/// # Errors
///
/// [`ErrorKind::Geometry`](crate::ErrorKind::Geometry) if a slice has fewer elements than the view.
pub fn log_softmax<T>(view: AxisView, input: &[T], out: &mut [T]) -> Result<(), Error>
where
    T: Number<Compute: Exponential>,
{
    along::<T, true>(view, input, out)
}

fn along<T, const LOG: bool>(view: AxisView, input: &[T], out: &mut [T]) -> Result<(), Error>
where
    T: Number<Compute: Exponential>,
{
    let count = view.count();
    expect_elements("the input", input.len(), count)?;
    expect_elements("the output", out.len(), count)?;
    // A row, or neighbouring rows.
    let unit = (view.size * view.inner).max(1);
    for_each_piece(&mut out[..count], unit, |start, out| {
        let input = &input[start..][..out.len()];
        if is_own::<T>()
            && let (Ok(input), Ok(out)) = (try_cast_slice(input), try_cast_slice_mut(out))
        {
            let columns = |(input, out): (&[T::Compute], &mut [T::Compute])| {
                T::Compute::softmax_columns::<LOG>(view.size, view.inner, input, out)
            };
            let done = match view.inner {
                1 => !LOG && T::Compute::softmax_rows(unit, input, out),
                _ => input.chunks_exact(unit).zip(out.chunks_exact_mut(unit)).all(columns),
            };
            if done {
                return;
            }
        }
        for (input, out) in input.chunks_exact(unit).zip(out.chunks_exact_mut(unit)) {
            if view.inner == 1 {
                wide(|| row::<T, LOG>(input, out));
                continue;
            }
            for first in (0..view.inner).step_by(BLOCK) {
                rows::<T, LOG>(view, first, input, out);
            }
        }
    });
    Ok(())
}

/// One row of neighbouring elements.
#[inline(always)]
fn row<T, const LOG: bool>(input: &[T], out: &mut [T])
where
    T: Number<Compute: Exponential>,
{
    // Where the output holds exponentials without loss they wait there for their sum.
    let lossless = is_own::<T>();
    let max = row_max(input);
    let mut buffer = [T::Compute::ZERO; BLOCK];
    let mut sum = T::Compute::ZERO;
    for (input, out) in input.chunks(BLOCK).zip(out.chunks_mut(BLOCK)) {
        let buffer = &mut buffer[..input.len()];
        buffer.iter_mut().zip(input).for_each(|(y, x)| *y = x.to_compute().minus(max));
        Exponential::exp_all(buffer);
        sum = sum.plus(total(buffer));
        if lossless && !LOG {
            buffer.iter().zip(out).for_each(|(y, out)| *out = cast(*y));
        }
    }
    if LOG {
        let log = sum.ln();
        out.iter_mut().zip(input).for_each(|(y, x)| *y = cast(x.to_compute().minus(max).minus(log)));
        return;
    }
    for (input, out) in input.chunks(BLOCK).zip(out.chunks_mut(BLOCK)) {
        if lossless {
            out.iter_mut().for_each(|y| *y = cast(y.to_compute().over(sum)));
        } else {
            let buffer = &mut buffer[..input.len()];
            buffer.iter_mut().zip(input).for_each(|(y, x)| *y = x.to_compute().minus(max));
            Exponential::exp_all(buffer);
            buffer.iter().zip(out).for_each(|(y, out)| *out = cast(y.over(sum)));
        }
    }
}

/// True if elements are computed as what they are.
const fn is_own<T: Number>() -> bool {
    size_of::<T>() == size_of::<T::Compute>()
}

#[inline(always)]
fn cast<T: Number>(x: T::Compute) -> T {
    Cast::cast(x)
}

/// The sum in independent parts, so that it vectorises.
#[inline(always)]
fn total<C: Compute>(values: &[C]) -> C {
    let mut parts = [C::ZERO; PARTS];
    let (chunks, rest) = values.as_chunks::<PARTS>();
    for chunk in chunks {
        parts.iter_mut().zip(chunk).for_each(|(part, &x)| *part = part.plus(x));
    }
    parts.iter_mut().zip(rest).for_each(|(part, &x)| *part = part.plus(x));
    joined(parts, C::plus)
}

/// Up to [`BLOCK`] neighbouring rows whose elements are `inner` apart.
fn rows<T, const LOG: bool>(view: AxisView, first: usize, input: &[T], out: &mut [T])
where
    T: Number<Compute: Exponential>,
{
    let AxisView { size, inner, .. } = view;
    let count = BLOCK.min(inner - first);
    let at = |i: usize| i * inner + first..i * inner + first + count;
    let (mut max, mut sum) = ([T::Compute::LEAST; BLOCK], [T::Compute::ZERO; BLOCK]);
    let (max, sum) = (&mut max[..count], &mut sum[..count]);
    for i in 0..size {
        max.iter_mut().zip(&input[at(i)]).for_each(|(max, x)| *max = max.greater_of(x.to_compute()));
    }
    let mut buffer = [T::Compute::ZERO; BLOCK];
    let buffer = &mut buffer[..count];
    let mut exponentials = |i: usize, max: &[T::Compute], then: &mut dyn FnMut(&[T::Compute])| {
        buffer.iter_mut().zip(&input[at(i)]).zip(max).for_each(|((y, x), max)| *y = x.to_compute().minus(*max));
        if !LOG {
            Exponential::exp_all(buffer);
        }
        then(buffer);
    };
    for i in 0..size {
        exponentials(i, max, &mut |values| {
            sum.iter_mut().zip(values).for_each(|(sum, &y)| *sum = sum.plus(if LOG { y.exp() } else { y }));
        });
    }
    if LOG {
        sum.iter_mut().for_each(|sum| *sum = sum.ln());
    }
    for i in 0..size {
        exponentials(i, max, &mut |values| {
            for ((out, &y), &sum) in out[at(i)].iter_mut().zip(values).zip(&*sum) {
                *out = cast(if LOG { y.minus(sum) } else { y.over(sum) });
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;
    use crate::random::Random;

    fn naive(values: &[f64], log: bool) -> Vec<f64> {
        let max = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = values.iter().map(|x| (x - max).exp()).sum();
        values.iter().map(|x| if log { x - max - sum.ln() } else { (x - max).exp() / sum }).collect()
    }

    #[test]
    fn every_view_agrees_with_the_definition() {
        let mut random = Random::new(3);
        for round in 0..40 {
            let view =
                AxisView { outer: random.below(3) + 1, size: random.below(300) + 1, inner: [1, 5, 200][round % 3] };
            let values: Vec<f32> = random.floats(view.count()).iter().map(|x| x * 9.0).collect();
            let (mut plain, mut log) = (vec![0.0f32; values.len()], vec![0.0f32; values.len()]);
            softmax(view, &values, &mut plain).unwrap();
            log_softmax(view, &values, &mut log).unwrap();
            for start in (0..values.len()).filter(|at| (at / view.inner).is_multiple_of(view.size)) {
                let places = (0..view.size).map(|i| start + i * view.inner);
                let row: Vec<f64> = places.clone().map(|at| values[at].into()).collect();
                for (at, (want, want_log)) in places.zip(naive(&row, false).into_iter().zip(naive(&row, true))) {
                    assert!((f64::from(plain[at]) - want).abs() < 1e-5, "{view:?}: {} {want}", plain[at]);
                    assert!((f64::from(log[at]) - want_log).abs() < 1e-4, "{view:?}: {} {want_log}", log[at]);
                }
            }
        }
    }

    #[test]
    fn nan_and_wrong_infinities_spread_over_their_row() {
        let inf = f32::INFINITY;
        let values = [1.0, f32::NAN, 1.0, 1.0, inf, 0.0, -inf, -inf, -inf, -inf, 0.0, 0.0];
        let mut out = [0.0; 12];
        softmax(AxisView { outer: 4, size: 3, inner: 1 }, &values, &mut out).unwrap();
        assert!(out[..9].iter().all(|x| x.is_nan()), "{out:?}");
        assert_eq!(out[9..], [0.0, 0.5, 0.5]);
    }

    #[test]
    fn halves_are_computed_in_single_precision() {
        let values: Vec<half::f16> = (0..300).map(|i| half::f16::from_f32(i as f32 / 50.0)).collect();
        let mut out = vec![half::f16::ZERO; 300];
        softmax(AxisView { outer: 1, size: 300, inner: 1 }, &values, &mut out).unwrap();
        let values: Vec<f64> = values.iter().map(|x| x.to_f64()).collect();
        for (have, want) in out.iter().zip(naive(&values, false)) {
            assert!((have.to_f64() - want).abs() < 1e-5 + want * 1e-3, "{have} {want}");
        }
    }

    #[test]
    fn short_slices_are_refused() {
        let view = AxisView { outer: 1, size: 3, inner: 1 };
        assert_eq!(softmax(view, &[0.0f32; 2], &mut [0.0; 3]).unwrap_err().kind, ErrorKind::Geometry);
        assert_eq!(log_softmax(view, &[0.0f32; 3], &mut [0.0; 2]).unwrap_err().kind, ErrorKind::Geometry);
    }
}
