//! A program of the Edge dialect as a method: inputs, constants, state, calls, write-back, outputs.
//!
//! Invariant: a value is emitted before anything that reads it; constants that nothing reads are not emitted.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use edgepack_builder::content::Data;
use edgepack_builder::pte::{
    Arg, ConstantId, MethodBuilder, ProgramBuilder, TensorArg, TensorSpec, ValueId as Emitted,
};
use edgepack_format::tensor::TensorLayout;

use super::dim_order::{Orders, orders};
use super::origin::{Names, Origin, Place};
use super::partition::LoweredModule;
use super::spec::{Shape, shape};
use super::{InitialState, Options};
use crate::archive::Weight;
use crate::error::Error;
use crate::graph::{Argument, ExportedProgram, Graph, InputKind, Meta, OutputKind, ValueId};

/// Emitted form of a value of the graph.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Held {
    /// A tensor of the method.
    Tensor(Emitted, Shape),
    /// A constant of the program.
    Constant(ConstantId, Shape),
    /// A number that is computed.
    Number(Emitted),
    /// Something known.
    Literal(Argument),
}

/// A graph while it is emitted: the emitted form of each of its values.
pub(super) struct Scope<'g> {
    pub(super) graph: &'g Graph,
    pub(super) orders: Orders,
    pub(super) held: BTreeMap<ValueId, Held>,
    /// Values that leave the graph or may be overwritten while they are needed; nothing may be a view of them.
    pub(super) fixed: BTreeSet<ValueId>,
}

/// The emission of one method.
pub(super) struct Emitter<'b, 'p, 'd, 'o> {
    pub(super) method: &'b mut MethodBuilder<'p, 'd>,
    pub(super) program: &'o ExportedProgram<'d>,
    /// Lowered modules that delegate calls refer to.
    pub(super) modules: &'o [LoweredModule<'d>],
    pub(super) options: &'o Options,
    /// Operators without a form that a program can hold.
    pub(super) missing: BTreeSet<String>,
    /// Names of the program's constants that stand for other tensors in another method.
    prefix: String,
    /// Origins of the instructions so far.
    pub(super) origins: Vec<Origin>,
    /// The nodes of the exported program by debug handle.
    pub(super) names: &'o Names,
    /// Current place of emission.
    pub(super) place: Place,
}

/// Emits a program as a method of this name.
pub(super) fn method<'d>(
    builder: &mut ProgramBuilder<'d>,
    name: &str,
    program: &ExportedProgram<'d>,
    modules: &[LoweredModule<'d>],
    names: &Names,
    options: &Options,
) -> Result<Vec<Origin>, Error> {
    let mut method = builder.method(name);
    method.plan_inputs(options.plan_inputs).plan_outputs(options.plan_outputs);
    if let Some((inputs, outputs)) = program.nesting() {
        method.containers(inputs, outputs);
    }
    let mut emitter = Emitter {
        method: &mut method,
        program,
        modules,
        options,
        missing: BTreeSet::new(),
        prefix: format!("{name}."),
        origins: Vec::new(),
        names,
        place: Place::default(),
    };
    let mut scope = Scope {
        graph: &program.graph,
        orders: orders_of(program, options),
        held: BTreeMap::new(),
        fixed: BTreeSet::new(),
    };
    emitter.inputs(&mut scope)?;
    emitter.fix(&mut scope);
    emitter.nodes(&mut scope)?;
    if !emitter.missing.is_empty() {
        return Err(Error::Operators(emitter.missing.into_iter().collect()));
    }
    emitter.outputs(&mut scope)?;
    Ok(emitter.origins())
}

/// The orders of the dimensions of all values of a program.
pub(super) fn orders_of(program: &ExportedProgram<'_>, options: &Options) -> Orders {
    orders(&program.graph, options, &given(program))
}

