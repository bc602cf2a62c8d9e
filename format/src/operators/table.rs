//! The one table of operators: schemas, and what is known about each besides.
//!
//! Its lines are searched as they stand, so that opening a file or starting a command costs nothing: a look-up takes as
//! many comparisons as the number of lines has bits, in constants too. Adding an operator is adding a line, whose words the
//! table explains at its beginning. Without the feature `operators` the lines are only the schemas of operators that
//! programs may hold: what a device asks for.
//!
//! Invariant: lines are sorted by full name, each name once.

use core::cmp::Ordering;

#[cfg(feature = "operators")]
const TABLE: &str = super::facts::TABLE;
#[cfg(not(feature = "operators"))]
const TABLE: &str = super::programs::SCHEMAS;

/// An operator of the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Operator {
    schema: &'static str,
    /// Text after the schema: empty, or a semicolon and words.
    pub(super) facts: &'static str,
}

impl Operator {
    const fn of_line(line: &'static str) -> Self {
        let (schema, facts) = until(line, b';');
        Operator { schema, facts }
    }

    /// The schema, as text.
    pub const fn schema(self) -> &'static str {
        self.schema
    }

    /// The part of the schema before the arguments: `aten::add.out`.
    pub const fn full_name(self) -> &'static str {
        until(self.schema, b'(').0
    }

    /// Returns whether a program may hold it: a stock kernel library has it, or exporters leave it there.
    pub const fn is_in_programs(self) -> bool {
        !cfg!(feature = "operators") || starts_with(self.facts.as_bytes(), b"; program")
    }
}

/// The operators that programs may hold, sorted by full name.
pub fn in_programs() -> impl Iterator<Item = Operator> + Clone {
    from(0).filter(|operator| operator.is_in_programs())
}

/// Returns the schema of an operator that programs may hold, by full name: `aten::add.out`.
pub fn lookup(full_name: &str) -> Option<&'static str> {
    search(&[full_name]).filter(|found| found.is_in_programs()).map(Operator::schema)
}

/// Returns the schema of an operator that programs may hold, by name and overload as programs store them: `aten::add`
/// and `out`.
pub fn lookup_overload(name: &str, overload: &str) -> Option<&'static str> {
    let dot = if overload.is_empty() { "" } else { "." };
    search(&[name, dot, overload]).filter(|found| found.is_in_programs()).map(Operator::schema)
}

/// Finds a schema as [`lookup`] does, and cuts it into the operator's full name and what follows it. Works in constants.
///
/// ```
/// use edgepack_format::operators::split_known;
///
/// const ABS: Option<(&str, &str)> = split_known("aten::abs.out");
/// assert_eq!(ABS, Some(("aten::abs.out", "(Tensor self, *, Tensor(a!) out) -> Tensor(a!)")));
/// assert_eq!(split_known("aten::abs"), None);
/// ```
pub const fn split_known(full_name: &str) -> Option<(&'static str, &'static str)> {
    match search(&[full_name]) {
        Some(found) if found.is_in_programs() => Some(until(found.schema, b'(')),
        _ => None,
    }
}

/// Returns the position of an argument in a schema, counted from 0. Works in constants.
///
/// ```
/// use edgepack_format::operators::position;
///
/// const SCHEMA: &str = "(Tensor self, int[2] size=[1, 2], *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)";
/// const ALPHA: Option<usize> = position(SCHEMA, "alpha");
/// assert_eq!((ALPHA, position(SCHEMA, "out"), position(SCHEMA, "beta")), (Some(2), Some(3), None));
/// ```
pub const fn position(schema: &str, argument: &str) -> Option<usize> {
    let (mut rest, mut depth, mut index) = (schema.as_bytes(), 0usize, 0usize);
    while let Some((byte, next)) = rest.split_first() {
        match *byte {
            b'(' | b'[' => depth = depth.saturating_add(1),
            b')' | b']' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return None;
                }
            }
            b',' if depth == 1 => index = index.saturating_add(1),
            b'*' if depth == 1 => index = index.saturating_sub(1),
            b' ' if depth == 1 && starts_with(next, argument.as_bytes()) => {
                if let Some((_, [b',' | b')' | b'=', ..])) = next.split_at_checked(argument.len()) {
                    return Some(index);
                }
            }
            _ => {}
        }
        rest = next;
    }
    None
}

/// The operators from this place of the table on.
pub(super) fn from(place: usize) -> impl Iterator<Item = Operator> + Clone {
    TABLE.get(place..).unwrap_or_default().lines().filter(|line| !line.starts_with('#')).map(Operator::of_line)
}

