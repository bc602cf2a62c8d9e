//! Sampling images and volumes where a grid says: `grid_sampler_2d`, `grid_sampler_3d`.
//!
//! Coordinates run from -1 to 1 over the image. They are computed in `f32`, in `f64` for doubles. A coordinate that is
//! no finite number lies outside of the image.

use edgepack_executor::kernel::{Alias, Kernel, KernelContext, KernelError, Prepare, Run};
use edgepack_format::tensor::Dims;

use crate::check::{Shape, expect_same, with_float};
use crate::spatial::{images, resized};
use edgepack_compute::float::Float;
use edgepack_compute::number::{Cast, Compute, Number};

/// The operators of this family.
pub static KERNELS: &[&Kernel] = &[&GRID_SAMPLER, &VOLUME_SAMPLER];

static GRID_SAMPLER: Kernel = Kernel {
    name: "aten::grid_sampler_2d.out",
    schema: "(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners, *, Tensor(a!) out) -> Tensor(a!)",
    alias: Alias::Disjoint,
    prepare,
};

static VOLUME_SAMPLER: Kernel = Kernel {
    name: "aten::grid_sampler_3d.out",
    schema: "(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners, *, Tensor(a!) out) -> Tensor(a!)",
    alias: Alias::Disjoint,
    prepare: |args| {
        let dtype = args.tensor(0)?.meta.dtype;
        expect_same(("input", dtype), ("grid", args.tensor(1)?.meta.dtype))?;
        expect_same(("input", dtype), ("out", args.tensor(OUT)?.meta.dtype))?;
        with_float!(dtype, T => Ok(Box::new(volumes::<T>)))
    },
};

const OUT: usize = 5;

/// How values between pixels are found.
#[derive(Clone, Copy)]
enum Mode {
    Bilinear,
    Nearest,
    Bicubic,
}

/// What lies outside of the image.
#[derive(Clone, Copy)]
enum Padding {
    Zeros,
    Border,
    Reflection,
}

fn prepare(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    let dtype = args.tensor(0)?.meta.dtype;
    expect_same(("input", dtype), ("grid", args.tensor(1)?.meta.dtype))?;
    expect_same(("input", dtype), ("out", args.tensor(OUT)?.meta.dtype))?;
    with_float!(dtype, T => Ok(Box::new(run::<T>)))
}

fn run<T: Number<Compute: Float>>(cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
    let (input, grid) = (cx.meta(0)?, cx.meta(1)?);
    let (&[batch, channels, height, width], &[grid_batch, tall, broad, 2]) = (input.sizes, grid.sizes) else {
        return Err(shapes(input.sizes, grid.sizes, "the operator wants images and pairs of coordinates"));
    };
    if batch != grid_batch || height * width == 0 {
        return Err(shapes(input.sizes, grid.sizes, "as many images with pixels as grids are needed"));
    }
    let (mode, padding, align) = options(cx)?;
    let sizes = resized(&input, 2, channels, [1, tall, broad]);
    cx.resize(OUT, &sizes)?;
    let views = cx.views();
    let (input, grid, out) = (views.tensor(0)?, views.tensor(1)?, views.out(OUT)?);
    let (from, to) = (images("input", &input.meta(), 2)?, images("out", &out.meta(), 2)?);
    let steps = grid.strides;
    let (data, points, out) = (input.as_slice::<T>()?, grid.as_slice::<T>()?, out.into_slice::<T>()?);
    if out.is_empty() {
        return Ok(());
    }
    let [across, down] = [width, height].map(|size| Line { size, padding, align });
    for n in 0..batch {
        let image = &data[n * from.batch.1..];
        for (y, x) in (0..tall).flat_map(|y| (0..broad).map(move |x| (y, x))) {
            let at = n * steps[0] + y * steps[1] + x * steps[2];
            let (u, v) = (points[at].to_compute(), points[at + steps[3]].to_compute());
            let (columns, rows) = (across.taps(u, mode), down.taps(v, mode));
            let start = n * to.batch.1 + y * to.strides[1] + x * to.strides[2];
            for channel in 0..channels {
                let mut sum = T::Compute::ZERO;
                for (row, by) in rows.inside() {
                    let line = channel * from.channels.1 + row * from.strides[1];
                    for (column, weight) in columns.inside() {
                        let value = image[line + column * from.strides[2]].to_compute();
                        sum = sum.plus(value.times(by.times(weight)));
                    }
                }
                out[start + channel * to.channels.1] = sum.cast();
            }
        }
    }
    Ok(())
}

