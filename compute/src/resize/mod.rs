//! Resizing images: the nearest pixel, or a mixture of four; [`antialias`] mixes all that are there.
//!
//! Images are `[batch, channel, row, column]`, in any order of memory. Positions are computed in `f32`, in `f64` for
//! doubles, by the formulas of PyTorch, so that rounding picks the same neighbours.

pub mod antialias;
mod lines;
mod nearest;

use edgepack_format::scalar::ScalarType;

use crate::element::Scalar;
use crate::error::{Error, ErrorKind, expect_elements};
use crate::float::Float;
use crate::layout::Strided;
use crate::number::{Cast, Compute, Number, as_floats, as_floats_mut};
use crate::simd::wide;
use crate::threads::for_each_piece;
use lines::Lines;

/// The algorithm that finds values between pixels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Interpolation {
    /// The pixel at or before the place.
    Nearest,
    /// The four pixels around the place, by their distance.
    Bilinear {
        /// True if the centres of the corner pixels fall together, not the corners of the images.
        align_corners: bool,
    },
}

/// A resize of images.
#[derive(Clone, Copy, Debug)]
pub struct Resize {
    /// Sizes and strides of the input.
    pub input: Strided<4>,
    /// Sizes and strides of the output; batch and channels are those of the input.
    pub out: Strided<4>,
    /// Factors of height and width, where they were given; else the sizes say.
    pub scales: [Option<f64>; 2],
    /// The algorithm that finds values between pixels.
    pub interpolation: Interpolation,
}

/// Two neighbouring pixels along a dimension, and how much the second counts: scratch of [`Resize::run`].
#[derive(Clone, Copy, Default, PartialEq, Debug, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct Neighbours {
    first: u32,
    second: u32,
    weight: f64,
}

impl Resize {
    /// Writes every pixel of the output; `columns` is scratch with an element for every column of it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Geometry`] if batches or channels differ, if an output is made of no pixels, or if a slice is shorter
    /// than its sizes say.
    ///
    /// ```
    /// use edgepack_compute::layout::Strided;
    /// use edgepack_compute::resize::{Interpolation, Neighbours, Resize};
    ///
    /// let input = Strided { sizes: [1, 1, 1, 2], strides: [2, 2, 2, 1] };
    /// let out = Strided { sizes: [1, 1, 1, 3], strides: [3, 3, 3, 1] };
    /// let interpolation = Interpolation::Bilinear { align_corners: true };
    /// let resize = Resize { input, out, scales: [None; 2], interpolation };
    /// let mut pixels = [0.0f32; 3];
    /// resize.run(&[1.0, 2.0], &mut pixels, &mut [Neighbours::default(); 3])?;
    /// assert_eq!(pixels, [1.0, 1.5, 2.0]);
    /// # Ok::<(), edgepack_compute::Error>(())
    /// ```
    pub fn run<T: Number>(&self, data: &[T], out: &mut [T], columns: &mut [Neighbours]) -> Result<(), Error> {
        expect_images(&self.input, data.len(), &self.out, out.len())?;
        if self.out.count() == 0 {
            return Ok(());
        }
        let [_, _, height, width] = self.out.sizes;
        expect_elements("the scratch for columns", columns.len(), width)?;
        let columns = &mut columns[..width];
        let double = T::SCALAR_TYPE == ScalarType::DOUBLE;
        let [rows, across] = [2, 3].map(|dim| Row::new(self, dim, double));
        for (x, column) in columns.iter_mut().enumerate() {
            *column = across.at(x);
        }
        let columns = &*columns;
        let [batch, channels, ..] = self.out.sizes;
        let strides = self.out.strides;
        if let Some(lines) = Lines::of(self)
            && let (Some(data), Some(out)) = (as_floats(data), as_floats_mut(out))
        {
            lines.mix(&rows, data, out, columns);
            return Ok(());
        }
        if self.interpolation == Interpolation::Nearest && nearest::copy(self, &rows, data, out, columns) {
            return Ok(());
        }
        // Rows of one image whose channels are innermost follow each other.
        if batch == 1 && channels > 1 && strides == [strides[0], 1, columns.len() * channels, channels] {
            for_each_piece(&mut out[..height * strides[2]], strides[2], |start, out| {
                for (y, out) in (start / strides[2]..).zip(out.chunks_exact_mut(strides[2])) {
                    let row = rows.at(y);
                    wide(|| self.row(data, out, 0, row, columns));
                }
            });
            return Ok(());
        }
        for y in 0..height {
            let row = rows.at(y);
            wide(|| self.row(data, out, y * strides[2], row, columns));
        }
        Ok(())
    }

