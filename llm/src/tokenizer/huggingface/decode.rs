//! Tokens become text as the file's decoder says, one after the other.

use serde_json::Value;
use tokenizers::Decoder as _;

use super::{HuggingFace, guard};
use crate::tokenizer::decoder::{DecodeIds, ShowSpecial};
use crate::tokenizer::utf8::{BadBytes, Utf8};
use crate::tokenizer::{Error, byte_token};

/// Way in which the decoder of a file makes text of tokens.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Shape {
    /// Characters that stand for bytes.
    ByteLevel,
    /// Replacements, bytes such as `<0x0A>`, and characters that are cut off at the beginning of the text.
    ByteFallback { replacements: Vec<(String, String)>, cut: Option<(char, usize)> },
    /// A suffix that ends words, with spaces between words.
    WordSuffix(String),
    /// Every token for itself; only the first is special.
    EachToken,
    /// Tokens with spaces between them.
    Joined,
    /// Anything else: text is known at the end only.
    Whole,
}

impl Shape {
    /// Reads the decoder of a file.
    pub fn of(decoder: &Value) -> Self {
        let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
        match text(decoder, "type").as_deref() {
            None => Self::Joined,
            Some("ByteLevel") => Self::ByteLevel,
            Some("BPEDecoder") => Self::WordSuffix(text(decoder, "suffix").unwrap_or_default()),
            Some("Metaspace" | "WordPiece") => Self::EachToken,
            Some("Sequence") => {
                let inner: Vec<&Value> =
                    decoder.get("decoders").and_then(Value::as_array).into_iter().flatten().collect();
                match inner.as_slice() {
                    [only] => Self::of(only),
                    several => Self::fallback(several).unwrap_or(Self::Whole),
                }
            }
            Some(_) => Self::Whole,
        }
    }

    /// Replacements, bytes, a fuse and a cut, in this order, as most files have them.
    fn fallback(decoders: &[&Value]) -> Option<Self> {
        let (mut replacements, mut cut, mut stage) = (Vec::new(), None, 0);
        for decoder in decoders {
            let text = |name: &str| decoder.get(name).and_then(Value::as_str);
            let next = match text("type")? {
                "Replace" => {
                    let pattern = decoder.get("pattern")?.get("String")?.as_str()?;
                    replacements.push((pattern.to_owned(), text("content")?.to_owned()));
                    0
                }
                "ByteFallback" => 1,
                "Fuse" => 2,
                "Strip" => {
                    let start = usize::try_from(decoder.get("start")?.as_u64()?).ok()?;
                    let mut content = text("content")?.chars();
                    cut = Some((content.next()?, start)).filter(|_| content.next().is_none());
                    3
                }
                _ => return None,
            };
            // Only replacements may follow one another.
            if next < stage || next > 0 && next == stage || next > stage + 1 {
                return None;
            }
            stage = next;
        }
        let usable = stage >= 2 && replacements.iter().all(|(pattern, _)| !pattern.is_empty());
        usable.then_some(Self::ByteFallback { replacements, cut })
    }
}

/// Byte that a character stands for in byte-level tokens.
fn byte_of(c: char) -> Option<u8> {
    let code = u32::from(c);
    match code {
        0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff => u8::try_from(code).ok(),
        // All other bytes, in order, stand from 256 on.
        0x100..=0x120 => u8::try_from(code - 0x100).ok(),
        0x121..=0x142 => u8::try_from(code - 0x121 + 0x7f).ok(),
        0x143 => Some(0xad),
        _ => None,
    }
}

/// State of a decoder.
pub(super) struct State<'a> {
    tokenizer: &'a HuggingFace,
    special: ShowSpecial,
    utf8: Utf8,
    first: bool,
    /// Characters at the beginning that may still be cut off.
    cut: usize,
    /// Token that waits for the next one.
    waiting: Option<String>,
    /// Tokens, where text is known at the end only.
    tokens: Vec<String>,
}

impl<'a> State<'a> {
    pub fn new(tokenizer: &'a HuggingFace, special: ShowSpecial) -> Self {
        let bad = if tokenizer.shape == Shape::ByteLevel { BadBytes::ByBeginning } else { BadBytes::ByByte };
        let mut state =
            Self { tokenizer, special, utf8: Utf8::new(bad), first: true, cut: 0, waiting: None, tokens: Vec::new() };
        state.begin();
        state
    }

