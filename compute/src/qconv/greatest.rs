//! The greatest of what windows see of quantised images, channels last.
//!
//! Invariant: neighbouring channels are compared together, and results are those of comparing them one by one. Padding is
//! less than everything.

use std::ops::Range;

use super::{Error, Windows, expect};
use crate::simd::{Loop, run_wide};
use crate::threads::{Cost, for_each_piece_at};

/// Nanoseconds of a comparison.
const COMPARISON: f64 = 0.01;

/// Computes the greatest number that each window sees of images `[n, h, w, c]`, channel by channel, within limits.
///
/// # Errors
///
/// [`ErrorKind::Geometry`](crate::ErrorKind::Geometry) if the slices are of other lengths than the sizes say, or windows have no size.
pub fn greatest(
    images: &[i8],
    [n, h, w, c]: [usize; 4],
    windows: &Windows,
    limits: [i8; 2],
    out: &mut [i8],
) -> Result<(), Error> {
    windows.check()?;
    expect("inputs", images.len(), n * h * w * c)?;
    let [oh, ow] = windows.counts([h, w]);
    let line = ow * c;
    expect("results", out.len(), n * oh * line)?;
    if out.is_empty() {
        return Ok(());
    }
    let cost = Cost::nanoseconds(COMPARISON * windows.taps() as f64);
    for_each_piece_at(cost, out, line, |start, out| {
        for (index, out) in out.chunks_exact_mut(line).enumerate() {
            let (image, y) = ((start / line + index) / oh, (start / line + index) % oh);
            let image = &images[image * h * w * c..][..h * w * c];
            run_wide(Line { windows, image, sizes: [h, w, c], y, limits, out });
        }
    });
    Ok(())
}

/// A line of output pixels.
struct Line<'a> {
    windows: &'a Windows,
    image: &'a [i8],
    sizes: [usize; 3],
    y: usize,
    limits: [i8; 2],
    out: &'a mut [i8],
}

impl Loop for Line<'_> {
    #[inline(always)]
    fn run(self) {
        match self.sizes[2] {
            64.. => self.channels::<64>(),
            32.. => self.channels::<32>(),
            16.. => self.channels::<16>(),
            8.. => self.channels::<8>(),
            _ => self.channels::<1>(),
        }
    }
}

impl Line<'_> {
    /// Computes `N` channels at a time; the last ones begin early enough to be whole.
    #[inline(always)]
    fn channels<const N: usize>(mut self) {
        let ([_, w, c], right) = (self.sizes, self.windows.stride[1]);
        let width = self.out.len() / c;
        // Places whose windows are inside of the line.
        let [before, _] = self.windows.padding[1];
        let reach = self.windows.dilation[1] * (self.windows.kernel[1] - 1) + 1;
        let end = (w + before).checked_sub(reach).map_or(0, |free| free / right + 1).min(width);
        let start = before.div_ceil(right).min(end);
        for first in (0..c).step_by(N).map(|first| first.min(c - N)) {
            self.places::<N>(0..start, first);
            match self.windows.kernel[1] {
                2 => self.inside::<N, 2>(start..end, first),
                3 => self.inside::<N, 3>(start..end, first),
                5 => self.inside::<N, 5>(start..end, first),
                _ => self.places::<N>(start..end, first),
            }
            self.places::<N>(end..width, first);
        }
    }

    /// Computes channels from `first` on of some places.
    #[inline(always)]
    fn places<const N: usize>(&mut self, places: Range<usize>, first: usize) {
        let [h, w, c] = self.sizes;
        let rows = self.windows.seen(0, self.y, h);
        for x in places {
            let mut greatest = [self.limits[0]; N];
            for y in rows.clone() {
                for x in self.windows.seen(1, x, w) {
                    self.meet(&mut greatest, (y * w + x) * c + first);
                }
            }
            self.finish(greatest, x * c + first);
        }
    }

    /// Computes channels from `first` on of places whose windows are inside of the line, with so many columns.
    #[inline(always)]
    fn inside<const N: usize, const COLUMNS: usize>(&mut self, places: Range<usize>, first: usize) {
        let ([h, w, c], [_, stride], [_, dilation]) = (self.sizes, self.windows.stride, self.windows.dilation);
        let [before, _] = self.windows.padding[1];
        let rows = self.windows.seen(0, self.y, h);
        for x in places {
            let mut greatest = [self.limits[0]; N];
            for y in rows.clone() {
                let start = (y * w + x * stride - before) * c + first;
                for column in 0..COLUMNS {
                    self.meet(&mut greatest, start + column * dilation * c);
                }
            }
            self.finish(greatest, x * c + first);
        }
    }

    #[inline(always)]
    fn meet<const N: usize>(&self, greatest: &mut [i8; N], at: usize) {
        let Some(seen) = self.image[at..].first_chunk::<N>() else { return };
        for lane in 0..N {
            greatest[lane] = greatest[lane].max(seen[lane]);
        }
    }

    #[inline(always)]
    fn finish<const N: usize>(&mut self, greatest: [i8; N], at: usize) {
        let Some(out) = self.out[at..].first_chunk_mut::<N>() else { return };
        for lane in 0..N {
            out[lane] = greatest[lane].min(self.limits[1]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use crate::threads::Threads;

    #[test]
    fn neighbouring_channels_agree_with_single_ones() {
        let mut random = Random::new(9);
        let one = Windows { kernel: [3, 3], stride: [2, 2], padding: [[1; 2]; 2], ..Windows::ONE };
        let kinds = [
            one,
            Windows { padding: [[0, 1], [0, 1]], ..one },
            Windows { kernel: [2, 5], stride: [1, 3], dilation: [2, 1], padding: [[3, 0], [5, 6]], ..one },
            Windows { kernel: [5, 5], stride: [1, 1], padding: [[2; 2]; 2], ..one },
            Windows::ONE,
        ];
        for windows in kinds {
            for c in [1, 3, 8, 13, 16, 17, 33, 63, 64, 65, 200] {
                for limits in [[-128, 127], [-5, 60]] {
                    let [n, h, w] = [[1, 9, 8], [2, 33, 40], [1, 5, 7]][random.below(3)];
                    let images: Vec<i8> = (0..n * h * w * c).map(|_| random.below(256) as u8 as i8).collect();
                    let [oh, ow] = windows.counts([h, w]);
                    let mut want = Vec::new();
                    for at in 0..n * oh * ow * c {
                        let (pixel, channel) = (at / c, at % c);
                        let (image, y, x) = (pixel / (oh * ow), pixel / ow % oh, pixel % ow);
                        let mut most = -128;
                        for tap in 0..windows.taps() {
                            let y = windows.place(0, y, tap / windows.kernel[1], h);
                            let x = windows.place(1, x, tap % windows.kernel[1], w);
                            let Some((y, x)) = y.zip(x) else { continue };
                            most = images[((image * h + y) * w + x) * c + channel].max(most);
                        }
                        want.push(most.clamp(limits[0], limits[1]));
                    }
                    for threads in [1, 3] {
                        let mut have = vec![99; want.len()];
                        let run = || greatest(&images, [n, h, w, c], &windows, limits, &mut have);
                        Threads::new(threads).unwrap().run(run).unwrap();
                        assert!(have == want, "{windows:?}, {c} channels");
                    }
                }
            }
        }
        assert!(greatest(&[0; 3], [1, 2, 2, 1], &Windows::ONE, [0, 1], &mut [0; 4]).is_err());
        assert!(greatest(&[0; 4], [1, 2, 2, 1], &Windows::ONE, [0, 1], &mut [0; 3]).is_err());
    }
}
