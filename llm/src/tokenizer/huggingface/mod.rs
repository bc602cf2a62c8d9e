//! `tokenizer.json` of Hugging Face, read by the `tokenizers` crate with regular expressions in pure Rust.
//!
//! Text is encoded as the library encodes it without what a post-processor adds; [`bos`](Tokenizer::bos) and
//! [`eos`](Tokenizer::eos) are what it would add. Special tokens are the added tokens that the file calls special; added
//! tokens that it does not call special are text, and are found in text of users, too.
//!
//! In text of users nothing becomes a special token, even where the vocabulary itself has it as a piece: such text is
//! divided inside of the piece, which the library alone would not do. If a prompt has text of users that reads like a
//! special token, or makes one together with the template, the text between the special tokens of the template is encoded
//! as texts of their own; in all other prompts ids are those of the library for the whole text.
//!
//! Bytes such as `<0xE2>` become text as soon as a character is complete; bytes that are no character become U+FFFD
//! each, whatever bytes stand next to them.
//!
//! Files are looked at before the library reads them. A regular expression may step back a million times for each piece
//! of text, so that a hostile file can take that time for every character; texts have at most [`MOST_TEXT`] bytes.

mod check;
mod decode;

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use tokenizers::tokenizer::{AddedToken, Encoding};

use self::decode::Shape;
use super::decoder::{Decoder, ShowSpecial};
use super::part::{Joined, Part, Segment, Specials};
use super::{Error, Kind, Tokenizer};

/// Longest text that is encoded at once, in bytes: within it a regular expression that steps back for every character of
/// a run does not give up.
pub const MOST_TEXT: usize = 900_000;
/// Times that text is divided again because a piece of it is still a special token.
const MOST_ROUNDS: usize = 64;

/// Tokenizer of a `tokenizer.json`.
pub struct HuggingFace {
    /// Under a lock because the treatment of special tokens is a setting of the library.
    library: RwLock<tokenizers::Tokenizer>,
    special: HashMap<u32, AddedToken>,
    specials: Specials,
    unknown: Option<u32>,
    bos: Option<u32>,
    eos: Option<u32>,
    size: u32,
    shape: Shape,
}

impl std::fmt::Debug for HuggingFace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HuggingFace").field("size", &self.size).field("shape", &self.shape).finish_non_exhaustive()
    }
}

/// Calls the library; a panic of it becomes an error.
fn guard<T>(call: impl FnOnce() -> tokenizers::Result<T>) -> Result<T, Error> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(result) => result.map_err(|error| Error::Library(error.to_string())),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            Err(Error::Library(format!("it panicked: {}", text.unwrap_or_default())))
        }
    }
}

