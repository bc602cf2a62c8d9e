//! Sub-graphs become stretches of one chain, with jumps between them.
//!
//! Inputs of a sub-graph are the caller's values, so entering it copies nothing. What a branch gives is moved to the
//! result; what a loop carries is copied back before the next turn.

use std::collections::{BTreeMap, BTreeSet};

use edgepack_builder::pte::{Arg, Out, ValueId as Emitted};

use super::dim_order::orders;
use super::emit::{Emitter, Held, Scope};
use super::spec::Shape;
use crate::error::Error;
use crate::graph::{Argument, Graph, Meta, Node, ValueId};

impl Emitter<'_, '_, '_, '_> {
    /// Emits a call of a higher-order operator.
    pub(super) fn higher_order(&mut self, scope: &mut Scope<'_>, node: &Node, name: &str) -> Result<(), Error> {
        let args: Vec<&Argument> = node.inputs.iter().map(|input| &input.arg).collect();
        match (name, args.as_slice()) {
            ("cond", [condition, Argument::Graph(_, yes), Argument::Graph(_, no), operands, ..]) => {
                self.branch(scope, node, condition, [yes, no], operands.items())
            }
            ("map_impl" | "map", [Argument::Graph(_, body), mapped, operands, ..]) => {
                self.map(scope, node, body, mapped.items(), operands.items())
            }
            ("scan", [Argument::Graph(_, body), initial, mapped, rest @ ..]) => {
                let operands = rest.first().map_or(&[][..], |operands| operands.items());
                self.scan(scope, node, body, initial.items(), mapped.items(), operands)
            }
            ("while_loop", [Argument::Graph(_, condition), Argument::Graph(_, body), carried, rest @ ..]) => {
                let operands = rest.first().map_or(&[][..], |operands| operands.items());
                self.while_loop(scope, node, [condition, body], carried.items(), operands)
            }
            _ => {
                let message = format!("higher-order operator {name} with {} arguments", args.len());
                Err(Error::unsupported(format!("node `{}`", node.name), message))
            }
        }
    }

    fn branch(
        &mut self,
        scope: &mut Scope<'_>,
        node: &Node,
        condition: &Argument,
        branches: [&Graph; 2],
        operands: &[Argument],
    ) -> Result<(), Error> {
        let place = format!("node `{}`", node.name);
        let unsupported = || Error::unsupported(&place, format!("a condition that is {condition:?}"));
        let condition = self.arg(scope, condition).ok_or_else(unsupported)??;
        let results = node.results();
        let mut targets = Vec::with_capacity(results.len());
        for result in &results {
            targets.push(self.result(scope, *result, false)?);
        }
        let (otherwise, end) = (self.method.label(), self.method.label());
        let [yes, no] = branches;
        self.method.jump_if_false(condition, otherwise)?;
        self.body(scope, yes, operands, &targets)?;
        self.method.jump(end)?;
        self.method.bind(otherwise)?;
        self.body(scope, no, operands, &targets)?;
        self.method.bind(end)?;
        for (result, target) in results.into_iter().zip(targets) {
            scope.held.insert(result, target);
        }
        Ok(())
    }

    /// A place for the result of a sub-graph.
    fn result(&mut self, scope: &Scope<'_>, result: ValueId, grows: bool) -> Result<Held, Error> {
        Ok(match scope.graph.value(result).map(|value| &value.meta) {
            Some(Meta::Int(_)) => Held::Number(self.method.value(0i64)?),
            Some(Meta::Float(_)) => Held::Number(self.method.value(0f64)?),
            Some(Meta::Bool(_)) => Held::Number(self.method.value(false)?),
            _ => {
                let mut shape = self.shape(scope, result)?;
                if grows {
                    shape.spec = shape.spec.dynamic();
                    shape.dynamic = true;
                }
                Held::Tensor(self.method.tensor(shape.spec.clone())?, shape)
            }
        })
    }

