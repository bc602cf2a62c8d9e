//! Products of matrices as operators: `mm`, `addmm`, `bmm`, `baddbmm`, `linear`.
//!
//! One engine, a row per operator that says where its operands stand. The element type is decided when the method is
//! loaded; a constant right operand is packed then. An output stored column by column is computed as the transposed
//! product.

mod halves;

use edgepack_executor::kernel::{Alias, Kernel, KernelContext, KernelError, Prepare, Run, Views};
use edgepack_executor::tensor::{TensorMut, TensorRef, TensorShape};
use edgepack_executor::with_element;
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::Dims;

use crate::broadcast::{Walk, expect_stretch};
use crate::check::{Class, Shape, expect_class, expect_same};
use crate::complex::{multiply_stacks, with_parts};
use crate::steps::Steps;
use edgepack_compute::gemm::{Bias, Fast, Gemm, Mat, Operand, Plain, Terms, most_packed};
use edgepack_compute::number::{Compute, Number};
use edgepack_compute::threads::{Write, pays, try_for_each};

/// The operators of this family.
pub static KERNELS: &[&Kernel] = &[&MM, &ADDMM, &BMM, &BADDBMM, &LINEAR];

/// Where the operands of an operator stand, and how they are read.
struct Form {
    lhs: (usize, &'static str),
    rhs: (usize, &'static str),
    /// Added to the product: a tensor that stretches to the output.
    add: Option<(usize, &'static str)>,
    /// The arguments `beta` and `alpha`.
    factors: Option<(usize, usize)>,
    out: usize,
    shape: Shapes,
}

/// What shapes a form takes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shapes {
    /// Two matrices.
    Matrices,
    /// Two stacks of matrices.
    Stacks,
    /// Rows of any rank, and a matrix that is stored transposed.
    Rows,
}

static MM_FORM: Form =
    Form { lhs: (0, "self"), rhs: (1, "mat2"), add: None, factors: None, out: 2, shape: Shapes::Matrices };
static ADDMM_FORM: Form = Form {
    lhs: (1, "mat1"),
    rhs: (2, "mat2"),
    add: Some((0, "self")),
    factors: Some((3, 4)),
    out: 5,
    shape: Shapes::Matrices,
};
static BMM_FORM: Form =
    Form { lhs: (0, "self"), rhs: (1, "mat2"), add: None, factors: None, out: 2, shape: Shapes::Stacks };
static BADDBMM_FORM: Form = Form {
    lhs: (1, "batch1"),
    rhs: (2, "batch2"),
    add: Some((0, "self")),
    factors: Some((3, 4)),
    out: 5,
    shape: Shapes::Stacks,
};
static LINEAR_FORM: Form =
    Form { lhs: (0, "input"), rhs: (1, "weight"), add: Some((2, "bias")), factors: None, out: 3, shape: Shapes::Rows };

/// Two kernels per form: the operator itself, and one for `f32` that does element-wise steps to its results, which
/// rewrites make and programs do not name.
macro_rules! kernels {
    ($($plain:ident $then:ident $form:ident $name:literal $args:literal $prepare:expr;)*) => {$(
        pub(crate) static $plain: Kernel = Kernel {
            name: concat!("aten::", $name, ".out"),
            schema: concat!("(", $args, ", Tensor(a!) out) -> Tensor(a!)"),
            alias: Alias::Disjoint,
            prepare: $prepare,
        };
        pub(crate) static $then: Kernel = Kernel {
            name: concat!("edgepack::", $name, ".then_out"),
            schema: concat!("(", $args, ", Tensor(a!) out, str then) -> Tensor(a!)"),
            alias: Alias::Disjoint,
            prepare: |args| prepare_then(args, &$form),
        };
    )*};
}

kernels! {
    MM MM_THEN MM_FORM "mm" "Tensor self, Tensor mat2, *" |args| prepare(args, &MM_FORM);
    ADDMM ADDMM_THEN ADDMM_FORM "addmm" "Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1"
        |args| prepare(args, &ADDMM_FORM);
    BMM BMM_THEN BMM_FORM "bmm" "Tensor self, Tensor mat2, *" prepare_bmm;
    BADDBMM BADDBMM_THEN BADDBMM_FORM "baddbmm"
        "Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1" |args| prepare(args, &BADDBMM_FORM);
    LINEAR LINEAR_THEN LINEAR_FORM "linear" "Tensor input, Tensor weight, Tensor? bias=None, *"
        |args| prepare(args, &LINEAR_FORM);
}

fn prepare_bmm(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    let dtype = args.tensor(0)?.meta.dtype;
    with_parts!(dtype, R => {
        expect_same(("self", dtype), ("mat2", args.tensor(1)?.meta.dtype))?;
        expect_same(("self", dtype), ("out", args.tensor(2)?.meta.dtype))?;
        Ok(Box::new(multiply_stacks::<R>) as Box<dyn Run>)
    }, else => prepare(args, &BMM_FORM))
}

fn prepare_then(args: &Prepare<'_>, form: &'static Form) -> Result<Box<dyn Run>, KernelError> {
    expect_same(("out", args.tensor(form.out)?.meta.dtype), ("the first step", ScalarType::FLOAT))?;
    let (mut product, steps) = (prepare(args, form)?, Steps::of_floats(args.text(form.out + 1)?)?);
    Ok(Box::new(move |cx: &mut KernelContext<'_>| {
        product.run(cx)?;
        steps.in_place(cx.views().out(form.out)?.into_slice::<f32>()?);
        Ok(())
    }))
}

fn prepare(args: &Prepare<'_>, form: &'static Form) -> Result<Box<dyn Run>, KernelError> {
    let (lhs, rhs, out) = (args.tensor(form.lhs.0)?, args.tensor(form.rhs.0)?, args.tensor(form.out)?);
    let dtype = lhs.meta.dtype;
    expect_class(form.lhs.1, dtype, Class::Real)?;
    expect_same((form.lhs.1, dtype), (form.rhs.1, rhs.meta.dtype))?;
    expect_same((form.lhs.1, dtype), ("out", out.meta.dtype))?;
    if let Some((arg, name)) = form.add
        && let Some(add) = args.tensor_opt(arg)?
    {
        expect_same((form.lhs.1, dtype), (name, add.meta.dtype))?;
    }
    let mut worthwhile = true;
    if !lhs.dynamic && !rhs.dynamic {
        let Product { m, n, k, .. } = Product::new(form, &lhs.meta, &rhs.meta)?;
        worthwhile = m > 1 && !Fast::is_small(m, k, n);
    }
    match dtype {
        ScalarType::HALF => return halves::prepare::<half::f16>(args, form),
        ScalarType::BFLOAT16 => return halves::prepare::<half::bf16>(args, form),
        _ => {}
    }
    if dtype != ScalarType::FLOAT {
        return with_element!(dtype, T => operator::<T, Plain>(form, None), else => {
            Err(KernelError::unsupported(dtype.to_string()))
        });
    }
    let packed = match rhs.constant {
        Some(rhs) if worthwhile && args.optimize() && form.shape != Shapes::Stacks => {
            let matrix = form.rhs_matrix(&rhs.meta(), rhs.as_slice::<f32>()?)?;
            args.retained().reserve(most_packed(&matrix))?;
            Fast::pack_rhs(matrix)?
        }
        _ => None,
    };
    operator::<f32, Fast>(form, packed)
}

fn operator<T: Number, G: Gemm<T>>(
    form: &'static Form,
    packed: Option<G::PackedRhs>,
) -> Result<Box<dyn Run>, KernelError> {
    Ok(Box::new(Instruction::<T, G> { form, packed }))
}

/// One instruction, and its constant matrix packed.
struct Instruction<T: Number, G: Gemm<T>> {
    form: &'static Form,
    packed: Option<G::PackedRhs>,
}

impl<T: Number, G: Gemm<T>> Run for Instruction<T, G> {
    fn run(&mut self, cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
        run::<T, G>(self.form, self.packed.as_ref(), cx)
    }

