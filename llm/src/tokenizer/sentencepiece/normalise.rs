//! Text as pieces see it: rules applied, spaces removed, marked and put in front.

use std::ops::Range;

use super::model::Model;
use super::symbols::{Symbols, meets};
use crate::tokenizer::Error;

/// Mark that stands for a space.
pub(super) const SPACE: &str = "\u{2581}";

/// Normalised text, and the ranges of it that come from text in which markers are not recognised.
#[derive(Default, Debug)]
pub(super) struct Normalised {
    pub text: String,
    pub guarded: Vec<Range<usize>>,
}

impl Normalised {
    fn push(&mut self, text: &str, guarded: bool) {
        let start = self.text.len();
        self.text.push_str(text);
        if guarded && !text.is_empty() {
            match self.guarded.last_mut() {
                Some(last) if last.end == start => last.end = self.text.len(),
                _ => self.guarded.push(start..self.text.len()),
            }
        }
    }
}

/// Text of one replacement, and the bytes of the input that it is for.
fn prefix<'t>(
    model: &'t Model,
    symbols: &Symbols,
    text: &'t str,
    at: usize,
    guarded: &[Range<usize>],
) -> Result<(std::borrow::Cow<'t, str>, usize), Error> {
    let rest = &text[at..];
    if let Some(length) = symbols.longest(rest, at, guarded) {
        return Ok((rest[..length].into(), length));
    }
    if let Some(charsmap) = &model.charsmap
        && let Some((length, replacement)) = charsmap.longest(rest.as_bytes())
    {
        if !rest.is_char_boundary(length) {
            let message = "a rule ends within a character";
            return Err(Error::malformed("normalizer_spec.precompiled_charsmap", message));
        }
        return Ok((replacement.into(), length));
    }
    let length = rest.chars().next().map_or(0, char::len_utf8);
    Ok((rest[..length].into(), length))
}

/// Normalises a text; `guarded` are its ranges in which markers are not recognised.
pub(super) fn normalise(
    model: &Model,
    symbols: &Symbols,
    text: &str,
    guarded: &[Range<usize>],
) -> Result<Normalised, Error> {
    let space = if model.escape_whitespaces { SPACE } else { " " };
    let mut out = Normalised::default();
    let mut at = 0;
    if model.remove_extra_whitespaces {
        while at < text.len() {
            let (replaced, length) = prefix(model, symbols, text, at, guarded)?;
            if replaced != " " {
                break;
            }
            at += length;
        }
    }
    if at == text.len() {
        return Ok(out);
    }
    if model.dummy_prefix && !model.whitespace_as_suffix {
        out.push(space, false);
    }
    let mut after_space = model.remove_extra_whitespaces;
    while at < text.len() {
        let (replaced, length) = prefix(model, symbols, text, at, guarded)?;
        let replaced = if after_space { replaced.trim_start_matches(' ') } else { &replaced };
        if !replaced.is_empty() {
            let is_guarded = meets(guarded, &(at..at + length));
            if model.escape_whitespaces {
                out.push(&replaced.replace(' ', SPACE), is_guarded);
            } else {
                out.push(replaced, is_guarded);
            }
            after_space = replaced.ends_with(' ');
        }
        after_space &= model.remove_extra_whitespaces;
        at += length;
    }
    if model.remove_extra_whitespaces {
        let end = out.text.trim_end_matches(space).len();
        out.text.truncate(end);
    }
    if model.dummy_prefix && model.whitespace_as_suffix {
        out.push(space, false);
    }
    Ok(out)
}
