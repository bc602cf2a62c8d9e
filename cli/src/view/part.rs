//! Parts of graphs whose files name no modules: by the names of weights, or by what repeats.

use std::collections::HashMap;

use super::graph::{Graph, Kind, Node};

/// Nodes of a graph that are not parted into modules.
const FEW: usize = 48;
/// Nodes from which on a graph is parted even if nothing in it says where.
const MANY: usize = 300;
/// Nodes of a part of such a graph.
const PART: usize = 64;

/// Parts a graph whose file names no modules: by the names of its weights, by what repeats, or into parts of equal length.
pub fn part(graph: &mut Graph) {
    if graph.nodes.iter().any(|node| node.module.is_some() && node.kind != Kind::State) {
        return;
    }
    let calls: Vec<usize> = (0..graph.nodes.len()).filter(|&index| is_inner(&graph.nodes[index])).collect();
    if calls.len() <= FEW {
        return;
    }
    let found = by_names(graph, &calls).or_else(|| by_repetition(graph, &calls));
    let Some(paths) = found.or_else(|| (calls.len() > MANY).then(|| equal(&calls))) else { return };
    for (&node, path) in calls.iter().zip(&paths) {
        graph.nodes[node].module = graph.modules.at(path);
    }
    // State belongs to what reads it first, which comes right behind.
    for index in (0..graph.nodes.len().saturating_sub(1)).rev() {
        if graph.nodes[index].kind == Kind::State {
            graph.nodes[index].module = graph.nodes[index + 1].module;
        }
    }
}

fn is_inner(node: &Node) -> bool {
    !matches!(node.kind, Kind::Input | Kind::Output | Kind::State)
}

/// Modules of `layers.0.attention.wq.weight`: `layers.0`, `attention`, `wq`.
fn of_name(name: &str) -> Vec<String> {
    let mut path: Vec<String> = Vec::new();
    let (modules, _) = name.rsplit_once('.').unwrap_or(("", name));
    for part in modules.split('.').filter(|part| !part.is_empty()) {
        match path.last_mut() {
            Some(last) if part.bytes().all(|byte| byte.is_ascii_digit()) => {
                last.push('.');
                last.push_str(part);
            }
            _ => path.push(part.to_owned()),
        }
    }
    path
}

/// Modules by the names of weights. Nodes without weights are in the modules that those before and behind have in common.
fn by_names(graph: &Graph, calls: &[usize]) -> Option<Vec<Vec<String>>> {
    let name = |node: &Node| {
        let named = node.inputs.iter().filter_map(|(_, value)| graph.values.get(*value));
        named.map(|value| of_name(&value.origin)).find(|path| !path.is_empty())
    };
    let own: Vec<Option<Vec<String>>> = calls.iter().map(|&call| name(&graph.nodes[call])).collect();
    if own.iter().flatten().count() * 8 < calls.len() {
        return None;
    }
    let mut next = None;
    let mut behind: Vec<Option<usize>> = Vec::with_capacity(own.len());
    for index in (0..own.len()).rev() {
        next = own[index].as_ref().map(|_| index).or(next);
        behind.push(next);
    }
    behind.reverse();
    let mut before = None;
    let mut paths = Vec::with_capacity(own.len());
    for (index, path) in own.iter().enumerate() {
        before = path.as_ref().map(|_| index).or(before);
        let around = before.zip(behind[index]).and_then(|(one, other)| own[one].as_ref().zip(own[other].as_ref()));
        paths.push(path.clone().or_else(|| around.map(|(one, other)| common(one, other))).unwrap_or_default());
    }
    Some(paths)
}

/// The modules that two paths begin with.
fn common(one: &[String], other: &[String]) -> Vec<String> {
    one.iter().zip(other).take_while(|(one, other)| one == other).map(|(one, _)| one.clone()).collect()
}

/// Periods that are tried, those that promise most first.
const PERIODS: usize = 4;
/// Nodes of a period at least.
const SHORTEST: usize = 6;

/// Parts that repeat: runs of the same operators, as the layers of a language model are.
fn by_repetition(graph: &Graph, calls: &[usize]) -> Option<Vec<Vec<String>>> {
    let names: Vec<&str> = calls.iter().map(|&call| graph.nodes[call].name.as_str()).collect();
    let (start, period, count) = repetition(&names)?;
    let path = |index: usize| match index.checked_sub(start).map(|index| index / period) {
        Some(block) if block < count => vec![format!("part {block}")],
        _ => Vec::new(),
    };
    Some((0..calls.len()).map(path).collect())
}

