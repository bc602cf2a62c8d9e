//! Stacks of matrices as arguments and results: their geometry, and their elements of any of three types.

use edgepack_executor::kernel::{KernelContext, KernelError};
use edgepack_executor::tensor::{TensorMut, TensorRef, TensorShape};
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::Dims;

use crate::check::Shape;
use edgepack_compute::algebra::stack::MatrixStack;

/// The matrices of an argument: its last two dimensions, or with `vectors` the last one.
pub fn stack(name: &str, meta: &TensorShape<'_>, vectors: bool) -> Result<MatrixStack, KernelError> {
    MatrixStack::new(meta, vectors)
        .ok_or_else(|| KernelError::argument(format!("`{name}` is {}, no matrix", Shape(meta.sizes))))
}

/// The rows of square matrices, or an error if they are not square.
pub fn expect_square(name: &str, stack: &MatrixStack) -> Result<usize, KernelError> {
    if stack.rows == stack.columns {
        return Ok(stack.rows);
    }
    Err(KernelError::argument(format!(
        "`{name}` holds matrices of {} by {}, not square ones",
        stack.rows, stack.columns
    )))
}

/// Copies matrix `at` of a stack of sizes `outer`, row by row.
pub fn read(
    stack: &MatrixStack,
    tensor: &TensorRef<'_>,
    outer: &[usize],
    at: usize,
    to: &mut [f64],
) -> Result<(), KernelError> {
    Ok(match tensor.dtype {
        ScalarType::FLOAT => stack.read(tensor.as_slice::<f32>()?, outer, at, to),
        ScalarType::DOUBLE => stack.read(tensor.as_slice::<f64>()?, outer, at, to),
        ScalarType::INT => stack.read(tensor.as_slice::<i32>()?, outer, at, to),
        other => return Err(unfit(other)),
    }?)
}

/// Puts matrix `at` of a stack of sizes `outer` into its place.
pub fn write(
    stack: &MatrixStack,
    tensor: &mut TensorMut<'_>,
    outer: &[usize],
    at: usize,
    from: &[f64],
) -> Result<(), KernelError> {
    Ok(match tensor.dtype {
        ScalarType::FLOAT => stack.write(tensor.as_mut_slice::<f32>()?, outer, at, from),
        ScalarType::DOUBLE => stack.write(tensor.as_mut_slice::<f64>()?, outer, at, from),
        ScalarType::INT => stack.write(tensor.as_mut_slice::<i32>()?, outer, at, from),
        other => return Err(unfit(other)),
    }?)
}

fn unfit(dtype: ScalarType) -> KernelError {
    KernelError::unsupported(format!("matrices of {dtype}"))
}

/// The sizes of a stack that two stacks make together.
pub fn together(a: &[usize], b: &[usize]) -> Result<Dims, KernelError> {
    edgepack_compute::layout::broadcast(a, b)
        .ok_or_else(|| KernelError::argument(format!("stacks of {} and {} do not fit", Shape(a), Shape(b))))
}

/// The matrices of an argument.
pub fn matrices(cx: &KernelContext<'_>, arg: usize, name: &str) -> Result<MatrixStack, KernelError> {
    stack(name, &cx.meta(arg)?, false)
}

/// The most matrices without elements in one stack.
const MOST_EMPTY: usize = 1 << 20;

/// Gives an output the sizes of a stack and some more dimensions.
pub fn resize(cx: &mut KernelContext<'_>, arg: usize, outer: &[usize], inner: &[usize]) -> Result<(), KernelError> {
    // Matrices without elements need no memory, so nothing else bounds how many there are.
    let stack = outer.iter().fold(1usize, |all, size| all.saturating_mul(*size));
    if inner.contains(&0) && stack > MOST_EMPTY {
        return Err(KernelError::unsupported(format!("a stack of {stack} matrices without elements")));
    }
    let sizes = Dims::collect(outer.iter().chain(inner).copied());
    cx.resize(arg, &sizes.ok_or_else(|| KernelError::unsupported("the result has more than 16 dimensions"))?)
}

pub fn sizes(stack: &MatrixStack) -> Dims {
    Dims::from_slice(stack.outer()).unwrap_or_default()
}

/// An output with its matrices.
pub struct Out<'v> {
    tensor: TensorMut<'v>,
    stack: MatrixStack,
}

impl<'v> Out<'v> {
    /// An output of matrices.
    pub fn matrices(tensor: TensorMut<'v>) -> Result<Self, KernelError> {
        let stack = stack("out", &tensor.meta(), false)?;
        Ok(Out { tensor, stack })
    }

    /// An output of vectors.
    pub fn vectors(tensor: TensorMut<'v>) -> Result<Self, KernelError> {
        let stack = stack("out", &tensor.meta(), true)?;
        Ok(Out { tensor, stack })
    }

    pub fn write(&mut self, outer: &[usize], at: usize, from: &[f64]) -> Result<(), KernelError> {
        write(&self.stack, &mut self.tensor, outer, at, from)
    }
}

/// Puts a number per matrix into an output without further dimensions.
pub fn put(tensor: &mut TensorMut<'_>, at: usize, number: f64) -> Result<(), KernelError> {
    match tensor.dtype {
        ScalarType::FLOAT => tensor.as_mut_slice::<f32>()?[at] = number as f32,
        ScalarType::DOUBLE => tensor.as_mut_slice::<f64>()?[at] = number,
        ScalarType::INT => tensor.as_mut_slice::<i32>()?[at] = number as i32,
        other => return Err(KernelError::unsupported(format!("numbers of {other}"))),
    }
    Ok(())
}
