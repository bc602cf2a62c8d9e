//! Orthogonal factors, spectra and exponentials of the matrices of a stack.

use edgepack_executor::kernel::{KernelContext, KernelError, Prepare};

use super::room::{Matrix, pieces};
use super::stack::{Out, expect_square, matrices, read, resize, sizes, stack};
use crate::schema::{arguments, position};
use edgepack_compute::algebra::factor::{self, Applied};
use edgepack_compute::algebra::matrix::{identity, transpose};
use edgepack_compute::algebra::spectrum;
use edgepack_compute::algebra::stack::MatrixStack;

/// The room of [`qr`]: of a complete factor, a square as long as the rows.
pub(super) fn qr_room(args: &Prepare<'_>, a: Matrix) -> Result<u128, KernelError> {
    let square = if args.text(position("aten::linalg_qr.out", "mode"))? == "complete" { a.rows * a.rows } else { 0 };
    Ok(a.elements() + a.least() + a.elements().max(square))
}

pub(super) fn qr(cx: &mut KernelContext<'_>, work: &mut [f64]) -> Result<(), KernelError> {
    arguments!("aten::linalg_qr.out"; A = "A", MODE = "mode", Q = "Q", R = "R");
    let a = matrices(cx, A, "A")?;
    let (outer, rows, columns) = (sizes(&a), a.rows, a.columns);
    let least = rows.min(columns);
    let (order, with_q) = match cx.text(MODE)? {
        "reduced" => (least, true),
        "complete" => (rows, true),
        "r" => (least, false),
        other => return Err(KernelError::argument(format!("`mode` is {other:?}"))),
    };
    match with_q {
        true => resize(cx, Q, &outer, &[rows, order])?,
        false => cx.resize(Q, &[0])?,
    }
    resize(cx, R, &outer, &[order, columns])?;
    let views = cx.views();
    let (input, mut r) = (views.tensor(A)?, Out::matrices(views.out(R)?)?);
    let mut q = if with_q { Some(Out::matrices(views.out(Q)?)?) } else { None };
    let square = if with_q { rows * order } else { 0 };
    for at in 0..outer.iter().product() {
        let [matrix, taus, result] = pieces(work, [rows * columns, least, (rows * columns).max(square)])?;
        read(&a, &input, &outer, at, matrix)?;
        factor::reflections(matrix, rows, columns, taus);
        let upper = |i: usize, j: usize| if i <= j { matrix[i * columns + j] } else { 0.0 };
        (0..order * columns).for_each(|k| result[k] = upper(k / columns, k % columns));
        r.write(&outer, at, &result[..order * columns])?;
        if let Some(q) = &mut q {
            let result = &mut result[..rows * order];
            identity(result, rows, order);
            let applied = Applied { matrix: result, sizes: [rows, order], left: true, transposed: false };
            factor::reflect(matrix, columns, taus, applied);
            q.write(&outer, at, result)?;
        }
    }
    Ok(())
}

pub(super) fn geqrf(cx: &mut KernelContext<'_>, work: &mut [f64]) -> Result<(), KernelError> {
    arguments!("aten::geqrf.a"; SELF = "self", A = "a", TAU = "tau");
    let a = matrices(cx, SELF, "self")?;
    let (outer, rows, columns) = (sizes(&a), a.rows, a.columns);
    let least = rows.min(columns);
    resize(cx, A, &outer, &[rows, columns])?;
    resize(cx, TAU, &outer, &[least])?;
    let views = cx.views();
    let (input, mut out, mut tau) =
        (views.tensor(SELF)?, Out::matrices(views.out(A)?)?, Out::vectors(views.out(TAU)?)?);
    for at in 0..outer.iter().product() {
        let [matrix, taus] = pieces(work, [rows * columns, least])?;
        read(&a, &input, &outer, at, matrix)?;
        factor::reflections(matrix, rows, columns, taus);
        out.write(&outer, at, matrix)?;
        tau.write(&outer, at, taus)?;
    }
    Ok(())
}

fn read_taus(cx: &KernelContext<'_>, arg: usize) -> Result<MatrixStack, KernelError> {
    stack("tau", &cx.meta(arg)?, true)
}

