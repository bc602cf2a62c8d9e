//! Groups of a few channels, each with as many outputs as inputs: which convolutions are computed like depthwise ones, and the
//! order of their weights.
//!
//! A vector of output channels has whole groups, and its inputs are in the same lanes. Each number of a group is spread over
//! the lanes of the group and multiplied there: nothing of a group reaches another one.

use crate::conv::geometry::Geometry;
use crate::gemm::blocks::scaled;
use crate::simd::floats::LANES;
use crate::simd::window::MOST_TAPS;

/// Returns whether a convolution of channels-last images has such groups, and windows that are looked at line by line.
pub(in crate::conv) fn fits_groups(geometry: &Geometry) -> bool {
    let Geometry { weight, out, slides: [_, _, right], transposed, .. } = geometry;
    let [inputs, outputs] = geometry.group_channels();
    let group = inputs == outputs && matches!(inputs, 2 | 4 | 8);
    let window = [right.kernel, right.dilation] == [3, 1] && matches!(right.stride, 1 | 2);
    group && window && weight.area() <= MOST_TAPS && out.channels.0 >= LANES && !transposed
}

/// The first output channel of a block: blocks follow each other, and the last one ends with the last channel.
fn first_channel(block: usize, channels: usize) -> usize {
    (block * LANES).min(channels - LANES)
}

/// The block of a vector of output channels.
pub(super) fn block_of(first: usize) -> usize {
    first.div_ceil(LANES)
}

/// Vectors of weights of a block.
pub(super) fn block_len(geometry: &Geometry) -> usize {
    geometry.weight.area() * geometry.weight.channels.0
}

/// Vectors of the weights of all blocks.
pub(in crate::conv) fn vectors(geometry: &Geometry) -> usize {
    block_len(geometry).saturating_mul(geometry.out.channels.0.div_ceil(LANES))
}

/// Packs a weight: of each block by line, input of the group and tap of the line, and each output channel times its factor if
/// there are factors.
pub(in crate::conv) fn pack(geometry: &Geometry, weight: &[f32], factors: Option<&[f64]>, to: &mut [f32]) {
    let (kernel, channels) = (&geometry.weight, geometry.out.channels.0);
    let [_, height, width] = kernel.sizes;
    let (vectors, _) = to.as_chunks_mut::<LANES>();
    for (block, vectors) in vectors.chunks_exact_mut(block_len(geometry)).enumerate() {
        let first = first_channel(block, channels);
        let rows = (0..height).flat_map(|y| (0..kernel.channels.0).map(move |input| (y, input)));
        let taps = rows.flat_map(|(y, input)| (0..width).map(move |x| (y, input, x)));
        for ((y, input, x), vector) in taps.zip(vectors) {
            let start = y * kernel.strides[1] + input * kernel.channels.1 + x * kernel.strides[2];
            for (out, number) in (first..).zip(vector) {
                let tap = weight[start + out * kernel.batch.1];
                *number = factors.map_or(tap, |factors| scaled(tap, factors[out]));
            }
        }
    }
}
