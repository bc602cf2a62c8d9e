//! Reasons a tokenizer is not opened, or text or ids are not translated.

use super::Kind;

/// Error of a tokenizer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file could not be read.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The bytes are not a tokenizer of a kind that is known.
    #[error(
        "the file is not a tokenizer: neither the JSON of Hugging Face, nor lines of a token in Base64 and a rank, nor a \
         SentencePiece model, nor a llama2.c tokenizer"
    )]
    UnknownKind,
    /// The reader of this kind of file is switched off.
    #[error("the file is {kind}, whose reader is switched off: the feature `{feature}` of edgepack-llm has it")]
    SwitchedOff {
        /// Kind of the file.
        kind: Kind,
        /// Feature that would read it.
        feature: &'static str,
    },
    /// The file is longer than a reader accepts.
    #[error("the file has {bytes} bytes, at most {most} are read")]
    TooLong {
        /// Bytes of the file.
        bytes: u64,
        /// The most that is read.
        most: u64,
    },
    /// The file is of its kind, but broken.
    #[error("{place}: {message}")]
    Malformed {
        /// Place in the file.
        place: String,
        /// Description of the problem.
        message: String,
    },
    /// The file asks for something that is not done here.
    #[error("{place}: {message}")]
    Unsupported {
        /// Place in the file.
        place: String,
        /// Description of what is asked for, and of what is possible.
        message: String,
    },
    /// A text is longer than a tokenizer accepts.
    #[error("a text of {bytes} bytes; at most {most} are encoded at once")]
    TextTooLong {
        /// Bytes of the text.
        bytes: usize,
        /// The most that is encoded.
        most: usize,
    },
    /// The tokenizer has no token for a part of the text, and none for what is unknown.
    #[error("byte {at} of the text: the tokenizer has no token for {text:?}, and none for unknown text")]
    NoToken {
        /// Position in the text.
        at: usize,
        /// Part of the text.
        text: String,
    },
    /// No token has this id.
    #[error("no token has the id {id}; ids are below {size}")]
    UnknownId {
        /// The id.
        id: u32,
        /// Number of ids.
        size: u32,
    },
    /// The regular expression that divides text gave up.
    #[error("the regular expression that divides text gave up at byte {at}: {message}")]
    Pattern {
        /// Position in the text.
        at: usize,
        /// Description of the problem.
        message: String,
    },
    /// Text of a user could only be encoded with a special token.
    #[error("text that is not to become a special token becomes {token:?} however it is divided")]
    SpecialInText {
        /// The special token.
        token: String,
    },
    /// The library that reads a kind of file failed.
    #[error("the tokenizer failed: {0}")]
    Library(String),
}

impl Error {
    /// Makes an error of a broken file.
    pub(crate) fn malformed(place: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Malformed { place: place.into(), message: message.into() }
    }

    /// Makes an error of a file that asks for too much.
    pub(crate) fn unsupported(place: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Unsupported { place: place.into(), message: message.into() }
    }
}
