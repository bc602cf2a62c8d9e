//! Operators that compute every element of the output from the elements in the same place of the inputs.
//!
//! One engine serves all: it broadcasts, promotes and converts; the loops of an operator only see slices of one type.
//! An operator is a row of a table: its inputs, how its type is found, and the function applied.

use edgepack_executor::kernel::Kernel;

pub mod activation;
pub mod arithmetic;
pub mod close;
pub mod complex;
pub mod engine;
pub mod fill;
pub mod glu;
pub mod logic;
pub mod reference;
pub mod spec;
pub mod special;
#[cfg(test)]
mod tests;
pub mod types;
pub mod unary;

/// The tables of this family.
pub const TABLES: &[&[&Kernel]] = &[
    activation::KERNELS,
    arithmetic::KERNELS,
    close::KERNELS,
    complex::KERNELS,
    fill::KERNELS,
    glu::KERNELS,
    logic::KERNELS,
    special::KERNELS,
    unary::KERNELS,
];

/// The arguments most operators have.
pub(crate) mod schema {
    pub const UNARY: &str = "(Tensor self, *, Tensor(a!) out) -> Tensor(a!)";
    pub const BINARY: &str = "(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)";
    pub const WITH_NUMBER: &str = "(Tensor self, Scalar other, *, Tensor(a!) out) -> Tensor(a!)";
}

/// Rows of an operator table:
/// `NAME: "name" schema, [inputs], [params], output argument, types, table[, divisor INPUT];`.
macro_rules! specs {
    ($($vis:vis $spec:ident: $schema:expr, [$($input:expr),*], [$($param:literal),*], $out:literal, $types:ident, $table:ident
        $(, divisor $divisor:literal)?;)*) => {
        $($vis static $spec: crate::aten::elementwise::spec::Spec = crate::aten::elementwise::spec::Spec {
            schema: $schema,
            inputs: &[$($input),*],
            params: &[$($param),*],
            out: $out,
            types: crate::aten::elementwise::spec::Types::$types,
            table: $table,
            divisor: crate::aten::elementwise::specs!(@divisor $($divisor)?),
        };)*
    };
    (@divisor) => { None };
    (@divisor $divisor:literal) => { Some($divisor) };
}

/// A list of kernels: `"name" => SPEC` for a row of the engine, `"name" schema => function` for a first step of its own.
macro_rules! kernels {
    ($($name:literal => $spec:ident),* $(,)?; $($own:literal $schema:expr => $prepare:expr),* $(,)?) => {
        /// The operators of this table.
        pub const KERNELS: &[&edgepack_executor::kernel::Kernel] = &[
            $(&edgepack_executor::kernel::Kernel {
                name: $name,
                schema: $spec.schema,
                alias: edgepack_executor::kernel::Alias::Disjoint,
                prepare: |args| crate::aten::elementwise::engine::prepare(args, &$spec),
            },)*
            $(&edgepack_executor::kernel::Kernel {
                name: $own,
                schema: $schema,
                alias: edgepack_executor::kernel::Alias::Disjoint,
                prepare: $prepare,
            },)*
        ];
    };
}

pub(crate) use {kernels, specs};
