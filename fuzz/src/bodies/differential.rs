//! Our reader against two independent ones: the official verifier, and planus's generated code.
//!
//! Readers may differ in what they refuse. What must not happen: that we accept what the official verifier refuses,
//! that planus cannot read what we accept (unless an enumeration it closes has grown), or that two readings differ.

use edgepack_format::ptd::Generation;
use edgepack_format::row::Table as _;
use edgepack_format::{FileKind, bundle, detect, ptd, pte, trace, wire};
use flatbuffers::InvalidFlatbuffer;
use planus::errors::ErrorKind;
use planus::{Builder, ReadAsRoot};

use super::rows::{by_kind, root_offset, sound};
use crate::{generated, official};

/// See [`BODIES`](super::BODIES).
pub fn differential(data: &[u8]) {
    macro_rules! visit {
        ($data:expr, $module:ident::$row:ident) => {
            if let Some(root) = sound::<$module::$row<'_>>($data) {
                match official::verify($data, root_offset($data), $module::$row::DESC) {
                    // A tag without a value is no structural error to us: the formats have rules for it.
                    Ok(()) | Err(InvalidFlatbuffer::InconsistentUnion { .. }) => {}
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
        let read = generated::$namespace::$reference::read_as_root(&$data[root_offset($data)..])
            .and_then(generated::$namespace::$owned::try_from);
        match read {
            Ok(read) => {
                let again = Builder::new().finish(&read, None).to_vec();
                let root = wire::Table::root(&again).expect("planus writes a root");
                let theirs = $module::$ours::decode(root).expect("planus writes what we read");
                assert!(theirs == $row, "the two readings differ");
            }
            Err(error) => assert!(
                matches!(error.error_kind, ErrorKind::UnknownEnumTag { .. } | ErrorKind::UnknownUnionTag { .. }),
                "we accept it, planus does not: {error}"
            ),
        }
    }};
}
use compare;
