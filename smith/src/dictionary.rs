//! Words worth trying, by format: what libFuzzer takes as `-dict=FILE`, and our own [mutator](crate::mutate::bytes), too.

/// Identifiers, tags and numbers of flatbuffer files.
pub const FLATBUFFERS: &str = include_str!("../dict/flatbuffers.dict");
/// Words of library packages (Model Library Format): graphs and metadata.
pub const LIBRARY: &str = include_str!("../dict/library.dict");
/// Words of operator schemas.
pub const OPERATOR_SCHEMA: &str = include_str!("../dict/operator_schema.dict");
/// Words of pickles.
pub const PICKLE: &str = include_str!("../dict/pickle.dict");

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
        for text in [FLATBUFFERS, LIBRARY, OPERATOR_SCHEMA, PICKLE] {
            let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
            assert_eq!(read(text).len(), lines.count());
        }
    }
}
