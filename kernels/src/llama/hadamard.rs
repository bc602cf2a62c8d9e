//! The fast Walsh-Hadamard transform of every row, for lengths that are a power of two or 28 times one.
//!
//! The loop is that of `edgepack_compute::hadamard`.

use edgepack_executor::kernel::{Alias, Kernel, KernelContext, KernelError, Prepare, Run};
use edgepack_executor::tensor::TensorShape;
use edgepack_format::tensor::Dims;

use super::{expect_contiguous, scratch_of};
use crate::check::{expect_same, with_float};
use crate::schema::{kernel, position};
use edgepack_compute::float::Float;
use edgepack_compute::hadamard::{ORDER, is_length, transform_rows};
use edgepack_compute::number::Number;

const NAME: &str = "llama::fast_hadamard_transform.out";

/// `llama::fast_hadamard_transform.out`.
pub static TRANSFORM: Kernel = kernel(NAME, Alias::Disjoint, prepare);

const MAT: usize = position(NAME, "mat");
const OUT: usize = position(NAME, "out");

/// The length of the rows, or why they cannot be transformed.
fn length_of(meta: &TensorShape<'_>) -> Result<usize, KernelError> {
    let length = meta.sizes.last().copied().unwrap_or(1);
    if is_length(length) {
        return Ok(length);
    }
    Err(KernelError::argument(format!(
        "rows of `mat` have {length} elements, the operator wants a power of two or {ORDER} times one"
    )))
}

fn prepare(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    args.expect_len(OUT + 2)?;
    let (mat, out) = (args.tensor(MAT)?, args.tensor(OUT)?);
    expect_same(("mat", mat.meta.dtype), ("out", out.meta.dtype))?;
    expect_contiguous("mat", &mat.meta)?;
    expect_contiguous("out", &out.meta)?;
    if !mat.dynamic {
        length_of(&mat.meta)?;
    }
    let length = mat.meta.sizes.last().copied().unwrap_or(1);
    with_float!(mat.meta.dtype, T => {
        args.scratch(length.saturating_mul(size_of::<<T as Number>::Compute>()));
        Ok(Box::new(run::<T>))
    })
}

fn run<T: Number<Compute: Float>>(cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
    let meta = cx.meta(MAT)?;
    let length = length_of(&meta)?;
    let sizes = Dims::from_slice(meta.sizes).unwrap_or_default();
    cx.resize(OUT, &sizes)?;
    let views = cx.views();
    let (mat, mut out) = (views.tensor(MAT)?, views.out(OUT)?);
    let row: &mut [T::Compute] = scratch_of(views.scratch()?, length)?;
    Ok(transform_rows(mat.as_slice::<T>()?, length, out.as_mut_slice::<T>()?, row)?)
}
