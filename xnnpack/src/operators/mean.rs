//! Means of the channels of images of 8-bit numbers. Sums are exact in 32 bits and wrap; what follows them is one rounding.

use std::sync::Arc;

use edgepack_compute::simd::{Loop, run_wide};
use edgepack_compute::threads::{Cost, for_each_piece_at};
use edgepack_executor::kernel::{Alias, KernelContext, Operator, Run};

use super::integer::{UNARY, image_sizes};
use super::own;

/// Channels whose sums are held at once: many, or few.
const CHANNELS: usize = 64;
const FEW: usize = 16;

/// Nanoseconds of a number that is added up, about.
const ADDITION: f64 = 0.03;

/// The mean of each channel of an image: scales and zero points are those of input and result.
pub(crate) fn mean([sx, sy]: [f32; 2], [zx, zy]: [i32; 2], keep: bool) -> Arc<dyn Operator> {
    own("xnnpack::mean.int8", UNARY, Alias::Disjoint, move |_| {
        Ok(Box::new(move |cx: &mut KernelContext<'_>| {
            let [n, h, w, c] = image_sizes(cx, None)?;
            match keep {
                true => cx.resize(1, &[n, 1, 1, c])?,
                false => cx.resize(1, &[n, c])?,
            }
            let views = cx.views();
            let x = views.tensor(0)?.as_slice::<i8>()?;
            let mut out = views.out(1)?;
            let count = (h * w) as f32;
            let inverse = (sx / sy) / count;
            let offset = zy as f32 - count * zx as f32 * inverse;
            let images = x.chunks_exact((h * w * c).max(1));
            let cost = Cost::nanoseconds(ADDITION * f64::from(count));
            for (out, image) in out.as_mut_slice::<i8>()?.chunks_exact_mut(c.max(1)).zip(images) {
                for_each_piece_at(cost, out, CHANNELS, |first, out| {
                    run_wide(Means { image, channels: c, first, scale: [inverse, offset], out });
                });
            }
            Ok(())
        }) as Box<dyn Run>)
    })
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
    fn run(self) {
        let Means { image, channels, first, scale, out } = self;
        let (count, mut done) = (out.len(), 0);
        while done < count {
            done += match count {
                _ if count - done >= CHANNELS => {
                    some::<CHANNELS>(image, channels, first + done, scale, &mut out[done..])
                }
                FEW.. => {
                    // The last channels begin early enough to be whole.
                    done = done.min(count - FEW);
                    some::<FEW>(image, channels, first + done, scale, &mut out[done..])
                }
                _ => some::<1>(image, channels, first + done, scale, &mut out[done..]),
            };
        }
    }
}

/// Means of `N` channels from `first` on, whose sums stay in registers; returns how many.
#[inline(always)]
fn some<const N: usize>(
    image: &[i8],
    channels: usize,
    first: usize,
    [factor, offset]: [f32; 2],
    out: &mut [i8],
) -> usize {
    let mut sums = [0i32; N];
    for pixel in image.chunks_exact(channels) {
        let pixel: &[i8; N] = pixel[first..].first_chunk().expect("a number for every channel");
        for lane in 0..N {
            sums[lane] = sums[lane].wrapping_add(i32::from(pixel[lane]));
        }
    }
    for (out, sum) in out.iter_mut().zip(sums) {
        *out = (sum as f32 * factor + offset).round_ties_even().clamp(-128.0, 127.0) as i8;
    }
    N
}
