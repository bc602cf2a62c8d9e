//! The builder of payloads: values and nodes go in, a payload that verifies comes out.

use std::collections::BTreeMap;

use edgepack_format::limits::Limits;
use edgepack_format::xnnpack::verify::{Context, with_context};
use edgepack_format::xnnpack::{
    Constant, ConstantBytes, Graph, INPUT, Node, NodeUnion, OUTPUT, OutputMinMax, Payload, TensorValue, Value,
    ValueUnion,
};

use super::constants::{ConstantId, Entry, NamedBytes, Storage, buffers, named, region, settle};
use super::container::{Container, write};
use super::values::{ValueId, ValueSpec};
use crate::Error;
use crate::build_error::BuildError;
use crate::content::Data;

/// Builds one payload.
///
/// ```
/// use edgepack_builder::xnnpack::{PayloadBuilder, ValueSpec};
/// use edgepack_format::limits::Limits;
/// use edgepack_format::xnnpack::{Datatype, Node2x1, NodeUnion, Payload};
///
/// let spec = ValueSpec::new(Datatype::FP32, [2, 3]);
/// let mut builder = PayloadBuilder::new();
/// let (a, b) = (builder.input(spec.clone())?, builder.input(spec.clone())?);
/// let y = builder.output(spec)?;
/// let sum = Node2x1 { input1_id: a.id(), input2_id: b.id(), output_id: y.id(), flags: 0 };
/// builder.node(NodeUnion::Add(sum));
/// let built = builder.finish()?;
///
/// let payload = Payload::parse(&built.bytes, &Limits::DEFAULT)?;
/// assert_eq!(payload.nodes()[0].to_string(), "%2 = Add(%0, %1)");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct PayloadBuilder {
    storage: Storage,
    values: Vec<Value<'static>>,
    nodes: Vec<Node<'static>>,
    constants: Vec<Entry>,
    /// Ids, and their positions among the inputs.
    inputs: Vec<(u32, u32)>,
    outputs: Vec<u32>,
}

/// A payload, and the named data that it asks for.
#[derive(Clone, Debug)]
pub struct BuiltPayload {
    /// Bytes of the payload.
    pub bytes: Vec<u8>,
    /// Keys and contents, each key once. Digests are taken already.
    pub named: NamedBytes,
}

impl PayloadBuilder {
    /// A graph without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same with constants in another place, and the container of that time.
    pub fn storage(self, storage: Storage) -> Self {
        PayloadBuilder { storage, ..self }
    }

    /// Adds a constant: bytes in memory, or a content that is read when the payload is finished.
    pub fn constant(&mut self, data: impl Into<Data<'static>>) -> Result<ConstantId, BuildError> {
        self.entry(Entry::Bytes { data: data.into(), is_scales: false })
    }

    /// Adds scales as a constant: in single precision for channels, in bf16 for blocks.
    pub fn scales(&mut self, bytes: impl Into<Vec<u8>>) -> Result<ConstantId, BuildError> {
        self.entry(Entry::Bytes { data: bytes.into().into(), is_scales: true })
    }

    /// Adds a constant whose bytes are named data already.
    pub fn named_constant(&mut self, key: impl Into<String>, size: u64) -> Result<ConstantId, BuildError> {
        self.entry(Entry::Key { key: key.into(), size })
    }

    fn entry(&mut self, entry: Entry) -> Result<ConstantId, BuildError> {
        self.constants.push(entry);
        // Entry 0 is reserved.
        Ok(ConstantId(u32::try_from(self.constants.len()).map_err(|_| Error::Overflow)?))
    }

    /// Adds a value that a node makes.
    pub fn value(&mut self, spec: ValueSpec) -> Result<ValueId, BuildError> {
        self.add(spec, None)
    }

    /// Adds a value whose elements are a constant.
    pub fn constant_value(&mut self, spec: ValueSpec, constant: ConstantId) -> Result<ValueId, BuildError> {
        self.add(spec, Some(constant))
    }

    /// Adds an input. Inputs are the first arguments of the delegate call, in the order in which they are added.
    pub fn input(&mut self, spec: ValueSpec) -> Result<ValueId, BuildError> {
        let position = u32::try_from(self.inputs.len()).map_err(|_| Error::Overflow)?;
        self.input_at(position, spec)
    }

    /// Adds an input at a position among the inputs.
    pub fn input_at(&mut self, position: u32, spec: ValueSpec) -> Result<ValueId, BuildError> {
        let value = self.add(spec, None)?;
        self.inputs.push((value.id(), position));
        Ok(value)
    }

    /// Adds an output. Outputs are the last arguments of the delegate call, in the order in which they are added.
    pub fn output(&mut self, spec: ValueSpec) -> Result<ValueId, BuildError> {
        let value = self.add(spec, None)?;
        self.outputs.push(value.id());
        Ok(value)
    }

    fn add(&mut self, spec: ValueSpec, constant: Option<ConstantId>) -> Result<ValueId, BuildError> {
        let id = u32::try_from(self.values.len()).map_err(|_| Error::Overflow)?;
        self.values.push(spec.row(id, constant));
        Ok(ValueId(id))
    }

    /// Adds a node. Its ids are those of values; nodes may come in any order.
    pub fn node(&mut self, kind: NodeUnion<'static>) -> &mut Self {
        self.node_with(kind, None, 0)
    }

