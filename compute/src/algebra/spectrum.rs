//! Eigenvalues, singular values and exponentials, by rotations and by squaring.

use super::factor::{lu, solve_lu};

/// The most rounds of rotations; a dozen is enough for matrices of some hundreds of rows.
const ROUNDS: usize = 60;

/// A rotation of pairs of numbers, by its cosine and its sine.
struct Rotation {
    cosine: f64,
    sine: f64,
}

impl Rotation {
    /// The smaller one that makes the symmetric matrix of two numbers on its diagonal and one off it diagonal.
    fn new(first: f64, second: f64, off: f64) -> Rotation {
        let theta = (second - first) / (2.0 * off);
        let tangent = 1.0_f64.copysign(theta) / (theta.abs() + (theta * theta + 1.0).sqrt());
        let cosine = 1.0 / (tangent * tangent + 1.0).sqrt();
        Rotation { cosine, sine: tangent * cosine }
    }

    fn pair(&self, numbers: &mut [f64], p: usize, q: usize) {
        let (x, y) = (numbers[p], numbers[q]);
        numbers[p] = self.cosine * x - self.sine * y;
        numbers[q] = self.sine * x + self.cosine * y;
    }

    /// Rotates two columns of a matrix whose rows are so long.
    fn columns(&self, matrix: &mut [f64], [p, q]: [usize; 2], length: usize) {
        matrix.chunks_exact_mut(length).for_each(|row| self.pair(row, p, q));
    }
}

/// Makes a symmetric matrix diagonal by rotations, which `vectors` collects in its columns; both are `n` by `n`.
/// Eigenvalues end on the diagonal, in no order.
fn diagonalise(a: &mut [f64], vectors: &mut [f64], n: usize) {
    vectors.fill(0.0);
    (0..n).for_each(|i| vectors[i * n + i] = 1.0);
    for _ in 0..ROUNDS {
        let off: f64 = (0..n).flat_map(|i| (0..i).map(move |j| (i, j))).map(|(i, j)| a[i * n + j] * a[i * n + j]).sum();
        let all: f64 = a.iter().map(|x| x * x).sum();
        if off <= all * 1e-32 {
            break;
        }
        for p in 0..n {
            for q in p + 1..n {
                let apq = a[p * n + q];
                if apq == 0.0 {
                    continue;
                }
                let rotation = Rotation::new(a[p * n + p], a[q * n + q], apq);
                rotation.columns(a, [p, q], n);
                (0..n).for_each(|k| rotation.pair(a, p * n + k, q * n + k));
                rotation.columns(vectors, [p, q], n);
            }
        }
    }
}

/// Eigenvalues of a symmetric matrix, the least first, and vectors in columns.
pub fn symmetric(a: &mut [f64], values: &mut [f64], vectors: &mut [f64], n: usize) {
    diagonalise(a, vectors, n);
    (0..n).for_each(|i| values[i] = a[i * n + i]);
    for i in 0..n {
        let least = (i..n).fold(i, |least, j| if values[j] < values[least] { j } else { least });
        if least != i {
            values.swap(i, least);
            (0..n).for_each(|k| vectors.swap(k * n + i, k * n + least));
        }
    }
}

/// Singular values of a tall matrix (`rows >= columns`), the greatest first. Its columns become the left vectors where the
/// value is not zero, `right` holds the right ones in columns.
pub fn singular(a: &mut [f64], values: &mut [f64], right: &mut [f64], rows: usize, columns: usize) {
    let n = columns;
    right.fill(0.0);
    (0..n).for_each(|i| right[i * n + i] = 1.0);
    for _ in 0..ROUNDS {
        let mut turned = false;
        for p in 0..n {
            for q in p + 1..n {
                let (mut alpha, mut beta, mut gamma) = (0.0, 0.0, 0.0);
                for k in 0..rows {
                    let (x, y) = (a[k * n + p], a[k * n + q]);
                    alpha += x * x;
                    beta += y * y;
                    gamma += x * y;
                }
                if gamma == 0.0 || gamma.abs() <= 1e-16 * (alpha * beta).sqrt() {
                    continue;
                }
                turned = true;
                let rotation = Rotation::new(alpha, beta, gamma);
                rotation.columns(a, [p, q], n);
                rotation.columns(right, [p, q], n);
            }
        }
        if !turned {
            break;
        }
    }
    for j in 0..n {
        values[j] = (0..rows).map(|k| a[k * n + j] * a[k * n + j]).sum::<f64>().sqrt();
    }
    for i in 0..n {
        let most = (i..n).fold(i, |most, j| if values[j] > values[most] { j } else { most });
        if most != i {
            values.swap(i, most);
            (0..rows).for_each(|k| a.swap(k * n + i, k * n + most));
            (0..n).for_each(|k| right.swap(k * n + i, k * n + most));
        }
        if values[i] > 0.0 {
            (0..rows).for_each(|k| a[k * n + i] /= values[i]);
        }
    }
}

