//! Words that all parts of a text are made of: quoted text, bytes, lists, references, indented lines.
//!
//! Invariant: whatever is spelled here, the parser reads back as it was, and it takes one line.

use std::fmt::{Display, Write as _};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use edgepack_format::notation::ValueName;
use edgepack_format::row::{Scalar, Scalars};

/// One line, indented.
pub(super) fn line(out: &mut String, depth: usize, text: &str) {
    out.extend(std::iter::repeat_n("  ", depth));
    out.push_str(text);
    out.push('\n');
}

/// Bytes in the text.
pub(super) fn base64(bytes: &[u8]) -> String {
    format!("base64 \"{}\"", BASE64.encode(bytes))
}

/// Text in quotes: one line, whatever is in it.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() || ('\u{202a}'..='\u{202e}').contains(&c) || ('\u{2066}'..='\u{2069}').contains(&c) => {
                // Control characters, and those that would change the direction of what follows.
                let _ = write!(out, "\\u{{{:x}}}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Text in quotes, or that there is none.
pub(super) fn optional(text: Option<&str>) -> String {
    text.map_or_else(|| "absent".to_owned(), quoted)
}

/// Numbers in brackets.
pub(super) fn numbers<T: Scalar + ToString>(list: &Scalars<'_, T>) -> String {
    let items: Vec<String> = list.iter().map(|item| item.to_string()).collect();
    format!("[{}]", items.join(", "))
}

/// The name of a number, or `#` and the number.
pub(super) fn named(name: Option<&str>, number: i8) -> String {
    name.map_or_else(|| format!("#{number}"), str::to_owned)
}

/// Values in brackets.
pub(super) fn references<T: Scalar + Display>(list: &Scalars<'_, T>) -> String {
    let items: Vec<String> = list.iter().map(|item| ValueName(item).to_string()).collect();
    format!("[{}]", items.join(", "))
}
