//! Calls that change their arguments besides what they give: the change becomes a copy that is written down.
//!
//! Normalisation in training moves running moments along. What it computes is a functional call; what it changes are
//! copies into the moments, which the functional form of the program takes from there.

use std::collections::BTreeMap;

use crate::decompose::Composite;
use crate::decompose::maker::{Maker, Sizes, Work};
use crate::error::Error;
use crate::graph::{Argument, Graph, Meta, NamedArgument, Node, OpName, Size, Target, TensorMeta, ValueId};
use crate::operators::Operators;

/// The functional operator that stands for normalisation in training.
const FUNCTIONAL: &str = "aten::_native_batch_norm_legit_functional";

/// Writes down what calls change, in a graph and all graphs inside it.
pub(crate) fn statistics(graph: &mut Graph, operators: &Operators, work: &Work) -> Result<(), Error> {
    graph.each_subgraph(|inner| statistics(inner, operators, work))?;
    let mut sizes = Sizes::of_inputs(graph, work);
    graph.rewrite(|graph, node, made| {
        if node.calls("aten::instance_norm") {
            return instances(graph, operators, &mut sizes, node, made);
        }
        let named = |name: &str| node.calls(name);
        let batch = ["aten::batch_norm", "aten::_native_batch_norm_legit", "aten::native_batch_norm"];
        let always = named("aten::_batch_norm_with_update");
        if !always && !batch.into_iter().any(named) {
            made.push(node);
            return Ok(());
        }
        let Some(schema) = node.target.operator().and_then(|op| operators.schema(op)) else {
            made.push(node);
            return Ok(());
        };
        let call = Composite::new(&node, &schema);
        let training = always || call.flag("training");
        let moments = ["running_mean", "running_var"].map(|name| call.arg(name).value());
        let (true, [Some(mean), Some(variance)]) = (training, moments) else {
            // Without training, nothing is changed.
            let mut node = node;
            if !training && node.calls("aten::_native_batch_norm_legit") {
                node.take_arg("training");
                let target = OpName::parse("aten::_native_batch_norm_legit_no_training");
                node.target = target.map_or(node.target, Target::Operator);
            }
            made.push(node);
            return Ok(());
        };
        normalisation(graph, &call, [mean, variance], made)
    })
}

fn normalisation(
    graph: &mut Graph,
    call: &Composite<'_>,
    moments: [ValueId; 2],
    made: &mut Vec<Node>,
) -> Result<(), Error> {
    let node = call.node;
    let place = || format!("node `{}`", node.name);
    let missing = || Error::program(place(), "it reads something that is not a tensor");
    let mut results = node.results();
    // Further results are of use to derivatives only.
    let spare = results.split_off(results.len().min(3));
    let moment: TensorMeta = graph.tensor(moments[0]).cloned().ok_or_else(missing)?;
    while results.len() < 5 {
        results.push(graph.add_value("moment", Meta::from(moment.clone())));
    }
    let wanted = ["input", "weight", "bias", "running_mean", "running_var", "momentum", "eps"];
    let input = |name: &str, arg| NamedArgument { name: name.to_owned(), arg, keyword: false };
    let mut inputs: Vec<NamedArgument> = wanted.map(|name| input(name, call.arg(name))).into();
    inputs.push(input("training", Argument::Bool(true)));
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
        let sizes = Argument::ints(meta.sizes.iter().filter_map(Size::known));
        let dtype = Argument::ScalarType(meta.scalar_type);
        let mut empty =
            graph.make("aten::full", [("size", sizes), ("fill_value", Argument::Int(0)), ("dtype", dtype)], meta);
        empty.outputs = vec![Argument::Value(value)];
        empty.metadata = BTreeMap::new();
        made.push(empty);
    }
    Ok(())
}

/// Normalisation of each image by itself: running moments move towards the mean of those of the images.
fn instances(
    graph: &mut Graph,
    operators: &Operators,
    sizes: &mut Sizes,
    mut node: Node,
    made: &mut Vec<Node>,
) -> Result<(), Error> {
    let Some(schema) = node.target.operator().and_then(|op| operators.schema(op)) else {
        made.push(node);
        return Ok(());
    };
    let call = Composite::new(&node, &schema);
    let moments = ["running_mean", "running_var"].map(|name| call.arg(name).value());
    let own = call.flag("use_input_stats");
    let (input, momentum) = (call.arg("input").value(), call.number("momentum"));
    let (true, [Some(mean), Some(variance)]) = (own, moments) else {
        made.push(node);
        return Ok(());
    };
    let place = node.name.clone();
    let (Some(input), Some(momentum)) = (input, momentum) else {
        return Err(Error::unsupported(format!("node `{place}`"), "aten::instance_norm without a momentum"));
    };
    node.set_arg("running_mean", Argument::None);
    node.set_arg("running_var", Argument::None);
    made.push(node);
    let mut make = Maker { graph, operators, made, sizes, place };
    let rank = i64::try_from(make.rank(input)?).unwrap_or(0);
    let dims: Vec<i64> = (2..rank).collect();
    let means = make.mean(input, &dims, false)?;
    let dim = ("dim", Argument::ints(dims.iter().copied()));
    let variances = make.call("var.correction", [("self", input.into()), dim, ("correction", Argument::Int(1))])?;
    let mut moved = Vec::new();
    for (moment, of_each) in [(mean, means), (variance, variances)] {
        let now = make.mean(of_each, &[0], false)?;
        let now = make.binary("mul.Tensor", now, momentum)?;
        let before = make.binary("mul.Tensor", moment, 1.0 - momentum)?;
        moved.push((moment, make.binary("add.Tensor", before, now)?));
    }
    for (moment, new) in moved {
        let meta = make.meta(moment)?;
        let copy = make.graph.make("aten::copy_", [("self", moment.into()), ("src", new.into())], meta);
        make.made.push(copy);
    }
    Ok(())
}
