//! Images of one, two or three spatial dimensions, always handled as three, and windows that slide over them.
//!
//! Missing dimensions come first and have size 1, so a row of one dimension is an image of height and depth 1. Strides
//! are those of memory: contiguous and channels-last images need no separate code, only separate speed. All distances are
//! in elements.

/// A batch of images in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Images {
    /// Number of images and the distance between them.
    pub batch: (usize, usize),
    /// Number of channels and the distance between them.
    pub channels: (usize, usize),
    /// Depth, height, width.
    pub sizes: [usize; 3],
    /// Strides of depth, height and width, in elements.
    pub strides: [usize; 3],
}

impl Images {
    /// Images without gaps: a plane per channel, rows of pixels in it.
    pub fn channels_first(batch: usize, channels: usize, sizes: [usize; 3]) -> Images {
        let [depth, height, width] = sizes;
        let area = depth * height * width;
        Images {
            batch: (batch, channels * area),
            channels: (channels, area),
            sizes,
            strides: [height * width, width, 1],
        }
    }

    /// Images without gaps: pixels whose channels are neighbours.
    pub fn channels_last(batch: usize, channels: usize, sizes: [usize; 3]) -> Images {
        let [depth, height, width] = sizes;
        Images {
            batch: (batch, channels * depth * height * width),
            channels: (channels, 1),
            sizes,
            strides: [height * width * channels, width * channels, channels],
        }
    }

    /// Returns whether the channels of a pixel are neighbours.
    pub fn is_channels_last(&self) -> bool {
        self.channels.1 == 1 && self.channels.0 > 1
    }

    /// Returns the elements of an image without its channels.
    pub fn area(&self) -> usize {
        self.sizes.iter().product()
    }

    /// Returns whether every element is at the place that it has in other images of the same sizes. The distance along a
    /// dimension of one element does not matter.
    pub(crate) fn is_placed_as(&self, other: &Images) -> bool {
        let same = |have: (usize, usize), want: (usize, usize)| have.0 <= 1 || have.1 == want.1;
        let axes = |images: &Images| std::array::from_fn::<_, 3, _>(|axis| (images.sizes[axis], images.strides[axis]));
        let mut spatial = axes(self).into_iter().zip(axes(other));
        same(self.batch, other.batch)
            && same(self.channels, other.channels)
            && spatial.all(|(have, want)| same(have, want))
    }

    /// Returns whether the pixels of a channel follow each other at one distance.
    pub(crate) fn is_linear(&self) -> bool {
        let [_, height, width] = self.sizes;
        let [outer, middle, inner] = self.strides;
        (height == 1 || middle == width * inner) && (self.sizes[0] == 1 || outer == height * width * inner)
    }
}

/// A window sliding along one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slide {
    /// Elements of the input.
    pub input: usize,
    /// Taps of the window, at least 1.
    pub kernel: usize,
    /// Distance between neighbouring places of the window, in elements; at least 1.
    pub stride: usize,
    /// Elements before the first and after the last.
    pub padding: usize,
    /// Distance of taps, at least 1.
    pub dilation: usize,
}

impl Slide {
    /// One tap that meets the only element.
    pub const POINT: Slide = Slide { input: 1, kernel: 1, stride: 1, padding: 0, dilation: 1 };

    /// Returns how many places the window takes, `None` if not even one. With `ceil` also places that only begin inside.
    ///
    /// ```
    /// use edgepack_compute::spatial::Slide;
    ///
    /// let slide = Slide { input: 6, kernel: 3, stride: 2, padding: 0, dilation: 1 };
    /// assert_eq!((slide.places(false), slide.places(true)), (Some(2), Some(3)));
    /// ```
    pub fn places(&self, ceil: bool) -> Option<usize> {
        let free = (self.input + 2 * self.padding).checked_sub(self.reach())?;
        let mut places = free / self.stride + 1;
        // A window must not begin beyond the input and the padding before it.
        if ceil && free % self.stride != 0 && places * self.stride < self.input + self.padding {
            places += 1;
        }
        Some(places)
    }

    /// Elements that the taps of the window reach over.
    pub(crate) fn reach(&self) -> usize {
        self.dilation * (self.kernel - 1) + 1
    }

    /// Places of a window that meet no more than so many elements, at least one.
    pub(crate) fn places_within(&self, elements: usize) -> usize {
        elements.saturating_sub(self.reach()) / self.stride + 1
    }

    /// Elements that windows at so many neighbouring places meet, with those between them.
    pub(crate) fn reach_of(&self, places: usize) -> usize {
        (places - 1) * self.stride + self.reach()
    }

    /// Returns how many elements a transposed convolution gives, whose every input element is a place of the window, and
    /// `extra` more; `None` if there are none.
    pub fn transposed_size(&self, extra: usize) -> Option<usize> {
        let all = self.input.checked_sub(1)? * self.stride + self.dilation * (self.kernel - 1) + extra + 1;
        all.checked_sub(2 * self.padding).filter(|&size| size > 0)
    }

    /// Returns the element that the first tap meets at a place; negative ones are in the padding.
    #[inline]
    pub(crate) fn start(&self, place: usize) -> isize {
        (place * self.stride) as isize - self.padding as isize
    }

    /// Returns the taps of the window at a place that fall into the input.
    #[inline]
    pub fn taps(&self, place: usize) -> Taps {
        let start = self.start(place);
        let dilation = self.dilation as isize;
        // Divisions are what this costs, and hardly a window has gaps.
        let taps = |distance: isize| if dilation == 1 { distance } else { (distance + dilation - 1) / dilation };
        let skipped = if start < 0 { taps(-start) } else { 0 };
        let end = taps(self.input as isize - start);
        let count = end.min(self.kernel as isize) - skipped;
        Taps {
            first: (start + skipped * dilation).max(0) as usize,
            skipped: skipped as usize,
            count: count.max(0) as usize,
        }
    }

    /// Returns the input element that a tap meets at a place, if it is not in the padding.
    #[inline]
    pub fn element(&self, place: usize, tap: usize) -> Option<usize> {
        (place * self.stride + tap * self.dilation).checked_sub(self.padding).filter(|&at| at < self.input)
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
                for tap in 0..kernel {
                    let met = slide.element(place, tap);
                    assert_eq!(met.is_some(), inside.contains(&tap));
                    assert!(met.is_none_or(|at| at + padding == place * stride + tap * dilation));
                }
            }
        }
    }

    #[test]
    fn images_are_placed_alike_whatever_the_strides_of_single_elements() {
        let images = Images::channels_last(1, 3, [1, 4, 5]);
        let [mut flat, mut gaps] = [images; 2];
        (flat.batch.1, flat.strides[0], gaps.strides[1]) = (0, 0, 16);
        assert!(flat.is_placed_as(&images) && !gaps.is_placed_as(&images));
        assert!(!images.is_placed_as(&Images::channels_first(1, 3, [1, 4, 5])));
        assert!(!Images { batch: (2, 99), ..images }.is_placed_as(&Images { batch: (2, 60), ..images }));
    }

    #[test]
    fn places_follow_pytorch() {
        let slide = Slide { input: 4, kernel: 1, stride: 4, padding: 0, dilation: 1 };
        assert_eq!(slide.places(true), Some(1));
        assert_eq!(Slide { input: 2, kernel: 3, ..slide }.places(true), None);
    }
}
