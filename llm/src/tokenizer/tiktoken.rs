//! Ranks as tiktoken has them: a line per token, in Base64, with its rank, which is its id and its priority.
//!
//! The file has neither the special tokens nor the regular expression that divides text into pieces: [`Options`] bring
//! both. The time of encoding grows with the length of the text, times its logarithm for a piece without end.
//!
//! ```
//! use edgepack_llm::tokenizer::tiktoken::{Options, Pattern, Tiktoken};
//! use edgepack_llm::tokenizer::{SpecialTokens, Tokenizer};
//!
//! let options = Options { pattern: Pattern::Qwen, special: vec![("<|im_end|>".into(), 4)] };
//! let tokenizer = Tiktoken::from_bytes(b"aA== 0\naQ== 1\naGk= 2\n", &options)?;
//! assert_eq!(tokenizer.encode("hi<|im_end|>", SpecialTokens::Recognised)?, [2, 7]);
//! # Ok::<(), edgepack_llm::tokenizer::Error>(())
//! ```

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::path::Path;

use base64::Engine;
use fancy_regex::Regex;

use super::decoder::{DecodeIds, Decoder, ShowSpecial};
use super::merge::{Symbol, merge};
use super::part::{Joined, Part, Segment, Specials};
use super::utf8::{BadBytes, Utf8};
use super::{Error, Kind, Tokenizer};

/// Steps back that a regular expression may take for one piece of text.
const BACKTRACKS: usize = 10_000_000;
/// Highest id plus one: bounds what a table by id takes, whatever ranks a file has.
const MOST_IDS: u32 = 1 << 24;

/// Regular expression that divides text into pieces; no token crosses the border of a piece.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Pattern {
    /// Of GPT-2.
    Gpt2,
    /// Of GPT-4.
    Cl100k,
    /// Of GPT-4o.
    O200k,
    /// Of Llama 3: numbers in threes.
    Llama3,
    /// Of Qwen 2 and later: numbers digit by digit.
    Qwen,
    /// Any other.
    Custom(String),
}

impl Pattern {
    /// Text of the regular expression.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Gpt2 => r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
            Self::Cl100k => {
                r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
            }
            Self::O200k => concat!(
                r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
                r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
                r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
            ),
            Self::Llama3 => {
                r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
            }
            Self::Qwen => {
                r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
            }
            Self::Custom(pattern) => pattern,
        }
    }
}

/// Facts that a file of ranks leaves out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// Regular expression that divides text into pieces.
    pub pattern: Pattern,
    /// Special tokens and their ids, counted from the number of ranks: 0 is the first id behind them.
    pub special: Vec<(String, u32)>,
}

impl Options {
    /// Pattern and 256 special tokens of Llama 3.1 and later; those of Llama 3 have the same ids, and the same names as
    /// far as they are used.
    pub fn llama3() -> Self {
        let reserved = |number: usize| format!("<|reserved_special_token_{number}|>");
        let mut names: Vec<String> = ["begin_of_text", "end_of_text"].map(|name| format!("<|{name}|>")).into();
        names.extend((0..2).map(reserved));
        let used = ["finetune_right_pad_id", "step_id", "start_header_id", "end_header_id", "eom_id", "eot_id"];
        names.extend(used.map(|name| format!("<|{name}|>")));
        names.push("<|python_tag|>".to_owned());
        names.extend((2..256 - 9).map(reserved));
        Self { pattern: Pattern::Llama3, special: names.into_iter().zip(0..).collect() }
    }

    /// Pattern and special token of GPT-2.
    pub fn gpt2() -> Self {
        Self { pattern: Pattern::Gpt2, special: vec![("<|endoftext|>".to_owned(), 0)] }
    }

    /// Pattern and special tokens of GPT-4, which leave ids behind the ranks free.
    pub fn cl100k() -> Self {
        let names = [("endoftext", 1), ("fim_prefix", 2), ("fim_middle", 3), ("fim_suffix", 4), ("endofprompt", 20)];
        Self { pattern: Pattern::Cl100k, special: names.map(|(name, place)| (format!("<|{name}|>"), place)).into() }
    }

