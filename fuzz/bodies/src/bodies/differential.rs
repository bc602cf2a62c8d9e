//! Our reader against two independent ones: the official verifier, and planus's generated code.
//!
//! Readers may differ in what they refuse. What must not happen: that we accept what the official verifier refuses,
//! that planus cannot read what we accept (unless an enumeration it closes has grown), or that two readings differ.

use edgepack_builder::sink::flatbuffer;
use edgepack_format::ptd::Generation;
use edgepack_format::row::Table as _;
use edgepack_format::{FileKind, bundle, detect, ptd, pte, trace, wire};
use flatbuffers::InvalidFlatbuffer;
use planus::errors::ErrorKind;
use planus::{Builder, ReadAsRoot};
use serde::Serialize;

use super::rows::{by_kind, root_offset, sound};
use crate::{generated, official};

/// See [`BODIES`](super::BODIES).
pub fn differential(data: &[u8]) {
    macro_rules! visit {
        ($data:expr, $module:ident::$row:ident) => {
            if let Some(root) = sound::<$module::$row<'_>>($data) {
                match official::verify($data, root_offset($data), $module::$row::DESC) {
                    Ok(()) => {}
                    // A tag without a value is not a structural error to us: the formats have rules for it.
                    Err(InvalidFlatbuffer::InconsistentUnion { .. }) => return,
                    Err(error) => panic!("we accept it, the official verifier does not: {error:?}"),
                }
                let row = $module::$row::decode(root).expect("sound structure is readable");
                compare!($data, row, $module::$row);
            }
        };
    }
    by_kind!(data, visit);
}

macro_rules! compare {
    ($data:expr, $row:expr, pte::Program) => {
        compare!(@ $data, $row, program::ProgramRef, Program, pte::Program)
    };
    ($data:expr, $row:expr, ptd::FlatTensor) => {
        compare!(@ $data, $row, flat_tensor::FlatTensorRef, FlatTensor, ptd::FlatTensor)
    };
    ($data:expr, $row:expr, ptd::LegacyFlatTensor) => {
        compare!(@ $data, $row, flat_tensor_legacy::FlatTensorRef, FlatTensor, ptd::LegacyFlatTensor)
    };
    ($data:expr, $row:expr, ptd::FlatData) => {
        compare!(@ $data, $row, flat_data::FlatDataRef, FlatData, ptd::FlatData)
    };
    ($data:expr, $row:expr, bundle::BundledProgram) => {
        compare!(@ $data, $row, bundled_program::BundledProgramRef, BundledProgram, bundle::BundledProgram)
    };
    ($data:expr, $row:expr, trace::ETDump) => {
        compare!(@ $data, $row, etdump::EtDumpRef, EtDump, trace::ETDump)
    };
    (@ $data:expr, $row:expr, $namespace:ident::$reference:ident, $owned:ident, $module:ident::$ours:ident) => {{
        let through = |bytes: &[u8]| {
            let read = generated::$namespace::$reference::read_as_root(bytes)
                .and_then(generated::$namespace::$owned::try_from)?;
            Ok::<_, planus::Error>(Builder::new().finish(&read, None).to_vec())
        };
        match through(&$data[root_offset($data)..]) {
            Ok(again) => {
                let root = wire::Table::root(&again).expect("planus writes a root");
                let theirs = $module::$ours::decode(root).expect("planus writes what we read");
                // Planus takes -0.0 for the default 0.0, so rows may differ; what it makes of ours must not.
                let rewritten = || through(&flatbuffer(&$row, *b"FUZZ").expect("what was read can be written"));
                let same = theirs == $row || rewritten().is_ok_and(|rewritten| rewritten == again);
                assert!(same, "the two readings differ: {}", difference(&$row, &theirs));
            }
            Err(error) => assert!(is_stricter(&error.error_kind), "we accept it, planus does not: {error}"),
        }
    }};
}
use compare;

/// Returns whether this is an error that only planus reports: enumerations and unions are closed to it, a vtable must
/// reach to both slots of a union or to none, and a table must be longer than the offset it starts with. The official
/// verifier allows all of it.
fn is_stricter(error: &ErrorKind) -> bool {
    matches!(
        error,
        ErrorKind::UnknownEnumTag { .. }
            | ErrorKind::UnknownUnionTag { .. }
            | ErrorKind::InvalidVtableLength { .. }
            | ErrorKind::InvalidOffset
    )
}

/// Parts of both rows as JSON, from shortly before the first difference.
fn difference<T: Serialize>(ours: &T, theirs: &T) -> String {
    let text = |row| serde_json::to_string(row).expect("readable rows print");
    let (ours, theirs) = (text(ours), text(theirs));
    let at = ours.bytes().zip(theirs.bytes()).take_while(|(a, b)| a == b).count().saturating_sub(80);
    let part = |text: &str| {
        String::from_utf8_lossy(text.as_bytes().get(at..).unwrap_or_default()).chars().take(200).collect::<String>()
    };
    format!("{} against {}", part(&ours), part(&theirs))
}
