//! One bad program per rule, each with its finding; and nothing to say about what exporters made.

use std::path::PathBuf;

use edgepack_exir::archive::{Archive, Storage, Weight};
use edgepack_exir::graph::{
    About, Argument, Dialect, ExportedProgram, Expr, Graph, InputKind, InputSpec, Interval, Meta, OutputKind,
    OutputSpec, Size, Target, TensorMeta, ValueId,
};
use edgepack_exir::lower::{Options as Lowering, to_edge};
use edgepack_exir::operators::Operators;
use edgepack_exir::verify::{Options, verify, verify_archive};
use edgepack_format::finding::Severity;
use edgepack_format::rules::exir as rules;
use edgepack_format::scalar::ScalarType;

fn float(sizes: &[i64]) -> TensorMeta {
    let sizes: Vec<Size> = sizes.iter().copied().map(Size::from).collect();
    TensorMeta::contiguous(ScalarType::FLOAT, &sizes)
}

/// `relu(x) + w`, the weight being a parameter.
fn small(dialect: Dialect) -> ExportedProgram<'static> {
    let mut graph = Graph::default();
    let w = graph.add_input("p_w", float(&[2, 3]));
    let x = graph.add_input("x", float(&[2, 3]));
    let y = graph.call("aten::relu", [("self", x.into())], float(&[2, 3]));
    let z = graph.call("aten::add.Tensor", [("self", y.into()), ("other", w.into())], float(&[2, 3]));
    graph.outputs.push(z.into());
    if dialect == Dialect::Edge {
        for node in &mut graph.nodes {
            if let Target::Operator(op) = node.target.clone() {
                node.target = Target::Edge(op);
            }
        }
    }
    let mut program = ExportedProgram {
        graph,
        inputs: vec![
            InputSpec { kind: InputKind::Parameter("w".to_owned()), arg: w.into() },
            InputSpec { kind: InputKind::User, arg: x.into() },
        ],
        outputs: vec![OutputSpec { kind: OutputKind::User, arg: z.into() }],
        weights: Default::default(),
        ranges: Default::default(),
        dialect,
        about: About::default(),
    };
    program.weights.state.insert("w".to_owned(), weight(6, true));
    program
}

fn weight(count: usize, is_param: bool) -> Weight<'static> {
    let sizes: &[usize] = if count == 6 { &[2, 3] } else { &[count] };
    let mut weight = Weight::contiguous(Storage::owned("w", vec![0; count * 4]), ScalarType::FLOAT, sizes).unwrap();
    weight.is_param = is_param;
    weight
}

fn said(program: &ExportedProgram<'_>) -> Vec<String> {
    let operators = Operators::new();
    verify(program, &Options::new(&operators)).iter().map(|finding| finding.to_string()).collect()
}

