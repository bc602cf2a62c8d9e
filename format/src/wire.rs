//! The flatbuffer reader: positions in a byte slice, every one of them checked before it is followed.
//!
//! Nothing here knows a schema. A [`Table`] answers "where is the field of this slot"; the typed layer is in
//! [`crate::row`]. Numbers are little-endian at any alignment, so a buffer needs no alignment to be *read*; that the
//! writer aligned what the format asks to align is a question for the verifier ([`crate::check`]).
//!
//! Invariant: no method reads outside the slice it was made from, whatever the bytes are.
#![allow(
    clippy::arithmetic_side_effects,
    reason = "positions are at most the length of a slice, so below isize::MAX; what is added to them fits 17 bits, or \
              was bounded by the slice first"
)]

use core::fmt;

/// Reason a place in a flatbuffer could not be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReadError {
    /// Kind of fault.
    pub kind: ReadErrorKind,
    /// Position in bytes from the start of the buffer.
    pub offset: u32,
}

/// Kinds of faults that keep bytes from being a flatbuffer of the expected shape.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ReadErrorKind {
    /// A number, offset, vector or string is (partly) outside the buffer.
    OutOfBounds,
    /// A vtable is shorter than its header, of odd length, or outside the buffer.
    Vtable,
    /// A field is outside the inline part of its table.
    FieldOutsideTable,
    /// A value is not aligned as its type requires.
    Misaligned,
    /// A string has no terminating zero byte.
    Unterminated,
    /// A string is not UTF-8.
    NotUtf8,
    /// The tables and vectors visited exceed what the limits allow for one file.
    Budget,
    /// There is no memory for what is to be read.
    Memory,
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.kind {
            ReadErrorKind::OutOfBounds => "points outside the buffer",
            ReadErrorKind::Vtable => "the table's vtable is malformed",
            ReadErrorKind::FieldOutsideTable => "the field is outside its table",
            ReadErrorKind::Misaligned => "not aligned to its size",
            ReadErrorKind::Unterminated => "the string is not terminated",
            ReadErrorKind::NotUtf8 => "the string is not UTF-8",
            ReadErrorKind::Budget => "more tables and vectors than the limits allow",
            ReadErrorKind::Memory => return f.write_str("there is no memory for what is to be read"),
        };
        write!(f, "{what} at {:#x}", self.offset)
    }
}

impl core::error::Error for ReadError {}

/// The result of reading.
pub type Result<T> = core::result::Result<T, ReadError>;

#[cold]
const fn error<T>(kind: ReadErrorKind, offset: usize) -> Result<T> {
    // Buffers over 4 GiB are refused before anything is read (`Table::root`), so the offset fits.
    Err(ReadError { kind, offset: offset as u32 })
}

#[inline(always)]
fn array<const N: usize>(bytes: &[u8], pos: usize) -> Result<[u8; N]> {
    match bytes.get(pos..).and_then(|tail| tail.first_chunk::<N>()) {
        Some(chunk) => Ok(*chunk),
        None => error(ReadErrorKind::OutOfBounds, pos),
    }
}

#[inline(always)]
fn u32_at(bytes: &[u8], pos: usize) -> Result<u32> {
    array(bytes, pos).map(u32::from_le_bytes)
}

/// Follows the unsigned offset stored at `pos`.
#[inline(always)]
fn follow(bytes: &[u8], pos: usize) -> Result<usize> {
    let offset = u32_at(bytes, pos)? as usize;
    // Both terms are below 2^32 and usize may be 32 bits wide. Nothing can be at its own offset.
    match pos.checked_add(offset) {
        Some(target) if target < bytes.len() && offset != 0 => Ok(target),
        _ => error(ReadErrorKind::OutOfBounds, pos),
    }
}

/// A table: where it is, and its vtable, known to be inside the buffer.
#[derive(Clone, Copy)]
pub struct Table<'a> {
    bytes: &'a [u8],
    pos: usize,
    /// Slots of the vtable, two bytes each, without its four-byte header.
    slots: &'a [u8],
    inline_len: u16,
}

impl fmt::Debug for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Table at {:#x} ({} slots)", self.pos, self.slots.len() / 2)
    }
}

