//! Bodies that fuzzing runs, and the seeds that campaigns begin with.
//!
//! A [body](bodies) is a plain function of bytes that panics if a promise is broken, so everything can drive it: the
//! runner of this crate on a stable toolchain, libFuzzer (the package around this one, see [`target!`]), and a test that
//! replays seeds and findings. Everything here is a function of its input: the same bytes do the same, the same seed
//! number leads to the same campaign. Generators and mutators are those of `edgepack-smith`.

pub mod apart;
pub mod archives;
pub mod bodies;
#[cfg(test)]
mod dictionaries;
pub mod export;
mod generated;
pub mod official;
pub mod seeds;
#[cfg(test)]
mod targets;

pub use bodies::{BODIES, Body, body};
use edgepack_smith::Rng;

/// Defines the libFuzzer target of a body: `edgepack_fuzz::target!(pte);` is all that its file says.
#[macro_export]
macro_rules! target {
    ($name:ident) => {
        ::libfuzzer_sys::fuzz_target!(init: $crate::export::if_asked(stringify!($name)), |input: &[u8]| {
            $crate::run(stringify!($name), input)
        });

        ::libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
            match $crate::mutated(stringify!($name), &data[..size], max_size, seed) {
                Some(input) => {
                    data[..input.len()].copy_from_slice(&input);
                    input.len()
                }
                None => ::libfuzzer_sys::fuzzer_mutate(data, size, max_size),
            }
        });
    };
}

/// Runs the body of this name.
///
/// # Panics
///
/// If there is none, or if its promise is broken.
pub fn run(name: &str, input: &[u8]) {
    let body = body(name).unwrap_or_else(|| panic!("there is no body {name}"));
    (body.run)(input);
}

/// A mutation that knows the format, for libFuzzer; `None` where its own serve, and for every second seed.
pub fn mutated(name: &str, input: &[u8], max_size: usize, seed: u32) -> Option<Vec<u8>> {
    let body = body(name).filter(|_| seed % 2 == 1)?;
    let mutated = body.mutated(input, &mut Rng::new(seed.into()))?;
    (mutated.len() <= max_size).then_some(mutated)
}
