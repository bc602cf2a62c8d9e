//! Parts of programs given to a backend.

use edgepack_builder::NamedDataStore;
use edgepack_builder::content::Data;
use edgepack_builder::preprocess::{Preprocess, PreprocessError};
use edgepack_exir::Error;
use edgepack_exir::archive::Archive;
use edgepack_exir::graph::{
    About, Argument, Dialect, ExportedProgram, Graph, InputKind, InputSpec, NamedArgument, Node, OutputKind,
    OutputSpec, Target, TensorMeta,
};
use edgepack_exir::lower::{ByOperator, Options, Part, Partitioner, Pass, ProgramManager, lower};
use edgepack_format::extent::FileExtent;
use edgepack_format::limits::Limits;
use edgepack_format::pte::{CompileSpec, InstructionArguments};
use edgepack_format::scalar::ScalarType;

/// `neg(relu(abs(x)))`, and `abs(x)` itself.
fn program() -> ExportedProgram<'static> {
    let meta = || TensorMeta::contiguous(ScalarType::FLOAT, &[2i64.into(), 3i64.into()]);
    let mut graph = Graph::default();
    let x = graph.add_input("x", meta());
    let a = graph.call("aten::abs", [("self", x.into())], meta());
    let b = graph.call("aten::relu", [("self", a.into())], meta());
    let c = graph.call("aten::neg", [("self", b.into())], meta());
    graph.outputs = vec![a.into(), c.into()];
    ExportedProgram::from_graph(graph, Dialect::Aten)
}

/// Backend whose payload is the program as text.
struct Writer;

impl Preprocess<ExportedProgram<'static>> for Writer {
    fn backend(&self) -> &str {
        "Writer"
    }

    fn preprocess<'d>(
        &self,
        graph: &ExportedProgram<'static>,
        _: &[CompileSpec<'_>],
        store: &mut NamedDataStore<'d>,
    ) -> Result<Data<'d>, PreprocessError> {
        store.add("shared", b"data".to_vec(), 16, None)?;
        Ok(graph.to_string().into_bytes().into())
    }
}

#[test]
fn parts_become_delegates() {
    let mut manager = ProgramManager::new(Options::default());
    manager.add("forward", program()).unwrap();
    let supports = |node: &Node| node.calls("aten::abs") || node.calls("aten::relu");
    manager.delegate(&ByOperator { supports, specs: Vec::new() }, &Writer).unwrap();
    let text = manager.program("forward").unwrap().to_string();
    assert!(text.contains("delegate 0") && !text.contains("relu("), "{text}");
    assert!(manager.verify().is_empty(), "{}", manager.verify());
    let bytes = manager.finish().unwrap().to_bytes().unwrap();
    let verdict = edgepack_format::pte::verify::verify_all(&bytes, FileExtent::of(&bytes), &Limits::DEFAULT);
    assert!(!verdict.findings.has_errors());
    let program = verdict.program.unwrap();
    let plan = program.plans().iter().next().unwrap().unwrap();
    let delegates = plan.delegates.as_ref().map_or(0, |delegates| delegates.iter().count());
    assert_eq!(delegates, 1);
    let chains = plan.chains.as_ref().unwrap();
    let instructions: Vec<_> = chains
        .iter()
        .flat_map(|chain| {
            let chain = chain.unwrap();
            chain
                .instructions
                .iter()
                .flat_map(|rows| rows.iter())
                .map(|row| row.unwrap().instr_args)
                .collect::<Vec<_>>()
        })
        .collect();
    assert!(matches!(
        instructions.as_slice(),
        [Some(InstructionArguments::DelegateCall(_)), Some(InstructionArguments::KernelCall(_))]
    ));
}

struct Fixed(Vec<usize>);

impl Partitioner for Fixed {
    fn partition(&self, _: &ExportedProgram<'_>) -> Result<Vec<Part>, Error> {
        Ok(vec![Part { nodes: self.0.clone(), ..Part::default() }])
    }
}

#[test]
fn parts_that_are_left_and_entered_again_are_refused() {
    for (nodes, message) in
        [(vec![0, 2], "comes back"), (vec![7], "none of the graph's"), (vec![], "none of the graph's")]
    {
        let mut manager = ProgramManager::new(Options::default());
        manager.add("forward", program()).unwrap();
        let error = manager.delegate(&Fixed(nodes), &Writer).map(drop).unwrap_err();
        assert!(error.to_string().contains(message), "{error}");
    }
}

