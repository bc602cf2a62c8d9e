//! Shape inference: element types and sizes of the results of a call from those of its arguments.
//!
//! The functions are grouped by what they have in common. Strides are not inferred: results are contiguous unless a
//! caller sets other strides. `None` means that the shape cannot be inferred, as for sizes that depend on the data.

mod create;
mod declared;
mod elementwise;
mod linear;
mod matrix;
mod movement;
mod numbers;
mod reduce;
mod select;
mod spatial;

pub use numbers::promote;

use std::sync::Arc;

use edgepack_format::operators::{self, Schema};
use edgepack_format::scalar::ScalarType;

use super::{Operators, arguments};
use crate::graph::{Argument, Graph, Meta, Node, OpName, Size, TensorMeta};

/// The most results that are described one by one.
const MOST_RESULTS: usize = 1 << 16;

/// Says what the results of a call look like; those of the library carry no data.
type ShapeFunction = fn(&Call<'_>) -> Option<Vec<TensorMeta>>;

/// Says what the results of a call look like.
pub type ShapeRule = Arc<dyn Fn(&Call<'_>) -> Option<Vec<TensorMeta>> + Send + Sync>;

/// A call, with its arguments by name.
pub struct Call<'c> {
    graph: &'c Graph,
    arguments: Vec<(&'c str, Option<Argument>)>,
    /// Number of results that are wanted: those the node has, if it has any yet.
    most: usize,
}

impl Call<'_> {
    /// An argument, given or by default.
    pub fn arg(&self, name: &str) -> Option<&Argument> {
        self.arguments.iter().find(|(known, _)| *known == name).and_then(|(_, argument)| argument.as_ref())
    }

    /// Returns the metadata of the tensor of an argument.
    pub fn tensor(&self, name: &str) -> Option<&TensorMeta> {
        self.graph.tensor_of(self.arg(name)?)
    }

    /// The tensors of a list.
    pub fn tensors(&self, name: &str) -> Option<Vec<&TensorMeta>> {
        self.arg(name)?.items().iter().map(|item| self.graph.tensor_of(item)).collect()
    }

    /// The items of a list of tensors, of which some may be missing.
    pub fn optional_tensors(&self, name: &str) -> Vec<Option<&TensorMeta>> {
        let items = self.arg(name).map_or(&[][..], Argument::items);
        items.iter().map(|item| self.graph.tensor_of(item)).collect()
    }

    /// A literal whole number.
    pub fn int(&self, name: &str) -> Option<i64> {
        self.arg(name)?.as_int()
    }

    /// A list of literal whole numbers.
    pub fn ints(&self, name: &str) -> Option<Vec<i64>> {
        self.arg(name)?.as_ints()
    }

    /// Returns whether a flag is set.
    pub fn flag(&self, name: &str) -> bool {
        self.arg(name) == Some(&Argument::Bool(true))
    }

    /// Returns whether an argument is present and not `None`.
    pub fn has(&self, name: &str) -> bool {
        !matches!(self.arg(name), None | Some(Argument::None))
    }

    /// A size, known or computed.
    pub fn size(&self, name: &str) -> Option<Size> {
        self.size_of(self.arg(name)?)
    }

    /// A list of sizes, known or computed; one size counts as a list of one.
    pub fn sizes(&self, name: &str) -> Option<Vec<Size>> {
        match self.arg(name)? {
            Argument::List(_, items) => items.iter().map(|item| self.size_of(item)).collect(),
            one => Some(vec![self.size_of(one)?]),
        }
    }

    fn size_of(&self, argument: &Argument) -> Option<Size> {
        match argument {
            Argument::Int(number) => Some(Size::Known(*number)),
            Argument::Value(id) => match &self.graph.value(*id)?.meta {
                Meta::Int(size) => Some(size.clone()),
                _ => None,
            },
            _ => None,
        }
    }

    /// An element type that is asked for.
    pub fn scalar_type(&self, name: &str) -> Option<ScalarType> {
        match self.arg(name)? {
            Argument::ScalarType(scalar_type) => Some(*scalar_type),
            _ => None,
        }
    }
}

impl Operators {
    /// Infers the results of a call; `None` if there is no function for the operator, or none for these arguments.
    pub fn infer(&self, graph: &Graph, node: &Node) -> Option<Vec<TensorMeta>> {
        let op = node.target.operator()?;
        let function = self.shape_function(op)?;
        let schema = self.schema(op)?;
        let found = arguments(&schema, node);
        let arguments = found.into_iter().map(|(parameter, argument)| (parameter.name, argument)).collect();
        // A short text can ask for many pieces; no more of them are read than the node names.
        let most = if node.outputs.is_empty() { MOST_RESULTS } else { node.results().len() };
        function(&Call { graph, arguments, most })
    }

    /// The function that says what the results of an operator look like.
    pub fn shape_function(&self, op: &OpName) -> Option<ShapeRule> {
        let full_name = op.to_string();
        if let Some(own) = self.own.get(&full_name).and_then(|own| own.shape.clone()) {
            return Some(own);
        }
        let wanted = operators::find(&full_name)?.shape_rule()?;
        let (_, function) = rules().find(|(name, _)| *name == wanted)?;
        Some(Arc::new(*function))
    }

    /// Returns whether the schema of an operator says that it gives tensors.
    pub fn gives_tensors(&self, op: &OpName) -> bool {
        use edgepack_format::operators::ArgumentKind;
        let tensors = |schema: &Schema<'_>| schema.returns().iter().any(|result| result.kind == ArgumentKind::Tensor);
        self.schema(op).is_some_and(|schema| tensors(&schema))
    }
}

/// The functions that the table of operators names.
fn rules() -> impl Iterator<Item = &'static (&'static str, ShapeFunction)> {
    let families = [
        elementwise::RULES,
        movement::RULES,
        reduce::RULES,
        matrix::RULES,
        spatial::RULES,
        select::RULES,
        create::RULES,
        linear::RULES,
    ];
    families.into_iter().flatten()
}

/// A contiguous tensor.
fn made(scalar_type: ScalarType, sizes: &[Size]) -> TensorMeta {
    TensorMeta::contiguous(scalar_type, sizes)
}

/// One contiguous tensor.
fn one(scalar_type: ScalarType, sizes: &[Size]) -> Option<Vec<TensorMeta>> {
    Some(vec![made(scalar_type, sizes)])
}

/// A dimension counted from the front.
fn dimension(dim: i64, rank: usize) -> Option<usize> {
    let rank = i64::try_from(rank).ok()?;
    let dim = if dim < 0 { dim.checked_add(rank.max(1))? } else { dim };
    usize::try_from(dim).ok().filter(|_| dim < rank.max(1))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_rule_is_there_once_and_named() {
        let names: Vec<&str> = rules().map(|(name, _)| *name).collect();
        let rules: BTreeSet<&str> = names.iter().copied().collect();
        assert_eq!(names.len(), rules.len());
        let named: BTreeSet<&str> = operators::all().filter_map(operators::Operator::shape_rule).collect();
        assert_eq!(rules, named);
    }
}
