//! Operators: their schemas, what each argument may hold, and how a call lays them out.
//!
//! A schema is one line such as `aten::add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) ->
//! Tensor(a!)`. [`Schema::parse`] reads one without copying text; [`lookup`] finds those of the operators exporters
//! emit. Whoever checks, builds or runs a kernel call asks here, so that all agree on what a call looks like.
//!
//! The feature `operators`, which is on by default, brings the operators that no program holds and the facts that exporters
//! and optimisers ask for ([`all`], [`find`], [`overloads`] and most of [`Operator`]).
//!
//! Invariant: parsing answers any text with a schema or a positioned error, in time linear in the text.

#[cfg(feature = "operators")]
mod facts;
mod items;
mod literal;
mod parse;
#[cfg(any(test, not(feature = "operators")))]
mod programs;
mod schema;
mod table;

/// Bytes that `name.overload` has at most: what runtimes look up.
pub const MAX_NAME: usize = 99;

#[cfg(feature = "operators")]
pub use facts::{all, find, overloads};
pub use items::Items;
pub use literal::Literal;
pub use parse::{SchemaError, SchemaErrorKind};
pub use schema::{Argument, ArgumentKind, List, Schema, Trailing};
pub use table::{Operator, in_programs, lookup, lookup_overload, position, split_known};
