//! The one table of operators: schemas, and what is known about each besides.
//!
//! Its lines are searched as they stand, so that opening a file or starting a command costs nothing: a look-up takes as
//! many comparisons as the number of lines has bits, in constants too. Adding an operator is adding a line, whose words the
//! table explains at its beginning.
//!
//! Invariant: lines are sorted by full name, each name once, facts in the order of the legend; a test holds it.

use core::cmp::Ordering;

const TABLE: &str = include_str!("operators.txt");

/// An operator of the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Operator {
    schema: &'static str,
    /// What follows the schema: empty, or a semicolon and words.
    facts: &'static str,
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

    /// Whether a program may hold it: a stock kernel library has it, or exporters leave it there.
    pub const fn is_in_programs(self) -> bool {
        starts_with(self.facts.as_bytes(), b"; program")
    }

    /// Whether calling it at load gives what calling it at each run would. Said of operators in programs only.
    pub fn is_pure(self) -> bool {
        self.facts().any(|fact| fact == "pure")
    }

    /// Whether it is one of the core set.
    pub fn is_core(self) -> bool {
        self.facts().any(|fact| fact == "core")
    }

    /// Whether it is the copying twin of a view.
    pub fn is_view_copy(self) -> bool {
        self.facts().any(|fact| fact == "view_copy")
    }

    /// Whether each element of the result comes from the elements at its place.
    pub fn is_pointwise(self) -> bool {
        self.facts().any(|fact| fact == "pointwise")
    }

    /// The name of the function that gives the sizes and element types of the results.
    pub fn shape_rule(self) -> Option<&'static str> {
        self.facts().find_map(|fact| fact.strip_prefix("shape="))
    }

    /// The name of the rows of element types that the Edge dialect accepts.
    pub fn dtype_rows(self) -> Option<&'static str> {
        self.facts().find_map(|fact| fact.strip_prefix("dtypes="))
    }

    fn facts(self) -> impl Iterator<Item = &'static str> {
        self.facts.split([';', ' ']).filter(|word| !word.is_empty())
    }
}

/// Every operator, sorted by full name.
pub fn all() -> impl Iterator<Item = Operator> + Clone {
    from(0)
}

/// The operators that programs may hold, sorted by full name.
pub fn in_programs() -> impl Iterator<Item = Operator> + Clone {
    all().filter(|operator| operator.is_in_programs())
}

/// The operators of this name without overload, `aten::add`, sorted by full name.
pub fn overloads(name: &str) -> impl Iterator<Item = Operator> {
    let of_name = move |full_name: &str| match full_name.strip_prefix(name) {
        Some(overload) => overload.is_empty() || overload.starts_with('.'),
        None => false,
    };
    from(lower_bound(&[name])).take_while(move |operator| of_name(operator.full_name()))
}

/// Returns an operator, by full name: `aten::add.out`.
pub const fn find(full_name: &str) -> Option<Operator> {
    search(&[full_name])
}

/// Returns the schema of an operator that programs may hold, by full name: `aten::add.out`.
pub fn lookup(full_name: &str) -> Option<&'static str> {
    find(full_name).filter(|found| found.is_in_programs()).map(Operator::schema)
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
/// use edgepack_format::operator::split_known;
///
/// const ABS: Option<(&str, &str)> = split_known("aten::abs.out");
/// assert_eq!(ABS, Some(("aten::abs.out", "(Tensor self, *, Tensor(a!) out) -> Tensor(a!)")));
/// assert_eq!(split_known("aten::abs"), None);
/// ```
pub const fn split_known(full_name: &str) -> Option<(&'static str, &'static str)> {
    match find(full_name) {
        Some(found) if found.is_in_programs() => Some(until(found.schema, b'(')),
        _ => None,
    }
}

