//! Summary of a Model Library Format package.

use edgepack_format::limits::Limits;
use edgepack_format::mlf::{self, DataType, Graph, Metadata, Package, StoragePlan, definitions, interface, package};
use edgepack_loader::mlf::Archive;
use serde::Serialize;

/// Facts about a package that `inspect` shows.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct LibrarySummary {
    /// Bytes of the whole archive.
    pub bytes: u64,
    /// Metadata of the package, as far as it can be read.
    pub metadata: Option<Metadata>,
    /// Modules of the package.
    pub modules: Vec<ModuleSummary>,
    /// Files of the package.
    pub members: Vec<MemberSummary>,
}

/// A file of a package.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct MemberSummary {
    /// Path of the file in the archive.
    pub path: String,
    /// Offset of the file's bytes in the archive.
    pub offset: u64,
    /// Length of the file in bytes.
    pub bytes: u64,
}

/// Module of a package, with the files that belong to it.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct ModuleSummary {
    /// Name of the module.
    pub name: String,
    /// Graph of the module.
    pub graph: Option<GraphSummary>,
    /// Parameters of the module.
    pub params: Vec<TensorSummary>,
    /// Source files of the module.
    pub sources: Vec<SourceSummary>,
    /// Objects of the module.
    pub objects: Vec<ObjectSummary>,
    /// Inputs and outputs, by every part that says something about them.
    pub interfaces: Vec<InterfaceSummary>,
    /// The model before it was compiled.
    pub text: Option<TextSummary>,
}

/// Compiled object.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct ObjectSummary {
    /// Path of the object.
    pub path: String,
    /// Kind of the object, and the machine that it is for.
    pub kind: String,
}

/// Inputs and outputs, as a part of the package says.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct InterfaceSummary {
    /// The part.
    pub part: String,
    /// Inputs, in order.
    pub inputs: Vec<IoSummary>,
    /// Outputs, in order; absent if the part says nothing about them.
    pub outputs: Option<Vec<IoSummary>>,
}

/// Input or output.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct IoSummary {
    /// Name of the tensor, which may be empty.
    pub name: String,
    /// Description of the tensor, as far as the part has one.
    #[serde(rename = "type")]
    pub layout: Option<String>,
}

/// Text of a model.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct TextSummary {
    /// Path of the text.
    pub path: String,
    /// Lines of the text.
    pub lines: usize,
    /// The text itself.
    #[serde(skip)]
    pub text: String,
}

/// Graph of a module, and the memory that it needs.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct GraphSummary {
    /// Inputs and parameters.
    pub args: Vec<TensorSummary>,
    /// Calls in the order of execution.
    pub calls: Vec<CallSummary>,
    /// The entries that are outputs.
    pub outputs: Vec<String>,
    /// Pieces of memory.
    pub storages: usize,
    /// Bytes of all of them.
    pub storage_bytes: u64,
}

/// Call of a function by a node.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct CallSummary {
    /// Index of the node in the graph.
    pub node: u32,
    /// Name of the function that is called.
    pub function: String,
    /// Names of the entries that the call reads.
    pub inputs: Vec<String>,
    /// Tensors that the call writes.
    pub outputs: Vec<TensorSummary>,
}

/// Parameter, or entry of a graph.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct TensorSummary {
    /// Name of the tensor; for a result of a call, `%NODE` or `%NODE.INDEX`.
    pub name: String,
    /// `f32[1, 2]`.
    #[serde(rename = "type")]
    pub layout: String,
    /// Size in bytes.
    pub bytes: u64,
    /// Index of the storage that holds the tensor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage: Option<u32>,
}

/// Source file in C or C++.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct SourceSummary {
    /// Path of the source file.
    pub path: String,
    /// Length of the source file in bytes.
    pub bytes: u64,
    /// The functions that others can call.
    pub functions: Vec<String>,
}

/// Element type and shape.
pub fn layout(data_type: DataType, shape: &[u64]) -> String {
    format!("{}{shape:?}", data_type.notation())
}

