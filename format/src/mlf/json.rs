//! JSON with the position of every value: what `metadata.json` and graph files are read from and written with.
//!
//! Objects keep the order and the repetitions of their keys, so a verifier can point at them. Reading is charged to a
//! [budget](crate::limits::Budget) and nests at most [`MAX_DEPTH`] deep.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::room;

/// Nesting limit of values; files of the format nest eight deep.
pub const MAX_DEPTH: usize = 64;

/// A value and where it starts.
#[derive(Clone, Debug)]
pub struct Json {
    /// Bytes from the start of the text.
    pub at: usize,
    /// The value itself.
    pub value: Value,
}

/// Value of a JSON text.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number without a fraction that fits.
    Int(i64),
    /// Any other number.
    Float(f64),
    /// Text without quotes, escapes resolved.
    Text(String),
    /// Elements of an array, in order.
    List(Vec<Json>),
    /// An object, as written.
    Object(Vec<(String, Json)>),
}

/// Two values are equal wherever they stand.
impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl<V: Into<Value>> From<V> for Json {
    fn from(value: V) -> Self {
        Json { at: 0, value: value.into() }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value::Text(text.into())
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Value::Int(value)
    }
}

impl From<Vec<Json>> for Value {
    fn from(list: Vec<Json>) -> Self {
        Value::List(list)
    }
}

/// Numbers beyond 63 bits are no integers of these files; they are written as the next double.
impl From<u64> for Value {
    fn from(value: u64) -> Self {
        i64::try_from(value).map_or(Value::Float(value as f64), Value::Int)
    }
}

impl Json {
    /// Returns the kind of the value, for messages.
    pub fn kind(&self) -> &'static str {
        match self.value {
            Value::Null => "null",
            Value::Bool(_) => "a boolean",
            Value::Int(_) => "an integer",
            Value::Float(_) => "a number",
            Value::Text(_) => "a string",
            Value::List(_) => "a list",
            Value::Object(_) => "an object",
        }
    }

    /// Returns the members of an object in the order of the text; `None` for other kinds.
    pub fn object(&self) -> Option<&[(String, Json)]> {
        if let Value::Object(members) = &self.value { Some(members) } else { None }
    }

    /// Returns the elements of an array; `None` for other kinds.
    pub fn list(&self) -> Option<&[Json]> {
        if let Value::List(list) = &self.value { Some(list) } else { None }
    }

    /// Returns the text of a string; `None` for other kinds.
    pub fn text(&self) -> Option<&str> {
        if let Value::Text(text) = &self.value { Some(text) } else { None }
    }

    /// Returns a whole number that fits `i64`; `None` for anything else.
    pub fn int(&self) -> Option<i64> {
        if let Value::Int(value) = self.value { Some(value) } else { None }
    }

    /// An object of these members.
    pub fn of<'k>(members: impl IntoIterator<Item = (&'k str, Json)>) -> Json {
        let members = members.into_iter().map(|(key, value)| (key.into(), value)).collect();
        Json { at: 0, value: Value::Object(members) }
    }

    /// A copy, if there is memory for it.
    pub fn try_clone(&self) -> room::Result<Json> {
        let value = match &self.value {
            Value::Text(text) => Value::Text(room::text_of(text)?),
            Value::List(items) => {
                let mut list = room::with_room(items.len())?;
                for item in items {
                    list.push(item.try_clone()?);
                }
                Value::List(list)
            }
            Value::Object(members) => {
                let mut list = room::with_room(members.len())?;
                for (key, value) in members {
                    list.push((room::text_of(key)?, value.try_clone()?));
                }
                Value::Object(list)
            }
            other => other.clone(),
        };
        Ok(Json { at: self.at, value })
    }

    /// The text with one member or element per line, two spaces to a level, and only ASCII characters.
    pub fn pretty(&self) -> String {
        let mut out = String::new();
        self.write(&mut out, Some(0));
        out
    }

    /// The text on one line, with only ASCII characters.
    pub fn line(&self) -> String {
        let mut out = String::new();
        self.write(&mut out, None);
        out
    }

    fn write(&self, out: &mut String, level: Option<usize>) {
        match &self.value {
            Value::Null => out.push_str("null"),
            Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Value::Int(value) => out.push_str(&format!("{value}")),
            Value::Float(value) => out.push_str(&format!("{value:?}")),
            Value::Text(text) => quote(text, out),
            Value::List(list) => {
                let items = list.iter().map(|item| (None, item));
                nest(items, ['[', ']'], out, level);
            }
            Value::Object(members) => {
                let items = members.iter().map(|(key, item)| (Some(key.as_str()), item));
                nest(items, ['{', '}'], out, level);
            }
        }
    }
}

fn nest<'j>(
    items: impl ExactSizeIterator<Item = (Option<&'j str>, &'j Json)>,
    [open, close]: [char; 2],
    out: &mut String,
    level: Option<usize>,
) {
    out.push(open);
    let empty = items.len() == 0;
    let inner = level.map(|level| level.saturating_add(1));
    for (index, (key, item)) in items.enumerate() {
        match (index, level) {
            (0, _) => {}
            (_, Some(_)) => out.push(','),
            (_, None) => out.push_str(", "),
        }
        break_line(out, inner);
        if let Some(key) = key {
            quote(key, out);
            out.push_str(": ");
        }
        item.write(out, inner);
    }
    if !empty {
        break_line(out, level);
    }
    out.push(close);
}

