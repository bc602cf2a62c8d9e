//! Rules for every graph: values are described, made once and before they are read; callees are what a graph may call.

use std::collections::BTreeSet;

use edgepack_format::rules::exir as rule;

use super::{Checker, arguments, dialect};
use crate::graph::{Argument, Dialect, Graph, Meta, Node, Size, Target, TensorMeta, ValueId};
use crate::operators;

/// Python's functions on numbers, by the last part of their names.
const ARITHMETIC: [&str; 27] = [
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "neg", "abs", "eq", "ne", "lt", "le", "gt", "ge", "and_",
    "or_", "not_", "lshift", "rshift", "ceil", "floor", "trunc", "round", "getitem", "pos", "index",
];

/// Python functions that exporters let pass besides arithmetic: they switch how what follows is computed.
const FUNCTIONS: [&str; 5] = [
    "torch._C._set_grad_enabled",
    "torch.autograd.grad_mode.set_grad_enabled",
    "torch.amp.autocast_mode._enter_autocast",
    "torch.amp.autocast_mode._exit_autocast",
    "torch.fx.experimental.symbolic_shapes.cast_symbool_to_symint_guardless",
];

pub(super) fn check(checker: &mut Checker<'_>, graph: &Graph, path: &str) {
    let mut made: BTreeSet<ValueId> = BTreeSet::new();
    for (index, input) in graph.inputs.iter().enumerate() {
        let place = format!("{path}.inputs[{index}]");
        input.each_value(&mut |id| {
            make(checker, graph, &mut made, id, &place);
        });
    }
    for node in &graph.nodes {
        let place = format!("{path}.nodes[{}]", node.name);
        node.each_input(&mut |id| read(checker, graph, &made, id, &place));
        let (depth, autocast) = (checker.depth, checker.autocast);
        for input in &node.inputs {
            if let Argument::Graph(name, inner) = &input.arg {
                checker.depth = depth.saturating_add(1);
                checker.autocast |= matches!(&node.target, Target::HigherOrder(name) if name == "wrap_with_autocast");
                check(checker, inner, &format!("{place}.{name}"));
                (checker.depth, checker.autocast) = (depth, autocast);
            }
        }
        node.each_output(&mut |id| make(checker, graph, &mut made, id, &place));
        callee(checker, graph, node, &place);
    }
    for (index, output) in graph.outputs.iter().enumerate() {
        let place = format!("{path}.outputs[{index}]");
        output.each_value(&mut |id| read(checker, graph, &made, id, &place));
    }
    border(checker, graph, path);
    sizes(checker, graph, path);
    dialect::whole(checker, graph, path);
}

fn make(checker: &mut Checker<'_>, graph: &Graph, made: &mut BTreeSet<ValueId>, id: ValueId, place: &str) {
    let name = graph.name(id);
    if !made.insert(id) {
        checker.say(&rule::TWICE, place, format!("`{name}` is made a second time"));
    }
    if graph.value(id).is_none_or(|value| value.meta == Meta::Unknown) {
        checker.say(&rule::NO_META, place, format!("`{name}` is described nowhere"));
    }
}

fn read(checker: &mut Checker<'_>, graph: &Graph, made: &BTreeSet<ValueId>, id: ValueId, place: &str) {
    if !made.contains(&id) {
        checker.say(&rule::ORDER, place, format!("`{}` is read before it is made", graph.name(id)));
    }
}

