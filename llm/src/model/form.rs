//! Forms of the methods of language models, found out from their inputs and outputs.

use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::is_contiguous;
use edgepack_loader::{MethodMeta, TensorSignature, ValueMeta};

use crate::error::Error;

/// Number of tokens that one call takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Length {
    /// This many.
    Exactly(usize),
    /// One up to this many.
    UpTo(usize),
}

impl Length {
    /// The most tokens of one call.
    pub fn most(self) -> usize {
        match self {
            Length::Exactly(most) | Length::UpTo(most) => most,
        }
    }

    /// Returns the number of tokens that one call can take of `remaining` ones, if it can take any.
    pub(crate) fn of(self, remaining: usize) -> Option<usize> {
        match self {
            Length::Exactly(count) if remaining >= count => Some(count),
            Length::Exactly(_) => None,
            Length::UpTo(most) => Some(remaining.min(most)),
        }
    }
}

/// Positions that one call is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Positions {
    /// None: every call starts at the beginning.
    Absent,
    /// That of the first token, `[1]`.
    First,
    /// That of every token, `[n]`.
    Each,
}

/// Positions for which one call returns logits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rows {
    /// All, `[1, n, vocabulary]`.
    All,
    /// The last one, `[1, vocabulary]` or `[1, 1, vocabulary]`.
    Last,
}

/// Kind of the rows that go in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rank {
    /// Tokens, `[1, n]`.
    Tokens,
    /// Embeddings, `[1, n, width]`.
    Embeddings {
        /// Elements of one row.
        width: usize,
    },
}

/// Form of a method that computes logits of the next token.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StepForm {
    /// Name of the method.
    pub method: String,
    /// Number of tokens per call.
    pub length: Length,
    /// Kind of the first input.
    pub rank: Rank,
    /// Element type of the first input.
    pub input: ScalarType,
    /// Positions it takes.
    pub positions: Positions,
    /// Element type of the positions, LONG if there are none.
    pub position: ScalarType,
    /// Positions it returns logits for.
    pub rows: Rows,
    /// Tokens in the vocabulary: elements of one row of logits.
    pub vocabulary: usize,
}

/// Form of a method that turns tokens into embeddings.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EmbeddingForm {
    /// Name of the method.
    pub method: String,
    /// Number of tokens per call.
    pub length: Length,
    /// Element type of the tokens.
    pub input: ScalarType,
}

const FLOATS: [ScalarType; 4] = [ScalarType::FLOAT, ScalarType::HALF, ScalarType::BFLOAT16, ScalarType::DOUBLE];
const INTEGERS: [ScalarType; 2] = [ScalarType::LONG, ScalarType::INT];

/// Reads one method's tensors, and says by name what does not fit.
struct Reader<'m> {
    meta: &'m MethodMeta,
}

impl<'m> Reader<'m> {
    fn wrong<T>(&self, message: String) -> Result<T, Error> {
        Err(Error::form(&self.meta.name, message))
    }

