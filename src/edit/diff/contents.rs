//! Bytes that are compared, by the places of their use: found one at a time, so that bytes which many share, or which
//! are in the flatbuffer, are never there twice.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};

use edgepack_format::pte::{BackendDelegate, DataLocation, Program, Tensor};
use edgepack_format::tensor::TensorLayout;

use super::super::content::Content;
use super::super::error::Error;
use super::super::join::{Entry, entries_of};
use super::super::package::Package;
use super::super::program::{constant_of, initial_of, layout_of};

/// Bytes and what they look like.
pub(super) type Found = (Content, Option<TensorLayout>);

/// Place at which bytes are used.
#[derive(Clone, Copy)]
pub(super) enum Place<'k> {
    /// Value of a method.
    Value(usize, usize),
    /// Delegate of a method.
    Delegate(usize, usize),
    /// By a key.
    Named(&'k str),
    /// By a path.
    At(&'k str),
}

impl Place<'_> {
    /// As people read it.
    pub(super) fn path(self) -> String {
        match self {
            Place::Value(method, index) => format!("execution_plan[{method}].values[{index}].data"),
            Place::Delegate(method, index) => format!("execution_plan[{method}].delegates[{index}].processed"),
            Place::Named(key) => format!("named_data[{key:?}]"),
            Place::At(path) => path.to_owned(),
        }
    }
}

/// Function that `each` calls.
pub(super) type Visit<'v> = dyn FnMut(Place<'_>, Found) -> Result<(), Error> + 'v;

