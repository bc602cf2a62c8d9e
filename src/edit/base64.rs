//! Bytes as base64 in a document, coded a piece at a time in both directions.

use std::cell::RefCell;
use std::fmt;
use std::io::{self, Write};
use std::ops::Range;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use base64::write::EncoderWriter;
use edgepack_loader::Source;
use serde::{Serialize, Serializer};

use super::content::Content;

/// Characters that are decoded at a time.
const PIECE: u64 = 1 << 18;

impl Content {
    /// Writes all bytes in base64, a piece at a time.
    pub fn write_base64(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut encoder = EncoderWriter::new(out, &STANDARD);
        self.write_to(&mut encoder)?;
        encoder.finish()?;
        Ok(())
    }
}

/// Content that becomes a text of a document. What its serializer cannot be told, that reading failed, is in `failed`.
pub(super) struct Encoded<'c> {
    pub(super) content: &'c Content,
    pub(super) failed: &'c RefCell<Option<io::Error>>,
}

impl fmt::Display for Encoded<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = Formatted { out: f, refused: false };
        match self.content.write_base64(&mut out) {
            Err(_) if out.refused => Err(fmt::Error),
            Err(error) => {
                self.failed.borrow_mut().get_or_insert(error);
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }
}

impl Serialize for Encoded<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A formatter that base64 is written into.
struct Formatted<'f, 'a> {
    out: &'f mut fmt::Formatter<'a>,
    refused: bool,
}

impl Write for Formatted<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = str::from_utf8(bytes).map_err(io::Error::other)?;
        self.out.write_str(text).map_err(|error| {
            self.refused = true;
            io::Error::other(error)
        })?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Bytes that are base64 in a range of another source, decoded when they are read.
pub(super) struct Decoded {
    text: Arc<dyn Source>,
    range: Range<u64>,
    len: u64,
}

impl Decoded {
    /// The bytes of this text; an error unless its length is that of base64.
    pub(super) fn of(text: Arc<dyn Source>, range: Range<u64>) -> io::Result<Decoded> {
        let chars = range.end.saturating_sub(range.start);
        let mut end = [0; 2];
        if chars == 0 || !chars.is_multiple_of(4) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, format!("{chars} characters are not base64")));
        }
        text.read_at(range.end.saturating_sub(2), &mut end)?;
        let padding = end.iter().rev().take_while(|byte| **byte == b'=').count() as u64;
        let len = (chars / 4).saturating_mul(3).saturating_sub(padding);
        Ok(Decoded { text, range, len })
    }
}

impl Source for Decoded {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let invalid = |error: base64::DecodeSliceError| io::Error::new(io::ErrorKind::InvalidData, error.to_string());
        if offset.checked_add(into.len() as u64).is_none_or(|end| end > self.len) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let (mut chars, mut bytes) = (Vec::new(), Vec::new());
        // Three bytes are four characters: the first group may begin in front of what is wanted.
        let mut at = self.range.start.saturating_add((offset / 3).saturating_mul(4));
        let mut skip = (offset % 3) as usize;
        let mut left = into;
        while !left.is_empty() {
            let wanted = (left.len() as u64).saturating_add(skip as u64).div_ceil(3).saturating_mul(4);
            let count = wanted.min(PIECE).min(self.range.end.saturating_sub(at));
            chars.resize(count as usize, 0);
            self.text.read_at(at, &mut chars)?;
            bytes.resize(chars.len() / 4 * 3, 0);
            let len = STANDARD.decode_slice(&chars, &mut bytes).map_err(invalid)?;
            let found = bytes.get(skip..len).filter(|found| !found.is_empty());
            let found = found.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?;
            let taken = found.len().min(left.len());
            let (now, later) = left.split_at_mut(taken);
            now.copy_from_slice(found.split_at(taken).0);
            left = later;
            at = at.saturating_add(count);
            skip = 0;
        }
        Ok(())
    }

    fn name(&self) -> String {
        format!("base64 at {} of {}", self.range.start, self.text.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use edgepack_loader::MemorySource;

    #[test]
    fn any_range_of_any_length_is_decoded() {
        for len in [1usize, 2, 3, 4, 5, 100, 300_000] {
            let bytes: Vec<u8> = (0..len).map(|at| (at * 7 + at / 256) as u8).collect();
            let mut text = b"--".to_vec();
            Content::from(bytes.as_slice()).write_base64(&mut text).unwrap();
            let end = text.len() as u64;
            let source: Arc<dyn Source> = Arc::new(MemorySource::new(text));
            let decoded = Decoded::of(source, 2..end).unwrap();
            assert_eq!(decoded.len(), len as u64);
            for (from, to) in [(0, len), (len / 2, len), (len - 1, len), (0, 1), (len / 3, len / 2), (len, len)] {
                let mut found = vec![0; to - from];
                decoded.read_at(from as u64, &mut found).unwrap();
                assert!(found == bytes[from..to], "{from}..{to} of {len}");
            }
            assert!(decoded.read_at(len as u64, &mut [0]).is_err());
        }
    }

    #[test]
    fn what_is_no_base64_is_an_error_when_it_is_read() {
        let source = |text: &[u8]| -> Arc<dyn Source> { Arc::new(MemorySource::new(text.to_vec())) };
        assert!(Decoded::of(source(b"abc"), 0..3).is_err());
        for text in [&b"ab=c"[..], b"a*cd", b"abc=abc=", b"=abcabcd", b"===="] {
            let decoded = Decoded::of(source(text), 0..text.len() as u64).unwrap();
            let mut all = vec![0; decoded.len() as usize];
            let mut last = [0];
            let one = decoded.read_at(decoded.len().saturating_sub(1), &mut last);
            assert!(decoded.read_at(0, &mut all).is_err() || one.is_err(), "{}", text.escape_ascii());
        }
    }
}
