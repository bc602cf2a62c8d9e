//! Bilinear resizing of images `[N, H, W, C]` for what the library does not have: 8-bit numbers, in fixed point with eleven
//! bits behind it as XNNPACK computes them, and pixels whose first one stays while the last one does not.

use std::sync::Arc;

use edgepack_executor::kernel::{Alias, KernelContext, KernelError, Operator, Run};
use edgepack_executor::tensor::PodElement;
use edgepack_format::scalar::ScalarType;
use half::f16;

use super::integer::image_sizes;
use super::own;

/// The pixels that fall upon each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Corners {
    /// The corners of the images: pixels are squares.
    Squares,
    /// The centres of the first pixels.
    First,
    /// The centres of the first and the last pixels.
    Both,
}

/// Two neighbours, and the part that the second one has.
#[derive(Clone, Copy)]
struct Between {
    first: usize,
    second: usize,
    part: f32,
}

impl Corners {
    fn between(self, place: usize, from: usize, to: usize) -> Between {
        let less = usize::from(self == Corners::Both && to > 1);
        let scale = from.saturating_sub(less) as f32 / (to - less) as f32;
        let at = match self {
            Corners::Squares => (place as f32 * scale + (0.5 * scale - 0.5)).clamp(0.0, (from - 1) as f32),
            _ => place as f32 * scale,
        };
        let first = (at as usize).min(from - 1);
        Between { first, second: (first + 1).min(from - 1), part: at - first as f32 }
    }
}

const SCHEMA: &str = "(Tensor x, *, Tensor(a!) out) -> Tensor(a!)";

/// An image of another height and width.
pub(crate) fn bilinear([height, width]: [usize; 2], corners: Corners) -> Arc<dyn Operator> {
    own("xnnpack::bilinear.out", SCHEMA, Alias::Disjoint, move |args| {
        Ok(match args.tensor(0)?.meta.dtype {
            ScalarType::CHAR => resized([height, width], corners, |[a, b, c, d]: [i8; 4], parts| {
                let [across, down] = parts.map(|part| (part * 2048.0).round_ties_even() as i32);
                let [a, b, c, d] = [a, b, c, d].map(i32::from);
                let top = (a << 11) + (b - a) * across;
                let bottom = (c << 11) + (d - c) * across;
                (((top << 11) + (bottom - top) * down + (1 << 21)) >> 22) as i8
            }),
            ScalarType::FLOAT => resized([height, width], corners, single),
            ScalarType::HALF => resized([height, width], corners, |pixels: [f16; 4], parts| {
                f16::from_f32(single(pixels.map(f16::to_f32), parts))
            }),
            other => return Err(KernelError::unsupported(other.to_string())),
        })
    })
}

fn single([a, b, c, d]: [f32; 4], [across, down]: [f32; 2]) -> f32 {
    let (top, bottom) = (a + (b - a) * across, c + (d - c) * across);
    top + (bottom - top) * down
}

fn resized<T: PodElement>(
    [height, width]: [usize; 2],
    corners: Corners,
    between: impl Fn([T; 4], [f32; 2]) -> T + Send + 'static,
) -> Box<dyn Run> {
    Box::new(move |cx: &mut KernelContext<'_>| {
        let [n, h, w, c] = image_sizes(cx, None)?;
        cx.resize(1, &[n, height, width, c])?;
        if n * h * w * c == 0 {
            return Ok(());
        }
        let views = cx.views();
        let (x, mut out) = (views.tensor(0)?.as_slice::<T>()?, views.out(1)?);
        let mut pixels = out.as_mut_slice::<T>()?.chunks_exact_mut(c);
        for image in x.chunks_exact(h * w * c) {
            let pixel = |y: usize, x: usize| &image[(y * w + x) * c..][..c];
            for y in 0..height {
                let rows = corners.between(y, h, height);
                for x in 0..width {
                    let Some(out) = pixels.next() else { return Ok(()) };
                    let columns = corners.between(x, w, width);
                    let (a, b) = (pixel(rows.first, columns.first), pixel(rows.first, columns.second));
                    let (c, d) = (pixel(rows.second, columns.first), pixel(rows.second, columns.second));
                    for (channel, out) in out.iter_mut().enumerate() {
                        let seen = [a[channel], b[channel], c[channel], d[channel]];
                        *out = between(seen, [columns.part, rows.part]);
                    }
                }
            }
        }
        Ok(())
    })
}
