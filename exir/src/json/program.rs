//! Programs, graphs, nodes, signatures and descriptions of values.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Argument, CustomObjArgument, Device, Name, Real};

/// The whole document.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ExportedProgram {
    /// Graph and signature.
    pub graph_module: GraphModule,
    /// Version of each operator set.
    #[serde(default)]
    pub opset_version: BTreeMap<String, i64>,
    /// Range of each symbol.
    #[serde(default)]
    pub range_constraints: BTreeMap<String, RangeConstraint>,
    /// Version of the document.
    pub schema_version: SchemaVersion,
    /// The dialects the exporter vouches for.
    #[serde(default, deserialize_with = "super::list::list")]
    pub verifiers: Vec<String>,
    /// Version of the exporter.
    #[serde(default)]
    pub torch_version: String,
    /// Assumptions of the exporter about inputs, as Python; informative.
    #[serde(default, deserialize_with = "super::list::list")]
    pub guards_code: Vec<String>,
}

/// Version of the document.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SchemaVersion {
    /// Changes that break readers.
    pub major: i64,
    /// Changes that do not.
    pub minor: i64,
}

/// The ends of a symbol's range; absent for none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct RangeConstraint {
    /// Smallest value; absent if there is no lower bound.
    pub min_val: Option<i64>,
    /// Largest value; absent if there is no upper bound.
    pub max_val: Option<i64>,
}

/// Graph and signature.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct GraphModule {
    /// Graph of the computation.
    pub graph: Graph,
    /// Meaning of inputs and outputs.
    pub signature: GraphSignature,
    /// Calls of modules by each other.
    #[serde(default, deserialize_with = "super::list::list")]
    pub module_call_graph: Vec<ModuleCallEntry>,
    /// Notes.
    #[serde(default)]
    pub metadata: BTreeMap<String, String>,
    /// Field names of named tuples.
    #[serde(default)]
    pub treespec_namedtuple_fields: BTreeMap<String, NamedTupleDef>,
}

/// Field names of a named tuple.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct NamedTupleDef {
    /// In order.
    #[serde(deserialize_with = "super::list::list")]
    pub field_names: Vec<String>,
}

/// Inputs, nodes in order, outputs, and what is known about each value.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Graph {
    /// One per placeholder.
    #[serde(deserialize_with = "super::list::list")]
    pub inputs: Vec<Argument>,
    /// Results.
    #[serde(deserialize_with = "super::list::list")]
    pub outputs: Vec<Argument>,
    /// In an order in which they can run.
    #[serde(deserialize_with = "super::list::list")]
    pub nodes: Vec<Node>,
    /// Tensors by name.
    #[serde(default)]
    pub tensor_values: BTreeMap<String, TensorMeta>,
    /// Computed integers by name.
    #[serde(default)]
    pub sym_int_values: BTreeMap<String, SymInt>,
    /// Computed bools by name.
    #[serde(default)]
    pub sym_bool_values: BTreeMap<String, SymBool>,
    /// True if a sub-graph gave a bare tensor.
    #[serde(default)]
    pub is_single_tensor_return: bool,
    /// Objects by name.
    #[serde(default)]
    pub custom_obj_values: BTreeMap<String, CustomObjArgument>,
    /// Computed floats by name.
    #[serde(default)]
    pub sym_float_values: BTreeMap<String, SymFloat>,
}

/// One call.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Node {
    /// Target of the call.
    pub target: String,
    /// With what.
    #[serde(deserialize_with = "super::list::list")]
    pub inputs: Vec<NamedArgument>,
    /// Results of the node.
    #[serde(deserialize_with = "super::list::list")]
    pub outputs: Vec<Argument>,
    /// Origin of the node in the source, as text.
    #[serde(default)]
    pub metadata: BTreeMap<String, String>,
    /// True if a higher-order operator gave a bare tensor.
    #[serde(default)]
    pub is_hop_single_tensor_return: Option<bool>,
    /// Name of the node; absent in old files.
    #[serde(default)]
    pub name: Option<String>,
}

/// An argument with its name in the schema.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct NamedArgument {
    /// Empty for higher-order operators.
    pub name: String,
    /// Value, literal, list or sub-graph that is passed.
    pub arg: Argument,
    /// 1 by position, 2 by name.
    #[serde(default)]
    pub kind: Option<i64>,
}

