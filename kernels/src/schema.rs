//! Kernels and their arguments by name, out of the one table of operators.
//!
//! The functions are meant for constants: a name that the table does not have stops the build.

use edgepack_executor::kernel::{Alias, Kernel, KernelError, Prepare, Run};
use edgepack_format::operators;

/// Makes the kernel of a known operator.
pub(crate) const fn kernel(
    full_name: &str,
    alias: Alias,
    prepare: fn(&Prepare<'_>) -> Result<Box<dyn Run>, KernelError>,
) -> Kernel {
    let (Some((name, schema)), Some(operator)) = (operators::split_known(full_name), operators::find(full_name)) else {
        panic!("unknown operator")
    };
    Kernel { name, schema, alias, is_pure: operator.is_pure(), prepare }
}

/// Returns the arguments and results of a known operator: the schema that kernels declare.
pub(crate) const fn signature(full_name: &str) -> &'static str {
    let Some((_, schema)) = operators::split_known(full_name) else { panic!("unknown operator") };
    schema
}

/// Returns the schema of an operator of the table.
pub(crate) const fn schema(full_name: &str) -> &'static str {
    let Some(found) = operators::find(full_name) else { panic!("unknown operator") };
    found.schema()
}

/// Returns the position of an argument of an operator of the table.
pub(crate) const fn position(full_name: &str, argument: &str) -> usize {
    let Some(index) = operators::position(schema(full_name), argument) else {
        panic!("the operator has no such argument")
    };
    index
}

/// Declares constants for positions of arguments of a known operator: `arguments!("aten::cat.out"; TENSORS = "tensors");`.
macro_rules! arguments {
    ($operator:expr; $($constant:ident = $argument:literal),+ $(,)?) => {
        $(const $constant: usize = crate::schema::position($operator, $argument);)+
    };
}
pub(crate) use arguments;
