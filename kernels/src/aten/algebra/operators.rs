//! The operators: which tensors each reads and writes, and what is computed for every matrix of a stack.

use edgepack_executor::kernel::{Alias, Kernel, KernelContext, KernelError, Prepare, Run};
use edgepack_executor::tensor::TensorMut;
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::Dims;

use super::orthogonal::{eigh, geqrf, householder_product, matrix_exp, ormqr, qr, qr_room, svd, svd_room};
use super::room::{Matrix, Room, pieces, reserve};
use super::stack::{Layout, together};
use edgepack_compute::algebra::factor::{self, Triangle};

/// Computes a call, with the working memory that its [`Room`] says.
type Compute = fn(&mut KernelContext<'_>, &mut [f64]) -> Result<(), KernelError>;

fn prepare(
    args: &Prepare<'_>,
    inputs: &'static [usize],
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
    let mut work = reserve(args, inputs, room)?;
    Ok(Box::new(move |cx: &mut KernelContext<'_>| compute(cx, &mut work)))
}

/// A row of the table.
macro_rules! rows {
    ($($name:literal $schema:literal $narrowest:ident $inputs:expr, $room:expr => $compute:expr;)*) => {
        /// The operators of this family.
        pub static KERNELS: &[&Kernel] = &[$(&Kernel {
            name: $name,
            schema: $schema,
            alias: Alias::Disjoint,
            prepare: |args| prepare(args, &$inputs, ScalarType::$narrowest, $room, $compute),
        }),*];
    };
}

rows! {
    "aten::linalg_inv_ex.inverse" "(Tensor A, *, bool check_errors=False, Tensor(a!) inverse, Tensor(b!) info) -> (Tensor(a!) inverse, Tensor(b!) info)" FLOAT [0], |_, m| Ok(2 * m.a.len() + m.a.rows) => inverse;
    "aten::_linalg_det.result" "(Tensor A, *, Tensor(a!) result, Tensor(b!) LU, Tensor(c!) pivots) -> (Tensor(a!) result, Tensor(b!) LU, Tensor(c!) pivots)" FLOAT [0], |_, m| Ok(m.a.len() + m.a.rows) => |cx, work| determinant(cx, work, false);
    "aten::_linalg_slogdet.sign" "(Tensor A, *, Tensor(a!) sign, Tensor(b!) logabsdet, Tensor(c!) LU, Tensor(d!) pivots) -> (Tensor(a!) sign, Tensor(b!) logabsdet, Tensor(c!) LU, Tensor(d!) pivots)" FLOAT [0], |_, m| Ok(m.a.len() + m.a.rows) => |cx, work| determinant(cx, work, true);
    "aten::linalg_lu_factor_ex.out" "(Tensor A, *, bool pivot=True, bool check_errors=False, Tensor(a!) LU, Tensor(b!) pivots, Tensor(c!) info) -> (Tensor(a!) LU, Tensor(b!) pivots, Tensor(c!) info)" FLOAT [0], |_, m| Ok(m.a.len() + m.a.least()) => lu_factor;
    "aten::linalg_lu.out" "(Tensor A, *, bool pivot=True, Tensor(a!) P, Tensor(b!) L, Tensor(c!) U) -> (Tensor(a!) P, Tensor(b!) L, Tensor(c!) U)" FLOAT [0], |args, m| Ok(lu_parts_room(m.a, args.bool(1)?)) => |cx, work| lu_parts(cx, work, None);
    "aten::lu_unpack.out" "(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True, *, Tensor(a!) P, Tensor(b!) L, Tensor(c!) U) -> (Tensor(a!) P, Tensor(b!) L, Tensor(c!) U)" FLOAT [0], |args, m| Ok(lu_parts_room(m.a, args.bool(3)?)) => |cx, work| lu_parts(cx, work, Some(1));
    "aten::_linalg_solve_ex.result" "(Tensor A, Tensor B, *, bool left=True, bool check_errors=False, Tensor(a!) result, Tensor(b!) LU, Tensor(c!) pivots, Tensor(d!) info) -> (Tensor(a!) result, Tensor(b!) LU, Tensor(c!) pivots, Tensor(d!) info)" FLOAT [0, 1], |_, m| Ok(m.a.len() + m.a.rows + 2 * m.b.len()) => solve;
    "aten::linalg_lu_solve.out" "(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False, Tensor(a!) out) -> Tensor(a!)" FLOAT [0, 2], |_, m| Ok(m.a.len() + m.a.rows + 2 * m.b.len()) => lu_solve;
    "aten::linalg_cholesky_ex.L" "(Tensor self, *, bool upper=False, bool check_errors=False, Tensor(a!) L, Tensor(b!) info) -> (Tensor(a!) L, Tensor(b!) info)" FLOAT [0], |_, m| Ok(2 * m.a.len()) => cholesky;
    "aten::linalg_solve_triangular.out" "(Tensor self, Tensor B, *, bool upper, bool left=True, bool unitriangular=False, Tensor(a!) out) -> Tensor(a!)" FLOAT [0, 1], |_, m| Ok(m.a.len() + 2 * m.b.len()) => solve_triangular;
    "aten::linalg_qr.out" "(Tensor A, str mode='reduced', *, Tensor(a!) Q, Tensor(b!) R) -> (Tensor(a!) Q, Tensor(b!) R)" FLOAT [0], |args, m| qr_room(args, m.a) => qr;
    "aten::geqrf.a" "(Tensor self, *, Tensor(a!) a, Tensor(b!) tau) -> (Tensor(a!) a, Tensor(b!) tau)" FLOAT [0], |_, m| Ok(m.a.len() + m.a.least()) => geqrf;
    "aten::linalg_householder_product.out" "(Tensor input, Tensor tau, *, Tensor(a!) out) -> Tensor(a!)" FLOAT [0], |_, m| Ok(2 * m.a.len() + m.a.columns) => householder_product;
    "aten::ormqr.out" "(Tensor self, Tensor input2, Tensor input3, bool left=True, bool transpose=False, *, Tensor(a!) out) -> Tensor(a!)" FLOAT [0, 2], |_, m| Ok(m.a.len() + m.a.columns + m.b.len()) => ormqr;
    "aten::_linalg_svd.U" "(Tensor A, bool full_matrices=False, bool compute_uv=True, *, str? driver=None, Tensor(a!) U, Tensor(b!) S, Tensor(c!) Vh) -> (Tensor(a!) U, Tensor(b!) S, Tensor(c!) Vh)" FLOAT [0], |args, m| svd_room(args, m.a) => svd;
    "aten::_linalg_eigh.eigenvalues" "(Tensor A, str UPLO='L', bool compute_v=True, *, Tensor(a!) eigenvalues, Tensor(b!) eigenvectors) -> (Tensor(a!) eigenvalues, Tensor(b!) eigenvectors)" FLOAT [0], |_, m| Ok(2 * m.a.len() + m.a.rows) => eigh;
    "aten::linalg_matrix_exp.out" "(Tensor self, *, Tensor(a!) out) -> Tensor(a!)" DOUBLE [0], |_, m| Ok(6 * m.a.len()) => matrix_exp;
}

/// The layout of an argument's matrices.
pub(super) fn layout(cx: &KernelContext<'_>, arg: usize, name: &str) -> Result<Layout, KernelError> {
    Layout::new(name, &cx.meta(arg)?, false)
}

/// The most matrices without elements in one stack.
const MOST_EMPTY: usize = 1 << 20;

/// Gives an output the sizes of a stack and some more dimensions.
pub(super) fn resize(
    cx: &mut KernelContext<'_>,
    arg: usize,
    outer: &[usize],
    inner: &[usize],
) -> Result<(), KernelError> {
    // Matrices without elements need no memory, so nothing else bounds how many there are.
    let stack = outer.iter().fold(1usize, |all, size| all.saturating_mul(*size));
    if inner.contains(&0) && stack > MOST_EMPTY {
        return Err(KernelError::unsupported(format!("a stack of {stack} matrices without elements")));
    }
    let sizes = Dims::collect(outer.iter().chain(inner).copied());
    cx.resize(arg, &sizes.ok_or_else(|| KernelError::unsupported("the result has more than 16 dimensions"))?)
}

pub(super) fn sizes(layout: &Layout) -> Dims {
    Dims::from_slice(layout.outer()).unwrap_or_default()
}

/// An output with its layout.
pub(super) struct Out<'v> {
    tensor: TensorMut<'v>,
    layout: Layout,
}

impl<'v> Out<'v> {
    /// An output of matrices.
    pub(super) fn matrices(tensor: TensorMut<'v>) -> Result<Self, KernelError> {
        let layout = Layout::new("out", &tensor.meta(), false)?;
        Ok(Out { tensor, layout })
    }

    /// An output of vectors.
    pub(super) fn vectors(tensor: TensorMut<'v>) -> Result<Self, KernelError> {
        let layout = Layout::new("out", &tensor.meta(), true)?;
        Ok(Out { tensor, layout })
    }

    pub(super) fn write(&mut self, outer: &[usize], at: usize, from: &[f64]) -> Result<(), KernelError> {
        self.layout.write(&mut self.tensor, outer, at, from)
    }
}

/// Puts a number per matrix into an output without further dimensions.
fn put(tensor: &mut TensorMut<'_>, at: usize, number: f64) -> Result<(), KernelError> {
    match tensor.dtype {
        ScalarType::FLOAT => tensor.as_slice::<f32>()?[at] = number as f32,
        ScalarType::DOUBLE => tensor.as_slice::<f64>()?[at] = number,
        ScalarType::INT => tensor.as_slice::<i32>()?[at] = number as i32,
        other => return Err(KernelError::unsupported(format!("numbers of {other}"))),
    }
    Ok(())
}

pub(super) fn identity(matrix: &mut [f64], rows: usize, columns: usize) {
    matrix.fill(0.0);
    (0..rows.min(columns)).for_each(|i| matrix[i * columns + i] = 1.0);
}

pub(super) fn transpose(from: &[f64], rows: usize, columns: usize, to: &mut [f64]) {
    for i in 0..rows {
        (0..columns).for_each(|j| to[j * rows + i] = from[i * columns + j]);
    }
}

/// Pivots as matrices name them, counted from 1.
fn counted(pivots: &mut [f64]) {
    pivots.iter_mut().for_each(|pivot| *pivot += 1.0);
}

fn inverse(cx: &mut KernelContext<'_>, work: &mut [f64]) -> Result<(), KernelError> {
    let a = layout(cx, 0, "A")?;
    let (n, outer) = (a.expect_square("A")?, sizes(&a));
    resize(cx, 2, &outer, &[n, n])?;
    resize(cx, 3, &outer, &[])?;
    let views = cx.views();
    let (input, mut out, mut info) = (views.tensor(0)?, Out::matrices(views.out(2)?)?, views.out(3)?);
    for at in 0..outer.iter().product() {
        let [matrix, result, pivots] = pieces(work, [n * n, n * n, n])?;
        a.read(&input, &outer, at, matrix)?;
        let status = factor::lu(matrix, n, n, pivots, true);
        identity(result, n, n);
        factor::solve_lu(matrix, n, pivots, false, result, n);
        out.write(&outer, at, result)?;
        put(&mut info, at, status as f64)?;
    }
    Ok(())
}

fn determinant(cx: &mut KernelContext<'_>, work: &mut [f64], logarithm: bool) -> Result<(), KernelError> {
    let a = layout(cx, 0, "A")?;
    let (n, outer) = (a.expect_square("A")?, sizes(&a));
    let factors = if logarithm { 3 } else { 2 };
    (1..factors).try_for_each(|arg| resize(cx, arg, &outer, &[]))?;
    resize(cx, factors, &outer, &[n, n])?;
    resize(cx, factors + 1, &outer, &[n])?;
    let views = cx.views();
    let (input, mut first) = (views.tensor(0)?, views.out(1)?);
    let mut second = if logarithm { Some(views.out(2)?) } else { None };
    let (mut lu, mut rows) = (Out::matrices(views.out(factors)?)?, Out::vectors(views.out(factors + 1)?)?);
    for at in 0..outer.iter().product() {
        let [matrix, pivots] = pieces(work, [n * n, n])?;
        a.read(&input, &outer, at, matrix)?;
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
    let (a, exchange) = (layout(cx, 0, "A")?, cx.bool(1)?);
    let (outer, rows, columns) = (sizes(&a), a.rows, a.columns);
    let least = rows.min(columns);
    resize(cx, 3, &outer, &[rows, columns])?;
    resize(cx, 4, &outer, &[least])?;
    resize(cx, 5, &outer, &[])?;
    let views = cx.views();
    let (input, mut out) = (views.tensor(0)?, Out::matrices(views.out(3)?)?);
    let (mut order, mut info) = (Out::vectors(views.out(4)?)?, views.out(5)?);
    for at in 0..outer.iter().product() {
        let [matrix, pivots] = pieces(work, [rows * columns, least])?;
        a.read(&input, &outer, at, matrix)?;
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
    a.len() + a.least() + a.len().max(permutation)
}

/// Permutation, lower and upper factor: of a matrix, or of factors with pivots.
fn lu_parts(cx: &mut KernelContext<'_>, work: &mut [f64], given: Option<usize>) -> Result<(), KernelError> {
    let a = layout(cx, 0, "A")?;
    let (outer, rows, columns) = (sizes(&a), a.rows, a.columns);
    let least = rows.min(columns);
    let (first, data, order) = match given {
        Some(_) => (4, cx.bool(2)?, cx.bool(3)?),
        None => (2, true, cx.bool(1)?),
    };
    match order {
        true => resize(cx, first, &outer, &[rows, rows])?,
        false => cx.resize(first, &[0])?,
    }
    if data {
        resize(cx, first + 1, &outer, &[rows, least])?;
        resize(cx, first + 2, &outer, &[least, columns])?;
    } else {
        cx.resize(first + 1, &[0])?;
        cx.resize(first + 2, &[0])?;
    }
    let pivot_layout = given.map(|arg| Layout::new("LU_pivots", &cx.meta(arg)?, true)).transpose()?;
    let views = cx.views();
    let input = views.tensor(0)?;
    let mut p = if order { Some(Out::matrices(views.out(first)?)?) } else { None };
    let mut parts = match data {
        true => Some([Out::matrices(views.out(first + 1)?)?, Out::matrices(views.out(first + 2)?)?]),
        false => None,
    };
    let square = if order { rows * rows } else { 0 };
    for at in 0..outer.iter().product() {
        let [matrix, pivots, result] = pieces(work, [rows * columns, least, square.max(rows * columns)])?;
        a.read(&input, &outer, at, matrix)?;
        match (given, &pivot_layout) {
            (Some(arg), Some(layout)) => {
                layout.read(&views.tensor(arg)?, &outer, at, pivots)?;
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
    turned: &mut [f64],
    solve: impl Fn(&mut [f64], usize),
) {
    if left {
        return solve(b, columns);
    }
    // X A = B is the transpose of A' X' = B'.
    transpose(b, rows, columns, turned);
    solve(turned, rows);
    transpose(turned, columns, rows, b);
}

fn solve(cx: &mut KernelContext<'_>, work: &mut [f64]) -> Result<(), KernelError> {
    let (a, left) = (layout(cx, 0, "A")?, cx.bool(2)?);
    let n = a.expect_square("A")?;
    let (all, meta) = (cx.meta(0)?, cx.meta(1)?);
    let vector = meta.rank() == 1 || meta.rank() + 1 == all.rank() && all.sizes[..meta.rank()] == *meta.sizes;
    let b = Layout::new("B", &meta, vector)?;
    let outer = if vector { sizes(&a) } else { together(a.outer(), b.outer())? };
    let (rows, columns) = (b.rows, b.columns);
    if (if left { rows } else { columns }) != n {
        return Err(KernelError::argument(format!("`B` holds {rows} by {columns}, `A` {n} by {n}: they do not fit")));
    }
    match vector {
        true => resize(cx, 4, &outer, &[n])?,
        false => resize(cx, 4, &outer, &[rows, columns])?,
    }
    let own = sizes(&a);
    resize(cx, 5, &own, &[n, n])?;
    resize(cx, 6, &own, &[n])?;
    resize(cx, 7, &own, &[])?;
    let views = cx.views();
    let (matrices, sides) = (views.tensor(0)?, views.tensor(1)?);
    let mut out = if vector { Out::vectors(views.out(4)?)? } else { Out::matrices(views.out(4)?)? };
    let (mut lu, mut order) = (Out::matrices(views.out(5)?)?, Out::vectors(views.out(6)?)?);
    let mut info = views.out(7)?;
    for at in 0..outer.iter().product() {
        let [matrix, pivots, x, turned] = pieces(work, [n * n, n, rows * columns, rows * columns])?;
        a.read(&matrices, &outer, at, matrix)?;
        b.read(&sides, &outer, at, x)?;
        factor::lu(matrix, n, n, pivots, true);
        let (matrix, pivots) = (&*matrix, &*pivots);
        from_side(x, rows, columns, left, turned, |x, columns| factor::solve_lu(matrix, n, pivots, !left, x, columns));
        out.write(&outer, at, x)?;
    }
    for at in 0..own.iter().product() {
        let [matrix, pivots] = pieces(work, [n * n, n])?;
        a.read(&matrices, &own, at, matrix)?;
        let status = factor::lu(matrix, n, n, pivots, true);
        lu.write(&own, at, matrix)?;
        counted(pivots);
        order.write(&own, at, pivots)?;
        put(&mut info, at, status as f64)?;
    }
    Ok(())
}

fn lu_solve(cx: &mut KernelContext<'_>, work: &mut [f64]) -> Result<(), KernelError> {
    let (a, b, left, adjoint) = (layout(cx, 0, "LU")?, layout(cx, 2, "B")?, cx.bool(3)?, cx.bool(4)?);
    let n = a.expect_square("LU")?;
    let order = Layout::new("pivots", &cx.meta(1)?, true)?;
    let outer = together(a.outer(), b.outer())?;
    let (rows, columns) = (b.rows, b.columns);
    if (if left { rows } else { columns }) != n || order.len() != n {
        let pivots = order.len();
        return Err(KernelError::argument(format!(
            "`B` holds {rows} by {columns}, `LU` {n} by {n}, and there are {pivots} pivots: they do not fit"
        )));
    }
    resize(cx, 5, &outer, &[rows, columns])?;
    let views = cx.views();
    let (matrices, rows_of, sides) = (views.tensor(0)?, views.tensor(1)?, views.tensor(2)?);
    let mut out = Out::matrices(views.out(5)?)?;
    for at in 0..outer.iter().product() {
        let [matrix, pivots, x, turned] = pieces(work, [n * n, n, rows * columns, rows * columns])?;
        a.read(&matrices, &outer, at, matrix)?;
        b.read(&sides, &outer, at, x)?;
        order.read(&rows_of, &outer, at, pivots)?;
        pivots.iter_mut().for_each(|pivot| *pivot -= 1.0);
        let (matrix, pivots) = (&*matrix, &*pivots);
        let transposed = left == adjoint;
        from_side(x, rows, columns, left, turned, |x, columns| {
            factor::solve_lu(matrix, n, pivots, transposed, x, columns);
        });
        out.write(&outer, at, x)?;
    }
    Ok(())
}

fn cholesky(cx: &mut KernelContext<'_>, work: &mut [f64]) -> Result<(), KernelError> {
    let (a, upper) = (layout(cx, 0, "self")?, cx.bool(1)?);
    let (n, outer) = (a.expect_square("self")?, sizes(&a));
    resize(cx, 3, &outer, &[n, n])?;
    resize(cx, 4, &outer, &[])?;
    let views = cx.views();
    let (input, mut out, mut info) = (views.tensor(0)?, Out::matrices(views.out(3)?)?, views.out(4)?);
    for at in 0..outer.iter().product() {
        let [matrix, turned] = pieces(work, [n * n, n * n])?;
        a.read(&input, &outer, at, turned)?;
        // Only one triangle is read; of the upper one the transpose is factored.
        if upper {
            transpose(turned, n, n, matrix)
        } else {
            matrix.copy_from_slice(turned)
        }
        let status = factor::cholesky(matrix, n);
        if status != 0 {
            return Err(KernelError::argument(format!("the minor of order {status} is not positive-definite")));
        }
        if upper {
            transpose(matrix, n, n, turned);
            out.write(&outer, at, turned)?;
        } else {
            out.write(&outer, at, matrix)?;
        }
        put(&mut info, at, 0.0)?;
    }
    Ok(())
}

fn solve_triangular(cx: &mut KernelContext<'_>, work: &mut [f64]) -> Result<(), KernelError> {
    let (a, b) = (layout(cx, 0, "self")?, layout(cx, 1, "B")?);
    let (upper, left, unit) = (cx.bool(2)?, cx.bool(3)?, cx.bool(4)?);
    let n = a.expect_square("self")?;
    let outer = together(a.outer(), b.outer())?;
    let (rows, columns) = (b.rows, b.columns);
    if (if left { rows } else { columns }) != n {
        return Err(KernelError::argument(format!(
            "`B` holds {rows} by {columns}, `self` {n} by {n}: they do not fit"
        )));
    }
    resize(cx, 5, &outer, &[rows, columns])?;
    let views = cx.views();
    let (matrices, sides, mut out) = (views.tensor(0)?, views.tensor(1)?, Out::matrices(views.out(5)?)?);
    let triangle = Triangle { upper, unit, transposed: !left };
    for at in 0..outer.iter().product() {
        let [matrix, x, turned] = pieces(work, [n * n, rows * columns, rows * columns])?;
        a.read(&matrices, &outer, at, matrix)?;
        b.read(&sides, &outer, at, x)?;
        let matrix = &*matrix;
        from_side(x, rows, columns, left, turned, |x, columns| {
            factor::solve_triangle(matrix, n, triangle, x, columns);
        });
        out.write(&outer, at, x)?;
    }
    Ok(())
}
