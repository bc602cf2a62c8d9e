//! The payload against the call of its delegate: arguments are its external values.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};

use super::report::Report;
use crate::finding::Rule;
use crate::room;
use crate::rules::xnnpack as rule;
use crate::scalar::ScalarType;
use crate::xnnpack::node::Fields;
use crate::xnnpack::tables::{Datatype, TensorValue};

/// An argument of a delegate call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Argument<'c> {
    /// Tensor, which an external value of the payload stands for.
    Tensor {
        /// Number of the value in its method: equal for one value.
        value: u32,
        /// Element type.
        scalar_type: ScalarType,
        /// Elements along each dimension; the most of a dynamic one.
        sizes: &'c [i32],
        /// Dimensions from the outermost to the innermost in memory.
        dim_order: &'c [u8],
    },
    /// Anything else.
    Other,
}

pub(super) fn check(arguments: &[Argument<'_>], report: &mut Report<'_, '_>) {
    let payload = report.payload;
    let mut externals: BTreeMap<u32, (usize, &TensorValue<'_>)> = BTreeMap::new();
    for (index, value) in payload.values.iter().enumerate() {
        let tensor = value.tensor().filter(|tensor| tensor.is_input() || tensor.is_output());
        if let Some((tensor, position)) = tensor.and_then(|tensor| Some((tensor, tensor.position()?))) {
            externals.insert(position, (index, tensor));
        }
    }
    if externals.len() != arguments.len() {
        let message = format!("{} arguments for {} external values", arguments.len(), externals.len());
        report.list(&rule::ARGUMENT_COUNT, "num_externs", message);
    }
    let indices = index_ids(report);
    let mut inputs = BTreeMap::new();
    let mut outputs = BTreeMap::new();
    for (position, (argument, (index, tensor))) in arguments.iter().zip(externals.into_values()).enumerate() {
        let Argument::Tensor { value, scalar_type, sizes, dim_order } = *argument else {
            about(&rule::ARGUMENT_COUNT, position, "not a tensor".to_string(), report);
            continue;
        };
        let first = if tensor.is_output() { outputs.insert(value, position) } else { None };
        if tensor.is_input() {
            inputs.insert(value, position);
        }
        let input = inputs.get(&value).filter(|_| tensor.is_output());
        if let Some(other) = first.or(input.copied()) {
            about(&rule::ARGUMENT_ALIAS, position, format!("it is argument {other} too"), report);
        }
        let is_index = tensor.datatype == Datatype::INT32 && indices.contains(&tensor.id_out);
        let has_type = match scalar_type {
            ScalarType::LONG => is_index,
            _ => tensor.datatype.scalar_type() == Some(scalar_type),
        };
        if !has_type {
            let message = format!("{scalar_type}, the value is {}", tensor.datatype);
            about(&rule::ARGUMENT_TYPE, position, message, report);
        }
        shape(position, index, tensor, sizes, dim_order, report);
    }
}

fn about(rule: &'static Rule, position: usize, message: String, report: &mut Report<'_, '_>) {
    let path = report.path.field("arguments");
    report.out.report(rule, &path.index(position), None, message);
}

/// Ids of the indices of maxima, which may be 64-bit outside.
fn index_ids(report: &Report<'_, '_>) -> BTreeSet<u32> {
    let kinds = report.payload.nodes.iter().filter_map(|node| node.xnode_union.as_ref());
    room::set(kinds.filter_map(|kind| match kind.fields() {
        Fields::ArgMaxPooling(node) => Some(node.output_index_id),
        _ => None,
    }))
}

fn shape(
    position: usize,
    index: usize,
    tensor: &TensorValue<'_>,
    sizes: &[i32],
    dim_order: &[u8],
    report: &mut Report<'_, '_>,
) {
    let Some(want) = report.payload.values.get(index).and_then(|_| tensor.shape()) else { return };
    // A number has no dimensions outside and one inside.
    if sizes.is_empty() && want.elements() == Some(1) {
        return;
    }
    let physical = |dim: &u8| sizes.get(usize::from(*dim)).and_then(|size| u32::try_from(*size).ok());
    let is_same = sizes.len() == want.rank()
        && dim_order.len() == want.rank()
        && dim_order.iter().zip(want.dims()).all(|(dim, want)| physical(dim) == Some(*want));
    if !is_same {
        let message = format!("{sizes:?} in order {dim_order:?}, the value has {:?}", want.dims());
        about(&rule::ARGUMENT_SHAPE, position, message, report);
    }
}
