//! The operators and rewrites that methods are loaded with.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use super::plan_graph::Rewrite;
use crate::api::kernel::{Kernel, Operator};

#[derive(Clone)]
enum Entry {
    Static(&'static Kernel),
    Shared(Arc<dyn Operator>),
}

/// The operators a method is loaded with. A plain value: nothing registers itself.
///
/// ```
/// use edgepack_executor::Registry;
/// use edgepack_executor::kernel::KernelError;
/// use edgepack_executor::typed::{Tensor, TensorMut, kernel};
///
/// #[kernel("my::negate.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)", like = "self")]
/// fn negate(input: &Tensor<f32>, out: &mut TensorMut<f32>) -> Result<(), KernelError> {
///     out.as_mut_slice().iter_mut().zip(input.as_slice()).for_each(|(out, x)| *out = -x);
///     Ok(())
/// }
///
/// # fn main() {
/// let registry = Registry::new().with_kernels(&[&NEGATE]);
/// assert!(registry.find("my::negate.out").is_some());
/// # }
/// ```
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

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Registry of {} operators", self.len())
    }
}
