//! Static quantisation to 8 bits: which tensors have to be watched while the program runs, and the program with the
//! calls that quantise them once their ranges are known.
//!
//! Calls that only move numbers have operands and results of one scale, so these share a range.

use std::collections::{BTreeMap, BTreeSet};

use edgepack_format::scalar::ScalarType;

use super::facts::Facts;
use super::fold::add;
use super::op::{Binary, Input, Op, Scales};
use super::plan::Plan;
use super::quantise::{Layer, round};
use super::weights;
use crate::error::Error;
use crate::graph::{Argument, ExportedProgram, Graph, Node, OutputKind, OutputSpec, Size, TensorMeta, ValueId};

/// Least and greatest number of a tensor.
pub type Bounds = (f32, f32);

/// Tensors that are to be quantised, each with the first of those that share its range.
struct Watched {
    first: BTreeMap<ValueId, ValueId>,
    /// Nodes that compute on 8-bit numbers.
    nodes: BTreeSet<usize>,
}

impl Watched {
    fn of(facts: &Facts<'_, '_>, plan: &Plan) -> Self {
        let mut watched = Watched { first: BTreeMap::new(), nodes: BTreeSet::new() };
        for (index, node) in facts.graph.nodes.iter().enumerate() {
            let Some((op, result)) = plan.call(index).zip(node.result()) else { continue };
            let Some(operands) = operands(facts, op).filter(|_| facts.float(result) == Ok(ScalarType::FLOAT)) else {
                continue;
            };
            let fused = matches!(op, Op::Clamp(x, ..) if is_fused(facts, plan, *x));
            watched.nodes.insert(index);
            for value in operands.iter().filter(|_| !fused) {
                watched.first.entry(*value).or_insert(*value);
            }
            if !(op.has_bounds() && is_held(facts, plan, result)) {
                watched.first.entry(result).or_insert(result);
                if op.copies_numbers() && !fused {
                    operands.iter().for_each(|value| watched.join(*value, result));
                }
            }
        }
        watched
    }

    /// Lets two tensors share a range.
    fn join(&mut self, a: ValueId, b: ValueId) {
        let (a, b) = (self.root(a), self.root(b));
        self.first.insert(a.max(b), a.min(b));
    }

    fn root(&self, value: ValueId) -> ValueId {
        let mut value = value;
        // Each step leads to an earlier value.
        while let Some(next) = self.first.get(&value).filter(|next| **next != value) {
            value = *next;
        }
        value
    }
}

/// Returns whether a result is read by a range alone, which becomes part of its node.
fn is_held(facts: &Facts<'_, '_>, plan: &Plan, result: ValueId) -> bool {
    facts.only_reader(result).is_some_and(|reader| matches!(plan.call(reader), Some(Op::Clamp(..))))
}

/// Returns whether a tensor is the result of a node that a range becomes part of.
fn is_fused(facts: &Facts<'_, '_>, plan: &Plan, x: ValueId) -> bool {
    let maker = facts.maker(x).and_then(|maker| plan.call(maker));
    maker.is_some_and(|op| op.has_bounds() && operands(facts, op).is_some()) && facts.only_reader(x).is_some()
}

/// Returns the tensors that a call on 8-bit numbers reads; `None` if the call stays one on floats.
fn operands(facts: &Facts<'_, '_>, op: &Op) -> Option<Vec<ValueId>> {
    let operands = match op {
        Op::Conv(conv) if conv.filter.scales == Scales::None && (!conv.transposed || conv.groups == 1) => {
            vec![conv.input.value()]
        }
        Op::Linear(linear) if linear.filter.scales == Scales::None && matches!(linear.input, Input::Float(_)) => {
            vec![linear.input.value()]
        }
        Op::Conv(_) | Op::Linear(_) | Op::Binary(Binary::Divide, ..) => return None,
        op => op.quantizable()?,
    };
    let floats = |value: &ValueId| facts.constant(*value).is_none() && facts.float(*value) == Ok(ScalarType::FLOAT);
    operands.iter().all(floats).then_some(operands)
}

/// Makes a program that gives all tensors that are to be watched behind its own outputs, and names them.
pub(super) fn watching<'d>(program: &ExportedProgram<'d>) -> (ExportedProgram<'d>, Vec<String>) {
    let mut changed = program.clone();
    let facts = Facts::of(program);
    let watched = Watched::of(&facts, &Plan::of(&facts));
    let mut names = Vec::new();
    for value in watched.first.keys() {
        names.push(facts.name(*value));
        changed.graph.outputs.push((*value).into());
        changed.outputs.push(OutputSpec { kind: OutputKind::User, arg: (*value).into() });
    }
    (changed, names)
}

/// Calls that a program is given.
struct Change {
    params: BTreeMap<ValueId, (f64, i64)>,
    /// Quantised weights by node: bytes, scales, axis, and whether the node becomes a product by rows.
    filters: BTreeMap<usize, Filter>,
}

