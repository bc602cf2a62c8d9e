//! Reading is the inverse of writing, for every table: random rows survive our writer and
//! reader, JSON, planus's generated code and the official verifier; real files survive no damage unnoticed by a panic.

use std::fmt::Debug;
use std::path::Path;

use edgepack_builder::raw;
use edgepack_builder::sink::flatbuffer;
use edgepack_builder::xnnpack::{Container, write};
use edgepack_format::check::{Checker, Path as Place, StructureRules};
use edgepack_format::extent::FileExtent;
use edgepack_format::finding::Findings;
use edgepack_format::limits::Limits;
use edgepack_format::row::Table;
use edgepack_format::{FileKind, bundle, darwinn, detect, ptd, pte, rules, tflite, trace, wire, xnnpack};
use edgepack_smith::arbitrary::Unstructured;
use edgepack_smith::{Values, row};
use edgepack_tests::schema_gen::generated;
use planus::{Builder, ReadAsRoot};
use proptest::collection::vec;
use proptest::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;

const RULES: StructureRules = StructureRules {
    malformed: &rules::ptd::MALFORMED,
    misaligned: &rules::ptd::MISALIGNED,
    text: &rules::ptd::TEXT,
    limits: &rules::ptd::LIMITS,
};

fn decode<'a, T: Table<'a>>(bytes: &'a [u8]) -> T {
    T::decode(wire::Table::root(bytes).unwrap()).unwrap()
}

