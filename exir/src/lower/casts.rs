//! Arithmetic on mixed element types: kernels of the Edge dialect take one, so arguments are cast to that of the result.

use edgepack_format::scalar::ScalarType;

use crate::error::Error;
use crate::graph::{Argument, Graph, Node, ValueId};
use crate::operators::Operators;

/// The operators whose arguments have one element type.
pub(super) const MIXED: [&str; 6] = [
    "aten::add.Tensor",
    "aten::sub.Tensor",
    "aten::mul.Tensor",
    "aten::div.Tensor",
    "aten::div.Tensor_mode",
    "aten::minimum",
];

/// The element type that the tensors of a call are to have, if they are to have one.
pub(super) fn common_type(graph: &Graph, node: &Node) -> Option<ScalarType> {
    let mixed = MIXED.iter().any(|name| node.calls(name));
    // The result has the type in which these operators compute.
    mixed.then(|| graph.tensor(node.result()?).map(|meta| meta.scalar_type)).flatten()
}

/// Puts casts where they are needed.
pub(super) fn agree(graph: &mut Graph, _operators: &Operators) -> Result<(), Error> {
    graph.rewrite(|graph, mut node, rewritten| {
        if let Some(wanted) = common_type(graph, &node) {
            for input in &mut node.inputs {
                let Some(value) = input.arg.value() else { continue };
                if let Some(cast) = cast(graph, value, wanted, rewritten) {
                    input.arg = Argument::Value(cast);
                }
            }
        }
        rewritten.push(node);
        Ok(())
    })
}

/// A value of this element type, by a call if it has another; `None` if it is as wanted.
fn cast(graph: &mut Graph, value: ValueId, wanted: ScalarType, rewritten: &mut Vec<Node>) -> Option<ValueId> {
    let meta = graph.tensor(value).filter(|meta| meta.scalar_type != wanted)?.cast(wanted);
    let node = graph.make("aten::_to_copy", [("self", value.into()), ("dtype", Argument::ScalarType(wanted))], meta);
    let result = node.result();
    rewritten.push(node);
    result
}
