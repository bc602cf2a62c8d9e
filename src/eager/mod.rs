//! Runs exported programs call by call, as PyTorch runs them eagerly: tensors share storages, calls change them in place.
//!
//! Slow, and there to judge by: [`lowering`] holds what a program was lowered to against it. Views and changes in place
//! are this module's own, by sizes, strides and offsets; it shares nothing with the lowering there. Any other call is
//! computed on copies of its tensors, by lowering that call alone: that judges which tensors a program reads and
//! changes, not what one composite operator computes.

mod call;
mod compute;
mod judge;
mod slot;
mod tensor;
mod views;

pub use judge::{Judgement, lowering, random_inputs};
pub use tensor::Dense;

use std::collections::BTreeMap;

use edgepack_executor::Registry;
use edgepack_exir::graph::{Argument, ExportedProgram, Graph, InputKind, Node, OutputKind, Size, Target, ValueId};
use edgepack_exir::operators::Operators;
use edgepack_format::scalar::ScalarType;

use call::Call;
use compute::Compute;
use slot::Slot;
use tensor::Tensor;

/// Reason for which a program cannot be run here.
#[derive(Clone, PartialEq, Debug)]
pub struct EagerError {
    place: String,
    message: String,
}

impl std::fmt::Display for EagerError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.place.as_str() {
            "" => f.write_str(&self.message),
            place => write!(f, "{place}: {}", self.message),
        }
    }
}

impl std::error::Error for EagerError {}

impl EagerError {
    pub(crate) fn new(message: impl ToString) -> Self {
        EagerError { place: String::new(), message: message.to_string() }
    }

    fn at(self, node: &Node) -> Self {
        match self.place.is_empty() {
            true => EagerError { place: format!("node `{}`", node.name), ..self },
            false => self,
        }
    }
}

/// A result of a program.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum Value {
    /// Tensor without gaps, its bytes in the machine's order.
    Tensor(Dense),
    /// A whole number.
    Int(i64),
    /// Number in double precision.
    Float(f64),
    /// A truth value.
    Bool(bool),
    /// Nothing.
    None,
}

/// A value while a program runs.
#[derive(Clone, Debug)]
enum Held {
    /// A tensor, by number: calls that work in place may let it show other sizes.
    Tensor(usize),
    Int(i64),
    Float(f64),
    Bool(bool),
    None,
}

/// Results and facts of a finished run.
pub(crate) struct Finished {
    /// Inputs that users gave and the program changed, in their order, then what it gives.
    pub(crate) outputs: Vec<Value>,
    /// Operators that were computed by being decomposed, as they are when a program is lowered.
    pub(crate) composites: Vec<String>,
    layouts: Layouts,
}

/// Strides and offsets of tensors, in elements.
pub type Layouts = BTreeMap<ValueId, (Vec<i64>, i64)>;

/// Returns the strides and offsets of the tensors that a program makes when it runs on these inputs.
pub fn layouts(
    program: &ExportedProgram<'_>,
    registry: &Registry,
    operators: &Operators,
    inputs: &[Dense],
) -> Result<Layouts, EagerError> {
    let mut compute = Compute::new(operators.clone(), registry.clone());
    Ok(run(program, inputs, &mut State::new(), &mut compute)?.layouts)
}

/// The state of a program: its buffers and parameters, by name.
pub(crate) type State = BTreeMap<String, Dense>;

