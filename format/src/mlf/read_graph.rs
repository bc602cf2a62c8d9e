//! From JSON to a [`Graph`]: keys, types of values, what is mandatory. What the numbers mean is for `structure`.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::Display;

use super::data_type::DataType;
use super::graph::{Call, Entry, Graph, Node, Reference};
use super::json::{Json, Value};
use super::report::{Report, clip};
use super::{dataflow, structure};
use crate::finding::Findings;
use crate::limits::Limits;
use crate::room;
use crate::rules::mlf as rules;

impl Graph {
    /// Reads a graph that breaks no rule.
    pub fn parse(text: &[u8], limits: &Limits) -> Result<Graph, Findings> {
        match verify(text, limits) {
            (findings, Some(graph)) if !findings.has_errors() => Ok(graph),
            (findings, _) => Err(findings),
        }
    }

    /// Checks a graph that was made, as if it had been read.
    pub fn check(&self, limits: &Limits) -> Findings {
        let mut report = Report::new(limits);
        check(self, &mut report);
        report.findings
    }
}

/// Verifies a graph. There is one if it can be read at all, whatever rules it breaks.
pub fn verify(text: &[u8], limits: &Limits) -> (Findings, Option<Graph>) {
    let mut report = Report::new(limits);
    let graph = read(text, &mut report);
    (report.findings, graph)
}

pub(super) fn read(text: &[u8], report: &mut Report) -> Option<Graph> {
    let json = report.json(text)?;
    let graph = graph(&json, report)?;
    check(&graph, report);
    Some(graph)
}

fn check(graph: &Graph, report: &mut Report) {
    // What is read when is only asked of a graph whose references can be followed.
    if structure::check(graph, report) {
        dataflow::check(graph, report);
    }
}

/// Reads a graph. `None` if so much is missing that there is no graph; every reason has been reported.
fn graph(json: &Json, report: &mut Report) -> Option<Graph> {
    let Some(members) = json.object() else {
        report.add(&rules::GRAPH_TYPE, "", json.at, format!("the graph is {}, not an object", json.kind()));
        return None;
    };
    let mut found: [Option<&Json>; 5] = [None; 5];
    let names = ["nodes", "arg_nodes", "heads", "node_row_ptr", "attrs"];
    let mut ended = false;
    for (key, value) in members {
        if ended {
            report.add(&rules::BEHIND_METADATA, key, value.at, "runtimes stop reading before it".to_string());
        }
        match names.iter().position(|name| name == key) {
            // What is behind is not read by runtimes; here it is, so that the rest can be looked at.
            Some(place) => found.get_mut(place).into_iter().for_each(|slot| *slot = Some(value)),
            None if key == "metadata" => ended = true,
            None => report.add(&rules::GRAPH_KEY, key, value.at, "runtimes refuse this key".to_string()),
        }
    }
    for (name, _) in names.iter().zip(&found).filter(|(_, value)| value.is_none()) {
        report.add(&rules::GRAPH_MISSING, name, json.at, "absent".to_string());
    }
    let [Some(nodes), Some(arg_nodes), Some(heads), Some(row_ptr), Some(attrs)] = found else { return None };
    let nodes = list(nodes, "nodes", report)?;
    let nodes = all(nodes, report, |index, json, report| node(json, index, report))?;
    let arg_nodes = numbers(arg_nodes, "arg_nodes", report)?;
    let heads = references(heads, "heads", report)?;
    let row_ptr = numbers(row_ptr, "node_row_ptr", report)?;
    let (entries, other) = attributes(attrs, report)?;
    Some(Graph { nodes, arg_nodes, heads, row_ptr, entries, other })
}

/// Reads every item of a list; `None` as soon as one cannot be read.
fn all<T>(
    items: &[Json],
    report: &mut Report,
    read: impl Fn(usize, &Json, &mut Report) -> Option<T>,
) -> Option<Vec<T>> {
    let mut list = report.roomy(room::with_room(items.len()))?;
    for (index, json) in items.iter().enumerate() {
        list.push(read(index, json, report)?);
    }
    Some(list)
}

