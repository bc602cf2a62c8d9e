//! SentencePiece models: unigram and BPE, with bytes for characters without a piece.
//!
//! A `.model` file is a protocol buffer with pieces, rules of normalisation and settings; all are followed as the
//! library follows them. Control pieces (`<s>`, `</s>`) are the special tokens; text between them is encoded as a text of
//! its own, with the space in front that the file may ask for. User-defined pieces that read like a marker (`<…>` or
//! `[…]` without a space) are special tokens, too, so that text of users does not become one, but do not interrupt the
//! text that they stand in.
//!
//! The time of encoding grows with the length of the text, times the longest piece for unigram, times a logarithm for
//! BPE. Models of words or characters are refused, and those that rewrite decoded text.

mod bpe;
mod model;
mod normalise;
mod prefixes;
mod proto;
mod symbols;
mod unigram;

use std::borrow::Cow;
use std::ops::Range;

use self::model::{Algorithm, Kind, Model};
use self::normalise::{SPACE, normalise};
use self::symbols::Symbols;
use self::unigram::Unigram;
use super::decoder::{DecodeIds, Decoder, ShowSpecial};
use super::part::{Joined, Part, Segment, Specials};
use super::utf8::{BadBytes, Utf8};
use super::{Error, Tokenizer};

/// Tokenizer of a SentencePiece model.
#[derive(Debug)]
pub struct SentencePiece {
    model: Model,
    symbols: Symbols,
    /// `None` for BPE.
    unigram: Option<Unigram>,
    controls: Specials,
}

impl SentencePiece {
    /// Reads a model.
    ///
    /// # Errors
    ///
    /// If the file is broken, or asks for something that is not done: see the [module](self).
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        super::bounded(bytes.len() as u64)?;
        let model = Model::parse(bytes)?;
        let symbols = Symbols::new(&model);
        let unigram = (model.algorithm == Algorithm::Unigram).then(|| Unigram::new(&model));
        let controls = (0u32..).zip(&model.pieces).filter(|(_, piece)| piece.kind == Kind::Control);
        let controls = Specials::new(controls.map(|(id, piece)| (&*piece.text, id)))
            .map_err(|message| Error::malformed("pieces", message))?;
        Ok(Self { model, symbols, unigram, controls })
    }

    fn encode_plain(&self, text: &str, guarded: &[Range<usize>], ids: &mut Vec<u32>) -> Result<(), Error> {
        let normalised = normalise(&self.model, &self.symbols, text, guarded)?;
        let divided = match &self.unigram {
            Some(unigram) => unigram.divide(&self.model, &self.symbols, &normalised),
            None => bpe::divide(&self.model, &self.symbols, &normalised),
        };
        let mut after_unknown = false;
        for (range, id) in divided {
            let unknown = id == self.model.unknown;
            match &self.model.bytes {
                Some(bytes) if unknown => {
                    ids.extend(normalised.text[range].bytes().map(|byte| bytes[usize::from(byte)]));
                }
                // A run of unknown characters is one token.
                _ if unknown && after_unknown => {}
                _ => ids.push(id),
            }
            after_unknown = unknown;
        }
        Ok(())
    }
}

/// Ranges of `text[from..to]` that are not recognised, counted from `from`.
fn guarded(recognised: &[Range<usize>], from: usize, to: usize) -> Vec<Range<usize>> {
    let mut guarded = Vec::new();
    let mut at = from;
    let first = recognised.partition_point(|range| range.end <= from);
    for range in recognised.iter().skip(first).take_while(|range| range.start < to) {
        if at < range.start {
            guarded.push(at - from..range.start - from);
        }
        at = range.end;
    }
    if at < to {
        guarded.push(at - from..to - from);
    }
    guarded
}

impl Tokenizer for SentencePiece {
    fn kind(&self) -> super::Kind {
        super::Kind::SentencePiece
    }

    fn vocabulary_size(&self) -> u32 {
        self.model.pieces.len() as u32
    }

    fn id(&self, token: &[u8]) -> Option<u32> {
        self.model.ids.get(std::str::from_utf8(token).ok()?).copied()
    }