pub(super) fn householder_product(cx: &mut KernelContext<'_>, work: &mut [f64]) -> Result<(), KernelError> {
    arguments!("aten::linalg_householder_product.out"; INPUT = "input", OUT = "out", TAU = "tau");
    let (a, tau) = (matrices(cx, INPUT, "input")?, read_taus(cx, TAU)?);
    let (outer, rows, columns) = (sizes(&a), a.rows, a.columns);
    if tau.rows > columns || columns > rows {
        return Err(KernelError::argument(format!("{} reflections, `input` holds {rows} by {columns}", tau.rows)));
    }
    resize(cx, OUT, &outer, &[rows, columns])?;
    let views = cx.views();
    let (input, factors, mut out) = (views.tensor(INPUT)?, views.tensor(TAU)?, Out::matrices(views.out(OUT)?)?);
    for at in 0..outer.iter().product() {
        let [matrix, taus, result] = pieces(work, [rows * columns, tau.rows, rows * columns])?;
        read(&a, &input, &outer, at, matrix)?;
        read(&tau, &factors, &outer, at, taus)?;
        identity(result, rows, columns);
        let applied = Applied { matrix: result, sizes: [rows, columns], left: true, transposed: false };
        factor::reflect(matrix, columns, taus, applied);
        out.write(&outer, at, result)?;
    }
    Ok(())
}

pub(super) fn ormqr(cx: &mut KernelContext<'_>, work: &mut [f64]) -> Result<(), KernelError> {
    arguments!("aten::ormqr.out"; SELF = "self", INPUT3 = "input3", LEFT = "left", TRANSPOSE = "transpose", OUT = "out", INPUT2 = "input2");
    let (a, tau, b) = (matrices(cx, SELF, "self")?, read_taus(cx, INPUT2)?, matrices(cx, INPUT3, "input3")?);
    let (left, transposed) = (cx.bool(LEFT)?, cx.bool(TRANSPOSE)?);
    let (outer, rows, columns) = (sizes(&b), b.rows, b.columns);
    if a.rows != if left { rows } else { columns } || tau.rows > a.columns {
        return Err(KernelError::argument(format!("reflections of {} for {rows} by {columns}", a.rows)));
    }
    resize(cx, OUT, &outer, &[rows, columns])?;
    let views = cx.views();
    let (vectors, factors, input) = (views.tensor(SELF)?, views.tensor(INPUT2)?, views.tensor(INPUT3)?);
    let mut out = Out::matrices(views.out(OUT)?)?;
    for at in 0..outer.iter().product() {
        let [matrix, taus, result] = pieces(work, [a.elements(), tau.rows, rows * columns])?;
        read(&a, &vectors, &outer, at, matrix)?;
        read(&tau, &factors, &outer, at, taus)?;
        read(&b, &input, &outer, at, result)?;
        factor::reflect(matrix, a.columns, taus, Applied { matrix: result, sizes: [rows, columns], left, transposed });
        out.write(&outer, at, result)?;
    }
    Ok(())
}

/// The room of [`svd`]: of all vectors, squares as long as the longer side.
pub(super) fn svd_room(args: &Prepare<'_>, a: Matrix) -> Result<u128, KernelError> {
    arguments!("aten::_linalg_svd.U"; FULL = "full_matrices", VECTORS = "compute_uv");
    let (full, vectors) = (args.bool(FULL)?.unwrap_or(true), args.bool(VECTORS)?.unwrap_or(true));
    let long = a.most() * if full && vectors { a.most() } else { a.least() };
    Ok(a.elements() + a.least() + a.least() * a.least() + if vectors { 2 * long } else { long })
}

