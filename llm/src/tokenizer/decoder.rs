//! Ids that arrive one after the other become text.

use super::Error;

/// Treatment of special tokens in text that is decoded.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ShowSpecial {
    /// They leave no text.
    Hidden,
    /// Their own text is shown.
    Shown,
}

/// State of a decoder of one kind of tokenizer: what [`Decoder`] drives.
pub trait DecodeIds: Send {
    /// Takes an id and appends the text that is complete with it.
    ///
    /// # Errors
    ///
    /// If no token has this id; the state is as before.
    fn push(&mut self, id: u32, out: &mut String) -> Result<(), Error>;

    /// Appends what is left, and begins again.
    ///
    /// # Errors
    ///
    /// If the tokenizer fails.
    fn finish(&mut self, out: &mut String) -> Result<(), Error>;
}

/// Incremental decoder: ids go in, text comes out, never with half a character.
///
/// The texts of all calls together are those of [`Tokenizer::decode`](super::Tokenizer::decode) over all ids.
pub struct Decoder<'a> {
    state: Box<dyn DecodeIds + 'a>,
}

impl std::fmt::Debug for Decoder<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decoder").finish_non_exhaustive()
    }
}

impl<'a> Decoder<'a> {
    /// Makes a decoder of a state, for tokenizers of one's own.
    pub fn new(state: impl DecodeIds + 'a) -> Self {
        Self { state: Box::new(state) }
    }

    /// Takes an id and returns the text that is complete with it, often a word, sometimes nothing.
    ///
    /// # Errors
    ///
    /// If no token has this id.
    pub fn push(&mut self, id: u32) -> Result<String, Error> {
        let mut out = String::new();
        self.state.push(id, &mut out)?;
        Ok(out)
    }

    /// Returns what is left, with U+FFFD for a character that was not completed, and begins again.
    ///
    /// # Errors
    ///
    /// If the tokenizer fails.
    pub fn finish(&mut self) -> Result<String, Error> {
        let mut out = String::new();
        self.state.finish(&mut out)?;
        Ok(out)
    }

    /// Decodes all of these ids.
    pub(crate) fn whole(mut self, ids: &[u32]) -> Result<String, Error> {
        let mut out = String::new();
        for id in ids {
            self.state.push(*id, &mut out)?;
        }
        self.state.finish(&mut out)?;
        Ok(out)
    }
}
