//! Reads a schema from text.
//!
//! Invariant: the cursor only moves forward over whole characters; every function either consumes text or ends the parse.

use alloc::vec::Vec;

use super::literal::Literal;
use super::schema::{Argument, ArgumentKind, List, Schema};

/// Reason a text is not a schema, and the place of the fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{kind} at byte {position} of the operator schema")]
pub struct SchemaError {
    /// Part that was expected.
    pub kind: SchemaErrorKind,
    /// Bytes before the place.
    pub position: usize,
}

/// Part that was expected.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaErrorKind {
    /// Namespace and name, with `::` between them.
    #[error("expected `namespace::name`")]
    Name,
    /// Overload after the dot.
    #[error("expected an overload name")]
    Overload,
    /// This piece of text.
    #[error("expected `{0}`")]
    Text(&'static str),
    /// Type of an argument or result, or an alias set between parentheses.
    #[error("expected a type")]
    Type,
    /// A list of lists, or a doubled `?` or alias set.
    #[error("unsupported type")]
    UnsupportedType,
    /// Digits or nothing, and the closing bracket.
    #[error("expected a list length")]
    ListLength,
    /// Name behind the type of an argument.
    #[error("expected an argument name")]
    ArgumentName,
    /// Literal behind the `=` of an argument.
    #[error("expected a default value")]
    Default,
    /// End of the text behind the returns.
    #[error("unexpected text after the schema")]
    End,
}

type Result<T> = core::result::Result<T, SchemaError>;

