//! Flatbuffers as the schema compiler lays them out when it reads JSON: what exporters of XNNPACK payloads do.
//!
//! The layout differs from that of [`sink`](crate::sink) in three things. Alignment counts from the end of the buffer; a
//! vtable is right before the first table that uses it; and in a table the small fields come first, padding included,
//! which is why tables with the same fields may have vtables of their own. Strings are not shared.

use std::collections::HashMap;

use edgepack_format::row::{FieldValue, Sink};

use crate::Error;
use crate::buffer::{MAX_ALIGNMENT, MAX_LEN};

/// A finished object: its distance from the end of the buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Position(u32);

/// Writes rows into one flatbuffer.
#[derive(Default)]
pub struct CompilerSink {
    /// The buffer from its end to its start.
    reversed: Vec<u8>,
    /// The largest alignment asked for so far.
    alignment: usize,
    /// Every vtable and where it is.
    vtables: HashMap<Box<[u8]>, u32>,
}

impl CompilerSink {
    /// An empty flatbuffer.
    pub fn new() -> Self {
        Self::default()
    }

    /// The whole buffer of this root, with the identifier at byte 4.
    pub fn finish(mut self, root: Position, identifier: [u8; 4]) -> Result<Vec<u8>, Error> {
        let align = self.alignment.max(4);
        self.pad(8, align)?;
        self.push(&identifier);
        let word = self.word(root)?;
        self.push(&word);
        self.reversed.reverse();
        Ok(self.reversed)
    }

    /// Bytes so far, which is the position of what was pushed last.
    fn len(&self) -> u32 {
        // At most MAX_LEN: `pad` sees to that before anything is pushed.
        self.reversed.len() as u32
    }

    /// Zeros, so that what comes next is aligned after `bytes` bytes more.
    fn pad(&mut self, bytes: usize, align: usize) -> Result<(), Error> {
        if !align.is_power_of_two() || align > MAX_ALIGNMENT {
            return Err(Error::Alignment(align));
        }
        let most = MAX_LEN.saturating_sub(MAX_ALIGNMENT);
        let end = self.reversed.len().checked_add(bytes).filter(|end| *end <= most);
        let too_large =
            Error::TooLarge { bytes: (self.reversed.len() as u64).saturating_add(bytes as u64), most: most as u64 };
        let end = end.ok_or(too_large)?;
        let padding = end.next_multiple_of(align).saturating_sub(end);
        self.reversed.resize(self.reversed.len().saturating_add(padding), 0);
        self.alignment = self.alignment.max(align);
        Ok(())
    }

    /// Puts bytes in front.
    fn push(&mut self, bytes: &[u8]) {
        self.reversed.extend(bytes.iter().rev());
    }

    /// Puts an aligned number in front.
    fn number(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.pad(0, bytes.len())?;
        self.push(bytes);
        Ok(())
    }

    /// The offset that an aligned word put in front next has to hold to point there.
    fn word(&mut self, to: Position) -> Result<[u8; 4], Error> {
        self.pad(0, 4)?;
        Ok(self.len().saturating_add(4).saturating_sub(to.0).to_le_bytes())
    }

    /// The length in front of what was written, as of a vector.
    fn count(&mut self, count: usize) -> Result<Position, Error> {
        // What is counted is in the buffer, so the number fits.
        self.number(&(count as u32).to_le_bytes())?;
        Ok(Position(self.len()))
    }
}

impl Sink for CompilerSink {
    type Error = Error;
    type Ref = Position;

    fn string(&mut self, text: &str) -> Result<Position, Error> {
        self.byte_string(1, text.as_bytes())
    }

    fn byte_string(&mut self, align: usize, bytes: &[u8]) -> Result<Position, Error> {
        self.pad(bytes.len().saturating_add(1), align.max(4))?;
        self.push(&[0]);
        self.push(bytes);
        self.count(bytes.len())
    }

    fn scalars(&mut self, size: usize, align: usize, bytes: &[u8]) -> Result<Position, Error> {
        let count = match bytes.len().checked_div(size) {
            Some(count) if bytes.len().checked_rem(size) == Some(0) => count,
            _ => return Err(Error::Elements { bytes: bytes.len(), size }),
        };
        self.pad(bytes.len(), align.max(4))?;
        self.push(bytes);
        self.count(count)
    }

    fn refs(&mut self, refs: &[Position]) -> Result<Position, Error> {
        self.pad(refs.len().saturating_mul(4), 4)?;
        for target in refs.iter().rev() {
            let word = self.word(*target)?;
            self.push(&word);
        }
        self.count(refs.len())
    }

    fn table(&mut self, fields: &[(u16, FieldValue<Position>)]) -> Result<Position, Error> {
        let highest = fields.iter().map(|(slot, _)| *slot).max();
        let too_wide = Error::WideTable { fields: fields.len(), slot: highest.unwrap_or(0) };
        let mut order: Vec<_> = fields.iter().collect();
        order.sort_by_key(|(slot, _)| *slot);
        let mut places = vec![0u32; highest.map_or(0, |slot| usize::from(slot).saturating_add(1))];
        let start = self.len();
        for width in [8usize, 4, 2, 1] {
            for (slot, value) in order.iter().rev() {
                match value {
                    FieldValue::Scalar(bytes, len) if usize::from(*len) == width => {
                        self.number(bytes.get(..width).unwrap_or(bytes))?;
                    }
                    FieldValue::Ref(target) if width == 4 => {
                        let word = self.word(*target)?;
                        self.push(&word);
                    }
                    _ => continue,
                }
                if let Some(place) = places.get_mut(usize::from(*slot)) {
                    *place = self.len();
                }
            }
        }
        // Room for the distance to the vtable.
        self.pad(4, 4)?;
        let table = self.len().saturating_add(4);
        let vtable = vtable(&places, table, start).ok_or(too_wide)?;
        let distance = match self.vtables.get(&*vtable) {
            Some(position) => (*position as i32).wrapping_sub(table as i32),
            None => vtable.len() as i32,
        };
        self.push(&distance.to_le_bytes());
        if !self.vtables.contains_key(&*vtable) {
            self.push(&vtable);
            let position = self.len();
            self.vtables.insert(vtable.into(), position);
        }
        Ok(Position(table))
    }
}

/// The vtable of a table that starts at `table` and whose fields were written from `start` on. `None` if it is too wide.
fn vtable(places: &[u32], table: u32, start: u32) -> Option<Vec<u8>> {
    let len = u16::try_from(places.len().checked_mul(2)?.checked_add(4)?).ok()?;
    let size = u16::try_from(table.checked_sub(start)?).ok()?;
    let offset = |place: &u32| match place {
        0 => 0,
        place => table.saturating_sub(*place) as u16,
    };
    let numbers = [len, size].into_iter().chain(places.iter().map(offset));
    Some(numbers.flat_map(u16::to_le_bytes).collect())
}
