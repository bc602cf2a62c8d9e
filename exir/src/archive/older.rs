//! Documents of `executorch.exir.serde`, and of exporters before 2025, in the words of today.
//!
//! They say nothing as an empty list, number three element types otherwise, and write floats that are not finite as bare
//! words, which JSON does not have.

use edgepack_format::room;
use serde_json::Value;

use crate::error::Error;
use crate::json;

/// Ceiling of the nesting of such a document: higher than for any JSON that is read.
const MAX_DEPTH: usize = 200;

/// Floats that are not finite, as Python writes them, longest first.
const WORDS: [&[u8]; 3] = [b"-Infinity", b"Infinity", b"NaN"];

/// Numbers of element types that are others today.
const TYPES: [(i64, i64); 3] = [(14, 28), (15, 30), (16, 29)];

/// The major version whose numbers of element types differ.
const SERDE: i64 = 5;

/// Reads a document.
pub(crate) fn document(bytes: Vec<u8>, name: &str) -> Result<json::ExportedProgram, Error> {
    let len = bytes.len();
    let mut value: Value = serde_json::from_slice(&quoted(bytes)?).map_err(|error| Error::record(name, error))?;
    let major = value.pointer("/schema_version/major").and_then(Value::as_i64);
    renew(&mut value, major == Some(SERDE), 0);
    let dialect = value.get("dialect").and_then(Value::as_str).filter(|dialect| !dialect.is_empty()).map(str::to_owned);
    let silent = value.get("verifiers").and_then(Value::as_array).is_none_or(Vec::is_empty);
    if let (Some(dialect), true, Some(fields)) = (dialect, silent, value.as_object_mut()) {
        fields.insert("verifiers".to_owned(), Value::from(vec![dialect]));
    }
    serde_json::from_value(value).map_err(|error| Error::json(name, error, len))
}

/// The document with floats that are not finite in quotes.
pub(crate) fn quoted(bytes: Vec<u8>) -> room::Result<Vec<u8>> {
    let is_word = |rest: &[u8]| WORDS.iter().find(|word| rest.starts_with(word)).map(|word| word.len());
    let (mut inside, mut escaped) = (false, false);
    let mut found: Vec<(usize, usize)> = Vec::new();
    let mut skip = 0usize;
    for (index, byte) in bytes.iter().enumerate() {
        match (inside, byte) {
            _ if skip > 0 => skip = skip.saturating_sub(1),
            (true, _) if escaped => escaped = false,
            (true, b'\\') => escaped = true,
            (_, b'"') => inside = !inside,
            (false, b'-' | b'I' | b'N') => {
                if let Some(len) = is_word(bytes.get(index..).unwrap_or_default()) {
                    room::push(&mut found, (index, len))?;
                    skip = len.saturating_sub(1);
                }
            }
            _ => {}
        }
    }
    if found.is_empty() {
        return Ok(bytes);
    }
    let mut text = room::with_room(bytes.len().saturating_add(found.len().saturating_mul(2)))?;
    let mut from = 0usize;
    for (start, len) in found {
        let end = start.saturating_add(len);
        text.extend(bytes.get(from..start).unwrap_or_default());
        text.push(b'"');
        text.extend(bytes.get(start..end).unwrap_or_default());
        text.push(b'"');
        from = end;
    }
    text.extend(bytes.get(from..).unwrap_or_default());
    Ok(text)
}

/// The number that an element type had, if it is another one today.
pub(super) fn old_type(number: Option<i64>) -> Option<i64> {
    TYPES.iter().find(|(_, new)| number == Some(*new)).map(|(old, _)| *old)
}

fn renew(value: &mut Value, serde: bool, depth: usize) {
    if depth > MAX_DEPTH {
        return;
    }
    let deeper = depth.saturating_add(1);
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| renew(item, serde, deeper)),
        Value::Object(fields) => {
            one_result(fields);
            for (name, field) in fields {
                match (name.as_str(), &mut *field) {
                    ("as_none", Value::Array(items)) if items.is_empty() => *field = Value::Bool(true),
                    ("min_val" | "max_val", Value::String(_)) => *field = Value::Null,
                    ("dtype" | "as_scalar_type", Value::Number(number)) if serde => {
                        let known = TYPES.iter().find(|(old, _)| number.as_i64() == Some(*old));
                        if let Some((_, new)) = known {
                            *field = Value::from(*new);
                        }
                    }
                    _ => renew(field, serde, deeper),
                }
            }
        }
        _ => {}
    }
}

/// A higher-order operator that gives a tuple of one: a list here, today one tensor and a word that it is not alone.
fn one_result(fields: &mut serde_json::Map<String, Value>) {
    const HIGHER: &str = "torch.ops.higher_order.";
    let target = fields.get("target").and_then(Value::as_str).and_then(|target| target.strip_prefix(HIGHER));
    if target.is_none_or(|name| name == "executorch_call_delegate") {
        return;
    }
    let outputs = fields.get("outputs").and_then(Value::as_array).map(Vec::as_slice);
    let Some([output]) = outputs else { return };
    let Some([one]) = output.get("as_tensors").and_then(Value::as_array).map(Vec::as_slice) else { return };
    let one = serde_json::json!([{ "as_tensor": one }]);
    fields.insert("outputs".to_owned(), one);
    fields.insert("is_hop_single_tensor_return".to_owned(), Value::Bool(false));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_outside_of_texts_are_quoted() {
        for (from, to) in [
            (r#"{"a": -Infinity, "b": [NaN, Infinity]}"#, r#"{"a": "-Infinity", "b": ["NaN", "Infinity"]}"#),
            (r#"{"NaN": "Infinity \" NaN", "x": -1}"#, r#"{"NaN": "Infinity \" NaN", "x": -1}"#),
        ] {
            assert_eq!(String::from_utf8(quoted(from.as_bytes().to_vec()).unwrap()).unwrap(), to);
        }
    }

    #[test]
    fn old_words_become_new_ones() {
        let mut value: Value =
            serde_json::from_str(r#"[{"as_none": []}, {"as_scalar_type": 14}, {"dtype": 7}, {"max_val": "Infinity"}]"#)
                .unwrap();
        renew(&mut value, true, 0);
        let text = r#"[{"as_none":true},{"as_scalar_type":28},{"dtype":7},{"max_val":null}]"#;
        assert_eq!(value.to_string(), text);
    }
}
