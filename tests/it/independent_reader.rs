//! Reads every real file twice: with the rows of `edgepack-format`, and with code that planus generated from the
//! schemas. What planus read and wrote again must be, row for row, what the rows say about the original.

#[path = "../../builder/tests/xnnpack/corpus.rs"]
#[allow(dead_code, reason = "another test asks for the surroundings of payloads too")]
mod payloads;

use std::path::{Path, PathBuf};

use edgepack_format::limits::Limits;
use edgepack_format::ptd::Generation;
use edgepack_format::row::Table as _;
use edgepack_format::{bundle, ptd, pte, trace, wire, xnnpack};
use edgepack_tests::files_in;
use edgepack_tests::schema_gen::generated;
use planus::{Builder, ReadAsRoot};

/// Every file of the corpus with this extension.
fn corpus(extension: &str) -> Vec<PathBuf> {
    let mut out = files_in(vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("data/corpus")]);
    out.retain(|path| path.extension().is_some_and(|found| found == extension));
    assert!(!out.is_empty(), "the corpus has .{extension} files");
    out
}

/// Compares the two readings of one flatbuffer.
macro_rules! compare {
    ($path:expr, $bytes:expr, $namespace:ident :: $reference:ident, $owned:ident, $row:ty) => {{
        let (path, bytes): (&Path, &[u8]) = ($path, $bytes);
        let read = generated::$namespace::$reference::read_as_root(bytes)
            .and_then(generated::$namespace::$owned::try_from)
            .unwrap_or_else(|error| panic!("{}: planus: {error}", path.display()));
        let again = Builder::new().finish(&read, None).to_vec();
        let decode = |bytes| <$row>::decode(wire::Table::root(bytes)?);
        let ours = decode(bytes).unwrap_or_else(|error| panic!("{}: {error:?}", path.display()));
        let theirs = decode(&again).unwrap_or_else(|error| panic!("{} again: {error:?}", path.display()));
        assert!(ours == theirs, "{}: the two readings differ", path.display());
    }};
}

#[test]
fn programs() {
    for path in corpus("pte") {
        let bytes = std::fs::read(&path).expect("a file");
        compare!(&path, &bytes, program::ProgramRef, Program, pte::Program<'_>);
    }
}

#[test]
fn data_files() {
    for path in corpus("ptd") {
        let bytes = std::fs::read(&path).expect("a file");
        if bytes.get(4..8) == Some(&ptd::FLAT_DATA_IDENTIFIER) {
            compare!(&path, &bytes, flat_data::FlatDataRef, FlatData, ptd::FlatData<'_>);
            continue;
        }
        let root = wire::Table::root(&bytes).expect("a root table");
        match Generation::of(&root) {
            Generation::C => compare!(&path, &bytes, flat_tensor::FlatTensorRef, FlatTensor, ptd::FlatTensor<'_>),
            _ => compare!(&path, &bytes, flat_tensor_legacy::FlatTensorRef, FlatTensor, ptd::LegacyFlatTensor<'_>),
        }
    }
}

#[test]
fn bundled_programs() {
    for path in corpus("bpte") {
        let bytes = std::fs::read(&path).expect("a file");
        compare!(&path, &bytes, bundled_program::BundledProgramRef, BundledProgram, bundle::BundledProgram<'_>);
    }
}

#[test]
fn traces() {
    for path in corpus("etdp") {
        let bytes = std::fs::read(&path).expect("a file");
        // A length word comes before the flatbuffer.
        compare!(&path, &bytes[4..], etdump::EtDumpRef, EtDump, trace::ETDump<'_>);
    }
}

#[test]
fn xnnpack_payloads() {
    let found = payloads::payloads();
    for found in &found {
        let payload = xnnpack::Payload::parse(&found.bytes, &Limits::DEFAULT).expect("a payload");
        let header = payload.header().expect("a header");
        let flatbuffer = &found.bytes[header.flatbuffer_offset as usize..header.flatbuffer_end() as usize];
        compare!(Path::new(&found.name), flatbuffer, xnnpack::GraphRef, Graph, xnnpack::Graph<'_>);
    }
    println!("{} payloads", found.len());
}
