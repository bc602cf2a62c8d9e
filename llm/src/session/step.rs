//! One loaded method of a model: its inputs as bytes, its logits as numbers.

use edgepack_executor::tensor::TensorRef;
use edgepack_executor::{Method, Output, ToInput};
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::{TensorLayout, TensorView};
use half::{bf16, f16};

use crate::error::{Error, reserve};
use crate::model::{EmbeddingForm, Length, Positions, Rank, Rows, StepForm};

/// A method that computes logits.
pub(super) struct Step {
    pub form: StepForm,
    pub method: Method,
    /// Bytes of the first input: tokens, or rows of embeddings.
    input: Vec<u8>,
    positions: Vec<u8>,
}

/// A method that turns tokens into rows of embeddings.
pub(super) struct Embedder {
    pub form: EmbeddingForm,
    pub method: Method,
    input: Vec<u8>,
}

impl Step {
    pub fn new(form: StepForm, method: Method) -> Result<Self, Error> {
        let (mut input, mut positions) = (Vec::new(), Vec::new());
        let row = match form.rank {
            Rank::Tokens => width(form.input),
            Rank::Embeddings { width: elements } => elements.saturating_mul(width(form.input)),
        };
        reserve(&mut input, form.length.most().saturating_mul(row), "the inputs of a step")?;
        let places = if form.positions == Positions::Each { form.length.most() } else { 1 };
        reserve(&mut positions, places.saturating_mul(width(form.position)), "the positions of a step")?;
        Ok(Step { form, method, input, positions })
    }

    /// Puts tokens into the first input. A step of a fixed number is filled up with the first token of the vocabulary.
    pub fn write_tokens<'t>(&mut self, tokens: impl Iterator<Item = &'t u32>) {
        self.input.clear();
        let dtype = self.form.input;
        tokens.for_each(|&token| push_number(&mut self.input, dtype, token as usize));
        if let Length::Exactly(count) = self.form.length {
            (self.input.len() / width(dtype)..count).for_each(|_| push_number(&mut self.input, dtype, 0));
        }
    }

    /// Puts rows of embeddings into the first input.
    pub fn write_rows(&mut self, rows: &[f32]) {
        self.input.clear();
        match self.form.input {
            ScalarType::HALF => {
                rows.iter().for_each(|&x| self.input.extend_from_slice(&f16::from_f32(x).to_le_bytes()))
            }
            ScalarType::BFLOAT16 => {
                rows.iter().for_each(|&x| self.input.extend_from_slice(&bf16::from_f32(x).to_le_bytes()));
            }
            _ => rows.iter().for_each(|x| self.input.extend_from_slice(&x.to_le_bytes())),
        }
    }

    /// Runs on `count` rows that were written, the first of them at position `at`. `logits` are then those of the last row.
    pub fn run(&mut self, at: usize, count: usize, logits: &mut [f32]) -> Result<(), Error> {
        let Step { form, method, input, positions } = self;
        let taken = match form.length {
            Length::Exactly(taken) => taken,
            Length::UpTo(_) => count,
        };
        let rows = match form.rank {
            Rank::Tokens => view(form, form.input, &[1, taken], input)?,
            Rank::Embeddings { width } => view(form, form.input, &[1, taken, width], input)?,
        };
        positions.clear();
        let places = if form.positions == Positions::Each { taken } else { 1 };
        (at..at + places).for_each(|place| push_number(positions, form.position, place));
        let places = view(form, form.position, &[places], positions)?;
        let inputs = [rows.to_input(), places.to_input()];
        let inputs = if form.positions == Positions::Absent { &inputs[..1] } else { &inputs[..] };
        let outputs = method.run(inputs).map_err(|error| Error::run(&form.method, error))?;
        let Some(Output::Tensor(all)) = outputs.get(0) else {
            return Err(Error::form(&form.method, "it returned no logits"));
        };
        let (returned, row) = match (form.rows, all.sizes) {
            (Rows::All, [1, returned, _]) if *returned == taken => (taken, count - 1),
            (Rows::Last, [1, _] | [1, 1, _]) => (1, 0),
            (_, sizes) => {
                return Err(Error::form(
                    &form.method,
                    format!("it returned logits of sizes {sizes:?} for {taken} tokens"),
                ));
            }
        };
        if all.element_count() != returned * form.vocabulary {
            let message =
                format!("it returned {} logits for {returned} tokens of {}", all.element_count(), form.vocabulary);
            return Err(Error::form(&form.method, message));
        }
        copy_row(form, &all, row, logits)
    }

    /// Goes back to the state after loading.
    pub fn reset(&mut self) -> Result<(), Error> {
        self.method.reset().map_err(|error| Error::run(&self.form.method, error))
    }
}

