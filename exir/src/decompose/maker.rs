//! Writes calls, each with what its results look like, and sizes as arguments.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

use edgepack_format::limits::Limits;
use edgepack_format::scalar::ScalarType;

use super::Composite;
use crate::error::Error;
use crate::graph::{
    Argument, Expr, Graph, ListKind, Meta, NamedArgument, Node, OpName, Size, Target, TensorMeta, ValueId,
};
use crate::operators::Operators;

/// Cost of writing a call in visits of [`Limits`], besides its arguments.
const CALL: u64 = 64;

/// Budget for what may still be written while a program is lowered; all its graphs use the same one.
#[derive(Clone)]
pub(crate) struct Work(Rc<Cell<u64>>);

impl Work {
    pub(crate) fn new(limits: &Limits) -> Self {
        Work(Rc::new(Cell::new(limits.visits)))
    }

    /// Pays for a node.
    pub(crate) fn write(&self, node: &Node) -> Result<(), Error> {
        let items = node.inputs.iter().map(|input| input.arg.items().len().max(1)).sum::<usize>();
        let cost = CALL.saturating_add(u64::try_from(items).unwrap_or(u64::MAX));
        let left = self.0.get().checked_sub(cost).ok_or_else(|| {
            let message = "what it stands for is longer than the limits allow a lowered program to be";
            Error::unsupported(format!("node `{}`", node.name), message)
        })?;
        self.0.set(left);
        Ok(())
    }
}

/// Sources of each symbol and formula: a number that was computed, or a size of an input.
pub(crate) struct Sizes {
    computed: BTreeMap<String, ValueId>,
    inputs: BTreeMap<String, (ValueId, usize)>,
    work: Work,
}

impl Sizes {
    /// Collects the sizes that the inputs of a graph give.
    pub(crate) fn of_inputs(graph: &Graph, work: &Work) -> Self {
        let mut sizes = Sizes { computed: BTreeMap::new(), inputs: BTreeMap::new(), work: work.clone() };
        for id in graph.inputs.iter().filter_map(Argument::value) {
            match graph.value(id).map(|value| &value.meta) {
                Some(Meta::Tensor(meta)) => sizes.note_tensor(id, meta),
                Some(Meta::Int(size)) => {
                    sizes.computed.insert(size.expr().to_string(), id);
                }
                _ => {}
            }
        }
        sizes
    }

    fn note_tensor(&mut self, id: ValueId, meta: &TensorMeta) {
        for (dim, size) in meta.sizes.iter().enumerate().filter(|(_, size)| size.known().is_none()) {
            self.inputs.entry(size.expr().to_string()).or_insert((id, dim));
        }
    }

    /// Notes what a node computes.
    pub(crate) fn note(&mut self, graph: &Graph, node: &Node) {
        for result in node.results() {
            match graph.value(result).map(|value| &value.meta) {
                Some(Meta::Int(size)) => {
                    self.computed.entry(size.expr().to_string()).or_insert(result);
                }
                Some(Meta::Tensor(meta)) => self.note_tensor(result, meta),
                _ => {}
            }
        }
    }
}

/// Writes the calls of one composite.
pub(crate) struct Maker<'m> {
    pub(crate) graph: &'m mut Graph,
    pub(crate) operators: &'m Operators,
    pub(crate) made: &'m mut Vec<Node>,
    pub(crate) sizes: &'m mut Sizes,
    /// The node that is decomposed.
    pub(crate) place: String,
}

