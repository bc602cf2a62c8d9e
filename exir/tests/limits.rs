//! Lowering stays within its limits: a short program may expand to a long one.

use edgepack_exir::Error;
use edgepack_exir::decompose::decompose;
use edgepack_exir::graph::{Argument, Dialect, ExportedProgram, Graph, Size, TensorMeta};
use edgepack_exir::operators::Operators;
use edgepack_format::limits::Limits;
use edgepack_format::scalar::ScalarType;

fn meta(sizes: &[i64]) -> TensorMeta {
    let sizes: Vec<Size> = sizes.iter().copied().map(Size::Known).collect();
    TensorMeta::contiguous(ScalarType::FLOAT, &sizes)
}

/// `count` rows of a tensor, all of which are read again after each of `count` changes.
fn changing(count: i64) -> ExportedProgram<'static> {
    let mut graph = Graph::default();
    let x = graph.add_input("x", meta(&[count, 1]));
    let row = |graph: &mut Graph, index: i64| {
        let args = [("self", x.into()), ("dim", 0.into()), ("index", index.into())];
        graph.call("aten::select.int", args, meta(&[1]))
    };
    let rows: Vec<_> = (0..count).map(|index| row(&mut graph, index)).collect();
    for _ in 0..count {
        graph.call("aten::add_.Tensor", [("self", x.into()), ("other", 1.into())], meta(&[count, 1]));
        let tensors = Argument::tensors(rows.iter().copied());
        let all = graph.call("aten::cat", [("tensors", tensors), ("dim", 0.into())], meta(&[count]));
        graph.outputs.push(all.into());
    }
    ExportedProgram::from_graph(graph, Dialect::Training)
}

#[test]
fn what_is_written_is_paid_for() {
    let operators = Operators::new();
    for (count, limits, fits) in
        [(50, Limits::hostile(), true), (130, Limits::hostile(), false), (130, Limits::DEFAULT, true)]
    {
        let mut program = changing(count);
        match decompose(&mut program, &operators, &limits) {
            Ok(()) => assert!(fits, "{count} rows were written"),
            Err(error) => {
                assert!(!fits && matches!(error, Error::Unsupported { .. }), "{count} rows: {error}");
                assert!(error.to_string().contains("longer than the limits allow"), "{error}");
            }
        }
    }
}
