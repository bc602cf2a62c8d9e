//! Words worth trying, by format: what libFuzzer takes as `-dict=FILE`, and our own [mutator](crate::mutate::bytes), too.

/// Words of export-IR archives: names of records, keys and tags of documents, operators.
pub const ARCHIVE: &str = include_str!("../dict/archive.dict");
/// Words of bundled programs.
pub const BUNDLE: &str = include_str!("../dict/bundle.dict");
/// Words of chat templates.
pub const CHAT_TEMPLATE: &str = include_str!("../dict/chat_template.dict");
/// Words of Edge TPU packages and the TensorFlow Lite models around them.
pub const COMPILED: &str = include_str!("../dict/compiled.dict");
/// Words of data files.
pub const DATA: &str = include_str!("../dict/data.dict");
/// Words of tables of element types, and of formulas over sizes.
pub const ELEMENT_TYPES: &str = include_str!("../dict/element_types.dict");
/// Numbers and heads of vtables of any flatbuffer.
pub const FLATBUFFERS: &str = include_str!("../dict/flatbuffers.dict");
/// Words of library packages (Model Library Format): graphs and metadata.
pub const LIBRARY: &str = include_str!("../dict/library.dict");
/// Words of operator schemas.
pub const OPERATOR_SCHEMA: &str = include_str!("../dict/operator_schema.dict");
/// Words of payloads of XNNPACK.
pub const PAYLOAD: &str = include_str!("../dict/payload.dict");
/// Words of pickles.
pub const PICKLE: &str = include_str!("../dict/pickle.dict");
/// Words of programs: identifiers, names of operators, overloads and backends.
pub const PROGRAM: &str = include_str!("../dict/program.dict");
/// Words of `tokenizer.json`.
pub const TOKENIZER: &str = include_str!("../dict/tokenizer.dict");
/// Words of traces.
pub const TRACE: &str = include_str!("../dict/trace.dict");

/// Every dictionary, with the name of its file.
pub const ALL: &[(&str, &str)] = &[
    ("archive", ARCHIVE),
    ("bundle", BUNDLE),
    ("chat_template", CHAT_TEMPLATE),
    ("compiled", COMPILED),
    ("data", DATA),
    ("element_types", ELEMENT_TYPES),
    ("flatbuffers", FLATBUFFERS),
    ("library", LIBRARY),
    ("operator_schema", OPERATOR_SCHEMA),
    ("payload", PAYLOAD),
    ("pickle", PICKLE),
    ("program", PROGRAM),
    ("tokenizer", TOKENIZER),
    ("trace", TRACE),
];

/// Writes words as [`read`] and libFuzzer read them, a line each.
pub fn write<W: AsRef<[u8]>>(words: impl IntoIterator<Item = W>) -> String {
    let mut out = String::new();
    for word in words {
        out.push('"');
        for &byte in word.as_ref() {
            match byte {
                b'"' | b'\\' => out.extend(['\\', char::from(byte)]),
                b' '..=b'~' => out.push(char::from(byte)),
                _ => out.push_str(&format!("\\x{byte:02x}")),
            }
        }
        out.push_str("\"\n");
    }
    out
}

/// Reads a dictionary as libFuzzer has them: `"text"` or `name="text"` per line, `\xNN`, `\\` and `\"` inside.
pub fn read(text: &str) -> Vec<Vec<u8>> {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    lines.filter_map(|line| Some(unescape(line.split_once('"')?.1.rsplit_once('"')?.0))).collect()
}

fn unescape(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        let hex = rest.strip_prefix(b"x").and_then(|rest| std::str::from_utf8(rest.get(..2)?).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                rest = &rest[3..];
            }
            None => {
                out.extend(rest.first());
                rest = rest.get(1..).unwrap_or_default();
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dictionaries_are_read() {
        assert_eq!(read("# no\nmagic=\"eh\\x30\\\\\\\"\"\n\n\"ET12\"\n"), [b"eh0\\\"".to_vec(), b"ET12".to_vec()]);
        for (name, text) in ALL {
            let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
            assert_eq!(read(text).len(), lines.count(), "{name}");
            assert!(!read(text).is_empty(), "{name} has no words");
        }
    }

    #[test]
    fn words_are_read_as_they_were_written() {
        let every_byte: Vec<u8> = (0..=255).collect();
        let words = [every_byte.as_slice(), b"eh00", b"a \"quoted\" \\word\\", b"#no comment"];
        assert_eq!(read(&write(words)), words);
    }
}
