//! Element types as TVM has them: a class, bits and lanes; as text in graphs and as four bytes in parameter files.

use alloc::string::{String, ToString as _};
use core::fmt;
use core::str::FromStr;

use crate::scalar::ScalarType;

/// Class of an element type.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Class {
    /// Signed integer.
    Int,
    /// Unsigned integer; with one bit, a boolean.
    Uint,
    /// IEEE 754.
    Float,
    /// Opaque pointer; the bare name `handle` means 64 bits.
    Handle,
    /// The upper half of a float.
    Bfloat,
}

impl Class {
    const ALL: [Class; 5] = [Class::Int, Class::Uint, Class::Float, Class::Handle, Class::Bfloat];

    /// Its number in parameter files and in memory.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The class of a number.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }

    const fn name(self) -> &'static str {
        match self {
            Class::Int => "int",
            Class::Uint => "uint",
            Class::Float => "float",
            Class::Handle => "handle",
            Class::Bfloat => "bfloat",
        }
    }
}

/// An element type. Invariant: bits times lanes is a multiple of 8, or 1, or 4; neither is zero.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct DataType {
    class: Class,
    bits: u8,
    lanes: u16,
}

impl DataType {
    /// A boolean: one byte in memory, one bit by name.
    pub const BOOL: DataType = DataType { class: Class::Uint, bits: 1, lanes: 1 };

    /// An element type, unless no memory could hold it.
    pub fn new(class: Class, bits: u8, lanes: u16) -> Option<Self> {
        let all = u32::from(bits).saturating_mul(u32::from(lanes));
        let whole = all > 0 && (all.is_multiple_of(8) || all == 1 || all == 4);
        whole.then_some(DataType { class, bits, lanes })
    }

    /// Of what class.
    pub const fn class(self) -> Class {
        self.class
    }

    /// Bits of one lane.
    pub const fn bits(self) -> u8 {
        self.bits
    }

    /// Lanes of a vector; 1 for a plain element.
    pub const fn lanes(self) -> u16 {
        self.lanes
    }

    /// Bytes of one element in memory, all lanes included.
    pub const fn bytes(self) -> u64 {
        (self.bits as u64).saturating_mul(self.lanes as u64).div_ceil(8)
    }

    /// Bytes of one element in a parameter file, which counts one lane.
    pub const fn stored_bytes(self) -> u64 {
        (self.bits as u64).div_ceil(8)
    }

    /// The element type of the other formats that is the same, if there is one.
    pub fn scalar_type(self) -> Option<ScalarType> {
        ScalarType::called(|names| names.tvm.is_some_and(|name| name.parse() == Ok(self)))
    }

    /// The element type as listings and errors spell it: `f32`; by TVM's name where other formats have none.
    pub fn notation(self) -> String {
        self.scalar_type().map_or_else(|| self.to_string(), |scalar_type| scalar_type.to_string())
    }

    /// The element type that is the same as one of the other formats.
    pub fn from_scalar_type(scalar_type: ScalarType) -> Option<Self> {
        scalar_type.names()?.tvm?.parse().ok()
    }
}

/// The text names no element type.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0:?} is not an element type")]
pub struct DataTypeError(pub String);

impl FromStr for DataType {
    type Err = DataTypeError;

    /// Names as TVM reads them: `float32`, `uint1`, `bool`, `int8x4`. A class alone has 32 bits, `handle` 64.
    fn from_str(text: &str) -> Result<Self, DataTypeError> {
        let error = || DataTypeError(text.into());
        if text == "bool" {
            return Ok(DataType::BOOL);
        }
        // `uint` before `int`, whose name it contains.
        let classes = [Class::Uint, Class::Int, Class::Bfloat, Class::Float, Class::Handle];
        let found = classes.into_iter().find_map(|class| Some((class, text.strip_prefix(class.name())?)));
        let (class, rest) = found.ok_or_else(error)?;
        let (bits, lanes) = match rest.split_once('x') {
            Some((bits, lanes)) => (bits, number(lanes).ok_or_else(error)?),
            None => (rest, 1),
        };
        let bits = match (bits, class) {
            ("", Class::Handle) => 64,
            ("", _) => 32,
            (bits, _) => number(bits).ok_or_else(error)?,
        };
        u8::try_from(bits).ok().and_then(|bits| DataType::new(class, bits, lanes)).ok_or_else(error)
    }
}

/// Digits only: the library's parser would take a sign.
fn number(text: &str) -> Option<u16> {
    text.bytes().all(|digit| digit.is_ascii_digit()).then_some(text)?.parse().ok()
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.class.name())?;
        // The executor's own spelling of a handle has no bits.
        if self.class != Class::Handle || self.bits != 64 {
            write!(f, "{}", self.bits)?;
        }
        if self.lanes != 1 {
            write!(f, "x{}", self.lanes)?;
        }
        Ok(())
    }
}

#[cfg(feature = "schemas")]
impl schemars::JsonSchema for DataType {
    fn schema_name() -> alloc::borrow::Cow<'static, str> {
        "DataType".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "description": "An element type, as TVM spells it.", "type": "string" })
    }
}

impl serde::Serialize for DataType {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn names_are_read_and_written() {
        for (text, class, bits, lanes, bytes) in [
            ("float32", Class::Float, 32, 1, 4),
            ("uint1", Class::Uint, 1, 1, 1),
            ("int8x4", Class::Int, 8, 4, 4),
            ("int4", Class::Int, 4, 1, 1),
            ("uint1x8", Class::Uint, 1, 8, 1),
            ("bfloat16", Class::Bfloat, 16, 1, 2),
            ("handle", Class::Handle, 64, 1, 8),
        ] {
            let found: DataType = text.parse().unwrap();
            assert_eq!((found.class(), found.bits(), found.lanes(), found.bytes()), (class, bits, lanes, bytes));
            assert_eq!(found.to_string(), text);
        }
        assert_eq!("bool".parse(), Ok(DataType::BOOL));
        assert_eq!("float".parse(), "float32".parse::<DataType>());
        for bad in ["", "float5", "int0", "int8x0", "float+32", "int8x", "string", "int300", "Float32", "int8 "] {
            assert!(bad.parse::<DataType>().is_err(), "{bad}");
        }
    }

    #[test]
    fn shared_element_types_go_both_ways() {
        for number in 0..=29 {
            if let Some(found) = DataType::from_scalar_type(ScalarType(number)) {
                assert_eq!(found.scalar_type(), Some(ScalarType(number)));
                assert_eq!(found.bytes(), ScalarType(number).size().unwrap() as u64);
            }
        }
        assert!((0..5).all(|code| Class::from_code(code).unwrap().code() == code));
        assert_eq!(Class::from_code(5), None);
    }
}