struct Filter {
    bytes: ValueId,
    scales: ValueId,
    axis: i64,
    sizes: Vec<usize>,
    /// Operand and bias of a product that has its weight by rows now.
    product: Option<(ValueId, Option<ValueId>)>,
}

/// Quantises the tensors of a program whose ranges are known, by name, and the weights they meet.
pub(super) fn quantise(
    program: &mut ExportedProgram<'_>,
    ranges: &BTreeMap<String, Bounds>,
) -> Result<Vec<Layer>, Error> {
    let mut layers = Vec::new();
    let mut rounded = Vec::new();
    let (params, computed) = {
        let facts = Facts::of(program);
        let plan = Plan::of(&facts);
        let watched = Watched::of(&facts, &plan);
        for index in &watched.nodes {
            let (Some(op), Some(node)) = (plan.call(*index), facts.graph.nodes.get(*index)) else { continue };
            let (filter, axis, product) = match op {
                Op::Conv(conv) => (conv.filter.value, i64::from(conv.transposed), None),
                Op::Linear(linear) => {
                    (linear.filter.value, 0, Some((linear.by_input, linear.input.value(), linear.bias)))
                }
                _ => continue,
            };
            let Some((name, weight)) = facts.constant(filter) else { continue };
            // Output channels first, so that each is a run.
            let mut order: Vec<usize> = (0..weight.sizes().len()).collect();
            if axis == 1 || product.is_some_and(|(by_input, ..)| by_input) {
                order.swap(0, 1);
            }
            let bytes = weights::bytes(weight, &order)?;
            let numbers: Vec<f32> = bytes.as_chunks::<4>().0.iter().map(|four| f32::from_le_bytes(*four)).collect();
            let sizes: Vec<usize> = order.iter().filter_map(|dim| weight.sizes().get(*dim).copied()).collect();
            let run = sizes.iter().skip(1).product();
            let found = round(&numbers, run, 127, false);
            let operator = node.target.operator().map_or_else(String::new, ToString::to_string);
            layers.push(Layer { weight: name.to_owned(), operator, sqnr: Some(found.sqnr), left: None });
            rounded.push((*index, name.to_owned(), sizes, axis, product.map(|(_, x, bias)| (x, bias)), found));
        }
        let mut bounds: BTreeMap<ValueId, Bounds> = BTreeMap::new();
        for value in watched.first.keys() {
            let Some((least, most)) = ranges.get(&facts.name(*value)) else {
                return Err(Error::program(format!("value `{}`", facts.name(*value)), "no range is given for it"));
            };
            let all = bounds.entry(watched.root(*value)).or_insert((0.0, 0.0));
            *all = (all.0.min(*least), all.1.max(*most));
        }
        let of = |value: &ValueId| Some((*value, params_of(*bounds.get(&watched.root(*value))?)));
        let params: BTreeMap<ValueId, (f64, i64)> = watched.first.keys().filter_map(of).collect();
        (params, watched.nodes)
    };
    let mut filters = BTreeMap::new();
    for (index, name, sizes, axis, product, found) in rounded {
        let bytes: Vec<u8> = found.numbers.iter().map(|number| number.cast_unsigned()).collect();
        // A transposed filter goes back to the order it had.
        let (sizes, bytes) = match axis {
            1 => turned(&sizes, &bytes),
            _ => (sizes, bytes),
        };
        let scales = weights::of_floats(&found.scales);
        let bytes = add(program, &format!("{name}.quantised"), ScalarType::CHAR, &sizes, bytes)?;
        let scales = add(program, &format!("{name}.scales"), ScalarType::FLOAT, &[found.scales.len()], scales)?;
        filters.insert(index, Filter { bytes, scales, axis, sizes, product });
    }
    Change { params, filters }.write(program, &computed);
    Ok(layers)
}

/// Swaps the first two dimensions.
fn turned(sizes: &[usize], bytes: &[u8]) -> (Vec<usize>, Vec<u8>) {
    let [outer, inner, rest @ ..] = sizes else { return (sizes.to_vec(), bytes.to_vec()) };
    let run = rest.iter().product::<usize>().max(1);
    let runs: Vec<&[u8]> = bytes.chunks(run).collect();
    let turned = (0..*inner).flat_map(|column| runs.iter().skip(column).step_by((*inner).max(1)));
    let bytes = turned.flat_map(|run| run.iter().copied()).collect();
    ([*inner, *outer].into_iter().chain(rest.iter().copied()).collect(), bytes)
}

/// Returns the scale and zero point of a range that has 0 in it.
fn params_of((least, most): Bounds) -> (f64, i64) {
    let (least, most) = (f64::from(least.min(0.0)), f64::from(most.max(0.0)));
    let scale = ((most - least) / 255.0) as f32;
    let scale = if scale.is_normal() { f64::from(scale) } else { 1.0 };
    (scale, (-128.0 - least / scale).round().clamp(-128.0, 127.0) as i64)
}

