//! Operators that payloads need and the library does not have.

pub(crate) mod float;
pub(crate) mod integer;
pub(crate) mod relabel;
pub(crate) mod rows;

use std::sync::Arc;

use edgepack_executor::kernel::{Alias, KernelError, Operator, Prepare, Run};

/// An operator that was made for one node.
struct Own<F> {
    name: &'static str,
    schema: &'static str,
    alias: Alias,
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

    fn prepare(&self, args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
        (self.prepare)(args)
    }
}

fn own<F>(name: &'static str, schema: &'static str, alias: Alias, prepare: F) -> Arc<dyn Operator>
where
    F: Fn(&Prepare<'_>) -> Result<Box<dyn Run>, KernelError> + Send + Sync + 'static,
{
    Arc::new(Own { name, schema, alias, prepare })
}
