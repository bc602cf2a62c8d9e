//! Transposed convolutions of statically quantised images. Places of the output that are a stride apart are reached by the same
//! taps, so each such phase is a convolution over the image with some of the taps; then the results of all phases are put
//! in between each other.
//!
//! Invariant: sums are those of the definition, modulo 2³². What a phase sees outside of the image is the zero point, and taps
//! that stand in front of those of a phase have weight 0.

use super::{Convolution, Error, Packed, Requantise, Windows, expect};
use crate::error::{ErrorKind, room};
use crate::join::{Rows, join_from};
use crate::threads::{Cost, for_each_piece_at};

/// Phases of a side whose results are joined, and phases, at most: a stride of 8 in both directions.
const SIDE: usize = 8;
const MOST_PHASES: usize = SIDE * SIDE;

/// Nanoseconds of a byte that is put in its place.
const BYTE: f64 = 0.15;

/// The phase of one side: which taps reach its places, and the window they make.
#[derive(Clone, Copy)]
struct Side {
    /// The tap that reaches the places first, and the distance to the next, which is a smaller one.
    tap: usize,
    step: usize,
    /// Taps of weight 0 that stand in front, and those that follow.
    front: usize,
    count: usize,
    dilation: usize,
    padding: [usize; 2],
}

impl Side {
    /// The places `phase`, `phase + stride`, and so on; `None` if numbers are out of proportion.
    fn of(windows: &Windows, side: usize, phase: usize, more: usize) -> Option<Side> {
        let number = |number: usize| i64::try_from(number).ok().filter(|number| *number < 1 << 31);
        let (stride, dilation) = (number(windows.stride[side])?, number(windows.dilation[side])?);
        let [before, after] = [number(windows.padding[side][0])?, number(windows.padding[side][1])?];
        let (kernel, phase, more) = (number(windows.kernel[side])?, number(phase)?, number(more)?);
        let reaches = |tap: &i64| (phase + before - tap * dilation).rem_euclid(stride) == 0;
        let mut taps = (0..kernel).rev().filter(reaches);
        let last = taps.next();
        let count = last.map_or(0, |_| 1 + taps.clone().count());
        let step = last.zip(taps.next()).map_or(0, |(tap, next)| tap - next);
        // Of the input place that a tap reaches, from the number of a place in the phase on.
        let first = last.map_or(0, |tap| (phase + before - tap * dilation) / stride);
        let distance = if step == 0 { 1 } else { step * dilation / stride };
        let front = if first > 0 { (first + distance - 1) / distance } else { 0 };
        let front = if count == 0 { front.max(1) } else { front };
        if front > 2 * kernel + 2 {
            return None;
        }
        let padded = front * distance - first;
        let reach = (front + count as i64 - 1) * distance + 1;
        // Places of a phase that there are more of than of the image.
        let whole = more + (kernel - 1) * dilation + 1 - stride - before - after;
        let places = -(phase - whole).div_euclid(stride);
        let behind = (places - padded + reach - 1).max(0);
        let size = |number: i64| usize::try_from(number).ok();
        Some(Side {
            tap: size(last.unwrap_or(0))?,
            step: size(step)?,
            front: size(front)?,
            count,
            dilation: size(distance)?,
            padding: [size(padded)?, size(behind)?],
        })
    }

    /// Taps of the phase.
    fn taps(&self) -> usize {
        self.front + self.count
    }

    /// The tap in a place of the phase; `None` if it has weight 0.
    fn tap(&self, place: usize) -> Option<usize> {
        place.checked_sub(self.front).map(|place| self.tap - place * self.step)
    }
}

/// The sides of each phase, row by row; `None` if there are too many, or numbers are out of proportion.
fn phases(windows: &Windows, more: [usize; 2]) -> Option<Vec<[Side; 2]>> {
    let [down, right] = windows.stride;
    let fits = windows.check().is_ok() && windows.groups == 1;
    if !fits || down.checked_mul(right).is_none_or(|count| count > MOST_PHASES) {
        return None;
    }
    let each = (0..down).flat_map(|y| (0..right).map(move |x| [y, x]));
    each.map(|[y, x]| Some([Side::of(windows, 0, y, more[0])?, Side::of(windows, 1, x, more[1])?])).collect()
}

/// The windows of a phase.
fn windows_of(sides: &[Side; 2]) -> Windows {
    Windows {
        kernel: sides.map(|side| side.taps()),
        dilation: sides.map(|side| side.dilation),
        padding: sides.map(|side| side.padding),
        ..Windows::ONE
    }
}

/// A transposed convolution of statically quantised images with weights `[outputs, kh, kw, inputs]`, in one group.
pub struct TransposedConvolution {
    phases: Vec<(Windows, Convolution)>,
    windows: Windows,
    more: [usize; 2],
    outputs: usize,
}

