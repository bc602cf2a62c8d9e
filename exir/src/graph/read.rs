//! From the document to a graph.
//!
//! A name that the document does not describe becomes a value of unknown meaning, so that a verifier can say so; what
//! has no form in a graph at all is an error.

use std::collections::BTreeMap;

use edgepack_format::room;

use super::program::{About, DIALECT, InputKind, OutputKind};
use super::value::{Meta, Size, TensorMeta, Value, ValueId};
use super::{
    Argument, Dialect, ExportedProgram, Graph, InputSpec, ListKind, MemoryFormat, NamedArgument, Node, OutputSpec,
    Ranges, Target, codes,
};
use crate::archive::Weights;
use crate::error::Error;
use crate::json;
use crate::operators::Operators;

impl<'a> ExportedProgram<'a> {
    /// A program from its document and tensors.
    pub fn from_document(document: json::ExportedProgram, weights: Weights<'a>) -> Result<Self, Error> {
        let module = document.graph_module;
        let mut graph = Graph::from_document(module.graph)?;
        let mut modules = Vec::new();
        super::modules::take(&mut graph, &mut modules)?;
        graph.name_arguments(&Operators::new());
        let inputs = each(module.signature.input_specs, |spec| input_spec(&mut graph, spec))?;
        let outputs = each(module.signature.output_specs, |spec| output_spec(&mut graph, spec))?;
        let ranges = Self::ranges_of(&document.range_constraints);
        graph.check_sizes(&ranges)?;
        let dialect = dialect(&document.verifiers, &module.metadata);
        if module.metadata.contains_key(DIALECT) && dialect == Dialect::Edge {
            graph.make_edge();
        }
        let mut program = ExportedProgram {
            graph,
            inputs,
            outputs,
            weights,
            ranges,
            dialect,
            about: About {
                opset_version: document.opset_version,
                schema_version: document.schema_version,
                torch_version: document.torch_version,
                guards_code: document.guards_code,
                module_call_graph: module.module_call_graph,
                metadata: module.metadata,
                treespec_namedtuple_fields: module.treespec_namedtuple_fields,
                modules,
            },
        };
        program.unwrap_tensors();
        Ok(program)
    }
}

/// Converts every item of a list.
fn each<I, T>(items: Vec<I>, mut read: impl FnMut(I) -> Result<T, Error>) -> Result<Vec<T>, Error> {
    let mut list = room::with_room(items.len())?;
    for item in items {
        list.push(read(item)?);
    }
    Ok(list)
}

/// The dialect a document follows: what its exporter vouches for, or what is noted where that has no word for it.
fn dialect(verifiers: &[String], notes: &BTreeMap<String, String>) -> Dialect {
    let vouched = |name: &str| verifiers.iter().any(|verifier| verifier == name);
    let edge = vouched(Dialect::Edge.name()) || notes.get(DIALECT).is_some_and(|name| name == Dialect::Edge.name());
    match vouched(Dialect::Training.name()) {
        true => Dialect::Training,
        false if edge => Dialect::Edge,
        false => Dialect::Aten,
    }
}

impl Graph {
    /// A graph from its form in the document.
    pub fn from_document(document: json::Graph) -> Result<Self, Error> {
        let mut graph = Graph { is_single_tensor_return: document.is_single_tensor_return, ..Graph::default() };
        for (name, meta) in &document.tensor_values {
            let meta = TensorMeta::from_document(meta).map_err(|error| error.within(format!("value `{name}`")))?;
            graph.define(name, Meta::Tensor(meta))?;
        }
        for (name, size) in &document.sym_int_values {
            let size = Size::from_document(size).map_err(|error| error.within(format!("value `{name}`")))?;
            graph.define(name, Meta::Int(size))?;
        }
        for (name, value) in document.sym_float_values {
            graph.define(&name, Meta::Float(value))?;
        }
        for (name, value) in document.sym_bool_values {
            graph.define(&name, Meta::Bool(value))?;
        }
        for (name, object) in document.custom_obj_values {
            graph.define(&name, Meta::Object(object.class_fqn))?;
        }
        graph.inputs = graph.arguments(document.inputs)?;
        room::grow(&mut graph.nodes, document.nodes.len())?;
        for (index, node) in document.nodes.into_iter().enumerate() {
            let node = graph.node(node, index)?;
            graph.nodes.push(node);
        }
        graph.outputs = graph.arguments(document.outputs)?;
        Ok(graph)
    }

