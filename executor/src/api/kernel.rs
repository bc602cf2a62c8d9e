//! The contract of operators: what a kernel is, and what it is given.
//!
//! A kernel has two phases. [`Operator::prepare`] runs once per instruction at load: it sees element types, size bounds
//! and constants, refuses what it cannot do, and returns the second phase. [`Run::run`] executes: it reads resolved
//! arguments from a [`KernelContext`], resizes its outputs, and computes on slices. Running allocates nothing.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

pub use super::context::{Ints, KernelContext, Views};
pub use super::error::KernelError;
pub use super::prepare::{Prepare, TensorInfo};
pub use super::room::{Retained, room};

/// An operator: resolved by name when a method is loaded.
pub trait Operator: Send + Sync {
    /// `namespace::op` or `namespace::op.overload`.
    fn name(&self) -> &str;

    /// The argument list and returns as in `native_functions`: `(Tensor self, *, Tensor(a!) out) -> Tensor(a!)`.
    fn schema(&self) -> &str;

    /// Returns whether an input may be the very same memory as an output. If not, the executor makes a copy first.
    fn alias(&self) -> Alias {
        Alias::Disjoint
    }

    /// Returns whether the name and the arguments determine the result: an operator with equal name and arguments
    /// computes the same result. If a method is optimised, equal calls on one value are then made once, and calls on
    /// constants when the method is loaded.
    fn is_pure(&self) -> bool {
        false
    }

    /// Returns whether, where all tensors have the same sizes and order, each element of the results depends on those at its
    /// place alone, whatever the order is; an argument of one element may meet all of them. If a method is optimised, such
    /// tensors may then be laid out in another order.
    fn is_elementwise(&self) -> bool {
        false
    }

    /// Looks at one instruction and returns what will run it.
    fn prepare(&self, args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError>;

    /// Returns the operator as what it is, for rewrites that put it into the plan and know it again.
    fn as_any(&self) -> Option<&dyn Any> {
        None
    }
}

/// The second phase of a kernel, for one instruction.
pub trait Run: Send {
    /// Executes once.
    fn run(&mut self, cx: &mut KernelContext<'_>) -> Result<(), KernelError>;

    /// Returns how many bytes it retains now besides the memory it is given: packed weights. They were
    /// [reserved](Retained::reserve) before.
    fn retained_bytes(&self) -> usize {
        0
    }
}

impl<F> Run for F
where
    F: FnMut(&mut KernelContext<'_>) -> Result<(), KernelError> + Send,
{
    fn run(&mut self, cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
        self(cx)
    }
}

/// Overlap that a kernel allows between the memory of an input and that of an output.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Alias {
    /// Inputs and outputs never overlap.
    Disjoint,
    /// An input may start where an output starts; such an input is handed over without data
    /// ([`TensorRef::is_in_place`](crate::api::tensor::TensorRef::is_in_place)), its bytes are those of the output.
    SameRange,
}

/// An operator as a constant: what the library registers.
#[derive(Clone, Copy)]
pub struct Kernel {
    /// See [`Operator::name`].
    pub name: &'static str,
    /// See [`Operator::schema`].
    pub schema: &'static str,
    /// See [`Operator::alias`].
    pub alias: Alias,
    /// See [`Operator::is_pure`].
    pub is_pure: bool,
    /// See [`Operator::prepare`].
    pub prepare: fn(&Prepare<'_>) -> Result<Box<dyn Run>, KernelError>,
}

impl Operator for Kernel {
    fn name(&self) -> &str {
        self.name
    }
    fn schema(&self) -> &str {
        self.schema
    }
    fn alias(&self) -> Alias {
        self.alias
    }
    fn is_pure(&self) -> bool {
        self.is_pure
    }
    fn prepare(&self, args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
        (self.prepare)(args)
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.name, self.schema)
    }
}

/// An operator that is borrowed, or one that is shared.
#[derive(Clone)]
pub enum OperatorRef<'r> {
    /// Borrowed from a registry or from a library.
    Borrowed(&'r dyn Operator),
    /// Shared with its other owners.
    Shared(Arc<dyn Operator>),
}

impl<'r> std::ops::Deref for OperatorRef<'r> {
    type Target = dyn Operator + 'r;
    fn deref(&self) -> &Self::Target {
        match self {
            OperatorRef::Borrowed(operator) => *operator,
            OperatorRef::Shared(operator) => &**operator,
        }
    }
}

impl<'r> From<&'r Kernel> for OperatorRef<'r> {
    fn from(kernel: &'r Kernel) -> Self {
        OperatorRef::Borrowed(kernel)
    }
}

impl From<Arc<dyn Operator>> for OperatorRef<'_> {
    fn from(operator: Arc<dyn Operator>) -> Self {
        OperatorRef::Shared(operator)
    }
}