fn wrong(json: &Json, path: impl Display, want: &str, report: &mut Report) {
    report.add(&rules::GRAPH_TYPE, path, json.at, format!("{}, where {want} belongs", json.kind()));
}

fn list<'j>(json: &'j Json, path: impl Display, report: &mut Report) -> Option<&'j [Json]> {
    let list = json.list();
    if list.is_none() {
        wrong(json, path, "a list", report);
    }
    list
}

/// A count or an index.
fn number(json: &Json, path: impl Display, report: &mut Report) -> Option<u32> {
    let number = json.int().and_then(|value| u32::try_from(value).ok());
    if number.is_none() {
        wrong(json, path, "a number from 0 to 4294967295", report);
    }
    number
}

fn numbers(json: &Json, path: &str, report: &mut Report) -> Option<Vec<u32>> {
    let list = list(json, path, report)?;
    all(list, report, |index, json, report| number(json, format_args!("{path}[{index}]"), report))
}

fn references(json: &Json, path: &str, report: &mut Report) -> Option<Vec<Reference>> {
    let list = list(json, path, report)?;
    all(list, report, |index, json, report| reference(json, &format!("{path}[{index}]"), report))
}

fn reference(json: &Json, path: &str, report: &mut Report) -> Option<Reference> {
    let parts = list(json, path, report)?;
    let (node, index, version) = match parts {
        [node, index] => (node, index, None),
        [node, index, version] => (node, index, Some(version)),
        _ => {
            let message = format!("{} numbers, where a node, an output and a version belong", parts.len());
            report.add(&rules::GRAPH_TYPE, path, json.at, message);
            return None;
        }
    };
    Some(Reference {
        node: number(node, path, report)?,
        index: number(index, path, report)?,
        version: version.map_or(Some(0), |version| number(version, path, report))?,
    })
}

fn text<'j>(json: &'j Json, path: impl Display, report: &mut Report) -> Option<&'j str> {
    let text = json.text();
    if text.is_none() {
        wrong(json, path, "a string", report);
    }
    text
}

fn node(json: &Json, index: usize, report: &mut Report) -> Option<Node> {
    let path = format!("nodes[{index}]");
    let Some(members) = json.object() else {
        wrong(json, path, "an object", report);
        return None;
    };
    let mut node = Node::default();
    let (mut op, mut name, mut inputs, mut attrs) = (None, None, None, None);
    for (key, value) in members {
        match key.as_str() {
            "op" => op = Some(text(value, format_args!("{path}.op"), report)?),
            "name" => name = Some(text(value, format_args!("{path}.name"), report)?),
            "inputs" => inputs = Some(references(value, &format!("{path}.inputs"), report)?),
            "attrs" | "attr" => attrs = Some(value),
            "control_deps" => {
                report.add(&rules::CONTROL, &path, value.at, "it has `control_deps`".to_string());
                node.control_deps = numbers(value, &format!("{path}.control_deps"), report)?;
            }
            _ => report.add(&rules::NODE_KEY, &path, value.at, format!("the key {key:?}")),
        }
    }
    let missing = [("op", op.is_none()), ("name", name.is_none()), ("inputs", inputs.is_none())];
    for (key, _) in missing.into_iter().filter(|(_, missing)| *missing) {
        report.add(&rules::NODE_MISSING, &path, json.at, format!("`{key}` is absent"));
    }
    let (op, name) = op.zip(name)?;
    node.name = name.to_string();
    node.inputs = inputs?;
    match op {
        "null" => {}
        "tvm_op" => match attrs {
            Some(attrs) => node.call = Some(call(attrs, &path, report)?),
            None => {
                report.add(&rules::NODE_MISSING, &path, json.at, "`attrs` is absent".to_string());
                return None;
            }
        },
        _ => {
            report.add(&rules::NODE_OP, &path, json.at, format!("{op:?}, not `null` or `tvm_op`"));
            return None;
        }
    }
    Some(node)
}

