//! Channels-last images that are convolved to a few channels, such as pictures at the end of a network: too few to fill
//! vectors. The input channels of a pixel are vectors instead, and the lanes of a sum are added up at its end.
//!
//! Invariant: an output element is one sum in an order that does not depend on its part or thread.

use super::depthwise::meet;
use super::geometry::{Geometry, Operands};
use crate::epilogue::{Activation, Epilogue};
use crate::gemm::blocks::scaled;
use crate::simd::apart::{Apart, each_row};
use crate::simd::float_path::FloatPath;
use crate::simd::floats::{Floats, LANES, WithFloats};
use crate::simd::window::Window;
use crate::threads::{Cost, WriteAll, for_each_at};

/// The most output channels.
pub(super) const MOST: usize = 4;
/// Pixels that are summed at once.
const PIXELS: usize = 4;
/// Vectors that are multiplied in the time of adding up the lanes of a sum.
const TOTAL: usize = 8;
/// Pixels of a part of a line that is all of an image.
const PIECE: usize = 128;
/// A vector of products.
const VECTOR: Cost = Cost::nanoseconds(0.4);

/// Returns whether this is faster than vectors of output channels, of a convolution whose pixels are read where they are.
pub(super) fn pays(geometry: &Geometry) -> bool {
    let Geometry { input, out, slides: [_, down, right], groups, transposed, .. } = geometry;
    let outputs = out.channels.0;
    let whole = input.channels.0 > 0 && input.channels.0.is_multiple_of(LANES);
    let fits =
        right.stride.saturating_mul(PIXELS - 1).saturating_add(right.reach()) <= Window::most_columns(down.kernel);
    let products = geometry.weight.area().saturating_mul(input.channels.0);
    let faster = outputs.saturating_mul(products / LANES + TOTAL) < products / 4 * 3;
    (1..=MOST).contains(&outputs) && *groups == 1 && !transposed && whole && fits && faster
}

/// Vectors of the weight.
pub(super) fn vectors(geometry: &Geometry) -> usize {
    let taps = geometry.weight.area().saturating_mul(geometry.out.channels.0);
    taps.saturating_mul(geometry.input.channels.0 / LANES)
}

/// Packs a weight: by tap, vector of input channels and output channel, each of which is multiplied by its factor if there are
/// factors.
pub(super) fn pack(geometry: &Geometry, weight: &[f32], factors: Option<&[f64]>, to: &mut [f32]) {
    let (kernel, outputs) = (&geometry.weight, geometry.out.channels.0);
    let [_, height, width] = kernel.sizes;
    let mut vectors = to.as_chunks_mut::<LANES>().0.iter_mut();
    for (y, x) in (0..height).flat_map(|y| (0..width).map(move |x| (y, x))) {
        let tap = y * kernel.strides[1] + x * kernel.strides[2];
        for first in (0..kernel.channels.0).step_by(LANES) {
            for (out, vector) in (0..outputs).zip(&mut vectors) {
                for (input, number) in (first..).zip(vector) {
                    let tap = weight[tap + out * kernel.batch.1 + input * kernel.channels.1];
                    *number = factors.map_or(tap, |factors| scaled(tap, factors[out]));
                }
            }
        }
    }
}

/// Computes all images. Behind the packed weight there is a zero for each input channel.
pub(super) fn convolve(
    geometry: &Geometry,
    operands: &Operands<'_, f32>,
    epilogue: Option<&Epilogue>,
    out: &mut [f32],
) {
    let Geometry { input: images, out: to, .. } = geometry;
    let (path, outputs) = (FloatPath::best(), to.channels.0);
    let [_, height, width] = to.sizes;
    let line = if height == 1 { width.min(PIECE) } else { width } * outputs;
    let products = geometry.weight.area() * images.channels.0 / LANES + TOTAL;
    let cost = Cost::nanoseconds(VECTOR.as_nanoseconds() * (products * line) as f64);
    let activation = epilogue.map_or(Activation::None, Epilogue::activation);
    for n in 0..to.batch.0 {
        let data = &operands.input[n * images.batch.1..];
        let out = &mut out[n * to.batch.1..][..to.area() * outputs];
        for_each_at(cost, WriteAll(out, line), |part, out| {
            let first = if height == 1 { [0, part * PIECE] } else { [part, 0] };
            let pixels = Pixels { geometry, data, operands, first, out: &mut *out };
            match outputs {
                1 => path.run(Of::<1>(pixels)),
                2 => path.run(Of::<2>(pixels)),
                3 => path.run(Of::<3>(pixels)),
                _ => path.run(Of::<4>(pixels)),
            }
            activation.apply(out);
            if let Some(epilogue) = epilogue {
                epilogue.finish(out);
            }
        });
    }
}

