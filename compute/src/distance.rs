//! Distances between the rows of matrices: those of one with those of another, and among each other.

use edgepack_format::tensor::Dims;

use crate::error::{Error, ErrorKind, expect_elements};
use crate::float::Float;
use crate::number::{Cast, Compute, Number};

/// A norm of the difference of two rows.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Norm {
    /// The number of differences that are not zero.
    Count,
    /// The sum of their magnitudes.
    Sum,
    /// The root of the sum of their squares.
    Root,
    /// The greatest magnitude.
    Greatest,
    /// The sum of powers, to the inverse power.
    Power(f64),
}

impl Norm {
    /// Returns the norm of an order from 0 to infinity; `None` for other orders.
    pub fn new(p: f64) -> Option<Norm> {
        match p {
            0.0 => Some(Norm::Count),
            1.0 => Some(Norm::Sum),
            2.0 => Some(Norm::Root),
            f64::INFINITY => Some(Norm::Greatest),
            p if p > 0.0 => Some(Norm::Power(p)),
            _ => None,
        }
    }

    /// Returns the distance of two rows.
    ///
    /// ```
    /// use edgepack_compute::distance::Norm;
    ///
    /// assert_eq!(Norm::new(2.0).unwrap().distance(&[1.0f32, 1.0], &[4.0, 5.0]), 5.0);
    /// ```
    pub fn distance<T>(self, a: &[T], b: &[T]) -> T
    where
        T: Number<Compute: Float>,
    {
        let apart = a.iter().zip(b).map(|(a, b)| a.to_compute().minus(b.to_compute()).magnitude());
        let zero = T::Compute::of(0.0);
        let result = match self {
            Norm::Count => apart.fold(zero, |sum, x| sum.plus(T::Compute::of(f64::from(u8::from(x.is_true()))))),
            Norm::Sum => apart.fold(zero, |sum, x| sum.plus(x)),
            Norm::Root => apart.fold(zero, |sum, x| sum.plus(x.times(x))).sqrt(),
            Norm::Greatest => apart.fold(zero, |most, x| most.greater_of(x)),
            Norm::Power(p) => {
                let p = T::Compute::of(p);
                let one = T::Compute::of(1.0);
                apart.fold(zero, |sum, x| sum.plus(x.power(p))).power(one.over(p))
            }
        };
        result.cast()
    }
}

/// A stack of contiguous matrices.
#[derive(Clone, Copy, Debug)]
pub struct Matrices<'a, T> {
    /// The sizes of the stack.
    pub stack: &'a [usize],
    /// Rows of a matrix.
    pub rows: usize,
    /// Columns of a matrix.
    pub columns: usize,
    /// The elements, matrix by matrix and row by row.
    pub data: &'a [T],
}

impl<T> Matrices<'_, T> {
    /// The elements in front of the matrix with this index in the stack stretched to some sizes.
    fn start(&self, common: &[usize], at: usize) -> usize {
        let skip = common.len() - self.stack.len();
        let (mut rest, mut start, mut stride) = (at, 0, self.rows * self.columns);
        for (dim, &size) in common.iter().enumerate().rev() {
            let index = rest % size;
            rest /= size;
            if let Some(own) = dim.checked_sub(skip).map(|dim| self.stack[dim]) {
                start += if own == 1 { 0 } else { index * stride };
                stride *= own;
            }
        }
        start
    }

    fn row(&self, start: usize, row: usize) -> &[T] {
        &self.data[start + row * self.columns..][..self.columns]
    }
}

