//! The reading of a text: words, numbers, lists and bytes, and what parsing carries along.
//!
//! Invariant: parsing moves forward only, and every error is at the place of the token that was not expected.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use edgepack_format::row::{Blob, Scalar, Scalars};

use super::lexer::{Lexer, ParseError, Token};
use crate::edit::Content;

type Result<T, E = ParseError> = std::result::Result<T, E>;

/// State of the parser.
pub(super) struct Parser<'t, 'o> {
    pub(super) lexer: Lexer<'t>,
    pub(super) open: &'o mut dyn FnMut(&str) -> Result<Content, String>,
    pub(super) side: Content,
    /// End of the last range in the file next to the text: each byte of it is used once at most.
    used: u64,
}

impl<'t, 'o> Parser<'t, 'o> {
    /// Starts at the beginning of a text. `open` gives the file next to it, by its name.
    pub(super) fn new(text: &'t str, open: &'o mut dyn FnMut(&str) -> Result<Content, String>) -> Result<Self> {
        Ok(Parser { lexer: Lexer::new(text)?, open, side: Content::empty(), used: 0 })
    }

    /// Items between braces, each after its keyword.
    pub(super) fn block<T>(&mut self, item: &str, mut one: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        self.mark('{')?;
        let mut items = Vec::new();
        while *self.lexer.peek() != Token::Mark('}') {
            match self.lexer.peek() {
                Token::Name(word) if *word == item => self.lexer.take()?,
                _ => return Err(self.lexer.expected(&format!("`{item}` or `}}`"))),
            };
            items.push(one(self)?);
        }
        self.lexer.take()?;
        Ok(items)
    }

    /// Bytes: in the text, in the file next to it, or none.
    pub(super) fn bytes(&mut self) -> Result<Option<Content>> {
        let place = self.lexer.place();
        match self.name("`base64`, `file` or `absent`")? {
            "absent" => Ok(None),
            "base64" => self.base64().map(|bytes| Some(bytes.into())),
            "file" => {
                let (start, len): (u64, u64) = (self.number()?, self.number()?);
                let end = start.checked_add(len).filter(|_| start >= self.used);
                let content = end.and_then(|end| self.side.slice(start..end));
                let message = || {
                    let (have, used) = (self.side.len(), self.used);
                    format!("{len} bytes at {start} of a file of {have}, of which {used} are used before")
                };
                let content = content.ok_or_else(|| self.lexer.error_at(place, message()))?;
                self.used = start.saturating_add(len);
                Ok(Some(content))
            }
            other => Err(self.lexer.error_at(place, format!("expected `base64`, `file` or `absent`, found `{other}`"))),
        }
    }

