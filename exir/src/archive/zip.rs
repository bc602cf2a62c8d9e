//! A ZIP of stored records: its directory, and the places of the bytes.
//!
//! Sizes come from the central directory, since local headers of archives may hold zeros; the distance from a local header
//! to its data does come from the local header. A record may be such a ZIP itself; it is read where it is.
//!
//! Invariant: every [`Record`] is inside its ZIP, and no two have the same name.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use edgepack_builder::content::Data;
use edgepack_format::room::{self, NoRoom};
use rawzip::{CompressionMethod, ReaderAt, ZipArchive, ZipLocator};

use super::tensors::Storage;
use crate::error::Error;

/// The most records of an archive: a large model has some thousand tensors.
pub const MAX_RECORDS: u64 = 1 << 20;

/// The bytes of one record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record {
    /// Name of the record below the root folder.
    pub name: String,
    /// Offset of the record's bytes in the file.
    pub offset: u64,
    /// Length of the record in bytes.
    pub len: u64,
}

/// Source of a ZIP.
#[derive(Clone)]
pub(super) enum Place<'a> {
    Bytes(&'a [u8]),
    /// In a file, from this byte on.
    File {
        path: Arc<PathBuf>,
        start: u64,
        len: u64,
    },
}

/// A stretch of a file.
struct Region {
    file: rawzip::FileReader,
    start: u64,
    len: u64,
}

impl ReaderAt for Region {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let left = usize::try_from(self.len.saturating_sub(offset)).unwrap_or(usize::MAX);
        let take = buf.len().min(left);
        self.file.read_at(buf.get_mut(..take).unwrap_or_default(), self.start.saturating_add(offset))
    }
}

/// The records of a ZIP, below the folder that holds all of them, if there is one.
pub(super) struct Zip<'a> {
    place: Place<'a>,
    /// Put in front of the names of storages, so that those of a ZIP within a ZIP have names of their own.
    within: String,
    pub(super) root: String,
    pub(super) records: Vec<Record>,
    by_name: BTreeMap<String, usize>,
}

impl<'a> Zip<'a> {
    pub(super) fn new(place: Place<'a>, within: &str) -> Result<Self, Error> {
        let mut buffer = room::filled(0, rawzip::RECOMMENDED_BUFFER_SIZE)?;
        match place.clone() {
            Place::Bytes(bytes) => {
                let zip = ZipArchive::from_slice(bytes).map_err(Error::zip)?.into_zip_archive();
                Self::read(&zip, bytes.len() as u64, place, within)
            }
            Place::File { path, start, len } => {
                let file = rawzip::FileReader::from(File::open(path.as_path())?);
                let region = Region { file, start, len };
                let located = ZipLocator::new().locate_in_reader(region, &mut buffer, len);
                let zip = located.map_err(|(_, error)| Error::zip(error))?;
                Self::read(&zip, len, place, within)
            }
        }
    }

    fn read<R: ReaderAt>(zip: &ZipArchive<R>, bytes: u64, place: Place<'a>, within: &str) -> Result<Self, Error> {
        if zip.entries_hint() > MAX_RECORDS {
            return Err(Error::Archive(format!("{} records, at most {MAX_RECORDS} are read", zip.entries_hint())));
        }
        let mut found = Vec::new();
        let mut buffer = room::filled(0, rawzip::RECOMMENDED_BUFFER_SIZE)?;
        let mut entries = zip.entries(&mut buffer);
        // The directory may be followed by records of its own before it ends, so the count says where to stop.
        for _ in 0..zip.entries_hint() {
            let Some(entry) = entries.next_entry().map_err(Error::zip)? else { break };
            if entry.is_dir() {
                continue;
            }
            let path = entry.file_path();
            let name = std::str::from_utf8(path.as_ref())
                .map_err(|_| Error::Archive("the name of a record is not UTF-8".to_owned()))?
                .to_owned();
            if entry.compression_method() != CompressionMethod::Store {
                return Err(Error::record(name, "it is compressed; the format stores records as they are"));
            }
            room::push(&mut found, (name, entry.wayfinder()))?;
        }
        let root = found.first().and_then(|(name, _)| Some(name.split_once('/')?.0.to_owned()));
        let mut all = Zip {
            place,
            within: within.to_owned(),
            root: root.unwrap_or_default(),
            records: Vec::new(),
            by_name: BTreeMap::new(),
        };
        for (full_name, wayfinder) in found {
            let (start, end) = zip.get_entry(wayfinder).map_err(Error::zip)?.compressed_data_range();
            let Some(len) = end.checked_sub(start).filter(|_| end <= bytes) else {
                return Err(Error::record(full_name, format!("bytes {start}..{end} of a file of {bytes}")));
            };
            let name =
                match (all.root.as_str(), full_name.strip_prefix(&all.root).and_then(|rest| rest.strip_prefix('/'))) {
                    ("", _) => full_name,
                    (_, Some(inside)) => inside.to_owned(),
                    (root, None) => return Err(Error::record(&full_name, format!("it is not in the folder `{root}`"))),
                };
            if all.by_name.insert(name.clone(), all.records.len()).is_some() {
                return Err(Error::record(name, "there are two of that name"));
            }
            room::push(&mut all.records, Record { name, offset: start, len })?;
        }
        Ok(all)
    }

