//! Passes before the division: batch norms go into the convolutions they follow, every reader of a number that was taken
//! back to floats takes it back itself, and views read no sizes that they find.

use std::collections::BTreeMap;

use edgepack_builder::content::Data;
use edgepack_format::scalar::ScalarType;

use super::facts::Facts;
use super::op::{Op, Scales};
use super::plan::Plan;
use super::quant;
use super::weights;
use crate::archive::{Storage, Weight};
use crate::error::Error;
use crate::graph::{Argument, ExportedProgram, Graph, InputKind, InputSpec, Size, TensorMeta, ValueId};
use crate::lower::Pass;

/// Multiplies batch norms with fixed moments into the weights of the convolutions whose results they alone read.
#[derive(Clone, Copy, Default, Debug)]
pub struct FoldBatchNorms;

impl Pass for FoldBatchNorms {
    fn name(&self) -> &str {
        "fold batch norms"
    }

    fn run(&self, program: &mut ExportedProgram<'_>) -> Result<(), Error> {
        let mut folds = Vec::new();
        {
            let facts = Facts::of(program);
            let plan = Plan::of(&facts);
            for (norm, call) in plan.calls.iter().enumerate() {
                if let Ok(Op::Norm { .. }) = call
                    && let Some(fold) = fold(&facts, &plan, norm)?
                {
                    folds.push(fold);
                }
            }
        }
        let mut replaced = BTreeMap::new();
        for fold in folds {
            let bias = weights::of_type(&fold.bias, fold.scalar_type);
            let filter = add(program, &format!("{}.folded", fold.name), fold.scalar_type, &fold.sizes, fold.filter)?;
            let bias_name = format!("{}.folded_bias", fold.name);
            let bias = add(program, &bias_name, fold.scalar_type, &[fold.bias.len()], bias)?;
            if let Some(node) = program.graph.nodes.get_mut(fold.convolution) {
                node.set_arg("weight", filter);
                node.set_arg("bias", bias);
            }
            replaced.insert(fold.from, Argument::Value(fold.to));
        }
        program.graph.replace_all(&replaced);
        program.graph.remove_unused(|_| false);
        program.name_outputs();
        Ok(())
    }
}

/// A convolution and what its constants become.
struct Fold {
    convolution: usize,
    name: String,
    scalar_type: ScalarType,
    sizes: Vec<usize>,
    filter: Data<'static>,
    bias: Vec<f32>,
    from: ValueId,
    to: ValueId,
}

fn fold(facts: &Facts<'_, '_>, plan: &Plan, norm: usize) -> Result<Option<Fold>, Error> {
    let Some(Op::Norm { x, weight, bias, mean, variance, epsilon }) = plan.call(norm) else { return Ok(None) };
    let (Some(convolution), Some(reader)) = (facts.maker(*x), facts.only_reader(*x)) else { return Ok(None) };
    let Some(Op::Conv(conv)) = plan.call(convolution).filter(|_| reader == norm) else { return Ok(None) };
    let (Some(from), Some((name, filter))) = (
        facts.graph.nodes.get(norm).and_then(crate::graph::Node::result),
        facts.constant(conv.filter.value).filter(|_| conv.filter.scales == Scales::None),
    ) else {
        return Ok(None);
    };
    let read = |value: Option<ValueId>| -> Result<Option<Vec<f32>>, Error> {
        value.and_then(|value| facts.constant(value)).map(|(_, weight)| weights::floats(weight)).transpose()
    };
    let (weight, shift) = (read(*weight)?, read(*bias)?);
    let (Some(mean), Some(variance)) = (read(Some(*mean))?, read(Some(*variance))?) else { return Ok(None) };
    let (own, channels) = (read(conv.bias)?, mean.len());
    let at = |list: &Option<Vec<f32>>, channel: usize, otherwise: f32| {
        list.as_ref().and_then(|list| list.get(channel)).copied().unwrap_or(otherwise)
    };
    let factor = |channel: usize| {
        let variance = variance.get(channel).copied().unwrap_or(1.0);
        at(&weight, channel, 1.0) / (variance + *epsilon as f32).sqrt()
    };
    let factors: Vec<f32> = (0..channels).map(factor).collect();
    let moved = |(channel, (factor, mean)): (usize, (&f32, &f32))| {
        (at(&own, channel, 0.0) - mean) * factor + at(&shift, channel, 0.0)
    };
    let moved: Vec<f32> = factors.iter().zip(&mean).enumerate().map(moved).collect();
    let [outer, inner, height, width] = conv.sizes;
    let window = height.saturating_mul(width);
    // Runs of numbers that have a factor in common, and the factor of each.
    let (run, by_run) = match conv.transposed {
        false => (inner.saturating_mul(window), factors),
        // The rows of a transposed filter are input channels, group after group.
        true => {
            let of_group = outer.checked_div(conv.groups).unwrap_or(1);
            let channel = |row: usize, column: usize| {
                row.checked_div(of_group).unwrap_or(0).saturating_mul(inner).saturating_add(column)
            };
            let channels = (0..outer).flat_map(|row| (0..inner).map(move |column| channel(row, column)));
            (window, channels.map(|channel| factors.get(channel).copied().unwrap_or(1.0)).collect())
        }
    };
    let plain: Vec<usize> = (0..filter.sizes().len()).collect();
    let source = weights::data(filter, &plain)?;
    let name = name.to_owned();
    let (scalar_type, sizes) = (filter.scalar_type(), filter.sizes().to_vec());
    let filter = weights::scaled(source, scalar_type, run, by_run);
    Ok(Some(Fold { convolution, name, scalar_type, sizes, filter, bias: moved, from, to: *x }))
}

