//! Convolutions of images whose channels are outermost, computed with channels innermost where that is worth a copy of both
//! images.

use super::algorithm::Algorithm;
use super::geometry::Geometry;
use super::transposed;
use crate::simd::floats::LANES;
use crate::spatial::Images;
use crate::threads::for_each_piece;
use crate::transpose::Transpose;

/// Multiplications of a pixel, for each of its channels on both sides, from which on copies are worth it.
const WORTH: usize = 48;

/// Channels of the output for which products of patches take as long as for fewer.
const FEW: usize = 8;

/// Sizes of a convolution up to which scratch memory is enough.
pub struct Bounds {
    /// Number of images.
    pub images: usize,
    /// Pixels of an image of the input and of the output.
    pub pixels: [usize; 2],
    /// Channels that the weight has for each of its outermost, and channels of the output.
    pub channels: [usize; 2],
    /// Taps of a channel.
    pub taps: usize,
    /// Groups of channels, if they are known.
    pub groups: Option<usize>,
    /// Whether it is transposed.
    pub transposed: bool,
    /// Whether input and output are in different orders.
    pub reordered: bool,
    /// Whether the channels of the output are innermost.
    pub channels_last: bool,
}

impl Bounds {
    /// Returns how many elements of scratch memory [`Convolution::run`](super::Convolution::run) needs: images with their
    /// channels innermost where they are computed like that and are not, or the products of a transposed convolution. A packed
    /// weight may need [more](super::PackedWeight::scratch).
    pub fn scratch(&self) -> usize {
        let Bounds { images, pixels: [input, out], channels, taps, groups, transposed, .. } = *self;
        let turned = !self.channels_last && !transposed && groups.is_none_or(|groups| groups == 1);
        let turned = turned && is_worth(channels, taps);
        let copy = if self.reordered || turned { input.saturating_mul(channels[0]) } else { 0 };
        let results = if turned { out.saturating_mul(channels[1]) } else { 0 };
        let copies = copy.saturating_add(results).saturating_mul(images);
        if transposed { copies.max(transposed::scratch(input, taps)) } else { copies }
    }
}

/// Returns whether copies of pixels of so many channels of input and output are little beside a convolution of so many taps.
fn is_worth([inputs, outputs]: [usize; 2], taps: usize) -> bool {
    let products = taps.saturating_mul(inputs).saturating_mul(outputs.max(FEW));
    taps > 1 && products >= inputs.saturating_add(outputs).saturating_mul(WORTH)
}

impl Geometry {
    /// Returns the convolution in the form that is computed: images of one column as images of one row, and images with their
    /// channels innermost, where that is faster than as the output has them.
    pub(super) fn computed(&self) -> Geometry {
        let geometry = self.in_rows();
        geometry.turned().unwrap_or(geometry)
    }

    /// Returns a convolution in rows with the channels of both images innermost, if that is faster.
    pub(super) fn turned(&self) -> Option<Geometry> {
        let Geometry { input, out, weight, groups, .. } = *self;
        // A single pixel is in either order.
        let worth = groups == 1 && out.area() > 1 && is_worth(self.group_channels(), weight.area());
        if !worth || Algorithm::of(self) != Algorithm::Im2colNchw {
            return None;
        }
        let [input, out] =
            [input, out].map(|images| Images::channels_last(images.batch.0, images.channels.0, images.sizes));
        let turned = Geometry { input, out, ..*self };
        matches!(Algorithm::of(&turned), Algorithm::Pixels | Algorithm::FewOutputs).then_some(turned)
    }
}

/// Writes images whose channels are innermost to where they are outermost, on all threads where they are many.
pub(super) fn write(from: &[f32], to: &Images, out: &mut [f32]) {
    let (area, channels) = (to.area(), to.channels.0);
    for (n, from) in from.chunks_exact((area * channels).max(1)).enumerate() {
        let out = &mut out[n * to.batch.1..][..area * channels];
        for_each_piece(out, area * LANES, |start, to| {
            Transpose { from: &from[start / area..], stride: channels, to, rows: area }.run();
        });
    }
}

#[cfg(test)]
impl Bounds {
    /// The sizes of a geometry.
    pub fn of(geometry: &Geometry) -> Bounds {
        let Geometry { input, weight, out, groups, transposed, .. } = *geometry;
        Bounds {
            images: input.batch.0,
            pixels: [input.area(), out.area()],
            channels: [if transposed { weight.batch.0 } else { weight.channels.0 }, out.channels.0],
            taps: weight.area(),
            groups: Some(groups),
            transposed,
            reordered: true,
            channels_last: out.is_channels_last() && out.area() > 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::conv::{Bounds, Convolution, Geometry, Operands, PackedWeight, direct};
    use crate::random::Random;
    use crate::spatial::{Images, Slide};
    use crate::threads::Threads;

    /// Taps that are transformed and as they are, few outputs, one, few inputs, and images of one line.
    #[test]
    fn images_with_channels_outermost_agree_with_the_definition() {
        let mut random = Random::new(71);
        for (inputs, outputs, kernel, sizes) in [
            (40, 33, [3, 3], [13, 17]),
            (24, 3, [5, 5], [20, 11]),
            (32, 1, [3, 3], [9, 40]),
            (3, 20, [9, 9], [19, 33]),
            (32, 40, [1, 3], [1, 70]),
        ] {
            let slide = |side: usize| Slide {
                input: sizes[side],
                kernel: kernel[side],
                stride: 1,
                padding: kernel[side] / 2,
                dilation: 1,
            };
            let image = [1, sizes[0], sizes[1]];
            let geometry = Geometry {
                input: Images::channels_first(2, inputs, image),
                weight: Images::channels_first(outputs, inputs, [1, kernel[0], kernel[1]]),
                out: Images::channels_first(2, outputs, image),
                slides: [Slide::POINT, slide(0), slide(1)],
                groups: 1,
                transposed: false,
            };
            assert!(geometry.computed().input.is_channels_last(), "{geometry:?}");
            let count = |images: &Images| images.batch.0 * images.batch.1;
            let [input, weight] = [&geometry.input, &geometry.weight].map(|images| random.floats(count(images)));
            let bias = random.floats(outputs);
            let operands = Operands { input: &input, weight: &weight, bias: Some(&bias) };
            let mut want = vec![0f32; count(&geometry.out)];
            direct::convolve(&geometry, &operands, &mut want);
            let packed = PackedWeight::new(None, &geometry, &weight, None).unwrap();
            for packed in [None, packed.as_ref()] {
                let runs = [1, 2].map(|threads| {
                    let mut have = vec![f32::NAN; want.len()];
                    let mut run = || {
                        let scratch = Bounds::of(&geometry).scratch() + PackedWeight::scratch(&geometry);
                        let (mut scratch, mut convolution) = (vec![f32::NAN; scratch], Convolution::new(true, None));
                        convolution.run(&geometry, &operands, packed, &mut scratch, &mut have).unwrap();
                    };
                    Threads::new(threads).unwrap().run(&mut run);
                    have
                });
                assert_eq!(runs[0], runs[1]);
                let most = 1e-5 * (inputs * kernel[0] * kernel[1]) as f32;
                assert!(runs[0].iter().zip(&want).all(|(have, want)| (have - want).abs() <= most), "{geometry:?}");
            }
        }
    }
}
