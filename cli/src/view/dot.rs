//! Graphs as text for Graphviz: modules are clusters.
//!
//! Invariant: text of a file is in quotes, with what would end them escaped.

use std::io::{self, Write};

use super::graph::{Graph, Kind, Node, View};

/// Writes all graphs of a file as one, each a cluster.
pub fn dot(view: &View, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "digraph {} {{", quoted(&[&view.file]))?;
    writeln!(
        out,
        "  node [shape=box, style=\"rounded,filled\", fillcolor=white, fontname=\"sans-serif\", fontsize=10];"
    )?;
    writeln!(out, "  edge [fontname=\"sans-serif\", fontsize=8, color=gray40];")?;
    for (index, graph) in view.graphs.iter().enumerate() {
        writeln!(out, "  subgraph cluster_g{index} {{")?;
        writeln!(out, "    label={};", quoted(&[&graph.name, &graph.about]))?;
        write_graph(index, graph, view, out)?;
        writeln!(out, "  }}")?;
    }
    for (index, graph) in view.graphs.iter().enumerate() {
        for (node, content) in graph.nodes.iter().enumerate() {
            let inside =
                content.graphs.iter().filter(|&&inner| view.graphs.get(inner).is_some_and(|g| !g.nodes.is_empty()));
            for inner in inside {
                writeln!(out, "  g{index}n{node} -> g{inner}n0 [style=dotted, lhead=cluster_g{inner}];")?;
            }
        }
    }
    writeln!(out, "}}")
}

fn write_graph(index: usize, graph: &Graph, view: &View, out: &mut dyn Write) -> io::Result<()> {
    let modules = graph.modules.list();
    let mut nodes: Vec<Vec<usize>> = vec![Vec::new(); modules.len()];
    let mut below: Vec<Vec<usize>> = vec![Vec::new(); modules.len()];
    let mut top: Vec<usize> = Vec::new();
    for (module, content) in modules.iter().enumerate() {
        match content.parent {
            Some(parent) => below[parent].push(module),
            None => top.push(module),
        }
    }
    let bad: std::collections::HashSet<usize> = view
        .findings
        .iter()
        .filter_map(|one| one.node)
        .filter(|(graph, _)| *graph == index)
        .map(|(_, node)| node)
        .collect();
    for (node, content) in graph.nodes.iter().enumerate() {
        match content.module {
            Some(module) => nodes[module].push(node),
            None => write_node(index, node, content, bad.contains(&node), out)?,
        }
    }
    for module in top {
        write_module(index, graph, module, (&nodes, &below), &bad, out)?;
    }
    for [from, to, value] in &graph.edges {
        let value = graph.values.get(*value);
        let kind = value.map_or("", |value| value.kind.as_str());
        writeln!(out, "    g{index}n{from} -> g{index}n{to} [label={}];", quoted(&[kind]))?;
    }
    Ok(())
}

/// Writes a module and those in it: as deep as modules are.
fn write_module(
    index: usize,
    graph: &Graph,
    module: usize,
    (nodes, below): (&[Vec<usize>], &[Vec<usize>]),
    bad: &std::collections::HashSet<usize>,
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out, "    subgraph cluster_g{index}m{module} {{")?;
    writeln!(out, "    label={};", quoted(&[&graph.modules.list()[module].name]))?;
    for &node in &nodes[module] {
        write_node(index, node, &graph.nodes[node], bad.contains(&node), out)?;
    }
    for &inner in &below[module] {
        write_module(index, graph, inner, (nodes, below), bad, out)?;
    }
    writeln!(out, "    }}")
}

fn write_node(graph: usize, index: usize, node: &Node, is_bad: bool, out: &mut dyn Write) -> io::Result<()> {
    let color = match (is_bad, node.kind) {
        (true, _) => ", fillcolor=\"#f5b7b1\"",
        (_, Kind::Input | Kind::Output) => ", fillcolor=\"#e8ecf1\"",
        (_, Kind::State) => ", fillcolor=\"#fdebd0\"",
        (_, Kind::Delegate) => ", fillcolor=\"#d6eaf8\"",
        (_, Kind::Control) => ", fillcolor=\"#f4ecf7\"",
        (_, Kind::Call) => "",
    };
    let label = if node.place.is_empty() { node.name.clone() } else { format!("{} {}", node.place, node.name) };
    writeln!(out, "    g{graph}n{index} [label={}{color}];", quoted(&[&label]))
}

/// Lines of text in quotes.
fn quoted(lines: &[&str]) -> String {
    let line = |line: &&str| line.replace('\\', "\\\\").replace('"', "\\\"").replace(['\n', '\r'], " ");
    format!("\"{}\"", lines.iter().map(line).collect::<Vec<_>>().join("\\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_in_its_quotes() {
        assert_eq!(quoted(&["a\"];\n b", "c\\"]), "\"a\\\"]; \\n b\\nc\\\\\"".replace("; \\n b", ";  b"));
    }
}