impl TransposedConvolution {
    /// Bytes that it retains, with so many outputs and inputs, and so many rows and columns more than the windows spread over;
    /// `None` if it is computed better by definition: strides of more than 8 by 8, several groups, or padding that is far larger
    /// than the kernel.
    pub fn bytes([outputs, inputs]: [usize; 2], windows: &Windows, more: [usize; 2]) -> Option<usize> {
        let mut all = 0usize;
        for sides in phases(windows, more)? {
            let inner = sides[0].taps().checked_mul(sides[1].taps())?.checked_mul(inputs)?;
            let (sizes, windows) = ([outputs, inner], windows_of(&sides));
            let packed = Packed::packed_len(sizes, &windows)?;
            all = all.checked_add(packed)?.checked_add(Convolution::bytes(sizes, &windows))?;
        }
        Some(all)
    }

    /// Splits a transposed convolution into its phases.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Geometry`] if [`TransposedConvolution::bytes`] gives nothing or numbers do not fit;
    /// [`ErrorKind::Memory`].
    pub fn new(
        weights: &[i8],
        [outputs, inputs]: [usize; 2],
        windows: Windows,
        more: [usize; 2],
        bias: Option<&[i32]>,
        requantise: Requantise<'_>,
    ) -> Result<Self, Error> {
        let [kh, kw] = windows.kernel;
        expect("weights", weights.len(), outputs.saturating_mul(windows.taps()).saturating_mul(inputs))?;
        let sides = phases(&windows, more).ok_or_else(|| Error::new(ErrorKind::Geometry, format!("{windows:?}")))?;
        let mut phases = room(sides.len())?;
        for sides in sides {
            let of_phase = windows_of(&sides);
            let inner = of_phase.taps().saturating_mul(inputs);
            let mut chosen: Vec<i8> = room(outputs.saturating_mul(inner))?;
            for output in 0..outputs {
                for (y, x) in (0..sides[0].taps()).flat_map(|y| (0..sides[1].taps()).map(move |x| (y, x))) {
                    match (sides[0].tap(y), sides[1].tap(x)) {
                        (Some(y), Some(x)) => {
                            chosen.extend_from_slice(&weights[((output * kh + y) * kw + x) * inputs..][..inputs])
                        }
                        _ => chosen.resize(chosen.len() + inputs, 0),
                    }
                }
            }
            let packed = Packed::new(&chosen, [outputs, inner], &of_phase)?;
            phases.push((of_phase, Convolution::new(packed, of_phase, bias, requantise)?));
        }
        Ok(TransposedConvolution { phases, windows, more, outputs })
    }

    /// Bytes of scratch memory that images `[n, h, w, c]` need.
    pub fn scratch(&self, [n, h, w, _]: [usize; 4]) -> usize {
        let each = self.phases.iter().map(|(windows, _)| {
            let [rows, columns] = windows.counts([h, w]);
            n.saturating_mul(rows).saturating_mul(columns).saturating_mul(self.outputs)
        });
        each.fold(0, usize::saturating_add)
    }