impl<'a> Schema<'a> {
    /// Reads a schema such as `aten::relu.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)`.
    pub fn parse(text: &'a str) -> Result<Schema<'a>> {
        let mut cursor = Cursor::new(text);
        cursor.skip_space();
        let start = cursor.rest;
        let name = cursor.qualified_name()?;
        let overload = if cursor.eat(".") { cursor.word(SchemaErrorKind::Overload)? } else { "" };
        let full_name = cursor.since(start);

        // A comma more or less between all values, and what a single argument and result need.
        let mut values = Vec::with_capacity(text.bytes().filter(|byte| *byte == b',').count().saturating_add(2));
        cursor.expect("(")?;
        cursor.arguments(&mut values)?;
        let arguments = values.len();
        cursor.expect("->")?;
        cursor.returns(&mut values)?;
        cursor.skip_space();
        if !cursor.rest.is_empty() {
            return Err(cursor.error(SchemaErrorKind::End));
        }
        Ok(Schema { full_name, name, overload, values, arguments })
    }
}

/// A place in a text.
#[derive(Clone, Debug)]
pub(super) struct Cursor<'a> {
    rest: &'a str,
    len: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Cursor { rest: text, len: text.len() }
    }

    pub(super) fn skip_space(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\n', '\r']);
    }

    /// Consumes `text` if it is next.
    pub(super) fn eat(&mut self, text: &str) -> bool {
        match self.rest.strip_prefix(text) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn error(&self, kind: SchemaErrorKind) -> SchemaError {
        SchemaError { kind, position: self.len.saturating_sub(self.rest.len()) }
    }

    /// Consumes `text`, and space before it.
    fn expect(&mut self, text: &'static str) -> Result<()> {
        self.skip_space();
        if self.eat(text) { Ok(()) } else { Err(self.error(SchemaErrorKind::Text(text))) }
    }

    /// Returns the text consumed since `start`.
    fn since(&self, start: &'a str) -> &'a str {
        start.get(..start.len().saturating_sub(self.rest.len())).unwrap_or_default()
    }

    /// Consumes as long as `accepted`.
    fn take_while(&mut self, accepted: impl Fn(char) -> bool) -> &'a str {
        let start = self.rest;
        self.rest = start.trim_start_matches(accepted);
        self.since(start)
    }

    /// A non-empty run of letters, digits and underscores.
    fn word(&mut self, expected: SchemaErrorKind) -> Result<&'a str> {
        match self.take_while(is_word) {
            "" => Err(self.error(expected)),
            word => Ok(word),
        }
    }

    fn qualified_name(&mut self) -> Result<&'a str> {
        let start = self.rest;
        self.word(SchemaErrorKind::Name)?;
        if !self.eat("::") {
            return Err(self.error(SchemaErrorKind::Name));
        }
        self.word(SchemaErrorKind::Name)?;
        Ok(self.since(start))
    }

    /// The arguments and the closing parenthesis.
    fn arguments(&mut self, values: &mut Vec<Argument<'a>>) -> Result<()> {
        let mut kw_only = false;
        self.skip_space();
        if self.eat(")") {
            return Ok(());
        }
        loop {
            self.skip_space();
            if !kw_only && self.eat("*") {
                kw_only = true;
                self.expect(",")?;
                continue;
            }
            let mut arg = self.typed()?;
            self.skip_space();
            arg.name = self.word(SchemaErrorKind::ArgumentName)?;
            arg.kw_only = kw_only;
            if self.eat("=") {
                arg.default = Some(self.literal()?);
            }
            values.push(arg);
            self.skip_space();
            if self.eat(")") {
                return Ok(());
            }
            self.expect(",")?;
        }
    }

    fn returns(&mut self, values: &mut Vec<Argument<'a>>) -> Result<()> {
        self.skip_space();
        if !self.eat("(") {
            values.push(self.result()?);
            return Ok(());
        }
        self.skip_space();
        if self.eat(")") {
            return Ok(());
        }
        loop {
            values.push(self.result()?);
            self.skip_space();
            if self.eat(")") {
                return Ok(());
            }
            self.expect(",")?;
        }
    }

    /// A type and, perhaps, a name.
    fn result(&mut self) -> Result<Argument<'a>> {
        self.skip_space();
        let mut result = self.typed()?;
        self.skip_space();
        result.name = self.take_while(is_word);
        Ok(result)
    }

    /// A type with its alias set, list brackets and question marks; the rest of the argument is still empty.
    fn typed(&mut self) -> Result<Argument<'a>> {
        let kind = match self.take_while(|c| is_word(c) || c == '.') {
            "" => return Err(self.error(SchemaErrorKind::Type)),
            "Tensor" => ArgumentKind::Tensor,
            "Scalar" => ArgumentKind::Scalar,
            "int" => ArgumentKind::Int,
            "SymInt" => ArgumentKind::SymInt,
            "float" => ArgumentKind::Float,
            "bool" => ArgumentKind::Bool,
            "str" => ArgumentKind::Str,
            "ScalarType" => ArgumentKind::ScalarType,
            "MemoryFormat" => ArgumentKind::MemoryFormat,
            "Layout" => ArgumentKind::Layout,
            "Device" => ArgumentKind::Device,
            "Generator" => ArgumentKind::Generator,
            other => ArgumentKind::Other(other),
        };
        let mut arg = Argument {
            name: "",
            kind,
            optional: false,
            list: None,
            default: None,
            alias: "",
            mutated: false,
            kw_only: false,
        };
        loop {
            let before = self.clone();
            let unsupported = if self.eat("?") {
                core::mem::replace(&mut arg.optional, true)
            } else if self.eat("[") {
                // A question mark so far was about the items; one that follows is about the list.
                let list = List { len: self.list_length()?, optional_items: core::mem::take(&mut arg.optional) };
                arg.list.replace(list).is_some()
            } else if self.eat("(") {
                let twice = !arg.alias.is_empty();
                (arg.alias, arg.mutated) = self.alias()?;
                twice
            } else {
                return Ok(arg);
            };
            if unsupported {
                return Err(before.error(SchemaErrorKind::UnsupportedType));
            }
        }
    }

    /// The length, if any, and the closing bracket.
    fn list_length(&mut self) -> Result<Option<u32>> {
        let at = self.clone();
        let digits = self.take_while(|c| c.is_ascii_digit());
        if !self.eat("]") {
            return Err(self.error(SchemaErrorKind::ListLength));
        }
        match digits {
            "" => Ok(None),
            digits => digits.parse().map(Some).map_err(|_| at.error(SchemaErrorKind::ListLength)),
        }
    }

    /// An alias set and its closing parenthesis: `a`, `a!`, `a|b`, `a -> *`. What follows an arrow says nothing about
    /// mutation, so only what comes before it is retained.
    fn alias(&mut self) -> Result<(&'a str, bool)> {
        let set = self.take_while(|c| is_word(c) || c == '|' || c == '*');
        if set.is_empty() {
            return Err(self.error(SchemaErrorKind::Type));
        }
        let mutated = self.eat("!");
        self.skip_space();
        if self.eat("->") {
            self.take_while(|c| is_word(c) || matches!(c, '|' | '*' | '!' | ' '));
        }
        self.expect(")")?;
        Ok((set, mutated))
    }

    fn literal(&mut self) -> Result<Literal<'a>> {
        if !self.eat("[") {
            return self.item();
        }
        let start = self.rest;
        loop {
            self.skip_space();
            let text = self.since(start);
            if self.eat("]") {
                return Ok(Literal::List(text));
            }
            self.item()?;
            self.skip_space();
            if !self.rest.starts_with(']') {
                self.expect(",")?;
            }
        }
    }

    /// A default value that is not a list.
    pub(super) fn item(&mut self) -> Result<Literal<'a>> {
        for quote in ["\"", "'"] {
            if let Some(rest) = self.rest.strip_prefix(quote) {
                let Some((text, rest)) = rest.split_once(quote) else {
                    return Err(self.error(SchemaErrorKind::Default));
                };
                self.rest = rest;
                return Ok(Literal::Str(text));
            }
        }
        let at = self.clone();
        let text = self.take_while(|c| is_word(c) || matches!(c, '.' | '+' | '-'));
        Ok(match text {
            "None" => Literal::None,
            "True" => Literal::Bool(true),
            "False" => Literal::Bool(false),
            "inf" => Literal::Float(f64::INFINITY),
            "-inf" => Literal::Float(f64::NEG_INFINITY),
            "nan" => Literal::Float(f64::NAN),
            number if number.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.')) => {
                match (number.parse(), number.parse()) {
                    (Ok(int), _) => Literal::Int(int),
                    (_, Ok(float)) => Literal::Float(float),
                    _ => return Err(at.error(SchemaErrorKind::Default)),
                }
            }
            name if !name.is_empty() && name.chars().all(is_word) => Literal::Name(name),
            _ => return Err(at.error(SchemaErrorKind::Default)),
        })
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests;
