//! Settings that a program carries as named data: tokens, chat templates, context lengths.
//!
//! Keys are `metadata.` and a name such as `tokenizer.bos_id`. The first byte of the data tells the type, everything behind
//! it is the value, little-endian:
//!
//! | tag | type | value |
//! | --- | --- | --- |
//! | 1 | integer | 8 bytes, signed |
//! | 2 | float | 8 bytes, IEEE 754 |
//! | 3 | text | UTF-8 up to the end |
//! | 4 | integers | their number in 4 bytes, then 8 bytes each |
//! | 5 | bytes | up to the end |
//!
//! Programs from before there were tags have text without one; no text begins with a tag, so both are read. This module is
//! the only one that knows the encoding.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::room;

/// Named data with this in front of its key is metadata.
pub const METADATA_PREFIX: &str = "metadata.";

const INT: u8 = 1;
const FLOAT: u8 = 2;
const TEXT: u8 = 3;
const INTS: u8 = 4;
const BYTES: u8 = 5;

/// A setting.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum MetadataValue {
    /// An integer.
    Int(i64),
    /// A floating point number.
    Float(f64),
    /// Text.
    Text(String),
    /// A list of integers.
    Ints(Vec<i64>),
    /// Bytes.
    Bytes(Vec<u8>),
}

/// Reason that data are no setting.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MetadataError {
    /// There are no bytes, so there is no type.
    #[error("no bytes, the first one is to tell the type")]
    Empty,
    /// The first byte is neither a type nor the begin of text.
    #[error("its first byte is {0:#04x}, types are 1 to 5")]
    Type(u8),
    /// A number of another length.
    #[error("{have} bytes for {what}, {want} are right")]
    Length {
        /// Name of the type.
        what: &'static str,
        /// Bytes that it has.
        want: u64,
        /// Bytes that are there.
        have: u64,
    },
    /// A text that is not UTF-8.
    #[error("text that is not UTF-8, from byte {0} on")]
    Text(usize),
    /// There is no memory for a copy.
    #[error("there is no memory for it")]
    Memory,
}

impl MetadataValue {
    /// Reads the data of a key.
    ///
    /// ```
    /// use edgepack_format::pte::metadata::MetadataValue;
    ///
    /// let value = MetadataValue::Ints(vec![128_001, 128_009]);
    /// assert_eq!(MetadataValue::decode(&value.encode()), Ok(value));
    /// ```
    ///
    /// # Errors
    /// Bytes that no setting has.
    pub fn decode(data: &[u8]) -> Result<Self, MetadataError> {
        let (&tag, value) = data.split_first().ok_or(MetadataError::Empty)?;
        match tag {
            INT => Ok(Self::Int(i64::from_le_bytes(exact("an integer", value)?))),
            FLOAT => Ok(Self::Float(f64::from_le_bytes(exact("a float", value)?))),
            TEXT => text(value, 1).map(Self::Text),
            INTS => ints(value).map(Self::Ints),
            BYTES => copy(value).map(Self::Bytes),
            // Text of a program without tags has no control characters but those of white space.
            tag if data.iter().any(|byte| *byte < b' ' && !matches!(byte, b'\t' | b'\n' | b'\r')) => {
                Err(MetadataError::Type(tag))
            }
            _ => text(data, 0).map(Self::Text),
        }
    }

    /// Returns the data of a key, with the tag of its type.
    pub fn encode(&self) -> Vec<u8> {
        let mut data = Vec::new();
        match self {
            Self::Int(number) => {
                data.push(INT);
                data.extend_from_slice(&number.to_le_bytes());
            }
            Self::Float(number) => {
                data.push(FLOAT);
                data.extend_from_slice(&number.to_le_bytes());
            }
            Self::Text(text) => {
                data.push(TEXT);
                data.extend_from_slice(text.as_bytes());
            }
            Self::Ints(numbers) => {
                data.push(INTS);
                // More would be 32 GiB in memory already.
                let count = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
                data.extend_from_slice(&count.to_le_bytes());
                numbers.iter().take(count as usize).for_each(|number| data.extend_from_slice(&number.to_le_bytes()));
            }
            Self::Bytes(bytes) => {
                data.push(BYTES);
                data.extend_from_slice(bytes);
            }
        }
        data
    }

    /// Returns the name of the type: `int`, `float`, `text`, `int[]`, `bytes`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Int(_) => "int",
            Self::Float(_) => "float",
            Self::Text(_) => "text",
            Self::Ints(_) => "int[]",
            Self::Bytes(_) => "bytes",
        }
    }
}

/// Writes it on a line: `7`, `0.5`, `"text"`, `[1, 2]`, `3 bytes 0x010203`; the first bytes of many.
impl fmt::Display for MetadataValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(number) => write!(f, "{number}"),
            Self::Float(number) => write!(f, "{number:?}"),
            Self::Text(text) => write!(f, "{text:?}"),
            Self::Ints(numbers) => write!(f, "{numbers:?}"),
            Self::Bytes(bytes) => {
                /// Bytes that are shown.
                const SHOWN: usize = 16;
                write!(f, "{} bytes", bytes.len())?;
                if !bytes.is_empty() {
                    f.write_str(" 0x")?;
                }
                bytes.iter().take(SHOWN).try_for_each(|byte| write!(f, "{byte:02x}"))?;
                if bytes.len() > SHOWN { f.write_str("…") } else { Ok(()) }
            }
        }
    }
}

