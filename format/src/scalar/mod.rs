//! Element types of tensors, with ExecuTorch's numbering, their names, and the Rust types that hold them.

mod names;

use half::{bf16, f16};

pub use names::Names;

crate::open_enum! {
    /// The element type of a tensor, numbered as in `scalar_type.fbs`.
    ///
    /// Shown by its short name, `f32`; by PyTorch's where there is none, `qint8`. Tables and JSON have the name of the schema, `FLOAT`.
    /// An open enumeration: a number outside the table is retained, is shown as `type#N` and has no size.
    pub struct ScalarType(i8) default BYTE shown by names::show {
        /// Unsigned 8-bit integer.
        BYTE = 0,
        /// Signed 8-bit integer.
        CHAR = 1,
        /// Signed 16-bit integer.
        SHORT = 2,
        /// Signed 32-bit integer.
        INT = 3,
        /// Signed 64-bit integer.
        LONG = 4,
        /// IEEE 754 half precision.
        HALF = 5,
        /// IEEE 754 single precision.
        FLOAT = 6,
        /// IEEE 754 double precision.
        DOUBLE = 7,
        /// Two halves.
        COMPLEX_HALF = 8,
        /// Two floats.
        COMPLEX_FLOAT = 9,
        /// Two doubles.
        COMPLEX_DOUBLE = 10,
        /// One byte; only 0 and 1 are written, every non-zero byte reads as true.
        BOOL = 11,
        /// Quantised signed 8-bit.
        QINT8 = 12,
        /// Quantised unsigned 8-bit.
        QUINT8 = 13,
        /// Quantised signed 32-bit.
        QINT32 = 14,
        /// The upper half of a float.
        BFLOAT16 = 15,
        /// Two quantised 4-bit values in a byte.
        QUINT4X2 = 16,
        /// Four quantised 2-bit values in a byte.
        QUINT2X4 = 17,
        /// Eight bits in a byte.
        BITS1X8 = 18,
        /// Four 2-bit groups in a byte.
        BITS2X4 = 19,
        /// Two 4-bit groups in a byte.
        BITS4X2 = 20,
        /// Eight uninterpreted bits.
        BITS8 = 21,
        /// Sixteen uninterpreted bits.
        BITS16 = 22,
        /// 8-bit float, 5 exponent bits.
        FLOAT8_E5M2 = 23,
        /// 8-bit float, 4 exponent bits, no infinities.
        FLOAT8_E4M3FN = 24,
        /// 8-bit float, 5 exponent bits, no negative zero.
        FLOAT8_E5M2FNUZ = 25,
        /// 8-bit float, 4 exponent bits, no negative zero.
        FLOAT8_E4M3FNUZ = 26,
        /// Unsigned 16-bit integer.
        UINT16 = 27,
        /// Unsigned 32-bit integer.
        UINT32 = 28,
        /// Unsigned 64-bit integer.
        UINT64 = 29,
    }
}

impl ScalarType {
    /// Bytes of one element, or `None` for a number that names no element type.
    pub const fn size(self) -> Option<usize> {
        Some(match self.0 {
            0 | 1 | 11 | 12 | 13 | 16..=21 | 23..=26 => 1,
            2 | 5 | 15 | 22 | 27 => 2,
            3 | 6 | 8 | 14 | 28 => 4,
            4 | 7 | 9 | 29 => 8,
            10 => 16,
            _ => return None,
        })
    }

    /// Returns whether the number names an element type (0 to 29).
    pub const fn is_valid(self) -> bool {
        self.size().is_some()
    }

    /// HALF, FLOAT, DOUBLE, BFLOAT16.
    pub const fn is_floating(self) -> bool {
        matches!(self, Self::HALF | Self::FLOAT | Self::DOUBLE | Self::BFLOAT16)
    }

