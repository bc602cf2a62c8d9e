//! Element types that nodes run with, and numbers that keep their meaning.

use alloc::format;
use alloc::string::String;

use super::report::Report;
use crate::rules::xnnpack as rule;
use crate::xnnpack::node::{Fields, NodeUnion};
use crate::xnnpack::tables::{Datatype, Value};

use Datatype as D;

/// Element types of input, weights, bias and result.
type Row = (&'static [D], &'static [D], &'static [D], &'static [D]);

const FLOATS: &[D] = &[D::FP32, D::FP16];
const BYTES: &[D] = &[D::QINT8, D::QUINT8];
const SINGLE: &[D] = &[D::FP32];
const HALF: &[D] = &[D::FP16];
const EITHER: &[D] = &[D::FP16, D::FP32];
const SIGNED: &[D] = &[D::QINT8];
const UNSIGNED: &[D] = &[D::QUINT8];
const ROWS: &[D] = &[D::QDINT8];
const INDICES: &[D] = &[D::INT32];

/// Products that every kind with weights computes.
const STATIC: [Row; 5] = [
    (SINGLE, SINGLE, SINGLE, SINGLE),
    (HALF, EITHER, EITHER, HALF),
    (SIGNED, &[D::QCINT8], &[D::QCINT32], SIGNED),
    (SIGNED, SIGNED, &[D::QINT32], SIGNED),
    (UNSIGNED, UNSIGNED, &[D::QINT32], UNSIGNED),
];

/// Products of rows that are quantised when they are known.
const DYNAMIC: [Row; 1] = [(ROWS, &[D::QCINT8], SINGLE, SINGLE)];

/// Products of matrices alone.
const MATRIX: [Row; 4] = [
    (&[D::BF16], &[D::BF16], SINGLE, &[D::FP32, D::BF16]),
    (SINGLE, &[D::QCINT8, D::QCINT4], SINGLE, SINGLE),
    (ROWS, &[D::QCINT8, D::QCINT4], SINGLE, EITHER),
    (ROWS, &[D::QBINT4], SINGLE, &[D::FP32, D::FP16, D::BF16]),
];

/// Batch products: both sides and the result.
const BATCH: [(&[D], &[D], &[D]); 4] = [
    (SINGLE, SINGLE, SINGLE),
    (HALF, HALF, HALF),
    (SIGNED, SIGNED, SIGNED),
    (&[D::FP32, D::QDINT8], &[D::QCINT8], SINGLE),
];

/// Conversions.
const CONVERSIONS: [(&[D], &[D]); 6] = [
    (SINGLE, &[D::QINT8, D::QUINT8, D::QDINT8, D::FP16, D::BF16]),
    (HALF, &[D::FP32, D::QDINT8]),
    (&[D::BF16], SINGLE),
    (BYTES, SINGLE),
    (SIGNED, SIGNED),
    (UNSIGNED, UNSIGNED),
];

pub(super) fn check(index: usize, kind: &NodeUnion<'_>, report: &mut Report<'_, '_>) {
    let mut inputs = [None; 5];
    for (place, input) in inputs.iter_mut().zip(kind.inputs()) {
        *place = report.find(input.id).filter(|_| input.is_present());
    }
    let mut results = [None; 2];
    for (place, output) in results.iter_mut().zip(kind.outputs()) {
        *place = report.find(output.id);
    }
    // An input that is quantised when it is read counts as what it becomes, or as what it is.
    let runs = [true, false].into_iter().any(|is_read| {
        let seen = |value: Option<&Value<'_>>| {
            let tensor = value.and_then(|value| value.tensor());
            tensor.map(|tensor| if is_read { tensor.seen_as() } else { tensor.datatype })
        };
        runs(kind, inputs.map(seen), results.map(seen))
    });
    if !runs {
        let message = described(inputs, results);
        return report.node(&rule::SIGNATURE, index, message);
    }
    if moves_bytes(kind) {
        let same = |value: &&Value<'_>| value.per_tensor().map(|(scale, zero)| (scale.to_bits(), zero));
        let mut all = inputs.iter().chain(results.iter()).flatten().map(same);
        let first = all.next().flatten();
        if all.any(|other| other != first) {
            let message = format!("{:?} to {:?}", first_params(&inputs), first_params(&results));
            report.node(&rule::SAME_NUMBERS, index, message);
        }
    }
}

