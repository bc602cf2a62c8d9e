//! Sampling images and volumes at places that a grid says.
//!
//! Coordinates run from -1 to 1 over the image, the last one first: column, row, slice. They are computed in `f32`, in
//! `f64` for doubles. A coordinate that is not a finite number is outside of the image.

use crate::error::{Error, ErrorKind, expect_elements};
use crate::float::Float;
use crate::layout::Strided;
use crate::number::{Cast, Compute, Number};

/// The algorithm that finds values between pixels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// From the neighbours on both sides.
    Bilinear,
    /// From the nearest pixel, the even one of two.
    Nearest,
    /// From two neighbours on each side; images only.
    Bicubic,
}

/// The values outside of the image.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Padding {
    /// Zeros.
    Zeros,
    /// The pixel at the border.
    Border,
    /// The image, mirrored.
    Reflection,
}

/// The conventions of a grid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sampler {
    /// The algorithm that finds values between pixels.
    pub mode: Mode,
    /// The values outside of the image.
    pub padding: Padding,
    /// True if -1 and 1 are the centres of the corner pixels, not the corners of the image.
    pub align_corners: bool,
}

impl Sampler {
    /// Samples images `[batch, channel, row, column]` at a grid `[batch, row, column, 2]`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Geometry`] if the sizes do not fit each other or their slices.
    ///
    /// ```
    /// use edgepack_compute::layout::Strided;
    /// use edgepack_compute::sample::{Mode, Padding, Sampler};
    ///
    /// let row = |sizes: [usize; 4]| Strided { sizes, strides: [4, 4, sizes[3], 1] };
    /// let sampler = Sampler { mode: Mode::Bilinear, padding: Padding::Zeros, align_corners: true };
    /// let mut out = [0.0f32; 1];
    /// let image = (row([1, 1, 1, 4]), &[0.0, 1.0, 4.0, 9.0][..]);
    /// sampler.images(image, (row([1, 1, 1, 2]), &[0.0, 0.0]), (row([1, 1, 1, 1]), &mut out))?;
    /// assert_eq!(out, [2.5]);
    /// # Ok::<(), edgepack_compute::Error>(())
    /// ```
    pub fn images<T: Number<Compute: Float>>(
        &self,
        (from, data): (Strided<4>, &[T]),
        (grid, points): (Strided<4>, &[T]),
        (to, out): (Strided<4>, &mut [T]),
    ) -> Result<(), Error> {
        expect(&from, data.len(), &grid, points.len(), &to, out.len())?;
        if to.count() == 0 {
            return Ok(());
        }
        let ([_, _, height, width], [batch, channels, rows, columns]) = (from.sizes, to.sizes);
        let [across, down] = [width, height].map(|size| self.line(size));
        for n in 0..batch {
            let image = &data[n * from.strides[0]..];
            for (y, x) in (0..rows).flat_map(|y| (0..columns).map(move |x| (y, x))) {
                let at = n * grid.strides[0] + y * grid.strides[1] + x * grid.strides[2];
                let (u, v) = (points[at].to_compute(), points[at + grid.strides[3]].to_compute());
                let (columns, rows) = (across.taps(u, self.mode), down.taps(v, self.mode));
                let start = n * to.strides[0] + y * to.strides[2] + x * to.strides[3];
                for channel in 0..channels {
                    let mut sum = T::Compute::ZERO;
                    for (row, by) in rows.inside() {
                        let line = channel * from.strides[1] + row * from.strides[2];
                        for (column, weight) in columns.inside() {
                            let value = image[line + column * from.strides[3]].to_compute();
                            sum = sum.plus(value.times(by.times(weight)));
                        }
                    }
                    out[start + channel * to.strides[1]] = sum.cast();
                }
            }
        }
        Ok(())
    }

