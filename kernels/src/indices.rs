//! Index tensors as arguments: INT or LONG, read at any alignment.

use edgepack_compute::indices::Indices;
use edgepack_executor::kernel::{KernelError, Prepare};
use edgepack_executor::tensor::TensorRef;
use edgepack_format::scalar::ScalarType;

/// Returns an error unless a tensor, given as argument `name`, holds indices.
pub fn expect_indices(args: &Prepare<'_>, arg: usize, name: &str) -> Result<(), KernelError> {
    match args.tensor(arg)?.meta.dtype {
        ScalarType::INT | ScalarType::LONG => Ok(()),
        dtype => Err(KernelError::argument(format!("`{name}` is {dtype}, the operator wants i32 or i64"))),
    }
}

/// The indices of a tensor that [`expect_indices`] let pass.
pub fn indices<'a>(tensor: &TensorRef<'a>) -> Indices<'a> {
    match tensor.dtype {
        ScalarType::INT => Indices::int(tensor.bytes()),
        _ => Indices::long(tensor.bytes()),
    }
}