    fn token(&self, id: u32) -> Option<Cow<'_, [u8]>> {
        self.model.pieces.get(id as usize).map(|piece| Cow::Borrowed(piece.text.as_bytes()))
    }

    fn special_tokens(&self) -> Vec<(String, u32)> {
        let mut list = self.controls.list();
        let markers = self.symbols.markers().iter();
        list.extend(markers.filter_map(|id| Some((self.model.pieces.get(*id as usize)?.text.to_string(), *id))));
        list.sort_by_key(|(_, id)| *id);
        list
    }

    fn bos(&self) -> Option<u32> {
        self.model.bos
    }

    fn eos(&self) -> Option<u32> {
        self.model.eos
    }

    fn encode_parts(&self, parts: &[Part<&str>]) -> Result<Vec<u32>, Error> {
        let joined = Joined::new(parts);
        let mut ids = Vec::new();
        for segment in joined.segments(&self.controls) {
            match segment {
                Segment::Plain(from, text) => {
                    let guarded = guarded(&joined.recognised, from, from + text.len());
                    self.encode_plain(text, &guarded, &mut ids)?;
                }
                Segment::Special(id) => ids.push(id),
            }
        }
        Ok(ids)
    }

    fn decoder(&self, special: ShowSpecial) -> Decoder<'_> {
        Decoder::new(State { tokenizer: self, special, utf8: Utf8::new(BadBytes::ByByte), start: Start::new() })
    }
}

/// Beginning of the decoded text, where spaces that the normaliser adds are taken away.
struct Start {
    /// Whether no text has come.
    empty: bool,
    /// Whether a space was taken away that is taken away only once.
    seen: bool,
    /// Whether the next piece is at the beginning.
    here: bool,
}

impl Start {
    fn new() -> Self {
        Self { empty: true, seen: false, here: true }
    }
}

struct State<'a> {
    tokenizer: &'a SentencePiece,
    special: ShowSpecial,
    utf8: Utf8,
    start: Start,
}

impl State<'_> {
    fn piece(&mut self, text: &str, out: &mut String) {
        let model = &self.tokenizer.model;
        self.start.seen = false;
        let mut text = text;
        if self.start.here
            && (model.dummy_prefix || model.remove_extra_whitespaces)
            && let Some(rest) = text.strip_prefix(SPACE)
        {
            text = rest;
            self.start.seen = !model.remove_extra_whitespaces;
        }
        let text = text.replace(SPACE, " ");
        self.start.empty &= text.is_empty();
        out.push_str(&text);
    }
}

impl DecodeIds for State<'_> {
    fn push(&mut self, id: u32, out: &mut String) -> Result<(), Error> {
        let tokenizer = self.tokenizer;
        let unknown = || Error::UnknownId { id, size: tokenizer.vocabulary_size() };
        let piece = tokenizer.model.pieces.get(id as usize).ok_or_else(unknown)?;
        if piece.kind == Kind::Byte {
            let byte = super::byte_token(piece.text.as_bytes());
            self.utf8.push(byte.as_slice(), out);
            self.start.empty = false;
            return Ok(());
        }
        self.utf8.finish(out);
        if self.start.seen || !self.start.empty {
            self.start.here = false;
        }
        let is_marker = tokenizer.symbols.markers().binary_search(&id).is_ok();
        match piece.kind {
            Kind::Control if self.special == ShowSpecial::Shown => {
                out.push_str(&piece.text);
                self.start.seen = false;
            }
            Kind::Control => self.start.seen = false,
            Kind::UserDefined if is_marker && self.special == ShowSpecial::Hidden => {}
            Kind::Unknown => {
                out.push_str(&tokenizer.model.unknown_surface);
                self.start.empty &= tokenizer.model.unknown_surface.is_empty();
                self.start.seen = false;
            }
            _ => self.piece(&piece.text, out),
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut String) -> Result<(), Error> {
        self.utf8.finish(out);
        self.start = Start::new();
        Ok(())
    }
}
