//! `metadata.json` of every version as one typed model, with the spelling of the version held for writing it back.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde::Serialize;

use super::json::{Json, Value};

/// The oldest version there is.
pub const OLDEST: u32 = 1;
/// The newest version there is.
pub const NEWEST: u32 = 7;

/// Metadata of a package.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Metadata {
    /// The version of the format, 1 to 7.
    pub version: u32,
    /// The modules: one, except in version 7.
    pub modules: Vec<Module>,
}

/// Metadata of one module of a package.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Module {
    /// Its name, which its files and symbols start with.
    pub name: String,
    /// Time of the export: local time, although it ends in `Z`.
    pub export_datetime: String,
    /// Whole model or single operator.
    pub style: Style,
    /// `graph`, `aot`, or nothing for a single operator.
    pub executors: Vec<String>,
    /// Targets it was compiled for.
    pub target: Targets,
    /// Memory it needs, as the exporter estimated it.
    pub memory: Memory,
    /// Dependencies that have to be linked with it.
    pub external_dependencies: Option<Vec<Vec<(String, String)>>>,
    /// Keys beyond the known ones.
    #[serde(skip)]
    pub other: Others,
}

/// Content of a package: a model or an operator.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Style {
    /// A model with an executor.
    #[default]
    FullModel,
    /// One operator, to be called directly.
    Operator,
}

impl Style {
    /// As written.
    pub const fn name(self) -> &'static str {
        match self {
            Style::FullModel => "full-model",
            Style::Operator => "operator",
        }
    }
}

/// Targets that a module was compiled for. Up to version 5 by type of device, then a list.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Targets {
    /// Types of devices (in decimal) and targets.
    ByDevice(Vec<(String, String)>),
    /// Targets in order, from version 6 on.
    List(Vec<String>),
}

impl Default for Targets {
    fn default() -> Self {
        Targets::List(Vec::new())
    }
}

impl Targets {
    /// Returns the targets in the order of the file, without the types of their devices.
    pub fn names(&self) -> Vec<&str> {
        match self {
            Targets::ByDevice(pairs) => pairs.iter().map(|(_, target)| target.as_str()).collect(),
            Targets::List(list) => list.iter().map(String::as_str).collect(),
        }
    }
}

/// Memory that a module needs. All figures are the exporter's estimates.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Memory {
    /// Per storage of the graph. Unreliable: exporters look sizes up under the wrong number.
    pub sids: Option<Vec<Sid>>,
    /// Of the model's own code, per type of device; absent in version 1.
    pub main: Option<Vec<MainMemory>>,
    /// Of each operator; absent in version 1.
    pub operators: Option<Vec<OperatorMemory>>,
    /// The arguments of each function of a single operator.
    pub buffers: Vec<(String, Vec<BufferInfo>)>,
    /// Keys beyond the known ones, and those of `functions`.
    #[serde(skip)]
    pub other: [Others; 2],
}

/// Keys of an object that are not known, with their values, as they were read.
pub type Others = Vec<(String, Json)>;

/// Metadata of a storage.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Sid {
    /// Storage that entries of the graph name.
    pub storage_id: u64,
    /// Bytes of the storage.
    pub size_bytes: u64,
    /// The input or parameter in it.
    pub input_binding: Option<String>,
    /// Keys beyond the known ones, and known ones that are null.
    #[serde(skip)]
    pub other: Others,
}

/// Memory of the model's own code.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct MainMemory {
    /// The type of device.
    pub device: i64,
    /// Scratch of the most demanding operator and intermediates.
    pub workspace_size_bytes: u64,
    /// Weights.
    pub constants_size_bytes: u64,
    /// Inputs and outputs.
    pub io_size_bytes: u64,
    /// Each input; newer exporters say.
    pub inputs: Option<Vec<NamedBuffer>>,
    /// Each output; newer exporters say.
    pub outputs: Option<Vec<NamedBuffer>>,
    /// Keys beyond the known ones, and known ones that are null.
    #[serde(skip)]
    pub other: Others,
}

/// An input or output.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct NamedBuffer {
    /// Name of the input or output.
    pub name: String,
    /// Size in bytes.
    pub size: u64,
    /// Element type, in the spelling of TVM.
    pub dtype: String,
    /// Keys beyond the known ones, and known ones that are null.
    #[serde(skip)]
    pub other: Others,
}

