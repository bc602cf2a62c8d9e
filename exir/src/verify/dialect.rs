//! Rules of each dialect for calls: core operators, Edge operators, element types, backend libraries.

use edgepack_format::operators::{ArgumentKind, Schema};
use edgepack_format::rules::exir as rule;
use edgepack_format::scalar::ScalarType;

use super::Checker;
use crate::graph::{Argument, Dialect, Graph, Node, OpName, Target, ValueId};
use crate::operators;

/// Operators outside the core set that every exporter lets pass, by name without overload.
const EXCEPTIONS: [&str; 8] = [
    "mkldnn_rnn_layer",
    "_upsample_bilinear2d_aa",
    "quantize_per_tensor",
    "full_like",
    "scalar_tensor",
    "_local_scalar_dense",
    "sym_constrain_range",
    "sym_constrain_range_for_size",
];

/// Operators outside the core set that every exporter lets pass, by full name.
const EXACT: [&str; 10] = [
    "aten::dequantize.self",
    "aten::max",
    "aten::min",
    "aten::_assert_scalar",
    "aten::_assert_async.msg",
    "aten::sym_size.int",
    "aten::sym_stride.int",
    "aten::sym_numel",
    "aten::sym_storage_offset",
    "aten::_assert_tensor_metadata",
];

/// Libraries whose operators backends may leave in a graph.
const BACKEND: [&str; 3] = ["executorch_prim", "quantized_decomposed", "dim_order_ops"];

pub(super) fn callee(checker: &mut Checker<'_>, graph: &Graph, node: &Node, place: &str) {
    match (checker.dialect, &node.target) {
        (Dialect::Training, _) => {}
        (Dialect::Aten, Target::Operator(op) | Target::Edge(op)) => {
            core(checker, op, place);
            lints(checker, graph, node, op, place, false);
        }
        (Dialect::Edge, Target::Operator(op) | Target::Edge(op)) => edge(checker, graph, node, op, place),
        (Dialect::Edge, Target::Symbolic(name)) if name.starts_with("torch.sym_") => {
            checker.say(&rule::PYTHON, place, format!("{name} is a Python function"));
        }
        _ => {}
    }
    if checker.options.backend {
        backend(checker, node, place);
    }
}

fn core(checker: &mut Checker<'_>, op: &OpName, place: &str) {
    let full_name = op.to_string();
    let traits = checker.options.operators.traits(op);
    let excepted = op.namespace != "aten"
        || EXCEPTIONS.contains(&op.name.as_str())
        || EXACT.contains(&full_name.as_str())
        || checker.options.preserved.contains(&full_name)
        || checker.options.operators.is_preserved(&full_name);
    if !excepted && !traits.core && !traits.view_copy {
        checker.say(&rule::NOT_CORE, place, format!("{op} is not in the core set"));
    }
}

fn edge(checker: &mut Checker<'_>, graph: &Graph, node: &Node, op: &OpName, place: &str) {
    let full_name = op.to_string();
    let raw = op.stays_raw();
    if matches!(node.target, Target::Operator(_)) && !raw {
        checker.say(&rule::NOT_EDGE, place, format!("{op} is not converted"));
        return;
    }
    let copies = ["aten::_to_copy", "aten::clone", "aten::empty.memory_format"].contains(&full_name.as_str());
    if copies && !checker.options.memory_formats {
        checker.say(&rule::MEMORY_FORMAT, place, format!("{op} names a memory format"));
    }
    if op.namespace == "dim_order_ops" && checker.options.memory_formats {
        checker.say(&rule::DIM_ORDER, place, format!("{op} names a dim order"));
    }
    core(checker, op, place);
    lints(checker, graph, node, op, place, true);
    if let Some(schema) = checker.options.operators.schema(op).filter(|_| !raw) {
        types(checker, graph, node, &schema, place);
    }
}