/// Runs a program. `state` holds buffers that earlier runs changed.
pub(crate) fn run(
    program: &ExportedProgram<'_>,
    inputs: &[Dense],
    state: &mut State,
    compute: &mut Compute,
) -> Result<Finished, EagerError> {
    let mut machine = Machine::new(compute);
    let mut given = inputs.iter();
    let mut held = Vec::with_capacity(program.inputs.len());
    let mut users = Vec::new();
    let mut kept = Vec::new();
    for spec in &program.inputs {
        let meta = spec.arg.value().and_then(|value| program.graph.tensor(value));
        let strides = meta.and_then(|meta| meta.strides.iter().map(Size::hint).collect::<Option<Vec<_>>>());
        let dense = match (&spec.kind, spec.kind.tensor()) {
            (_, Some(name)) => match state.get(name) {
                Some(dense) => Some(dense.clone()),
                None => Some(weight(program, name)?),
            },
            (InputKind::User, None) if meta.is_some() => {
                Some(given.next().cloned().ok_or_else(|| EagerError::new("an input is missing"))?)
            }
            _ => None,
        };
        held.push(match (dense, &spec.arg) {
            (Some(dense), _) => {
                let tensor = machine.add(Tensor::new(&dense, strides)?);
                match spec.kind.tensor() {
                    Some(name) if !matches!(spec.kind, InputKind::Constant(_)) => kept.push((name.to_owned(), tensor)),
                    Some(_) => {}
                    None => users.push(tensor),
                }
                Held::Tensor(tensor)
            }
            (None, Argument::Value(_)) => match given.next() {
                Some(dense) => number(dense)?,
                None => return Err(EagerError::new("an input is missing")),
            },
            (None, literal) => literal_of(literal)?,
        });
    }
    let results = machine.graph(&program.graph, held)?;
    let mut outputs = Vec::new();
    for tensor in users {
        let now = machine.tensor(tensor)?;
        if now.is_written() {
            outputs.push(Value::Tensor(now.read()?));
        }
    }
    for (spec, result) in program.outputs.iter().zip(results) {
        match &spec.kind {
            OutputKind::User | OutputKind::Loss | OutputKind::InputMutation(_) => outputs.push(machine.value(&result)?),
            OutputKind::BufferMutation(name) | OutputKind::ParameterMutation(name) => {
                if let Value::Tensor(dense) = machine.value(&result)? {
                    state.insert(name.clone(), dense);
                }
            }
            _ => return Err(EagerError::new("an output that is neither a result nor state")),
        }
    }
    for (name, tensor) in kept {
        let now = machine.tensor(tensor)?;
        if now.is_written() {
            state.insert(name, now.read()?);
        }
    }
    machine.composites.sort();
    machine.composites.dedup();
    Ok(Finished { outputs, composites: machine.composites, layouts: machine.layouts })
}

/// The elements of a tensor of the program.
fn weight(program: &ExportedProgram<'_>, name: &str) -> Result<Dense, EagerError> {
    let missing = || EagerError::new(format!("the program has no tensor `{name}`"));
    let weight = program.weights.find(name).ok_or_else(missing)?;
    let order: Vec<u8> = (0..=u8::MAX).take(weight.sizes().len()).collect();
    let (_, data) = weight.data(&order).map_err(EagerError::new)?;
    let mut bytes = Vec::new();
    data.write_to(&mut bytes).map_err(EagerError::new)?;
    let sizes = weight.sizes().iter().map(|size| *size as i64).collect();
    Ok(Dense { scalar_type: weight.scalar_type(), sizes, bytes })
}

/// The number that the first element of a tensor is.
fn number(dense: &Dense) -> Result<Held, EagerError> {
    fn first<const N: usize>(dense: &Dense) -> Result<[u8; N], EagerError> {
        dense.bytes.first_chunk().copied().ok_or_else(|| EagerError::new("a number of no elements"))
    }
    match dense.scalar_type {
        ScalarType::LONG => Ok(Held::Int(i64::from_ne_bytes(first(dense)?))),
        ScalarType::INT => Ok(Held::Int(i32::from_ne_bytes(first(dense)?).into())),
        ScalarType::DOUBLE => Ok(Held::Float(f64::from_ne_bytes(first(dense)?))),
        ScalarType::FLOAT => Ok(Held::Float(f32::from_ne_bytes(first(dense)?).into())),
        ScalarType::BOOL => Ok(Held::Bool(first::<1>(dense)? != [0])),
        other => Err(EagerError::new(format!("one number of {other}"))),
    }
}

fn literal_of(argument: &Argument) -> Result<Held, EagerError> {
    match argument {
        Argument::None | Argument::Text(_) => Ok(Held::None),
        Argument::Int(number) => Ok(Held::Int(*number)),
        Argument::Float(number) => Ok(Held::Float(*number)),
        Argument::Bool(truth) => Ok(Held::Bool(*truth)),
        _ => Err(EagerError::new("a literal of another kind")),
    }
}

struct Machine<'c> {
    compute: &'c mut Compute,
    tensors: Vec<Tensor>,
    composites: Vec<String>,
    /// Strides and offset of every tensor when it was made, by value of the graph outside.
    layouts: Layouts,
    depth: usize,
}

/// The values of one graph.
type Values = BTreeMap<ValueId, Held>;

impl<'c> Machine<'c> {
    fn new(compute: &'c mut Compute) -> Self {
        Machine { compute, tensors: Vec::new(), composites: Vec::new(), layouts: Layouts::new(), depth: 0 }
    }