    /// Emits a sub-graph whose results go to these places.
    fn body(&mut self, outer: &Scope<'_>, graph: &Graph, operands: &[Argument], targets: &[Held]) -> Result<(), Error> {
        let given = self.held(outer, operands)?;
        let (scope, outputs) = self.inline(graph, &given)?;
        let _ = scope;
        for (output, target) in outputs.into_iter().zip(targets) {
            if let Held::Tensor(to, _) | Held::Number(to) = target
                && output != Arg::Value(*to)
            {
                self.method.assign(output, *to)?;
            }
        }
        Ok(())
    }

    /// Returns the emitted form of the operands of a sub-graph.
    fn held(&mut self, outer: &Scope<'_>, operands: &[Argument]) -> Result<Vec<Held>, Error> {
        let operand = |operand: &Argument| match operand {
            Argument::Value(value) => outer.held.get(value).cloned().ok_or_else(|| {
                Error::program(format!("value `{}`", outer.graph.name(*value)), "it is read before it is made")
            }),
            literal => Ok(Held::Literal(literal.clone())),
        };
        operands.iter().map(operand).collect()
    }

    /// Emits the nodes of a sub-graph whose inputs are these, and answers with its results.
    fn inline<'g>(&mut self, graph: &'g Graph, given: &[Held]) -> Result<(Scope<'g>, Vec<Arg>), Error> {
        if graph.inputs.len() != given.len() {
            let message = format!("{} operands for {} inputs", given.len(), graph.inputs.len());
            return Err(Error::program("sub-graph", message));
        }
        let mut held = BTreeMap::new();
        let mut known = Vec::new();
        for (input, operand) in graph.inputs.iter().zip(given) {
            let Some(value) = input.value() else { continue };
            if let Held::Tensor(_, shape) | Held::Constant(_, shape) = operand {
                known.push((value, shape.dim_order.clone()));
            }
            held.insert(value, operand.clone());
        }
        let mut fixed = BTreeSet::new();
        // Inputs may be carried from turn to turn, so nothing is a view of them.
        for value in graph.inputs.iter().chain(&graph.outputs) {
            value.each_value(&mut |id| {
                fixed.insert(id);
            });
        }
        let mut scope = Scope { graph, orders: orders(graph, self.options, &known), held, fixed };
        self.nodes(&mut scope)?;
        let mut outputs = Vec::with_capacity(graph.outputs.len());
        for output in &graph.outputs {
            let unsupported = || Error::unsupported("sub-graph", format!("a result that is {output:?}"));
            outputs.push(self.arg(&scope, output).ok_or_else(unsupported)??);
        }
        Ok((scope, outputs))
    }

    fn map(
        &mut self,
        scope: &mut Scope<'_>,
        node: &Node,
        body: &Graph,
        mapped: &[Argument],
        operands: &[Argument],
    ) -> Result<(), Error> {
        let results = node.results();
        let mut stacked = Vec::with_capacity(results.len());
        for result in &results {
            stacked.push(self.result(scope, *result, true)?);
        }
        let rest = self.held(scope, operands)?;
        let turns = Turns::begin(self, scope, node, mapped)?;
        let mut given = turns.slices(self, scope, body.inputs.iter().take(mapped.len()), body, mapped)?;
        given.extend(rest);
        let (_, outputs) = self.inline(body, &given)?;
        turns.stack(self, &stacked, outputs)?;
        turns.end(self)?;
        for (result, target) in results.into_iter().zip(stacked) {
            scope.held.insert(result, target);
        }
        Ok(())
    }

    fn scan(
        &mut self,
        scope: &mut Scope<'_>,
        node: &Node,
        body: &Graph,
        initial: &[Argument],
        mapped: &[Argument],
        operands: &[Argument],
    ) -> Result<(), Error> {
        let results = node.results();
        let carries = results.get(..initial.len()).unwrap_or_default();
        let mut carried = self.carries(scope, carries, initial)?;
        let mut stacked = Vec::new();
        for result in results.iter().skip(initial.len()) {
            stacked.push(self.result(scope, *result, true)?);
        }
        let rest = self.held(scope, operands)?;
        let turns = Turns::begin(self, scope, node, mapped)?;
        let slices = body.inputs.iter().skip(initial.len()).take(mapped.len());
        let mut given = carried.clone();
        given.extend(turns.slices(self, scope, slices, body, mapped)?);
        given.extend(rest);
        let (_, mut outputs) = self.inline(body, &given)?;
        let each = outputs.split_off(initial.len().min(outputs.len()));
        turns.stack(self, &stacked, each)?;
        self.carry(&carried, outputs)?;
        turns.end(self)?;
        carried.append(&mut stacked);
        for (result, target) in results.into_iter().zip(carried) {
            scope.held.insert(result, target);
        }
        Ok(())
    }

    fn while_loop(
        &mut self,
        scope: &mut Scope<'_>,
        node: &Node,
        graphs: [&Graph; 2],
        initial: &[Argument],
        operands: &[Argument],
    ) -> Result<(), Error> {
        let results = node.results();
        let carried = self.carries(scope, &results, initial)?;
        let mut given = carried.clone();
        given.extend(self.held(scope, operands)?);
        let [condition, body] = graphs;
        let (again, end) = (self.method.label(), self.method.label());
        self.method.bind(again)?;
        let (_, decided) = self.inline(condition, &given)?;
        let decided = decided.into_iter().next();
        let decided = decided.ok_or_else(|| Error::program(format!("node `{}`", node.name), "no condition"))?;
        self.method.jump_if_false(decided, end)?;
        let (_, outputs) = self.inline(body, &given)?;
        self.carry(&carried, outputs)?;
        self.method.jump(again)?;
        self.method.bind(end)?;
        for (result, target) in results.into_iter().zip(carried) {
            scope.held.insert(result, target);
        }
        Ok(())
    }

    /// Places for what a loop carries, with what it begins with.
    fn carries(&mut self, scope: &Scope<'_>, results: &[ValueId], initial: &[Argument]) -> Result<Vec<Held>, Error> {
        if results.len() != initial.len() {
            let message = format!("{} results for {} values that a loop carries", results.len(), initial.len());
            return Err(Error::program("loop", message));
        }
        let mut carried = Vec::with_capacity(results.len());
        for (result, initial) in results.iter().zip(initial) {
            let place = self.result(scope, *result, false)?;
            let unsupported = || Error::unsupported("loop", format!("it begins with {initial:?}"));
            let from = self.arg(scope, initial).ok_or_else(unsupported)??;
            self.copy(&place, from)?;
            carried.push(place);
        }
        Ok(carried)
    }

    /// Copies what a turn gives to where the next one looks for it.
    fn carry(&mut self, carried: &[Held], outputs: Vec<Arg>) -> Result<(), Error> {
        let places: Vec<Arg> = carried
            .iter()
            .filter_map(|place| match place {
                Held::Tensor(id, _) | Held::Number(id) => Some(Arg::Value(*id)),
                _ => None,
            })
            .collect();
        // A carried value that becomes another one is saved before either is overwritten.
        let mut outputs = outputs;
        for (index, output) in outputs.iter_mut().enumerate() {
            let Some(other) = places.iter().position(|place| place == output).filter(|other| *other != index) else {
                continue;
            };
            if let Some(Held::Tensor(id, shape)) = carried.get(other) {
                *output = Arg::Value(self.clone_of(*id, shape)?);
            }
        }
        for (place, output) in carried.iter().zip(outputs) {
            self.copy(place, output)?;
        }
        Ok(())
    }

    fn clone_of(&mut self, id: Emitted, shape: &Shape) -> Result<Emitted, Error> {
        let order: Vec<i64> = shape.dim_order.iter().map(|dim| i64::from(*dim)).collect();
        let args = [Arg::Value(id), Arg::Bool(false), Arg::from(order)];
        Ok(self.method.call("dim_order_ops::_clone_dim_order.out", args, shape.spec.clone())?)
    }

    fn copy(&mut self, place: &Held, from: Arg) -> Result<(), Error> {
        match place {
            Held::Tensor(to, _) if from != Arg::Value(*to) => {
                self.method.call("aten::copy_", [Arg::Value(*to), from], ())?;
            }
            Held::Number(to) if from != Arg::Value(*to) => self.method.assign(from, *to)?,
            _ => {}
        }
        Ok(())
    }
}