fn first_params(values: &[Option<&Value<'_>>]) -> Option<(f32, i32)> {
    values.iter().flatten().find_map(|value| value.per_tensor())
}

fn described(inputs: [Option<&Value<'_>>; 5], results: [Option<&Value<'_>>; 2]) -> String {
    let mut text = String::new();
    for (index, value) in inputs.iter().chain(&results).flatten().enumerate() {
        let datatype = value.tensor().map_or(D::INVALID, |tensor| tensor.datatype);
        let separator = if index > 0 { ", " } else { "" };
        text.push_str(&format!("{separator}{}", datatype.label().unwrap_or("unknown")));
    }
    text
}

/// Returns whether a kind only moves stored numbers, or takes the greatest of them.
fn moves_bytes(kind: &NodeUnion<'_>) -> bool {
    let is_alike =
        matches!(kind, NodeUnion::Copy(_) | NodeUnion::MaxPooling2d(_) | NodeUnion::StaticResizeBilinear2D(_));
    is_alike || is_movement(&kind.fields())
}

fn is_movement(fields: &Fields<'_, '_>) -> bool {
    matches!(
        fields,
        Fields::Concatenate(..) | Fields::Transpose(_) | Fields::Reshape(_) | Fields::Slice(_) | Fields::Pad(_)
    )
}

fn is_in(list: &[D], datatype: Option<D>) -> bool {
    datatype.is_some_and(|datatype| list.contains(&datatype))
}

fn runs(kind: &NodeUnion<'_>, inputs: [Option<D>; 5], results: [Option<D>; 2]) -> bool {
    let ([a, b, c, ..], [y, second]) = (inputs, results);
    let all_of = |lists: &[&[D]]| {
        let alike = inputs.iter().chain(&results).flatten().all(|one| Some(*one) == a);
        alike && lists.iter().any(|list| is_in(list, a))
    };
    let by_row = |rows: &[Row]| {
        let fits =
            |row: &Row| is_in(row.0, a) && is_in(row.1, b) && c.is_none_or(|c| row.2.contains(&c)) && is_in(row.3, y);
        rows.iter().any(fits)
    };
    match kind {
        NodeUnion::FullyConnected(_) => by_row(&STATIC) || by_row(&MATRIX),
        NodeUnion::Conv2d(_) => by_row(&STATIC) || by_row(&DYNAMIC),
        NodeUnion::DepthwiseConv2d(_) | NodeUnion::ConvTranspose2d(_) => by_row(&STATIC),
        NodeUnion::BatchMatrixMultiply(_) => {
            BATCH.iter().any(|row| is_in(row.0, a) && is_in(row.1, b) && is_in(row.2, y))
        }
        NodeUnion::Convert(_) => CONVERSIONS.iter().any(|row| is_in(row.0, a) && is_in(row.1, y)),
        NodeUnion::Minimum(_) | NodeUnion::Maximum(_) => all_of(&[FLOATS, INDICES]),
        NodeUnion::ArgMaxPooling2d(_) => (a, y, second) == (Some(D::FP32), Some(D::FP32), Some(D::INT32)),
        NodeUnion::Add(_)
        | NodeUnion::Subtract(_)
        | NodeUnion::Multiply(_)
        | NodeUnion::Div(_)
        | NodeUnion::PReLU(_) => all_of(&[FLOATS, BYTES]),
        // Between bytes, these are tables of 256 entries.
        NodeUnion::Clamp(_)
        | NodeUnion::LeakyReLU(_)
        | NodeUnion::ELU(_)
        | NodeUnion::Sigmoid(_)
        | NodeUnion::Tanh(_)
        | NodeUnion::Exp(_)
        | NodeUnion::Log(_)
        | NodeUnion::Sin(_)
        | NodeUnion::Cos(_)
        | NodeUnion::MaxPooling2d(_)
        | NodeUnion::GlobalAvgPooling2d(_)
        | NodeUnion::StaticResizeBilinear2D(_) => all_of(&[FLOATS, BYTES]),
        NodeUnion::Copy(_) => all_of(&[FLOATS, BYTES, INDICES, &[D::BF16]]),
        _ if is_movement(&kind.fields()) => all_of(&[FLOATS, BYTES, INDICES, &[D::BF16]]),
        _ => all_of(&[FLOATS]),
    }
}