/// Adds a constant of this content as an input in front of those that the caller gives.
pub(super) fn add(
    program: &mut ExportedProgram<'_>,
    name: &str,
    scalar_type: ScalarType,
    sizes: &[usize],
    data: impl Into<Data<'static>>,
) -> Result<ValueId, Error> {
    let mut name = name.to_owned();
    while program.weights.find(&name).is_some() {
        name.push('_');
    }
    let weight = Weight::contiguous(Storage::made(format!("lowered/{name}"), data.into()), scalar_type, sizes)?;
    program.weights.constants.insert(name.clone(), weight);
    let known: Vec<Size> = sizes.iter().map(|size| Size::Known(i64::try_from(*size).unwrap_or(i64::MAX))).collect();
    let value = program.graph.add_value(&name.replace('.', "_"), TensorMeta::contiguous(scalar_type, &known));
    let at = program.inputs.iter().position(|spec| spec.kind.tensor().is_none()).unwrap_or(program.inputs.len());
    program.graph.inputs.insert(at.min(program.graph.inputs.len()), Argument::Value(value));
    program.inputs.insert(at, InputSpec { kind: InputKind::Constant(name), arg: Argument::Value(value) });
    Ok(value)
}

/// Lets views and expansions find the one size that is a formula by themselves, so that they read no numbers.
#[derive(Clone, Copy, Default, Debug)]
pub struct InferSizes;

impl Pass for InferSizes {
    fn name(&self) -> &str {
        "infer sizes"
    }

    fn run(&self, program: &mut ExportedProgram<'_>) -> Result<(), Error> {
        infer(&mut program.graph)?;
        program.graph.remove_unused(|_| false);
        Ok(())
    }
}

fn infer(graph: &mut Graph) -> Result<(), Error> {
    graph.each_subgraph(infer)?;
    let mut found = Vec::new();
    for (index, node) in graph.nodes.iter().enumerate() {
        let sizes =
            |value: Option<ValueId>| value.and_then(|value| graph.tensor(value)).map(|meta| meta.sizes.as_slice());
        let Some(result) = sizes(node.result()) else { continue };
        let mut reads = false;
        node.arg("size").unwrap_or(&Argument::None).each_value(&mut |_| reads = true);
        let formulas = result.iter().filter(|size| size.known().is_none()).count();
        let same = sizes(node.value_arg("self")) == Some(result);
        if reads && (node.calls("aten::view_copy") && formulas == 1 || node.calls("aten::expand_copy") && same) {
            let sizes: Vec<i64> = result.iter().map(|size| size.known().unwrap_or(-1)).collect();
            found.push((index, sizes));
        }
    }
    for (index, sizes) in found {
        if let Some(node) = graph.nodes.get_mut(index) {
            node.set_arg("size", Argument::ints(sizes));
        }
    }
    Ok(())
}

/// Gives every reader of a number that was taken back to floats a call of its own, which can be part of it.
#[derive(Clone, Copy, Default, Debug)]
pub struct SeparateDequantisations;

impl Pass for SeparateDequantisations {
    fn name(&self) -> &str {
        "separate dequantisations"
    }

    fn run(&self, program: &mut ExportedProgram<'_>) -> Result<(), Error> {
        separate(&mut program.graph)
    }
}

fn separate(graph: &mut Graph) -> Result<(), Error> {
    graph.each_subgraph(separate)?;
    let mut originals = BTreeMap::new();
    let mut uses: BTreeMap<ValueId, usize> = BTreeMap::new();
    for node in &graph.nodes {
        if let Some(result) = node.result().filter(|_| quant::is_dequantize(node)) {
            originals.insert(result, node.clone());
        }
    }
    graph.rewrite(|graph, mut node, made| {
        let mut copies = Vec::new();
        for input in &mut node.inputs {
            input.arg.map_values(&mut |value| {
                let Some(original) = originals.get(&value) else { return Argument::Value(value) };
                let count = uses.entry(value).or_default();
                *count = count.saturating_add(1);
                let meta = graph.tensor(value).cloned().filter(|_| *count > 1);
                let Some(meta) = meta else { return Argument::Value(value) };
                let copy = graph.add_value(&original.name, meta);
                let name = graph.name(copy).to_owned();
                let outputs = vec![Argument::Value(copy)];
                copies.push(crate::graph::Node { name, outputs, ..original.clone() });
                Argument::Value(copy)
            });
        }
        made.append(&mut copies);
        made.push(node);
        Ok(())
    })
}
