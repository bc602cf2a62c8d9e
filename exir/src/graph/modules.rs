//! Lowered modules: parts of a program that a backend has taken over.
//!
//! `exir.serde` writes each as a document of its own, inside a text argument of the call: who runs it, the payload, options,
//! named data, and the part as it was. `torch.export.save` writes names only; such a module can be looked at, not lowered.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use edgepack_format::room;
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::TensorLayout;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Argument, Graph, ListKind, NamedArgument, Node, Target};
use crate::error::Error;

/// The operator that calls a lowered module.
pub(super) const CALL: &str = "executorch_call_delegate";

/// A part of a program that a backend has taken over.
#[derive(Clone, PartialEq, Debug)]
pub struct LoweredPart {
    /// Name of the module in its graph.
    pub name: String,
    /// Name of the backend that runs the module.
    pub backend: String,
    /// Options for the backend: names and bytes.
    pub specs: Vec<(String, Vec<u8>)>,
    /// Payload that the backend made; absent if the archive holds names only.
    pub payload: Option<Arc<[u8]>>,
    /// Data that the backend finds by key.
    pub named_data: Vec<NamedData>,
    /// The part as it was, with its tensors, as the document has it.
    pub original: Value,
}

/// Data under a key.
#[derive(Clone, PartialEq, Debug)]
pub struct NamedData {
    /// Key that the payload asks for.
    pub key: String,
    /// Content of the data; several keys may have it.
    pub bytes: Arc<[u8]>,
    /// Alignment of the data in a file, in bytes.
    pub alignment: u64,
    /// The data file they go to; absent for the program itself.
    pub file: Option<String>,
    /// Layout of the data as a tensor, if they are one.
    pub layout: Option<TensorLayout>,
}

#[derive(Serialize, Deserialize)]
struct Document {
    backend_id: String,
    processed_bytes: String,
    #[serde(default)]
    compile_specs: Vec<Spec>,
    #[serde(default)]
    named_data_store: Option<String>,
    #[serde(flatten)]
    original: Value,
}

#[derive(Serialize, Deserialize)]
struct Spec {
    key: String,
    value: String,
}

#[derive(Default, Serialize, Deserialize)]
struct Store {
    #[serde(default)]
    buffers: Vec<String>,
    #[serde(default)]
    pte_data: BTreeMap<String, Entry>,
    #[serde(default)]
    external_data: BTreeMap<String, BTreeMap<String, Entry>>,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    buffer_index: usize,
    #[serde(default = "one")]
    alignment: u64,
    #[serde(default)]
    tensor_layout: Option<Layout>,
}

/// Layout of a tensor in memory, in the numbering of programs.
#[derive(Serialize, Deserialize)]
struct Layout {
    scalar_type: i8,
    sizes: Vec<usize>,
    dim_order: Vec<u8>,
}

fn one() -> u64 {
    1
}

fn decode(text: &str, what: &str) -> Result<Vec<u8>, String> {
    STANDARD.decode(text).map_err(|error| format!("{what}: {error}"))
}

impl LoweredPart {
    /// From the text argument of a call.
    fn read(name: &str, text: &str) -> Result<Self, String> {
        if !text.trim_start().starts_with('{') {
            let (module, backend) = text.rsplit_once('-').unwrap_or((name, text));
            return Ok(LoweredPart {
                name: if name.is_empty() { module.to_owned() } else { name.to_owned() },
                backend: backend.to_owned(),
                specs: Vec::new(),
                payload: None,
                named_data: Vec::new(),
                original: Value::Null,
            });
        }
        let text =
            room::copy_of(text.as_bytes()).and_then(crate::archive::quoted).map_err(|error| error.to_string())?;
        let document: Document = serde_json::from_slice(&text).map_err(|error| error.to_string())?;
        let specs = document.compile_specs.into_iter().map(|spec| {
            let value = decode(&spec.value, "an option")?;
            Ok((spec.key, value))
        });
        let payload = decode(&document.processed_bytes, "the payload")?;
        Ok(LoweredPart {
            name: name.to_owned(),
            backend: document.backend_id,
            specs: specs.collect::<Result<_, String>>()?,
            payload: Some(payload.into()),
            named_data: document.named_data_store.as_deref().map_or(Ok(Vec::new()), named_data)?,
            original: document.original,
        })
    }

