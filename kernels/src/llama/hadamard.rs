//! The fast Walsh-Hadamard transform of every row, for lengths that are a power of two or 28 times one.
//!
//! The power of two is scaled by the inverse of its square root, so that transforming twice gives the row back; the factor
//! 28 is a Hadamard matrix of that order without a scale. 16-bit floats are computed in `f32`.

use edgepack_executor::kernel::{Alias, Kernel, KernelContext, KernelError, Prepare, Run};
use edgepack_executor::tensor::TensorShape;
use edgepack_format::tensor::Dims;

use super::{expect_contiguous, scratch_of};
use crate::check::{expect_same, with_float};
use edgepack_compute::float::Float;
use edgepack_compute::number::{Cast, Compute, Number};
use edgepack_compute::simd::wide;

/// `llama::fast_hadamard_transform.out`.
pub static TRANSFORM: Kernel = Kernel {
    name: "llama::fast_hadamard_transform.out",
    schema: "(Tensor mat, *, Tensor(a!) out) -> Tensor(a!)",
    alias: Alias::Disjoint,
    prepare,
};

/// The order of the matrix for lengths with this factor.
const ORDER: usize = 28;
/// The matrix of that order, row by row: a bit per column, the lowest first, is set where the sign is plus.
#[rustfmt::skip]
const SIGNS: [u32; ORDER] = [
    0x3296181, 0x6528382, 0xc854704, 0x92a8e08, 0x2751c10, 0x4ca7820, 0x994b0c0,
    0x4b980bc, 0x9534178, 0x2a6c271, 0x54d8463, 0xa9b0847, 0x536500f, 0xa4ce01e,
    0x7804cda, 0xf009935, 0xe21326a, 0xc6224d5, 0x8e409ab, 0x1e81356, 0x3d0262d,
    0x030ed66, 0x041dacd, 0x083b51b, 0x1072ab6, 0x20e15ec, 0x41c2b59, 0x81856b3,
];

/// A length as a number of blocks and their length, a power of two.
fn lengths(meta: &TensorShape<'_>) -> Result<[usize; 2], KernelError> {
    let length = meta.sizes.last().copied().unwrap_or(1);
    let blocks = if length > 0 && length.is_multiple_of(ORDER) { ORDER } else { 1 };
    if length == 0 || (length / blocks).is_power_of_two() {
        return Ok([blocks, length / blocks]);
    }
    Err(KernelError::argument(format!(
        "rows of `mat` have {length} elements, the operator wants a power of two or {ORDER} times one"
    )))
}

fn prepare(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    args.expect_len(3)?;
    let (mat, out) = (args.tensor(0)?, args.tensor(1)?);
    expect_same(("mat", mat.meta.dtype), ("out", out.meta.dtype))?;
    expect_contiguous("mat", &mat.meta)?;
    expect_contiguous("out", &out.meta)?;
    if !mat.dynamic {
        lengths(&mat.meta)?;
    }
    let length = mat.meta.sizes.last().copied().unwrap_or(1);
    with_float!(mat.meta.dtype, T => {
        args.scratch(length.saturating_mul(size_of::<<T as Number>::Compute>()));
        Ok(Box::new(run::<T>))
    })
}

fn run<T: Number<Compute: Float>>(cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
    let meta = cx.meta(0)?;
    let [blocks, length] = lengths(&meta)?;
    let sizes = Dims::from_slice(meta.sizes).unwrap_or_default();
    cx.resize(1, &sizes)?;
    let views = cx.views();
    let (mat, mut out) = (views.tensor(0)?, views.out(1)?);
    let row: &mut [T::Compute] = scratch_of(views.scratch()?, blocks * length)?;
    let width = row.len().max(1);
    for (from, to) in mat.as_slice::<T>()?.chunks_exact(width).zip(out.as_slice::<T>()?.chunks_exact_mut(width)) {
        row.iter_mut().zip(from).for_each(|(x, from)| *x = from.to_compute());
        for block in row.chunks_exact_mut(length) {
            wide(|| transform(block));
        }
        if blocks == ORDER {
            mix(row, length);
        }
        to.iter_mut().zip(&*row).for_each(|(to, x)| *to = x.cast());
    }
    Ok(())
}

/// The transform of a row whose length is a power of two.
#[inline(always)]
fn transform<C: Float>(row: &mut [C]) {
    let mut step = 1;
    while step < row.len() {
        for pair in row.chunks_exact_mut(2 * step) {
            let (low, high) = pair.split_at_mut(step);
            for (x, y) in low.iter_mut().zip(high) {
                (*x, *y) = (x.plus(*y), x.minus(*y));
            }
        }
        step *= 2;
    }
    let scale = C::of(1.0 / (row.len() as f64).sqrt());
    row.iter_mut().for_each(|x| *x = x.times(scale));
}

/// Multiplies the columns of a row of 28 blocks by the matrix of that order.
fn mix<C: Compute>(row: &mut [C], length: usize) {
    for column in 0..length {
        let mut given = [C::ZERO; ORDER];
        given.iter_mut().zip(row[column..].iter().step_by(length)).for_each(|(given, &x)| *given = x);
        for (x, signs) in row[column..].iter_mut().step_by(length).zip(&SIGNS) {
            let terms = given.iter().enumerate();
            *x = terms.fold(C::ZERO, |sum, (at, &x)| if signs >> at & 1 == 1 { sum.plus(x) } else { sum.minus(x) });
        }
    }
}
