//! Schemas of the operators that programs may hold, cut out of the table while the crate is compiled: a sixth of its bytes,
//! and all of it that firmware carries.
//!
//! Invariant: the same schemas in the same order as the table's lines with the fact `program`.

use super::table::{starts_with, until};

const TABLE: &str = include_str!("operators.txt");

#[allow(long_running_const_eval)]
const LEN: usize = cut(&mut []);

// Used once, by reference; a constant that refers to a static is an internal error of some compilers.
#[allow(long_running_const_eval, clippy::large_const_arrays)]
const BYTES: [u8; LEN] = {
    let mut bytes = [0; LEN];
    cut(&mut bytes);
    bytes
};

/// A schema a line.
pub(super) const SCHEMAS: &str = match core::str::from_utf8(&BYTES) {
    Ok(text) => text,
    Err(_) => "",
};

/// Writes the schemas to `out`, as far as it has room, and returns how many bytes they take.
const fn cut(mut out: &mut [u8]) -> usize {
    let (mut text, mut len) = (TABLE, 0usize);
    while !text.is_empty() {
        let (line, rest) = until(text, b'\n');
        let (schema, facts) = until(line, b';');
        if starts_with(facts.as_bytes(), b"; program") {
            let mut bytes = schema.as_bytes();
            while let Some((byte, next)) = bytes.split_first() {
                out = put(out, *byte);
                bytes = next;
            }
            out = put(out, b'\n');
            len = len.saturating_add(schema.len()).saturating_add(1);
        }
        text = match rest.split_at_checked(1) {
            Some((_, next)) => next,
            None => rest,
        };
    }
    len
}

/// The room after a byte, if there is any.
const fn put(out: &mut [u8], byte: u8) -> &mut [u8] {
    match out {
        [place, room @ ..] => {
            *place = byte;
            room
        }
        [] => &mut [],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_are_those_of_the_table() {
        let lines = TABLE.lines().filter_map(|line| line.split_once("; program"));
        assert!(SCHEMAS.lines().eq(lines.map(|(schema, _)| schema)));
        assert!(SCHEMAS.ends_with('\n') && SCHEMAS.len() < TABLE.len() / 5);
    }
}
