//! Library packages as JSON and back, and what differs between two.
//!
//! Metadata and graphs are JSON in the document as they are in the package, parameters are tensors with names, and all
//! other files are text, or base64 where they are not. What the builder wrote comes back to the byte; with the layout of
//! its archive, so does what others wrote.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use edgepack_builder::mlf::{LibraryParts, ModuleParts, graph_text, params_file};
use edgepack_format::limits::Limits;
use edgepack_format::mlf::Params;
use edgepack_format::mlf::json::Json;
use edgepack_format::mlf::place::{self, METADATA};
use edgepack_format::mlf::{ArchiveLayout, DataType, Metadata, Param, verify_graph};
use edgepack_loader::mlf::Library;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::content::Content;
use super::diff::{DiffOptions, Difference, DifferenceKind, close, json};
use super::dump::{Blobs, SCHEMA, Store, beside, plain_name};
use super::error::Error;
use super::origin::Origin;

#[derive(Serialize, Deserialize)]
struct Document {
    schema: String,
    library: Parts,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parts {
    metadata: Value,
    modules: Vec<Module>,
    files: Vec<File>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    origin: Option<Origin>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    layout: Option<ArchiveLayout>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Module {
    graph: Option<Value>,
    params: Option<Vec<Tensor>>,
    relay: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct Tensor {
    name: String,
    dtype: String,
    shape: Vec<u64>,
    #[serde(default)]
    device_id: i32,
    #[serde(flatten)]
    data: Stored,
}

#[derive(Serialize, Deserialize)]
struct File {
    path: String,
    #[serde(flatten)]
    content: Stored,
}

/// Content in the document, or in a file next to it.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Stored {
    Text(String),
    Base64(String),
    File(String),
}

impl Stored {
    fn bytes(self, open: &mut Open<'_>) -> Result<Vec<u8>, Error> {
        match self {
            Stored::Text(text) => Ok(text.into_bytes()),
            Stored::Base64(text) => STANDARD.decode(text).map_err(|error| Error::Document(error.to_string())),
            Stored::File(name) => {
                plain_name(&name)?;
                Ok(open(&name)?.read().map_err(Error::io(name))?.into_owned())
            }
        }
    }
}

/// Opens a file that a document names.
type Open<'o> = dyn FnMut(&str) -> Result<Content, Error> + 'o;

/// Stores bytes where there is a place for them.
fn stored(bytes: &[u8], name: impl FnOnce() -> String, store: &mut Store<'_>) -> Result<Stored, Error> {
    let name = name();
    match !bytes.is_empty() && store.put(&name, |out| out.write_all(bytes))? {
        true => Ok(Stored::File(name)),
        false => Ok(Stored::Base64(STANDARD.encode(bytes))),
    }
}

fn document(error: impl std::fmt::Display) -> Error {
    Error::Document(error.to_string())
}

/// The parts of an open package, with the layout of its archive, if that can be kept: the package is written as it was
/// read, to the byte.
pub fn library_parts(library: &Library) -> LibraryParts<'_> {
    let parts = LibraryParts::of(library.metadata().clone(), &library.members());
    let text = library.file(METADATA).and_then(|text| std::str::from_utf8(text).ok());
    match (library.layout(), text) {
        (Ok(layout), Some(text)) => parts.with_layout(layout, text),
        _ => parts,
    }
}

/// The package as JSON, bytes where `blobs` says. The layout of its archive is in it, if the parts have one.
pub fn dump_library(parts: &LibraryParts<'_>, blobs: Blobs<'_>) -> Result<String, Error> {
    blobs.with(|store| dumped(parts, None, store))
}

/// The package as JSON like [`dump_library`], with digests of the archive it is from: `build` says whether it made the
/// same.
pub fn dump_library_of(library: &Library, parts: &LibraryParts<'_>, blobs: Blobs<'_>) -> Result<String, Error> {
    // A document without the layout gives these texts; all else it gives as it is.
    let metadata = metadata_of(&serde_json::from_str(&parts.metadata.to_text())?)?;
    let mut own = LibraryParts { metadata, layout: None, ..parts.clone() };
    for graph in own.modules.iter_mut().filter_map(|module| module.graph.as_mut()) {
        *graph = graph_of(&serde_json::from_str::<Value>(graph)?.to_string())?.into();
    }
    let own = own.archive().map_err(|error| Error::refused("the archive", error.to_string()))?.0;
    let origin = Origin::of(&Content::from(library.bytes().to_vec()), |out| out.write_all(&own))?;
    blobs.with(|store| dumped(parts, Some(origin), store))
}

fn dumped(parts: &LibraryParts<'_>, origin: Option<Origin>, store: &mut Store<'_>) -> Result<String, Error> {
    let mut modules = Vec::new();
    let mut layout = parts.layout.clone();
    let version = parts.metadata.version;
    let mut files = Vec::new();
    for (index, module) in parts.modules.iter().enumerate() {
        let name = parts.metadata.modules.get(index).map(|module| module.name.as_str()).unwrap_or_default();
        let graph: Option<Value> = module.graph.as_ref().map(|text| serde_json::from_str(text)).transpose()?;
        if let (Some(layout), Some(text), Some(value)) = (&mut layout, &module.graph, &graph)
            && graph_of(&value.to_string())? != **text
        {
            layout.texts.insert(place::graph(version, name), text.to_string());
        }
        let stored = match &module.params {
            Some(bytes) => {
                let params = Params::parse(bytes, &Limits::DEFAULT).map_err(Error::Invalid)?;
                match is_plain(&params, bytes) {
                    true => {
                        let tensors =
                            params.entries.iter().enumerate().map(|(place, param)| tensor(param, index, place, store));
                        Some(tensors.collect::<Result<Vec<_>, _>>()?)
                    }
                    false => {
                        let content = stored(bytes, || format!("module-{index}-params.bin"), store)?;
                        files.push(File { path: place::params(name), content });
                        None
                    }
                }
            }
            None => None,
        };
        modules.push(Module { graph, params: stored, relay: module.relay.as_ref().map(ToString::to_string) });
    }
    for (index, (path, bytes)) in parts.files.iter().enumerate() {
        let content = match std::str::from_utf8(bytes) {
            Ok(text) => Stored::Text(text.to_owned()),
            Err(_) => stored(bytes, || format!("file-{index}.bin"), store)?,
        };
        files.push(File { path: path.clone(), content });
    }
    let metadata = serde_json::from_str(&parts.metadata.to_text())?;
    let library = Parts { metadata, modules, files, origin, layout };
    let mut text = serde_json::to_string_pretty(&Document { schema: SCHEMA.to_owned(), library })?;
    text.push('\n');
    Ok(text)
}

/// Returns whether parameters are written back as the bytes they were read from. Reserved words that are not zero, and
/// bytes behind the last tensor, are no part of them; such a file stays as it is.
fn is_plain(params: &Params<'_>, bytes: &[u8]) -> bool {
    params_file(&params.entries).is_ok_and(|written| written == bytes)
}

fn tensor(param: &Param<'_>, module: usize, place: usize, store: &mut Store<'_>) -> Result<Tensor, Error> {
    Ok(Tensor {
        name: param.name.to_owned(),
        dtype: param.data_type.to_string(),
        shape: param.shape.clone(),
        device_id: param.device_id,
        data: stored(param.data, || format!("module-{module}-param-{place}.bin"), store)?,
    })
}

/// Returns whether a document is of a library package.
pub fn is_library_dump(text: &str) -> bool {
    #[derive(Deserialize)]
    struct Probe {
        library: Option<serde::de::IgnoredAny>,
    }
    serde_json::from_str::<Probe>(text).is_ok_and(|probe| probe.library.is_some())
}

/// The package that a document describes; files it names are in `folder`.
pub fn build_library(text: &str, folder: Option<&Path>) -> Result<LibraryParts<'static>, Error> {
    Ok(build_library_from(text, &mut |file| beside(folder, file))?.0)
}