impl<'a> Table<'a> {
    /// The root table of a buffer whose first four bytes are the root offset.
    pub fn root(bytes: &'a [u8]) -> Result<Self> {
        Self::root_at(bytes, 0)
    }

    /// The root table of a buffer whose root offset is stored at `pos` and counted from there
    /// (4 in a size-prefixed buffer).
    pub fn root_at(bytes: &'a [u8], pos: usize) -> Result<Self> {
        if u32::try_from(bytes.len()).is_err() {
            return error(ReadErrorKind::OutOfBounds, u32::MAX as usize);
        }
        Self::at(bytes, follow(bytes, pos)?)
    }

    /// A table without fields: every slot is absent.
    pub const fn empty() -> Self {
        Table { bytes: &[], pos: 0, slots: &[], inline_len: 0 }
    }

    /// The table at `pos`.
    #[inline]
    pub fn at(bytes: &'a [u8], pos: usize) -> Result<Self> {
        let back = u32_at(bytes, pos)? as i32;
        let vtable = match (pos as i64).checked_sub(i64::from(back)).map(usize::try_from) {
            Some(Ok(vtable)) => vtable,
            _ => return error(ReadErrorKind::Vtable, pos),
        };
        let Some(Some(&[l0, l1, i0, i1])) = bytes.get(vtable..).map(|tail| tail.first_chunk::<4>()) else {
            return error(ReadErrorKind::Vtable, pos);
        };
        let vtable_len = u16::from_le_bytes([l0, l1]);
        let inline_len = u16::from_le_bytes([i0, i1]);
        let end = match vtable.checked_add(vtable_len as usize) {
            Some(end) if vtable_len >= 4 && vtable_len % 2 == 0 && vtable % 2 == 0 => end,
            _ => return error(ReadErrorKind::Vtable, vtable),
        };
        let Some(slots) = bytes.get(vtable + 4..end) else {
            return error(ReadErrorKind::Vtable, vtable);
        };
        if bytes.len() - pos < inline_len as usize {
            return error(ReadErrorKind::OutOfBounds, pos);
        }
        Ok(Table { bytes, pos, slots, inline_len })
    }

    /// Returns the start of the table.
    pub fn offset(&self) -> u32 {
        self.pos as u32
    }

    /// Bytes of the table itself, all of them inside the buffer.
    pub fn inline_len(&self) -> u16 {
        self.inline_len
    }

    /// Returns the number of slots in the vtable, unknown ones included.
    pub fn slot_count(&self) -> u16 {
        (self.slots.len() / 2) as u16
    }

    /// Returns whether the slot holds anything.
    pub fn has(&self, slot: u16) -> bool {
        self.slot_offset(slot) != 0
    }

    #[inline(always)]
    fn slot_offset(&self, slot: u16) -> u16 {
        let at = slot as usize * 2;
        match self.slots.get(at..at + 2) {
            Some(&[a, b]) => u16::from_le_bytes([a, b]),
            _ => 0,
        }
    }

    /// Position of the field of this slot, if present; `size` bytes there are inside the table.
    #[inline(always)]
    pub fn field(&self, slot: u16, size: u16) -> Result<Option<usize>> {
        let offset = self.slot_offset(slot);
        if offset == 0 {
            return Ok(None);
        }
        if offset < 4 || u32::from(offset) + u32::from(size) > u32::from(self.inline_len) {
            return error(ReadErrorKind::FieldOutsideTable, self.pos);
        }
        Ok(Some(self.pos + offset as usize))
    }

    /// The little-endian bytes of an inline number, if present.
    #[inline(always)]
    pub fn scalar<const N: usize>(&self, slot: u16) -> Result<Option<[u8; N]>> {
        match self.field(slot, N as u16)? {
            Some(pos) => array(self.bytes, pos).map(Some),
            None => Ok(None),
        }
    }

    /// Position of what the offset in this slot points at.
    #[inline(always)]
    fn target(&self, slot: u16) -> Result<Option<usize>> {
        match self.field(slot, 4)? {
            Some(pos) => follow(self.bytes, pos).map(Some),
            None => Ok(None),
        }
    }