/// A loop over the first dimension of tensors.
struct Turns {
    turn: Emitted,
    count: Emitted,
    done: Emitted,
    again: edgepack_builder::pte::LabelId,
}

impl Turns {
    fn begin(
        emitter: &mut Emitter<'_, '_, '_, '_>,
        scope: &Scope<'_>,
        node: &Node,
        mapped: &[Argument],
    ) -> Result<Turns, Error> {
        let first = mapped.first().and_then(Argument::value);
        let nothing = || Error::unsupported(format!("node `{}`", node.name), "a loop over nothing");
        let first = Arg::from(emitter.tensor(scope, first.ok_or_else(nothing)?)?);
        let count = emitter.method.call("aten::sym_size.int", [first, Arg::Int(0)], Out::Int)?;
        let turn = emitter.method.value(0i64)?;
        let done = emitter.method.value(false)?;
        let again = emitter.method.label();
        emitter.method.bind(again)?;
        Ok(Turns { turn, count, done, again })
    }

    /// This turn's slices of the tensors that are looped over.
    fn slices<'a>(
        &self,
        emitter: &mut Emitter<'_, '_, '_, '_>,
        scope: &Scope<'_>,
        inputs: impl Iterator<Item = &'a Argument>,
        body: &Graph,
        mapped: &[Argument],
    ) -> Result<Vec<Held>, Error> {
        let mut slices = Vec::with_capacity(mapped.len());
        for (input, whole) in inputs.zip(mapped) {
            let (Some(input), Some(whole)) = (input.value(), whole.value()) else {
                return Err(Error::program("loop", "it is over something that is not a tensor"));
            };
            let whole = Arg::from(emitter.tensor(scope, whole)?);
            let shape = super::spec::shape(body, input, None, &emitter.program.ranges)?;
            let args = [whole, Arg::Int(0), Arg::Value(self.turn)];
            let slice = emitter.method.call("aten::select_copy.int_out", args, shape.spec.clone())?;
            slices.push(Held::Tensor(slice, shape));
        }
        Ok(slices)
    }

    /// Appends what this turn gave to the results.
    fn stack(&self, emitter: &mut Emitter<'_, '_, '_, '_>, stacked: &[Held], outputs: Vec<Arg>) -> Result<(), Error> {
        for (whole, output) in stacked.iter().zip(outputs) {
            let Held::Tensor(whole, _) = whole else {
                return Err(Error::unsupported("loop", "it stacks something that is not a tensor"));
            };
            let args = [Arg::Value(*whole), output, Arg::Value(self.turn)];
            emitter.method.call("executorch_prim::et_copy_index.tensor", args, ())?;
        }
        Ok(())
    }

    fn end(self, emitter: &mut Emitter<'_, '_, '_, '_>) -> Result<(), Error> {
        let Turns { turn, count, done, again } = self;
        emitter.prim("add", vec![Arg::Value(turn), Arg::Int(1)], Out::Value(turn))?;
        emitter.prim("eq", vec![Arg::Value(turn), Arg::Value(count)], Out::Value(done))?;
        emitter.method.jump_if_false(done, again)?;
        // The next run begins at 0 again.
        emitter.prim("sub", vec![Arg::Value(turn), Arg::Value(count)], Out::Value(turn))?;
        Ok(())
    }
}
