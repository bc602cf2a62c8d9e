//! Words of a text, one at a time, with their places.

use std::fmt;

/// Error in a text, and its place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParseError {
    /// Line, from 1.
    pub line: usize,
    /// Character in the line, from 1.
    pub column: usize,
    /// Description of the expected words and of the word found.
    pub message: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.message)
    }
}

impl std::error::Error for ParseError {}

/// Smallest part of a text, without the space and comments around it.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Token<'t> {
    /// A name: `tensor`, `aten::add.out`.
    Name(&'t str),
    /// A name with a colon right behind it.
    Label(&'t str),
    /// A number without a point or exponent.
    Int(i128),
    /// A number with one.
    Float(f64),
    /// Text in quotes, unescaped.
    Text(String),
    /// `%5`: a value.
    Value(i128),
    /// `@5`: an instruction.
    At(i128),
    /// `#5`: a number in place of a name.
    Hash(&'t str),
    /// `->`.
    Arrow,
    /// Any other character.
    Mark(char),
    /// End of the text, however often it is asked for.
    End,
}

impl fmt::Display for Token<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Token::Name(name) => write!(f, "`{name}`"),
            Token::Label(name) => write!(f, "`{name}:`"),
            Token::Int(number) => write!(f, "`{number}`"),
            Token::Float(number) => write!(f, "`{number:?}`"),
            Token::Text(text) => match text.char_indices().nth(40) {
                Some((at, _)) => write!(f, "{:?}…", text.get(..at).unwrap_or_default()),
                None => write!(f, "{text:?}"),
            },
            Token::Value(number) => write!(f, "`%{number}`"),
            Token::At(number) => write!(f, "`@{number}`"),
            Token::Hash(digits) => write!(f, "`#{digits}`"),
            Token::Arrow => write!(f, "`->`"),
            Token::Mark(mark) => write!(f, "`{}`", mark.escape_debug()),
            Token::End => write!(f, "the end"),
        }
    }
}

/// Reads words with one word of foresight.
pub(super) struct Lexer<'t> {
    text: &'t str,
    /// Position of the next character.
    at: usize,
    /// The next word and where it starts.
    next: Token<'t>,
    start: usize,
}

type Result<T> = std::result::Result<T, ParseError>;

impl<'t> Lexer<'t> {
    pub(super) fn new(text: &'t str) -> Result<Self> {
        let mut lexer = Lexer { text, at: 0, next: Token::End, start: 0 };
        lexer.advance()?;
        Ok(lexer)
    }

