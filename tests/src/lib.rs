//! What the tests share.

pub mod assemble;
pub mod operators;
pub mod schema_gen;
