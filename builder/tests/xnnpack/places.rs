//! Constants and scales in every place that a release had for them, and nodes in any order.

use edgepack_builder::xnnpack::{BuiltPayload, PayloadBuilder, Quant, Scales, Storage, ValueId, ValueSpec, key_of};
use edgepack_format::limits::Limits;
use edgepack_format::xnnpack::{
    ConstantBytes as _, Datatype, FullyConnected, GroupScales, IDENTIFIER, Node1x1, NodeUnion, OLD_IDENTIFIER, Payload,
    QuantError, Quantization,
};

const WEIGHTS: [u8; 64] = [0x5a; 64];

/// Scales of four blocks in bf16, and as numbers.
const HALVES: [u16; 4] = [0x3f80, 0x4000, 0x3f00, 0x3e80];
const SINGLES: [f32; 4] = [1.0, 2.0, 0.5, 0.25];

fn product(builder: &mut PayloadBuilder, input: ValueId, filter: ValueId, output: ValueId) {
    let (input1_id, filter_id, output_id) = (input.id(), filter.id(), output.id());
    let node = FullyConnected { input1_id, filter_id, bias_id: u32::MAX, output_id, flags: 0 };
    builder.node(NodeUnion::FullyConnected(node));
}

/// A product with weights in blocks: values 0 input, 1 its rows, 2 weights, 3 output.
fn blocks(storage: Storage, inline: bool) -> BuiltPayload {
    let mut builder = PayloadBuilder::new().storage(storage);
    let x = builder.input(ValueSpec::new(Datatype::FP32, [2, 32])).unwrap();
    let rows = ValueSpec::new(Datatype::QDINT8, [2, 32]).quantized(Quant::PerToken { num_nonbatch_dims: 1 });
    let q = builder.value(rows).unwrap();
    let scales = match inline {
        true => Scales::Inline(SINGLES.to_vec()),
        false => Scales::Constant(builder.scales(HALVES.map(u16::to_le_bytes).concat()).unwrap(), 4),
    };
    let w = builder.constant(WEIGHTS).unwrap();
    let spec = ValueSpec::new(Datatype::QBINT4, [4, 32]).quantized(Quant::PerGroup { group_size: 32, scales });
    let w = builder.constant_value(spec, w).unwrap();
    let y = builder.output(ValueSpec::new(Datatype::FP32, [2, 4])).unwrap();
    // The product is in front of what it reads.
    product(&mut builder, q, w, y);
    builder.node(NodeUnion::Convert(Node1x1 { input_id: x.id(), output_id: q.id(), flags: 0 }));
    builder.finish().unwrap()
}

#[test]
fn every_place_has_the_same_bytes_and_scales() {
    for storage in [Storage::Named, Storage::Region, Storage::Bare] {
        for inline in [true, false] {
            let built = blocks(storage, inline);
            let payload = Payload::parse(&built.bytes, &Limits::hostile()).unwrap();
            let is_bare = storage == Storage::Bare;
            assert_eq!(payload.header().is_none(), is_bare);
            assert_eq!(payload.identifier(), if is_bare { OLD_IDENTIFIER } else { IDENTIFIER });
            assert_eq!(built.named.is_empty(), storage != Storage::Named);
            assert_eq!(payload.order(), [1, 0]);
            let find =
                |key: &str| built.named.iter().find(|(have, _)| have == key).and_then(|(_, data)| data.as_slice());
            let constants = payload.constants(|key| Ok::<_, ()>(find(key))).unwrap();
            let weights = payload.value(2).unwrap();
            let index = weights.tensor().unwrap().constant_buffer_idx;
            assert_eq!(constants.bytes(index), Some(&WEIGHTS[..]), "{storage:?}");
            let quantization = weights.quantization(&constants).unwrap();
            let Quantization::PerGroup { channel_dim: 0, group_size: 32, scales, zero_point: 8 } = quantization else {
                panic!("{quantization:?}");
            };
            assert_eq!(scales.iter().map(f32::from).collect::<Vec<_>>(), SINGLES, "{storage:?} {inline}");
        }
    }
}

#[test]
fn scales_of_older_files_are_rounded_as_the_reference_does() {
    // The upper half of the product with 1.00389105, worked out apart.
    for (scale, bits) in [(1.0f32, 0x3f80u16), (0.1, 0x3dcd), (0.003, 0x3b45), (1.99, 0x3fff), (1.998, 0x4000)] {
        assert_eq!(GroupScales::round(scale).to_bits(), bits, "{scale}");
    }
}

#[test]
fn a_key_is_asked_for_once_and_its_length_is_that_of_the_entry() {
    let mut builder = PayloadBuilder::new();
    let x = builder.input(ValueSpec::new(Datatype::FP32, [1, 2])).unwrap();
    let mut outputs = Vec::new();
    for size in [16, 24] {
        let w = builder.named_constant("weights", size).unwrap();
        let w = builder.constant_value(ValueSpec::new(Datatype::FP32, [2, 2]), w).unwrap();
        let y = builder.output(ValueSpec::new(Datatype::FP32, [1, 2])).unwrap();
        product(&mut builder, x, w, y);
        outputs.push(y);
    }
    let bytes = builder.finish().unwrap().bytes;
    let payload = Payload::parse(&bytes, &Limits::hostile()).unwrap();
    let mut asked = Vec::new();
    let constants = payload.constants(|key| {
        asked.push(key.to_owned());
        Ok::<_, ()>(Some(vec![1u8; 20]))
    });
    let constants = constants.unwrap();
    assert_eq!(asked, ["weights"]);
    assert_eq!((constants.bytes(1).map(<[u8]>::len), constants.bytes(2)), (Some(16), None));
    assert_eq!((constants.found(2).map(<[u8]>::len), constants.bytes(0)), (Some(20), None));
    assert!(payload.constants(|_| Err::<Option<Vec<u8>>, _>("no disk")).is_err());
}

#[test]
fn scales_that_are_not_there_are_said() {
    let built = blocks(Storage::Named, false);
    let payload = Payload::parse(&built.bytes, &Limits::hostile()).unwrap();
    let constants = payload.constants(|_| Ok::<Option<Vec<u8>>, ()>(None)).unwrap();
    let weights = payload.value(2).unwrap();
    assert_eq!(weights.quantization(&constants).unwrap_err(), QuantError::NoBytes(1));
    assert_eq!(key_of(b"", true), format!("scale_{}", key_of(b"", false)));
    assert!(key_of(b"", false).starts_with("e3b0c44298fc1c14"));
}

#[test]
fn what_does_not_verify_is_not_built() {
    let mut builder = PayloadBuilder::new();
    let x = builder.input(ValueSpec::new(Datatype::FP32, [2])).unwrap();
    let y = builder.output(ValueSpec::new(Datatype::FP16, [2])).unwrap();
    builder.node(NodeUnion::Abs(Node1x1 { input_id: x.id(), output_id: y.id(), flags: 0 }));
    assert!(builder.finish().unwrap_err().to_string().contains("XNN-N06"));
    let mut builder = PayloadBuilder::new().storage(Storage::Bare);
    builder.named_constant("somewhere", 4).unwrap();
    assert!(builder.finish().unwrap_err().to_string().contains("somewhere"));
}
