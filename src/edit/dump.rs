//! Packages as JSON and back.
//!
//! Every field of every row is there; an absent one is `null`, which is not the empty list. Bytes are base64, or files in
//! a folder. Payloads of XNNPACK that are laid out as exporters do it are rows, too. What comes back has the same rows and
//! the same bytes.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::Path;

use edgepack_builder::write_file::Batch;
use edgepack_format::bundle::BundledProgram;
use edgepack_format::ptd::{FlatData, FlatTensor, LegacyFlatTensor};
use edgepack_format::pte::{DataLocation, Program};
use edgepack_format::row::Blob;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::base64::Encoded;
use super::compiled::{CompiledModel, CompiledPackage};
use super::content::Content;
use super::error::Error;
use super::origin::Origin;
use super::package::{Layout, Package};
use super::payload::{BACKEND, PayloadRows};
use super::places::Places;
use super::reading::DocumentText;
use super::root::Root;

/// Schema name that the document states.
pub(super) const SCHEMA: &str = "edgepack/dump/1";

/// Bytes of a payload that is taken apart; larger ones stay bytes, which can stream.
const MOST_ROWS: u64 = 32 << 20;

/// Destination of the bytes of segments and of data inside the flatbuffer.
#[derive(Debug, Default)]
pub enum Blobs<'d> {
    /// Into the document, in base64.
    #[default]
    Inline,
    /// Into files of this folder, which the document names.
    Folder(&'d Path),
    /// Into files of this folder, as with `Folder`; the files take their places when the batch is committed.
    Batch(&'d Path, &'d mut Batch),
}

impl Blobs<'_> {
    /// Calls back with a place for files; they are in the folder when it returns, or will be when the batch is committed.
    pub(super) fn with<T>(self, visit: impl FnOnce(&mut Store<'_>) -> Result<T, Error>) -> Result<T, Error> {
        match self {
            Blobs::Inline => visit(&mut Store { place: None }),
            Blobs::Folder(folder) => {
                let mut batch = Batch::default();
                let out = visit(&mut Store { place: Some((folder, &mut batch)) })?;
                batch.commit().map_err(Error::io(folder.display().to_string()))?;
                Ok(out)
            }
            Blobs::Batch(folder, batch) => visit(&mut Store { place: Some((folder, batch)) }),
        }
    }
}

/// A folder for bytes, or none.
pub(super) struct Store<'s> {
    place: Option<(&'s Path, &'s mut Batch)>,
}

impl Store<'_> {
    /// Writes a file of this name; `false` if there is no folder, and the bytes belong into the document.
    pub(super) fn put(
        &mut self,
        name: &str,
        content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<bool, Error> {
        let Some((folder, batch)) = &mut self.place else { return Ok(false) };
        let path = folder.join(name);
        batch.write(&path, content).map_err(Error::io(path.display().to_string()))?;
        Ok(true)
    }
}

/// Bytes in the document or next to it.
#[derive(Deserialize)]
#[serde(untagged)]
enum Stored {
    Bytes(Blob<'static>),
    Long(String),
    File(FileName),
    Payload(StoredPayload),
}

/// A delegate's payload in rows.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredPayload {
    xnnpack: Box<PayloadRows<'static>>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileName {
    file: String,
}

/// Replacement of bytes in the document: see [`Stored`].
#[derive(Serialize)]
#[serde(untagged)]
enum OutgoingStored<'r> {
    Bytes(Encoded<'r>),
    File(FileName),
    Payload { xnnpack: Value },
}