/// How a call wants samples to be made.
fn options(cx: &KernelContext<'_>) -> Result<(Mode, Padding, bool), KernelError> {
    let mode = match cx.int(2)? {
        0 => Mode::Bilinear,
        1 => Mode::Nearest,
        2 => Mode::Bicubic,
        other => return Err(KernelError::argument(format!("`interpolation_mode` is {other}, 0 to 2 are known"))),
    };
    let padding = match cx.int(3)? {
        0 => Padding::Zeros,
        1 => Padding::Border,
        2 => Padding::Reflection,
        other => return Err(KernelError::argument(format!("`padding_mode` is {other}, 0 to 2 are known"))),
    };
    Ok((mode, padding, cx.bool(4)?))
}

fn volumes<T: Number<Compute: Float>>(cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
    let (input, grid) = (cx.meta(0)?, cx.meta(1)?);
    let (&[batch, channels, depth, height, width], &[grid_batch, deep, tall, broad, 3]) = (input.sizes, grid.sizes)
    else {
        return Err(shapes(input.sizes, grid.sizes, "the operator wants volumes and triples of coordinates"));
    };
    if batch != grid_batch || depth * height * width == 0 {
        return Err(shapes(input.sizes, grid.sizes, "as many volumes with points as grids are needed"));
    }
    let (mode, padding, align) = options(cx)?;
    if matches!(mode, Mode::Bicubic) {
        return Err(KernelError::argument("`interpolation_mode` is 2, volumes have 0 and 1"));
    }
    cx.resize(OUT, &[batch, channels, deep, tall, broad])?;
    let views = cx.views();
    let (input, grid, out) = (views.tensor(0)?, views.tensor(1)?, views.out(OUT)?);
    let (from, steps) = (input.strides, grid.strides);
    let to = Dims::from_slice(out.strides).unwrap_or_default();
    let (data, points, out) = (input.as_slice::<T>()?, grid.as_slice::<T>()?, out.into_slice::<T>()?);
    if out.is_empty() {
        return Ok(());
    }
    let lines = [width, height, depth].map(|size| Line { size, padding, align });
    let places = (0..batch * deep * tall * broad)
        .map(|at| [at / (deep * tall * broad), at / (tall * broad) % deep, at / broad % tall, at % broad]);
    for place in places {
        let at: usize = place.iter().zip(steps).map(|(index, step)| index * step).sum();
        let [columns, rows, slices] = [0, 1, 2].map(|i| lines[i].taps(points[at + i * steps[4]].to_compute(), mode));
        let start = place[0] * to[0] + place[1] * to[2] + place[2] * to[3] + place[3] * to[4];
        for channel in 0..channels {
            let base = place[0] * from[0] + channel * from[1];
            let mut sum = T::Compute::ZERO;
            for (slice, through) in slices.inside() {
                for (row, by) in rows.inside() {
                    for (column, weight) in columns.inside() {
                        let value = data[base + slice * from[2] + row * from[3] + column * from[4]].to_compute();
                        sum = sum.plus(value.times(through.times(by.times(weight))));
                    }
                }
            }
            out[start + channel * to[1]] = sum.cast();
        }
    }
    Ok(())
}

#[cold]
fn shapes(input: &[usize], grid: &[usize], why: &str) -> KernelError {
    KernelError::argument(format!("`input` is {}, `grid` is {}: {why}", Shape(input), Shape(grid)))
}

/// The pixels along one dimension that a sample is made of, with their weights; `None` outside of the image.
struct Taps<C> {
    pixels: [Option<usize>; 4],
    weights: [C; 4],
}

impl<C: Compute> Taps<C> {
    fn inside(&self) -> impl Iterator<Item = (usize, C)> + '_ {
        self.pixels.iter().zip(&self.weights).filter_map(|(&pixel, &weight)| Some((pixel?, weight)))
    }
}

/// One dimension of an image.
#[derive(Clone, Copy)]
struct Line {
    size: usize,
    padding: Padding,
    align: bool,
}

impl Line {
    fn taps<C: Float>(&self, coordinate: C, mode: Mode) -> Taps<C> {
        let position = self.position(coordinate);
        let mut taps = Taps { pixels: [None; 4], weights: [C::ZERO; 4] };
        match mode {
            Mode::Nearest => {
                taps.pixels[0] = self.pixel(self.padded(position).round_even());
                taps.weights[0] = C::ONE;
            }
            Mode::Bilinear => {
                let position = self.padded(position);
                let first = position.floor();
                taps.pixels[..2].copy_from_slice(&[self.pixel(first), self.pixel(first.plus(C::ONE))]);
                let second = position.minus(first);
                taps.weights[..2].copy_from_slice(&[C::ONE.minus(second), second]);
            }
            Mode::Bicubic => {
                let first = position.floor();
                taps.weights = cubic(position.minus(first));
                for (i, pixel) in taps.pixels.iter_mut().enumerate() {
                    *pixel = self.pixel(self.padded(first.plus(C::of(i as f64 - 1.0))));
                }
            }
        }
        taps
    }

