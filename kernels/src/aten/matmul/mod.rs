//! Products of matrices as operators: `mm`, `addmm`, `bmm`, `baddbmm`, `linear`.
//!
//! One engine, a row per operator that gives the positions of its operands. The element type is decided when the method
//! is loaded; a constant right operand is packed then. An output stored column by column is computed as the transposed
//! product.

mod complex;
mod halves;

use edgepack_executor::kernel::{Alias, Kernel, KernelContext, KernelError, Prepare, Run, Views};
use edgepack_executor::packing::Shared;
use edgepack_executor::tensor::{TensorMut, TensorRef, TensorShape};
use edgepack_executor::with_element;
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::Dims;

use crate::check::{Class, Shape, expect_class, expect_same, expect_stretch};
use crate::complex::with_parts;
use crate::fused::{Base, then_in_place};
use crate::schema::{kernel, position};
use edgepack_compute::gemm::{self, Bias, Fast, Gemm, InOrder, Mat, Operand, Plain, Terms};
use edgepack_compute::number::{Compute, Number};
use edgepack_compute::threads::{Write, pays, try_for_each};
use edgepack_compute::walk::Walk;

/// The operators of this family.
pub static KERNELS: &[&Kernel] = &[&MM, &ADDMM, &BMM, &BADDBMM, &LINEAR];

/// Positions of the operands of an operator, and the shapes they are read as.
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

/// Shapes of operands that a form takes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shapes {
    /// Two matrices.
    Matrices,
    /// Two stacks of matrices.
    Stacks,
    /// Rows of any rank, and a matrix that is stored transposed.
    Rows,
    /// Rows of any rank, and a matrix, which may be a stack of one.
    Repeated,
}

/// An argument by name.
const fn operand(operator: &str, name: &'static str) -> (usize, &'static str) {
    (position(operator, name), name)
}

/// One product of two operands.
const fn product(operator: &str, lhs: &'static str, rhs: &'static str, shape: Shapes) -> Form {
    Form {
        lhs: operand(operator, lhs),
        rhs: operand(operator, rhs),
        add: None,
        factors: None,
        out: position(operator, "out"),
        shape,
    }
}

/// A product with a scaled tensor added.
const fn scaled(operator: &str, lhs: &'static str, rhs: &'static str, shape: Shapes) -> Form {
    Form {
        add: Some(operand(operator, "self")),
        factors: Some((position(operator, "beta"), position(operator, "alpha"))),
        ..product(operator, lhs, rhs, shape)
    }
}

static MM_FORM: Form = product("aten::mm.out", "self", "mat2", Shapes::Matrices);
static ADDMM_FORM: Form = scaled("aten::addmm.out", "mat1", "mat2", Shapes::Matrices);
static BMM_FORM: Form = product("aten::bmm.out", "self", "mat2", Shapes::Stacks);
static BADDBMM_FORM: Form = scaled("aten::baddbmm.out", "batch1", "batch2", Shapes::Stacks);
static REPEATED_FORM: Form = product("aten::bmm.out", "self", "mat2", Shapes::Repeated);
static LINEAR_FORM: Form = Form {
    add: Some(operand("aten::linear.out", "bias")),
    ..product("aten::linear.out", "input", "weight", Shapes::Rows)
};

/// The operator of a form, and what rewrites make of it and the operations behind it.
macro_rules! kernels {
    ($($plain:ident $fused:ident $form:ident $name:literal $prepare:expr;)*) => {$(
        static $plain: Kernel = kernel(concat!("aten::", $name, ".out"), Alias::Disjoint, $prepare);

        kernels! { @fused $fused $plain $form concat!("edgepack::", $name, ".epilogue_out") }
    )*};
    (@fused $fused:ident $plain:ident $form:ident $name:expr) => {
        pub(crate) static $fused: Base = Base {
            name: $name,
            schema: $plain.schema,
            out: $form.out,
            in_place: true,
            prepare: |args, epilogue| then_in_place(args, $form.out, prepare(args, &$form)?, epilogue),
        };
    };
}

kernels! {
    MM FUSED_MM MM_FORM "mm" |args| prepare(args, &MM_FORM);
    ADDMM FUSED_ADDMM ADDMM_FORM "addmm" |args| prepare(args, &ADDMM_FORM);
    BMM FUSED_BMM BMM_FORM "bmm" prepare_bmm;
    BADDBMM FUSED_BADDBMM BADDBMM_FORM "baddbmm" |args| prepare(args, &BADDBMM_FORM);
    LINEAR FUSED_LINEAR LINEAR_FORM "linear" |args| prepare(args, &LINEAR_FORM);
}

/// `aten::bmm.out` where every matrix of the right stack is the same one, which is given once.
pub(crate) static REPEATED: Kernel = Kernel {
    name: "edgepack::bmm.repeated_out",
    schema: BMM.schema,
    alias: Alias::Disjoint,
    is_pure: true,
    prepare: |args| prepare(args, &REPEATED_FORM),
};

kernels! { @fused FUSED_REPEATED REPEATED REPEATED_FORM "edgepack::bmm.repeated_epilogue_out" }

/// `aten::bmm.out` for those who make plans, with sums of FLOAT as [`InOrder`] takes them.
pub static BMM_IN_ORDER: Kernel = Kernel {
    name: "edgepack::bmm.in_order_out",
    schema: BMM.schema,
    alias: Alias::Disjoint,
    is_pure: true,
    prepare: |args| prepare_with::<InOrder>(args, &BMM_FORM),
};