    /// One row of all images and channels, which begins at an element of the output.
    #[inline(always)]
    fn row<T: Number>(&self, data: &[T], out: &mut [T], first: usize, row: Neighbours, columns: &[Neighbours]) {
        let [batch, channels, ..] = self.input.sizes;
        let (from, to) = (self.input.strides, self.out.strides);
        // The channels of a pixel at once, where they are neighbours.
        let (run, repeats) = if from[1] == 1 && to[1] == 1 { (channels, 1) } else { (1, channels) };
        for (n, c) in (0..batch).flat_map(|n| (0..repeats).map(move |c| (n, c))) {
            let start = n * from[0] + c * from[1];
            let (upper, lower) = (start + row.first as usize * from[2], start + row.second as usize * from[2]);
            let start = n * to[0] + c * to[1] + first;
            for (x, column) in columns.iter().enumerate() {
                let out = &mut out[start + x * to[3]..][..run];
                let (left, right) = (column.first as usize * from[3], column.second as usize * from[3]);
                if self.interpolation == Interpolation::Nearest {
                    match out {
                        // A call to copy one number takes longer than that.
                        [out] => *out = data[upper + left],
                        out => out.copy_from_slice(&data[upper + left..][..run]),
                    }
                    continue;
                }
                let corner = |at: usize| &data[at..][..run];
                let corners =
                    [corner(upper + left), corner(upper + right), corner(lower + left), corner(lower + right)];
                mix(out, corners, row.weight, column.weight);
            }
        }
    }
}

/// Returns an error unless two batches of images fit each other and their slices.
fn expect_images(input: &Strided<4>, elements: usize, out: &Strided<4>, out_elements: usize) -> Result<(), Error> {
    let empty = out.count() != 0 && input.count() == 0;
    if input.sizes[..2] != out.sizes[..2] || empty {
        let message = format!("images of {:?} do not become images of {:?}", input.sizes, out.sizes);
        return Err(Error::new(ErrorKind::Geometry, message));
    }
    expect_elements("the input", elements, input.reach())?;
    expect_elements("the output", out_elements, out.reach())
}

/// One dimension of a resize.
struct Row {
    /// The last element of the input.
    last: usize,
    /// Elements of the input for one of the output, a number of the type that positions are computed in.
    ratio: f64,
    interpolation: Interpolation,
    double: bool,
}

impl Row {
    /// The dimension of a resize with so many before it; with `double` positions are computed in double precision.
    fn new(resize: &Resize, dim: usize, double: bool) -> Row {
        let (input, out) = (resize.input.sizes[dim], resize.out.sizes[dim]);
        let of = |size: usize| if double { size as f64 } else { f64::from(size as f32) };
        // A quotient of doubles, rounded, is the quotient of the floats that they are.
        let ratio = match (resize.interpolation, resize.scales[dim - 2]) {
            (Interpolation::Bilinear { align_corners: true }, _) if out > 1 => of(input - 1) / of(out - 1),
            (Interpolation::Bilinear { align_corners: true }, _) => 0.0,
            (_, Some(scale)) if scale > 0.0 => 1.0 / scale,
            _ => of(input) / of(out),
        };
        let ratio = if double { ratio } else { f64::from(ratio as f32) };
        Row { last: input - 1, ratio, interpolation: resize.interpolation, double }
    }

