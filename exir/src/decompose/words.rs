//! Evaluation of the terms of formulas: literals are computed now, tensors by calls that are written.
//!
//! Words in addition to the operators of the library:
//!
//! - `if(C, A, B)` is decided now; `has(x)` says whether an argument was given;
//! - `where(C, A, B)` chooses element by element, numbers become tensors of the other's type;
//! - `sum`, `mean`, `amax`, `amin` take `(x, dims, keep)`; `dims(x)` are all dimensions, `rank(x)`, `size(x, d)`,
//!   `count(x)` numbers;
//! - `reduce(x, reduction)` is what losses do at the end;
//! - `min`, `max`, `pow`, `not` accept numbers and tensors;
//! - `cast(x, like)`, `float(x)`, `fill(number, like)`, `scalar(number, like)`, `view(x, sizes)`, `expand(x, like)`,
//!   `along(x, d, like)`: one dimension as dimension `d` of `like`, `but(x, d)`: all dimensions but one, `arange(n)`, `zeros(i)`: zeros of the form of the recorded result `i`; `recorded(i)` are its sizes.

use edgepack_format::operators::Schema;
use edgepack_format::scalar::ScalarType;

use super::Composite;
use super::formula::{Infix, Local, Term};
use super::literal::{literal, number_of};
use super::maker::Maker;
use crate::error::Error;
use crate::graph::{Argument, ListKind, Size, ValueId};

/// In which types a formula computes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Types {
    /// Tensors of whole numbers and of short floats become floats of 32 bits, results the recorded type.
    Floats,
    /// The same, but whole numbers stay.
    WideFloats,
    /// As they come.
    AsGiven,
}

/// Computes the terms of one formula.
pub(super) struct Evaluator<'e, 'm, 'c> {
    make: &'e mut Maker<'m>,
    node: &'e Composite<'c>,
    types: Types,
    bound: Vec<(String, Argument)>,
    /// Locals that nothing has read yet.
    pending: Vec<Local>,
}

type Found = Result<Argument, Error>;

impl<'e, 'm, 'c> Evaluator<'e, 'm, 'c> {
    pub(super) fn new(
        make: &'e mut Maker<'m>,
        node: &'e Composite<'c>,
        types: Types,
        pending: Vec<Local>,
    ) -> Result<Self, Error> {
        let mut evaluator = Evaluator { make, node, types, bound: Vec::new(), pending };
        for (name, argument) in &node.arguments {
            let argument = match argument {
                Argument::Value(value) if evaluator.make.graph.tensor(*value).is_some() => {
                    evaluator.computed(*value)?.into()
                }
                other => other.clone(),
            };
            evaluator.bound.push((name.clone(), argument));
        }
        Ok(evaluator)
    }

    /// A tensor in the type that the formula computes in.
    fn computed(&mut self, value: ValueId) -> Result<ValueId, Error> {
        let scalar_type = self.make.meta(value)?.scalar_type;
        let short = matches!(scalar_type, ScalarType::HALF | ScalarType::BFLOAT16);
        let whole = !scalar_type.is_floating() && !scalar_type.is_complex();
        match self.types {
            Types::Floats if short || whole => self.make.cast(value, ScalarType::FLOAT),
            Types::WideFloats if short => self.make.cast(value, ScalarType::FLOAT),
            _ => Ok(value),
        }
    }

    /// Computes the local of this name.
    fn local(&mut self, name: &str) -> Result<(), Error> {
        let at = self.pending.iter().position(|(names, _)| names.iter().any(|known| known == name));
        let (names, term) = self.pending.remove(at.ok_or_else(|| self.wrong(name))?);
        let values = self.values(&term)?;
        if values.len() < names.len() {
            return Err(self.make.error(format!("{names:?} stand for {} values", values.len())));
        }
        self.bound.extend(names.into_iter().zip(values));
        Ok(())
    }

    /// The values of the last terms, in the types that were recorded.
    pub(super) fn results(&mut self, terms: &[Term]) -> Result<Vec<Argument>, Error> {
        let mut found = Vec::new();
        for term in terms {
            found.extend(self.values(term)?);
        }
        if self.types == Types::AsGiven {
            return Ok(found);
        }
        for (result, recorded) in found.iter_mut().zip(self.node.node.results()) {
            if let (Some(value), Some(meta)) = (result.value(), self.make.graph.tensor(recorded)) {
                let wanted = meta.scalar_type;
                *result = self.make.cast(value, wanted)?.into();
            }
        }
        Ok(found)
    }

