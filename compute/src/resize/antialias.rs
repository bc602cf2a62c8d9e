//! Resizing images so that every input pixel counts, also where there are more of them.
//!
//! An output pixel is the weighted mean of the pixels under a triangle around its place; where the image shrinks the
//! triangle is as much wider. Height and width are independent: rows are mixed into one, then the columns of that.

use super::expect_images;
use crate::element::Scalar;
use crate::error::{Error, ErrorKind, expect_elements};
use crate::layout::Strided;
use crate::number::{Cast, Compute, Number};

/// Scales beyond this are not those of images.
const MOST: f64 = 1e9;

/// One dimension of a resize.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    input: usize,
    /// Input pixels per output pixel.
    scale: f64,
}

impl Line {
    /// Returns the resize of `input` pixels to `out` pixels, by a factor if it was given; with `align_corners` the centres
    /// of the first and the last pixels fall together.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Data`] if the factor makes one pixel of more than 10⁹.
    pub fn new(input: usize, out: usize, align_corners: bool, factor: Option<f64>) -> Result<Line, Error> {
        let scale = match factor {
            _ if align_corners && out > 1 => input.saturating_sub(1) as f64 / (out - 1) as f64,
            _ if align_corners => 0.0,
            Some(scale) if scale > 0.0 => 1.0 / scale,
            _ => input as f64 / out as f64,
        };
        if scale > MOST {
            return Err(Error::new(ErrorKind::Data, format!("makes one pixel of {scale}")));
        }
        Ok(Line { input, scale })
    }

    fn at(&self, place: usize) -> Triangle {
        let reach = self.scale.max(1.0);
        let center = self.scale * (place as f64 + 0.5);
        // The pixel that holds the middle is always there, so no mean is of nothing.
        let first = (center - reach + 0.5).min(self.input.saturating_sub(1) as f64).max(0.0) as usize;
        let end = ((center + reach + 0.5).min(self.input as f64) as usize).max(first + 1);
        let mut triangle = Triangle { first, count: end - first, center, inverse: 1.0 / reach, total: 0.0 };
        triangle.total = (0..triangle.count).map(|index| triangle.height(index)).sum();
        triangle
    }
}

/// The input pixels under a triangle.
struct Triangle {
    first: usize,
    count: usize,
    /// The middle, and the inverse of half the width.
    center: f64,
    inverse: f64,
    /// Sum of the weights.
    total: f64,
}

impl Triangle {
    fn height(&self, index: usize) -> f64 {
        let place = (self.first + index) as f64 + 0.5;
        (1.0 - ((place - self.center) * self.inverse).abs()).max(0.0)
    }

    /// The weights of the pixels; a place beyond the image takes its last pixel.
    fn weights(&self) -> impl Iterator<Item = (usize, f64)> + '_ {
        (0..self.count).map(|index| {
            let weight = if self.total > 0.0 { self.height(index) / self.total } else { 1.0 / self.count as f64 };
            (self.first + index, weight)
        })
    }
}

/// Resizes images `[batch, channel, row, column]`; `line` is scratch with an element for every column of the input.
///
/// # Errors
///
/// [`ErrorKind::Geometry`] if batches or channels differ, if an output is made of no pixels, or if a slice is shorter than
/// its sizes say.
///
/// ```
/// use edgepack_compute::layout::Strided;
/// use edgepack_compute::resize::antialias::{Line, resize};
///
/// let input = Strided { sizes: [1, 1, 1, 2], strides: [2, 2, 2, 1] };
/// let out = Strided { sizes: [1, 1, 1, 4], strides: [4, 4, 4, 1] };
/// let lines = [Line::new(1, 1, false, None)?, Line::new(2, 4, false, None)?];
/// let mut pixels = [0.0f32; 4];
/// resize((input, &[0.0, 4.0]), (out, &mut pixels), lines, &mut [0.0; 2])?;
/// assert_eq!(pixels, [0.0, 1.0, 3.0, 4.0]);
/// # Ok::<(), edgepack_compute::Error>(())
/// ```
pub fn resize<T: Number>(
    (input, data): (Strided<4>, &[T]),
    (to, out): (Strided<4>, &mut [T]),
    [rows, columns]: [Line; 2],
    line: &mut [f64],
) -> Result<(), Error> {
    expect_images(&input, data.len(), &to, out.len())?;
    let ([batch, channels, ..], [_, _, height, width]) = (input.sizes, to.sizes);
    expect_elements("the scratch for a line", line.len(), input.sizes[3])?;
    if [rows.input, columns.input] != input.sizes[2..] {
        return Err(Error::new(ErrorKind::Geometry, "the lines are those of other images"));
    }
    let line = &mut line[..input.sizes[3]];
    for plane in 0..batch * channels {
        let (n, channel) = (plane / channels, plane % channels);
        let from = n * input.strides[0] + channel * input.strides[1];
        let start = n * to.strides[0] + channel * to.strides[1];
        for y in 0..height {
            line.fill(0.0);
            for (row, weight) in rows.at(y).weights() {
                let row = data[from + row * input.strides[2]..].iter().step_by(input.strides[3].max(1));
                line.iter_mut().zip(row).for_each(|(sum, &x)| *sum += weight * Cast::<f64>::cast(x));
            }
            for x in 0..width {
                let sum: f64 = columns.at(x).weights().map(|(column, weight)| weight * line[column]).sum();
                let value = if T::Compute::FLOATING { sum } else { sum.round() };
                out[start + y * to.strides[2] + x * to.strides[3]] = T::from_scalar(Scalar::Double(value));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resized(row: &[f32], out: usize, align: bool) -> Vec<f32> {
        let strided = |width: usize| Strided { sizes: [1, 1, 1, width], strides: [width, width, width, 1] };
        let lines = [Line::new(1, 1, align, None).unwrap(), Line::new(row.len(), out, align, None).unwrap()];
        let mut pixels = vec![0.0; out];
        let mut line = vec![0.0; row.len()];
        resize((strided(row.len()), row), (strided(out), &mut pixels), lines, &mut line).unwrap();
        pixels
    }

    #[test]
    fn growing_is_bilinear() {
        assert_eq!(resized(&[0.0, 4.0], 4, false), [0.0, 1.0, 3.0, 4.0]);
    }

    #[test]
    fn shrinking_takes_the_mean_under_a_triangle() {
        // Half: around 1.0 with reach 2, so pixel centres 0.5, 1.5 and 2.5 weigh 3, 3 and 1.
        let out = resized(&[7.0, 0.0, 0.0, 0.0, 0.0, 7.0], 3, false);
        assert!((out[0] - 3.0).abs() < 1e-6 && (out[2] - 3.0).abs() < 1e-6, "{out:?}");
        assert_eq!(resized(&[5.0; 9], 2, false), [5.0, 5.0]);
        assert!(resized(&[1.0, 2.0, 3.0], 1, true)[0].is_finite());
    }

    #[test]
    fn lines_of_other_images_are_refused() {
        assert_eq!(Line::new(4, 2, false, Some(1e-12)).unwrap_err().kind, ErrorKind::Data);
        let strided = Strided { sizes: [1, 1, 2, 2], strides: [4, 4, 2, 1] };
        let line = Line::new(3, 2, false, None).unwrap();
        let refused = resize((strided, &[0u8; 4]), (strided, &mut [0; 4]), [line; 2], &mut [0.0; 2]);
        assert_eq!(refused.unwrap_err().kind, ErrorKind::Geometry);
    }
}
