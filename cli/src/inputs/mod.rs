//! Inputs of a run from what the command line gives: files of tensors, pictures, raw bytes, numbers, and elements for
//! what is not given.
//!
//! Invariant: every tensor has an index below the number of inputs, and what is inflated or decoded is within the limits.

pub mod fill;
pub mod image;
pub mod item;

use std::collections::BTreeMap;
use std::path::Path;

use edgepack_format::limits::Limits;
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::{TensorBuf, TensorLayout};

use crate::cases::{Side, parse_key};
use crate::file::name_of;
use crate::interchange::{self, Picture, TensorFile};
use crate::options::Inputs;
use crate::session::Session;
use crate::spelling;
use crate::status::Failure;
use fill::{Fill, literal};
use item::{Content, Item};

/// The most pixels of a picture, on machines with the memory for them.
const MOST_PIXELS: u64 = 1 << 27;

/// An input that is wanted.
#[derive(Clone, PartialEq, Debug)]
pub struct Wanted {
    /// Name of the input, where there is one.
    pub name: Option<String>,
    /// Kind of the input.
    pub kind: Kind,
}

/// Kind of an input.
#[derive(Clone, PartialEq, Debug)]
pub enum Kind {
    /// A tensor of this layout, or a smaller one if it is dynamic.
    Tensor(TensorLayout),
    /// A number of this type, outside of tensors.
    Scalar(ScalarType),
    /// Anything.
    Unknown,
}

/// Reads the inputs of a method: by index, and what is not given as `fill` has it. Numbers are tensors without
/// dimensions. The method's name selects the runs of a recording; without one the first run counts.
pub fn read(
    given: &Inputs,
    fill: Option<Fill>,
    method: Option<&str>,
    wanted: &[Wanted],
    session: &mut Session,
) -> Result<BTreeMap<usize, TensorBuf>, Failure> {
    let mut tensors = BTreeMap::new();
    let mut next = 0;
    for item in &given.inputs {
        let place = item.index.unwrap_or(next);
        match read_item(item, place, given, wanted, session)? {
            TensorFile::Single(tensor) => {
                next = place.saturating_add(1);
                if tensors.insert(place, tensor).is_some() {
                    return Err(Failure::usage(format!("input {place} is given twice")));
                }
            }
            TensorFile::Named(named) => {
                if item.index.is_some() && named.len() != 1 {
                    return Err(Failure::usage(format!("input {place} is one tensor, the file has {}", named.len())));
                }
                for (index, tensor) in by_index(named, item.index, method, wanted)? {
                    tensors.insert(index, tensor);
                }
            }
        }
    }
    if let Some(fill) = fill {
        complete(&mut tensors, fill, wanted, &session.limits)?;
    }
    Ok(tensors)
}

/// Fills the inputs that are not there; returns how many that were.
pub fn complete(
    tensors: &mut BTreeMap<usize, TensorBuf>,
    fill: Fill,
    wanted: &[Wanted],
    limits: &Limits,
) -> Result<usize, Failure> {
    let before = tensors.len();
    for (index, wanted) in wanted.iter().enumerate() {
        if let Kind::Tensor(layout) = &wanted.kind
            && !tensors.contains_key(&index)
        {
            tensors.insert(index, filled(fill, index, layout, limits)?);
        }
    }
    Ok(tensors.len() - before)
}

/// Elements for a whole input, unless it is larger than a planned memory may be.
fn filled(fill: Fill, index: usize, layout: &TensorLayout, limits: &Limits) -> Result<TensorBuf, Failure> {
    let (bytes, most) = (layout.byte_len() as u64, limits.arena_bytes);
    let about = |what: String| Failure::cannot_run(format!("input {index}, {}, {what}", spelling::layout(layout)));
    if bytes > most {
        return Err(about(format!("has {bytes} bytes; {most} are allowed")));
    }
    fill.tensor(layout, index).ok_or_else(|| about(format!("cannot be filled with {bytes} bytes")))
}

fn read_item(
    item: &Item,
    place: usize,
    given: &Inputs,
    wanted: &[Wanted],
    session: &mut Session,
) -> Result<TensorFile, Failure> {
    let kind = wanted.get(place).map(|wanted| &wanted.kind);
    match &item.content {
        Content::Literal(text) => number(text, place, kind).map(TensorFile::Single),
        Content::Raw(spec, path) => raw(spec.as_ref(), path, place, kind, session).map(TensorFile::Single),
        Content::File(path) => {
            let about = |failure: Failure| failure.about(&name_of(path));
            let bytes = session.read_filled(path)?;
            let limits = &session.limits;
            let read = match interchange::read_picture(&bytes, MOST_PIXELS.min(limits.memory_bytes / 16)) {
                Some(picture) => {
                    let picture = picture.map_err(|error| about(Failure::unreadable(error)))?;
                    return from_picture(&picture, place, kind, given).map(TensorFile::Single).map_err(about);
                }
                None => interchange::read(&bytes, limits.memory_bytes),
            };
            read.map_err(|error| about(Failure::unreadable(error)))
        }
    }
}

