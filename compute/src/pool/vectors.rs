//! The greatest `f32` of windows over channels-last images, a vector of channels at a time.
//!
//! Invariant: results are those of the loop over elements, to the bit but for the bits of NaN.

use std::any::TypeId;

use super::Windows;
use crate::number::Number;
use crate::simd::float_path::FloatPath;
use crate::simd::floats::{Floats, LANES as VECTOR, WithFloats};
use crate::spatial::Images;
use crate::threads::{Cost, for_each_piece_at};

/// Nanoseconds of a tap of a window.
const TAP: f64 = 0.05;

impl Windows {
    /// Returns whether the channels of a pixel are neighbours and fill vectors, in images without gaps of one layer.
    pub(super) fn has_vectors(&self) -> bool {
        let Windows { input, out, .. } = self;
        let dense = |images: &Images| {
            images.is_placed_as(&Images::channels_last(images.batch.0, images.channels.0, images.sizes))
        };
        dense(input) && dense(out) && input.sizes[0] == 1 && out.channels.0 >= VECTOR
    }

    /// Computes what [`Windows::greatest_values`] does.
    pub(super) fn greatest_vectors(&self, data: &[f32], out: &mut [f32]) {
        let Windows { input, out: to, axes } = self;
        let (path, width) = (FloatPath::best(), to.sizes[2] * to.channels.0);
        let taps: usize = axes.iter().zip(to.sizes).map(|(axis, size)| axis.taps(size / 2).count.max(1)).product();
        let cost = Cost::nanoseconds(TAP * taps as f64);
        for_each_piece_at(cost, &mut out[..to.batch.0 * to.area() * to.channels.0], width, |start, out| {
            for (index, out) in out.chunks_exact_mut(width).enumerate() {
                let row = start / width + index;
                let data = &data[row / to.sizes[1] * input.area() * input.channels.0..];
                path.run(GreatestRow { windows: self, data, y: row % to.sizes[1], out });
            }
        });
    }
}

/// Returns the elements as `f32`; `None` if they are of another type.
pub(super) fn floats<T: Number>(data: &[T]) -> Option<&[f32]> {
    (TypeId::of::<T>() == TypeId::of::<f32>()).then(|| bytemuck::cast_slice(data))
}

/// Returns the elements as [`floats`] does, to write.
pub(super) fn floats_mut<T: Number>(data: &mut [T]) -> Option<&mut [f32]> {
    (TypeId::of::<T>() == TypeId::of::<f32>()).then(|| bytemuck::cast_slice_mut(data))
}

/// A row of the greatest elements of windows over channels-last pixels.
struct GreatestRow<'a, 'o> {
    windows: &'a Windows,
    data: &'a [f32],
    y: usize,
    out: &'o mut [f32],
}

impl WithFloats for GreatestRow<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<F: Floats>(self, floats: F) {
        let Windows { input, out: to, axes: [_, down, right] } = self.windows;
        let channels = to.channels.0;
        let height = down.taps(self.y);
        for (x, out) in self.out.chunks_exact_mut(channels).enumerate() {
            let width = right.taps(x);
            let mut first = 0;
            while first < channels {
                // The last vector begins early enough to be whole.
                first = first.min(channels - VECTOR);
                let mut greatest = floats.splat(f32::NEG_INFINITY);
                for y in (height.first..).step_by(down.dilation()).take(height.count) {
                    let line = &self.data[y * input.strides[1] + first..];
                    for x in (width.first..).step_by(right.dilation()).take(width.count) {
                        let Some(values) = line[x * channels..].first_chunk() else { continue };
                        greatest = floats.greater(greatest, floats.load(values));
                    }
                }
                if let Some(out) = out[first..].first_chunk_mut() {
                    floats.store(greatest, out);
                }
                first += VECTOR;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Axis;
    use super::*;
    use crate::random::Random;
    use crate::spatial::Slide;

    /// The greatest floats, NaN among them, with vectors and without.
    #[test]
    fn vectors_of_channels_agree_with_elements() {
        let mut random = Random::new(44);
        for channels in [16, 24, 70] {
            let slides = [
                Slide::POINT,
                Slide { input: 9, kernel: 3, stride: 2, padding: 1, dilation: 1 },
                Slide { input: 7, kernel: 2, stride: 1, padding: 0, dilation: 2 },
            ];
            let places = slides.map(|slide| slide.places(false).unwrap());
            let (input, out) =
                (Images::channels_last(2, channels, [1, 9, 7]), Images::channels_last(2, channels, places));
            let mut windows = Windows { input, out, axes: slides.map(Axis::Sliding) };
            // A dimension that is not there has no distance.
            (windows.input.strides[0], windows.out.strides[0]) = (0, 0);
            let mut data: Vec<f32> = random.floats(2 * channels * 63);
            data.iter_mut().step_by(37).for_each(|x| *x = f32::NAN);
            let len = 2 * channels * out.area();
            let (mut want, mut have, mut at) = (vec![0f32; len], vec![0f32; len], vec![0; len]);
            windows.greatest(&data, &mut want, &mut at);
            assert!(windows.has_vectors());
            windows.greatest_values(&data, &mut have);
            assert!(want.iter().zip(&have).all(|(a, b)| a == b || a.is_nan() && b.is_nan()));
        }
    }
}
