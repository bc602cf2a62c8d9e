//! Nodes of XNNPACK payloads, and whether they run here: methods are loaded with a backend that asks lowering.

use std::io::{self, Write};

use edgepack::xnnpack::{Answer, Probe};
use edgepack_executor::{Method, Options};
use edgepack_loader::Program;
use serde::Serialize;

use crate::spelling;
use crate::status::Failure;
use crate::style::{BAD, DIM, NAME, TITLE, WARN};

/// A node of a payload.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Node {
    method: String,
    /// The payload, by its place among those of the backend in the method.
    payload: usize,
    /// The node, by its place in the payload.
    node: u32,
    operator: String,
    text: String,
    /// True if the node runs; `null` if that is not known.
    runs: Option<bool>,
    /// Reason the node is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// Reason it is not known whether the node runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    unknown: Option<String>,
}

/// The nodes of all methods. Those of methods that cannot be loaded for other reasons are left out.
pub fn probe(program: &Program) -> Result<Vec<Node>, Failure> {
    let mut nodes = Vec::new();
    for method in program.method_names()? {
        let probe = Probe::new();
        let backends = edgepack::backends().with(probe.clone());
        let options = Options { backends, no_optimize: true, ..Options::default() };
        // What else keeps it from being loaded is listed as missing, or told by `run`.
        let _ = Method::load(program, &method, &edgepack_kernels::registry(), &options);
        nodes.extend(probe.nodes().into_iter().map(|node| {
            let (runs, refused, unknown) = match node.answer {
                Answer::Refused(why) => (Some(false), Some(spelling::name(&why)), None),
                Answer::Unknown(why) => (None, None, Some(spelling::name(&why))),
                _ => (Some(true), None, None),
            };
            let (payload, operator, text) = (node.payload, node.kind, node.text);
            Node { method: spelling::name(&method), payload, node: node.node, operator, text, runs, refused, unknown }
        }));
    }
    Ok(nodes)
}

/// Prints nodes that are refused, and what is not known.
pub fn print(nodes: &[Node], out: &mut dyn Write) -> io::Result<()> {
    let refused: Vec<&Node> = nodes.iter().filter(|node| node.refused.is_some()).collect();
    let unknown = nodes.iter().filter_map(|node| node.unknown.as_ref());
    if let Some(why) = unknown.clone().next() {
        let count = unknown.count();
        writeln!(out, "{WARN}of {count} nodes it is not known whether they run{WARN:#}: {why}\n")?;
    }
    if refused.is_empty() {
        return Ok(());
    }
    writeln!(out, "{TITLE}refused nodes{TITLE:#}  {}", refused.len())?;
    for Node { method, payload, node, text, refused, .. } in refused {
        writeln!(out, "  {NAME}{method}{NAME:#} {DIM}payload {payload}, node {node}{DIM:#}  {text}")?;
        writeln!(out, "    {BAD}{}{BAD:#}", refused.as_deref().unwrap_or_default())?;
    }
    writeln!(out)
}