    /// The sub-table of this slot.
    #[inline]
    pub fn table(&self, slot: u16) -> Result<Option<Table<'a>>> {
        match self.target(slot)? {
            Some(pos) => Table::at(self.bytes, pos).map(Some),
            None => Ok(None),
        }
    }

    /// The union whose tag is in this slot and whose value is in the next: `None` for tag 0 (NONE).
    #[inline]
    pub fn union(&self, slot: u16) -> Result<Option<(u8, Option<Table<'a>>)>> {
        match self.scalar::<1>(slot)? {
            None | Some([0]) => Ok(None),
            Some([tag]) => Ok(Some((tag, self.table(slot.saturating_add(1))?))),
        }
    }

    /// The vector of this slot with elements of `size` bytes.
    #[inline]
    pub fn vector(&self, slot: u16, size: usize) -> Result<Option<Vector<'a>>> {
        match self.target(slot)? {
            Some(pos) => Vector::at(self.bytes, pos, size).map(Some),
            None => Ok(None),
        }
    }

    /// The end of the vector of bytes of this slot as its offset and length say, in the buffer or behind it.
    pub fn announced_end(&self, slot: u16) -> Option<u64> {
        let word = |at: u64| Some(u32::from_le_bytes(*self.bytes.get(usize::try_from(at).ok()?..)?.first_chunk()?));
        let field = self.field(slot, 4).ok()?? as u64;
        let start = field.checked_add(u64::from(word(field)?))?;
        start.checked_add(4)?.checked_add(u64::from(word(start).unwrap_or(0)))
    }

    /// The vector of tables of this slot.
    #[inline]
    pub fn tables(&self, slot: u16) -> Result<Option<Tables<'a>>> {
        Ok(self.vector(slot, 4)?.map(|vector| Tables { buffer: self.bytes, vector }))
    }

    /// The vector of strings of this slot.
    pub fn strings(&self, slot: u16) -> Result<Option<Strings<'a>>> {
        Ok(self.vector(slot, 4)?.map(|vector| Strings { buffer: self.bytes, vector }))
    }

    /// The bytes of the string of this slot, without the terminator (which is required to be there).
    pub fn string(&self, slot: u16) -> Result<Option<Vector<'a>>> {
        match self.vector(slot, 1)? {
            Some(vector) => terminated(self.bytes, vector).map(Some),
            None => Ok(None),
        }
    }
}

/// A string's bytes, if a zero follows them.
fn terminated<'a>(bytes: &'a [u8], vector: Vector<'a>) -> Result<Vector<'a>> {
    let end = vector.pos + vector.data.len();
    match bytes.get(end) {
        Some(0) => Ok(vector),
        _ => error(ReadErrorKind::Unterminated, end),
    }
}

/// A vector whose elements are inside the buffer.
#[derive(Clone, Copy, Debug)]
pub struct Vector<'a> {
    pos: usize,
    data: &'a [u8],
    len: u32,
}

impl<'a> Vector<'a> {
    #[inline]
    fn at(bytes: &'a [u8], pos: usize, size: usize) -> Result<Self> {
        let len = u32_at(bytes, pos)?;
        let start = pos + 4;
        // The product of two numbers below 2^32 and 2^4 fits u64; it is compared before it is narrowed.
        let byte_len = u64::from(len) * size as u64;
        let available = (bytes.len() - start) as u64;
        if byte_len > available {
            return error(ReadErrorKind::OutOfBounds, pos);
        }
        match bytes.get(start..start + byte_len as usize) {
            Some(data) => Ok(Vector { pos: start, data, len }),
            None => error(ReadErrorKind::OutOfBounds, pos),
        }
    }

    /// Position of the first element.
    pub fn offset(&self) -> u32 {
        self.pos as u32
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Returns whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes of all elements.
    pub fn bytes(&self) -> &'a [u8] {
        self.data
    }
}

/// A vector of tables: the offsets are inside the buffer, what they point at is checked when it is asked for.
#[derive(Clone, Copy)]
pub struct Tables<'a> {
    buffer: &'a [u8],
    vector: Vector<'a>,
}

impl<'a> Tables<'a> {
    /// A vector without elements.
    pub const fn empty() -> Self {
        Tables { buffer: &[], vector: Vector { pos: 0, data: &[], len: 0 } }
    }

