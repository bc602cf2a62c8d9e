//! Operators declared in a text: a schema per line, and what its results look like.
//!
//! ```text
//! # Everything behind a hash is left out.
//! my::twice(Tensor self) -> Tensor                      gives like self
//! my::twice.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
//! my::mix(Tensor a, Tensor b) -> Tensor                 gives broadcast a b as promote a b
//! my::join(Tensor a, Tensor b) -> Tensor                gives sizes [a[:-1], a[-1] + b[-1]]
//! my::top(Tensor self, int k) -> (Tensor, Tensor)       gives sizes [k]; sizes [k] as Long
//! ```
//!
//! A rule is `like ARG`, `broadcast ARG…` or `sizes [FORMULA, …]`; behind `as` is the element type: a name, `ARG` for
//! the type of that argument, or `promote ARG…`. Without one it is that of the argument, of all together, or of the first
//! tensor. Formulas have numbers, whole-number arguments, `ARG[INDEX]` for one size of a tensor or item of a list,
//! `ARG[FROM:TO]` for several, `rank(ARG)`, `+ - * //` and parentheses. Several results have a rule each, with `;` between.

use std::sync::Arc;

use edgepack_format::operators::{Argument as Parameter, ArgumentKind, Schema};
use edgepack_format::scalar::ScalarType;

use super::numbers::{Choice, broadcast};
use super::{Call, ShapeRule, made};
use crate::dtype;
use crate::error::Error;
use crate::graph::{Size, TensorMeta};
use crate::operators::Operators;

/// Ceiling of the nesting of parentheses.
const DEPTH: usize = 32;
/// Ceiling of the number of words in a rule.
const MOST_WORDS: usize = 1000;

impl Operators {
    /// Adds operators that are declared in a text, a line each: a schema, and behind `gives` what its results look like.
    /// For one that programs are to hold, its out variant is declared too.
    ///
    /// ```
    /// let mut operators = edgepack_exir::operators::Operators::new();
    /// operators.declare(
    ///     "my::join(Tensor a, Tensor b) -> Tensor gives sizes [a[:-1], a[-1] + b[-1]] as promote a b\n\
    ///      my::join.out(Tensor a, Tensor b, *, Tensor(a!) out) -> Tensor(a!)\n",
    /// )?;
    /// # Ok::<(), edgepack_exir::Error>(())
    /// ```
    pub fn declare(&mut self, text: &str) -> Result<&mut Self, Error> {
        for (number, line) in (1usize..).zip(text.lines()) {
            let line = line.split('#').next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            let place = |message: String| Error::program(format!("line {number}"), message);
            let (schema, rules) = match line.split_once(" gives ") {
                Some((schema, rules)) => (schema.trim(), Some(rules)),
                None => (line, None),
            };
            let parsed = Schema::parse(schema).map_err(|error| place(error.to_string()))?;
            match rules {
                Some(rules) => {
                    let rule = read(rules, &parsed).map_err(place)?;
                    self.insert(schema, Some(rule))?;
                }
                None => {
                    self.insert(schema, None)?;
                }
            }
        }
        Ok(self)
    }
}

/// The sizes and element type of a result.
struct Rule {
    shape: Shape,
    scalar_type: Type,
}

enum Shape {
    Like(String),
    Broadcast(Vec<String>),
    Sizes(Vec<Item>),
}

enum Type {
    Fixed(ScalarType),
    Of(String),
    Promoted(Vec<String>),
}

/// Item between the brackets of `sizes`.
enum Item {
    One(Formula),
    Several { arg: String, from: Option<Formula>, to: Option<Formula> },
}

enum Formula {
    Number(i64),
    Argument(String),
    Element(String, Box<Formula>),
    Rank(String),
    Combined(Box<Formula>, char, Box<Formula>),
}

