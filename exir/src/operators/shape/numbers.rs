//! Type promotion of arithmetic, and sizes after broadcasting.

use edgepack_format::scalar::ScalarType;

use super::Call;
use crate::graph::{Argument, Meta, Size};

/// Category of number that an element type holds; a higher one wins.
fn category(scalar_type: ScalarType) -> u8 {
    match scalar_type {
        ScalarType::BOOL => 0,
        ScalarType::COMPLEX_HALF | ScalarType::COMPLEX_FLOAT | ScalarType::COMPLEX_DOUBLE => 3,
        other if other.is_floating() => 2,
        _ => 1,
    }
}

/// The element type that holds both.
pub fn promote(a: ScalarType, b: ScalarType) -> ScalarType {
    if a == b {
        return a;
    }
    match category(a).cmp(&category(b)) {
        std::cmp::Ordering::Less => b,
        std::cmp::Ordering::Greater => a,
        std::cmp::Ordering::Equal => match category(a) {
            1 => integers(a, b),
            2 => floats(a, b),
            _ => wider(a, b),
        },
    }
}

fn wider(a: ScalarType, b: ScalarType) -> ScalarType {
    if a.size() >= b.size() { a } else { b }
}

fn floats(a: ScalarType, b: ScalarType) -> ScalarType {
    match a.size() == b.size() {
        // Neither of the two small types holds the other.
        true => ScalarType::FLOAT,
        false => wider(a, b),
    }
}

fn integers(a: ScalarType, b: ScalarType) -> ScalarType {
    match (a, b) {
        (ScalarType::BYTE, ScalarType::CHAR) | (ScalarType::CHAR, ScalarType::BYTE) => ScalarType::SHORT,
        _ => wider(a, b),
    }
}

/// The type in which floats are computed from this one.
pub(super) fn to_float(scalar_type: ScalarType) -> ScalarType {
    if category(scalar_type) >= 2 { scalar_type } else { ScalarType::FLOAT }
}

/// Returns the type in which sums of this one are accumulated.
pub(super) fn to_sum(scalar_type: ScalarType) -> ScalarType {
    if category(scalar_type) >= 2 { scalar_type } else { ScalarType::LONG }
}

/// Element types that decide a promotion: tensors with dimensions first, then tensors without, then numbers.
#[derive(Default)]
pub(super) struct Choice {
    ranked: Option<ScalarType>,
    scalars: Option<ScalarType>,
    numbers: Option<ScalarType>,
}

impl Choice {
    fn add(slot: &mut Option<ScalarType>, scalar_type: ScalarType) {
        *slot = Some(slot.map_or(scalar_type, |known| promote(known, scalar_type)));
    }

    /// Takes an argument in.
    pub(super) fn with(mut self, call: &Call<'_>, name: &str) -> Self {
        if let Some(meta) = call.tensor(name) {
            let slot = if meta.rank() > 0 { &mut self.ranked } else { &mut self.scalars };
            Self::add(slot, meta.scalar_type);
            return self;
        }
        let number = match call.arg(name) {
            Some(Argument::Int(_)) => Some(ScalarType::LONG),
            Some(Argument::Float(_)) => Some(ScalarType::FLOAT),
            Some(Argument::Bool(_)) => Some(ScalarType::BOOL),
            Some(Argument::Value(id)) => match call.graph.value(*id).map(|value| &value.meta) {
                Some(Meta::Int(_)) => Some(ScalarType::LONG),
                Some(Meta::Float(_)) => Some(ScalarType::FLOAT),
                Some(Meta::Bool(_)) => Some(ScalarType::BOOL),
                _ => None,
            },
            _ => None,
        };
        if let Some(number) = number {
            Self::add(&mut self.numbers, number);
        }
        self
    }

    /// The type: that of the first group, unless a later one has numbers of a higher kind.
    pub(super) fn settle(self) -> Option<ScalarType> {
        let groups = [self.ranked, self.scalars, self.numbers];
        let mut groups = groups.into_iter().flatten();
        let first = groups.next()?;
        Some(groups.fold(first, |known, next| if category(next) > category(known) { next } else { known }))
    }
}

/// The sizes that tensors of these sizes have together.
pub(super) fn broadcast<'a>(all: impl IntoIterator<Item = &'a [Size]>) -> Option<Vec<Size>> {
    let mut result: Vec<Size> = Vec::new();
    for sizes in all {
        while result.len() < sizes.len() {
            result.insert(0, Size::Known(1));
        }
        let start = result.len().saturating_sub(sizes.len());
        for (have, size) in result.iter_mut().skip(start).zip(sizes) {
            match (have.known(), size.known()) {
                (_, Some(1)) => {}
                (Some(1), _) => *have = size.clone(),
                (Some(a), Some(b)) if a != b => return None,
                // A size that is known settles one that is not.
                (None, Some(_)) => *have = size.clone(),
                _ => {}
            }
        }
    }
    Some(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_promoted() {
        for (a, b, both) in [
            (ScalarType::INT, ScalarType::FLOAT, ScalarType::FLOAT),
            (ScalarType::HALF, ScalarType::BFLOAT16, ScalarType::FLOAT),
            (ScalarType::HALF, ScalarType::DOUBLE, ScalarType::DOUBLE),
            (ScalarType::BYTE, ScalarType::CHAR, ScalarType::SHORT),
            (ScalarType::BOOL, ScalarType::CHAR, ScalarType::CHAR),
            (ScalarType::LONG, ScalarType::HALF, ScalarType::HALF),
        ] {
            assert_eq!((promote(a, b), promote(b, a)), (both, both));
        }
    }

    #[test]
    fn sizes_are_broadcast() {
        let sizes = |numbers: &[i64]| numbers.iter().map(|number| Size::Known(*number)).collect::<Vec<_>>();
        let both = |a: &[i64], b: &[i64]| broadcast([&sizes(a)[..], &sizes(b)[..]]);
        assert_eq!(both(&[2, 1], &[3]), Some(sizes(&[2, 3])));
        assert_eq!(both(&[], &[4]), Some(sizes(&[4])));
        assert_eq!(both(&[2], &[3]), None);
    }
}
