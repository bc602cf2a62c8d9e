//! Patterns replaced in graphs.

use edgepack_exir::graph::{Argument, Graph, Node, Target, TensorMeta, ValueId};
use edgepack_exir::pattern::{Match, Pattern, Writer};
use edgepack_format::scalar::ScalarType;

fn meta() -> TensorMeta {
    TensorMeta::contiguous(ScalarType::FLOAT, &[2i64.into(), 3i64.into()])
}

fn chain(graph: &mut Graph, names: &[&str], mut x: ValueId) -> ValueId {
    for name in names {
        x = graph.call(&format!("aten::{name}"), [("self", x.into())], meta());
    }
    x
}

fn names(graph: &Graph) -> Vec<String> {
    graph.nodes.iter().map(|node| node.target.to_string()).collect()
}

/// `neg(relu(x))`.
fn pattern() -> Pattern {
    let mut pattern = Pattern::new();
    let x = pattern.any("x");
    let relu = pattern.call("aten::relu", [("self", x)]);
    pattern.call("aten::neg", [("self", relu)]);
    pattern
}

fn fused(writer: &mut Writer<'_>, found: &Match) -> Result<Option<Vec<Argument>>, edgepack_exir::Error> {
    Ok(Some(vec![writer.call("my::fused", [("self", found.arg("x"))], meta()).into()]))
}

#[test]
fn every_place_is_replaced() {
    let mut graph = Graph::default();
    let x = graph.add_input("x", meta());
    let y = chain(&mut graph, &["relu", "neg", "abs", "relu", "neg", "relu"], x);
    graph.outputs.push(y.into());
    graph.nodes[1].metadata.insert("stack_trace".to_owned(), "here".to_owned());
    assert_eq!(pattern().rewrite_graph(&mut graph, fused).unwrap(), 2);
    assert_eq!(names(&graph), ["my::fused", "aten::abs", "my::fused", "aten::relu"]);
    assert_eq!(graph.nodes[0].metadata["stack_trace"], "here");
    graph.check().unwrap();
}

#[test]
fn the_root_may_be_an_output_and_what_is_inside_may_not() {
    let mut graph = Graph::default();
    let x = graph.add_input("x", meta());
    let y = chain(&mut graph, &["relu", "neg"], x);
    graph.outputs.push(y.into());
    let mut inside = graph.clone();
    inside.outputs.push(inside.nodes[0].result().unwrap().into());
    let mut elsewhere = graph.clone();
    let relu = elsewhere.nodes[0].result().unwrap();
    let other = elsewhere.call("aten::abs", [("self", relu.into())], meta());
    elsewhere.outputs.push(other.into());
    assert_eq!(pattern().rewrite_graph(&mut graph, fused).unwrap(), 1);
    assert_eq!(graph.outputs, [graph.nodes[0].result().unwrap().into()]);
    for mut graph in [inside, elsewhere] {
        let before = graph.clone();
        assert_eq!(pattern().rewrite_graph(&mut graph, fused).unwrap(), 0);
        assert_eq!(graph, before);
    }
}

#[test]
fn wildcards_literals_lists_and_unnamed_arguments() {
    let mut graph = Graph::default();
    let (x, y) = (graph.add_input("x", meta()), graph.add_input("y", meta()));
    let add = |graph: &mut Graph, a: ValueId, b: ValueId| {
        graph.call("aten::add.Tensor", [("self", a.into()), ("other", b.into())], meta())
    };
    let (twice, sum) = (add(&mut graph, x, x), add(&mut graph, x, y));
    let scaled =
        graph.call("aten::add.Tensor", [("self", y.into()), ("other", y.into()), ("alpha", 2i64.into())], meta());
    let list = Argument::tensors([twice, sum]);
    let stacked = graph.call("aten::cat", [("tensors", list), ("dim", 0i64.into())], meta());
    graph.outputs = vec![scaled.into(), stacked.into()];

    let mut same = Pattern::new();
    let any = same.any("x");
    let call = same.call("aten::add.Tensor", [("self", any), ("other", any)]);
    let count = |pattern: &Pattern| {
        let mut found = Vec::new();
        let answer = |_: &mut Writer<'_>, at: &Match| {
            found.push(at.nodes().last().unwrap().result().unwrap());
            Ok(None)
        };
        assert_eq!(pattern.rewrite_graph(&mut graph.clone(), answer).unwrap(), 0);
        found
    };
    assert_eq!(count(&same), [twice]);
    same.open(call);
    assert_eq!(count(&same), [twice, scaled]);

    let mut cat = Pattern::new();
    let (a, b) = (cat.any("a"), cat.any("b"));
    let sums = [cat.call("aten::add.Tensor", [("self", a), ("other", a)]), cat.any("c")];
    let list = cat.list(sums);
    let zero = cat.literal(0i64);
    cat.call("aten::cat", [("tensors", list), ("dim", zero)]);
    assert_eq!(count(&cat), [stacked]);
    let one = cat.literal(1i64);
    cat.call("aten::cat", [("tensors", list), ("dim", one)]);
    assert_eq!(count(&cat), []);
    let _ = b;
}