impl LibrarySummary {
    /// Summarises an archive, broken or not. A list for which there is not enough memory is empty; the findings report
    /// it.
    pub fn new(bytes: &[u8], limits: &Limits) -> Self {
        let archive = Archive::read(bytes, limits).archive;
        let members = archive.members(bytes).unwrap_or_default();
        let package = package::verify(&members, limits).1;
        let (metadata, modules) = match package {
            Some(Package { metadata, modules }) => {
                let version = metadata.version;
                let pairs = metadata.modules.iter().zip(&modules);
                let modules = pairs.map(|(info, files)| module(version, info, files)).collect();
                (Some(metadata), modules)
            }
            None => (None, Vec::new()),
        };
        let member = |member: &mlf::Member<'_>| MemberSummary {
            path: member.path.to_owned(),
            offset: member.at,
            bytes: member.bytes.len() as u64,
        };
        LibrarySummary { bytes: bytes.len() as u64, metadata, modules, members: members.iter().map(member).collect() }
    }
}

fn module(version: u32, info: &mlf::Module, files: &mlf::ModuleFiles<'_>) -> ModuleSummary {
    let params = files.params.iter().flat_map(|params| &params.entries).map(|param| TensorSummary {
        name: param.name.to_owned(),
        layout: layout(param.data_type, &param.shape),
        bytes: param.data.len() as u64,
        storage: None,
    });
    let sources = files.sources.iter().map(|source| SourceSummary {
        path: source.path.to_owned(),
        bytes: source.bytes.len() as u64,
        functions: definitions(source.bytes)
            .unwrap_or_default()
            .into_iter()
            .filter(|one| !one.is_static)
            .map(|one| one.name)
            .collect(),
    });
    let objects = files.objects.iter().map(|object| ObjectSummary {
        path: object.path.to_owned(),
        kind: mlf::ObjectCode::of(object.bytes).to_string(),
    });
    let text = files.relay.map(|text| TextSummary {
        path: mlf::place::relay(version, &info.name),
        lines: text.lines().count(),
        text: text.to_owned(),
    });
    ModuleSummary {
        name: info.name.clone(),
        graph: files.graph.as_ref().map(graph),
        params: params.collect(),
        sources: sources.collect(),
        objects: objects.collect(),
        interfaces: interface::interfaces(info, files).unwrap_or_default().iter().map(described).collect(),
        text,
    }
}

fn described(interface: &interface::Interface) -> InterfaceSummary {
    let tensor = |tensor: &interface::IoTensor| IoSummary {
        name: tensor.name.clone(),
        layout: (tensor.data_type.is_some() || tensor.bytes.is_some()).then(|| tensor.to_string()),
    };
    let tensors = |list: &Vec<interface::IoTensor>| list.iter().map(tensor).collect();
    InterfaceSummary {
        part: interface.part.to_string(),
        inputs: tensors(&interface.inputs),
        outputs: interface.outputs.as_ref().map(tensors),
    }
}

/// Name of an entry: that of an input or parameter; for a result of a call `%NODE` or `%NODE.INDEX`.
pub fn entry_name(graph: &Graph, reference: mlf::Reference) -> String {
    match graph.nodes.get(reference.node as usize) {
        Some(node) if node.call.is_none() => node.name.clone(),
        Some(node) if node.outputs() > 1 => format!("%{}.{}", reference.node, reference.index),
        _ => format!("%{}", reference.node),
    }
}

fn graph(graph: &Graph) -> GraphSummary {
    let plan = StoragePlan::of(graph).unwrap_or_default();
    let name = |reference: mlf::Reference| entry_name(graph, reference);
    let tensor = |reference: mlf::Reference| {
        graph.entry(reference).map(|entry| TensorSummary {
            name: name(reference),
            layout: layout(entry.data_type, &entry.shape),
            bytes: entry.bytes().unwrap_or_default(),
            storage: Some(entry.storage),
        })
    };
    let calls = graph.calls().map(|(id, node, call)| CallSummary {
        node: id,
        function: call.function.clone(),
        inputs: node.inputs.iter().map(|&input| name(input)).collect(),
        // A broken graph may say any number of outputs; there are no more than entries.
        outputs: (0..call.outputs.min(graph.entries.len() as u32))
            .map_while(|index| tensor(mlf::Reference { node: id, index, version: 0 }))
            .collect(),
    });
    GraphSummary {
        args: graph.args().filter_map(|(node, ..)| tensor(mlf::Reference { node, index: 0, version: 0 })).collect(),
        calls: calls.collect(),
        outputs: graph.heads.iter().map(|&head| name(head)).collect(),
        storages: plan.storages.len(),
        storage_bytes: plan.bytes(),
    }
}
