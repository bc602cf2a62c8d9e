//! Arguments of an instruction that are known when it is prepared as well as when it runs.

use edgepack_executor::kernel::{KernelContext, KernelError, Prepare};
use edgepack_executor::tensor::TensorShape;

/// An instruction that runs, or one that is prepared and whose numbers are fixed. Sizes of the latter are bounds.
pub(crate) trait Instruction {
    /// Returns the shape of a tensor.
    fn meta(&self, arg: usize) -> Result<TensorShape<'_>, KernelError>;
    /// Returns the shape of a tensor; `None` if the argument is.
    fn meta_opt(&self, arg: usize) -> Result<Option<TensorShape<'_>>, KernelError>;
    /// Returns a truth value; an error if the instruction is prepared and the argument is not fixed.
    fn bool(&self, arg: usize) -> Result<bool, KernelError>;
    /// Returns a whole number; an error if the instruction is prepared and the argument is not fixed.
    fn int(&self, arg: usize) -> Result<i64, KernelError>;
    /// Returns the number of items of a list of integers, and the first three; 0 for those that it has not.
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
