//! The verifier of payloads: every rule one can break, all findings, in linear time.
//!
//! A payload is looked at by itself first. What named data hold and what the delegate is called with is not in it; those
//! rules are asked by [`with_context`], of bytes and arguments that the caller has.

mod call;
mod container;
mod data;
mod graph;
mod nodes;
mod numbers;
mod order;
mod report;
mod scales;
mod signatures;
mod values;

use alloc::format;
use alloc::vec::Vec;

pub use call::Argument;
pub use data::Digest;

use super::constants::{Constant, ConstantBytes};
use super::header::Header;
use super::node::Node;
use super::payload::{Payload, ValueIds};
use super::tables::{Graph, Value};
use crate::check::{Checker, Path, StructureRules};
use crate::finding::Findings;
use crate::limits::Limits;
use crate::room;
use crate::row::{Rows, Table};
use crate::rules::xnnpack as rule;
use crate::wire;

use report::Report;

pub(super) const STRUCTURE: StructureRules = StructureRules {
    malformed: &rule::MALFORMED,
    misaligned: &rule::MISALIGNED,
    text: &rule::TEXT,
    limits: &rule::LIMITS,
};

/// The outcome of verification.
pub struct Verdict<'a> {
    /// Everything found.
    pub findings: Findings,
    /// The payload, as far as it could be read at all.
    pub payload: Option<Payload<'a>>,
}

/// Surroundings of a payload, as far as they are known. Rules about others are not asked.
#[derive(Clone, Copy, Default)]
pub struct Context<'c> {
    /// Arguments of a call of the delegate: inputs, then outputs.
    pub arguments: Option<&'c [Argument<'c>]>,
    /// The bytes of constants: what [`Payload::constants`] gives.
    pub constants: Option<&'c dyn ConstantBytes>,
    /// True if named data that are not found may be in data files that are not at hand.
    pub elsewhere: bool,
    /// SHA-256, if named data are to be compared with their keys: this reads all of them.
    pub digest: Option<Digest>,
}

/// Verifies a payload by itself.
pub fn verify<'a>(bytes: &'a [u8], limits: &Limits) -> Verdict<'a> {
    let mut out = Checker::new(limits, STRUCTURE);
    let payload = verify_at(bytes, &Path::ROOT, &mut out);
    Verdict { findings: out.findings, payload }
}

/// Verifies a payload by itself, in its place: findings go to `out`, which pays for the walk. The payload, as far as it could
/// be read at all.
pub fn verify_at<'a>(bytes: &'a [u8], path: &Path<'_>, out: &mut Checker) -> Option<Payload<'a>> {
    let regions = container::regions(bytes, path, out)?;
    let base = out.base().saturating_add(regions.base);
    out.within(base, |out| out.under(STRUCTURE, |out| read(regions, path, out)))
}

/// Verifies what a payload says about its surroundings, under limits of its own. The payload is one without errors.
pub fn with_context(payload: &Payload<'_>, context: &Context<'_>, limits: &Limits) -> Findings {
    let mut out = Checker::new(limits, STRUCTURE);
    with_context_at(payload, context, &Path::ROOT, &mut out);
    out.findings
}

/// Verifies what a payload says about its surroundings, in its place.
pub fn with_context_at(payload: &Payload<'_>, context: &Context<'_>, path: &Path<'_>, out: &mut Checker) {
    let base = payload.header.as_ref().map_or(0, |header| u64::from(header.flatbuffer_offset));
    out.within(out.base().saturating_add(base), |out| {
        out.under(STRUCTURE, |out| {
            let mut report = Report { payload, path, out };
            if let Some(arguments) = context.arguments {
                call::check(arguments, &mut report);
            }
            if let Some(constants) = context.constants {
                data::check(constants, context.elsewhere, context.digest, &mut report);
            }
        });
    });
}

impl<'a> Payload<'a> {
    /// Parses and verifies a payload by itself. Rules about named data and about the call of the delegate are asked by
    /// [`with_context`].
    ///
    /// The errors are all findings, the harmless ones included.
    pub fn parse(bytes: &'a [u8], limits: &Limits) -> Result<Self, Findings> {
        match verify(bytes, limits) {
            Verdict { findings, payload: Some(payload) } if !findings.has_errors() => Ok(payload),
            Verdict { findings, .. } => Err(findings),
        }
    }
}

/// Record of a payload that was verified, so that its bytes can be read again without verifying them again.
#[derive(Clone, Debug)]
pub struct Verified {
    order: Vec<u32>,
}

impl Payload<'_> {
    /// Returns the record that remains when the payload's bytes are put away.
    pub fn verified(&self) -> Verified {
        Verified { order: self.order.clone() }
    }
}