#[test]
fn other_results_and_what_is_still_read_stay() {
    let mut graph = Graph::default();
    let x = graph.add_input("x", meta());
    let (values, indices) = (graph.add_value("values", meta()), graph.add_value("indices", meta()));
    let mut max: Node = graph.make("aten::max.dim", [("self", x.into()), ("dim", 0i64.into())], meta());
    max.outputs = vec![values.into(), indices.into()];
    graph.nodes.push(max);
    let y = chain(&mut graph, &["neg"], indices);
    graph.outputs.push(y.into());

    let mut pattern = Pattern::new();
    let (any, dim) = (pattern.any("x"), pattern.any("dim"));
    let max = pattern.call("aten::max.dim", [("self", any), ("dim", dim)]);
    let second = pattern.result(max, 1);
    pattern.call("aten::neg", [("self", second)]);
    // The root goes, the call inside stays, since its result takes the root's place.
    let count =
        pattern.rewrite_graph(&mut graph, |_, found| Ok(Some(vec![found.nodes()[0].results()[1].into()]))).unwrap();
    assert_eq!((count, names(&graph)), (1, vec!["aten::max.dim".to_owned()]));
    assert_eq!(graph.outputs, [indices.into()]);
}

#[test]
fn what_was_written_is_part_of_later_matches() {
    let mut pattern = Pattern::new();
    let x = pattern.any("x");
    let inner = pattern.call("aten::neg", [("self", x)]);
    pattern.call("aten::neg", [("self", inner)]);
    for (count, left) in [(2, 0), (3, 1), (9, 1), (1000, 0)] {
        let mut graph = Graph::default();
        let x = graph.add_input("x", meta());
        let y = chain(&mut graph, &vec!["neg"; count], x);
        graph.outputs.push(y.into());
        let found = pattern.rewrite_graph(&mut graph, |_, found| Ok(Some(vec![found.arg("x")]))).unwrap();
        assert_eq!((found, graph.nodes.len()), (count / 2, left));
    }
}

#[test]
fn new_nodes_are_of_the_dialect_and_reach_graphs_within() {
    let mut inner = Graph::default();
    let x = inner.add_input("x", meta());
    let y = chain(&mut inner, &["relu", "neg"], x);
    inner.outputs.push(y.into());
    let mut graph = Graph::default();
    let x = graph.add_input("x", meta());
    let y = chain(&mut graph, &["relu", "neg"], x);
    for node in &mut graph.nodes {
        node.target = Target::Edge(node.target.operator().unwrap().clone());
    }
    let mut call = graph.make("my::call", [("f", Argument::Graph("f".to_owned(), Box::new(inner)))], meta());
    call.target = Target::HigherOrder("map".to_owned());
    graph.outputs = vec![y.into(), call.result().unwrap().into()];
    graph.nodes.push(call);
    assert_eq!(pattern().rewrite_graph(&mut graph, fused).unwrap(), 2);
    assert!(matches!(graph.nodes[0].target, Target::Edge(_)));
    let Argument::Graph(_, inner) = &graph.nodes[1].inputs[0].arg else { panic!() };
    assert_eq!(names(inner), ["my::fused"]);
}

#[test]
fn wrong_answers_leave_the_graph_as_it_was() {
    let mut graph = Graph::default();
    let x = graph.add_input("x", meta());
    let y = chain(&mut graph, &["relu", "neg"], x);
    let later = chain(&mut graph, &["abs"], y);
    graph.outputs.push(later.into());
    let before = graph.clone();
    let mut answer = |results: Vec<Argument>| {
        let error = pattern().rewrite_graph(&mut graph, |_, _| Ok(Some(results.clone()))).unwrap_err();
        assert_eq!(graph, before);
        error.to_string()
    };
    assert!(answer(vec![]).contains("1 results, 0 are to replace them"));
    assert!(answer(vec![1i64.into()]).contains("a tensor is to become"));
    assert!(answer(vec![later.into()]).contains("read before it is made"));
    let other = TensorMeta::contiguous(ScalarType::LONG, &[2i64.into()]);
    let wrong = |writer: &mut Writer<'_>, found: &Match| {
        Ok(Some(vec![writer.call("my::other", [("self", found.arg("x"))], other.clone()).into()]))
    };
    assert!(pattern().rewrite_graph(&mut graph, wrong).unwrap_err().to_string().contains("is to become i64"));
}