    /// From -1 to 1 to pixels.
    fn position<C: Float>(&self, coordinate: C) -> C {
        let (one, half) = (C::ONE, C::of(0.5));
        let size = C::of(self.size as f64);
        if self.align {
            coordinate.plus(one).times(half).times(size.minus(one))
        } else {
            coordinate.plus(one).times(size).minus(one).times(half)
        }
    }

    /// Brought into the image, where the padding says so.
    fn padded<C: Float>(&self, position: C) -> C {
        match self.padding {
            Padding::Zeros => position,
            Padding::Border => self.clipped(position),
            Padding::Reflection => {
                let size = self.size as f64;
                let (low, high) = if self.align { (0.0, 2.0 * (size - 1.0)) } else { (-1.0, 2.0 * size - 1.0) };
                if low == high {
                    return C::ZERO;
                }
                let (least, span) = (C::of(low / 2.0), C::of((high - low) / 2.0));
                let distance = position.minus(least).magnitude();
                let (rest, turns) = (distance.rem_trunc(span), distance.over(span).floor());
                let odd = turns.rem_trunc(C::of(2.0)).is_true();
                self.clipped(if odd { span.minus(rest).plus(least) } else { rest.plus(least) })
            }
        }
    }

    fn clipped<C: Float>(&self, position: C) -> C {
        let last = C::of((self.size - 1) as f64);
        let above = if position.less(C::ZERO) { C::ZERO } else { position };
        if above.less(last) { above } else { last }
    }

    fn pixel<C: Float>(&self, place: C) -> Option<usize> {
        let inside = !place.less(C::ZERO) && place.less(C::of(self.size as f64));
        inside.then(|| Cast::<i64>::cast(place) as usize)
    }
}

/// The weights of four neighbours, for a place between the second and the third.
fn cubic<C: Float>(t: C) -> [C; 4] {
    const A: f64 = -0.75;
    let near = |x: C| C::of(A + 2.0).times(x).minus(C::of(A + 3.0)).times(x).times(x).plus(C::ONE);
    let far = |x: C| {
        let inner = C::of(A).times(x).minus(C::of(5.0 * A)).times(x).plus(C::of(8.0 * A));
        inner.times(x).minus(C::of(4.0 * A))
    };
    let rest = C::ONE.minus(t);
    [far(t.plus(C::ONE)), near(t), near(rest), far(rest.plus(C::ONE))]
}

#[cfg(test)]
mod tests {
    use super::*;
    use edgepack_executor::call::{Arg, call};
    use edgepack_format::scalar::ScalarType;

    /// Samples the row 0, 1, 4, 9 at places given in pixels.
    fn sample(mode: i64, padding: i64, places: &[f32]) -> Vec<f32> {
        let grid: Vec<f32> = places.iter().flat_map(|x| [x / 1.5 - 1.0, 0.0]).collect();
        let args = [
            Arg::tensor(&[1, 1, 1, 4], &[0.0f32, 1.0, 4.0, 9.0]),
            Arg::tensor(&[1, 1, places.len(), 2], &grid),
            Arg::int(mode),
            Arg::int(padding),
            Arg::bool(true),
            Arg::out(ScalarType::FLOAT, &[1, 1, 1, places.len()]),
        ];
        let out = call(&GRID_SAMPLER, &args).unwrap()[0].as_slice::<f32>().unwrap();
        out.iter().map(|x| (x * 1000.0).round() / 1000.0).collect()
    }

    #[test]
    fn values_between_pixels_are_mixed() {
        assert_eq!(sample(0, 0, &[0.0, 0.5, 2.5, 3.5, -1.0]), [0.0, 0.5, 6.5, 4.5, 0.0]);
        assert_eq!(sample(0, 0, &[f32::NAN]), [0.0]);
        assert_eq!(sample(1, 0, &[0.4, 1.6, 2.9, 3.6]), [0.0, 4.0, 9.0, 0.0]);
    }

    #[test]
    fn outside_is_the_border_or_a_reflection() {
        assert_eq!(sample(0, 1, &[-2.0, 3.5, 9.0]), [0.0, 9.0, 9.0]);
        assert_eq!(sample(0, 2, &[-1.0, 3.5, 5.0, 6.0, 8.0]), [1.0, 6.5, 1.0, 0.0, 4.0]);
    }

    #[test]
    fn cubic_weights_meet_the_pixels_and_sum_to_one() {
        assert_eq!(sample(2, 1, &[1.0, 2.0]), [1.0, 4.0]);
        for t in [0.0f64, 0.25, 0.5, 0.9] {
            assert!((cubic(t).iter().sum::<f64>() - 1.0).abs() < 1e-12);
        }
        assert_eq!(cubic(0.5f64), [-0.09375, 0.59375, 0.59375, -0.09375]);
    }
}
