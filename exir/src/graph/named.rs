//! Arguments that were given by position get the names of the schema.
//!
//! Documents of the Edge dialect name no argument of its operators, and cannot tell an empty list of numbers from one of
//! tensors. Everything here goes by names, so both are settled when a graph is read, and again when operators are known
//! that were not known then.

use edgepack_format::operators::{ArgumentKind, Schema};

use super::{Argument, Graph, ListKind, Node, Target};
use crate::operators::Operators;

impl Graph {
    /// Names the arguments of all calls whose schema is known, in sub-graphs too.
    pub(crate) fn name_arguments(&mut self, operators: &Operators) {
        for node in &mut self.nodes {
            for input in &mut node.inputs {
                if let Argument::Graph(_, inner) = &mut input.arg {
                    inner.name_arguments(operators);
                }
            }
            name(node, operators);
        }
    }

    /// Returns whether a call of an operator has an argument without a name, in sub-graphs too.
    pub(crate) fn has_nameless_arguments(&self) -> bool {
        self.nodes.iter().any(|node| {
            let nameless = nameless(node);
            node.inputs.iter().any(|input| match &input.arg {
                Argument::Graph(_, inner) => inner.has_nameless_arguments(),
                _ => nameless && input.name.is_empty(),
            })
        })
    }
}

/// Returns whether arguments of this node may lack a name that its schema has.
fn nameless(node: &Node) -> bool {
    matches!(node.target, Target::Operator(_) | Target::Edge(_))
        && node.inputs.iter().any(|input| input.name.is_empty())
}

fn name(node: &mut Node, operators: &Operators) {
    let Some(schema) = node.target.operator().and_then(|op| operators.schema(op)) else { return };
    for (index, input) in node.inputs.iter_mut().enumerate() {
        let parameter = match input.name.is_empty() {
            true => schema.args().get(index).copied(),
            false => find(&schema, &input.name),
        };
        let Some(parameter) = parameter else { continue };
        if input.name.is_empty() {
            input.name = parameter.name.to_owned();
        }
        input.keyword |= parameter.kw_only;
        if let Argument::List(kind, items) = &mut input.arg
            && items.is_empty()
        {
            *kind = match parameter.kind {
                ArgumentKind::Tensor if parameter.list.is_some_and(|list| list.optional_items) => *kind,
                ArgumentKind::Tensor => ListKind::Tensors,
                ArgumentKind::Float => ListKind::Floats,
                ArgumentKind::Bool => ListKind::Bools,
                ArgumentKind::Str => ListKind::Strings,
                _ => ListKind::Ints,
            };
        }
    }
}

fn find<'s>(schema: &'s Schema<'_>, name: &str) -> Option<edgepack_format::operators::Argument<'s>> {
    schema.args().iter().find(|parameter| parameter.name == name).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::TensorMeta;
    use edgepack_format::scalar::ScalarType;

    #[test]
    fn arguments_by_position_get_their_names() {
        let meta = || TensorMeta::contiguous(ScalarType::FLOAT, &[]);
        let mut graph = Graph::default();
        let x = graph.add_input("x", meta());
        let empty = Argument::List(ListKind::Tensors, Vec::new());
        graph.call("dim_order_ops::_clone_dim_order", [("", x.into()), ("dim_order", empty)], meta());
        graph.call("my::unknown", [("", x.into())], meta());
        assert!(graph.has_nameless_arguments());
        graph.name_arguments(&Operators::new());
        let names: Vec<&str> = graph.nodes[0].inputs.iter().map(|input| input.name.as_str()).collect();
        assert_eq!(names, ["self", "dim_order"]);
        assert_eq!(graph.nodes[0].inputs[1].arg, Argument::ints([]));
        assert!(graph.nodes[0].inputs[1].keyword && graph.has_nameless_arguments());
        let mut operators = Operators::new();
        operators.add("my::unknown(Tensor it) -> Tensor").unwrap();
        graph.name_arguments(&operators);
        assert_eq!(graph.nodes[1].inputs[0].name, "it");
        assert!(!graph.has_nameless_arguments());
    }
}