    /// Refuses tensors that the ranges of symbols put below zero, in this graph and those inside it.
    fn check_sizes(&self, ranges: &Ranges) -> Result<(), Error> {
        for (_, value) in self.values() {
            if let Some(message) = value.meta.tensor().and_then(|meta| meta.negative(ranges)) {
                return Err(Error::Size { place: format!("value `{}`", value.name), message });
            }
        }
        for node in &self.nodes {
            for input in &node.inputs {
                if let Argument::Graph(_, inner) = &input.arg {
                    inner.check_sizes(ranges).map_err(|error| error.within(format!("node `{}`", node.name)))?;
                }
            }
        }
        Ok(())
    }

    /// Lets all calls be those of the Edge dialect, which their spelling did not say.
    fn make_edge(&mut self) {
        for node in &mut self.nodes {
            node.target.make_edge();
            for input in &mut node.inputs {
                if let Argument::Graph(_, inner) = &mut input.arg {
                    inner.make_edge();
                }
            }
        }
    }

    fn define(&mut self, name: &str, meta: Meta) -> Result<ValueId, Error> {
        let id = u32::try_from(self.values.len()).map_err(|_| Error::program(name, "too many values"))?;
        if self.names.insert(name.to_owned(), ValueId(id)).is_some() {
            return Err(Error::program(format!("value `{name}`"), "it is described twice"));
        }
        room::push(&mut self.values, Value { name: name.to_owned(), meta })?;
        Ok(ValueId(id))
    }

    fn named(&mut self, name: &str) -> Result<Argument, Error> {
        let known = self.names.get(name).copied();
        Ok(Argument::Value(match known {
            Some(id) => id,
            None => self.define(name, Meta::Unknown)?,
        }))
    }

    fn list<T>(
        &mut self,
        kind: ListKind,
        items: Vec<T>,
        mut item: impl FnMut(&mut Self, T) -> Result<Argument, Error>,
    ) -> Result<Argument, Error> {
        Ok(Argument::List(kind, each(items, |one| item(self, one))?))
    }

    fn arguments(&mut self, arguments: Vec<json::Argument>) -> Result<Vec<Argument>, Error> {
        each(arguments, |argument| self.argument(argument))
    }

