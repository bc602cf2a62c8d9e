//! Tokenizers: text becomes ids, ids become text.
//!
//! [`open`] reads four kinds of files and tells them apart by their content: `tokenizer.json` of Hugging Face, ranks as
//! tiktoken has them, SentencePiece models, and `tokenizer.bin` of llama2.c. All of them are a [`Tokenizer`].
//!
//! Text says where it comes from: in text of users nothing becomes a special token ([`SpecialTokens::AsText`]); in a
//! template special tokens are recognised. A prompt of both is a list of [`Part`]s, encoded as one text.
//!
//! ```
//! # #[cfg(feature = "tiktoken")] {
//! use edgepack_llm::tokenizer::{ShowSpecial, SpecialTokens, from_bytes};
//!
//! // Four tokens: "h", "i", "hi" and "!".
//! let tokenizer = from_bytes(b"aA== 0\naQ== 1\naGk= 2\nIQ== 3\n")?;
//! let ids = tokenizer.encode("hi!<|eot_id|>", SpecialTokens::Recognised)?;
//! assert_eq!(ids, [2, 3, 4 + 9]);
//! assert_eq!(tokenizer.decode(&ids, ShowSpecial::Hidden)?, "hi!");
//!
//! let mut decoder = tokenizer.decoder(ShowSpecial::Shown);
//! assert_eq!(decoder.push(2)?, "hi");
//! assert_eq!(decoder.push(13)?, "<|eot_id|>");
//! assert_eq!(decoder.finish()?, "");
//! # }
//! # Ok::<(), edgepack_llm::tokenizer::Error>(())
//! ```
//!
//! Files are untrusted: they are read in memory and time that their length bounds, and refused with an [`Error`]. Encoding
//! and decoding take memory that the length of the text bounds; each reader states its time.

#[cfg(any(feature = "huggingface", feature = "sentencepiece"))]
mod charsmap;
mod decoder;
#[cfg_attr(
    not(all(feature = "huggingface", feature = "tiktoken", feature = "sentencepiece", feature = "llama2c")),
    allow(dead_code, reason = "shared by readers, some of which are switched off")
)]
mod error;
#[cfg(feature = "huggingface")]
pub mod huggingface;
mod kind;
#[cfg(feature = "llama2c")]
pub mod llama2c;
#[cfg_attr(
    not(all(feature = "huggingface", feature = "tiktoken", feature = "sentencepiece", feature = "llama2c")),
    allow(dead_code, reason = "shared by readers, some of which are switched off")
)]
mod merge;
#[cfg_attr(
    not(all(feature = "huggingface", feature = "tiktoken", feature = "sentencepiece", feature = "llama2c")),
    allow(dead_code, reason = "shared by readers, some of which are switched off")
)]
mod part;
#[cfg(feature = "sentencepiece")]
pub mod sentencepiece;
#[cfg(feature = "tiktoken")]
pub mod tiktoken;
#[cfg_attr(
    not(all(feature = "huggingface", feature = "tiktoken", feature = "sentencepiece", feature = "llama2c")),
    allow(dead_code, reason = "shared by readers, some of which are switched off")
)]
mod utf8;

use std::borrow::Cow;
use std::path::Path;

pub use decoder::{DecodeIds, Decoder, ShowSpecial};
pub use error::Error;
pub use kind::Kind;
pub use part::{Part, SpecialTokens};

/// Longest file that is read, in bytes.
pub const MOST_BYTES: u64 = 256 << 20;

/// Translation between text and ids.
pub trait Tokenizer: Send + Sync {
    /// Kind of the file.
    fn kind(&self) -> Kind;

    /// Number of ids: one more than the highest.
    fn vocabulary_size(&self) -> u32;

    /// Id of a token, as the file spells the token.
    fn id(&self, token: &[u8]) -> Option<u32>;

    /// Token of an id, as the file spells it; see [`decode`](Self::decode) for its text.
    fn token(&self, id: u32) -> Option<Cow<'_, [u8]>>;

    /// Special tokens and their ids, sorted by id.
    fn special_tokens(&self) -> Vec<(String, u32)>;

    /// Id that the file itself says a sequence begins with.
    fn bos(&self) -> Option<u32>;