#[derive(Serialize)]
struct Outgoing<'r, 'a> {
    schema: &'static str,
    layout: Layout,
    #[serde(flatten)]
    root: OutgoingRoot<'r, 'a>,
    segments: Vec<OutgoingStored<'r>>,
    /// Data inside the flatbuffer that is in files: place of the row, name of the file.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    files: BTreeMap<String, String>,
    /// Payloads inside the flatbuffer that are in rows, by the place of the row.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    payload_rows: BTreeMap<String, Value>,
    /// Payloads of delegates as their decoders describe them; their bytes or rows stay where they are, and are what counts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    payloads: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    places: Option<&'r Places>,
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<&'r Origin>,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum OutgoingRoot<'r, 'a> {
    Program(&'r Program<'a>),
    Data(&'r FlatTensor<'a>),
    LegacyData(&'r LegacyFlatTensor<'a>),
    FlatData(&'r FlatData<'a>),
    Bundle(&'r BundledProgram<'a>),
    Package(&'r CompiledPackage<'a>),
    Model(&'r CompiledModel<'a>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Incoming {
    schema: String,
    #[serde(default)]
    layout: Layout,
    program: Option<Program<'static>>,
    data: Option<FlatTensor<'static>>,
    legacy_data: Option<LegacyFlatTensor<'static>>,
    flat_data: Option<FlatData<'static>>,
    bundle: Option<BundledProgram<'static>>,
    package: Option<Box<CompiledPackage<'static>>>,
    model: Option<Box<CompiledModel<'static>>>,
    #[serde(default)]
    segments: Vec<Stored>,
    #[serde(default)]
    files: BTreeMap<String, String>,
    #[serde(default)]
    payload_rows: BTreeMap<String, PayloadRows<'static>>,
    /// For readers only.
    #[serde(default, rename = "payloads")]
    _payloads: IgnoredAny,
    places: Option<Box<Places>>,
    origin: Option<Origin>,
}

/// The package as JSON with everything in it.
pub fn dump(package: &Package<'_>) -> Result<String, Error> {
    dump_with(package, Blobs::Inline)
}

/// The package as JSON, bytes where `blobs` says. Files of the folder that have the same names are replaced.
pub fn dump_with(package: &Package<'_>, blobs: Blobs<'_>) -> Result<String, Error> {
    dump_described(package, &[], blobs)
}

/// The package as JSON with payloads of delegates described next to their bytes. Building takes the bytes and passes over
/// the descriptions.
pub fn dump_described(package: &Package<'_>, payloads: &[Value], blobs: Blobs<'_>) -> Result<String, Error> {
    let mut text = Vec::new();
    Document::of(package, payloads, blobs)?.write_to(&mut text)?;
    String::from_utf8(text).map_err(|_| Error::Document("a text is not UTF-8".to_owned()))
}

/// A package as JSON, to be written: the bytes of segments stream through.
pub struct Document<'p, 'a> {
    package: &'p Package<'a>,
    /// The rows, without data that is in files or in rows of its own.
    root: Root<'a>,
    segments: Vec<Segment>,
    files: BTreeMap<String, String>,
    payload_rows: BTreeMap<String, Value>,
    payloads: Vec<Value>,
}

/// Place of a segment's bytes.
enum Segment {
    Here,
    File(String),
    Rows(Value),
}

impl<'p, 'a> Document<'p, 'a> {
    /// The document of a package with payloads of delegates described; what belongs into files is written to them.
    pub fn of(package: &'p Package<'a>, payloads: &[Value], blobs: Blobs<'_>) -> Result<Self, Error> {
        blobs.with(|store| Self::stored(package, payloads, store))
    }

    fn stored(package: &'p Package<'a>, payloads: &[Value], store: &mut Store<'_>) -> Result<Self, Error> {
        let mut apart = Apart::of(package)?;
        let mut segments = Vec::new();
        for (index, content) in package.segments.iter().enumerate() {
            if let Some(rows) = apart.segments.remove(&index) {
                segments.push(Segment::Rows(rows));
                continue;
            }
            let file = format!("segment-{index}.bin");
            segments.push(match !content.is_empty() && store.put(&file, |out| content.write_to(out))? {
                true => Segment::File(file),
                false => Segment::Here,
            });
        }
        let mut root = package.root.clone();
        if let (Some(places), Root::Model(model)) = (&package.places, &mut root)
            && let Some(rows) = places.rows_of(&package.root)?
        {
            (model.rows, model.around) = (Some(Box::new(rows)), Vec::new());
        }
        let mut files = BTreeMap::new();
        inline(&mut root, |place, blob| {
            if apart.inline.contains_key(&place) {
                *blob = Blob::default();
                return Ok(());
            }
            let file = format!("{}.bin", place.replace(['[', '.'], "-").replace(']', ""));
            if !blob.as_slice().is_empty() && store.put(&file, |out| out.write_all(blob.as_slice()))? {
                *blob = Blob::default();
                files.insert(place, file);
            }
            Ok(())
        })?;
        let payloads = payloads.iter().map(|payload| apart.described(payload)).collect();
        Ok(Document { package, root, segments, files, payload_rows: apart.inline, payloads })
    }

    /// Writes the JSON.
    pub fn write_to(self, out: &mut dyn Write) -> Result<(), Error> {
        let root = match &self.root {
            Root::Program(row) => OutgoingRoot::Program(row),
            Root::Data(row) => OutgoingRoot::Data(row),
            Root::LegacyData(row) => OutgoingRoot::LegacyData(row),
            Root::FlatData(row) => OutgoingRoot::FlatData(row),
            Root::Bundle(row) => OutgoingRoot::Bundle(row),
            Root::EdgeTpu(package) => OutgoingRoot::Package(package),
            Root::Model(model) => OutgoingRoot::Model(model),
        };
        let failed = RefCell::new(None);
        let segments = self.segments.into_iter().zip(&self.package.segments).map(|(segment, content)| match segment {
            Segment::Here => OutgoingStored::Bytes(Encoded { content, failed: &failed }),
            Segment::File(file) => OutgoingStored::File(FileName { file }),
            Segment::Rows(xnnpack) => OutgoingStored::Payload { xnnpack },
        });
        let document = Outgoing {
            schema: SCHEMA,
            layout: self.package.layout,
            root,
            segments: segments.collect(),
            files: self.files,
            payload_rows: self.payload_rows,
            payloads: self.payloads,
            places: self.package.places.as_deref(),
            origin: self.package.origin.as_ref(),
        };
        let written = serde_json::to_writer_pretty(&mut *out, &document);
        drop(document);
        if let Some(error) = failed.into_inner() {
            return Err(Error::Io { what: "a segment".to_owned(), error });
        }
        written.map_err(io::Error::from)?;
        Ok(out.write_all(b"\n")?)
    }
}

/// Payloads that are taken apart.
#[derive(Default)]
struct Apart {
    /// Rows by segment.
    segments: BTreeMap<usize, Value>,
    /// Rows by the place of the bytes in the flatbuffer.
    inline: BTreeMap<String, Value>,
    /// Places of delegates whose payloads these are.
    delegates: BTreeSet<String>,
}

impl Apart {
    /// Returns the parts of a program's payloads whose rows state all of their bytes.
    fn of(package: &Package<'_>) -> Result<Self, Error> {
        let mut apart = Apart::default();
        let Some(program) = package.program() else { return Ok(apart) };
        for (method, plan) in program.execution_plan.iter().flat_map(|rows| rows.iter()).enumerate() {
            for (index, delegate) in plan?.delegates.iter().flat_map(|rows| rows.iter()).enumerate() {
                let delegate = delegate?;
                let Some(at) = delegate.processed.filter(|_| delegate.id.as_deref() == Some(BACKEND)) else { continue };
                let place = usize::try_from(at.index).unwrap_or(usize::MAX);
                let is_apart = match at.location {
                    DataLocation::SEGMENT => apart.segment(package, place)?,
                    DataLocation::INLINE => apart.row(program, place)?,
                    _ => false,
                };
                if is_apart {
                    apart.delegates.insert(format!("execution_plan[{method}].delegates[{index}].processed"));
                }
            }
        }
        Ok(apart)
    }

    fn segment(&mut self, package: &Package<'_>, index: usize) -> Result<bool, Error> {
        let Some(content) = package.segments.get(index).filter(|content| content.len() <= MOST_ROWS) else {
            return Ok(false);
        };
        if self.segments.contains_key(&index) {
            return Ok(true);
        }
        let bytes = content.read().map_err(Error::io(format!("segment {index}")))?;
        let rows = PayloadRows::canonical(&bytes).map(serde_json::to_value).transpose()?;
        Ok(rows.map(|rows| self.segments.insert(index, rows)).is_some())
    }

    fn row(&mut self, program: &Program<'_>, index: usize) -> Result<bool, Error> {
        let place = format!("backend_delegate_data[{index}]");
        let row = program.backend_delegate_data.as_ref().and_then(|rows| rows.get(index).ok());
        let Some(blob) = row.and_then(|row| row.data) else { return Ok(false) };
        if self.inline.contains_key(&place) {
            return Ok(true);
        }
        let rows = PayloadRows::canonical(blob.as_slice()).map(serde_json::to_value).transpose()?;
        Ok(rows.map(|rows| self.inline.insert(place, rows)).is_some())
    }

    /// A description that says whether its payload is in rows, where its fields are, or in bytes.
    fn described(&self, payload: &Value) -> Value {
        let mut payload = payload.clone();
        let is_apart = payload["path"].as_str().is_some_and(|path| self.delegates.contains(path));
        let is_known = payload["backend"] == BACKEND;
        if let Some(fields) = payload.as_object_mut().filter(|_| is_known) {
            fields.insert("stored".to_owned(), if is_apart { "rows" } else { "bytes" }.into());
            if is_apart {
                fields.remove("fields");
            }
        }
        payload
    }
}

/// A package from JSON that names no files.
pub fn build(json: &str) -> Result<Package<'static>, Error> {
    build_with(json, None)
}

/// A package from JSON; files that it names are those of the folder, read when they are needed.
pub fn build_with(json: &str, folder: Option<&Path>) -> Result<Package<'static>, Error> {
    build_from(json, &mut |file| beside(folder, file))
}

