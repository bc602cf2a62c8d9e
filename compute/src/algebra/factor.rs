//! Factors of matrices, in place, row by row: triangular ones by elimination, orthogonal ones by reflections.

/// Factors a matrix into a lower triangle with ones on its diagonal and an upper one, rows exchanged so that the largest
/// element of a column is divided by. `pivots` names, counted from 0, the row each was exchanged with. Gives the first
/// column without a pivot, counted from 1, or 0.
pub fn lu(a: &mut [f64], rows: usize, columns: usize, pivots: &mut [f64], exchange: bool) -> usize {
    let mut status = 0;
    for k in 0..rows.min(columns) {
        let mut best = k;
        for i in k + 1..rows {
            if exchange && a[i * columns + k].abs() > a[best * columns + k].abs() {
                best = i;
            }
        }
        pivots[k] = best as f64;
        if best != k {
            (0..columns).for_each(|j| a.swap(k * columns + j, best * columns + j));
        }
        let pivot = a[k * columns + k];
        if pivot == 0.0 {
            if status == 0 {
                status = k + 1;
            }
            continue;
        }
        for i in k + 1..rows {
            a[i * columns + k] /= pivot;
            let factor = a[i * columns + k];
            if factor != 0.0 {
                (k + 1..columns).for_each(|j| a[i * columns + j] -= factor * a[k * columns + j]);
            }
        }
    }
    status
}

/// Exchanges rows as pivots say, forwards or backwards.
pub fn exchange(b: &mut [f64], columns: usize, pivots: &[f64], forwards: bool) {
    let mut swap = |k: usize| {
        let other = pivots[k] as usize;
        let rows = b.len().checked_div(columns).unwrap_or(0);
        if other != k && k < rows && other < rows {
            (0..columns).for_each(|j| b.swap(k * columns + j, other * columns + j));
        }
    };
    if forwards { (0..pivots.len()).for_each(&mut swap) } else { (0..pivots.len()).rev().for_each(&mut swap) }
}

/// A triangle of a square matrix.
#[derive(Clone, Copy)]
pub struct Triangle {
    /// True for the upper triangle, false for the lower one.
    pub upper: bool,
    /// True if its diagonal counts as ones.
    pub unit: bool,
    /// True if it is transposed first.
    pub transposed: bool,
}

/// Solves `T x = b` in place, for `columns` right sides.
pub fn solve_triangle(a: &[f64], n: usize, triangle: Triangle, b: &mut [f64], columns: usize) {
    let at = |i: usize, j: usize| if triangle.transposed { a[j * n + i] } else { a[i * n + j] };
    let upper = triangle.upper != triangle.transposed;
    for step in 0..n {
        let i = if upper { n - 1 - step } else { step };
        let known = if upper { i + 1..n } else { 0..i };
        for j in 0..columns {
            let sum: f64 = known.clone().map(|k| at(i, k) * b[k * columns + j]).sum();
            let rest = b[i * columns + j] - sum;
            b[i * columns + j] = if triangle.unit { rest } else { rest / at(i, i) };
        }
    }
}

/// Solves `A x = b` (or its transpose) in place, from the factors of [`lu`].
pub fn solve_lu(a: &[f64], n: usize, pivots: &[f64], transposed: bool, b: &mut [f64], columns: usize) {
    let lower = Triangle { upper: false, unit: true, transposed };
    let upper = Triangle { upper: true, unit: false, transposed };
    if transposed {
        solve_triangle(a, n, upper, b, columns);
        solve_triangle(a, n, lower, b, columns);
        exchange(b, columns, pivots, false);
    } else {
        exchange(b, columns, pivots, true);
        solve_triangle(a, n, lower, b, columns);
        solve_triangle(a, n, upper, b, columns);
    }
}

/// The lower triangle whose product with its transpose is the matrix; only the lower triangle is read. Gives the order of
/// the first minor that is not positive, or 0.
pub fn cholesky(a: &mut [f64], n: usize) -> usize {
    for j in 0..n {
        let sum: f64 = (0..j).map(|k| a[j * n + k] * a[j * n + k]).sum();
        let rest = a[j * n + j] - sum;
        if rest.is_nan() || rest <= 0.0 {
            return j + 1;
        }
        a[j * n + j] = rest.sqrt();
        for i in j + 1..n {
            let sum: f64 = (0..j).map(|k| a[i * n + k] * a[j * n + k]).sum();
            a[i * n + j] = (a[i * n + j] - sum) / a[j * n + j];
        }
        (j + 1..n).for_each(|k| a[j * n + k] = 0.0);
    }
    0
}

