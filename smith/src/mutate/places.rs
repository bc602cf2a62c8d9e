//! Mutations that know the tables: one place of a flatbuffer is changed, everything around it stays sound.
//!
//! [`places`] walks a buffer by its table descriptions and lists what can be changed: numbers, offsets, lengths,
//! vtable slots, union tags. [`mutate`] changes one to three of them.

use edgepack_format::darwinn::{Executable, Package, PackageRef};
use edgepack_format::ptd::Generation;
use edgepack_format::pte::Program;
use edgepack_format::row::{FieldKind, ScalarKind, Table as _, TableDesc};
use edgepack_format::wire::Table;
use edgepack_format::{FileKind, bundle, detect, ptd, tflite, trace};

use crate::rng::Rng;

/// As many places as a walk lists: enough for every kind of place, and a bound on shared sub-tables.
const MAX_PLACES: usize = 4096;

/// Something in a buffer that can be changed by itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "`at` is a position; the rest is said with each kind")]
pub enum Place {
    /// An inline number or an element of a vector, of that many bytes.
    Number { at: usize, size: usize },
    /// The tag of a union, which has that many variants.
    Tag { at: usize, variants: usize },
    /// An offset to a table, vector or string; offsets of one kind can stand for each other.
    Offset { at: usize, kind: usize },
    /// The length of a vector or string.
    Length { at: usize },
    /// A slot of a vtable.
    Slot { at: usize },
    /// The two lengths at the start of a vtable.
    Vtable { at: usize },
}

/// Returns the offset of the root offset of a file, and the type of its root table.
pub fn root_of_file(bytes: &[u8]) -> Option<(usize, &'static TableDesc)> {
    Some(match detect(bytes) {
        FileKind::Program => (0, Program::DESC),
        FileKind::Data => match Generation::of(&Table::root(bytes).ok()?) {
            Generation::A | Generation::B => (0, ptd::LegacyFlatTensor::DESC),
            _ => (0, ptd::FlatTensor::DESC),
        },
        FileKind::FlatData => (0, ptd::FlatData::DESC),
        FileKind::Bundle => (0, bundle::BundledProgram::DESC),
        FileKind::Trace => (trace::PREFIX_LEN, trace::ETDump::DESC),
        FileKind::TfLite => (0, tflite::Model::DESC),
        FileKind::DarwinnPackage => inner_root(bytes),
        _ => return None,
    })
}

/// Of a package, the first executable where there is one: most of what can be wrong is there.
fn inner_root(bytes: &[u8]) -> (usize, &'static TableDesc) {
    let package = PackageRef::reopen(bytes).ok();
    // Every third package by its length is changed at the outermost level.
    let executable =
        package.as_ref().filter(|_| !bytes.len().is_multiple_of(3)).and_then(|one| one.executables().first());
    match executable {
        Some(executable) => (executable.offset(), Executable::DESC),
        None => (0, Package::DESC),
    }
}

/// Everything that can be changed, in order of the walk.
pub fn places(bytes: &[u8], root: usize, desc: &'static TableDesc) -> Vec<Place> {
    let mut walk = Walk { bytes, out: vec![Place::Offset { at: root, kind: address(desc) }] };
    if let Ok(table) = Table::root_at(bytes, root) {
        walk.table(&table, desc);
    }
    walk.out
}

/// Offsets to tables of one description are of one kind; those to vectors and strings are told apart by small numbers.
fn address(desc: &'static TableDesc) -> usize {
    std::ptr::from_ref(desc) as usize
}

struct Walk<'a> {
    bytes: &'a [u8],
    out: Vec<Place>,
}

impl<'a> Walk<'a> {
    fn word(&self, at: usize) -> Option<u32> {
        Some(u32::from_le_bytes(*self.bytes.get(at..)?.first_chunk()?))
    }

    fn table(&mut self, table: &Table<'a>, desc: &'static TableDesc) {
        if self.out.len() >= MAX_PLACES {
            return;
        }
        let at = table.offset() as usize;
        // The vtable was inside the buffer when the table was made.
        let back = self.word(at).unwrap_or_default() as i32;
        let vtable = (at as i64 - i64::from(back)) as usize;
        self.out.push(Place::Vtable { at: vtable });
        for field in desc.fields {
            let slot = vtable + 4 + 2 * usize::from(field.slot);
            if field.slot < table.slot_count() {
                self.out.push(Place::Slot { at: slot });
            }
            self.field(table, field.slot, field.kind);
        }
    }