impl Embedder {
    pub fn new(form: EmbeddingForm, method: Method) -> Result<Self, Error> {
        let mut input = Vec::new();
        reserve(&mut input, form.length.most().saturating_mul(width(form.input)), "the inputs of a step")?;
        Ok(Embedder { form, method, input })
    }

    /// Puts the embeddings of these tokens into the first input of a step: at most as many as one call takes.
    pub fn write(&mut self, tokens: &[u32], step: &mut Step) -> Result<(), Error> {
        let Embedder { form, method, input } = self;
        let wrong = |message: String| Error::form(&form.method, message);
        step.input.clear();
        // A method of single tokens is called for each of them.
        let piece = match form.length {
            Length::Exactly(count) => count,
            Length::UpTo(_) => tokens.len(),
        };
        let row = match step.form.rank {
            Rank::Embeddings { width } => width,
            Rank::Tokens => return Err(wrong(format!("`{}` takes tokens", step.form.method))),
        };
        for tokens in tokens.chunks(piece.max(1)) {
            input.clear();
            tokens.iter().for_each(|&token| push_number(input, form.input, token as usize));
            let layout = TensorLayout::contiguous(form.input, &[1, tokens.len()]);
            let tensor =
                layout.and_then(|layout| TensorView::new(layout, input)).map_err(|error| wrong(error.to_string()))?;
            let outputs = method.run(&[tensor]).map_err(|error| Error::run(&form.method, error))?;
            let Some(Output::Tensor(rows)) = outputs.get(0) else {
                return Err(wrong("it returned no embeddings".to_owned()));
            };
            if rows.sizes != [1, tokens.len(), row] || rows.dtype != step.form.input {
                return Err(wrong(format!("it returned {} {:?} for {} tokens", rows.dtype, rows.sizes, tokens.len())));
            }
            step.input.extend_from_slice(rows.bytes());
        }
        Ok(())
    }
}

/// Bytes of one element of this type.
fn width(dtype: ScalarType) -> usize {
    dtype.size().unwrap_or(8)
}

fn push_number(bytes: &mut Vec<u8>, dtype: ScalarType, number: usize) {
    match dtype {
        // Vocabularies and contexts are far below the bound of either type.
        ScalarType::INT => bytes.extend_from_slice(&(number as i32).to_le_bytes()),
        _ => bytes.extend_from_slice(&(number as i64).to_le_bytes()),
    }
}

fn view<'a>(form: &StepForm, dtype: ScalarType, sizes: &[usize], bytes: &'a [u8]) -> Result<TensorView<'a>, Error> {
    let layout = TensorLayout::contiguous(dtype, sizes);
    layout
        .and_then(|layout| TensorView::new(layout, bytes))
        .map_err(|error| Error::form(&form.method, error.to_string()))
}

/// Copies one row of logits, as `f32`.
fn copy_row(form: &StepForm, all: &TensorRef<'_>, row: usize, logits: &mut [f32]) -> Result<(), Error> {
    let range = row * form.vocabulary..(row + 1) * form.vocabulary;
    let wrong = |error: edgepack_executor::kernel::KernelError| Error::form(&form.method, error.to_string());
    match all.dtype {
        ScalarType::HALF => {
            let from = &all.as_slice::<f16>().map_err(wrong)?[range];
            logits.iter_mut().zip(from).for_each(|(to, from)| *to = from.to_f32());
        }
        ScalarType::BFLOAT16 => {
            let from = &all.as_slice::<bf16>().map_err(wrong)?[range];
            logits.iter_mut().zip(from).for_each(|(to, from)| *to = from.to_f32());
        }
        ScalarType::DOUBLE => {
            let from = &all.as_slice::<f64>().map_err(wrong)?[range];
            logits.iter_mut().zip(from).for_each(|(to, from)| *to = *from as f32);
        }
        _ => logits.copy_from_slice(&all.as_slice::<f32>().map_err(wrong)?[range]),
    }
    Ok(())
}