/// Makes a matrix an upper triangle by reflections, whose vectors stay below the diagonal; `taus` are their factors.
pub fn reflections(a: &mut [f64], rows: usize, columns: usize, taus: &mut [f64]) {
    for k in 0..rows.min(columns) {
        let tail: f64 = (k + 1..rows).map(|i| a[i * columns + k] * a[i * columns + k]).sum();
        let head = a[k * columns + k];
        if tail == 0.0 {
            taus[k] = 0.0;
            continue;
        }
        let length = -(head * head + tail).sqrt().copysign(head);
        taus[k] = (length - head) / length;
        (k + 1..rows).for_each(|i| a[i * columns + k] /= head - length);
        a[k * columns + k] = length;
        for j in k + 1..columns {
            let below: f64 = (k + 1..rows).map(|i| a[i * columns + k] * a[i * columns + j]).sum();
            let dot = taus[k] * (a[k * columns + j] + below);
            a[k * columns + j] -= dot;
            (k + 1..rows).for_each(|i| a[i * columns + j] -= dot * a[i * columns + k]);
        }
    }
}

/// The matrix that reflections are applied to, and from which side.
pub struct Applied<'m> {
    /// Elements of the matrix, row by row.
    pub matrix: &'m mut [f64],
    /// Rows and columns.
    pub sizes: [usize; 2],
    /// True if the product of reflections is on the left of the matrix.
    pub left: bool,
    /// True if that product is transposed.
    pub transposed: bool,
}

/// Multiplies a matrix by the product of reflections that are stored in the columns of `v`.
pub fn reflect(v: &[f64], width: usize, taus: &[f64], applied: Applied<'_>) {
    let Applied { matrix, sizes: [rows, columns], left, transposed } = applied;
    let count = taus.len();
    for step in 0..count {
        // The last reflection of a product is applied first from its right.
        let k = if left != transposed { count - 1 - step } else { step };
        let vector = |i: usize| if i == k { 1.0 } else { v[i * width + k] };
        let (lines, length) = if left { (columns, rows) } else { (rows, columns) };
        for line in 0..lines {
            let place = |i: usize| if left { i * columns + line } else { line * columns + i };
            let dot: f64 = taus[k] * (k..length).map(|i| vector(i) * matrix[place(i)]).sum::<f64>();
            (k..length).for_each(|i| matrix[place(i)] -= dot * vector(i));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_solve() {
        let a = [0.0, 2.0, 1.0, 4.0, 3.0, -1.0, 2.0, 1.0, 5.0];
        for transposed in [false, true] {
            let (mut factors, mut pivots) = (a, [0.0; 3]);
            assert_eq!(lu(&mut factors, 3, 3, &mut pivots, true), 0);
            let mut x = [1.0, 2.0, 3.0];
            solve_lu(&factors, 3, &pivots, transposed, &mut x, 1);
            for i in 0..3 {
                let at = |j: usize| if transposed { a[j * 3 + i] } else { a[i * 3 + j] };
                let have: f64 = (0..3).map(|j| at(j) * x[j]).sum();
                assert!((have - (i + 1) as f64).abs() < 1e-12);
            }
        }
        assert_eq!(lu(&mut [1.0, 2.0, 2.0, 4.0], 2, 2, &mut [0.0; 2], true), 2);
    }

    #[test]
    fn reflections_keep_the_product() {
        let a = [1.0, 2.0, 3.0, 4.0, 5.0, 7.0];
        let (mut r, mut taus) = (a, [0.0; 2]);
        reflections(&mut r, 3, 2, &mut taus);
        let mut q = [1.0, 0.0, 0.0, 1.0, 0.0, 0.0];
        reflect(&r, 2, &taus, Applied { matrix: &mut q, sizes: [3, 2], left: true, transposed: false });
        for i in 0..3 {
            for j in 0..2 {
                let have: f64 = (0..=j).map(|k| q[i * 2 + k] * r[k * 2 + j]).sum();
                assert!((have - a[i * 2 + j]).abs() < 1e-12);
            }
        }
    }
}