/// Builds a package like [`build_library`]; `open` opens the files that the document names, which are plain names. The
/// document may know what it was made of.
pub fn build_library_from(text: &str, open: &mut Open<'_>) -> Result<(LibraryParts<'static>, Option<Origin>), Error> {
    let Document { schema, library } = serde_json::from_str(text)?;
    if schema != SCHEMA {
        return Err(Error::Document(format!("the schema is {schema:?}, not {SCHEMA:?}")));
    }
    let metadata = metadata_of(&library.metadata)?;
    if metadata.modules.len() != library.modules.len() {
        let message =
            format!("the metadata have {} modules, the document {}", metadata.modules.len(), library.modules.len());
        return Err(Error::Document(message));
    }
    let recorded = |path: String, value: &Value| {
        let text = library.layout.as_ref()?.texts.get(&path)?;
        (serde_json::from_str::<Value>(text).ok()? == *value).then(|| text.clone())
    };
    let mut modules = Vec::new();
    for (module, info) in library.modules.into_iter().zip(&metadata.modules) {
        let graph = match module.graph {
            Some(value) => match recorded(place::graph(metadata.version, &info.name), &value) {
                Some(text) => Some(text),
                None => Some(graph_of(&value.to_string())?),
            },
            None => None,
        };
        let params = module.params.map(|tensors| params_of(tensors, open)).transpose()?;
        modules.push(ModuleParts {
            graph: graph.map(Cow::Owned),
            params: params.map(Cow::Owned),
            relay: module.relay.map(Cow::Owned),
        });
    }
    let files = library.files.into_iter().map(|file| Ok((file.path, Cow::Owned(file.content.bytes(open)?))));
    let files = files.collect::<Result<BTreeMap<_, _>, Error>>()?;
    Ok((LibraryParts { metadata, modules, files, layout: library.layout }, library.origin))
}