    fn retained_bytes(&self) -> usize {
        self.packed.as_ref().map_or(0, G::packed_bytes)
    }
}

impl Form {
    fn rhs_matrix<'a, T>(&self, meta: &TensorShape<'_>, data: &'a [T]) -> Result<Mat<'a, T>, KernelError> {
        let (&[rows, cols], &[row_stride, col_stride]) = (meta.sizes, meta.strides) else {
            return Err(not_a_matrix(self.rhs.1, meta, 2));
        };
        let mat = Mat::new(data, [rows, cols], [row_stride, col_stride])?;
        Ok(if self.shape == Shapes::Rows { mat.transposed() } else { mat })
    }
}

#[cold]
fn not_a_matrix(name: &str, meta: &TensorShape<'_>, rank: usize) -> KernelError {
    KernelError::argument(format!("`{name}` is {}, the operator wants {rank} dimensions", Shape(meta.sizes)))
}

/// The sizes of one call.
#[derive(Clone, Copy)]
struct Product {
    batch: usize,
    /// Rows and columns of the result, and what is summed over.
    m: usize,
    n: usize,
    k: usize,
    out: Dims,
}

impl Product {
    fn new(form: &Form, lhs: &TensorShape<'_>, rhs: &TensorShape<'_>) -> Result<Product, KernelError> {
        let ((a, b), (a_name, b_name)) = ((lhs.sizes, rhs.sizes), (form.lhs.1, form.rhs.1));
        let fail = |why: &str| {
            Err(KernelError::argument(format!("`{a_name}` is {}, `{b_name}` is {}: {why}", Shape(a), Shape(b))))
        };
        let (batch, m, k, rhs_k, n) = match (form.shape, a, b) {
            (Shapes::Matrices, &[m, k], &[rhs_k, n]) => (1, m, k, rhs_k, n),
            (Shapes::Stacks, &[batch, m, k], &[rhs_batch, rhs_k, n]) => {
                if batch != rhs_batch {
                    return fail("numbers of matrices differ");
                }
                (batch, m, k, rhs_k, n)
            }
            (Shapes::Rows, &[ref rows @ .., k], &[n, rhs_k]) => {
                if !lhs.is_contiguous() && a.len() > 2 {
                    return fail("rows of a rank above 2 must be contiguous");
                }
                (1, rows.iter().product(), k, rhs_k, n)
            }
            (Shapes::Stacks, ..) => return fail("the operator wants 3 dimensions each"),
            (Shapes::Matrices, ..) => return fail("the operator wants matrices"),
            (Shapes::Rows, ..) => return fail("the operator wants rows and a matrix"),
        };
        if k != rhs_k {
            return fail("inner sizes differ");
        }
        let mut out = Dims::new();
        for &size in a[..a.len() - 1].iter().chain([&n]) {
            let _ = out.push(size);
        }
        Ok(Product { batch, m, n, k, out })
    }
}

/// The arguments of one call but its data.
struct Call<C> {
    product: Product,
    alpha: C,
    beta: C,
}

/// What is multiplied, and what is added.
type Operands<'v> = (TensorRef<'v>, TensorRef<'v>, Option<(TensorRef<'v>, &'static str)>);

impl<C: Compute> Call<C> {
    /// Reads sizes and numbers, and resizes the output.
    fn new(form: &Form, cx: &mut KernelContext<'_>) -> Result<Self, KernelError> {
        let product = Product::new(form, &cx.meta(form.lhs.0)?, &cx.meta(form.rhs.0)?)?;
        cx.resize(form.out, &product.out)?;
        let (mut beta, mut alpha) = (C::ONE, C::ONE);
        if let Some((beta_arg, alpha_arg)) = form.factors {
            (beta, alpha) = (C::from_scalar(cx.scalar(beta_arg)?), C::from_scalar(cx.scalar(alpha_arg)?));
        }
        Ok(Call { product, alpha, beta })
    }

