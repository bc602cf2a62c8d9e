//! Generates, mutates and shrinks on-device model packages: for fuzzing, property tests, and for making a failure small.
//!
//! - **Generate.** Every input is some valid file. [`ProgramFile`], [`BuiltProgram`], [`DataFile`] and [`Row`] are
//!   [`Arbitrary`](arbitrary::Arbitrary), so a libFuzzer target takes them as they are; with the feature `proptest`,
//!   `strategy` has them as strategies. A [`Generator`] calls operators and backends of your own.
//! - **Mutate.** [`mutate::variant`] breaks a file where it matters: numbers, offsets, lengths, vtables, union tags, rows.
//! - **Shrink.** [`shrink::shrink`] removes what it can from a file while a test of yours still says yes.
//!
//! Everything is a function of its input: the same bytes, or the same seed of an [`Rng`], give the same file on every
//! machine.
//!
//! ```
//! use edgepack_format::{extent::FileExtent, limits::Limits, pte::ProgramRef};
//! use edgepack_smith::{Generator, Rng, mutate, shrink};
//!
//! let file = Generator::with_known_operators().program_of(7).bytes;
//! let opens = |bytes: &[u8]| ProgramRef::parse(bytes, FileExtent::of(bytes), &Limits::hostile()).is_ok();
//! assert!(opens(&file));
//!
//! let mut rng = Rng::new(1);
//! let broken = (0..100).map(|_| mutate::variant(&file, &mut rng)).find(|bytes| !opens(bytes)).unwrap();
//! let small = shrink::shrink(&broken, |bytes| !opens(bytes)).unwrap();
//! assert!(small.len() < broken.len());
//! ```
#![forbid(unsafe_code)]

mod decisions;
pub mod dictionary;
mod generate;
pub mod mutate;
mod rng;
pub mod shrink;
#[cfg(feature = "proptest")]
pub mod strategy;

pub use arbitrary;
pub use decisions::Decisions;
pub use generate::{
    BuiltProgram, DataFile, DelegateCall, Delegates, Generator, ProgramFile, Row, Values, built_program, row,
};
pub use rng::Rng;