/// Checks rules of the specification beyond those that exporters enforce.
fn lints(checker: &mut Checker<'_>, graph: &Graph, node: &Node, op: &OpName, place: &str, strict: bool) {
    let view = checker.options.operators.schema(op).is_some_and(|schema| operators::is_view(&schema));
    if view && strict {
        checker.say(&rule::VIEW, place, format!("{op} gives a view"));
    }
    for result in node.results() {
        if let Some(meta) = graph.tensor(result).filter(|_| strict && !view)
            && let (Some(sizes), Some(strides)) = (meta.known_sizes(), known(&meta.strides))
            && !meta.is_channels_last()
            && !dense(&sizes, &strides)
        {
            let message = format!("`{}` has sizes {sizes:?} and strides {strides:?}", graph.name(result));
            checker.say(&rule::STRIDES, place, message);
        }
    }
}

fn known(sizes: &[crate::graph::Size]) -> Option<Vec<usize>> {
    sizes.iter().map(|size| usize::try_from(size.known()?).ok()).collect()
}

/// Returns whether strides are those of the sizes in order; dimensions of one element may have any.
fn dense(sizes: &[usize], strides: &[usize]) -> bool {
    let wanted = crate::archive::contiguous_strides(sizes);
    sizes.contains(&0)
        || sizes.iter().zip(strides).zip(&wanted).all(|((size, stride), want)| *size <= 1 || stride == want)
}

/// Element types against the table.
fn types(checker: &mut Checker<'_>, graph: &Graph, node: &Node, schema: &Schema<'_>, place: &str) {
    let type_of = |argument: &Argument| graph.tensor_of(argument).map(|meta| meta.scalar_type);
    let mut observed: Vec<(String, Option<ScalarType>)> = Vec::new();
    for parameter in schema.args().iter().filter(|parameter| parameter.kind == ArgumentKind::Tensor) {
        let Some(argument) = node.arg(parameter.name) else { continue };
        match parameter.list {
            Some(list) if list.optional_items => {}
            // Of a list the first speaks for all.
            Some(_) => observed.push((parameter.name.to_owned(), argument.items().first().and_then(type_of))),
            // Only a program has constants: in the graphs within it literals replace them, of the type that is needed.
            None if checker.depth > 0 && argument.is_number() => observed.push((parameter.name.to_owned(), None)),
            None => observed.extend(type_of(argument).map(|seen| (parameter.name.to_owned(), Some(seen)))),
        }
    }
    let tensors = schema.returns().iter().filter(|result| result.kind == ArgumentKind::Tensor);
    for (index, (result, output)) in tensors.zip(&node.outputs).enumerate() {
        let name = if result.name.is_empty() { format!("__ret_{index}") } else { result.name.to_owned() };
        let seen = match output {
            Argument::List(_, items) => items.first().and_then(type_of),
            one => type_of(one),
        };
        observed.push((name, seen));
    }
    let observed: Vec<(&str, Option<ScalarType>)> =
        observed.iter().map(|(name, seen)| (name.as_str(), *seen)).collect();
    if let Err(message) = checker.options.table.check(schema, &observed) {
        checker.say(&rule::DTYPES, place, format!("{}: {message}", node.target));
    }
}

fn backend(checker: &mut Checker<'_>, node: &Node, place: &str) {
    let Some(op) = node.target.operator() else { return };
    let operators = checker.options.operators;
    let registered = |name: &str| checker.options.namespaces.iter().any(|known| known == name);
    if op.namespace != "aten" && !BACKEND.contains(&op.namespace.as_str()) && !registered(&op.namespace) {
        checker.say(&rule::NAMESPACE, place, format!("no backend registered the library `{}` of {op}", op.namespace));
    }
    if op.namespace != "aten" && operators.gives_tensors(op) && operators.shape_function(op).is_none() {
        checker.say(&rule::NO_META_KERNEL, place, format!("{op} has no shape function"));
    }
}

/// Rules that look at a graph as a whole.
pub(super) fn whole(checker: &mut Checker<'_>, graph: &Graph, path: &str) {
    let modules = graph.nodes.iter().filter_map(|node| match node.target {
        Target::Delegate(module) => Some((node, module)),
        _ => None,
    });
    for (node, module) in modules {
        let given = |id: ValueId| graph.value(id).is_some();
        let mut complete = true;
        node.each_input(&mut |id| complete &= given(id));
        if !complete {
            let message = format!("lowered module {module} is given what the graph does not have");
            checker.say(&rule::NO_MODULE, format!("{path}.nodes[{}]", node.name), message);
        }
    }
}