    fn operands<'v>(&self, form: &Form, views: &Views<'v>) -> Result<Operands<'v>, KernelError> {
        let add = match form.add {
            Some((arg, name)) if !self.beta.is_zero() => views.tensor_opt(arg)?.map(|add| (add, name)),
            _ => None,
        };
        Ok((views.tensor(form.lhs.0)?, views.tensor(form.rhs.0)?, add))
    }
}

fn run<T: Number, G: Gemm<T>>(
    form: &Form,
    packed: Option<&G::PackedRhs>,
    cx: &mut KernelContext<'_>,
) -> Result<(), KernelError> {
    let call = Call::<T::Compute>::new(form, cx)?;
    let Product { batch, m, n, k, .. } = call.product;
    let views = cx.views();
    let (lhs, rhs, add) = call.operands(form, &views)?;
    let mut out = views.out(form.out)?;
    let transposed = out_is_transposed(form, &call.product, &out.meta())?;
    let mut terms: Terms<'_, T> = Terms { alpha: call.alpha, beta: call.beta, bias: Bias::None };
    match add {
        None => terms.beta = Compute::ZERO,
        Some((add, name)) => {
            let one_row = add.sizes.last() == Some(&n) && add.element_count() == n;
            if one_row && terms.beta.same(Compute::ONE) {
                expect_stretch(name, add.sizes, out.sizes)?;
                let bias = add.as_slice::<T>()?;
                terms.beta = Compute::ZERO;
                terms.bias = if transposed { Bias::Column(bias) } else { Bias::Row(bias) };
            } else {
                start(add, name, &mut out)?;
            }
        }
    }
    let strides = Strides::new(form, &call.product, [&lhs.meta(), &rhs.meta()]);
    let (a, b, out) = (lhs.as_slice::<T>()?, rhs.as_slice::<T>()?, out.into_slice::<T>()?);
    if m * n == 0 {
        return Ok(());
    }
    let out = &mut out[..batch * m * n];
    let share = batch > 1 && pays(size_of_val(out));
    let done = try_for_each(share, Write(out, m * n), |index, out| {
        let a = Mat::new(a.get(index * strides.step[0]..).unwrap_or(&[]), [m, k], strides.lhs)?;
        let b = Mat::new(b.get(index * strides.step[1]..).unwrap_or(&[]), [k, n], strides.rhs)?;
        if transposed {
            G::multiply(out, b.transposed().into(), a.transposed().into(), terms)
        } else {
            G::multiply(out, a.into(), Operand { mat: b, packed }, terms)
        }
    });
    Ok(done?)
}

