//! The operators: which tensors each reads and writes, and what is computed for every matrix of a stack.

use edgepack_executor::kernel::{Alias, Kernel, KernelContext, KernelError, Prepare, Run};
use edgepack_format::scalar::ScalarType;

use super::orthogonal::{eigh, geqrf, householder_product, matrix_exp, ormqr, qr, qr_room, svd, svd_room};
use super::room::{Matrix, Room, pieces, reserve};
use super::stack::{Out, expect_square, matrices, put, read, resize, sizes, stack, together};
use crate::schema::{arguments, kernel, position};
use edgepack_compute::algebra::factor::{self, Triangle};
use edgepack_compute::algebra::matrix::{identity, transpose};

/// Computes a call, with the working memory that its [`Room`] says.
type Compute = fn(&mut KernelContext<'_>, &mut [f64]) -> Result<(), KernelError>;

fn prepare(
    args: &Prepare<'_>,
    inputs: &[usize],
    narrowest: ScalarType,
    room: Room,
    compute: Compute,
) -> Result<Box<dyn Run>, KernelError> {
    for &input in inputs {
        let dtype = args.tensor(input)?.meta.dtype;
        if dtype != ScalarType::DOUBLE && dtype != narrowest {
            return Err(KernelError::unsupported(format!("matrices of {dtype}")));
        }
    }
    Ok(Box::new(Algebra { work: reserve(args, inputs, room)?, compute }))
}

/// An instruction with the working memory it retains.
struct Algebra {
    work: Vec<f64>,
    compute: Compute,
}

impl Run for Algebra {
    fn run(&mut self, cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
        (self.compute)(cx, &mut self.work)
    }

    fn retained_bytes(&self) -> usize {
        size_of_val(&self.work[..])
    }
}

/// Kernels: the narrowest element type, the inputs that are matrices, the working memory, and what is computed.
macro_rules! rows {
    ($($name:literal $narrowest:ident [$($input:literal),+], $room:expr => $compute:expr;)*) => {
        /// The operators of this family.
        pub static KERNELS: &[&Kernel] = &[$(&kernel($name, Alias::Disjoint, |args| {
            prepare(args, &[$(position($name, $input)),+], ScalarType::$narrowest, $room, $compute)
        })),*];
    };
}

rows! {
    "aten::linalg_inv_ex.inverse" FLOAT ["A"], |_, m| Ok(2 * m.a.elements() + m.a.rows) => inverse;
    "aten::_linalg_det.result" FLOAT ["A"], |_, m| Ok(m.a.elements() + m.a.rows) => |cx, work| determinant(cx, work, false);
    "aten::_linalg_slogdet.sign" FLOAT ["A"], |_, m| Ok(m.a.elements() + m.a.rows) => |cx, work| determinant(cx, work, true);
    "aten::linalg_lu_factor_ex.out" FLOAT ["A"], |_, m| Ok(m.a.elements() + m.a.least()) => lu_factor;
    "aten::linalg_lu.out" FLOAT ["A"], |args, m| Ok(lu_parts_room(m.a, args.bool(position("aten::linalg_lu.out", "pivot"))?)) => |cx, work| lu_parts(cx, work, None);
    "aten::lu_unpack.out" FLOAT ["LU_data"], |args, m| Ok(lu_parts_room(m.a, args.bool(position("aten::lu_unpack.out", "unpack_pivots"))?)) => |cx, work| lu_parts(cx, work, Some(position("aten::lu_unpack.out", "LU_pivots")));
    "aten::_linalg_solve_ex.result" FLOAT ["A", "B"], |_, m| Ok(m.a.elements() + m.a.rows + 2 * m.b.elements()) => solve;
    "aten::linalg_lu_solve.out" FLOAT ["LU", "B"], |_, m| Ok(m.a.elements() + m.a.rows + 2 * m.b.elements()) => lu_solve;
    "aten::linalg_cholesky_ex.L" FLOAT ["self"], |_, m| Ok(2 * m.a.elements()) => cholesky;
    "aten::linalg_solve_triangular.out" FLOAT ["self", "B"], |_, m| Ok(m.a.elements() + 2 * m.b.elements()) => solve_triangular;
    "aten::linalg_qr.out" FLOAT ["A"], |args, m| qr_room(args, m.a) => qr;
    "aten::geqrf.a" FLOAT ["self"], |_, m| Ok(m.a.elements() + m.a.least()) => geqrf;
    "aten::linalg_householder_product.out" FLOAT ["input"], |_, m| Ok(2 * m.a.elements() + m.a.columns) => householder_product;
    "aten::ormqr.out" FLOAT ["self", "input3"], |_, m| Ok(m.a.elements() + m.a.columns + m.b.elements()) => ormqr;
    "aten::_linalg_svd.U" FLOAT ["A"], |args, m| svd_room(args, m.a) => svd;
    "aten::_linalg_eigh.eigenvalues" FLOAT ["A"], |_, m| Ok(2 * m.a.elements() + m.a.rows) => eigh;
    "aten::linalg_matrix_exp.out" DOUBLE ["self"], |_, m| Ok(6 * m.a.elements()) => matrix_exp;
}

/// Pivots as matrices name them, counted from 1.
fn counted(pivots: &mut [f64]) {
    pivots.iter_mut().for_each(|pivot| *pivot += 1.0);
}

fn inverse(cx: &mut KernelContext<'_>, work: &mut [f64]) -> Result<(), KernelError> {
    arguments!("aten::linalg_inv_ex.inverse"; A = "A", INVERSE = "inverse", INFO = "info");
    let a = matrices(cx, A, "A")?;
    let (n, outer) = (expect_square("A", &a)?, sizes(&a));
    resize(cx, INVERSE, &outer, &[n, n])?;
    resize(cx, INFO, &outer, &[])?;
    let views = cx.views();
    let (input, mut out, mut info) = (views.tensor(A)?, Out::matrices(views.out(INVERSE)?)?, views.out(INFO)?);
    for at in 0..outer.iter().product() {
        let [matrix, result, pivots] = pieces(work, [n * n, n * n, n])?;
        read(&a, &input, &outer, at, matrix)?;
        let status = factor::lu(matrix, n, n, pivots, true);
        identity(result, n, n);
        factor::solve_lu(matrix, n, pivots, false, result, n);
        out.write(&outer, at, result)?;
        put(&mut info, at, status as f64)?;
    }
    Ok(())
}

fn determinant(cx: &mut KernelContext<'_>, work: &mut [f64], logarithm: bool) -> Result<(), KernelError> {
    /// Positions of the sign, of the determinant or its logarithm, of the factors and of the pivots.
    const PLAIN: [usize; 4] = {
        arguments!("aten::_linalg_det.result"; RESULT = "result", LU = "LU", PIVOTS = "pivots");
        [RESULT, RESULT, LU, PIVOTS]
    };
    const LOGARITHM: [usize; 4] = {
        arguments!("aten::_linalg_slogdet.sign"; SIGN = "sign", LOGARITHM = "logabsdet", LU = "LU", PIVOTS = "pivots");
        [SIGN, LOGARITHM, LU, PIVOTS]
    };
    arguments!("aten::_linalg_det.result"; A = "A");
    let [sign, result, factors, order] = if logarithm { LOGARITHM } else { PLAIN };
    let a = matrices(cx, A, "A")?;
    let (n, outer) = (expect_square("A", &a)?, sizes(&a));
    resize(cx, sign, &outer, &[])?;
    resize(cx, result, &outer, &[])?;
    resize(cx, factors, &outer, &[n, n])?;
    resize(cx, order, &outer, &[n])?;
    let views = cx.views();
    let (input, mut first) = (views.tensor(A)?, views.out(sign)?);
    let mut second = if logarithm { Some(views.out(result)?) } else { None };
    let (mut lu, mut rows) = (Out::matrices(views.out(factors)?)?, Out::vectors(views.out(order)?)?);
    for at in 0..outer.iter().product() {
        let [matrix, pivots] = pieces(work, [n * n, n])?;
        read(&a, &input, &outer, at, matrix)?;
        factor::lu(matrix, n, n, pivots, true);
        let exchanged = pivots.iter().enumerate().filter(|&(k, &pivot)| pivot != k as f64).count();
        let sign = if exchanged % 2 == 0 { 1.0 } else { -1.0 };
        let diagonal = (0..n).map(|i| matrix[i * n + i]);
        match &mut second {
            None => put(&mut first, at, sign * diagonal.product::<f64>())?,
            Some(second) => {
                let signs = diagonal.clone().fold(sign, |sign, x| if x == 0.0 { 0.0 } else { sign * x.signum() });
                put(&mut first, at, signs)?;
                put(second, at, diagonal.map(|x| x.abs().ln()).sum())?;
            }
        }
        lu.write(&outer, at, matrix)?;
        counted(pivots);
        rows.write(&outer, at, pivots)?;
    }
    Ok(())
}

fn lu_factor(cx: &mut KernelContext<'_>, work: &mut [f64]) -> Result<(), KernelError> {
    arguments!("aten::linalg_lu_factor_ex.out"; A = "A", PIVOT = "pivot", LU = "LU", PIVOTS = "pivots", INFO = "info");
    let (a, exchange) = (matrices(cx, A, "A")?, cx.bool(PIVOT)?);
    let (outer, rows, columns) = (sizes(&a), a.rows, a.columns);
    let least = rows.min(columns);
    resize(cx, LU, &outer, &[rows, columns])?;
    resize(cx, PIVOTS, &outer, &[least])?;
    resize(cx, INFO, &outer, &[])?;
    let views = cx.views();
    let (input, mut out) = (views.tensor(A)?, Out::matrices(views.out(LU)?)?);
    let (mut order, mut info) = (Out::vectors(views.out(PIVOTS)?)?, views.out(INFO)?);
    for at in 0..outer.iter().product() {
        let [matrix, pivots] = pieces(work, [rows * columns, least])?;
        read(&a, &input, &outer, at, matrix)?;
        let status = factor::lu(matrix, rows, columns, pivots, exchange);
        out.write(&outer, at, matrix)?;
        counted(pivots);
        order.write(&outer, at, pivots)?;
        put(&mut info, at, status as f64)?;
    }
    Ok(())
}

/// The room of [`lu_parts`], of which the permutation is a square as long as the rows.
fn lu_parts_room(a: Matrix, order: Option<bool>) -> u128 {
    let permutation = if order.unwrap_or(true) { a.rows * a.rows } else { 0 };
    a.elements() + a.least() + a.elements().max(permutation)
}

/// Permutation, lower and upper factor: of a matrix, or of factors with pivots.
fn lu_parts(cx: &mut KernelContext<'_>, work: &mut [f64], given: Option<usize>) -> Result<(), KernelError> {
    arguments!("aten::linalg_lu.out"; A = "A", PIVOT = "pivot");
    arguments!("aten::lu_unpack.out"; DATA = "unpack_data", PIVOTS = "unpack_pivots");
    const OF_MATRIX: [usize; 3] = {
        arguments!("aten::linalg_lu.out"; P = "P", L = "L", U = "U");
        [P, L, U]
    };
    const OF_FACTORS: [usize; 3] = {
        arguments!("aten::lu_unpack.out"; P = "P", L = "L", U = "U");
        [P, L, U]
    };
    let a = matrices(cx, A, "A")?;
    let (outer, rows, columns) = (sizes(&a), a.rows, a.columns);
    let least = rows.min(columns);
    let ([permutation, lower, upper], data, order) = match given {
        Some(_) => (OF_FACTORS, cx.bool(DATA)?, cx.bool(PIVOTS)?),
        None => (OF_MATRIX, true, cx.bool(PIVOT)?),
    };
    match order {
        true => resize(cx, permutation, &outer, &[rows, rows])?,
        false => cx.resize(permutation, &[0])?,
    }
    if data {
        resize(cx, lower, &outer, &[rows, least])?;
        resize(cx, upper, &outer, &[least, columns])?;
    } else {
        cx.resize(lower, &[0])?;
        cx.resize(upper, &[0])?;
    }
    let pivot_layout = given.map(|arg| stack("LU_pivots", &cx.meta(arg)?, true)).transpose()?;
    let views = cx.views();
    let input = views.tensor(A)?;
    let mut p = if order { Some(Out::matrices(views.out(permutation)?)?) } else { None };
    let mut parts = match data {
        true => Some([Out::matrices(views.out(lower)?)?, Out::matrices(views.out(upper)?)?]),
        false => None,
    };
    let square = if order { rows * rows } else { 0 };
    for at in 0..outer.iter().product() {
        let [matrix, pivots, result] = pieces(work, [rows * columns, least, square.max(rows * columns)])?;
        read(&a, &input, &outer, at, matrix)?;
        match (given, &pivot_layout) {
            (Some(arg), Some(layout)) => {
                read(layout, &views.tensor(arg)?, &outer, at, pivots)?;
                pivots.iter_mut().for_each(|pivot| *pivot -= 1.0);
            }
            _ => {
                factor::lu(matrix, rows, columns, pivots, order);
            }
        }
        if let Some(p) = &mut p {
            let result = &mut result[..rows * rows];
            identity(result, rows, rows);
            factor::exchange(result, rows, pivots, false);
            p.write(&outer, at, result)?;
        }
        let Some([l, u]) = &mut parts else { continue };
        let lower = |i: usize, j: usize| match i.cmp(&j) {
            std::cmp::Ordering::Less => 0.0,
            std::cmp::Ordering::Equal => 1.0,
            std::cmp::Ordering::Greater => matrix[i * columns + j],
        };
        (0..rows * least).for_each(|k| result[k] = lower(k / least, k % least));
        l.write(&outer, at, &result[..rows * least])?;
        let upper = |i: usize, j: usize| if i <= j { matrix[i * columns + j] } else { 0.0 };
        (0..least * columns).for_each(|k| result[k] = upper(k / columns, k % columns));
        u.write(&outer, at, &result[..least * columns])?;
    }
    Ok(())
}

/// Solves for one right side, from the left or from the right, by a function that solves from the left.
fn from_side(
    b: &mut [f64],
    rows: usize,
    columns: usize,
    left: bool,
    flipped: &mut [f64],
    solve: impl Fn(&mut [f64], usize),
) {
    if left {
        return solve(b, columns);
    }
    // X A = B is the transpose of A' X' = B'.
    transpose(b, rows, columns, flipped);
    solve(flipped, rows);
    transpose(flipped, columns, rows, b);
}

fn solve(cx: &mut KernelContext<'_>, work: &mut [f64]) -> Result<(), KernelError> {
    arguments!("aten::_linalg_solve_ex.result"; A = "A", LEFT = "left", B = "B", RESULT = "result", LU = "LU", PIVOTS = "pivots", INFO = "info");
    let (a, left) = (matrices(cx, A, "A")?, cx.bool(LEFT)?);
    let n = expect_square("A", &a)?;
    let (all, meta) = (cx.meta(A)?, cx.meta(B)?);
    let vector = meta.rank() == 1 || meta.rank() + 1 == all.rank() && all.sizes[..meta.rank()] == *meta.sizes;
    let b = stack("B", &meta, vector)?;
    let outer = if vector { sizes(&a) } else { together(a.outer(), b.outer())? };
    let (rows, columns) = (b.rows, b.columns);
    if (if left { rows } else { columns }) != n {
        return Err(KernelError::argument(format!("`B` holds {rows} by {columns}, `A` {n} by {n}: they do not fit")));
    }
    match vector {
        true => resize(cx, RESULT, &outer, &[n])?,
        false => resize(cx, RESULT, &outer, &[rows, columns])?,
    }
    let own = sizes(&a);
    resize(cx, LU, &own, &[n, n])?;
    resize(cx, PIVOTS, &own, &[n])?;
    resize(cx, INFO, &own, &[])?;
    let views = cx.views();
    let (matrices, sides) = (views.tensor(A)?, views.tensor(B)?);
    let mut out = if vector { Out::vectors(views.out(RESULT)?)? } else { Out::matrices(views.out(RESULT)?)? };
    let (mut lu, mut order) = (Out::matrices(views.out(LU)?)?, Out::vectors(views.out(PIVOTS)?)?);
    let mut info = views.out(INFO)?;
    for at in 0..outer.iter().product() {
        let [matrix, pivots, x, flipped] = pieces(work, [n * n, n, rows * columns, rows * columns])?;
        read(&a, &matrices, &outer, at, matrix)?;
        read(&b, &sides, &outer, at, x)?;
        factor::lu(matrix, n, n, pivots, true);
        let (matrix, pivots) = (&*matrix, &*pivots);
        from_side(x, rows, columns, left, flipped, |x, columns| factor::solve_lu(matrix, n, pivots, !left, x, columns));
        out.write(&outer, at, x)?;
    }
    for at in 0..own.iter().product() {
        let [matrix, pivots] = pieces(work, [n * n, n])?;
        read(&a, &matrices, &own, at, matrix)?;
        let status = factor::lu(matrix, n, n, pivots, true);
        lu.write(&own, at, matrix)?;
        counted(pivots);
        order.write(&own, at, pivots)?;
        put(&mut info, at, status as f64)?;
    }
    Ok(())
}

fn lu_solve(cx: &mut KernelContext<'_>, work: &mut [f64]) -> Result<(), KernelError> {
    arguments!("aten::linalg_lu_solve.out"; LU = "LU", B = "B", LEFT = "left", ADJOINT = "adjoint", PIVOTS = "pivots", OUT = "out");
    let (a, b, left, adjoint) = (matrices(cx, LU, "LU")?, matrices(cx, B, "B")?, cx.bool(LEFT)?, cx.bool(ADJOINT)?);
    let n = expect_square("LU", &a)?;
    let order = stack("pivots", &cx.meta(PIVOTS)?, true)?;
    let outer = together(a.outer(), b.outer())?;
    let (rows, columns) = (b.rows, b.columns);
    if (if left { rows } else { columns }) != n || order.elements() != n {
        let pivots = order.elements();
        return Err(KernelError::argument(format!(
            "`B` holds {rows} by {columns}, `LU` {n} by {n}, and there are {pivots} pivots: they do not fit"
        )));
    }
    resize(cx, OUT, &outer, &[rows, columns])?;
    let views = cx.views();
    let (matrices, rows_of, sides) = (views.tensor(LU)?, views.tensor(PIVOTS)?, views.tensor(B)?);
    let mut out = Out::matrices(views.out(OUT)?)?;
    for at in 0..outer.iter().product() {
        let [matrix, pivots, x, flipped] = pieces(work, [n * n, n, rows * columns, rows * columns])?;
        read(&a, &matrices, &outer, at, matrix)?;
        read(&b, &sides, &outer, at, x)?;
        read(&order, &rows_of, &outer, at, pivots)?;
        pivots.iter_mut().for_each(|pivot| *pivot -= 1.0);
        let (matrix, pivots) = (&*matrix, &*pivots);
        let transposed = left == adjoint;
        from_side(x, rows, columns, left, flipped, |x, columns| {
            factor::solve_lu(matrix, n, pivots, transposed, x, columns);
        });
        out.write(&outer, at, x)?;
    }
    Ok(())
}

fn cholesky(cx: &mut KernelContext<'_>, work: &mut [f64]) -> Result<(), KernelError> {
    arguments!("aten::linalg_cholesky_ex.L"; SELF = "self", UPPER = "upper", L = "L", INFO = "info");
    let (a, upper) = (matrices(cx, SELF, "self")?, cx.bool(UPPER)?);
    let (n, outer) = (expect_square("self", &a)?, sizes(&a));
    resize(cx, L, &outer, &[n, n])?;
    resize(cx, INFO, &outer, &[])?;
    let views = cx.views();
    let (input, mut out, mut info) = (views.tensor(SELF)?, Out::matrices(views.out(L)?)?, views.out(INFO)?);
    for at in 0..outer.iter().product() {
        let [matrix, flipped] = pieces(work, [n * n, n * n])?;
        read(&a, &input, &outer, at, flipped)?;
        // Only one triangle is read; of the upper one the transpose is factored.
        if upper {
            transpose(flipped, n, n, matrix)
        } else {
            matrix.copy_from_slice(flipped)
        }
        let status = factor::cholesky(matrix, n);
        if status != 0 {
            return Err(KernelError::argument(format!("the minor of order {status} is not positive-definite")));
        }
        if upper {
            transpose(matrix, n, n, flipped);
            out.write(&outer, at, flipped)?;
        } else {
            out.write(&outer, at, matrix)?;
        }
        put(&mut info, at, 0.0)?;
    }
    Ok(())
}

fn solve_triangular(cx: &mut KernelContext<'_>, work: &mut [f64]) -> Result<(), KernelError> {
    arguments!("aten::linalg_solve_triangular.out"; SELF = "self", B = "B", UPPER = "upper", LEFT = "left", UNITRIANGULAR = "unitriangular", OUT = "out");
    let (a, b) = (matrices(cx, SELF, "self")?, matrices(cx, B, "B")?);
    let (upper, left, unit) = (cx.bool(UPPER)?, cx.bool(LEFT)?, cx.bool(UNITRIANGULAR)?);
    let n = expect_square("self", &a)?;
    let outer = together(a.outer(), b.outer())?;
    let (rows, columns) = (b.rows, b.columns);
    if (if left { rows } else { columns }) != n {
        return Err(KernelError::argument(format!(
            "`B` holds {rows} by {columns}, `self` {n} by {n}: they do not fit"
        )));
    }
    resize(cx, OUT, &outer, &[rows, columns])?;
    let views = cx.views();
    let (matrices, sides, mut out) = (views.tensor(SELF)?, views.tensor(B)?, Out::matrices(views.out(OUT)?)?);
    let triangle = Triangle { upper, unit, transposed: !left };
    for at in 0..outer.iter().product() {
        let [matrix, x, flipped] = pieces(work, [n * n, rows * columns, rows * columns])?;
        read(&a, &matrices, &outer, at, matrix)?;
        read(&b, &sides, &outer, at, x)?;
        let matrix = &*matrix;
        from_side(x, rows, columns, left, flipped, |x, columns| {
            factor::solve_triangle(matrix, n, triangle, x, columns);
        });
        out.write(&outer, at, x)?;
    }
    Ok(())
}
