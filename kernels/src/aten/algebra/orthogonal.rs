//! Orthogonal factors, spectra and exponentials of the matrices of a stack.

use edgepack_executor::kernel::{KernelContext, KernelError, Prepare};

use super::operators::{Out, identity, layout, resize, sizes, transpose};
use super::room::{Matrix, pieces};
use super::stack::Layout;
use edgepack_compute::algebra::factor::{self, Applied};
use edgepack_compute::algebra::spectrum;

/// The room of [`qr`]: of a complete factor, a square as long as the rows.
pub(super) fn qr_room(args: &Prepare<'_>, a: Matrix) -> Result<u128, KernelError> {
    let square = if args.text(1)? == "complete" { a.rows * a.rows } else { 0 };
    Ok(a.len() + a.least() + a.len().max(square))
}

pub(super) fn qr(cx: &mut KernelContext<'_>, work: &mut [f64]) -> Result<(), KernelError> {
    let a = layout(cx, 0, "A")?;
    let (outer, rows, columns) = (sizes(&a), a.rows, a.columns);
    let least = rows.min(columns);
    let (wide, with_q) = match cx.text(1)? {
        "reduced" => (least, true),
        "complete" => (rows, true),
        "r" => (least, false),
        other => return Err(KernelError::argument(format!("`mode` is {other:?}"))),
    };
    match with_q {
        true => resize(cx, 2, &outer, &[rows, wide])?,
        false => cx.resize(2, &[0])?,
    }
    resize(cx, 3, &outer, &[wide, columns])?;
    let views = cx.views();
    let (input, mut r) = (views.tensor(0)?, Out::matrices(views.out(3)?)?);
    let mut q = if with_q { Some(Out::matrices(views.out(2)?)?) } else { None };
    let square = if with_q { rows * wide } else { 0 };
    for at in 0..outer.iter().product() {
        let [matrix, taus, result] = pieces(work, [rows * columns, least, (rows * columns).max(square)])?;
        a.read(&input, &outer, at, matrix)?;
        factor::reflections(matrix, rows, columns, taus);
        let upper = |i: usize, j: usize| if i <= j { matrix[i * columns + j] } else { 0.0 };
        (0..wide * columns).for_each(|k| result[k] = upper(k / columns, k % columns));
        r.write(&outer, at, &result[..wide * columns])?;
        if let Some(q) = &mut q {
            let result = &mut result[..rows * wide];
            identity(result, rows, wide);
            let applied = Applied { matrix: result, sizes: [rows, wide], left: true, transposed: false };
            factor::reflect(matrix, columns, taus, applied);
            q.write(&outer, at, result)?;
        }
    }
    Ok(())
}

pub(super) fn geqrf(cx: &mut KernelContext<'_>, work: &mut [f64]) -> Result<(), KernelError> {
    let a = layout(cx, 0, "self")?;
    let (outer, rows, columns) = (sizes(&a), a.rows, a.columns);
    let least = rows.min(columns);
    resize(cx, 1, &outer, &[rows, columns])?;
    resize(cx, 2, &outer, &[least])?;
    let views = cx.views();
    let (input, mut out, mut tau) = (views.tensor(0)?, Out::matrices(views.out(1)?)?, Out::vectors(views.out(2)?)?);
    for at in 0..outer.iter().product() {
        let [matrix, taus] = pieces(work, [rows * columns, least])?;
        a.read(&input, &outer, at, matrix)?;
        factor::reflections(matrix, rows, columns, taus);
        out.write(&outer, at, matrix)?;
        tau.write(&outer, at, taus)?;
    }
    Ok(())
}

fn read_taus(cx: &KernelContext<'_>, arg: usize) -> Result<Layout, KernelError> {
    Layout::new("tau", &cx.meta(arg)?, true)
}

pub(super) fn householder_product(cx: &mut KernelContext<'_>, work: &mut [f64]) -> Result<(), KernelError> {
    let (a, tau) = (layout(cx, 0, "input")?, read_taus(cx, 1)?);
    let (outer, rows, columns) = (sizes(&a), a.rows, a.columns);
    if tau.rows > columns || columns > rows {
        return Err(KernelError::argument(format!("{} reflections, `input` holds {rows} by {columns}", tau.rows)));
    }
    resize(cx, 2, &outer, &[rows, columns])?;
    let views = cx.views();
    let (input, factors, mut out) = (views.tensor(0)?, views.tensor(1)?, Out::matrices(views.out(2)?)?);
    for at in 0..outer.iter().product() {
        let [matrix, taus, result] = pieces(work, [rows * columns, tau.rows, rows * columns])?;
        a.read(&input, &outer, at, matrix)?;
        tau.read(&factors, &outer, at, taus)?;
        identity(result, rows, columns);
        let applied = Applied { matrix: result, sizes: [rows, columns], left: true, transposed: false };
        factor::reflect(matrix, columns, taus, applied);
        out.write(&outer, at, result)?;
    }
    Ok(())
}

