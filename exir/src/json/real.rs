//! Floats in JSON, which has no word for those that are not finite: they are the strings `Infinity`, `-Infinity`, `NaN`.

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A float, finite or not.
#[derive(Clone, Copy, Debug)]
pub struct Real(pub f64);

impl PartialEq for Real {
    fn eq(&self, other: &Self) -> bool {
        // What was read equals what it was written from, also when it is not a number.
        self.0 == other.0 || self.0.is_nan() && other.0.is_nan()
    }
}

impl Serialize for Real {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            number if number.is_nan() => serializer.serialize_str("NaN"),
            f64::INFINITY => serializer.serialize_str("Infinity"),
            f64::NEG_INFINITY => serializer.serialize_str("-Infinity"),
            number => serializer.serialize_f64(number),
        }
    }
}

struct Reading;

impl Visitor<'_> for Reading {
    type Value = Real;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a number, \"Infinity\", \"-Infinity\" or \"NaN\"")
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Real, E> {
        Ok(Real(number))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Real, E> {
        Ok(Real(number as f64))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Real, E> {
        Ok(Real(number as f64))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Real, E> {
        match text {
            "Infinity" => Ok(Real(f64::INFINITY)),
            "-Infinity" => Ok(Real(f64::NEG_INFINITY)),
            "NaN" => Ok(Real(f64::NAN)),
            other => Err(E::invalid_value(serde::de::Unexpected::Str(other), &self)),
        }
    }
}

impl<'de> Deserialize<'de> for Real {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reading)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_float_survives() {
        for number in [0.0, -1.5, 1e300, 5e-324, f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
            let text = serde_json::to_string(&Real(number)).unwrap();
            assert_eq!(serde_json::from_str::<Real>(&text).unwrap(), Real(number), "{text}");
        }
        assert_eq!(serde_json::from_str::<Real>("3").unwrap(), Real(3.0));
        assert!(serde_json::from_str::<Real>("\"inf\"").is_err());
    }
}
