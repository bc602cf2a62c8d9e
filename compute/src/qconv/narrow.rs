//! Convolutions of so few channels that most of a tile would be empty: neighbouring windows of a line are one window, whose
//! channels are those of each.
//!
//! Invariant: sums are those of the definition, modulo 2³²: of the inputs that a window has in common with its neighbours, those
//! that are not its own have weight 0.

use super::{Convolution, Error, Packed, Requantise, Windows, expect};
use crate::error::{ErrorKind, room};
use crate::simd::dot::CHANNELS;

/// A convolution of statically quantised images of one size with weights `[outputs, kh, kw, inputs]`, in one group.
pub struct NarrowConvolution {
    convolution: Convolution,
    image: [usize; 2],
    is_turned: bool,
}

/// Windows that are computed as one.
struct Together {
    /// Each of the windows, and all.
    one: Windows,
    all: Windows,
    /// Number of the windows.
    count: usize,
    is_turned: bool,
}

impl Together {
    /// The windows over images of some height and width that are computed in less time together; `None` if there are none.
    fn of([outputs, inner]: [usize; 2], windows: &Windows, image: [usize; 2]) -> Option<Together> {
        let turned = windows.along_line(image);
        let (one, is_turned) = (turned.unwrap_or(*windows), turned.is_some());
        let fits = one.check().is_ok() && one.groups == 1 && one.dilation[1] == 1 && inner.is_multiple_of(one.taps());
        if !fits || outputs == 0 || image.contains(&0) {
            return None;
        }
        let [h, w] = image;
        let [_, columns] = one.counts(if is_turned { [w, h] } else { image });
        let ([_, kernel], [down, right]) = (one.kernel, one.stride);
        let of = |count: usize| {
            let reach = (count - 1).checked_mul(right)?.checked_add(kernel)?;
            // Computed where that is at most three quarters of what windows see one by one.
            let is_less = reach.checked_mul(4)? <= kernel.checked_mul(3 * count)?;
            let all = Windows { kernel: [one.kernel[0], reach], stride: [down, right * count], ..one };
            is_less.then_some(Together { one, all, count, is_turned })
        };
        (2..=CHANNELS / outputs).rev().filter(|&count| columns.is_multiple_of(count)).find_map(of)
    }

    /// Channels and weights of each.
    fn sizes(&self, [outputs, inner]: [usize; 2]) -> Option<[usize; 2]> {
        Some([outputs * self.count, (inner / self.one.kernel[1]).checked_mul(self.all.kernel[1])?])
    }
}

impl NarrowConvolution {
    /// Bytes that it retains, with weights of these sizes, for images of some height and width; `None` if it is computed better
    /// as any other.
    pub fn bytes(sizes: [usize; 2], windows: &Windows, image: [usize; 2]) -> Option<usize> {
        let together = Together::of(sizes, windows, image)?;
        let sizes = together.sizes(sizes)?;
        Packed::packed_len(sizes, &together.all)?.checked_add(Convolution::bytes(sizes, &together.all))
    }

    /// A convolution with these weights.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Geometry`] if [`NarrowConvolution::bytes`] gives nothing or numbers do not fit; [`ErrorKind::Memory`].
    pub fn new(
        weights: &[i8],
        sizes @ [outputs, inner]: [usize; 2],
        windows: Windows,
        image: [usize; 2],
        bias: Option<&[i32]>,
        requantise: Requantise<'_>,
    ) -> Result<Self, Error> {
        expect("weights", weights.len(), outputs.saturating_mul(inner))?;
        requantise.check(outputs)?;
        expect("biases", bias.map_or(outputs, <[i32]>::len), outputs)?;
        let geometry = || Error::new(ErrorKind::Geometry, format!("{outputs} channels of {windows:?} over {image:?}"));
        let together = Together::of(sizes, &windows, image).ok_or_else(geometry)?;
        let [channels, wide] = together.sizes(sizes).ok_or_else(geometry)?;
        let Together { one, all, count, is_turned } = together;
        let inputs = inner / one.taps();
        let mut spread: Vec<i8> = room(channels.saturating_mul(wide))?;
        spread.resize(channels.saturating_mul(wide), 0);
        for (channel, row) in spread.chunks_exact_mut(wide.max(1)).enumerate() {
            let (window, output) = (channel / outputs, channel % outputs);
            let (line, first) = (one.kernel[1] * inputs, window * one.stride[1] * inputs);
            let lines = weights[output * inner..][..inner].chunks_exact(line.max(1));
            let to = row.chunks_exact_mut((all.kernel[1] * inputs).max(1));
            to.zip(lines).for_each(|(to, line)| to[first..first + line.len()].copy_from_slice(line));
        }
        let packed = Packed::new(&spread, [channels, wide], &all)?;
        let (bias, factors) = (bias.map(|bias| bias.repeat(count)), requantise.repeated(count));
        let requantise = Requantise { factors: &factors, ..requantise };
        let convolution = Convolution::new(packed, all, bias.as_deref(), requantise)?;
        Ok(NarrowConvolution { convolution, image, is_turned })
    }

    /// Computes images `[n, h, w, c]`, whose height and width are those that it was made for.
    pub fn run(&self, images: &[i8], [n, h, w, c]: [usize; 4], out: &mut [i8]) -> Result<(), Error> {
        if [h, w] != self.image {
            return Err(Error::new(ErrorKind::Geometry, format!("images of {h} by {w} instead of {:?}", self.image)));
        }
        let [h, w] = if self.is_turned { [w, h] } else { [h, w] };
        self.convolution.run(images, [n, h, w, c], out)
    }
}
