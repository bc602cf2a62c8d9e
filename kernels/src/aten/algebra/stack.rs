//! Stacks of matrices as arguments: their geometry, and their elements of any of three types.

use edgepack_executor::kernel::KernelError;
use edgepack_executor::tensor::{TensorMut, TensorRef, TensorShape};
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::Dims;

use crate::check::Shape;
pub use edgepack_compute::algebra::stack::MatrixStack;

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
        ScalarType::FLOAT => stack.write(tensor.as_slice::<f32>()?, outer, at, from),
        ScalarType::DOUBLE => stack.write(tensor.as_slice::<f64>()?, outer, at, from),
        ScalarType::INT => stack.write(tensor.as_slice::<i32>()?, outer, at, from),
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
