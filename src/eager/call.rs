//! Calls of operators: arguments as numbers and tensors, and what each call does.

use edgepack_exir::graph::{Argument, Graph, MemoryFormat, Meta, Node, OpName, Size, TensorMeta};
use edgepack_exir::operators::arguments;
use edgepack_format::operators::Schema;
use edgepack_format::scalar::ScalarType;

use super::compute::Computed;
use super::slot::Slot;
use super::tensor::{Dense, Tensor, numel};
use super::views::views;
use super::{EagerError, Held, Machine, Value, Values, number};

/// Checks that exporters leave in a program; they give nothing.
const CHECKS: [&str; 4] = ["_assert", "_functional_assert", "sym_constrain_range", "_functional_sym_constrain_range"];

/// A call, with its arguments by name.
pub(super) struct Call<'a> {
    graph: &'a Graph,
    node: &'a Node,
    op: &'a OpName,
    args: Vec<(String, Slot)>,
    tensors: &'a [Tensor],
}

impl Call<'_> {
    /// The operator's name, if it is one of the library.
    pub(super) fn aten(&self) -> Option<&str> {
        (self.op.namespace == "aten").then_some(self.op.name.as_str())
    }

    pub(super) fn slot(&self, name: &str) -> Slot {
        self.args.iter().find(|(known, _)| known == name).map_or(Slot::None, |(_, slot)| slot.clone())
    }

    fn number_of(&self, name: &str) -> Option<usize> {
        match self.slot(name) {
            Slot::Tensor(at) => Some(at),
            _ => None,
        }
    }

    pub(super) fn tensor(&self, name: &str) -> Option<&Tensor> {
        self.tensors.get(self.number_of(name)?)
    }

    pub(super) fn int(&self, name: &str) -> Result<i64, EagerError> {
        match self.slot(name) {
            Slot::Int(number) => Ok(number),
            _ => Err(EagerError::new(format!("`{name}` is not a whole number"))),
        }
    }

    pub(super) fn ints(&self, name: &str) -> Result<Vec<i64>, EagerError> {
        let wrong = || EagerError::new(format!("`{name}` is not a list of whole numbers"));
        match self.slot(name) {
            Slot::List(_, items) => items
                .into_iter()
                .map(|item| match item {
                    Slot::Int(number) => Ok(number),
                    _ => Err(wrong()),
                })
                .collect(),
            _ => Err(wrong()),
        }
    }

    pub(super) fn flag(&self, name: &str) -> bool {
        self.slot(name) == Slot::Bool(true)
    }

    pub(super) fn number(&self, name: &str) -> Option<f64> {
        match self.slot(name) {
            Slot::Float(number) => Some(number),
            Slot::Int(number) => Some(number as f64),
            _ => None,
        }
    }

    pub(super) fn memory_format(&self) -> Option<MemoryFormat> {
        match self.slot("memory_format") {
            Slot::Other(Argument::MemoryFormat(format)) => Some(format),
            _ => None,
        }
    }

    fn result(&self, index: usize) -> Option<&TensorMeta> {
        recorded(self.graph, self.node, index)
    }

    pub(super) fn result_type(&self) -> Option<ScalarType> {
        self.result(0).map(|meta| meta.scalar_type)
    }

    /// The sizes of a view that has all elements of `x`.
    pub(super) fn result_sizes(&self, x: &Tensor) -> Result<Vec<i64>, EagerError> {
        let all = numel(&x.sizes)?;
        let rank = x.sizes.len();
        let mut sizes = match self.op.name.as_str() {
            "view_as" | "reshape_as" => self.tensor("other").map(|other| other.sizes.clone()).unwrap_or_default(),
            "ravel" => vec![all],
            "flatten" => {
                let wrap = |dim: i64| if dim < 0 { dim + rank.max(1) as i64 } else { dim } as usize;
                let (start, end) = (wrap(self.int("start_dim")?), wrap(self.int("end_dim")?));
                if rank == 0 || start > end || end >= rank {
                    vec![all]
                } else {
                    let mut sizes = x.sizes[..start].to_vec();
                    sizes.push(x.sizes[start..=end].iter().product());
                    sizes.extend(&x.sizes[end + 1..]);
                    sizes
                }
            }
            "unflatten" => {
                let dim = self.int("dim")?;
                let dim = if dim < 0 { dim + rank as i64 } else { dim } as usize;
                let Some(size) = x.sizes.get(dim) else { return Err(EagerError::new("a dimension that is not there")) };
                let inner = filled(self.ints("sizes")?, *size);
                let mut sizes = x.sizes.clone();
                sizes.splice(dim..=dim, inner);
                sizes
            }
            "atleast_1d" | "atleast_2d" | "atleast_3d" => match (self.op.name.as_str(), rank) {
                ("atleast_1d", 0) => vec![1],
                ("atleast_2d", 0) => vec![1, 1],
                ("atleast_2d", 1) => vec![1, x.sizes[0]],
                ("atleast_3d", 0) => vec![1, 1, 1],
                ("atleast_3d", 1) => vec![1, x.sizes[0], 1],
                ("atleast_3d", 2) => vec![x.sizes[0], x.sizes[1], 1],
                _ => x.sizes.clone(),
            },
            _ => match self.ints("size") {
                Ok(sizes) => sizes,
                Err(_) => self.ints("shape")?,
            },
        };
        sizes = filled(sizes, all);
        match numel(&sizes)? == all {
            true => Ok(sizes),
            false => Err(EagerError::new("a view of other elements")),
        }
    }

    /// Returns the lengths of the pieces along a dimension.
    pub(super) fn result_lengths(&self, dim: usize) -> Result<Vec<i64>, EagerError> {
        let whole = self.tensor("self").and_then(|x| x.sizes.get(dim).copied());
        let results = 0..self.node.results().len();
        let lengths: Option<Vec<i64>> = results.map(|index| self.result(index)?.sizes.get(dim)?.hint()).collect();
        match (lengths, whole) {
            (Some(lengths), Some(whole)) if lengths.iter().sum::<i64>() == whole => Ok(lengths),
            _ => Err(EagerError::new("pieces of unknown length")),
        }
    }

    fn results(&self) -> Vec<TensorMeta> {
        let known = |index: usize| self.result(index).cloned();
        (0..self.node.results().len()).filter_map(known).collect()
    }
}

