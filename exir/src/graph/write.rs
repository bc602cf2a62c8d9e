//! From a graph to the document.
//!
//! The content of a list decides its spelling: literals only, or computed items too.

use std::collections::BTreeMap;

use super::program::{DIALECT, InputKind, OutputKind};
use super::value::{Meta, Size};
use super::{
    About, Argument, Dialect, ExportedProgram, Graph, InputSpec, ListKind, LoweredPart, Node, OutputSpec, Target,
    ValueId, codes, modules,
};
use crate::json::{self, Name, Real};
use crate::operators::Operators;

impl ExportedProgram<'_> {
    /// The document of this program, as `torch.export.load` takes it. It has no Edge dialect: such programs are vouched
    /// for as functional ones, with a note that says what they are.
    pub fn to_document(&self) -> json::ExportedProgram {
        self.document(false)
    }

    /// The document, with names of the Edge dialect or without.
    pub(crate) fn document(&self, edge: bool) -> json::ExportedProgram {
        let graph = &self.graph;
        json::ExportedProgram {
            graph_module: json::GraphModule {
                graph: graph.document(&Form { modules: &self.about.modules, edge }),
                signature: json::GraphSignature {
                    input_specs: self.inputs.iter().map(|spec| input_spec(graph, spec)).collect(),
                    output_specs: self.outputs.iter().map(|spec| output_spec(graph, spec)).collect(),
                },
                module_call_graph: self.calls(),
                metadata: self.notes(),
                treespec_namedtuple_fields: self.about.treespec_namedtuple_fields.clone(),
            },
            opset_version: self.about.opset_version.clone(),
            range_constraints: self
                .ranges
                .iter()
                .map(|(name, range)| (name.clone(), json::RangeConstraint { min_val: range.min, max_val: range.max }))
                .collect(),
            schema_version: self.version(),
            verifiers: vec![if self.dialect == Dialect::Edge { Dialect::Aten } else { self.dialect }.name().to_owned()],
            torch_version: self.about.torch_version.clone(),
            guards_code: self.about.guards_code.clone(),
        }
    }
}

impl ExportedProgram<'_> {
    /// The version that the document is of: documents of another count become those of today.
    fn version(&self) -> json::SchemaVersion {
        let today = About::default().schema_version;
        match self.about.schema_version.major {
            0 => self.about.schema_version,
            major if major == today.major => self.about.schema_version,
            _ => today,
        }
    }

    fn notes(&self) -> BTreeMap<String, String> {
        let mut notes = self.about.metadata.clone();
        notes.remove(DIALECT);
        if self.dialect == Dialect::Edge {
            notes.insert(DIALECT.to_owned(), Dialect::Edge.name().to_owned());
        }
        notes
    }

    /// Returns the calls of modules by each other. Readers need the nesting of the arguments of the whole program; if
    /// none was recorded, arguments form a flat list, and so do results, unless there is just one.
    fn calls(&self) -> Vec<json::ModuleCallEntry> {
        let mut calls = self.about.module_call_graph.clone();
        if !calls.iter().any(|call| call.fqn.is_empty()) {
            let arguments = self.inputs.iter().filter(|spec| spec.kind == InputKind::User).count();
            let results = self.outputs.iter().filter(|spec| spec.kind == OutputKind::User).count();
            let keywords = r#"{"type":"builtins.dict","context":"[]","children_spec":[]}"#;
            let both = tuple(&[&tuple(&vec![LEAF; arguments]), keywords]);
            let result = if results == 1 { LEAF.to_owned() } else { tuple(&vec![LEAF; results]) };
            let signature = json::ModuleCallSignature {
                inputs: Vec::new(),
                outputs: Vec::new(),
                in_spec: format!("[1,{both}]"),
                out_spec: format!("[1,{result}]"),
                forward_arg_names: None,
            };
            calls.insert(0, json::ModuleCallEntry { fqn: String::new(), signature: Some(signature) });
        }
        calls
    }
}

/// Form in which a graph is written.
#[derive(Default)]
struct Form<'m> {
    /// Lowered modules that calls refer to.
    modules: &'m [LoweredPart],
    /// True if operators of the Edge dialect have names of their own.
    edge: bool,
}

/// A value in the description of a nesting.
const LEAF: &str = r#"{"type":null,"context":null,"children_spec":[]}"#;

