//! Orthogonal factors, spectra and exponentials of the matrices of a stack.

use edgepack_executor::kernel::{KernelContext, KernelError};

use super::factor::{self, Applied};
use super::operators::{Out, identity, layout, pieces, resize, sizes, transpose};
use super::spectrum;
use super::stack::Layout;

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
    for at in 0..outer.iter().product() {
        let [matrix, taus, result] = pieces(work, [rows * columns, least, rows * rows.max(columns)]);
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
        let [matrix, taus] = pieces(work, [rows * columns, least]);
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
        let [matrix, taus, result] = pieces(work, [rows * columns, tau.rows, rows * columns]);
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
        let [matrix, taus, result] = pieces(work, [a.len(), tau.rows, rows * columns]);
        a.read(&vectors, &outer, at, matrix)?;
        tau.read(&factors, &outer, at, taus)?;
        b.read(&input, &outer, at, result)?;
        factor::reflect(matrix, a.columns, taus, Applied { matrix: result, sizes: [rows, columns], left, transposed });
        out.write(&outer, at, result)?;
    }
    Ok(())
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
    for at in 0..outer.iter().product() {
        let [matrix, turned, values, other, whole] =
            pieces(work, [most * least, most * most, least, least * least, most * most]);
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
        // The vectors of the longer side, as many as are asked for, in columns.
        let known = values.iter().filter(|&&value| value > 0.0).count();
        let count = if full { most } else { least };
        whole.fill(0.0);
        for i in 0..most {
            (0..known).for_each(|j| whole[i * most + j] = matrix[i * least + j]);
        }
        spectrum::complete(whole, most, known);
        for i in 0..most {
            (0..count).for_each(|j| whole[i * count + j] = whole[i * most + j]);
        }
        let long = &whole[..most * count];
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
        let [matrix, values, vectors] = pieces(work, [n * n, n, n * n]);
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
        let [matrix, rest] = pieces(work, [n * n, 5 * n * n]);
        a.read(&input, &outer, at, matrix)?;
        spectrum::exponential(matrix, rest, n);
        out.write(&outer, at, matrix)?;
    }
    Ok(())
}
