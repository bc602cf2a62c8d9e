//! Payloads of the XNNPACK backend: what holding a verified one means.

use std::collections::{BTreeMap, BTreeSet};

use edgepack_builder::xnnpack::{Container, PayloadBuilder, Quant, Scales, Storage, ValueSpec, write};
use edgepack_format::limits::Limits;
use edgepack_format::payload::PayloadFile;
use edgepack_format::row::{Table as _, TableDesc};
use edgepack_format::wire;
use edgepack_format::xnnpack::verify::{Argument, Context, verify, with_context};
use edgepack_format::xnnpack::{
    ConstantBytes as _, Datatype, FullyConnected, Graph, Header, Node1x1, NodeUnion, OLD_IDENTIFIER, Payload,
};

use super::small_limits;
use crate::seeds::corpus;

/// See [`BODIES`](super::BODIES).
pub fn payload(data: &[u8]) {
    let limits = Limits::hostile();
    let verdict = verify(data, &limits);
    let said: usize = verdict.findings.iter().map(|finding| finding.to_string().len()).sum();
    assert!(said > 0 || verdict.findings.is_empty());
    if let Some(payload) = &verdict.payload {
        printed(payload);
    }
    let Ok(payload) = Payload::parse(data, &limits) else {
        assert!(verdict.findings.has_errors());
        return;
    };
    ordered(&payload);
    surrounded(&payload, data, &limits);
    if Payload::parse(data, &small_limits(data)).is_ok() {
        written(&payload);
    }
}

/// Every line can be made, and is one line.
fn printed(payload: &Payload<'_>) {
    let lines = payload.nodes().iter().map(ToString::to_string);
    for line in lines.chain(payload.values().iter().map(|value| payload.line(value).to_string())) {
        assert!(!line.is_empty() && !line.contains('\n'), "{line:?}");
    }
}

/// Nodes read what is there, in the order that the payload gives.
fn ordered(payload: &Payload<'_>) {
    assert_eq!(payload.order().len(), payload.nodes().len());
    let is_given = |value: &edgepack_format::xnnpack::Value<'_>| {
        value.tensor().is_some_and(|tensor| tensor.is_input() || tensor.is_constant())
    };
    let values = payload.values().iter().enumerate();
    let mut made: BTreeSet<usize> = values.filter(|(_, value)| is_given(value)).map(|(index, _)| index).collect();
    for index in payload.order() {
        let node = &payload.nodes()[*index as usize];
        for input in node.inputs().filter(|input| input.is_present()) {
            let value = payload.index_of(input.id).expect("a verified id");
            assert!(made.contains(&value), "{node} reads %{} too early", input.id);
        }
        for output in node.outputs() {
            assert!(made.insert(payload.index_of(output.id).expect("a verified id")), "{node} makes what is made");
        }
    }
    assert_eq!(made.len(), payload.values().len());
}

/// Any named data and arguments are judged; each key is asked for once; what is found has the length that it says.
fn surrounded(payload: &Payload<'_>, data: &[u8], limits: &Limits) {
    let mut asked = BTreeMap::<String, usize>::new();
    let constants = payload.constants(|key| {
        *asked.entry(key.to_owned()).or_default() += 1;
        Ok::<_, ()>((key.len() % 3 > 0).then_some(data))
    });
    let constants = constants.expect("this lookup does not fail");
    assert!(asked.values().all(|count| *count == 1), "{asked:?}");
    for (index, constant) in payload.constant_list().iter().enumerate() {
        if let Some(bytes) = constants.bytes(index as u32) {
            assert_eq!(bytes.len() as u64, constant.size());
        }
    }
    for value in payload.values() {
        // Too few bytes, or none, are an answer.
        let _ = value.quantization(&constants);
    }
    let sizes = [1, 2, 3, 4];
    let tensor = |value| Argument::Tensor {
        value,
        scalar_type: Datatype::FP32.scalar_type().expect("a type"),
        sizes: &sizes[..value as usize % 5],
        dim_order: &[0, 1, 2, 3][..value as usize % 5],
    };
    let arguments = [tensor(4), tensor(1), Argument::Other, tensor(4)];
    let digest = |bytes: &[u8]| [bytes.len() as u8; 32];
    let context = Context {
        arguments: Some(&arguments),
        constants: Some(&constants),
        digest: Some(digest),
        ..Context::default()
    };
    let findings = with_context(payload, &context, limits);
    assert!(findings.iter().all(|finding| !finding.to_string().is_empty()));
}

/// The rows, written and read again, are the rows.
fn written(payload: &Payload<'_>) {
    for container in [Container::Header, Container::OldIdentifier, Container::Bare] {
        let bytes = write(payload.graph(), container, &[]).expect("what was read can be written");
        let start = if container == Container::Bare { 0 } else { 32 };
        let root = wire::Table::root(&bytes[start..]).expect("a root");
        assert!(Graph::decode(root).expect("readable") == *payload.graph(), "{container:?}: the rows differ");
    }
}

/// The flatbuffer of a payload.
pub fn payload_root(data: &[u8]) -> Option<(usize, &'static TableDesc)> {
    let start = Header::read(data).ok()?.map_or(0, |header| header.flatbuffer_offset as usize);
    wire::Table::root_at(data, start).ok().map(|_| (start, Graph::DESC))
}

/// A product of rows that are quantised when they are known, with its constants in every place there is, and the payloads of
/// the corpus.
pub fn payload_seeds() -> Vec<Vec<u8>> {
    let build = |storage| {
        let mut builder = PayloadBuilder::new().storage(storage);
        let x = builder.input(ValueSpec::new(Datatype::FP32, [2, 32]))?;
        let rows = Quant::PerToken { num_nonbatch_dims: 1 };
        let q = builder.value(ValueSpec::new(Datatype::QDINT8, [2, 32]).quantized(rows))?;
        let scales = builder.scales(0x3f80u16.to_le_bytes().repeat(4))?;
        let blocks = Quant::PerGroup { group_size: 32, scales: Scales::Constant(scales, 4) };
        let w = builder.constant([0x98; 64])?;
        let w = builder.constant_value(ValueSpec::new(Datatype::QBINT4, [4, 32]).quantized(blocks), w)?;
        let y = builder.output(ValueSpec::new(Datatype::FP32, [2, 4]))?;
        builder.node(NodeUnion::Convert(Node1x1 { input_id: x.id(), output_id: q.id(), flags: 0 }));
        let (input1_id, filter_id, output_id) = (q.id(), w.id(), y.id());
        let node = FullyConnected { input1_id, filter_id, bias_id: u32::MAX, output_id, flags: 0 };
        builder.node_with(NodeUnion::FullyConnected(node), Some((0.0, f32::INFINITY)), 3);
        Ok::<_, edgepack_builder::BuildError>(builder.finish()?.bytes)
    };
    let seeds = [Storage::Named, Storage::Region, Storage::Bare].map(|storage| build(storage).expect("a payload"));
    assert!(seeds[2].get(4..8) == Some(&OLD_IDENTIFIER));
    let mut seeds = Vec::from(seeds);
    for path in corpus(&["pte"]) {
        let program = std::fs::read(path).expect("a readable file");
        let Ok(file) = PayloadFile::whole(&program) else { continue };
        edgepack::payloads().visit(&file, &Limits::hostile(), &mut |found, _, _| {
            seeds.push(found.payload.bytes.to_vec());
        });
    }
    seeds
}