/// The orders of inputs, from their tensors or from what was recorded.
fn given(program: &ExportedProgram<'_>) -> Vec<(ValueId, Vec<u8>)> {
    let order = |spec: &crate::graph::InputSpec| {
        let value = spec.arg.value()?;
        let order = match spec.kind.tensor() {
            Some(name) => program.weights.find(name)?.dim_order(),
            None => {
                let meta = program.graph.tensor(value).filter(|meta| meta.is_channels_last())?;
                crate::graph::channels_last(meta.rank()).filter(|order| order.len() == 4)?
            }
        };
        Some((value, order))
    };
    program.inputs.iter().filter_map(order).collect()
}

impl<'d> Emitter<'_, '_, 'd, '_> {
    fn inputs(&mut self, scope: &mut Scope<'_>) -> Result<(), Error> {
        let program = self.program;
        let mutated: BTreeSet<&str> = program.changed().collect();
        let uses = program.graph.uses();
        for spec in &program.inputs {
            let place = || format!("input `{}`", spec.arg.value().map_or("?", |value| program.graph.name(value)));
            match (&spec.kind, spec.arg.value()) {
                (InputKind::Object(_) | InputKind::Token, _) => {
                    return Err(Error::unsupported(place(), "programs take no objects and no tokens"));
                }
                (InputKind::User | InputKind::Literal(_), None) => {
                    let arg = literal(&spec.arg).ok_or_else(|| Error::unsupported(place(), "this kind of input"))?;
                    self.method.input_value(arg)?;
                }
                (InputKind::Literal(_), Some(_)) => return Err(Error::program(place(), "a literal that is a value")),
                (InputKind::User, Some(value)) => self.user_input(scope, value)?,
                (kind, Some(value)) => {
                    let name = kind.tensor().unwrap_or_default();
                    let weight = program
                        .weights
                        .find(name)
                        .ok_or_else(|| Error::program(place(), program.weights.missing(name)))?;
                    if mutated.contains(name) {
                        let held = self.state(scope, value, name, weight)?;
                        scope.held.insert(value, held);
                    } else if uses.get(value.index()).is_some_and(|uses| *uses > 0) {
                        let held = self.constant(name, weight)?;
                        scope.held.insert(value, held);
                    }
                }
                (kind, None) => return Err(Error::program(place(), format!("{kind:?} without a value"))),
            }
        }
        Ok(())
    }

    fn user_input(&mut self, scope: &mut Scope<'_>, value: ValueId) -> Result<(), Error> {
        let held = match scope.graph.value(value).map(|value| &value.meta) {
            Some(Meta::Int(size)) => Held::Number(self.method.input_value(size.hint().unwrap_or(0))?),
            Some(Meta::Float(_)) => Held::Number(self.method.input_value(0f64)?),
            Some(Meta::Bool(_)) => Held::Number(self.method.input_value(false)?),
            Some(Meta::Tensor(_)) => {
                let shape = self.shape(scope, value)?;
                if !self.options.plan_inputs {
                    // Only planned memory has views without instructions.
                    scope.fixed.insert(value);
                }
                Held::Tensor(self.method.input(shape.spec.clone())?, shape)
            }
            _ => {
                let place = format!("input `{}`", scope.graph.name(value));
                return Err(Error::unsupported(place, "programs take tensors and numbers"));
            }
        };
        scope.held.insert(value, held);
        Ok(())
    }

    /// Returns the shape that the tensor of a value is to have.
    pub(super) fn shape(&self, scope: &Scope<'_>, value: ValueId) -> Result<Shape, Error> {
        let mut shape = shape(scope.graph, value, scope.orders.get(&value).cloned(), &self.program.ranges)?;
        if let Some(id) = self.options.pools.of(scope.graph.name(value)) {
            shape.spec = shape.spec.in_memory(id);
        }
        Ok(shape)
    }

    fn state(&mut self, scope: &Scope<'_>, value: ValueId, name: &str, weight: &Weight<'d>) -> Result<Held, Error> {
        let shape = self.shape(scope, value)?;
        let (_, data) = weight.data(&shape.dim_order)?;
        let begins = match self.options.initial_state {
            _ if self.options.state.contains_key(name) => true,
            InitialState::All => true,
            InitialState::Nothing => false,
            InitialState::NonZero => !is_zero(&data)?,
        };
        let id = match begins {
            true => self.method.state_from(name, shape.spec.clone(), data, 0)?,
            false => self.method.state(name, shape.spec.clone())?,
        };
        Ok(Held::Tensor(id, shape))
    }

    /// A tensor of the program as a constant.
    pub(super) fn constant(&mut self, name: &str, weight: &Weight<'d>) -> Result<Held, Error> {
        let (layout, data) = weight.data(&weight.dim_order())?;
        let id = self.add_constant(name, layout.clone(), data)?;
        Ok(Held::Constant(id, constant_shape(&layout)))
    }

    /// Adds a constant, under another name if another method has one of this name that is not the same.
    pub(super) fn add_constant(
        &mut self,
        name: &str,
        layout: TensorLayout,
        data: Data<'d>,
    ) -> Result<ConstantId, Error> {
        let own = format!("{}{name}", self.prefix);
        let external = self.tag(name).filter(|_| !name.contains("_lifted_tensor"));
        let program = self.method.program();
        let mut add = |name: &str| match &external {
            Some(tag) => program.external_constant_from(name, layout.clone(), data.clone(), tag),
            None => program.constant_from(name, layout.clone(), data.clone()),
        };
        match add(name) {
            Err(edgepack_builder::BuildError::Conflict { .. }) => Ok(add(&own)?),
            other => Ok(other?),
        }
    }

    /// The data file that a constant goes to. What is a weight in another form goes where the weight goes, unless something
    /// is said about it by its own name.
    fn tag(&self, name: &str) -> Option<String> {
        let weights = &self.program.weights;
        let origins = std::iter::successors(Some(name), |name| name.rsplit_once('.').map(|(whole, _)| whole));
        let mut known = origins.filter(|origin| *origin == name || weights.find(origin).is_some());
        known.find_map(|name| self.options.external_weights.of(name))
    }

    /// Notes what nothing may be a view of: outputs, and what is written back to.
    fn fix(&self, scope: &mut Scope<'_>) {
        for output in &scope.graph.outputs {
            output.each_value(&mut |id| {
                scope.fixed.insert(id);
            });
        }
        let mutated = self.program.outputs.iter().filter(|spec| spec.kind.is_mutation());
        for spec in mutated {
            scope.fixed.extend(self.target(&spec.kind));
        }
    }

    /// The input that a mutation writes to.
    fn target(&self, kind: &OutputKind) -> Option<ValueId> {
        let by_tensor = |name: &str| self.program.inputs.iter().find(|input| input.kind.tensor() == Some(name));
        match kind {
            OutputKind::BufferMutation(name) | OutputKind::ParameterMutation(name) => by_tensor(name)?.arg.value(),
            OutputKind::InputMutation(name) => self.program.graph.find(name),
            _ => None,
        }
    }

    fn outputs(&mut self, scope: &mut Scope<'_>) -> Result<(), Error> {
        let program = self.program;
        let written: BTreeSet<ValueId> = program.outputs.iter().filter_map(|spec| self.target(&spec.kind)).collect();
        // What is read after something was written to it has to be saved before.
        let mut saved: BTreeMap<ValueId, Arg> = BTreeMap::new();
        for (spec, output) in program.outputs.iter().zip(&program.graph.outputs) {
            let Some(value) = output.value().filter(|value| written.contains(value)) else { continue };
            let onto_itself = self.target(&spec.kind) == Some(value);
            if onto_itself || saved.contains_key(&value) {
                continue;
            }
            let Some(Held::Tensor(id, shape)) = scope.held.get(&value).cloned() else { continue };
            let order: Vec<i64> = shape.dim_order.iter().map(|dim| i64::from(*dim)).collect();
            let args = [Arg::Value(id), Arg::Bool(false), Arg::from(order)];
            let copy = self.method.call("dim_order_ops::_clone_dim_order.out", args, shape.spec)?;
            saved.insert(value, Arg::Value(copy));
        }
        let mut results = Vec::new();
        for (spec, output) in program.outputs.iter().zip(&program.graph.outputs) {
            let place = || format!("output `{}`", output.value().map_or("?", |value| program.graph.name(value)));
            let arg = match output.value().and_then(|value| saved.get(&value)) {
                Some(saved) => saved.clone(),
                None => self.arg(scope, output).ok_or_else(|| Error::unsupported(place(), "this kind of output"))??,
            };
            match &spec.kind {
                OutputKind::User => results.push(arg),
                OutputKind::BufferMutation(_) | OutputKind::ParameterMutation(_) | OutputKind::InputMutation(_) => {
                    let target = self.target(&spec.kind);
                    let Some(Held::Tensor(to, _)) = target.and_then(|target| scope.held.get(&target)).cloned() else {
                        return Err(Error::program(place(), format!("{:?} changes nothing there is", spec.kind)));
                    };
                    if arg != Arg::Value(to) {
                        self.method.call("aten::copy_", [Arg::Value(to), arg], ())?;
                    }
                    if matches!(spec.kind, OutputKind::InputMutation(_)) {
                        results.push(Arg::Value(to));
                    }
                }
                other => return Err(Error::unsupported(place(), format!("{other:?}: only inference is lowered"))),
            }
        }
        for result in results {
            if matches!(result, Arg::Text(_)) {
                return Err(Error::unsupported("outputs", "programs give no text"));
            }
            self.method.output(result)?;
        }
        Ok(())
    }

    /// An argument as the builder takes it; `None` for what programs do not hold.
    pub(super) fn arg(&mut self, scope: &Scope<'_>, argument: &Argument) -> Option<Result<Arg, Error>> {
        match argument {
            Argument::Value(value) => match scope.held.get(value) {
                Some(Held::Tensor(id, _) | Held::Number(id)) => Some(Ok(Arg::Value(*id))),
                Some(Held::Constant(id, _)) => Some(Ok(Arg::Constant(*id))),
                Some(Held::Literal(argument)) => literal(argument).map(Ok),
                None => {
                    let place = format!("value `{}`", scope.graph.name(*value));
                    Some(Err(Error::program(place, "it is read before it is made")))
                }
            },
            other => literal(other).map(Ok),
        }
    }

    /// A tensor as the builder takes it.
    pub(super) fn tensor(&self, scope: &Scope<'_>, value: ValueId) -> Result<TensorArg, Error> {
        match scope.held.get(&value) {
            Some(Held::Tensor(id, _)) => Ok(TensorArg::Value(*id)),
            Some(Held::Constant(id, _)) => Ok(TensorArg::Constant(*id)),
            _ => {
                Err(Error::program(format!("value `{}`", scope.graph.name(value)), "it is not a tensor that was made"))
            }
        }
    }
}

