//! Strategies for `proptest`: any input is generated, and what fails shrinks as its input does, towards fewer and
//! plainer calls.

use std::fmt;

use arbitrary::{Arbitrary, Unstructured};
use edgepack_format::row::Table;
use proptest::collection::vec;
use proptest::prelude::{Strategy, any};

use crate::generate::{BuiltProgram, DataFile, Generator, ProgramFile, Row};

/// Bytes of input at most.
const INPUT: usize = 256;

/// Programs that call any operator that exporters emit, on arguments of accepted kinds.
pub fn programs() -> impl Strategy<Value = ProgramFile> {
    arbitraries(INPUT)
}

/// Programs of a generator with operators or backends of the caller's.
pub fn programs_of(generator: Generator) -> impl Strategy<Value = ProgramFile> {
    vec(any::<u8>(), 0..INPUT).prop_map(move |input| generator.program(&mut Unstructured::new(&input)))
}

/// Programs that the builder made.
pub fn built_programs() -> impl Strategy<Value = BuiltProgram> {
    arbitraries(INPUT)
}

/// Data files.
pub fn data_files() -> impl Strategy<Value = DataFile> {
    arbitraries(INPUT)
}

/// Rows of a table: `rows::<edgepack_format::pte::Program<'static>>()`.
pub fn rows<T: Table<'static> + 'static>() -> impl Strategy<Value = Row<T>> {
    arbitraries(4 * INPUT)
}

/// Any type that is [`Arbitrary`], from fewer than `bytes` bytes of input.
pub fn arbitraries<T: for<'a> Arbitrary<'a> + fmt::Debug>(bytes: usize) -> impl Strategy<Value = T> {
    vec(any::<u8>(), 0..bytes.max(1))
        .prop_filter_map("input that generates nothing", |input| T::arbitrary(&mut Unstructured::new(&input)).ok())
}
