//! What the tests share.

pub mod assemble;
pub mod built;
pub mod hostile;
pub mod operators;
pub mod roundtrip;
pub mod schema_gen;