/// The first index, the length and the number of parts that repeat three times or more, and are half of all together. An
/// operator that a part has once is as often there as there are parts, and always as far from the one before.
fn repetition(names: &[&str]) -> Option<(usize, usize, usize)> {
    let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
    for (index, name) in names.iter().enumerate() {
        places.entry(name).or_default().push(index);
    }
    let regular = |places: &Vec<usize>| {
        let [first, second, _, ..] = places[..] else { return None };
        let period = second - first;
        let same = places.windows(2).all(|pair| pair[1] - pair[0] == period);
        (same && period >= SHORTEST).then_some((places.len() * period, period, first))
    };
    let mut found: Vec<_> = places.values().filter_map(regular).collect();
    found.sort_unstable_by(|a, b| b.cmp(a));
    found.dedup_by_key(|(_, period, _)| *period);
    let mut best = None;
    for (_, period, first) in found.into_iter().take(PERIODS) {
        let same = |index: usize| names.get(index) == names.get(index + period);
        let start = (0..first).rev().find(|&index| !same(index)).map_or(0, |index| index + 1);
        let end = (first..names.len()).find(|&index| !same(index)).unwrap_or(names.len()) + period;
        let count = (end.min(names.len()) - start) / period;
        if count >= 3 && 2 * count * period >= names.len() {
            best = best.max(Some((count * period, std::cmp::Reverse(period), start)));
        }
    }
    best.map(|(all, std::cmp::Reverse(period), start)| (start, period, all / period))
}

/// Parts of the same number of nodes.
fn equal(calls: &[usize]) -> Vec<Vec<String>> {
    let name = |part: usize| format!("calls {} to {}", part * PART, (part * PART + PART).min(calls.len()) - 1);
    (0..calls.len()).map(|index| vec![name(index / PART)]).collect()
}

#[cfg(test)]
mod tests {
    use super::super::graph::Value;
    use super::*;

    #[test]
    fn names_of_weights_are_paths_of_modules() {
        assert_eq!(of_name("layers.0.attention.wq.weight"), ["layers.0", "attention", "wq"]);
        assert_eq!(of_name("weight"), [""; 0]);
        assert_eq!(of_name("0.weight"), ["0"]);
    }

    fn graph(names: &[&str]) -> Graph {
        let node = |name: &&str| Node { name: (*name).to_owned(), ..Node::default() };
        Graph { nodes: names.iter().map(node).collect(), ..Graph::default() }
    }

    #[test]
    fn what_repeats_is_found() {
        let layer = ["norm", "mul", "mul", "add", "softmax", "mul", "add", "norm2"];
        let mut names = vec!["embedding"];
        (0..9).for_each(|_| names.extend(layer));
        names.extend(["mul", "head"]);
        assert_eq!(repetition(&names), Some((1, 8, 9)));
        let mut graph = graph(&names);
        part(&mut graph);
        let module = |node: usize| graph.modules.path(graph.nodes[node].module).join("/");
        assert_eq!((module(0), module(1), module(8)), (String::new(), "part 0".to_owned(), "part 0".to_owned()));
        assert_eq!((module(9), module(72), module(73)), ("part 1".to_owned(), "part 8".to_owned(), String::new()));
        assert_eq!(repetition(&["a"; 100]), None);
        assert_eq!(repetition(&[]), None);
    }

    #[test]
    fn nodes_without_weights_are_where_their_neighbours_are() {
        let mut graph = graph(&["call"; 60]);
        for node in (0..60).step_by(4) {
            let origin = format!("layers.{}.{}.weight", node / 8, if node % 8 == 0 { "up" } else { "down" });
            graph.nodes[node].inputs.push((String::new(), graph.values.len()));
            graph.values.push(Value { origin, ..Value::default() });
        }
        part(&mut graph);
        let module = |node: usize| graph.modules.path(graph.nodes[node].module).join("/");
        assert_eq!([module(0), module(1), module(4), module(5)], ["layers.0/up", "layers.0", "layers.0/down", ""]);
    }

    #[test]
    fn graphs_in_which_nothing_repeats_have_parts_all_the_same() {
        let names: Vec<String> = (0..400).map(|index| format!("call{}", index * index)).collect();
        let mut graph = graph(&names.iter().map(String::as_str).collect::<Vec<_>>());
        part(&mut graph);
        assert_eq!(graph.modules.path(graph.nodes[399].module), ["calls 384 to 399"]);
    }
}
