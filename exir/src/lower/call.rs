//! Calls: each operator becomes its out variant, with every argument said.

use edgepack_builder::pte::{Arg, IntArg, Out, TensorArg};
use edgepack_format::operators::{Argument as Parameter, ArgumentKind, Schema, Trailing, lookup};
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::TensorLayout;

use super::emit::{Emitter, Held, Scope, constant_shape};
use super::{casts, scalars};
use crate::error::Error;
use crate::graph::{Argument, Meta, Node, OpName, Target, ValueId};
use crate::operators;

impl<'d> Emitter<'_, '_, 'd, '_> {
    /// Emits the nodes of a graph in order.
    pub(super) fn nodes(&mut self, scope: &mut Scope<'_>) -> Result<(), Error> {
        let graph = scope.graph;
        let around = self.place.clone();
        for node in &graph.nodes {
            self.enter(node);
            let about = |error: Error| match error {
                Error::Build(error) => Error::program(format!("node `{}`", node.name), error.to_string()),
                other => other,
            };
            match &node.target {
                Target::Operator(op) | Target::Edge(op) => self.operator(scope, node, op),
                Target::HigherOrder(name) => self.higher_order(scope, node, name),
                Target::Symbolic(name) => self.symbolic(scope, node, name),
                Target::Delegate(index) => self.delegate(scope, node, *index),
                Target::Other(_) => {
                    self.missing.insert(node.target.to_string());
                    self.pretend(scope, node)
                }
            }
            .map_err(about)?;
        }
        self.go_on(around);
        Ok(())
    }

    /// Gives the results of a call that cannot be emitted a form, so that what follows is looked at too.
    fn pretend(&mut self, scope: &mut Scope<'_>, node: &Node) -> Result<(), Error> {
        for result in node.results() {
            let held = match scope.graph.tensor(result) {
                Some(_) => {
                    let shape = self.shape(scope, result)?;
                    Held::Tensor(self.method.tensor(shape.spec.clone())?, shape)
                }
                None => Held::Literal(Argument::Int(0)),
            };
            scope.held.insert(result, held);
        }
        Ok(())
    }

    /// A call of what a backend made.
    fn delegate(&mut self, scope: &mut Scope<'_>, node: &Node, index: usize) -> Result<(), Error> {
        let place = format!("node `{}`", node.name);
        let found = self.modules.get(index).and_then(|module| Some((module, module.payload.clone()?)));
        let Some((module, payload)) = found else {
            let message = match self.modules.get(index) {
                Some(module) => format!(
                    "the archive has no payload for the lowered module of `{}`; save the program with exir.serde",
                    module.backend
                ),
                None => format!("there is no lowered module {index}"),
            };
            return Err(Error::unsupported(place, message));
        };
        let delegate = self.method.delegate(&module.backend, payload, &module.specs)?;
        let mut args = Vec::new();
        for item in node.inputs.iter().flat_map(|input| input.arg.items()) {
            let unsupported = || Error::unsupported(&place, format!("a delegate is given {item:?}"));
            args.push(self.arg(scope, item).ok_or_else(unsupported)??);
        }
        let results = node.results();
        let mut shapes = Vec::with_capacity(results.len());
        for result in &results {
            shapes.push(self.shape(scope, *result)?);
        }
        let outs: Vec<_> = shapes.iter().map(|shape| shape.spec.clone()).collect();
        let ids = self.method.call_delegate(delegate, args, outs)?;
        for ((result, id), shape) in results.into_iter().zip(ids).zip(shapes) {
            scope.held.insert(result, Held::Tensor(id, shape));
        }
        Ok(())
    }

    fn operator(&mut self, scope: &mut Scope<'_>, node: &Node, op: &OpName) -> Result<(), Error> {
        if self.known_number(scope, node) || self.view(scope, node)? || self.update_cache(scope, node)? {
            return Ok(());
        }
        let operators = &self.options.operators;
        let own = operators.schema(op);
        let direct = own.as_ref().is_some_and(|schema| {
            schema.outs().next().is_some()
                || matches!(schema.trailing(), Trailing::Result) && makes_numbers(scope, node)
        });
        let text = match direct {
            true => operators.text(&op.to_string()),
            false => operators.out_variant(op, node),
        };
        let Some(text) = text.map(str::to_owned) else {
            self.missing.insert(op.to_string());
            return self.pretend(scope, node);
        };
        let schema = Schema::parse(&text).map_err(|error| Error::program(&text, error.to_string()))?;
        let functional = own.as_ref().unwrap_or(&schema);
        let defaults = operators::arguments(functional, node);
        let mut args = Vec::new();
        for parameter in schema.args().iter().filter(|parameter| !parameter.is_out()) {
            let given = defaults.iter().find(|(known, _)| known.name == parameter.name);
            let argument = given.and_then(|(_, argument)| argument.clone());
            let Some(argument) = argument.or_else(|| operators::by_default(parameter)) else {
                let message = format!("{op} is called without `{}`", parameter.name);
                return Err(Error::program(format!("node `{}`", node.name), message));
            };
            args.push(self.argument(scope, node, parameter, &argument)?);
        }
        self.call(scope, node, &text, args)
    }

    /// A number that is known now needs no call.
    fn known_number(&self, scope: &mut Scope<'_>, node: &Node) -> bool {
        let [Argument::Value(result)] = node.outputs.as_slice() else { return false };
        let known = match scope.graph.value(*result).map(|value| &value.meta) {
            Some(Meta::Int(size)) => size.known(),
            _ => None,
        };
        if let Some(known) = known {
            scope.held.insert(*result, Held::Literal(Argument::Int(known)));
        }
        known.is_some()
    }

    /// Calls an operator of a program and keeps its results.
    pub(super) fn call(
        &mut self,
        scope: &mut Scope<'_>,
        node: &Node,
        schema: &str,
        args: Vec<Arg>,
    ) -> Result<(), Error> {
        let mut outs = Vec::new();
        let mut shapes = Vec::new();
        let mut results: Vec<ValueId> = Vec::new();
        for output in &node.outputs {
            if *output == Argument::None {
                let message = format!("a result of {} is None, which its out variant cannot take", node.target);
                return Err(Error::unsupported(format!("node `{}`", node.name), message));
            }
            output.each_value(&mut |id| results.push(id));
        }
        for result in &results {
            let (out, shape) = match scope.graph.value(*result).map(|value| &value.meta) {
                Some(Meta::Int(_)) => (Out::Int, None),
                Some(Meta::Float(_)) => (Out::Double, None),
                Some(Meta::Bool(_)) => (Out::Bool, None),
                _ => {
                    let shape = self.shape(scope, *result)?;
                    (Out::Tensor(shape.spec.clone()), Some(shape))
                }
            };
            outs.push(out);
            shapes.push(shape);
        }
        // Programs have their own words for some schemas, so one that is known goes by name.
        let full_name = schema.split_once('(').map_or(schema, |(name, _)| name);
        let operator = if lookup(full_name).is_some() { full_name } else { schema };
        let ids = self.method.call(operator, args, outs)?;
        for ((result, id), shape) in results.into_iter().zip(ids).zip(shapes) {
            let held = match shape {
                Some(shape) => Held::Tensor(id, shape),
                None => Held::Number(id),
            };
            scope.held.insert(result, held);
        }
        Ok(())
    }

    /// An argument in the form that the parameter asks for.
    fn argument(
        &mut self,
        scope: &Scope<'_>,
        node: &Node,
        parameter: &Parameter<'_>,
        argument: &Argument,
    ) -> Result<Arg, Error> {
        let unsupported = || {
            let message =
                format!("`{}` of {} is {argument:?}, which programs do not hold", parameter.name, node.target);
            Error::unsupported(format!("node `{}`", node.name), message)
        };
        if parameter.kind == ArgumentKind::Tensor && parameter.list.is_none() {
            return match argument {
                Argument::Int(_) | Argument::Float(_) | Argument::Bool(_) => {
                    let scalar_type =
                        casts::common_type(scope.graph, node).unwrap_or_else(|| scalars::natural_type(argument));
                    self.scalar_constant(argument, scalar_type)
                }
                Argument::None if !parameter.optional => {
                    let layout = TensorLayout::contiguous(ScalarType::BYTE, &[0]);
                    let layout = layout.map_err(|error| Error::program("empty tensor", error.to_string()))?;
                    Ok(Arg::Constant(self.add_constant("_lifted_tensor_empty", layout, Vec::new().into())?))
                }
                _ => self.arg(scope, argument).ok_or_else(unsupported)?,
            };
        }
        if parameter.kind == ArgumentKind::Device || parameter.kind == ArgumentKind::Generator {
            return match argument {
                Argument::None => Ok(Arg::None),
                _ => Err(unsupported()),
            };
        }
        match argument {
            Argument::List(_, items) => self.list(scope, parameter, items)?.ok_or_else(unsupported),
            Argument::Value(_) if parameter.list.is_some() => {
                self.list(scope, parameter, std::slice::from_ref(argument))?.ok_or_else(unsupported)
            }
            Argument::Int(_) | Argument::Float(_) | Argument::Bool(_)
                if parameter.list.is_some_and(|list| list.len.is_none()) =>
            {
                self.list(scope, parameter, std::slice::from_ref(argument))?.ok_or_else(unsupported)
            }
            _ => self.arg(scope, argument).ok_or_else(unsupported)?,
        }
    }

    fn list(&mut self, scope: &Scope<'_>, parameter: &Parameter<'_>, items: &[Argument]) -> Result<Option<Arg>, Error> {
        Ok(match parameter.kind {
            ArgumentKind::Tensor => {
                let mut tensors: Vec<Option<TensorArg>> = Vec::with_capacity(items.len());
                for item in items {
                    tensors.push(match item {
                        Argument::Value(value) => Some(self.tensor(scope, *value)?),
                        Argument::None => None,
                        _ => return Ok(None),
                    });
                }
                match parameter.list.is_some_and(|list| list.optional_items) {
                    true => Some(Arg::OptionalTensors(tensors)),
                    false => tensors.into_iter().collect::<Option<Vec<_>>>().map(Arg::Tensors),
                }
            }
            ArgumentKind::Float => {
                let number = |item: &Argument| match item {
                    Argument::Float(number) => Some(*number),
                    Argument::Int(number) => Some(*number as f64),
                    _ => None,
                };
                items.iter().map(number).collect::<Option<Vec<_>>>().map(Arg::Doubles)
            }
            ArgumentKind::Bool => {
                let truth = |item: &Argument| match item {
                    Argument::Bool(truth) => Some(*truth),
                    _ => None,
                };
                items.iter().map(truth).collect::<Option<Vec<_>>>().map(Arg::Bools)
            }
            _ => {
                let mut numbers = Vec::with_capacity(items.len());
                for item in items {
                    numbers.push(match self.arg(scope, item) {
                        Some(arg) => match arg? {
                            Arg::Int(number) => IntArg::Literal(number),
                            Arg::Value(id) => IntArg::Value(id),
                            Arg::Bool(truth) => IntArg::Literal(i64::from(truth)),
                            _ => return Ok(None),
                        },
                        None => return Ok(None),
                    });
                }
                Some(Arg::Ints(numbers))
            }
        })
    }

    /// A number as a tensor without dimensions.
    fn scalar_constant(&mut self, literal: &Argument, scalar_type: ScalarType) -> Result<Arg, Error> {
        let bytes = scalars::encode(literal, scalar_type)
            .ok_or_else(|| Error::unsupported("scalar", format!("{literal:?} as an element of {scalar_type}")))?;
        let hex: String = bytes.iter().rev().map(|byte| format!("{byte:02x}")).collect();
        let layout =
            TensorLayout::contiguous(scalar_type, &[]).map_err(|error| Error::program("scalar", error.to_string()))?;
        // The name goes into the file: it is the schema's, whatever people are shown.
        let type_name = scalar_type.name().unwrap_or("unknown");
        let name = format!("_lifted_tensor_{type_name}_{hex}");
        Ok(Arg::Constant(self.add_constant(&name, layout, bytes.into())?))
    }

    /// Emits a change of shape without an instruction, or with one that moves nothing. Whether it could.
    fn view(&mut self, scope: &mut Scope<'_>, node: &Node) -> Result<bool, Error> {
        let shapes = ["aten::unsqueeze_copy", "aten::squeeze_copy.dim", "aten::squeeze_copy.dims"];
        let plain = node.calls("aten::view_copy");
        if !plain && (self.options.like_reference || !shapes.iter().any(|name| node.calls(name))) {
            return Ok(false);
        }
        let (Some(result), Some(input)) = (node.result(), node.value_arg("self")) else { return Ok(false) };
        if scope.fixed.contains(&result) || scope.fixed.contains(&input) || self.parted(scope, input, result) {
            return Ok(false);
        }
        let shape = self.shape(scope, result)?;
        let Some(held) = scope.held.get(&input).cloned() else { return Ok(false) };
        let contiguous = |order: &[u8]| *order == crate::graph::identity(order.len());
        match held {
            Held::Tensor(base, from) if contiguous(&from.dim_order) && contiguous(&shape.dim_order) => {
                let same_type = scope.graph.tensor(input).map(|meta| meta.scalar_type)
                    == scope.graph.tensor(result).map(|meta| meta.scalar_type);
                let bytes = |sizes: &[usize]| sizes.iter().try_fold(1usize, |all, size| all.checked_mul(*size));
                if !same_type || bytes(&from.sizes) != bytes(&shape.sizes) || from.dynamic != shape.dynamic {
                    return Ok(false);
                }
                let size = node.arg("size").filter(|_| plain).cloned();
                if shape.dynamic && size.is_none() {
                    return Ok(false);
                }
                let view = self.method.view(base, shape.spec.clone())?;
                if let (true, Some(Argument::List(_, items))) = (shape.dynamic, &size) {
                    let parameter = self.options.operators.text("executorch_prim::et_view.default").unwrap_or_default();
                    let schema = Schema::parse(parameter).map_err(|error| Error::program("view", error.to_string()))?;
                    let sizes = match schema.args().get(1) {
                        Some(parameter) => self.list(scope, parameter, items)?,
                        None => None,
                    };
                    let sizes = sizes.ok_or_else(|| Error::program(format!("node `{}`", node.name), "its sizes"))?;
                    let args = [Arg::Value(base), sizes, Arg::Value(view)];
                    self.method.call("executorch_prim::et_view.default", args, ())?;
                }
                if scope.fixed_roots(input) {
                    scope.fixed.insert(result);
                }
                scope.held.insert(result, Held::Tensor(view, shape));
                Ok(true)
            }
            Held::Constant(_, from) if contiguous(&from.dim_order) && !shape.dynamic => {
                self.view_of_constant(scope, input, result)
            }
            _ => Ok(false),
        }
    }

    /// Returns whether a result belongs to another memory than the tensor it would be a view of.
    fn parted(&self, scope: &Scope<'_>, input: ValueId, result: ValueId) -> bool {
        let pool = |value| self.options.pools.of(scope.graph.name(value));
        pool(result).is_some_and(|id| pool(input) != Some(id))
    }

    /// A constant under another shape is another constant with the same bytes.
    fn view_of_constant(&mut self, scope: &mut Scope<'_>, input: ValueId, result: ValueId) -> Result<bool, Error> {
        let program = self.program;
        if !std::ptr::eq(scope.graph, &program.graph) {
            return Ok(false);
        }
        let spec = program.inputs.iter().find(|spec| spec.arg.value() == Some(input));
        let name = spec.and_then(|spec| spec.kind.tensor());
        let Some((name, weight)) = name.and_then(|name| Some((name, program.weights.find(name)?))) else {
            return Ok(false);
        };
        let sizes = scope.graph.tensor(result).and_then(|meta| meta.known_sizes());
        let Some(sizes) = sizes else { return Ok(false) };
        let (_, data) = weight.data(&weight.dim_order())?;
        let layout = TensorLayout::contiguous(weight.scalar_type(), &sizes)
            .map_err(|error| Error::program(format!("value `{}`", scope.graph.name(result)), error.to_string()))?;
        let id = self.add_constant(&format!("{name}.{}", scope.graph.name(result)), layout.clone(), data)?;
        scope.held.insert(result, Held::Constant(id, constant_shape(&layout)));
        Ok(true)
    }
}

impl Scope<'_> {
    /// Returns whether views of this value are not allowed.
    fn fixed_roots(&self, value: ValueId) -> bool {
        self.fixed.contains(&value)
    }
}

/// Returns whether a call gives numbers, not tensors.
fn makes_numbers(scope: &Scope<'_>, node: &Node) -> bool {
    node.results().iter().all(|result| {
        matches!(
            scope.graph.value(*result).map(|value| &value.meta),
            Some(Meta::Int(_) | Meta::Float(_) | Meta::Bool(_))
        )
    })
}
