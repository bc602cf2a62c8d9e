//! From JSON to [`Metadata`], strictly by version: which keys there are, how they are spelled, what they hold.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::Display;

use super::json::{Json, Value};
use super::metadata::{
    BufferInfo, MainMemory, Memory, Metadata, Module, NEWEST, NamedBuffer, OLDEST, OperatorMemory, Others, Sid, Style,
    Targets,
};
use super::report::{Report, clip};
use crate::finding::Findings;
use crate::limits::Limits;
use crate::rules::mlf as rules;

impl Metadata {
    /// Reads a `metadata.json` that breaks no rule.
    pub fn parse(text: &[u8], limits: &Limits) -> Result<Metadata, Findings> {
        let mut report = Report::new(limits);
        let metadata = report.json(text).and_then(|json| metadata(&json, &mut report));
        metadata.filter(|_| !report.findings.has_errors()).ok_or(report.findings)
    }
}

/// Reads it. `None` if not even the version is known.
pub(super) fn metadata(json: &Json, report: &mut Report) -> Option<Metadata> {
    let Some(members) = json.object() else {
        report.add(&rules::METADATA_TYPE, "", json.at, format!("{}, where an object belongs", json.kind()));
        return None;
    };
    let version = member(members, "version");
    let Some(version) = version else {
        report.add(&rules::VERSION, "version", json.at, "absent".to_string());
        return None;
    };
    let number = version.int().and_then(|number| u32::try_from(number).ok());
    let Some(number) = number.filter(|number| (OLDEST..=NEWEST).contains(number)) else {
        let message = match version.int() {
            Some(number) => format!("{number}, not one of {OLDEST} to {NEWEST}"),
            None => format!("{}, where one of {OLDEST} to {NEWEST} belongs", version.kind()),
        };
        report.add(&rules::VERSION, "version", version.at, message);
        return None;
    };
    let modules = member(members, "modules");
    let is_operator = member(members, "style").and_then(Json::text) == Some(Style::Operator.name());
    let mut metadata = Metadata { version: number, modules: Vec::new() };
    match modules {
        Some(modules) if number == 7 => {
            for (key, value) in members.iter().filter(|(key, _)| key != "version" && key != "modules") {
                report.add(&rules::METADATA_KEY, key, value.at, "unknown".to_string());
            }
            let Some(list) = modules.object() else {
                wrong(modules, "modules", "an object", report);
                return Some(metadata);
            };
            if list.is_empty() {
                report.add(&rules::MODULES, "modules", modules.at, "there is no module".to_string());
            }
            for (key, value) in list {
                let Some(module) = module(value, number, &format!("modules.{}.", clip(key)), report) else { continue };
                if module.name != *key {
                    let message = format!("the key is {key:?}, model_name {:?}", module.name);
                    report.add(
                        &rules::MODULE_NAME,
                        format_args!("modules.{}.model_name", clip(key)),
                        value.at,
                        message,
                    );
                }
                if !report.push(&mut metadata.modules, module) {
                    break;
                }
            }
        }
        None if number == 7 && !is_operator => {
            report.add(&rules::MODULES, "modules", json.at, "absent".to_string());
        }
        Some(modules) => {
            let message = format!("version {number} has one module and no such key");
            report.add(&rules::MODULES, "modules", modules.at, message);
        }
        None => metadata.modules.extend(module(json, number, "", report)),
    }
    Some(metadata)
}

/// Reads the items of a list and leaves out those that cannot be read.
fn gather<J, T>(items: &[J], report: &mut Report, read: impl Fn(usize, &J, &mut Report) -> Option<T>) -> Vec<T> {
    let mut list = Vec::new();
    for (index, item) in items.iter().enumerate() {
        if let Some(found) = read(index, item, report)
            && !report.push(&mut list, found)
        {
            break;
        }
    }
    list
}

fn member<'j>(members: &'j [(String, Json)], key: &str) -> Option<&'j Json> {
    members.iter().find(|(found, _)| found == key).map(|(_, value)| value)
}

fn wrong(json: &Json, path: impl Display, want: &str, report: &mut Report) {
    report.add(&rules::METADATA_TYPE, path, json.at, format!("{}, where {want} belongs", json.kind()));
}

