//! Operators that do nothing: what is left of loading and running when kernels cost nothing.

use edgepack_executor::Registry;
use edgepack_executor::kernel::{Alias, KernelContext, KernelError, Operator, Prepare, Run};
use edgepack_format::operators::in_programs;

struct Idle {
    name: &'static str,
    schema: &'static str,
}

impl Operator for Idle {
    fn name(&self) -> &str {
        self.name
    }
    fn schema(&self) -> &str {
        self.schema
    }
    fn alias(&self) -> Alias {
        Alias::SameRange
    }
    fn prepare(&self, _: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
        Ok(Box::new(|_: &mut KernelContext<'_>| Ok(())))
    }
}

/// Every known operator, idle.
pub fn registry() -> Registry {
    in_programs()
        .filter_map(|known| known.schema().split_at_checked(known.full_name().len()))
        .fold(Registry::new(), |registry, (name, schema)| registry.with(Idle { name, schema }))
}