/// Returns the metadata that was recorded for a result.
fn recorded<'g>(graph: &'g Graph, node: &Node, index: usize) -> Option<&'g TensorMeta> {
    graph.tensor(node.results().get(index).copied()?)
}

/// The strides that were recorded for a result, if it has the sizes that were recorded.
fn strides(meta: &TensorMeta, sizes: &[i64]) -> Option<Vec<i64>> {
    let hints = |list: &[Size]| list.iter().map(Size::hint).collect::<Option<Vec<i64>>>();
    (hints(&meta.sizes)? == sizes).then(|| hints(&meta.strides))?
}

/// Sizes with the one that is left open.
fn filled(mut sizes: Vec<i64>, all: i64) -> Vec<i64> {
    let known: i64 = sizes.iter().filter(|size| **size >= 0).product();
    if let Some(open) = sizes.iter_mut().find(|size| **size < 0) {
        *open = all.checked_div(known).unwrap_or(0);
    }
    sizes
}

impl Machine<'_> {
    fn slot(&self, values: &Values, argument: &Argument) -> Result<Slot, EagerError> {
        Ok(match argument {
            Argument::None => Slot::None,
            Argument::Int(number) => Slot::Int(*number),
            Argument::Float(number) => Slot::Float(*number),
            Argument::Bool(truth) => Slot::Bool(*truth),
            Argument::Value(_) => match self.held(values, argument)? {
                Held::Tensor(at) => Slot::Tensor(at),
                Held::Int(number) => Slot::Int(number),
                Held::Float(number) => Slot::Float(number),
                Held::Bool(truth) => Slot::Bool(truth),
                Held::None => Slot::None,
            },
            Argument::List(kind, items) => {
                Slot::List(*kind, items.iter().map(|item| self.slot(values, item)).collect::<Result<_, _>>()?)
            }
            other => Slot::Other(other.clone()),
        })
    }

    /// Runs a call of an operator.
    pub(super) fn operator(&mut self, graph: &Graph, node: &Node, values: &Values) -> Result<Vec<Held>, EagerError> {
        let Some(op) = node.target.operator() else { return Err(EagerError::new("no operator")) };
        if node.outputs.is_empty() && CHECKS.iter().any(|check| op.name.starts_with(check)) {
            return Ok(Vec::new());
        }
        let text = self.compute.operators.text(&op.to_string()).map(str::to_owned);
        let text = text.ok_or_else(|| EagerError::new(format!("{op} is not known")))?;
        let schema = Schema::parse(&text).map_err(EagerError::new)?;
        let mut args = Vec::new();
        for (parameter, argument) in arguments(&schema, node) {
            if let Some(argument) = argument {
                args.push((parameter.name.to_owned(), self.slot(values, &argument)?));
            }
        }
        let mut receivers = Vec::new();
        for parameter in schema.args().iter().filter(|parameter| parameter.is_out()) {
            let given = node.arg(parameter.name).map(|argument| self.slot(values, argument)).transpose()?;
            match given {
                Some(Slot::Tensor(at)) => receivers.push(at),
                _ => return Err(EagerError::new(format!("`{}` is missing", parameter.name))),
            }
        }
        let changes = schema.args().iter().any(|parameter| parameter.mutated);
        let call = Call { graph, node, op, args, tensors: &self.tensors };
        if let Some(number) = read_number(&call)? {
            return Ok(vec![number]);
        }
        let (views, of) = (views(&call)?, call.number_of("self").or(call.number_of("input")));
        let (results, args) = (call.results(), call.args);
        if let Some(views) = views {
            let mut views = views.into_iter();
            // What works in place gives the tensor itself.
            return match (changes, of) {
                (true, Some(at)) => {
                    self.tensors[at] = views.next().ok_or_else(|| EagerError::new(format!("{op} shows nothing")))?;
                    Ok(vec![Held::Tensor(at)])
                }
                _ => Ok(views.map(|view| Held::Tensor(self.add(view))).collect()),
            };
        }
        if !receivers.is_empty() {
            return self.receive(op, &schema, args, &receivers);
        }
        if changes {
            return self.change(op, args, &results);
        }
        if matches!(op.name.as_str(), "batch_norm" | "native_batch_norm") && op.namespace == "aten" {
            let training = args.contains(&("training".to_owned(), Slot::Bool(true)));
            let kept = args.iter().any(|(name, slot)| name == "running_mean" && *slot != Slot::None);
            if training && kept {
                return Err(EagerError::new("batch normalisation in training"));
            }
        }
        let computed = self.computed(op, args.clone(), &results)?;
        let mut held = Vec::new();
        for (index, value) in computed.into_iter().enumerate() {
            held.push(match value {
                Value::Tensor(dense) => {
                    let strides = recorded(graph, node, index).and_then(|meta| strides(meta, &dense.sizes));
                    let tensor = Tensor::new(&dense, strides)?;
                    Held::Tensor(self.add(tensor))
                }
                Value::Int(number) => Held::Int(number),
                Value::Float(number) => Held::Float(number),
                Value::Bool(truth) => Held::Bool(truth),
                Value::None => Held::None,
            });
        }
        Ok(held)
    }

    /// Computes a call on copies of its tensors.
    fn computed(
        &mut self,
        op: &OpName,
        args: Vec<(String, Slot)>,
        recorded: &[TensorMeta],
    ) -> Result<Vec<Value>, EagerError> {
        let copy = |args: Vec<(String, Slot)>| -> Result<Vec<(String, Slot<Dense>)>, EagerError> {
            args.into_iter().map(|(name, slot)| Ok((name, slot.map(&mut |at| self.tensor(at)?.read())?))).collect()
        };
        let copies = copy(args)?;
        let Computed { results, composite } = self.compute.call(op, copies, recorded)?;
        if composite {
            self.composites.push(op.to_string());
        }
        Ok(results)
    }

    /// Elements of another type.
    fn cast(&mut self, dense: Dense, scalar_type: ScalarType) -> Result<Dense, EagerError> {
        if dense.scalar_type == scalar_type {
            return Ok(dense);
        }
        let op = OpName { namespace: "aten".to_owned(), name: "_to_copy".to_owned(), overload: String::new() };
        let args = vec![
            ("self".to_owned(), Slot::Tensor(dense)),
            ("dtype".to_owned(), Slot::Other(Argument::ScalarType(scalar_type))),
        ];
        match self.compute.call(&op, args, &[])?.results.pop() {
            Some(Value::Tensor(dense)) => Ok(dense),
            _ => Err(EagerError::new("a conversion gave no tensor")),
        }
    }

    /// A call that changes `self`.
    fn change(
        &mut self,
        op: &OpName,
        mut args: Vec<(String, Slot)>,
        recorded: &[TensorMeta],
    ) -> Result<Vec<Held>, EagerError> {
        let at = match args.iter().find(|(name, _)| name == "self") {
            Some((_, Slot::Tensor(at))) => *at,
            _ => return Err(EagerError::new(format!("{op} changes more than `self`"))),
        };
        let target = self.tensor(at)?.clone();
        let given = |args: &[(String, Slot)], name: &str| {
            args.iter().find(|(known, _)| known == name).map_or(Slot::None, |(_, slot)| slot.clone())
        };
        let new = match op.name.as_str() {
            "copy_" => match given(&args, "src") {
                Slot::Tensor(from) => self.tensor(from)?.read()?,
                _ => return Err(EagerError::new("nothing is copied")),
            },
            "fill_" | "zero_" | "fill_diagonal_" => {
                let value = match op.name.as_str() {
                    "fill_" => given(&args, "value"),
                    "zero_" => Slot::Int(0),
                    _ => given(&args, "fill_value"),
                };
                let target = match op.name.as_str() {
                    "fill_diagonal_" => diagonal(&target)?,
                    _ => target,
                };
                let dense = match value {
                    Slot::Tensor(from) => self.tensor(from)?.read()?,
                    number => self.scalar(number, target.scalar_type)?,
                };
                let dense = self.cast(dense, target.scalar_type)?;
                target.write(&dense)?;
                return Ok(vec![Held::Tensor(at)]);
            }
            name => {
                let twin = match name.strip_prefix("__i") {
                    Some(rest) => format!("__{rest}"),
                    None => name.trim_end_matches('_').to_owned(),
                };
                let named = |overload: &str| OpName { name: twin.clone(), overload: overload.to_owned(), ..op.clone() };
                let known = |op: &OpName| self.compute.operators.text(&op.to_string()).is_some();
                let twin = [named(&op.overload), named("")].into_iter().find(known);
                let twin = twin.ok_or_else(|| EagerError::new(format!("{op} cannot be run")))?;
                args.retain(|(_, slot)| *slot != Slot::None);
                match self.computed(&twin, args, recorded)?.into_iter().next() {
                    Some(Value::Tensor(dense)) => dense,
                    _ => return Err(EagerError::new(format!("{op} gave no tensor"))),
                }
            }
        };
        let new = self.cast(new, target.scalar_type)?;
        target.write(&new)?;
        Ok(vec![Held::Tensor(at)])
    }

    /// A number as a tensor without dimensions.
    fn scalar(&mut self, number: Slot, scalar_type: ScalarType) -> Result<Dense, EagerError> {
        let (from, bytes) = match number {
            Slot::Int(number) => (ScalarType::LONG, number.to_ne_bytes().to_vec()),
            Slot::Float(number) => (ScalarType::DOUBLE, number.to_ne_bytes().to_vec()),
            Slot::Bool(truth) => (ScalarType::BOOL, vec![u8::from(truth)]),
            _ => return Err(EagerError::new("it is filled with nothing")),
        };
        self.cast(Dense { scalar_type: from, sizes: Vec::new(), bytes }, scalar_type)
    }

    /// A call that writes its results into tensors it is given.
    fn receive(
        &mut self,
        op: &OpName,
        schema: &Schema<'_>,
        args: Vec<(String, Slot)>,
        receivers: &[usize],
    ) -> Result<Vec<Held>, EagerError> {
        let trimmed = schema.overload().trim_end_matches("out").trim_end_matches('_').to_owned();
        let overloads = [trimmed.as_str(), "", "Tensor", "Scalar", "dim", "self"];
        let named = |overload: &&str| OpName { overload: (*overload).to_owned(), ..op.clone() };
        let takes = |op: &OpName| {
            let Some(schema) = self.compute.operators.schema(op) else { return false };
            let names: Vec<&str> = schema.args().iter().map(|parameter| parameter.name).collect();
            args.iter().all(|(name, _)| names.contains(&name.as_str())) && schema.outs().next().is_none()
        };
        let twin = overloads.iter().map(named).find(takes);
        let twin = twin.ok_or_else(|| EagerError::new(format!("{op} cannot be run")))?;
        let results = self.computed(&twin, args, &[])?;
        for (at, value) in receivers.iter().zip(results) {
            let Value::Tensor(dense) = value else { return Err(EagerError::new(format!("{op} gave no tensor"))) };
            let target = self.tensor(*at)?.clone();
            if dense.sizes != target.sizes {
                return Err(EagerError::new(format!("{op} changes the sizes of its receiver")));
            }
            let dense = self.cast(dense, target.scalar_type)?;
            target.write(&dense)?;
        }
        Ok(receivers.iter().map(|at| Held::Tensor(*at)).collect())
    }
}