/// Reads the rules of an operator.
fn read(text: &str, schema: &Schema<'_>) -> Result<ShapeRule, String> {
    let results = schema.returns();
    if let Some(other) = results.iter().find(|result| result.kind != ArgumentKind::Tensor || result.list.is_some()) {
        return Err(format!("rules are for results that are tensors, this one is {other:?}"));
    }
    let parts: Vec<&str> = text.split(';').collect();
    if parts.len() != results.len() {
        return Err(format!("{} rules for {} results", parts.len(), results.len()));
    }
    let rules = parts.into_iter().map(|part| Reader::new(part, schema)?.rule()).collect::<Result<Vec<Rule>, _>>()?;
    Ok(Arc::new(move |call: &Call<'_>| rules.iter().map(|rule| rule.result(call)).collect()))
}

/// A rule while it is read, word by word.
struct Reader<'t, 's> {
    words: std::iter::Peekable<std::vec::IntoIter<&'t str>>,
    schema: &'s Schema<'s>,
    depth: usize,
}

impl<'t, 's> Reader<'t, 's> {
    fn new(text: &'t str, schema: &'s Schema<'s>) -> Result<Self, String> {
        Ok(Reader { words: words(text)?.into_iter().peekable(), schema, depth: 0 })
    }

    fn rule(mut self) -> Result<Rule, String> {
        let (shape, usual) = match self.words.next() {
            Some("like") => {
                let arg = self.tensor()?;
                (Shape::Like(arg.clone()), Type::Of(arg))
            }
            Some("broadcast") => {
                let args = self.tensors()?;
                (Shape::Broadcast(args.clone()), Type::Promoted(args))
            }
            Some("sizes") => {
                let tensor = |parameter: &&Parameter<'_>| is_tensor(parameter) && parameter.list.is_none();
                let first = self.schema.args().iter().find(tensor).map(|parameter| parameter.name.to_owned());
                (Shape::Sizes(self.items()?), Type::Of(first.unwrap_or_default()))
            }
            other => {
                return Err(format!("a rule begins with `like`, `broadcast` or `sizes`, not with {}", shown(other)));
            }
        };
        let scalar_type = match self.words.next() {
            None if matches!(&usual, Type::Of(name) if name.is_empty()) => {
                return Err("there is no tensor to take the element type of: say one behind `as`".to_owned());
            }
            None => usual,
            Some("as") => self.scalar_type()?,
            other => return Err(format!("{} where the rule ends", shown(other))),
        };
        match self.words.next() {
            None => Ok(Rule { shape, scalar_type }),
            other => Err(format!("{} where the rule ends", shown(other))),
        }
    }

    fn scalar_type(&mut self) -> Result<Type, String> {
        match self.words.next() {
            Some("promote") => Ok(Type::Promoted(self.tensors()?)),
            Some(name) if self.parameter(name).is_ok() => Ok(Type::Of(name.to_owned())),
            Some(name) => match dtype::by_name(name) {
                Some(scalar_type) => Ok(Type::Fixed(scalar_type)),
                None => Err(format!("`{name}` is neither an element type nor an argument")),
            },
            None => Err("no element type behind `as`".to_owned()),
        }
    }

    fn parameter(&self, name: &str) -> Result<&'s Parameter<'s>, String> {
        self.schema.args().iter().find(|parameter| parameter.name == name).ok_or_else(|| {
            let names: Vec<&str> = self.schema.args().iter().map(|parameter| parameter.name).collect();
            format!("{} has no argument `{name}`; it has {}", self.schema.full_name(), names.join(", "))
        })
    }

    fn tensor(&mut self) -> Result<String, String> {
        let name = self.words.next().ok_or("no argument where one is expected")?;
        match is_tensor(self.parameter(name)?) {
            true => Ok(name.to_owned()),
            false => Err(format!("`{name}` is not a tensor")),
        }
    }

    /// All arguments up to `as` or the end; numbers take part in the choice of a type.
    fn tensors(&mut self) -> Result<Vec<String>, String> {
        let mut names = Vec::new();
        while let Some(name) = self.words.next_if(|word| *word != "as") {
            names.push(self.parameter(name)?.name.to_owned());
        }
        if names.is_empty() { Err("no argument where one is expected".to_owned()) } else { Ok(names) }
    }

    fn expect(&mut self, wanted: &str) -> Result<(), String> {
        match self.words.next() {
            Some(word) if word == wanted => Ok(()),
            other => Err(format!("{} where `{wanted}` is expected", shown(other))),
        }
    }

    fn takes(&mut self, wanted: &str) -> bool {
        self.words.next_if(|word| *word == wanted).is_some()
    }

    fn items(&mut self) -> Result<Vec<Item>, String> {
        self.expect("[")?;
        let mut items = Vec::new();
        while !self.takes("]") {
            items.push(self.item()?);
            if !self.takes(",") {
                self.expect("]")?;
                break;
            }
        }
        Ok(items)
    }

    fn item(&mut self) -> Result<Item, String> {
        // Several sizes stand alone, so only the beginning of an item has to be looked at.
        let before = self.words.clone();
        if let Some(name) = self.words.next().filter(|name| self.parameter(name).is_ok())
            && self.takes("[")
        {
            let from = if self.words.peek() == Some(&":") { None } else { Some(self.sum()?) };
            if self.takes(":") {
                let to = if self.words.peek() == Some(&"]") { None } else { Some(self.sum()?) };
                self.expect("]")?;
                return Ok(Item::Several { arg: name.to_owned(), from, to });
            }
        }
        self.words = before;
        Ok(Item::One(self.sum()?))
    }

    fn sum(&mut self) -> Result<Formula, String> {
        let mut sum = self.product()?;
        while let Some(sign) = self.words.next_if(|word| matches!(*word, "+" | "-")) {
            let other = self.product()?;
            sum = Formula::Combined(Box::new(sum), if sign == "+" { '+' } else { '-' }, Box::new(other));
        }
        Ok(sum)
    }

    fn product(&mut self) -> Result<Formula, String> {
        let mut product = self.factor()?;
        while let Some(sign) = self.words.next_if(|word| matches!(*word, "*" | "//")) {
            let other = self.factor()?;
            product = Formula::Combined(Box::new(product), if sign == "*" { '*' } else { '/' }, Box::new(other));
        }
        Ok(product)
    }

    fn factor(&mut self) -> Result<Formula, String> {
        self.depth = self.depth.saturating_add(1);
        if self.depth > DEPTH {
            return Err(format!("more than {DEPTH} parentheses in each other"));
        }
        let word = self.words.next();
        let found = match word {
            Some("(") => {
                let inner = self.sum()?;
                self.expect(")")?;
                inner
            }
            Some("-") => Formula::Combined(Box::new(Formula::Number(0)), '-', Box::new(self.factor()?)),
            Some("rank") if self.takes("(") => {
                let arg = self.tensor()?;
                self.expect(")")?;
                Formula::Rank(arg)
            }
            Some(word) if word.starts_with(|first: char| first.is_ascii_digit()) => {
                Formula::Number(word.parse().map_err(|_| format!("`{word}` is not a number"))?)
            }
            Some(name) if name.starts_with(|first: char| first.is_alphabetic() || first == '_') => {
                let parameter = self.parameter(name)?;
                if self.takes("[") {
                    let index = self.sum()?;
                    self.expect("]")?;
                    Formula::Element(name.to_owned(), Box::new(index))
                } else if is_tensor(parameter) {
                    return Err(format!("`{name}` is a tensor: its sizes are `{name}[0]` and so on"));
                } else {
                    Formula::Argument(name.to_owned())
                }
            }
            other => return Err(format!("{} where a number is expected", shown(other))),
        };
        self.depth = self.depth.saturating_sub(1);
        Ok(found)
    }
}

fn is_tensor(parameter: &Parameter<'_>) -> bool {
    parameter.kind == ArgumentKind::Tensor
}

fn shown(word: Option<&str>) -> String {
    word.map_or("nothing".to_owned(), |word| format!("`{word}`"))
}

/// The words of a rule: names, numbers and signs.
fn words(text: &str) -> Result<Vec<&str>, String> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
        let len = match first {
            _ if is_word(first) => rest.find(|letter| !is_word(letter)).unwrap_or(rest.len()),
            '/' if rest.starts_with("//") => 2,
            '[' | ']' | '(' | ')' | ',' | ':' | '+' | '-' | '*' => 1,
            other => return Err(format!("`{other}` is nothing that rules have")),
        };
        let (word, behind) = rest.split_at_checked(len).ok_or("it breaks off")?;
        words.push(word);
        if words.len() > MOST_WORDS {
            return Err(format!("more than {MOST_WORDS} words"));
        }
        rest = behind.trim_start();
    }
    Ok(words)
}

