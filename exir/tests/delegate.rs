//! Parts of programs given to a backend.

use edgepack_builder::NamedDataStore;
use edgepack_builder::content::Data;
use edgepack_builder::preprocess::{Preprocess, PreprocessError};
use edgepack_exir::Error;
use edgepack_exir::graph::{
    About, Argument, Dialect, ExportedProgram, Graph, InputKind, InputSpec, Node, OutputKind, OutputSpec, TensorMeta,
};
use edgepack_exir::lower::{ByOperator, Options, Part, Partitioner, Pass, ProgramManager};
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
    let output = |value| OutputSpec { kind: OutputKind::User, arg: Argument::Value(value) };
    ExportedProgram {
        graph,
        inputs: vec![InputSpec { kind: InputKind::User, arg: x.into() }],
        outputs: vec![output(a), output(c)],
        weights: Default::default(),
        ranges: Default::default(),
        dialect: Dialect::Aten,
        about: About::default(),
    }
}

/// Its payload is its program as text.
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
        Ok(vec![Part { nodes: self.0.clone(), specs: Vec::new() }])
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
                node.target = edgepack_exir::graph::Target::Edge(op);
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