/// Memory of an operator.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct OperatorMemory {
    /// Symbol of the function.
    pub function_name: String,
    /// Scratch per type of device.
    pub workspace: Vec<(i64, u64)>,
    /// Keys beyond the known ones of each entry of `workspace`, by its index; a list that ends earlier has none.
    #[serde(skip)]
    pub workspace_other: Vec<Others>,
    /// Keys beyond the known ones, and known ones that are null.
    #[serde(skip)]
    pub other: Others,
}

/// An argument of a single operator.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct BufferInfo {
    /// Size in bytes.
    pub size_bytes: u64,
    /// Its shape, or the product of it.
    pub shape: Vec<u64>,
    /// Element type, in the spelling of TVM.
    pub dtype: String,
    /// Name of the argument, if there is one.
    pub input_binding: Option<String>,
    /// Keys beyond the known ones, and known ones that are null.
    #[serde(skip)]
    pub other: Others,
}

impl Metadata {
    /// The module of a name.
    pub fn module(&self, name: &str) -> Option<&Module> {
        self.modules.iter().find(|module| module.name == name)
    }

    /// The text as the exporter of the version writes it.
    pub fn to_text(&self) -> String {
        let version = self.version;
        let one = self.modules.first();
        match one {
            Some(module) if module.style == Style::Operator => module.to_json(version).line(),
            Some(module) if version < 7 => module.to_json(version).pretty(),
            _ => {
                let modules = self.modules.iter().map(|module| (module.name.as_str(), module.to_json(version)));
                let version = ("version", Json::from(i64::from(version)));
                sorted(Json::of([("modules", sorted(Json::of(modules))), version])).pretty()
            }
        }
    }
}

/// Members in the order of their keys.
fn sorted(mut json: Json) -> Json {
    if let Value::Object(members) = &mut json.value {
        members.sort_by(|(a, _), (b, _)| a.cmp(b));
    }
    json
}

/// Members that were read and are not known.
fn others(other: &Others) -> impl Iterator<Item = (&str, Json)> {
    other.iter().map(|(key, value)| (key.as_str(), value.clone()))
}

fn texts(list: &[String]) -> Json {
    Json::from(list.iter().map(|text| Json::from(text.as_str())).collect::<Vec<_>>())
}

impl Module {
    /// The symbols of the module start with this.
    pub fn prefix(&self) -> String {
        match self.name.as_str() {
            "" => "tvmgen".to_string(),
            name => format!("tvmgen_{name}"),
        }
    }

    /// Returns whether the module is run by this executor.
    pub fn is_run_by(&self, executor: &str) -> bool {
        self.executors.iter().any(|name| name == executor)
    }

    fn to_json(&self, version: u32) -> Json {
        let executors = if version <= 4 { "runtimes" } else { "executors" };
        let mut members = Vec::new();
        // The order in which a single operator is written; models are sorted below.
        if version < 7 || self.style == Style::Operator {
            members.push(("version", Json::from(i64::from(version))));
        }
        members.push(("model_name", Json::from(self.name.as_str())));
        members.push(("export_datetime", Json::from(self.export_datetime.as_str())));
        members.push(("memory", self.memory.to_json(version, self.style)));
        members.push(("target", self.target.to_json()));
        members.push((executors, texts(&self.executors)));
        if version >= 4 {
            members.push(("style", Json::from(self.style.name())));
        }
        if let Some(list) = &self.external_dependencies {
            let one = |pairs: &Vec<(String, String)>| {
                sorted(Json::of(pairs.iter().map(|(key, value)| (key.as_str(), Json::from(value.as_str())))))
            };
            members.push(("external_dependencies", Json::from(list.iter().map(one).collect::<Vec<_>>())));
        }
        members.extend(self.other.iter().map(|(key, value)| (key.as_str(), value.clone())));
        match self.style {
            Style::FullModel => sorted(Json::of(members)),
            Style::Operator => Json::of(members),
        }
    }
}