impl Rule {
    fn result(&self, call: &Call<'_>) -> Option<TensorMeta> {
        let sizes = match &self.shape {
            Shape::Like(arg) => call.tensor(arg)?.sizes.clone(),
            Shape::Broadcast(args) => {
                broadcast(args.iter().filter_map(|arg| call.tensor(arg)).map(|meta| meta.sizes.as_slice()))?
            }
            Shape::Sizes(items) => {
                let mut sizes = Vec::new();
                for item in items {
                    item.push(call, &mut sizes)?;
                }
                sizes
            }
        };
        if sizes.iter().any(|size| size.known().is_some_and(|size| size < 0)) {
            return None;
        }
        let scalar_type = match &self.scalar_type {
            Type::Fixed(scalar_type) => *scalar_type,
            Type::Of(arg) => call.tensor(arg).map(|meta| meta.scalar_type).or_else(|| call.scalar_type(arg))?,
            Type::Promoted(args) => {
                args.iter().fold(Choice::default(), |choice, arg| choice.with(call, arg)).settle()?
            }
        };
        Some(made(scalar_type, &sizes))
    }
}

/// The sizes of a tensor, or the items of a list.
fn list(call: &Call<'_>, arg: &str) -> Option<Vec<Size>> {
    match call.tensor(arg) {
        Some(meta) => Some(meta.sizes.clone()),
        None => call.sizes(arg),
    }
}

