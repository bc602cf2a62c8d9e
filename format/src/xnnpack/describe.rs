//! Payloads described for people, broken ones included: rows that can be read, whatever they mean.

use alloc::borrow::ToOwned as _;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use super::header::Header;
use super::node::{Node, NodeUnion, Operand};
use super::print::{KindName, Name, NodeLine, Quantized, ValueType};
use super::tables::{Buffer, Graph, QuantParams, Value};
use crate::header::identifier;
use crate::limits::Budget;
use crate::payload::{self, Description, Place, Weight};
use crate::room;
use crate::row::{Rows, Table};
use crate::wire::{self, ReadError, ReadErrorKind};

/// Visits that a row costs: it has a few tables below it.
const ROW: u64 = 8;

/// Describes a payload.
pub(super) fn describe(bytes: &[u8], budget: &mut Budget) -> wire::Result<Description> {
    let short = |_| ReadError { kind: ReadErrorKind::OutOfBounds, offset: 0 };
    let header = Header::read(bytes).map_err(short)?;
    let start = header.map_or(0, |header| header.flatbuffer_offset);
    let outside = ReadError { kind: ReadErrorKind::OutOfBounds, offset: start };
    let flatbuffer = usize::try_from(start).ok().and_then(|start| bytes.get(start..)).ok_or(outside)?;
    let graph = Graph::decode(wire::Table::root(flatbuffer)?)?;
    let values: Vec<Value<'_>> = rows(graph.xvalues.as_ref(), budget)?;
    let nodes: Vec<Node<'_>> = rows(graph.xnodes.as_ref(), budget)?;
    let listing = Listing::new(&values);
    let about = about(header.is_some(), flatbuffer, &graph, &nodes);
    let (weights, constants) = listing.weights(&nodes, places(&graph, header.as_ref(), budget)?);
    let values = values.iter().map(|value| listing.value(value, &constants)).collect();
    let nodes = nodes.iter().map(|node| listing.node(node)).collect();
    Ok(Description { about, values, nodes, weights })
}

/// Rows; one that cannot be read is replaced by an empty one.
fn rows<'a, T: Table<'a> + Clone + Default>(rows: Option<&Rows<'a, T>>, budget: &mut Budget) -> wire::Result<Vec<T>> {
    let tables = rows.map_or(wire::Tables::empty(), Rows::tables);
    budget.charge((tables.len() as u64).saturating_mul(ROW), tables.offset())?;
    let mut list = room::with_room(tables.len())?;
    list.extend(tables.iter().map(|table| table.and_then(T::decode).unwrap_or_default()));
    Ok(list)
}

fn about(has_header: bool, flatbuffer: &[u8], graph: &Graph<'_>, nodes: &[Node<'_>]) -> String {
    let container = if has_header { "header XH00, " } else { "" };
    let identifier = identifier(flatbuffer).unwrap_or_default();
    let version = graph.version.as_deref().unwrap_or("none");
    let fused = nodes.iter().filter(|node| fused(node).is_some()).count();
    let fused = if fused == 0 { String::new() } else { format!(", {fused} with a fused range") };
    format!("{container}flatbuffer {}, version {version}{fused}", identifier.escape_ascii())
}

/// The range that results of a node are held to by what was an operator of its own.
fn fused(node: &Node<'_>) -> Option<String> {
    let range = node.output_min_max.filter(|_| !matches!(node.xnode_union, Some(NodeUnion::Clamp(_))))?;
    let is_open = range.output_min == f32::NEG_INFINITY && range.output_max == f32::INFINITY;
    (!is_open).then(|| range.to_string())
}

/// The place and bytes of each constant; `None` where there is nothing.
fn places(graph: &Graph<'_>, header: Option<&Header>, budget: &mut Budget) -> wire::Result<Vec<Option<(Place, u64)>>> {
    let Some(header) = header else {
        let tables = graph.constant_buffer.as_ref().map_or(wire::Tables::empty(), Rows::tables);
        budget.charge(tables.len() as u64, tables.offset())?;
        let place = |table: wire::Result<wire::Table<'_>>| {
            let vector = table.ok()?.vector(Buffer::STORAGE.index, 1).ok()??;
            Some((Place::Offset(vector.offset().into()), vector.bytes().len() as u64))
        };
        return Ok(tables.iter().map(place).collect());
    };
    let rows = rows(graph.constant_data.as_ref(), budget)?;
    let start = u64::from(header.constants_offset);
    Ok(room::collect(rows.into_iter().map(|row| {
        let place = match row.named_key {
            Some(key) => Place::Key((*key).to_owned()),
            None => Place::Offset(start.saturating_add(row.offset)),
        };
        Some((place, row.size))
    }))?)
}

/// Values by the names that nodes have for them.
struct Listing<'v, 'a> {
    /// Values with their indices.
    ids: BTreeMap<u32, (usize, &'v Value<'a>)>,
    values: &'v [Value<'a>],
}