/// Finds the operator whose full name these pieces make together.
pub(super) const fn search(pieces: &[&str]) -> Option<Operator> {
    let (line, _) = until(split(TABLE, lower_bound(pieces)).1, b'\n');
    match compare(line, pieces) {
        Ordering::Equal => Some(Operator::of_line(line)),
        _ => None,
    }
}

/// The place of the first line whose full name is not less than these pieces together.
pub(super) const fn lower_bound(pieces: &[&str]) -> usize {
    let (mut low, mut high) = (0usize, TABLE.len());
    // Both are places where lines begin; a line from the middle is at or behind `low`, and before `high`.
    while low < high {
        let start = line_start(split(TABLE, low.midpoint(high)).0);
        let (line, _) = until(split(TABLE, start).1, b'\n');
        match compare(line, pieces) {
            Ordering::Less => low = start.saturating_add(line.len()).saturating_add(1),
            _ => high = start,
        }
    }
    low
}

/// Compares the full name on a line with these pieces together. A line without arguments is none of an operator, and never
/// equal.
const fn compare(line: &str, mut pieces: &[&str]) -> Ordering {
    let mut known = line.as_bytes();
    while let Some((piece, others)) = pieces.split_first() {
        let mut wanted = piece.as_bytes();
        while let Some((byte, next)) = wanted.split_first() {
            match known {
                [] | [b'(', ..] => return Ordering::Less,
                [first, ..] if *first < *byte => return Ordering::Less,
                [first, ..] if *first > *byte => return Ordering::Greater,
                [_, rest @ ..] => known = rest,
            }
            wanted = next;
        }
        pieces = others;
    }
    match known {
        [b'(', ..] => Ordering::Equal,
        _ => Ordering::Greater,
    }
}

/// The place where the line begins that this text breaks off in.
const fn line_start(text: &str) -> usize {
    let mut head = text.as_bytes();
    while let Some((byte, before)) = head.split_last() {
        if *byte == b'\n' {
            break;
        }
        head = before;
    }
    head.len()
}

/// The text before this ASCII character, and from it on.
pub(super) const fn until(text: &'static str, end: u8) -> (&'static str, &'static str) {
    let mut rest = text.as_bytes();
    while let Some((byte, next)) = rest.split_first() {
        if *byte == end {
            break;
        }
        rest = next;
    }
    split(text, text.len().saturating_sub(rest.len()))
}

/// The table is ASCII, so that every place in it is one between characters.
const fn split(text: &'static str, place: usize) -> (&'static str, &'static str) {
    match text.split_at_checked(place) {
        Some(parts) => parts,
        None => (text, ""),
    }
}

pub(super) const fn starts_with(mut bytes: &[u8], mut start: &[u8]) -> bool {
    while let Some((wanted, others)) = start.split_first() {
        match bytes.split_first() {
            Some((byte, rest)) if *byte == *wanted => (bytes, start) = (rest, others),
            _ => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operators::{ArgumentKind, Schema, Trailing};

    #[test]
    fn operators_of_programs_are_found() {
        assert!(in_programs().count() > 390);
        assert!(in_programs().is_sorted_by(|a, b| a.full_name() < b.full_name()));
        for operator in in_programs() {
            let schema = Schema::parse(operator.schema()).unwrap();
            assert_eq!(schema.full_name(), operator.full_name());
            assert_eq!(lookup(schema.full_name()), Some(operator.schema()));
            assert_eq!(lookup_overload(schema.name(), schema.overload()), Some(operator.schema()));
        }
        // Known, but in no program.
        assert_eq!((lookup("aten::add.Tensor"), lookup_overload("aten::add", "Tensor")), (None, None));
    }

    #[test]
    fn every_out_is_returned_and_every_type_has_a_meaning() {
        for text in in_programs().map(Operator::schema) {
            let schema = Schema::parse(text).unwrap();
            for arg in schema.args() {
                assert!(!matches!(arg.kind, ArgumentKind::Other(_)), "{text}: {arg:?}");
                assert!((0..=11).any(|tag| arg.accepts(tag)), "{text}: {arg:?}");
            }
            let outs = schema.outs().count();
            match schema.trailing() {
                Trailing::Again(_) => assert!(outs <= 1, "{text}"),
                Trailing::List => assert_eq!(outs, schema.returns().len(), "{text}"),
                Trailing::Result => assert_eq!((outs, schema.returns().len()), (0, 1), "{text}"),
                Trailing::Nothing => assert_eq!(schema.name().split("::").next(), Some("executorch_prim"), "{text}"),
            }
        }
    }
}
