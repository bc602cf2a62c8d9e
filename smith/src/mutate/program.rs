//! Mutations of a program as rows: lists grow, shrink and change order, and the file is laid out again.

use edgepack_builder::raw;
use edgepack_format::extent::FileExtent;
use edgepack_format::limits::Limits;
use edgepack_format::pte::{Program, ProgramRef};
use serde_json::Value;

use crate::rng::Rng;

/// The rows of a sound program, to be edited.
pub(crate) fn rows_of(bytes: &[u8]) -> Option<Value> {
    let program = ProgramRef::parse(bytes, FileExtent::of(bytes), &Limits::hostile()).ok()?;
    serde_json::to_value(program.program()).ok()
}

/// The contents of its segments.
pub(crate) fn segments_of(bytes: &[u8]) -> Option<Vec<Vec<u8>>> {
    let program = ProgramRef::parse(bytes, FileExtent::of(bytes), &Limits::hostile()).ok()?;
    let count = program.program().segments.as_ref().map_or(0, |segments| segments.len());
    let segments = (0..count.min(64)).map(|index| {
        let range = program.segment_range(index as u32)?;
        let range = usize::try_from(range.start).ok()?..usize::try_from(range.end).ok()?;
        // An empty segment may lie anywhere.
        if range.is_empty() { Some(Vec::new()) } else { bytes.get(range).map(<[u8]>::to_vec) }
    });
    segments.collect()
}

/// A program with a few nodes of its rows edited; `None` if it is not a sound one or what came out is not a program.
pub fn edit_program(bytes: &[u8], rng: &mut Rng) -> Option<Vec<u8>> {
    let (mut rows, segments) = (rows_of(bytes)?, segments_of(bytes)?);
    let segments: Vec<&[u8]> = segments.iter().map(Vec::as_slice).collect();
    for _ in 0..1 + rng.below(4) {
        edit(&mut rows, rng, 0);
    }
    let mut row: Program<'static> = serde_json::from_value(rows).ok()?;
    if !rng.one_in(8) {
        // Truthful again, so that what was edited is seen and not the segments.
        row.segments = Some(raw::segments(&segments, &raw::Options::DEFAULT).ok()?.into());
    }
    raw::program(&row, &segments, &raw::Options::DEFAULT).ok()
}

/// Descends to a random node and edits it.
fn edit(node: &mut Value, rng: &mut Rng, depth: usize) {
    match node {
        Value::Object(fields) => {
            let index = rng.below(fields.len());
            if let Some(field) = fields.values_mut().nth(index) {
                match rng.one_in(24 + 8 * depth) {
                    true => *field = Value::Null,
                    false => edit(field, rng, depth + 1),
                }
            }
        }
        Value::Array(items) => {
            let (len, index) = (items.len(), rng.below(items.len()));
            match rng.below(8) {
                0 if len > 0 => drop(items.remove(index)),
                1 if len > 0 => items.insert(rng.below(len), items[index].clone()),
                2 if len > 0 => items.swap(index, rng.below(len)),
                3 if len > 0 && items[0].is_number() => items.push(items[index].clone()),
                _ => {
                    if let Some(item) = items.get_mut(index) {
                        edit(item, rng, depth + 1);
                    }
                }
            }
        }
        Value::Number(number) => {
            let small = number.as_i64().unwrap_or(0).wrapping_add(rng.below(9) as i64 - 4);
            *node = if rng.one_in(4) { (rng.edge() as i64).into() } else { small.into() };
        }
        Value::Bool(value) => *value = !*value,
        Value::String(text) => text.truncate(rng.below(text.len() + 1)),
        Value::Null => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Generator;

    #[test]
    fn edited_programs_are_often_accepted() {
        let bytes = Generator::with_known_operators().program_of(7).bytes;
        let mut rng = Rng::new(1);
        let edited: Vec<_> = (0..200).filter_map(|_| edit_program(&bytes, &mut rng)).collect();
        let accepted =
            edited.iter().filter(|bytes| ProgramRef::parse(bytes, FileExtent::of(bytes), &Limits::hostile()).is_ok());
        assert!(edited.len() > 100 && accepted.count() > 20);
    }
}