impl Item {
    fn push(&self, call: &Call<'_>, sizes: &mut Vec<Size>) -> Option<()> {
        match self {
            Item::One(formula) => sizes.push(formula.value(call)?),
            Item::Several { arg, from, to } => {
                let all = list(call, arg)?;
                let place = |formula: &Option<Formula>, otherwise: usize| match formula {
                    Some(formula) => {
                        let place = formula.value(call)?.known()?;
                        let len = i64::try_from(all.len()).ok()?;
                        let place = if place < 0 { place.saturating_add(len) } else { place };
                        usize::try_from(place.clamp(0, len)).ok()
                    }
                    None => Some(otherwise),
                };
                let (from, to) = (place(from, 0)?, place(to, all.len())?);
                sizes.extend(all.get(from..to.max(from))?.iter().cloned());
            }
        }
        Some(())
    }
}

impl Formula {
    fn value(&self, call: &Call<'_>) -> Option<Size> {
        Some(match self {
            Formula::Number(number) => Size::Known(*number),
            Formula::Argument(arg) => call.size(arg)?,
            Formula::Element(arg, index) => {
                let all = list(call, arg)?;
                all.get(super::dimension(index.value(call)?.known()?, all.len())?)?.clone()
            }
            Formula::Rank(arg) => Size::Known(i64::try_from(call.tensor(arg)?.rank()).ok()?),
            Formula::Combined(a, sign, b) => {
                let (a, b) = (a.value(call)?, b.value(call)?);
                match sign {
                    '+' => a.plus(&b),
                    '-' => a.minus(&b),
                    '*' => a.times(&b),
                    _ if b.known() == Some(0) => return None,
                    _ => a.over(&b),
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Argument, Graph};

    fn infer(rule: &str, sizes: [&[i64]; 2], k: i64) -> Result<Vec<String>, String> {
        let mut operators = Operators::new();
        let returns = if rule.contains(';') { "(Tensor, Tensor)" } else { "Tensor" };
        let text = format!("# ours\nmy::op(Tensor a, Tensor b, int k, ScalarType t) -> {returns}  gives {rule}\n");
        operators.declare(&text).map_err(|error| error.to_string())?;
        let mut graph = Graph::default();
        let meta = |scalar_type, sizes: &[i64]| {
            TensorMeta::contiguous(scalar_type, &sizes.iter().copied().map(Size::Known).collect::<Vec<_>>())
        };
        let a = graph.add_input("a", meta(ScalarType::FLOAT, sizes[0]));
        let b = graph.add_input("b", meta(ScalarType::LONG, sizes[1]));
        let args = [("a", a.into()), ("b", b.into()), ("k", k.into()), ("t", Argument::ScalarType(ScalarType::HALF))];
        let mut node = graph.make("my::op", args, meta(ScalarType::FLOAT, &[]));
        node.outputs.clear();
        let found = operators.infer(&graph, &node).ok_or("nothing is said")?;
        Ok(found.iter().map(|meta| format!("{} {:?}", meta.scalar_type, meta.known_sizes().unwrap())).collect())
    }

    #[test]
    fn rules_say_what_results_look_like() {
        for (rule, wanted) in [
            ("like a", "f32 [2, 3]"),
            ("like b as Bool", "bool [1, 3]"),
            ("broadcast a b", "f32 [2, 3]"),
            ("broadcast a b as b", "i64 [2, 3]"),
            ("sizes []", "f32 []"),
            ("sizes [a[:-1], a[-1] + b[-1]]", "f32 [2, 6]"),
            ("sizes [k, rank(a), (a[0] + 1) * 2 // 4, k - -1] as t", "f16 [5, 2, 1, 6]"),
            ("sizes [a[1:], b[0:1]] as promote b k", "i64 [3, 1]"),
        ] {
            assert_eq!(infer(rule, [&[2, 3], &[1, 3]], 5), Ok(vec![wanted.to_owned()]), "{rule}");
        }
        let two = infer("like a; sizes [k] as Int", [&[2], &[2]], 4).unwrap();
        assert_eq!(two, ["f32 [2]", "i32 [4]"]);
        assert!(infer("sizes [a[0] // k]", [&[2], &[2]], 0).is_err());
        assert!(infer("sizes [a[0] - k]", [&[2], &[2]], 3).is_err());
    }

    #[test]
    fn mistakes_are_named_with_their_lines() {
        for (rule, message) in [
            ("like c", "line 2: my::op has no argument `c`; it has a, b, k, t"),
            ("like k", "line 2: `k` is not a tensor"),
            ("same a", "line 2: a rule begins with `like`, `broadcast` or `sizes`, not with `same`"),
            ("like a as Flaot", "line 2: `Flaot` is neither an element type nor an argument"),
            ("like a; like a; like a", "line 2: 3 rules for 2 results"),
            ("sizes [a]", "line 2: `a` is a tensor: its sizes are `a[0]` and so on"),
            ("sizes [k", "line 2: nothing where `]` is expected"),
            ("sizes [k] k", "line 2: `k` where the rule ends"),
            ("sizes [k ? 2]", "line 2: `?` is nothing that rules have"),
        ] {
            assert_eq!(infer(rule, [&[2], &[2]], 1).unwrap_err(), message);
        }
        let deep = format!("sizes [{}k{}]", "(".repeat(99), ")".repeat(99));
        assert!(infer(&deep, [&[2], &[2]], 1).unwrap_err().contains("32 parentheses"));
        assert!(Operators::new().declare("my::op(Tensor").is_err());
    }
}
