//! Tables read through the layout of their vtable.
//!
//! Tables of one type share few vtables. A [`Layouts`] derives the places of the fields from a vtable when it is first
//! met, and from then on a table is one bounds check and a few loads. Whatever is not plainly good, or has a field that
//! the schema lacks, is `None`: the reader then goes back to [`wire`], which says what is wrong.
//!
//! Invariant: nothing outside the slice is read, whatever the bytes are, and what is returned is what [`wire`] reads.
#![allow(
    clippy::arithmetic_side_effects,
    reason = "sizes of array elements and constants; everything that comes from bytes wraps and is looked up checked"
)]

use crate::wire;

/// Places of the fields of a type of table, according to one vtable. 0 is an absent field.
#[derive(Clone, Copy)]
struct Layout<const N: usize> {
    /// Position of the vtable, [`NO_VTABLE`] for none yet.
    vtable: u32,
    inline_len: u16,
    fields: [u16; N],
}

/// Odd, so no vtable is there.
const NO_VTABLE: u32 = u32::MAX;

/// Layouts met so far: one type of table, `E` of its vtables, a power of two.
pub struct Layouts<const N: usize, const E: usize> {
    /// Slot and size of each field.
    schema: [(u16, u16); N],
    known: [Layout<N>; E],
}

/// A table in its inline bytes.
#[derive(Clone, Copy)]
pub struct Row<'a, 'l, const N: usize> {
    inline: &'a [u8],
    pos: usize,
    fields: &'l [u16; N],
}

#[inline(always)]
fn u32_at(bytes: &[u8], pos: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(pos..)?.first_chunk()?))
}

impl<const N: usize, const E: usize> Layouts<N, E> {
    /// No layouts yet, for tables with these fields: slot and size of each.
    pub const fn new(schema: [(u16, u16); N]) -> Self {
        Layouts { schema, known: [Layout { vtable: NO_VTABLE, inline_len: 0, fields: [0; N] }; E] }
    }

    /// The table at `pos`, if it is one that needs no second look: in its place, all fields inside it.
    #[inline(always)]
    pub fn row<'a>(&mut self, bytes: &'a [u8], pos: usize) -> Option<Row<'a, '_, N>> {
        // Both are below 2^31 when the table is good, and then so is the difference.
        let vtable = (pos as u32).wrapping_sub(u32_at(bytes, pos)?);
        let known = self.known.get_mut((vtable as usize / 2) % E)?;
        if known.vtable != vtable {
            *known = Layout::learn(bytes, pos, vtable, &self.schema)?;
        }
        let inline = bytes.get(pos..pos.wrapping_add(known.inline_len as usize))?;
        (pos.is_multiple_of(4)).then_some(Row { inline, pos, fields: &known.fields })
    }
}

impl<const N: usize> Layout<N> {
    /// The layout that a vtable means, from a table that uses it.
    #[cold]
    #[inline(never)]
    fn learn(bytes: &[u8], pos: usize, vtable: u32, schema: &[(u16, u16); N]) -> Option<Self> {
        let table = wire::Table::at(bytes, pos).ok()?;
        // A good vtable is at a multiple of two, so no other position is taken for "none yet" or for a good one.
        if vtable == NO_VTABLE || vtable as usize >= bytes.len() {
            return None;
        }
        // A field this schema lacks would be passed over.
        if (0..table.slot_count()).any(|slot| table.has(slot) && !schema.iter().any(|(known, _)| *known == slot)) {
            return None;
        }
        let mut fields = [0; N];
        for (field, (slot, size)) in fields.iter_mut().zip(schema) {
            if let Some(at) = table.field(*slot, *size).ok()? {
                *field = at.wrapping_sub(pos) as u16;
                // Tables are at multiples of 4; wider numbers are looked at where they are.
                if !usize::from(*field).is_multiple_of(usize::from(*size).min(4)) {
                    return None;
                }
            }
        }
        Some(Layout { vtable, inline_len: table.inline_len(), fields })
    }
}