    /// Number of tables.
    pub fn len(&self) -> usize {
        self.vector.len()
    }

    /// Returns whether there are no tables.
    pub fn is_empty(&self) -> bool {
        self.vector.is_empty()
    }

    /// Position of the first offset.
    pub fn offset(&self) -> u32 {
        self.vector.offset()
    }

    /// The buffer that the tables are in.
    pub fn buffer(&self) -> &'a [u8] {
        self.buffer
    }

    /// Returns the start of table `index`; an error also if there is no such table.
    #[inline]
    pub fn position(&self, index: usize) -> Result<usize> {
        if index >= self.len() {
            return error(ReadErrorKind::OutOfBounds, self.vector.pos);
        }
        follow(self.buffer, self.vector.pos + index * 4)
    }

    /// Table `index`; an error also when there is no such table.
    #[inline]
    pub fn get(&self, index: usize) -> Result<Table<'a>> {
        Table::at(self.buffer, self.position(index)?)
    }

    /// All tables in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Result<Table<'a>>> + use<'a> {
        let this = *self;
        (0..this.len()).map(move |index| this.get(index))
    }
}

impl fmt::Debug for Tables<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} tables at {:#x}", self.len(), self.vector.pos)
    }
}

/// A vector of strings: the offsets are inside the buffer, the strings are checked when they are asked for. Their bytes
/// may be anything.
#[derive(Clone, Copy)]
pub struct Strings<'a> {
    buffer: &'a [u8],
    vector: Vector<'a>,
}

impl<'a> Strings<'a> {
    /// Number of strings.
    pub fn len(&self) -> usize {
        self.vector.len()
    }

    /// Returns whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.vector.is_empty()
    }

    /// Position of the first offset.
    pub fn offset(&self) -> u32 {
        self.vector.offset()
    }

    /// String `index` without its terminator; an error also when there is no such string.
    pub fn get(&self, index: usize) -> Result<Vector<'a>> {
        if index >= self.len() {
            return error(ReadErrorKind::OutOfBounds, self.vector.pos);
        }
        let pos = follow(self.buffer, self.vector.pos + index * 4)?;
        terminated(self.buffer, Vector::at(self.buffer, pos, 1)?)
    }
}

impl fmt::Debug for Strings<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} strings at {:#x}", self.len(), self.vector.pos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// vtable {len 8, inline 12, slot 0 at 4, slot 1 at 8}, then the table.
    const SAMPLE: [u8; 32] = [
        12, 0, 0, 0, 8, 0, 12, 0, 4, 0, 8, 0, // root offset, vtable
        8, 0, 0, 0, 42, 0, 0, 0, 4, 0, 0, 0, // table: back offset, slot 0 = 42, slot 1 -> +4
        3, 0, 0, 0, b'a', b'b', b'c', 0, // string
    ];

    #[test]
    fn reads_fields_and_strings() {
        let table = Table::root(&SAMPLE).unwrap();
        assert_eq!(table.scalar::<4>(0).unwrap().map(u32::from_le_bytes), Some(42));
        assert_eq!(table.string(1).unwrap().unwrap().bytes(), b"abc");
        assert_eq!(table.scalar::<4>(2).unwrap(), None);
        assert_eq!(table.slot_count(), 2);
    }

    #[test]
    fn every_truncation_is_an_error_or_a_shorter_answer() {
        for len in 0..SAMPLE.len() {
            let bytes = &SAMPLE[..len];
            let read = Table::root(bytes).and_then(|table| table.string(1));
            assert!(read.is_err(), "{len} bytes");
        }
    }

    #[test]
    fn an_unterminated_string_is_refused() {
        let mut bytes = SAMPLE;
        bytes[31] = 1;
        let error = Table::root(&bytes).unwrap().string(1).unwrap_err();
        assert_eq!(error.kind, ReadErrorKind::Unterminated);
    }

    #[test]
    fn a_field_outside_its_table_is_refused() {
        let mut bytes = SAMPLE;
        bytes[8] = 11; // slot 0 now ends past the inline length
        let error = Table::root(&bytes).unwrap().scalar::<4>(0).unwrap_err();
        assert_eq!(error.kind, ReadErrorKind::FieldOutsideTable);
    }
}
