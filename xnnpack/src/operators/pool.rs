//! Pooling of images `[N, H, W, C]` that the library does not have: means under padding that differs from side to side, greatest
//! elements with their places in the window, and greatest bytes.

use std::sync::Arc;

use edgepack_compute::qconv::{self, Windows};
use edgepack_executor::kernel::{Alias, KernelContext, KernelError, Operator, Run};
use edgepack_executor::tensor::PodElement;
use edgepack_format::scalar::ScalarType;
use half::f16;

use super::integer::image_sizes;
use super::own;

/// Means of what windows see of the image.
pub(crate) fn means(windows: Windows) -> Arc<dyn Operator> {
    let schema = "(Tensor x, *, Tensor(a!) out) -> Tensor(a!)";
    own("xnnpack::means.out", schema, Alias::Disjoint, move |args| {
        Ok(match args.tensor(0)?.meta.dtype {
            ScalarType::FLOAT => Box::new(move |cx: &mut KernelContext<'_>| mean_of(cx, &windows, |x: f32| x, |x| x)),
            ScalarType::HALF => {
                Box::new(move |cx: &mut KernelContext<'_>| mean_of(cx, &windows, f16::to_f32, f16::from_f32))
                    as Box<dyn Run>
            }
            other => return Err(KernelError::unsupported(other.to_string())),
        })
    })
}

fn mean_of<T: PodElement>(
    cx: &mut KernelContext<'_>,
    windows: &Windows,
    single: impl Fn(T) -> f32,
    element: impl Fn(f32) -> T,
) -> Result<(), KernelError> {
    let [n, h, w, c] = image_sizes(cx, None)?;
    let [oh, ow] = windows.counts([h, w]);
    cx.resize(1, &[n, oh, ow, c])?;
    let views = cx.views();
    let (x, mut out) = (views.tensor(0)?.as_slice::<T>()?, views.out(1)?);
    let mut pixels = out.as_mut_slice::<T>()?.chunks_exact_mut(c.max(1));
    for image in x.chunks_exact((h * w * c).max(1)) {
        for (oy, ox) in (0..oh).flat_map(|oy| (0..ow).map(move |ox| (oy, ox))) {
            let Some(pixel) = pixels.next() else { return Ok(()) };
            for (channel, out) in pixel.iter_mut().enumerate() {
                let (mut sum, mut count) = (0f32, 0usize);
                for y in (0..windows.kernel[0]).filter_map(|tap| windows.place(0, oy, tap, h)) {
                    for x in (0..windows.kernel[1]).filter_map(|tap| windows.place(1, ox, tap, w)) {
                        sum += single(image[(y * w + x) * c + channel]);
                        count += 1;
                    }
                }
                *out = element(sum * (1.0 / count as f32));
            }
        }
    }
    Ok(())
}

/// The greatest bytes of windows, within limits.
pub(crate) fn greatest_bytes(windows: Windows, limits: [i8; 2]) -> Arc<dyn Operator> {
    let schema = "(Tensor x, *, Tensor(a!) out) -> Tensor(a!)";
    own("xnnpack::greatest.int8", schema, Alias::Disjoint, move |_| {
        Ok(Box::new(move |cx: &mut KernelContext<'_>| {
            let [n, h, w, c] = image_sizes(cx, None)?;
            let [oh, ow] = windows.counts([h, w]);
            cx.resize(1, &[n, oh, ow, c])?;
            let views = cx.views();
            let x = views.tensor(0)?.as_slice::<i8>()?;
            Ok(qconv::greatest(x, [n, h, w, c], &windows, limits, views.out(1)?.as_mut_slice::<i8>()?)?)
        }) as Box<dyn Run>)
    })
}

/// The greatest elements of windows, and their places: columns of the window one after another, of equal ones the first.
/// Padding is the nearest pixel of the image.
pub(crate) fn greatest(windows: Windows) -> Arc<dyn Operator> {
    let schema = "(Tensor x, *, Tensor(a!) out, Tensor(b!) places) -> (Tensor(a!), Tensor(b!))";
    own("xnnpack::greatest.out", schema, Alias::Disjoint, move |args| {
        if args.tensor(0)?.meta.dtype != ScalarType::FLOAT {
            return Err(KernelError::unsupported(args.tensor(0)?.meta.dtype.to_string()));
        }
        Ok(Box::new(move |cx: &mut KernelContext<'_>| {
            let [n, h, w, c] = image_sizes(cx, None)?;
            let [oh, ow] = windows.counts([h, w]);
            cx.resize(1, &[n, oh, ow, c])?;
            cx.resize(2, &[n, oh, ow, c])?;
            let views = cx.views();
            let (x, mut out, mut places) = (views.tensor(0)?.as_slice::<f32>()?, views.out(1)?, views.out(2)?);
            let pixels = out.as_mut_slice::<f32>()?.chunks_exact_mut(c.max(1));
            let mut pixels = pixels.zip(places.as_mut_slice::<i32>()?.chunks_exact_mut(c.max(1)));
            for image in x.chunks_exact((h * w * c).max(1)) {
                for (oy, ox) in (0..oh).flat_map(|oy| (0..ow).map(move |ox| (oy, ox))) {
                    let Some((pixel, places)) = pixels.next() else { return Ok(()) };
                    for (channel, (out, found)) in pixel.iter_mut().zip(places).enumerate() {
                        let mut best: Option<(f32, usize)> = None;
                        for tap in 0..windows.kernel[0] * windows.kernel[1] {
                            let (kx, ky) = (tap / windows.kernel[0], tap % windows.kernel[0]);
                            let (y, x) = (windows.nearest(0, oy, ky, h), windows.nearest(1, ox, kx, w));
                            let number = image[(y * w + x) * c + channel];
                            if best.is_none_or(|(most, _)| number > most) {
                                best = Some((number, tap));
                            }
                        }
                        let (most, tap) = best.unwrap_or((f32::NEG_INFINITY, 0));
                        (*out, *found) = (most, tap as i32);
                    }
                }
            }
            Ok(())
        }) as Box<dyn Run>)
    })
}