    /// Computes images `[n, h, w, c]`.
    pub fn run(
        &self,
        images: &[i8],
        sizes @ [n, h, w, _]: [usize; 4],
        scratch: &mut [i8],
        out: &mut [i8],
    ) -> Result<(), Error> {
        let TransposedConvolution { phases, windows, more, outputs } = self;
        let [rows, columns] = windows.spread([h, w], *more);
        expect("results", out.len(), n * rows * columns * outputs)?;
        if out.is_empty() || h == 0 || w == 0 {
            return Ok(());
        }
        let needed = self.scratch(sizes);
        let scratch = scratch.get_mut(..needed).ok_or_else(|| Error::new(ErrorKind::Geometry, "too little scratch"))?;
        let (mut rest, mut starts) = (&mut *scratch, [(0, [0; 2]); MOST_PHASES]);
        let mut start = 0;
        for ((of_phase, convolution), place) in phases.iter().zip(&mut starts) {
            let counts = of_phase.counts([h, w]);
            let (results, others) = rest.split_at_mut(n * counts[0] * counts[1] * outputs);
            convolution.run(images, sizes, results)?;
            *place = (start, counts);
            start += results.len();
            rest = others;
        }
        let [down, right] = windows.stride;
        let line = columns * outputs;
        for_each_piece_at(Cost::nanoseconds(BYTE), out, line, |first, out| {
            for (row, out) in (first / line..).zip(out.chunks_exact_mut(line)) {
                let (image, y) = (row / rows, row % rows);
                let of_phase = |phase: usize| {
                    let (start, [count, width]) = starts[y % down * right + phase];
                    &scratch[start + (image * count + y / down) * width * outputs..][..width * outputs]
                };
                if right <= SIDE && columns.is_multiple_of(right) {
                    let mut all = [Rows::default(); SIDE];
                    for (phase, rows) in all[..right].iter_mut().enumerate() {
                        *rows = Rows { bytes: bytemuck::cast_slice(of_phase(phase)), len: *outputs };
                    }
                    join_from(&all[..right], 0, bytemuck::cast_slice_mut(out));
                    continue;
                }
                for phase in 0..right {
                    let places = out.chunks_exact_mut(*outputs).skip(phase).step_by(right);
                    let from = of_phase(phase).chunks_exact(*outputs);
                    places.zip(from).for_each(|(to, from)| to.copy_from_slice(from));
                }
            }
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// By definition: every output sums what its taps reach.
    fn defined(
        (images, [n, h, w, c]): (&[i8], [usize; 4]),
        (weights, outputs): (&[i8], usize),
        windows: &Windows,
        more: [usize; 2],
        bias: &[i32],
        requantise: Requantise<'_>,
    ) -> Vec<i8> {
        let [rows, columns] = windows.spread([h, w], more);
        let source = |side: usize, place: usize, tap: usize, size: usize| {
            let place = (place + windows.padding[side][0]).checked_sub(tap * windows.dilation[side])?;
            let stride = windows.stride[side];
            place.is_multiple_of(stride).then_some(place / stride).filter(|place| *place < size)
        };
        let mut out = Vec::new();
        for (image, y, x, output) in (0..n).flat_map(|image| {
            (0..rows).flat_map(move |y| (0..columns).flat_map(move |x| (0..outputs).map(move |o| (image, y, x, o))))
        }) {
            let mut sum = bias[output];
            for (ky, kx) in (0..windows.kernel[0]).flat_map(|ky| (0..windows.kernel[1]).map(move |kx| (ky, kx))) {
                let (Some(sy), Some(sx)) = (source(0, y, ky, h), source(1, x, kx, w)) else { continue };
                for channel in 0..c {
                    let seen = i32::from(images[((image * h + sy) * w + sx) * c + channel]);
                    let tap = (output * windows.kernel[0] + ky) * windows.kernel[1] + kx;
                    sum += (seen - i32::from(requantise.input_zero)) * i32::from(weights[tap * c + channel]);
                }
            }
            let limits = requantise.limits();
            out.push(super::super::requantised(sum, requantise.factor(output), limits, requantise.output_zero.into()));
        }
        out
    }

    #[test]
    fn phases_give_what_the_definition_gives() {
        let mut random = Random::new(7);
        let mut computed = 0;
        for _ in 0..400 {
            let (c, outputs) = (1 + random.below(20), 1 + random.below(20));
            let sizes = [1 + random.below(2), 1 + random.below(5), 1 + random.below(5), c];
            let windows = Windows {
                kernel: [1 + random.below(4), 1 + random.below(4)],
                stride: [1 + random.below(4), 1 + random.below(4)],
                dilation: [1 + random.below(3), 1 + random.below(3)],
                padding: [[random.below(4), random.below(4)], [random.below(4), random.below(4)]],
                groups: 1,
            };
            let more = [random.below(windows.stride[0]), random.below(windows.stride[1])];
            let mut bytes = |count: usize| (0..count).map(|_| random.below(256) as u8 as i8).collect::<Vec<i8>>();
            let images = bytes(sizes.iter().product());
            let weights = bytes(outputs * windows.kernel[0] * windows.kernel[1] * c);
            let bias: Vec<i32> = bytes(outputs).into_iter().map(|byte| i32::from(byte) * 64).collect();
            let factors = vec![0.0021; outputs];
            let requantise =
                Requantise { factors: &factors, input_zero: -3, output_zero: 5, output_limits: [-120, 110] };
            if TransposedConvolution::bytes([outputs, c], &windows, more).is_none() {
                continue;
            }
            let convolution =
                TransposedConvolution::new(&weights, [outputs, c], windows, more, Some(&bias), requantise).unwrap();
            let want = defined((&images, sizes), (&weights, outputs), &windows, more, &bias, requantise);
            let (mut scratch, mut out) = (vec![99; convolution.scratch(sizes)], vec![99; want.len()]);
            convolution.run(&images, sizes, &mut scratch, &mut out).unwrap();
            assert_eq!(out, want, "{windows:?} {more:?} {sizes:?}");
            computed += 1;
        }
        assert!(computed > 350, "{computed} of 400 were split into phases");
    }

    #[test]
    fn what_is_out_of_proportion_is_left_to_the_definition() {
        let windows = Windows { kernel: [3; 2], stride: [2; 2], ..Windows::ONE };
        let bytes = |windows: Windows| TransposedConvolution::bytes([4, 4], &windows, [0; 2]);
        assert!(bytes(windows).is_some());
        assert!(bytes(Windows { stride: [9; 2], ..windows }).is_none());
        assert!(bytes(Windows { groups: 2, ..windows }).is_none());
        assert!(bytes(Windows { padding: [[1 << 20, 0]; 2], ..windows }).is_none());
        assert!(bytes(Windows { dilation: [usize::MAX; 2], ..windows }).is_none());
    }
}
