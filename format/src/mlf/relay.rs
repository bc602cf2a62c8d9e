//! The text of a model before it was compiled, as far as its signature: arguments of the main function and its result.
//! The functions in it are not looked into.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;

use super::data_type::DataType;
use super::silent::{Silent, said};
use crate::room;

/// Element type and shape.
pub type Tensor = (DataType, Vec<u64>);

/// Argument of a function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Argument {
    /// Name of the argument.
    pub name: String,
    /// Its element type and shape; `None` if it is no tensor of known sizes.
    pub tensor: Option<Tensor>,
}

/// Signature of the main function.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Signature {
    /// Arguments, in order: inputs, and parameters that were constants.
    pub arguments: Vec<Argument>,
    /// Results, if the text says what they are.
    pub results: Option<Vec<Option<Tensor>>>,
}

/// Most arguments that are read.
const MOST: usize = 1 << 16;

/// The signature of the main function of a text; `None` if there is none.
///
/// # Errors
///
/// There is no memory for its arguments and results.
pub fn main_signature(text: &str) -> room::Result<Option<Signature>> {
    said(signature(text))
}

fn signature(text: &str) -> Result<Signature, Silent> {
    let (_, behind) = text.split_once("def @main(").ok_or(Silent::Form)?;
    let mut rest = Rest(behind);
    let mut signature = Signature::default();
    while signature.arguments.len() < MOST {
        rest.skip();
        if rest.take(")") {
            break;
        }
        if !signature.arguments.is_empty() && !rest.take(",") {
            return Err(Silent::Form);
        }
        rest.skip();
        if !rest.take("%") {
            return Err(Silent::Form);
        }
        let (name, behind) = rest.0.split_once(':').ok_or(Silent::Form)?;
        rest.0 = behind;
        let tensor = said(rest.tensor())?;
        rest.skip_type();
        room::push(&mut signature.arguments, Argument { name: name.trim().to_owned(), tensor })?;
    }
    rest.skip();
    if rest.take("->") {
        rest.skip();
        let mut results = Vec::new();
        let is_tuple = rest.take("(");
        loop {
            room::push(&mut results, said(rest.tensor())?)?;
            rest.skip_type();
            rest.skip();
            if !is_tuple || !rest.take(",") || results.len() >= MOST {
                break;
            }
        }
        signature.results = Some(results);
    }
    Ok(signature)
}

/// Text that is still to be read.
struct Rest<'t>(&'t str);

impl Rest<'_> {
    /// Skips blanks and comments.
    fn skip(&mut self) {
        loop {
            self.0 = self.0.trim_start();
            match self.0.strip_prefix("/*").and_then(|inner| inner.split_once("*/")) {
                Some((_, behind)) => self.0 = behind,
                None => return,
            }
        }
    }

    fn take(&mut self, what: &str) -> bool {
        let behind = self.0.strip_prefix(what);
        self.0 = behind.unwrap_or(self.0);
        behind.is_some()
    }

    /// Reads `Tensor[(1, 2), float32]`, or `float32` for one element.
    fn tensor(&mut self) -> Result<Tensor, Silent> {
        self.skip();
        if !self.take("Tensor[(") {
            return self.scalar().map(|data_type| (data_type, Vec::new())).ok_or(Silent::Form);
        }
        let (shape, behind) = self.0.split_once(')').ok_or(Silent::Form)?;
        let texts = shape.split(',').map(str::trim).filter(|size| !size.is_empty());
        let mut sizes = Some(Vec::new());
        for text in texts {
            match (&mut sizes, text.parse::<u64>()) {
                (Some(sizes), Ok(size)) => room::push(sizes, size)?,
                _ => sizes = None,
            }
        }
        self.0 = behind;
        self.take(",");
        let (name, behind) = self.0.split_once(']').ok_or(Silent::Form)?;
        self.0 = behind;
        name.trim().parse().ok().zip(sizes).ok_or(Silent::Form)
    }

    fn scalar(&mut self) -> Option<DataType> {
        let end = self.0.find(|c: char| !c.is_ascii_alphanumeric())?;
        let (name, behind) = self.0.split_at_checked(end)?;
        let data_type = name.parse().ok()?;
        self.0 = behind;
        Some(data_type)
    }

    /// Skips what is left of a type: to the comma or parenthesis behind it.
    fn skip_type(&mut self) {
        let mut depth = 0usize;
        let end = self.0.find(|c: char| {
            match c {
                '(' | '[' => depth = depth.saturating_add(1),
                ')' | ']' if depth > 0 => depth = depth.saturating_sub(1),
                ',' | ')' | '{' if depth == 0 => return true,
                _ => {}
            }
            false
        });
        self.0 = end.and_then(|end| self.0.split_at_checked(end)).map_or("", |(_, behind)| behind);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn float(shape: &[u64]) -> Option<Tensor> {
        Some(("float32".parse().unwrap(), shape.to_vec()))
    }

    #[test]
    fn signatures_are_read() {
        let text = "#[version = \"0.0.5\"]\ndef @main(%x: Tensor[(1, 16), float32] /* ty=Tensor[(1, 16), float32] */, %s: float32, \
                    %d: Tensor[(?, 2), int8], %t: (Tensor[(1), int8], int8)) -> (Tensor[(1, 10), float32], float32) {\n  %0 = f(%x)";
        let signature = main_signature(text).unwrap().unwrap();
        let names: Vec<&str> = signature.arguments.iter().map(|argument| argument.name.as_str()).collect();
        assert_eq!(names, ["x", "s", "d", "t"]);
        let tensors: Vec<_> = signature.arguments.iter().map(|argument| argument.tensor.clone()).collect();
        assert_eq!(tensors, [float(&[1, 16]), float(&[]), None, None]);
        assert_eq!(signature.results, Some(vec![float(&[1, 10]), float(&[])]));
        assert_eq!(main_signature("def @main() {}"), Ok(Some(Signature::default())));
        let one = main_signature("def @main(%x: float32) -> Tensor[(3), float32] {").unwrap().unwrap();
        assert_eq!(one.results, Some(vec![float(&[3])]));
    }

    #[test]
    fn any_text_is_answered() {
        for text in [
            "",
            "def @main(",
            "def @main(%",
            "def @main(%x:",
            "def @main(%x: Tensor[(",
            "def @main(x)",
            "def @main(%é: ü",
        ] {
            main_signature(text).unwrap();
        }
    }
}