/// The main diagonal of a matrix.
fn diagonal(x: &Tensor) -> Result<Tensor, EagerError> {
    match (x.sizes.as_slice(), x.strides.as_slice()) {
        ([rows, columns], [row, column]) => Ok(x.seen(vec![*rows.min(columns)], vec![row + column], x.offset)),
        _ => Err(EagerError::new("the diagonal of what is not a matrix")),
    }
}

/// Calls that give a number.
fn read_number(call: &Call<'_>) -> Result<Option<Held>, EagerError> {
    let Some(name) = call.aten() else { return Ok(None) };
    let first = call.node.results().first().copied();
    if !matches!(
        first.and_then(|value| call.graph.value(value)).map(|value| &value.meta),
        Some(Meta::Int(_) | Meta::Float(_) | Meta::Bool(_))
    ) {
        return Ok(None);
    }
    let x = call.tensor("self").ok_or_else(|| EagerError::new("it reads no tensor"))?;
    Ok(Some(match name {
        "sym_size" => {
            let dim = call.int("dim")?;
            let dim = if dim < 0 { dim + x.sizes.len() as i64 } else { dim };
            let size = usize::try_from(dim).ok().and_then(|dim| x.sizes.get(dim));
            Held::Int(*size.ok_or_else(|| EagerError::new("a dimension that is not there"))?)
        }
        "sym_numel" => Held::Int(numel(&x.sizes)?),
        "item" | "_local_scalar_dense" => number(&x.read()?)?,
        _ => return Err(EagerError::new(format!("{name} gives a number"))),
    }))
}
