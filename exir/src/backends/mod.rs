//! Backends whose payloads are made here: each a partitioner and a preprocessor over the traits that any backend author
//! uses.

pub mod xnnpack;
