//! Bytes that arrive one after the other become text, without a character ever being divided.

/// Number of U+FFFD that bytes which are not UTF-8 become.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BadBytes {
    /// One for every longest beginning of a character, as `String::from_utf8_lossy` counts.
    ByBeginning,
    /// One for every byte, as SentencePiece counts.
    ByByte,
}

/// Bytes of a character that has begun.
#[derive(Clone, Debug)]
pub(crate) struct Utf8 {
    pending: Vec<u8>,
    bad: BadBytes,
}

impl Utf8 {
    pub fn new(bad: BadBytes) -> Self {
        Self { pending: Vec::new(), bad }
    }

    /// Takes bytes and appends the characters that are complete.
    pub fn push(&mut self, bytes: &[u8], out: &mut String) {
        self.pending.extend_from_slice(bytes);
        self.drain(out, false);
    }

    /// Appends what is left: U+FFFD for a character that was not completed.
    pub fn finish(&mut self, out: &mut String) {
        self.drain(out, true);
    }

    fn drain(&mut self, out: &mut String, end: bool) {
        let mut rest = self.pending.as_slice();
        while !rest.is_empty() {
            match std::str::from_utf8(rest) {
                Ok(text) => {
                    out.push_str(text);
                    rest = &[];
                }
                Err(error) => {
                    let (good, bad) = rest.split_at(error.valid_up_to());
                    out.push_str(&String::from_utf8_lossy(good));
                    rest = bad;
                    let length = match error.error_len() {
                        Some(length) => length,
                        None if end => bad.len(),
                        None => break,
                    };
                    let consumed = if self.bad == BadBytes::ByByte { 1 } else { length };
                    out.push(char::REPLACEMENT_CHARACTER);
                    rest = rest.get(consumed..).unwrap_or_default();
                }
            }
        }
        let left = rest.len();
        self.pending.drain(..self.pending.len() - left);
    }
}

#[cfg(test)]
mod tests {
    use super::{BadBytes, Utf8};

    fn pieces(bad: BadBytes, bytes: &[u8]) -> String {
        let (mut utf8, mut out) = (Utf8::new(bad), String::new());
        for byte in bytes {
            utf8.push(&[*byte], &mut out);
        }
        utf8.finish(&mut out);
        out
    }

    #[test]
    fn byte_by_byte_is_as_all_at_once() {
        for bytes in [&b"a\xe2\x82\xacb"[..], b"\xe2\x82", b"\xf0\x9f\x98x\xff", b"\xed\xa0\x80\xe2\x82\xac", b""] {
            assert_eq!(pieces(BadBytes::ByBeginning, bytes), String::from_utf8_lossy(bytes));
        }
    }

    #[test]
    fn sentencepiece_counts_bytes() {
        assert_eq!(pieces(BadBytes::ByByte, b"\xe2\x82x\xe2\x82\xac\xff"), "\u{fffd}\u{fffd}x€\u{fffd}");
    }
}
