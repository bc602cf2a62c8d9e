//! Other data for tensors that are there.

use std::collections::BTreeMap;

use edgepack_builder::write_file::Change;
use edgepack_format::pte::{Buffer, Program, SubsegmentOffsets, Tensor};
use edgepack_format::row::Blob;
use edgepack_format::tensor::{TensorLayout, TensorView};

use super::content::Content;
use super::error::Error;
use super::open::Opened;
use super::package::Package;
use super::program::{constant_name, constant_of, constant_place, each_tensor, initial_of, layout_of, name_of};
use super::root::Root;

/// New data for a tensor, as it is called in the file.
#[derive(Clone, Debug)]
pub struct NewTensor<'a> {
    /// Name of the tensor: the key in a data file; in a program the name a constant or initial value carries, or
    /// `constant.K` for one without.
    pub name: &'a str,
    /// New data, of the same element type and sizes; the memory order may differ.
    pub tensor: TensorView<'a>,
}

/// Place of the data of a tensor.
pub(super) enum Place {
    /// Offset in a segment.
    Segment { segment: u32, offset: u64 },
    /// A constant in the flatbuffer.
    Inline(usize),
}

/// Replaces the data of tensors. Everything else stays as it is, the places of segments included; what shares its bytes
/// with a tensor changes with it ([`sharers`](super::sharers)).
pub fn patch<'a>(mut package: Package<'a>, tensors: &[NewTensor<'_>]) -> Result<Package<'a>, Error> {
    for new in tensors {
        for (place, layout) in places(&package, new)? {
            let bytes = ordered(new, &layout)?;
            apply(&mut package, new.name, &place, bytes)?;
        }
    }
    Ok(package)
}

/// Bytes of the file that [`patch`] changes, with their places: for
/// [`overwrite`](edgepack_builder::write_file::overwrite), which changes nothing else. `package` is the one of this file as
/// it was opened.
pub fn patch_in_place(file: &Opened, package: &Package<'_>, tensors: &[NewTensor<'_>]) -> Result<Vec<Change>, Error> {
    let mut changes: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
    for new in tensors {
        let found = places(package, new)?;
        for (place, layout) in &found {
            let bytes = ordered(new, layout)?;
            let at = in_file(file, package, new.name, place, bytes.len() as u64)?;
            let end = at.saturating_add(bytes.len() as u64);
            let mut near = changes.range(..end).rev();
            let over = near.find(|(start, old)| start.saturating_add(old.len() as u64) > at);
            if over.is_some_and(|(start, old)| *start != at || old.len() != bytes.len()) {
                let message = "it has a part of its bytes in common with another tensor that is to be changed";
                return Err(Error::refused(new.name, message));
            }
            changes.insert(at, bytes);
        }
    }
    Ok(changes.into_iter().map(|(at, bytes)| Change { at, bytes }).collect())
}

/// Places of the data of a tensor, one at least.
fn places(package: &Package<'_>, new: &NewTensor<'_>) -> Result<Vec<(Place, TensorLayout)>, Error> {
    let found = match &package.root {
        Root::Program(_) => in_program(package, new.name)?,
        _ => in_data(package, new.name)?,
    };
    match found.is_empty() {
        true => Err(Error::NotFound { what: "tensor", name: new.name.to_owned() }),
        false => Ok(found),
    }
}

/// The place in the file of `len` bytes of a tensor's data.
fn in_file(file: &Opened, package: &Package<'_>, name: &str, place: &Place, len: u64) -> Result<u64, Error> {
    let refused = |message: String| Error::refused(name, message);
    let (start, have, offset) = match place {
        Place::Segment { segment, offset } => {
            let rows = package.root.segments().filter(|rows| rows.len() > *segment as usize);
            let row = rows.ok_or_else(|| refused(format!("there is no segment {segment}")))?;
            let row = row.get(*segment as usize)?;
            (file.base().saturating_add(row.offset), row.size, *offset)
        }
        Place::Inline(index) => {
            let rows = package.program().and_then(|program| program.constant_buffer.as_ref());
            let missing = || refused(format!("there is no constant {index}"));
            let tables = rows.filter(|rows| rows.len() > *index).ok_or_else(missing)?.tables();
            let bytes = tables.get(*index)?.vector(Buffer::STORAGE.index, 1)?.ok_or_else(missing)?;
            (bytes.offset().into(), bytes.len() as u64, 0)
        }
    };
    match offset.checked_add(len) {
        Some(end) if end <= have => Ok(start.saturating_add(offset)),
        _ => Err(refused(format!("{len} bytes at {offset} of {have}"))),
    }
}

