//! Programs with delegates of XNNPACK whose weights are named data: products of rows, quantised when they are known, with
//! weights of four bits in blocks.

use edgepack_builder::args;
use edgepack_builder::pte::{MethodBuilder, ProgramBuilder, TensorSpec};
use edgepack_builder::xnnpack::{PayloadBuilder, Quant, Scales, ValueSpec};
use edgepack_format::scalar::ScalarType;
use edgepack_format::xnnpack::{Datatype, FullyConnected, Node1x1, NodeUnion};

/// Inputs of a block.
pub const BLOCK: usize = 32;
/// The key of the weights.
pub const WEIGHTS: &str = "weights";
/// The key of their scales.
pub const SCALES: &str = "scales";

/// Channels, and inputs of each.
pub type Sizes = [usize; 2];

/// Bytes of the weights, and of their scales.
pub fn lengths([channels, inner]: Sizes) -> [usize; 2] {
    [channels * inner / 2, channels * (inner / BLOCK) * 2]
}

/// The payload of a product of one row; no result is above `most`, which tells payloads apart.
fn payload([channels, inner]: Sizes, most: f32) -> Vec<u8> {
    let [weights, scales] = lengths([channels, inner]);
    let (n, k) = (channels as u32, inner as u32);
    let mut builder = PayloadBuilder::new();
    let x = builder.input(ValueSpec::new(Datatype::FP32, [1, k])).unwrap();
    let rows = ValueSpec::new(Datatype::QDINT8, [1, k]).quantized(Quant::PerToken { num_nonbatch_dims: 1 });
    let rows = builder.value(rows).unwrap();
    let entry = builder.named_constant(SCALES, scales as u64).unwrap();
    let quant = Quant::PerGroup { group_size: BLOCK as i32, scales: Scales::Constant(entry, scales as u32 / 2) };
    let entry = builder.named_constant(WEIGHTS, weights as u64).unwrap();
    let w = builder.constant_value(ValueSpec::new(Datatype::QBINT4, [n, k]).quantized(quant), entry).unwrap();
    let y = builder.output(ValueSpec::new(Datatype::FP32, [1, n])).unwrap();
    builder.node(NodeUnion::Convert(Node1x1 { input_id: x.id(), output_id: rows.id(), flags: 0 }));
    let (input1_id, filter_id, output_id) = (rows.id(), w.id(), y.id());
    let product = FullyConnected { input1_id, filter_id, bias_id: u32::MAX, output_id, flags: 0 };
    builder.node_with(NodeUnion::FullyConnected(product), Some((f32::NEG_INFINITY, most)), 0);
    builder.finish().unwrap().bytes
}

/// A method that takes one row, with so many delegates, each a payload and an output of its own.
pub fn method(forward: &mut MethodBuilder<'_, '_>, sizes: Sizes, delegates: usize) {
    let [channels, inner] = sizes;
    let x = forward.input(TensorSpec::new(ScalarType::FLOAT, [1, inner])).unwrap();
    for index in 0..delegates {
        let delegate = forward.delegate("XnnpackBackend", payload(sizes, 1e9 + 1e6 * index as f32), &[]).unwrap();
        let out = TensorSpec::new(ScalarType::FLOAT, [1, channels]);
        let y = forward.call_delegate(delegate, args![x], out).unwrap();
        forward.output(y).unwrap();
    }
}

/// Puts weights and scales into a program.
pub fn data(program: &mut ProgramBuilder<'_>, weights: Vec<u8>, scales: Vec<u8>) {
    program.named_data(WEIGHTS, weights, 64, None).unwrap();
    program.named_data(SCALES, scales, 64, None).unwrap();
}

/// Scales of all blocks: 1.
pub fn ones(sizes: Sizes) -> Vec<u8> {
    let [_, scales] = lengths(sizes);
    0x3f80u16.to_le_bytes().repeat(scales / 2)
}