    /// Integers of any width and sign, without BOOL.
    pub const fn is_integral(self) -> bool {
        matches!(
            self,
            Self::BYTE | Self::CHAR | Self::SHORT | Self::INT | Self::LONG | Self::UINT16 | Self::UINT32 | Self::UINT64
        )
    }

    /// A floating point element as a double, from its little-endian bytes. `None` for other types, whose elements are
    /// compared exactly, and for too few bytes.
    ///
    /// ```
    /// use edgepack_format::scalar::ScalarType;
    ///
    /// assert_eq!(ScalarType::HALF.read_float(&[0x00, 0x3e]), Some(1.5));
    /// assert_eq!(ScalarType::FLOAT.read_float(&[0; 3]), None);
    /// assert_eq!(ScalarType::LONG.read_float(&[0; 8]), None);
    /// ```
    pub fn read_float(self, bytes: &[u8]) -> Option<f64> {
        Some(match self {
            Self::FLOAT => f32::from_le_bytes(*bytes.first_chunk()?).into(),
            Self::DOUBLE => f64::from_le_bytes(*bytes.first_chunk()?),
            Self::HALF => f16::from_le_bytes(*bytes.first_chunk()?).into(),
            Self::BFLOAT16 => bf16::from_le_bytes(*bytes.first_chunk()?).into(),
            _ => return None,
        })
    }

    /// The type of the real and the imaginary part of a complex type; any other type itself.
    pub const fn part(self) -> ScalarType {
        match self {
            Self::COMPLEX_HALF => Self::HALF,
            Self::COMPLEX_FLOAT => Self::FLOAT,
            Self::COMPLEX_DOUBLE => Self::DOUBLE,
            other => other,
        }
    }

    /// The complex types.
    pub const fn is_complex(self) -> bool {
        matches!(self, Self::COMPLEX_HALF | Self::COMPLEX_FLOAT | Self::COMPLEX_DOUBLE)
    }
}

/// One byte of a BOOL tensor. Never a Rust `bool`: the byte comes from a file or a caller, so any value may be there.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
pub struct Bool(pub u8);

impl Bool {
    /// Any non-zero byte is true.
    pub const fn get(self) -> bool {
        self.0 != 0
    }
}

impl From<bool> for Bool {
    fn from(value: bool) -> Self {
        Bool(value as u8)
    }
}

/// A Rust type that is the element of a tensor.
pub trait Element: Copy + Send + Sync + 'static {
    /// Element type that files name for it.
    const SCALAR_TYPE: ScalarType;
}

macro_rules! elements {
    ($($rust:ty => $scalar:ident),* $(,)?) => {
        $(impl Element for $rust {
            const SCALAR_TYPE: ScalarType = ScalarType::$scalar;
        })*
    };
}

elements! {
    u8 => BYTE, i8 => CHAR, i16 => SHORT, i32 => INT, i64 => LONG,
    f16 => HALF, f32 => FLOAT, f64 => DOUBLE, Bool => BOOL, bf16 => BFLOAT16,
    u16 => UINT16, u32 => UINT32, u64 => UINT64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::borrow::ToOwned;
    use alloc::string::ToString;

    #[test]
    fn sizes_follow_the_table() {
        assert_eq!(ScalarType::FLOAT.size(), Some(4));
        assert_eq!(ScalarType::COMPLEX_DOUBLE.size(), Some(16));
        assert_eq!((0..=29).filter(|&v| ScalarType(v).is_valid()).count(), 30);
        assert_eq!(ScalarType(30).size(), None);
        assert_eq!(ScalarType(-1).size(), None);
    }

    #[test]
    fn unknown_numbers_are_kept_and_printed() {
        assert_eq!(ScalarType(77).to_string(), "type#77");
        assert_eq!((ScalarType::FLOAT.name(), ScalarType::FLOAT.to_string()), (Some("FLOAT"), "f32".to_owned()));
        assert_eq!(ScalarType::from_name("BFLOAT16"), Some(ScalarType::BFLOAT16));
    }
}
