//! Inputs and outputs of a module, by every part of its package that says something about them, and whether they agree.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use super::c_interface::CInterface;
use super::c_metadata;
use super::data_type::DataType;
use super::files::ModuleFiles;
use super::graph::Graph;
use super::metadata::{Module, NamedBuffer};
use super::params::{self, Params};
use super::relay;
use super::report::{Report, clip, shown};
use crate::room;
use crate::rules::mlf as rules;

/// Part of a package that says what goes in and out.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Part {
    /// The graph.
    Graph,
    /// The table in the code of this path.
    Code(String),
    /// The metadata.
    Metadata,
    /// The generated header of this path.
    Header(String),
    /// The model's text: parameters are among its inputs.
    Relay,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Part::Graph => "the graph",
            Part::Metadata => "the metadata",
            Part::Relay => "the model's text",
            Part::Code(path) | Part::Header(path) => path,
        })
    }
}

/// Input or output, as far as a part says.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct IoTensor {
    /// Name of the tensor; outputs of graphs and texts have none.
    pub name: String,
    /// Element type of the tensor.
    pub data_type: Option<DataType>,
    /// Shape of the tensor.
    pub shape: Option<Vec<u64>>,
    /// Size of the tensor in bytes.
    pub bytes: Option<u64>,
}

impl IoTensor {
    fn new(name: &str, data_type: DataType, shape: &[u64]) -> room::Result<IoTensor> {
        let bytes = params::byte_count(shape, data_type.bytes());
        let shape = Some(room::copy_of(shape)?);
        Ok(IoTensor { name: name.to_owned(), data_type: Some(data_type), shape, bytes })
    }

    fn of_buffer(buffer: &NamedBuffer) -> IoTensor {
        let data_type = buffer.dtype.parse().ok();
        IoTensor { name: buffer.name.clone(), data_type, shape: None, bytes: Some(buffer.size) }
    }

    /// Returns whether two descriptions can be of one tensor.
    fn agrees(&self, other: &IoTensor) -> bool {
        fn same<T: PartialEq>(one: &Option<T>, other: &Option<T>) -> bool {
            one.is_none() || other.is_none() || one == other
        }
        same(&self.data_type, &other.data_type) && same(&self.shape, &other.shape) && same(&self.bytes, &other.bytes)
    }
}

impl fmt::Display for IoTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.data_type {
            Some(data_type) => f.write_str(&data_type.notation())?,
            None => f.write_str("tensor")?,
        }
        match (&self.shape, self.bytes) {
            (Some(shape), _) => f.write_str(&shown(shape)),
            (None, Some(bytes)) => write!(f, " of {bytes} bytes"),
            (None, None) => Ok(()),
        }
    }
}

/// Inputs and outputs, as a part says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Interface {
    /// The part that says it.
    pub part: Part,
    /// Inputs, in order.
    pub inputs: Vec<IoTensor>,
    /// Outputs, in order; `None` if the part says nothing about them.
    pub outputs: Option<Vec<IoTensor>>,
}

/// All that the parts of a module's package say about its inputs and outputs.
///
/// # Errors
///
/// There is no memory for what they say.
pub fn interfaces(module: &Module, files: &ModuleFiles<'_>) -> room::Result<Vec<Interface>> {
    let mut found = Vec::new();
    if let Some(graph) = &files.graph {
        found.push(of_graph(graph, files.params.as_ref())?);
    }
    for source in &files.sources {
        let Some((inputs, outputs)) = core::str::from_utf8(source.bytes).map_or(Ok(None), c_metadata::read)? else {
            continue;
        };
        if inputs.is_empty() && outputs.is_empty() {
            continue;
        }
        let tensors = |list: c_metadata::Listed| {
            collected(list.iter().map(|(name, data_type, shape)| IoTensor::new(name, *data_type, shape)))
        };
        let part = Part::Code(source.path.to_owned());
        room::push(&mut found, Interface { part, inputs: tensors(inputs)?, outputs: Some(tensors(outputs)?) })?;
    }
    if let Some(main) = module.memory.main.as_ref().and_then(|main| main.first())
        && let Some(inputs) = &main.inputs
    {
        let tensors = |list: &Vec<NamedBuffer>| room::collect(list.iter().map(IoTensor::of_buffer));
        let outputs = main.outputs.as_ref().map(tensors).transpose()?;
        room::push(&mut found, Interface { part: Part::Metadata, inputs: tensors(inputs)?, outputs })?;
    }
    let prefix = format!("{}.h", module.prefix());
    for header in files.headers.iter().filter(|header| header.path.rsplit('/').next() == Some(prefix.as_str())) {
        let Ok(text) = core::str::from_utf8(header.bytes) else { continue };
        let Some(parsed) = CInterface::parse(text, module)? else { continue };
        let tensors =
            |names: Vec<String>| room::collect(names.into_iter().map(|name| IoTensor { name, ..IoTensor::default() }));
        let part = Part::Header(header.path.to_owned());
        let (inputs, outputs) = (tensors(parsed.inputs)?, tensors(parsed.outputs)?);
        room::push(&mut found, Interface { part, inputs, outputs: Some(outputs) })?;
    }
    if let Some(signature) = files.relay.map_or(Ok(None), relay::main_signature)? {
        room::extend(&mut found, of_relay(signature)?)?;
    }
    Ok(found)
}