/// The metadata that a document holds.
fn metadata_of(value: &Value) -> Result<Metadata, Error> {
    Metadata::parse(value.to_string().as_bytes(), &Limits::DEFAULT).map_err(Error::Invalid)
}

/// The text of a graph in the builder's form; one that is not a graph stays as it is.
fn graph_of(text: &str) -> Result<String, Error> {
    match verify_graph(text.as_bytes(), &Limits::DEFAULT).1 {
        Some(graph) => Ok(graph_text(&graph)),
        None => {
            let mut budget = edgepack_format::limits::Budget::new(&Limits::DEFAULT);
            Json::parse(text.as_bytes(), &mut budget).map(|json| json.pretty()).map_err(document)
        }
    }
}

fn params_of(tensors: Vec<Tensor>, open: &mut Open<'_>) -> Result<Vec<u8>, Error> {
    let mut read = Vec::new();
    for tensor in tensors {
        let data_type: DataType = tensor.dtype.parse().map_err(document)?;
        read.push((tensor.name, data_type, tensor.shape, tensor.device_id, tensor.data.bytes(open)?));
    }
    let mut params = Vec::new();
    for (name, data_type, shape, device_id, data) in &read {
        let (data_type, device_id) = (*data_type, *device_id);
        params.push(Param { name, device_id, data_type, shape: shape.clone(), at: 0, data });
    }
    params_file(&params).map_err(|error| Error::refused("parameters", error.to_string()))
}

/// The archive of a package, right or wrong: nothing is verified. It has the recorded layout, unless that does not fit.
pub fn write_library(parts: &LibraryParts<'_>) -> Result<Vec<u8>, Error> {
    Ok(parts.archive().map_err(|error| Error::refused("the archive", error.to_string()))?.0)
}

/// Returns the differences of two packages: metadata, graphs, parameters, files. An archive's layout does not count.
pub fn diff_libraries(
    left: &LibraryParts<'_>,
    right: &LibraryParts<'_>,
    options: &DiffOptions,
) -> Result<Vec<Difference>, Error> {
    let mut found = Vec::new();
    json::compare("metadata", Some(&left.metadata.to_text()), Some(&right.metadata.to_text()), &mut found)?;
    fn by_name<'p, 'a>(parts: &'p LibraryParts<'a>) -> BTreeMap<&'p str, &'p ModuleParts<'a>> {
        // Of several modules of one name the first counts.
        let modules = parts.metadata.modules.iter().map(|module| module.name.as_str()).zip(&parts.modules);
        modules.rev().collect()
    }
    let (ours, theirs) = (by_name(left), by_name(right));
    let all: BTreeSet<&str> = ours.keys().chain(theirs.keys()).copied().collect();
    let none = ModuleParts::default();
    for name in all {
        let (left, right) = (ours.get(name).copied().unwrap_or(&none), theirs.get(name).copied().unwrap_or(&none));
        json::compare(&format!("{name}.graph"), left.graph.as_deref(), right.graph.as_deref(), &mut found)?;
        diff_params(name, left, right, options, &mut found)?;
        if left.relay != right.relay {
            found.push(difference(format!("{name}.relay"), text_of(&left.relay), text_of(&right.relay)));
        }
    }
    let paths: BTreeSet<&String> = left.files.keys().chain(right.files.keys()).collect();
    for path in paths {
        let (a, b) = (left.files.get(path), right.files.get(path));
        if a != b {
            let describe = |bytes: Option<&Cow<'_, [u8]>>| {
                bytes.map_or("absent".to_owned(), |bytes| format!("{} bytes", bytes.len()))
            };
            found.push(difference(path.clone(), describe(a), describe(b)));
        }
    }
    Ok(found)
}

fn difference(path: String, left: String, right: String) -> Difference {
    Difference { path, left, right, kind: DifferenceKind::Structure }
}

fn text_of(text: &Option<Cow<'_, str>>) -> String {
    text.as_ref().map_or("absent".to_owned(), |text| format!("{} characters", text.chars().count()))
}

