//! Numbers that are not greater than zero times a slope, of which each channel has its own.

use arrayvec::ArrayVec;

use crate::epilogue::Epilogue;
use crate::error::{Error, ErrorKind, expect_elements};
use crate::number::{Cast, Compute, Number};
use crate::simd::{Loop, run_wide};
use crate::threads::for_each_piece;

/// Elements done at a time: the slopes of a few channels are repeated as often, so that loops over them are long.
const BLOCK: usize = 1536;

/// Slopes of channels, each of which has a run of so many elements; the first follows the last again.
#[derive(Clone, Copy)]
pub struct Slopes<'a, T> {
    /// One for each channel.
    pub slopes: &'a [T],
    /// Elements of a channel that are next to each other.
    pub run: usize,
}

/// Writes `x` where it is greater than 0, and `slope * x` elsewhere, also where it is NaN.
///
/// # Errors
///
/// [`Geometry`](crate::ErrorKind::Geometry) if the input has fewer elements than the output, or there are no slopes for them.
///
/// ```
/// use edgepack_compute::prelu::{Slopes, prelu};
///
/// let (x, slopes, mut out) = ([-1.0f32, 1.0, -2.0, -4.0], &[0.5, 0.25], [0.0; 4]);
/// prelu(&x, Slopes { slopes, run: 1 }, &mut out)?;
/// assert_eq!(out, [-0.5, 1.0, -1.0, -1.0]);
/// prelu(&x, Slopes { slopes, run: 2 }, &mut out)?;
/// assert_eq!(out, [-0.5, 1.0, -0.5, -1.0]);
/// # Ok::<(), edgepack_compute::Error>(())
/// ```
pub fn prelu<T: Number>(input: &[T], slopes: Slopes<'_, T>, out: &mut [T]) -> Result<(), Error> {
    let count = out.len();
    prepared(input, slopes, count, |slopes| {
        for_each_piece(out, 1, |start, out| slopes.apply(input, start, out));
    })
}

/// Writes what operations make of the results of [`prelu`], in the bytes of their elements.
///
/// # Errors
///
/// Those of [`prelu`].
pub fn prelu_then(input: &[f32], slopes: Slopes<'_, f32>, epilogue: &Epilogue, out: &mut [u8]) -> Result<(), Error> {
    let width = epilogue.output().size().unwrap_or(1);
    prepared(input, slopes, out.len() / width, |slopes| {
        let len = slopes.block_len();
        for_each_piece(out, len * width, |start, out| {
            let mut results = [0f32; BLOCK];
            for (block, out) in out.chunks_mut(len * width).enumerate() {
                let results = &mut results[..out.len() / width];
                slopes.apply(input, start / width + block * len, results);
                epilogue.run(bytemuck::cast_slice(results), out);
            }
        });
    })
}

/// Calls `work` with slopes as loops take them, if there are so many elements at all.
fn prepared<T: Number>(
    input: &[T],
    Slopes { slopes, run }: Slopes<'_, T>,
    count: usize,
    work: impl FnOnce(Slopes<'_, T>),
) -> Result<(), Error> {
    expect_elements("the input", input.len(), count)?;
    if count == 0 {
        return Ok(());
    }
    if slopes.is_empty() || run == 0 {
        return Err(Error::new(ErrorKind::Geometry, format!("{} slopes of runs of {run} elements", slopes.len())));
    }
    if run > 1 || slopes.len() == 1 {
        // One slope is the slope of all.
        let run = if slopes.len() == 1 { usize::MAX } else { run };
        work(Slopes { slopes, run });
        return Ok(());
    }
    let mut repeated = ArrayVec::<T, BLOCK>::new();
    for _ in 0..(BLOCK / slopes.len()).min(count.div_ceil(slopes.len())) {
        // As often as there is room for all, or use.
        let _ = repeated.try_extend_from_slice(slopes);
    }
    work(Slopes { slopes: if repeated.is_empty() { slopes } else { &repeated }, run });
    Ok(())
}

impl<T: Number> Slopes<'_, T> {
    /// Elements of a block where operations follow: as many as there are slopes, if those fit, so that it goes through them once.
    fn block_len(&self) -> usize {
        if self.run == 1 && self.slopes.len() <= BLOCK { self.slopes.len() } else { BLOCK }
    }

    /// Computes elements from number `start` on.
    fn apply(&self, input: &[T], start: usize, out: &mut [T]) {
        let Slopes { slopes, run } = *self;
        let input = &input[start..][..out.len()];
        let mut done = 0;
        while done < out.len() {
            let at = start + done;
            let left = if run == 1 { slopes.len() - at % slopes.len() } else { run - at % run };
            let here = done..out.len().min(done.saturating_add(left));
            let (out, input) = (&mut out[here.clone()], &input[here.clone()]);
            if run == 1 {
                run_wide(Each { input, slopes: &slopes[at % slopes.len()..], out });
            } else {
                run_wide(One { input, slope: slopes[at / run % slopes.len()], out });
            }
            done = here.end;
        }
    }
}