pub(super) fn svd(cx: &mut KernelContext<'_>, work: &mut [f64]) -> Result<(), KernelError> {
    arguments!("aten::_linalg_svd.U"; A = "A", FULL_MATRICES = "full_matrices", COMPUTE_UV = "compute_uv", U = "U", VH = "Vh", S = "S");
    let (a, full, vectors) = (matrices(cx, A, "A")?, cx.bool(FULL_MATRICES)?, cx.bool(COMPUTE_UV)?);
    let (outer, rows, columns) = (sizes(&a), a.rows, a.columns);
    let least = rows.min(columns);
    let (left, right) = if full { (rows, columns) } else { (least, least) };
    if vectors {
        resize(cx, U, &outer, &[rows, left])?;
        resize(cx, VH, &outer, &[right, columns])?;
    } else {
        cx.resize(U, &[0])?;
        cx.resize(VH, &[0])?;
    }
    resize(cx, S, &outer, &[least])?;
    let views = cx.views();
    let (input, mut s) = (views.tensor(A)?, Out::vectors(views.out(S)?)?);
    let mut sides = match vectors {
        true => Some([Out::matrices(views.out(U)?)?, Out::matrices(views.out(VH)?)?]),
        false => None,
    };
    let (tall, most) = (rows >= columns, rows.max(columns));
    // The vectors of the longer side, as many as are asked for, in columns.
    let count = if full && vectors { most } else { least };
    let whole = if vectors { most * count } else { 0 };
    for at in 0..outer.iter().product() {
        let [matrix, flipped, values, other, long] =
            pieces(work, [rows * columns, most * count, least, least * least, whole])?;
        // Of a matrix with more columns than rows, the transpose is decomposed.
        if tall {
            read(&a, &input, &outer, at, matrix)?;
        } else {
            read(&a, &input, &outer, at, flipped)?;
            transpose(flipped, rows, columns, matrix);
        }
        spectrum::singular(matrix, values, other, most, least);
        s.write(&outer, at, values)?;
        let Some([u, vh]) = &mut sides else { continue };
        let known = values.iter().filter(|&&value| value > 0.0).count();
        for i in 0..most {
            (0..count).for_each(|j| long[i * count + j] = if j < known { matrix[i * least + j] } else { 0.0 });
        }
        spectrum::complete(long, [most, count], known);
        if tall {
            u.write(&outer, at, long)?;
            transpose(other, least, least, flipped);
            vh.write(&outer, at, &flipped[..least * least])?;
        } else {
            u.write(&outer, at, other)?;
            transpose(long, most, count, flipped);
            vh.write(&outer, at, &flipped[..most * count])?;
        }
    }
    Ok(())
}

pub(super) fn eigh(cx: &mut KernelContext<'_>, work: &mut [f64]) -> Result<(), KernelError> {
    arguments!("aten::_linalg_eigh.eigenvalues"; A = "A", UPLO = "UPLO", COMPUTE_V = "compute_v", EIGENVECTORS = "eigenvectors", EIGENVALUES = "eigenvalues");
    let (a, upper, with_vectors) = (matrices(cx, A, "A")?, cx.text(UPLO)?.starts_with(['U', 'u']), cx.bool(COMPUTE_V)?);
    let (n, outer) = (expect_square("A", &a)?, sizes(&a));
    resize(cx, EIGENVALUES, &outer, &[n])?;
    match with_vectors {
        true => resize(cx, EIGENVECTORS, &outer, &[n, n])?,
        false => cx.resize(EIGENVECTORS, &[0])?,
    }
    let views = cx.views();
    let (input, mut out) = (views.tensor(A)?, Out::vectors(views.out(EIGENVALUES)?)?);
    let mut columns = if with_vectors { Some(Out::matrices(views.out(EIGENVECTORS)?)?) } else { None };
    for at in 0..outer.iter().product() {
        let [matrix, values, vectors] = pieces(work, [n * n, n, n * n])?;
        read(&a, &input, &outer, at, matrix)?;
        // One triangle counts, the other mirrors it.
        for i in 0..n {
            for j in 0..i {
                if upper { matrix[i * n + j] = matrix[j * n + i] } else { matrix[j * n + i] = matrix[i * n + j] }
            }
        }
        spectrum::symmetric(matrix, values, vectors, n);
        out.write(&outer, at, values)?;
        if let Some(columns) = &mut columns {
            columns.write(&outer, at, vectors)?;
        }
    }
    Ok(())
}

