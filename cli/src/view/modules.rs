//! Modules that nodes are in: those that the file names, or parts that repeat themselves.

use std::collections::HashMap;

use serde::Serialize;

use super::graph::{Graph, Kind, Node};

/// A module.
#[derive(Debug, Serialize)]
pub struct Module {
    /// Name of the module below the one around it.
    pub name: String,
    /// Index of the module around it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<usize>,
}

/// Modules of a graph, each behind the one around it.
#[derive(Debug, Default, Serialize)]
#[serde(transparent)]
pub struct Modules {
    list: Vec<Module>,
    #[serde(skip)]
    known: HashMap<(Option<usize>, String), usize>,
    /// Modules around the node before, outermost first.
    #[serde(skip)]
    last: Vec<usize>,
}

/// Modules around a node at most: inner ones are left out.
const DEPTH: usize = 12;

impl Modules {
    /// The module at the end of a path, outermost first; the same path is the same module.
    pub fn at<S: AsRef<str>>(&mut self, path: impl IntoIterator<Item = S>) -> Option<usize> {
        let mut found = None;
        for name in path.into_iter().take(DEPTH) {
            let (parent, name) = (found, name.as_ref());
            let list = &mut self.list;
            found = Some(*self.known.entry((parent, name.to_owned())).or_insert_with(|| {
                list.push(Module { name: name.to_owned(), parent });
                list.len() - 1
            }));
        }
        found
    }

    /// The module of the next node by a path that is not its own: the lines of source that led to it. What is between nodes
    /// of the same path ends a module, and the next one is another.
    pub fn next<S: AsRef<str>>(&mut self, path: impl IntoIterator<Item = S>) -> Option<usize> {
        let (mut found, mut depth) = (None, 0);
        for name in path.into_iter().take(DEPTH) {
            let name = name.as_ref();
            let same =
                self.last.get(depth).copied().filter(|&last| self.list.get(last).is_some_and(|one| one.name == name));
            let module = same.unwrap_or_else(|| {
                self.last.truncate(depth);
                self.list.push(Module { name: name.to_owned(), parent: found });
                self.last.push(self.list.len() - 1);
                self.list.len() - 1
            });
            (found, depth) = (Some(module), depth + 1);
        }
        self.last.truncate(depth);
        found
    }

    /// Modules by their indices.
    pub fn list(&self) -> &[Module] {
        &self.list
    }

    /// Names from the outermost module to this one.
    pub fn path(&self, module: Option<usize>) -> Vec<&str> {
        let mut names = Vec::new();
        let mut next = module;
        while let Some(module) = next.and_then(|index| self.list.get(index)) {
            names.push(module.name.as_str());
            next = module.parent;
        }
        names.reverse();
        names
    }
}

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
    fn one_path_is_one_module() {
        let mut modules = Modules::default();
        let (a, b) = (modules.at(["net", "a"]), modules.at(["net", "b"]));
        assert_eq!((a, b, modules.at(["net", "a"])), (Some(1), Some(2), a));
        assert_eq!((modules.path(b), modules.path(None)), (vec!["net", "b"], vec![]));
        assert_eq!(modules.at::<&str>([]), None);
        let deep = modules.at(["x"; 100]);
        assert_eq!(modules.path(deep).len(), DEPTH);
    }

    #[test]
    fn lines_of_source_are_modules_as_long_as_nodes_follow_each_other() {
        let mut modules = Modules::default();
        let found = [&["f", "a"][..], &["f", "a"], &["f"], &["f", "a"], &["g", "a"], &[], &["g"]]
            .map(|path| modules.next(path));
        assert_eq!(found, [Some(1), Some(1), Some(0), Some(2), Some(4), None, Some(5)]);
        assert_eq!(modules.path(Some(4)), ["g", "a"]);
    }

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