pub(super) fn ormqr(cx: &mut KernelContext<'_>, work: &mut [f64]) -> Result<(), KernelError> {
    let (a, tau, b) = (layout(cx, 0, "self")?, read_taus(cx, 1)?, layout(cx, 2, "input3")?);
    let (left, transposed) = (cx.bool(3)?, cx.bool(4)?);
    let (outer, rows, columns) = (sizes(&b), b.rows, b.columns);
    if a.rows != if left { rows } else { columns } || tau.rows > a.columns {
        return Err(KernelError::argument(format!("reflections of {} for {rows} by {columns}", a.rows)));
    }
    resize(cx, 5, &outer, &[rows, columns])?;
    let views = cx.views();
    let (vectors, factors, input) = (views.tensor(0)?, views.tensor(1)?, views.tensor(2)?);
    let mut out = Out::matrices(views.out(5)?)?;
    for at in 0..outer.iter().product() {
        let [matrix, taus, result] = pieces(work, [a.len(), tau.rows, rows * columns])?;
        a.read(&vectors, &outer, at, matrix)?;
        tau.read(&factors, &outer, at, taus)?;
        b.read(&input, &outer, at, result)?;
        factor::reflect(matrix, a.columns, taus, Applied { matrix: result, sizes: [rows, columns], left, transposed });
        out.write(&outer, at, result)?;
    }
    Ok(())
}

/// The room of [`svd`]: of all vectors, squares as long as the longer side.
pub(super) fn svd_room(args: &Prepare<'_>, a: Matrix) -> Result<u128, KernelError> {
    let (full, vectors) = (args.bool(1)?.unwrap_or(true), args.bool(2)?.unwrap_or(true));
    let long = a.most() * if full && vectors { a.most() } else { a.least() };
    Ok(a.len() + a.least() + a.least() * a.least() + if vectors { 2 * long } else { long })
}

pub(super) fn svd(cx: &mut KernelContext<'_>, work: &mut [f64]) -> Result<(), KernelError> {
    let (a, full, vectors) = (layout(cx, 0, "A")?, cx.bool(1)?, cx.bool(2)?);
    let (outer, rows, columns) = (sizes(&a), a.rows, a.columns);
    let least = rows.min(columns);
    let (left, right) = if full { (rows, columns) } else { (least, least) };
    if vectors {
        resize(cx, 4, &outer, &[rows, left])?;
        resize(cx, 6, &outer, &[right, columns])?;
    } else {
        cx.resize(4, &[0])?;
        cx.resize(6, &[0])?;
    }
    resize(cx, 5, &outer, &[least])?;
    let views = cx.views();
    let (input, mut s) = (views.tensor(0)?, Out::vectors(views.out(5)?)?);
    let mut sides = match vectors {
        true => Some([Out::matrices(views.out(4)?)?, Out::matrices(views.out(6)?)?]),
        false => None,
    };
    let (tall, most) = (rows >= columns, rows.max(columns));
    // The vectors of the longer side, as many as are asked for, in columns.
    let count = if full && vectors { most } else { least };
    let whole = if vectors { most * count } else { 0 };
    for at in 0..outer.iter().product() {
        let [matrix, turned, values, other, long] =
            pieces(work, [rows * columns, most * count, least, least * least, whole])?;
        // Of a wide matrix, the transpose is decomposed.
        if tall {
            a.read(&input, &outer, at, matrix)?;
        } else {
            a.read(&input, &outer, at, turned)?;
            transpose(turned, rows, columns, matrix);
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
            transpose(other, least, least, turned);
            vh.write(&outer, at, &turned[..least * least])?;
        } else {
            u.write(&outer, at, other)?;
            transpose(long, most, count, turned);
            vh.write(&outer, at, &turned[..most * count])?;
        }
    }
    Ok(())
}

pub(super) fn eigh(cx: &mut KernelContext<'_>, work: &mut [f64]) -> Result<(), KernelError> {
    let (a, upper, with_vectors) = (layout(cx, 0, "A")?, cx.text(1)?.starts_with(['U', 'u']), cx.bool(2)?);
    let (n, outer) = (a.expect_square("A")?, sizes(&a));
    resize(cx, 3, &outer, &[n])?;
    match with_vectors {
        true => resize(cx, 4, &outer, &[n, n])?,
        false => cx.resize(4, &[0])?,
    }
    let views = cx.views();
    let (input, mut out) = (views.tensor(0)?, Out::vectors(views.out(3)?)?);
    let mut columns = if with_vectors { Some(Out::matrices(views.out(4)?)?) } else { None };
    for at in 0..outer.iter().product() {
        let [matrix, values, vectors] = pieces(work, [n * n, n, n * n])?;
        a.read(&input, &outer, at, matrix)?;
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
    let a = layout(cx, 0, "self")?;
    let (n, outer) = (a.expect_square("self")?, sizes(&a));
    resize(cx, 1, &outer, &[n, n])?;
    let views = cx.views();
    let (input, mut out) = (views.tensor(0)?, Out::matrices(views.out(1)?)?);
    for at in 0..outer.iter().product() {
        let [matrix, rest] = pieces(work, [n * n, 5 * n * n])?;
        a.read(&input, &outer, at, matrix)?;
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

    /// Matrices that are much longer than they are wide need memory for their elements, not for squares.
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
