//! Keys of what is packed: its place and its layout, or a digest, in bytes.

use std::sync::Arc;

/// A list of parts. Two keys are equal if they have the same parts in the same order.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Key(Arc<[u8]>);

impl Key {
    /// The key of these parts.
    pub fn of(parts: &[&[u8]]) -> Key {
        let len = parts.iter().map(|part| size_of::<usize>() + part.len()).sum();
        let mut bytes = Vec::with_capacity(len);
        for part in parts {
            // Where a part ends is part of the key.
            bytes.extend(part.len().to_ne_bytes());
            bytes.extend_from_slice(part);
        }
        Key(bytes.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_tells_where_its_parts_end() {
        assert_eq!(Key::of(&[b"ab", b"c"]), Key::of(&[b"ab", b"c"]));
        for other in [&[&b"a"[..], b"bc"][..], &[b"abc"], &[b"ab", b"c", b""], &[b"c", b"ab"], &[]] {
            assert_ne!(Key::of(&[b"ab", b"c"]), Key::of(other));
        }
    }
}
