//! The container of a payload: where its flatbuffer and its region of constants lie.
//!
//! A header is at the start, with zeros where a flatbuffer has the offset of its root and the magic where it has its
//! identifier: one look tells a payload with a header from a bare flatbuffer.

use zerocopy::byteorder::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

#[derive(FromBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct HeaderBytes {
    zeros: [u8; 4],
    magic: [u8; 4],
    length: U16,
    flatbuffer_offset: U32,
    flatbuffer_size: U32,
    constants_offset: U32,
    constants_size: U64,
}

/// The header of a payload, magic `XH00`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// Bytes of the header: 30.
    pub length: u16,
    /// Start of the flatbuffer.
    pub flatbuffer_offset: u32,
    /// Its bytes, without padding.
    pub flatbuffer_size: u32,
    /// Start of the region of constants.
    pub constants_offset: u32,
    /// Its bytes; 0 since constants are named data.
    pub constants_size: u64,
}

/// A header that cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum HeaderError {
    /// The payload ends inside the header.
    #[error("{have} bytes, a payload has at least {}", Header::LEN)]
    Short {
        /// Bytes of the payload.
        have: usize,
    },
    /// The header is shorter than its fields.
    #[error("the header says it has {have} bytes, its fields take {}", Header::LEN)]
    Length {
        /// The length in the header.
        have: u16,
    },
}

impl Header {
    /// The magic, where a flatbuffer has its identifier.
    pub const MAGIC: [u8; 4] = *b"XH00";
    /// Bytes of the header, and the fewest bytes of any payload.
    pub const LEN: u16 = 30;
    /// Alignment of flatbuffer and constants, as exporters place them.
    pub const ALIGNMENT: u32 = 16;

    /// Reads the header of a payload; `None` where the payload is a bare flatbuffer.
    pub fn read(payload: &[u8]) -> Result<Option<Self>, HeaderError> {
        let Ok((fields, _)) = HeaderBytes::ref_from_prefix(payload) else {
            return Err(HeaderError::Short { have: payload.len() });
        };
        if fields.magic != Self::MAGIC {
            return Ok(None);
        }
        let length = fields.length.get();
        if length < Self::LEN {
            return Err(HeaderError::Length { have: length });
        }
        Ok(Some(Header {
            length,
            flatbuffer_offset: fields.flatbuffer_offset.get(),
            flatbuffer_size: fields.flatbuffer_size.get(),
            constants_offset: fields.constants_offset.get(),
            constants_size: fields.constants_size.get(),
        }))
    }

    /// The 30 bytes.
    pub fn to_bytes(&self) -> [u8; Self::LEN as usize] {
        let mut out = [0; Self::LEN as usize];
        let numbers = [self.flatbuffer_offset, self.flatbuffer_size, self.constants_offset];
        let bytes = [0; 4].into_iter().chain(Self::MAGIC).chain(self.length.to_le_bytes());
        let bytes = bytes.chain(numbers.into_iter().flat_map(u32::to_le_bytes));
        for (out, byte) in out.iter_mut().zip(bytes.chain(self.constants_size.to_le_bytes())) {
            *out = byte;
        }
        out
    }

    /// The end of the flatbuffer.
    pub fn flatbuffer_end(&self) -> u64 {
        u64::from(self.flatbuffer_offset).saturating_add(self.flatbuffer_size.into())
    }

    /// The end of the constants.
    pub fn constants_end(&self) -> u64 {
        u64::from(self.constants_offset).saturating_add(self.constants_size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: Header =
        Header { length: 30, flatbuffer_offset: 32, flatbuffer_size: 100, constants_offset: 144, constants_size: 64 };

    #[test]
    fn headers_survive_a_round_trip() {
        let bytes = HEADER.to_bytes();
        assert_eq!(bytes[..8], *b"\0\0\0\0XH00");
        assert_eq!(Header::read(&bytes), Ok(Some(HEADER)));
        assert_eq!((HEADER.flatbuffer_end(), HEADER.constants_end()), (132, 208));
    }

    #[test]
    fn short_headers_and_bare_flatbuffers_differ() {
        let bytes = HEADER.to_bytes();
        assert_eq!(Header::read(&bytes[..29]), Err(HeaderError::Short { have: 29 }));
        let short = Header { length: 29, ..HEADER };
        assert_eq!(Header::read(&short.to_bytes()), Err(HeaderError::Length { have: 29 }));
        let mut bare = bytes;
        bare[4..8].copy_from_slice(b"XN01");
        assert_eq!(Header::read(&bare), Ok(None));
    }
}