    fn argument(&mut self, argument: json::Argument) -> Result<Argument, Error> {
        use json::Argument as Json;
        Ok(match argument {
            Json::AsNone(_) | Json::AsOptionalTensor(json::OptionalTensor::AsNone(_)) => Argument::None,
            Json::AsTensor(json::Name { name })
            | Json::AsOptionalTensor(json::OptionalTensor::AsTensor(json::Name { name }))
            | Json::AsSymInt(json::SymIntArgument::AsName(name))
            | Json::AsSymFloat(json::SymFloatArgument::AsName(name))
            | Json::AsSymBool(json::SymBoolArgument::AsName(name))
            | Json::AsCustomObj(json::CustomObjArgument { name, .. }) => self.named(&name)?,
            Json::AsInt(number) | Json::AsSymInt(json::SymIntArgument::AsInt(number)) => Argument::Int(number),
            Json::AsFloat(json::Real(number))
            | Json::AsSymFloat(json::SymFloatArgument::AsFloat(json::Real(number))) => Argument::Float(number),
            Json::AsBool(truth) | Json::AsSymBool(json::SymBoolArgument::AsBool(truth)) => Argument::Bool(truth),
            Json::AsString(text) => Argument::Text(text),
            Json::AsComplex(number) => Argument::Complex(number),
            Json::AsScalarType(code) => Argument::ScalarType(
                codes::scalar_type(code)
                    .ok_or_else(|| Error::program("argument", format!("element type {code} is not known")))?,
            ),
            Json::AsMemoryFormat(code) => Argument::MemoryFormat(
                MemoryFormat::of_code(code)
                    .ok_or_else(|| Error::program("argument", format!("memory format {code} is not known")))?,
            ),
            Json::AsLayout(code) => Argument::Layout(code),
            Json::AsDevice(device) => Argument::Device(device),
            Json::AsOperator(name) => Argument::Operator(name),
            Json::AsGraph(graph) => {
                let json::GraphArgument { name, graph } = *graph;
                Argument::Graph(name, Box::new(Graph::from_document(graph)?))
            }
            Json::AsTensors(names) => self.list(ListKind::Tensors, names, |graph, name| graph.named(&name.name))?,
            Json::AsOptionalTensors(items) => {
                self.list(ListKind::OptionalTensors, items, |graph, item| match item {
                    json::OptionalTensor::AsTensor(name) => graph.named(&name.name),
                    json::OptionalTensor::AsNone(_) => Ok(Argument::None),
                })?
            }
            Json::AsNestedTensors(lists) => self.list(ListKind::NestedTensors, lists, |graph, names| {
                graph.list(ListKind::Tensors, names, |graph, name| graph.named(&name.name))
            })?,
            Json::AsInts(items) => self.list(ListKind::Ints, items, |_, item| Ok(Argument::Int(item)))?,
            Json::AsSymInts(items) => self.list(ListKind::Ints, items, |graph, item| match item {
                json::SymIntArgument::AsName(name) => graph.named(&name),
                json::SymIntArgument::AsInt(number) => Ok(Argument::Int(number)),
            })?,
            Json::AsFloats(items) => self.list(ListKind::Floats, items, |_, item| Ok(Argument::Float(item.0)))?,
            Json::AsSymFloats(items) => self.list(ListKind::Floats, items, |graph, item| match item {
                json::SymFloatArgument::AsName(name) => graph.named(&name),
                json::SymFloatArgument::AsFloat(number) => Ok(Argument::Float(number.0)),
            })?,
            Json::AsBools(items) => self.list(ListKind::Bools, items, |_, item| Ok(Argument::Bool(item)))?,
            Json::AsSymBools(items) => self.list(ListKind::Bools, items, |graph, item| match item {
                json::SymBoolArgument::AsName(name) => graph.named(&name),
                json::SymBoolArgument::AsBool(truth) => Ok(Argument::Bool(truth)),
            })?,
            Json::AsStrings(items) => self.list(ListKind::Strings, items, |_, item| Ok(Argument::Text(item)))?,
            Json::AsIntLists(lists) => self.list(ListKind::IntLists, lists, |_, list| Ok(Argument::ints(list)))?,
            Json::AsFloatLists(lists) => self.list(ListKind::FloatLists, lists, |graph, list| {
                graph.list(ListKind::Floats, list, |_, item| Ok(Argument::Float(item.0)))
            })?,
            Json::AsStringToArgument(map) => {
                let map = map.into_iter().map(|(key, value)| Ok((key, self.argument(value)?)));
                Argument::Map(map.collect::<Result<BTreeMap<_, _>, Error>>()?)
            }
        })
    }

