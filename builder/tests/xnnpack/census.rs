//! Counts of nodes and values in the larger corpus, made by another reader.

use std::collections::BTreeMap;

use edgepack_format::limits::Limits;
use edgepack_format::xnnpack::{Datatype, Payload};

use crate::corpus;

/// Nodes of a kind among the models and among the programs of operators.
const NODES: [(&str, usize, usize); 40] = [
    ("Abs", 0, 2),
    ("Add", 37, 261),
    ("AvgPooling2d", 0, 13),
    ("BatchMatrixMultiply", 12, 0),
    ("Ceiling", 0, 4),
    ("Clamp", 35, 8),
    ("Concatenate2", 9, 11),
    ("Concatenate3", 0, 12),
    ("Concatenate4", 0, 1),
    ("Concatenate5", 0, 27),
    ("Conv2d", 101, 14),
    ("ConvTranspose2d", 1, 16),
    ("Convert", 32, 0),
    ("Copy", 6, 11),
    ("DepthwiseConv2d", 35, 0),
    ("Div", 0, 5),
    ("Exp", 0, 3),
    ("Floor", 0, 3),
    ("FullyConnected", 45, 140),
    ("Gelu", 6, 3),
    ("GlobalAvgPooling2d", 4, 1),
    ("Hardswish", 1, 3),
    ("LeakyReLU", 0, 3),
    ("Log", 0, 1),
    ("MaxPooling2d", 3, 6),
    ("Minimum", 0, 1),
    ("Multiply", 0, 389),
    ("Negate", 0, 4),
    ("PReLU", 0, 1),
    ("ReciprocalSquareRoot", 0, 2),
    ("Sigmoid", 0, 388),
    ("Softmax", 10, 0),
    ("Square", 0, 6),
    ("SquareRoot", 0, 2),
    ("StaticReshape", 96, 46),
    ("StaticResizeBilinear2D", 1, 10),
    ("StaticSlice", 2, 167),
    ("StaticTranspose", 73, 145),
    ("Subtract", 0, 2),
    ("Tanh", 4, 259),
];

/// Values of an element type and role among the models and among the programs of operators.
const VALUES: [(Datatype, &str, usize, usize); 11] = [
    (Datatype::FP32, "constant", 171, 339),
    (Datatype::FP32, "input", 88, 1258),
    (Datatype::FP32, "inner", 243, 1254),
    (Datatype::FP32, "output", 78, 716),
    (Datatype::QCINT32, "constant", 95, 0),
    (Datatype::QCINT8, "constant", 98, 0),
    (Datatype::QDINT8, "inner", 3, 0),
    (Datatype::QINT8, "input", 2, 0),
    (Datatype::QINT8, "inner", 188, 0),
    (Datatype::QINT8, "output", 1, 0),
    (Datatype::QBINT4, "constant", 0, 0),
];

#[test]
fn nodes_and_values_are_as_many_as_another_reader_counted() {
    if corpus::named_root().is_none() {
        println!("EDGEPACK_CORPUS is not set: nothing was counted");
        return;
    }
    let mut nodes = BTreeMap::<_, usize>::new();
    let mut values = BTreeMap::<_, usize>::new();
    let mut payloads = BTreeMap::<_, usize>::new();
    for found in corpus::payloads() {
        let payload = Payload::parse(&found.bytes, &Limits::DEFAULT).unwrap();
        *payloads.entry(found.folder).or_default() += 1;
        for node in payload.nodes() {
            let name = node.xnode_union.as_ref().and_then(|kind| kind.name()).unwrap();
            *nodes.entry((found.folder, name)).or_default() += 1;
        }
        for tensor in payload.values().iter().filter_map(|value| value.tensor()) {
            let role = match (tensor.is_input(), tensor.is_output(), tensor.is_constant()) {
                (true, ..) => "input",
                (_, true, _) => "output",
                (.., true) => "constant",
                _ => "inner",
            };
            *values.entry((found.folder, tensor.datatype, role)).or_default() += 1;
        }
    }
    assert_eq!((payloads["models"], payloads["ops_xnnpack"]), (57, 314));
    for (index, folder) in ["models", "ops_xnnpack"].into_iter().enumerate() {
        let want = |row: &(usize, usize)| [row.0, row.1][index];
        let have: BTreeMap<_, _> =
            nodes.iter().filter(|(key, _)| key.0 == folder).map(|(key, n)| (key.1, *n)).collect();
        let rows = NODES.iter().map(|row| (row.0, want(&(row.1, row.2))));
        assert_eq!(have, rows.filter(|(_, count)| *count > 0).collect(), "{folder}");
        let have: BTreeMap<_, _> =
            values.iter().filter(|(key, _)| key.0 == folder).map(|(key, n)| ((key.1, key.2), *n)).collect();
        let rows = VALUES.iter().map(|row| ((row.0, row.1), want(&(row.2, row.3))));
        assert_eq!(have, rows.filter(|(_, count)| *count > 0).collect(), "{folder}");
    }
    let total = |folder: &str| nodes.iter().filter(|(key, _)| key.0 == folder).map(|(_, count)| count).sum::<usize>();
    assert_eq!((total("models"), total("ops_xnnpack")), (513, 1970));
    assert!(values[&("llm", Datatype::QBINT4, "constant")] > 0 && values[&("llm", Datatype::QCINT4, "constant")] > 0);
}