impl<'v, 'a> Listing<'v, 'a> {
    fn new(values: &'v [Value<'a>]) -> Self {
        let mut ids = BTreeMap::new();
        for (index, value) in values.iter().enumerate() {
            if let Some(tensor) = value.tensor() {
                ids.entry(tensor.id_out).or_insert((index, value));
            }
        }
        Listing { ids, values }
    }

    fn find(&self, id: u32) -> Option<&'v Value<'a>> {
        self.ids.get(&id).map(|(_, value)| *value)
    }

    /// Describes a value; `constants` are the indices of weights by those of constants.
    fn value(&self, value: &Value<'_>, constants: &BTreeMap<u32, usize>) -> payload::Value {
        let Some(tensor) = value.tensor() else {
            return payload::Value { kind: ValueType(value).to_string(), ..payload::Value::default() };
        };
        let position = || tensor.position().map_or_else(|| "without a position".to_owned(), |place| place.to_string());
        let role = match (tensor.is_input(), tensor.is_output(), tensor.constant_buffer_idx) {
            (true, _, _) => format!("input {}", position()),
            (_, true, _) => format!("output {}", position()),
            (_, _, 0) => String::new(),
            (_, _, index) => format!("constant {index}"),
        };
        payload::Value {
            name: format!("%{}", tensor.id_out),
            kind: format!("{}{}", ValueType(value), Quantized(value)),
            role,
            weight: constants.get(&tensor.constant_buffer_idx).copied(),
        }
    }

    fn node(&self, node: &Node<'a>) -> payload::Node {
        let operands = node.inputs().filter(Operand::is_present).chain(node.outputs());
        let tensors = operands.filter_map(|operand| self.find(operand.id)?.tensor());
        let index = |operand: &Operand| Some((operand.role.to_owned(), self.ids.get(&operand.id)?.0));
        let types: BTreeSet<String> = tensors.map(|tensor| Name(tensor.seen_as()).to_string()).collect();
        payload::Node {
            operator: kind(node),
            text: NodeLine::new(node, |id| self.find(id)).to_string(),
            types: types.into_iter().collect(),
            fused: fused(node),
            inputs: node.inputs().filter(Operand::is_present).filter_map(|operand| index(&operand)).collect(),
            outputs: node.outputs().filter_map(|operand| Some(index(&operand)?.1)).collect(),
        }
    }

    /// Constants, each named after the node that uses it first, and the indices they have in this list.
    fn weights(&self, nodes: &[Node<'_>], places: Vec<Option<(Place, u64)>>) -> (Vec<Weight>, BTreeMap<u32, usize>) {
        let mut known: BTreeMap<u32, (String, String)> = BTreeMap::new();
        for (index, node) in nodes.iter().enumerate() {
            for (position, input) in node.inputs().enumerate() {
                let Some(value) = self.find(input.id).filter(|_| input.is_present()) else { continue };
                let role = if input.role.is_empty() { format!("input {position}") } else { input.role.to_owned() };
                uses(value, || format!("{} {index} {role}", kind(node)), &mut known);
            }
        }
        for value in self.values {
            let id = value.tensor().map_or(0, |tensor| tensor.id_out);
            uses(value, || format!("%{id}"), &mut known);
        }
        let (mut weights, mut indices) = (Vec::new(), BTreeMap::new());
        // Entry 0 stands for no constant.
        for (index, place) in (0u32..).zip(places).skip(1) {
            let Some((place, bytes)) = place else { continue };
            let unnamed = || (format!("constant {index}"), "bytes that nothing uses".to_owned());
            let (name, kind) = known.remove(&index).unwrap_or_else(unnamed);
            indices.insert(index, weights.len());
            weights.push(Weight { name, kind, bytes, place });
        }
        (weights, indices)
    }
}

fn kind(node: &Node<'_>) -> String {
    node.xnode_union.as_ref().map_or_else(|| "nothing".to_owned(), |union| KindName(union).to_string())
}

/// Notes the constants of a value under a name: its elements and its scales.
fn uses(value: &Value<'_>, name: impl Fn() -> String, known: &mut BTreeMap<u32, (String, String)>) {
    let Some(tensor) = value.tensor().filter(|tensor| tensor.is_constant()) else { return };
    known.entry(tensor.constant_buffer_idx).or_insert_with(|| (name(), ValueType(value).to_string()));
    let (scales, element, count) = match value.quant_params() {
        Some(QuantParams::PerChannelQuant(params)) => (params.scale_buffer_idx, "f32", params.num_scales),
        Some(QuantParams::PerChannelGroupQuant(params)) => (params.scale_buffer_idx, "bf16", params.num_scales),
        _ => return,
    };
    if scales != 0 {
        known.entry(scales).or_insert_with(|| (format!("{} scales", name()), format!("{element}[{count}]")));
    }
}
