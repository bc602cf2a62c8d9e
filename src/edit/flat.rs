//! Flatbuffers at recorded places: rows written into a layout, and the layout as a document has it.
//!
//! A document is untrusted: what is written at its places is read again, and has the rows it was made of or is not used.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use edgepack_builder::flat_layout::{FlatLayout, Object, ObjectKind};
use edgepack_builder::sink;
use edgepack_format::check::{Checker, Path as Place, StructureRules};
use edgepack_format::limits::Limits;
use edgepack_format::row::{Blob, Table};
use edgepack_format::{rules, wire};
use serde::{Deserialize, Serialize};

use super::error::Error;

/// Objects in a line of the document.
const PER_LINE: usize = 12;

/// Layout of one flatbuffer that is a level of a compiled model.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(try_from = "FlatText", into = "FlatText")]
pub(super) struct Flat(pub(super) FlatLayout);

impl Flat {
    /// Layout of the buffer that this row is the root of.
    pub(super) fn of<'a, T: Table<'a>>(row: &T, bytes: &[u8]) -> Result<Self, Error> {
        match FlatLayout::read(row, bytes) {
            Ok(layout) => Ok(Flat(layout)),
            Err(error) => Err(Error::refused("layout", error.to_string())),
        }
    }
}

/// Writes rows at their places; what was written is checked.
pub(super) fn placed<'a, T: Table<'a>>(
    flat: &FlatLayout,
    row: &T,
    agrees: impl FnOnce(&[u8]) -> Result<bool, Error>,
) -> Result<Vec<u8>, Error> {
    let bytes = flat.write(row).map_err(|error| Error::refused("places", error.to_string()))?;
    match agrees(&bytes)? {
        true => Ok(bytes),
        false => Err(Error::refused("places", "at these places the rows cover each other, or one is not stored")),
    }
}

/// Returns whether a buffer has exactly these rows.
pub(super) fn agrees<'a, T: Table<'a> + PartialEq>(bytes: &'a [u8], row: &T) -> Result<bool, Error> {
    let rules = StructureRules {
        malformed: &rules::pte::MALFORMED,
        misaligned: &rules::pte::MISALIGNED,
        text: &rules::pte::TEXT,
        limits: &rules::pte::LIMITS,
    };
    let root = wire::Table::root(bytes)?;
    let mut checker = Checker::new(&Limits::DEFAULT.unfolding(bytes.len() as u64), rules);
    checker.table::<T>(root, &Place::ROOT);
    if checker.findings.has_errors() {
        return Ok(false);
    }
    let found = T::decode(root)?;
    if found == *row {
        return Ok(true);
    }
    // A number that is not one does not equal itself: then the bytes count that our writer makes of both.
    Ok(sink::flatbuffer(&found, [0; 4])? == sink::flatbuffer(row, [0; 4])?)
}

/// A layout in a document. Numbers are hexadecimal, but for the length.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FlatText {
    /// Bytes of the flatbuffer.
    pub(super) head: u32,
    /// `PLACE: WORDS`.
    pub(super) vtables: Vec<String>,
    /// A letter for the kind, the place, and for tables `/` and the place of the vtable.
    pub(super) objects: Vec<String>,
    /// Bytes that belong to no object, by their place.
    pub(super) rest: BTreeMap<String, Blob<'static>>,
}

fn letter(kind: ObjectKind) -> char {
    match kind {
        ObjectKind::Text => 's',
        ObjectKind::Bytes => 'b',
        ObjectKind::Numbers => 'n',
        ObjectKind::Offsets => 'o',
        ObjectKind::Table => 't',
    }
}

impl From<Flat> for FlatText {
    fn from(Flat(flat): Flat) -> FlatText {
        let vtable = |(at, words): (&u32, &Vec<u16>)| {
            let words = words.iter().fold(String::new(), |mut text, word| {
                let _ = write!(text, " {word:x}");
                text
            });
            format!("{at:x}:{words}")
        };
        let line = |objects: &[Object]| {
            let text = |object: &Object| match object.kind {
                ObjectKind::Table => format!("t{:x}/{:x}", object.at, object.vtable),
                kind => format!("{}{:x}", letter(kind), object.at),
            };
            objects.iter().map(text).collect::<Vec<_>>().join(" ")
        };
        let rest = flat.rest.into_iter().map(|(at, bytes)| (format!("{at:x}"), Blob(bytes.into())));
        FlatText {
            head: flat.len,
            vtables: flat.vtables.iter().map(vtable).collect(),
            objects: flat.objects.chunks(PER_LINE).map(line).collect(),
            rest: rest.collect(),
        }
    }
}

impl TryFrom<FlatText> for Flat {
    type Error = String;

    fn try_from(written: FlatText) -> Result<Flat, String> {
        let FlatText { head, vtables, objects, rest } = written;
        let mut flat = FlatLayout { len: head, ..FlatLayout::default() };
        let hex = |text: &str| u32::from_str_radix(text, 16).map_err(|_| format!("{text:?} is not a place"));
        for line in &vtables {
            let (at, words) = line.split_once(':').ok_or_else(|| format!("{line:?} is not `PLACE: WORDS`"))?;
            let word = |word| u16::from_str_radix(word, 16).map_err(|_| format!("{word:?} is not a 16-bit number"));
            let words = words.split_ascii_whitespace().map(word).collect::<Result<_, _>>()?;
            flat.vtables.insert(hex(at)?, words);
        }
        for text in objects.iter().flat_map(|line| line.split_ascii_whitespace()) {
            let kinds =
                [ObjectKind::Text, ObjectKind::Bytes, ObjectKind::Numbers, ObjectKind::Offsets, ObjectKind::Table];
            let kind = kinds.into_iter().find(|kind| text.starts_with(letter(*kind)));
            let kind = kind.ok_or_else(|| format!("{text:?} is not an object: s, b, n, o or t and a place"))?;
            let place = text.get(1..).unwrap_or_default();
            let (at, vtable) = match (kind, place.split_once('/')) {
                (ObjectKind::Table, Some((at, vtable))) => (hex(at)?, hex(vtable)?),
                (ObjectKind::Table, None) => return Err(format!("{text:?} is a table without `/` and its vtable")),
                _ => (hex(place)?, 0),
            };
            flat.objects.push(Object { kind, at, vtable });
        }
        for (text, bytes) in rest {
            flat.rest.insert(hex(&text)?, bytes.0.into_owned());
        }
        Ok(Flat(flat))
    }
}