impl<'a, const N: usize> Row<'a, '_, N> {
    /// Returns the start of the table.
    #[inline(always)]
    pub fn offset(&self) -> usize {
        self.pos
    }

    /// Returns the place of a field, counted from the start of the table; 0 for absent.
    #[inline(always)]
    pub fn field(&self, index: usize) -> usize {
        self.fields.get(index).map_or(0, |&field| field as usize)
    }

    /// A number of one byte, 0 if absent.
    #[inline(always)]
    pub fn u8(&self, index: usize) -> u8 {
        match self.field(index) {
            0 => 0,
            at => self.inline.get(at).copied().unwrap_or(0),
        }
    }

    /// A number of four bytes, 0 if absent.
    #[inline(always)]
    pub fn u32(&self, index: usize) -> u32 {
        match self.field(index) {
            0 => 0,
            at => u32_at(self.inline, at).unwrap_or(0),
        }
    }

    /// A number of eight bytes, 0 if absent.
    #[inline(always)]
    pub fn u64(&self, index: usize) -> u64 {
        match self.field(index) {
            0 => 0,
            at => {
                self.inline.get(at..).and_then(|tail| tail.first_chunk()).map_or(0, |bytes| u64::from_le_bytes(*bytes))
            }
        }
    }

    /// Position of what the offset in a field points at, and what is there up to the end.
    #[inline(always)]
    pub fn target(&self, bytes: &'a [u8], index: usize) -> Option<(usize, &'a [u8])> {
        let at = self.field(index);
        // An absent field reads the table's own first word and is told by its place.
        let offset = u32_at(self.inline, at)? as usize;
        let target = self.pos.wrapping_add(at).wrapping_add(offset);
        let tail = bytes.get(target..)?;
        (at != 0 && offset != 0).then_some((target, tail))
    }

    /// The elements of a vector, of `size` bytes each, the first at a multiple of `align`.
    #[inline(always)]
    pub fn vector(&self, bytes: &'a [u8], index: usize, size: usize, align: usize) -> Option<&'a [u8]> {
        let (at, tail) = self.target(bytes, index)?;
        let (len, tail) = tail.split_first_chunk::<4>()?;
        let len = u64::from(u32::from_le_bytes(*len)).wrapping_mul(size as u64);
        if !at.wrapping_add(4).is_multiple_of(align) {
            return None;
        }
        tail.get(..usize::try_from(len).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Root offset; a vtable of three slots, the third absent; a table with a byte, an offset and padding; a vector.
    const SAMPLE: [u8; 40] = [
        16, 0, 0, 0, 10, 0, 12, 0, 8, 0, 4, 0, 0, 0, 0, 0, // root offset, vtable, padding
        12, 0, 0, 0, 8, 0, 0, 0, 7, 0, 0, 0, // table: back offset, slot 1 -> vector, slot 0 = 7
        2, 0, 0, 0, 1, 2, 3, 4, 5, 6, 0, 0, // vector: two elements of three bytes
    ];
    const SCHEMA: [(u16, u16); 3] = [(0, 1), (1, 4), (2, 8)];

    fn fields(bytes: &[u8]) -> Option<(u8, &[u8], u64)> {
        let mut layouts: Layouts<3, 4> = Layouts::new(SCHEMA);
        layouts.row(bytes, 16)?;
        // Once more, from the layout that is known now.
        let row = layouts.row(bytes, 16)?;
        Some((row.u8(0), row.vector(bytes, 1, 3, 4)?, row.u64(2)))
    }

    #[test]
    fn fields_are_where_the_vtable_says() {
        assert_eq!(fields(&SAMPLE), Some((7, &SAMPLE[32..38], 0)));
        let table = wire::Table::root(&SAMPLE).unwrap();
        assert_eq!(table.scalar::<1>(0).unwrap(), Some([7]));
        assert_eq!(table.vector(1, 3).unwrap().unwrap().bytes(), &SAMPLE[32..38]);
    }

    #[test]
    fn what_is_cut_off_is_not_there() {
        for len in 0..38 {
            assert_eq!(fields(&SAMPLE[..len]), None, "{len} bytes");
        }
    }

    #[test]
    fn a_field_that_the_schema_lacks_makes_no_layout() {
        let mut layouts: Layouts<1, 4> = Layouts::new([(1, 4)]);
        assert!(layouts.row(&SAMPLE, 16).is_none());
    }

    #[test]
    fn a_field_outside_its_table_makes_no_layout() {
        let mut bytes = SAMPLE;
        bytes[8] = 12;
        assert_eq!(fields(&bytes), None);
    }
}
