//! Nodes one by one: kind, ids, bounds, flags, element types, dimensions.

use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

use super::report::Report;
use super::signatures;
use crate::finding::Rule;
use crate::room;
use crate::rules::xnnpack as rule;
use crate::xnnpack::node::{Fields, Node, NodeUnion};
use crate::xnnpack::shapes::{KEEP_DIMS, SAME_PADDING, ShapeError, ShapeProblem, TRANSPOSE_WEIGHTS};
use crate::xnnpack::tables::QuantParams;
use crate::xnnpack::value::Shape;

/// Bytes of one entry in a table of windows.
const ENTRY: u64 = 8;

/// Flags of resizing: as an older TensorFlow did it, and with corners on corners.
const RESIZE: u32 = 4 | 8;

pub(super) fn check(report: &mut Report<'_, '_>) {
    let payload = report.payload;
    let tables = payload.graph.xnodes.as_ref().map(|rows| rows.tables());
    for (index, node) in payload.nodes.iter().enumerate() {
        let table = tables.and_then(|tables| tables.get(index).ok());
        let union = table.and_then(|table| table.union(Node::XNODE_UNION.index).ok().flatten());
        match &node.xnode_union {
            None => report.node(&rule::NODE_KIND, index, "it is of no kind".to_string()),
            Some(NodeUnion::Unknown(tag)) => report.node(&rule::NODE_KIND, index, format!("kind {tag} is not known")),
            Some(_) if union.is_some_and(|(_, table)| table.is_none()) => {
                report.node(&rule::NODE_KIND, index, "its table is absent".to_string());
            }
            Some(kind) => of_kind(index, node, kind, report),
        }
    }
}

fn of_kind(index: usize, node: &Node<'_>, kind: &NodeUnion<'_>, report: &mut Report<'_, '_>) {
    if let NodeUnion::ScaledDotProductAttention(_) = kind {
        report.node(&rule::REFUSED_KIND, index, "attention".to_string());
    }
    let (least, most) = node.bounds();
    if !matches!(least.partial_cmp(&most), Some(order) if order.is_le()) {
        report.node(&rule::BOUNDS, index, format!("{least} to {most}"));
    }
    let unknown = kind.flags() & !known_flags(kind);
    if unknown != 0 {
        report.node(&rule::FLAGS, index, format!("{unknown:#x} of {:#x}", kind.flags()));
    }
    let operands = kind.inputs().filter(|input| input.is_present()).chain(kind.outputs());
    let mut is_whole = true;
    for operand in operands {
        if report.find(operand.id).is_none() {
            report.node(&rule::NODE_IDS, index, format!("there is no value {}", operand.id));
            is_whole = false;
        }
    }
    if is_whole {
        signatures::check(index, kind, report);
        channels(index, kind, report);
    }
}

/// Dimensions of every result, in the order in which nodes run. What nodes make counts, not what values declare: a value of
/// another node has the dimensions that come out of that node.
pub(super) fn dimensions(order: &[u32], report: &mut Report<'_, '_>) -> room::Result<()> {
    let payload = report.payload;
    let mut made = room::filled(None, payload.values.len())?;
    for index in order {
        let index = *index as usize;
        if let Some(kind) = payload.nodes.get(index).and_then(|node| node.xnode_union.as_ref()) {
            of_node(index, kind, &mut made, report);
        }
    }
    Ok(())
}

fn known_flags(kind: &NodeUnion<'_>) -> u32 {
    match (kind.fields(), kind) {
        (Fields::FullyConnected(_), _) | (_, NodeUnion::BatchMatrixMultiply(_)) => TRANSPOSE_WEIGHTS,
        (Fields::Convolution(_), _) => SAME_PADDING,
        // Written for pooling too, where it means nothing.
        (Fields::Pooling(_) | Fields::ArgMaxPooling(_), _) => SAME_PADDING | KEEP_DIMS,
        (_, NodeUnion::GlobalAvgPooling2d(_)) => KEEP_DIMS,
        (Fields::Resize(_), _) => RESIZE,
        _ => 0,
    }
}