/// Returns the position of an argument in a schema, counted from 0. Works in constants.
///
/// ```
/// use edgepack_format::operator::position;
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
fn from(place: usize) -> impl Iterator<Item = Operator> + Clone {
    TABLE.get(place..).unwrap_or_default().lines().filter(|line| !line.starts_with('#')).map(Operator::of_line)
}

/// Finds the operator whose full name these pieces make together.
const fn search(pieces: &[&str]) -> Option<Operator> {
    let (line, _) = until(split(TABLE, lower_bound(pieces)).1, b'\n');
    match compare(line, pieces) {
        Ordering::Equal => Some(Operator::of_line(line)),
        _ => None,
    }
}

/// The place of the first line whose full name is not less than these pieces together.
const fn lower_bound(pieces: &[&str]) -> usize {
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
const fn until(text: &'static str, end: u8) -> (&'static str, &'static str) {
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

const fn starts_with(mut bytes: &[u8], mut start: &[u8]) -> bool {
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
    use alloc::vec::Vec;

    use super::*;
    use crate::operator::{Schema, Trailing};

    #[test]
    fn lines_are_sorted_and_name_facts_in_order() {
        assert!(TABLE.is_ascii() && TABLE.ends_with('\n') && !TABLE.contains("\n\n"));
        let names: Vec<&str> = all().map(Operator::full_name).collect();
        assert!(names.len() > 2000);
        for pair in names.windows(2) {
            assert!(pair[0] < pair[1], "{} before {}", pair[0], pair[1]);
        }
        const LEGEND: [&str; 7] = ["program", "pure", "core", "view_copy", "pointwise", "shape=", "dtypes="];
        for operator in all() {
            let place = |fact: &str| {
                LEGEND.iter().position(|known| match known.strip_suffix('=') {
                    Some(key) => fact.split_once('=').is_some_and(|(word, name)| word == key && !name.is_empty()),
                    None => fact == *known,
                })
            };
            let places: Vec<usize> = operator.facts().map(|fact| place(fact).expect(fact)).collect();
            assert!(places.is_sorted_by(|a, b| a < b), "{operator:?}");
            assert!(operator.facts.is_empty() || operator.facts.starts_with("; "), "{operator:?}");
            assert!(operator.is_in_programs() || !operator.is_pure(), "{operator:?}");
        }
    }

    #[test]
    fn all_parse_and_are_found() {
        for operator in all() {
            let text = operator.schema();
            let schema = Schema::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(schema.full_name(), operator.full_name());
            assert_eq!(find(schema.full_name()), Some(operator));
            assert!(overloads(schema.name()).any(|found| found == operator));
            let known = operator.is_in_programs().then_some(text);
            assert_eq!(lookup(schema.full_name()), known);
            assert_eq!(lookup_overload(schema.name(), schema.overload()), known);
        }
        assert!(lookup("aten::add").is_none() && lookup("aten::add.Tensor").is_none());
        assert!(lookup("aten::add.out(").is_none());
        assert!(lookup_overload("aten::add", "").is_none());
        assert!(lookup_overload("aten::add.out", "").is_some_and(|text| text.starts_with("aten::add.out(")));
        for line in
            TABLE.lines().filter(|line| line.starts_with('#')).chain(["", "#", "zz::z", "aten::ad", "aten::add."])
        {
            assert_eq!(find(line), None, "{line}");
        }
        let names: Vec<&str> = overloads("aten::sort").map(Operator::full_name).collect();
        assert_eq!(names, ["aten::sort", "aten::sort.stable", "aten::sort.values", "aten::sort.values_stable"]);
        assert_eq!(overloads("aten::no_such").count(), 0);
    }

    #[test]
    fn every_out_is_returned_and_every_type_has_a_meaning() {
        for text in in_programs().map(Operator::schema) {
            let schema = Schema::parse(text).unwrap();
            for arg in schema.args() {
                assert!(!matches!(arg.kind, crate::operator::ArgumentKind::Other(_)), "{text}: {arg:?}");
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
