//! The reference's serializer compared with ours: from rows in memory to the bytes of a whole file, segments and all.
//!
//! Both start from the same file, taken apart beforehand: the reference's `deserialize_pte_binary` gives it Python
//! objects that own everything, and here every row is an owned one too, so that nothing is copied from a flatbuffer.

use std::cell::RefCell;
use std::path::Path;

use edgepack_builder::raw;
use edgepack_format::header::ProgramHeader;
use edgepack_format::pte::Program;
use edgepack_format::row::Table as _;
use edgepack_format::wire;

use super::BUDGET;
use super::models::MODELS;
use super::reference::Reference;
use crate::clock::{Race, timed};
use crate::programs::{self, Sample};

pub fn run() {
    let reference = match Reference::start(1) {
        Ok(reference) => RefCell::new(reference),
        Err(reason) => return println!("\nserialize: {reason}, nothing is measured"),
    };
    serialize(&reference, &programs::small(), concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data/corpus/models"));
    for name in MODELS.iter().flat_map(|name| [(*name).to_owned(), format!("{name}_xnn")]).chain(["deep".to_owned()]) {
        if let Some(sample) = programs::model(&name) {
            serialize(&reference, &sample, "");
        }
    }
}

/// One unit is a thousandth of the work: figures are in microseconds.
fn serialize(reference: &RefCell<Reference>, sample: &Sample, folder: &str) {
    let (rows, segments) = (owned(&sample.bytes), segments(&sample.bytes));
    let write = || raw::program(&rows, &segments, &raw::Options::DEFAULT).expect("rows that can be written");
    let request = Path::new(folder).join(&sample.name).with_extension("");
    let mut race = Race::new(format!("{}, serialize, {} bytes", sample.name, write().len()));
    race.lane("edgepack", 1000, || timed(write));
    race.lane("reference", 1000, || reference.borrow_mut().ask(&format!("serialize {}", request.display())));
    race.print("us", BUDGET);
}

/// The rows of a file, none of them borrowed: JSON keeps everything.
fn owned(bytes: &[u8]) -> Program<'static> {
    let rows = Program::decode(wire::Table::root(bytes).expect("a valid program")).expect("a valid program");
    let json = serde_json::to_string(&rows).expect("rows are JSON");
    serde_json::from_str(&json).expect("it was just made")
}

/// Bytes of every segment of a file.
fn segments(bytes: &[u8]) -> Vec<&[u8]> {
    let base = ProgramHeader::read(bytes).map_or(0, |header| header.segment_base_offset);
    let rows = Program::decode(wire::Table::root(bytes).expect("a valid program")).expect("a valid program").segments;
    let rows: Vec<_> = rows.iter().flat_map(|rows| rows.iter()).collect();
    let content = rows.into_iter().map(|row| {
        let row = row.expect("a valid program");
        &bytes[(base + row.offset) as usize..][..row.size as usize]
    });
    content.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_measured_writes_the_file() {
        let sample = programs::small();
        let (rows, parts) = (owned(&sample.bytes), segments(&sample.bytes));
        assert!(!parts.is_empty());
        let written = raw::program(&rows, &parts, &raw::Options::DEFAULT).unwrap();
        assert_eq!(owned(&written), rows);
        assert_eq!(segments(&written), parts);
    }
}