    fn begin(&mut self) {
        self.first = true;
        self.cut = match &self.tokenizer.shape {
            Shape::ByteFallback { cut: Some((_, count)), .. } => *count,
            _ => 0,
        };
    }

    /// Appends text, without what is cut off at the beginning.
    fn cut(&mut self, text: &str, out: &mut String) {
        let mut text = text;
        while self.cut > 0 && !text.is_empty() {
            let Shape::ByteFallback { cut: Some((c, _)), .. } = &self.tokenizer.shape else { break };
            match text.strip_prefix(*c) {
                Some(rest) => {
                    text = rest;
                    self.cut -= 1;
                }
                None => self.cut = 0,
            }
        }
        out.push_str(text);
    }

    /// Text of a token that does not depend on others, but for being the first.
    fn each(&self, token: String) -> Result<String, Error> {
        let library = self.tokenizer.library();
        let Some(decoder) = library.get_decoder() else { return Ok(token) };
        let mut tokens = if self.first { Vec::new() } else { vec!["a".to_owned()] };
        tokens.push(token);
        let decoded = guard(|| decoder.decode_chain(tokens))?;
        Ok(decoded.into_iter().next_back().unwrap_or_default())
    }
}

impl DecodeIds for State<'_> {
    fn push(&mut self, id: u32, out: &mut String) -> Result<(), Error> {
        let tokenizer = self.tokenizer;
        let unknown = || Error::UnknownId { id, size: tokenizer.size };
        let token = tokenizer.library().id_to_token(id).ok_or_else(unknown)?;
        if self.special == ShowSpecial::Hidden && tokenizer.is_special(id) {
            return Ok(());
        }
        match &tokenizer.shape {
            Shape::ByteLevel => {
                let bytes: Option<Vec<u8>> = token.chars().map(byte_of).collect();
                self.utf8.push(&bytes.unwrap_or_else(|| token.clone().into_bytes()), out);
            }
            Shape::ByteFallback { replacements, .. } => {
                let token = replacements.iter().fold(token, |token, (from, to)| token.replace(from.as_str(), to));
                let mut text = String::new();
                match byte_token(token.as_bytes()) {
                    Some(byte) => self.utf8.push(&[byte], &mut text),
                    None => {
                        self.utf8.finish(&mut text);
                        text.push_str(&token);
                    }
                }
                self.cut(&text, out);
            }
            Shape::WordSuffix(suffix) => {
                if let Some(waiting) = self.waiting.replace(token) {
                    out.push_str(&waiting.replace(suffix.as_str(), " "));
                }
            }
            Shape::EachToken => out.push_str(&self.each(token)?),
            Shape::Joined => {
                if !self.first {
                    out.push(' ');
                }
                out.push_str(&token);
            }
            Shape::Whole => self.tokens.push(token),
        }
        self.first = false;
        Ok(())
    }

    fn finish(&mut self, out: &mut String) -> Result<(), Error> {
        let mut text = String::new();
        self.utf8.finish(&mut text);
        self.cut(&text, out);
        if let (Shape::WordSuffix(suffix), Some(waiting)) = (&self.tokenizer.shape, self.waiting.take()) {
            out.push_str(&waiting.replace(suffix.as_str(), ""));
        }
        let tokens = std::mem::take(&mut self.tokens);
        if !tokens.is_empty() {
            let library = self.tokenizer.library();
            if let Some(decoder) = library.get_decoder() {
                out.push_str(&guard(|| decoder.decode(tokens))?);
            }
        }
        self.begin();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::byte_of;

    #[test]
    fn every_byte_has_one_character() {
        let mut bytes: Vec<u8> = (0..0x200).filter_map(char::from_u32).filter_map(byte_of).collect();
        bytes.sort_unstable();
        assert_eq!(bytes, (0..=255).collect::<Vec<u8>>());
        assert_eq!((byte_of('Ġ'), byte_of('Ċ'), byte_of('Ń')), (Some(b' '), Some(b'\n'), Some(0xad)));
    }
}