fn diff_params(
    module: &str,
    left: &ModuleParts<'_>,
    right: &ModuleParts<'_>,
    options: &DiffOptions,
    found: &mut Vec<Difference>,
) -> Result<(), Error> {
    fn read<'p>(parts: &'p ModuleParts<'_>) -> Result<BTreeMap<&'p str, Param<'p>>, Error> {
        let Some(bytes) = &parts.params else { return Ok(BTreeMap::new()) };
        let params = Params::parse(bytes, &Limits::DEFAULT).map_err(Error::Invalid)?;
        Ok(params.entries.into_iter().map(|param| (param.name, param)).collect())
    }
    let (left, right) = (read(left)?, read(right)?);
    let names: BTreeSet<&str> = left.keys().chain(right.keys()).copied().collect();
    for name in names {
        let path = format!("{module}.params.{name}");
        let describe = |param: Option<&Param<'_>>| {
            param.map_or("absent".to_owned(), |param| format!("{}{:?}", param.data_type, param.shape))
        };
        let (a, b) = (left.get(name), right.get(name));
        let (Some(first), Some(second)) = (a, b) else {
            found.push(difference(path, describe(a), describe(b)));
            continue;
        };
        if first.data_type != second.data_type || first.shape != second.shape {
            found.push(difference(path, describe(a), describe(b)));
        } else if let Some(count) = elements_apart(first, second, options) {
            let (left, right) = (describe(a), format!("{count} other elements"));
            found.push(Difference { path, left, right, kind: DifferenceKind::Content });
        }
    }
    Ok(())
}

/// Returns the number of elements that differ by more than allowed; `None` if there are none.
fn elements_apart(left: &Param<'_>, right: &Param<'_>, options: &DiffOptions) -> Option<usize> {
    if left.data == right.data {
        return None;
    }
    let size = usize::try_from(left.data_type.stored_bytes()).unwrap_or(1).max(1);
    let scalar_type = left.data_type.scalar_type();
    let float = |bytes: &[u8]| scalar_type?.read_float(bytes);
    let pairs = left.data.chunks(size).zip(right.data.chunks(size));
    let apart = pairs.filter(|(a, b)| match (float(a), float(b)) {
        (Some(x), Some(y)) => a != b && !close(x, y, options),
        _ => a != b,
    });
    Some(apart.count()).filter(|count| *count > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use edgepack_builder::mlf::GraphBuilder;
    use edgepack_format::mlf::{Memory, Module as Info, Style, Targets};

    fn parts(data: &[u8]) -> LibraryParts<'_> {
        let float32 = "float32".parse().unwrap();
        let mut graph = GraphBuilder::new();
        let (x, p) = (graph.argument("x", float32, &[2]), graph.argument("p0", float32, &[2]));
        let y = graph.call("tvmgen_m_add", &[x, p], &[(float32, &[2])])[0];
        graph.output(y);
        let info = Info {
            name: "m".into(),
            export_datetime: "2024-01-01 00:00:00Z".into(),
            style: Style::FullModel,
            executors: vec!["graph".into()],
            target: Targets::List(vec!["c".into()]),
            memory: Memory { main: Some(Vec::new()), operators: Some(Vec::new()), ..Memory::default() },
            ..Info::default()
        };
        let param = Param { name: "p0", device_id: 0, data_type: float32, shape: vec![2], at: 0, data };
        let mut parts = LibraryParts::new(7);
        parts.graph_module(info, &graph.finish().unwrap(), &[param], Some("def @main() {}")).unwrap();
        parts.code("m", "host", "c", b"int tvmgen_m_add(void) { return 0; }".as_slice());
        parts.code("m", "host", "o", b"\x7fELF\xff".as_slice());
        parts
    }

    #[test]
    fn a_package_survives_json_to_the_byte() {
        let parts = parts(&[0, 0, 128, 63, 0, 0, 0, 64]);
        let json = dump_library(&parts, Blobs::Inline).unwrap();
        assert!(is_library_dump(&json));
        let again = build_library(&json, None).unwrap();
        assert_eq!(write_library(&again).unwrap(), parts.finish().unwrap());
        assert_eq!(diff_libraries(&parts, &again, &DiffOptions::default()).unwrap(), []);
    }

    #[test]
    fn differences_are_named_by_place() {
        let (a, b) = (parts(&[0, 0, 128, 63, 0, 0, 0, 64]), parts(&[0, 0, 128, 63, 1, 0, 0, 64]));
        let found = diff_libraries(&a, &b, &DiffOptions::default()).unwrap();
        assert_eq!(found.iter().map(|one| one.path.as_str()).collect::<Vec<_>>(), ["m.params.p0"]);
        let loose = DiffOptions { rtol: 1e-5, ..DiffOptions::default() };
        assert_eq!(diff_libraries(&a, &b, &loose).unwrap(), []);
        let mut c = parts(&[0, 0, 128, 63, 0, 0, 0, 64]);
        c.metadata.modules[0].target = Targets::List(vec!["llvm".into()]);
        c.files.clear();
        let found = diff_libraries(&a, &c, &DiffOptions::default()).unwrap();
        let paths: Vec<&str> = found.iter().map(|one| one.path.as_str()).collect();
        assert_eq!(paths, ["metadata.modules.m.target[0]", "codegen/host/lib/m_lib0.o", "codegen/host/src/m_lib0.c"]);
    }
}
