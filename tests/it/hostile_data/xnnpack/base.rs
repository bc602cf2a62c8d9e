//! Good payloads as rows that recipes change: a convolution, a product of bytes, a product of blocks.

use edgepack_builder::xnnpack::{Container, PayloadBuilder, Quant, Scales, Storage, ValueSpec, write};
use edgepack_format::finding::Rule;
use edgepack_format::limits::Limits;
use edgepack_format::xnnpack::{
    ConstantDataOffset, Datatype, FullyConnected, Graph, Node, Node1x1, NodeConv, NodeUnion, Payload, QuantParams,
    StaticReshape, TensorValue, Value, ValueUnion,
};

use crate::hostile_data::Case;

/// The rows of a payload, apart.
pub struct Rows {
    pub graph: Graph<'static>,
    pub values: Vec<Value<'static>>,
    pub nodes: Vec<Node<'static>>,
    pub constants: Vec<ConstantDataOffset<'static>>,
    region: Vec<u8>,
}

impl Rows {
    fn of(payload: &[u8]) -> Rows {
        let parsed = Payload::parse(payload, &Limits::DEFAULT).unwrap_or_else(|findings| panic!("{findings}"));
        let json = serde_json::to_string(parsed.graph()).unwrap();
        let mut graph: Graph<'static> = serde_json::from_str(&json).unwrap();
        let values = std::mem::take(graph.xvalues.as_mut().unwrap().to_mut().unwrap());
        let nodes = std::mem::take(graph.xnodes.as_mut().unwrap().to_mut().unwrap());
        let constants = std::mem::take(graph.constant_data.as_mut().unwrap().to_mut().unwrap());
        let region = parsed.header().map_or(0, |header| header.constants_offset as usize);
        Rows { graph, values, nodes, constants, region: payload[region..].to_vec() }
    }

    pub fn tensor(&mut self, index: usize) -> &mut TensorValue<'static> {
        match self.values[index].xvalue_union.as_mut().unwrap() {
            ValueUnion::TensorValue(tensor) => tensor,
            ValueUnion::QuantizedTensorValue(value) => value.tensor_value.as_mut().unwrap(),
            ValueUnion::Unknown(tag) => panic!("kind {tag}"),
        }
    }

    pub fn params(&mut self, index: usize) -> &mut Option<QuantParams<'static>> {
        match self.values[index].xvalue_union.as_mut().unwrap() {
            ValueUnion::QuantizedTensorValue(value) => &mut value.quant_params,
            other => panic!("{other:?}"),
        }
    }

    pub fn kind(&mut self, index: usize) -> &mut NodeUnion<'static> {
        self.nodes[index].xnode_union.as_mut().unwrap()
    }

    pub fn write(self) -> Vec<u8> {
        let Rows { graph, values, nodes, constants, region } = self;
        let graph = Graph {
            xvalues: graph.xvalues.as_ref().map(|_| values.into()),
            xnodes: graph.xnodes.as_ref().map(|_| nodes.into()),
            constant_data: Some(constants.into()),
            ..graph
        };
        write(&graph, Container::Header, &region).unwrap()
    }
}

/// A case: a good payload and one change.
pub fn changed(
    id: &'static str,
    rule: &'static Rule,
    path: &'static str,
    good: fn() -> Rows,
    change: impl FnOnce(&mut Rows),
) -> Case {
    let mut rows = good();
    change(&mut rows);
    Case::new(id, rule, path, rows.write())
}

pub fn spec(datatype: Datatype, dims: &[u32]) -> ValueSpec {
    ValueSpec::new(datatype, dims)
}

pub fn fp32(dims: &[u32]) -> ValueSpec {
    spec(Datatype::FP32, dims)
}

/// Per tensor: scale and zero point.
pub fn qint8(dims: &[u32], scale: f32, zero_point: i32) -> ValueSpec {
    spec(Datatype::QINT8, dims).quantized(Quant::PerTensor { scale, zero_point })
}

pub fn unary(input_id: u32, output_id: u32) -> Node1x1 {
    Node1x1 { input_id, output_id, flags: 0 }
}

/// Any payload of this builder as rows.
pub fn rows(builder: PayloadBuilder) -> Rows {
    Rows::of(&builder.finish().unwrap_or_else(|error| panic!("{error}")).bytes)
}