impl Targets {
    fn to_json(&self) -> Json {
        match self {
            Targets::ByDevice(pairs) => {
                Json::of(pairs.iter().map(|(device, target)| (device.as_str(), Json::from(target.as_str()))))
            }
            Targets::List(list) => texts(list),
        }
    }
}

impl Memory {
    fn to_json(&self, version: u32, style: Style) -> Json {
        if style == Style::Operator {
            let functions = self.buffers.iter().map(|(name, list)| {
                let list = list.iter().map(BufferInfo::to_json).collect::<Vec<_>>();
                (name.as_str(), Json::from(list))
            });
            return Json::of(functions);
        }
        let sids = self.sids.as_ref().map(|sids| Json::from(sids.iter().map(Sid::to_json).collect::<Vec<_>>()));
        if version == 1 {
            return sids.unwrap_or_else(|| Json::from(Vec::new()));
        }
        let [other, other_functions] = &self.other;
        let mut functions = Vec::new();
        if let Some(main) = &self.main {
            functions.push(("main", Json::from(main.iter().map(MainMemory::to_json).collect::<Vec<_>>())));
        }
        if let Some(operators) = &self.operators {
            let list = operators.iter().map(OperatorMemory::to_json).collect::<Vec<_>>();
            functions.push(("operator_functions", Json::from(list)));
        }
        functions.extend(others(other_functions));
        let mut members = Vec::new();
        if !functions.is_empty() {
            members.push(("functions", sorted(Json::of(functions))));
        }
        members.extend(sids.map(|sids| ("sids", sids)));
        members.extend(others(other));
        sorted(Json::of(members))
    }
}

impl Sid {
    fn to_json(&self) -> Json {
        let mut members = Vec::new();
        if let Some(name) = &self.input_binding {
            members.push(("input_binding", Json::from(name.as_str())));
        }
        members.push(("size_bytes", Json::from(self.size_bytes)));
        members.push(("storage_id", Json::from(self.storage_id)));
        members.extend(others(&self.other));
        sorted(Json::of(members))
    }
}

impl MainMemory {
    fn to_json(&self) -> Json {
        let mut members = Vec::from([
            ("constants_size_bytes", Json::from(self.constants_size_bytes)),
            ("device", Json::from(self.device)),
            ("io_size_bytes", Json::from(self.io_size_bytes)),
            ("workspace_size_bytes", Json::from(self.workspace_size_bytes)),
        ]);
        for (key, list) in [("inputs", &self.inputs), ("outputs", &self.outputs)] {
            members.extend(list.as_ref().map(|list| {
                let one = |buffer: &NamedBuffer| {
                    let known = [("dtype", Json::from(buffer.dtype.as_str())), ("size", Json::from(buffer.size))];
                    sorted(Json::of(known.into_iter().chain(others(&buffer.other))))
                };
                (key, sorted(Json::of(list.iter().map(|buffer| (buffer.name.as_str(), one(buffer))))))
            }));
        }
        members.extend(others(&self.other));
        sorted(Json::of(members))
    }
}

impl OperatorMemory {
    fn to_json(&self) -> Json {
        let one = |(index, &(device, bytes)): (usize, &(i64, u64))| {
            let known = [("device", Json::from(device)), ("workspace_size_bytes", Json::from(bytes))];
            match self.workspace_other.get(index).filter(|other| !other.is_empty()) {
                Some(other) => sorted(Json::of(known.into_iter().chain(others(other)))),
                None => Json::of(known),
            }
        };
        let known = [
            ("function_name", Json::from(self.function_name.as_str())),
            ("workspace", Json::from(self.workspace.iter().enumerate().map(one).collect::<Vec<_>>())),
        ];
        sorted(Json::of(known.into_iter().chain(others(&self.other))))
    }
}

impl BufferInfo {
    fn to_json(&self) -> Json {
        let shape = self.shape.iter().map(|&size| Json::from(size)).collect::<Vec<_>>();
        let known = [
            ("size_bytes", Json::from(self.size_bytes)),
            ("shape", Json::from(shape)),
            ("dtype", Json::from(self.dtype.as_str())),
        ];
        let binding = self.input_binding.as_ref().map(|name| ("input_binding", Json::from(name.as_str())));
        Json::of(known.into_iter().chain(binding).chain(others(&self.other)))
    }
}
