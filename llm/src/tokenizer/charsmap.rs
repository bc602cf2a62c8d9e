//! Compiled rules of normalisation: a double array that maps strings to replacements.
//!
//! The first word is the length of the array in bytes; the array follows, then the replacements, each ended by a zero.
//! What is read is checked as far as a text could lead: no text leads out of the array.

use super::Error;

/// Longest replacement, in bytes: bounds by how much text can grow.
const LONGEST: usize = 255;

/// Compiled rules.
#[derive(Debug)]
pub(crate) struct Charsmap {
    units: Vec<u32>,
    replacements: String,
}

fn has_leaf(unit: u32) -> bool {
    unit >> 8 & 1 == 1
}

fn label(unit: u32) -> u32 {
    unit & (1 << 31 | 0xff)
}

fn offset(unit: u32) -> usize {
    ((unit >> 10) << ((unit & 1 << 9) >> 6)) as usize
}

fn value(leaf: u32) -> usize {
    (leaf & ((1 << 31) - 1)) as usize
}

impl Charsmap {
    /// Reads and checks compiled rules; `place` is where they are.
    pub fn parse(bytes: &[u8], place: &str) -> Result<Self, Error> {
        let broken = |message: &str| Error::malformed(place, message);
        let (length, rest) = bytes.split_first_chunk::<4>().ok_or_else(|| broken("it is shorter than its length"))?;
        let length = u32::from_le_bytes(*length) as usize;
        let (array, replacements) =
            rest.split_at_checked(length).ok_or_else(|| broken("its array is longer than it"))?;
        let (words, odd) = array.as_chunks::<4>();
        if !odd.is_empty() || words.is_empty() {
            return Err(broken("its array is not a whole number of units"));
        }
        let units = words.iter().map(|word| u32::from_le_bytes(*word)).collect();
        let replacements =
            std::str::from_utf8(replacements).map_err(|_| broken("its replacements are not UTF-8"))?.to_owned();
        let charsmap = Self { units, replacements };
        charsmap.check().map_err(|message| broken(&message))?;
        Ok(charsmap)
    }

    /// Walks to every unit that a text could lead to.
    fn check(&self) -> Result<(), String> {
        let mut seen = vec![false; self.units.len()];
        let mut open = vec![offset(self.units[0])];
        while let Some(node) = open.pop() {
            if node | 0xff >= self.units.len() {
                return Err(format!("its array leads to unit {}, it has {}", node | 0xff, self.units.len()));
            }
            for byte in 1..=255usize {
                let index = node ^ byte;
                let unit = self.units[index];
                if label(unit) as usize != byte || std::mem::replace(&mut seen[index], true) {
                    continue;
                }
                let next = index ^ offset(unit);
                if has_leaf(unit) {
                    let leaf = self.units.get(next).ok_or("its array leads out of it")?;
                    self.replacement(value(*leaf))
                        .ok_or_else(|| format!("no replacement of up to {LONGEST} bytes begins at {}", value(*leaf)))?;
                }
                open.push(next);
            }
        }
        Ok(())
    }

    fn replacement(&self, start: usize) -> Option<&str> {
        let rest = self.replacements.get(start..)?;
        // The last one ends where all end.
        let end = rest.bytes().take(LONGEST + 1).position(|byte| byte == 0);
        rest.get(..end.or((rest.len() <= LONGEST).then_some(rest.len()))?)
    }

    /// Finds the longest rule that `text` begins with: its length, and the replacement.
    #[cfg(feature = "sentencepiece")]
    pub fn longest(&self, text: &[u8]) -> Option<(usize, &str)> {
        let mut found = None;
        let mut node = offset(*self.units.first()?);
        for (index, byte) in text.iter().enumerate() {
            node ^= usize::from(*byte);
            let Some(unit) = self.units.get(node) else { break };
            if label(*unit) != u32::from(*byte) {
                break;
            }
            node ^= offset(*unit);
            if has_leaf(*unit)
                && let Some(leaf) = self.units.get(node)
            {
                found = Some((index + 1, value(*leaf)));
            }
        }
        found.and_then(|(length, start)| Some((length, self.replacement(start)?)))
    }
}
