//! Extended headers: what is between a flatbuffer's identifier and its tables.
//!
//! Exporters insert a small header at byte 8, after the root offset and the identifier, and shift the root offset by
//! its padded length. It says where the flatbuffer ends and where the segments begin.

use zerocopy::byteorder::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

/// Offset of the header in the file.
pub const HEADER_OFFSET: usize = 8;

/// Bytes of the head of a program file that loaders read first.
pub const HEAD_LEN: usize = 64;

#[derive(FromBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct ProgramHeaderBytes {
    magic: [u8; 4],
    length: U32,
    program_size: U64,
    segment_base_offset: U64,
}

#[derive(FromBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct DataHeaderBytes {
    magic: [u8; 4],
    length: U32,
    flatbuffer_offset: U64,
    flatbuffer_size: U64,
    segment_base_offset: U64,
    segment_data_size: U64,
}

/// The header of a program, magic `eh00`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct ProgramHeader {
    /// Bytes from the magic on, without padding: 24, or 32 since 2025.
    pub length: u32,
    /// Bytes from the start of the file to the end of the flatbuffer.
    pub program_size: u64,
    /// Offset of the segments in the file; 0 for none.
    pub segment_base_offset: u64,
    /// Bytes from the base to the end of the last segment; not in the 24-byte form.
    pub segment_data_size: Option<u64>,
}

/// The header of a data file, magic `FH01`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct DataHeader {
    /// Bytes from the magic on, without padding: 40.
    pub length: u32,
    /// By how many bytes the flatbuffer after its first 8 was shifted.
    pub flatbuffer_offset: u64,
    /// Bytes of the flatbuffer before the header was inserted.
    pub flatbuffer_size: u64,
    /// Offset of the segments in the file.
    pub segment_base_offset: u64,
    /// Bytes from the base to the end of the last segment.
    pub segment_data_size: u64,
}

/// Reason there is no usable header.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum HeaderError {
    /// The magic is not there: the file is a bare flatbuffer.
    #[error("no extended header")]
    Absent,
    /// The file ends inside the header.
    #[error("the file ends inside the extended header")]
    Short,
    /// The header is shorter than its fixed part.
    #[error("header length {have}, at least {want} are needed")]
    Length {
        /// Length that the header gives.
        have: u32,
        /// Length of the known fields in bytes: 24 for a program, 40 for a data file.
        want: u32,
    },
}

impl ProgramHeader {
    /// Length in bytes of the file that it announces: to the end of the flatbuffer, or of the segments.
    pub fn announced(&self) -> u64 {
        match (self.segment_base_offset, self.segment_data_size) {
            (base @ 1.., Some(size)) => self.program_size.max(base.saturating_add(size)),
            _ => self.program_size,
        }
    }

    /// First four bytes of the header of a program; without them the file is a bare flatbuffer.
    pub const MAGIC: [u8; 4] = *b"eh00";
    /// The form without `segment_data_size`.
    pub const SHORT_LEN: u32 = 24;
    /// The form with it.
    pub const LEN: u32 = 32;

    /// Reads the header of a file's head. Longer headers than known are fine; the rest is ignored.
    pub fn read(head: &[u8]) -> Result<Self, HeaderError> {
        let bytes = after_identifier(head, &Self::MAGIC)?;
        let (fixed, rest) = ProgramHeaderBytes::ref_from_prefix(bytes).map_err(|_| HeaderError::Short)?;
        let length = fixed.length.get();
        if length < Self::SHORT_LEN {
            return Err(HeaderError::Length { have: length, want: Self::SHORT_LEN });
        }
        let segment_data_size = match length >= Self::LEN {
            true => Some(U64::ref_from_prefix(rest).map_err(|_| HeaderError::Short)?.0.get()),
            false => None,
        };
        Ok(ProgramHeader {
            length,
            program_size: fixed.program_size.get(),
            segment_base_offset: fixed.segment_base_offset.get(),
            segment_data_size,
        })
    }

    /// The canonical 32 bytes, whatever `length` says.
    pub fn to_bytes(&self) -> [u8; 32] {
        let mut out = [0; 32];
        let fields = [self.program_size, self.segment_base_offset, self.segment_data_size.unwrap_or(0)];
        let numbers = fields.iter().flat_map(|field| field.to_le_bytes());
        let bytes = Self::MAGIC.into_iter().chain(Self::LEN.to_le_bytes()).chain(numbers);
        for (out, byte) in out.iter_mut().zip(bytes) {
            *out = byte;
        }
        out
    }
}

impl DataHeader {
    /// First four bytes of the header of a data file; without them the file is a bare flatbuffer.
    pub const MAGIC: [u8; 4] = *b"FH01";
    /// Length of the header in bytes, magic included.
    pub const LEN: u32 = 40;

