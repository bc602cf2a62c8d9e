//! Reads formulas: terms, products, powers, constructors.

use super::expr::{Expr, MAX_DEPTH};

/// Reads a whole text as a formula. The error says what is wrong with it.
pub(super) fn formula(text: &str) -> Result<Expr, String> {
    let mut parser = Parser { rest: text };
    let expr = parser.expression(0)?;
    match parser.rest.trim() {
        "" if expr.height() > MAX_DEPTH => Err(format!("it is nested deeper than {MAX_DEPTH}")),
        "" => Ok(expr),
        rest => Err(format!("`{rest}` follows")),
    }
}

/// A function of two formulas; one of the same function takes the second as a further argument.
fn joined(function: &str, first: Expr, second: Expr) -> Expr {
    match first {
        Expr::Apply(same, mut args) if same == function && matches!(function, "Add" | "Mul") => {
            args.push(second);
            Expr::Apply(same, args)
        }
        first => Expr::Apply(function.to_owned(), vec![first, second]),
    }
}

/// A name without brackets: a symbol if it is one of those that exporters make, `s` for sizes of inputs and `u` for numbers
/// that are not known before the program runs.
fn bare(name: &str) -> Expr {
    let numbered = |letter: char| {
        let number = name.strip_prefix(letter);
        number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
    };
    if numbered('s') {
        Expr::symbol(name)
    } else if numbered('u') {
        Expr::Symbol(name.to_owned(), "integer=True".to_owned())
    } else {
        Expr::Atom(name.to_owned())
    }
}

struct Parser<'t> {
    rest: &'t str,
}

impl<'t> Parser<'t> {
    fn skip(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn eat(&mut self, mark: char) -> bool {
        self.skip();
        match self.rest.strip_prefix(mark) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// Takes what satisfies a condition.
    fn take(&mut self, part: impl Fn(char) -> bool) -> &'t str {
        let end = self.rest.find(|c| !part(c)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }

    /// A name or a number, with its sign and that of its exponent.
    fn word(&mut self) -> &'t str {
        let whole = self.rest;
        self.rest = whole.strip_prefix('-').unwrap_or(whole);
        let part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.');
        let number = self.rest.starts_with(|c: char| c.is_ascii_digit() || c == '.');
        let first = self.take(part);
        if number && first.ends_with(['e', 'E']) && self.rest.starts_with(['-', '+']) {
            self.rest = self.rest.get(1..).unwrap_or_default();
            self.take(part);
        }
        whole.get(..whole.len().saturating_sub(self.rest.len())).unwrap_or_default()
    }

    fn quoted(&mut self) -> Result<&'t str, String> {
        let quote =
            self.rest.chars().next().filter(|c| matches!(c, '\'' | '"')).ok_or("a name in quotes is missing")?;
        let inside = self.rest.get(1..).unwrap_or_default();
        let end = inside.find(quote).ok_or("a quote is not closed")?;
        self.rest = inside.get(end.saturating_add(1)..).unwrap_or_default();
        let name = inside.get(..end).unwrap_or_default();
        // Names are written in quotes, so they hold none.
        if name.contains(['\'', '"']) { Err(format!("the name {name:?} holds a quote")) } else { Ok(name) }
    }

    /// Terms with signs between them.
    fn expression(&mut self, depth: usize) -> Result<Expr, String> {
        let mut sum = self.product(depth)?;
        loop {
            self.skip();
            let minus = match self.rest.as_bytes().first() {
                Some(b'+') => false,
                Some(b'-') => true,
                _ => return Ok(sum),
            };
            self.rest = self.rest.get(1..).unwrap_or_default();
            let term = self.product(depth)?;
            sum = joined("Add", sum, if minus { joined("Mul", Expr::Integer(-1), term) } else { term });
        }
    }

    fn product(&mut self, depth: usize) -> Result<Expr, String> {
        let mut product = self.power(depth)?;
        loop {
            self.skip();
            let signs = [("//", "FloorDiv"), ("*", "Mul"), ("/", "IntTrueDiv"), ("%", "Mod")];
            let Some((sign, function)) = signs.iter().find(|(sign, _)| self.rest.starts_with(sign)) else {
                return Ok(product);
            };
            self.rest = self.rest.get(sign.len()..).unwrap_or_default();
            product = joined(function, product, self.power(depth)?);
            if product.height() > MAX_DEPTH {
                return Err(format!("it is nested deeper than {MAX_DEPTH}"));
            }
        }
    }

    fn power(&mut self, depth: usize) -> Result<Expr, String> {
        let base = self.atom(depth)?;
        self.skip();
        match self.rest.strip_prefix("**") {
            Some(rest) => {
                self.rest = rest;
                let power = self.power(depth.saturating_add(1))?;
                Ok(Expr::Apply("Pow".to_owned(), vec![base, power]))
            }
            None => Ok(base),
        }
    }

    fn atom(&mut self, depth: usize) -> Result<Expr, String> {
        if depth > MAX_DEPTH {
            return Err(format!("it is nested deeper than {MAX_DEPTH}"));
        }
        self.skip();
        if self.eat('(') {
            let inner = self.expression(depth.saturating_add(1))?;
            self.close()?;
            return Ok(inner);
        }
        if let Some(rest) = self.rest.strip_prefix('-').filter(|rest| !rest.starts_with(|c: char| c.is_ascii_digit())) {
            self.rest = rest;
            let negated = self.power(depth.saturating_add(1))?;
            return Ok(joined("Mul", Expr::Integer(-1), negated));
        }
        if self.rest.starts_with(['\'', '"']) {
            return Ok(Expr::Atom(format!("'{}'", self.quoted()?)));
        }
        let name = self.word();
        if name.is_empty() {
            return Err(match self.rest.chars().next() {
                Some(other) => format!("`{other}` where a formula is expected"),
                None => "it ends where a formula is expected".to_owned(),
            });
        }
        if let Ok(number) = name.parse::<i64>() {
            return Ok(Expr::Integer(number));
        }
        if self.eat('=') {
            let value = self.take(|c| !matches!(c, ',' | ')'));
            return Ok(Expr::Atom(format!("{name}={}", value.trim())));
        }
        if !self.eat('(') {
            return Ok(bare(name));
        }
        match name {
            "Integer" => {
                let number = self.take(|c| c != ')').trim().trim_matches('\'');
                let number: i64 = number.parse().map_err(|_| format!("`{number}` is not a whole number of 64 bits"))?;
                self.close()?;
                Ok(Expr::Integer(number))
            }
            "Symbol" => {
                self.skip();
                let name = self.quoted()?.to_owned();
                let flags = match self.eat(',') {
                    true => self.take(|c| c != ')').trim().to_owned(),
                    false => String::new(),
                };
                self.close()?;
                Ok(Expr::Symbol(name, flags))
            }
            name => {
                let mut args = Vec::new();
                while !self.eat(')') {
                    if !args.is_empty() && !self.eat(',') {
                        return Err(format!("the brackets of {name} are not closed"));
                    }
                    args.push(self.expression(depth.saturating_add(1))?);
                }
                Ok(Expr::Apply(name.to_owned(), args))
            }
        }
    }

    fn close(&mut self) -> Result<(), String> {
        match self.eat(')') {
            true => Ok(()),
            false => Err("a bracket is not closed".to_owned()),
        }
    }
}