/// Scales of weights are those of the channels that the node makes.
fn channels(index: usize, kind: &NodeUnion<'_>, report: &mut Report<'_, '_>) {
    let (filter, want) = match (kind, kind.fields()) {
        (NodeUnion::DepthwiseConv2d(node), _) => (node.filter_id, 3),
        (_, Fields::Convolution(node)) => (node.filter_id, 0),
        (_, Fields::FullyConnected(node)) => (node.filter_id, i32::from(node.flags & TRANSPOSE_WEIGHTS != 0)),
        _ => return,
    };
    if let Some(QuantParams::PerChannelQuant(params)) = report.find(filter).and_then(|value| value.quant_params())
        && params.channel_dim != want
    {
        report.node(
            &rule::WEIGHTS,
            index,
            format!("scales along dimension {}, channels along {want}", params.channel_dim),
        );
    }
}

/// The dimensions of a value, and whether they are the declared ones.
fn shape_of(id: u32, made: &[Option<Shape>], report: &Report<'_, '_>) -> Option<(Shape, bool)> {
    let declared = report.find(id)?.tensor()?.shape();
    match made.get(report.payload.index_of(id)?)? {
        Some(shape) => Some((*shape, declared == Some(*shape))),
        None => Some((declared?, true)),
    }
}

fn of_node(index: usize, kind: &NodeUnion<'_>, made: &mut [Option<Shape>], report: &mut Report<'_, '_>) {
    let inputs = kind.inputs().filter(|input| input.is_present());
    // At most five, so these are not tables of the file's size.
    let inputs: Option<Vec<(Shape, bool)>> = inputs.map(|input| shape_of(input.id, made, report)).collect();
    let Some(inputs) = inputs else { return };
    let shapes: Vec<Shape> = inputs.iter().map(|(shape, _)| *shape).collect();
    let result = match kind.result_shape(&shapes) {
        Ok(result) => result,
        Err(ShapeError { problem, message }) => return report.node(rule_of(problem), index, message),
    };
    let limit = report.out.limits().arena_bytes;
    let entries = kind.window_entries(&result).and_then(|entries| entries.checked_mul(ENTRY));
    if entries.is_none_or(|bytes| bytes > limit) {
        report.node(&rule::RESULT_SIZE, index, format!("a table of windows for {:?}", result.dims()));
    }
    let is_first = inputs.iter().all(|(_, is_declared)| *is_declared);
    for output in kind.outputs() {
        let Some(tensor) = report.find(output.id).and_then(|value| value.tensor()) else { continue };
        let bytes = tensor.datatype.byte_len(result.dims().iter().copied());
        if tensor.datatype.bits().is_some() && bytes.is_none_or(|bytes| bytes > limit) {
            report.node(&rule::RESULT_SIZE, index, format!("a result of {:?}", result.dims()));
        }
        // Named where it begins; what follows from it is not.
        let declared = tensor.shape().filter(|declared| is_first && declared.dims() != result.dims());
        if let Some(declared) = declared {
            let message = format!("{:?}, %{} is declared as {:?}", result.dims(), output.id, declared.dims());
            report.node(&rule::DECLARED, index, message);
        }
        if let Some(place) = report.payload.index_of(output.id).and_then(|index| made.get_mut(index)) {
            *place = Some(result);
        }
    }
}

fn rule_of(problem: ShapeProblem) -> &'static Rule {
    match problem {
        ShapeProblem::Lists => &rule::DIMENSION_LISTS,
        ShapeProblem::Sizes => &rule::SIZES,
        ShapeProblem::Weights => &rule::WEIGHTS,
        ShapeProblem::Reshape => &rule::RESHAPE,
        ShapeProblem::Inputs => &rule::INPUT_SHAPES,
        ShapeProblem::Overflow => &rule::RESULT_SIZE,
    }
}