/// Writes the distances of all rows of each matrix to all rows of its partner; both stacks stretch to the sizes `common`.
///
/// # Errors
///
/// [`ErrorKind::Geometry`] if the columns differ, or the slices have fewer elements than the sizes say.
///
/// ```
/// use edgepack_compute::distance::{Matrices, Norm, between};
///
/// let a = Matrices { stack: &[], rows: 1, columns: 2, data: &[0.0f32, 0.0] };
/// let b = Matrices { rows: 2, data: &[3.0, 4.0, 0.0, 1.0], ..a };
/// let mut out = [0.0; 2];
/// between(Norm::Root, a, b, &Default::default(), &mut out)?;
/// assert_eq!(out, [5.0, 1.0]);
/// # Ok::<(), edgepack_compute::Error>(())
/// ```
pub fn between<T>(norm: Norm, a: Matrices<'_, T>, b: Matrices<'_, T>, common: &Dims, out: &mut [T]) -> Result<(), Error>
where
    T: Number<Compute: Float>,
{
    if a.columns != b.columns {
        let message = format!("rows of {} and {} elements have no distance", a.columns, b.columns);
        return Err(Error::new(ErrorKind::Geometry, message));
    }
    if common.contains(&0) || a.rows == 0 || b.rows == 0 {
        return Ok(());
    }
    for (name, matrices) in [("the first stack", &a), ("the second stack", &b)] {
        let need = matrices.stack.iter().product::<usize>() * matrices.rows * matrices.columns;
        expect_elements(name, matrices.data.len(), need)?;
    }
    let (count, block) = (common.iter().product::<usize>(), a.rows * b.rows);
    expect_elements("the output", out.len(), count * block)?;
    for (at, block) in out.chunks_exact_mut(block).take(count).enumerate() {
        let (start_a, start_b) = (a.start(common, at), b.start(common, at));
        for (pair, out) in block.iter_mut().enumerate() {
            *out = norm.distance(a.row(start_a, pair / b.rows), b.row(start_b, pair % b.rows));
        }
    }
    Ok(())
}

/// Writes the distances of every row to those behind it.
///
/// # Errors
///
/// [`ErrorKind::Geometry`] if the slices have fewer elements than the sizes say.
pub fn within<T>(norm: Norm, [rows, columns]: [usize; 2], data: &[T], out: &mut [T]) -> Result<(), Error>
where
    T: Number<Compute: Float>,
{
    expect_elements("the input", data.len(), rows * columns)?;
    expect_elements("the output", out.len(), rows * rows.saturating_sub(1) / 2)?;
    let mut out = out.iter_mut();
    let row = |i: usize| &data[i * columns..][..columns];
    for i in 0..rows {
        for (j, out) in (i + 1..rows).zip(&mut out) {
            *out = norm.distance(row(i), row(j));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn naive(a: &[f32], b: &[f32], p: f64) -> f64 {
        let apart = a.iter().zip(b).map(|(a, b)| f64::from(a - b).abs());
        match p {
            0.0 => apart.filter(|&x| x != 0.0).count() as f64,
            f64::INFINITY => apart.fold(0.0, f64::max),
            p => apart.map(|x| x.powf(p)).sum::<f64>().powf(1.0 / p),
        }
    }

    #[test]
    fn stacks_stretch_and_norms_agree_with_the_definition() {
        let mut random = Random::new(3);
        for p in [0.0, 0.5, 1.0, 2.0, 3.0, f64::INFINITY] {
            let (rows, others, columns) = (2, 3, random.below(6));
            let (first, second) = (random.floats(3 * rows * columns), random.floats(2 * others * columns));
            let a = Matrices { stack: &[3, 1], rows, columns, data: &first };
            let b = Matrices { stack: &[2], rows: others, columns, data: &second };
            let (common, norm) = (Dims::from_slice(&[3, 2]).unwrap(), Norm::new(p).unwrap());
            let mut out = [0.0; 36];
            between(norm, a, b, &common, &mut out).unwrap();
            for (at, have) in out.into_iter().enumerate() {
                let (i, j) = (at / 12 * rows + at / others % rows, at / 6 % 2 * others + at % others);
                let want = naive(&first[i * columns..][..columns], &second[j * columns..][..columns], p);
                assert!((f64::from(have) - want).abs() <= 1e-5 * (1.0 + want), "p {p}: {have} {want}");
            }
            let mut pairs = [0.0; 3];
            within(norm, [3, columns], &first, &mut pairs).unwrap();
            for (have, [i, j]) in pairs.into_iter().zip([[0, 1], [0, 2], [1, 2]]) {
                let want = naive(&first[i * columns..][..columns], &first[j * columns..][..columns], p);
                assert!((f64::from(have) - want).abs() <= 1e-5 * (1.0 + want), "p {p}: {have} {want}");
            }
        }
    }

    #[test]
    fn orders_below_zero_are_not_norms() {
        assert!(Norm::new(-1.0).is_none() && Norm::new(f64::NAN).is_none());
    }
}
