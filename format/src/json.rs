//! Numbers that JSON cannot spell: non-finite doubles are the strings `NaN`, `Infinity`, `-Infinity`. A NaN with other bits
//! than the usual ones says which: `NaN(0x7ff8000000000001)`.

use core::fmt;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A double that survives JSON.
struct Spelled(f64);

impl Serialize for Spelled {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            value if value.is_finite() => serializer.serialize_f64(value),
            value if value.to_bits() == f64::NAN.to_bits() => serializer.serialize_str("NaN"),
            value if value.is_nan() => serializer.collect_str(&format_args!("NaN({:#x})", value.to_bits())),
            value if value > 0.0 => serializer.serialize_str("Infinity"),
            _ => serializer.serialize_str("-Infinity"),
        }
    }
}

impl<'de> Deserialize<'de> for Spelled {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Spelling;
        impl Visitor<'_> for Spelling {
            type Value = Spelled;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, or \"NaN\", \"Infinity\", \"-Infinity\"")
            }
            fn visit_f64<E: Error>(self, value: f64) -> Result<Spelled, E> {
                Ok(Spelled(value))
            }
            fn visit_i64<E: Error>(self, value: i64) -> Result<Spelled, E> {
                Ok(Spelled(value as f64))
            }
            fn visit_u64<E: Error>(self, value: u64) -> Result<Spelled, E> {
                Ok(Spelled(value as f64))
            }
            fn visit_str<E: Error>(self, value: &str) -> Result<Spelled, E> {
                match value {
                    "NaN" => Ok(Spelled(f64::NAN)),
                    "Infinity" => Ok(Spelled(f64::INFINITY)),
                    "-Infinity" => Ok(Spelled(f64::NEG_INFINITY)),
                    other => match nan(other) {
                        Some(value) => Ok(Spelled(value)),
                        None => Err(E::invalid_value(serde::de::Unexpected::Str(other), &self)),
                    },
                }
            }
        }
        deserializer.deserialize_any(Spelling)
    }
}

/// The NaN that is spelled with its bits.
fn nan(text: &str) -> Option<f64> {
    let digits = text.strip_prefix("NaN(0x")?.strip_suffix(')')?;
    let value = f64::from_bits(u64::from_str_radix(digits, 16).ok()?);
    value.is_nan().then_some(value)
}

/// For one double.
pub mod double {
    use super::*;

    /// Writes it.
    pub fn serialize<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
        Spelled(*value).serialize(serializer)
    }

    /// Reads it.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
        Spelled::deserialize(deserializer).map(|spelled| spelled.0)
    }
}

/// For one single-precision number: as the double of the same value.
pub mod single {
    use super::*;

    /// Writes it.
    pub fn serialize<S: Serializer>(value: &f32, serializer: S) -> Result<S::Ok, S::Error> {
        Spelled(f64::from(*value)).serialize(serializer)
    }

    /// Reads it.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f32, D::Error> {
        Spelled::deserialize(deserializer).map(|spelled| spelled.0 as f32)
    }
}

/// For an optional list of single-precision numbers.
pub mod singles {
    use super::*;
    use crate::row::Scalars;
    use alloc::vec::Vec;

    /// Writes it.
    pub fn serialize<S: Serializer>(value: &Option<Scalars<'_, f32>>, serializer: S) -> Result<S::Ok, S::Error> {
        let list = value.as_ref().map(|list| list.iter().map(|value| Spelled(value.into())).collect::<Vec<_>>());
        list.serialize(serializer)
    }

    /// Reads it.
    pub fn deserialize<'de, 'a, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Scalars<'a, f32>>, D::Error> {
        let list = Option::<Vec<Spelled>>::deserialize(deserializer)?;
        Ok(list.map(|list| list.into_iter().map(|spelled| spelled.0 as f32).collect::<Vec<f32>>().into()))
    }
}

/// For an optional list of doubles.
pub mod doubles {
    use super::*;
    use crate::row::Scalars;
    use alloc::vec::Vec;

    /// Writes it.
    pub fn serialize<S: Serializer>(value: &Option<Scalars<'_, f64>>, serializer: S) -> Result<S::Ok, S::Error> {
        value.as_ref().map(|list| list.iter().map(Spelled).collect::<Vec<_>>()).serialize(serializer)
    }

    /// Reads it.
    pub fn deserialize<'de, 'a, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Scalars<'a, f64>>, D::Error> {
        let list = Option::<Vec<Spelled>>::deserialize(deserializer)?;
        Ok(list.map(|list| list.into_iter().map(|spelled| spelled.0).collect::<Vec<f64>>().into()))
    }
}