/// A tuple in the description of a nesting.
fn tuple(items: &[&str]) -> String {
    format!(r#"{{"type":"builtins.tuple","context":"null","children_spec":[{}]}}"#, items.join(","))
}

impl Graph {
    /// The form of this graph in the document. Calls of lowered modules name them only.
    pub fn to_document(&self) -> json::Graph {
        self.document(&Form::default())
    }

    fn document(&self, form: &Form<'_>) -> json::Graph {
        let mut document = json::Graph {
            inputs: self.inputs.iter().map(|input| self.spelled(input)).collect(),
            outputs: self.outputs.iter().map(|output| self.spelled(output)).collect(),
            nodes: self.nodes.iter().map(|node| self.spelled_node(node, form)).collect(),
            is_single_tensor_return: self.is_single_tensor_return,
            ..json::Graph::default()
        };
        for value in &self.values {
            let name = value.name.clone();
            match &value.meta {
                Meta::Tensor(meta) => drop(document.tensor_values.insert(name, meta.to_document())),
                Meta::Int(size) => drop(document.sym_int_values.insert(name, size.to_document())),
                Meta::Float(float) => drop(document.sym_float_values.insert(name, float.clone())),
                Meta::Bool(truth) => drop(document.sym_bool_values.insert(name, truth.clone())),
                Meta::Object(class) => {
                    let object = json::CustomObjArgument { name: name.clone(), class_fqn: class.clone() };
                    document.custom_obj_values.insert(name, object);
                }
                Meta::Unknown => {}
            }
        }
        document
    }

    fn name_of(&self, id: ValueId) -> Name {
        Name { name: self.value(id).map_or_else(String::new, |value| value.name.clone()) }
    }

    fn spelled_node(&self, node: &Node, form: &Form<'_>) -> json::Node {
        let operators = Operators::new();
        let schema = node.target.operator().and_then(|op| operators.schema(op));
        // What only a name can give is given by name, whoever made the node.
        let named = |name: &str| {
            let parameters = schema.iter().flat_map(|schema| schema.args());
            parameters.into_iter().any(|parameter| parameter.kw_only && parameter.name == name)
        };
        let input = |input: &super::NamedArgument| json::NamedArgument {
            name: input.name.clone(),
            arg: match &input.arg {
                Argument::Graph(name, graph) => Self::spelled_graph(name, graph, form),
                arg => self.spelled(arg),
            },
            kind: Some(if input.keyword || named(&input.name) { 2 } else { 1 }),
        };
        let inputs = match node.target {
            Target::Delegate(index) => {
                modules::inputs(node, form.modules.get(index), index).iter().map(input).collect()
            }
            _ => node.inputs.iter().map(input).collect(),
        };
        json::Node {
            target: match &node.target {
                target @ Target::Edge(_) if form.edge => target.spelled_edge(),
                target => target.spelled(),
            },
            inputs,
            outputs: node.outputs.iter().map(|output| self.spelled(output)).collect(),
            metadata: node.metadata.clone(),
            is_hop_single_tensor_return: node.is_hop_single_tensor_return,
            name: Some(node.name.clone()),
        }
    }

    fn spelled_graph(name: &str, graph: &Graph, form: &Form<'_>) -> json::Argument {
        let graph = json::GraphArgument { name: name.to_owned(), graph: graph.document(form) };
        json::Argument::AsGraph(Box::new(graph))
    }

    fn spelled(&self, argument: &Argument) -> json::Argument {
        use json::Argument as Json;
        match argument {
            Argument::None => Json::AsNone(true),
            Argument::Value(id) => {
                let name = self.name_of(*id);
                match self.value(*id).map(|value| &value.meta) {
                    Some(Meta::Int(_)) => Json::AsSymInt(json::SymIntArgument::AsName(name.name)),
                    Some(Meta::Float(_)) => Json::AsSymFloat(json::SymFloatArgument::AsName(name.name)),
                    Some(Meta::Bool(_)) => Json::AsSymBool(json::SymBoolArgument::AsName(name.name)),
                    Some(Meta::Object(class)) => {
                        Json::AsCustomObj(json::CustomObjArgument { name: name.name, class_fqn: class.clone() })
                    }
                    _ => Json::AsTensor(name),
                }
            }
            Argument::Int(number) => Json::AsInt(*number),
            Argument::Float(number) => Json::AsFloat(Real(*number)),
            Argument::Bool(truth) => Json::AsBool(*truth),
            Argument::Text(text) => Json::AsString(text.clone()),
            Argument::Complex(number) => Json::AsComplex(*number),
            Argument::ScalarType(scalar_type) => Json::AsScalarType(codes::scalar_type_code(*scalar_type).unwrap_or(0)),
            Argument::MemoryFormat(format) => Json::AsMemoryFormat(format.code()),
            Argument::Layout(code) => Json::AsLayout(*code),
            Argument::Device(device) => Json::AsDevice(device.clone()),
            Argument::Operator(name) => Json::AsOperator(name.clone()),
            Argument::Graph(name, graph) => Self::spelled_graph(name, graph, &Form::default()),
            Argument::Map(map) => {
                Json::AsStringToArgument(map.iter().map(|(key, value)| (key.clone(), self.spelled(value))).collect())
            }
            Argument::List(kind, items) => self.spelled_list(*kind, items),
        }
    }

    fn spelled_list(&self, kind: ListKind, items: &[Argument]) -> json::Argument {
        use json::Argument as Json;
        let computed = items.iter().any(|item| item.value().is_some());
        let name = |item: &Argument| item.value().map(|id| self.name_of(id)).unwrap_or(Name { name: String::new() });
        let int = |item: &Argument| item.as_int().unwrap_or_default();
        let float = |item: &Argument| match item {
            Argument::Float(number) => Real(*number),
            other => Real(int(other) as f64),
        };
        let truth = |item: &Argument| matches!(item, Argument::Bool(true));
        match kind {
            ListKind::Tensors => Json::AsTensors(items.iter().map(name).collect()),
            ListKind::OptionalTensors => Json::AsOptionalTensors(
                items
                    .iter()
                    .map(|item| match item.value() {
                        Some(id) => json::OptionalTensor::AsTensor(self.name_of(id)),
                        None => json::OptionalTensor::AsNone(true),
                    })
                    .collect(),
            ),
            ListKind::NestedTensors => {
                Json::AsNestedTensors(items.iter().map(|list| list.items().iter().map(name).collect()).collect())
            }
            ListKind::Ints if computed => Json::AsSymInts(
                items
                    .iter()
                    .map(|item| match item.value() {
                        Some(id) => json::SymIntArgument::AsName(self.name_of(id).name),
                        None => json::SymIntArgument::AsInt(int(item)),
                    })
                    .collect(),
            ),
            ListKind::Ints => Json::AsInts(items.iter().map(int).collect()),
            ListKind::Floats if computed => Json::AsSymFloats(
                items
                    .iter()
                    .map(|item| match item.value() {
                        Some(id) => json::SymFloatArgument::AsName(self.name_of(id).name),
                        None => json::SymFloatArgument::AsFloat(float(item)),
                    })
                    .collect(),
            ),
            ListKind::Floats => Json::AsFloats(items.iter().map(float).collect()),
            ListKind::Bools if computed => Json::AsSymBools(
                items
                    .iter()
                    .map(|item| match item.value() {
                        Some(id) => json::SymBoolArgument::AsName(self.name_of(id).name),
                        None => json::SymBoolArgument::AsBool(truth(item)),
                    })
                    .collect(),
            ),
            ListKind::Bools => Json::AsBools(items.iter().map(truth).collect()),
            ListKind::Strings => Json::AsStrings(
                items
                    .iter()
                    .filter_map(|item| match item {
                        Argument::Text(text) => Some(text.clone()),
                        _ => None,
                    })
                    .collect(),
            ),
            ListKind::IntLists => {
                Json::AsIntLists(items.iter().map(|list| list.items().iter().map(int).collect()).collect())
            }
            ListKind::FloatLists => {
                Json::AsFloatLists(items.iter().map(|list| list.items().iter().map(float).collect()).collect())
            }
        }
    }
}

fn input_spec(graph: &Graph, spec: &InputSpec) -> json::InputSpec {
    use json::InputSpec as Json;
    let name = || spec.arg.value().map(|id| graph.name_of(id)).unwrap_or(Name { name: String::new() });
    match &spec.kind {
        InputKind::User => Json::UserInput { arg: graph.spelled(&spec.arg) },
        InputKind::Parameter(parameter) => Json::Parameter { arg: name(), parameter_name: parameter.clone() },
        InputKind::Buffer { name: buffer, persistent } => {
            Json::Buffer { arg: name(), buffer_name: buffer.clone(), persistent: *persistent }
        }
        InputKind::Constant(constant) => Json::TensorConstant { arg: name(), tensor_constant_name: constant.clone() },
        InputKind::Literal(literal) => Json::ConstantInput {
            name: literal.clone(),
            value: match &spec.arg {
                Argument::Int(number) => json::ConstantValue::AsInt(*number),
                Argument::Float(number) => json::ConstantValue::AsFloat(Real(*number)),
                Argument::Bool(truth) => json::ConstantValue::AsBool(*truth),
                Argument::Text(text) => json::ConstantValue::AsString(text.clone()),
                _ => json::ConstantValue::AsNone(true),
            },
        },
        InputKind::Object(object) => {
            let class_fqn = match spec.arg.value().and_then(|id| graph.value(id)).map(|value| &value.meta) {
                Some(Meta::Object(class)) => class.clone(),
                _ => String::new(),
            };
            let arg = json::CustomObjArgument { name: name().name, class_fqn };
            Json::CustomObj { arg, custom_obj_name: object.clone() }
        }
        InputKind::Token => Json::Token { arg: name() },
    }
}

fn output_spec(graph: &Graph, spec: &OutputSpec) -> json::OutputSpec {
    use json::OutputSpec as Json;
    let arg = spec.arg.value().map(|id| graph.name_of(id)).unwrap_or(Name { name: String::new() });
    match &spec.kind {
        OutputKind::User => Json::UserOutput { arg: graph.spelled(&spec.arg) },
        OutputKind::Loss => Json::LossOutput { arg },
        OutputKind::BufferMutation(name) => Json::BufferMutation { arg, buffer_name: name.clone() },
        OutputKind::ParameterMutation(name) => Json::ParameterMutation { arg, parameter_name: name.clone() },
        OutputKind::InputMutation(name) => Json::UserInputMutation { arg, user_input_name: name.clone() },
        OutputKind::GradientToParameter(name) => Json::GradientToParameter { arg, parameter_name: name.clone() },
        OutputKind::GradientToInput(name) => Json::GradientToUserInput { arg, user_input_name: name.clone() },
        OutputKind::Token => Json::Token { arg },
    }
}

impl From<Size> for Meta {
    fn from(size: Size) -> Self {
        Meta::Int(size)
    }
}