/// The shape of a constant.
pub(super) fn constant_shape(layout: &TensorLayout) -> Shape {
    Shape {
        spec: TensorSpec::of(layout),
        sizes: layout.sizes().to_vec(),
        dim_order: layout.dim_order().to_vec(),
        dynamic: false,
    }
}

/// A literal as the builder takes it; `None` for what programs do not hold.
pub(super) fn literal(argument: &Argument) -> Option<Arg> {
    Some(match argument {
        Argument::None => Arg::None,
        Argument::Int(number) => Arg::Int(*number),
        Argument::Float(number) => Arg::Double(*number),
        Argument::Bool(truth) => Arg::Bool(*truth),
        Argument::Text(text) => Arg::Text(text.clone()),
        Argument::ScalarType(scalar_type) => Arg::Int(i64::from(scalar_type.0)),
        Argument::MemoryFormat(format) => Arg::Int(format.number()?),
        // The document counts layouts from sparse ones on; programs know strided tensors only, as 0.
        Argument::Layout(7) => Arg::Int(0),
        _ => return None,
    })
}

/// Returns whether all bytes are zero.
fn is_zero(data: &Data<'_>) -> Result<bool, Error> {
    /// Takes bytes as long as they are zero.
    struct Zeros;

    impl Write for Zeros {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            match bytes.iter().all(|byte| *byte == 0) {
                true => Ok(bytes.len()),
                false => Err(io::Error::from(io::ErrorKind::InvalidData)),
            }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    match data.write_to(&mut Zeros) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(false),
        Err(error) => Err(error.into()),
    }
}