    /// Samples volumes `[batch, channel, slice, row, column]` at a grid `[batch, slice, row, column, 3]`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Geometry`] if the sizes do not fit each other or their slices; [`ErrorKind::Unsupported`] for
    /// [`Mode::Bicubic`].
    pub fn volumes<T: Number<Compute: Float>>(
        &self,
        (from, data): (Strided<5>, &[T]),
        (grid, points): (Strided<5>, &[T]),
        (to, out): (Strided<5>, &mut [T]),
    ) -> Result<(), Error> {
        if self.mode == Mode::Bicubic {
            return Err(Error::new(ErrorKind::Unsupported, "volumes are not sampled bicubically"));
        }
        expect(&from, data.len(), &grid, points.len(), &to, out.len())?;
        if to.count() == 0 {
            return Ok(());
        }
        let ([_, _, depth, height, width], [batch, channels, slices, rows, columns]) = (from.sizes, to.sizes);
        let lines = [width, height, depth].map(|size| self.line(size));
        let (from, steps, to) = (from.strides, grid.strides, to.strides);
        let places = (0..batch * slices * rows * columns).map(|at| {
            [at / (slices * rows * columns), at / (rows * columns) % slices, at / columns % rows, at % columns]
        });
        for place in places {
            let at: usize = place.iter().zip(steps).map(|(index, step)| index * step).sum();
            let taps = [0, 1, 2].map(|i| lines[i].taps(points[at + i * steps[4]].to_compute(), self.mode));
            let [columns, rows, slices] = taps;
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

    fn line(&self, size: usize) -> Line {
        Line { size, padding: self.padding, align_corners: self.align_corners }
    }
}

/// Returns an error unless images (or volumes) of `N` dimensions, a grid and an output fit each other and their slices.
fn expect<const N: usize>(
    from: &Strided<N>,
    elements: usize,
    grid: &Strided<N>,
    points: usize,
    to: &Strided<N>,
    out: usize,
) -> Result<(), Error> {
    let fit = from.sizes[..2] == to.sizes[..2]
        && from.sizes[0] == grid.sizes[0]
        && grid.sizes[1..N - 1] == to.sizes[2..]
        && grid.sizes[N - 1] == N - 2
        && from.sizes[2..].iter().all(|&size| size > 0);
    if !fit {
        let (from, grid, to) = (from.sizes, grid.sizes, to.sizes);
        let message = format!("images {from:?} at a grid {grid:?} do not make samples {to:?}");
        return Err(Error::new(ErrorKind::Geometry, message));
    }
    expect_elements("the input", elements, from.reach())?;
    expect_elements("the grid", points, grid.reach())?;
    expect_elements("the output", out, to.reach())
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
    align_corners: bool,
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

    /// Converts a coordinate from -1 to 1 to pixels.
    fn position<C: Float>(&self, coordinate: C) -> C {
        let (one, half) = (C::ONE, C::of(0.5));
        let size = C::of(self.size as f64);
        if self.align_corners {
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
                let (low, high) = if self.align_corners { (0.0, 2.0 * (size - 1.0)) } else { (-1.0, 2.0 * size - 1.0) };
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

    /// Samples the row 0, 1, 4, 9 at places given in pixels.
    fn sample(mode: Mode, padding: Padding, places: &[f32]) -> Vec<f32> {
        let row = |width: usize, last: usize| Strided {
            sizes: [1, 1, width, last],
            strides: [width * last, width * last, last, 1],
        };
        let grid: Vec<f32> = places.iter().flat_map(|x| [x / 1.5 - 1.0, 0.0]).collect();
        let sampler = Sampler { mode, padding, align_corners: true };
        let mut out = vec![0.0; places.len()];
        let image = (row(1, 4), &[0.0f32, 1.0, 4.0, 9.0][..]);
        sampler.images(image, (row(places.len(), 2), &grid), (row(1, places.len()), &mut out)).unwrap();
        out.iter().map(|x| (x * 1000.0).round() / 1000.0).collect()
    }

    #[test]
    fn values_between_pixels_are_mixed() {
        let zeros = |mode, places: &[f32]| sample(mode, Padding::Zeros, places);
        assert_eq!(zeros(Mode::Bilinear, &[0.0, 0.5, 2.5, 3.5, -1.0]), [0.0, 0.5, 6.5, 4.5, 0.0]);
        assert_eq!(zeros(Mode::Bilinear, &[f32::NAN]), [0.0]);
        assert_eq!(zeros(Mode::Nearest, &[0.4, 1.6, 2.9, 3.6]), [0.0, 4.0, 9.0, 0.0]);
    }

    #[test]
    fn outside_is_the_border_or_a_reflection() {
        assert_eq!(sample(Mode::Bilinear, Padding::Border, &[-2.0, 3.5, 9.0]), [0.0, 9.0, 9.0]);
        let reflected = sample(Mode::Bilinear, Padding::Reflection, &[-1.0, 3.5, 5.0, 6.0, 8.0]);
        assert_eq!(reflected, [1.0, 6.5, 1.0, 0.0, 4.0]);
    }

    #[test]
    fn cubic_weights_meet_the_pixels_and_sum_to_one() {
        assert_eq!(sample(Mode::Bicubic, Padding::Border, &[1.0, 2.0]), [1.0, 4.0]);
        for t in [0.0f64, 0.25, 0.5, 0.9] {
            assert!((cubic(t).iter().sum::<f64>() - 1.0).abs() < 1e-12);
        }
        assert_eq!(cubic(0.5f64), [-0.09375, 0.59375, 0.59375, -0.09375]);
    }

    #[test]
    fn grids_of_other_images_are_refused() {
        let square = Strided { sizes: [1, 1, 2, 2], strides: [4, 4, 2, 1] };
        let sampler = Sampler { mode: Mode::Nearest, padding: Padding::Zeros, align_corners: false };
        let refused = |grid: usize, out: usize| {
            let images = (square, &[0.0f32; 4][..]);
            sampler.images(images, (square, &vec![0.0; grid]), (square, &mut vec![0.0; out])).unwrap_err().kind
        };
        assert_eq!(refused(4, 4), ErrorKind::Geometry);
        let volumes = Strided { sizes: [1; 5], strides: [1; 5] };
        let cubic = Sampler { mode: Mode::Bicubic, ..sampler };
        let refused = cubic.volumes((volumes, &[0.0f32]), (volumes, &[0.0]), (volumes, &mut [0.0]));
        assert_eq!(refused.unwrap_err().kind, ErrorKind::Unsupported);
    }
}
