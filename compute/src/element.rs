//! Elements of tensors as values of Rust, and numbers of any kind.

use bytemuck::Pod;
use edgepack_format::scalar::{Element, ScalarType};

/// An element type whose bytes can be viewed as values and back.
pub trait PodElement: Element + Pod {}

impl<T: Element + Pod> PodElement for T {}

/// Returns the plain type with the same bytes: quantised and raw bit types are read as integers of their width.
pub fn storage_type(dtype: ScalarType) -> ScalarType {
    match dtype {
        ScalarType::QINT8 => ScalarType::CHAR,
        ScalarType::QUINT8 | ScalarType::QUINT4X2 | ScalarType::QUINT2X4 | ScalarType::BITS8 => ScalarType::BYTE,
        ScalarType::QINT32 => ScalarType::INT,
        ScalarType::BITS16 => ScalarType::UINT16,
        other => other,
    }
}

/// A number that an operator takes where its schema says `Scalar`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Scalar {
    /// Whole number of 64 bits; rounded where a double is asked for.
    Int(i64),
    /// Number in double precision; truncated where an integer is asked for.
    Double(f64),
    /// Truth value, which counts as 0 or 1.
    Bool(bool),
}

impl Scalar {
    /// Returns the number as a double.
    pub fn to_f64(self) -> f64 {
        match self {
            Scalar::Int(value) => value as f64,
            Scalar::Double(value) => value,
            Scalar::Bool(value) => f64::from(u8::from(value)),
        }
    }

    /// Returns the number as an integer, truncated towards zero.
    pub fn to_i64(self) -> i64 {
        match self {
            Scalar::Int(value) => value,
            Scalar::Double(value) => value as i64,
            Scalar::Bool(value) => i64::from(value),
        }
    }

    /// Returns whether it is not zero.
    pub fn to_bool(self) -> bool {
        match self {
            Scalar::Int(value) => value != 0,
            Scalar::Double(value) => value != 0.0,
            Scalar::Bool(value) => value,
        }
    }

    /// Returns whether it is a floating point number.
    pub fn is_floating(self) -> bool {
        matches!(self, Scalar::Double(_))
    }
}
