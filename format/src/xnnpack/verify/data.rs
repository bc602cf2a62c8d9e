//! The payload against named data: there, long enough, what their key says, and good scales.

use alloc::collections::BTreeSet;
use alloc::format;

use super::report::Report;
use super::{numbers, scales};
use crate::rules::xnnpack as rule;
use crate::xnnpack::constants::{Constant, ConstantBytes, ShownKey};

/// SHA-256 of some bytes.
pub type Digest = fn(&[u8]) -> [u8; 32];

/// The start of keys of scales, in front of the digest.
const SCALES: &str = "scale_";

/// `elsewhere` says that what is not found may be in data files that are not at hand.
pub(super) fn check(
    constants: &dyn ConstantBytes,
    elsewhere: bool,
    digest: Option<Digest>,
    report: &mut Report<'_, '_>,
) {
    let mut seen = BTreeSet::new();
    for (index, constant) in report.payload.constants.iter().enumerate() {
        let Constant::Named { key, size } = constant else { continue };
        // The list has fewer than 2^32 entries.
        let Some(len) = constants.found_len(index as u32) else {
            if !elsewhere {
                report.constant(&rule::NAMED, index, format!("nothing is found under {}", ShownKey(key)));
            }
            continue;
        };
        if len < *size {
            report.constant(&rule::NAMED, index, format!("{len} bytes under {}, {size} are needed", ShownKey(key)));
        }
        let wanted = digest.zip(digest_of(key)).filter(|_| seen.insert(key));
        if let (Some((digest, want)), Some(bytes)) = (wanted, constants.found(index as u32)) {
            if let Err(error) = report.out.budget().charge_bytes(bytes.len(), 0) {
                report.out.unreadable(report.path, error);
                return;
            }
            if digest(bytes) != want {
                report.constant(&rule::DIGEST, index, format!("the digest of the bytes is not {}", ShownKey(key)));
            }
        }
    }
    let extremes = scales::named(constants, report);
    if let Some(extremes) = report.out.roomy(report.path, extremes) {
        numbers::products(&extremes, report);
    }
}

/// The digest that a key spells.
fn digest_of(key: &str) -> Option<[u8; 32]> {
    let digits = key.strip_prefix(SCALES).unwrap_or(key).as_bytes();
    let (pairs, []) = digits.as_chunks::<2>() else { return None };
    let mut out = [0; 32];
    if pairs.len() != out.len() {
        return None;
    }
    for (out, pair) in out.iter_mut().zip(pairs) {
        let digit = |byte: u8| match byte {
            b'0'..=b'9' => Some(byte.wrapping_sub(b'0')),
            b'a'..=b'f' => Some(byte.wrapping_sub(b'a').wrapping_add(10)),
            _ => None,
        };
        let [high, low] = *pair;
        *out = digit(high)? << 4 | digit(low)?;
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::digest_of;

    #[test]
    fn keys_spell_digests() {
        let digits = "0f".repeat(32);
        assert_eq!(digest_of(&digits), Some([15; 32]));
        assert_eq!(digest_of(&alloc::format!("scale_{digits}")), Some([15; 32]));
        assert_eq!(digest_of(&digits[1..]), None);
        assert_eq!(digest_of("weights"), None);
        assert_eq!(digest_of(&"0F".repeat(32)), None);
    }
}