    fn tensor(&self, value: &'m ValueMeta, what: &str, dtypes: &[ScalarType]) -> Result<&'m TensorSignature, Error> {
        let Some(tensor) = value.tensor() else {
            return self.wrong(format!("{what} is not a tensor"));
        };
        let dtype = tensor.layout.scalar_type();
        if !dtypes.contains(&dtype) {
            let names: Vec<String> = dtypes.iter().map(ScalarType::to_string).collect();
            return self.wrong(format!("{what} is {dtype}, but a language model has {} there", names.join(" or ")));
        }
        if !is_contiguous(tensor.layout.dim_order()) {
            return self.wrong(format!("{what} has the order of dimensions {:?}", tensor.layout.dim_order()));
        }
        Ok(tensor)
    }

    fn length(&self, tensor: &TensorSignature, most: usize) -> Result<Length, Error> {
        match (most, tensor.dynamic) {
            (0, _) => self.wrong("it takes no tokens at all".to_owned()),
            (most, true) => Ok(Length::UpTo(most)),
            (most, false) => Ok(Length::Exactly(most)),
        }
    }

    fn tokens(&self) -> Result<(&'m TensorSignature, Length), Error> {
        let tokens = self.tensor(&self.meta.inputs[0], "the first input", &INTEGERS)?;
        match *tokens.layout.sizes() {
            [1, most] => Ok((tokens, self.length(tokens, most)?)),
            ref sizes => self.wrong(format!("the first input has sizes {sizes:?}, tokens are [1, n]")),
        }
    }
}

impl StepForm {
    /// The form of a step; `rank` tells whether it takes embeddings.
    pub(super) fn of(meta: &MethodMeta, embeddings: bool) -> Result<Self, Error> {
        let reader = Reader { meta };
        if !matches!(meta.inputs.len(), 1 | 2) {
            let message =
                format!("it takes {} inputs, a step takes tokens and at most their positions", meta.inputs.len());
            return reader.wrong(message);
        }
        let [logits] = meta.outputs.as_slice() else {
            return reader.wrong(format!("it returns {} values, a step returns logits alone", meta.outputs.len()));
        };
        let (rows, rank, length) = if embeddings {
            let rows = reader.tensor(&meta.inputs[0], "the first input", &FLOATS[..3])?;
            match *rows.layout.sizes() {
                [1, most, width] if width > 0 => (rows, Rank::Embeddings { width }, reader.length(rows, most)?),
                ref sizes => {
                    return reader.wrong(format!("the first input has sizes {sizes:?}, embeddings are [1, n, width]"));
                }
            }
        } else {
            let (tokens, length) = reader.tokens()?;
            (tokens, Rank::Tokens, length)
        };
        let (positions, position) = match meta.inputs.get(1) {
            None => (Positions::Absent, ScalarType::LONG),
            Some(value) => {
                let tensor = reader.tensor(value, "the second input", &INTEGERS)?;
                let positions = match *tensor.layout.sizes() {
                    [1] => Positions::First,
                    [count] if count == length.most() && tensor.dynamic == rows.dynamic => Positions::Each,
                    ref sizes => {
                        let most = length.most();
                        return reader
                            .wrong(format!("the second input has sizes {sizes:?}, positions are [1] or [{most}]"));
                    }
                };
                (positions, tensor.layout.scalar_type())
            }
        };
        let logits = reader.tensor(logits, "the output", &FLOATS)?;
        let (returned, vocabulary) = match *logits.layout.sizes() {
            [1, vocabulary] => (Rows::Last, vocabulary),
            [1, 1, vocabulary] => (Rows::Last, vocabulary),
            [1, count, vocabulary] if count == length.most() => (Rows::All, vocabulary),
            ref sizes => {
                let most = length.most();
                let message = format!("the output has sizes {sizes:?}, logits are [1, {most}, n] or [1, n]");
                return reader.wrong(message);
            }
        };
        if !(1..=i32::MAX as usize).contains(&vocabulary) {
            return reader.wrong(format!("a vocabulary of {vocabulary} tokens"));
        }
        Ok(StepForm {
            method: meta.name.clone(),
            length,
            rank,
            input: rows.layout.scalar_type(),
            positions,
            position,
            rows: returned,
            vocabulary,
        })
    }
}

impl EmbeddingForm {
    /// The form of a method whose rows a step of this form takes.
    pub(super) fn of(meta: &MethodMeta, step: &StepForm) -> Result<Self, Error> {
        let reader = Reader { meta };
        let ([_], [rows]) = (meta.inputs.as_slice(), meta.outputs.as_slice()) else {
            let (inputs, outputs) = (meta.inputs.len(), meta.outputs.len());
            return reader.wrong(format!("it takes {inputs} and returns {outputs} values, tokens become embeddings"));
        };
        let (tokens, length) = reader.tokens()?;
        let rows = reader.tensor(rows, "the output", &[step.input])?;
        let Rank::Embeddings { width } = step.rank else {
            return reader.wrong(format!("`{}` takes tokens", step.method));
        };
        if rows.layout.sizes() != [1, length.most(), width] {
            let sizes = rows.layout.sizes();
            let most = length.most();
            return reader
                .wrong(format!("the output has sizes {sizes:?}, `{}` takes [1, {most}, {width}]", step.method));
        }
        Ok(EmbeddingForm { method: meta.name.clone(), length, input: tokens.layout.scalar_type() })
    }
}
