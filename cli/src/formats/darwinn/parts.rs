//! Numbers, texts and digests as the summaries of compiled models have them.

use edgepack::builder::content::hex;
use serde::Serialize;
use sha2::{Digest, Sha256};

/// A float with its bits.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Float {
    /// The number; none if it is not finite.
    value: Option<f64>,
    /// Its bits in hexadecimal digits.
    bits: String,
}

impl From<f32> for Float {
    fn from(value: f32) -> Self {
        Float {
            value: Some(value.into()).filter(|value: &f64| value.is_finite()),
            bits: format!("{:#010x}", value.to_bits()),
        }
    }
}

/// SHA-256 in hexadecimal digits.
pub fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Text of a file, as it is.
pub fn owned<T: AsRef<str>>(text: &Option<T>) -> Option<String> {
    text.as_ref().map(|text| text.as_ref().to_owned())
}