impl HuggingFace {
    /// Reads a tokenizer.
    ///
    /// # Errors
    ///
    /// If the file is broken, asks for chance (`dropout`), or has a decoder for speech.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        super::bounded(bytes.len() as u64)?;
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        let facts = check::check(bytes)?;
        let mut library = guard(|| tokenizers::Tokenizer::from_bytes(bytes))?;
        guard(|| {
            library.with_truncation(None)?;
            library.with_padding(None);
            Ok(())
        })?;
        let added = library.get_added_tokens_decoder();
        let special: HashMap<u32, AddedToken> = added.into_iter().filter(|(_, token)| token.special).collect();
        let specials = Specials::new(special.iter().map(|(id, token)| (token.content.as_str(), *id)))
            .map_err(|message| Error::malformed("added_tokens", message))?;
        let unknown = facts.unknown_id.or_else(|| library.token_to_id(facts.unknown.as_deref()?));
        let size = special.keys().max().map_or(facts.size, |most| facts.size.max(most.saturating_add(1)));
        let shape = Shape::of(&facts.decoder);
        let (bos, eos) = (facts.bos, facts.eos);
        Ok(Self { library: RwLock::new(library), special, specials, unknown, bos, eos, size, shape })
    }

    fn library(&self) -> RwLockReadGuard<'_, tokenizers::Tokenizer> {
        self.library.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_special(&self, id: u32) -> bool {
        self.special.contains_key(&id)
    }

    /// Encodes with special tokens recognised everywhere or nowhere.
    fn call(&self, text: &str, recognise: bool) -> Result<Encoding, Error> {
        let library = self.library();
        if library.get_encode_special_tokens() != recognise {
            return guard(|| library.encode(text, false));
        }
        drop(library);
        let mut library = self.library.write().unwrap_or_else(PoisonError::into_inner);
        library.set_encode_special_tokens(!recognise);
        guard(|| library.encode(text, false))
    }

    /// Encodes text none of which becomes a special token.
    fn encode_plain(&self, text: &str, ids: &mut Vec<u32>) -> Result<(), Error> {
        let mut open = vec![text];
        for _ in 0..MOST_ROUNDS {
            let mut next = Vec::new();
            let mut again = false;
            let mut encoded = Vec::with_capacity(open.len());
            for piece in &open {
                let encoding = self.call(piece, false)?;
                let mut cuts = Vec::new();
                for (id, offsets) in encoding.get_ids().iter().zip(encoding.get_offsets()) {
                    if self.is_special(*id) && Some(*id) != self.unknown {
                        cuts.push(middle(piece, offsets.0..offsets.1).ok_or_else(|| self.in_text(*id))?);
                    }
                }
                again |= !cuts.is_empty();
                cuts.sort_unstable();
                let mut from = 0;
                for cut in cuts.into_iter().chain([piece.len()]) {
                    if from < cut {
                        next.push(&piece[from..cut]);
                        from = cut;
                    }
                }
                encoded.push(encoding);
            }
            if !again {
                ids.extend(encoded.iter().flat_map(Encoding::get_ids));
                return Ok(());
            }
            open = next;
        }
        Err(Error::SpecialInText { token: "a piece of the vocabulary".to_owned() })
    }

    fn in_text(&self, id: u32) -> Error {
        let token = self.special.get(&id).map(|token| token.content.clone());
        Error::SpecialInText { token: token.unwrap_or_default() }
    }

    /// Encodes text of which only some becomes special tokens, divided at the special tokens of the template.
    fn encode_divided(&self, joined: &Joined) -> Result<Vec<u32>, Error> {
        let mut ids = Vec::new();
        let segments = joined.segments(&self.specials);
        let token = |index: Option<usize>| match segments.get(index?) {
            Some(Segment::Special(id)) => self.special.get(id),
            _ => None,
        };
        for (index, segment) in segments.iter().enumerate() {
            match segment {
                Segment::Special(id) => ids.push(*id),
                Segment::Plain(_, text) => {
                    let before = token(index.checked_sub(1)).is_some_and(|token| token.rstrip);
                    let text = if before { text.trim_start() } else { text };
                    let behind = token(Some(index + 1)).is_some_and(|token| token.lstrip);
                    let text = if behind { text.trim_end() } else { text };
                    if !text.is_empty() {
                        self.encode_plain(text, &mut ids)?;
                    }
                }
            }
        }
        Ok(ids)
    }
}

/// Border of characters inside of a range; `None` if it has one character.
fn middle(text: &str, range: Range<usize>) -> Option<usize> {
    let inside = text.get(range.clone())?;
    let (at, _) = inside.char_indices().nth(inside.chars().count() / 2).filter(|(at, _)| *at > 0)?;
    Some(range.start + at)
}

impl Tokenizer for HuggingFace {
    fn kind(&self) -> Kind {
        Kind::HuggingFace
    }

    fn vocabulary_size(&self) -> u32 {
        self.size
    }

    fn id(&self, token: &[u8]) -> Option<u32> {
        self.library().token_to_id(std::str::from_utf8(token).ok()?)
    }

    fn token(&self, id: u32) -> Option<Cow<'_, [u8]>> {
        self.library().id_to_token(id).map(|token| Cow::Owned(token.into_bytes()))
    }

    fn special_tokens(&self) -> Vec<(String, u32)> {
        self.specials.list()
    }

    fn bos(&self) -> Option<u32> {
        self.bos
    }

    fn eos(&self) -> Option<u32> {
        self.eos
    }

    fn encode_parts(&self, parts: &[Part<&str>]) -> Result<Vec<u32>, Error> {
        let joined = Joined::new(parts);
        if joined.text.len() > MOST_TEXT {
            return Err(Error::TextTooLong { bytes: joined.text.len(), most: MOST_TEXT });
        }
        if joined.recognised.is_empty() {
            let mut ids = Vec::new();
            self.encode_plain(&joined.text, &mut ids)?;
            return Ok(ids);
        }
        let encoding = self.call(&joined.text, true)?;
        // Special tokens may take spaces from text of users, but nothing else.
        let from_template = |range: Range<usize>| {
            let trimmed = |text: &str| {
                let start = range.end - text.trim_start().len();
                start..start + text.trim().len()
            };
            let inner = joined.text.get(range.clone()).map(trimmed);
            inner.is_some_and(|inner| {
                let index = joined.recognised.partition_point(|part| part.end <= inner.start);
                joined.recognised.get(index).is_some_and(|part| part.start <= inner.start && inner.end <= part.end)
            })
        };
        let sound = encoding.get_ids().iter().zip(encoding.get_offsets()).all(|(id, offsets)| {
            !self.is_special(*id) || Some(*id) == self.unknown || from_template(offsets.0..offsets.1)
        });
        if sound { Ok(encoding.get_ids().to_vec()) } else { self.encode_divided(&joined) }
    }

    fn decoder(&self, special: ShowSpecial) -> Decoder<'_> {
        Decoder::new(decode::State::new(self, special))
    }
}
