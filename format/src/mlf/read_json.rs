//! The reader of [`Json`]: strict, charged to a budget, and at most [`MAX_DEPTH`] deep.

use alloc::string::String;
use alloc::vec::Vec;

use super::json::{Json, JsonError, JsonErrorKind, MAX_DEPTH, Value};
use crate::limits::Budget;
use crate::room;

impl Json {
    /// Reads a text that is one value.
    pub fn parse(text: &[u8], budget: &mut Budget) -> Result<Json, JsonError> {
        let text = core::str::from_utf8(text)
            .map_err(|error| JsonError { at: error.valid_up_to(), kind: JsonErrorKind::Text })?;
        read(text, budget)
    }
}

fn read(source: &str, budget: &mut Budget) -> Result<Json, JsonError> {
    let mut reader = Reader { text: source.as_bytes(), source, at: 0, budget };
    let value = reader.value(0)?;
    reader.space();
    match reader.peek() {
        None => Ok(value),
        Some(_) => Err(reader.error(JsonErrorKind::Trailing)),
    }
}

struct Reader<'t> {
    text: &'t [u8],
    source: &'t str,
    at: usize,
    budget: &'t mut Budget,
}

impl Reader<'_> {
    fn error(&self, kind: JsonErrorKind) -> JsonError {
        JsonError { at: self.at, kind }
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn step(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at = self.at.saturating_add(1);
        Some(byte)
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at = self.at.saturating_add(1);
        }
    }

    fn unexpected(&self) -> JsonError {
        self.error(if self.peek().is_none() { JsonErrorKind::End } else { JsonErrorKind::Unexpected })
    }

    fn charge(&mut self, bytes: usize) -> Result<(), JsonError> {
        self.budget.charge_bytes(bytes, 0).map_err(|_| self.error(JsonErrorKind::Budget))
    }

    fn value(&mut self, depth: usize) -> Result<Json, JsonError> {
        self.space();
        if depth > MAX_DEPTH {
            return Err(self.error(JsonErrorKind::Depth));
        }
        self.charge(0)?;
        let at = self.at;
        let inner = depth.saturating_add(1);
        let value = match self.peek() {
            Some(b'{') => self.object(inner)?,
            Some(b'[') => self.list(inner)?,
            Some(b'"') => Value::Text(self.string()?),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(b't') => self.word("true", Value::Bool(true))?,
            Some(b'f') => self.word("false", Value::Bool(false))?,
            Some(b'n') => self.word("null", Value::Null)?,
            _ => return Err(self.unexpected()),
        };
        Ok(Json { at, value })
    }

    fn word(&mut self, word: &str, value: Value) -> Result<Value, JsonError> {
        for want in word.bytes() {
            if self.peek() != Some(want) {
                return Err(self.unexpected());
            }
            self.step();
        }
        Ok(value)
    }

    /// Behind an element: whether another one follows.
    fn more(&mut self, close: u8) -> Result<bool, JsonError> {
        self.space();
        match self.peek() {
            Some(b',') => {
                self.step();
                Ok(true)
            }
            Some(byte) if byte == close => {
                self.step();
                Ok(false)
            }
            _ => Err(self.unexpected()),
        }
    }

    /// Behind the opening bracket: whether there is nothing in it.
    fn closes(&mut self, close: u8) -> bool {
        self.step();
        self.space();
        let closes = self.peek() == Some(close);
        if closes {
            self.step();
        }
        closes
    }

    fn list(&mut self, depth: usize) -> Result<Value, JsonError> {
        let mut list = Vec::new();
        if self.closes(b']') {
            return Ok(Value::List(list));
        }
        loop {
            let value = self.value(depth)?;
            room::push(&mut list, value).map_err(|_| self.error(JsonErrorKind::Memory))?;
            if !self.more(b']')? {
                return Ok(Value::List(list));
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<Value, JsonError> {
        let mut members = Vec::new();
        if self.closes(b'}') {
            return Ok(Value::Object(members));
        }
        loop {
            self.space();
            if self.peek() != Some(b'"') {
                return Err(self.unexpected());
            }
            let key = self.string()?;
            self.space();
            if self.peek() != Some(b':') {
                return Err(self.unexpected());
            }
            self.step();
            let member = (key, self.value(depth)?);
            room::push(&mut members, member).map_err(|_| self.error(JsonErrorKind::Memory))?;
            if !self.more(b'}')? {
                return Ok(Value::Object(members));
            }
        }
    }

    fn number(&mut self) -> Result<Value, JsonError> {
        let start = self.at;
        let bad = JsonError { at: start, kind: JsonErrorKind::Number };
        if self.peek() == Some(b'-') {
            self.step();
        }
        let first = self.peek();
        let digits = self.digits();
        if digits == 0 || (digits > 1 && first == Some(b'0')) {
            return Err(bad);
        }
        let mut whole = true;
        if self.peek() == Some(b'.') {
            whole = false;
            self.step();
            if self.digits() == 0 {
                return Err(bad);
            }
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            whole = false;
            self.step();
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.step();
            }
            if self.digits() == 0 {
                return Err(bad);
            }
        }
        let text = self.source.get(start..self.at).unwrap_or_default();
        self.charge(text.len())?;
        if whole && let Ok(value) = text.parse() {
            return Ok(Value::Int(value));
        }
        text.parse().map(Value::Float).map_err(|_| bad)
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.step();
        }
        self.at.saturating_sub(start)
    }

    fn string(&mut self) -> Result<String, JsonError> {
        self.step();
        let mut out = String::new();
        loop {
            let start = self.at;
            while self.peek().is_some_and(|byte| byte != b'"' && byte != b'\\' && byte >= b' ') {
                self.step();
            }
            let run = self.source.get(start..self.at).unwrap_or_default();
            self.charge(run.len())?;
            room::push_str(&mut out, run).map_err(|_| self.error(JsonErrorKind::Memory))?;
            match self.peek() {
                Some(b'"') => {
                    self.step();
                    return Ok(out);
                }
                Some(b'\\') => {
                    self.step();
                    let escaped = self.escape()?;
                    room::push_str(&mut out, escaped.encode_utf8(&mut [0; 4]))
                        .map_err(|_| self.error(JsonErrorKind::Memory))?;
                }
                Some(_) => return Err(self.error(JsonErrorKind::Escape)),
                None => return Err(self.error(JsonErrorKind::End)),
            }
        }
    }

    fn escape(&mut self) -> Result<char, JsonError> {
        let bad = self.error(JsonErrorKind::Escape);
        Ok(match self.step().ok_or(bad)? {
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let first = self.unit().ok_or(bad)?;
                // Half a pair: the other half must follow.
                let second = match first {
                    0xd800..=0xdbff if self.step() == Some(b'\\') && self.step() == Some(b'u') => self.unit(),
                    _ => None,
                };
                let units = [first, second.unwrap_or_default()];
                let len = if second.is_some() { 2 } else { 1 };
                let mut characters = char::decode_utf16(units.into_iter().take(len));
                characters.next().and_then(Result::ok).ok_or(bad)?
            }
            _ => return Err(bad),
        })
    }

    fn unit(&mut self) -> Option<u16> {
        let digits = self.source.get(self.at..self.at.checked_add(4)?)?;
        // The library's parser would take a sign.
        let value = digits.bytes().all(|digit| digit.is_ascii_hexdigit()).then_some(digits)?;
        self.at = self.at.saturating_add(4);
        u16::from_str_radix(value, 16).ok()
    }
}