/// A file of the folder.
pub(super) fn beside(folder: Option<&Path>, file: &str) -> Result<Content, Error> {
    let folder = folder.ok_or_else(|| Error::Document(format!("{file:?} is in a folder that was not given")))?;
    Content::of_file(folder.join(file))
}

/// A package from JSON; `open` opens the files that it names, which are plain names.
pub fn build_from(json: &str, open: &mut dyn FnMut(&str) -> Result<Content, Error>) -> Result<Package<'static>, Error> {
    build_document(&DocumentText::of(json)?, open)
}

/// A package from a document, whose longest texts are read when their bytes are needed; `open` opens the files that it
/// names, which are plain names.
pub fn build_document(
    document: &DocumentText,
    open: &mut dyn FnMut(&str) -> Result<Content, Error>,
) -> Result<Package<'static>, Error> {
    let incoming: Incoming = serde_json::from_str(document.text())?;
    if incoming.schema != SCHEMA {
        return Err(Error::Document(format!("the schema is {:?}, `{SCHEMA}` is known", incoming.schema)));
    }
    let Incoming { layout, program, data, legacy_data, flat_data, bundle, package, model, .. } = incoming;
    let Incoming { segments, files, payload_rows, places, origin, .. } = incoming;
    let roots = [
        program.map(Root::Program),
        data.map(Root::Data),
        legacy_data.map(Root::LegacyData),
        flat_data.map(Root::FlatData),
        bundle.map(Root::Bundle),
        package.map(Root::EdgeTpu),
        model.map(Root::Model),
    ];
    let mut roots: Vec<_> = roots.into_iter().flatten().collect();
    let (Some(mut root), true) = (roots.pop(), roots.is_empty()) else {
        let message =
            "exactly one of `program`, `data`, `legacy_data`, `flat_data`, `bundle`, `package` and `model` is wanted";
        return Err(Error::Document(message.to_owned()));
    };
    let mut open = |file: &str| {
        plain_name(file)?;
        open(file)
    };
    let mut contents = Vec::new();
    for stored in segments {
        contents.push(match stored {
            Stored::Bytes(bytes) => Content::from(bytes.0.into_owned()),
            Stored::Long(text) => match document.content(&text) {
                Some(content) => content?,
                None => return Err(Error::Document(format!("segments[{}] is not base64", contents.len()))),
            },
            Stored::File(FileName { file }) => open(&file)?,
            Stored::Payload(payload) => Content::from(payload.xnnpack.to_bytes()?),
        });
    }
    let (mut missing, mut rows) = (files, payload_rows);
    inline(&mut root, |place, blob| {
        if let Some(rows) = rows.remove(&place) {
            *blob = Blob(rows.to_bytes()?.into());
        }
        if let Some(file) = missing.remove(&place) {
            *blob = Blob(open(&file)?.read().map_err(Error::io(file))?.into_owned().into());
        }
        Ok(())
    })?;
    match (missing.into_keys().next(), rows.into_keys().next()) {
        (Some(place), _) => Err(Error::Document(format!("`files` names {place:?}, where no data is"))),
        (_, Some(place)) => Err(Error::Document(format!("`payload_rows` names {place:?}, where no data is"))),
        _ => Ok(Package { root, segments: contents, layout, places, origin }),
    }
}

