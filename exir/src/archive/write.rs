//! Archives out of programs, in the layout of the exporter.
//!
//! Storages stay shared: a record is written once, whatever the number of tensors that look at it. Every record starts at
//! a multiple of 64 bytes.

use std::collections::BTreeMap;
use std::io::Write;

use edgepack_builder::content::Data;
use rawzip::{CompressionMethod, Header, ZipArchiveWriter, extra_fields::ExtraFieldId};

use super::tensors::Weight;
use crate::error::Error;
use crate::graph::{ExportedProgram, Size, TensorMeta};
use crate::json::{PayloadConfig, PayloadMeta};

/// Alignment of records in bytes.
const ALIGNMENT: u64 = 64;

/// The identifier of the extra field that moves a record to its alignment.
const PADDING: u16 = u16::from_le_bytes(*b"FB");

/// Writes one archive.
pub struct ArchiveWriter<W> {
    zip: ZipArchiveWriter<W>,
    root: String,
}

/// Writes a ZIP of stored records from full names and bytes, as [`records`](super::records) reads them.
///
/// ```
/// use edgepack_exir::archive::{records, write_records};
///
/// let archive = write_records([("model/version", b"1".as_slice())]).unwrap();
/// assert_eq!(records(&archive).unwrap(), [("model/version".to_owned(), b"1".as_slice())]);
/// ```
pub fn write_records<'a>(records: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Result<Vec<u8>, Error> {
    let mut writer = ArchiveWriter::new(Vec::new(), "");
    for (name, content) in records {
        writer.record(name, &content.into())?;
    }
    writer.end()
}

impl<W: Write> ArchiveWriter<W> {
    /// An archive whose records are in this folder, or in none if it has no name.
    pub fn new(out: W, root: &str) -> Self {
        ArchiveWriter { zip: ZipArchiveWriter::new(out), root: root.to_owned() }
    }

    /// Adds a record.
    pub fn record(&mut self, name: &str, data: &Data<'_>) -> Result<(), Error> {
        let name = if self.root.is_empty() { name.to_owned() } else { format!("{}/{name}", self.root) };
        // A local header is 30 bytes, the name, then the extra field with 4 bytes in front.
        let header = 34u64.saturating_add(name.len() as u64);
        let start = self.zip.stream_offset().saturating_add(header);
        let padding = start.next_multiple_of(ALIGNMENT).saturating_sub(start);
        let padding = vec![b'Z'; usize::try_from(padding).unwrap_or(0)];
        let builder = self.zip.new_file(&name).compression_method(CompressionMethod::Store);
        let builder = builder.extra_field(ExtraFieldId::new(PADDING), &padding, Header::LOCAL).map_err(Error::zip)?;
        let (mut entry, config) = builder.start().map_err(Error::zip)?;
        let mut out = config.wrap(&mut entry);
        data.write_to(&mut out)?;
        let (_, descriptor) = out.finish().map_err(Error::zip)?;
        entry.finish(descriptor).map_err(Error::zip)?;
        Ok(())
    }

    /// Adds a program under a name, with its tensors.
    pub fn program(&mut self, model: &str, program: &ExportedProgram<'_>) -> Result<(), Error> {
        check_wholes(program)?;
        for (folder, prefix, tensors) in
            [("weights", "weight", &program.weights.state), ("constants", "tensor", &program.weights.constants)]
        {
            let mut records: BTreeMap<String, String> = BTreeMap::new();
            let mut config = PayloadConfig::default();
            for (name, weight) in tensors {
                let storage = weight.storage();
                let next = records.len();
                let path = match records.get(storage.name()) {
                    Some(path) => path.clone(),
                    None => {
                        let path = format!("{prefix}_{next}");
                        self.record(&format!("data/{folder}/{path}"), &storage.data(0, storage.len()))?;
                        records.insert(storage.name().to_owned(), path.clone());
                        path
                    }
                };
                config.config.insert(name.clone(), payload(weight, path));
            }
            self.json(&format!("data/{folder}/{model}_{folder}_config.json"), &config)?;
        }
        // Readers ask for this record. What it would hold is a pickle of example inputs; empty, it says there are none.
        self.record(&format!("data/sample_inputs/{model}.pt"), &Data::from(Vec::new()))?;
        self.json(&format!("models/{model}.json"), &program.to_document())
    }

    fn json(&mut self, name: &str, document: &impl serde::Serialize) -> Result<(), Error> {
        let bytes = serde_json::to_vec(document).map_err(|error| Error::record(name, error))?;
        self.record(name, &Data::from(bytes))
    }

    /// Adds what every archive has and ends it.
    pub fn finish(mut self) -> Result<W, Error> {
        for (name, text) in
            [("archive_format", "pt2"), ("archive_version", "0"), (".data/version", "6\n"), ("byteorder", "little")]
        {
            self.record(name, &Data::from(text.as_bytes()))?;
        }
        self.end()
    }

    /// Ends an archive of another layout, which has records of its own for that.
    pub fn end(self) -> Result<W, Error> {
        self.zip.finish().map_err(Error::zip)
    }
}

impl ExportedProgram<'_> {
    /// Writes the program as an archive that `torch.export.load` reads.
    pub fn save(&self, out: impl Write) -> Result<(), Error> {
        let mut writer = ArchiveWriter::new(out, "archive");
        writer.program("model", self)?;
        writer.finish()?.flush()?;
        Ok(())
    }
}

/// Refuses programs that read a tensor as a whole that is known by its parts only.
pub(super) fn check_wholes(program: &ExportedProgram<'_>) -> Result<(), Error> {
    let names = program.inputs.iter().filter_map(|spec| spec.kind.tensor());
    let mut wholes = names.filter(|name| program.weights.subclasses.contains_key(*name));
    match wholes.next() {
        Some(name) => Err(Error::unsupported("weights", program.weights.missing(name))),
        None => Ok(()),
    }
}

fn payload(weight: &Weight<'_>, path_name: String) -> PayloadMeta {
    let sizes = |numbers: &[usize]| -> Vec<Size> {
        numbers.iter().map(|number| Size::Known(i64::try_from(*number).unwrap_or(i64::MAX))).collect()
    };
    let meta = TensorMeta {
        strides: sizes(weight.strides()),
        storage_offset: Size::Known(i64::try_from(weight.offset()).unwrap_or(i64::MAX)),
        requires_grad: weight.is_param && weight.scalar_type().is_floating(),
        ..TensorMeta::contiguous(weight.scalar_type(), &sizes(weight.sizes()))
    };
    PayloadMeta { path_name, is_param: weight.is_param, use_pickle: false, tensor_meta: Some(meta.to_document()) }
}
