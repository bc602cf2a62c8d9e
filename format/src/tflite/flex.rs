//! FlexBuffers, as far as custom options use them: a map from short keys to numbers, strings and vectors of these.
//!
//! A FlexBuffer is read from its end: the last byte is the width of the root value, the one before its type. Offsets
//! point backwards. Invariant: nothing outside the slice is read, and the work is in proportion to its length.

use alloc::vec::Vec;
use core::fmt;

use crate::room::{self, NoRoom};

/// The longest key that is read; those of custom options have one character.
const MAX_KEY: usize = 64;

/// Reason bytes are not a FlexBuffer that is understood here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlexError {
    /// Part that could not be read.
    pub what: &'static str,
    /// Position in bytes from the start.
    pub offset: usize,
}

impl FlexError {
    const MEMORY: &str = "a list that there is no memory for";

    /// Returns whether the bytes are not at fault: there was no memory.
    pub fn is_memory(&self) -> bool {
        self.what == Self::MEMORY
    }
}

impl fmt::Display for FlexError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {:#x}", self.what, self.offset)
    }
}

impl core::error::Error for FlexError {}

type Result<T> = core::result::Result<T, FlexError>;

/// The types that are told apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlexType(pub u8);

impl FlexType {
    /// Signed number, in as many bytes as its slot.
    pub const INT: FlexType = FlexType(1);
    /// Unsigned number, in as many bytes as its slot.
    pub const UINT: FlexType = FlexType(2);
    /// Text without a length, ended by a zero byte.
    pub const KEY: FlexType = FlexType(4);
    /// Text with its length in front and a zero byte behind.
    pub const STRING: FlexType = FlexType(5);
    /// Values, and keys that ascend, in a vector each.
    pub const MAP: FlexType = FlexType(9);
    /// A vector of values of any types.
    pub const VECTOR: FlexType = FlexType(10);
    /// Bytes.
    pub const BLOB: FlexType = FlexType(25);

    /// Returns the name of the type.
    pub fn name(self) -> &'static str {
        match self {
            FlexType::INT => "int",
            FlexType::UINT => "uint",
            FlexType::KEY => "key",
            FlexType::STRING => "string",
            FlexType::MAP => "map",
            FlexType::VECTOR => "vector",
            FlexType::BLOB => "blob",
            FlexType(0) => "null",
            FlexType(3) => "float",
            FlexType(26) => "bool",
            _ => "other",
        }
    }
}

/// A value: its type and where it is.
#[derive(Clone, Copy, Debug)]
pub struct FlexValue<'a> {
    bytes: &'a [u8],
    /// Type of the value.
    pub kind: FlexType,
    /// Position of the slot: the value itself, or the offset to it.
    slot: usize,
    slot_width: usize,
    /// Width of what the offset points at.
    width: usize,
}

impl From<NoRoom> for FlexError {
    fn from(_: NoRoom) -> Self {
        FlexError { what: FlexError::MEMORY, offset: 0 }
    }
}

fn bad<T>(what: &'static str, offset: usize) -> Result<T> {
    Err(FlexError { what, offset })
}

/// The unsigned number of `width` bytes at `at`.
fn number(bytes: &[u8], at: usize, width: usize) -> Result<u64> {
    let end = at.checked_add(width);
    let Some(found) = end.and_then(|end| bytes.get(at..end)) else { return bad("a number outside the buffer", at) };
    let mut wide = [0u8; 8];
    for (to, from) in wide.iter_mut().zip(found) {
        *to = *from;
    }
    Ok(u64::from_le_bytes(wide))
}

/// Follows the backward offset stored at `at`.
fn back(bytes: &[u8], at: usize, width: usize) -> Result<usize> {
    let offset = usize::try_from(number(bytes, at, width)?).ok();
    match offset.filter(|offset| *offset > 0).and_then(|offset| at.checked_sub(offset)) {
        Some(target) => Ok(target),
        None => bad("an offset to before the buffer", at),
    }
}

/// The length that is in front of `at`.
fn length(bytes: &[u8], at: usize, width: usize) -> Result<usize> {
    let Some(place) = at.checked_sub(width) else { return bad("a length before the buffer", at) };
    match usize::try_from(number(bytes, place, width)?) {
        Ok(len) if len <= bytes.len() => Ok(len),
        _ => bad("a length beyond the buffer", place),
    }
}

impl<'a> FlexValue<'a> {
    /// The root of a buffer.
    pub fn root(bytes: &'a [u8]) -> Result<Self> {
        let [.., kind, width] = bytes else { return bad("fewer than three bytes", bytes.len()) };
        let width = usize::from(*width);
        let slot = bytes.len().checked_sub(2).and_then(|end| end.checked_sub(width));
        match slot {
            Some(slot) if matches!(width, 1 | 2 | 4 | 8) => Ok(Self::new(bytes, *kind, slot, width)),
            _ => bad("the width of the root", bytes.len()),
        }
    }

    fn new(bytes: &'a [u8], packed: u8, slot: usize, slot_width: usize) -> Self {
        FlexValue { bytes, kind: FlexType(packed >> 2), slot, slot_width, width: 1 << (packed & 3) }
    }

    /// The byte that says type and width.
    pub fn packed_type(&self) -> u8 {
        (self.kind.0 << 2) | (self.width.trailing_zeros() as u8)
    }

    /// Bytes of its slot.
    pub fn slot_width(&self) -> usize {
        self.slot_width
    }

    /// The number, if it is a signed one.
    pub fn int(&self) -> Result<Option<i64>> {
        if self.kind != FlexType::INT {
            return Ok(None);
        }
        let bits = number(self.bytes, self.slot, self.slot_width)?;
        let unused = 64usize.saturating_sub(self.slot_width.saturating_mul(8)) as u32;
        // The number is as wide as its slot; its sign is that of its top bit.
        Ok(Some((bits.checked_shl(unused).unwrap_or(0) as i64).checked_shr(unused).unwrap_or(0)))
    }

