//! The container: which records there are and where their bytes lie.
//!
//! Sizes come from the central directory, since local headers of this format may hold zeros; the distance from a local
//! header to its data does come from the local header.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use edgepack_builder::content::Data;
use rawzip::{CompressionMethod, ReaderAt, ZipArchive};

use super::tensors::Storage;
use crate::error::Error;
use crate::graph::ExportedProgram;
use crate::json;

/// The most records of an archive: a large model has some thousand tensors.
pub const MAX_RECORDS: u64 = 1 << 20;

/// The largest JSON record that is read.
const MAX_JSON: u64 = 1 << 30;

/// The schema versions that are read: the current major one, and the one early exporters wrote.
const MAJOR: [i64; 2] = [8, 0];

/// The bytes of one record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record {
    /// Its name below the root folder.
    pub name: String,
    /// Where its bytes start in the file.
    pub offset: u64,
    /// How many there are.
    pub len: u64,
}

/// Where the archive is.
#[derive(Clone)]
enum Place<'a> {
    Bytes(&'a [u8]),
    File(PathBuf),
}

/// An archive that `torch.export.save` wrote.
pub struct Archive<'a> {
    place: Place<'a>,
    root: String,
    records: Vec<Record>,
    by_name: BTreeMap<String, usize>,
}

