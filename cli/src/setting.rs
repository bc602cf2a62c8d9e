//! Settings of programs as the command line writes them, and their part of a JSON document.

use std::path::Path;

use edgepack_format::pte::metadata::{METADATA_PREFIX, MetadataValue};
use serde::{Serialize, Serializer};

use crate::edit::read_text;
use crate::session::Session;
use crate::status::Failure;

/// A setting in a JSON document: a number, text, a list of numbers, or an object with bytes in base64.
pub struct Setting(pub MetadataValue);

impl Serialize for Setting {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use base64::Engine as _;
        use base64::prelude::BASE64_STANDARD;

        match &self.0 {
            MetadataValue::Int(number) => serializer.serialize_i64(*number),
            MetadataValue::Float(number) if number.is_finite() => serializer.serialize_f64(*number),
            MetadataValue::Float(number) => serializer.serialize_str(&crate::spelling::double(*number)),
            MetadataValue::Text(text) => serializer.serialize_str(text),
            MetadataValue::Ints(numbers) => numbers.serialize(serializer),
            MetadataValue::Bytes(bytes) => Base64 { base64: BASE64_STANDARD.encode(bytes) }.serialize(serializer),
            other => serializer.collect_str(other),
        }
    }
}

#[cfg(feature = "schemas")]
impl schemars::JsonSchema for Setting {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Setting".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "A setting: a number, text, a list of integers, or bytes.",
            "anyOf": [
                { "type": ["number", "string"] },
                { "type": "array", "items": { "type": "integer" } },
                generator.subschema_for::<Base64>(),
            ],
        })
    }
}

/// Bytes of a JSON document.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct Base64 {
    /// The bytes in base64.
    base64: String,
}

/// Returns the name of a setting, without `metadata.`, which is to be in front of it.
pub fn name(key: &str) -> Result<&str, Failure> {
    match key.strip_prefix(METADATA_PREFIX) {
        Some(name) if !name.is_empty() => Ok(name),
        _ => Err(Failure::usage(format!("{key:?} is no setting: those are called {METADATA_PREFIX}NAME"))),
    }
}

/// Reads `metadata.NAME=VALUE`. A value is what [`parse`] says, or `@FILE` for the text of a file.
pub fn assignment(text: &str, session: &mut Session) -> Result<(String, MetadataValue), Failure> {
    let split = text.split_once('=');
    let (key, value) = split.ok_or_else(|| Failure::usage(format!("{text:?} is not metadata.NAME=VALUE")))?;
    let name = name(key)?.to_owned();
    let value = match value.strip_prefix('@') {
        Some(path) => MetadataValue::Text(read_text(Path::new(path), "text", session)?),
        None => parse(value),
    };
    Ok((name, value))
}

/// Reads a value as people write it: a whole number, a float, `[1, 2]`, a text in double quotes with the escapes of
/// JSON; everything else is text as it is.
pub fn parse(text: &str) -> MetadataValue {
    let plain = || MetadataValue::Text(text.to_owned());
    let trimmed = text.trim();
    if let Ok(number) = trimmed.parse() {
        return MetadataValue::Int(number);
    }
    // Words such as `nan` are text; numbers begin with a digit, a sign or a point.
    let numeric = trimmed.starts_with(|first: char| first.is_ascii_digit() || "+-.".contains(first))
        && trimmed.bytes().any(|byte| byte.is_ascii_digit());
    if let (true, Ok(number)) = (numeric, trimmed.parse()) {
        return MetadataValue::Float(number);
    }
    if trimmed.starts_with('"')
        && let Ok(unquoted) = serde_json::from_str(trimmed)
    {
        return MetadataValue::Text(unquoted);
    }
    if trimmed.starts_with('[')
        && let Ok(numbers) = serde_json::from_str(trimmed)
    {
        return MetadataValue::Ints(numbers);
    }
    plain()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_written_as_people_do() {
        for (text, want) in [
            ("128000", MetadataValue::Int(128_000)),
            ("-1", MetadataValue::Int(-1)),
            ("1.5", MetadataValue::Float(1.5)),
            ("1e3", MetadataValue::Float(1000.0)),
            ("9223372036854775808", MetadataValue::Float(9_223_372_036_854_775_808.0)),
            ("[1, 2]", MetadataValue::Ints(vec![1, 2])),
            ("[]", MetadataValue::Ints(vec![])),
            ("\"7\"", "7".into()),
            ("\"a\\nb\"", "a\nb".into()),
            ("nan", "nan".into()),
            ("-inf", "-inf".into()),
            ("[1, x]", "[1, x]".into()),
            ("{% if %}", "{% if %}".into()),
            (" llama ", " llama ".into()),
            ("", "".into()),
        ] {
            assert_eq!(parse(text), want, "{text}");
        }
    }

    #[test]
    fn names_have_the_prefix() {
        assert_eq!(name("metadata.a.b").unwrap(), "a.b");
        assert!(name("a.b").is_err() && name("metadata.").is_err());
    }

    #[test]
    fn documents_have_values_of_their_type() {
        let json = |value: MetadataValue| serde_json::to_string(&Setting(value)).unwrap();
        assert_eq!(json(MetadataValue::Int(i64::MAX)), "9223372036854775807");
        assert_eq!(json(MetadataValue::Float(f64::NAN)), "\"NaN\"");
        assert_eq!(json(vec![1i64].into()), "[1]");
        assert_eq!(json(MetadataValue::Bytes(vec![0, 1])), r#"{"base64":"AAE="}"#);
    }
}
