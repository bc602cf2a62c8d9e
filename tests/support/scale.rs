//! Files with many of one thing: every list of a document is made longer, one at a time.
//!
//! Documents are what `dump` writes, and the graphs of exported programs; a list that a schema gains later is made longer
//! without a word here. A list grows by copies of its last item: alike, or with names of their own.

use std::path::Path;

use edgepack::edit::{Blobs, Opened, build, build_library, dump_library, dump_with, library_parts, write_library};
use edgepack_builder::raw;
use edgepack_exir::archive::{Archive, ArchiveWriter};
use edgepack_format::pte::{BackendDelegate, BackendDelegateDataReference, DataLocation};
use edgepack_format::trace::ETDump;
use edgepack_loader::mlf::Library;
use serde_json::{Map, Value};

use crate::assemble::{self, Assembly, float};
use crate::hostile;

/// Makes a file of a document; `None` if it describes none.
type Write = Box<dyn Fn(&Value) -> Option<Vec<u8>>>;

/// Items that lists gain.
const ITEMS: usize = 200;

/// A document, and how a file is made of it.
pub struct Document {
    /// Name of what the document is made of.
    pub name: String,
    /// Items that tell its work from that of a small file: few where each is a whole executable.
    pub items: usize,
    root: Value,
    write: Write,
}

/// A list of a document.
#[derive(Clone, Debug)]
pub struct List {
    /// Place of the list, with `*` for every index.
    pub name: String,
    pointer: String,
}

impl Document {
    /// Every list, one of each place. Lists of the same schema elsewhere are left out.
    pub fn lists(&self) -> Vec<List> {
        let mut found: Vec<List> = Vec::new();
        walk(&self.root, &mut String::new(), &mut String::new(), &mut |name, pointer| {
            if !found.iter().any(|list| list.name == name) {
                found.push(List { name: name.to_owned(), pointer: pointer.to_owned() });
            }
        });
        found
    }

    /// The file with one list that much longer; `None` if there is no such file.
    pub fn with(&self, list: &List, more: usize, named: bool) -> Option<Vec<u8>> {
        let mut root = self.root.clone();
        lengthen(&mut root, &list.pointer, more, named)?;
        // Rows of segments and their contents go together.
        if list.pointer.ends_with("/segments") {
            let other = if list.pointer == "/segments" { "/program/segments" } else { "/segments" };
            lengthen(&mut root, other, more, named);
        }
        (self.write)(&root)
    }
}

fn walk(value: &Value, name: &mut String, pointer: &mut String, found: &mut dyn FnMut(&str, &str)) {
    let lens = (name.len(), pointer.len());
    let mut step = |child: &Value, shown: &str, key: &str, name: &mut String, pointer: &mut String| {
        name.extend(["/", shown]);
        pointer.extend(["/", key]);
        walk(child, name, pointer, found);
        name.truncate(lens.0);
        pointer.truncate(lens.1);
    };
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                step(item, "*", &index.to_string(), name, pointer);
            }
            if !items.is_empty() {
                found(name, pointer);
            }
        }
        Value::Object(members) => {
            for (key, member) in members {
                let escaped = key.replace('~', "~0").replace('/', "~1");
                step(member, key, &escaped, name, pointer);
            }
        }
        _ => {}
    }
}

fn lengthen(root: &mut Value, pointer: &str, more: usize, named: bool) -> Option<()> {
    let items = root.pointer_mut(pointer)?.as_array_mut()?;
    let last = items.last()?.clone();
    for index in 0..more {
        let mut item = last.clone();
        if named {
            rename(&mut item, index, true);
        }
        items.push(item);
    }
    Some(())
}

/// Members that name something.
const NAMES: [&str; 9] =
    ["name", "key", "id", "overload", "method_name", "fully_qualified_name", "function", "string_val", "target"];

fn rename(value: &mut Value, index: usize, is_name: bool) {
    match value {
        Value::String(text) if is_name && !text.is_empty() => text.push_str(&format!("_{index}")),
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, index, is_name)),
        Value::Object(members) => {
            members.iter_mut().for_each(|(key, member)| rename(member, index, NAMES.contains(&key.as_str())));
        }
        _ => {}
    }
}

