//! Operators: their schemas, what each argument may hold, and how a call lays them out.
//!
//! A schema is one line such as `aten::add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) ->
//! Tensor(a!)`. [`Schema::parse`] reads one without copying text; [`lookup`] finds those of the operators exporters
//! emit. Whoever checks, builds or runs a kernel call asks here, so that all agree on what a call looks like.
//!
//! Invariant: parsing answers any text with a schema or a positioned error, in time linear in the text.

mod items;
mod literal;
mod parse;
mod schema;
mod table;

/// Bytes that `name.overload` has at most: what runtimes look up.
pub const MAX_NAME: usize = 99;

pub use items::Items;
pub use literal::Literal;
pub use parse::{SchemaError, SchemaErrorKind};
pub use schema::{Argument, ArgumentKind, List, Schema, Trailing};
pub use table::{Operator, all, find, in_programs, lookup, lookup_overload, overloads, position, split_known};
