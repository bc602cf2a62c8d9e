//! Archives of exported programs: which programs there are, and their documents.

use std::path::Path;
use std::sync::Arc;

use edgepack_builder::content::Data;

use super::saved::SavedFile;
use super::tensors::{Storage, Weights};
use super::zip::{Place, Record, Zip};
use super::{older, tensors};
use crate::error::Error;
use crate::graph::ExportedProgram;
use crate::json;

/// The largest JSON record that is read.
const MAX_JSON: u64 = 1 << 30;

/// Ceiling of documents in older formats: they are first converted to the current one, which takes more memory.
const MAX_OLDER_JSON: u64 = 1 << 29;

/// The schema versions that are read: the current major one, and the one early exporters wrote.
const MAJOR: [i64; 2] = [8, 0];

/// Schema versions of documents next to pickled tensors; `exir.serde` counts its own versions.
const OLDER_MAJOR: [i64; 3] = [8, 5, 0];

/// The document of an archive that holds one program and no name for it.
const ONLY: &str = "serialized_exported_program.json";

/// Marker of an ETRecord: programs with the stages they went through.
const RECORDED: &str = "ETRECORD_V0";

/// In front of the names of methods in such files.
const EDGE: &str = "edge_dialect_exported_program/";

/// Layout of an archive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Layout {
    /// Layout of `torch.export.save`: programs by name, tensors as raw bytes.
    Named,
    /// Layout of `executorch.exir.serde` and of exporters before 2025: one program, tensors in pickles.
    Single,
    /// An ETRecord: programs of several stages, each with its pickles.
    Recorded,
}

/// An archive of exported programs.
///
/// ```
/// use edgepack_exir::archive::Archive;
/// use edgepack_exir::lower::{Options, lower};
///
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data/corpus/pt2/add/model.pt2");
/// let program = Archive::open(path)?.program()?;
/// assert!(program.to_string().contains("add"));
/// let lowered = lower(vec![("forward".to_owned(), program)], &Options::default())?;
/// assert_eq!(&lowered.to_bytes()?[4..8], b"ET12");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Archive<'a> {
    zip: Zip<'a>,
    layout: Layout,
}

