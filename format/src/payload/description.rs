//! A payload described: its values, nodes and weights, as lines for people and as JSON.

use alloc::string::String;
use alloc::vec::Vec;

use serde::Serialize;

/// A payload described, in the order of the payload.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Description {
    /// The whole in a few words: a version, a header.
    pub about: String,
    /// Values of its graph.
    pub values: Vec<Value>,
    /// Nodes of its graph.
    pub nodes: Vec<Node>,
    /// Constant data.
    pub weights: Vec<Weight>,
}

/// A value of a payload's graph.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Value {
    /// Its name in nodes: `v3`.
    pub name: String,
    /// Its type: `f32[1, 3]`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its role: `input 0`; empty for a value between nodes.
    pub role: String,
    /// Index of its elements among the weights, if they are constant and known.
    #[serde(skip)]
    pub weight: Option<usize>,
}

/// A node of a payload's graph.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Node {
    /// The operator: `Conv2d`.
    pub operator: String,
    /// The node as a line: `v4 = Conv2d(v0, v1, v2, stride 2)`.
    pub text: String,
    /// Element types it works on, by their short names.
    pub types: Vec<String>,
    /// The operator that became a part of it: `clamp[0, 6]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fused: Option<String>,
    /// Indices of the values that it reads, each with its role: `weights`, or nothing.
    #[serde(skip)]
    pub inputs: Vec<(String, usize)>,
    /// Indices of the values that it writes.
    #[serde(skip)]
    pub outputs: Vec<usize>,
}

/// Constant data of a payload.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Weight {
    /// Name of the weight.
    pub name: String,
    /// Its type: `i8[64, 3, 3, 3]`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Size in bytes.
    pub bytes: u64,
    /// The place of its bytes.
    pub place: Place,
}

/// The place of constant data.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// In the payload, so many bytes from its start.
    Offset(u64),
    /// In named data under this key.
    Key(String),
    /// Under this key in a data file that was not given.
    DataFile(String),
}