fn call(json: &Json, path: &str, report: &mut Report) -> Option<Call> {
    let Some(members) = json.object() else {
        wrong(json, format_args!("{path}.attrs"), "an object", report);
        return None;
    };
    let mut call = Call::default();
    let mut seen = [false; 4];
    let keys = ["func_name", "num_inputs", "num_outputs", "flatten_data"];
    for (key, value) in members {
        let Some(text) = value.text() else {
            let message = format!("{} for {key:?}, where a string belongs", value.kind());
            report.add(&rules::NODE_ATTR, path, value.at, message);
            return None;
        };
        let Some(place) = keys.iter().position(|known| known == key) else {
            if !report.push(&mut call.attrs, (key.clone(), text.to_string())) {
                return None;
            }
            continue;
        };
        seen.get_mut(place).into_iter().for_each(|seen| *seen = true);
        if place == 0 {
            call.function = text.to_string();
            continue;
        }
        // Digits only: the library's parser would take a sign.
        let digits = text.bytes().all(|byte| byte.is_ascii_digit());
        let Some(number) = text.parse::<u32>().ok().filter(|_| digits) else {
            report.add(&rules::NODE_ATTR, path, value.at, format!("{text:?} for {key:?}, where a number belongs"));
            return None;
        };
        match place {
            1 => call.inputs = number,
            2 => call.outputs = number,
            _ => call.flatten = number != 0,
        }
    }
    for (key, _) in keys.iter().zip(seen).filter(|(_, seen)| !seen) {
        report.add(&rules::NODE_ATTR, path, json.at, format!("`{key}` is absent"));
    }
    (seen == [true; 4]).then_some(call)
}

/// The lists with one element per entry.
#[derive(Default)]
struct Lists {
    storage: Option<Vec<u32>>,
    shape: Option<Vec<Vec<u64>>>,
    data_type: Option<Vec<DataType>>,
    device: Option<Vec<i32>>,
    scope: Option<Vec<String>>,
}

/// Attributes that runtimes skip.
type Other = Vec<(String, Json)>;

fn attributes(json: &Json, report: &mut Report) -> Option<(Vec<Entry>, Other)> {
    let Some(members) = json.object() else {
        wrong(json, "attrs", "an object", report);
        return None;
    };
    let (mut lists, mut other) = (Lists::default(), Vec::new());
    for (key, value) in members {
        let path = format!("attrs.{}", clip(key));
        let [tag, data] = value.list()? else {
            wrong(value, path, "a type tag and its data", report);
            return None;
        };
        let tag = text(tag, &path, report)?;
        let want = match key.as_str() {
            "storage_id" | "device_index" => "list_int",
            "shape" => "list_shape",
            "dltype" | "storage_scope" => "list_str",
            _ => {
                if !matches!(tag, "list_int" | "size_t") {
                    report.add(&rules::ATTR_TAG, path, value.at, format!("unknown, and the tag is {tag:?}"));
                    return None;
                }
                report.add(&rules::ATTR_OTHER, path, value.at, "runtimes skip it".to_string());
                let copy = report.roomy(value.try_clone())?;
                if !report.push(&mut other, (key.clone(), copy)) {
                    return None;
                }
                continue;
            }
        };
        if tag != want {
            report.add(&rules::ATTR_TAG, path, value.at, format!("the tag is {tag:?}, not {want:?}"));
            return None;
        }
        let data = list(data, &path, report)?;
        lists.read(key, data, &path, report)?;
    }
    let entries = lists.entries(json.at, report)?;
    Some((entries, other))
}