fn in_program(package: &Package<'_>, name: &str) -> Result<Vec<(Place, TensorLayout)>, Error> {
    let Some(program) = package.program() else { return Ok(Vec::new()) };
    let constants = constant_place(program)?;
    let mut found = Vec::new();
    each_tensor(program, |at, tensor| {
        let here = located(program, constants.as_ref(), at, tensor, |have| have == name)?;
        found.extend(here.map(|(_, place, layout)| (place, layout)));
        Ok(())
    })?;
    Ok(found)
}

/// Name and place of the data of a tensor, if it has any in the program and the name is asked for.
pub(super) fn located(
    program: &Program<'_>,
    constants: Option<&SubsegmentOffsets<'_>>,
    at: &str,
    tensor: &Tensor<'_>,
    asked: impl Fn(&str) -> bool,
) -> Result<Option<(String, Place, TensorLayout)>, Error> {
    let (name, list, index) = match (constant_of(tensor), initial_of(tensor), name_of(tensor)) {
        (Some(index), ..) => (constant_name(tensor, index), None, index),
        (None, Some((list, index)), Some(name)) => (name.to_owned(), Some(list), index),
        _ => return Ok(None),
    };
    if !asked(&name) {
        return Ok(None);
    }
    let list = match list {
        None => constants.cloned(),
        Some(list) => {
            let lists = program.mutable_data_segments.clone().unwrap_or_default();
            let list = usize::try_from(list).ok().and_then(|list| lists.get(list).ok());
            Some(list.ok_or_else(|| Error::refused(at, "its list of initial values is missing"))?)
        }
    };
    let layout = layout_of(at, tensor)?;
    let place = match list {
        None => Place::Inline(index as usize),
        Some(list) => {
            let offset = list.offsets.as_ref().and_then(|offsets| offsets.get(index as usize));
            let offset = offset.ok_or_else(|| Error::refused(at, format!("there is no constant {index}")))?;
            Place::Segment { segment: list.segment_index, offset }
        }
    };
    Ok(Some((name, place, layout)))
}

fn in_data(package: &Package<'_>, name: &str) -> Result<Vec<(Place, TensorLayout)>, Error> {
    let entry = super::join::entries_of(package)?.into_iter().find(|entry| entry.key == name);
    let Some(entry) = entry else { return Ok(Vec::new()) };
    let (segment, offset) = entry.place;
    let layout = entry.layout.ok_or_else(|| Error::refused(name, "this is not a tensor but bytes without a layout"))?;
    Ok(vec![(Place::Segment { segment, offset }, layout)])
}

fn apply(package: &mut Package<'_>, name: &str, place: &Place, bytes: Vec<u8>) -> Result<(), Error> {
    match place {
        Place::Segment { segment, offset } => {
            let len = bytes.len();
            let old = package.segment(name, *segment)?;
            let new = old.replaced(*offset, Content::from(bytes));
            let outside = || Error::refused(name, format!("{len} bytes at {offset} of a segment of {}", old.len()));
            let new = new.ok_or_else(outside)?;
            if let Some(content) = package.segments.get_mut(*segment as usize) {
                *content = new;
            }
        }
        Place::Inline(index) => {
            let buffers = package.program_mut().and_then(|program| program.constant_buffer.as_mut());
            let row = match buffers {
                Some(rows) => rows.to_mut()?.get_mut(*index),
                None => None,
            };
            let row: &mut Buffer<'_> =
                row.ok_or_else(|| Error::refused(name, format!("there is no constant {index}")))?;
            let mut stored = row.storage.take().unwrap_or_default().0.into_owned();
            let have = stored.len();
            let short = || Error::refused(name, format!("{} bytes for a constant of {have}", bytes.len()));
            stored.get_mut(..bytes.len()).ok_or_else(short)?.copy_from_slice(&bytes);
            row.storage = Some(Blob(stored.into()));
        }
    }
    Ok(())
}

/// The bytes of a new tensor in the memory order of the old one.
fn ordered(new: &NewTensor<'_>, want: &TensorLayout) -> Result<Vec<u8>, Error> {
    let have = new.tensor.layout();
    if have.scalar_type() != want.scalar_type() || have.sizes() != want.sizes() {
        return Err(Error::Mismatch { name: new.name.to_owned(), want: want.to_string(), have: have.to_string() });
    }
    match new.tensor.in_order(want.dim_order()) {
        Ok(tensor) => Ok(tensor.into_data()),
        Err(_) => Err(Error::refused(new.name, format!("{want} cannot be put into memory"))),
    }
}