/// A list of tensors each of which needs memory of its own.
fn collected(tensors: impl Iterator<Item = room::Result<IoTensor>>) -> room::Result<Vec<IoTensor>> {
    let mut list = Vec::new();
    for tensor in tensors {
        room::push(&mut list, tensor?)?;
    }
    Ok(list)
}

fn of_graph(graph: &Graph, params: Option<&Params<'_>>) -> room::Result<Interface> {
    let stored = params.map(|params| room::set(params.entries.iter().map(|param| param.name))).unwrap_or_default();
    let inputs = graph.args().filter(|(_, name, _)| !stored.contains(name));
    let inputs = collected(inputs.map(|(_, name, entry)| IoTensor::new(name, entry.data_type, &entry.shape)))?;
    let outputs = graph.heads.iter().filter_map(|&head| graph.entry(head));
    let outputs = collected(outputs.map(|entry| IoTensor::new("", entry.data_type, &entry.shape)))?;
    Ok(Interface { part: Part::Graph, inputs, outputs: Some(outputs) })
}

/// A text without arguments says nothing.
fn of_relay(signature: relay::Signature) -> room::Result<Option<Interface>> {
    let tensor = |name: &str, tensor: Option<relay::Tensor>| match tensor {
        Some((data_type, shape)) => IoTensor::new(name, data_type, &shape),
        None => Ok(IoTensor { name: name.to_owned(), ..IoTensor::default() }),
    };
    let results = |results: Vec<Option<relay::Tensor>>| collected(results.into_iter().map(|result| tensor("", result)));
    let arguments = signature.arguments.into_iter();
    let inputs = collected(arguments.map(|argument| tensor(&argument.name, argument.tensor)))?;
    let outputs = signature.results.map(results).transpose()?;
    Ok((!inputs.is_empty()).then_some(Interface { part: Part::Relay, inputs, outputs }))
}

/// Checks that all parts agree with the first.
pub(super) fn verify(module: &Module, files: &ModuleFiles<'_>, report: &mut Report) {
    let read = files.relay.map_or(0, str::len);
    let read = files.headers.iter().fold(read, |sum, header| sum.saturating_add(header.bytes.len()));
    if report.budget.charge_bytes(read, 0).is_err() {
        report.add(&rules::LIMITS, "", None, "more text than the limits allow".to_string());
        return;
    }
    let all = report.roomy(interfaces(module, files)).unwrap_or_default();
    let Some((first, others)) = all.split_first().filter(|(first, _)| first.part != Part::Relay) else { return };
    let wanted = by_name(&first.inputs);
    for other in others {
        let rule = if other.part == Part::Relay { &rules::RELAY } else { &rules::INTERFACE };
        let mut add = |what: String| report.add(rule, "", None, format!("{}, {what}", clip(&first.part.to_string())));
        let have = by_name(&other.inputs);
        for (name, input) in &wanted {
            let found = have.get(name);
            let name = clip(name);
            match found {
                Some(found) if found.agrees(input) => {}
                Some(found) => add(format!("the input {name} is {input}, in {} {found}", other.part)),
                None => add(format!("{} has no input {name}", other.part)),
            }
        }
        if other.part != Part::Relay {
            for name in have.keys().filter(|name| !wanted.contains_key(*name)) {
                add(format!("the input {} is only in {}", clip(name), other.part));
            }
        }
        let Some((want, have)) = first.outputs.as_ref().zip(other.outputs.as_ref()) else { continue };
        if want.len() != have.len() {
            add(format!("{} outputs, in {} {}", want.len(), other.part, have.len()));
        } else if other.part != Part::Metadata {
            // The metadata have outputs in the order of their names.
            let differing = want.iter().zip(have).enumerate().find(|(_, (want, have))| !want.agrees(have));
            if let Some((index, (want, have))) = differing {
                add(format!("output {index} is {want}, in {} {have}", other.part));
            }
        }
    }
}

/// Tensors by name, as names become members of structs in C.
fn by_name(tensors: &[IoTensor]) -> BTreeMap<String, &IoTensor> {
    let plain = |name: &str| -> String {
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' }).collect()
    };
    room::map(tensors.iter().map(|tensor| (plain(&tensor.name), tensor)))
}
