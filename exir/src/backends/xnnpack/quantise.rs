//! Quantisation of float weights at lowering: products whose rows are quantised at run time, and tables of embeddings.
//!
//! The program is given the calls that exporters write for quantised weights; what becomes of them is the partitioner's
//! business. Scales are those of the least square error among a few, as the runtime has them: in bf16 for blocks.

use std::collections::BTreeMap;

use edgepack_format::scalar::ScalarType;

use super::facts::Facts;
use super::fold::add;
use super::op::{Input, Op, Scales};
use super::plan::Plan;
use super::weights;
use crate::error::Error;
use crate::graph::{Argument, ExportedProgram, Graph, Node, Size, TensorMeta, ValueId};

/// Shares of the largest magnitude that a scale is tried with, in thirty-seconds.
const TRIES: [u8; 9] = [32, 31, 30, 29, 28, 27, 26, 24, 22];

/// Least number of elements in a block, and what its length is a multiple of.
const BLOCK: usize = 32;

/// Numbers that weights are rounded to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Scheme {
    /// Products with 4-bit weights, with a scale for each block of so many along a row; rows are rounded to 8 bits at run
    /// time.
    Blocks(usize),
    /// Products with 8-bit weights, with a scale for each output channel; rows are rounded to 8 bits at run time.
    Rows,
    /// Tables of embeddings with 4-bit numbers, with a scale for each row.
    Embeddings,
}

/// A weight, and what became of it.
#[derive(Clone, PartialEq, Debug)]
pub struct Layer {
    /// Name of the weight.
    pub weight: String,
    /// Operator that reads it.
    pub operator: String,
    /// Power of the weight over that of the error, in decibels; infinite if there is no error.
    pub sqnr: Option<f64>,
    /// Reason the weight stays as it is.
    pub left: Option<&'static str>,
}

/// Rounded weights.
pub(super) struct Rounded {
    pub(super) numbers: Vec<i8>,
    pub(super) scales: Vec<f32>,
    pub(super) sqnr: f64,
}

/// Rounds runs of numbers to a range, each with a scale of its own.
pub(super) fn round(numbers: &[f32], run: usize, most: i8, in_bf16: bool) -> Rounded {
    let (least, high) = (f32::from(most.saturating_neg().saturating_sub(1)), f32::from(most));
    let mut rounded = Rounded { numbers: Vec::with_capacity(numbers.len()), scales: Vec::new(), sqnr: 0.0 };
    let (mut signal, mut noise) = (0f64, 0f64);
    for run in numbers.chunks(run.max(1)) {
        let largest = run.iter().fold(0f32, |largest, number| largest.max(number.abs()));
        let error = |scale: f32| -> f64 {
            let one = |number: &f32| f64::from(number - (number / scale).round_ties_even().clamp(least, high) * scale);
            run.iter().map(|number| one(number).powi(2)).sum()
        };
        let mut best = (1f32, f64::INFINITY);
        for share in TRIES.iter().filter(|_| largest > 0.0) {
            let scale = largest * f32::from(*share) / 32.0 / high;
            let scale = if in_bf16 { half::bf16::from_f32(scale).to_f32() } else { scale };
            let error = error(scale);
            if scale.is_normal() && error < best.1 {
                best = (scale, error);
            }
        }
        let (scale, error) = if best.1.is_finite() { best } else { (1.0, error(1.0)) };
        rounded.numbers.extend(run.iter().map(|number| (number / scale).round_ties_even().clamp(least, high) as i8));
        rounded.scales.push(scale);
        signal += run.iter().map(|number| f64::from(*number).powi(2)).sum::<f64>();
        noise += error;
    }
    rounded.sqnr = 10.0 * (signal / noise).log10();
    rounded
}

/// Constants that take the place of the weight of a node.
struct Change {
    scheme: Scheme,
    weight: ValueId,
    scales: ValueId,
    bias: Option<ValueId>,
    x: ValueId,
    sizes: [usize; 2],
    block: usize,
}