impl Verified {
    /// Reads the bytes of the payload again. `None` if they cannot be read; of other bytes, nothing is known.
    pub fn read<'a>(&self, bytes: &'a [u8], limits: &Limits) -> Option<Payload<'a>> {
        let mut out = Checker::new(limits, STRUCTURE);
        let regions = container::regions(bytes, &Path::ROOT, &mut out)?;
        let table = wire::Table::root(regions.flatbuffer).ok()?;
        let mut payload = rows_of(Graph::decode(table).ok()?, regions, &Path::ROOT, &mut out)?;
        payload.order = self.order.clone();
        (!out.findings.has_errors()).then_some(payload)
    }
}

/// The parts of a payload.
struct Regions<'a> {
    header: Option<Header>,
    identifier: [u8; 4],
    flatbuffer: &'a [u8],
    /// Start of the flatbuffer in the payload.
    base: u64,
    constants: &'a [u8],
}

fn read<'a>(regions: Regions<'a>, path: &Path<'_>, out: &mut Checker) -> Option<Payload<'a>> {
    let table = match wire::Table::root(regions.flatbuffer) {
        Ok(table) => table,
        Err(error) => {
            out.unreadable(path, error);
            return None;
        }
    };
    let before = out.findings.errors();
    out.table::<Graph<'_>>(table, path);
    // What cannot be read has been reported by the check; what it means is asked of what can be read whole.
    if out.findings.errors() > before {
        return None;
    }
    let mut payload = rows_of(Graph::decode(table).ok()?, regions, path, out)?;
    let order = meaning(&mut Report { payload: &payload, path, out });
    payload.order = out.roomy(path, order)?;
    Some(payload)
}

/// The payload of a graph, without the order of its nodes.
fn rows_of<'a>(graph: Graph<'a>, regions: Regions<'a>, path: &Path<'_>, out: &mut Checker) -> Option<Payload<'a>> {
    lists(&graph, path, out)?;
    let constants = graph::constants(&graph, &regions, path, out)?;
    let values = rows(graph.xvalues.as_ref(), path, out)?;
    let nodes = rows(graph.xnodes.as_ref(), path, out)?;
    let ids = ValueIds::of(&values);
    let ids = out.roomy(path, ids)?;
    let Regions { header, identifier, .. } = regions;
    Some(Payload { header, identifier, graph, values, nodes, constants, ids, order: Vec::new() })
}

/// Everything that the payload says by itself. The answer is an order in which the nodes can run.
fn meaning(report: &mut Report<'_, '_>) -> room::Result<Vec<u32>> {
    graph::check(report)?;
    values::check(report);
    let extremes = scales::inline(report)?;
    numbers::sums(report);
    numbers::products(&extremes, report);
    nodes::check(report);
    let order = order::check(report)?;
    nodes::dimensions(&order, report)?;
    Ok(order)
}

/// The lists are there, and there is memory for their rows.
fn lists(graph: &Graph<'_>, path: &Path<'_>, out: &mut Checker) -> Option<()> {
    let rows = |len: usize, row: usize| (len as u64).saturating_mul(row as u64);
    let values = graph.xvalues.as_ref().map(Rows::len);
    let nodes = graph.xnodes.as_ref().map(Rows::len);
    for (name, list) in [("xvalues", values), ("xnodes", nodes)] {
        if list.is_none() {
            out.report(&rule::LISTS, &path.field(name), None, format!("{name} is absent"));
        }
    }
    let entries = graph.constant_data.as_ref().map_or(0, Rows::len);
    let entries = entries.max(graph.constant_buffer.as_ref().map_or(0, Rows::len));
    // Beside its row, a value or node has places in a few tables of numbers.
    const TABLES: usize = 64;
    let bytes = rows(values.unwrap_or(0), size_of::<Value<'_>>().saturating_add(TABLES))
        .saturating_add(rows(nodes.unwrap_or(0), size_of::<Node<'_>>().saturating_add(TABLES)))
        .saturating_add(rows(entries, size_of::<Constant<'_>>().saturating_add(TABLES)));
    if bytes > out.limits().memory_bytes {
        let message = format!("{bytes} bytes of rows, the limit is {}", out.limits().memory_bytes);
        out.report(&rule::LIMITS, path, None, message);
        return None;
    }
    Some(())
}

fn rows<'a, T: Table<'a> + Clone>(rows: Option<&Rows<'a, T>>, path: &Path<'_>, out: &mut Checker) -> Option<Vec<T>> {
    let tables = rows.map_or(wire::Tables::empty(), Rows::tables);
    let list = room::with_room(tables.len());
    let mut list = out.roomy(path, list)?;
    for table in tables.iter() {
        // The structure is sound, so every row can be read.
        list.push(T::decode(table.ok()?).ok()?);
    }
    Some(list)
}