    fn at(&self, place: usize) -> Neighbours {
        if self.double { self.position::<f64>(place) } else { self.position::<f32>(place) }
    }

    fn position<F: Float>(&self, place: usize) -> Neighbours {
        let of = |size: usize| F::of(size as f64);
        let (ratio, half) = (F::of(self.ratio), F::of(0.5));
        let position = match self.interpolation {
            Interpolation::Nearest | Interpolation::Bilinear { align_corners: true } => ratio.times(of(place)),
            Interpolation::Bilinear { align_corners: false } => {
                let position = ratio.times(of(place).plus(half)).minus(half);
                if position.less(F::ZERO) { F::ZERO } else { position }
            }
        };
        let first = (Cast::<i64>::cast(position) as usize).min(self.last);
        let weight = Cast::<f64>::cast(position.minus(of(first))).clamp(0.0, 1.0);
        Neighbours { first: first as u32, second: (first + 1).min(self.last) as u32, weight }
    }
}

#[inline(always)]
fn mix<T: Number>(out: &mut [T], [a, b, c, d]: [&[T]; 4], down: f64, right: f64) {
    for (i, out) in out.iter_mut().enumerate() {
        if T::Compute::FLOATING {
            let weight = |x: f64| T::Compute::from_scalar(Scalar::Double(x));
            let (down, up, right, left) = (weight(down), weight(1.0 - down), weight(right), weight(1.0 - right));
            let line = |a: T, b: T| left.times(a.to_compute()).plus(right.times(b.to_compute()));
            *out = up.times(line(a[i], b[i])).plus(down.times(line(c[i], d[i]))).cast();
        } else {
            // Whole numbers are mixed in single precision, like the weights, and cut.
            let of = |x: T| Cast::<f32>::cast(x);
            let (down, right) = (down as f32, right as f32);
            let line = |a: T, b: T| (1.0 - right) * of(a) + right * of(b);
            let mixed = (1.0 - down) * line(a[i], b[i]) + down * line(c[i], d[i]);
            *out = T::from_scalar(Scalar::Double(mixed.into()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contiguous(sizes: [usize; 4]) -> Strided<4> {
        Strided { sizes, strides: [sizes[1] * sizes[2] * sizes[3], sizes[2] * sizes[3], sizes[3], 1] }
    }

    fn resized(interpolation: Interpolation, scales: [Option<f64>; 2], [height, width]: [usize; 2]) -> Vec<f32> {
        let (input, out) = (contiguous([1, 1, 2, 3]), contiguous([1, 1, height, width]));
        let mut pixels = vec![0.0; height * width];
        let resize = Resize { input, out, scales, interpolation };
        resize.run(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0], &mut pixels, &mut vec![Neighbours::default(); width]).unwrap();
        pixels
    }

    #[test]
    fn nearest_takes_the_pixel_before() {
        let nearest = |scales, sizes| resized(Interpolation::Nearest, scales, sizes);
        let sized = nearest([None; 2], [3, 4]);
        assert_eq!(sized, [0.0, 0.0, 1.0, 2.0, 0.0, 0.0, 1.0, 2.0, 3.0, 3.0, 4.0, 5.0]);
        assert_eq!(nearest([Some(1.0), Some(2.0)], [2, 6])[..6], [0.0, 0.0, 1.0, 1.0, 2.0, 2.0]);
    }

    #[test]
    fn bilinear_follows_both_conventions() {
        let bilinear = |align_corners, sizes| resized(Interpolation::Bilinear { align_corners }, [None; 2], sizes);
        assert_eq!(bilinear(true, [2, 5]), [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 3.5, 4.0, 4.5, 5.0]);
        let centers = bilinear(false, [4, 3]);
        assert_eq!(centers, [0.0, 1.0, 2.0, 0.75, 1.75, 2.75, 2.25, 3.25, 4.25, 3.0, 4.0, 5.0]);
    }

    #[test]
    fn channels_last_gives_the_same() {
        let values: Vec<f32> = (0..2 * 3 * 4).map(|i| (i * i % 17) as f32).collect();
        let repacked: Vec<f32> = (0..24).map(|i| values[i % 2 * 12 + i / 2]).collect();
        let run = |input, data: &[f32], out| {
            let mut pixels = vec![0.0; 70];
            let interpolation = Interpolation::Bilinear { align_corners: false };
            let resize = Resize { input, out, scales: [None; 2], interpolation };
            resize.run(data, &mut pixels, &mut [Neighbours::default(); 7]).unwrap();
            pixels
        };
        let a = run(contiguous([1, 2, 3, 4]), &values, contiguous([1, 2, 5, 7]));
        let last = |sizes: [usize; 4]| Strided { sizes, strides: [1, 1, sizes[3] * 2, 2] };
        let b = run(last([1, 2, 3, 4]), &repacked, last([1, 2, 5, 7]));
        for i in 0..70 {
            assert_eq!(a[i], b[i % 35 * 2 + i / 35]);
        }
    }

    #[test]
    fn floats_without_gaps_are_mixed_as_pixels_of_other_types_are() {
        let last = |[batch, channels, height, width]: [usize; 4]| Strided {
            sizes: [batch, channels, height, width],
            strides: [channels * height * width, 1, width * channels, channels],
        };
        let layouts = [contiguous, last as fn([usize; 4]) -> Strided<4>];
        for ((align_corners, sizes, scales), channels, layout) in [
            (false, [7, 9], [None; 2]),
            (true, [9, 300], [None; 2]),
            (false, [2, 2], [None; 2]),
            (true, [1, 1], [None; 2]),
            (false, [11, 600], [Some(2.5), Some(150.0)]),
            (false, [70, 40], [None; 2]),
        ]
        .into_iter()
        .flat_map(|case| [2, 3, 21].map(|channels| (case, channels)))
        .flat_map(|(case, channels)| layouts.map(|layout| (case, channels, layout)))
        {
            let values: Vec<f32> = (0..2 * channels * 5 * 4).map(|i| (i * i % 23) as f32 - 11.25).collect();
            let interpolation = Interpolation::Bilinear { align_corners };
            let (input, out) = (layout([2, channels, 5, 4]), layout([2, channels, sizes[0], sizes[1]]));
            let columns = &mut vec![Neighbours::default(); sizes[1]];
            let run = |resize: &Resize, pixels: &mut [f32], columns: &mut [Neighbours]| {
                resize.run(&values, pixels, columns).unwrap();
            };
            let resize = Resize { input, out, scales, interpolation };
            assert!(Lines::of(&resize).is_some());
            let mut pixels = vec![0.0f32; out.count()];
            run(&resize, &mut pixels, columns);
            // A gap between images is what the other way is for.
            let mut gaps = resize;
            gaps.out.strides[0] += 1;
            assert!(Lines::of(&gaps).is_none());
            let mut others = vec![0.0f32; out.count() + 1];
            run(&gaps, &mut others, columns);
            let image = out.count() / 2;
            assert!(pixels[..image] == others[..image] && pixels[image..] == others[image + 1..], "{resize:?}");
        }
    }

    #[test]
    fn images_that_do_not_fit_are_refused() {
        let (input, out) = (contiguous([1, 2, 2, 2]), contiguous([1, 2, 4, 4]));
        let resize = Resize { input, out, scales: [None; 2], interpolation: Interpolation::Nearest };
        let columns = &mut [Neighbours::default(); 4];
        assert!(resize.run(&[0u8; 8], &mut [0; 32], columns).is_ok());
        assert!(resize.run(&[0u8; 7], &mut [0; 32], columns).is_err());
        assert!(resize.run(&[0u8; 8], &mut [0; 31], columns).is_err());
        assert!(resize.run(&[0u8; 8], &mut [0; 32], &mut columns[..3]).is_err());
        let other = Resize { input: contiguous([1, 1, 2, 4]), ..resize };
        assert_eq!(other.run(&[0u8; 8], &mut [0; 32], columns).unwrap_err().kind, ErrorKind::Geometry);
    }
}
