//! Operators that compute every element of the output from the elements in the same place of the inputs.
//!
//! One engine serves all: it broadcasts, promotes and converts; the loops of an operator only see slices of one type.
//! An operator is a row of a table: its inputs, how its type is found, and the function applied.

use edgepack_executor::kernel::Kernel;

pub mod activation;
pub mod arithmetic;
mod blocks;
pub mod close;
pub mod complex;
pub mod engine;
pub mod fill;
mod fixed;
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

/// Rows of an operator table, whose arguments have the names that the operator's schema gives them:
/// `NAME: "operator", [KIND("input"), …], ["parameter", …], types, table[, divisor INPUT];`.
macro_rules! specs {
    ($($vis:vis $spec:ident: $operator:literal, [$($kind:ident($input:literal $(, $limit:ident)?)),*], [$($param:literal),*],
        $types:ident, $table:ident $(, divisor $divisor:literal)?;)*) => {
        $($vis static $spec: crate::aten::elementwise::spec::Spec = crate::aten::elementwise::spec::Spec {
            schema: crate::schema::schema($operator),
            inputs: &[$(crate::aten::elementwise::spec::Input::$kind(
                crate::schema::position($operator, $input),
                $(edgepack_compute::pointwise::Limit::$limit,)?
            )),*],
            params: &[$(crate::schema::position($operator, $param)),*],
            out: crate::schema::position($operator, "out"),
            types: crate::aten::elementwise::spec::Types::$types,
            table: $table,
            divisor: crate::aten::elementwise::specs!(@divisor $($divisor)?),
        };)*
    };
    (@divisor) => { None };
    (@divisor $divisor:literal) => { Some($divisor) };
}

/// A list of kernels: `"operator" => SPEC` for a row of the engine, `"operator" => function` for a `prepare` of its own.
macro_rules! kernels {
    ($($name:literal => $spec:ident),* $(,)?; $($own:literal => $prepare:expr),* $(,)?) => {
        /// The operators of this table.
        pub const KERNELS: &[&edgepack_executor::kernel::Kernel] = &[
            $(&crate::schema::kernel($name, edgepack_executor::kernel::Alias::Disjoint, |args| {
                crate::aten::elementwise::engine::prepare(args, &$spec)
            }),)*
            $(&crate::schema::kernel($own, edgepack_executor::kernel::Alias::Disjoint, $prepare),)*
        ];
    };
}

pub(crate) use {kernels, specs};