fn prepare_bmm(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    let dtype = args.tensor(BMM_FORM.lhs.0)?.meta.dtype;
    with_parts!(dtype, R => {
        expect_same(("self", dtype), ("mat2", args.tensor(BMM_FORM.rhs.0)?.meta.dtype))?;
        expect_same(("self", dtype), ("out", args.tensor(BMM_FORM.out)?.meta.dtype))?;
        Ok(Box::new(complex::multiply_stacks::<R>) as Box<dyn Run>)
    }, else => prepare(args, &BMM_FORM))
}

fn prepare(args: &Prepare<'_>, form: &'static Form) -> Result<Box<dyn Run>, KernelError> {
    prepare_with::<Fast>(args, form)
}

/// [`prepare`] with a way to multiply FLOAT.
fn prepare_with<G: Gemm<f32, Packed = gemm::Packed>>(
    args: &Prepare<'_>,
    form: &'static Form,
) -> Result<Box<dyn Run>, KernelError> {
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
    let is_one = form.shape != Shapes::Stacks || rhs.meta.sizes.first() == Some(&1);
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
        Some(rhs) if worthwhile && args.optimize() && is_one && !rhs.bytes().is_empty() => {
            let place = form.rhs_place(&rhs.meta())?;
            let Mat { rows, cols, .. } = form.rhs_matrix(place, rhs.as_slice::<f32>()?)?;
            let layout = format!("{}, {rows} x {cols}, {:?}", gemm::Packed::layout(), rhs.strides);
            Some(args.share(
                form.rhs.0,
                layout.as_str().into(),
                gemm::Packed::packed_len([rows, cols]),
                move |rhs| Ok(gemm::Packed::new(&form.rhs_matrix(place, rhs)?)?),
            )?)
        }
        _ => None,
    };
    operator::<f32, G>(form, packed)
}

fn operator<T: Number, G: Gemm<T>>(
    form: &'static Form,
    packed: Option<Shared<G::Packed>>,
) -> Result<Box<dyn Run>, KernelError> {
    Ok(Box::new(Instruction::<T, G> { form, packed }))
}

/// One instruction, and its constant matrix packed.
struct Instruction<T: Number, G: Gemm<T>> {
    form: &'static Form,
    packed: Option<Shared<G::Packed>>,
}

impl<T: Number, G: Gemm<T>> Run for Instruction<T, G> {
    fn run(&mut self, cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
        run::<T, G>(self.form, self.packed.as_deref(), cx)
    }
}

impl Form {
    /// Sizes and strides of the last two dimensions of a second operand that is one matrix.
    fn rhs_place(&self, meta: &TensorShape<'_>) -> Result<[[usize; 2]; 2], KernelError> {
        let (&[ref stack @ .., rows, cols], &[.., row_stride, col_stride]) = (meta.sizes, meta.strides) else {
            return Err(not_a_matrix(self.rhs.1, meta, 2));
        };
        if stack.iter().any(|&size| size != 1) {
            return Err(not_a_matrix(self.rhs.1, meta, 2));
        }
        Ok([[rows, cols], [row_stride, col_stride]])
    }

    /// The second operand as the product reads it.
    fn rhs_matrix<'a, T>(&self, [sizes, strides]: [[usize; 2]; 2], data: &'a [T]) -> Result<Mat<'a, T>, KernelError> {
        let mat = Mat::new(data, sizes, strides)?;
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
            (Shapes::Rows, &[ref rows @ .., k], &[n, rhs_k])
            | (Shapes::Repeated, &[ref rows @ .., k], &[rhs_k, n] | &[1, rhs_k, n]) => {
                if !lhs.is_contiguous() && a.len() > 2 {
                    return fail("rows of a rank above 2 must be contiguous");
                }
                (1, rows.iter().product(), k, rhs_k, n)
            }
            (Shapes::Stacks, ..) => return fail("the operator wants 3 dimensions each"),
            (Shapes::Matrices, ..) => return fail("the operator wants matrices"),
            (Shapes::Rows | Shapes::Repeated, ..) => return fail("the operator wants rows and a matrix"),
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

/// The two factors, and the tensor that is added, with its name.
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
    packed: Option<&G::Packed>,
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
        let a = Mat::new(a.get(index * strides.stack[0]..).unwrap_or(&[]), [m, k], strides.lhs)?;
        let b = Mat::new(b.get(index * strides.stack[1]..).unwrap_or(&[]), [k, n], strides.rhs)?;
        if transposed {
            G::multiply(out, b.transposed(), a.transposed().into(), terms)
        } else {
            G::multiply(out, a, Operand { mat: b, packed }, terms)
        }
    });
    Ok(done?)
}

/// Writes what is added to a product into its output.
fn start(add: TensorRef<'_>, name: &str, out: &mut TensorMut<'_>) -> Result<(), KernelError> {
    expect_stretch(name, add.sizes, out.sizes)?;
    let width = add.dtype.size().unwrap_or(1);
    Walk::stretched(&out.meta(), &add.meta()).gather(width, add.bytes(), out.bytes_mut());
    Ok(())
}

/// Strides of the matrices of a call, in elements.
struct Strides {
    /// Row and column stride of the left operand.
    lhs: [usize; 2],
    /// Row and column stride of the right operand, as it is multiplied.
    rhs: [usize; 2],
    /// Distances from one matrix of a stack to the next, of both operands.
    stack: [usize; 2],
}

impl Strides {
    fn new(form: &Form, product: &Product, [lhs, rhs]: [&TensorShape<'_>; 2]) -> Self {
        let stack = |meta: &TensorShape<'_>| if form.shape == Shapes::Stacks { meta.strides[0] } else { 0 };
        Strides {
            lhs: lhs_strides(lhs, product.k, form.shape),
            rhs: rhs_strides(rhs, form.shape),
            stack: [stack(lhs), stack(rhs)],
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

/// Returns whether the matrices of the output are stored column by column.
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
mod tests;
