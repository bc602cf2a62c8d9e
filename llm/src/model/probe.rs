//! Whether tokens after a position change its logits: a trial, made once for programs whose calls are always filled up.

use edgepack_executor::{Input, Method};
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::{TensorLayout, TensorView};

use crate::error::Error;
use crate::model::form::{Length, StepForm};

/// Refuses a step of a fixed number of tokens whose logits depend on tokens behind them: filling up would change results.
/// Two texts that differ in their second half have to give the same logits, bit for bit, in the first.
pub(super) fn check_padding(form: &StepForm, method: &mut Method) -> Result<(), Error> {
    let Length::Exactly(count) = form.length else { return Ok(()) };
    if count < 2 {
        return Ok(());
    }
    let common = count / 2;
    let text = |end: usize| (0..count).map(move |at| if at < common { at % form.vocabulary } else { end });
    let first = rows(form, method, count, common, text(0))?;
    let second = rows(form, method, count, common, text(form.vocabulary - 1))?;
    if first == second {
        return Ok(());
    }
    let message =
        format!("every call takes {count} tokens, and those that would fill it up change the logits before them");
    Err(Error::form(&form.method, message))
}

/// Bytes of the logits of the first `common` of `count` tokens.
fn rows(
    form: &StepForm,
    method: &mut Method,
    count: usize,
    common: usize,
    text: impl Iterator<Item = usize>,
) -> Result<Vec<u8>, Error> {
    let wrong = |message: String| Error::form(&form.method, message);
    let mut bytes = Vec::new();
    for token in text {
        match form.input {
            ScalarType::INT => bytes.extend_from_slice(&(token as i32).to_le_bytes()),
            _ => bytes.extend_from_slice(&(token as i64).to_le_bytes()),
        }
    }
    let layout = TensorLayout::contiguous(form.input, &[1, count]).map_err(|error| wrong(error.to_string()))?;
    let view = TensorView::new(layout, &bytes).map_err(|error| wrong(error.to_string()))?;
    let outputs = method.run(&[Input::Tensor(view)]).map_err(|error| Error::run(&form.method, error))?;
    let logits = outputs.get(0).and_then(|output| output.tensor());
    let logits = logits.filter(|logits| logits.sizes == [1, count, form.vocabulary]);
    let logits = logits.ok_or_else(|| wrong("it returned logits of other sizes than it states".to_owned()))?;
    Ok(logits.bytes()[..logits.bytes().len() / count * common].to_vec())
}
