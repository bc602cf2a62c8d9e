//! Arguments of nodes, and all other forms of a value in a document.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Graph, Real};

/// A value by name.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Name {
    /// Name of the value, unique in its graph.
    pub name: String,
}

/// Device of a tensor or of an argument, as PyTorch names it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Device {
    /// `cpu`, `cuda`, …
    #[serde(rename = "type")]
    pub kind: String,
    /// Index of the device among those of its type.
    #[serde(default)]
    pub index: Option<i64>,
}

impl Device {
    /// Returns the device of the host, which has no index.
    pub fn cpu() -> Self {
        Device { kind: "cpu".to_owned(), index: None }
    }
}

/// A complex number.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct ComplexValue {
    /// Real part.
    pub real: Real,
    /// Imaginary part.
    pub imag: Real,
}

/// An object only Python knows.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CustomObjArgument {
    /// Name of the object in the graph.
    pub name: String,
    /// Qualified name of its class in Python.
    #[serde(default)]
    pub class_fqn: String,
}

/// A graph given to a higher-order operator.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct GraphArgument {
    /// Name of the graph.
    pub name: String,
    /// Body of the sub-graph, with values of its own.
    pub graph: Graph,
}

/// A tensor or nothing.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OptionalTensor {
    /// Name of a tensor of the graph.
    AsTensor(Name),
    /// Nothing.
    AsNone(bool),
}

macro_rules! symbolic {
    ($($(#[$meta:meta])* $name:ident, $literal:ident: $ty:ty;)*) => {$(
        $(#[$meta])*
        #[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum $name {
            /// A value of the graph.
            AsName(String),
            /// Number or truth value, fixed at export.
            $literal($ty),
        }
    )*};
}

symbolic! {
    /// An integer or a computed one.
    SymIntArgument, AsInt: i64;
    /// A float or a computed one.
    SymFloatArgument, AsFloat: Real;
    /// A bool or a computed one.
    SymBoolArgument, AsBool: bool;
}

/// Anything a node takes or gives.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Argument {
    /// Nothing.
    AsNone(bool),
    /// Name of a tensor of the graph.
    AsTensor(Name),
    /// Tensors.
    #[serde(deserialize_with = "super::list::list")]
    AsTensors(Vec<Name>),
    /// Whole number, fixed at export.
    AsInt(i64),
    /// Integers.
    #[serde(deserialize_with = "super::list::list")]
    AsInts(Vec<i64>),
    /// Number, fixed at export; in documents NaN and infinities are text.
    AsFloat(Real),
    /// Floats.
    #[serde(deserialize_with = "super::list::list")]
    AsFloats(Vec<Real>),
    /// Text.
    AsString(String),
    /// Texts.
    #[serde(deserialize_with = "super::list::list")]
    AsStrings(Vec<String>),
    /// An integer, maybe computed.
    AsSymInt(SymIntArgument),
    /// Integers, some computed.
    #[serde(deserialize_with = "super::list::list")]
    AsSymInts(Vec<SymIntArgument>),
    /// Element type, in the document's numbering.
    AsScalarType(i64),
    /// Memory format, in the document's numbering.
    AsMemoryFormat(i64),
    /// Layout in PyTorch's numbering: 7 for strided.
    AsLayout(i64),
    /// Device by type and index.
    AsDevice(Device),
    /// Truth value, fixed at export.
    AsBool(bool),
    /// Bools.
    #[serde(deserialize_with = "super::list::list")]
    AsBools(Vec<bool>),
    /// A bool, maybe computed.
    AsSymBool(SymBoolArgument),
    /// Bools, some computed.
    #[serde(deserialize_with = "super::list::list")]
    AsSymBools(Vec<SymBoolArgument>),
    /// Sub-graph for a higher-order operator, inside the argument.
    AsGraph(Box<GraphArgument>),
    /// Tensors, some missing.
    #[serde(deserialize_with = "super::list::list")]
    AsOptionalTensors(Vec<OptionalTensor>),
    /// Name and class of an object that only Python knows.
    AsCustomObj(CustomObjArgument),
    /// Operator by name, as `target` of a node spells it.
    AsOperator(String),
    /// A float, maybe computed.
    AsSymFloat(SymFloatArgument),
    /// Floats, some computed.
    #[serde(deserialize_with = "super::list::list")]
    AsSymFloats(Vec<SymFloatArgument>),
    /// A tensor or nothing.
    AsOptionalTensor(OptionalTensor),
    /// A complex number.
    AsComplex(ComplexValue),
    /// Lists of tensors.
    #[serde(deserialize_with = "super::list::lists")]
    AsNestedTensors(Vec<Vec<Name>>),
    /// Lists of integers.
    #[serde(deserialize_with = "super::list::lists")]
    AsIntLists(Vec<Vec<i64>>),
    /// Arguments by name.
    AsStringToArgument(BTreeMap<String, Argument>),
    /// Lists of floats.
    #[serde(deserialize_with = "super::list::lists")]
    AsFloatLists(Vec<Vec<Real>>),
}