    /// Pattern and special tokens of GPT-4o, which leave ids behind the ranks free.
    pub fn o200k() -> Self {
        let names = [("endoftext", 1), ("endofprompt", 20)];
        Self { pattern: Pattern::O200k, special: names.map(|(name, place)| (format!("<|{name}|>"), place)).into() }
    }

    /// Pattern and special tokens of Qwen 2.
    pub fn qwen() -> Self {
        let names = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"];
        Self { pattern: Pattern::Qwen, special: names.map(str::to_owned).into_iter().zip(0..).collect() }
    }
}

/// Tokenizer of a file of ranks.
#[derive(Debug)]
pub struct Tiktoken {
    ranks: HashMap<Box<[u8]>, u32>,
    /// Tokens by id; the empty one stands for none.
    tokens: Vec<Box<[u8]>>,
    specials: Specials,
    /// First id behind the ranks.
    first_special: u32,
    /// Bytes of the longest token with a rank.
    longest: usize,
    pattern: Regex,
}

impl Tiktoken {
    /// Opens a file of ranks.
    ///
    /// # Errors
    ///
    /// If it cannot be read, or is broken.
    pub fn open(path: impl AsRef<Path>, options: &Options) -> Result<Self, Error> {
        Self::from_bytes(&super::read(path.as_ref())?, options)
    }

    /// Reads ranks.
    ///
    /// # Errors
    ///
    /// If a line is not a token and a rank, a token or a rank occurs twice, or the pattern is not a regular expression.
    pub fn from_bytes(bytes: &[u8], options: &Options) -> Result<Self, Error> {
        super::bounded(bytes.len() as u64)?;
        let mut ranks: HashMap<Box<[u8]>, u32> = HashMap::new();
        for (number, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
            let line = line.trim_ascii();
            if line.is_empty() {
                continue;
            }
            let broken = |message: String| Error::malformed(format!("line {}", number + 1), message);
            let (token, rank) = line
                .iter()
                .position(|byte| *byte == b' ')
                .map(|space| line.split_at(space))
                .ok_or_else(|| broken("a token in Base64, a space and a rank are expected".to_owned()))?;
            let token = base64::engine::general_purpose::STANDARD
                .decode(token)
                .map_err(|error| broken(format!("the token is not Base64: {error}")))?;
            if token.is_empty() {
                return Err(broken("the token is empty".to_owned()));
            }
            let rank: u32 = std::str::from_utf8(rank.trim_ascii())
                .ok()
                .and_then(|rank| rank.parse().ok())
                .filter(|rank| *rank < MOST_IDS)
                .ok_or_else(|| broken(format!("the rank is not a number below {MOST_IDS}")))?;
            if ranks.insert(token.into(), rank).is_some() {
                return Err(broken("the token has a rank already".to_owned()));
            }
        }
        Self::new(ranks, options)
    }

    fn new(ranks: HashMap<Box<[u8]>, u32>, options: &Options) -> Result<Self, Error> {
        let first_special = ranks.values().max().map_or(0, |most| most + 1);
        // A table by id is fine as long as few ids have no token.
        if first_special as usize > ranks.len().saturating_mul(4).saturating_add(1 << 16) {
            let message = format!("{} tokens have ranks up to {}", ranks.len(), first_special - 1);
            return Err(Error::malformed("ranks", message));
        }
        let mut tokens: Vec<Box<[u8]>> = vec![Box::default(); first_special as usize];
        for (token, rank) in &ranks {
            let slot = &mut tokens[*rank as usize];
            if !slot.is_empty() {
                return Err(Error::malformed("ranks", format!("two tokens have the rank {rank}")));
            }
            slot.clone_from(token);
        }
        for (text, offset) in &options.special {
            let id = first_special.checked_add(*offset).filter(|id| *id < MOST_IDS);
            let id =
                id.ok_or_else(|| Error::malformed("special tokens", format!("id {offset} of {text} is too high")))?;
            if tokens.len() <= id as usize {
                tokens.resize(id as usize + 1, Box::default());
            }
            if !tokens[id as usize].is_empty() {
                return Err(Error::malformed("special tokens", format!("two tokens have the id {id}")));
            }
            tokens[id as usize] = text.as_bytes().into();
        }
        let specials = options.special.iter().map(|(text, offset)| (text.as_str(), first_special + offset));
        let specials = Specials::new(specials).map_err(|message| Error::malformed("special tokens", message))?;
        let pattern = fancy_regex::RegexBuilder::new(options.pattern.as_str())
            .backtrack_limit(BACKTRACKS)
            .build()
            .map_err(|error| Error::malformed("pattern", error.to_string()))?;
        let longest = ranks.keys().map(|token| token.len()).max().unwrap_or(0);
        Ok(Self { ranks, tokens, specials, first_special, longest, pattern })
    }