fn callee(checker: &mut Checker<'_>, graph: &Graph, node: &Node, place: &str) {
    let operators = checker.options.operators;
    match &node.target {
        Target::HigherOrder(_) | Target::Delegate(_) => {}
        Target::Symbolic(name) => {
            let last = name.rsplit_once('.').map_or(name.as_str(), |(_, last)| last);
            let torch = name.starts_with("torch.sym_") || name.starts_with("torch._sym_");
            if !ARITHMETIC.contains(&last) && !torch {
                checker.say(&rule::CALLEE, place, format!("{name} is not arithmetic on sizes that graphs may have"));
            }
        }
        Target::Other(name) if FUNCTIONS.contains(&name.as_str()) => {}
        Target::Other(name) => checker.say(&rule::CALLEE, place, format!("{name} is not an operator")),
        Target::Operator(op) | Target::Edge(op) => match operators.schema(op) {
            None => checker.say(&rule::UNKNOWN_OPERATOR, place, format!("{op} is not registered")),
            Some(schema) => {
                if !operators::is_functional(&schema) && checker.dialect != Dialect::Training {
                    let argument = schema.args().iter().find(|argument| argument.mutated);
                    let name = argument.map_or("?", |argument| argument.name);
                    checker.say(&rule::MUTATES, place, format!("{op} writes to `{name}`"));
                }
                arguments::check(checker, graph, node, &schema, place);
                results(checker, graph, node, place);
            }
        },
    }
    dialect::callee(checker, graph, node, place);
}

/// Results against the shape function.
fn results(checker: &mut Checker<'_>, graph: &Graph, node: &Node, place: &str) {
    let operators = checker.options.operators;
    let Some(op) = node.target.operator() else { return };
    if !operators.gives_tensors(op) {
        return;
    }
    if operators.shape_function(op).is_none() {
        // Composites are taken apart before anybody plans with them.
        if checker.dialect != Dialect::Training {
            checker.say(&rule::NO_SHAPE, place, format!("{op} has no shape function"));
        }
        return;
    }
    let Some(inferred) = operators.infer(graph, node) else { return };
    let recorded: Vec<(ValueId, &TensorMeta)> =
        node.results().into_iter().filter_map(|id| Some((id, graph.tensor(id)?))).collect();
    for ((id, recorded), inferred) in recorded.into_iter().zip(&inferred) {
        let name = graph.name(id);
        if recorded.scalar_type != inferred.scalar_type && !checker.autocast {
            let message = format!("`{name}` is {}, {op} gives {}", recorded.scalar_type, inferred.scalar_type);
            checker.say(&rule::SHAPE, place, message);
        }
        let hints = |meta: &TensorMeta| meta.sizes.iter().map(Size::hint).collect::<Option<Vec<_>>>();
        if let (Some(have), Some(want)) = (hints(recorded), hints(inferred))
            && have != want
        {
            checker.say(&rule::SHAPE, place, format!("`{name}` has sizes {have:?}, {op} gives {want:?}"));
        }
    }
}

/// Checks the inputs and outputs of an Edge graph.
fn border(checker: &mut Checker<'_>, graph: &Graph, path: &str) {
    if checker.dialect != Dialect::Edge {
        return;
    }
    for (what, arguments) in [("inputs", &graph.inputs), ("outputs", &graph.outputs)] {
        for (index, argument) in arguments.iter().enumerate() {
            if graph.tensor_of(argument).is_none() {
                let message = "it is not a tensor".to_owned();
                checker.say(&rule::SCALAR_INPUT, format!("{path}.{what}[{index}]"), message);
            }
        }
    }
}

/// Sizes below zero, and those without an upper bound.
fn sizes(checker: &mut Checker<'_>, graph: &Graph, path: &str) {
    let mut said: BTreeSet<String> = BTreeSet::new();
    for (_, value) in graph.values() {
        let Some(meta) = value.meta.tensor() else { continue };
        if let Some(message) = meta.negative(checker.ranges) {
            checker.say(&rule::SIZES, path, format!("`{}`: {message}", value.name));
        }
        for size in &meta.sizes {
            let Size::Symbolic(expr, _) = size else { continue };
            let bounds = expr.bounds(checker.ranges);
            if bounds.max.is_none_or(|most| most >= i64::from(i32::MAX)) && said.insert(expr.to_string()) {
                let message = format!("`{}` has a size {expr} without an upper bound", value.name);
                checker.say(&rule::UNBOUNDED, path, message);
            }
        }
    }
}
