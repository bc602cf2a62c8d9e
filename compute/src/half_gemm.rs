//! Products with matrices of 16-bit floats, computed as those of `f32` some columns at a time, and rounded once.

use std::ops::Range;

use crate::error::Error;
use crate::gemm::Mat;
use crate::half::Narrow;
use crate::panels::{Lies, Panel, Panels};

/// Returns how many elements of scratch memory a product of `m` rows of `k` elements with a matrix of `n` columns needs, or
/// a smaller one.
pub fn scratch([m, k, n]: [usize; 3]) -> usize {
    Panels { m, k, n }.scratch()
}

/// Computes `alpha * lhs * rhs + beta * out`; element `(i, j)` of the output is at `i * strides[0] + j * strides[1]`. With
/// `beta` 0 what was in `out` does not matter. Refuses a product that needs more scratch memory than there is.
///
/// ```
/// use edgepack_compute::gemm::Mat;
/// use edgepack_compute::half_gemm::{multiply, scratch};
/// use half::f16;
///
/// let (a, b) = ([1.0, 2.0], [3.0, 4.0].map(f16::from_f32));
/// let (lhs, rhs) = (Mat::new(&a, [1, 2], [2, 1]).unwrap(), Mat::new(&b, [2, 1], [1, 1]).unwrap());
/// let (mut out, mut floats) = ([f16::ZERO], vec![0.0; scratch([1, 2, 1])]);
/// multiply(lhs, rhs, [1.0, 0.0], (&mut out, [1, 1]), &mut floats).unwrap();
/// assert_eq!(out[0].to_f32(), 11.0);
/// ```
///
/// # Panics
///
/// If the output has fewer elements than the product.
pub fn multiply<T: Narrow>(
    lhs: Mat<'_, f32>,
    rhs: Mat<'_, T>,
    factors: [f32; 2],
    (out, strides): (&mut [T], [usize; 2]),
    scratch: &mut [f32],
) -> Result<(), Error> {
    let panels = Panels { m: lhs.rows, k: lhs.cols, n: rhs.cols };
    panels.multiply(lhs, factors, scratch, &mut Stored { rhs, out, strides })
}

/// The matrices that are not `f32`.
struct Stored<'a, T> {
    rhs: Mat<'a, T>,
    out: &'a mut [T],
    strides: [usize; 2],
}

impl<T: Narrow> Stored<'_, T> {
    fn place(&self, row: usize, column: usize) -> usize {
        row * self.strides[0] + column * self.strides[1]
    }
}

impl<T: Narrow> Panel for Stored<'_, T> {
    fn lies(&self) -> Lies {
        if self.rhs.strides()[0] == 1 { Lies::Columns } else { Lies::Rows }
    }

    fn fill(&self, columns: Range<usize>, panel: &mut [f32]) {
        let (data, [row, column]) = (self.rhs.data(), self.rhs.strides());
        let (lines, len) = match self.lies() {
            Lies::Columns => (columns.clone(), self.rhs.rows),
            Lies::Rows => (0..self.rhs.rows, columns.len()),
        };
        for (line, panel) in lines.zip(panel.chunks_exact_mut(len.max(1))) {
            match self.lies() {
                Lies::Columns => T::widen(&data[line * column..][..len], panel),
                Lies::Rows if column == 1 => T::widen(&data[line * row + columns.start..][..len], panel),
                Lies::Rows => {
                    for (x, at) in panel.iter_mut().zip(columns.clone()) {
                        T::widen(&data[line * row + at * column..][..1], std::slice::from_mut(x));
                    }
                }
            }
        }
    }

    fn start(&self, columns: Range<usize>, block: &mut [f32]) {
        for (row, block) in block.chunks_exact_mut(columns.len()).enumerate() {
            if self.strides[1] == 1 {
                T::widen(&self.out[self.place(row, columns.start)..][..block.len()], block);
                continue;
            }
            for (x, column) in block.iter_mut().zip(columns.clone()) {
                T::widen(&self.out[self.place(row, column)..][..1], std::slice::from_mut(x));
            }
        }
    }

    fn take(&mut self, columns: Range<usize>, block: &[f32]) {
        for (row, results) in block.chunks_exact(columns.len()).enumerate() {
            let first = self.place(row, columns.start);
            if self.strides[1] == 1 {
                T::narrow(results, &mut self.out[first..][..results.len()]);
                continue;
            }
            for (index, result) in results.iter().enumerate() {
                T::narrow(std::slice::from_ref(result), &mut self.out[first + index * self.strides[1]..][..1]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gemm::{Gemm, Plain, Terms};
    use crate::random::Random;
    use half::f16;

    #[test]
    fn products_in_every_layout_agree_with_plain_loops() {
        let mut random = Random::new(71);
        for round in 0..16 {
            let [m, k, n] = [random.below(9) + 1, random.below(400) + 1, random.below(200) + 1];
            let a = random.floats(m * k);
            let mut b = vec![f16::ZERO; k * n];
            f16::narrow(&random.floats(k * n), &mut b);
            let floats: Vec<f32> = b.iter().map(|x| x.to_f32()).collect();
            let strides = if round % 2 == 0 { [n, 1] } else { [1, k] };
            let lhs = Mat::new(&a, [m, k], [k, 1]).unwrap();
            let out_strides = if round % 4 < 2 { [n, 1] } else { [1, m] };
            let mut want = vec![0.5f32; m * n];
            let terms = Terms { alpha: 2.0, beta: 3.0, ..Terms::default() };
            Plain::multiply(&mut want, lhs, Mat::new(&floats, [k, n], strides).unwrap().into(), terms).unwrap();
            let mut have = vec![f16::from_f32(0.5); m * n];
            let mut room = vec![f32::NAN; scratch([m, k, n])];
            let rhs = Mat::new(&b, [k, n], strides).unwrap();
            multiply(lhs, rhs, [2.0, 3.0], (&mut have, out_strides), &mut room).unwrap();
            for (at, want) in want.iter().enumerate() {
                let have = have[at / n * out_strides[0] + at % n * out_strides[1]].to_f32();
                assert!((have - want).abs() <= 1e-3 * want.abs().max(1.0), "{have} is not {want}");
            }
            assert!(multiply(lhs, rhs, [1.0, 0.0], (&mut have, out_strides), &mut room[..k]).is_err());
        }
    }
}
