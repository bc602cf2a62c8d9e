//! Formulas over symbols, as the document writes them: constructors such as `Mul(Integer(2), Symbol('s0'))`. Some documents
//! write them as a person would, `2*s0`; that is read too.
//!
//! Invariant: a formula is at most [`MAX_DEPTH`] deep, so walking one needs no more stack than that.

use std::collections::BTreeMap;
use std::fmt;

use crate::error::Error;

/// Ceiling of the nesting of formulas.
pub(super) const MAX_DEPTH: usize = 64;

/// Formula as a tree; `Display` writes it as documents do.
#[derive(Clone, PartialEq, Debug)]
pub enum Expr {
    /// A whole number.
    Integer(i64),
    /// A symbol and what was assumed about it, as written.
    Symbol(String, String),
    /// Anything else: a function of formulas; text between its brackets that is not a formula is held as written.
    Apply(String, Vec<Expr>),
    /// Text, a keyword argument or another atom, as written.
    Atom(String),
}

/// Range of each symbol.
pub type Ranges = BTreeMap<String, Interval>;

/// From one number to another, both included; `None` is without end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Interval {
    /// Smallest number; absent if there is no lower bound.
    pub min: Option<i64>,
    /// Greatest number; absent if there is no upper bound.
    pub max: Option<i64>,
}

impl Expr {
    /// Reads a formula.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let parsed = super::formula::formula(text);
        parsed.map_err(|message| Error::Expression { text: shorten(text), message })
    }

    /// A symbol of a size: a positive integer.
    pub fn symbol(name: &str) -> Self {
        Expr::Symbol(name.to_owned(), "positive=True, integer=True".to_owned())
    }

    /// The product with another formula.
    pub fn times(&self, other: Expr) -> Expr {
        match (self, other) {
            (Expr::Integer(a), Expr::Integer(b)) => Expr::Integer(a.saturating_mul(b)),
            (Expr::Integer(1), other) => other,
            (this, Expr::Integer(1)) => this.clone(),
            (this, other) => Expr::Apply("Mul".to_owned(), vec![this.clone(), other]),
        }
    }

    /// The formula as a person would write it.
    pub(crate) fn plain(&self) -> String {
        struct Plain<'e>(&'e Expr);
        impl fmt::Display for Plain<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                infix(self.0, f)
            }
        }
        Plain(self).to_string()
    }

    /// Returns the nesting depth of functions.
    pub(super) fn height(&self) -> usize {
        match self {
            Expr::Apply(_, args) => args.iter().map(Expr::height).max().unwrap_or(0).saturating_add(1),
            _ => 0,
        }
    }

    /// The symbols in it.
    pub fn symbols<'a>(&'a self, found: &mut Vec<&'a str>) {
        match self {
            Expr::Symbol(name, _) => found.push(name),
            Expr::Apply(_, args) => args.iter().for_each(|arg| arg.symbols(found)),
            Expr::Integer(_) | Expr::Atom(_) => {}
        }
    }

    /// The values it can take when symbols stay in their ranges.
    pub fn bounds(&self, ranges: &Ranges) -> Interval {
        match self {
            Expr::Integer(number) => Interval::point(*number),
            Expr::Symbol(name, flags) => {
                let mut range = ranges.get(name).copied().unwrap_or_default();
                if range.min.is_none() && flags.contains("positive=True") {
                    range.min = Some(1);
                }
                range
            }
            Expr::Atom(_) => Interval::default(),
            Expr::Apply(function, args) => {
                let args: Vec<Interval> = args.iter().map(|arg| arg.bounds(ranges)).collect();
                apply(function, &args)
            }
        }
    }
}