impl Maker<'_> {
    /// Returns the metadata of a tensor.
    pub(crate) fn meta(&self, id: ValueId) -> Result<TensorMeta, Error> {
        let missing = || Error::program(format!("node `{}`", self.place), "it reads something that is not a tensor");
        self.graph.tensor(id).cloned().ok_or_else(missing)
    }

    /// Number of dimensions.
    pub(crate) fn rank(&self, id: ValueId) -> Result<usize, Error> {
        Ok(self.meta(id)?.rank())
    }

    /// Sizes.
    pub(crate) fn sizes(&self, id: ValueId) -> Result<Vec<Size>, Error> {
        Ok(self.meta(id)?.sizes)
    }

    /// The size of a dimension, counted from the end if negative.
    pub(crate) fn size(&self, id: ValueId, dim: i64) -> Result<Size, Error> {
        let sizes = self.sizes(id)?;
        let dim = self.dim(dim, sizes.len())?;
        sizes.get(dim).cloned().ok_or_else(|| self.error(format!("it has no dimension {dim}")))
    }

    /// The size of a dimension that has to be a number.
    pub(crate) fn known_size(&self, id: ValueId, dim: i64) -> Result<i64, Error> {
        let size = self.size(id, dim)?;
        size.known().ok_or_else(|| self.error(format!("dimension {dim} has no fixed size")))
    }

    /// A dimension counted from the front.
    pub(crate) fn dim(&self, dim: i64, rank: usize) -> Result<usize, Error> {
        let rank = i64::try_from(rank).unwrap_or(i64::MAX).max(1);
        let front = if dim < 0 { dim.saturating_add(rank) } else { dim };
        match usize::try_from(front) {
            Ok(front) if dim < rank => Ok(front),
            _ => Err(self.error(format!("dimension {dim} of {rank}"))),
        }
    }

    /// Makes the error of a node that cannot be decomposed, with the reason.
    pub(crate) fn error(&self, message: impl Into<String>) -> Error {
        Error::unsupported(format!("node `{}`", self.place), message)
    }

    /// A call with one result.
    pub(crate) fn call<const N: usize>(&mut self, op: &str, args: [(&str, Argument); N]) -> Result<ValueId, Error> {
        let results = self.calls(op, args)?;
        results.first().copied().ok_or_else(|| self.error(format!("{op} gives nothing")))
    }

    /// A call with any number of results.
    pub(crate) fn calls<const N: usize>(
        &mut self,
        op: &str,
        args: [(&str, Argument); N],
    ) -> Result<Vec<ValueId>, Error> {
        self.calls_with(op, args.into_iter().map(|(name, arg)| (name.to_owned(), arg)).collect())
    }

    /// Writes a call with any number of arguments.
    pub(super) fn calls_with(&mut self, op: &str, args: Vec<(String, Argument)>) -> Result<Vec<ValueId>, Error> {
        let name = format!("aten::{op}");
        let Some(target) = OpName::parse(&name) else { return Err(self.error(name)) };
        let input = |(name, arg): (String, Argument)| NamedArgument { name, arg, keyword: false };
        let inputs: Vec<NamedArgument> = args.into_iter().map(input).collect();
        let mut node = Node {
            name: String::new(),
            target: Target::Operator(target.clone()),
            inputs,
            outputs: Vec::new(),
            metadata: BTreeMap::new(),
            is_hop_single_tensor_return: None,
        };
        let metas = self.operators.infer(self.graph, &node);
        let metas = metas.ok_or_else(|| self.error(format!("what {name} gives here is not known")))?;
        let ids: Vec<ValueId> = metas.into_iter().map(|meta| self.graph.add_value(&target.name, meta)).collect();
        node.name = ids.first().map_or(String::new(), |id| self.graph.name(*id).to_owned());
        let lists = self
            .operators
            .schema(&target)
            .is_some_and(|schema| schema.returns().first().is_some_and(|result| result.list.is_some()));
        node.outputs = match lists {
            true => vec![Argument::tensors(ids.iter().copied())],
            false => ids.iter().map(|id| Argument::Value(*id)).collect(),
        };
        self.push(node)?;
        Ok(ids)
    }

    /// A call whose result looks as it is said, for operators whose sizes depend on the data.
    pub(super) fn call_giving<const N: usize>(
        &mut self,
        op: &str,
        args: [(&str, Argument); N],
        meta: TensorMeta,
    ) -> Result<ValueId, Error> {
        let node = self.graph.make(&format!("aten::{op}"), args, meta);
        let result = node.result().ok_or_else(|| self.error(format!("{op} gives nothing")))?;
        self.sizes.note(self.graph, &node);
        self.made.push(node);
        Ok(result)
    }

    /// A call of another operator with the arguments of this one, by position, and results that look like the recorded
    /// ones.
    pub(super) fn same_results(&mut self, op: &str, composite: &Composite<'_>) -> Result<Vec<ValueId>, Error> {
        let name = format!("aten::{op}");
        let target = OpName::parse(&name).ok_or_else(|| self.error(name.clone()))?;
        let names: Vec<String> = match self.operators.schema(&target) {
            Some(schema) => schema.args().iter().map(|parameter| parameter.name.to_owned()).collect(),
            None => return Err(self.error(format!("{name} is not known"))),
        };
        let given = composite.arguments.iter().map(|(_, argument)| argument.clone());
        let inputs = names.into_iter().zip(given).map(|(name, arg)| NamedArgument { name, arg, keyword: false });
        let mut node =
            Node { target: Target::Operator(target.clone()), inputs: inputs.collect(), ..composite.node.clone() };
        let mut ids = Vec::new();
        for result in composite.node.results() {
            let meta = self.graph.value(result).map(|value| value.meta.clone());
            ids.push(self.graph.add_value(&target.name, meta.ok_or_else(|| self.error("it gives nothing"))?));
        }
        node.name = ids.first().map_or(String::new(), |id| self.graph.name(*id).to_owned());
        node.outputs = ids.iter().map(|id| Argument::Value(*id)).collect();
        self.push(node)?;
        Ok(ids)
    }

    /// A call of one tensor.
    pub(crate) fn unary(&mut self, op: &str, input: ValueId) -> Result<ValueId, Error> {
        self.call(op, [("self", input.into())])
    }

    /// A call of a tensor and another or a number.
    pub(crate) fn binary(&mut self, op: &str, a: ValueId, b: impl Into<Argument>) -> Result<ValueId, Error> {
        self.call(op, [("self", a.into()), ("other", b.into())])
    }

    /// Sizes as arguments: numbers, or values that hold what is computed.
    pub(crate) fn size_args(&mut self, sizes: &[Size]) -> Result<Argument, Error> {
        let mut items = Vec::with_capacity(sizes.len());
        for size in sizes {
            items.push(self.size_arg(size)?);
        }
        Ok(Argument::List(ListKind::Ints, items))
    }

    /// Returns an argument as a size.
    pub(crate) fn size_of(&self, arg: &Argument) -> Result<Size, Error> {
        let found = match arg {
            Argument::Int(number) => Some(Size::Known(*number)),
            Argument::Value(value) => match self.graph.value(*value).map(|value| &value.meta) {
                Some(Meta::Int(size)) => Some(size.clone()),
                _ => None,
            },
            _ => None,
        };
        found.ok_or_else(|| self.error(format!("{arg:?} is not a size")))
    }

    /// A size as an argument.
    pub(crate) fn size_arg(&mut self, size: &Size) -> Result<Argument, Error> {
        match size.known() {
            Some(number) => Ok(Argument::Int(number)),
            None => self.computed(&size.expr(), size.hint()),
        }
    }

    /// A formula as a value: found, read off a tensor, or computed.
    fn computed(&mut self, expr: &Expr, hint: Option<i64>) -> Result<Argument, Error> {
        if let Expr::Integer(number) = expr {
            return Ok(Argument::Int(*number));
        }
        let key = expr.to_string();
        if let Some(id) = self.sizes.computed.get(&key) {
            return Ok(Argument::Value(*id));
        }
        let meta = Meta::Int(Size::Symbolic(expr.clone(), hint));
        if let Some((tensor, dim)) = self.sizes.inputs.get(&key).copied() {
            let dim = i64::try_from(dim).unwrap_or(0);
            return self.number("sym_size", Some("int"), vec![("self", tensor.into()), ("dim", dim.into())], meta);
        }
        let Expr::Apply(function, args) = expr else {
            return Err(self.error(format!("no tensor has the size {key}")));
        };
        let operator = match function.as_str() {
            "Add" => "_operator.add",
            "Mul" => "_operator.mul",
            "FloorDiv" | "CleanDiv" => "_operator.floordiv",
            "Mod" | "PythonMod" => "_operator.mod",
            "Max" => "torch.sym_max",
            "Min" => "torch.sym_min",
            _ => return Err(self.error(format!("the size {key} cannot be computed"))),
        };
        let mut args = args.iter();
        let Some(first) = args.next() else { return Err(self.error(format!("the size {key} is empty"))) };
        let mut value = self.computed(first, None)?;
        for next in args {
            let next = self.computed(next, None)?;
            value = self.number(operator, None, vec![("a", value), ("b", next)], meta.clone())?;
        }
        Ok(value)
    }

    fn number(
        &mut self,
        name: &str,
        overload: Option<&str>,
        args: Vec<(&str, Argument)>,
        meta: Meta,
    ) -> Result<Argument, Error> {
        let plain = name.rsplit_once('.').map_or(name, |(_, last)| last);
        let id = self.graph.add_value(plain, meta);
        let target = match overload {
            Some(overload) => Target::Operator(OpName {
                namespace: "aten".to_owned(),
                name: name.to_owned(),
                overload: overload.to_owned(),
            }),
            None => Target::Symbolic(name.to_owned()),
        };
        let input = |(name, arg): (&str, Argument)| NamedArgument { name: name.to_owned(), arg, keyword: false };
        let node = Node {
            name: self.graph.name(id).to_owned(),
            target,
            inputs: args.into_iter().map(input).collect(),
            outputs: vec![Argument::Value(id)],
            metadata: BTreeMap::new(),
            is_hop_single_tensor_return: None,
        };
        self.push(node)?;
        Ok(Argument::Value(id))
    }

    /// Writes a call down.
    pub(crate) fn push(&mut self, node: Node) -> Result<(), Error> {
        self.sizes.work.write(&node)?;
        self.sizes.note(self.graph, &node);
        self.made.push(node);
        Ok(())
    }

    /// Returns the elements of `input` in other sizes.
    pub(crate) fn view(&mut self, input: ValueId, sizes: &[Size]) -> Result<ValueId, Error> {
        if self.sizes(input)? == sizes {
            return Ok(input);
        }
        let sizes = self.size_args(sizes)?;
        self.call("view", [("self", input.into()), ("size", sizes)])
    }

    /// Dimensions in another order.
    pub(crate) fn permute(&mut self, input: ValueId, dims: &[i64]) -> Result<ValueId, Error> {
        if dims.iter().copied().eq(0..i64::try_from(dims.len()).unwrap_or(0)) {
            return Ok(input);
        }
        self.call("permute", [("self", input.into()), ("dims", Argument::ints(dims.iter().copied()))])
    }

    /// Two dimensions change places.
    pub(crate) fn transpose(&mut self, input: ValueId, a: i64, b: i64) -> Result<ValueId, Error> {
        let rank = self.rank(input)?;
        let (a, b) = (self.dim(a, rank)?, self.dim(b, rank)?);
        let mut dims: Vec<i64> = (0..i64::try_from(rank).unwrap_or(0)).collect();
        if a.max(b) < dims.len() {
            dims.swap(a, b);
        }
        self.permute(input, &dims)
    }

    /// Repeats what has one element along a dimension.
    pub(crate) fn expand(&mut self, input: ValueId, sizes: &[Size]) -> Result<ValueId, Error> {
        if self.sizes(input)? == sizes {
            return Ok(input);
        }
        let sizes = self.size_args(sizes)?;
        self.call("expand", [("self", input.into()), ("size", sizes)])
    }

    /// A part along a dimension.
    pub(crate) fn slice(&mut self, input: ValueId, dim: i64, start: i64, end: i64) -> Result<ValueId, Error> {
        let args = [("self", input.into()), ("dim", dim.into()), ("start", start.into()), ("end", end.into())];
        self.call("slice.Tensor", args)
    }

    /// One element along a dimension, which goes.
    pub(crate) fn select(&mut self, input: ValueId, dim: i64, index: i64) -> Result<ValueId, Error> {
        self.call("select.int", [("self", input.into()), ("dim", dim.into()), ("index", index.into())])
    }

    /// A dimension more.
    pub(crate) fn unsqueeze(&mut self, input: ValueId, dim: i64) -> Result<ValueId, Error> {
        self.call("unsqueeze", [("self", input.into()), ("dim", dim.into())])
    }

    /// Dimensions of one element less.
    pub(crate) fn squeeze(&mut self, input: ValueId, dims: &[i64]) -> Result<ValueId, Error> {
        self.call("squeeze.dims", [("self", input.into()), ("dim", Argument::ints(dims.iter().copied()))])
    }

    /// Tensors one after the other along a dimension.
    pub(crate) fn cat(&mut self, tensors: &[ValueId], dim: i64) -> Result<ValueId, Error> {
        match tensors {
            [only] => Ok(*only),
            _ => self.call("cat", [("tensors", Argument::tensors(tensors.iter().copied())), ("dim", dim.into())]),
        }
    }

    /// Another element type.
    pub(crate) fn cast(&mut self, input: ValueId, scalar_type: ScalarType) -> Result<ValueId, Error> {
        if self.meta(input)?.scalar_type == scalar_type {
            return Ok(input);
        }
        self.call("_to_copy", [("self", input.into()), ("dtype", Argument::ScalarType(scalar_type))])
    }

    /// A sum along dimensions, which stay with one element if asked for.
    pub(crate) fn sum(&mut self, input: ValueId, dims: &[i64], keep: bool) -> Result<ValueId, Error> {
        let dims = Argument::ints(dims.iter().copied());
        self.call("sum.dim_IntList", [("self", input.into()), ("dim", dims), ("keepdim", keep.into())])
    }

    /// A mean along dimensions, which stay with one element if asked for.
    pub(crate) fn mean(&mut self, input: ValueId, dims: &[i64], keep: bool) -> Result<ValueId, Error> {
        let dims = Argument::ints(dims.iter().copied());
        self.call("mean.dim", [("self", input.into()), ("dim", dims), ("keepdim", keep.into())])
    }

    /// A tensor of one number.
    pub(crate) fn full(&mut self, sizes: &[Size], value: Argument, scalar_type: ScalarType) -> Result<ValueId, Error> {
        let sizes = self.size_args(sizes)?;
        let args = [("size", sizes), ("fill_value", value), ("dtype", Argument::ScalarType(scalar_type))];
        self.call("full", args)
    }

    /// A tensor without dimensions.
    pub(crate) fn scalar(&mut self, value: Argument, scalar_type: ScalarType) -> Result<ValueId, Error> {
        self.call("scalar_tensor", [("s", value), ("dtype", Argument::ScalarType(scalar_type))])
    }

    /// Whole numbers from 0 on.
    pub(crate) fn count(&mut self, end: &Size) -> Result<ValueId, Error> {
        let end = self.size_arg(end)?;
        let args = [("start", Argument::Int(0)), ("end", end), ("dtype", Argument::ScalarType(ScalarType::LONG))];
        self.call("arange.start_step", args)
    }

    /// Elements of one tensor where a condition holds, of another elsewhere.
    pub(crate) fn choose(&mut self, condition: ValueId, yes: ValueId, no: ValueId) -> Result<ValueId, Error> {
        self.call("where.self", [("condition", condition.into()), ("self", yes.into()), ("other", no.into())])
    }
}