    fn add(&mut self, tensor: Tensor) -> usize {
        self.tensors.push(tensor);
        self.tensors.len() - 1
    }

    fn tensor(&self, at: usize) -> Result<&Tensor, EagerError> {
        self.tensors.get(at).ok_or_else(|| EagerError::new("a tensor that is not there"))
    }

    fn value(&self, held: &Held) -> Result<Value, EagerError> {
        Ok(match held {
            Held::Tensor(at) => Value::Tensor(self.tensor(*at)?.read()?),
            Held::Int(number) => Value::Int(*number),
            Held::Float(number) => Value::Float(*number),
            Held::Bool(truth) => Value::Bool(*truth),
            Held::None => Value::None,
        })
    }

    /// Runs a graph on what its inputs hold.
    fn graph(&mut self, graph: &Graph, inputs: Vec<Held>) -> Result<Vec<Held>, EagerError> {
        let mut values = Values::new();
        for (input, held) in graph.inputs.iter().zip(inputs) {
            if let Some(value) = input.value() {
                values.insert(value, held);
            }
        }
        self.depth += 1;
        for node in &graph.nodes {
            self.node(graph, node, &mut values).map_err(|error| error.at(node))?;
        }
        self.depth -= 1;
        let mut results = Vec::new();
        for output in &graph.outputs {
            for item in flat(output) {
                results.push(self.held(&values, item)?);
            }
        }
        Ok(results)
    }

    fn held(&self, values: &Values, argument: &Argument) -> Result<Held, EagerError> {
        match argument {
            Argument::Value(value) => {
                values.get(value).cloned().ok_or_else(|| EagerError::new("a value is read before it is made"))
            }
            literal => literal_of(literal),
        }
    }

    fn node(&mut self, graph: &Graph, node: &Node, values: &mut Values) -> Result<(), EagerError> {
        let results = match &node.target {
            Target::Operator(_) | Target::Edge(_) => self.operator(graph, node, values)?,
            Target::Symbolic(name) => vec![self.symbolic(name, node, values)?],
            Target::HigherOrder(name) => self.higher_order(name, node, values)?,
            _ => return Err(EagerError::new(format!("{} cannot be run", node.target))),
        };
        let made = node.results();
        if results.len() < made.len() {
            return Err(EagerError::new(format!("{} gave {} results of {}", node.target, results.len(), made.len())));
        }
        for (value, held) in made.into_iter().zip(results) {
            if let (Held::Tensor(at), 1) = (&held, self.depth) {
                let tensor = self.tensor(*at)?;
                self.layouts.insert(value, (tensor.strides.clone(), tensor.offset));
            }
            values.insert(value, held);
        }
        Ok(())
    }

    fn higher_order(&mut self, name: &str, node: &Node, values: &mut Values) -> Result<Vec<Held>, EagerError> {
        let args: Vec<&Argument> = node.inputs.iter().map(|input| &input.arg).collect();
        let all = |machine: &Self, values: &Values, list: &[Argument]| -> Result<Vec<Held>, EagerError> {
            list.iter().map(|item| machine.held(values, item)).collect()
        };
        let wrapped = args.iter().position(|arg| matches!(arg, Argument::Graph(..)));
        match (name, args.as_slice()) {
            ("cond", [condition, Argument::Graph(_, yes), Argument::Graph(_, no), operands, ..]) => {
                let condition = self.held(values, condition)?;
                let operands = all(self, values, operands.items())?;
                let branch = if self.truth(&condition)? { yes } else { no };
                self.graph(branch, operands)
            }
            ("while_loop", [Argument::Graph(_, condition), Argument::Graph(_, body), carried, rest @ ..]) => {
                let mut carried = all(self, values, carried.items())?;
                let more = all(self, values, rest.first().map_or(&[][..], |rest| rest.items()))?;
                // A loop of a program that is judged ends soon.
                for _ in 0..10_000 {
                    let given: Vec<Held> = carried.iter().chain(&more).cloned().collect();
                    let goes_on = self.graph(condition, given.clone())?;
                    let Some(goes_on) = goes_on.first() else { break };
                    if !self.truth(goes_on)? {
                        return Ok(carried);
                    }
                    carried = self.graph(body, given)?;
                }
                Err(EagerError::new("a loop that does not end"))
            }
            ("wrap_with_set_grad_enabled" | "wrap_with_autocast", _) => {
                let at = wrapped.ok_or_else(|| EagerError::new("a region without a graph"))?;
                let (Some(Argument::Graph(_, inner)), rest) = (args.get(at), args.get(at + 1..).unwrap_or_default())
                else {
                    return Err(EagerError::new("a region without a graph"));
                };
                let operands = rest.iter().flat_map(|arg| flat(arg)).map(|item| self.held(values, item));
                let operands = operands.collect::<Result<Vec<_>, _>>()?;
                self.graph(inner, operands)
            }
            _ => Err(EagerError::new(format!("{name} cannot be run call by call"))),
        }
    }