    /// A record by its name below the root folder.
    pub(super) fn record(&self, name: &str) -> Option<&Record> {
        self.by_name.get(name).and_then(|index| self.records.get(*index))
    }

    /// The bytes of a record, wherever they are.
    pub(super) fn data(&self, record: &Record) -> Data<'a> {
        match &self.place {
            Place::Bytes(bytes) => Data::from(slice(bytes, record)),
            Place::File { path, start, .. } => {
                Data::file(path.as_path(), start.saturating_add(record.offset), record.len)
            }
        }
    }

    /// The bytes of a record that is to be read whole.
    pub(super) fn bytes(&self, record: &Record, most: u64) -> Result<Vec<u8>, Error> {
        if record.len > most {
            return Err(Error::record(&record.name, format!("{} bytes, at most {most} are read", record.len)));
        }
        match self.data(record).to_vec() {
            Err(error) if error.kind() == io::ErrorKind::OutOfMemory => Err(NoRoom { bytes: record.len }.into()),
            read => Ok(read?),
        }
    }

    /// The bytes of a record as a storage of tensors.
    pub(super) fn storage(&self, record: &Record) -> Storage<'a> {
        let name = format!("{}{}", self.within, record.name);
        match &self.place {
            Place::Bytes(bytes) => Storage::borrowed(name, slice(bytes, record)),
            Place::File { path, start, .. } => {
                Storage::file(&name, path.clone(), start.saturating_add(record.offset), record.len)
            }
        }
    }

    /// A record that is a ZIP itself.
    pub(super) fn nested(&self, record: &Record) -> Result<Zip<'a>, Error> {
        let place = match &self.place {
            Place::Bytes(bytes) => Place::Bytes(slice(bytes, record)),
            Place::File { path, start, .. } => {
                Place::File { path: path.clone(), start: start.saturating_add(record.offset), len: record.len }
            }
        };
        let name = format!("{}{}", self.within, record.name);
        Zip::new(place, &format!("{name}/")).map_err(|error| error.of_record(name))
    }

    /// The text of a record of a few bytes.
    pub(super) fn text(&self, name: &str) -> Result<Option<String>, Error> {
        let Some(record) = self.record(name) else { return Ok(None) };
        let bytes = self.bytes(record, 64)?;
        String::from_utf8(bytes).map(Some).map_err(|_| Error::record(name, "it is not UTF-8"))
    }

    /// Refuses an archive whose numbers have the opposite byte order.
    pub(super) fn check_byte_order(&self) -> Result<(), Error> {
        match self.text("byteorder")? {
            Some(order) if order != "little" => {
                Err(Error::record("byteorder", format!("`{order}`, only `little` is read")))
            }
            _ => Ok(()),
        }
    }
}

/// Reads the records of a ZIP of stored records, whatever it is for: full names and bytes. [`write_records`] is the
/// inverse.
///
/// [`write_records`]: super::write_records
pub fn records(bytes: &[u8]) -> Result<Vec<(String, &[u8])>, Error> {
    let zip = Zip::new(Place::Bytes(bytes), "")?;
    let full = |name: &str| if zip.root.is_empty() { name.to_owned() } else { format!("{}/{name}", zip.root) };
    Ok(room::collect(zip.records.iter().map(|record| (full(&record.name), slice(bytes, record))))?)
}

fn slice<'a>(bytes: &'a [u8], record: &Record) -> &'a [u8] {
    let start = usize::try_from(record.offset).unwrap_or(usize::MAX);
    let len = usize::try_from(record.len).unwrap_or(usize::MAX);
    bytes.get(start..).and_then(|rest| rest.get(..len)).unwrap_or_default()
}
