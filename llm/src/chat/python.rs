//! Values as Python writes them, because templates were written for it.

use minijinja::value::ValueKind;
use minijinja::{Error, ErrorKind, Value};

/// Deepest nesting that is written.
const DEEPEST: usize = 128;

/// Writes a value as `json.dumps(value, ensure_ascii=False)` does, in lines with an indentation if one is given.
pub(super) fn json(value: &Value, indent: Option<usize>) -> Result<String, Error> {
    let mut out = String::new();
    write(value, indent, 0, &mut out)?;
    Ok(out)
}

fn write(value: &Value, indent: Option<usize>, depth: usize, out: &mut String) -> Result<(), Error> {
    if depth > DEEPEST {
        return Err(Error::new(ErrorKind::InvalidOperation, "a value is nested too deeply for JSON"));
    }
    match value.kind() {
        ValueKind::None => out.push_str("null"),
        ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
        ValueKind::Number if value.is_integer() => out.push_str(&value.to_string()),
        ValueKind::Number => out.push_str(&float(f64::try_from(value.clone())?)),
        ValueKind::String => string(value.as_str().unwrap_or_default(), out),
        ValueKind::Seq | ValueKind::Iterable => {
            let items: Vec<Value> = value.try_iter()?.collect();
            let write_item = |item: &Value, out: &mut String| write(item, indent, depth + 1, out);
            list(items.iter(), ['[', ']'], indent, depth, out, write_item)?;
        }
        ValueKind::Map => {
            let keys: Vec<Value> = value.try_iter()?.collect();
            list(keys.iter(), ['{', '}'], indent, depth, out, |key, out| {
                match key.as_str() {
                    Some(text) => string(text, out),
                    None => {
                        let mut text = String::new();
                        write(key, None, depth + 1, &mut text)?;
                        string(&text, out);
                    }
                }
                out.push_str(": ");
                write(&value.get_item(key)?, indent, depth + 1, out)
            })?;
        }
        kind => return Err(Error::new(ErrorKind::InvalidOperation, format!("{kind} is not possible in JSON"))),
    }
    Ok(())
}

fn list<'v>(
    items: impl ExactSizeIterator<Item = &'v Value>,
    [open, close]: [char; 2],
    indent: Option<usize>,
    depth: usize,
    out: &mut String,
    mut item: impl FnMut(&Value, &mut String) -> Result<(), Error>,
) -> Result<(), Error> {
    out.push(open);
    let empty = items.len() == 0;
    let line = |out: &mut String, depth: usize| {
        if let Some(indent) = indent.filter(|_| !empty) {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', indent * depth));
        }
    };
    for (index, value) in items.enumerate() {
        if index > 0 {
            out.push_str(if indent.is_some() { "," } else { ", " });
        }
        line(out, depth + 1);
        item(value, out)?;
    }
    line(out, depth);
    out.push(close);
    Ok(())
}

fn string(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            c if u32::from(c) < 0x20 => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
}

/// A number with a fraction, as Python's `repr` writes it.
fn float(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    let text = format!("{number:?}");
    let Some((digits, exponent)) = text.split_once('e') else { return text };
    let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |exponent| ('-', exponent));
    format!("{digits}e{sign}{exponent:0>2}")
}

/// Text of a value in the output: `None`, `True` and `False` as Python spells them.
pub(super) fn plain(value: &Value) -> Option<&'static str> {
    match value.kind() {
        ValueKind::None => Some("None"),
        ValueKind::Bool if value.is_true() => Some("True"),
        ValueKind::Bool => Some("False"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{float, json};

    #[test]
    fn numbers_and_texts_are_as_in_python() {
        let numbers = [1.0, 1e16, 1e-5, 0.0001, 1.5e300, -2.5].map(float);
        assert_eq!(numbers, ["1.0", "1e+16", "1e-05", "0.0001", "1.5e+300", "-2.5"]);
        let value: minijinja::Value =
            serde_json::from_str(r#"{"b": [1, "é\u0001\"<"], "a": {}, "c": [], "d": null}"#).unwrap();
        assert_eq!(json(&value, None).unwrap(), r#"{"b": [1, "é\u0001\"<"], "a": {}, "c": [], "d": null}"#);
        let lines = "{\n  \"b\": [\n    1,\n    \"é\\u0001\\\"<\"\n  ],\n  \"a\": {},\n  \"c\": [],\n  \"d\": null\n}";
        assert_eq!(json(&value, Some(2)).unwrap(), lines);
    }
}