/// A number of the command line as the input wants it.
fn number(text: &str, place: usize, kind: Option<&Kind>) -> Result<TensorBuf, Failure> {
    let guess = || match text {
        "true" | "false" => ScalarType::BOOL,
        _ if text.parse::<i64>().is_ok() => ScalarType::LONG,
        _ => ScalarType::DOUBLE,
    };
    let scalar = |element| TensorLayout::contiguous(element, &[]).map_err(Failure::cannot_run);
    let layout = match kind {
        Some(Kind::Tensor(layout)) if layout.element_count() == 1 => layout.clone(),
        Some(Kind::Tensor(layout)) => {
            let wants = spelling::layout(layout);
            return Err(Failure::usage(format!("input {place} wants {wants}, got the number {text}")));
        }
        Some(Kind::Scalar(element)) => scalar(*element)?,
        Some(Kind::Unknown) | None => scalar(guess())?,
    };
    let data = literal(text, layout.scalar_type());
    let data = data.map_err(|message| Failure::usage(format!("input {place}: {message}")))?;
    TensorBuf::from_bytes(layout, data).map_err(Failure::cannot_run)
}

/// Raw elements of a type.
fn raw(
    spec: Option<&TensorLayout>,
    path: &Path,
    place: usize,
    kind: Option<&Kind>,
    session: &mut Session,
) -> Result<TensorBuf, Failure> {
    let about = |failure: Failure| failure.about(&name_of(path));
    let layout = match (spec, kind) {
        (Some(spec), _) => spec.clone(),
        (None, Some(Kind::Tensor(layout))) => layout.clone(),
        (None, _) => {
            let message = format!("the type of input {place} is not known; put it in front: f32[1, 3]=FILE");
            return Err(about(Failure::usage(message)));
        }
    };
    let bytes = session.read(path)?;
    if bytes.len() != layout.byte_len() {
        let (have, want) = (bytes.len(), layout.byte_len());
        let shown = spelling::layout(&layout);
        return Err(about(Failure::usage(format!("{have} bytes for input {place}, {shown} has {want}"))));
    }
    TensorBuf::from_bytes(layout, bytes).map_err(|error| about(Failure::cannot_run(error)))
}

fn from_picture(picture: &Picture, place: usize, kind: Option<&Kind>, given: &Inputs) -> Result<TensorBuf, Failure> {
    let Some(Kind::Tensor(layout)) = kind else {
        return Err(Failure::usage(format!("input {place} is not known to be a tensor, which a picture becomes")));
    };
    let Some(preparation) = &given.image else {
        let (height, width) = (picture.height, picture.width);
        let message = format!(
            "a picture of {height}x{width} pixels (height x width) becomes input {place}, {}, as --image says: \
             --image imagenet, for example",
            spelling::layout(layout)
        );
        return Err(Failure::usage(message));
    };
    preparation.tensor(picture, layout).map_err(|message| Failure::usage(format!("input {place}: {message}")))
}

/// The tensors of this run's inputs, each with the index of the input that its name refers to: the name of an input, `I`,
/// `in.I`, `arr_I` (as NumPy names arrays without names), `METHOD.RUN.in.I` of the first run, or any single name.
fn by_index(
    tensors: Vec<(String, TensorBuf)>,
    place: Option<usize>,
    method: Option<&str>,
    wanted: &[Wanted],
) -> Result<Vec<(usize, TensorBuf)>, Failure> {
    let is_method = |name: &str| method.is_none_or(|method| method == name);
    let runs = tensors.iter().filter_map(|(key, _)| parse_key(key)).filter(|key| is_method(key.0));
    let first = runs.map(|key| key.1).min();
    let single = tensors.len() == 1;
    let mut found = Vec::new();
    for (key, tensor) in tensors {
        let named = wanted.iter().position(|wanted| wanted.name.as_ref() == Some(&key));
        let plain = ["in.", "arr_"].into_iter().find_map(|prefix| key.strip_prefix(prefix)).unwrap_or(&key);
        match (named.or_else(|| plain.parse().ok()), parse_key(&key)) {
            _ if place.is_some() => found.extend(place.map(|place| (place, tensor))),
            (Some(index), _) => found.push((index, tensor)),
            // Other methods, later runs and recorded outputs are not for this run.
            (None, Some((name, run, side, index))) => {
                if is_method(name) && Some(run) == first && side == Side::In {
                    found.push((index, tensor));
                }
            }
            (None, None) if single => found.push((0, tensor)),
            (None, None) => {
                let names: Vec<&str> = wanted.iter().filter_map(|wanted| wanted.name.as_deref()).collect();
                let names = if names.is_empty() { String::new() } else { format!("{}, ", names.join(", ")) };
                let message = format!("the key {key:?} is none of {names}I, in.I, arr_I, METHOD.RUN.in.I");
                return Err(Failure::usage(message));
            }
        }
    }
    Ok(found)
}