/// Meaning of inputs and outputs.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct GraphSignature {
    /// One per input.
    #[serde(deserialize_with = "super::list::list")]
    pub input_specs: Vec<InputSpec>,
    /// One per output.
    #[serde(deserialize_with = "super::list::list")]
    pub output_specs: Vec<OutputSpec>,
}

/// A literal baked into the program.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names say it")]
pub enum ConstantValue {
    AsNone(bool),
    AsInt(i64),
    AsFloat(Real),
    AsString(String),
    AsBool(bool),
}

/// Meaning of an input.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "fields are named as in the document")]
pub enum InputSpec {
    UserInput { arg: Argument },
    Parameter { arg: Name, parameter_name: String },
    Buffer { arg: Name, buffer_name: String, persistent: bool },
    TensorConstant { arg: Name, tensor_constant_name: String },
    CustomObj { arg: CustomObjArgument, custom_obj_name: String },
    ConstantInput { name: String, value: ConstantValue },
    Token { arg: Name },
}

/// Meaning of an output.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "fields are named as in the document")]
pub enum OutputSpec {
    UserOutput { arg: Argument },
    LossOutput { arg: Name },
    BufferMutation { arg: Name, buffer_name: String },
    GradientToParameter { arg: Name, parameter_name: String },
    GradientToUserInput { arg: Name, user_input_name: String },
    UserInputMutation { arg: Name, user_input_name: String },
    Token { arg: Name },
    ParameterMutation { arg: Name, parameter_name: String },
}

/// Call of a module.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ModuleCallEntry {
    /// Empty for the whole program.
    pub fqn: String,
    /// Signature of the call; absent if it was not asked for.
    #[serde(default)]
    pub signature: Option<ModuleCallSignature>,
}

/// Inputs and outputs of a module, and how they were nested.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ModuleCallSignature {
    /// Inputs.
    #[serde(deserialize_with = "super::list::list")]
    pub inputs: Vec<Argument>,
    /// Outputs.
    #[serde(deserialize_with = "super::list::list")]
    pub outputs: Vec<Argument>,
    /// Nesting of the arguments.
    pub in_spec: String,
    /// Nesting of the results.
    pub out_spec: String,
    /// Names of the arguments.
    #[serde(default, deserialize_with = "super::list::optional")]
    pub forward_arg_names: Option<Vec<String>>,
}

/// A formula and the value it had when the program was exported.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Expression {
    /// Constructors such as `Mul(Integer(2), Symbol('s0'))`, or `2*s0`.
    pub expr_str: String,
    /// Value of the expression at export.
    #[serde(default)]
    pub hint: Option<Hint>,
}

/// A hint that is wrapped like a union.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names say it")]
pub enum Hint {
    AsInt(i64),
    AsFloat(Real),
    AsBool(bool),
}

macro_rules! sizes {
    ($($(#[$meta:meta])* $name:ident, $literal:ident: $ty:ty;)*) => {$(
        $(#[$meta])*
        #[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum $name {
            /// Number or truth value, fixed at export.
            $literal($ty),
            /// Formula over symbols that are known when the program runs.
            AsExpr(Expression),
        }
    )*};
}

sizes! {
    /// An integer or a formula.
    SymInt, AsInt: i64;
    /// A float or a formula.
    SymFloat, AsFloat: Real;
    /// A bool or a formula.
    SymBool, AsBool: bool;
}

/// Metadata of a tensor.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TensorMeta {
    /// Element type, in the document's numbering.
    pub dtype: i64,
    /// Sizes.
    #[serde(deserialize_with = "super::list::list")]
    pub sizes: Vec<SymInt>,
    /// True if the tensor requires a gradient.
    #[serde(default)]
    pub requires_grad: bool,
    /// Device that holds the tensor.
    pub device: Device,
    /// Distances between neighbours, in elements.
    #[serde(deserialize_with = "super::list::list")]
    pub strides: Vec<SymInt>,
    /// The first element, in elements from the start of the storage.
    pub storage_offset: SymInt,
    /// 7 for strided.
    pub layout: i64,
}
