//! Exported programs as typed graphs.
//!
//! A [`Graph`] owns its values and nodes; everything refers to a value by [`ValueId`], so a graph can be walked and
//! rewritten without pointers, and no data belongs to two graphs. Sub-graphs of higher-order operators are graphs of
//! their own inside an argument. `Display` prints a program or graph as text.
//!
//! Invariant: an id in a graph is one of its values; nodes are in an order in which they can run.

mod check;
mod codes;
mod edit;
mod expr;
mod formula;
mod modules;
mod named;
mod node;
mod program;
mod read;
mod size;
mod text;
mod unwrap;
mod value;
mod write;

pub use codes::MemoryFormat;
pub use expr::{Expr, Interval, Ranges};
pub use modules::{LoweredPart, NamedData};
pub use node::{Argument, ListKind, NamedArgument, Node, OpName, Target};
pub use program::{About, Dialect, ExportedProgram, InputKind, InputSpec, OutputKind, OutputSpec};
pub use value::{Meta, Size, TensorMeta, Value, ValueId};
pub(crate) use value::{channels_last, dim_order_of, identity};

use std::collections::BTreeMap;

/// Computation: inputs, nodes in order, outputs.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Graph {
    pub(crate) values: Vec<Value>,
    /// Names in use, of values and nodes without values.
    pub(crate) names: BTreeMap<String, ValueId>,
    /// One per placeholder: a value, or a literal for what was baked in.
    pub inputs: Vec<Argument>,
    /// The calls, in order.
    pub nodes: Vec<Node>,
    /// Results in order: values, or literals for what was baked in.
    pub outputs: Vec<Argument>,
    /// True if a sub-graph gives a bare tensor instead of a list.
    pub is_single_tensor_return: bool,
}
