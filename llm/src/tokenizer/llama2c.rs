//! `tokenizer.bin` of llama2.c: tokens with scores, merged by score.
//!
//! Two layouts occur. That of llama2.c begins with the length of the longest token; its tokens 1 and 2 begin and end a
//! sequence. That of ExecuTorch begins with the number of tokens, the ids that begin and end a sequence, and the length of
//! the longest token. Each token is a score (`f32`), a length (`u32`) and its bytes, all little-endian. The layout is the
//! one that ends where the file ends.
//!
//! Encoding puts a space before the text, begins with characters, and takes bytes (ids from 3 on) for characters without
//! a token. Its time is `n log n` in the length of the text.
//!
//! ```
//! use edgepack_llm::tokenizer::llama2c::Llama2c;
//! use edgepack_llm::tokenizer::{ShowSpecial, SpecialTokens, Tokenizer};
//!
//! let mut file = 7u32.to_le_bytes().to_vec();
//! let bytes = (0..=255).map(|byte| format!("<0x{byte:02X}>"));
//! let tokens = ["<unk>", "\n<s>\n", "\n</s>\n"].map(str::to_owned).into_iter().chain(bytes);
//! for token in tokens.chain([" ".into(), "a".into(), " a".into()]) {
//!     file.extend(0f32.to_le_bytes());
//!     file.extend((token.len() as u32).to_le_bytes());
//!     file.extend(token.bytes());
//! }
//! let tokenizer = Llama2c::from_bytes(&file)?;
//! let ids = tokenizer.encode("aé", SpecialTokens::AsText)?;
//! assert_eq!(ids, [261, 3 + 0xc3, 3 + 0xa9]);
//! assert_eq!(tokenizer.decode(&ids, ShowSpecial::Hidden)?, "aé");
//! # Ok::<(), edgepack_llm::tokenizer::Error>(())
//! ```

use std::borrow::Cow;
use std::collections::HashMap;

use super::decoder::{DecodeIds, Decoder, ShowSpecial};
use super::merge::{Score, Symbol, merge};
use super::part::{Joined, Part, Segment, Specials};
use super::utf8::{BadBytes, Utf8};
use super::{Error, Kind, Tokenizer};

/// Id of the byte 0; those of other bytes follow.
const FIRST_BYTE: u32 = 3;

/// Tokenizer of llama2.c.
#[derive(Debug)]
pub struct Llama2c {
    tokens: Vec<(Score, Box<[u8]>)>,
    ids: HashMap<Box<[u8]>, u32>,
    bos: u32,
    eos: u32,
    /// Whether the file names what begins and ends a sequence.
    named: bool,
    specials: Specials,
    longest: usize,
}

/// Reads tokens up to the end of the bytes; `None` if they do not end there.
fn tokens(mut bytes: &[u8]) -> Option<Vec<(f32, &[u8])>> {
    let mut tokens = Vec::new();
    while !bytes.is_empty() {
        let (score, rest) = bytes.split_first_chunk::<4>()?;
        let (length, rest) = rest.split_first_chunk::<4>()?;
        let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
        let (token, rest) = rest.split_at_checked(length)?;
        tokens.push((f32::from_le_bytes(*score), token));
        bytes = rest;
    }
    Some(tokens)
}

fn words<const N: usize>(bytes: &[u8]) -> Option<([u32; N], &[u8])> {
    let mut words = [0; N];
    let mut rest = bytes;
    for word in &mut words {
        let (first, behind) = rest.split_first_chunk::<4>()?;
        *word = u32::from_le_bytes(*first);
        rest = behind;
    }
    Some((words, rest))
}