/// Rounds the weights of a program, and answers with all that could have been.
pub(super) fn quantise(program: &mut ExportedProgram<'_>, scheme: Scheme) -> Result<Vec<Layer>, Error> {
    let mut layers = Vec::new();
    let mut found = Vec::new();
    {
        let facts = Facts::of(program);
        let plan = Plan::of(&facts);
        for (index, node) in facts.graph.nodes.iter().enumerate() {
            let Some(candidate) = candidate(&facts, &plan, index, scheme)? else { continue };
            let layer = Layer {
                weight: candidate.name.clone(),
                operator: node.target.operator().map_or_else(String::new, ToString::to_string),
                sqnr: candidate.rounded.as_ref().ok().map(|rounded| rounded.sqnr),
                left: candidate.rounded.as_ref().err().copied(),
            };
            layers.push(layer);
            if let Ok(rounded) = candidate.rounded {
                found.push((node.name.clone(), candidate.change, candidate.name, rounded));
            }
        }
    }
    let mut changes = BTreeMap::new();
    for (node, mut change, name, Rounded { numbers, scales, .. }) in found {
        let [rows, row] = change.sizes;
        let (kind, sizes, bytes) = match scheme {
            Scheme::Embeddings => (ScalarType::BYTE, [rows, row / 2], halves(&numbers)),
            _ => (ScalarType::CHAR, [rows, row], numbers.iter().map(|number| number.cast_unsigned()).collect()),
        };
        change.weight = add(program, &format!("{name}.quantised"), kind, &sizes, bytes)?;
        let each: &[usize] = match scheme {
            Scheme::Blocks(_) => &[rows, row.checked_div(change.block).unwrap_or(1)],
            _ => &[rows],
        };
        let bytes = weights::of_floats(&scales);
        change.scales = add(program, &format!("{name}.scales"), ScalarType::FLOAT, each, bytes)?;
        changes.insert(node, change);
    }
    program.graph.rewrite(|graph, node, made| {
        match changes.remove(&node.name) {
            Some(change) => change.write(graph, node, made),
            None => made.push(node),
        }
        Ok::<(), Error>(())
    })?;
    Ok(layers)
}

/// Pairs of numbers in bytes, the first in the high half, plus 8: as tables of embeddings have them.
fn halves(numbers: &[i8]) -> Vec<u8> {
    let half = |number: Option<&i8>| number.copied().unwrap_or(0).wrapping_add(8).cast_unsigned() & 15;
    numbers.chunks(2).map(|pair| (half(pair.first()) << 4) | half(pair.get(1))).collect()
}

/// A node whose weight is of the kind that a scheme rounds.
struct Candidate {
    name: String,
    change: Change,
    rounded: Result<Rounded, &'static str>,
}

fn candidate(facts: &Facts<'_, '_>, plan: &Plan, index: usize, scheme: Scheme) -> Result<Option<Candidate>, Error> {
    let (weight, by_input, bias, x) = match (scheme, plan.call(index), facts.graph.nodes.get(index)) {
        (Scheme::Blocks(_) | Scheme::Rows, Some(Op::Linear(linear)), _) => match linear.input {
            Input::Float(x) if linear.filter.scales == Scales::None => {
                (linear.filter.value, linear.by_input, linear.bias, x)
            }
            _ => return Ok(None),
        },
        (Scheme::Embeddings, _, Some(node)) if node.calls("aten::embedding") => {
            let (Some(weight), Some(indices)) = (node.value_arg("weight"), node.value_arg("indices")) else {
                return Ok(None);
            };
            (weight, false, None, indices)
        }
        _ => return Ok(None),
    };
    let Some((name, constant)) = facts.constant(weight) else { return Ok(None) };
    let [outer, inner] = *constant.sizes() else { return Ok(None) };
    let sizes = if by_input { [inner, outer] } else { [outer, inner] };
    let row = sizes[1];
    let block = match scheme {
        Scheme::Blocks(size) => size,
        _ => row,
    };
    let left = match scheme {
        _ if constant.scalar_type() != ScalarType::FLOAT => Some("its numbers are not of single precision"),
        Scheme::Blocks(size) if size == 0 || size % BLOCK != 0 => Some("blocks have 32 elements or a multiple of that"),
        Scheme::Blocks(size) if row.checked_rem(size) != Some(0) => Some("its rows do not consist of whole blocks"),
        Scheme::Embeddings if !row.is_multiple_of(2) => Some("its rows have an odd number of elements"),
        _ => None,
    };
    let rounded = match left {
        Some(reason) => Err(reason),
        None => {
            let order = if by_input { [1, 0] } else { [0, 1] };
            let bytes = weights::bytes(constant, &order)?;
            let numbers: Vec<f32> = bytes.as_chunks::<4>().0.iter().map(|four| f32::from_le_bytes(*four)).collect();
            Ok(match scheme {
                Scheme::Rows => round(&numbers, row, 127, false),
                _ => round(&numbers, block, 7, matches!(scheme, Scheme::Blocks(size) if size != row)),
            })
        }
    };
    let change = Change { scheme, weight, scales: weight, bias, x, sizes, block };
    Ok(Some(Candidate { name: name.to_owned(), change, rounded }))
}

