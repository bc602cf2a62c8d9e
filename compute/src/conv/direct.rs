//! Convolution by its definition: every output element gathers the input elements its taps meet.

use super::geometry::{Geometry, Operands};
use crate::number::{Cast, Compute, Number};
use crate::spatial::{Slide, Taps};

/// Computes the whole output. Sums start at 0, run over depth, height, width and then the channels of the group, and get
/// the bias last.
///
/// ```
/// use edgepack_compute::conv::{Geometry, Operands, direct};
/// use edgepack_compute::spatial::{Images, Slide};
///
/// // Differences of neighbours in a row of four.
/// let row = |width| Images::channels_first(1, 1, [1, 1, width]);
/// let slide = Slide { input: 4, kernel: 2, ..Slide::POINT };
/// let slides = [Slide::POINT, Slide::POINT, slide];
/// let (input, weight) = (row(4), row(2));
/// let geometry = Geometry { input, weight, out: row(3), slides, groups: 1, transposed: false };
/// let operands = Operands { input: &[1, 4, 9, 16], weight: &[-1, 1], bias: None };
/// let mut out = [0i32; 3];
/// direct::convolve(&geometry, &operands, &mut out);
/// assert_eq!(out, [3, 5, 7]);
/// ```
///
/// # Panics
///
/// If a slice is shorter than the geometry says.
pub fn convolve<T: Number>(geometry: &Geometry, operands: &Operands<'_, T>, out: &mut [T]) {
    let Geometry { out: images, .. } = geometry;
    let Operands { input, weight, bias } = *operands;
    let [_, group] = geometry.group_channels();
    for n in 0..images.batch.0 {
        for channel in 0..images.channels.0 {
            let bias = bias.map_or(T::Compute::ZERO, |bias| bias[channel].to_compute());
            let source = Source::new(geometry, n, channel / group, channel % group);
            let start = n * images.batch.1 + channel * images.channels.1;
            for z in 0..images.sizes[0] {
                for y in 0..images.sizes[1] {
                    let start = start + z * images.strides[0] + y * images.strides[1];
                    for x in 0..images.sizes[2] {
                        let sum = source.sum(geometry, [input, weight], |tap| tap, [z, y, x]).plus(bias);
                        out[start + x * images.strides[2]] = sum.cast();
                    }
                }
            }
        }
    }
}

/// Computes the sum of one output element without its bias, as [`convolve`] does with `tap` of every number of the weight: of
/// an image, a channel and a place.
pub(super) fn sum<T: Number>(
    geometry: &Geometry,
    operands: [&[T]; 2],
    tap: impl Fn(T) -> T,
    [n, channel]: [usize; 2],
    place: [usize; 3],
) -> T::Compute {
    let [_, group] = geometry.group_channels();
    Source::new(geometry, n, channel / group, channel % group).sum(geometry, operands, tap, place)
}

/// The elements that an output channel reads.
struct Source {
    /// The first of the input, and of the weight.
    input: usize,
    weight: usize,
    /// The distances to the next input channel.
    input_stride: usize,
    weight_stride: usize,
    /// The input channels of the group.
    channels: usize,
}

impl Source {
    fn new(geometry: &Geometry, n: usize, group: usize, channel: usize) -> Source {
        let Geometry { input, weight, .. } = geometry;
        let [channels, out_channels] = geometry.group_channels();
        let first = group * channels;
        // The weight is by output channel and then input channel of the group; transposed, it is by input channel
        // and then output channel of the group.
        let (weight_start, weight_stride) = if geometry.transposed {
            (first * weight.batch.1 + channel * weight.channels.1, weight.batch.1)
        } else {
            ((group * out_channels + channel) * weight.batch.1, weight.channels.1)
        };
        Source {
            input: n * input.batch.1 + first * input.channels.1,
            weight: weight_start,
            input_stride: input.channels.1,
            weight_stride,
            channels,
        }
    }

    #[inline(always)]
    fn sum<T: Number>(
        &self,
        geometry: &Geometry,
        [input, weight]: [&[T]; 2],
        tap: impl Fn(T) -> T,
        place: [usize; 3],
    ) -> T::Compute {
        let Geometry { input: images, weight: kernel, slides, transposed, .. } = geometry;
        let mut sum = T::Compute::ZERO;
        each(&slides[0], place[0], *transposed, images.sizes[0], |z, kz| {
            each(&slides[1], place[1], *transposed, images.sizes[1], |y, ky| {
                each(&slides[2], place[2], *transposed, images.sizes[2], |x, kx| {
                    let from = self.input + z * images.strides[0] + y * images.strides[1] + x * images.strides[2];
                    let by = self.weight + kz * kernel.strides[0] + ky * kernel.strides[1] + kx * kernel.strides[2];
                    for channel in 0..self.channels {
                        let x = input[from + channel * self.input_stride].to_compute();
                        sum = sum.plus(x.times(tap(weight[by + channel * self.weight_stride]).to_compute()));
                    }
                });
            });
        });
        sum
    }
}

/// Calls `f` with every input element that meets the output element at `place`, and the tap where they meet.
fn each(slide: &Slide, place: usize, transposed: bool, input: usize, mut f: impl FnMut(usize, usize)) {
    if !transposed {
        let Taps { first, skipped, count } = slide.taps(place);
        (0..count).for_each(|tap| f(first + tap * slide.dilation, skipped + tap));
        return;
    }
    // The window slides over the output: which places of it put a tap here?
    for tap in 0..slide.kernel {
        let Some(distance) = (place + slide.padding).checked_sub(tap * slide.dilation) else { break };
        if distance % slide.stride == 0 && distance / slide.stride < input {
            f(distance / slide.stride, tap);
        }
    }
}