impl Change {
    fn write(&self, program: &mut ExportedProgram<'_>, computed: &BTreeSet<usize>) {
        let graph = &mut program.graph;
        let nodes = std::mem::take(&mut graph.nodes);
        let mut made: Vec<Node> = Vec::with_capacity(nodes.len());
        // What each tensor is for nodes on 8-bit numbers, and for all others.
        let (mut bytes, mut others) = (BTreeMap::new(), BTreeMap::new());
        let inputs: Vec<ValueId> = graph.inputs.iter().filter_map(Argument::value).collect();
        for value in inputs {
            self.round_trip(graph, value, &mut made, &mut bytes);
        }
        for (index, mut node) in nodes.into_iter().enumerate() {
            let on_bytes = computed.contains(&index);
            let known: &BTreeMap<ValueId, ValueId> = if on_bytes { &bytes } else { &others };
            let mut change = |value: ValueId| Argument::Value(known.get(&value).copied().unwrap_or(value));
            node.inputs.iter_mut().for_each(|input| input.arg.map_values(&mut change));
            if let Some(filter) = self.filters.get(&index) {
                let product = filter.product.map(|(x, bias)| (known.get(&x).copied().unwrap_or(x), bias));
                filter.write(graph, &mut node, product, &mut made);
            }
            let result = node.result();
            made.push(node);
            if let Some(result) = result
                && let Some(back) = self.round_trip(graph, result, &mut made, &mut bytes).filter(|_| on_bytes)
            {
                others.insert(result, back);
            }
        }
        graph.nodes = made;
        graph.outputs.iter_mut().for_each(|output| {
            output.map_values(&mut |value| Argument::Value(others.get(&value).copied().unwrap_or(value)));
        });
        program.name_outputs();
    }

    /// Quantises a tensor and takes it back, if its parameters are known.
    fn round_trip(
        &self,
        graph: &mut Graph,
        value: ValueId,
        made: &mut Vec<Node>,
        bytes: &mut BTreeMap<ValueId, ValueId>,
    ) -> Option<ValueId> {
        let (scale, zero_point) = *self.params.get(&value)?;
        let sizes = graph.tensor(value)?.sizes.clone();
        let args = |input: ValueId| {
            [
                ("input", Argument::from(input)),
                ("scale", Argument::Float(scale)),
                ("zero_point", Argument::Int(zero_point)),
                ("quant_min", Argument::Int(-128)),
                ("quant_max", Argument::Int(127)),
                ("dtype", Argument::ScalarType(ScalarType::CHAR)),
            ]
        };
        let kind = TensorMeta::contiguous(ScalarType::CHAR, &sizes);
        let mut there = graph.make("quantized_decomposed::quantize_per_tensor", args(value), kind);
        let kind = TensorMeta::contiguous(ScalarType::FLOAT, &sizes);
        let mut back = graph.make("quantized_decomposed::dequantize_per_tensor", args(there.result()?), kind);
        there.target.make_edge();
        back.target.make_edge();
        let result = back.result()?;
        made.extend([there, back]);
        bytes.insert(value, result);
        Some(result)
    }
}

impl Filter {
    fn write(
        &self,
        graph: &mut Graph,
        node: &mut Node,
        product: Option<(ValueId, Option<ValueId>)>,
        made: &mut Vec<Node>,
    ) {
        let sizes: Vec<Size> =
            self.sizes.iter().map(|size| Size::Known(i64::try_from(*size).unwrap_or(i64::MAX))).collect();
        let args = [
            ("input", Argument::from(self.bytes)),
            ("scales", self.scales.into()),
            ("zero_points", Argument::None),
            ("axis", Argument::Int(self.axis)),
            ("quant_min", Argument::Int(-128)),
            ("quant_max", Argument::Int(127)),
            ("dtype", Argument::ScalarType(ScalarType::CHAR)),
        ];
        let kind = TensorMeta::contiguous(ScalarType::FLOAT, &sizes);
        let mut back = graph.make("quantized_decomposed::dequantize_per_channel", args, kind);
        back.target.make_edge();
        let Some(weight) = back.result() else { return };
        made.push(back);
        match product {
            Some((x, bias)) => {
                let bias = bias.map_or(Argument::None, Argument::from);
                node.become_call("aten::linear", [("input", x.into()), ("weight", weight.into()), ("bias", bias)]);
            }
            None => node.set_arg("weight", weight),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_hold_zero() {
        assert_eq!(params_of((0.0, 255.0)), (1.0, -128));
        assert_eq!(params_of((-255.0, -1.0)), (1.0, 127));
        assert_eq!(params_of((0.0, 0.0)), (1.0, -128));
    }

    #[test]
    fn the_first_two_dimensions_change_places() {
        assert_eq!(turned(&[2, 3, 1], &[1, 2, 3, 4, 5, 6]), (vec![3, 2, 1], vec![1, 4, 2, 5, 3, 6]));
    }
}