/// A file that a document names is one next to it: its name leads nowhere else.
pub(crate) fn plain_name(file: &str) -> Result<(), Error> {
    let plain = !file.is_empty() && file != "." && file != ".." && !file.contains(['/', '\\', ':', '\0']);
    match plain {
        true => Ok(()),
        false => Err(Error::refused("file", format!("{file:?} is not the plain name of a file"))),
    }
}

/// Visits the data inside a flatbuffer that can be large.
pub(super) fn inline(
    root: &mut Root<'_>,
    mut visit: impl FnMut(String, &mut Blob<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    match root {
        Root::Program(program) => {
            for rows in program.constant_buffer.iter_mut() {
                for (index, row) in rows.to_mut()?.iter_mut().enumerate() {
                    let Some(blob) = &mut row.storage else { continue };
                    visit(format!("constant_buffer[{index}]"), blob)?;
                }
            }
            for rows in program.backend_delegate_data.iter_mut() {
                for (index, row) in rows.to_mut()?.iter_mut().enumerate() {
                    let Some(blob) = &mut row.data else { continue };
                    visit(format!("backend_delegate_data[{index}]"), blob)?;
                }
            }
            Ok(())
        }
        Root::Bundle(bundle) => match &mut bundle.program {
            Some(blob) => visit("program".to_owned(), blob),
            None => Ok(()),
        },
        Root::EdgeTpu(package) => package.each_blob("package", &mut visit),
        Root::Model(model) => {
            for (index, piece) in model.around.iter_mut().enumerate() {
                visit(format!("model.around[{index}]"), piece)?;
            }
            if let Some(rows) = &mut model.rows {
                rows.each_blob("model.rows", &mut visit)?;
            }
            for (index, package) in model.packages.iter_mut().enumerate() {
                package.each_blob(&format!("model.packages[{index}]"), &mut visit)?;
            }
            Ok(())
        }
        _ => Ok(()),
    }
}
