//! What fuzzing runs: bodies, seeds, a generator of programs and mutators.
//!
//! A [body](bodies) is a plain function of bytes that panics if a promise is broken, so everything can drive it: the
//! runner of this crate on a stable toolchain, libFuzzer (`fuzz/targets`), and a test that replays seeds and findings.
//! Everything here is a function of its input: the same bytes do the same, the same seed number leads to the same
//! campaign.

pub mod apart;
pub mod assembly;
pub mod bodies;
pub mod exported;
mod generated;
pub mod havoc;
pub mod language;
pub mod mutate;
pub mod official;
pub mod rng;
pub mod seeds;
pub mod shapes;
pub mod shrink;
pub mod smith;
pub mod tape;

pub use bodies::{BODIES, Body, body};