fn break_line(out: &mut String, level: Option<usize>) {
    if let Some(level) = level {
        out.push('\n');
        out.extend(core::iter::repeat_n("  ", level));
    }
}

fn quote(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            ' '..='~' => out.push(c),
            _ => c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}"))),
        }
    }
    out.push('"');
}

/// Reason a text is not a value, and the place of the fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JsonError {
    /// Bytes from the start of the text.
    pub at: usize,
    /// Kind of fault.
    pub kind: JsonErrorKind,
}

/// Kind of fault in a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum JsonErrorKind {
    /// It is not UTF-8.
    Text,
    /// It ends inside a value.
    End,
    /// Something else was to stand here.
    Unexpected,
    /// A number is malformed.
    Number,
    /// A string has an escape that does not exist, half a character, or a bare control character.
    Escape,
    /// Values nest too deep.
    Depth,
    /// Something follows the value.
    Trailing,
    /// There is more of it than the limits allow.
    Budget,
    /// There is no memory for it.
    Memory,
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            JsonErrorKind::Text => f.write_str("the text is not UTF-8"),
            JsonErrorKind::End => f.write_str("the text ends inside a value"),
            JsonErrorKind::Unexpected => f.write_str("this is not JSON"),
            JsonErrorKind::Number => f.write_str("a number is malformed"),
            JsonErrorKind::Escape => f.write_str("a string has a bad escape or a control character"),
            JsonErrorKind::Depth => write!(f, "values nest more than {MAX_DEPTH} deep"),
            JsonErrorKind::Trailing => f.write_str("something follows the value"),
            JsonErrorKind::Budget => f.write_str("more values than the limits allow"),
            JsonErrorKind::Memory => f.write_str("there is no memory for its values"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Budget;
    use crate::limits::Limits;
    use alloc::string::ToString;
    use proptest::prelude::*;

    fn parse(text: &str) -> Result<Json, JsonError> {
        Json::parse(text.as_bytes(), &mut Budget::new(&Limits::hostile()))
    }

    #[test]
    fn values_know_where_they_are() {
        let json = parse(" {\"a\": [1, -2.5, \"\\u00e9\\ud83d\\ude00\"], \"a\": null}").unwrap();
        let members = json.object().unwrap();
        assert_eq!((json.at, members.len(), members[1].1.at), (1, 2, 45));
        let list = members[0].1.list().unwrap();
        assert_eq!((list[0].int(), list[1].at, list[2].text()), (Some(1), 11, Some("é😀")));
        assert_eq!(json.line(), "{\"a\": [1, -2.5, \"\\u00e9\\ud83d\\ude00\"], \"a\": null}");
    }

    #[test]
    fn what_is_no_json_is_refused_at_its_place() {
        use JsonErrorKind::*;
        let deep = "[".repeat(100);
        let cases = [
            ("", 0, End),
            ("[1", 2, End),
            ("[1 2]", 3, Unexpected),
            ("{1: 2}", 1, Unexpected),
            ("[1,]", 3, Unexpected),
            ("01", 0, Number),
            ("-", 0, Number),
            ("1.", 0, Number),
            ("\"\\ud800\"", 2, Escape),
            ("\"\\u+123\"", 2, Escape),
            ("\"\n\"", 1, Escape),
            ("1 1", 2, Trailing),
            ("nul", 3, End),
            (&deep, 65, Depth),
        ];
        for (text, at, kind) in cases {
            assert_eq!(parse(text), Err(JsonError { at, kind }), "{text}");
        }
        assert_eq!(
            Json::parse(b"\"\xff\"", &mut crate::limits::Budget::new(&Limits::hostile())),
            Err(JsonError { at: 1, kind: Text })
        );
    }

    #[test]
    fn reading_is_charged() {
        let mut limits = Limits::hostile();
        limits.visits = 10;
        let mut budget = Budget::new(&limits);
        let error = Json::parse("[0,0,0,0,0,0,0,0,0,0,0]".as_bytes(), &mut budget).unwrap_err();
        assert_eq!(error.kind, JsonErrorKind::Budget);
    }

    fn values() -> impl Strategy<Value = Json> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::Bool),
            any::<i64>().prop_map(Value::Int),
            any::<f64>().prop_filter("finite", |value| value.is_finite()).prop_map(Value::Float),
            any::<String>().prop_map(Value::Text),
        ];
        let leaf = leaf.prop_map(|value| Json { at: 0, value });
        leaf.prop_recursive(4, 40, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(|list| Json { at: 0, value: Value::List(list) }),
                prop::collection::vec((any::<String>(), inner), 0..6)
                    .prop_map(|members| Json { at: 0, value: Value::Object(members) }),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(json in values()) {
            for text in [json.line(), json.pretty()] {
                prop_assert_eq!(parse(&text).map_err(|error| error.to_string()), Ok(json.clone()));
            }
        }

        #[test]
        fn any_text_is_answered(text in "[\\[\\]{}\",:0-9eE+.a-z\\\\-]{0,60}") {
            if let Ok(json) = parse(&text) {
                prop_assert_eq!(parse(&json.pretty()).unwrap(), json);
            }
        }
    }
}