/// Bytes of a file that have keys or paths.
pub(super) trait Contents {
    /// Visits all, in order.
    fn each(&self, visit: &mut Visit<'_>) -> Result<(), Error>;

    /// Returns the bytes of one place.
    fn find(&self, place: Place<'_>) -> Result<Option<Found>, Error>;
}

/// Bytes of a program; those that have a key are its [`Contents`].
pub(super) struct OfProgram<'p, 'a> {
    package: &'p Package<'a>,
    pub(super) program: &'p Program<'a>,
    /// Rows of named data by key.
    named: BTreeMap<String, usize>,
    /// Inline payloads by index, so that what many delegates name is copied once.
    inline: RefCell<HashMap<u32, Content>>,
}

impl<'p, 'a> OfProgram<'p, 'a> {
    pub(super) fn new(package: &'p Package<'a>, program: &'p Program<'a>) -> Result<Self, Error> {
        let mut named = BTreeMap::new();
        for (index, entry) in program.named_data.iter().flat_map(|rows| rows.iter()).enumerate() {
            named.insert(entry?.key.unwrap_or_default().into_owned(), index);
        }
        Ok(OfProgram { package, program, named, inline: RefCell::default() })
    }

    /// Returns the bytes of a constant or an initial value.
    pub(super) fn value(&self, place: Place<'_>, tensor: &Tensor<'a>) -> Result<Option<Found>, Error> {
        let path = || place.path().trim_end_matches(".data").to_owned();
        // A number may also stand for what is given at run time: then there is no such list.
        let lists = self.program.mutable_data_segments.as_ref().map_or(0, |lists| lists.len() as u64);
        let (constant, initial) = (constant_of(tensor), initial_of(tensor).filter(|(list, _)| *list < lists));
        if constant.is_none() && initial.is_none() {
            return Ok(None);
        }
        let path = path();
        let layout = layout_of(&path, tensor);
        let len = layout.as_ref().map_or(0, |layout| layout.byte_len() as u64);
        let content = match (constant, initial) {
            (Some(index), _) => self.package.constant(&path, index, len)?,
            (_, Some((list, index))) => self.package.initial(&path, list, index, len)?,
            _ => return Ok(None),
        };
        Ok(Some((content, Some(layout?))))
    }

    /// Returns the payload of a delegate.
    pub(super) fn delegate(&self, place: Place<'_>, delegate: &BackendDelegate<'a>) -> Result<Option<Found>, Error> {
        let Some(processed) = &delegate.processed else { return Ok(None) };
        let path = place.path();
        let known = self.inline.borrow().get(&processed.index).cloned();
        let content = if processed.location == DataLocation::SEGMENT {
            self.package.segment(&path, processed.index)?.clone()
        } else if let Some(known) = known {
            known
        } else {
            let blobs = self.program.backend_delegate_data.clone().unwrap_or_default();
            let missing = |_| Error::refused(&*path, format!("payload {} of {}", processed.index, blobs.len()));
            let row = blobs.get(processed.index as usize).map_err(missing)?;
            let content = Content::from(row.data.unwrap_or_default().as_slice());
            self.inline.borrow_mut().insert(processed.index, content.clone());
            content
        };
        Ok(Some((content, None)))
    }

    fn named(&self, index: usize, segment: u32) -> Result<Found, Error> {
        Ok((self.package.segment(&format!("named_data[{index}]"), segment)?.clone(), None))
    }
}

impl Contents for OfProgram<'_, '_> {
    fn each(&self, visit: &mut Visit<'_>) -> Result<(), Error> {
        for (index, entry) in self.program.named_data.iter().flat_map(|rows| rows.iter()).enumerate() {
            let entry = entry?;
            let key = entry.key.unwrap_or_default();
            visit(Place::Named(&key), self.named(index, entry.segment_index)?)?;
        }
        Ok(())
    }

    fn find(&self, place: Place<'_>) -> Result<Option<Found>, Error> {
        let (Place::Named(key), Some(rows)) = (place, &self.program.named_data) else { return Ok(None) };
        let Some(index) = self.named.get(key) else { return Ok(None) };
        self.named(*index, rows.get(*index)?.segment_index).map(Some)
    }
}

/// Bytes of a data file.
pub(super) struct OfData {
    entries: Vec<Entry>,
    /// Entries in the order of their keys.
    by_key: Vec<u32>,
}

impl OfData {
    pub(super) fn new(package: &Package<'_>) -> Result<Self, Error> {
        let entries = entries_of(package)?;
        let count = u32::try_from(entries.len()).map_err(|_| Error::refused("named_data", "too many"))?;
        let mut by_key: Vec<u32> = (0..count).collect();
        by_key.sort_by_key(|index| entries.get(*index as usize).map(|entry| entry.key.as_str()));
        Ok(OfData { entries, by_key })
    }
}

impl Contents for OfData {
    fn each(&self, visit: &mut Visit<'_>) -> Result<(), Error> {
        let mut entries = self.entries.iter();
        entries.try_for_each(|entry| visit(Place::Named(&entry.key), (entry.content.clone(), entry.layout.clone())))
    }

    fn find(&self, place: Place<'_>) -> Result<Option<Found>, Error> {
        let Place::Named(key) = place else { return Ok(None) };
        let entry = |index: &u32| self.entries.get(*index as usize);
        // Of several the last.
        let end = self.by_key.partition_point(|index| entry(index).is_some_and(|entry| entry.key.as_str() <= key));
        let last = end.checked_sub(1).and_then(|last| entry(self.by_key.get(last)?));
        let found = last.filter(|entry| entry.key == key);
        Ok(found.map(|entry| (entry.content.clone(), entry.layout.clone())))
    }
}

/// Some bytes by their paths.
pub(super) struct Listed(pub(super) BTreeMap<String, Content>);

impl Contents for Listed {
    fn each(&self, visit: &mut Visit<'_>) -> Result<(), Error> {
        self.0.iter().try_for_each(|(path, content)| visit(Place::At(path), (content.clone(), None)))
    }

    fn find(&self, place: Place<'_>) -> Result<Option<Found>, Error> {
        let Place::At(path) = place else { return Ok(None) };
        Ok(self.0.get(path).map(|content| (content.clone(), None)))
    }
}