fn text(json: &Json, path: impl Display, report: &mut Report) -> Option<String> {
    let text = json.text();
    if text.is_none() {
        wrong(json, path, "a string", report);
    }
    text.map(ToString::to_string)
}

fn size(json: &Json, path: impl Display, report: &mut Report) -> Option<u64> {
    let size = json.int().and_then(|value| u64::try_from(value).ok());
    if size.is_none() {
        wrong(json, path, "a number that is not negative", report);
    }
    size
}

fn list<'j>(json: &'j Json, path: impl Display, report: &mut Report) -> &'j [Json] {
    if json.list().is_none() {
        wrong(json, path, "a list", report);
    }
    json.list().unwrap_or_default()
}

fn object<'j>(json: &'j Json, path: impl Display, report: &mut Report) -> &'j [(String, Json)] {
    if json.object().is_none() {
        wrong(json, path, "an object", report);
    }
    json.object().unwrap_or_default()
}

/// Reports a key that exporters do not write, and keeps it.
fn unknown(key: &str, value: &Json, path: impl Display, other: &mut Others, report: &mut Report) {
    report.add(&rules::METADATA_KEY, path, value.at, "unknown".to_string());
    keep(key, value, other, report);
}

/// Keeps a member as it was read.
fn keep(key: &str, value: &Json, other: &mut Others, report: &mut Report) {
    if let Some(copy) = report.roomy(value.try_clone()) {
        report.push(other, (key.to_string(), copy));
    }
}

/// The name that a buffer is bound to. One that is null is kept, and names nothing.
fn binding(value: &Json, path: impl Display, other: &mut Others, report: &mut Report) -> Option<String> {
    if value.value == Value::Null {
        keep("input_binding", value, other, report);
        return None;
    }
    text(value, path, report)
}

fn module(json: &Json, version: u32, path: &str, report: &mut Report) -> Option<Module> {
    let Some(members) = json.object() else {
        wrong(json, path.trim_end_matches('.'), "an object", report);
        return None;
    };
    let (executors, other_executors) = match version {
        1..=4 => ("runtimes", "executors"),
        _ => ("executors", "runtimes"),
    };
    let mut module = Module::default();
    let mut seen: Vec<&str> = Vec::new();
    let mut memory = None;
    for (key, value) in members {
        let path = format!("{path}{}", clip(key));
        if !report.push(&mut seen, key) {
            return None;
        }
        match key.as_str() {
            "version" if version < 7 || path == "version" => {}
            "model_name" => module.name = text(value, path, report).unwrap_or_default(),
            "export_datetime" => {
                module.export_datetime = text(value, &path, report).unwrap_or_default();
                if value.text().is_some_and(|text| !is_datetime(text)) {
                    let message = format!("{:?} is not YYYY-MM-DD HH:MM:SSZ", module.export_datetime);
                    report.add(&rules::DATETIME, path, value.at, message);
                }
            }
            "memory" => memory = Some((value, path)),
            "target" => module.target = targets(value, version, &path, report),
            "style" if version >= 4 => match value.text() {
                Some("full-model") => module.style = Style::FullModel,
                Some("operator") => module.style = Style::Operator,
                Some(other) => report.add(&rules::STYLE, path, value.at, format!("{other:?}")),
                None => wrong(value, path, "a string", report),
            },
            "external_dependencies" => {
                module.external_dependencies = value.list().map(|list| {
                    gather(list, report, |index, json, report| {
                        let path = format!("{path}[{index}]");
                        let pairs = object(json, &path, report);
                        Some(gather(pairs, report, |_, (key, value), report| {
                            Some((key.clone(), text(value, &path, report)?))
                        }))
                    })
                });
                if value.list().is_none() {
                    wrong(value, &path, "a list", report);
                }
            }
            key if key == executors => {
                let items = list(value, &path, report);
                module.executors =
                    gather(items, report, |index, json, report| text(json, format_args!("{path}[{index}]"), report));
            }
            key if key == other_executors => {
                report.add(&rules::SPELLING, path, value.at, format!("version {version} calls it `{executors}`"));
            }
            _ => {
                unknown(key, value, path, &mut module.other, report);
            }
        }
    }
    let required = ["model_name", "export_datetime", "memory", "target", executors, "style"];
    let count = if version >= 4 { 6 } else { 5 };
    for key in required.into_iter().take(count).filter(|key| !seen.contains(key)) {
        report.add(&rules::METADATA_MISSING, format_args!("{path}{key}"), json.at, "absent".to_string());
    }
    if let Some((value, path)) = memory {
        module.memory = match module.style {
            Style::FullModel => full_memory(value, version, &path, report),
            Style::Operator => Memory { buffers: buffers(value, &path, report), ..Memory::default() },
        };
    }
    names(&module, version, json.at, path, executors, report);
    Some(module)
}