impl Llama2c {
    /// Reads a tokenizer.
    ///
    /// # Errors
    ///
    /// If the bytes end within a token, a score is not finite, or a token is longer than the file says.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        super::bounded(bytes.len() as u64)?;
        let with_count = words::<4>(bytes).and_then(|([count, bos, eos, longest], rest)| {
            let tokens = tokens(rest)?;
            // Tokens that only pad the vocabulary may stand before those that are counted.
            let counted = tokens.len() as u64 == u64::from(count) || tokens.len() as u64 == u64::from(count) + 1;
            counted.then_some((longest, bos, eos, tokens))
        });
        let (longest, bos, eos, read, named) = match with_count {
            Some((longest, bos, eos, tokens)) => (longest, bos, eos, tokens, true),
            None => {
                let read = words::<1>(bytes).and_then(|([longest], rest)| Some((longest, tokens(rest)?)));
                let (longest, tokens) = read.ok_or_else(|| {
                    let message = "tokens of a score, a length and bytes do not end where the file ends";
                    Error::malformed("tokens", message)
                })?;
                (longest, 1, 2, tokens, false)
            }
        };
        Self::new(read, longest, bos, eos, named)
    }

    fn new(read: Vec<(f32, &[u8])>, longest: u32, bos: u32, eos: u32, named: bool) -> Result<Self, Error> {
        if bos == eos || bos as usize >= read.len() || eos as usize >= read.len() {
            let message = format!("sequences begin with {bos} and end with {eos}; there are {} tokens", read.len());
            return Err(Error::malformed("header", message));
        }
        let (mut tokens, mut ids) = (Vec::with_capacity(read.len()), HashMap::with_capacity(read.len()));
        for (id, (score, token)) in (0u32..).zip(read) {
            let broken = |message: String| Error::malformed(format!("token {id}"), message);
            if !score.is_finite() {
                return Err(broken(format!("its score is {score}")));
            }
            if token.len() as u64 > u64::from(longest) {
                return Err(broken(format!("it has {} bytes, the longest has {longest}", token.len())));
            }
            // The unknown token and what begins and ends a sequence are never made of text.
            if id != 0 && id != bos && id != eos {
                ids.entry(token.into()).or_insert(id);
            }
            tokens.push((Score(score), token.into()));
        }
        let text =
            |id: u32| tokens.get(id as usize).and_then(|(_, token): &(_, Box<[u8]>)| std::str::from_utf8(token).ok());
        // llama2.c writes them with line ends around.
        let specials = [bos, eos].into_iter().filter_map(|id| Some((text(id)?.trim_matches('\n'), id)));
        let specials = Specials::new(specials).map_err(|message| Error::malformed("header", message))?;
        Ok(Self { tokens, ids, bos, eos, named, specials, longest: longest as usize })
    }

    fn byte(&self, byte: u8) -> Option<u32> {
        let id = FIRST_BYTE + u32::from(byte);
        (self.byte_of(id) == Some(byte)).then_some(id)
    }

    /// Byte that a token such as `<0x0A>` stands for.
    fn byte_of(&self, id: u32) -> Option<u8> {
        super::byte_token(&self.tokens.get(id as usize)?.1)
    }

    fn encode_plain(&self, from: usize, text: &str, ids: &mut Vec<u32>) -> Result<(), Error> {
        let text = format!(" {text}");
        let known = |bytes: &[u8]| if bytes.len() > self.longest { None } else { self.ids.get(bytes).copied() };
        let symbols = text.char_indices().map(|(at, c)| {
            let range = at..at + c.len_utf8();
            Symbol { fixed: known(&text.as_bytes()[range.clone()]).is_none(), range }
        });
        let merged = merge(symbols.collect(), |start, _, end| {
            known(&text.as_bytes()[start..end]).map(|id| self.tokens[id as usize].0)
        });
        for range in merged {
            let bytes = &text.as_bytes()[range.clone()];
            if let Some(id) = known(bytes) {
                ids.push(id);
                continue;
            }
            for byte in bytes {
                ids.push(self.byte(*byte).ok_or_else(|| Error::NoToken {
                    at: from + range.start.saturating_sub(1),
                    text: String::from_utf8_lossy(bytes).into_owned(),
                })?);
            }
        }
        Ok(())
    }
}

impl Tokenizer for Llama2c {
    fn kind(&self) -> Kind {
        Kind::Llama2c
    }

    fn vocabulary_size(&self) -> u32 {
        self.tokens.len() as u32
    }

    fn id(&self, token: &[u8]) -> Option<u32> {
        let special = || self.specials.id(std::str::from_utf8(token).ok()?);
        self.ids.get(token).copied().or_else(special)
    }

    fn token(&self, id: u32) -> Option<Cow<'_, [u8]>> {
        self.tokens.get(id as usize).map(|(_, token)| Cow::Borrowed(&**token))
    }

    fn special_tokens(&self) -> Vec<(String, u32)> {
        self.specials.list()
    }

    /// Id that begins a sequence, if the file names it.
    fn bos(&self) -> Option<u32> {
        self.named.then_some(self.bos)
    }

    /// Id that ends a sequence, if the file names it.
    fn eos(&self) -> Option<u32> {
        self.named.then_some(self.eos)
    }

    fn encode_parts(&self, parts: &[Part<&str>]) -> Result<Vec<u32>, Error> {
        let joined = Joined::new(parts);
        let mut ids = Vec::new();
        for segment in joined.segments(&self.specials) {
            match segment {
                Segment::Plain(from, text) => self.encode_plain(from, text, &mut ids)?,
                Segment::Special(id) => ids.push(id),
            }
        }
        Ok(ids)
    }

    fn decoder(&self, special: ShowSpecial) -> Decoder<'_> {
        Decoder::new(State { tokenizer: self, special, utf8: Utf8::new(BadBytes::ByBeginning), first: true })
    }
}

struct State<'a> {
    tokenizer: &'a Llama2c,
    special: ShowSpecial,
    utf8: Utf8,
    /// Whether the next token has the space before the text.
    first: bool,
}

impl DecodeIds for State<'_> {
    fn push(&mut self, id: u32, out: &mut String) -> Result<(), Error> {
        let tokenizer = self.tokenizer;
        let unknown = || Error::UnknownId { id, size: tokenizer.vocabulary_size() };
        let (_, token) = tokenizer.tokens.get(id as usize).ok_or_else(unknown)?;
        if id == tokenizer.bos || id == tokenizer.eos {
            if self.special == ShowSpecial::Shown {
                self.utf8.push(token.trim_ascii(), out);
            }
            // Text behind a special token has a space of its own before it.
            self.first = true;
            return Ok(());
        }
        match tokenizer.byte_of(id) {
            Some(byte) => self.utf8.push(&[byte], out),
            None => self.utf8.push(token.strip_prefix(b" ").filter(|_| self.first).unwrap_or(token), out),
        }
        self.first = false;
        Ok(())
    }

    fn finish(&mut self, out: &mut String) -> Result<(), Error> {
        self.utf8.finish(out);
        self.first = true;
        Ok(())
    }
}
