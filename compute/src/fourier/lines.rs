//! Transforms of tensors along some of their dimensions, from and to real or complex numbers.
//!
//! Lines are gathered into working memory, transformed in double precision and put back, so any length and any dimension
//! will do. Tensors are contiguous. The last of the dimensions is where real and complex meet; the others are transformed
//! as complex lines.

use super::Transform;
use crate::complex::{Complex, conjugate};
use crate::error::{Error, ErrorKind, expect_elements};
use crate::layout::AxisView;
use crate::number::{Cast, Number};

/// Transforms of several lengths, made when they are first asked for and retained: up to a number of them, in up to so many
/// bytes of tables.
pub struct Transforms {
    list: Vec<Transform>,
    most: usize,
    bytes: usize,
}

impl Transforms {
    /// Returns none yet, of which as many as `most`, of so many bytes together, may be retained.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Memory`] if there is no memory for the list.
    pub fn new(most: usize, bytes: usize) -> Result<Transforms, Error> {
        let most = most.max(1);
        Ok(Transforms { list: crate::error::room(most)?, most, bytes })
    }

    /// Returns the transform of a length, at least 1. If it has to be made, scratch is used where there is enough, as much
    /// as a run needs.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`] if its tables have more bytes than may be retained; [`ErrorKind::Memory`] if there is no
    /// memory for them.
    pub fn of(&mut self, length: usize, scratch: &mut [Complex<f64>]) -> Result<&Transform, Error> {
        let known = self.list.iter().position(|transform| transform.length() == length);
        let at = match known {
            Some(at) => at,
            None => {
                // Lengths that change with every call must not pile up.
                self.list.truncate(self.most - 1);
                if self.tables().saturating_add(Transform::bytes_of(length)) > self.bytes {
                    let message = format!("transforms of {length} points are longer than at load");
                    return Err(Error::new(ErrorKind::Unsupported, message));
                }
                let enough = scratch.len() >= Transform::scratch_to_make(length);
                let made = if enough { Transform::within(length, scratch) } else { Transform::new(length) };
                self.list.insert(0, made?);
                0
            }
        };
        Ok(&self.list[at])
    }

    /// Returns the bytes of all tables that are retained now.
    pub fn tables(&self) -> usize {
        self.list.iter().map(Transform::bytes).sum()
    }
}

/// A tensor whose lines are transformed.
#[derive(Clone, Copy, Debug)]
pub struct Lines<'a> {
    /// Sizes of the input.
    pub sizes: &'a [usize],
    /// Strides of the input, which is contiguous.
    pub strides: &'a [usize],
    /// Dimensions that are transformed, each named once; the last one is where real and complex meet.
    pub dims: &'a [usize],
    /// Factor of the results.
    pub factor: f64,
}

