//! Payloads of the XNNPACK backend: those of real programs are read, verified, taken apart and written again.

mod census;
mod corpus;
mod damage;
mod lines;
mod places;

use std::collections::{BTreeMap, BTreeSet};

use edgepack_builder::xnnpack::{Container, PayloadBuilder, Quant, Scales, ValueSpec, write};
use edgepack_format::limits::Limits;
use edgepack_format::row::Scalars;
use edgepack_format::xnnpack::verify::{Context, with_context};
use edgepack_format::xnnpack::{Constant, Graph, Payload, QuantParams, Value};
use sha2::{Digest as _, Sha256};

/// Findings of payloads whose inner values are declared with channels in another place: those of the repository, and behind
/// them that of the larger corpus.
const EXPECTED: [(&str, &str); 2] =
    [("conv_dynamic_xnnpack_int8:forward.0", "XNN-N13"), ("unet_xnnpack_int8:forward.0", "XNN-N13")];

fn digest(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// Runs over every payload and says how many there were.
fn every(what: &str, run: impl FnMut(&corpus::Found)) {
    let found = corpus::payloads();
    let mut folders = BTreeMap::<_, usize>::new();
    found.iter().for_each(|found| *folders.entry(found.folder).or_default() += 1);
    println!("{what}: {} payloads, {folders:?}", found.len());
    assert!(folders["repository"] > 5, "{folders:?}");
    match corpus::named_root() {
        Some(_) => assert!(found.len() > 450, "{folders:?}"),
        None => println!("EDGEPACK_CORPUS is not set: only the corpus of the repository was looked at"),
    }
    found.iter().for_each(run);
}

#[test]
fn payloads_of_the_corpus_verify_in_their_programs() {
    let mut seen = BTreeSet::new();
    every("verified", |found| {
        let payload = match Payload::parse(&found.bytes, &Limits::DEFAULT) {
            Ok(p) => p,
            Err(f) => {
                println!("{} {f}", found.name);
                return;
            }
        };
        let mut findings = edgepack_format::xnnpack::verify::verify(&found.bytes, &Limits::DEFAULT).findings;
        let constants = payload.constants(|key| Ok::<_, ()>(found.named.get(key).map(Vec::as_slice))).unwrap();
        assert!(!found.calls.is_empty(), "{} is never called", found.name);
        for call in 0..found.calls.len() {
            found.arguments(call, |arguments| {
                let context = Context {
                    arguments: Some(arguments),
                    constants: Some(&constants),
                    digest: Some(digest),
                    ..Context::default()
                };
                findings.extend(with_context(&payload, &context, &Limits::DEFAULT));
            });
        }
        for value in payload.values() {
            value.quantization(&constants).unwrap_or_else(|error| panic!("{}: {error}", payload.line(value)));
        }
        for finding in &findings {
            println!("{}: {finding}", found.name);
            seen.insert((found.name.clone(), finding.rule.id));
        }
    });
    let expected = if corpus::named_root().is_some() { &EXPECTED[..] } else { &EXPECTED[..1] };
    let seen: Vec<_> = seen.iter().map(|(name, rule)| (name.as_str(), *rule)).collect();
    assert_eq!(seen, expected);
}

#[test]
fn payloads_of_the_corpus_are_written_byte_for_byte() {
    every("rebuilt", |found| {
        let payload = match Payload::parse(&found.bytes, &Limits::DEFAULT) {
            Ok(p) => p,
            Err(_) => return,
        };
        assert!(write(payload.graph(), Container::Header, &[]).unwrap() == found.bytes, "{}", found.name);
        let json = serde_json::to_string(payload.graph()).unwrap();
        let graph: Graph<'static> = serde_json::from_str(&json).unwrap();
        assert!(write(&graph, Container::Header, &[]).unwrap() == found.bytes, "{} through JSON", found.name);
    });
}

/// The parameters of a value as the builder takes them. `constants` are those of the builder, by index.
fn quant(value: &Value<'_>, constants: &[edgepack_builder::xnnpack::ConstantId]) -> Quant {
    let scales = |list: &Option<Scalars<'_, f32>>, index: u32, count: u32| match index {
        0 => Scales::Inline(list.iter().flat_map(|list| list.iter()).collect()),
        index => Scales::Constant(constants[index as usize - 1], count),
    };
    match value.quant_params() {
        None => Quant::None,
        Some(QuantParams::PerTensorQuant(params)) => {
            Quant::PerTensor { scale: params.scale, zero_point: params.zero_point }
        }
        Some(QuantParams::PerChannelQuant(params)) => Quant::PerChannel {
            channel_dim: params.channel_dim,
            scales: scales(&params.scale, params.scale_buffer_idx, params.num_scales),
        },
        Some(QuantParams::PerChannelGroupQuant(params)) => Quant::PerGroup {
            group_size: params.group_size,
            scales: scales(&params.scale, params.scale_buffer_idx, params.num_scales),
        },
        Some(QuantParams::PerTokenDynamicQuant(params)) => {
            Quant::PerToken { num_nonbatch_dims: params.num_nonbatch_dims }
        }
        Some(other) => panic!("{other:?}"),
    }
}

/// Hands everything a payload says to a builder, piece by piece.
fn replay(payload: &Payload<'_>) -> Vec<u8> {
    let mut builder = PayloadBuilder::new();
    let mut constants = Vec::new();
    for constant in &payload.constant_list()[1..] {
        let Constant::Named { key, size } = constant else { panic!("{constant:?}") };
        constants.push(builder.named_constant(key.clone(), *size).unwrap());
    }
    for value in payload.values() {
        let tensor = value.tensor().unwrap();
        let spec = ValueSpec::new(tensor.datatype, tensor.shape().unwrap().dims()).quantized(quant(value, &constants));
        let id = match (tensor.is_input(), tensor.is_output(), tensor.constant_buffer_idx) {
            (true, ..) => builder.input_at(tensor.external_id, spec),
            (_, true, _) => builder.output(spec),
            (.., 0) => builder.value(spec),
            (.., index) => builder.constant_value(spec, constants[index as usize - 1]),
        };
        assert_eq!(id.unwrap().id(), tensor.id_out);
    }
    // What a node says borrows from the payload; through JSON it owns what it says.
    let rows = serde_json::to_string(payload.graph()).unwrap();
    let rows: Graph<'static> = serde_json::from_str(&rows).unwrap();
    for node in rows.xnodes.unwrap().iter() {
        let node = node.unwrap();
        let bounds = node.output_min_max.map(|bounds| (bounds.output_min, bounds.output_max));
        builder.node_with(node.xnode_union.unwrap(), bounds, node.debug_handle);
    }
    builder.finish().unwrap().bytes
}

#[test]
fn payloads_of_the_corpus_are_built_byte_for_byte() {
    every("built", |found| {
        let payload = Payload::parse(&found.bytes, &Limits::DEFAULT).unwrap();
        assert!(replay(&payload) == found.bytes, "{}", found.name);
    });
}
