//! Single calls, computed by lowering and running each alone.

use std::collections::BTreeMap;

use edgepack_executor::Registry;
use edgepack_executor::{Input, Method, Options, Output};
use edgepack_exir::decompose::composites;
use edgepack_exir::graph::{
    Argument, Dialect, ExportedProgram, Graph, NamedArgument, Node, OpName, Size, Target, TensorMeta,
};
use edgepack_exir::lower;
use edgepack_exir::operators::Operators;
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::{TensorLayout, TensorView};
use edgepack_loader::{Program, ValueMeta};

use super::slot::Slot;
use super::tensor::{Dense, Tensor, contiguous};
use super::{EagerError, Held, Value, number};

/// The most methods that are cached for calls that look the same.
const MOST_METHODS: usize = 4096;

/// Computes calls that change nothing.
pub(crate) struct Compute {
    pub(super) operators: Operators,
    registry: Registry,
    methods: BTreeMap<String, (Method, bool)>,
}

/// Results of a call.
pub(super) struct Computed {
    pub(super) results: Vec<Value>,
    /// True if the operator was decomposed.
    pub(super) composite: bool,
}

impl Compute {
    pub(crate) fn new(operators: Operators, registry: Registry) -> Self {
        Compute { operators, registry, methods: BTreeMap::new() }
    }

    /// Computes an operator. `recorded` is what its results look like, for operators without a shape function.
    pub(super) fn call(
        &mut self,
        op: &OpName,
        args: Vec<(String, Slot<Dense>)>,
        recorded: &[TensorMeta],
    ) -> Result<Computed, EagerError> {
        let mut graph = Graph::default();
        let mut inputs = Vec::new();
        let mut node = Node {
            name: op.name.clone(),
            target: Target::Operator(op.clone()),
            inputs: Vec::new(),
            outputs: Vec::new(),
            metadata: BTreeMap::new(),
            is_hop_single_tensor_return: None,
        };
        for (name, slot) in args {
            let arg = argument(&mut graph, &mut inputs, slot);
            node.inputs.push(NamedArgument { name, arg, keyword: false });
        }
        let metas = self.operators.infer(&graph, &node).unwrap_or_else(|| recorded.to_vec());
        if metas.is_empty() {
            return Err(EagerError::new(format!("what {op} gives here is not known")));
        }
        let lists = self
            .operators
            .schema(op)
            .is_some_and(|schema| schema.returns().first().is_some_and(|result| result.list.is_some()));
        let results: Vec<_> = metas.into_iter().map(|meta| graph.add_value(&op.name, meta)).collect();
        node.outputs = match lists {
            true => vec![Argument::tensors(results.iter().copied())],
            false => results.iter().map(|result| Argument::Value(*result)).collect(),
        };
        graph.nodes.push(node);
        graph.outputs = results.iter().map(|result| Argument::Value(*result)).collect();
        self.run(graph, &inputs).map_err(|error| EagerError::new(format!("{op}: {error}")))
    }

    fn run(&mut self, graph: Graph, inputs: &[Dense]) -> Result<Computed, EagerError> {
        let key = graph.to_string();
        if !self.methods.contains_key(&key) {
            if self.methods.len() >= MOST_METHODS {
                self.methods.clear();
            }
            let composite = composites(&graph).iter().any(|name| !self.operators.is_preserved(name));
            let method = self.load(graph)?;
            self.methods.insert(key.clone(), (method, composite));
        }
        let Some((method, composite)) = self.methods.get_mut(&key) else { return Err(EagerError::new("no method")) };
        Ok(Computed { results: run(method, inputs)?, composite: *composite })
    }

    fn load(&self, graph: Graph) -> Result<Method, EagerError> {
        let program = ExportedProgram::from_graph(graph, Dialect::Training);
        let options = lower::Options { operators: self.operators.clone(), ..lower::Options::default() };
        let built = lower::lower(vec![("forward".to_owned(), program)], &options).map_err(EagerError::new)?;
        let bytes = built.to_bytes().map_err(EagerError::new)?;
        let program = Program::from_bytes(bytes).map_err(EagerError::new)?;
        Method::load(&program, "forward", &self.registry, &Options::default()).map_err(EagerError::new)
    }
}

