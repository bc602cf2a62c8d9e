//! Backends that programs are lowered to, and what became of each node.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;

use clap::ValueEnum;
use edgepack_exir::backends::xnnpack::{self, Explained, Layer, Scheme};
use edgepack_exir::lower::{Options, ProgramManager};
use serde::Serialize;

use super::{calibrate, failure};
use crate::session::Session;
use crate::status::Failure;
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

    /// Round float weights: 8da4w or 8da4w:GROUP (products with 4 bits in blocks of GROUP, 32 without it), int8-dynamic
    /// (products with 8 bits), embedding-4bit (tables of embeddings). The error of each weight is printed
    #[arg(long, value_name = "SCHEME", requires = "backend", value_parser = scheme)]
    pub quantize: Vec<Scheme>,

    /// Recorded runs to take the ranges of tensors from: products, convolutions and what is between them are computed on 8
    /// bits
    #[arg(long, value_name = "FILE", requires = "backend")]
    pub calibrate: Option<PathBuf>,
}

/// Elements of a block where none are asked for.
const BLOCK: usize = 32;

/// Reads a scheme.
fn scheme(text: &str) -> Result<Scheme, String> {
    let size = |size: &str| match size.parse() {
        Ok(size) if size > 0 && size % BLOCK == 0 => Ok(Scheme::Blocks(size)),
        _ => Err(format!("blocks have {BLOCK} elements or a multiple of that, not {size}")),
    };
    match text.split_once(':') {
        None if text == "8da4w" => Ok(Scheme::Blocks(BLOCK)),
        None if text == "int8-dynamic" => Ok(Scheme::Rows),
        None if text == "embedding-4bit" => Ok(Scheme::Embeddings),
        Some(("8da4w", group)) => size(group),
        _ => Err("schemes are 8da4w, 8da4w:GROUP, int8-dynamic and embedding-4bit".to_owned()),
    }
}

/// Nodes of a method, and which of them are in delegates.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Division {
    method: String,
    taken: usize,
    left: usize,
    /// Weights that were rounded, or could not be.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    weights: Vec<WeightLine>,
    /// All nodes, if that was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    nodes: Vec<NodeLine>,
}

/// A weight and the error it is rounded with, in decibels below it.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct WeightLine {
    weight: String,
    operator: String,
    sqnr: Option<f64>,
    left: Option<&'static str>,
}

/// A node and the reason it stays, if it does.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct NodeLine {
    node: String,
    operator: String,
    reason: Option<String>,
}

impl Delegation {
    /// Prepares a manager for the programs that are to be added.
    pub fn prepare(&self, manager: &mut ProgramManager<'_>) {
        if let Some(Backend::Xnnpack) = self.backend {
            manager.keep_whole(xnnpack::whole_operators());
        }
    }

    /// Gives parts of all programs to the backend that was asked for, with weights rounded as was asked for.
    pub fn delegate(
        &self,
        manager: &mut ProgramManager<'_>,
        options: &Options,
        session: &mut Session,
    ) -> Result<Vec<Division>, Failure> {
        let Some(Backend::Xnnpack) = self.backend else { return Ok(Vec::new()) };
        let mut weights: BTreeMap<String, Vec<WeightLine>> = BTreeMap::new();
        let mut note = |layers: Vec<(String, Vec<Layer>)>| {
            for (method, layers) in layers {
                weights.entry(method).or_default().extend(layers.into_iter().map(WeightLine::new));
            }
        };
        for scheme in &self.quantize {
            note(xnnpack::quantise(manager, *scheme).map_err(failure)?);
        }
        if let Some(path) = &self.calibrate {
            let runs = super::recorded(path, session)?;
            let ranges = calibrate::ranges(manager, options, &runs)?;
            note(xnnpack::quantise_static(manager, &ranges).map_err(failure)?);
        }
        if weights.is_empty() && (!self.quantize.is_empty() || self.calibrate.is_some()) {
            writeln!(session.err, "no weights are quantised: the program has none that could be")?;
        }
        let methods = xnnpack::delegate(manager, &options.external_weights).map_err(failure)?;
        let division = |(method, nodes): (String, Vec<Explained>)| {
            let weights = weights.remove(&method).unwrap_or_default();
            self.division(method, weights, nodes)
        };
        Ok(methods.into_iter().map(division).collect())
    }

    fn division(&self, method: String, weights: Vec<WeightLine>, nodes: Vec<Explained>) -> Division {
        let left = nodes.iter().filter(|node| node.reason.is_some()).count();
        let line = |node: Explained| NodeLine {
            node: node.node,
            operator: node.operator,
            reason: node.reason.map(|reason| reason.to_string()),
        };
        let taken = nodes.len() - left;
        let nodes = if self.explain { nodes.into_iter().map(line).collect() } else { Vec::new() };
        Division { method, taken, left, weights, nodes }
    }
}

impl WeightLine {
    fn new(Layer { weight, operator, sqnr, left, .. }: Layer) -> Self {
        WeightLine { weight, operator, sqnr, left }
    }
}

/// Says it in lines.
pub fn print(divisions: &[Division], out: &mut dyn Write) -> io::Result<()> {
    for Division { method, taken, left, weights, nodes } in divisions {
        writeln!(out, "  {NAME}{method}{NAME:#}  {} in delegates, {left} outside", count(*taken, "node"))?;
        for WeightLine { weight, operator, sqnr, left } in weights {
            match (sqnr, left) {
                (Some(sqnr), _) => writeln!(out, "    {weight}  {DIM}{operator}{DIM:#}  {sqnr:.1} dB")?,
                (None, left) => {
                    let reason = left.unwrap_or_default();
                    writeln!(out, "    {weight}  {DIM}{operator}{DIM:#}  stays: {reason}")?;
                }
            }
        }
        for NodeLine { node, operator, reason } in nodes {
            match reason {
                Some(reason) => writeln!(out, "    {node}  {DIM}{operator}{DIM:#}  stays: {reason}")?,
                None => writeln!(out, "    {node}  {DIM}{operator}{DIM:#}")?,
            }
        }
    }
    Ok(())
}
