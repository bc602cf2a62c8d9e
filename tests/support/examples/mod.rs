//! Calls of operators as lines of text: `tests/data/operators/examples.txt`, which says what the lines mean.
//!
//! An example is one call with a type left open. Invariant: [`all`] yields only lines that were read whole; what cannot be
//! read ends the test with the line's number.

mod parse;
mod program;
mod tensors;

use edgepack_executor::call::{Arg, OwnedTensor, call, call_scalar};
use edgepack_executor::kernel::{KernelError, Operator};
use edgepack_executor::tensor::Scalar;
use edgepack_format::operators::{ArgumentKind, Schema, Trailing};
use edgepack_format::scalar::ScalarType;

pub use parse::all;
pub use program::program;
pub use tensors::{DTYPES, close, dtype_name, logical, numbers, ordered, tolerance};

/// A call with a type left open.
#[derive(Clone, Debug)]
pub struct Example {
    /// Number of its line in the file of examples, from 1.
    pub line: usize,
    /// The heading above it.
    pub library: String,
    /// Name of the operator.
    pub name: String,
    arguments: Vec<Token>,
    outs: Vec<Token>,
}

#[derive(Clone, Debug)]
enum Token {
    None,
    Int(i64),
    Double(f64),
    Bool(bool),
    Text(String),
    /// The number of the open type.
    Type,
    List(Vec<String>),
    Tensor(Pattern),
    Tensors(Vec<Option<Pattern>>),
    /// A number that the operator answers with; holds its value before the call.
    Number(Scalar),
}

/// A tensor with a type that may be open.
#[derive(Clone, Debug)]
struct Pattern {
    open: Open,
    sizes: Vec<usize>,
    values: Values,
}

#[derive(Clone, Debug)]
enum Values {
    Small,
    NotZero,
    These(Vec<f64>),
}

#[derive(Clone, Copy, Debug)]
enum Open {
    Is(ScalarType),
    Tried,
    Sum,
    Quotient,
    Complex,
    Real,
}

/// Result of a call.
#[derive(Clone, PartialEq, Debug)]
pub enum Answer {
    /// The tensors it wrote.
    Tensors(Vec<OwnedTensor>),
    /// The number it computed.
    Number(Scalar),
}

impl Open {
    /// The type that it resolves to when an operator is tried with `dtype`, if there is one.
    fn resolve(self, dtype: ScalarType) -> Option<ScalarType> {
        use ScalarType as S;
        let whole = dtype.is_integral() || dtype == S::BOOL;
        Some(match self {
            Open::Is(fixed) => fixed,
            Open::Tried => dtype,
            Open::Sum if whole => S::LONG,
            Open::Quotient if whole => S::FLOAT,
            Open::Sum | Open::Quotient => dtype,
            Open::Complex => match dtype {
                S::HALF => S::COMPLEX_HALF,
                S::FLOAT => S::COMPLEX_FLOAT,
                S::DOUBLE => S::COMPLEX_DOUBLE,
                _ => return None,
            },
            Open::Real => match dtype {
                S::COMPLEX_HALF => S::HALF,
                S::COMPLEX_FLOAT => S::FLOAT,
                S::COMPLEX_DOUBLE => S::DOUBLE,
                _ => return None,
            },
        })
    }
}

impl Pattern {
    fn tensor(&self, dtype: ScalarType, seed: usize) -> Option<OwnedTensor> {
        let count: usize = self.sizes.iter().product();
        let values = match &self.values {
            Values::These(values) => values.clone(),
            Values::Small => tensors::small(count, seed, 0),
            Values::NotZero => tensors::small(count, seed, 1),
        };
        Some(tensors::tensor(self.open.resolve(dtype)?, &self.sizes, &values))
    }
}

impl Example {
    /// Returns whether a type is left open.
    pub fn is_open(&self) -> bool {
        let open = |pattern: &Pattern| !matches!(pattern.open, Open::Is(_));
        self.arguments.iter().chain(&self.outs).any(|token| match token {
            Token::Type => true,
            Token::Tensor(pattern) => open(pattern),
            Token::Tensors(patterns) => patterns.iter().flatten().any(open),
            _ => false,
        })
    }

    /// The arguments of the call, outs last, with this type put in. `None` if the example has no such call.
    pub fn args(&self, schema: &Schema<'_>, dtype: ScalarType) -> Option<Vec<Arg>> {
        let outs = self.outs.iter().filter(|token| !matches!(token, Token::Number(_)));
        let tokens = self.arguments.iter().chain(outs);
        let mut args = Vec::new();
        for (index, token) in tokens.enumerate() {
            let argument = schema.args().get(index);
            args.push(match token {
                Token::None => Arg::None,
                Token::Int(value) => Arg::int(*value),
                Token::Double(value) => Arg::double(*value),
                Token::Bool(value) => Arg::bool(*value),
                Token::Text(text) => Arg::Text(text.clone()),
                Token::Type => Arg::int(dtype.0.into()),
                Token::List(items) => list(items, argument.map(|argument| argument.kind)),
                Token::Tensor(pattern) if argument.is_some_and(|argument| argument.is_out()) => {
                    Arg::out(pattern.open.resolve(dtype)?, &pattern.sizes)
                }
                Token::Tensor(pattern) => Arg::Tensor(pattern.tensor(dtype, self.line + 5 * index)?),
                Token::Tensors(patterns) => {
                    let item = |(item, pattern): (usize, &Option<Pattern>)| match pattern {
                        Some(pattern) => pattern.tensor(dtype, self.line + 5 * index + item).map(Some),
                        None => Some(None),
                    };
                    Arg::Tensors(patterns.iter().enumerate().map(item).collect::<Option<_>>()?)
                }
                Token::Number(_) => return None,
            });
        }
        Some(args)
    }

    /// Calls the operator with these arguments.
    pub fn call(&self, operator: &dyn Operator, schema: &Schema<'_>, args: &[Arg]) -> Result<Answer, KernelError> {
        match self.outs.as_slice() {
            [Token::Number(before)] if schema.trailing() == Trailing::Result => {
                call_scalar(operator, args, *before).map(Answer::Number)
            }
            _ => call(operator, args).map(Answer::Tensors),
        }
    }
}

fn list(items: &[String], kind: Option<ArgumentKind<'_>>) -> Arg {
    match kind {
        Some(ArgumentKind::Float) => Arg::Doubles(items.iter().map(|item| parse::number(item)).collect()),
        Some(ArgumentKind::Bool) => Arg::Bools(items.iter().map(|item| item == "true").collect()),
        _ => Arg::Ints(items.iter().map(|item| parse::number(item) as i64).collect()),
    }
}

/// The text of an operator's schema.
pub fn schema_text(operator: &dyn Operator) -> String {
    format!("{}{}", operator.name(), operator.schema())
}