/// Checks names: of the module, and of the executors that run it.
fn names(module: &Module, version: u32, at: usize, path: &str, executors: &str, report: &mut Report) {
    if !module.name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        let message = format!("{:?} is part of symbols, and no identifier", module.name);
        report.add(&rules::MODULE_IDENTIFIER, format_args!("{path}model_name"), at, message);
    }
    let names = &module.executors;
    let good = match module.style {
        Style::FullModel => matches!(names.as_slice(), [name] if name == "graph" || name == "aot"),
        Style::Operator => names.is_empty(),
    };
    if !good {
        let message = match version {
            // There was no style yet; a package of a single operator was not possible.
            _ if module.style == Style::FullModel => format!("{names:?}, one of \"graph\" and \"aot\" belongs there"),
            _ => format!("{names:?} for a single operator"),
        };
        report.add(&rules::EXECUTOR, format_args!("{path}{executors}"), at, message);
    }
}

/// `2021-03-10 12:34:56Z`
fn is_datetime(text: &str) -> bool {
    let form = "dddd-dd-dd dd:dd:ddZ";
    text.len() == form.len()
        && text.bytes().zip(form.bytes()).all(|(have, want)| match want {
            b'd' => have.is_ascii_digit(),
            want => have == want,
        })
}

fn targets(json: &Json, version: u32, path: &str, report: &mut Report) -> Targets {
    if version <= 5 {
        let pairs = object(json, path, report);
        return Targets::ByDevice(gather(pairs, report, |_, (device, target), report| {
            Some((device.clone(), text(target, path, report)?))
        }));
    }
    let items = list(json, path, report);
    Targets::List(gather(items, report, |index, json, report| text(json, format_args!("{path}[{index}]"), report)))
}

fn full_memory(json: &Json, version: u32, path: &str, report: &mut Report) -> Memory {
    let mut memory = Memory::default();
    let (mut other, mut functions) = (Others::new(), Others::new());
    if version == 1 {
        memory.sids = json.list().map(|list| sids(list, path, report));
        if json.list().is_none() {
            wrong(json, path, "a list", report);
        }
        return memory;
    }
    for (key, value) in object(json, path, report) {
        let path = format!("{path}.{}", clip(key));
        match key.as_str() {
            "sids" => memory.sids = Some(sids(list(value, &path, report), &path, report)),
            "functions" => {
                for (key, value) in object(value, &path, report) {
                    let path = format!("{path}.{}", clip(key));
                    let items = list(value, &path, report);
                    match key.as_str() {
                        "main" => {
                            memory.main = Some(gather(items, report, |index, json, report| {
                                Some(main(json, &format!("{path}[{index}]"), report))
                            }));
                        }
                        "operator_functions" => {
                            memory.operators = Some(gather(items, report, |index, json, report| {
                                Some(operator(json, &format!("{path}[{index}]"), report))
                            }));
                        }
                        _ => unknown(key, value, path, &mut functions, report),
                    }
                }
            }
            _ => unknown(key, value, path, &mut other, report),
        }
    }
    memory.other = [other, functions];
    memory
}

fn sids(list: &[Json], path: &str, report: &mut Report) -> Vec<Sid> {
    let mut sids = Vec::new();
    for (index, json) in list.iter().enumerate() {
        let path = format!("{path}[{index}]");
        let mut sid = Sid::default();
        for (key, value) in object(json, &path, report) {
            match key.as_str() {
                "storage_id" => sid.storage_id = size(value, &path, report).unwrap_or_default(),
                "size_bytes" => sid.size_bytes = size(value, &path, report).unwrap_or_default(),
                "input_binding" => sid.input_binding = binding(value, &path, &mut sid.other, report),
                _ => unknown(key, value, format_args!("{path}.{}", clip(key)), &mut sid.other, report),
            }
        }
        if !report.push(&mut sids, sid) {
            break;
        }
    }
    sids
}