    /// Returns the start of a string's or blob's bytes, and the bytes.
    pub fn data(&self) -> Result<Option<(usize, &'a [u8])>> {
        if !matches!(self.kind, FlexType::STRING | FlexType::BLOB) {
            return Ok(None);
        }
        let at = back(self.bytes, self.slot, self.slot_width)?;
        let len = length(self.bytes, at, self.width)?;
        let end = at.saturating_add(len);
        let Some(data) = self.bytes.get(at..end) else { return bad("a string beyond the buffer", at) };
        match self.bytes.get(end) {
            Some(0) => Ok(Some((at, data))),
            _ if self.kind == FlexType::BLOB => Ok(Some((at, data))),
            _ => bad("a string without its terminating zero", end),
        }
    }

    /// The elements of a vector.
    pub fn vector(&self) -> Result<Option<Vec<FlexValue<'a>>>> {
        match self.kind {
            FlexType::VECTOR => self.elements().map(Some),
            _ => Ok(None),
        }
    }

    /// The entries of a map, in its order: keys ascend, for readers search them by halving.
    pub fn map(&self) -> Result<Option<Vec<(&'a str, FlexValue<'a>)>>> {
        if self.kind != FlexType::MAP {
            return Ok(None);
        }
        let values = self.elements()?;
        let at = back(self.bytes, self.slot, self.slot_width)?;
        let places = (at.checked_sub(self.width.saturating_mul(3)), at.checked_sub(self.width.saturating_mul(2)));
        let (Some(offset), Some(width)) = places else { return bad("a map before the buffer", at) };
        let keys = back(self.bytes, offset, self.width)?;
        let width = match number(self.bytes, width, self.width)? {
            width @ (1 | 2 | 4 | 8) => width as usize,
            _ => return bad("the width of a map's keys", width),
        };
        if length(self.bytes, keys, width)? != values.len() {
            return bad("a map with more keys or values", at);
        }
        let mut entries: Vec<(&str, _)> = room::with_room(values.len())?;
        for (index, value) in values.into_iter().enumerate() {
            let slot = keys.saturating_add(index.saturating_mul(width));
            let key = key(self.bytes, back(self.bytes, slot, width)?)?;
            if entries.last().is_some_and(|(before, _)| *before >= key) {
                return bad("a key that is not above the one before it", slot);
            }
            entries.push((key, value));
        }
        Ok(Some(entries))
    }

    fn elements(&self) -> Result<Vec<FlexValue<'a>>> {
        let at = back(self.bytes, self.slot, self.slot_width)?;
        let len = length(self.bytes, at, self.width)?;
        let types = at.saturating_add(len.saturating_mul(self.width));
        let Some(types) = self.bytes.get(types..types.saturating_add(len)) else {
            return bad("a vector beyond the buffer", at);
        };
        let slots = (0..len).map(|index| at.saturating_add(index.saturating_mul(self.width)));
        Ok(room::collect(slots.zip(types).map(|(slot, kind)| FlexValue::new(self.bytes, *kind, slot, self.width)))?)
    }
}

fn key(bytes: &[u8], at: usize) -> Result<&str> {
    let text = bytes.get(at..).unwrap_or(&[]);
    let text = text.get(..MAX_KEY).unwrap_or(text);
    let end = text.iter().position(|byte| *byte == 0);
    match end.and_then(|end| text.get(..end)).and_then(|text| core::str::from_utf8(text).ok()) {
        Some(text) => Ok(text),
        None => bad("a key", at),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `{"1": 0, "4": "abc", "6": [17, -1]}`, written by hand.
    const SAMPLE: &[u8] = &[
        b'1', 0, b'4', 0, 3, b'a', b'b', b'c', 0, b'6', 0, 2, 17, 0xff, 4, 4, // keys, string, vector
        3, 17, 16, 10, // offsets to the keys
        3, 1, 3, // offset to the key vector, its width, entries
        0, 19, 13, 4, 20, 40, // values, types
        6, 0x24, 1,
    ];

    #[test]
    fn a_map_is_read_from_its_end() {
        let root = FlexValue::root(SAMPLE).unwrap();
        assert_eq!((root.kind, root.packed_type()), (FlexType::MAP, 0x24));
        let map = root.map().unwrap().unwrap();
        assert_eq!(map.iter().map(|(key, _)| *key).collect::<Vec<_>>(), ["1", "4", "6"]);
        assert_eq!(map[0].1.int().unwrap(), Some(0));
        assert_eq!(map[1].1.data().unwrap(), Some((5, &b"abc"[..])));
        let list = map[2].1.vector().unwrap().unwrap();
        assert_eq!(list.iter().map(|item| item.int().unwrap()).collect::<Vec<_>>(), [Some(17), Some(-1)]);
        assert_eq!(map[2].1.data().unwrap(), None);
    }

    #[test]
    fn any_damage_is_answered() {
        fn walk(bytes: &[u8]) -> Result<()> {
            for (_, value) in FlexValue::root(bytes)?.map()?.unwrap_or_default() {
                value.int()?;
                value.data()?;
                value.vector()?;
            }
            Ok(())
        }
        walk(SAMPLE).unwrap();
        for len in 0..SAMPLE.len() {
            let _ = walk(&SAMPLE[..len]);
        }
        let mut refused = 0;
        for at in 0..SAMPLE.len() {
            for value in 0..=255 {
                let mut bytes = SAMPLE.to_vec();
                bytes[at] = value;
                refused += usize::from(walk(&bytes).is_err());
            }
        }
        assert!(refused > 1000, "{refused}");
    }
}