    fn encode_plain(&self, from: usize, text: &str, ids: &mut Vec<u32>) -> Result<(), Error> {
        let mut done = 0;
        for found in self.pattern.find_iter(text) {
            let found = found.map_err(|error| Error::Pattern { at: from + done, message: error.to_string() })?;
            // Text that the pattern passes over is a piece, too, so that nothing is lost.
            if done < found.start() {
                self.encode_piece(from + done, &text[done..found.start()], ids)?;
            }
            self.encode_piece(from + found.start(), found.as_str(), ids)?;
            done = found.end();
        }
        self.encode_piece(from + done, &text[done..], ids)
    }

    fn encode_piece(&self, from: usize, piece: &str, ids: &mut Vec<u32>) -> Result<(), Error> {
        let bytes = piece.as_bytes();
        if bytes.is_empty() {
            return Ok(());
        }
        if let Some(id) = self.ranks.get(bytes) {
            ids.push(*id);
            return Ok(());
        }
        let symbols = (0..bytes.len()).map(|at| Symbol { range: at..at + 1, fixed: false }).collect();
        let merged = merge(symbols, |start, _, end| {
            if end - start > self.longest { None } else { self.ranks.get(&bytes[start..end]).copied().map(Reverse) }
        });
        for range in merged {
            let id = self.ranks.get(&bytes[range.clone()]).ok_or_else(|| Error::NoToken {
                at: from + range.start,
                text: String::from_utf8_lossy(&bytes[range.clone()]).into_owned(),
            })?;
            ids.push(*id);
        }
        Ok(())
    }
}

impl Tokenizer for Tiktoken {
    fn kind(&self) -> Kind {
        Kind::Tiktoken
    }

    fn vocabulary_size(&self) -> u32 {
        self.tokens.len() as u32
    }

    fn id(&self, token: &[u8]) -> Option<u32> {
        let special = || self.specials.id(std::str::from_utf8(token).ok()?);
        self.ranks.get(token).copied().or_else(special)
    }

    fn token(&self, id: u32) -> Option<Cow<'_, [u8]>> {
        self.tokens.get(id as usize).filter(|token| !token.is_empty()).map(|token| Cow::Borrowed(&**token))
    }

    fn special_tokens(&self) -> Vec<(String, u32)> {
        self.specials.list()
    }

    /// Always `None`: a file of ranks does not say.
    fn bos(&self) -> Option<u32> {
        None
    }

    /// Always `None`: a file of ranks does not say.
    fn eos(&self) -> Option<u32> {
        None
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
        Decoder::new(State { tokenizer: self, special, utf8: Utf8::new(BadBytes::ByBeginning) })
    }
}

struct State<'a> {
    tokenizer: &'a Tiktoken,
    special: ShowSpecial,
    utf8: Utf8,
}

impl DecodeIds for State<'_> {
    fn push(&mut self, id: u32, out: &mut String) -> Result<(), Error> {
        let unknown = || Error::UnknownId { id, size: self.tokenizer.vocabulary_size() };
        let token = self.tokenizer.token(id).ok_or_else(unknown)?;
        if id < self.tokenizer.first_special || self.special == ShowSpecial::Shown {
            self.utf8.push(&token, out);
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut String) -> Result<(), Error> {
        self.utf8.finish(out);
        Ok(())
    }
}