fn main(json: &Json, path: &str, report: &mut Report) -> MainMemory {
    let mut main = MainMemory::default();
    for (key, value) in object(json, path, report) {
        let path = format!("{path}.{}", clip(key));
        match key.as_str() {
            "device" => match value.int() {
                Some(device) => main.device = device,
                None => wrong(value, path, "the number of a type of device", report),
            },
            "workspace_size_bytes" => main.workspace_size_bytes = size(value, path, report).unwrap_or_default(),
            "constants_size_bytes" => main.constants_size_bytes = size(value, path, report).unwrap_or_default(),
            "io_size_bytes" => main.io_size_bytes = size(value, path, report).unwrap_or_default(),
            "inputs" => main.inputs = Some(named(value, &path, report)),
            "outputs" => main.outputs = Some(named(value, &path, report)),
            _ => unknown(key, value, path, &mut main.other, report),
        }
    }
    main
}

fn named(json: &Json, path: &str, report: &mut Report) -> Vec<NamedBuffer> {
    let mut buffers = Vec::new();
    for (name, value) in object(json, path, report) {
        let path = format!("{path}.{}", clip(name));
        let mut buffer = NamedBuffer { name: name.clone(), ..NamedBuffer::default() };
        for (key, value) in object(value, &path, report) {
            match key.as_str() {
                "size" => buffer.size = size(value, &path, report).unwrap_or_default(),
                "dtype" => buffer.dtype = text(value, &path, report).unwrap_or_default(),
                _ => unknown(key, value, format_args!("{path}.{}", clip(key)), &mut buffer.other, report),
            }
        }
        if !report.push(&mut buffers, buffer) {
            break;
        }
    }
    buffers
}

fn operator(json: &Json, path: &str, report: &mut Report) -> OperatorMemory {
    let mut operator = OperatorMemory::default();
    for (key, value) in object(json, path, report) {
        let path = format!("{path}.{}", clip(key));
        match key.as_str() {
            "function_name" => operator.function_name = text(value, path, report).unwrap_or_default(),
            "workspace" => {
                for json in list(value, &path, report) {
                    let members = object(json, &path, report);
                    let device = member(members, "device").and_then(Json::int);
                    let bytes = member(members, "workspace_size_bytes").and_then(|json| size(json, &path, report));
                    let mut other = Others::default();
                    for (key, value) in members {
                        if !matches!(key.as_str(), "device" | "workspace_size_bytes") {
                            unknown(key, value, format_args!("{path}.{}", clip(key)), &mut other, report);
                        }
                    }
                    match device.zip(bytes) {
                        Some(pair) => {
                            report.push(&mut operator.workspace, pair);
                            report.push(&mut operator.workspace_other, other);
                        }
                        None => wrong(json, &path, "a device and its bytes", report),
                    }
                }
            }
            _ => unknown(key, value, path, &mut operator.other, report),
        }
    }
    operator
}

fn buffers(json: &Json, path: &str, report: &mut Report) -> Vec<(String, Vec<BufferInfo>)> {
    let mut functions = Vec::new();
    for (name, value) in object(json, path, report) {
        let path = format!("{path}.{}", clip(name));
        let mut buffers = Vec::new();
        for (index, json) in list(value, &path, report).iter().enumerate() {
            let path = format!("{path}[{index}]");
            let mut buffer = BufferInfo::default();
            for (key, value) in object(json, &path, report) {
                match key.as_str() {
                    "size_bytes" => buffer.size_bytes = size(value, &path, report).unwrap_or_default(),
                    "shape" => {
                        let sizes = list(value, &path, report);
                        buffer.shape = gather(sizes, report, |_, json, report| size(json, &path, report));
                    }
                    "dtype" => buffer.dtype = text(value, &path, report).unwrap_or_default(),
                    "input_binding" => buffer.input_binding = binding(value, &path, &mut buffer.other, report),
                    _ => unknown(key, value, format_args!("{path}.{}", clip(key)), &mut buffer.other, report),
                }
            }
            if !report.push(&mut buffers, buffer) {
                break;
            }
        }
        if !report.push(&mut functions, (name.clone(), buffers)) {
            break;
        }
    }
    functions
}
