//! Nodes: what is called, with what, and what comes out.

use std::collections::BTreeMap;
use std::fmt;

use edgepack_format::scalar::ScalarType;

use super::{Graph, MemoryFormat, ValueId};
use crate::json::{ComplexValue, Device};

/// Call of an operator, of arithmetic on symbols, or of a delegate.
#[derive(Clone, PartialEq, Debug)]
pub struct Node {
    /// Name of the node.
    pub name: String,
    /// Target of the call.
    pub target: Target,
    /// With what; arguments left at their default are missing.
    pub inputs: Vec<NamedArgument>,
    /// Results: one value, nothing or a list per return of the schema.
    pub outputs: Vec<Argument>,
    /// Origin of the node in the source, as text.
    pub metadata: BTreeMap<String, String>,
    /// True if a higher-order operator gives a bare tensor.
    pub is_hop_single_tensor_return: Option<bool>,
}

/// An argument with its name in the schema.
#[derive(Clone, PartialEq, Debug)]
pub struct NamedArgument {
    /// Empty for higher-order operators.
    pub name: String,
    /// Value, literal, list or sub-graph that is passed.
    pub arg: Argument,
    /// True if the argument is given by name only.
    pub keyword: bool,
}

/// The full name of an operator.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct OpName {
    /// Such as `aten`.
    pub namespace: String,
    /// Such as `add`.
    pub name: String,
    /// Such as `Tensor`; empty for the default one.
    pub overload: String,
}

impl OpName {
    /// Reads `aten::add.Tensor`.
    pub fn parse(text: &str) -> Option<Self> {
        let (namespace, rest) = text.split_once("::")?;
        let (name, overload) = rest.split_once('.').unwrap_or((rest, ""));
        Some(OpName { namespace: namespace.to_owned(), name: name.to_owned(), overload: overload.to_owned() })
    }

    /// Namespace and name without overload.
    pub fn base(&self) -> String {
        format!("{}::{}", self.namespace, self.name)
    }
}

/// Operators that the Edge dialect leaves as the library registers them: checks, and those that give sizes.
const RAW: [&str; 10] = [
    "aten::_assert_scalar",
    "aten::_assert_async.msg",
    "aten::scalar_tensor",
    "aten::sym_size.int",
    "aten::sym_stride.int",
    "aten::sym_numel",
    "aten::sym_storage_offset",
    "aten::_local_scalar_dense",
    "aten::sym_constrain_range",
    "aten::sym_constrain_range_for_size",
];

impl OpName {
    /// Returns whether the Edge dialect uses the operator as the library registers it.
    pub(crate) fn stays_raw(&self) -> bool {
        self.namespace == "executorch_prim" || RAW.contains(&self.to_string().as_str())
    }
}

impl OpName {
    /// Returns whether this is its full name, such as `aten::add.Tensor`.
    pub fn is(&self, full_name: &str) -> bool {
        let rest = full_name.strip_prefix(self.namespace.as_str()).and_then(|rest| rest.strip_prefix("::"));
        let overload = rest.and_then(|rest| rest.strip_prefix(self.name.as_str()));
        match overload {
            Some("") => self.overload.is_empty(),
            Some(rest) => !self.overload.is_empty() && rest.strip_prefix('.') == Some(self.overload.as_str()),
            None => false,
        }
    }
}

impl fmt::Display for OpName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}::{}", self.namespace, self.name)?;
        match self.overload.as_str() {
            "" => Ok(()),
            overload => write!(f, ".{overload}"),
        }
    }
}

/// Target of a node's call.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Target {
    /// An operator as the library registers it.
    Operator(OpName),
    /// An operator of the library after conversion to the Edge dialect.
    Edge(OpName),
    /// A higher-order operator, such as `cond`.
    HigherOrder(String),
    /// Arithmetic on symbols, by the function's Python name, such as `_operator.mul`.
    Symbolic(String),
    /// A delegate: the number of its lowered module.
    Delegate(usize),
    /// Anything else, as written.
    Other(String),
}

/// Prefixes of operator names of the Edge dialect in documents: those that `torch.export.save` writes, and those of
/// `exir.serde`; then those of operators that backends added.
const EDGE: [&str; 4] = [
    "executorch.exir.dialects.edge._ops.",
    "executorch.exir.dialects.edge.ops.",
    "executorch.exir.dialects.backend._ops.",
    "executorch.exir.dialects.backend.ops.",
];

