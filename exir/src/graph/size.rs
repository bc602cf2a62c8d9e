//! Arithmetic on sizes: on numbers where they are known, on formulas where they are not.
//!
//! A formula carries its value at export along, so that results can be compared and printed.

use super::{Expr, Size};

/// Factors that are multiplied one by one: more than any tensor has dimensions.
const MOST_NESTED: usize = 64;

/// Parts of a formula: longer ones come of programs that double a size again and again.
const MOST_PARTS: usize = 4096;

/// Stands for a formula that is too long to be written down. Nothing is known about it, so it has no bounds and what has
/// such a size is refused.
const TOO_LONG: &str = "too_long";

impl Size {
    /// Adds a size; the sum is a formula unless both are known or one is 0.
    pub fn plus(&self, other: &Size) -> Size {
        self.combined(other, "Add", i64::checked_add)
    }

    /// Subtracts a size, as the sum with -1 times that size.
    pub fn minus(&self, other: &Size) -> Size {
        self.plus(&other.times(&Size::Known(-1)))
    }

    /// Multiplies by a size; factors 0 and 1 leave no formula.
    pub fn times(&self, other: &Size) -> Size {
        match (self.known(), other.known()) {
            (Some(1), _) => other.clone(),
            (_, Some(1)) => self.clone(),
            (Some(0), _) | (_, Some(0)) => Size::Known(0),
            _ => self.combined(other, "Mul", i64::checked_mul),
        }
    }

    /// The quotient, rounded down.
    pub fn over(&self, other: &Size) -> Size {
        match other.known() {
            Some(1) => self.clone(),
            _ if self == other => Size::Known(1),
            _ => self.cancelled(other).unwrap_or_else(|| self.combined(other, "FloorDiv", checked_floor_div)),
        }
    }

    /// Returns the larger size; a formula unless both are known or equal.
    pub fn larger(&self, other: &Size) -> Size {
        if self == other { self.clone() } else { self.combined(other, "Max", |a, b| Some(a.max(b))) }
    }

    /// Returns the smaller size; a formula unless both are known or equal.
    pub fn smaller(&self, other: &Size) -> Size {
        if self == other { self.clone() } else { self.combined(other, "Min", |a, b| Some(a.min(b))) }
    }

    /// Subtracts the number of parts of the formula from `most`; `None` if it has more, or is nested too deeply.
    fn parts(&self, most: usize) -> Option<usize> {
        fn count(expr: &Expr, left: usize, depth: usize) -> Option<usize> {
            let left = left.checked_sub(1)?;
            match expr {
                Expr::Apply(_, args) if depth > 0 => {
                    args.iter().try_fold(left, |left, arg| count(arg, left, depth.saturating_sub(1)))
                }
                Expr::Apply(..) => None,
                _ => Some(left),
            }
        }
        match self {
            Size::Known(_) => Some(most),
            Size::Symbolic(expr, _) => count(expr, most, MOST_NESTED.saturating_sub(2)),
        }
    }

    /// Returns the size as a formula, an `Integer` if it is known.
    pub fn expr(&self) -> Expr {
        match self {
            Size::Known(number) => Expr::Integer(*number),
            Size::Symbolic(expr, _) => expr.clone(),
        }
    }

    fn combined(&self, other: &Size, function: &str, compute: fn(i64, i64) -> Option<i64>) -> Size {
        if let (Some(a), Some(b)) = (self.known(), other.known())
            && let Some(number) = compute(a, b)
        {
            return Size::Known(number);
        }
        if function == "Add" {
            match (self.known(), other.known()) {
                (Some(0), _) => return other.clone(),
                (_, Some(0)) => return self.clone(),
                _ => {}
            }
        }
        let hint = self.hint().zip(other.hint()).and_then(|(a, b)| compute(a, b));
        match self.parts(MOST_PARTS).and_then(|left| other.parts(left)) {
            Some(_) => Size::Symbolic(Expr::Apply(function.to_owned(), vec![self.expr(), other.expr()]), hint),
            None => Size::Symbolic(Expr::Atom(TOO_LONG.to_owned()), hint),
        }
    }

    /// The quotient of a product that has the divisor among its factors.
    fn cancelled(&self, other: &Size) -> Option<Size> {
        let Size::Symbolic(Expr::Apply(function, factors), hint) = self else { return None };
        let at = factors.iter().position(|factor| *factor == other.expr()).filter(|_| function == "Mul")?;
        let mut rest = factors.clone();
        rest.remove(at);
        let hint = hint.zip(other.hint()).and_then(|(a, b)| checked_floor_div(a, b));
        Some(match (rest.len(), rest.pop()) {
            (1, Some(Expr::Integer(number))) => Size::Known(number),
            (1, Some(last)) => Size::Symbolic(last, hint),
            (_, Some(last)) => {
                rest.push(last);
                Size::Symbolic(Expr::Apply("Mul".to_owned(), rest), hint)
            }
            (_, None) => return None,
        })
    }

    /// The product of several.
    pub fn product<'a>(sizes: impl IntoIterator<Item = &'a Size>) -> Size {
        let mut sizes = sizes.into_iter();
        let product = sizes.by_ref().take(MOST_NESTED).fold(Size::Known(1), |product, size| product.times(size));
        // A formula in which every factor is nested inside the one before it takes time and depth by their number.
        let rest: Vec<Expr> = sizes.map(Size::expr).collect();
        if rest.is_empty() {
            return product;
        }
        let factors = std::iter::once(product.expr()).chain(rest).collect();
        Size::Symbolic(Expr::Apply("Mul".to_owned(), factors), None)
    }
}

fn checked_floor_div(a: i64, b: i64) -> Option<i64> {
    let quotient = a.checked_div(b)?;
    let exact = quotient.checked_mul(b)? == a;
    if !exact && (a < 0) != (b < 0) { quotient.checked_sub(1) } else { Some(quotient) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_formulas() {
        let s = Size::Symbolic(Expr::symbol("s0"), Some(3));
        assert_eq!(Size::Known(7).over(&Size::Known(2)), Size::Known(3));
        assert_eq!(Size::Known(-7).over(&Size::Known(2)), Size::Known(-4));
        assert_eq!(s.times(&Size::Known(1)), s);
        assert_eq!(s.plus(&Size::Known(0)), s);
        assert_eq!(s.times(&Size::Known(4)).hint(), Some(12));
        assert_eq!(s.times(&Size::Known(4)).over(&s), Size::Known(4));
        assert_eq!(s.minus(&Size::Known(1)).hint(), Some(2));
        assert_eq!(Size::product([&Size::Known(2), &s]).hint(), Some(6));
    }

    #[test]
    fn formulas_do_not_grow_without_end() {
        let mut doubled = Size::Symbolic(Expr::symbol("s0"), None);
        let mut deep = doubled.clone();
        for step in 0..100_000 {
            deep = deep.plus(&Size::Symbolic(Expr::symbol("s1"), None));
            if step < 200 {
                doubled = doubled.plus(&doubled);
            }
        }
        // What is too long counts as a new unknown, which may grow again.
        for size in [doubled, deep] {
            assert!(
                size.expr().to_string().len() < MOST_PARTS * 64
                    && size.expr().bounds(&Default::default()).max.is_none()
            );
        }
    }
}
