//! A document as it is read: long texts of its segments stay in the file.
//!
//! A program of gigabytes has its bytes in a few texts of the list `segments`. Those of more than [`LONG`] characters are
//! not read: a short text takes the place of each, and its bytes are decoded when they are written. Everything else is
//! read into memory as it is, so what a document means does not depend on how long its texts are.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use edgepack_loader::{MemorySource, Source};

use super::base64::Decoded;
use super::content::Content;
use super::error::Error;

/// Characters from which on a text stays in the file.
const LONG: u64 = 1 << 20;
/// Bytes that are read at a time.
const PIECE: u64 = 1 << 18;
/// First character of what takes the place of a long text, as JSON spells it; base64 does not have it.
const MARK: &str = "\\u0000";

/// JSON of a document, without its longest texts.
pub struct DocumentText {
    text: String,
    source: Arc<dyn Source>,
    long: Vec<Range<u64>>,
}

impl DocumentText {
    /// Reads a document that is in memory.
    pub fn of(json: &str) -> Result<Self, Error> {
        Self::read(Arc::new(MemorySource::new(json.as_bytes().to_vec())))
    }

    /// Reads a document.
    pub fn read(source: Arc<dyn Source>) -> Result<Self, Error> {
        let mut scan = Scan::default();
        let mut piece = Vec::new();
        let mut at = 0u64;
        let io = |error| Error::Io { what: source.name(), error };
        while at < source.len() {
            let count = PIECE.min(source.len() - at);
            piece.resize(count as usize, 0);
            source.read_at(at, &mut piece).map_err(io)?;
            if piece.contains(&0) {
                // What is not text need not be read to its end.
                return Err(Error::NotText);
            }
            let (mut rest, mut place) = (piece.as_slice(), at);
            while let Some((byte, behind)) = rest.split_first() {
                if scan.skipping {
                    let run = rest.iter().take_while(|byte| is_base64(**byte)).count();
                    if run > 0 {
                        rest = rest.split_at(run).1;
                        place += run as u64;
                        continue;
                    }
                }
                if let Some(range) = scan.take(*byte, place) {
                    // Long, but not base64: what is left out is fetched.
                    let mut bytes = vec![0; (range.end - range.start) as usize];
                    source.read_at(range.start, &mut bytes).map_err(io)?;
                    scan.text.extend(bytes);
                }
                rest = behind;
                place += 1;
            }
            at += count;
        }
        let text = String::from_utf8(scan.text).map_err(|_| Error::NotText)?;
        Ok(DocumentText { text, source, long: scan.long })
    }

    /// The JSON; texts that stay in the file are not in it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Content of a text that stayed in the file, by what is in its place; `None` of any other text.
    pub(super) fn content(&self, text: &str) -> Option<Result<Content, Error>> {
        let range = self.long.get(text.strip_prefix('\0')?.parse::<usize>().ok()?)?;
        let io = |error: io::Error| Error::Io { what: self.source.name(), error };
        let decoded = Decoded::of(self.source.clone(), range.clone()).map_err(io);
        Some(decoded.and_then(|decoded| {
            let len = decoded.len();
            Content::of(Arc::new(decoded), 0..len).ok_or_else(|| Error::Document("a text ends too early".to_owned()))
        }))
    }
}

/// State between two bytes of a document.
#[derive(Default)]
struct Scan {
    text: Vec<u8>,
    long: Vec<Range<u64>>,
    depth: u32,
    /// Start of the text that the next byte belongs to, in the file and in `text`.
    open: Option<(u64, usize)>,
    escaped: bool,
    /// True while a text of base64 is left out.
    skipping: bool,
    /// True if nothing but base64 was in the text so far.
    base64: bool,
    /// True if the last text of the outermost object was `segments`.
    in_segments: bool,
}

impl Scan {
    /// Takes the next byte. A range of the file that is to be appended after all comes back.
    fn take(&mut self, byte: u8, at: u64) -> Option<Range<u64>> {
        let Some((start, begin)) = self.open else {
            match byte {
                b'"' => {
                    self.open = Some((at.saturating_add(1), self.text.len().saturating_add(1)));
                    self.base64 = true;
                }
                b'{' | b'[' => self.depth = self.depth.saturating_add(1),
                b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
            self.text.push(byte);
            return None;
        };
        let ends = byte == b'"' && !self.escaped;
        if self.skipping {
            if ends {
                self.text.extend(MARK.bytes().chain(self.long.len().to_string().into_bytes()));
                self.text.push(byte);
                self.long.push(start..at);
                (self.open, self.skipping) = (None, false);
                return None;
            }
            (self.skipping, self.base64) = (false, false);
            self.escaped = byte == b'\\';
            return Some(start..at.saturating_add(1));
        }
        self.text.push(byte);
        if ends {
            if self.depth == 1 {
                let text = self.text.get(begin..self.text.len().saturating_sub(1));
                self.in_segments = text == Some(b"segments");
            }
            self.open = None;
            return None;
        }
        self.escaped = byte == b'\\' && !self.escaped;
        self.base64 &= is_base64(byte);
        if self.base64 && self.in_segments && self.depth == 2 && at.saturating_sub(start) >= LONG {
            self.text.truncate(begin);
            self.skipping = true;
        }
        None
    }
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The JSON with all texts back in their places.
    fn whole(document: &DocumentText) -> String {
        let mut text = document.text().to_owned();
        for index in 0..document.long.len() {
            let content = document.content(&format!("\0{index}")).unwrap().unwrap();
            let mut coded = Vec::new();
            content.write_base64(&mut coded).unwrap();
            text = text.replacen(&format!("\"{MARK}{index}\""), &format!("\"{}\"", str::from_utf8(&coded).unwrap()), 1);
        }
        text
    }

    #[test]
    fn long_base64_of_segments_stays_where_it_is() {
        let long = "QUJD".repeat(300_000);
        let twice =
            format!(r#"{{"schema": "x\"y", "segments": ["{long}", "AAAA", "{long}"], "files": {{"a": "{long}"}}}}"#);
        let document = DocumentText::of(&twice).unwrap();
        assert_eq!(document.long.len(), 2);
        assert!(document.text().len() < twice.len() / 2);
        assert_eq!(whole(&document), twice);
        assert!(document.content("AAAA").is_none() && document.content("\u{0}2").is_none());
    }

    #[test]
    fn what_is_long_and_something_else_stays_in_the_text() {
        let long = "QUJD".repeat(300_000);
        for text in
            [format!("{long}*{long}"), format!("{long}\\\"{long}"), format!("\\\\{long}"), format!("{long}\\\\")]
        {
            for json in [format!(r#"{{"segments": ["{text}"]}}"#), format!(r#"{{"name": "{text}", "segments": []}}"#)] {
                let document = DocumentText::of(&json).unwrap();
                assert_eq!((document.text(), document.long.len()), (json.as_str(), 0));
            }
        }
        for json in ["", "\"", "{\"segments\": [\"", "]]]]}}}", "\\"] {
            assert_eq!(DocumentText::of(json).unwrap().text(), json);
        }
    }
}
