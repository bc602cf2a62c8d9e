//! A program: its graph, what inputs and outputs mean, its tensors.

use std::collections::BTreeMap;

use edgepack_format::room;

use super::{Argument, Graph, Interval, LoweredPart, Ranges};
use crate::archive::Weights;
use crate::json;

/// The note that says which dialect a program follows if what loads it knows no verifier of that name.
pub(super) const DIALECT: &str = "edgepack.dialect";

/// Set of rules that a program follows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Dialect {
    /// Straight out of export: composite and in-place operators.
    Training,
    /// Functional operators of the library.
    Aten,
    /// Ready to be delegated and lowered.
    Edge,
}

impl Dialect {
    /// The name verifiers go by.
    pub fn name(self) -> &'static str {
        match self {
            Dialect::Training => "TRAINING",
            Dialect::Aten => "ATEN",
            Dialect::Edge => "EDGE",
        }
    }
}

/// A program that was exported.
#[derive(Clone, Debug)]
pub struct ExportedProgram<'a> {
    /// Graph of the computation.
    pub graph: Graph,
    /// Meaning of each input of the graph.
    pub inputs: Vec<InputSpec>,
    /// Meaning of each output of the graph.
    pub outputs: Vec<OutputSpec>,
    /// Tensors of the program.
    pub weights: Weights<'a>,
    /// Range of each symbol.
    pub ranges: Ranges,
    /// The rules it follows.
    pub dialect: Dialect,
    /// Versions, call graph and notes, as the document has them.
    pub about: About,
}

impl ExportedProgram<'_> {
    /// A program without tensors of its own: the caller gives all inputs of the graph and takes all its outputs.
    pub fn from_graph(graph: Graph, dialect: Dialect) -> Self {
        let input = |arg: &Argument| InputSpec { kind: InputKind::User, arg: arg.clone() };
        let output = |arg: &Argument| OutputSpec { kind: OutputKind::User, arg: arg.clone() };
        ExportedProgram {
            inputs: graph.inputs.iter().map(input).collect(),
            outputs: graph.outputs.iter().map(output).collect(),
            graph,
            weights: Weights::default(),
            ranges: Ranges::new(),
            dialect,
            about: About::default(),
        }
    }

    /// Returns whether the program computes gradients or a loss to train with, not results alone.
    pub fn trains(&self) -> bool {
        let gradient = |kind: &OutputKind| {
            matches!(kind, OutputKind::Loss | OutputKind::GradientToParameter(_) | OutputKind::GradientToInput(_))
        };
        self.outputs.iter().any(|spec| gradient(&spec.kind))
    }

    /// Lets the signature name the outputs that the graph has now, after values were replaced.
    pub(crate) fn name_outputs(&mut self) {
        for (spec, output) in self.outputs.iter_mut().zip(&self.graph.outputs) {
            spec.arg = output.clone();
        }
    }
}

/// Content of a document beyond the graph.
#[derive(Clone, PartialEq, Debug)]
pub struct About {
    /// Version of each operator set.
    pub opset_version: BTreeMap<String, i64>,
    /// Version of the document.
    pub schema_version: json::SchemaVersion,
    /// Version of the exporter.
    pub torch_version: String,
    /// Assumptions about inputs.
    pub guards_code: Vec<String>,
    /// Calls of modules by each other.
    pub module_call_graph: Vec<json::ModuleCallEntry>,
    /// Notes.
    pub metadata: BTreeMap<String, String>,
    /// Field names of named tuples.
    pub treespec_namedtuple_fields: BTreeMap<String, json::NamedTupleDef>,
    /// Parts that backends have taken over, as delegate calls number them.
    pub modules: Vec<LoweredPart>,
}

impl Default for About {
    fn default() -> Self {
        About {
            opset_version: [("aten".to_owned(), 10)].into(),
            schema_version: json::SchemaVersion { major: 8, minor: 20 },
            torch_version: String::new(),
            guards_code: Vec::new(),
            module_call_graph: Vec::new(),
            metadata: BTreeMap::new(),
            treespec_namedtuple_fields: BTreeMap::new(),
            modules: Vec::new(),
        }
    }
}

/// Meaning of an input. Names of parameters, buffers and constants are keys of the program's tensors.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub enum InputKind {
    User,
    Parameter(String),
    Buffer {
        name: String,
        persistent: bool,
    },
    Constant(String),
    /// A literal baked in at export, under the name of the argument.
    Literal(String),
    Object(String),
    Token,
}

impl InputKind {
    /// Returns the name of the tensor that the input represents.
    pub fn tensor(&self) -> Option<&str> {
        match self {
            InputKind::Parameter(name) | InputKind::Constant(name) | InputKind::Buffer { name, .. } => Some(name),
            _ => None,
        }
    }
}

/// An input of a program.
#[derive(Clone, PartialEq, Debug)]
pub struct InputSpec {
    /// Meaning of the input.
    pub kind: InputKind,
    /// The input of the graph, as the signature names it.
    pub arg: Argument,
}

/// Meaning of an output.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub enum OutputKind {
    User,
    Loss,
    BufferMutation(String),
    ParameterMutation(String),
    /// The new value of the input of this name.
    InputMutation(String),
    GradientToParameter(String),
    GradientToInput(String),
    Token,
}

impl OutputKind {
    /// Returns whether the output is the new value of something that exists.
    pub fn is_mutation(&self) -> bool {
        matches!(self, OutputKind::BufferMutation(_) | OutputKind::ParameterMutation(_) | OutputKind::InputMutation(_))
    }
}

/// An output of a program.
#[derive(Clone, PartialEq, Debug)]
pub struct OutputSpec {
    /// Meaning of the output.
    pub kind: OutputKind,
    /// The output of the graph, as the signature names it.
    pub arg: Argument,
}

impl ExportedProgram<'_> {
    /// The names of the parameters and buffers that the program changes.
    pub fn changed(&self) -> impl Iterator<Item = &str> {
        self.outputs.iter().filter_map(|spec| match &spec.kind {
            OutputKind::BufferMutation(name) | OutputKind::ParameterMutation(name) => Some(name.as_str()),
            _ => None,
        })
    }

    /// Nesting of the arguments and of the results, as pytree strings.
    pub fn nesting(&self) -> Option<(&str, &str)> {
        let whole = self.about.module_call_graph.iter().find(|entry| entry.fqn.is_empty())?;
        let signature = whole.signature.as_ref()?;
        Some((&signature.in_spec, &signature.out_spec))
    }

    pub(super) fn ranges_of(constraints: &BTreeMap<String, json::RangeConstraint>) -> Ranges {
        let range = |range: &json::RangeConstraint| Interval { min: range.min_val, max: range.max_val };
        room::map(constraints.iter().map(|(name, constraint)| (name.clone(), range(constraint))))
    }
}