    /// The values of a term: several where it is a call with several results.
    pub(super) fn values(&mut self, term: &Term) -> Result<Vec<Argument>, Error> {
        match term {
            Term::Call(name, terms, named) if name != "if" && !WORDS.contains(&name.as_str()) => {
                let mut given = Vec::with_capacity(terms.len());
                for term in terms {
                    given.push(self.value(term)?);
                }
                let mut by_name = Vec::with_capacity(named.len());
                for (name, term) in named {
                    by_name.push((name.clone(), self.value(term)?));
                }
                let values = self.operator(name, given, by_name)?;
                Ok(values.into_iter().map(Argument::Value).collect())
            }
            _ => Ok(vec![self.value(term)?]),
        }
    }

    fn value(&mut self, term: &Term) -> Found {
        Ok(match term {
            Term::Int(number) => Argument::Int(*number),
            Term::Float(number) => Argument::Float(*number),
            Term::Text(text) => Argument::Text(text.clone()),
            Term::Name(name) => self.named(name)?,
            Term::List(terms) => {
                let mut items = Vec::with_capacity(terms.len());
                for term in terms {
                    items.push(self.value(term)?);
                }
                let tensors = items.iter().any(|item| self.tensor(item).is_some());
                let floats = items.iter().any(|item| matches!(item, Argument::Float(_)));
                let kind = match (tensors, floats) {
                    (true, _) if items.contains(&Argument::None) => ListKind::OptionalTensors,
                    (true, _) => ListKind::Tensors,
                    (_, true) => ListKind::Floats,
                    _ => ListKind::Ints,
                };
                Argument::List(kind, items)
            }
            Term::Call(name, terms, _) if name == "if" => {
                let [condition, yes, no] = terms.as_slice() else { return Err(self.wrong(name)) };
                let chosen = match self.value(condition)? {
                    Argument::Bool(true) => yes,
                    Argument::Bool(false) => no,
                    _ => return Err(self.wrong(name)),
                };
                self.value(chosen)?
            }
            Term::Call(name, terms, _) if WORDS.contains(&name.as_str()) => {
                let mut given = Vec::with_capacity(terms.len());
                for term in terms {
                    given.push(self.value(term)?);
                }
                self.word(name, &given)?
            }
            Term::Call(name, ..) => {
                let first = self.values(term)?.into_iter().next();
                first.ok_or_else(|| self.wrong(name))?
            }
            Term::Infix(infix, left, right) => {
                let (left, right) = (self.value(left)?, self.value(right)?);
                self.infix(*infix, left, right)?
            }
        })
    }

    fn named(&mut self, name: &str) -> Found {
        Ok(match name {
            "none" => Argument::None,
            "true" => Argument::Bool(true),
            "false" => Argument::Bool(false),
            "inf" => Argument::Float(f64::INFINITY),
            "nan" => Argument::Float(f64::NAN),
            "pi" => Argument::Float(std::f64::consts::PI),
            _ => {
                if !self.bound.iter().any(|(known, _)| known == name) {
                    self.local(name)?;
                }
                let found = self.bound.iter().find(|(known, _)| known == name);
                found.map(|(_, value)| value.clone()).ok_or_else(|| self.wrong(name))?
            }
        })
    }

    fn tensor(&self, argument: &Argument) -> Option<ValueId> {
        argument.value().filter(|value| self.make.graph.tensor(*value).is_some())
    }

    fn wrong(&self, what: &str) -> Error {
        self.make.error(format!("`{what}` of {} is something its formula has no form for", self.node.node.target))
    }

    /// A call of an operator of the library.
    fn operator(
        &mut self,
        name: &str,
        given: Vec<Argument>,
        by_name: Vec<(String, Argument)>,
    ) -> Result<Vec<ValueId>, Error> {
        let full_name = format!("aten::{name}");
        let text = self.make.operators.text(&full_name).map(str::to_owned).ok_or_else(|| self.wrong(name))?;
        let schema = Schema::parse(&text).map_err(|error| Error::program(&text, error.to_string()))?;
        let positional = schema.args().iter().map(|parameter| parameter.name.to_owned()).zip(given);
        let args = positional.chain(by_name).collect();
        self.make.calls_with(name, args)
    }