/// An argument of a call; tensors become inputs of the graph.
fn argument(graph: &mut Graph, inputs: &mut Vec<Dense>, slot: Slot<Dense>) -> Argument {
    match slot {
        Slot::None => Argument::None,
        Slot::Int(number) => Argument::Int(number),
        Slot::Float(number) => Argument::Float(number),
        Slot::Bool(truth) => Argument::Bool(truth),
        Slot::Other(argument) => argument,
        Slot::Tensor(dense) => {
            let sizes: Vec<Size> = dense.sizes.iter().copied().map(Size::Known).collect();
            let value = graph.add_input("x", TensorMeta::contiguous(dense.scalar_type, &sizes));
            inputs.push(dense);
            Argument::Value(value)
        }
        Slot::List(kind, items) => {
            let items = items.into_iter().map(|item| argument(graph, inputs, item)).collect();
            Argument::List(kind, items)
        }
    }
}

/// Runs a method.
pub(super) fn run(method: &mut Method, inputs: &[Dense]) -> Result<Vec<Value>, EagerError> {
    let metas = method.program().method(method.name()).and_then(|method| method.meta());
    let metas = metas.map(|meta| meta.inputs).unwrap_or_default();
    let mut laid = Vec::with_capacity(inputs.len());
    for (index, dense) in inputs.iter().enumerate() {
        let order: Vec<u8> = match metas.get(index).and_then(ValueMeta::tensor) {
            Some(meta) if meta.layout.sizes().len() == dense.sizes.len() => meta.layout.dim_order().to_vec(),
            _ => (0..).take(dense.sizes.len()).collect(),
        };
        let sizes: Vec<usize> = dense.sizes.iter().map(|size| *size as usize).collect();
        laid.push((sizes, dense.in_order(&order)?, order));
    }
    let mut given: Vec<Input<'_>> = Vec::with_capacity(inputs.len());
    for (index, (dense, (sizes, data, dim_order))) in inputs.iter().zip(&laid).enumerate() {
        given.push(match metas.get(index) {
            Some(ValueMeta::Int(_) | ValueMeta::Double(_) | ValueMeta::Bool(_)) => match number(dense)? {
                Held::Int(number) => Input::Int(number),
                Held::Float(number) => Input::Double(number),
                Held::Bool(truth) => Input::Bool(truth),
                _ => Input::Null,
            },
            _ => {
                let layout = TensorLayout::new(dense.scalar_type, sizes, dim_order).map_err(EagerError::new)?;
                Input::Tensor(TensorView::new(layout, data).map_err(EagerError::new)?)
            }
        });
    }
    let outputs = method.run(&given).map_err(EagerError::new)?;
    outputs.iter().map(value).collect()
}

/// An output with its elements in order.
pub(super) fn value(output: Output<'_>) -> Result<Value, EagerError> {
    Ok(match output {
        Output::Null => Value::None,
        Output::Int(number) => Value::Int(number),
        Output::Bool(truth) => Value::Bool(truth),
        Output::Double(number) => Value::Float(number),
        Output::Tensor(tensor) => Value::Tensor(in_order(tensor.sizes, tensor.dim_order, tensor.dtype, tensor.bytes())),
        Output::Text(_) | Output::List(_) => return Err(EagerError::new("an output that is text or a list")),
    })
}

/// Elements that are stored in memory in this order of dimensions, in the order of sizes.
pub(super) fn in_order(sizes: &[usize], order: &[u8], dtype: ScalarType, bytes: &[u8]) -> Dense {
    let sizes: Vec<i64> = sizes.iter().map(|size| *size as i64).collect();
    let mut strides = vec![1i64; sizes.len()];
    let mut step = 1;
    for dim in order.iter().rev().map(|dim| usize::from(*dim)) {
        if let (Some(stride), Some(size)) = (strides.get_mut(dim), sizes.get(dim)) {
            *stride = step;
            step *= size.max(&1);
        }
    }
    let tensor = Tensor::over(bytes.to_vec(), dtype, sizes.clone(), strides);
    tensor.read().unwrap_or(Dense { scalar_type: dtype, sizes, bytes: bytes.to_vec() })
}

impl Dense {
    /// The elements as they are in memory in this order of dimensions.
    fn in_order(&self, order: &[u8]) -> Result<Vec<u8>, EagerError> {
        let strides = contiguous(&self.sizes);
        let pick = |list: &[i64]| order.iter().filter_map(|dim| list.get(usize::from(*dim)).copied()).collect();
        let whole = Tensor::over(self.bytes.clone(), self.scalar_type, self.sizes.clone(), strides.clone());
        Ok(whole.seen(pick(&self.sizes), pick(&strides), 0).read()?.bytes)
    }
}
