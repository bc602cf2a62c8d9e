//! One argument of `--inputs`: `[N=]CONTENT`, where the content is a number, a bool, raw bytes with their type in front,
//! or a file.
//!
//! A file whose name reads as one of the others is given as a path: `./3`, `./f32[2]=x`.

use std::ffi::OsString;
use std::path::PathBuf;

use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::TensorLayout;

/// An argument of `--inputs`.
#[derive(Clone, PartialEq, Debug)]
pub struct Item {
    /// Index of the input, if the argument says it.
    pub index: Option<usize>,
    /// Content that is given.
    pub content: Content,
}

/// Content of an argument of `--inputs`.
#[derive(Clone, PartialEq, Debug)]
pub enum Content {
    /// `2`, `-1.5`, `true`, as it was spelled.
    Literal(String),
    /// Raw elements of this type, or of the type of the input: `f32[2, 3]=FILE`, `raw=FILE`.
    Raw(Option<TensorLayout>, PathBuf),
    /// Any other file, known by its content.
    File(PathBuf),
}

impl Item {
    /// Reads an argument.
    pub fn parse(argument: OsString) -> Result<Item, String> {
        let Some(text) = argument.to_str() else {
            return Ok(Item { index: None, content: Content::File(argument.into()) });
        };
        let (index, rest) = match text.split_once('=') {
            Some((number, rest)) if is_index(number) => {
                (Some(number.parse().map_err(|_| format!("there is no input {number}"))?), rest)
            }
            _ => (None, text),
        };
        if rest.is_empty() {
            return Err("this names no file".to_owned());
        }
        let content = match rest.split_once('=') {
            _ if is_literal(rest) => Content::Literal(rest.to_owned()),
            Some(("raw", file)) if !file.is_empty() => Content::Raw(None, file.into()),
            Some((spec, file)) if !file.is_empty() && spec.ends_with(']') && !spec.contains('/') => {
                Content::Raw(Some(layout(spec)?), file.into())
            }
            _ => Content::File(rest.into()),
        };
        Ok(Item { index, content })
    }
}

fn is_index(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns whether this is a number or a bool. `nan`, `inf` and `infinity` are numbers, as in text of programs.
fn is_literal(text: &str) -> bool {
    matches!(text, "true" | "false") || text.parse::<f64>().is_ok()
}

/// Reads the type of a tensor, `f32[1, 3]`.
fn layout(spec: &str) -> Result<TensorLayout, String> {
    let wanted = || format!("{spec:?} is not the type of a tensor, such as f32[1, 3] or i64[]");
    let (element, sizes) = spec.strip_suffix(']').and_then(|spec| spec.split_once('[')).ok_or_else(wanted)?;
    let element = ScalarType::from_text(element).ok_or_else(|| format!("there is no element type {element:?}"))?;
    let sizes = match sizes.trim() {
        "" => Vec::new(),
        sizes => sizes.split(',').map(|size| size.trim().parse().map_err(|_| wanted())).collect::<Result<_, _>>()?,
    };
    TensorLayout::contiguous(element, &sizes).map_err(|error| format!("{spec}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(text: &str) -> Content {
        Item::parse(text.into()).unwrap().content
    }

    #[test]
    fn arguments_are_told_apart() {
        for literal in ["3", "-1.5", "true", "1e-3", "inf"] {
            assert_eq!(content(literal), Content::Literal(literal.to_owned()));
        }
        for file in ["x.npy", "./3", "a=b.npy", "dir[1]/x=y", "-", "x.npy=", "./f32[2]=x"] {
            assert_eq!(content(file), Content::File(file.into()), "{file}");
        }
        let spec = TensorLayout::contiguous(ScalarType::FLOAT, &[2, 3]).unwrap();
        for text in ["f32[2, 3]=x.bin", "FLOAT[2,3]=x.bin"] {
            assert_eq!(content(text), Content::Raw(Some(spec.clone()), "x.bin".into()));
        }
        assert_eq!(content("i64[]=x"), Content::Raw(TensorLayout::contiguous(ScalarType::LONG, &[]).ok(), "x".into()));
        assert_eq!(content("raw=x.bin"), Content::Raw(None, "x.bin".into()));
        assert_eq!(Item::parse("1=true".into()), Ok(Item { index: Some(1), content: Content::Literal("true".into()) }));
        assert_eq!(Item::parse("2=raw=-".into()), Ok(Item { index: Some(2), content: Content::Raw(None, "-".into()) }));
    }

    #[test]
    fn specs_that_make_no_sense_are_refused() {
        for bad in ["f33[2]=x", "f32[two]=x", "f32[-1]=x", "f32[99999999999,99999999999]=x", "[2]=x", "0=", ""] {
            assert!(Item::parse(bad.into()).is_err(), "{bad}");
        }
        assert!(Item::parse("99999999999999999999=x".into()).is_err());
    }
}