    /// Adds a node with bounds of its result, and the number that links it to where it was exported from.
    pub fn node_with(&mut self, kind: NodeUnion<'static>, bounds: Option<(f32, f32)>, debug_handle: u32) -> &mut Self {
        let output_min_max = bounds.map(|(output_min, output_max)| OutputMinMax { output_min, output_max });
        self.nodes.push(Node { xnode_union: Some(kind), debug_handle, output_min_max });
        self
    }

    /// Reads the constants of several payloads and takes their digests, which is most of what [`PayloadBuilder::finish`] of
    /// each does otherwise, on several threads. Constants that are no named data are left.
    pub fn settle(builders: &mut [PayloadBuilder]) -> Result<(), BuildError> {
        let named = builders.iter_mut().filter(|builder| builder.storage == Storage::Named);
        let mut lists: Vec<&mut [Entry]> = named.map(|builder| builder.constants.as_mut_slice()).collect();
        settle(&mut lists)
    }

    /// The payload. It verifies, with its constants.
    pub fn finish(mut self) -> Result<BuiltPayload, BuildError> {
        Self::settle(std::slice::from_mut(&mut self))?;
        let has_all_bytes = self.constants.iter().all(|entry| matches!(entry, Entry::Bytes { .. }));
        let externs = self.inputs.len().saturating_add(self.outputs.len());
        let mut values = self.values;
        let inputs = self.inputs.iter().map(|(id, position)| (*id, *position, INPUT));
        // There are at most as many outputs as values, whose ids fit.
        let outputs = self.outputs.iter().zip(self.inputs.len() as u32..).map(|(id, position)| (*id, position, OUTPUT));
        for (id, position, flag) in inputs.chain(outputs) {
            if let Some(tensor) = values.get_mut(id as usize).and_then(tensor) {
                (tensor.external_id, tensor.flags) = (position, flag);
            }
        }
        let inputs: Vec<u32> = self.inputs.into_iter().map(|(id, _)| id).collect();
        let mut graph = Graph {
            version: Some("0".into()),
            xnodes: Some(self.nodes.into()),
            xvalues: Some(values.into()),
            num_externs: u32::try_from(externs).map_err(|_| Error::Overflow)?,
            input_ids: Some(inputs.into()),
            output_ids: Some(self.outputs.into()),
            ..Graph::default()
        };
        let mut built = BuiltPayload { bytes: Vec::new(), named: Vec::new() };
        built.bytes = match self.storage {
            Storage::Named => {
                let (rows, data) = named(self.constants)?;
                graph.constant_data = Some(rows.into());
                built.named = data;
                write(&graph, Container::Header, &[])?
            }
            Storage::Region => {
                let (rows, region) = region(self.constants)?;
                graph.constant_data = Some(rows.into());
                write(&graph, Container::Header, &region)?
            }
            Storage::Bare => {
                let rows = buffers(self.constants)?;
                graph.constant_buffer = Some(rows.into());
                write(&graph, Container::Bare, &[])?
            }
        };
        built.verify(has_all_bytes)?;
        Ok(built)
    }
}

fn tensor<'v>(value: &'v mut Value<'static>) -> Option<&'v mut TensorValue<'static>> {
    match value.xvalue_union.as_mut()? {
        ValueUnion::TensorValue(tensor) => Some(tensor),
        ValueUnion::QuantizedTensorValue(value) => value.tensor_value.as_mut(),
        ValueUnion::Unknown(_) => None,
    }
}

impl BuiltPayload {
    /// The payload is sound by itself, and with the data that are known.
    fn verify(&self, has_all_bytes: bool) -> Result<(), BuildError> {
        let mut limits = Limits::DEFAULT;
        limits.visits = u64::MAX;
        let payload = Payload::parse(&self.bytes, &limits)?;
        if !has_all_bytes {
            return Ok(());
        }
        let constants =
            AtHand { payload: &payload, named: self.named.iter().map(|(key, data)| (&**key, data)).collect() };
        let findings = with_context(&payload, &Context { constants: Some(&constants), ..Context::default() }, &limits);
        match findings.has_errors() {
            true => Err(BuildError::Findings(findings)),
            false => Ok(()),
        }
    }
}

/// Constants of a payload: all lengths, and the bytes of those that are in memory, as scales are.
struct AtHand<'p> {
    payload: &'p Payload<'p>,
    named: BTreeMap<&'p str, &'p Data<'static>>,
}

impl AtHand<'_> {
    fn data(&self, index: u32) -> Option<&Data<'static>> {
        match self.payload.constant_list().get(usize::try_from(index).ok()?)? {
            Constant::Named { key, .. } => self.named.get(&**key).copied(),
            _ => None,
        }
    }
}

impl ConstantBytes for AtHand<'_> {
    fn bytes(&self, index: u32) -> Option<&[u8]> {
        match self.payload.constant_list().get(usize::try_from(index).ok()?)? {
            Constant::Inline(bytes) => Some(bytes),
            _ => self.found(index),
        }
    }

    fn found(&self, index: u32) -> Option<&[u8]> {
        self.data(index)?.as_slice()
    }

    fn found_len(&self, index: u32) -> Option<u64> {
        self.data(index).map(Data::len)
    }
}