impl Lines<'_> {
    /// Returns the elements of scratch that a call needs for an input of `count` elements and lines of up to `longest`.
    pub fn scratch(count: usize, longest: usize) -> usize {
        count.saturating_add(longest).saturating_add(Transform::most_scratch(longest))
    }

    /// Transforms real numbers forward and writes the first `points` of each line of the last dimension.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Geometry`] if the dimensions are not those of the input, or a slice has fewer elements than the sizes
    /// say; [`ErrorKind::Unsupported`] if the scratch is too small; those of [`Transforms::of`].
    pub fn real_to_complex<R: Number>(
        &self,
        data: &[R],
        points: usize,
        out: &mut [Complex<R>],
        scratch: &mut [Complex<f64>],
        transforms: &mut Transforms,
    ) -> Result<(), Error>
    where
        f64: Cast<R>,
    {
        let last = self.expect(data.len())?;
        let AxisView { outer, size, inner } = self.along(last);
        if points > size {
            return Err(Error::new(ErrorKind::Geometry, format!("lines of {size} points have no {points}")));
        }
        expect_elements("the output", out.len(), outer * points * inner)?;
        if data.is_empty() {
            return Ok(());
        }
        let mut work = Work::new(scratch, data.len(), self.longest())?;
        work.all.iter_mut().zip(data).for_each(|(to, &x)| *to = [x.cast(), 0.0]);
        for &dim in self.dims {
            let transform = transforms.of(self.sizes[dim], work.inner)?;
            work.transform(self.along(dim), transform, false);
        }
        // One side of the last dimension, or all of it.
        for block in 0..outer {
            let from = &work.all[block * size * inner..][..points * inner];
            let to = &mut out[block * points * inner..][..points * inner];
            to.iter_mut().zip(from).for_each(|(to, x)| *to = x.map(|part| (part * self.factor).cast()));
        }
        Ok(())
    }

    /// Transforms complex numbers backward to real ones: lines of the last dimension hold the first half of spectra, and
    /// one more, of `length` points.
    ///
    /// # Errors
    ///
    /// As [`real_to_complex`](Self::real_to_complex); [`ErrorKind::Geometry`] also if lines are not half of `length`.
    pub fn complex_to_real<R: Number>(
        &self,
        data: &[Complex<R>],
        length: usize,
        out: &mut [R],
        scratch: &mut [Complex<f64>],
        transforms: &mut Transforms,
    ) -> Result<(), Error>
    where
        f64: Cast<R>,
    {
        let last = self.expect(data.len())?;
        let AxisView { outer, size, inner } = self.along(last);
        if length == 0 || size != length / 2 + 1 {
            return Err(Error::new(ErrorKind::Geometry, format!("{size} numbers are not half of {length} points")));
        }
        expect_elements("the output", out.len(), outer * length * inner)?;
        if data.is_empty() {
            return Ok(());
        }
        let mut work = Work::new(scratch, data.len(), self.longest().max(length))?;
        work.all.iter_mut().zip(data).for_each(|(to, x)| *to = x.map(Cast::cast));
        for &dim in self.dims.iter().filter(|&&dim| dim != last) {
            let transform = transforms.of(self.sizes[dim], work.inner)?;
            work.transform(self.along(dim), transform, true);
        }
        let transform = transforms.of(length, work.inner)?;
        for at in 0..outer * inner {
            let places = work.all[at / inner * size * inner + at % inner..].iter().step_by(inner);
            let line = &mut work.line[..length];
            line.iter_mut().zip(places).for_each(|(x, &from)| *x = from);
            // The ends of the half are their own mirror images, so they are real; the rest is mirrored.
            line[0][1] = 0.0;
            if length.is_multiple_of(2) {
                line[length / 2][1] = 0.0;
            }
            for k in length / 2 + 1..length {
                line[k] = conjugate(line[length - k]);
            }
            transform.run_backward(line, work.inner);
            let places = out[at / inner * length * inner + at % inner..].iter_mut().step_by(inner);
            places.zip(&*line).for_each(|(to, x)| *to = (x[0] * self.factor).cast());
        }
        Ok(())
    }

    /// Transforms complex numbers to complex numbers.
    ///
    /// # Errors
    ///
    /// As [`real_to_complex`](Self::real_to_complex).
    ///
    /// ```
    /// use edgepack_compute::fourier::{Lines, Transform, Transforms};
    ///
    /// let lines = Lines { sizes: &[2], strides: &[1], dims: &[0], factor: 1.0 };
    /// let mut transforms = Transforms::new(1, Transform::bytes_of(2))?;
    /// let (mut out, mut scratch) = ([[0.0f32; 2]; 2], vec![[0.0; 2]; Lines::scratch(2, 2)]);
    /// lines.complex(&[[1.0, 0.0], [3.0, 0.0]], false, &mut out, &mut scratch, &mut transforms)?;
    /// assert_eq!(out.map(|[real, _]| real), [4.0, -2.0]);
    /// assert!(out.iter().all(|[_, imaginary]| imaginary.abs() < 1e-12));
    /// # Ok::<(), edgepack_compute::Error>(())
    /// ```
    pub fn complex<R: Number>(
        &self,
        data: &[Complex<R>],
        backward: bool,
        out: &mut [Complex<R>],
        scratch: &mut [Complex<f64>],
        transforms: &mut Transforms,
    ) -> Result<(), Error>
    where
        f64: Cast<R>,
    {
        self.expect(data.len())?;
        expect_elements("the output", out.len(), data.len())?;
        if data.is_empty() {
            return Ok(());
        }
        let mut work = Work::new(scratch, data.len(), self.longest())?;
        work.all.iter_mut().zip(data).for_each(|(to, x)| *to = x.map(Cast::cast));
        for &dim in self.dims {
            let transform = transforms.of(self.sizes[dim], work.inner)?;
            work.transform(self.along(dim), transform, backward);
        }
        out.iter_mut().zip(&*work.all).for_each(|(to, x)| *to = x.map(|part| (part * self.factor).cast()));
        Ok(())
    }

    fn along(&self, dim: usize) -> AxisView {
        AxisView::new(self.sizes, self.strides, dim)
    }

    fn longest(&self) -> usize {
        self.sizes.iter().copied().max().unwrap_or(1)
    }

    /// The last of the dimensions; an error unless all are those of the input, which has so many elements.
    fn expect(&self, elements: usize) -> Result<usize, Error> {
        let known = |dim: &usize| *dim < self.sizes.len() && *dim < self.strides.len();
        let count = self.sizes.iter().product::<usize>();
        match self.dims.last() {
            Some(&last) if self.dims.iter().all(known) && elements == count => Ok(last),
            _ => {
                let (dims, sizes) = (self.dims, self.sizes);
                let message = format!("dimensions {dims:?} of {elements} elements of sizes {sizes:?}");
                Err(Error::new(ErrorKind::Geometry, message))
            }
        }
    }
}

/// The scratch of a call, split.
struct Work<'a> {
    all: &'a mut [Complex<f64>],
    line: &'a mut [Complex<f64>],
    inner: &'a mut [Complex<f64>],
}