/// Makes the columns of a matrix with no more columns than rows from `known` on unit vectors that are orthogonal to all
/// before them.
pub fn complete(q: &mut [f64], [rows, columns]: [usize; 2], known: usize) {
    let mut unit = 0;
    for j in known..columns {
        while unit < rows {
            (0..rows).for_each(|i| q[i * columns + j] = if i == unit { 1.0 } else { 0.0 });
            unit += 1;
            for _ in 0..2 {
                for k in 0..j {
                    let dot: f64 = (0..rows).map(|i| q[i * columns + k] * q[i * columns + j]).sum();
                    (0..rows).for_each(|i| q[i * columns + j] -= dot * q[i * columns + k]);
                }
            }
            let length = (0..rows).map(|i| q[i * columns + j] * q[i * columns + j]).sum::<f64>().sqrt();
            if length > 0.1 / (rows as f64).sqrt() {
                (0..rows).for_each(|i| q[i * columns + j] /= length);
                break;
            }
        }
    }
}

/// The exponential of a matrix, by Padé's fraction of what is halved until it is small, squared as often. `work` holds
/// five matrices.
pub fn exponential(a: &mut [f64], work: &mut [f64], n: usize) {
    const ORDER: usize = 8;
    let size = n * n;
    let norm = (0..n).map(|j| (0..n).map(|i| a[i * n + j].abs()).sum::<f64>()).fold(0.0, f64::max);
    let halvings = if norm > 0.5 { ((norm / 0.5).log2().ceil() as i32).clamp(0, 1100) } else { 0 };
    a.iter_mut().for_each(|x| *x *= 0.5f64.powi(halvings));
    let (over, rest) = work.split_at_mut(size);
    let (under, rest) = rest.split_at_mut(size);
    let (power, rest) = rest.split_at_mut(size);
    let (next, pivots) = rest.split_at_mut(size);
    over.fill(0.0);
    (0..n).for_each(|i| over[i * n + i] = 1.0);
    under.copy_from_slice(over);
    power.copy_from_slice(over);
    let mut factor = 1.0;
    for k in 1..=ORDER {
        factor *= (ORDER - k + 1) as f64 / (k * (2 * ORDER - k + 1)) as f64;
        multiply(power, a, next, n);
        power.copy_from_slice(next);
        let sign = if k % 2 == 0 { 1.0 } else { -1.0 };
        for (at, &x) in power.iter().enumerate() {
            over[at] += factor * x;
            under[at] += sign * factor * x;
        }
    }
    let pivots = &mut pivots[..n];
    lu(under, n, n, pivots, true);
    solve_lu(under, n, pivots, false, over, n);
    for _ in 0..halvings {
        multiply(over, over, next, n);
        over.copy_from_slice(next);
    }
    a.copy_from_slice(over);
}

fn multiply(a: &[f64], b: &[f64], to: &mut [f64], n: usize) {
    for i in 0..n {
        for j in 0..n {
            to[i * n + j] = (0..n).map(|k| a[i * n + k] * b[k * n + j]).sum();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spectra_put_matrices_together_again() {
        let a = [4.0, 1.0, -2.0, 1.0, 2.0, 0.5, -2.0, 0.5, 3.0];
        let (mut work, mut values, mut vectors) = (a, [0.0; 3], [0.0; 9]);
        symmetric(&mut work, &mut values, &mut vectors, 3);
        assert!(values[0] <= values[1] && values[1] <= values[2]);
        for i in 0..3 {
            for j in 0..3 {
                let have: f64 = (0..3).map(|k| vectors[i * 3 + k] * values[k] * vectors[j * 3 + k]).sum();
                assert!((have - a[i * 3 + j]).abs() < 1e-12);
            }
        }
        let b = [1.0, 2.0, 3.0, 4.0, 5.0, 7.0];
        let (mut left, mut values, mut right) = (b, [0.0; 2], [0.0; 4]);
        singular(&mut left, &mut values, &mut right, 3, 2);
        for i in 0..3 {
            for j in 0..2 {
                let have: f64 = (0..2).map(|k| left[i * 2 + k] * values[k] * right[j * 2 + k]).sum();
                assert!((have - b[i * 2 + j]).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn exponentials() {
        let mut a = [0.0, 1.0, -1.0, 0.0];
        exponential(&mut a, &mut [0.0; 20], 2);
        assert!((a[0] - 1f64.cos()).abs() < 1e-14 && (a[1] - 1f64.sin()).abs() < 1e-14);
        let mut a = [3.0, 0.0, 0.0, -5.0];
        exponential(&mut a, &mut [0.0; 20], 2);
        assert!((a[0] - 3f64.exp()).abs() < 1e-12 && (a[3] - (-5f64).exp()).abs() < 1e-15);
    }
}
