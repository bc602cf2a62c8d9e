//! A data file, for people.

use std::io::{self, Write};

use edgepack_format::ptd::Generation;

use super::summary::DataSummary;
use crate::style::{DIM, NAME, SHAPE, TITLE};
use crate::table::{Align, Cell, Columns};
use crate::units::{bytes, count, part_of_file};

/// Prints a data file.
pub fn print(data: &DataSummary, out: &mut dyn Write) -> io::Result<()> {
    let generation = match data.generation {
        Generation::A => "layout of January 2025, tensors only",
        Generation::B => "layout of March 2025, tensors and blobs",
        Generation::C => "current layout",
        Generation::FlatData => "FlatData layout",
    };
    let header = match data.header {
        Some(header) => format!("extended header of {} bytes", header.length),
        None => "no extended header".to_owned(),
    };
    writeln!(out, "{DIM}version {}, {generation}, {header}{DIM:#}", data.version)?;
    writeln!(out, "\n{TITLE}entries{TITLE:#}  {}", data.entries.len())?;
    let mut columns = Columns::new(2, &[Align::Left, Align::Left, Align::Right, Align::Left]);
    for entry in &data.entries {
        let place = match entry.within {
            Some(within) => format!("segment {} at {within:#x}", entry.segment),
            None => format!("segment {}", entry.segment),
        };
        columns.row([
            Cell::new(&entry.key, NAME),
            Cell::new(entry.layout.as_deref().unwrap_or("bytes"), SHAPE),
            entry.bytes.map_or("?".to_owned(), bytes).into(),
            Cell::new(place, DIM),
        ]);
    }
    columns.print(out)?;
    writeln!(out, "\n{TITLE}segments{TITLE:#}  {}", data.segments.len())?;
    let mut columns = Columns::new(2, &[Align::Right, Align::Right, Align::Right, Align::Right, Align::Left]);
    for (index, segment) in data.segments.iter().enumerate() {
        columns.row([
            Cell::new(index.to_string(), DIM),
            segment.offset.map_or("?".to_owned(), |offset| format!("{offset:#x}")).into(),
            bytes(segment.bytes).into(),
            Cell::new(part_of_file(segment.offset, segment.bytes, data.bytes), DIM),
            count(segment.entries, "entry").into(),
        ]);
    }
    columns.print(out)
}