    /// Id that the file itself says a sequence ends with.
    fn eos(&self) -> Option<u32>;

    /// Encodes parts as the one text that they are together; special tokens are recognised where they lie wholly in
    /// parts that say so. Nothing is added at the beginning or at the end.
    ///
    /// # Errors
    ///
    /// If the text is too long, or a part of it has no token.
    fn encode_parts(&self, parts: &[Part<&str>]) -> Result<Vec<u32>, Error>;

    /// Makes an incremental decoder.
    fn decoder(&self, special: ShowSpecial) -> Decoder<'_>;

    /// Encodes a text; see [`encode_parts`](Self::encode_parts).
    ///
    /// # Errors
    ///
    /// As `encode_parts`.
    fn encode(&self, text: &str, special: SpecialTokens) -> Result<Vec<u32>, Error> {
        self.encode_parts(&[Part { text, special }])
    }

    /// Decodes ids; bytes that are not UTF-8 become U+FFFD.
    ///
    /// # Errors
    ///
    /// If an id has no token.
    fn decode(&self, ids: &[u32], special: ShowSpecial) -> Result<String, Error> {
        self.decoder(special).whole(ids)
    }
}

/// Opens a tokenizer of any kind; ranks are taken for those of Llama 3 (see [`tiktoken::Options`] for others).
///
/// # Errors
///
/// If the file cannot be read, is of no known kind, or is broken.
pub fn open(path: impl AsRef<Path>) -> Result<Box<dyn Tokenizer>, Error> {
    from_bytes(&read(path.as_ref())?)
}

/// Reads a tokenizer of any kind from the bytes of its file; see [`open`].
///
/// # Errors
///
/// If the file is of no known kind, or broken.
pub fn from_bytes(bytes: &[u8]) -> Result<Box<dyn Tokenizer>, Error> {
    bounded(bytes.len() as u64)?;
    match Kind::of(bytes).ok_or(Error::UnknownKind)? {
        #[cfg(feature = "huggingface")]
        Kind::HuggingFace => Ok(Box::new(huggingface::HuggingFace::from_bytes(bytes)?)),
        #[cfg(not(feature = "huggingface"))]
        kind @ Kind::HuggingFace => Err(Error::SwitchedOff { kind, feature: "huggingface" }),
        #[cfg(feature = "tiktoken")]
        Kind::Tiktoken => Ok(Box::new(tiktoken::Tiktoken::from_bytes(bytes, &tiktoken::Options::llama3())?)),
        #[cfg(not(feature = "tiktoken"))]
        kind @ Kind::Tiktoken => Err(Error::SwitchedOff { kind, feature: "tiktoken" }),
        #[cfg(feature = "sentencepiece")]
        Kind::SentencePiece => Ok(Box::new(sentencepiece::SentencePiece::from_bytes(bytes)?)),
        #[cfg(not(feature = "sentencepiece"))]
        kind @ Kind::SentencePiece => Err(Error::SwitchedOff { kind, feature: "sentencepiece" }),
        #[cfg(feature = "llama2c")]
        Kind::Llama2c => Ok(Box::new(llama2c::Llama2c::from_bytes(bytes)?)),
        #[cfg(not(feature = "llama2c"))]
        kind @ Kind::Llama2c => Err(Error::SwitchedOff { kind, feature: "llama2c" }),
    }
}

fn bounded(bytes: u64) -> Result<(), Error> {
    if bytes > MOST_BYTES { Err(Error::TooLong { bytes, most: MOST_BYTES }) } else { Ok(()) }
}

/// Reads a file that is not too long, even if it grows meanwhile.
fn read(path: &Path) -> Result<Vec<u8>, Error> {
    use std::io::Read;
    let file = std::fs::File::open(path)?;
    bounded(file.metadata()?.len())?;
    let mut bytes = Vec::new();
    file.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
    bounded(bytes.len() as u64)?;
    Ok(bytes)
}

/// Byte that a token such as `<0x0A>` stands for.
#[cfg(any(feature = "huggingface", feature = "sentencepiece", feature = "llama2c"))]
fn byte_token(token: &[u8]) -> Option<u8> {
    let [b'<', b'0', b'x', high, low, b'>'] = token else { return None };
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    u8::try_from(digit(high)? * 16 + digit(low)?).ok()
}