impl<'a> Work<'a> {
    fn new(scratch: &'a mut [Complex<f64>], count: usize, longest: usize) -> Result<Work<'a>, Error> {
        let small = || Error::new(ErrorKind::Unsupported, format!("{count} numbers are more than at load"));
        let (all, rest) = scratch.split_at_mut_checked(count).ok_or_else(small)?;
        let (line, inner) = rest.split_at_mut_checked(longest).ok_or_else(small)?;
        if inner.len() < Transform::most_scratch(longest) {
            return Err(small());
        }
        Ok(Work { all, line, inner })
    }

    /// Transforms the lines along a dimension of `all`, in place.
    fn transform(&mut self, view: AxisView, transform: &Transform, backward: bool) {
        let AxisView { outer, size, inner } = view;
        let line = &mut self.line[..size];
        for at in 0..outer * inner {
            let start = at / inner * size * inner + at % inner;
            let places = self.all[start..].iter().step_by(inner);
            line.iter_mut().zip(places).for_each(|(x, &from)| *x = from);
            if backward {
                transform.run_backward(line, self.inner);
            } else {
                transform.run(line, self.inner);
            }
            let places = self.all[start..].iter_mut().step_by(inner);
            places.zip(&*line).for_each(|(to, &x)| *to = x);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn there_and_back_over_several_dimensions() {
        let mut random = Random::new(6);
        for (sizes, dims) in [([3, 4, 5], &[1, 2][..]), ([2, 5, 6], &[2, 0, 1]), ([4, 1, 7], &[2]), ([1, 9, 2], &[1])] {
            let values: Vec<f64> = random.values(sizes.iter().product());
            let last = dims[dims.len() - 1];
            let mut half = sizes;
            half[last] = sizes[last] / 2 + 1;
            let strides = |sizes: [usize; 3]| [sizes[1] * sizes[2], sizes[2], 1];
            let count = |sizes: [usize; 3]| sizes.iter().product::<usize>();
            let mut scratch = vec![[0.0; 2]; Lines::scratch(count(sizes).max(count(half)), 9)];
            let mut transforms = Transforms::new(3, usize::MAX).unwrap();
            let mut spectrum = vec![[0.0; 2]; count(half)];
            let forward = Lines { sizes: &sizes, strides: &strides(sizes), dims, factor: 1.0 };
            forward.real_to_complex(&values, half[last], &mut spectrum, &mut scratch, &mut transforms).unwrap();
            let factor = 1.0 / dims.iter().map(|&dim| sizes[dim] as f64).product::<f64>();
            let backward = Lines { sizes: &half, strides: &strides(half), dims, factor };
            let mut back = vec![0.0; values.len()];
            backward.complex_to_real(&spectrum, sizes[last], &mut back, &mut scratch, &mut transforms).unwrap();
            assert!(back.iter().zip(&values).all(|(a, b)| (a - b).abs() < 1e-12), "{sizes:?} {dims:?}");
        }
    }

    #[test]
    fn no_more_tables_are_retained_than_were_agreed() {
        let bytes = Transform::bytes_of(64) + Transform::bytes_of(37);
        let mut transforms = Transforms::new(2, bytes).unwrap();
        assert_eq!(transforms.tables(), 0);
        transforms.of(64, &mut []).unwrap();
        transforms.of(37, &mut []).unwrap();
        transforms.of(64, &mut []).unwrap();
        assert_eq!(transforms.tables(), bytes);
        // The longest ago asked for makes room; what is too long is refused.
        transforms.of(8, &mut []).unwrap();
        assert!(transforms.tables() < bytes);
        assert_eq!(transforms.of(1009, &mut []).err().unwrap().kind, ErrorKind::Unsupported);
    }

    #[test]
    fn other_tensors_are_refused() {
        let mut transforms = Transforms::new(1, usize::MAX).unwrap();
        let mut run = |dims: &[usize], data: usize, out: usize, scratch: usize| {
            let lines = Lines { sizes: &[4], strides: &[1], dims, factor: 1.0 };
            let (data, mut out, mut scratch) = (vec![1.0f32; data], vec![[0.0; 2]; out], vec![[0.0; 2]; scratch]);
            lines.real_to_complex(&data, 3, &mut out, &mut scratch, &mut transforms).map_err(|error| error.kind)
        };
        let enough = Lines::scratch(4, 4);
        assert_eq!(run(&[0], 4, 3, enough), Ok(()));
        assert_eq!(run(&[1], 4, 3, enough), Err(ErrorKind::Geometry));
        assert_eq!(run(&[], 4, 3, enough), Err(ErrorKind::Geometry));
        assert_eq!(run(&[0], 5, 3, enough), Err(ErrorKind::Geometry));
        assert_eq!(run(&[0], 4, 2, enough), Err(ErrorKind::Geometry));
        assert_eq!(run(&[0], 4, 3, enough - 1), Err(ErrorKind::Unsupported));
    }
}