    fn infix(&mut self, infix: Infix, left: Argument, right: Argument) -> Found {
        let tensors = (self.tensor(&left), self.tensor(&right));
        let (name, mirrored) = match infix {
            Infix::Or => ("logical_or", "logical_or"),
            Infix::And => ("logical_and", "logical_and"),
            Infix::Less => ("lt", "gt"),
            Infix::LessEqual => ("le", "ge"),
            Infix::Greater => ("gt", "lt"),
            Infix::GreaterEqual => ("ge", "le"),
            Infix::Equal => ("eq", "eq"),
            Infix::NotEqual => ("ne", "ne"),
            Infix::Plus => ("add.Tensor", "add.Tensor"),
            Infix::Minus => ("sub.Tensor", ""),
            Infix::Times => ("mul.Tensor", "mul.Tensor"),
            Infix::Over => ("div.Tensor", ""),
        };
        let compared =
            !matches!(infix, Infix::Or | Infix::And | Infix::Plus | Infix::Minus | Infix::Times | Infix::Over);
        let overload = |name: &str, number: bool| match (compared, number) {
            (true, true) => format!("{name}.Scalar"),
            (true, false) => format!("{name}.Tensor"),
            _ => name.to_owned(),
        };
        Ok(match tensors {
            (None, None) => literal(infix, &left, &right).ok_or_else(|| self.wrong(name))?,
            (Some(a), Some(b)) => self.make.binary(&overload(name, false), a, b)?.into(),
            (Some(a), None) => self.make.binary(&overload(name, true), a, right)?.into(),
            (None, Some(b)) if !mirrored.is_empty() => self.make.binary(&overload(mirrored, true), b, left)?.into(),
            (None, Some(b)) => {
                let scalar_type = self.make.meta(b)?.scalar_type;
                let a = self.make.scalar(left, scalar_type)?;
                self.make.binary(name, a, b)?.into()
            }
        })
    }