/// Writes what is added to a product into its output.
fn start(add: TensorRef<'_>, name: &str, out: &mut TensorMut<'_>) -> Result<(), KernelError> {
    expect_stretch(name, add.sizes, out.sizes)?;
    let width = add.dtype.size().unwrap_or(1);
    Walk::stretched(&out.meta(), &add.meta()).gather(width, add.bytes(), out.bytes());
    Ok(())
}

/// Where the matrices of a call lie.
struct Strides {
    /// Row and column stride of the left operand.
    lhs: [usize; 2],
    /// Row and column stride of the right operand, as it is multiplied.
    rhs: [usize; 2],
    /// From one matrix of a stack to the next.
    step: [usize; 2],
}

impl Strides {
    fn new(form: &Form, product: &Product, [lhs, rhs]: [&TensorShape<'_>; 2]) -> Self {
        let step = |meta: &TensorShape<'_>| if form.shape == Shapes::Stacks { meta.strides[0] } else { 0 };
        Strides {
            lhs: lhs_strides(lhs, product.k, form.shape),
            rhs: rhs_strides(rhs, form.shape),
            step: [step(lhs), step(rhs)],
        }
    }
}

/// Row and column stride of the left operand; rows of a rank above 2 are contiguous.
fn lhs_strides(meta: &TensorShape<'_>, k: usize, shape: Shapes) -> [usize; 2] {
    match *meta.strides {
        [.., row, col] if shape == Shapes::Stacks || meta.rank() == 2 => [row, col],
        _ => [k, 1],
    }
}

/// Row and column stride of the right operand as it is multiplied.
fn rhs_strides(meta: &TensorShape<'_>, shape: Shapes) -> [usize; 2] {
    match (meta.strides, shape) {
        (&[.., row, col], Shapes::Rows) => [col, row],
        (&[.., row, col], _) => [row, col],
        _ => [1, 1],
    }
}

/// Whether the matrices of the output are stored column by column.
fn out_is_transposed(form: &Form, product: &Product, out: &TensorShape<'_>) -> Result<bool, KernelError> {
    let Product { m, n, .. } = *product;
    if out.is_contiguous() || m * n == 0 {
        return Ok(false);
    }
    let stacked = form.shape != Shapes::Stacks || out.strides[0] == m * n || product.batch == 1;
    match *out.strides {
        [.., row, col] if stacked && out.rank() <= 3 => {
            if (col == 1 || n == 1) && (row == n || m == 1) {
                return Ok(false);
            }
            if (row == 1 || m == 1) && (col == m || n == 1) && form.shape != Shapes::Rows {
                return Ok(true);
            }
        }
        _ => {}
    }
    Err(KernelError::unsupported(format!("`out` has dim order {:?}: its matrices are not dense", out.dim_order)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use edgepack_compute::number::Cast;
    use edgepack_compute::random::Random;
    use edgepack_executor::call::{Arg, OwnedTensor, call};
    use edgepack_executor::tensor::{PodElement, Scalar};

    fn matrix<T: PodElement>(rows: usize, cols: usize, values: &[T], by_column: bool) -> OwnedTensor {
        if !by_column {
            return OwnedTensor::new(&[rows, cols], values);
        }
        let turned: Vec<T> = (0..rows * cols).map(|at| values[at % rows * cols + at / rows]).collect();
        OwnedTensor::new(&[rows, cols], &turned).with_dim_order(&[1, 0])
    }

    /// `addmm` against its definition, in every layout, for one element type.
    fn suite<T: Number>()
    where
        i64: Cast<T>,
    {
        let mut random = Random::new(51);
        for round in 0..32 {
            let [m, k, n] = [random.below(9) + 1, random.below(40), random.below(40) + 1];
            let (a, b): (Vec<T>, Vec<T>) = (random.values(m * k), random.values(k * n));
            let shape = [vec![n], vec![1, n], vec![m, n], vec![m, 1], vec![]][round % 5].clone();
            let add: Vec<T> = random.values(shape.iter().product());
            let (beta, alpha) = ([1, 0, 2][round % 3], [1, 3][round % 2]);
            let out = OwnedTensor::zeros(T::SCALAR_TYPE, &[m, n]);
            let out = if round & 8 == 0 { out } else { out.with_dim_order(&[1, 0]) };
            let args = [
                Arg::tensor(&shape, &add),
                Arg::Tensor(matrix(m, k, &a, round & 2 != 0)),
                Arg::Tensor(matrix(k, n, &b, round & 4 != 0)),
                Arg::int(beta),
                Arg::int(alpha),
                Arg::Tensor(out),
            ];
            let have = call(&ADDMM, &args).unwrap()[0].as_slice::<T>().unwrap();
            for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
                let of = |x: T| Cast::<i64>::cast(x);
                let sum: i64 = (0..k).map(|l| of(a[i * k + l]) * of(b[l * n + j])).sum();
                let row = if shape.first() == Some(&m) && shape.len() == 2 { i } else { 0 };
                let column = if shape.last() == Some(&n) { j } else { 0 };
                let added = of(add[row * shape.last().copied().unwrap_or(1) + column]);
                let want: T = (alpha * sum + beta * added).cast();
                let at = if round & 8 == 0 { i * n + j } else { j * m + i };
                assert_eq!(of(have[at]), of(want), "{} round {round} at {i},{j}", T::SCALAR_TYPE);
            }
        }
    }

    #[test]
    fn addmm_agrees_with_its_definition() {
        suite::<f32>();
        suite::<f64>();
        suite::<half::bf16>();
        suite::<i8>();
        suite::<i64>();
    }

    #[test]
    fn large_products_of_every_form_agree() {
        let mut random = Random::new(52);
        let (batch, m, k, n) = (3, 17, 50, 33);
        let (a, b) = (random.floats(batch * m * k), random.floats(batch * k * n));
        let out = Arg::out(ScalarType::FLOAT, &[batch, m, n]);
        let have = call(&BMM, &[Arg::tensor(&[batch, m, k], &a), Arg::tensor(&[batch, k, n], &b), out]).unwrap();
        let have = have[0].as_slice::<f32>().unwrap();
        let weight: Vec<f32> = (0..n * k).map(|at| b[at % k * n + at / k]).collect();
        let bias = random.floats(n);
        let out = Arg::out(ScalarType::FLOAT, &[batch, m, n]);
        let weight = Arg::Tensor(OwnedTensor::new(&[n, k], &weight).constant());
        let args = [Arg::tensor(&[batch, m, k], &a), weight, Arg::tensor(&[n], &bias), out];
        let rows = call(&LINEAR, &args).unwrap()[0].as_slice::<f32>().unwrap();
        for (at, have) in have.iter().enumerate() {
            let (z, i, j) = (at / (m * n), at / n % m, at % n);
            let product =
                |z_b: usize| -> f32 { (0..k).map(|l| a[(z * m + i) * k + l] * b[(z_b * k + l) * n + j]).sum() };
            assert!((have - product(z)).abs() < 1e-4);
            assert!((rows[at] - product(0) - bias[j]).abs() < 1e-4);
        }
    }

    /// Products of 16-bit floats are those of `f32`, rounded once, for every layout, factor and number of panels.
    fn halves_suite<T: edgepack_compute::half::Narrow>(relative: f32)
    where
        i64: Cast<T>,
    {
        let mut random = Random::new(53);
        let exact = |values: &[T]| {
            let mut wide = vec![0f32; values.len()];
            T::widen(values, &mut wide);
            wide
        };
        for round in 0..24 {
            let [m, k, n] = [random.below(70) + 1, random.below(300) + 1, random.below(200) + 1];
            let mut draw = |count: usize| {
                let mut narrow = vec![T::from_scalar(Scalar::Int(0)); count];
                T::narrow(&random.floats(count), &mut narrow);
                narrow
            };
            let (a, b, add) = (draw(m * k), draw(k * n), draw(n));
            let (beta, alpha) = ([1, 0, 2][round % 3], [1, 3][round % 2]);
            let by_column = round & 8 != 0;
            let out = OwnedTensor::zeros(T::SCALAR_TYPE, &[m, n]);
            let args = [
                Arg::tensor(&[n], &add),
                Arg::Tensor(matrix(m, k, &a, round & 2 != 0)),
                Arg::Tensor(matrix(k, n, &b, round & 4 != 0)),
                Arg::int(beta),
                Arg::int(alpha),
                Arg::Tensor(if by_column { out.with_dim_order(&[1, 0]) } else { out }),
            ];
            let have = exact(&call(&ADDMM, &args).unwrap()[0].as_slice::<T>().unwrap());
            let (a, b, add) = (exact(&a), exact(&b), exact(&add));
            for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
                let sum: f32 = (0..k).map(|l| a[i * k + l] * b[l * n + j]).sum();
                let want = alpha as f32 * sum + beta as f32 * add[j];
                let have = have[if by_column { j * m + i } else { i * n + j }];
                assert!((have - want).abs() <= relative * want.abs() + 1e-3, "round {round}: {have} for {want}");
            }
        }
    }

    #[test]
    fn products_of_halves_are_rounded_once() {
        halves_suite::<half::f16>(1.0 / 1024.0);
        halves_suite::<half::bf16>(1.0 / 128.0);
    }

    #[test]
    fn a_factor_of_zero_hides_what_is_added() {
        let one = || Arg::tensor(&[1, 1], &[2.0f32]);
        let args = |beta| {
            [
                Arg::tensor(&[1], &[f32::NAN]),
                one(),
                one(),
                Arg::int(beta),
                Arg::int(1),
                Arg::out(ScalarType::FLOAT, &[1, 1]),
            ]
        };
        assert_eq!(call(&ADDMM, &args(0)).unwrap()[0].as_slice::<f32>().unwrap(), [4.0]);
        assert!(call(&ADDMM, &args(1)).unwrap()[0].as_slice::<f32>().unwrap()[0].is_nan());
    }

    #[test]
    fn refusals_name_both_sides() {
        let args = [
            Arg::tensor(&[4, 16], &[0.0f32; 64]),
            Arg::tensor(&[8, 32], &[0.0f32; 256]),
            Arg::out(ScalarType::FLOAT, &[4, 32]),
        ];
        let error = call(&MM, &args).unwrap_err();
        assert_eq!(error.message, "`self` is 4x16, `mat2` is 8x32: inner sizes differ");
    }
}