impl Target {
    /// From the document's spelling.
    pub fn parse(text: &str) -> Self {
        if let Some(path) = EDGE.iter().find_map(|prefix| text.strip_prefix(prefix)) {
            return match Target::parse(&format!("torch.ops.{path}")) {
                Target::Operator(op) => Target::Edge(op),
                _ => Target::Other(text.to_owned()),
            };
        }
        if let Some(path) = text.strip_prefix("torch.ops.") {
            let mut parts = path.splitn(3, '.');
            return match (parts.next(), parts.next(), parts.next()) {
                (Some("higher_order"), Some(name), None) => Target::HigherOrder(name.to_owned()),
                (Some(namespace), Some(name), overload) => {
                    let overload = overload.filter(|overload| *overload != "default").unwrap_or_default();
                    Target::Operator(OpName {
                        namespace: namespace.to_owned(),
                        name: name.to_owned(),
                        overload: overload.to_owned(),
                    })
                }
                _ => Target::Other(text.to_owned()),
            };
        }
        let symbolic = ["_operator.", "operator.", "math.", "torch.sym_", "builtins."];
        match symbolic.iter().any(|prefix| text.starts_with(prefix)) {
            true => Target::Symbolic(text.to_owned()),
            false => Target::Other(text.to_owned()),
        }
    }

    /// The document's spelling, with the names that `torch.export.load` finds: it knows none of the Edge dialect, so
    /// those are written as the library registers them.
    pub fn spelled(&self) -> String {
        match self {
            Target::Operator(op) | Target::Edge(op) => {
                let overload = if op.overload.is_empty() { "default" } else { &op.overload };
                format!("torch.ops.{}.{}.{overload}", op.namespace, op.name)
            }
            Target::HigherOrder(name) => format!("torch.ops.higher_order.{name}"),
            Target::Delegate(_) => "torch.ops.higher_order.executorch_call_delegate".to_owned(),
            Target::Symbolic(text) | Target::Other(text) => text.clone(),
        }
    }

    /// The spelling of `exir.serde`, which has names for operators of the Edge dialect and of backends.
    pub(super) fn spelled_edge(&self) -> String {
        let spelled = self.spelled();
        let backend = self.operator().is_some_and(|op| op.namespace == "executorch_prim");
        let dialect = if backend { "backend" } else { "edge" };
        match spelled.strip_prefix("torch.ops.") {
            Some(path) => format!("executorch.exir.dialects.{dialect}.ops.{path}"),
            None => spelled,
        }
    }

    /// Lets an operator be that of the Edge dialect, unless it stays as the library registers it.
    pub(crate) fn make_edge(&mut self) {
        if let Target::Operator(op) = self
            && !op.stays_raw()
        {
            *self = Target::Edge(op.clone());
        }
    }

    /// The operator, in either dialect.
    pub fn operator(&self) -> Option<&OpName> {
        match self {
            Target::Operator(op) | Target::Edge(op) => Some(op),
            _ => None,
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Operator(op) => write!(f, "{op}"),
            Target::Edge(op) => write!(f, "edge::{op}"),
            Target::HigherOrder(name) => f.write_str(name),
            Target::Delegate(index) => write!(f, "delegate {index}"),
            Target::Symbolic(text) | Target::Other(text) => f.write_str(text),
        }
    }
}

/// Type of the items of a list. An empty list does not determine it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub enum ListKind {
    Tensors,
    OptionalTensors,
    NestedTensors,
    Ints,
    Floats,
    Bools,
    Strings,
    IntLists,
    FloatLists,
}

/// Anything a node takes or gives.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Argument {
    None,
    /// A value of the graph: a tensor, a computed number or an object.
    Value(ValueId),
    Int(i64),
    Float(f64),
    Bool(bool),
    Text(String),
    Complex(ComplexValue),
    ScalarType(ScalarType),
    MemoryFormat(MemoryFormat),
    /// Layout in PyTorch's numbering: 7 for strided.
    Layout(i64),
    Device(Device),
    List(ListKind, Vec<Argument>),
    /// Arguments by name.
    Map(BTreeMap<String, Argument>),
    /// A graph with its name.
    Graph(String, Box<Graph>),
    /// An operator, as written.
    Operator(String),
}

impl Argument {
    /// The value, if it is one.
    pub fn value(&self) -> Option<ValueId> {
        match self {
            Argument::Value(id) => Some(*id),
            _ => None,
        }
    }

    /// A list of whole numbers.
    pub fn ints(numbers: impl IntoIterator<Item = i64>) -> Self {
        Argument::List(ListKind::Ints, numbers.into_iter().map(Argument::Int).collect())
    }

