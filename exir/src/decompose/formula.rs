//! The grammar of formulas: text becomes terms.
//!
//! A formula is `LOCAL = TERM; …; TERM, …`, one term per result. A local is computed where it is read first, and not at all
//! if nothing reads it. Names are the arguments of the operator's schema or locals; a call names an operator of the library,
//! with arguments in the order of its schema or by name (`dtype=…`), or one of the words in `words.rs`.
//!
//! Invariant: terms nest at most `DEPTH` deep.

/// Ceiling of the nesting of terms.
const DEPTH: usize = 40;

/// Names, and the term whose values they are bound to.
pub(super) type Local = (Vec<String>, Term);

/// A parsed line.
#[derive(Debug)]
pub(super) struct Formula {
    pub(super) locals: Vec<Local>,
    pub(super) results: Vec<Term>,
}

/// Term of a formula: an expression for a value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Term {
    /// A literal number.
    Int(i64),
    /// A literal number with a point.
    Float(f64),
    /// Text in single quotes.
    Text(String),
    /// An argument, a local, `none`, `true`, `false` or `inf`.
    Name(String),
    /// A list in brackets.
    List(Vec<Term>),
    /// A call: positional terms, then named ones.
    Call(String, Vec<Term>, Vec<(String, Term)>),
    /// An operator between two terms.
    Infix(Infix, Box<Term>, Box<Term>),
}

/// Operators between terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub(super) enum Infix {
    Or,
    And,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Equal,
    NotEqual,
    Plus,
    Minus,
    Times,
    Over,
}

/// The infix operators by how tightly they bind, loosest first; longer words before their beginnings.
const LEVELS: [&[(&str, Infix)]; 5] = [
    &[("|", Infix::Or)],
    &[("&", Infix::And)],
    &[
        ("<=", Infix::LessEqual),
        (">=", Infix::GreaterEqual),
        ("==", Infix::Equal),
        ("!=", Infix::NotEqual),
        ("<", Infix::Less),
        (">", Infix::Greater),
    ],
    &[("+", Infix::Plus), ("-", Infix::Minus)],
    &[("*", Infix::Times), ("/", Infix::Over)],
];

pub(super) fn parse(text: &str) -> Option<Formula> {
    let (head, last) = text.rsplit_once(';').unwrap_or(("", text));
    let mut locals = Vec::new();
    for statement in head.split(';').filter(|statement| !statement.trim().is_empty()) {
        // The first sign of equality that is not a comparison.
        let (names, term) = statement.split_once(" = ")?;
        let names = names.split(',').map(|name| name.trim().to_owned()).collect();
        locals.push((names, whole(term)?.pop()?));
    }
    Some(Formula { locals, results: whole(last)? })
}

/// Terms with commas between them.
fn whole(text: &str) -> Option<Vec<Term>> {
    let mut reader = Reader { rest: text };
    let terms = reader.terms()?.0;
    reader.skip();
    (reader.rest.is_empty() && !terms.is_empty()).then_some(terms)
}

/// Arguments between parentheses: terms by position, and terms by name.
type Given = (Vec<Term>, Vec<(String, Term)>);

struct Reader<'t> {
    rest: &'t str,
}

impl<'t> Reader<'t> {
    fn skip(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn take(&mut self, sign: &str) -> bool {
        self.skip();
        let rest = self.rest.strip_prefix(sign);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Positional terms and named ones, with commas between them.
    fn terms(&mut self) -> Option<Given> {
        let (mut terms, mut named) = (Vec::new(), Vec::new());
        loop {
            self.skip();
            if self.rest.is_empty() || self.rest.starts_with([')', ']']) {
                return Some((terms, named));
            }
            match self.name_of_argument() {
                Some(name) => named.push((name, self.level(0, 0)?)),
                None => terms.push(self.level(0, 0)?),
            }
            if !self.take(",") {
                return Some((terms, named));
            }
        }
    }

    /// `NAME=`, where no comparison follows.
    fn name_of_argument(&mut self) -> Option<String> {
        let len = self.rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))?;
        let (name, rest) = self.rest.split_at_checked(len)?;
        let rest = rest.strip_prefix('=').filter(|rest| !rest.starts_with('=') && !name.is_empty())?;
        self.rest = rest;
        Some(name.to_owned())
    }

    fn level(&mut self, level: usize, depth: usize) -> Option<Term> {
        if depth > DEPTH {
            return None;
        }
        let next = depth.checked_add(1)?;
        let Some(signs) = LEVELS.get(level) else { return self.atom(next) };
        let mut left = self.level(level.checked_add(1)?, next)?;
        while let Some((_, infix)) = signs.iter().find(|(sign, _)| self.take(sign)) {
            let right = self.level(level.checked_add(1)?, next)?;
            left = Term::Infix(*infix, Box::new(left), Box::new(right));
        }
        Some(left)
    }

    fn atom(&mut self, depth: usize) -> Option<Term> {
        if depth > DEPTH {
            return None;
        }
        let next = depth.checked_add(1)?;
        if self.take("-") {
            return Some(match self.atom(next)? {
                Term::Int(number) => Term::Int(number.checked_neg()?),
                Term::Float(number) => Term::Float(-number),
                term => Term::Call("neg".to_owned(), vec![term], Vec::new()),
            });
        }
        if self.take("!") {
            return Some(Term::Call("not".to_owned(), vec![self.atom(next)?], Vec::new()));
        }
        if self.take("(") {
            let term = self.level(0, next)?;
            return self.take(")").then_some(term);
        }
        if self.take("[") {
            let (items, named) = self.terms()?;
            return (self.take("]") && named.is_empty()).then_some(Term::List(items));
        }
        if self.take("'") {
            let (text, rest) = self.rest.split_once('\'')?;
            self.rest = rest;
            return Some(Term::Text(text.to_owned()));
        }
        let word = self.word()?;
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            return word.parse().map(Term::Int).or_else(|_| word.parse().map(Term::Float)).ok();
        }
        if !self.take("(") {
            return Some(Term::Name(word));
        }
        let (terms, named) = self.terms()?;
        self.take(")").then_some(Term::Call(word, terms, named))
    }

    /// A name or a number: letters, digits, points, and the sign of an exponent.
    fn word(&mut self) -> Option<String> {
        let mut before = ' ';
        let number = self.rest.starts_with(|c: char| c.is_ascii_digit());
        let inside = |c: char| {
            let sign = number && matches!(c, '+' | '-') && before == 'e';
            before = c;
            c.is_ascii_alphanumeric() || c == '_' || c == '.' || sign
        };
        let mut inside = inside;
        let len = self.rest.find(|c: char| !inside(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        (!word.is_empty()).then(|| word.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_bind_as_usual() {
        let formula = parse("a = x + 2 * -1e-3; f.g(a, b=[1, 'two']) <= a | !c").unwrap();
        let Term::Infix(Infix::Plus, _, right) = &formula.locals[0].1 else { panic!("{formula:?}") };
        assert_eq!(**right, Term::Infix(Infix::Times, Box::new(Term::Int(2)), Box::new(Term::Float(-1e-3))));
        assert!(matches!(formula.results[0], Term::Infix(Infix::Or, ..)));
        assert!(parse("a = (1; a").is_none() && parse("1 +").is_none() && parse(&"(".repeat(100)).is_none());
    }
}
