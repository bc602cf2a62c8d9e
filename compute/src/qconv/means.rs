//! Means of the channels of quantised images, channels last.
//!
//! Invariant: sums are exact in 32 bits and wrap; what follows them is one rounding.

use super::{Error, expect};
use crate::lanes::{InBlocks, LANES, in_blocks};
use crate::simd::{Loop, run_wide};
use crate::threads::{Cost, for_each_piece_at};

/// Nanoseconds of a number that is added up, about.
const ADDITION: f64 = 0.03;

/// Computes `factor * sum + offset`, rounded, of each channel of images that have so many pixels and channels; on all threads if
/// that is worth it.
///
/// ```
/// use edgepack_compute::qconv::means;
///
/// let mut results = [0; 2];
/// means(&[1, 10, 2, 20, 6, 30], [3, 2], [1.0 / 3.0, 0.0], &mut results)?;
/// assert_eq!(results, [3, 20]);
/// # Ok::<(), edgepack_compute::Error>(())
/// ```
///
/// # Errors
///
/// [`ErrorKind::Geometry`](crate::ErrorKind::Geometry) if there are more or fewer numbers than the results have.
pub fn means(images: &[i8], [pixels, channels]: [usize; 2], scale: [f32; 2], out: &mut [i8]) -> Result<(), Error> {
    let (image, count) = (pixels * channels, out.len().checked_div(channels).unwrap_or(0));
    expect("results", out.len(), count * channels)?;
    expect("inputs", images.len(), count * image)?;
    let cost = Cost::nanoseconds(ADDITION * pixels as f64);
    for (number, out) in out.chunks_exact_mut(channels.max(1)).enumerate() {
        let image = &images[number * image..][..image];
        for_each_piece_at(cost, out, LANES, |first, out| run_wide(Means { image, channels, first, scale, out }));
    }
    Ok(())
}

/// Means of the channels from one on.
struct Means<'a> {
    image: &'a [i8],
    /// Channels of the image, and the first of these.
    channels: usize,
    first: usize,
    /// Factor of a sum, and what is added to it.
    scale: [f32; 2],
    out: &'a mut [i8],
}

impl Loop for Means<'_> {
    #[inline(always)]
    fn run(mut self) {
        in_blocks(self.out.len(), &mut self);
    }
}

impl InBlocks for Means<'_> {
    #[inline(always)]
    fn block<const N: usize>(&mut self, first: usize) {
        let mut sums = [0i32; N];
        for pixel in self.image.chunks_exact(self.channels) {
            let pixel: &[i8; N] = pixel[self.first + first..].first_chunk().expect("a number for every channel");
            for lane in 0..N {
                sums[lane] = sums[lane].wrapping_add(i32::from(pixel[lane]));
            }
        }
        let [factor, offset] = self.scale;
        for (out, sum) in self.out[first..].iter_mut().zip(sums) {
            *out = (sum as f32 * factor + offset).round_ties_even().clamp(-128.0, 127.0) as i8;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_of_every_number_have_their_means() {
        for channels in [1, 5, 15, 16, 20, 63, 64, 65, 70, 144, 300] {
            let image: Vec<i8> = (0..2 * 7 * channels).map(|i| (i * i % 251) as i8).collect();
            let (mut have, scale) = (vec![0; 2 * channels], [0.11, -3.0]);
            means(&image, [7, channels], scale, &mut have).unwrap();
            for (at, have) in have.into_iter().enumerate() {
                let numbers = image[at / channels * 7 * channels + at % channels..].iter().step_by(channels).take(7);
                let sum: i32 = numbers.map(|&x| i32::from(x)).sum();
                let want = (sum as f32 * scale[0] + scale[1]).round_ties_even().clamp(-128.0, 127.0) as i8;
                assert_eq!(have, want, "result {at} of {channels} channels");
            }
        }
        assert!(means(&[0; 5], [3, 2], [1.0, 0.0], &mut [0; 2]).is_err());
        assert!(means(&[0; 6], [3, 2], [1.0, 0.0], &mut [0; 3]).is_err());
        assert!(means(&[], [3, 0], [1.0, 0.0], &mut []).is_ok());
    }
}
