//! Shape functions against what exporters recorded, and that every core operator has one.

use std::collections::BTreeSet;
use std::path::PathBuf;

use edgepack_exir::archive::Archive;
use edgepack_exir::graph::{Argument, Graph, Node, Size, TensorMeta};
use edgepack_exir::operators::Operators;
use edgepack_format::scalar::ScalarType;

fn archives() -> Vec<PathBuf> {
    let own = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data/corpus");
    let other = std::env::var("EDGEPACK_CORPUS").ok();
    let mut found = Vec::new();
    for corpus in [Some(own.to_owned()), other].into_iter().flatten() {
        for model in std::fs::read_dir(format!("{corpus}/pt2")).into_iter().flatten() {
            for name in ["model.pt2", "model_raw.pt2"] {
                found.push(model.as_ref().unwrap().path().join(name));
            }
        }
    }
    found.retain(|path| path.exists());
    found
}

fn compare(graph: &Graph, operators: &Operators, wrong: &mut BTreeSet<String>, compared: &mut usize) {
    for node in &graph.nodes {
        for input in &node.inputs {
            if let Argument::Graph(_, inner) = &input.arg {
                compare(inner, operators, wrong, compared);
            }
        }
        let Some(inferred) = operators.infer(graph, node) else { continue };
        let hints = |sizes: &[Size]| sizes.iter().map(Size::hint).collect::<Vec<_>>();
        let recorded: Vec<_> = node.results().iter().filter_map(|id| graph.tensor(*id)).collect();
        let same = recorded.len() == inferred.len()
            && recorded.iter().zip(&inferred).all(|(recorded, inferred)| {
                recorded.scalar_type == inferred.scalar_type && hints(&recorded.sizes) == hints(&inferred.sizes)
            });
        *compared += 1;
        if !same {
            wrong.insert(format!("{}: {:?} recorded, {inferred:?}", node.target, recorded));
        }
    }
}

#[test]
fn shapes_are_what_exporters_recorded() {
    let operators = Operators::new();
    let (mut wrong, mut compared) = (BTreeSet::new(), 0);
    for path in archives() {
        let program = Archive::open(&path).unwrap().program().unwrap();
        compare(&program.graph, &operators, &mut wrong, &mut compared);
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(compared > 50, "{compared}");
}

#[test]
fn every_core_operator_that_gives_tensors_has_one() {
    let operators = Operators::new();
    let without: Vec<_> =
        operators.core().filter(|op| operators.gives_tensors(op) && operators.shape_function(op).is_none()).collect();
    let names: Vec<String> = without.iter().map(ToString::to_string).collect();
    // Gradients, what works in place, and what depends on the data.
    for name in &names {
        assert!(
            name.contains("backward")
                || ["aten::nonzero", "aten::masked_select", "aten::resize_"].contains(&name.as_str()),
            "{names:?}"
        );
    }
}

fn float(sizes: &[i64]) -> TensorMeta {
    let sizes: Vec<Size> = sizes.iter().copied().map(Size::from).collect();
    TensorMeta::contiguous(ScalarType::FLOAT, &sizes)
}

#[test]
fn bounds_of_a_slice_never_cross() {
    let operators = Operators::new();
    for (size, start, end, want) in
        [(-2, 0, 5, 0), (i64::MIN, i64::MIN, i64::MAX, 0), (-1, -1, 1, 0), (4, 3, 1, 0), (4, -3, 9, 3)]
    {
        let mut graph = Graph::default();
        let x = graph.add_input("x", float(&[size, 3]));
        let args = [
            ("self", x.into()),
            ("dim", Argument::Int(0)),
            ("start", Argument::Int(start)),
            ("end", Argument::Int(end)),
        ];
        graph.call("aten::slice.Tensor", args, float(&[1, 3]));
        let inferred = operators.infer(&graph, &graph.nodes[0]).unwrap();
        assert_eq!(inferred[0].sizes[0].known(), Some(want), "{size} from {start} to {end}");
    }
}

#[test]
fn a_short_text_asks_for_no_more_pieces_than_it_names() {
    let operators = Operators::new();
    let mut graph = Graph::default();
    let x = graph.add_input("x", float(&[1 << 16, 3]));
    let (this, dim) = (("self", Argument::from(x)), ("dim", Argument::Int(0)));
    graph.call("aten::split.Tensor", [this.clone(), dim.clone(), ("split_size", Argument::Int(1))], float(&[1, 3]));
    graph.call("aten::unbind.int", [this, dim], float(&[3]));
    for node in &graph.nodes {
        assert_eq!(operators.infer(&graph, node).unwrap().len(), 1, "{}", node.target);
        let unnamed = Node { outputs: Vec::new(), ..node.clone() };
        assert_eq!(operators.infer(&graph, &unnamed).unwrap().len(), 1 << 16, "{}", node.target);
    }
}
