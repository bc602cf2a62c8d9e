//! Data files: `.ptd` of every generation and FlatData, as a map from keys to bytes read on demand.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use edgepack_format::FileKind;
use edgepack_format::limits::Limits;
use edgepack_format::ptd::{Accept, DataRef};
use edgepack_format::room::collect;
use edgepack_format::tensor::TensorLayout;

use crate::bytes::Bytes;
use crate::error::Error;
use crate::live::Live;
use crate::machine::machine_limits;
use crate::memory_source::MemorySource;
use crate::named_data::{NamedDataMap, check_length, index};
use crate::open::FileHead;
use crate::read::{read, read_range};
use crate::source::{FileSource, Source};

/// A verified data file. Its flatbuffer is read once; data are borrowed from the source or read on demand.
///
/// ```
/// use edgepack_loader::{DataFile, NamedDataMap};
///
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data/corpus/data/tensors.ptd");
/// let weights = DataFile::open(path)?;
/// assert_eq!((weights.len(), weights.key(0)), (9, Some("weight")));
/// assert_eq!(weights.layout("weight")?.unwrap().to_string(), "f32[4, 3]");
/// let bytes = weights.data("weight")?.unwrap(); // read now, released when dropped
/// assert_eq!(bytes.len(), 48);
/// # Ok::<(), edgepack_loader::Error>(())
/// ```
pub struct DataFile {
    source: Arc<dyn Source>,
    live: Live,
    limits: Limits,
    keys: Vec<String>,
    entries: HashMap<String, Entry>,
}

struct Entry {
    range: Range<u64>,
    layout: Option<TensorLayout>,
}

impl DataFile {
    /// Opens a `.ptd` file of today's form.
    pub fn open(path: impl AsRef<Path>) -> Result<DataFile, Error> {
        let path = path.as_ref();
        let source = FileSource::open(path).map_err(|error| Error::Io { what: path.display().to_string(), error })?;
        Self::from_source(Arc::new(source), machine_limits(), Accept::default())
    }

    /// Opens a `.ptd` file that is in memory. Data are borrowed from these bytes.
    pub fn from_bytes(bytes: impl Into<Bytes>) -> Result<DataFile, Error> {
        Self::from_source(Arc::new(MemorySource::new(bytes)), machine_limits(), Accept::default())
    }

    /// Opens a data file from any source; `accept` says which older and other forms are welcome.
    pub fn from_source(source: Arc<dyn Source>, limits: Limits, accept: Accept) -> Result<DataFile, Error> {
        let located = FileHead::of_source(FileKind::Data, &*source)?;
        let head = located.read(&*source, &limits)?;
        let data = DataRef::parse_as(&head, located.extent, &limits, accept).map_err(Error::Invalid)?;
        let keys: Vec<String> = collect(data.keys().iter().map(|key| (*key).to_owned()))?;
        let mut entries = index(keys.len())?;
        for entry in (0..data.len()).filter_map(|index| data.entry(index)) {
            // A key can be in both lists of an older file; the first counts.
            entries.entry(entry.key.to_owned()).or_insert(Entry { range: entry.range, layout: entry.layout });
        }
        Ok(DataFile { source, live: Live::default(), limits, keys, entries })
    }
}

impl NamedDataMap for DataFile {
    fn data(&self, key: &str) -> Result<Option<Bytes>, Error> {
        let Some(entry) = self.entries.get(key) else { return Ok(None) };
        read_range(&self.source, &self.live, entry.range.clone(), &self.limits, || format!("the data of {key}"))
            .map(Some)
    }
    fn load_into(&self, key: &str, into: &mut [u8]) -> Result<(), Error> {
        let missing = || Error::NotFound { what: "key", name: key.to_owned() };
        let range = &self.entries.get(key).ok_or_else(missing)?.range;
        check_length(key, range.end.saturating_sub(range.start), into)?;
        match range.end > self.source.len() {
            true => Err(Error::Range {
                what: format!("the data of {key}"),
                offset: range.start,
                len: range.end.saturating_sub(range.start),
                source_len: self.source.len(),
            }),
            false => read(&*self.source, range.start, into),
        }
    }
    fn layout(&self, key: &str) -> Result<Option<TensorLayout>, Error> {
        Ok(self.entries.get(key).and_then(|entry| entry.layout.clone()))
    }
    fn len(&self) -> usize {
        self.keys.len()
    }
    fn key(&self, index: usize) -> Option<&str> {
        self.keys.get(index).map(String::as_str)
    }
    fn contains(&self, key: &str) -> bool {
        self.entries.contains_key(key)
    }
}

impl fmt::Debug for DataFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DataFile with {} keys from {}", self.keys.len(), self.source.name())
    }
}
