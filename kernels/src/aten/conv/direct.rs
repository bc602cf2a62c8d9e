//! Convolution by its definition: every output element gathers the input elements its taps meet.

use super::Geometry;
use crate::spatial::{Slide, Taps};
use edgepack_compute::number::{Cast, Compute, Number};

/// Computes the whole output.
pub fn convolve<T: Number>(geometry: &Geometry, input: &[T], weight: &[T], bias: Option<&[T]>, out: &mut [T]) {
    let Geometry { out: images, .. } = geometry;
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
                        let sum = source.sum(geometry, input, weight, [z, y, x]).plus(bias);
                        out[start + x * images.strides[2]] = sum.cast();
                    }
                }
            }
        }
    }
}

/// Where an output channel reads: the first elements of input and weight, the steps to the next input channel, and how
/// many there are.
struct Source {
    input: usize,
    weight: usize,
    input_step: usize,
    weight_step: usize,
    channels: usize,
}

impl Source {
    fn new(geometry: &Geometry, n: usize, group: usize, channel: usize) -> Source {
        let Geometry { input, weight, .. } = geometry;
        let [channels, out_channels] = geometry.group_channels();
        let first = group * channels;
        // The weight is by output channel and then input channel of the group; transposed it is the other way round.
        let (weight_start, weight_step) = if geometry.transposed {
            (first * weight.batch.1 + channel * weight.channels.1, weight.batch.1)
        } else {
            ((group * out_channels + channel) * weight.batch.1, weight.channels.1)
        };
        Source {
            input: n * input.batch.1 + first * input.channels.1,
            weight: weight_start,
            input_step: input.channels.1,
            weight_step,
            channels,
        }
    }

    fn sum<T: Number>(&self, geometry: &Geometry, input: &[T], weight: &[T], place: [usize; 3]) -> T::Compute {
        let Geometry { input: images, weight: kernel, slides, transposed, .. } = geometry;
        let mut sum = T::Compute::ZERO;
        each(&slides[0], place[0], *transposed, images.sizes[0], |z, kz| {
            each(&slides[1], place[1], *transposed, images.sizes[1], |y, ky| {
                each(&slides[2], place[2], *transposed, images.sizes[2], |x, kx| {
                    let from = self.input + z * images.strides[0] + y * images.strides[1] + x * images.strides[2];
                    let by = self.weight + kz * kernel.strides[0] + ky * kernel.strides[1] + kx * kernel.strides[2];
                    for channel in 0..self.channels {
                        let x = input[from + channel * self.input_step].to_compute();
                        sum = sum.plus(x.times(weight[by + channel * self.weight_step].to_compute()));
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