impl<'a> Archive<'a> {
    /// An archive in memory. Tensors borrow from it.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Error> {
        Self::new(Place::Bytes(bytes))
    }

    /// An archive in a file, which must not change as long as programs made from it are to be written.
    pub fn open(path: impl AsRef<Path>) -> Result<Archive<'static>, Error> {
        let path = path.as_ref();
        let len = std::fs::metadata(path)?.len();
        Archive::new(Place::File { path: Arc::new(path.to_owned()), start: 0, len })
    }

    fn new(place: Place<'a>) -> Result<Self, Error> {
        let zip = Zip::new(place, "")?;
        let layout = if zip.record("archive_format").is_some() {
            Layout::Named
        } else if zip.record(RECORDED).is_some() {
            Layout::Recorded
        } else if zip.record(ONLY).is_some() {
            Layout::Single
        } else {
            Layout::Named
        };
        let archive = Archive { zip, layout };
        archive.check_format()?;
        Ok(archive)
    }

    /// The folder that holds all records; empty if there is none.
    pub fn root(&self) -> &str {
        &self.zip.root
    }

    /// Returns the layout of the archive.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// All records, in the order of the directory.
    pub fn records(&self) -> &[Record] {
        &self.zip.records
    }

    /// A record by its name below the root folder.
    pub fn record(&self, name: &str) -> Option<&Record> {
        self.zip.record(name)
    }

    /// The names of the programs inside; `torch.export.save` writes one, called `model`. Of an ETRecord those that became
    /// the file come first.
    pub fn models(&self) -> impl Iterator<Item = &str> {
        let names: Vec<&str> = match self.layout {
            Layout::Single => vec!["model"],
            Layout::Named => {
                let names = self.zip.records.iter().map(|record| record.name.as_str());
                let models = names.filter_map(|name| name.strip_prefix("models/")?.strip_suffix(".json"));
                models.filter(|name| !name.contains('/')).collect()
            }
            Layout::Recorded => {
                let is_program = |name: &&str| self.zip.record(&format!("{name}_state_dict")).is_some();
                let all = || self.zip.records.iter().map(|record| record.name.as_str()).filter(is_program);
                let edge = all().filter(|name| name.starts_with(EDGE));
                edge.chain(all().filter(|name| !name.starts_with(EDGE))).collect()
            }
        };
        names.into_iter()
    }

    /// The programs that become methods of a file, with the names of these where the archive says them.
    pub fn methods(&self) -> Vec<(Option<&str>, &str)> {
        let edge: Vec<_> = match self.layout {
            Layout::Recorded => {
                self.models().filter_map(|model| Some((Some(model.strip_prefix(EDGE)?), model))).collect()
            }
            _ => Vec::new(),
        };
        match edge.is_empty() {
            true => self.models().take(1).map(|model| (None, model)).collect(),
            false => edge,
        }
    }

    /// Texts that the caller of the exporter added, by name.
    pub fn extra(&self) -> impl Iterator<Item = (&str, &Record)> {
        self.zip.records.iter().filter_map(|record| {
            let name = ["extra/", "extra_files/"].iter().find_map(|folder| record.name.strip_prefix(folder))?;
            Some((name, record))
        })
    }

    /// The bytes of a record, wherever they are.
    pub fn data(&self, record: &Record) -> Data<'a> {
        self.zip.data(record)
    }

    /// The bytes of a record as a storage of tensors.
    pub(super) fn storage(&self, record: &Record) -> Storage<'a> {
        self.zip.storage(record)
    }

    /// A record that `torch.save` wrote: a pickle and the storages it names.
    pub(super) fn saved(&self, name: &str) -> Result<SavedFile<'a>, Error> {
        let record = self.record(name).ok_or_else(|| Error::NoRecord(name.to_owned()))?;
        SavedFile::new(&self.zip, record)
    }

    /// The document of a model.
    pub fn document(&self, model: &str) -> Result<json::ExportedProgram, Error> {
        let name = match self.layout {
            Layout::Named => format!("models/{model}.json"),
            Layout::Single => ONLY.to_owned(),
            Layout::Recorded => model.to_owned(),
        };
        let (document, known): (json::ExportedProgram, &[i64]) = match self.layout {
            Layout::Named => (self.json(&name)?, &MAJOR),
            Layout::Single | Layout::Recorded => {
                (older::document(self.read(&name, MAX_OLDER_JSON)?, &name)?, &OLDER_MAJOR)
            }
        };
        let version = document.schema_version;
        if !known.contains(&version.major) {
            let known: Vec<String> = known.iter().map(i64::to_string).collect();
            let (version, known) = (format!("{}.{}", version.major, version.minor), known.join(", "));
            return Err(Error::record(name, format!("schema version {version}, major versions {known} are read")));
        }
        Ok(document)
    }

    /// The tensors of a model.
    pub fn weights(&self, model: &str) -> Result<Weights<'a>, Error> {
        match self.layout {
            Layout::Named => tensors::read(self, model),
            Layout::Single => self.pickled("serialized_state_dict.pt", "serialized_constants.pt"),
            Layout::Recorded => self.pickled(&format!("{model}_state_dict"), &format!("{model}_constants")),
        }
    }

    fn pickled(&self, state: &str, constants: &str) -> Result<Weights<'a>, Error> {
        let mut weights = Weights::default();
        self.saved(state)?.tensors(&mut weights, true)?;
        self.saved(constants)?.tensors(&mut weights, false)?;
        Ok(weights)
    }

    /// The first model, with its tensors.
    pub fn program(&self) -> Result<ExportedProgram<'a>, Error> {
        let model = self.models().next().ok_or_else(|| Error::NoRecord("models/NAME.json".to_owned()))?.to_owned();
        self.model(&model)
    }

    /// A model by name, with its tensors.
    pub fn model(&self, model: &str) -> Result<ExportedProgram<'a>, Error> {
        let document = self.document(model)?;
        let weights = self.weights(model)?;
        ExportedProgram::from_document(document, weights)
    }

    pub(super) fn json<T: serde::de::DeserializeOwned>(&self, name: &str) -> Result<T, Error> {
        let bytes = self.read(name, MAX_JSON)?;
        serde_json::from_slice(&bytes).map_err(|error| Error::json(name, error, bytes.len()))
    }

    /// The bytes of a document.
    fn read(&self, name: &str, most: u64) -> Result<Vec<u8>, Error> {
        let record = self.record(name).ok_or_else(|| Error::NoRecord(name.to_owned()))?;
        self.zip.bytes(record, most)
    }

    fn check_format(&self) -> Result<(), Error> {
        match self.zip.text("archive_format")? {
            Some(format) if format == "pt2" => {}
            Some(format) => return Err(Error::record("archive_format", format!("`{format}`, it must be `pt2`"))),
            None if self.layout != Layout::Named => {}
            None if self.models().next().is_none() => return Err(Error::NoRecord("models/NAME.json".to_owned())),
            None => return Err(Error::NoRecord("archive_format".to_owned())),
        }
        if let Some(version) = self.zip.text("archive_version")? {
            let number: Option<u64> = version.trim().parse().ok();
            if number != Some(0) {
                return Err(Error::record("archive_version", format!("version `{version}`, 0 is read")));
            }
        }
        self.zip.check_byte_order()
    }
}
