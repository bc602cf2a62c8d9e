//! The contract of operators: what a kernel is, and what it is given.
//!
//! A kernel has two steps. [`Operator::prepare`] runs once per instruction at load: it sees element types, size bounds
//! and constants, refuses what it cannot do, and returns the second step. [`Run::run`] executes: it reads resolved
//! arguments from a [`KernelContext`], resizes its outputs, and computes on slices. Running allocates nothing.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use edgepack_format::finding::ErrorCode;

pub use crate::context::{Ints, KernelContext, Views};
use crate::graph::Rewrite;
pub use crate::kept::{keeps, reserve, room};
pub use crate::prepare::{Prepare, TensorInfo};

/// An operator: resolved by name when a method is loaded.
pub trait Operator: Send + Sync {
    /// `namespace::op` or `namespace::op.overload`.
    fn name(&self) -> &str;

    /// The argument list and returns as in `native_functions`: `(Tensor self, *, Tensor(a!) out) -> Tensor(a!)`.
    fn schema(&self) -> &str;

    /// Whether an input may be the very same memory as an output. Where it may not, the executor makes a copy first.
    fn alias(&self) -> Alias {
        Alias::Disjoint
    }

    /// Looks at one instruction and returns what will run it.
    fn prepare(&self, args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError>;
}

/// The second step of a kernel, for one instruction.
pub trait Run: Send {
    /// Executes once.
    fn run(&mut self, cx: &mut KernelContext<'_>) -> Result<(), KernelError>;
}

impl<F> Run for F
where
    F: FnMut(&mut KernelContext<'_>) -> Result<(), KernelError> + Send,
{
    fn run(&mut self, cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
        self(cx)
    }
}

/// What a kernel allows of memory shared between an input and an output.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Alias {
    /// Inputs and outputs never overlap.
    Disjoint,
    /// An input may start where an output starts; such an input is handed over without data
    /// ([`TensorRef::is_in_place`](crate::tensor::TensorRef::is_in_place)), its bytes are those of the output.
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
    fn prepare(&self, args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
        (self.prepare)(args)
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.name, self.schema)
    }
}

/// Why a kernel refuses an instruction or fails while running it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message} ({code})")]
pub struct KernelError {
    /// The ExecuTorch error this corresponds to.
    pub code: ErrorCode,
    /// What is wrong, with both sides.
    pub message: Cow<'static, str>,
}

impl KernelError {
    /// An error with a code.
    pub fn new(code: ErrorCode, message: impl Into<Cow<'static, str>>) -> Self {
        KernelError { code, message: message.into() }
    }

    /// An argument has a value the operator does not allow.
    pub fn argument(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorCode::InvalidArgument, message)
    }

    /// An argument is of another kind than the schema says.
    pub fn kind(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorCode::InvalidType, message)
    }

    /// The operator does not do this (yet, or on principle).
    pub fn unsupported(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorCode::NotSupported, message)
    }
}

#[derive(Clone)]
enum Entry {
    Static(&'static Kernel),
    Shared(Arc<dyn Operator>),
}

/// The operators a method is loaded with. A plain value: nothing registers itself.
#[derive(Clone, Default)]
pub struct Registry {
    by_name: HashMap<Cow<'static, str>, Entry>,
    rewrites: Vec<Arc<dyn Rewrite>>,
}

impl Registry {
    /// No operators.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a list of kernels; one of the same name replaces the earlier.
    pub fn with_kernels(mut self, kernels: &[&'static Kernel]) -> Self {
        self.by_name.reserve(kernels.len());
        for kernel in kernels {
            self.by_name.insert(Cow::Borrowed(kernel.name), Entry::Static(kernel));
        }
        self
    }

    /// Adds one operator; one of the same name is replaced.
    pub fn with(mut self, operator: impl Operator + 'static) -> Self {
        let name = Cow::Owned(operator.name().to_owned());
        self.by_name.insert(name, Entry::Shared(Arc::new(operator)));
        self
    }

    /// Adds a rewrite, applied after those added before when a method is loaded.
    pub fn with_rewrite(mut self, rewrite: impl Rewrite + 'static) -> Self {
        self.rewrites.push(Arc::new(rewrite));
        self
    }

    /// The rewrites, in order.
    pub fn rewrites(&self) -> impl Iterator<Item = &dyn Rewrite> {
        self.rewrites.iter().map(|rewrite| &**rewrite)
    }

    /// The operator of this name (`aten::add.out`).
    pub fn find(&self, name: &str) -> Option<&dyn Operator> {
        Some(match self.by_name.get(name)? {
            Entry::Static(kernel) => *kernel,
            Entry::Shared(operator) => &**operator,
        })
    }

    /// All operator names, sorted.
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.by_name.keys().map(|name| &**name).collect();
        names.sort_unstable();
        names
    }

    /// Number of operators.
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Registry of {} operators", self.len())
    }
}