    /// A list of tensors.
    pub fn tensors(values: impl IntoIterator<Item = ValueId>) -> Self {
        Argument::List(ListKind::Tensors, values.into_iter().map(Argument::Value).collect())
    }

    /// The items of a list; nothing for anything else.
    pub fn items(&self) -> &[Argument] {
        match self {
            Argument::List(_, items) => items,
            _ => &[],
        }
    }

    /// Returns whether the argument is a literal number or truth value.
    pub fn is_number(&self) -> bool {
        matches!(self, Argument::Int(_) | Argument::Float(_) | Argument::Bool(_))
    }

    /// A literal whole number.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Argument::Int(number) => Some(*number),
            _ => None,
        }
    }

    /// A list of literal whole numbers; one number counts as a list of one.
    pub fn as_ints(&self) -> Option<Vec<i64>> {
        match self {
            Argument::Int(number) => Some(vec![*number]),
            Argument::List(_, items) => items.iter().map(Argument::as_int).collect(),
            _ => None,
        }
    }

    /// Visits every value in it, those in lists included, not those of sub-graphs.
    pub fn each_value(&self, visit: &mut impl FnMut(ValueId)) {
        match self {
            Argument::Value(id) => visit(*id),
            Argument::List(_, items) => items.iter().for_each(|item| item.each_value(visit)),
            Argument::Map(map) => map.values().for_each(|item| item.each_value(visit)),
            _ => {}
        }
    }

    /// Replaces every value in it.
    pub fn map_values(&mut self, change: &mut impl FnMut(ValueId) -> Argument) {
        match self {
            Argument::Value(id) => *self = change(*id),
            Argument::List(_, items) => items.iter_mut().for_each(|item| item.map_values(change)),
            Argument::Map(map) => map.values_mut().for_each(|item| item.map_values(change)),
            _ => {}
        }
    }
}

impl From<ValueId> for Argument {
    fn from(id: ValueId) -> Self {
        Argument::Value(id)
    }
}

impl From<i64> for Argument {
    fn from(number: i64) -> Self {
        Argument::Int(number)
    }
}

impl From<f64> for Argument {
    fn from(number: f64) -> Self {
        Argument::Float(number)
    }
}

impl From<bool> for Argument {
    fn from(truth: bool) -> Self {
        Argument::Bool(truth)
    }
}

impl Node {
    /// An argument by its name in the schema.
    pub fn arg(&self, name: &str) -> Option<&Argument> {
        self.inputs.iter().find(|input| input.name == name).map(|input| &input.arg)
    }

    /// A tensor argument by name.
    pub fn value_arg(&self, name: &str) -> Option<ValueId> {
        self.arg(name).and_then(Argument::value)
    }

    /// Sets an argument, or adds it.
    pub fn set_arg(&mut self, name: &str, arg: impl Into<Argument>) {
        let arg = arg.into();
        match self.inputs.iter_mut().find(|input| input.name == name) {
            Some(input) => input.arg = arg,
            None => self.inputs.push(NamedArgument { name: name.to_owned(), arg, keyword: true }),
        }
    }

    /// Lets the node call an operator of the Edge dialect, with these arguments and the results it has.
    pub(crate) fn become_call<const N: usize>(&mut self, operator: &str, args: [(&str, Argument); N]) {
        if let Some(op) = OpName::parse(operator) {
            self.target = Target::Edge(op);
        }
        self.inputs.clear();
        args.into_iter().for_each(|(name, arg)| self.set_arg(name, arg));
    }

    /// Removes an argument.
    pub fn take_arg(&mut self, name: &str) -> Option<Argument> {
        let index = self.inputs.iter().position(|input| input.name == name)?;
        Some(self.inputs.remove(index).arg)
    }

    /// Visits every value it reads.
    pub fn each_input(&self, visit: &mut impl FnMut(ValueId)) {
        self.inputs.iter().for_each(|input| input.arg.each_value(visit));
    }

    /// Visits every value it makes.
    pub fn each_output(&self, visit: &mut impl FnMut(ValueId)) {
        self.outputs.iter().for_each(|output| output.each_value(visit));
    }

    /// Every value it makes.
    pub fn results(&self) -> Vec<ValueId> {
        let mut found = Vec::new();
        self.each_output(&mut |id| found.push(id));
        found
    }

    /// The first value it makes.
    pub fn result(&self) -> Option<ValueId> {
        self.results().first().copied()
    }

    /// Returns whether the node calls this operator, by full name, in either dialect.
    pub fn calls(&self, name: &str) -> bool {
        self.target.operator().is_some_and(|op| op.is(name))
    }
}