fn apply(function: &str, args: &[Interval]) -> Interval {
    let all = |f: fn(Interval, Interval) -> Interval| args.iter().copied().reduce(f).unwrap_or_default();
    match (function, args) {
        ("Add", _) => all(Interval::plus),
        ("Mul", _) => all(Interval::times),
        ("Max", _) => all(|a, b| Interval {
            min: match (a.min, b.min) {
                (Some(a), Some(b)) => Some(a.max(b)),
                (a, b) => a.or(b),
            },
            max: a.max.zip(b.max).map(|(a, b)| a.max(b)),
        }),
        ("Min", _) => all(|a, b| Interval {
            min: a.min.zip(b.min).map(|(a, b)| a.min(b)),
            max: match (a.max, b.max) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            },
        }),
        ("FloorDiv" | "CleanDiv" | "IntTrueDiv", [a, b]) => a.divided(*b, i64::checked_div_euclid),
        ("CeilDiv", [a, b]) => a.divided(*b, |a, b| a.checked_add(b.checked_sub(1)?)?.checked_div_euclid(b)),
        ("Mod" | "PythonMod", [a, b]) if a.min >= Some(0) => {
            Interval { min: Some(0), max: smaller(a.max, b.max.and_then(|most| most.checked_sub(1))) }
        }
        ("ModularIndexing", [_, _, modulus]) => {
            Interval { min: Some(0), max: modulus.max.and_then(|most| most.checked_sub(1)) }
        }
        ("Pow" | "PowByNatural", [base, Interval { min: Some(power), max: Some(same) }]) if power == same => {
            let raise = |number: Option<i64>| number?.checked_pow(u32::try_from(*power).ok()?);
            match base.min >= Some(0) && *power >= 0 {
                true => Interval { min: raise(base.min), max: raise(base.max) },
                false => Interval::default(),
            }
        }
        ("Where", [_, a, b]) => {
            Interval { min: a.min.zip(b.min).map(|(a, b)| a.min(b)), max: a.max.zip(b.max).map(|(a, b)| a.max(b)) }
        }
        ("Identity" | "ToFloat" | "CeilToInt" | "FloorToInt" | "TruncToInt" | "TruncToFloat" | "RoundToInt", [a]) => *a,
        _ => Interval::default(),
    }
}

fn smaller(a: Option<i64>, b: Option<i64>) -> Option<i64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

impl Interval {
    /// One number.
    pub fn point(number: i64) -> Self {
        Interval { min: Some(number), max: Some(number) }
    }

    fn plus(self, other: Self) -> Self {
        let add = |a: Option<i64>, b: Option<i64>| a?.checked_add(b?);
        Interval { min: add(self.min, other.min), max: add(self.max, other.max) }
    }

    fn times(self, other: Self) -> Self {
        if self.min >= Some(0) && other.min >= Some(0) {
            let multiply = |a: Option<i64>, b: Option<i64>| a?.checked_mul(b?);
            let max = match (self.max, other.max) {
                (Some(0), _) | (_, Some(0)) => Some(0),
                (a, b) => multiply(a, b),
            };
            return Interval { min: multiply(self.min, other.min), max };
        }
        let corner = |a: Option<i64>, b: Option<i64>| a?.checked_mul(b?);
        let corners = [
            corner(self.min, other.min),
            corner(self.min, other.max),
            corner(self.max, other.min),
            corner(self.max, other.max),
        ];
        let all: Option<Vec<i64>> = corners.into_iter().collect();
        let all = all.unwrap_or_default();
        Interval { min: all.iter().min().copied(), max: all.iter().max().copied() }
    }

    fn divided(self, other: Self, divide: fn(i64, i64) -> Option<i64>) -> Self {
        if self.min >= Some(0) && other.min >= Some(1) {
            let smallest = match other.max {
                Some(most) => self.min.and_then(|least| divide(least, most)),
                None => Some(0),
            };
            return Interval { min: smallest, max: self.max.zip(other.min).and_then(|(a, b)| divide(a, b)) };
        }
        Interval::default()
    }
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Expr::Integer(number) => write!(f, "Integer({number})"),
            Expr::Symbol(name, flags) if flags.is_empty() => write!(f, "Symbol('{name}')"),
            Expr::Symbol(name, flags) => write!(f, "Symbol('{name}', {flags})"),
            Expr::Atom(text) => f.write_str(text),
            Expr::Apply(function, args) => {
                write!(f, "{function}(")?;
                for (index, arg) in args.iter().enumerate() {
                    if index > 0 {
                        f.write_str(", ")?;
                    }
                    write!(f, "{arg}")?;
                }
                f.write_str(")")
            }
        }
    }
}

