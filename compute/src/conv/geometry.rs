//! Shapes, strides and parameters of a convolution.

use crate::spatial::{Images, Slide};

/// Shapes, strides and parameters of a convolution.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Geometry {
    /// Sizes and strides of the input.
    pub input: Images,
    /// Sizes and strides of the weight. Its batch is its first dimension: output channels, and input channels if
    /// transposed. Its channels are those of one group: of the input, and of the output if transposed.
    pub weight: Images,
    /// Sizes and strides of the output.
    pub out: Images,
    /// Windows along depth, height and width: the output over the input, or the input over the output if transposed.
    pub slides: [Slide; 3],
    /// Groups of channels that are convolved apart; they divide the channels of input and output.
    pub groups: usize,
    /// True if every input element is a place of the window, and the output what its taps reach.
    pub transposed: bool,
}

/// The data of a convolution. Slices are as long as the geometry says.
#[derive(Clone, Copy, Debug)]
pub struct Operands<'a, T> {
    /// Images.
    pub input: &'a [T],
    /// Taps by output and input channel.
    pub weight: &'a [T],
    /// A number per output channel.
    pub bias: Option<&'a [T]>,
}

impl Geometry {
    /// Returns the input and output channels of a group.
    pub fn group_channels(&self) -> [usize; 2] {
        [self.input.channels.0 / self.groups, self.out.channels.0 / self.groups]
    }

    /// Returns how many multiplications there are.
    pub fn work(&self) -> usize {
        let [channels, _] = self.group_channels();
        let factors = [self.out.batch.0, self.out.channels.0, self.out.area(), channels, self.weight.area()];
        factors.into_iter().fold(1, usize::saturating_mul)
    }

    /// Returns the same convolution with images of one column as images of one row, whose pixels are computed together. Elements
    /// are where they were, and taps stay in order.
    pub(super) fn in_rows(&self) -> Geometry {
        let Slide { kernel, padding, .. } = self.slides[2];
        if [self.input.sizes[2], self.out.sizes[2], kernel] != [1; 3] || padding != 0 {
            return *self;
        }
        let turned = |images: Images| {
            let ([depth, height, width], [far, down, right]) = (images.sizes, images.strides);
            Images { sizes: [depth, width, height], strides: [far, right, down], ..images }
        };
        let Geometry { input, weight, out, slides: [deep, down, right], .. } = *self;
        let slides = [deep, right, down];
        Geometry { input: turned(input), weight: turned(weight), out: turned(out), slides, ..*self }
    }

    /// Returns whether every output pixel reads the one input pixel at its own place.
    pub(super) fn is_pointwise(&self) -> bool {
        // A transposed one may have more pixels of output, which meet none.
        let has_place = self.input.sizes == self.out.sizes;
        has_place && self.slides.iter().all(|slide| (slide.kernel, slide.stride, slide.padding) == (1, 1, 0))
    }
}
