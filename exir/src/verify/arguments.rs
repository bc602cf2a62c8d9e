//! Calls against schemas: nothing missing, nothing unknown, tensors where tensors are asked for.

use edgepack_format::operators::{ArgumentKind, Schema};
use edgepack_format::rules::exir as rule;

use super::Checker;
use crate::graph::{Argument, Graph, Node};

pub(super) fn check(checker: &mut Checker<'_>, graph: &Graph, node: &Node, schema: &Schema<'_>, place: &str) {
    for input in &node.inputs {
        let Some(parameter) = schema.args().iter().find(|parameter| parameter.name == input.name) else {
            let names: Vec<&str> = schema.args().iter().map(|parameter| parameter.name).collect();
            let message = format!("{} has no `{}`; it has {}", node.target, input.name, names.join(", "));
            checker.say(&rule::ARGUMENTS, place, message);
            continue;
        };
        let number = match &input.arg {
            Argument::Value(id) => graph.value(*id).is_some() && graph.tensor(*id).is_none(),
            literal => literal.is_number(),
        };
        if parameter.kind == ArgumentKind::Tensor && parameter.list.is_none() && number {
            let message = format!("`{}` of {} is a number", input.name, node.target);
            checker.say(&rule::SCALAR_ARGUMENT, place, message);
        }
    }
    let missing = schema
        .args()
        .iter()
        .filter(|parameter| parameter.default.is_none() && !parameter.is_out() && node.arg(parameter.name).is_none());
    for parameter in missing {
        checker.say(&rule::ARGUMENTS, place, format!("{} is called without `{}`", node.target, parameter.name));
    }
}
