//! Rows of any structurally sound buffer, whatever they mean: written and read again, directly and through JSON.

use edgepack_builder::sink::flatbuffer;
use edgepack_format::check::{Checker, Path, StructureRules};
use edgepack_format::ptd::Generation;
use edgepack_format::row::Table;
use edgepack_format::{FileKind, bundle, detect, ptd, pte, rules, trace, wire};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::small_limits;

const RULES: StructureRules = StructureRules {
    malformed: &rules::pte::MALFORMED,
    misaligned: &rules::pte::MISALIGNED,
    text: &rules::pte::TEXT,
    limits: &rules::pte::LIMITS,
};

/// Position of the root offset of such a file.
pub(crate) fn root_offset(data: &[u8]) -> usize {
    if detect(data) == FileKind::Trace { trace::PREFIX_LEN } else { 0 }
}

/// The root table, if everything below it is structurally sound and expands to little.
pub(crate) fn sound<'a, T: Table<'a>>(data: &'a [u8]) -> Option<wire::Table<'a>> {
    let root = wire::Table::root_at(data, root_offset(data)).ok()?;
    let mut checker = Checker::new(&small_limits(data), RULES);
    checker.table::<T>(root, &Path::ROOT);
    (!checker.findings.has_errors()).then_some(root)
}

/// Names the row type of a file's root and hands it on.
macro_rules! by_kind {
    ($data:expr, $visit:ident) => {
        match detect($data) {
            FileKind::Data => match wire::Table::root($data).map(|root| Generation::of(&root)) {
                Ok(Generation::A | Generation::B) => $visit!($data, ptd::LegacyFlatTensor),
                _ => $visit!($data, ptd::FlatTensor),
            },
            FileKind::FlatData => $visit!($data, ptd::FlatData),
            FileKind::Bundle => $visit!($data, bundle::BundledProgram),
            FileKind::Trace => $visit!($data, trace::ETDump),
            _ => $visit!($data, pte::Program),
        }
    };
}
pub(crate) use by_kind;

fn decode<'a, T: Table<'a>>(bytes: &'a [u8]) -> T {
    let root = wire::Table::root(bytes).expect("a written buffer has a root");
    T::decode(root).expect("a written buffer is readable")
}

/// See [`BODIES`](super::BODIES).
pub fn roundtrip(data: &[u8]) {
    macro_rules! visit {
        ($data:expr, $module:ident::$row:ident) => {
            if let Some(root) = sound::<$module::$row<'_>>($data) {
                let row = $module::$row::decode(root).expect("sound structure is readable");
                let written = flatbuffer(&row, *b"FUZZ").expect("what was read can be written");
                assert!(sound::<$module::$row<'_>>(&written).is_some() || written.len() > $data.len());
                let again: $module::$row<'_> = decode(&written);
                assert!(again == row, "written and read again, the rows differ");
                assert!(flatbuffer(&again, *b"FUZZ").expect("as before") == written, "the same rows, other bytes");
            }
        };
    }
    by_kind!(data, visit);
}

/// JSON has one NaN, so what is compared is what has been through it once.
pub fn json(data: &[u8]) {
    fn owned<T: DeserializeOwned>(text: &str) -> T {
        serde_json::from_str(text).unwrap_or_else(|error| panic!("{error} in {text}"))
    }
    fn text<T: Serialize>(row: &T) -> String {
        serde_json::to_string(row).expect("readable rows print")
    }
    macro_rules! visit {
        ($data:expr, $module:ident::$row:ident) => {
            if let Some(root) = sound::<$module::$row<'_>>($data) {
                let first = text(&$module::$row::decode(root).expect("sound structure is readable"));
                let row: $module::$row<'static> = owned(&first);
                assert_eq!(text(&row), first);
                let written = flatbuffer(&row, *b"FUZZ").expect("rows from JSON can be written");
                assert!(decode::<$module::$row<'_>>(&written) == row, "rows from JSON, written and read, differ");
            }
        };
    }
    by_kind!(data, visit);
}