impl<'a> Archive<'a> {
    /// An archive in memory. Tensors borrow from it.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Error> {
        let zip = ZipArchive::from_slice(bytes).map_err(Error::zip)?.into_zip_archive();
        Self::read(&zip, bytes.len() as u64, Place::Bytes(bytes))
    }

    /// An archive in a file, which must not change as long as programs made from it are to be written.
    pub fn open(path: impl AsRef<Path>) -> Result<Archive<'static>, Error> {
        let path = path.as_ref();
        let file = File::open(path)?;
        let len = file.metadata()?.len();
        let mut buffer = vec![0; rawzip::RECOMMENDED_BUFFER_SIZE];
        let zip = ZipArchive::from_file(file, &mut buffer).map_err(Error::zip)?;
        Archive::read(&zip, len, Place::File(path.to_owned()))
    }

    fn read<R: ReaderAt>(zip: &ZipArchive<R>, bytes: u64, place: Place<'a>) -> Result<Self, Error> {
        if zip.entries_hint() > MAX_RECORDS {
            return Err(Error::Archive(format!("{} records, at most {MAX_RECORDS} are read", zip.entries_hint())));
        }
        let mut found = Vec::new();
        let mut buffer = vec![0; rawzip::RECOMMENDED_BUFFER_SIZE];
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
            found.push((name, entry.wayfinder()));
        }
        let root = found.first().and_then(|(name, _)| Some(name.split_once('/')?.0.to_owned())).unwrap_or_default();
        let mut archive = Archive { place, root, records: Vec::new(), by_name: BTreeMap::new() };
        for (full_name, wayfinder) in found {
            let (start, end) = zip.get_entry(wayfinder).map_err(Error::zip)?.compressed_data_range();
            let Some(len) = end.checked_sub(start).filter(|_| end <= bytes) else {
                return Err(Error::record(full_name, format!("bytes {start}..{end} of a file of {bytes}")));
            };
            let inside = full_name.strip_prefix(&archive.root).and_then(|name| name.strip_prefix('/'));
            let Some(name) = inside else {
                return Err(Error::record(full_name, format!("it is not in the folder `{}`", archive.root)));
            };
            let name = name.to_owned();
            if archive.by_name.insert(name.clone(), archive.records.len()).is_some() {
                return Err(Error::record(name, "there are two of that name"));
            }
            archive.records.push(Record { name, offset: start, len });
        }
        archive.check_format()?;
        Ok(archive)
    }

    /// The folder that holds all records.
    pub fn root(&self) -> &str {
        &self.root
    }

    /// All records, in the order of the directory.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// A record by its name below the root folder.
    pub fn record(&self, name: &str) -> Option<&Record> {
        self.by_name.get(name).and_then(|index| self.records.get(*index))
    }

    /// The names of the models inside; `torch.export.save` writes one, called `model`.
    pub fn models(&self) -> impl Iterator<Item = &str> {
        let model = |record: &'_ Record| -> Option<(usize, usize)> {
            let name = record.name.strip_prefix("models/")?.strip_suffix(".json")?;
            (!name.contains('/')).then_some(("models/".len(), name.len()))
        };
        self.records.iter().filter_map(move |record| {
            let (start, len) = model(record)?;
            record.name.get(start..)?.get(..len)
        })
    }

    /// Texts that the caller of the exporter added, by name.
    pub fn extra(&self) -> impl Iterator<Item = (&str, &Record)> {
        self.records.iter().filter_map(|record| Some((record.name.strip_prefix("extra/")?, record)))
    }

    /// The bytes of a record, wherever they are.
    pub fn data(&self, record: &Record) -> Data<'a> {
        match &self.place {
            Place::Bytes(bytes) => Data::from(slice(bytes, record)),
            Place::File(path) => Data::file(path.clone(), record.offset, record.len),
        }
    }

    /// The bytes of a record as a storage of tensors.
    pub(super) fn storage(&self, record: &Record) -> Storage<'a> {
        match &self.place {
            Place::Bytes(bytes) => Storage::borrowed(&*record.name, slice(bytes, record)),
            Place::File(path) => Storage::file(&record.name, path.clone(), record.offset, record.len),
        }
    }

    /// The document of a model.
    pub fn document(&self, model: &str) -> Result<json::ExportedProgram, Error> {
        let name = format!("models/{model}.json");
        let document: json::ExportedProgram = self.json(&name)?;
        let version = document.schema_version;
        if !MAJOR.contains(&version.major) {
            let message =
                format!("schema version {}.{}, major versions 8 and 0 are read", version.major, version.minor);
            return Err(Error::record(name, message));
        }
        Ok(document)
    }

    /// The first model, with its tensors.
    pub fn program(&self) -> Result<ExportedProgram<'a>, Error> {
        let model = self.models().next().ok_or_else(|| self.no_model())?.to_owned();
        self.model(&model)
    }

    /// A model by name, with its tensors.
    pub fn model(&self, model: &str) -> Result<ExportedProgram<'a>, Error> {
        let document = self.document(model)?;
        let weights = self.weights(model)?;
        ExportedProgram::from_document(document, weights)
    }

    fn no_model(&self) -> Error {
        match self.record("serialized_exported_program.json") {
            Some(_) => Error::Archive("this is the layout of exporters before 2025; save the program again".to_owned()),
            None => Error::NoRecord("models/NAME.json".to_owned()),
        }
    }

    pub(super) fn json<T: serde::de::DeserializeOwned>(&self, name: &str) -> Result<T, Error> {
        let record = self.record(name).ok_or_else(|| Error::NoRecord(name.to_owned()))?;
        let bytes = self.bytes(record, MAX_JSON)?;
        serde_json::from_slice(&bytes).map_err(|error| Error::record(name, error))
    }

    /// The bytes of a record that is to be read whole.
    fn bytes(&self, record: &Record, most: u64) -> Result<Vec<u8>, Error> {
        if record.len > most {
            return Err(Error::record(&record.name, format!("{} bytes, at most {most} are read", record.len)));
        }
        Ok(self.data(record).to_vec()?)
    }

    fn text(&self, name: &str) -> Result<Option<String>, Error> {
        let Some(record) = self.record(name) else { return Ok(None) };
        let bytes = self.bytes(record, 64)?;
        String::from_utf8(bytes).map(Some).map_err(|_| Error::record(name, "it is not UTF-8"))
    }

    fn check_format(&self) -> Result<(), Error> {
        match self.text("archive_format")? {
            Some(format) if format == "pt2" => {}
            Some(format) => return Err(Error::record("archive_format", format!("`{format}`, it must be `pt2`"))),
            None if self.models().next().is_none() => return Err(self.no_model()),
            None => return Err(Error::NoRecord("archive_format".to_owned())),
        }
        if let Some(version) = self.text("archive_version")? {
            let number: Option<u64> = version.trim().parse().ok();
            if number != Some(0) {
                return Err(Error::record("archive_version", format!("version `{version}`, 0 is read")));
            }
        }
        match self.text("byteorder")? {
            Some(order) if order != "little" => {
                Err(Error::record("byteorder", format!("`{order}`, only `little` is read")))
            }
            _ => Ok(()),
        }
    }
}

fn slice<'a>(bytes: &'a [u8], record: &Record) -> &'a [u8] {
    let start = usize::try_from(record.offset).unwrap_or(usize::MAX);
    let len = usize::try_from(record.len).unwrap_or(usize::MAX);
    bytes.get(start..).and_then(|rest| rest.get(..len)).unwrap_or_default()
}