    /// The text argument of a call.
    pub(super) fn spelled(&self) -> String {
        let Some(payload) = &self.payload else { return format!("{}-{}", self.name, self.backend) };
        let mut store = Store::default();
        let mut known: Vec<&Arc<[u8]>> = Vec::new();
        let mut places: BTreeMap<*const u8, usize> = BTreeMap::new();
        for data in &self.named_data {
            // Entries with common bytes refer to one buffer; empty ones may all be at one address.
            let buffer_index = *places.entry(data.bytes.as_ptr()).or_insert_with(|| {
                known.push(&data.bytes);
                known.len().saturating_sub(1)
            });
            let layout = data.layout.as_ref().map(|layout| Layout {
                scalar_type: layout.scalar_type().0,
                sizes: layout.sizes().to_vec(),
                dim_order: layout.dim_order().to_vec(),
            });
            let entry = Entry { buffer_index, alignment: data.alignment, tensor_layout: layout };
            match &data.file {
                Some(file) => {
                    drop(store.external_data.entry(file.clone()).or_default().insert(data.key.clone(), entry))
                }
                None => drop(store.pte_data.insert(data.key.clone(), entry)),
            }
        }
        store.buffers = known.into_iter().map(|bytes| STANDARD.encode(bytes)).collect();
        let spec = |(key, value): &(String, Vec<u8>)| Spec { key: key.clone(), value: STANDARD.encode(value) };
        let original = match &self.original {
            Value::Null => Value::Object(serde_json::Map::new()),
            original => original.clone(),
        };
        let document = Document {
            backend_id: self.backend.clone(),
            processed_bytes: STANDARD.encode(payload),
            compile_specs: self.specs.iter().map(spec).collect(),
            named_data_store: serde_json::to_string(&store).ok(),
            original,
        };
        serde_json::to_string(&document).unwrap_or_default()
    }
}

fn named_data(text: &str) -> Result<Vec<NamedData>, String> {
    let store: Store = serde_json::from_str(text).map_err(|error| format!("named data: {error}"))?;
    let buffers = store.buffers.iter().map(|buffer| Ok(Arc::from(decode(buffer, "named data")?)));
    let buffers: Vec<Arc<[u8]>> = buffers.collect::<Result<_, String>>()?;
    let inside = store.pte_data.into_iter().map(|(key, entry)| (None, key, entry));
    let outside = store.external_data.into_iter().flat_map(|(file, entries)| {
        entries.into_iter().map(move |(key, entry)| (Some(file.clone()), key, entry)).collect::<Vec<_>>()
    });
    let entry = |(file, key, entry): (Option<String>, String, Entry)| {
        let count = buffers.len();
        let bytes = buffers.get(entry.buffer_index).cloned();
        let bytes = bytes.ok_or_else(|| format!("named data {key:?}: buffer {} of {count}", entry.buffer_index))?;
        let layout = match entry.tensor_layout {
            Some(layout) => {
                let read = TensorLayout::new(ScalarType(layout.scalar_type), &layout.sizes, &layout.dim_order);
                let read = read.map_err(|error| format!("named data {key:?}: {error}"))?;
                Some(read).filter(|layout| layout.byte_len() == bytes.len())
            }
            None => None,
        };
        Ok(NamedData { key, bytes, alignment: entry.alignment, file, layout })
    };
    inside.chain(outside).map(entry).collect()
}

/// Takes the lowered modules out of the calls of a graph, and of those inside it.
pub(super) fn take(graph: &mut Graph, modules: &mut Vec<LoweredPart>) -> Result<(), Error> {
    for node in &mut graph.nodes {
        for input in &mut node.inputs {
            if let Argument::Graph(_, inner) = &mut input.arg {
                take(inner, modules)?;
            }
        }
        if node.target != Target::HigherOrder(CALL.to_owned()) {
            continue;
        }
        let place = || format!("node `{}`", node.name);
        let mut inputs = std::mem::take(&mut node.inputs).into_iter();
        let Some(NamedArgument { name, arg: Argument::Text(text), .. }) = inputs.next() else {
            return Err(Error::program(place(), "it calls a lowered module without saying which"));
        };
        let module = LoweredPart::read(&name, &text);
        let module = module.map_err(|message| Error::program(place(), format!("lowered module: {message}")))?;
        let operands = inputs.map(|input| input.arg).collect();
        node.inputs = vec![NamedArgument {
            name: String::new(),
            arg: Argument::List(ListKind::Tensors, operands),
            keyword: false,
        }];
        node.target = Target::Delegate(modules.len());
        modules.push(module);
    }
    Ok(())
}

/// The inputs of a call as documents have them: the lowered module, then what it is given.
pub(super) fn inputs(node: &Node, module: Option<&LoweredPart>, index: usize) -> Vec<NamedArgument> {
    let name = module.map_or(format!("lowered_module_{index}"), |module| module.name.clone());
    let text = module.map_or_else(|| name.clone(), LoweredPart::spelled);
    let operands = node.inputs.iter().flat_map(|input| input.arg.items());
    let operand = |(index, arg): (usize, &Argument)| NamedArgument {
        name: format!("delegate_arg_{index}"),
        arg: arg.clone(),
        keyword: false,
    };
    let first = NamedArgument { name, arg: Argument::Text(text), keyword: false };
    std::iter::once(first).chain(operands.enumerate().map(operand)).collect()
}
