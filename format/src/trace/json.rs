//! Single-precision numbers in JSON, spelled as doubles are: every one of them is a double too.

/// For one number.
pub mod float {
    use serde::{Deserializer, Serializer};

    use crate::json::double;

    /// Writes it.
    pub fn serialize<S: Serializer>(value: &f32, serializer: S) -> Result<S::Ok, S::Error> {
        double::serialize(&f64::from(*value), serializer)
    }

    /// Reads it.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f32, D::Error> {
        double::deserialize(deserializer).map(|value| value as f32)
    }
}