impl From<i64> for MetadataValue {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

impl From<f64> for MetadataValue {
    fn from(number: f64) -> Self {
        Self::Float(number)
    }
}

impl From<&str> for MetadataValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for MetadataValue {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Vec<i64>> for MetadataValue {
    fn from(numbers: Vec<i64>) -> Self {
        Self::Ints(numbers)
    }
}

impl From<&[i64]> for MetadataValue {
    fn from(numbers: &[i64]) -> Self {
        Self::Ints(numbers.to_vec())
    }
}

fn exact<const N: usize>(what: &'static str, value: &[u8]) -> Result<[u8; N], MetadataError> {
    value.try_into().map_err(|_| MetadataError::Length { what, want: N as u64, have: value.len() as u64 })
}

fn copy(bytes: &[u8]) -> Result<Vec<u8>, MetadataError> {
    let mut out = room::with_room(bytes.len()).map_err(|_| MetadataError::Memory)?;
    out.extend_from_slice(bytes);
    Ok(out)
}

/// Text that begins `skipped` bytes into the data.
fn text(bytes: &[u8], skipped: usize) -> Result<String, MetadataError> {
    String::from_utf8(copy(bytes)?)
        .map_err(|error| MetadataError::Text(error.utf8_error().valid_up_to().saturating_add(skipped)))
}

fn ints(value: &[u8]) -> Result<Vec<i64>, MetadataError> {
    const WHAT: &str = "a list of integers";
    let have = value.len() as u64;
    let (count, numbers) = value.split_first_chunk::<4>().ok_or(MetadataError::Length { what: WHAT, want: 4, have })?;
    let want = u64::from(u32::from_le_bytes(*count)).saturating_mul(8).saturating_add(4);
    if want != have {
        return Err(MetadataError::Length { what: WHAT, want, have });
    }
    let (numbers, _) = numbers.as_chunks::<8>();
    let mut out = room::with_room(numbers.len()).map_err(|_| MetadataError::Memory)?;
    out.extend(numbers.iter().map(|number| i64::from_le_bytes(*number)));
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString as _;
    use alloc::vec;

    #[test]
    fn every_type_comes_back() {
        for value in [
            MetadataValue::Int(-5),
            MetadataValue::Float(f64::INFINITY),
            MetadataValue::Text("{% for m in messages %}".into()),
            MetadataValue::Text(String::new()),
            MetadataValue::Ints(vec![]),
            MetadataValue::Ints(vec![1, i64::MIN]),
            MetadataValue::Bytes(vec![0, 255]),
        ] {
            assert_eq!(MetadataValue::decode(&value.encode()), Ok(value));
        }
    }

    #[test]
    fn the_bytes_are_those_of_the_proposal() {
        assert_eq!(MetadataValue::Int(258).encode(), [1, 2, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(MetadataValue::Float(1.0).encode(), [2, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f]);
        assert_eq!(MetadataValue::Text("é".into()).encode(), [3, 0xc3, 0xa9]);
        assert_eq!(MetadataValue::Ints(vec![-1]).encode(), [&[4, 1, 0, 0, 0][..], &[0xff; 8]].concat());
        assert_eq!(MetadataValue::Bytes(vec![7]).encode(), [5, 7]);
        // Text of programs without tags.
        assert_eq!(MetadataValue::decode(b"bpe"), Ok("bpe".into()));
        assert_eq!(MetadataValue::decode(b"\n{%"), Ok("\n{%".into()));
    }

    #[test]
    fn hostile_bytes_are_named() {
        let wrong = |data: &[u8]| MetadataValue::decode(data).unwrap_err().to_string();
        assert_eq!(wrong(&[]), "no bytes, the first one is to tell the type");
        assert_eq!(wrong(&[0]), "its first byte is 0x00, types are 1 to 5");
        assert_eq!(wrong(&[1, 0]), "1 bytes for an integer, 8 are right");
        assert_eq!(wrong(&[2; 10]), "9 bytes for a float, 8 are right");
        assert_eq!(wrong(&[3, b'a', 0xff]), "text that is not UTF-8, from byte 2 on");
        assert_eq!(wrong(b"ab\xff"), "text that is not UTF-8, from byte 2 on");
        assert_eq!(wrong(&[4, 1]), "1 bytes for a list of integers, 4 are right");
        // A count that would be 32 GiB is a length that is not there.
        assert_eq!(wrong(&[4, 255, 255, 255, 255]), "4 bytes for a list of integers, 34359738364 are right");
        assert_eq!(wrong(&[4, 0, 0, 0, 0, 9]), "5 bytes for a list of integers, 4 are right");
    }

    #[test]
    fn values_are_shown_on_a_line() {
        assert_eq!(MetadataValue::from("a\n\u{1b}").to_string(), r#""a\n\u{1b}""#);
        assert_eq!(MetadataValue::Ints(vec![1, 2]).to_string(), "[1, 2]");
        assert_eq!(MetadataValue::Float(1.0).to_string(), "1.0");
        assert_eq!(MetadataValue::Bytes(vec![1; 17]).to_string(), "17 bytes 0x01010101010101010101010101010101…");
    }
}
