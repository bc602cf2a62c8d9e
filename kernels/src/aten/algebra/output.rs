//! Matrices of arguments, and outputs that take matrices or vectors one by one.

use edgepack_executor::kernel::{KernelContext, KernelError};
use edgepack_executor::tensor::TensorMut;
use edgepack_format::tensor::Dims;

use super::stack::{MatrixStack, stack, write};

/// The matrices of an argument.
pub(super) fn matrices(cx: &KernelContext<'_>, arg: usize, name: &str) -> Result<MatrixStack, KernelError> {
    stack(name, &cx.meta(arg)?, false)
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

pub(super) fn sizes(stack: &MatrixStack) -> Dims {
    Dims::from_slice(stack.outer()).unwrap_or_default()
}

/// An output with its matrices.
pub(super) struct Out<'v> {
    tensor: TensorMut<'v>,
    stack: MatrixStack,
}

impl<'v> Out<'v> {
    /// An output of matrices.
    pub(super) fn matrices(tensor: TensorMut<'v>) -> Result<Self, KernelError> {
        let stack = stack("out", &tensor.meta(), false)?;
        Ok(Out { tensor, stack })
    }

    /// An output of vectors.
    pub(super) fn vectors(tensor: TensorMut<'v>) -> Result<Self, KernelError> {
        let stack = stack("out", &tensor.meta(), true)?;
        Ok(Out { tensor, stack })
    }

    pub(super) fn write(&mut self, outer: &[usize], at: usize, from: &[f64]) -> Result<(), KernelError> {
        write(&self.stack, &mut self.tensor, outer, at, from)
    }
}

/// Makes a matrix the identity.
pub(super) fn identity(matrix: &mut [f64], rows: usize, columns: usize) {
    matrix.fill(0.0);
    (0..rows.min(columns)).for_each(|i| matrix[i * columns + i] = 1.0);
}

/// Transposes a dense matrix of this many rows and columns.
pub(super) fn transpose(from: &[f64], rows: usize, columns: usize, to: &mut [f64]) {
    for i in 0..rows {
        (0..columns).for_each(|j| to[j * rows + i] = from[i * columns + j]);
    }
}
