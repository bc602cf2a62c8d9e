//! Archives of export IR that are not read: a small program with one description changed. Rules that a program breaks
//! which can be read have theirs in `exir/tests/verify.rs`.

use edgepack_exir::archive::{Storage, Weight};
use edgepack_exir::graph::{Argument, Dialect, ExportedProgram, Expr, Graph, Interval, Size, Target, TensorMeta};
use edgepack_format::rules::exir as rule;
use edgepack_format::scalar::ScalarType;

use crate::hostile_data::{Case, patch, position};

fn float(sizes: &[i64]) -> TensorMeta {
    let sizes: Vec<Size> = sizes.iter().copied().map(Size::from).collect();
    TensorMeta::contiguous(ScalarType::FLOAT, &sizes)
}

/// `x[1:]`, with `x` described as given.
fn sliced(x: TensorMeta) -> ExportedProgram<'static> {
    let mut graph = Graph::default();
    let x = graph.add_input("x", x);
    let args = [("self", x.into()), ("dim", 0.into()), ("start", Argument::Int(1)), ("end", Argument::Int(i64::MAX))];
    let y = graph.call("aten::slice.Tensor", args, float(&[1, 3]));
    graph.outputs.push(y.into());
    ExportedProgram::from_graph(graph, Dialect::Aten)
}

fn saved(program: &ExportedProgram<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    program.save(&mut bytes).unwrap();
    bytes
}

/// The program with nothing against it.
pub fn good() -> Vec<u8> {
    saved(&sliced(float(&[2, 3])))
}

fn with_sizes(sizes: &[i64]) -> Vec<u8> {
    saved(&sliced(TensorMeta { sizes: sizes.iter().copied().map(Size::from).collect(), ..float(&[2, 3]) }))
}

/// The first size a formula.
fn with_formula(text: &str, hint: Option<i64>, range: Option<Interval>) -> Vec<u8> {
    let size = Size::Symbolic(Expr::parse(text).unwrap(), hint);
    let mut program = sliced(TensorMeta { sizes: vec![size, 3.into()], ..float(&[2, 3]) });
    program.ranges.extend(range.map(|range| ("s0".to_owned(), range)));
    saved(&program)
}

/// A graph inside another one, whose own tensor is described with a size below zero.
fn inside() -> Vec<u8> {
    let mut program = sliced(float(&[2, 3]));
    let mut inner = Graph::default();
    let a = inner.add_input("a", float(&[2, -3]));
    inner.outputs.push(a.into());
    let node = &mut program.graph.nodes[0];
    node.target = Target::HigherOrder("torch.ops.higher_order.cond".to_owned());
    node.set_arg("true_graph", Argument::Graph("true_graph_0".to_owned(), Box::new(inner)));
    saved(&program)
}

/// A parameter whose description is changed by a byte of its text: `[2,3]` to `[2,-3]` takes one more, so `[12,3]` is
/// what is written first.
fn weight() -> Vec<u8> {
    let mut program = sliced(float(&[2, 3]));
    let storage = Storage::owned("w", vec![0; 12 * 3 * 4]);
    let weight = Weight::contiguous(storage, ScalarType::FLOAT, &[12, 3]).unwrap();
    program.weights.state.insert("w".to_owned(), weight);
    let bytes = saved(&program);
    let at = position(&bytes, br#"{"as_int":12}"#) + br#"{"as_int":"#.len();
    patch(bytes, at, b"-2")
}

/// A program whose tensor is in a pickle, written as `exir.serde` does.
fn pickled() -> Vec<u8> {
    let mut program = sliced(float(&[2, 3]));
    let storage = Storage::owned("w", vec![0; 12 * 3 * 4]);
    program.weights.state.insert("w".to_owned(), Weight::contiguous(storage, ScalarType::FLOAT, &[12, 3]).unwrap());
    let mut bytes = Vec::new();
    program.save_serde(&mut bytes).unwrap();
    bytes
}

/// A pickle that would have a command run: the name of the constructor of tensors is replaced by that of a function,
/// with instructions in front that do nothing.
fn call() -> Vec<u8> {
    let bytes = pickled();
    let name = b"ctorch._utils\n_rebuild_tensor_v2\n";
    let call = b"cos\nsystem\n";
    let idle = b"N0".repeat((name.len() - call.len()) / 2);
    let at = position(&bytes, name);
    patch(bytes, at, &[&idle[..], call].concat())
}

/// A pickle whose tensor has more elements than its storage.
fn view() -> Vec<u8> {
    let bytes = pickled();
    let sizes = b"(J\x0c\0\0\0J\x03\0\0\0t";
    let at = position(&bytes, sizes) + 4;
    patch(bytes, at, &[1])
}

pub fn cases() -> Vec<Case> {
    let size = |id, bytes| Case::new(id, &rule::SIZES, "model", bytes);
    let strides = vec![Size::from(-3), Size::from(1)];
    vec![
        Case::new("empty", &rule::ARCHIVE, "", Vec::new()),
        Case::new("cut", &rule::ARCHIVE, "", good()[..600].to_vec()),
        size("size", with_sizes(&[-2, 3])),
        size("size_smallest", with_sizes(&[2, i64::MIN])),
        size("stride", saved(&sliced(TensorMeta { strides, ..float(&[2, 3]) }))),
        size("offset", saved(&sliced(TensorMeta { storage_offset: (-1).into(), ..float(&[2, 3]) }))),
        size("size_formula", with_formula("Integer(-2)", None, None)),
        size("size_at_export", with_formula("Symbol('s0')", Some(-1), None)),
        size("size_range", with_formula("Symbol('s0')", Some(2), Some(Interval { min: Some(-4), max: Some(8) }))),
        size(
            "size_never",
            with_formula("Mul(Integer(-1), Symbol('s0'))", None, Some(Interval { min: Some(1), max: Some(8) })),
        ),
        size("size_inside", inside()),
        size("size_of_weight", weight()),
        Case::new("pickle_call", &rule::ARCHIVE, "model", call()),
        Case::new("pickle_view", &rule::ARCHIVE, "model", view()),
    ]
}
