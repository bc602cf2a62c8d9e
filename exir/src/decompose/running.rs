//! Calls that change their arguments besides what they give: the change becomes a copy that is written down.
//!
//! Normalisation in training moves running moments along. What it computes is a functional call; what it changes are
//! copies into the moments, which the functional form of the program takes from there.

use std::collections::BTreeMap;

use crate::error::Error;
use crate::graph::{Argument, Graph, Meta, NamedArgument, Node, OpName, Target, TensorMeta, ValueId};
use crate::operators::{Operators, arguments};

/// The functional operator that stands for normalisation in training.
const FUNCTIONAL: &str = "aten::_native_batch_norm_legit_functional";

/// Writes down what calls change, in a graph and all graphs inside it.
pub(super) fn write_out(graph: &mut Graph, operators: &Operators) -> Result<(), Error> {
    graph.each_subgraph(|inner| write_out(inner, operators))?;
    graph.rewrite(|graph, node, made| {
        let named = |name: &str| node.calls(name);
        let batch = ["aten::batch_norm", "aten::_native_batch_norm_legit", "aten::native_batch_norm"];
        let always = named("aten::_batch_norm_with_update");
        if !always && !batch.into_iter().any(named) {
            made.push(node);
            return Ok(());
        }
        let given = given(operators, &node);
        let find = |name: &str| given.iter().find(|(known, _)| known == name).map(|(_, argument)| argument.clone());
        let training = always || find("training") == Some(Argument::Bool(true));
        let moments = [find("running_mean"), find("running_var")].map(|found| found.and_then(|found| found.value()));
        let (true, [Some(mean), Some(variance)]) = (training, moments) else {
            made.push(node);
            return Ok(());
        };
        normalisation(graph, &node, given, [mean, variance], made)
    })
}

/// The arguments of a call by name.
fn given(operators: &Operators, node: &Node) -> Vec<(String, Argument)> {
    let Some(schema) = node.target.operator().and_then(|op| operators.schema(op)) else { return Vec::new() };
    let found = arguments(&schema, node);
    found.into_iter().filter_map(|(parameter, argument)| Some((parameter.name.to_owned(), argument?))).collect()
}

fn normalisation(
    graph: &mut Graph,
    node: &Node,
    given: Vec<(String, Argument)>,
    moments: [ValueId; 2],
    made: &mut Vec<Node>,
) -> Result<(), Error> {
    let place = || format!("node `{}`", node.name);
    let missing = || Error::program(place(), "it reads something that is no tensor");
    let mut results = node.results();
    // Further results are of use to derivatives only.
    let spare = results.split_off(results.len().min(3));
    let moment: TensorMeta = graph.tensor(moments[0]).cloned().ok_or_else(missing)?;
    while results.len() < 5 {
        results.push(graph.add_value("moment", Meta::from(moment.clone())));
    }
    let wanted = ["input", "weight", "bias", "running_mean", "running_var", "momentum", "eps"];
    let mut inputs: Vec<NamedArgument> = Vec::new();
    for (name, arg) in given {
        if wanted.contains(&name.as_str()) {
            inputs.push(NamedArgument { name, arg, keyword: false });
        }
    }
    inputs.push(NamedArgument { name: "training".to_owned(), arg: Argument::Bool(true), keyword: false });
    let target = OpName::parse(FUNCTIONAL).ok_or_else(|| Error::program(place(), FUNCTIONAL))?;
    let news: Vec<ValueId> = results.iter().skip(3).copied().collect();
    made.push(Node {
        name: node.name.clone(),
        target: Target::Operator(target),
        inputs,
        outputs: results.into_iter().map(Argument::Value).collect(),
        metadata: node.metadata.clone(),
        is_hop_single_tensor_return: None,
    });
    for (moment, new) in moments.into_iter().zip(news) {
        let meta = graph.tensor(moment).cloned().ok_or_else(missing)?;
        made.push(graph.make("aten::copy_", [("self", moment.into()), ("src", new.into())], meta));
    }
    for value in spare {
        let meta = graph.tensor(value).cloned().ok_or_else(missing)?;
        let sizes = Argument::ints(meta.sizes.iter().filter_map(crate::graph::Size::known));
        let dtype = Argument::ScalarType(meta.scalar_type);
        let mut empty = graph.make("aten::full", [("size", sizes), ("fill_value", Argument::Int(0)), ("dtype", dtype)], meta);
        empty.outputs = vec![Argument::Value(value)];
        empty.metadata = BTreeMap::new();
        made.push(empty);
    }
    Ok(())
}