    fn field(&mut self, table: &Table<'a>, slot: u16, kind: FieldKind) {
        let Ok(Some(at)) = table.field(slot, 1) else { return };
        match kind {
            FieldKind::Scalar(kind) => self.out.push(Place::Number { at, size: size_of(kind) }),
            FieldKind::Text => self.vector(table, slot, at, 1, 1),
            FieldKind::Blob => self.vector(table, slot, at, 1, 2),
            FieldKind::Blobs => {
                self.out.push(Place::Offset { at, kind: 0 });
                let Ok(Some(strings)) = table.strings(slot) else { return };
                let start = strings.offset() as usize;
                self.out.push(Place::Length { at: start - 4 });
                let offsets = (0..strings.len().min(MAX_PLACES)).map(|index| start + index * 4);
                self.out.extend(offsets.map(|at| Place::Offset { at, kind: 1 }));
            }
            FieldKind::Structs(desc) => self.vector(table, slot, at, desc.size, 3),
            FieldKind::Scalars(kind) => self.vector(table, slot, at, size_of(kind), 2 + size_of(kind)),
            FieldKind::Table(desc) => {
                self.out.push(Place::Offset { at, kind: address(desc) });
                if let Ok(Some(table)) = table.table(slot) {
                    self.table(&table, desc);
                }
            }
            FieldKind::Rows(desc) => {
                self.out.push(Place::Offset { at, kind: address(desc) + 1 });
                let Ok(Some(tables)) = table.tables(slot) else { return };
                let start = tables.offset() as usize;
                self.out.push(Place::Length { at: start - 4 });
                for (index, row) in tables.iter().enumerate() {
                    self.out.push(Place::Offset { at: start + index * 4, kind: address(desc) });
                    match row {
                        Ok(row) if self.out.len() < MAX_PLACES => self.table(&row, desc),
                        _ => return,
                    }
                }
            }
            FieldKind::Union(of) => {
                self.out.push(Place::Tag { at, variants: of.variants.len() });
                if let Ok(Some((tag, Some(value)))) = table.union(slot)
                    && let Some((.., desc)) = of.variants.iter().find(|(number, ..)| *number == tag)
                {
                    if let Ok(Some(at)) = table.field(slot + 1, 4) {
                        self.out.push(Place::Offset { at, kind: address(desc) });
                    }
                    self.table(&value, desc);
                }
            }
        }
    }

    fn vector(&mut self, table: &Table<'a>, slot: u16, at: usize, size: usize, kind: usize) {
        self.out.push(Place::Offset { at, kind });
        let Ok(Some(vector)) = table.vector(slot, size) else { return };
        let start = vector.offset() as usize;
        self.out.push(Place::Length { at: start - 4 });
        self.out.extend((0..vector.len().min(16)).map(|index| Place::Number { at: start + index * size, size }));
    }
}

fn size_of(kind: ScalarKind) -> usize {
    match kind {
        ScalarKind::Bool | ScalarKind::I8 | ScalarKind::U8 => 1,
        ScalarKind::I16 | ScalarKind::U16 => 2,
        ScalarKind::I32 | ScalarKind::U32 | ScalarKind::F32 => 4,
        ScalarKind::I64 | ScalarKind::U64 | ScalarKind::F64 => 8,
    }
}

/// Changes one to three places. `false` if there is no flatbuffer to speak of.
pub fn mutate(bytes: &mut [u8], root: usize, desc: &'static TableDesc, rng: &mut Rng) -> bool {
    for _ in 0..1 + rng.below(3) {
        let places = places(bytes, root, desc);
        let Some(&place) = rng.pick(&places) else { return false };
        change(bytes, place, &places, rng);
    }
    true
}

fn change(bytes: &mut [u8], place: Place, places: &[Place], rng: &mut Rng) {
    match place {
        Place::Number { at, size } => {
            let other = places.get(rng.below(places.len()));
            let value = match other {
                // A number from elsewhere in the file: indices that exist, sizes that occur.
                Some(&Place::Number { at, size: 1.. }) if rng.one_in(2) => read(bytes, at, size),
                _ => rng.edge(),
            };
            write(bytes, at, size, value);
        }
        Place::Tag { at, variants } => write(bytes, at, 1, rng.below(variants + 2) as u64),
        Place::Offset { at, kind } => {
            let same = |place: &&Place| matches!(place, Place::Offset { kind: other, .. } if *other == kind);
            let count = places.iter().filter(same).count();
            let chosen = places.iter().filter(same).nth(rng.below(count));
            let target = match chosen {
                Some(&Place::Offset { at, .. }) if !rng.one_in(4) => (at as u64).wrapping_add(read(bytes, at, 4)),
                _ => (at as u64).wrapping_add(rng.edge()),
            };
            write(bytes, at, 4, target.wrapping_sub(at as u64));
        }
        Place::Length { at } => {
            let len = read(bytes, at, 4);
            let new = if rng.one_in(3) { rng.edge() } else { len.wrapping_add(rng.below(5) as u64).wrapping_sub(2) };
            write(bytes, at, 4, new);
        }
        Place::Slot { at } => {
            let new = if rng.one_in(2) { 0 } else { 4 + 2 * rng.below(16) as u64 };
            write(bytes, at, 2, new);
        }
        Place::Vtable { at } => {
            let at = at + 2 * rng.below(2);
            let new = read(bytes, at, 2).wrapping_add(2 * rng.below(5) as u64).wrapping_sub(4);
            write(bytes, at, 2, new);
        }
    }
}

fn read(bytes: &[u8], at: usize, size: usize) -> u64 {
    bytes.iter().skip(at).take(size).rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

fn write(bytes: &mut [u8], at: usize, size: usize, value: u64) {
    for (to, from) in bytes.iter_mut().skip(at).take(size).zip(value.to_le_bytes()) {
        *to = from;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Generator;

    #[test]
    fn every_kind_of_place_is_found() {
        let mut seen = [false; 6];
        for seed in 0..20 {
            let bytes = Generator::with_known_operators().program_of(seed).bytes;
            let (root, desc) = root_of_file(&bytes).unwrap();
            for place in places(&bytes, root, desc) {
                let kind = match place {
                    Place::Number { .. } => 0,
                    Place::Tag { .. } => 1,
                    Place::Offset { .. } => 2,
                    Place::Length { .. } => 3,
                    Place::Slot { .. } => 4,
                    Place::Vtable { .. } => 5,
                };
                seen[kind] = true;
            }
        }
        assert_eq!(seen, [true; 6]);
    }
}