    fn node(&mut self, node: json::Node, index: usize) -> Result<Node, Error> {
        let name =
            node.name.or_else(|| node.outputs.iter().find_map(first_name)).unwrap_or_else(|| format!("node_{index}"));
        let about = |error: Error| error.within(format!("node `{name}`"));
        let inputs = each(node.inputs, |input| {
            let arg = self.argument(input.arg)?;
            Ok(NamedArgument { name: input.name, arg, keyword: input.kind == Some(2) })
        });
        let inputs = inputs.map_err(about)?;
        Ok(Node {
            target: Target::parse(&node.target),
            inputs,
            outputs: self.arguments(node.outputs).map_err(about)?,
            metadata: node.metadata,
            is_hop_single_tensor_return: node.is_hop_single_tensor_return,
            name,
        })
    }
}

/// The name of the first value in an output.
fn first_name(output: &json::Argument) -> Option<String> {
    match output {
        json::Argument::AsTensor(name) => Some(name.name.clone()),
        json::Argument::AsTensors(names) => names.first().map(|name| name.name.clone()),
        json::Argument::AsSymInt(json::SymIntArgument::AsName(name)) => Some(name.clone()),
        json::Argument::AsSymBool(json::SymBoolArgument::AsName(name)) => Some(name.clone()),
        json::Argument::AsSymFloat(json::SymFloatArgument::AsName(name)) => Some(name.clone()),
        _ => None,
    }
}

fn input_spec(graph: &mut Graph, spec: json::InputSpec) -> Result<InputSpec, Error> {
    use json::InputSpec as Json;
    let (kind, arg) = match spec {
        Json::UserInput { arg } => (InputKind::User, graph.argument(arg)?),
        Json::Parameter { arg, parameter_name } => (InputKind::Parameter(parameter_name), graph.named(&arg.name)?),
        Json::Buffer { arg, buffer_name, persistent } => {
            (InputKind::Buffer { name: buffer_name, persistent }, graph.named(&arg.name)?)
        }
        Json::TensorConstant { arg, tensor_constant_name } => {
            (InputKind::Constant(tensor_constant_name), graph.named(&arg.name)?)
        }
        Json::CustomObj { arg, custom_obj_name } => (InputKind::Object(custom_obj_name), graph.named(&arg.name)?),
        Json::Token { arg } => (InputKind::Token, graph.named(&arg.name)?),
        Json::ConstantInput { name, value } => {
            let arg = match value {
                json::ConstantValue::AsNone(_) => Argument::None,
                json::ConstantValue::AsInt(number) => Argument::Int(number),
                json::ConstantValue::AsFloat(number) => Argument::Float(number.0),
                json::ConstantValue::AsString(text) => Argument::Text(text),
                json::ConstantValue::AsBool(truth) => Argument::Bool(truth),
            };
            (InputKind::Literal(name), arg)
        }
    };
    Ok(InputSpec { kind, arg })
}

fn output_spec(graph: &mut Graph, spec: json::OutputSpec) -> Result<OutputSpec, Error> {
    use json::OutputSpec as Json;
    let (kind, arg) = match spec {
        Json::UserOutput { arg } => (OutputKind::User, graph.argument(arg)?),
        Json::LossOutput { arg } => (OutputKind::Loss, graph.named(&arg.name)?),
        Json::BufferMutation { arg, buffer_name } => (OutputKind::BufferMutation(buffer_name), graph.named(&arg.name)?),
        Json::ParameterMutation { arg, parameter_name } => {
            (OutputKind::ParameterMutation(parameter_name), graph.named(&arg.name)?)
        }
        Json::UserInputMutation { arg, user_input_name } => {
            (OutputKind::InputMutation(user_input_name), graph.named(&arg.name)?)
        }
        Json::GradientToParameter { arg, parameter_name } => {
            (OutputKind::GradientToParameter(parameter_name), graph.named(&arg.name)?)
        }
        Json::GradientToUserInput { arg, user_input_name } => {
            (OutputKind::GradientToInput(user_input_name), graph.named(&arg.name)?)
        }
        Json::Token { arg } => (OutputKind::Token, graph.named(&arg.name)?),
    };
    Ok(OutputSpec { kind, arg })
}
