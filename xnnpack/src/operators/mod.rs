//! Operators that payloads need and the library does not have.

pub(crate) mod affine;
pub(crate) mod batch;
pub(crate) mod bytes;
pub(crate) mod float;
pub(crate) mod integer;
pub(crate) mod pool;
pub(crate) mod relabel;
pub(crate) mod resize;
pub(crate) mod rows;

use std::sync::Arc;

use edgepack_executor::kernel::{Alias, KernelContext, KernelError, Operator, Prepare, Run};

/// An operator that was made for one node.
struct Own<F> {
    name: &'static str,
    schema: &'static str,
    alias: Alias,
    is_pure: bool,
    is_elementwise: bool,
    prepare: F,
}

impl<F> Operator for Own<F>
where
    F: Fn(&Prepare<'_>) -> Result<Box<dyn Run>, KernelError> + Send + Sync,
{
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

    fn is_elementwise(&self) -> bool {
        self.is_elementwise
    }

    fn prepare(&self, args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
        (self.prepare)(args)
    }
}

fn own<F>(name: &'static str, schema: &'static str, alias: Alias, prepare: F) -> Arc<dyn Operator>
where
    F: Fn(&Prepare<'_>) -> Result<Box<dyn Run>, KernelError> + Send + Sync + 'static,
{
    Arc::new(Own { name, schema, alias, is_pure: false, is_elementwise: false, prepare })
}

/// An operator that goes from element to element, in whatever order they are.
fn elementwise<F>(name: &'static str, schema: &'static str, prepare: F) -> Arc<dyn Operator>
where
    F: Fn(&Prepare<'_>) -> Result<Box<dyn Run>, KernelError> + Send + Sync + 'static,
{
    Arc::new(Own { name, schema, alias: Alias::Disjoint, is_pure: false, is_elementwise: true, prepare })
}

/// An operator whose name and arguments say all that it computes, whichever node it was made for.
fn pure<F>(name: &'static str, schema: &'static str, prepare: F) -> Arc<dyn Operator>
where
    F: Fn(&Prepare<'_>) -> Result<Box<dyn Run>, KernelError> + Send + Sync + 'static,
{
    Arc::new(Own { name, schema, alias: Alias::Disjoint, is_pure: true, is_elementwise: false, prepare })
}

/// Runs an instruction, and retains tables of its own whose `bytes` were reserved.
struct Retaining<F> {
    bytes: usize,
    run: F,
}

impl<F> Run for Retaining<F>
where
    F: FnMut(&mut KernelContext<'_>) -> Result<(), KernelError> + Send,
{
    fn run(&mut self, cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
        (self.run)(cx)
    }

    fn retained_bytes(&self) -> usize {
        self.bytes
    }
}

fn retaining<F>(bytes: usize, run: F) -> Result<Box<dyn Run>, KernelError>
where
    F: FnMut(&mut KernelContext<'_>) -> Result<(), KernelError> + Send + 'static,
{
    Ok(Box::new(Retaining { bytes, run }))
}