/// Turns every absolute value into a call of something else.
struct Renames(&'static str);

impl Pass for Renames {
    fn name(&self) -> &str {
        "renames"
    }

    fn run(&self, program: &mut ExportedProgram<'_>) -> Result<(), Error> {
        for node in &mut program.graph.nodes {
            if node.calls("aten::abs") {
                let op = edgepack_exir::graph::OpName::parse(self.0).unwrap();
                node.target = Target::Edge(op);
            }
        }
        Ok(())
    }
}

#[test]
fn programs_are_verified_after_each_pass() {
    let mut manager = ProgramManager::new(Options::default());
    manager.add("forward", program()).unwrap();
    manager.transform(&[&Renames("aten::ceil")]).unwrap();
    assert!(manager.program("forward").unwrap().to_string().contains("aten::ceil"));
    let mut manager = ProgramManager::new(Options::default());
    manager.add("forward", program()).unwrap();
    let error = manager.transform(&[&Renames("aten::isnan")]).map(drop).unwrap_err();
    assert!(error.to_string().contains("after pass `renames`"), "{error}");
    assert!(manager.program("forward").unwrap().to_string().contains("aten::abs"));
}

/// `cond(x, neg(abs(x)), relu(x))`.
fn branches() -> ExportedProgram<'static> {
    let meta = || TensorMeta::contiguous(ScalarType::FLOAT, &[2i64.into(), 3i64.into()]);
    let branch = |names: &[&str]| {
        let mut graph = Graph::default();
        let mut value = graph.add_input("x", meta());
        for name in names {
            value = graph.call(name, [("self", value.into())], meta());
        }
        graph.outputs = vec![value.into()];
        graph
    };
    let mut graph = Graph::default();
    let truth = graph.add_input("truth", TensorMeta::contiguous(ScalarType::BOOL, &[]));
    let x = graph.add_input("x", meta());
    let y = graph.add_value("y", meta());
    let (yes, no) = (branch(&["aten::abs", "aten::neg"]), branch(&["aten::relu", "aten::neg", "aten::abs"]));
    let inputs = [
        truth.into(),
        Argument::Graph("yes".to_owned(), Box::new(yes)),
        Argument::Graph("no".to_owned(), Box::new(no)),
        Argument::tensors([x]),
    ];
    graph.nodes.push(Node {
        name: "cond".to_owned(),
        target: Target::HigherOrder("cond".to_owned()),
        inputs: inputs.map(|arg| NamedArgument { name: String::new(), arg, keyword: false }).to_vec(),
        outputs: vec![Argument::tensors([y])],
        metadata: Default::default(),
        is_hop_single_tensor_return: None,
    });
    graph.outputs = vec![y.into()];
    ExportedProgram::from_graph(graph, Dialect::Aten)
}

fn delegate_calls(bytes: &[u8]) -> usize {
    let verdict = edgepack_format::pte::verify::verify_all(bytes, FileExtent::of(bytes), &Limits::DEFAULT);
    assert!(!verdict.findings.has_errors(), "{}", verdict.findings);
    let program = verdict.program.unwrap();
    let plan = program.plans().iter().next().unwrap().unwrap();
    let chains = plan.chains.as_ref().unwrap();
    chains
        .iter()
        .flat_map(|chain| {
            let rows = chain.unwrap().instructions.unwrap();
            rows.iter().map(|row| row.unwrap().instr_args).collect::<Vec<_>>()
        })
        .filter(|arguments| matches!(arguments, Some(InstructionArguments::DelegateCall(_))))
        .count()
}

#[test]
fn parts_of_branches_become_delegates() {
    let mut manager = ProgramManager::new(Options::default());
    manager.add("forward", branches()).unwrap();
    let supports = |node: &Node| node.calls("aten::abs") || node.calls("aten::relu");
    manager.delegate(&ByOperator { supports, specs: Vec::new() }, &Writer).unwrap();
    let text = manager.program("forward").unwrap().to_string();
    assert!(!text.contains("abs(") && !text.contains("relu(") && text.contains("delegate 2"), "{text}");
    assert!(!manager.verify().has_errors(), "{}", manager.verify());
    let exported = manager.export("forward").unwrap();
    let bytes = manager.finish().unwrap().to_bytes().unwrap();
    assert_eq!(delegate_calls(&bytes), 3);
    // Written and read again it is lowered to the same file.
    let mut written = Vec::new();
    exported.save_serde(&mut written).unwrap();
    let again = Archive::parse(&written).unwrap().program().unwrap();
    assert_eq!(again.about.modules, exported.about.modules);
    let built = lower(vec![("forward".to_owned(), again)], &Options::default()).unwrap();
    assert_eq!(delegate_calls(&built.to_bytes().unwrap()), 3);
    let mut manager = ProgramManager::new(Options::default());
    manager.add("forward", branches()).unwrap();
    let astray = Astray;
    let error = manager.delegate(&astray, &Writer).map(drop).unwrap_err();
    assert!(error.to_string().contains("leads nowhere"), "{error}");
}

