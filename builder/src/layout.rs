//! Placement of the fields inside a table.
//!
//! It follows from the *shape* of the table, the slots and widths of its fields, and a file has thousands of tables of
//! a few dozen shapes. [`Layouts`] is a cache with a fixed number of places; each holds the last layout that fell on
//! it. An evicted layout is computed again, equal to what it was, so the cache affects time only, never bytes.

use std::cmp::Reverse;

use edgepack_format::row::FieldValue;

use crate::Error;

/// Places of [`Layouts`]: a power of two, more than the tables of any schema here.
const PLACES: usize = 1 << PLACES_LOG2;
const PLACES_LOG2: u32 = 7;

/// A field of a shape, and its offset.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    slot: u16,
    width: u16,
    /// Counted from the first field, which is 4 bytes after the start of the table.
    pub offset: u16,
}

/// The layout of one shape.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Layout {
    /// The fields in the order in which they are given.
    pub places: Vec<Place>,
    /// Bytes of all fields.
    pub len: usize,
    /// Alignment of the first field.
    pub align: usize,
    /// The position of the vtable.
    pub vtable: u32,
}

/// Bytes of a field inside its table.
#[inline]
pub fn width<R>(value: &FieldValue<R>) -> u16 {
    match value {
        FieldValue::Scalar(_, size) => u16::from(*size),
        FieldValue::Ref(_) => 4,
    }
}

impl Layout {
    /// The layout of these fields. `vtable` is told the bytes of the vtable and returns its position.
    fn of<R>(
        fields: &[(u16, FieldValue<R>)],
        vtable: impl FnOnce(Vec<u8>) -> Result<u32, Error>,
    ) -> Result<Layout, Error> {
        let highest = fields.iter().map(|(slot, _)| *slot).max();
        let wide = Error::WideTable { fields: fields.len(), slot: highest.unwrap_or(0) };
        let slots = highest.map_or(0, |slot| usize::from(slot).saturating_add(1));
        let vtable_len = u16::try_from(slots.saturating_mul(2).saturating_add(4)).map_err(|_| wide)?;

        // Widest fields first, then by slot: no padding between them.
        let mut places: Vec<Place> =
            fields.iter().map(|(slot, value)| Place { slot: *slot, width: width(value), offset: 0 }).collect();
        let mut order: Vec<&mut Place> = places.iter_mut().collect();
        order.sort_by_key(|place| (Reverse(place.width), place.slot));
        let align = order.first().map_or(4, |place| usize::from(place.width).max(4));

        let mut offsets = vec![0u16; slots];
        let mut inline_len = 4u16;
        for place in order {
            if let Some(offset) = offsets.get_mut(usize::from(place.slot)) {
                *offset = inline_len;
            }
            place.offset = inline_len.saturating_sub(4);
            inline_len = inline_len.checked_add(place.width).ok_or(wide)?;
        }
        let header = [vtable_len, inline_len];
        let vtable = vtable(header.iter().chain(&offsets).flat_map(|number| number.to_le_bytes()).collect())?;
        Ok(Layout { places, len: usize::from(inline_len).saturating_sub(4), align, vtable })
    }

    fn is_of<R>(&self, fields: &[(u16, FieldValue<R>)]) -> bool {
        let same = |(place, (slot, value)): (&Place, &(u16, FieldValue<R>))| {
            place.slot == *slot && place.width == width(value)
        };
        self.places.len() == fields.len() && self.places.iter().zip(fields).all(same)
    }
}

/// The layouts of the shapes seen last.
pub struct Layouts {
    places: Vec<Option<Layout>>,
}

impl Layouts {
    pub fn new() -> Self {
        Layouts { places: vec![const { None }; PLACES] }
    }

    /// The layout of these fields: remembered, or made with the vtable that `vtable` writes or finds.
    #[inline]
    pub fn find<R>(
        &mut self,
        fields: &[(u16, FieldValue<R>)],
        vtable: impl FnOnce(Vec<u8>) -> Result<u32, Error>,
    ) -> Result<&Layout, Error> {
        // There is always a place of this number: the error is for the compiler.
        let place = self.places.get_mut(place_of(fields)).ok_or(Error::Overflow)?;
        match place {
            Some(layout) if layout.is_of(fields) => {}
            _ => *place = Some(Layout::of(fields, vtable)?),
        }
        place.as_ref().ok_or(Error::Overflow)
    }
}

/// Returns the cache place of a shape's layout. Shapes that share a place evict each other, which costs time only.
/// Shapes that fall together push each other out, and cost what they cost anyway.
#[inline]
fn place_of<R>(fields: &[(u16, FieldValue<R>)]) -> usize {
    // The multiplier is that of the golden ratio: the upper bits depend on all that was mixed in.
    let mix = |hash: u64, (slot, value): &(u16, FieldValue<R>)| {
        (hash.rotate_left(5) ^ (u64::from(*slot) << 8) ^ u64::from(width(value))).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    };
    (fields.iter().fold(0, mix) >> u64::BITS.saturating_sub(PLACES_LOG2)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    type Fields = Vec<(u16, FieldValue<u32>)>;

    fn scalars(widths: &[(u16, u8)]) -> Fields {
        widths.iter().map(|&(slot, width)| (slot, FieldValue::Scalar([0; 8], width))).collect()
    }

    #[test]
    fn widest_fields_come_first_then_lower_slots() {
        let mut fields = scalars(&[(0, 1), (1, 8), (2, 4), (4, 8)]);
        fields.push((3, FieldValue::Ref(0)));
        let mut written = Vec::new();
        let layout = Layout::of(&fields, |vtable| {
            written = vtable;
            Ok(7)
        });
        let layout = layout.unwrap();
        assert_eq!(layout.places.iter().map(|place| place.offset).collect::<Vec<_>>(), [24, 0, 16, 8, 20]);
        assert_eq!((layout.len, layout.align, layout.vtable), (25, 8, 7));
        let numbers: Vec<u16> = written.as_chunks().0.iter().map(|pair| u16::from_le_bytes(*pair)).collect();
        assert_eq!(numbers, [14, 29, 28, 4, 20, 24, 12]);
    }

    #[test]
    fn what_is_remembered_is_what_would_be_made() {
        let mut layouts = Layouts::new();
        let mut vtables = std::collections::BTreeMap::new();
        let mut made = 0;
        for round in 0..3 {
            // More shapes than places, some of which differ in one width or one slot only.
            for shape in 0..3 * PLACES as u16 {
                let fields = scalars(&[(shape % 7, 4), (7 + shape / 7, 1 << (shape % 4)), (100, 2)]);
                let mut vtable = |bytes: Vec<u8>| {
                    let next = vtables.len() as u32;
                    Ok(*vtables.entry(bytes).or_insert(next))
                };
                let want = Layout::of(&fields, &mut vtable).unwrap();
                let remembered = layouts.find(&fields, |bytes| {
                    made += 1;
                    vtable(bytes)
                });
                assert_eq!(remembered.unwrap(), &want);
                let again = layouts.find(&fields, |_| unreachable!("it was asked for just now, in round {round}"));
                assert_eq!(again.unwrap(), &want);
            }
        }
        assert!(made > 3 * PLACES, "none was pushed out");
    }
}