/// A formula as a person would write it.
pub(super) fn infix(expr: &Expr, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let sign = |function: &str| match function {
        "Add" => Some(" + "),
        "Mul" => Some("*"),
        "FloorDiv" => Some(" // "),
        "Mod" | "PythonMod" => Some(" % "),
        "Pow" => Some("**"),
        _ => None,
    };
    match expr {
        Expr::Integer(number) => write!(f, "{number}"),
        Expr::Symbol(name, _) => f.write_str(name),
        Expr::Atom(text) => f.write_str(text),
        Expr::Apply(function, args) => {
            let (open, between) = match sign(function) {
                Some(between) => ("(".to_owned(), between),
                None => (format!("{function}("), ", "),
            };
            f.write_str(&open)?;
            for (index, arg) in args.iter().enumerate() {
                if index > 0 {
                    f.write_str(between)?;
                }
                infix(arg, f)?;
            }
            f.write_str(")")
        }
    }
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(80) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges() -> Ranges {
        [("s0", Some(2), Some(8)), ("u0", None, None)]
            .map(|(name, min, max)| (name.to_owned(), Interval { min, max }))
            .into()
    }

    #[test]
    fn formulas_survive() {
        for text in [
            "Integer(3)",
            "Symbol('s77', positive=True, integer=True)",
            "Mul(Integer(2), Add(Symbol('s0', integer=True), Integer(-1)))",
            "Max(Integer(1), FloorDiv(Symbol('s0'), Integer(2)))",
            "Float('0.5', precision=53)",
        ] {
            assert_eq!(Expr::parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn formulas_of_people_are_read() {
        for (text, same) in [
            ("s17", "Symbol('s17', positive=True, integer=True)"),
            ("2*s0", "Mul(Integer(2), Symbol('s0', positive=True, integer=True))"),
            ("4*s0//3 - u1", "Add(FloorDiv(Mul(Integer(4), s0), Integer(3)), Mul(Integer(-1), u1))"),
            ("Max(1, s0)**2", "Pow(Max(Integer(1), s0), Integer(2))"),
            ("s0-1", "Add(s0, Mul(Integer(-1), Integer(1)))"),
            ("-s0 + (s1 + 1)*2", "Add(Mul(Integer(-1), s0), Mul(Add(s1, Integer(1)), Integer(2)))"),
        ] {
            assert_eq!(Expr::parse(text).unwrap(), Expr::parse(same).unwrap(), "{text}");
        }
        assert!(Expr::parse(&format!("{}s0", "-".repeat(1000))).is_err());
        assert!(Expr::parse(&format!("s0{}", "//2".repeat(1000))).is_err());
        let sum = Expr::parse(&format!("s0{}", " + s1".repeat(1000))).unwrap();
        assert_eq!(Expr::parse(&sum.to_string()).unwrap(), sum);
    }

    #[test]
    fn nonsense_is_refused() {
        for text in [
            "",
            "Mul(",
            "Symbol(s0)",
            "Integer(x)",
            "Add(Integer(1) Integer(2))",
            "Integer(1))",
            "(",
            "Symbol('",
            "Symbol(\"a'b\")",
        ] {
            assert!(Expr::parse(text).is_err(), "{text}");
        }
        assert!(Expr::parse(&"Add(".repeat(10_000)).is_err());
    }

    #[test]
    fn bounds_follow_ranges() {
        for (text, min, max) in [
            ("Symbol('s0')", Some(2), Some(8)),
            ("Mul(Integer(3), Symbol('s0'))", Some(6), Some(24)),
            ("Mul(Integer(-1), Symbol('s0'))", Some(-8), Some(-2)),
            ("Add(Symbol('s0'), Integer(-1))", Some(1), Some(7)),
            ("FloorDiv(Add(Symbol('s0'), Integer(1)), Integer(2))", Some(1), Some(4)),
            ("CeilDiv(Symbol('s0'), Integer(3))", Some(1), Some(3)),
            ("Max(Integer(4), Symbol('s0'))", Some(4), Some(8)),
            ("Min(Integer(4), Symbol('u0'))", None, Some(4)),
            ("Mod(Symbol('s0'), Integer(3))", Some(0), Some(2)),
            ("Pow(Symbol('s0'), Integer(2))", Some(4), Some(64)),
            ("Symbol('u0')", None, None),
            ("Symbol('u0', positive=True)", Some(1), None),
            ("Mul(Symbol('s0'), Symbol('u0'))", None, None),
        ] {
            assert_eq!(Expr::parse(text).unwrap().bounds(&ranges()), Interval { min, max }, "{text}");
        }
    }
}
