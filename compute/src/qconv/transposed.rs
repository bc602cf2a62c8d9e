//! Transposed convolutions of statically quantised images. Places of the output that are a stride apart are reached by the same
//! taps, so each such phase is a convolution over the image with some of the taps, and the phases of a line are one with as many
//! times the channels, where they see little that is not theirs; then the results of all phases are put in between each other.
//!
//! Invariant: sums are those of the definition, modulo 2³². What a phase sees outside of the image is the zero point, and taps
//! that are not those of a phase have weight 0.

use super::phases::{MOST, Phase};
use super::{Convolution, Error, Packed, Requantise, Windows, expect};
use crate::error::{ErrorKind, room};
use crate::join::{Rows, join_from};
use crate::threads::{Cost, for_each_piece_at};

/// Phases of a line whose results are joined.
const SIDE: usize = 8;

/// Nanoseconds of a byte that is put in its place.
const BYTE: f64 = 0.15;

/// A transposed convolution of statically quantised images with weights `[outputs, kh, kw, inputs]`, in one group.
pub struct TransposedConvolution {
    phases: Vec<(Phase, Convolution)>,
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
        for phase in Phase::all(windows, more, outputs)? {
            let windows = phase.windows();
            let inner = windows.kernel[0].checked_mul(windows.kernel[1])?.checked_mul(inputs)?;
            let sizes = [outputs.checked_mul(phase.columns.places())?, inner];
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
        requantise.check(outputs)?;
        expect("biases", bias.map_or(outputs, <[i32]>::len), outputs)?;
        let all = Phase::all(&windows, more, outputs);
        let all = all.ok_or_else(|| Error::new(ErrorKind::Geometry, format!("{windows:?}")))?;
        let mut phases = room(all.len())?;
        for phase in all {
            let (of_phase, places) = (phase.windows(), phase.columns.places());
            let inner = of_phase.taps().saturating_mul(inputs);
            let channels = outputs.saturating_mul(places);
            let mut chosen: Vec<i8> = room(channels.saturating_mul(inner))?;
            for channel in 0..channels {
                let (of, output) = (channel / outputs, channel % outputs);
                for tap in 0..of_phase.taps() {
                    match phase.tap(of, [tap / of_phase.kernel[1], tap % of_phase.kernel[1]]) {
                        Some([y, x]) => {
                            chosen.extend_from_slice(&weights[((output * kh + y) * kw + x) * inputs..][..inputs])
                        }
                        None => chosen.resize(chosen.len() + inputs, 0),
                    }
                }
            }
            let packed = Packed::new(&chosen, [channels, inner], &of_phase)?;
            let (bias, factors) = (bias.map(|bias| bias.repeat(places)), requantise.repeated(places));
            let requantise = Requantise { factors: &factors, ..requantise };
            phases.push((phase, Convolution::new(packed, of_phase, bias.as_deref(), requantise)?));
        }
        Ok(TransposedConvolution { phases, windows, more, outputs })
    }

    /// Bytes of scratch memory that images `[n, h, w, c]` need.
    pub fn scratch(&self, [n, h, w, _]: [usize; 4]) -> usize {
        let each = self.phases.iter().map(|(phase, _)| {
            let [rows, columns] = phase.windows().counts([h, w]);
            let pixels = n.saturating_mul(rows).saturating_mul(columns);
            pixels.saturating_mul(self.outputs.saturating_mul(phase.columns.places()))
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
        let (mut rest, mut results) = (&mut *scratch, [Computed::default(); MOST]);
        let mut start = 0;
        for ((phase, convolution), computed) in phases.iter().zip(&mut results) {
            let [count, width] = phase.windows().counts([h, w]);
            let line = width * phase.columns.places() * outputs;
            let (results, others) = rest.split_at_mut(n * count * line);
            convolution.run(images, sizes, results)?;
            *computed = Computed { start, count, line, cut: phase.columns.cut() * outputs };
            start += results.len();
            rest = others;
        }
        let (down, line) = (windows.stride[0], columns * outputs);
        let right = phases.len() / down;
        for_each_piece_at(Cost::nanoseconds(BYTE), out, line, |first, out| {
            for (row, out) in (first / line..).zip(out.chunks_exact_mut(line)) {
                let (image, y) = (row / rows, row % rows);
                let of_phase = |phase: usize| {
                    let Computed { start, count, line, cut } = results[y % down * right + phase];
                    &scratch[start + (image * count + y / down) * line..][cut..line]
                };
                if right == 1 {
                    out.copy_from_slice(&of_phase(0)[..out.len()]);
                    continue;
                }
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

/// Results of a phase in scratch memory: where they start, lines of an image and their bytes, and those of a line in front of
/// the first that is wanted.
#[derive(Clone, Copy, Default)]
struct Computed {
    start: usize,
    count: usize,
    line: usize,
    cut: usize,
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
        let (mut computed, mut lines) = (0, 0);
        for _ in 0..800 {
            let (c, outputs) = (1 + random.below(20), 1 + random.below(40));
            let sizes = [1 + random.below(2), 1 + random.below(5), 1 + random.below(9), c];
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
            let factors: Vec<f32> = (0..outputs).map(|output| 0.0017 + output as f32 * 1e-5).collect();
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
            lines += usize::from(convolution.phases.iter().any(|(phase, _)| phase.columns.places() > 1));
        }
        assert!(computed > 700 && lines > 200, "{computed} of 800 were split into phases, {lines} with whole lines");
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
