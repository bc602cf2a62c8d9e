//! The whole table: every operator that exporters know, and what is known about each besides its schema.
//!
//! Lowering, generating and optimising programs ask for it; opening, verifying and running them do not.
//!
//! Invariant: facts are in the order of the table's legend; a test holds it.

use super::table::{Operator, from, lower_bound, search, starts_with};

/// The lines, with comments before the first.
pub(super) const TABLE: &str = include_str!("operators.txt");

/// Every operator, sorted by full name.
pub fn all() -> impl Iterator<Item = Operator> + Clone {
    from(0)
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

impl Operator {
    /// Returns whether calling it at load gives the result of calling it at each run. Said of operators in programs
    /// only. Works in constants.
    pub const fn is_pure(self) -> bool {
        starts_with(self.facts.as_bytes(), b"; program pure")
    }

    /// Returns whether the operator is one of the core set.
    pub fn is_core(self) -> bool {
        self.facts().any(|fact| fact == "core")
    }

    /// Returns whether the operator is the copying twin of a view.
    pub fn is_view_copy(self) -> bool {
        self.facts().any(|fact| fact == "view_copy")
    }

    /// Returns whether each element of the result comes from the elements at its place.
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

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::operators::Schema;
    use crate::operators::table::{lookup, lookup_overload};

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
            assert_eq!(operator.is_pure(), operator.facts().any(|fact| fact == "pure"), "{operator:?}");
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
}
