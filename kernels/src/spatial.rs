//! Images of one, two or three spatial dimensions, always handled as three: what pooling, convolution and resizing share.
//!
//! Missing dimensions come first and have size 1, so a row of one dimension is an image of height and depth 1. Strides
//! are those of memory: contiguous and channels-last images need no separate code, only separate speed.

use edgepack_executor::kernel::{KernelContext, KernelError};
use edgepack_executor::tensor::TensorShape;
use edgepack_format::tensor::Dims;

use crate::check::Shape;

/// Numbers that sizes are made of stay below this, so that their products do not overflow.
pub const MOST: i64 = 1 << 31;

/// A batch of images in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Images {
    /// Number of images and the distance between them.
    pub batch: (usize, usize),
    /// Number of channels and the distance between them.
    pub channels: (usize, usize),
    /// Depth, height, width.
    pub sizes: [usize; 3],
    /// Their strides.
    pub strides: [usize; 3],
}

impl Images {
    /// A tensor of `rank` spatial dimensions after channels and, if it is there, the batch.
    pub fn new(name: &str, meta: &TensorShape<'_>, rank: usize) -> Result<Images, KernelError> {
        let (leading, spatial) = match meta.rank().checked_sub(rank) {
            Some(leading @ (1 | 2)) => (leading, leading..meta.rank()),
            _ => {
                return Err(KernelError::argument(format!(
                    "`{name}` is {}, the operator wants {rank} spatial dimensions after channels",
                    Shape(meta.sizes)
                )));
            }
        };
        let mut images = Images {
            batch: (1, 0),
            channels: (meta.sizes[leading - 1], meta.strides[leading - 1]),
            sizes: [1; 3],
            strides: [0; 3],
        };
        if leading == 2 {
            images.batch = (meta.sizes[0], meta.strides[0]);
        }
        images.sizes[3 - rank..].copy_from_slice(&meta.sizes[spatial.clone()]);
        images.strides[3 - rank..].copy_from_slice(&meta.strides[spatial]);
        Ok(images)
    }

    /// Whether the channels of a pixel are neighbours.
    pub fn is_channels_last(&self) -> bool {
        self.channels.1 == 1 && self.channels.0 > 1
    }

    /// Elements of an image without its channels.
    pub fn area(&self) -> usize {
        self.sizes.iter().product()
    }
}

/// The sizes of a tensor with the channels and the last `rank` sizes replaced.
pub fn resized(meta: &TensorShape<'_>, rank: usize, channels: usize, sizes: [usize; 3]) -> Dims {
    let mut result = Dims::from_slice(meta.sizes).unwrap_or_default();
    let first = result.len().saturating_sub(rank);
    result[first..].copy_from_slice(&sizes[3 - rank..]);
    if let Some(size) = first.checked_sub(1).and_then(|dim| result.get_mut(dim)) {
        *size = channels;
    }
    result
}

/// An argument with one number for all spatial dimensions or one for each; `None` if the list is empty. Dimensions that
/// are missing get `filler`.
pub fn numbers(
    cx: &KernelContext<'_>,
    arg: usize,
    name: &str,
    rank: usize,
    least: usize,
    filler: usize,
) -> Result<Option<[usize; 3]>, KernelError> {
    let list = cx.ints(arg)?;
    if list.is_empty() {
        return Ok(None);
    }
    if list.len() != 1 && list.len() != rank {
        return Err(KernelError::argument(format!("`{name}` has {} numbers for {rank} dimensions", list.len())));
    }
    let mut result = [filler; 3];
    for (index, slot) in result[3 - rank..].iter_mut().enumerate() {
        let value = list.at(if list.len() == 1 { 0 } else { index }).unwrap_or_default();
        if !(least as i64..MOST).contains(&value) {
            return Err(KernelError::argument(format!("`{name}` holds {value}, the least possible is {least}")));
        }
        *slot = value as usize;
    }
    Ok(Some(result))
}

/// [`numbers`] of a list that may not be empty.
pub fn required(
    cx: &KernelContext<'_>,
    arg: usize,
    name: &str,
    rank: usize,
    least: usize,
    filler: usize,
) -> Result<[usize; 3], KernelError> {
    numbers(cx, arg, name, rank, least, filler)?
        .ok_or_else(|| KernelError::argument(format!("`{name}` is empty, the operator wants {rank} numbers")))
}

/// A window sliding along one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slide {
    /// Elements of the input.
    pub input: usize,
    /// Taps of the window.
    pub kernel: usize,
    /// How far it moves.
    pub stride: usize,
    /// Elements before the first and after the last.
    pub padding: usize,
    /// Distance of taps.
    pub dilation: usize,
}

impl Slide {
    /// How many places the window takes, `None` if not even one. With `ceil` also places that only begin inside.
    pub fn places(&self, ceil: bool) -> Option<usize> {
        let reach = self.dilation * (self.kernel - 1) + 1;
        let free = (self.input + 2 * self.padding).checked_sub(reach)?;
        let mut places = free / self.stride + 1;
        // A window must not begin beyond the input and the padding before it.
        if ceil && free % self.stride != 0 && places * self.stride < self.input + self.padding {
            places += 1;
        }
        Some(places)
    }

    /// The taps of the window at a place that fall into the input: the first element, and how many taps.
    #[inline]
    pub fn taps(&self, place: usize) -> Taps {
        let start = (place * self.stride) as isize - self.padding as isize;
        let dilation = self.dilation as isize;
        // Divisions are what this costs, and hardly a window has gaps.
        let steps = |distance: isize| if dilation == 1 { distance } else { (distance + dilation - 1) / dilation };
        let skipped = if start < 0 { steps(-start) } else { 0 };
        let end = steps(self.input as isize - start);
        let count = end.min(self.kernel as isize) - skipped;
        Taps {
            first: (start + skipped * dilation).max(0) as usize,
            skipped: skipped as usize,
            count: count.max(0) as usize,
        }
    }
}

/// The taps of a window inside the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taps {
    /// The first element.
    pub first: usize,
    /// Taps before it, in the padding.
    pub skipped: usize,
    /// Taps inside.
    pub count: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taps_agree_with_counting() {
        for (input, kernel, stride, padding, dilation) in
            [(7, 3, 1, 1, 1), (7, 3, 2, 1, 2), (5, 4, 3, 2, 3), (1, 1, 1, 0, 1), (2, 3, 1, 3, 4)]
        {
            let slide = Slide { input, kernel, stride, padding, dilation };
            for place in 0..slide.places(true).unwrap_or(0) {
                let inside: Vec<usize> = (0..kernel)
                    .filter(|k| (padding..input + padding).contains(&(place * stride + k * dilation)))
                    .collect();
                let taps = slide.taps(place);
                assert_eq!(taps.count, inside.len(), "{slide:?} {place}");
                if let Some(&first) = inside.first() {
                    assert_eq!(taps.first, place * stride + first * dilation - padding);
                    assert_eq!(taps.skipped, first);
                }
            }
        }
    }

    #[test]
    fn places_follow_pytorch() {
        let slide = Slide { input: 6, kernel: 3, stride: 2, padding: 0, dilation: 1 };
        assert_eq!((slide.places(false), slide.places(true)), (Some(2), Some(3)));
        let slide = Slide { input: 4, kernel: 1, stride: 4, padding: 0, dilation: 1 };
        assert_eq!(slide.places(true), Some(1));
        assert_eq!(Slide { input: 2, kernel: 3, ..slide }.places(true), None);
    }
}