    /// Length in bytes of the file that it announces: to the end of the flatbuffer, or of the segments.
    pub fn announced(&self) -> u64 {
        let tables = self.region_end().unwrap_or(u64::MAX);
        match self.segment_data_size {
            0 => tables,
            size => tables.max(self.segment_base_offset.saturating_add(size)),
        }
    }

    /// Reads the header of a file's head. Longer headers than known are fine; the rest is ignored.
    pub fn read(head: &[u8]) -> Result<Self, HeaderError> {
        let bytes = after_identifier(head, &Self::MAGIC)?;
        let (fixed, _) = DataHeaderBytes::ref_from_prefix(bytes).map_err(|_| HeaderError::Short)?;
        let length = fixed.length.get();
        if length < Self::LEN {
            return Err(HeaderError::Length { have: length, want: Self::LEN });
        }
        Ok(DataHeader {
            length,
            flatbuffer_offset: fixed.flatbuffer_offset.get(),
            flatbuffer_size: fixed.flatbuffer_size.get(),
            segment_base_offset: fixed.segment_base_offset.get(),
            segment_data_size: fixed.segment_data_size.get(),
        })
    }

    /// The canonical 40 bytes, whatever `length` says.
    pub fn to_bytes(&self) -> [u8; 40] {
        let mut out = [0; 40];
        let fields = [self.flatbuffer_offset, self.flatbuffer_size, self.segment_base_offset, self.segment_data_size];
        let numbers = fields.iter().flat_map(|field| field.to_le_bytes());
        let bytes = Self::MAGIC.into_iter().chain(Self::LEN.to_le_bytes()).chain(numbers);
        for (out, byte) in out.iter_mut().zip(bytes) {
            *out = byte;
        }
        out
    }

    /// Returns the end of the flatbuffer with the header inside it, or `None` if that overflows.
    pub fn region_end(&self) -> Option<u64> {
        self.flatbuffer_offset.checked_add(self.flatbuffer_size)
    }
}

/// Length in bytes that the header of a program or data file announces; `None` without a header.
pub fn announced(head: &[u8]) -> Option<u64> {
    let program = ProgramHeader::read(head).ok().map(|header| header.announced());
    program.or_else(|| DataHeader::read(head).ok().map(|header| header.announced()))
}

/// The bytes from the magic on.
fn after_identifier<'a>(head: &'a [u8], magic: &[u8; 4]) -> Result<&'a [u8], HeaderError> {
    match head.get(HEADER_OFFSET..) {
        Some(bytes) if bytes.starts_with(magic) => Ok(bytes),
        _ => Err(HeaderError::Absent),
    }
}

/// The identifier of a flatbuffer: bytes 4 to 8.
pub fn identifier(head: &[u8]) -> Option<[u8; 4]> {
    head.get(4..)?.first_chunk().copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn head(length: u32) -> Vec<u8> {
        let header = ProgramHeader { length, program_size: 1, segment_base_offset: 2, segment_data_size: Some(3) };
        let mut head = [0u8; 8].to_vec();
        head.extend(header.to_bytes());
        head[12..16].copy_from_slice(&length.to_le_bytes());
        head.resize(HEAD_LEN, 0);
        head
    }

    #[test]
    fn both_forms_are_read() {
        assert_eq!(ProgramHeader::read(&head(24)).unwrap().segment_data_size, None);
        assert_eq!(ProgramHeader::read(&head(31)).unwrap().segment_data_size, None);
        assert_eq!(ProgramHeader::read(&head(32)).unwrap().segment_data_size, Some(3));
        assert_eq!(ProgramHeader::read(&head(99)).unwrap().program_size, 1);
    }

    #[test]
    fn short_lengths_and_missing_magic_differ() {
        assert_eq!(ProgramHeader::read(&head(16)), Err(HeaderError::Length { have: 16, want: 24 }));
        let mut other = head(32);
        other[9] ^= 1;
        assert_eq!(ProgramHeader::read(&other), Err(HeaderError::Absent));
        assert_eq!(ProgramHeader::read(&head(32)[..36]), Err(HeaderError::Short));
    }

    #[test]
    fn data_headers_survive_a_round_trip() {
        let header = DataHeader {
            length: 40,
            flatbuffer_offset: 48,
            flatbuffer_size: 272,
            segment_base_offset: 384,
            segment_data_size: 140,
        };
        let mut bytes = [0u8; 8].to_vec();
        bytes.extend(header.to_bytes());
        assert_eq!(DataHeader::read(&bytes), Ok(header));
        assert_eq!(header.region_end(), Some(320));
        assert_eq!(DataHeader::read(&bytes[..40]), Err(HeaderError::Short));
    }
}