/// A line of an image, or a piece of one.
struct Pixels<'a, 'o> {
    geometry: &'a Geometry,
    data: &'a [f32],
    operands: &'a Operands<'a, f32>,
    /// Line and column of the first pixel.
    first: [usize; 2],
    out: &'o mut [f32],
}

/// Pixels of so many output channels.
struct Of<'a, 'o, const OUTPUTS: usize>(Pixels<'a, 'o>);

impl<const OUTPUTS: usize> WithFloats for Of<'_, '_, OUTPUTS> {
    type Output = ();

    #[inline(always)]
    fn run<F: Floats>(self, floats: F) {
        let Pixels { geometry, data, operands, first: [y, x], out } = self.0;
        let Geometry { slides: [_, down, right], input, .. } = geometry;
        let (weights, zeros) = operands.weight.split_at(vectors(geometry) * LANES);
        let (weights, _) = weights.as_chunks::<LANES>();
        let mut bias = [0.0; OUTPUTS];
        if let Some(numbers) = operands.bias {
            bias.copy_from_slice(&numbers[..OUTPUTS]);
        }
        let most = right.places_within(Window::most_columns(down.kernel)) / PIXELS * PIXELS;
        let mut window = Window::new(input.channels.0);
        for (part, out) in out.chunks_mut(most * OUTPUTS).enumerate() {
            let count = out.len() / OUTPUTS;
            let columns = right.reach_of(count.next_multiple_of(PIXELS));
            meet(geometry, data, &mut window, [y, down.kernel], right.start(x + part * most), columns, zeros);
            floats.apart(Part { geometry, window: &window, weights, columns, bias, out });
        }
    }
}

/// Neighbouring pixels of a line: a function of its own, so that sums stay in registers.
struct Part<'l, 'a, 'o, const OUTPUTS: usize> {
    geometry: &'l Geometry,
    window: &'l Window<'a>,
    weights: &'l [[f32; LANES]],
    /// Places of a line of the input.
    columns: usize,
    bias: [f32; OUTPUTS],
    out: &'o mut [f32],
}

impl<F: Floats, const OUTPUTS: usize> Apart<F> for Part<'_, '_, '_, OUTPUTS> {
    #[inline(always)]
    fn run(self, floats: F) {
        let Part { geometry, window, weights, columns, bias, out } = self;
        let [_, down, right] = &geometry.slides;
        for (part, out) in out.chunks_mut(PIXELS * OUTPUTS).enumerate() {
            let mut sums = [[floats.splat(0.0); OUTPUTS]; PIXELS];
            let mut taps = weights.chunks_exact(window.channels() / LANES * OUTPUTS);
            for ky in 0..down.kernel {
                for (kx, tap) in (0..right.kernel).zip(&mut taps) {
                    let from = ky * columns + part * PIXELS * right.stride + kx * right.dilation;
                    window.add_tap(floats, tap, [from, right.stride], &mut sums);
                }
            }
            each_row!(pixel < PIXELS => {
                if let Some(out) = out.get_mut(pixel * OUTPUTS..(pixel + 1) * OUTPUTS) {
                    each_row!(output < OUTPUTS => {
                        out[output] = floats.total(sums[pixel][output]) + bias[output];
                    });
                }
            });
        }
    }
}