    pub(super) fn blob(&mut self) -> Result<Option<Blob<'static>>> {
        let place = self.lexer.place();
        let Some(content) = self.bytes()? else { return Ok(None) };
        let bytes = content.read().map_err(|error| self.lexer.error_at(place, error.to_string()))?;
        Ok(Some(Blob(bytes.into_owned().into())))
    }

    fn base64(&mut self) -> Result<Vec<u8>> {
        let place = self.lexer.place();
        let text = self.text()?;
        BASE64.decode(text).map_err(|error| self.lexer.error_at(place, format!("this is not base64: {error}")))
    }

    /// Bytes that are always in the text, or none.
    pub(super) fn small_bytes(&mut self) -> Result<Option<Blob<'static>>> {
        match self.lexer.peek() {
            Token::Name("absent") => {
                self.lexer.take()?;
                Ok(None)
            }
            _ => {
                self.keyword("base64")?;
                Ok(Some(Blob(self.base64()?.into())))
            }
        }
    }

    /// This word.
    pub(super) fn keyword(&mut self, word: &str) -> Result<()> {
        match self.lexer.peek() {
            Token::Name(found) if *found == word => self.lexer.take().map(drop),
            _ => Err(self.lexer.expected(&format!("`{word}`"))),
        }
    }

    /// Passes a word that stands for this.
    pub(super) fn word<T>(&mut self, meaning: T) -> Result<T> {
        self.lexer.take()?;
        Ok(meaning)
    }

    /// Any word.
    pub(super) fn name(&mut self, what: &str) -> Result<&'t str> {
        match *self.lexer.peek() {
            Token::Name(name) => {
                self.lexer.take()?;
                Ok(name)
            }
            _ => Err(self.lexer.expected(what)),
        }
    }

    pub(super) fn mark(&mut self, mark: char) -> Result<()> {
        match self.lexer.peek() {
            Token::Mark(found) if *found == mark => self.lexer.take().map(drop),
            _ => Err(self.lexer.expected(&format!("`{mark}`"))),
        }
    }

    pub(super) fn arrow(&mut self) -> Result<()> {
        match self.lexer.peek() {
            Token::Arrow => self.lexer.take().map(drop),
            _ => Err(self.lexer.expected("`->`")),
        }
    }

    pub(super) fn text(&mut self) -> Result<String> {
        match self.lexer.peek() {
            Token::Text(_) => match self.lexer.take()? {
                Token::Text(text) => Ok(text),
                _ => Err(self.lexer.expected("text in quotes")),
            },
            _ => Err(self.lexer.expected("text in quotes")),
        }
    }

    pub(super) fn optional_text(&mut self) -> Result<Option<String>> {
        match self.lexer.peek() {
            Token::Name("absent") => self.word(None),
            Token::Text(_) => self.text().map(Some),
            _ => Err(self.lexer.expected("text in quotes or `absent`")),
        }
    }

    pub(super) fn integer(&mut self) -> Result<i128> {
        match *self.lexer.peek() {
            Token::Int(number) => self.word(number),
            _ => Err(self.lexer.expected("a number")),
        }
    }

    /// A number of any kind that fits.
    pub(super) fn number<T: TryFrom<i128>>(&mut self) -> Result<T> {
        let place = self.lexer.place();
        let number = self.integer()?;
        self.fits(place, number)
    }

    /// A number read at a place, if it fits.
    pub(super) fn fits<T: TryFrom<i128>>(&self, place: usize, number: i128) -> Result<T> {
        let bits = 8 * size_of::<T>();
        T::try_from(number).map_err(|_| self.lexer.error_at(place, format!("{number} does not fit its {bits} bits")))
    }

    /// `%N`.
    pub(super) fn value<T: TryFrom<i128>>(&mut self) -> Result<T> {
        let place = self.lexer.place();
        match *self.lexer.peek() {
            Token::Value(number) => {
                self.lexer.take()?;
                self.fits(place, number)
            }
            _ => Err(self.lexer.expected("a value such as `%3`")),
        }
    }

    /// `#N`.
    pub(super) fn hash<T: TryFrom<i128>>(&mut self) -> Result<T> {
        let place = self.lexer.place();
        match *self.lexer.peek() {
            Token::Hash(digits) => {
                let number = digits.parse().map_err(|_| self.lexer.expected("`#` and a number"))?;
                self.lexer.take()?;
                self.fits(place, number)
            }
            _ => Err(self.lexer.expected("`#` and a number")),
        }
    }

    /// A known name, or `#` and a number.
    pub(super) fn named(&mut self, known: impl Fn(&str) -> Option<i8>) -> Result<i8> {
        match *self.lexer.peek() {
            Token::Name(name) => {
                let number = known(name).ok_or_else(|| self.lexer.expected("a known name, or `#` and a number"))?;
                self.word(number)
            }
            _ => self.hash(),
        }
    }

    pub(super) fn boolean(&mut self) -> Result<bool> {
        match self.lexer.peek() {
            Token::Name("true") => self.word(true),
            Token::Name("false") => self.word(false),
            _ => Err(self.lexer.expected("`true` or `false`")),
        }
    }

    /// Items between brackets, with commas.
    pub(super) fn list<T>(&mut self, one: impl Fn(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        self.mark('[')?;
        self.items(']', one)
    }

    fn items<T>(&mut self, close: char, one: impl Fn(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let mut items = Vec::new();
        while *self.lexer.peek() != Token::Mark(close) {
            items.push(one(self)?);
            match self.lexer.peek() {
                Token::Mark(',') => drop(self.lexer.take()?),
                Token::Mark(found) if *found == close => {}
                _ => return Err(self.lexer.expected(&format!("`,` or `{close}`"))),
            }
        }
        self.lexer.take()?;
        Ok(items)
    }

    /// The same, if there is a bracket.
    pub(super) fn maybe_list<T: Scalar>(
        &mut self,
        one: impl Fn(&mut Self) -> Result<T>,
    ) -> Result<Option<Scalars<'static, T>>> {
        match self.lexer.peek() {
            Token::Mark('[') => Ok(Some(self.list(one)?.into())),
            _ => Ok(None),
        }
    }

    /// Values between parentheses, if there are any.
    pub(super) fn arguments(&mut self) -> Result<Option<Scalars<'static, i32>>> {
        if *self.lexer.peek() != Token::Mark('(') {
            return Ok(None);
        }
        self.lexer.take()?;
        Ok(Some(self.items(')', Parser::value)?.into()))
    }
}

/// Parts that may be there once.
#[derive(Default)]
pub(super) struct Seen(Vec<String>);

impl Seen {
    pub(super) fn once(&mut self, parser: &Parser<'_, '_>, place: usize, word: &str) -> Result<()> {
        if self.0.iter().any(|seen| seen == word) {
            return Err(parser.lexer.error_at(place, format!("`{word}` is there twice")));
        }
        self.0.push(word.to_owned());
        Ok(())
    }
}