impl Lists {
    fn read(&mut self, key: &str, data: &[Json], path: &str, report: &mut Report) -> Option<()> {
        match key {
            "storage_id" => {
                self.storage = Some(all(data, report, |index, json, report| storage(json, path, index, report))?)
            }
            "shape" => self.shape = Some(all(data, report, |index, json, report| shape(json, path, index, report))?),
            "dltype" => {
                self.data_type = Some(all(data, report, |index, json, report| data_type(json, path, index, report))?)
            }
            "device_index" => {
                self.device = Some(all(data, report, |index, json, report| device(json, path, index, report))?)
            }
            _ => {
                self.scope = Some(all(data, report, |index, json, report| {
                    text(json, format_args!("{path}[{index}]"), report).map(ToString::to_string)
                })?);
            }
        }
        Some(())
    }

    fn entries(self, at: usize, report: &mut Report) -> Option<Vec<Entry>> {
        let missing = [
            ("attrs.storage_id", self.storage.is_none()),
            ("attrs.shape", self.shape.is_none()),
            ("attrs.dltype", self.data_type.is_none()),
        ];
        for (path, _) in missing.into_iter().filter(|(_, missing)| *missing) {
            report.add(&rules::GRAPH_MISSING, path, at, "absent".to_string());
        }
        let (storage, shape, data_type) = (self.storage?, self.shape?, self.data_type?);
        let count = storage.len();
        let lengths = [
            ("attrs.shape", shape.len()),
            ("attrs.dltype", data_type.len()),
            ("attrs.device_index", self.device.as_ref().map_or(count, Vec::len)),
            ("attrs.storage_scope", self.scope.as_ref().map_or(count, Vec::len)),
        ];
        let mut equal = true;
        for (path, len) in lengths.into_iter().filter(|(_, len)| *len != count) {
            report.add(&rules::ATTR_LENGTH, path, at, format!("{len} elements, storage_id has {count}"));
            equal = false;
        }
        if !equal {
            return None;
        }
        let mut devices = self.device.into_iter().flatten();
        let mut scopes = self.scope.into_iter().flatten();
        let parts = storage.into_iter().zip(shape).zip(data_type);
        let entries = parts.map(|((storage, shape), data_type)| Entry {
            storage,
            shape,
            data_type,
            device: devices.next(),
            scope: scopes.next(),
        });
        report.roomy(room::collect(entries))
    }
}

fn storage(json: &Json, path: &str, index: usize, report: &mut Report) -> Option<u32> {
    match json.value {
        Value::Int(id) => {
            let found = u32::try_from(id).ok();
            if found.is_none() {
                report.add(&rules::STORAGE_ID, format_args!("{path}[{index}]"), json.at, format!("storage {id}"));
            }
            found
        }
        _ => number(json, format_args!("{path}[{index}]"), report),
    }
}

fn shape(json: &Json, path: &str, index: usize, report: &mut Report) -> Option<Vec<u64>> {
    let path = format!("{path}[{index}]");
    let sizes = list(json, &path, report)?;
    let mut shape = Vec::new();
    for size in sizes {
        let Some(value) = size.int() else {
            wrong(size, path, "a size", report);
            return None;
        };
        let Ok(value) = u64::try_from(value) else {
            report.add(&rules::SHAPE, path, size.at, format!("size {value}"));
            return None;
        };
        if !report.push(&mut shape, value) {
            return None;
        }
    }
    Some(shape)
}

fn data_type(json: &Json, path: &str, index: usize, report: &mut Report) -> Option<DataType> {
    let path = format!("{path}[{index}]");
    match text(json, &path, report)?.parse::<DataType>() {
        Ok(data_type) => Some(data_type),
        Err(error) => {
            report.add(&rules::DATA_TYPE, path, json.at, error.to_string());
            None
        }
    }
}

fn device(json: &Json, path: &str, index: usize, report: &mut Report) -> Option<i32> {
    let device = json.int().and_then(|value| i32::try_from(value).ok());
    if device.is_none() {
        wrong(json, format_args!("{path}[{index}]"), "the number of a type of device", report);
    }
    device
}