type Change = fn(&mut ExportedProgram<'static>);

/// Appends a call and makes its result an output.
fn call<const N: usize>(
    program: &mut ExportedProgram<'_>,
    name: &str,
    args: [(&str, Argument); N],
    meta: TensorMeta,
) -> ValueId {
    let value = program.graph.call(name, args, meta);
    if program.dialect == Dialect::Edge
        && let Some(node) = program.graph.nodes.last_mut()
        && let Target::Operator(op) = node.target.clone()
    {
        node.target = Target::Edge(op);
    }
    program.graph.outputs.push(value.into());
    program.outputs.push(OutputSpec { kind: OutputKind::User, arg: value.into() });
    value
}

fn x(program: &ExportedProgram<'_>) -> Argument {
    program.graph.find("x").unwrap().into()
}

#[test]
fn every_rule_has_a_program_that_breaks_it() {
    let aten: &[(&str, Change)] = &[
        ("EXIR-A01", |program| {
            let x = x(program);
            call(program, "aten::silu", [("self", x)], float(&[2, 3]));
        }),
        ("EXIR-B02", |program| program.graph.set_meta(program.graph.find("x").unwrap(), Meta::Unknown)),
        ("EXIR-B03", |program| program.graph.nodes[0].target = Target::Other("torch.nn.functional.relu".to_owned())),
        ("EXIR-B04", |program| {
            let x = x(program);
            call(program, "aten::relu_", [("self", x)], float(&[2, 3]));
        }),
        ("EXIR-B05", |program| {
            let x = x(program);
            call(program, "my::twice", [("self", x)], float(&[2, 3]));
        }),
        ("EXIR-B06", |program| drop(program.graph.nodes[1].take_arg("other"))),
        ("EXIR-B06", |program| program.graph.nodes[0].set_arg("strength", 2i64)),
        ("EXIR-B08", |program| program.graph.nodes.reverse()),
        ("EXIR-B09", |program| {
            let again = program.graph.nodes[0].clone();
            program.graph.nodes.insert(1, again);
        }),
        ("EXIR-B10", |program| {
            let y = program.graph.nodes[0].result().unwrap();
            program.graph.set_meta(y, float(&[3, 2]).into());
        }),
        ("EXIR-B11", |program| {
            let x = x(program);
            call(program, "aten::nonzero", [("self", x)], float(&[2, 3]));
        }),
        ("EXIR-B12", |program| {
            let x = program.graph.find("x").unwrap();
            program.graph.set_meta(x, float(&[-2, 3]).into());
        }),
        ("EXIR-B12", |program| {
            let x = program.graph.find("x").unwrap();
            let strides = vec![3i64.into(), (-1i64).into()];
            program.graph.set_meta(x, TensorMeta { strides, ..float(&[2, 3]) }.into());
        }),
        ("EXIR-B12", |program| {
            let x = program.graph.find("x").unwrap();
            program.graph.set_meta(x, TensorMeta { storage_offset: (-1i64).into(), ..float(&[2, 3]) }.into());
        }),
        ("EXIR-B12", |program| {
            program.ranges.insert("s0".to_owned(), Interval { min: Some(-3), max: Some(8) });
            let open = Size::Symbolic(Expr::symbol("s0"), Some(2));
            let x = program.graph.find("x").unwrap();
            program.graph.set_meta(x, TensorMeta::contiguous(ScalarType::FLOAT, &[open, 3i64.into()]).into());
        }),
        ("EXIR-L04", |program| program.graph.nodes[1].set_arg("other", 2i64)),
        ("EXIR-L05", |program| {
            let open = Size::Symbolic(Expr::symbol("s0"), Some(2));
            let x = program.graph.find("x").unwrap();
            program.graph.set_meta(x, TensorMeta::contiguous(ScalarType::FLOAT, &[open, 3i64.into()]).into());
        }),
        ("EXIR-P01", |program| drop(program.inputs.pop())),
        ("EXIR-P01", |program| program.graph.inputs.swap(0, 1)),
        ("EXIR-P02", |program| program.weights.state.clear()),
        ("EXIR-P02", |program| drop(program.weights.state.insert("w".to_owned(), weight(6, false)))),
        ("EXIR-P03", |program| {
            program.inputs[0].kind = InputKind::Buffer { name: "b".to_owned(), persistent: true };
        }),
        ("EXIR-P04", |program| {
            program.inputs[0].kind = InputKind::Buffer { name: "w".to_owned(), persistent: false };
        }),
        ("EXIR-P06", |program| program.inputs[0].kind = InputKind::Constant("c".to_owned())),
        ("EXIR-P07", |program| drop(program.outputs.pop())),
        ("EXIR-P08", |program| {
            let x = program.graph.find("x").unwrap();
            program.graph.outputs.push(x.into());
            let kind = OutputKind::InputMutation("x".to_owned());
            program.outputs.push(OutputSpec { kind, arg: x.into() });
        }),
        ("EXIR-P08", |program| program.outputs[0].kind = OutputKind::BufferMutation("nobody".to_owned())),
        ("EXIR-P11", |program| drop(program.weights.state.insert("w".to_owned(), weight(5, true)))),
    ];
    let edge: &[(&str, Change)] = &[
        ("EXIR-E02", |program| {
            if let Target::Edge(op) = program.graph.nodes[0].target.clone() {
                program.graph.nodes[0].target = Target::Operator(op);
            }
        }),
        ("EXIR-E03", |program| {
            let x = x(program);
            call(program, "aten::clone", [("self", x)], float(&[2, 3]));
        }),
        ("EXIR-E06", |program| {
            let value = program.graph.add_value("m", Meta::Int(3i64.into()));
            let mut node = program.graph.nodes[0].clone();
            node.name = "m".to_owned();
            node.target = Target::Symbolic("torch.sym_max".to_owned());
            node.inputs.clear();
            node.outputs = vec![value.into()];
            program.graph.nodes.push(node);
        }),
        ("EXIR-L01", |program| {
            let x = x(program);
            call(program, "aten::view", [("self", x), ("size", Argument::ints([6]))], float(&[6]));
        }),
        ("EXIR-L02", |program| {
            let y = program.graph.nodes[0].result().unwrap();
            let strides = vec![1i64.into(), 2i64.into()];
            program.graph.set_meta(y, TensorMeta { strides, ..float(&[2, 3]) }.into());
        }),
        ("EXIR-L03", |program| {
            program.graph.outputs.push(Argument::Int(1));
            program.outputs.push(OutputSpec { kind: OutputKind::User, arg: Argument::Int(1) });
        }),
        ("EXIR-T01", |program| {
            let y = program.graph.nodes[0].result().unwrap();
            let long = TensorMeta { scalar_type: ScalarType::LONG, ..float(&[2, 3]) };
            program.graph.set_meta(y, long.into());
        }),
    ];
    let mut messages = String::new();
    for (dialect, cases) in [(Dialect::Aten, aten), (Dialect::Edge, edge)] {
        assert_eq!(said(&small(dialect)), Vec::<String>::new());
        for (rule, change) in cases {
            let mut program = small(dialect);
            change(&mut program);
            let said = said(&program);
            assert!(said.iter().any(|finding| finding.contains(rule)), "{rule}: {said:#?}");
            messages.extend(said.iter().map(|finding| format!("{finding}\n")));
            messages.push('\n');
        }
    }
    insta::assert_snapshot!(messages);
}

#[test]
fn rules_that_options_turn_on() {
    let operators = Operators::new();
    let mut program = small(Dialect::Edge);
    let x = x(&program);
    call(&mut program, "theirs::op", [("self", x.clone())], float(&[2, 3]));
    let backend = Options { backend: true, ..Options::new(&operators) };
    let findings = verify(&program, &backend);
    assert!(findings.iter().any(|finding| finding.rule == &rules::NAMESPACE));
    let mut own = Operators::new();
    own.add("theirs::op(Tensor self) -> Tensor").unwrap();
    let known = Options { backend: true, namespaces: vec!["theirs".to_owned()], ..Options::new(&own) };
    let findings = verify(&program, &known);
    assert!(!findings.iter().any(|finding| finding.rule == &rules::NAMESPACE));
    assert!(findings.iter().any(|finding| finding.rule == &rules::NO_META_KERNEL));
    own.add_with_shape("theirs::op(Tensor self) -> Tensor", |call| Some(vec![call.tensor("self")?.clone()])).unwrap();
    let known = Options { backend: true, namespaces: vec!["theirs".to_owned()], ..Options::new(&own) };
    assert!(verify(&program, &known).is_empty());

    let mut program = small(Dialect::Edge);
    call(&mut program, "dim_order_ops::_clone_dim_order", [("self", x.clone())], float(&[2, 3]));
    let formats = Options { memory_formats: true, ..Options::new(&operators) };
    assert!(verify(&program, &formats).iter().any(|finding| finding.rule == &rules::DIM_ORDER));

    let mut program = small(Dialect::Aten);
    call(&mut program, "aten::silu", [("self", x)], float(&[2, 3]));
    let preserved = Options { preserved: vec!["aten::silu".to_owned()], ..Options::new(&operators) };
    assert!(verify(&program, &preserved).is_empty());
}

#[test]
fn nestings_are_held_against_the_signature() {
    let own = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data/corpus/pt2/add/model.pt2");
    let bytes = std::fs::read(own).unwrap();
    let mut program = Archive::parse(&bytes).unwrap().program().unwrap();
    assert!(said(&program).is_empty());
    let call = program.about.module_call_graph.iter_mut().find(|entry| entry.fqn.is_empty()).unwrap();
    call.signature.as_mut().unwrap().out_spec = "[1, {}]".to_owned();
    assert!(said(&program)[0].contains("EXIR-P10"));
}

#[test]
fn broken_archives_are_findings() {
    let own = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data/corpus/pt2/add/model.pt2");
    let bytes = std::fs::read(own).unwrap();
    assert!(verify_archive(&bytes).is_empty());
    for len in [0, 1, 100, bytes.len() / 2, bytes.len() - 1] {
        let findings = verify_archive(&bytes[..len]);
        assert!(findings.iter().any(|finding| finding.rule == &rules::ARCHIVE), "{len}");
    }
}

/// The archives of the repository's own corpus and of another one, if there is one.
fn archives(name: &str) -> Vec<PathBuf> {
    let own = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data/corpus");
    let other = std::env::var("EDGEPACK_CORPUS").ok();
    let corpora = [Some(own.to_owned()), other].into_iter().flatten();
    let models = corpora.flat_map(|corpus| std::fs::read_dir(format!("{corpus}/pt2")).into_iter().flatten());
    let mut found: Vec<PathBuf> = models.map(|model| model.unwrap().path().join(name)).collect();
    found.retain(|path| path.exists());
    found
}

#[test]
fn exporters_break_no_rule() {
    let operators = Operators::new();
    for name in ["model.pt2", "model_raw.pt2"] {
        for path in archives(name) {
            let program = Archive::open(&path).unwrap().program().unwrap();
            let findings = verify(&program, &Options::new(&operators));
            let errors: Vec<_> = findings
                .iter()
                .filter(|finding| finding.rule.severity == Severity::Error)
                // The reference decomposes it later, so that archives still have it.
                .filter(|finding| !finding.message.contains("linalg_vector_norm"))
                .map(ToString::to_string)
                .collect();
            assert!(errors.is_empty(), "{}: {errors:#?}", path.display());
            for like_reference in [false, true] {
                let options = Lowering { like_reference, ..Lowering::default() };
                let edge = to_edge(program.clone(), &options).unwrap();
                let findings = verify(&edge, &Options::new(&operators).dialect(Dialect::Edge));
                let errors: Vec<_> = findings
                    .iter()
                    .filter(|finding| finding.rule.severity == Severity::Error)
                    .map(ToString::to_string)
                    .collect();
                assert!(errors.is_empty(), "{}: {errors:#?}", path.display());
            }
        }
    }
}