    fn word(&mut self, name: &str, given: &[Argument]) -> Found {
        let tensors: Vec<Option<ValueId>> = given.iter().map(|argument| self.tensor(argument)).collect();
        let dims = |argument: Option<&Argument>| argument.and_then(Argument::as_ints).unwrap_or_default();
        let keep = given.get(2) == Some(&Argument::Bool(true));
        Ok(match (name, given, tensors.as_slice()) {
            ("has", [argument], _) => Argument::Bool(*argument != Argument::None),
            ("not", [Argument::Bool(truth)], _) => Argument::Bool(!truth),
            ("not", _, [Some(x)]) => self.make.unary("logical_not", *x)?.into(),
            ("is_float", _, [Some(x)]) => Argument::Bool(self.make.meta(*x)?.scalar_type.is_floating()),
            ("is_bool", _, [Some(x)]) => Argument::Bool(self.make.meta(*x)?.scalar_type == ScalarType::BOOL),
            ("is_complex", _, [Some(x)]) => Argument::Bool(self.make.meta(*x)?.scalar_type.is_complex()),
            ("is_tensor", [_], [found]) => Argument::Bool(found.is_some()),
            ("int", [Argument::Float(number)], _) => Argument::Int(*number as i64),
            ("floor", [Argument::Int(number)], _) => Argument::Int(*number),
            ("sqrt", [number], [None]) => match number_of(number) {
                Some(number) => Argument::Float(number.sqrt()),
                None => return Err(self.wrong(name)),
            },
            ("log", [number], [None]) => match number_of(number) {
                Some(number) => Argument::Float(number.ln()),
                None => return Err(self.wrong(name)),
            },
            ("sqrt" | "log" | "floor" | "neg", _, [Some(x)]) => self.make.unary(name, *x)?.into(),
            ("rank", _, [Some(x)]) => Argument::Int(i64::try_from(self.make.rank(*x)?).unwrap_or(0)),
            ("dims", _, [Some(x)]) => Argument::ints(0..i64::try_from(self.make.rank(*x)?).unwrap_or(0)),
            ("but", [_, Argument::Int(dim)], [Some(x), _]) => {
                let rank = self.make.rank(*x)?;
                let left_out = self.make.dim(*dim, rank)?;
                let dims = (0..rank).filter(|dim| *dim != left_out).filter_map(|dim| i64::try_from(dim).ok());
                Argument::ints(dims)
            }
            ("along", [_, Argument::Int(dim), _], [Some(x), _, Some(like)]) => {
                let mut sizes = vec![Size::Known(1); self.make.rank(*like)?];
                let at = self.make.dim(*dim, sizes.len())?;
                if let Some(size) = sizes.get_mut(at) {
                    *size = self.make.size(*x, 0)?;
                }
                self.make.view(*x, &sizes)?.into()
            }
            ("size", [_, dim], [Some(x), _]) => {
                let size = self.make.size(*x, dim.as_int().ok_or_else(|| self.wrong(name))?)?;
                self.make.size_arg(&size)?
            }
            ("sizes", _, [Some(x)]) => {
                let sizes = self.make.sizes(*x)?;
                self.make.size_args(&sizes)?
            }
            ("count", _, [Some(x)]) => {
                let size = Size::product(&self.make.sizes(*x)?);
                self.make.size_arg(&size)?
            }
            ("recorded", [Argument::Int(at)], _) => {
                let sizes = self.recorded(*at)?.1;
                self.make.size_args(&sizes)?
            }
            ("zeros", [Argument::Int(at)], _) => {
                let (scalar_type, sizes) = self.recorded(*at)?;
                self.make.full(&sizes, Argument::Int(0), scalar_type)?.into()
            }
            ("item", [Argument::List(_, items), Argument::Int(at)], _) => {
                let item = usize::try_from(*at).ok().and_then(|at| items.get(at));
                item.cloned().ok_or_else(|| self.wrong(name))?
            }
            ("where", [_, yes, no], [Some(condition), a, b]) => {
                let scalar_type = match (a, b) {
                    (Some(a), _) => self.make.meta(*a)?.scalar_type,
                    (None, Some(b)) => self.make.meta(*b)?.scalar_type,
                    _ => ScalarType::FLOAT,
                };
                let mut side = |value: &Option<ValueId>, number: &Argument| match value {
                    Some(value) => Ok(*value),
                    None => self.make.scalar(number.clone(), scalar_type),
                };
                let (yes, no) = (side(a, yes)?, side(b, no)?);
                self.make.choose(*condition, yes, no)?.into()
            }
            ("sum", [_, rest @ ..], [Some(x), ..]) => self.make.sum(*x, &dims(rest.first()), keep)?.into(),
            ("mean", [_, rest @ ..], [Some(x), ..]) => self.make.mean(*x, &dims(rest.first()), keep)?.into(),
            ("amax" | "amin", [_, rest @ ..], [Some(x), ..]) => {
                let dim = Argument::ints(dims(rest.first()));
                self.make.call(name, [("self", (*x).into()), ("dim", dim), ("keepdim", keep.into())])?.into()
            }
            ("reduce", [_, Argument::Int(reduction)], [Some(x), _]) => {
                let all: Vec<i64> = (0..i64::try_from(self.make.rank(*x)?).unwrap_or(0)).collect();
                match reduction {
                    0 => *x,
                    1 => self.make.mean(*x, &all, false)?,
                    _ => self.make.sum(*x, &all, false)?,
                }
                .into()
            }
            ("min" | "max", [a, b], [None, None]) => {
                let (Some(first), Some(second)) = (number_of(a), number_of(b)) else { return Err(self.wrong(name)) };
                if (first < second) == (name == "min") { a.clone() } else { b.clone() }
            }
            ("min" | "max", [a, b], [first, second]) => {
                let core = if name == "min" { "minimum" } else { "maximum" };
                match (first, second) {
                    (Some(first), _) => self.make.binary(core, *first, b.clone())?.into(),
                    (None, Some(second)) => self.make.binary(core, *second, a.clone())?.into(),
                    _ => return Err(self.wrong(name)),
                }
            }
            ("pow", [a, b], [first, second]) => {
                let core = match (first, second) {
                    (Some(_), Some(_)) => "pow.Tensor_Tensor",
                    (Some(_), None) => "pow.Tensor_Scalar",
                    (None, Some(_)) => "pow.Scalar",
                    (None, None) => {
                        let (Some(a), Some(b)) = (number_of(a), number_of(b)) else { return Err(self.wrong(name)) };
                        return Ok(Argument::Float(a.powf(b)));
                    }
                };
                self.make.call(core, [("self", a.clone()), ("exponent", b.clone())])?.into()
            }
            ("cast", [_, Argument::ScalarType(wanted)], [Some(x), _]) => self.make.cast(*x, *wanted)?.into(),
            ("cast", [_, Argument::None], [Some(x), _]) => (*x).into(),
            ("cast", _, [Some(x), Some(like)]) => {
                let wanted = self.make.meta(*like)?.scalar_type;
                self.make.cast(*x, wanted)?.into()
            }
            ("float", _, [Some(x)]) => {
                let floating = self.make.meta(*x)?.scalar_type;
                let floating = floating.is_floating() || floating.is_complex();
                if floating { *x } else { self.make.cast(*x, ScalarType::FLOAT)? }.into()
            }
            ("double" | "long" | "truth", _, [Some(x)]) => {
                let wanted = match name {
                    "double" => ScalarType::DOUBLE,
                    "long" => ScalarType::LONG,
                    _ => ScalarType::BOOL,
                };
                self.make.cast(*x, wanted)?.into()
            }
            ("fill", [number, _], [None, Some(like)]) => {
                let meta = self.make.meta(*like)?;
                self.make.full(&meta.sizes, number.clone(), meta.scalar_type)?.into()
            }
            ("scalar", [number, _], [None, Some(like)]) => {
                let scalar_type = self.make.meta(*like)?.scalar_type;
                self.make.scalar(number.clone(), scalar_type)?.into()
            }
            ("view", [_, sizes], [Some(x), _]) => {
                self.make.call("view", [("self", (*x).into()), ("size", sizes.clone())])?.into()
            }
            ("expand", _, [Some(x), Some(like)]) => {
                let sizes = self.make.sizes(*like)?;
                self.make.expand(*x, &sizes)?.into()
            }
            ("flat", _, [Some(x)]) => {
                let all = Size::product(&self.make.sizes(*x)?);
                self.make.view(*x, &[all])?.into()
            }
            ("arange", [len], _) => {
                let dtype = Argument::ScalarType(ScalarType::LONG);
                let args = [("start", Argument::Int(0)), ("end", len.clone()), ("dtype", dtype)];
                self.make.call("arange.start_step", args)?.into()
            }
            ("neg", [Argument::Int(number)], _) => Argument::Int(number.saturating_neg()),
            ("neg", [Argument::Float(number)], _) => Argument::Float(-number),
            ("matmul", _, [Some(a), Some(b)]) => super::products::matmul(self.make, *a, *b)?.into(),
            ("squeeze", [_, dims], [Some(x), _]) => self.make.squeeze(*x, &dims.as_ints().unwrap_or_default())?.into(),
            _ => return Err(self.wrong(name)),
        })
    }

    /// The type and the sizes of a recorded result.
    fn recorded(&self, at: i64) -> Result<(ScalarType, Vec<Size>), Error> {
        let results = self.node.node.results();
        let result = usize::try_from(at).ok().and_then(|at| results.get(at)).ok_or_else(|| self.wrong("result"))?;
        let meta = self.make.meta(*result)?;
        Ok((meta.scalar_type, meta.sizes))
    }
}

/// Words in addition to the operators of the library; see the head of this file.
const WORDS: [&str; 43] = [
    "neg",
    "has",
    "not",
    "is_float",
    "is_bool",
    "is_complex",
    "is_tensor",
    "int",
    "floor",
    "sqrt",
    "log",
    "rank",
    "dims",
    "size",
    "sizes",
    "count",
    "recorded",
    "zeros",
    "item",
    "where",
    "sum",
    "mean",
    "amax",
    "amin",
    "reduce",
    "min",
    "max",
    "pow",
    "cast",
    "float",
    "double",
    "long",
    "truth",
    "fill",
    "scalar",
    "view",
    "expand",
    "flat",
    "arange",
    "matmul",
    "squeeze",
    "but",
    "along",
];
