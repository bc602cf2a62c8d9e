//! Products of matrices: one trait, two fast implementations for `f32` and a plain one for every element type.
//!
//! Invariant: all compute `out = alpha * lhs * rhs + beta * out + bias` into dense rows; with `beta` 0 what was in `out`
//! does not matter. [`Plain`] is the oracle of [`Fast`], and what `Fast` itself uses where a product is too small to
//! repay packing.

pub(crate) mod blocks;
mod fast;
mod in_order;
mod plain;
pub(crate) mod single;
pub(crate) mod tiles;

use crate::error::{Error, ErrorKind};
use crate::number::{Compute, Number};

pub use blocks::Packed;
pub use fast::Fast;
pub(crate) use fast::multiply_blocks;
pub use in_order::InOrder;
pub use plain::{NeverPacked, Plain};

/// A matrix to read: element `(i, j)` is `data[i * row_stride + j * col_stride]`.
#[derive(Clone, Copy, Debug)]
pub struct Mat<'a, T> {
    data: &'a [T],
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub cols: usize,
    row_stride: usize,
    col_stride: usize,
}

impl<'a, T> Mat<'a, T> {
    /// A matrix over the start of a slice, or an error if it does not fit.
    pub fn new(data: &'a [T], [rows, cols]: [usize; 2], [row_stride, col_stride]: [usize; 2]) -> Result<Self, Error> {
        let last = rows.saturating_sub(1) * row_stride + cols.saturating_sub(1) * col_stride;
        if rows * cols != 0 && last >= data.len() {
            return Err(Error::new(
                ErrorKind::Geometry,
                format!("a {rows}x{cols} matrix reaches element {last} of {}", data.len()),
            ));
        }
        Ok(Mat { data, rows, cols, row_stride, col_stride })
    }

    /// Returns the elements, and whatever is stored after them.
    pub fn data(&self) -> &'a [T] {
        self.data
    }

    /// Returns the distances from row to row and from column to column, in elements.
    pub fn strides(&self) -> [usize; 2] {
        [self.row_stride, self.col_stride]
    }

    /// Returns `rows` rows from `first` on; there must be as many.
    fn rows(self, first: usize, rows: usize) -> Self {
        Mat { data: self.data.get(first * self.row_stride..).unwrap_or(&[]), rows, ..self }
    }

    /// Returns the transposed matrix; no element is moved.
    pub fn transposed(self) -> Self {
        let Mat { data, rows, cols, row_stride, col_stride } = self;
        Mat { data, rows: cols, cols: rows, row_stride: col_stride, col_stride: row_stride }
    }
}

/// A right operand with what packing has made of it, if it was packed.
pub struct Operand<'a, T, P> {
    /// The matrix as it is stored in memory.
    pub mat: Mat<'a, T>,
    /// The packed matrix, if it was packed.
    pub packed: Option<&'a P>,
}

impl<'a, T, P> From<Mat<'a, T>> for Operand<'a, T, P> {
    fn from(mat: Mat<'a, T>) -> Self {
        Operand { mat, packed: None }
    }
}

/// Numbers that are added to every element of a product.
#[derive(Clone, Copy, Debug)]
pub enum Bias<'a, T> {
    /// Nothing.
    None,
    /// One number per column, the same in every row.
    Row(&'a [T]),
    /// One number per row, the same in every column.
    Column(&'a [T]),
}

/// The other terms of a product.
#[derive(Clone, Copy, Debug)]
pub struct Terms<'a, T: Number> {
    /// Factor of the product.
    pub alpha: T::Compute,
    /// Factor of what is in `out`; with 0 it is not read.
    pub beta: T::Compute,
    /// Added last, not scaled.
    pub bias: Bias<'a, T>,
}

impl<T: Number> Terms<'_, T> {
    /// Returns the terms of `count` rows from `first` on.
    fn of_rows(self, first: usize, count: usize) -> Self {
        let bias = match self.bias {
            Bias::Column(bias) => Bias::Column(&bias[first..first + count]),
            other => other,
        };
        Terms { bias, ..self }
    }
}

impl<T: Number> Default for Terms<'_, T> {
    fn default() -> Self {
        Terms { alpha: Compute::ONE, beta: Compute::ZERO, bias: Bias::None }
    }
}

