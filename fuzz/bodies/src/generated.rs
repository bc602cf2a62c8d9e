//! The readers and writers that planus generated from the schemas, shared with the tests.
#![allow(missing_docs, rust_2018_idioms, unused_qualifications, dead_code, clippy::all)]
#![allow(clippy::undocumented_unsafe_blocks, reason = "planus writes vectors with unsafe code and no comments")]

include!("../../../tests/support/generated/schema.rs");