/// Only of doubles: in single precision PyTorch's digits hang on the order in which it adds.
pub(super) fn matrix_exp(cx: &mut KernelContext<'_>, work: &mut [f64]) -> Result<(), KernelError> {
    arguments!("aten::linalg_matrix_exp.out"; SELF = "self", OUT = "out");
    let a = matrices(cx, SELF, "self")?;
    let (n, outer) = (expect_square("self", &a)?, sizes(&a));
    resize(cx, OUT, &outer, &[n, n])?;
    let views = cx.views();
    let (input, mut out) = (views.tensor(SELF)?, Out::matrices(views.out(OUT)?)?);
    for at in 0..outer.iter().product() {
        let [matrix, rest] = pieces(work, [n * n, 5 * n * n])?;
        read(&a, &input, &outer, at, matrix)?;
        spectrum::exponential(matrix, rest, n);
        out.write(&outer, at, matrix)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use edgepack_executor::call::{Arg, OwnedTensor, call};
    use edgepack_format::scalar::ScalarType;

    fn outs(name: &str, args: &[Arg]) -> Vec<Vec<f64>> {
        let kernels = super::super::KERNELS;
        let kernel = kernels.iter().find(|kernel| kernel.name == name).expect("a registered kernel");
        let outs = call(*kernel, args).unwrap_or_else(|error| panic!("{name}: {error}"));
        outs.iter().map(|out| out.as_slice::<f64>().unwrap_or_default()).collect()
    }

    fn out(sizes: &[usize]) -> Arg {
        Arg::out(ScalarType::DOUBLE, sizes)
    }

    /// The product of two matrices that have `inner` columns and rows.
    fn product(a: &[f64], b: &[f64], inner: usize) -> Vec<f64> {
        let columns = b.len() / inner;
        let element = |i: usize, j: usize| (0..inner).map(|k| a[i * inner + k] * b[k * columns + j]).sum();
        (0..a.len() / inner).flat_map(|i| (0..columns).map(move |j| (i, j))).map(|(i, j)| element(i, j)).collect()
    }

    fn assert_close(have: &[f64], want: &[f64]) {
        assert_eq!(have.len(), want.len());
        assert!(have.iter().zip(want).all(|(have, want)| (have - want).abs() < 1e-10));
    }

    /// Matrices that are much longer than they are order need memory for their elements, not for squares.
    #[test]
    fn tall_and_wide_matrices_are_factored() {
        for [rows, columns] in [[5000, 4], [4, 5000]] {
            let numbers: Vec<f64> = (0..rows * columns).map(|i| ((i * i + 7 * i) % 31) as f64 - 15.0).collect();
            let a = Arg::tensor(&[rows, columns], &numbers);
            let mode = Arg::Text("reduced".to_owned());
            let qr = outs("aten::linalg_qr.out", &[a.clone(), mode, out(&[rows, 4]), out(&[4, columns])]);
            assert_close(&product(&qr[0], &qr[1], 4), &numbers);

            let (u, s, vh) = (out(&[rows, 4]), out(&[4]), out(&[4, columns]));
            let svd = outs("aten::_linalg_svd.U", &[a.clone(), Arg::bool(false), Arg::bool(true), Arg::None, u, s, vh]);
            let scaled: Vec<f64> = svd[0].iter().enumerate().map(|(at, u)| u * svd[1][at % 4]).collect();
            assert_close(&product(&scaled, &svd[2], 4), &numbers);
            let none = || Arg::Tensor(OwnedTensor::zeros(ScalarType::DOUBLE, &[0]));
            let values = [a.clone(), Arg::bool(true), Arg::bool(false), Arg::None, none(), out(&[4]), none()];
            assert_close(&outs("aten::_linalg_svd.U", &values)[1], &svd[1]);

            let lu = [a.clone(), Arg::bool(false), none(), out(&[rows, 4]), out(&[4, columns])];
            let lu = outs("aten::linalg_lu.out", &lu);
            let largest = lu.iter().flatten().fold(1.0, |most: f64, x| most.max(x.abs()));
            let product = product(&lu[1], &lu[2], 4);
            assert!(product.iter().zip(&numbers).all(|(have, want)| (have - want).abs() < 1e-12 * largest * largest));
        }
    }

    /// Squares as long as a tall matrix are computed with where they are asked for.
    #[test]
    fn complete_factors_of_a_tall_matrix() {
        let rows = 900;
        let numbers: Vec<f64> = (0..2 * rows).map(|i| ((i * i + 3 * i) % 17) as f64 - 8.0).collect();
        let a = Arg::tensor(&[rows, 2], &numbers);
        let mode = Arg::Text("complete".to_owned());
        let qr = outs("aten::linalg_qr.out", &[a, mode, out(&[rows, rows]), out(&[rows, 2])]);
        assert_close(&product(&qr[0], &qr[1], rows), &numbers);
    }
}