/// An algorithm that multiplies matrices.
pub trait Gemm<T: Number>: Send + 'static {
    /// A right operand laid out for speed.
    type Packed: Send + Sync;

    /// Packs a right operand that will be used often; `None` if packing does not help. An error if there is no memory.
    fn pack(mat: Mat<'_, T>) -> Result<Option<Self::Packed>, Error>;

    /// `out = alpha * lhs * rhs + beta * out + bias`; `out` has dense rows. Refuses an operand that was packed from a matrix
    /// of other sizes.
    ///
    /// # Panics
    ///
    /// If `out` has fewer elements than the product.
    fn multiply(
        out: &mut [T],
        lhs: Mat<'_, T>,
        rhs: Operand<'_, T, Self::Packed>,
        terms: Terms<'_, T>,
    ) -> Result<(), Error>;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Random, rounding};
    use crate::simd::float_path::FloatPath;
    use crate::threads;

    /// The definition, one element at a time, in f64: each sum, and the sum of what its terms amount to.
    fn naive(out: &[f32], a: &Mat<'_, f32>, b: &Mat<'_, f32>, terms: &Terms<'_, f32>) -> Vec<(f64, f64)> {
        let mut result = Vec::new();
        for i in 0..a.rows {
            for j in 0..b.cols {
                let mut all = Vec::new();
                for k in 0..a.cols {
                    let x = a.data[i * a.row_stride + k * a.col_stride];
                    let product = f64::from(x) * f64::from(b.data[k * b.row_stride + j * b.col_stride]);
                    all.push(product * f64::from(terms.alpha));
                }
                if terms.beta != 0.0 {
                    all.push(f64::from(terms.beta) * f64::from(out[i * b.cols + j]));
                }
                all.push(match terms.bias {
                    Bias::None => 0.0,
                    Bias::Row(bias) => f64::from(bias[j]),
                    Bias::Column(bias) => f64::from(bias[i]),
                });
                result.push((all.iter().sum(), all.iter().map(|term| term.abs()).sum()));
            }
        }
        result
    }

    #[test]
    fn shared_products_are_those_of_one_thread() {
        let mut random = Random::new(5);
        let pools = [1, 2, 3, 8].map(|count| threads::Threads::new(count).unwrap());
        for [rows, inner, cols] in [[1, 2100, 1031], [130, 150, 170], [25, 500, 300], [97, 310, 257]] {
            let (a, b) = (random.floats(rows * inner), random.floats(inner * cols));
            let (by_row, by_column) = (random.floats(rows), random.floats(cols));
            let start = random.floats(rows * cols);
            let lhs = Mat::new(&a, [rows, inner], [inner, 1]).unwrap();
            for round in 0..6 {
                let bias = [Bias::None, Bias::Row(&by_column[..]), Bias::Column(&by_row[..])][round % 3];
                let rhs = match round % 2 {
                    0 => Mat::new(&b, [inner, cols], [cols, 1]).unwrap(),
                    _ => Mat::new(&b, [cols, inner], [inner, 1]).unwrap().transposed(),
                };
                let packed = Fast::pack(rhs).unwrap().filter(|_| round / 3 == 1);
                let product = || {
                    let mut out = start.clone();
                    let rhs = Operand { mat: rhs, packed: packed.as_ref() };
                    Fast::multiply(&mut out, lhs, rhs, Terms { alpha: 0.5, beta: 2.0, bias }).unwrap();
                    out
                };
                let first = product();
                for pool in &pools {
                    assert!(pool.run(product) == first, "{rows} x {inner} x {cols}, {round}, on {pool:?}");
                }
            }
        }
    }

    #[test]
    fn dot_products_are_the_same_wherever_columns_begin_in_a_line_of_the_cache() {
        use crate::simd::floats::{LANES, Line};
        let mut random = Random::new(7);
        for inner in [1039, 1040, 1104, 1121] {
            let cols = (1 << 18) / inner + 1;
            let (row, numbers) = (random.floats(inner), random.floats(inner * cols));
            let mut lines = vec![Line::ZERO; (numbers.len() + LANES) / LANES + 1];
            let mut all = Vec::new();
            for before in 0..LANES {
                let places = &mut bytemuck::cast_slice_mut::<Line, f32>(&mut lines)[before..][..numbers.len()];
                places.copy_from_slice(&numbers);
                let lhs = Mat::new(&row, [1, inner], [inner, 1]).unwrap();
                let rhs = Mat::new(&*places, [cols, inner], [inner, 1]).unwrap().transposed();
                let mut out = vec![0.0; cols];
                Fast::multiply(&mut out, lhs, rhs.into(), Terms::default()).unwrap();
                all.push(out);
            }
            assert!(all.iter().all(|out| *out == all[0]), "{inner} x {cols}");
        }
    }

    /// One suite for every implementation.
    fn agrees_with_the_definition<G: Gemm<f32>>() {
        let mut random = Random::new(1);
        for round in 0..64 {
            let mut k = random.below(if round < 50 { 70 } else { 400 });
            // Sums of nothing, of operands in all orders.
            k *= usize::from(round < 60);
            let [m, n] = [random.below(40) + 1, random.below(150) + 1];
            let (a, b) = (random.floats(m * k), random.floats(k * n));
            let (row, column) = (random.floats(n), random.floats(m));
            let mut lhs = Mat::new(&a, [m, k], [k, 1]).unwrap();
            let mut rhs = Mat::new(&b, [k, n], [n, 1]).unwrap();
            if round % 2 == 1 {
                lhs = Mat::new(&a, [k, m], [m, 1]).unwrap().transposed();
            }
            if round % 4 > 1 {
                rhs = Mat::new(&b, [n, k], [k, 1]).unwrap().transposed();
            }
            let terms = Terms {
                alpha: [1.0, -0.5][round % 2],
                beta: [0.0, 1.0, 2.0][round % 3],
                bias: [Bias::None, Bias::Row(&row), Bias::Column(&column)][round / 3 % 3],
            };
            let start = if terms.beta == 0.0 { vec![f32::NAN; m * n] } else { random.floats(m * n) };
            let want = naive(&start, &lhs, &rhs, &terms);
            let whole = G::pack(rhs).unwrap();
            for packed in [false, true] {
                let mut out = start.clone();
                let rhs = Operand { mat: rhs, packed: whole.as_ref().filter(|_| packed) };
                G::multiply(&mut out, lhs, rhs, terms).unwrap();
                // Whatever the order: a rounding per product and addition, `alpha`, `beta` and the bias.
                for (have, (want, terms)) in out.iter().zip(&want) {
                    let most = rounding(k + 4) * terms;
                    assert!((f64::from(*have) - want).abs() <= most, "{m}x{k}x{n}: {have} is not {want} within {most}");
                }
            }
        }
    }

    #[test]
    fn plain_agrees_with_the_definition() {
        agrees_with_the_definition::<Plain>();
    }

    #[test]
    fn fast_agrees_with_the_definition() {
        agrees_with_the_definition::<Fast>();
    }

    #[test]
    fn products_in_order_agree_with_the_definition() {
        agrees_with_the_definition::<InOrder>();
    }

    /// Sums from what is added on, with every product fused into them where the machine fuses: to the bit, for sizes on both
    /// sides of every choice of loops.
    #[test]
    fn products_in_order_are_sums_in_order() {
        let fuses = FloatPath::best() != FloatPath::Plain;
        let add = |sum: f32, x: f32, y: f32| if fuses { x.mul_add(y, sum) } else { sum + x * y };
        let mut random = Random::new(8);
        for [m, k, n] in [[1, 16, 128], [2, 16, 128], [2, 128, 16], [1, 600, 21], [3, 7, 5], [5, 16, 128], [9, 600, 70]]
        {
            let (a, b, bias) = (random.floats(m * k), random.floats(k * n), random.floats(n));
            let lhs = Mat::new(&a, [m, k], [k, 1]).unwrap();
            for dense in [true, false] {
                let rhs = match dense {
                    true => Mat::new(&b, [k, n], [n, 1]).unwrap(),
                    false => Mat::new(&b, [n, k], [k, 1]).unwrap().transposed(),
                };
                let whole = InOrder::pack(rhs).unwrap();
                for packed in [None, whole.as_ref()] {
                    let mut out = vec![f32::NAN; m * n];
                    let terms = Terms { bias: Bias::Row(&bias), ..Terms::default() };
                    InOrder::multiply(&mut out, lhs, Operand { mat: rhs, packed }, terms).unwrap();
                    for (at, have) in out.iter().enumerate() {
                        let (i, j) = (at / n, at % n);
                        let weight = |l: usize| b[l * rhs.row_stride + j * rhs.col_stride];
                        let want = (0..k).fold(bias[j], |sum, l| add(sum, a[i * k + l], weight(l)));
                        assert_eq!(*have, want, "{m}x{k}x{n} at {at}, dense {dense}, packed {}", packed.is_some());
                    }
                }
            }
        }
    }

    #[test]
    fn integers_wrap() {
        let mut out = [0i8];
        let mat = |data| Mat::new(data, [1, 1], [1, 1]).unwrap();
        Plain::multiply(&mut out, mat(&[100]), mat(&[3]).into(), Terms::default()).unwrap();
        assert_eq!(out, [44]);
    }

    #[test]
    fn a_matrix_must_fit_its_data() {
        assert!(Mat::new(&[0.0; 5], [2, 3], [3, 1]).is_err());
        assert!(Mat::new(&[0.0; 0], [0, 3], [3, 1]).is_ok());
    }
}