fn package(name: &str, bytes: Vec<u8>) -> Document {
    let opened = Opened::from_bytes(bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
    let text = dump_with(&opened.package().unwrap(), Blobs::Inline).unwrap();
    let write = |root: &Value| build(&root.to_string()).ok()?.to_bytes().ok();
    Document { name: name.to_owned(), items: ITEMS, root: serde_json::from_str(&text).unwrap(), write: Box::new(write) }
}

fn library(name: &str, bytes: Vec<u8>) -> Document {
    let opened = Library::from_bytes(bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
    let text = dump_library(&library_parts(&opened), Blobs::Inline).unwrap();
    let write = |root: &Value| write_library(&build_library(&root.to_string(), None).ok()?).ok();
    Document { name: name.to_owned(), items: ITEMS, root: serde_json::from_str(&text).unwrap(), write: Box::new(write) }
}

fn trace(name: &str, bytes: &[u8]) -> Document {
    let trace = edgepack_format::trace::TraceRef::parse(bytes, &edgepack_loader::machine_limits()).unwrap();
    let root = serde_json::to_value(trace.root()).unwrap();
    let write = |root: &Value| raw::etdump(&serde_json::from_value::<ETDump<'static>>(root.clone()).ok()?).ok();
    Document { name: name.to_owned(), items: ITEMS, root, write: Box::new(write) }
}

fn exported(name: &str, bytes: Vec<u8>) -> Document {
    const MODEL: &str = "models/model.json";
    let archive = Archive::parse(&bytes).unwrap();
    let content = |name: &str| archive.data(archive.record(name).unwrap()).to_vec().unwrap();
    let root = serde_json::from_slice(&content(MODEL)).unwrap();
    let (folder, names) = (archive.root().to_owned(), archive.records().iter().map(|record| record.name.clone()));
    let records: Vec<(String, Vec<u8>)> = names.map(|name| (name.clone(), content(&name))).collect();
    let write = move |root: &Value| {
        let mut writer = ArchiveWriter::new(Vec::new(), &folder);
        for (name, content) in &records {
            let content = if name == MODEL { root.to_string().into_bytes() } else { content.clone() };
            writer.record(name, &content.into()).ok()?;
        }
        writer.finish().ok()
    };
    Document { name: name.to_owned(), items: ITEMS, root, write: Box::new(write) }
}

/// A program whose lists are all about one range of the file, which is as much longer as the lists are: whoever looks at
/// the range for every item does four times the work for twice the items.
fn one_range() -> Document {
    const BYTES: usize = 256;
    let lists = ["initial_values", "delegates", "inline_delegates"];
    let root = lists.iter().map(|list| ((*list).to_owned(), Value::from(vec![0]))).collect::<Map<_, _>>();
    let write = move |root: &Value| {
        let [values, delegates, inline] = lists.map(|list| root[list].as_array().map_or(0, Vec::len));
        let mut assembly = Assembly::new();
        let first = assembly.mutable(float(&[(values * BYTES / 4) as i32]), 0, &vec![1; values * BYTES]);
        let x = assembly.planned(float(&[1]));
        for _ in 1..values {
            assembly.again(first);
        }
        assembly.delegate(ONE_RANGE, &vec![2; inline * BYTES], &[x]);
        assembly.inputs(&[x]);
        assembly.outputs(&[x]);
        let (mut program, mut segments) = assembly.program();
        segments.push(vec![3; delegates * BYTES]);
        let rows: Vec<&[u8]> = segments.iter().map(Vec::as_slice).collect();
        program.segments = Some(raw::segments(&rows, &raw::Options::DEFAULT).ok()?.into());
        let row = |location, index| BackendDelegate {
            id: Some(ONE_RANGE.into()),
            processed: Some(BackendDelegateDataReference { location, index }),
            compile_specs: None,
        };
        let mut plan = assembly.plan("forward");
        let mut all = vec![row(DataLocation::INLINE, 0); inline];
        all.resize(inline + delegates, row(DataLocation::SEGMENT, segments.len() as u32 - 1));
        plan.delegates = Some(all.into());
        program.execution_plan = Some(vec![plan].into());
        Some(assemble::write(&program, &segments))
    };
    Document { name: "one range".to_owned(), items: ITEMS, root: root.into(), write: Box::new(write) }
}

/// The backend of delegates over one range.
pub const ONE_RANGE: &str = "OneRange";

/// A document of every family of files, with something in most of their lists.
pub fn documents() -> Vec<Document> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| std::fs::read(folder.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    let compiled = |name: &str, bytes| Document { items: ITEMS / 10, ..package(name, bytes) };
    vec![
        package("program", hostile::full().write()),
        one_range(),
        package("external.pte", read("data/corpus/models/external_two_files_portable.pte")),
        package("bundle.bpte", read("data/corpus/bundled/mlp_two_cases.bpte")),
        package("data.ptd", read("data/corpus/data/tensors.ptd")),
        compiled("package.dwn", read("data/corpus/edgetpu/alone.dwn")),
        compiled("model.tflite", read("data/corpus/edgetpu/left.tflite")),
        trace("trace.etdp", &read("data/corpus/trace/mlp_intermediate.etdp")),
        library("library.tar", read("data/hostile/mlf/other_attr.tar")),
        exported("add.pt2", read("data/corpus/pt2/add/model.pt2")),
    ]
}
