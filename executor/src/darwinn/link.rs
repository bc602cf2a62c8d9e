//! Linking: addresses written into the fields of instruction chunks, bit by bit.
//!
//! A field is 32 bits at any bit of a chunk, counted from the least significant bit of the first byte. All other bits
//! stay. Every field is overwritten whole, so linking a linked chunk again is safe.

use std::collections::BTreeMap;

use edgepack_format::darwinn::{Description, Executable, FieldOffset, Position};
use edgepack_format::wire::ReadError;

/// Addresses of the buffers of an executable, as the device sees them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Addresses {
    /// Address of the parameters; without one, fields for it stay as they are.
    pub parameter: Option<u64>,
    /// Address of the scratch memory; without one, fields for it stay as they are.
    pub scratch: Option<u64>,
    /// Addresses of the inputs by name, one per batch entry.
    pub inputs: BTreeMap<String, Vec<u64>>,
    /// Addresses of the outputs by name, one per batch entry.
    pub outputs: BTreeMap<String, Vec<u64>>,
}

/// Reason for which instructions could not be linked.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// A row could not be read: the package was not verified.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A field is outside its chunk.
    #[error("chunk {chunk}: the field at bit {bit} ends outside the chunk's {bytes} bytes")]
    Range {
        /// Index of the chunk.
        chunk: usize,
        /// The field's first bit.
        bit: i64,
        /// Bytes of the chunk.
        bytes: usize,
    },
    /// There is no address for a field.
    #[error("chunk {chunk}, field {field}: there is no address for batch entry {batch} of {what} {name:?}")]
    Address {
        /// Index of the chunk.
        chunk: usize,
        /// Index of the field in the chunk.
        field: usize,
        /// Input or output.
        what: &'static str,
        /// The layer's name.
        name: String,
        /// The batch entry.
        batch: i32,
    },
    /// A field does not say what goes into it.
    #[error("chunk {chunk}, field {field}: {message}")]
    Field {
        /// Index of the chunk.
        chunk: usize,
        /// Index of the field in the chunk.
        field: usize,
        /// Description of the error.
        message: String,
    },
}

/// The instruction chunks with these addresses in them.
pub fn link(executable: &Executable<'_>, addresses: &Addresses) -> Result<Vec<Vec<u8>>, LinkError> {
    let mut linked = Vec::new();
    for (chunk, row) in
        executable.instruction_bitstreams.iter().flat_map(|rows| rows.iter().collect::<Vec<_>>()).enumerate()
    {
        let row = row?;
        let mut bytes = row.bitstream.map(|blob| blob.0.into_owned()).unwrap_or_default();
        for (index, field) in row.field_offsets.iter().flat_map(|rows| rows.iter().collect::<Vec<_>>()).enumerate() {
            let field = field?;
            let Some(value) = value_of(&field, addresses, chunk, index)? else { continue };
            let len = bytes.len();
            let bit = usize::try_from(field.offset_bit).ok();
            if bit.is_none_or(|bit| !write_field(&mut bytes, bit, value)) {
                return Err(LinkError::Range { chunk, bit: field.offset_bit.into(), bytes: len });
            }
        }
        linked.push(bytes);
    }
    Ok(linked)
}

/// Returns the value of a field; `None` if the field stays as it is.
fn value_of(
    field: &FieldOffset<'_>,
    addresses: &Addresses,
    chunk: usize,
    index: usize,
) -> Result<Option<u32>, LinkError> {
    let wrong = |message: String| LinkError::Field { chunk, field: index, message };
    let meta = field.meta.as_ref().ok_or_else(|| wrong("it has no meta".to_owned()))?;
    let layer = |layers: &BTreeMap<String, Vec<u64>>, what| {
        let name = meta.name.as_deref().unwrap_or_default();
        let entry = usize::try_from(meta.batch).ok();
        let found = entry.and_then(|entry| layers.get(name)?.get(entry).copied());
        found.map(Some).ok_or_else(|| LinkError::Address {
            chunk,
            field: index,
            what,
            name: name.to_owned(),
            batch: meta.batch,
        })
    };
    let address = match meta.desc {
        Description::BASE_ADDRESS_PARAMETER => addresses.parameter,
        Description::BASE_ADDRESS_SCRATCH => addresses.scratch,
        Description::BASE_ADDRESS_INPUT_ACTIVATION => layer(&addresses.inputs, "input")?,
        Description::BASE_ADDRESS_OUTPUT_ACTIVATION => layer(&addresses.outputs, "output")?,
        other => return Err(wrong(format!("it is about {other}"))),
    };
    let Some(address) = address else { return Ok(None) };
    match meta.position {
        Position::LOWER_32BIT => Ok(Some(address as u32)),
        Position::UPPER_32BIT => Ok(Some((address >> 32) as u32)),
        other => Err(wrong(format!("its position is {other}"))),
    }
}

/// Replaces the 32 bits from `bit` on; `false`, and nothing changed, if they are not all inside.
pub fn write_field(bytes: &mut [u8], bit: usize, value: u32) -> bool {
    let (first, shift) = (bit / 8, bit % 8);
    let len = if shift == 0 { 4 } else { 5 };
    let Some(place) = first.checked_add(len).and_then(|end| bytes.get_mut(first..end)) else { return false };
    let mut window = [0; 8];
    window[..len].copy_from_slice(place);
    let mask = u64::from(u32::MAX) << shift;
    let new = (u64::from_le_bytes(window) & !mask) | (u64::from(value) << shift);
    place.copy_from_slice(&new.to_le_bytes()[..len]);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes a field one bit at a time.
    fn by_bits(bytes: &mut [u8], bit: usize, value: u32) {
        for k in 0..32 {
            let (byte, place) = ((bit + k) / 8, (bit + k) % 8);
            bytes[byte] = (bytes[byte] & !(1 << place)) | ((((value >> k) & 1) as u8) << place);
        }
    }

    #[test]
    fn every_phase_writes_its_bits_and_no_other() {
        for pattern in [0x00u8, 0xff, 0xa5] {
            for bit in 0..=64 {
                for value in [0, u32::MAX, 0x1234_5678, 0x8000_0001] {
                    let (mut ours, mut theirs) = ([pattern; 12], [pattern; 12]);
                    assert!(write_field(&mut ours, bit, value));
                    by_bits(&mut theirs, bit, value);
                    assert_eq!(ours, theirs, "bit {bit}");
                }
            }
        }
    }

    #[test]
    fn a_field_that_ends_outside_changes_nothing() {
        let mut bytes = [7; 12];
        assert!(write_field(&mut bytes.clone(), 64, 1));
        for bit in [65, 66, 96, 1000, usize::MAX] {
            assert!(!write_field(&mut bytes, bit, u32::MAX), "{bit}");
        }
        assert_eq!(bytes, [7; 12]);
    }
}
