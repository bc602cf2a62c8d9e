//! Backends that programs are lowered to, and what became of each node.

use std::io::{self, Write};

use clap::ValueEnum;
use edgepack_exir::Error;
use edgepack_exir::backends::xnnpack::{self, Explained};
use edgepack_exir::lower::{Options, ProgramManager};
use serde::Serialize;

use crate::style::{DIM, NAME};
use crate::units::count;

/// Backend that computes parts of a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Backend {
    /// XNNPACK: floats of single and half precision, and 8 bits as the program has them
    Xnnpack,
}

/// Options of delegation.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Options of delegation")]
pub struct Delegation {
    /// Give the parts that this backend computes to it; what it does not take stays as it is
    #[arg(long, value_name = "BACKEND")]
    pub backend: Option<Backend>,

    /// Say of every node whether the backend takes it, and why not
    #[arg(long, requires = "backend")]
    pub explain: bool,
}

/// Nodes of a method, and which of them are in delegates.
#[derive(Serialize)]
pub struct Division {
    method: String,
    taken: usize,
    left: usize,
    /// All nodes, if that was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    nodes: Vec<NodeLine>,
}

/// A node and the reason it stays, if it does.
#[derive(Serialize)]
struct NodeLine {
    node: String,
    operator: String,
    reason: Option<String>,
}

impl Delegation {
    /// Prepares a manager for the programs that are to be added.
    pub fn prepare(&self, manager: &mut ProgramManager<'static>) {
        if let Some(Backend::Xnnpack) = self.backend {
            manager.keep_whole(xnnpack::whole_operators());
        }
    }

    /// Gives parts of all programs to the backend that was asked for.
    pub fn delegate(&self, manager: &mut ProgramManager<'static>, options: &Options) -> Result<Vec<Division>, Error> {
        let Some(Backend::Xnnpack) = self.backend else { return Ok(Vec::new()) };
        let methods = xnnpack::delegate(manager, &options.external_weights)?;
        Ok(methods.into_iter().map(|(method, nodes)| self.division(method, nodes)).collect())
    }

    fn division(&self, method: String, nodes: Vec<Explained>) -> Division {
        let left = nodes.iter().filter(|node| node.reason.is_some()).count();
        let line = |node: Explained| NodeLine {
            node: node.node,
            operator: node.operator,
            reason: node.reason.map(|reason| reason.to_string()),
        };
        let taken = nodes.len() - left;
        let nodes = if self.explain { nodes.into_iter().map(line).collect() } else { Vec::new() };
        Division { method, taken, left, nodes }
    }
}

/// Says it in lines.
pub fn print(divisions: &[Division], out: &mut dyn Write) -> io::Result<()> {
    for Division { method, taken, left, nodes } in divisions {
        writeln!(out, "  {NAME}{method}{NAME:#}  {} in delegates, {left} outside", count(*taken, "node"))?;
        for NodeLine { node, operator, reason } in nodes {
            match reason {
                Some(reason) => writeln!(out, "    {node}  {DIM}{operator}{DIM:#}  stays: {reason}")?,
                None => writeln!(out, "    {node}  {DIM}{operator}{DIM:#}")?,
            }
        }
    }
    Ok(())
}
