//! Arguments of an instruction that are known when it is prepared as well as when it runs.

use edgepack_executor::kernel::{KernelContext, KernelError, Prepare};
use edgepack_executor::tensor::TensorShape;

/// An instruction that runs, or one that is prepared and whose numbers are fixed. Sizes of the latter are bounds.
pub(crate) trait Instruction {
    /// The shape of a tensor.
    fn meta(&self, arg: usize) -> Result<TensorShape<'_>, KernelError>;
    /// The shape of a tensor that may be `None`.
    fn meta_opt(&self, arg: usize) -> Result<Option<TensorShape<'_>>, KernelError>;
    /// A bool.
    fn bool(&self, arg: usize) -> Result<bool, KernelError>;
    /// An integer.
    fn int(&self, arg: usize) -> Result<i64, KernelError>;
    /// The number of items of a list of integers, and the first three.
    fn ints(&self, arg: usize) -> Result<(usize, [i64; 3]), KernelError>;
}

impl Instruction for KernelContext<'_> {
    fn meta(&self, arg: usize) -> Result<TensorShape<'_>, KernelError> {
        self.meta(arg)
    }

    fn meta_opt(&self, arg: usize) -> Result<Option<TensorShape<'_>>, KernelError> {
        self.meta_opt(arg)
    }

    fn bool(&self, arg: usize) -> Result<bool, KernelError> {
        self.bool(arg)
    }

    fn int(&self, arg: usize) -> Result<i64, KernelError> {
        self.int(arg)
    }

    fn ints(&self, arg: usize) -> Result<(usize, [i64; 3]), KernelError> {
        let list = self.ints(arg)?;
        Ok((list.len(), [0, 1, 2].map(|index| list.at(index).unwrap_or_default())))
    }
}

impl Instruction for Prepare<'_> {
    fn meta(&self, arg: usize) -> Result<TensorShape<'_>, KernelError> {
        Ok(self.tensor(arg)?.meta)
    }

    fn meta_opt(&self, arg: usize) -> Result<Option<TensorShape<'_>>, KernelError> {
        Ok(self.tensor_opt(arg)?.map(|tensor| tensor.meta))
    }

    fn bool(&self, arg: usize) -> Result<bool, KernelError> {
        self.bool(arg)?.ok_or_else(|| unknown(arg))
    }

    fn int(&self, arg: usize) -> Result<i64, KernelError> {
        self.int(arg)?.ok_or_else(|| unknown(arg))
    }

    fn ints(&self, arg: usize) -> Result<(usize, [i64; 3]), KernelError> {
        let list = self.ints(arg)?.ok_or_else(|| unknown(arg))?;
        Ok((list.len(), [0, 1, 2].map(|index| list.get(index).copied().unwrap_or_default())))
    }
}

#[cold]
fn unknown(arg: usize) -> KernelError {
    KernelError::unsupported(format!("argument {arg} is not known before the instruction runs"))
}