/// Names a graph that is not there.
struct Astray;

impl Partitioner for Astray {
    fn partition(&self, _: &ExportedProgram<'_>) -> Result<Vec<Part>, Error> {
        Ok(vec![Part { nodes: vec![0], graph: vec![(0, 0)], ..Part::default() }])
    }
}

/// `total += x`, and `neg(total)`.
fn counter() -> ExportedProgram<'static> {
    let meta = || TensorMeta::contiguous(ScalarType::FLOAT, &[3i64.into()]);
    let mut graph = Graph::default();
    let (total, x) = (graph.add_input("total", meta()), graph.add_input("x", meta()));
    let sum = graph.call("aten::add.Tensor", [("self", total.into()), ("other", x.into())], meta());
    let neg = graph.call("aten::neg", [("self", sum.into())], meta());
    graph.outputs = vec![sum.into(), neg.into()];
    let mut weights = edgepack_exir::archive::Weights::default();
    let storage = edgepack_exir::archive::Storage::owned("total", vec![0; 12]);
    let weight = edgepack_exir::archive::Weight::contiguous(storage, ScalarType::FLOAT, &[3]).unwrap();
    weights.state.insert("total".to_owned(), weight);
    let buffer = InputKind::Buffer { name: "total".to_owned(), persistent: true };
    ExportedProgram {
        graph,
        inputs: vec![InputSpec { kind: buffer, arg: total.into() }, InputSpec { kind: InputKind::User, arg: x.into() }],
        outputs: vec![
            OutputSpec { kind: OutputKind::BufferMutation("total".to_owned()), arg: sum.into() },
            OutputSpec { kind: OutputKind::User, arg: neg.into() },
        ],
        weights,
        ranges: Default::default(),
        dialect: Dialect::Aten,
        about: About::default(),
    }
}

struct Sums {
    owns_state: bool,
}

impl Partitioner for Sums {
    fn partition(&self, program: &ExportedProgram<'_>) -> Result<Vec<Part>, Error> {
        let sums = program.graph.nodes.iter().enumerate().filter(|(_, node)| node.calls("aten::add.Tensor"));
        let nodes = sums.map(|(index, _)| index).collect();
        Ok(vec![Part { nodes, owns_state: self.owns_state, ..Part::default() }])
    }
}

#[test]
fn a_backend_may_own_the_buffers_of_its_part() {
    for (owns_state, inputs, outputs) in [(false, 2, 2), (true, 1, 1)] {
        let mut manager = ProgramManager::new(Options::default());
        manager.add("forward", counter()).unwrap();
        let seen = Seen::default();
        manager.delegate(&Sums { owns_state }, &seen).unwrap();
        let program = manager.program("forward").unwrap();
        assert_eq!((program.inputs.len(), program.outputs.len()), (inputs, outputs), "{program}");
        let part = seen.0.borrow().clone();
        assert_eq!(part.contains("new value of buffer total"), owns_state, "{part}");
        assert_eq!(part.contains("buffer total"), owns_state, "{part}");
        assert!(!manager.verify().has_errors(), "{}", manager.verify());
        assert_eq!(delegate_calls(&manager.finish().unwrap().to_bytes().unwrap()), 1);
    }
}

/// Keeps the text of what it was given.
#[derive(Default)]
struct Seen(std::cell::RefCell<String>);

impl Preprocess<ExportedProgram<'static>> for Seen {
    fn backend(&self) -> &str {
        "Seen"
    }

    fn preprocess<'d>(
        &self,
        graph: &ExportedProgram<'static>,
        _: &[CompileSpec<'_>],
        _: &mut NamedDataStore<'d>,
    ) -> Result<Data<'d>, PreprocessError> {
        *self.0.borrow_mut() = graph.to_string();
        Ok(b"seen".to_vec().into())
    }
}

#[test]
fn operators_outside_the_core_set_do_not_stop_passes() {
    let mut manager = ProgramManager::new(Options::default());
    manager.add("forward", program()).unwrap();
    manager.transform(&[&Renames("aten::silu")]).unwrap();
    assert!(manager.verify().to_string().contains("EXIR-A01"));
    let mut options = Options::default();
    options.operators.preserve("aten::silu").unwrap();
    let mut manager = ProgramManager::new(options);
    manager.add("forward", program()).unwrap();
    manager.transform(&[&Renames("aten::silu")]).unwrap();
    assert!(manager.verify().is_empty(), "{}", manager.verify());
}
