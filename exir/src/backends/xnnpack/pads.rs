//! Padding of numbers that were taken back to floats: quantised again behind it, with the same parameters, so that the
//! convolution that reads it reads bytes.
//!
//! Invariant: no number changes. Zero is the zero point, and numbers that were bytes become the same bytes.

use edgepack_format::scalar::ScalarType;

use super::facts::Facts;
use super::quant;
use crate::error::Error;
use crate::graph::{Argument, ExportedProgram, Graph, Node, TensorMeta};
use crate::lower::Pass;

/// Quantises zeros around quantised numbers together with them.
#[derive(Clone, Copy, Default, Debug)]
pub struct QuantizePads;

impl Pass for QuantizePads {
    fn name(&self) -> &str {
        "quantise pads"
    }

    fn run(&self, program: &mut ExportedProgram<'_>) -> Result<(), Error> {
        if !program.graph.nodes.iter().any(adds_zeros) {
            return Ok(());
        }
        let facts = Facts::of(program);
        let node = |index: usize| facts.graph.nodes.get(index);
        let back = |pad: &Node| {
            let maker = node(facts.maker(pad.value_arg("self")?)?)?;
            let bytes = facts.graph.tensor(maker.value_arg("input")?)?.scalar_type;
            quant::is_static_dequantize(maker).then(|| (maker.clone(), bytes))
        };
        let is_requantised = |pad: &Node| {
            let mut readers = pad.result().into_iter().flat_map(|result| facts.readers(result));
            readers.any(|reader| node(*reader).is_some_and(quant::is_static_quantize))
        };
        let found = |node: &Node| match adds_zeros(node) && !is_requantised(node) {
            true => back(node),
            false => None,
        };
        let pads: Vec<_> = facts.graph.nodes.iter().map(found).collect();
        let mut pads = pads.into_iter();
        program.graph.rewrite(|graph, node, made| {
            match pads.next().flatten() {
                Some((back, bytes)) => quantised(graph, node, &back, bytes, made),
                None => made.push(node),
            }
            Ok(())
        })
    }
}

/// Returns whether a node pads with zeros.
fn adds_zeros(node: &Node) -> bool {
    let zero = match node.arg("value") {
        None | Some(Argument::None) => true,
        Some(Argument::Int(number)) => *number == 0,
        Some(Argument::Float(number)) => *number == 0.0,
        Some(_) => false,
    };
    let pads = node.arg("pad").and_then(Argument::as_ints).unwrap_or_default();
    node.calls("aten::constant_pad_nd") && zero && pads.iter().all(|pad| *pad >= 0)
}

/// Writes the pad, a call that quantises what it makes, and one that goes back and makes what the pad made.
fn quantised(graph: &mut Graph, mut pad: Node, back: &Node, bytes: ScalarType, made: &mut Vec<Node>) {
    let Some((result, meta)) = pad.result().and_then(|result| Some((result, graph.tensor(result)?.clone()))) else {
        return made.push(pad);
    };
    let padded = graph.add_value(&pad.name, meta.clone());
    pad.outputs = vec![Argument::Value(padded)];
    let mut there = graph.make(quant::QUANTIZE, [], TensorMeta { scalar_type: bytes, ..meta });
    let own = |input| {
        let mut inputs = back.inputs.clone();
        inputs.iter_mut().filter(|named| named.name == "input").for_each(|named| named.arg = Argument::Value(input));
        inputs
    };
    there.inputs = own(padded);
    there.inputs.retain(|named| named.name != "out_dtype");
    let Some(quantised) = there.result() else { return };
    there.target.make_edge();
    let again = Node {
        name: graph.name(result).to_owned(),
        inputs: own(quantised),
        outputs: vec![Argument::Value(result)],
        ..back.clone()
    };
    pad.name = graph.name(padded).to_owned();
    made.extend([pad, there, again]);
}