/// Numbers, each of which has a slope.
struct Each<'a, T> {
    input: &'a [T],
    slopes: &'a [T],
    out: &'a mut [T],
}

impl<T: Number> Loop for Each<'_, T> {
    #[inline(always)]
    fn run(self) {
        let numbers = self.out.iter_mut().zip(self.input).zip(self.slopes);
        numbers.for_each(|((y, x), slope)| *y = sloped(*x, *slope));
    }
}

/// Numbers that have one slope.
struct One<'a, T> {
    input: &'a [T],
    slope: T,
    out: &'a mut [T],
}

impl<T: Number> Loop for One<'_, T> {
    #[inline(always)]
    fn run(self) {
        self.out.iter_mut().zip(self.input).for_each(|(y, x)| *y = sloped(*x, self.slope));
    }
}

#[inline(always)]
fn sloped<T: Number>(x: T, slope: T) -> T {
    let number = x.to_compute();
    if T::Compute::ZERO.less(number) { x } else { number.times(slope.to_compute()).cast() }
}

#[cfg(test)]
mod tests {
    use edgepack_format::scalar::ScalarType;
    use half::f16;

    use super::*;
    use crate::epilogue::Operation;
    use crate::quantise::Affine;
    use crate::random::Random;

    /// Channels in runs of any length, on all threads too, against each number by itself.
    #[test]
    fn channels_have_their_slopes() {
        let mut random = Random::new(71);
        for (channels, run) in [(1, 1), (1, 37), (3, 1), (3, 7), (64, 1), (300, 1), (700, 1), (700, 2), (5, 4000)] {
            for count in [0, 1, 5, channels * run, 2 * channels * run + 3, 200_000] {
                let mut x = random.floats(count);
                x.iter_mut().step_by(41).for_each(|x| *x = f32::NAN);
                x.iter_mut().step_by(43).for_each(|x| *x = f32::NEG_INFINITY);
                x.iter_mut().step_by(47).for_each(|x| *x = f32::INFINITY);
                x.iter_mut().step_by(53).for_each(|x| *x = 0.0);
                x.iter_mut().step_by(59).for_each(|x| *x = -0.0);
                let mut slopes = random.floats(channels);
                slopes[channels / 2] = -0.0;
                slopes[channels - 1] = f32::INFINITY;
                let mut out = vec![1.5; count];
                prelu(&x, Slopes { slopes: &slopes, run }, &mut out).unwrap();
                for (at, (x, y)) in x.iter().zip(&out).enumerate() {
                    let want = if *x > 0.0 { *x } else { *x * slopes[at / run % channels] };
                    let same = y.to_bits() == want.to_bits() || y.is_nan() && want.is_nan();
                    assert!(same, "{x} at {at} of {channels} channels of {run}: {y}, not {want}");
                }
            }
        }
    }

    /// Operations that change the width of elements, on all threads too.
    #[test]
    fn operations_follow() {
        let mut random = Random::new(72);
        let affine = Affine { scale: 0.01, zero: 3, least: -128, greatest: 127 };
        let operations = [Operation::Neg, Operation::Quantize { to: ScalarType::CHAR, affine }];
        let epilogue = Epilogue::new(ScalarType::FLOAT, &operations).unwrap();
        for (channels, run, count) in
            [(1, 1, 4000), (24, 1, 100_000), (700, 1, 5000), (2000, 1, 9000), (5, 300, 70_001)]
        {
            let (x, slopes) = (random.floats(count), random.floats(channels));
            let slopes = Slopes { slopes: &slopes, run };
            let (mut floats, mut want, mut have) = (vec![0f32; count], vec![0u8; count], vec![1u8; count]);
            prelu(&x, slopes, &mut floats).unwrap();
            epilogue.run(bytemuck::cast_slice(&floats), &mut want);
            prelu_then(&x, slopes, &epilogue, &mut have).unwrap();
            assert_eq!(have, want, "{channels} channels of {run}");
        }
    }

    #[test]
    fn halves_are_computed_in_single_precision() {
        let [x, slope] = [-3.0, 0.1].map(f16::from_f32);
        let mut out = [f16::ZERO; 2];
        prelu(&[x, f16::ONE], Slopes { slopes: &[slope], run: 1 }, &mut out).unwrap();
        assert_eq!(out, [f16::from_f32(-3.0 * slope.to_f32()), f16::ONE]);
    }

    #[test]
    fn other_sizes_are_refused() {
        for (input, slopes, run, out) in [(3, 1, 1, 4), (4, 0, 1, 4), (4, 2, 0, 4)] {
            let slopes = vec![0.0; slopes];
            let refused = prelu(&vec![0f32; input], Slopes { slopes: &slopes, run }, &mut vec![0.0; out]);
            assert_eq!(refused.unwrap_err().kind, ErrorKind::Geometry);
        }
        assert_eq!(prelu::<f32>(&[], Slopes { slopes: &[], run: 0 }, &mut []), Ok(()));
    }
}