/// Values 0 input, 1 weights, 2 bias, 3 between, 4 output; nodes 0 Conv2d, 1 StaticReshape; constants 1 and 2.
fn convolution(storage: Storage) -> PayloadBuilder {
    let mut builder = PayloadBuilder::new().storage(storage);
    let x = builder.input(fp32(&[1, 6, 6, 2])).unwrap();
    let (w, b) = (builder.constant([1; 288]).unwrap(), builder.constant([2; 16]).unwrap());
    let w = builder.constant_value(fp32(&[4, 3, 3, 2]), w).unwrap();
    let b = builder.constant_value(fp32(&[4]), b).unwrap();
    let c = builder.value(fp32(&[1, 4, 4, 4])).unwrap();
    let y = builder.output(fp32(&[1, 16, 4])).unwrap();
    let node = NodeConv {
        kernel_height: 3,
        kernel_width: 3,
        subsampling_height: 1,
        subsampling_width: 1,
        dilation_height: 1,
        dilation_width: 1,
        group_input_channels: 2,
        group_output_channels: 4,
        groups: 1,
        input1_id: x.id(),
        filter_id: w.id(),
        bias_id: b.id(),
        output_id: c.id(),
        ..NodeConv::default()
    };
    builder.node_with(NodeUnion::Conv2d(node), Some((0.0, 6.0)), 7);
    let new_shape = Some(vec![1, 0, 4].into());
    let reshape = StaticReshape { num_dims: 3, new_shape, input_id: c.id(), output_id: y.id(), flags: 0 };
    builder.node(NodeUnion::StaticReshape(reshape));
    builder
}

pub fn small() -> Rows {
    rows(convolution(Storage::Named))
}

/// The rows of [`small`] with its constants behind the flatbuffer.
pub fn with_region() -> Rows {
    rows(convolution(Storage::Region))
}

/// Bytes of the payload of [`small`], with its constants in this storage.
pub fn small_bytes(storage: Storage) -> Vec<u8> {
    convolution(storage).finish().unwrap().bytes
}

fn singles(scale: f32, count: usize) -> Vec<u8> {
    scale.to_le_bytes().repeat(count)
}

/// Values 0 input, 1 as bytes, 2 weights, 3 bias, 4 product, 5 output; nodes 0 Convert, 1 FullyConnected, 2 Convert;
/// constants 1 scales and 2 bytes of the weights, 3 and 4 of the bias.
fn product(storage: Storage) -> PayloadBuilder {
    let mut builder = PayloadBuilder::new().storage(storage);
    let x = builder.input(fp32(&[2, 64])).unwrap();
    let q = builder.value(qint8(&[2, 64], 0.5, 3)).unwrap();
    let channels = |scales, count| Quant::PerChannel { channel_dim: 0, scales: Scales::Constant(scales, count) };
    let scales = builder.scales(singles(0.25, 8)).unwrap();
    let w = builder.constant([0x83; 512]).unwrap();
    let w = builder.constant_value(spec(Datatype::QCINT8, &[8, 64]).quantized(channels(scales, 8)), w).unwrap();
    let scales = builder.scales(singles(0.125, 8)).unwrap();
    let b = builder.constant([4; 32]).unwrap();
    let b = builder.constant_value(spec(Datatype::QCINT32, &[8]).quantized(channels(scales, 8)), b).unwrap();
    let y = builder.value(qint8(&[2, 8], 0.5, 0)).unwrap();
    let z = builder.output(fp32(&[2, 8])).unwrap();
    builder.node(NodeUnion::Convert(unary(x.id(), q.id())));
    let (input1_id, filter_id, bias_id, output_id) = (q.id(), w.id(), b.id(), y.id());
    builder.node(NodeUnion::FullyConnected(FullyConnected { input1_id, filter_id, bias_id, output_id, flags: 0 }));
    builder.node(NodeUnion::Convert(unary(y.id(), z.id())));
    builder
}

pub fn bytes() -> Rows {
    rows(product(Storage::Named))
}

/// The rows of [`bytes`] with its constants behind the flatbuffer.
pub fn bytes_with_region() -> Rows {
    rows(product(Storage::Region))
}

/// Values 0 input, 1 by rows, 2 weights, 3 output; nodes 0 Convert, 1 FullyConnected without a bias; constants 1 scales
/// and 2 bytes of the weights.
fn block_product() -> PayloadBuilder {
    let mut builder = PayloadBuilder::new();
    let x = builder.input(fp32(&[2, 64])).unwrap();
    let rows = spec(Datatype::QDINT8, &[2, 64]).quantized(Quant::PerToken { num_nonbatch_dims: 1 });
    let q = builder.value(rows).unwrap();
    let scales = builder.scales(0x3f80u16.to_le_bytes().repeat(16)).unwrap();
    let w = builder.constant([0x88; 256]).unwrap();
    let quant = Quant::PerGroup { group_size: 32, scales: Scales::Constant(scales, 16) };
    let w = builder.constant_value(spec(Datatype::QBINT4, &[8, 64]).quantized(quant), w).unwrap();
    let y = builder.output(fp32(&[2, 8])).unwrap();
    builder.node(NodeUnion::Convert(unary(x.id(), q.id())));
    let (input1_id, filter_id, bias_id, output_id) = (q.id(), w.id(), u32::MAX, y.id());
    builder.node(NodeUnion::FullyConnected(FullyConnected { input1_id, filter_id, bias_id, output_id, flags: 0 }));
    builder
}

pub fn blocks() -> Rows {
    rows(block_product())
}

pub fn good() -> Vec<Vec<u8>> {
    let mut all: Vec<_> = [Storage::Named, Storage::Region, Storage::Bare].map(small_bytes).into();
    all.extend([bytes(), bytes_with_region(), blocks()].map(Rows::write));
    all
}
