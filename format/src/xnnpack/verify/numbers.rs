//! Scales that are computed from scales, and sums that 32 bits hold.

use alloc::format;

use super::report::Report;
use super::scales::{Extremes, is_scale};
use crate::rules::xnnpack as rule;
use crate::xnnpack::datatype::Meaning;
use crate::xnnpack::node::{Fields, NodeUnion};
use crate::xnnpack::shapes::TRANSPOSE_WEIGHTS;
use crate::xnnpack::tables::Datatype;

/// The most 8-bit products whose sum fits a 32-bit number whatever they are.
const MOST_PRODUCTS: u64 = 65_793;

/// Powers of two that bound ratios of scales.
const BELOW: f32 = 256.0;
const SUM_FROM: f32 = 1.0 / 1024.0;
const PRODUCT_FROM: f32 = 1.0 / 65536.0;

/// Asks every node whose numbers do not depend on scales of channels.
pub(super) fn sums(report: &mut Report<'_, '_>) {
    let payload = report.payload;
    for (index, node) in payload.nodes.iter().enumerate() {
        let Some(kind) = &node.xnode_union else { continue };
        let scale = |id: u32| payload.value(id)?.per_tensor().map(|(scale, _)| scale);
        match (kind, kind.fields()) {
            (_, Fields::FullyConnected(node)) => {
                let rows = payload.value(node.filter_id).and_then(|value| value.tensor()?.shape());
                let inner = usize::from(node.flags & TRANSPOSE_WEIGHTS == 0);
                let terms = rows.and_then(|shape| shape.dims().get(inner).copied());
                accumulator(index, node.input1_id, terms.map_or(0, u64::from), node.filter_id, report);
            }
            (_, Fields::Convolution(node)) => {
                let terms = u64::from(node.kernel_height).saturating_mul(node.kernel_width.into());
                let terms = match kind {
                    NodeUnion::DepthwiseConv2d(_) => terms,
                    _ => terms.saturating_mul(node.group_input_channels.into()),
                };
                accumulator(index, node.input1_id, terms, node.filter_id, report);
            }
            (NodeUnion::GlobalAvgPooling2d(_), Fields::Unary(node)) => {
                let shape = payload.value(node.input_id).and_then(|value| value.tensor()?.shape());
                let pixels = shape.and_then(|shape| {
                    let [_, height, width, _] = shape.dims() else { return None };
                    u64::from(*height).checked_mul((*width).into())
                });
                if let (Some(x), Some(y), Some(pixels)) = (scale(node.input_id), scale(node.output_id), pixels) {
                    derived(index, x / y / pixels as f32, report);
                }
            }
            (NodeUnion::Convert(_), Fields::Unary(node)) => {
                let to = payload.value(node.output_id).and_then(|value| value.tensor());
                if let Some(y) = scale(node.output_id).filter(|_| to.is_some_and(|to| to.datatype != Datatype::FP32)) {
                    derived(index, 1.0 / y, report);
                }
            }
            _ => {}
        }
    }
}

/// Asks every node whose scales are known. Extremes are those of the values; where weights are not known now, they are
/// known another time.
pub(super) fn products(extremes: &[Extremes], report: &mut Report<'_, '_>) {
    let payload = report.payload;
    if extremes.iter().all(Option::is_none) {
        return;
    }
    for (index, node) in payload.nodes.iter().enumerate() {
        let Some(kind) = &node.xnode_union else { continue };
        let known = |id: u32| extremes.get(payload.index_of(id)?).copied().flatten();
        let scale = |id: u32| payload.value(id)?.per_tensor().map(|(scale, _)| scale);
        match kind.fields() {
            Fields::FullyConnected(node) => {
                let scales = (scale(node.input1_id), known(node.filter_id), scale(node.output_id));
                weights(index, scales, report);
            }
            Fields::Convolution(node) => {
                let scales = (scale(node.input1_id), known(node.filter_id), scale(node.output_id));
                weights(index, scales, report);
            }
            Fields::Binary(node) => {
                let scales = (scale(node.input1_id), known(node.input2_id), scale(node.output_id));
                binary(index, kind, scales, report);
            }
            _ => {}
        }
    }
}

/// Sums of this many 8-bit products.
fn accumulator(index: usize, input: u32, terms: u64, weights: u32, report: &mut Report<'_, '_>) {
    let seen_as = |id| report.find(id).and_then(|value| value.tensor()).map(|tensor| tensor.seen_as());
    let bits = |id| seen_as(id).filter(|datatype| datatype.meaning() != Some(Meaning::Plain))?.bits();
    if bits(input) == Some(8) && bits(weights) == Some(8) && terms > MOST_PRODUCTS {
        report.node(&rule::ACCUMULATOR, index, format!("{terms} products, {MOST_PRODUCTS} fit"));
    }
}

fn derived(index: usize, scale: f32, report: &mut Report<'_, '_>) -> bool {
    if !is_scale(scale) {
        report.node(&rule::DERIVED, index, format!("a scale of {scale}"));
    }
    is_scale(scale)
}

/// Products with weights: the scale of each channel is between those of the extremes.
fn weights(index: usize, scales: (Option<f32>, Extremes, Option<f32>), report: &mut Report<'_, '_>) {
    let (Some(x), Some((least, most)), Some(y)) = scales else { return };
    let (least, most) = (x * least / y, x * most / y);
    if derived(index, least, report) && (least == most || derived(index, most, report)) && most >= BELOW {
        report.node(&rule::SCALE_RANGE, index, format!("{most}, it must be below {BELOW}"));
    }
}

fn binary(
    index: usize,
    kind: &NodeUnion<'_>,
    scales: (Option<f32>, Extremes, Option<f32>),
    report: &mut Report<'_, '_>,
) {
    let (Some(a), Some((b, most)), Some(y)) = scales else { return };
    let ratios = match kind {
        NodeUnion::Add(_) | NodeUnion::Subtract(_) => [(a / y, SUM_FROM), (b / y, SUM_FROM)],
        NodeUnion::Multiply(_) => [(a * b / y, PRODUCT_FROM); 2],
        NodeUnion::BatchMatrixMultiply(_) => return weights(index, (Some(a), Some((b, most)), Some(y)), report),
        _ => return,
    };
    for (ratio, from) in ratios {
        if !derived(index, ratio, report) {
            return;
        }
        if !(from..BELOW).contains(&ratio) {
            return report.node(
                &rule::SCALE_RANGE,
                index,
                format!("{ratio}, it must be from {from} and below {BELOW}"),
            );
        }
    }
}
