//! One entry of a folder of packed weights, as bytes: a header of 88 bytes, then the content.
//!
//! Header: the words `edgepack packed\n`, the digest of what the content was made of (32 bytes), the length of the content
//! (8 bytes, little-endian) and its digest (32 bytes). Invariant: content is used only if all of them are as expected, and
//! the entry ends where the content does.

use std::io::{Read, Write};

use sha2::{Digest as _, Sha256};

/// A SHA-256 digest.
pub type Digest = [u8; 32];

const MAGIC: &[u8; 16] = b"edgepack packed\n";
/// Bytes before the content.
pub const HEADER: usize = 16 + 32 + 8 + 32;

/// Returns the digest of some content.
pub fn digest(content: &[u8]) -> Digest {
    Sha256::digest(content).into()
}

/// Reads the content of an entry into a buffer of its length. `false`, with anything in the buffer, if the entry is not
/// one of this key and this length, is damaged, or cannot be read.
pub fn read(from: &mut dyn Read, key: &Digest, content: &mut [u8]) -> bool {
    let mut header = [0; HEADER];
    if from.read_exact(&mut header).is_err() {
        return false;
    }
    let (known, want) = header.split_at(HEADER - 32);
    if known != self::header(key, content.len()) || from.read_exact(content).is_err() || digest(content) != want {
        return false;
    }
    matches!(from.read(&mut [0]), Ok(0))
}

/// Writes an entry.
///
/// # Errors
///
/// Returns the errors of the writer.
pub fn write(to: &mut dyn Write, key: &Digest, content: &[u8]) -> std::io::Result<()> {
    to.write_all(&header(key, content.len()))?;
    to.write_all(&digest(content))?;
    to.write_all(content)
}

/// The header, but for the digest of the content.
fn header(key: &Digest, length: usize) -> [u8; HEADER - 32] {
    let mut header = [0; HEADER - 32];
    let (magic, rest) = header.split_at_mut(16);
    let (digest, count) = rest.split_at_mut(32);
    magic.copy_from_slice(MAGIC);
    digest.copy_from_slice(key);
    count.copy_from_slice(&(length as u64).to_le_bytes());
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(content: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        write(&mut bytes, &[7; 32], content).unwrap();
        bytes
    }

    #[test]
    fn an_entry_comes_back_and_no_damaged_one_does() {
        let (content, mut into) = ([1u8, 2, 3, 4, 5], [0; 5]);
        let good = entry(&content);
        assert_eq!(good.len(), HEADER + 5);
        assert!(read(&mut &*good, &[7; 32], &mut into) && into == content);
        for at in 0..good.len() {
            for bit in 0..8 {
                let mut bad = good.clone();
                bad[at] ^= 1 << bit;
                assert!(!read(&mut &*bad, &[7; 32], &mut into), "bit {bit} of byte {at}");
            }
            assert!(!read(&mut &good[..at], &[7; 32], &mut into), "cut at {at}");
        }
        assert!(!read(&mut &*[&good[..], &[0]].concat(), &[7; 32], &mut into));
        assert!(!read(&mut &*good, &[8; 32], &mut into));
        assert!(!read(&mut &*good, &[7; 32], &mut [0; 4]) && !read(&mut &*good, &[7; 32], &mut [0; 6]));
        assert!(read(&mut &*entry(&[]), &[7; 32], &mut []));
    }
}