impl Change {
    /// Writes the calls that take the place of a node.
    fn write(self, graph: &mut Graph, mut node: Node, made: &mut Vec<Node>) {
        let int = |number: i64| Argument::Int(number);
        let byte = || Argument::ScalarType(ScalarType::CHAR);
        if self.scheme == Scheme::Embeddings {
            let args = [
                ("weight", Argument::from(self.weight)),
                ("weight_scales", self.scales.into()),
                ("weight_zero_points", Argument::None),
                ("weight_quant_min", int(-8)),
                ("weight_quant_max", int(7)),
                ("indices", self.x.into()),
            ];
            node.become_call("quantized_decomposed::embedding_4bit", args);
            return made.push(node);
        }
        let known: Vec<Size> =
            self.sizes.iter().map(|size| Size::Known(i64::try_from(*size).unwrap_or(i64::MAX))).collect();
        let weight = TensorMeta::contiguous(ScalarType::FLOAT, &known);
        let back = match self.scheme {
            Scheme::Blocks(_) => {
                let block = Argument::ints([1, i64::try_from(self.block).unwrap_or(i64::MAX)]);
                let args = [
                    ("input", Argument::from(self.weight)),
                    ("block_size", block),
                    ("scale", self.scales.into()),
                    ("zero_point", Argument::None),
                    ("input_dtype", byte()),
                    ("quant_min", int(-8)),
                    ("quant_max", int(7)),
                ];
                graph.make("torchao::dequantize_affine", args, weight)
            }
            _ => {
                let args = [
                    ("input", Argument::from(self.weight)),
                    ("scales", self.scales.into()),
                    ("zero_points", Argument::None),
                    ("axis", int(0)),
                    ("quant_min", int(-128)),
                    ("quant_max", int(127)),
                    ("dtype", byte()),
                ];
                graph.make("quantized_decomposed::dequantize_per_channel", args, weight)
            }
        };
        let Some(floats) = graph.tensor(self.x).cloned() else { return made.push(node) };
        let mut each = floats.sizes.clone();
        if let Some(last) = each.last_mut() {
            *last = Size::Known(1);
        }
        let choose = "quantized_decomposed::choose_qparams_per_token_asymmetric";
        let args = [("input", Argument::from(self.x)), ("dtype", byte())];
        let mut choose = graph.make(choose, args, TensorMeta::contiguous(ScalarType::DOUBLE, &each));
        let zero_points = graph.add_value("zero_points", TensorMeta::contiguous(ScalarType::LONG, &each));
        choose.outputs.push(Argument::Value(zero_points));
        let (Some(scales), Some(weight)) = (choose.result(), back.result()) else { return made.push(node) };
        let shared = |input: ValueId| {
            [
                ("input", Argument::from(input)),
                ("scales", scales.into()),
                ("zero_points", zero_points.into()),
                ("quant_min", int(-128)),
                ("quant_max", int(127)),
                ("dtype", byte()),
            ]
        };
        let bytes = TensorMeta::contiguous(ScalarType::CHAR, &floats.sizes);
        let quantize = graph.make("quantized_decomposed::quantize_per_token", shared(self.x), bytes);
        let Some(bytes) = quantize.result() else { return made.push(node) };
        let again = TensorMeta::contiguous(ScalarType::FLOAT, &floats.sizes);
        let mut dequantize = graph.make("quantized_decomposed::dequantize_per_token", shared(bytes), again);
        dequantize.set_arg("output_dtype", Argument::ScalarType(ScalarType::FLOAT));
        let Some(x) = dequantize.result() else { return made.push(node) };
        let bias = self.bias.map_or(Argument::None, Argument::from);
        node.become_call("aten::linear", [("input", x.into()), ("weight", weight.into()), ("bias", bias)]);
        made.extend([back, choose, quantize, dequantize, node].map(|mut node| {
            node.target.make_edge();
            node
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_have_less_error_than_that_of_the_largest() {
        // One number far out costs the others if the scale is its own.
        let mut numbers: Vec<f32> = (0..31).map(|number| (number as f32 - 15.0) / 20.0).collect();
        numbers.push(2.0);
        let rounded = round(&numbers, 32, 7, false);
        assert!(rounded.scales[0] < 2.0 / 7.0, "{:?}", rounded.scales);
        assert!(rounded.sqnr > 10.0 && rounded.sqnr < 40.0, "{}", rounded.sqnr);
        assert_eq!(round(&[0.0; 4], 4, 7, true).numbers, [0; 4]);
        assert_eq!(round(&[7.0, -7.0, 1.0], 3, 7, false).sqnr, f64::INFINITY);
    }

    #[test]
    fn pairs_have_the_first_number_in_the_high_half() {
        assert_eq!(halves(&[-8, 7, 0, -1]), [0x0f, 0x87]);
    }
}