/// A row that owns nothing comes from the first buffer; all others are made from it.
macro_rules! round_trips {
    ($($test:ident: $row:ident in $namespace:ident, planus $from:ident $reference:ident $owned:ident;)*) => {
        $(mod $test {
            use super::*;
            use super::$namespace::$row;

            fn through_json(row: &$row<'_>) -> $row<'static> {
                fn owned<T: DeserializeOwned>(json: &str) -> T {
                    serde_json::from_str(json).unwrap_or_else(|error| panic!("{error} in {json}"))
                }
                fn text<T: Serialize>(row: &T) -> String {
                    serde_json::to_string(row).unwrap()
                }
                owned(&text(row))
            }

            proptest! {
                #[test]
                fn our_writer_and_json(input in vec(any::<u8>(), 0..600)) {
                    let first = row($row::DESC, Values::Any, &mut Unstructured::new(&input)).unwrap();
                    let row: $row<'_> = decode(&first);
                    check::<$row<'_>>(&first);
                    let second = flatbuffer(&row, *b"TEST").unwrap();
                    check::<$row<'_>>(&second);
                    let again: $row<'_> = decode(&second);
                    prop_assert_eq!(&again, &row);
                    prop_assert!(flatbuffer(&again, *b"TEST").unwrap() == second, "the same rows, other bytes");
                    let json = through_json(&row);
                    prop_assert_eq!(&json, &row);
                    prop_assert!(flatbuffer(&json, *b"TEST").unwrap() == second, "rows from JSON, other bytes");
                }

                #[test]
                fn the_independent_reader_and_writer(input in vec(any::<u8>(), 0..600)) {
                    let bytes = row($row::DESC, Values::Portable, &mut Unstructured::new(&input)).unwrap();
                    let row: $row<'_> = decode(&bytes);
                    let ours = flatbuffer(&row, *b"TEST").unwrap();
                    let read = generated::$from::$reference::read_as_root(&ours)
                        .and_then(generated::$from::$owned::try_from);
                    let read = read.unwrap_or_else(|error| panic!("planus: {error}"));
                    let theirs = Builder::new().finish(&read, None).to_vec();
                    prop_assert_eq!(&decode::<$row<'_>>(&theirs), &row);
                }

                #[test]
                fn damage_is_answered(input in vec(any::<u8>(), 0..400), at: usize, with: u8, cut: usize) {
                    let mut bytes = row($row::DESC, Values::Any, &mut Unstructured::new(&input)).unwrap();
                    let at = at % bytes.len();
                    bytes[at] ^= with;
                    bytes.truncate(bytes.len() - cut % 16);
                    let Ok(root) = wire::Table::root(&bytes) else { return Ok(()) };
                    let mut checker = Checker::new(&Limits::hostile(), RULES);
                    checker.table::<$row<'_>>(root, &Place::ROOT);
                    if !checker.findings.has_errors() {
                        // Structure without errors can be read to its last leaf, so it can be written again.
                        let row = $row::decode(root).unwrap();
                        let again = flatbuffer(&row, *b"TEST").unwrap();
                        prop_assert_eq!(&decode::<$row<'_>>(&again), &row);
                    }
                }
            }
        })*
    };
}

/// Checks that bytes of our writer satisfy the structural rules, alignment included.
fn check<'a, T: Table<'a>>(bytes: &'a [u8]) {
    let mut checker = Checker::new(&Limits::DEFAULT, RULES);
    checker.table::<T>(wire::Table::root(bytes).unwrap(), &Place::ROOT);
    assert!(checker.findings.is_empty(), "{}", checker.findings);
}

round_trips! {
    program: Program in pte, planus program ProgramRef Program;
    flat_tensor: FlatTensor in ptd, planus flat_tensor FlatTensorRef FlatTensor;
    flat_tensor_legacy: LegacyFlatTensor in ptd, planus flat_tensor_legacy FlatTensorRef FlatTensor;
    flat_data: FlatData in ptd, planus flat_data FlatDataRef FlatData;
    bundled_program: BundledProgram in bundle, planus bundled_program BundledProgramRef BundledProgram;
    etdump: ETDump in trace, planus etdump EtDumpRef EtDump;
    darwinn_package: Package in darwinn, planus darwinn PackageRef Package;
    darwinn_multi_executable: MultiExecutable in darwinn, planus darwinn MultiExecutableRef MultiExecutable;
    tflite_model: Model in tflite, planus tflite ModelRef Model;
    xnnpack_graph: Graph in xnnpack, planus xnnpack GraphRef Graph;
    darwinn_executable: Executable in darwinn, planus darwinn ExecutableRef Executable;
}

/// A hand-made reader of `FlatTensor` on the official crate: only its verifier is used.
mod official {
    use flatbuffers::{ForwardsUOffset, InvalidFlatbuffer, Vector, Verifiable, Verifier};

    macro_rules! tables {
        ($($table:ident { $($slot:literal: $ty:ty,)* })*) => {
            $(
                pub struct $table;
                impl Verifiable for $table {
                    fn run_verifier(v: &mut Verifier<'_, '_>, pos: usize) -> Result<(), InvalidFlatbuffer> {
                        v.visit_table(pos)?$(.visit_field::<$ty>(stringify!($slot), 4 + 2 * $slot, false)?)*.finish();
                        Ok(())
                    }
                }
            )*
        };
    }

    type Offset<T> = ForwardsUOffset<T>;
    type Tables<'a, T> = Offset<Vector<'a, Offset<T>>>;

    tables! {
        Layout { 0: i8, 1: Offset<Vector<'_, i32>>, 2: Offset<Vector<'_, u8>>, }
        Segment { 0: u64, 1: u64, }
        Named { 0: Offset<&str>, 1: u32, 2: Offset<Layout>, }
        FlatTensor { 0: u32, 1: Tables<'_, Segment>, 2: Tables<'_, Named>, }
    }
}

proptest! {
    #[test]
    fn the_official_verifier_accepts_what_we_write(input in vec(any::<u8>(), 0..600)) {
        use flatbuffers::{ForwardsUOffset, Verifiable, Verifier, VerifierOptions};
        let bytes = row(ptd::FlatTensor::DESC, Values::Any, &mut Unstructured::new(&input)).unwrap();
        let options = VerifierOptions::default();
        let mut verifier = Verifier::new(&options, &bytes);
        prop_assert_eq!(ForwardsUOffset::<official::FlatTensor>::run_verifier(&mut verifier, 0), Ok(()));
    }

    #[test]
    fn payloads_are_written_and_read_in_every_container(input in vec(any::<u8>(), 0..600), region in vec(any::<u8>(), 0..40)) {
        let bytes = row(xnnpack::Graph::DESC, Values::Any, &mut Unstructured::new(&input)).unwrap();
        let graph: xnnpack::Graph<'_> = decode(&bytes);
        for container in [Container::Header, Container::OldIdentifier, Container::Bare] {
            let written = write(&graph, container, &region).unwrap();
            let flatbuffer = match container {
                // An empty graph is shorter than any payload may be.
                Container::Bare => &written[..],
                _ => {
                    let header = xnnpack::Header::read(&written).unwrap().unwrap();
                    prop_assert_eq!(&written[header.constants_offset as usize..], &region[..]);
                    &written[header.flatbuffer_offset as usize..header.flatbuffer_end() as usize]
                }
            };
            check::<xnnpack::Graph<'_>>(flatbuffer);
            prop_assert_eq!(&decode::<xnnpack::Graph<'_>>(flatbuffer), &graph);
        }
    }

    #[test]
    fn detection_answers_anything(bytes in vec(any::<u8>(), 0..600)) {
        prop_assert!(!detect(&bytes).name().is_empty());
    }
}

fn corpus(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/corpus").join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Reads a file as what it is and, if it is accepted, everything in it.
fn read(kind: FileKind, bytes: &[u8]) -> Result<(), Findings> {
    let (extent, limits) = (FileExtent::of(bytes), Limits::hostile());
    match kind {
        FileKind::Program => {
            let program = pte::ProgramRef::parse(bytes, extent, &limits)?;
            let row = program.program();
            let again = raw::program(row, &[], &raw::Options::DEFAULT).unwrap();
            assert_eq!(decode::<pte::Program<'_>>(&again), *row);
            for index in 0..row.segments.as_ref().map_or(0, |segments| segments.len()) {
                let range = program.segment_range(index as u32).expect("a verified segment");
                assert!(range.end <= extent.len || range.is_empty(), "{range:?}");
            }
        }
        FileKind::Data => {
            let data = ptd::DataRef::parse_as(bytes, extent, &limits, ptd::Accept::ALL)?;
            for (index, key) in data.keys().iter().enumerate() {
                let entry = data.entry(index).expect("a verified entry");
                assert!(entry.range.end <= extent.len, "{entry:?}");
                assert_eq!(data.lookup(key).map(|found| found.key), Some(*key));
                assert!(
                    entry.layout.is_none_or(|layout| layout.byte_len() as u64 <= entry.range.end - entry.range.start)
                );
            }
            assert!(data.lookup("no such key").is_none());
        }
        FileKind::Bundle => {
            let bundle = bundle::BundleRef::parse(bytes, &limits)?;
            bundle.program().expect("a verified program");
            assert_eq!(bundle.program_range().start % 32, 0);
            for suite in bundle.suites().iter() {
                let suite = suite.expect("a verified suite");
                assert!(bundle.cases(&suite.method_name.expect("a verified name")).is_some());
            }
        }
        FileKind::Trace => {
            let trace = trace::TraceRef::parse(bytes, &limits)?;
            serde_json::to_string(trace.root()).expect("a verified trace is readable");
        }
        other => panic!("{other} is none of the family"),
    }
    Ok(())
}

fn answered(result: &Result<(), Findings>, what: impl Debug) -> bool {
    match result {
        Ok(()) => true,
        Err(findings) => {
            assert!(findings.has_errors() && findings.first_error().is_some(), "{what:?}: refused without an error");
            false
        }
    }
}

/// Truncated at every offset, and with every bit flipped in turn.
fn damage(name: &str, kind: FileKind, every_cut_is_noticed: bool) {
    let whole = corpus(name);
    assert_eq!(detect(&whole), kind, "{name}");
    if let Err(findings) = read(kind, &whole) {
        panic!("{name}:\n{findings}");
    }
    for len in 0..whole.len() {
        let accepted = answered(&read(kind, &whole[..len]), (name, len));
        assert!(!(accepted && every_cut_is_noticed), "{name}: {len} of {} bytes are accepted", whole.len());
    }
    let mut refused = 0usize;
    let mut bytes = whole.clone();
    for at in 0..whole.len() {
        for bit in 0..8 {
            bytes[at] ^= 1 << bit;
            refused += usize::from(!answered(&read(kind, &bytes), (name, at, bit)));
            bytes[at] ^= 1 << bit;
        }
    }
    // Padding, text, and data may change freely; offsets, vtables and headers may not.
    assert!(refused * 20 > whole.len() * 8, "{name}: only {refused} flips of {} are noticed", whole.len() * 8);
}

#[test]
fn damaged_programs() {
    damage("models/cond_portable.pte", FileKind::Program, true);
}

#[test]
fn damaged_data_files() {
    damage("models/external_two_files_portable.hidden.ptd", FileKind::Data, true);
    damage("models/multimethod_external_portable._default_external_constant.ptd", FileKind::Data, true);
}

#[test]
fn damaged_bundles() {
    damage("bundle/linear.bpte", FileKind::Bundle, false);
}

#[test]
fn damaged_traces() {
    damage("trace/linear.etdp", FileKind::Trace, true);
}