    /// The next word, which stays next.
    pub(super) fn peek(&self) -> &Token<'t> {
        &self.next
    }

    /// Takes the next word; [`Token::End`] for good when there is none.
    pub(super) fn take(&mut self) -> Result<Token<'t>> {
        let token = std::mem::replace(&mut self.next, Token::End);
        self.advance()?;
        Ok(token)
    }

    /// Returns the position of the next word.
    pub(super) fn place(&self) -> usize {
        self.start
    }

    /// An error about the next word.
    pub(super) fn expected(&self, what: &str) -> ParseError {
        self.error_at(self.start, format!("expected {what}, found {}", self.next))
    }

    /// An error about a place.
    pub(super) fn error_at(&self, at: usize, message: String) -> ParseError {
        let before = self.text.get(..at).unwrap_or(self.text);
        let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        ParseError { line, column, message }
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// As many characters as satisfy the condition.
    fn run(&mut self, wanted: impl Fn(char) -> bool) -> &'t str {
        let rest = self.rest();
        let len = rest.find(|c| !wanted(c)).unwrap_or(rest.len());
        self.at += len;
        rest.get(..len).unwrap_or_default()
    }

    fn skip_space(&mut self) {
        loop {
            self.run(char::is_whitespace);
            if !self.rest().starts_with("//") {
                return;
            }
            self.run(|c| c != '\n');
        }
    }

    fn advance(&mut self) -> Result<()> {
        self.skip_space();
        self.start = self.at;
        let mut chars = self.rest().chars();
        let (first, second) = (chars.next(), chars.next());
        self.next = match first {
            None => Token::End,
            Some('"') => Token::Text(self.string()?),
            Some('%') => Token::Value(self.marked()?),
            Some('@') => Token::At(self.marked()?),
            Some('#') => {
                self.at += 1;
                Token::Hash(self.run(|c| c.is_ascii_alphanumeric() || c == '-'))
            }
            Some('-') if second == Some('>') => {
                self.at += 2;
                Token::Arrow
            }
            Some('-') if self.rest().starts_with("-inf") => {
                self.at += 4;
                Token::Float(f64::NEG_INFINITY)
            }
            Some(c) if c.is_ascii_digit() || (c == '-' && second.is_some_and(|c| c.is_ascii_digit())) => {
                self.number()?
            }
            Some(c) if is_name(c) => self.name(),
            Some(c) => {
                self.at += c.len_utf8();
                Token::Mark(c)
            }
        };
        Ok(())
    }

    fn name(&mut self) -> Token<'t> {
        let start = self.at;
        loop {
            self.run(|c| is_name(c) || c.is_ascii_digit() || c == '.');
            let rest = self.rest();
            match rest.strip_prefix("::").and_then(|rest| rest.chars().next()) {
                Some(c) if is_name(c) => self.at += 2,
                _ => break,
            }
        }
        let name = self.text.get(start..self.at).unwrap_or_default();
        if self.rest().starts_with(':') {
            self.at += 1;
            return Token::Label(name);
        }
        Token::Name(name)
    }

    fn digits(&mut self) -> &'t str {
        let start = self.at;
        if self.rest().starts_with('-') {
            self.at += 1;
        }
        self.run(|c| c.is_ascii_digit());
        self.text.get(start..self.at).unwrap_or_default()
    }

    fn marked(&mut self) -> Result<i128> {
        self.at += 1;
        let start = self.at;
        let digits = self.digits();
        digits.parse().map_err(|_| self.error_at(start, "expected a number".to_owned()))
    }

    fn number(&mut self) -> Result<Token<'t>> {
        let start = self.at;
        let digits = self.digits();
        let mut float = false;
        if self.rest().starts_with('.') {
            float = true;
            self.at += 1;
            self.run(|c| c.is_ascii_digit());
        }
        if self.rest().starts_with(['e', 'E']) {
            float = true;
            self.at += 1;
            if self.rest().starts_with('+') {
                self.at += 1;
            }
            self.digits();
        }
        let text = self.text.get(start..self.at).unwrap_or_default();
        let token = match float {
            true => text.parse().ok().map(Token::Float),
            false => digits.parse().ok().map(Token::Int),
        };
        token.ok_or_else(|| self.error_at(start, "this is not a number that fits".to_owned()))
    }

    fn string(&mut self) -> Result<String> {
        let start = self.at;
        self.at += 1;
        let mut out = String::new();
        loop {
            out.push_str(self.run(|c| c != '"' && c != '\\' && c != '\n'));
            let escape = self.at;
            let mut chars = self.rest().chars();
            match (chars.next(), chars.next()) {
                (Some('"'), _) => {
                    self.at += 1;
                    return Ok(out);
                }
                (Some('\\'), Some(c)) => {
                    self.at += 1 + c.len_utf8();
                    out.push(match c {
                        'n' => '\n',
                        'r' => '\r',
                        't' => '\t',
                        '0' => '\0',
                        '\\' | '"' | '\'' => c,
                        'u' => self.unicode(escape)?,
                        _ => return Err(self.error_at(escape, format!("there is no escape `\\{c}`"))),
                    });
                }
                _ => return Err(self.error_at(start, "the text has no closing quote in its line".to_owned())),
            }
        }
    }

    fn unicode(&mut self, escape: usize) -> Result<char> {
        let digits = self.rest().strip_prefix('{').and_then(|rest| rest.split_once('}')).map(|(digits, _)| digits);
        let found = digits.filter(|digits| digits.len() <= 6).and_then(|digits| {
            let c = char::from_u32(u32::from_str_radix(digits, 16).ok()?)?;
            Some((c, digits.len() + 2))
        });
        let (c, len) =
            found.ok_or_else(|| self.error_at(escape, "expected `\\u{` with the number of a character".to_owned()))?;
        self.at += len;
        Ok(c)
    }
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Result<Vec<Token<'_>>> {
        let mut lexer = Lexer::new(text)?;
        let mut words = Vec::new();
        while *lexer.peek() != Token::End {
            words.push(lexer.take()?);
        }
        Ok(words)
    }

    #[test]
    fn every_kind_of_word() {
        let text = "aten::add.out(%0, %-1) // a comment\nL7: -> @9 op#3 -5 1.5e-3 -inf \"a\\n\\\"\\u{e9}\"";
        use Token::*;
        let want = vec![
            Name("aten::add.out"),
            Mark('('),
            Value(0),
            Mark(','),
            Value(-1),
            Mark(')'),
            Label("L7"),
            Arrow,
            At(9),
            Name("op"),
            Hash("3"),
            Int(-5),
            Float(1.5e-3),
            Float(f64::NEG_INFINITY),
            Text("a\n\"é".to_owned()),
        ];
        assert_eq!(words(text).unwrap(), want);
    }

    #[test]
    fn places_are_counted_in_characters() {
        for (text, want) in [
            ("a\n  \"é", "2:3: the text has no closing quote in its line"),
            ("\"é\" \"\\q\"", "1:6: there is no escape `\\q`"),
            ("\"\\u{110000}\"", "1:2: expected `\\u{` with the number of a character"),
            ("%x", "1:2: expected a number"),
            ("999999999999999999999999999999999999999999", "1:1: this is not a number that fits"),
        ] {
            assert_eq!(words(text).unwrap_err().to_string(), want);
        }
    }
}
