//! Whole matrices of doubles, row by row in slices: the identity, and transposes.

/// Writes the identity, or as much of it as there are rows and columns.
pub fn identity(matrix: &mut [f64], rows: usize, columns: usize) {
    matrix.fill(0.0);
    (0..rows.min(columns)).for_each(|i| matrix[i * columns + i] = 1.0);
}

/// Writes the transpose of a matrix of `rows` by `columns`.
pub fn transpose(from: &[f64], rows: usize, columns: usize, to: &mut [f64]) {
    for i in 0..rows {
        (0..columns).for_each(|j| to[j * rows + i] = from[i * columns + j]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_become_columns() {
        let mut to = [0.0; 6];
        transpose(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 2, 3, &mut to);
        assert_eq!(to, [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
        identity(&mut to, 2, 3);
        assert_eq!(to, [1.0, 0.0, 0.0, 0.0, 1.0, 0.0]);
    }
}