    fn truth(&self, held: &Held) -> Result<bool, EagerError> {
        match held {
            Held::Bool(truth) => Ok(*truth),
            Held::Int(number) => Ok(*number != 0),
            Held::Float(number) => Ok(*number != 0.0),
            Held::Tensor(at) => Ok(self.tensor(*at)?.read()?.bytes.iter().any(|byte| *byte != 0)),
            Held::None => Err(EagerError::new("a condition that is nothing")),
        }
    }

    /// Arithmetic on numbers.
    fn symbolic(&self, name: &str, node: &Node, values: &Values) -> Result<Held, EagerError> {
        let args: Vec<Held> =
            node.inputs.iter().map(|input| self.held(values, &input.arg)).collect::<Result<_, _>>()?;
        let plain = name.rsplit_once('.').map_or(name, |(_, plain)| plain);
        let unknown = || EagerError::new(format!("{name} of these numbers"));
        Ok(match (plain, args.as_slice()) {
            ("neg", [Held::Int(a)]) => Held::Int(a.checked_neg().ok_or_else(unknown)?),
            ("sym_float", [Held::Int(a)]) => Held::Float(*a as f64),
            ("sym_int" | "int", [Held::Float(a)]) => Held::Int(*a as i64),
            ("sym_not" | "not_", [Held::Bool(a)]) => Held::Bool(!a),
            ("and_", [Held::Bool(a), Held::Bool(b)]) => Held::Bool(*a && *b),
            ("or_", [Held::Bool(a), Held::Bool(b)]) => Held::Bool(*a || *b),
            ("eq", [Held::Int(a), Held::Int(b)]) => Held::Bool(a == b),
            ("ne", [Held::Int(a), Held::Int(b)]) => Held::Bool(a != b),
            ("lt", [Held::Int(a), Held::Int(b)]) => Held::Bool(a < b),
            ("le", [Held::Int(a), Held::Int(b)]) => Held::Bool(a <= b),
            ("gt", [Held::Int(a), Held::Int(b)]) => Held::Bool(a > b),
            ("ge", [Held::Int(a), Held::Int(b)]) => Held::Bool(a >= b),
            (plain, [Held::Int(a), Held::Int(b)]) => Held::Int(integers(plain, *a, *b).ok_or_else(unknown)?),
            ("add", [Held::Float(a), Held::Float(b)]) => Held::Float(a + b),
            ("mul", [Held::Float(a), Held::Float(b)]) => Held::Float(a * b),
            ("truediv", [Held::Float(a), Held::Float(b)]) => Held::Float(a / b),
            _ => return Err(unknown()),
        })
    }
}

/// Arithmetic on whole numbers by Python's rules.
fn integers(name: &str, a: i64, b: i64) -> Option<i64> {
    match name {
        "add" => a.checked_add(b),
        "sub" => a.checked_sub(b),
        "mul" => a.checked_mul(b),
        "floordiv" => {
            let quotient = a.checked_div(b)?;
            if quotient.checked_mul(b)? != a && (a < 0) != (b < 0) { quotient.checked_sub(1) } else { Some(quotient) }
        }
        "mod" => {
            let rest = a.checked_rem(b)?;
            if rest != 0 && (rest < 0) != (b < 0) { rest.checked_add(b) } else { Some(rest) }
        }
        "pow" => a.checked_pow(u32::try_from(b).ok()?),
        "sym_max" | "max" => Some(a.max(b)),
        "sym_min" | "min" => Some(a.min(b)),
        _ => None,
    }
}

/// The items of a list, or the argument itself.
fn flat(argument: &Argument) -> Vec<&Argument> {
    match argument {
        Argument::List(_, items) => items.iter().flat_map(flat).collect(),
        one => vec![one],
    }
}
