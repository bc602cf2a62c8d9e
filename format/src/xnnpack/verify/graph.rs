//! The graph as a whole: external ids, and the list of constants.

use alloc::borrow::Cow;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

use super::Regions;
use super::report::Report;
use crate::check::{Checker, Path};
use crate::room;
use crate::row::Scalars;
use crate::rules::xnnpack as rule;
use crate::xnnpack::constants::{Constant, NO_OFFSET, ShownKey};
use crate::xnnpack::tables::{Graph, TensorValue};
use crate::xnnpack::value::{INPUT, OUTPUT};

/// The most external values that the reference takes.
const MAX_EXTERNS: u32 = 4096;

/// The place of every constant.
pub(super) fn constants<'a>(
    graph: &Graph<'a>,
    regions: &Regions<'a>,
    path: &Path<'_>,
    out: &mut Checker,
) -> Option<Vec<Constant<'a>>> {
    let path = path.field("constant_data");
    let mut list = Vec::new();
    if regions.header.is_none() {
        for buffer in graph.constant_buffer.iter().flat_map(|rows| rows.iter()) {
            let constant = match buffer.ok()?.storage.map(|storage| storage.0) {
                Some(Cow::Borrowed(bytes)) if !list.is_empty() => Constant::Inline(bytes),
                _ => Constant::None,
            };
            let pushed = room::push(&mut list, constant);
            out.roomy(&path, pushed)?;
        }
        return Some(list);
    }
    let tables = graph.constant_data.as_ref().map(|rows| rows.tables());
    for (index, row) in graph.constant_data.iter().flat_map(|rows| rows.iter()).enumerate() {
        let row = row.ok()?;
        let offset = tables.and_then(|tables| tables.get(index).ok()).map(|table| table.offset());
        let constant = match row.named_key {
            // Entry 0 stands for no constant, whatever it says.
            _ if index == 0 => Constant::None,
            Some(key) => {
                if row.offset != NO_OFFSET {
                    let message = format!("key {} and offset {}", ShownKey(&key), row.offset);
                    out.report(&rule::CONSTANT_PLACE, &path.index(index), offset, message);
                }
                Constant::Named { key, size: row.size }
            }
            None if row.offset == NO_OFFSET => {
                out.report(&rule::CONSTANT_PLACE, &path.index(index), offset, "neither key nor offset".to_string());
                Constant::None
            }
            None => {
                let start = usize::try_from(row.offset).ok();
                let end = row.offset.checked_add(row.size).and_then(|end| usize::try_from(end).ok());
                let bytes = start.zip(end).and_then(|(start, end)| regions.constants.get(start..end));
                if bytes.is_none() {
                    let (size, len) = (row.size, regions.constants.len());
                    let message = format!("{size} bytes at {} of a region of {len}", row.offset);
                    out.report(&rule::CONSTANT_RANGE, &path.index(index), offset, message);
                }
                bytes.map_or(Constant::None, Constant::Inline)
            }
        };
        let pushed = room::push(&mut list, constant);
        out.roomy(&path, pushed)?;
    }
    Some(list)
}

/// Rules about all values at once.
pub(super) fn check(report: &mut Report<'_, '_>) -> room::Result<()> {
    keys(report);
    externs(report)?;
    let payload = report.payload;
    let lists = [("input_ids", &payload.graph.input_ids, INPUT), ("output_ids", &payload.graph.output_ids, OUTPUT)];
    for (name, list, flag) in lists {
        let is_one = |tensor: &TensorValue<'_>| tensor.flags & flag != 0;
        let count = payload.values.iter().filter_map(|value| value.tensor()).filter(|tensor| is_one(tensor)).count();
        let have = list.as_ref().map_or(0, Scalars::len);
        let is_named = |id| payload.value(id).and_then(|value| value.tensor()).is_some_and(is_one);
        match list.iter().flat_map(|list| list.iter()).find(|id| !is_named(*id)) {
            Some(id) => report.list(&rule::ID_LISTS, name, format!("{id} is not the id of such a value")),
            None if have != count => report.list(&rule::ID_LISTS, name, format!("{have} ids for {count} values")),
            None => {}
        }
    }
    Ok(())
}

/// Constants of one key have one size.
fn keys(report: &mut Report<'_, '_>) {
    let mut sizes: BTreeMap<&str, u64> = BTreeMap::new();
    for (index, constant) in report.payload.constants.iter().enumerate() {
        let Constant::Named { key, size } = constant else { continue };
        let first = *sizes.entry(key).or_insert(*size);
        if first != *size {
            report.constant(&rule::NAMED_AGREES, index, format!("{size} bytes of {}, {first} before", ShownKey(key)));
        }
    }
}

fn externs(report: &mut Report<'_, '_>) -> room::Result<()> {
    let payload = report.payload;
    let count = payload.graph.num_externs;
    if count > MAX_EXTERNS {
        report.list(&rule::EXTERNS, "num_externs", format!("{count}, the most is {MAX_EXTERNS}"));
    }
    let mut ids: Vec<(u32, bool, usize)> = Vec::new();
    for (index, value) in payload.values.iter().enumerate() {
        let Some(tensor) = value.tensor() else { continue };
        let is_external = tensor.is_input() || tensor.is_output();
        match tensor.position() {
            Some(id) if id >= count => {
                report.value(&rule::EXTERNS, index, "external_id", format!("{id} of {count}"));
            }
            Some(id) if is_external => room::push(&mut ids, (id, tensor.is_output(), index))?,
            Some(id) => {
                let message = format!("{id}, and the value is neither input nor output");
                report.value(&rule::EXTERNAL_IDS, index, "external_id", message);
            }
            None if is_external => {
                report.value(&rule::EXTERNAL_IDS, index, "external_id", "an external value without one".to_string());
            }
            None => {}
        }
    }
    ids.sort_unstable();
    let inputs = ids.iter().filter(|(_, is_output, _)| !is_output).count();
    for (position, (id, is_output, index)) in ids.into_iter().enumerate() {
        if usize::try_from(id) != Ok(position) {
            let message = format!("{id} is number {position} of the external ids");
            report.value(&rule::EXTERNAL_IDS, index, "external_id", message);
            break;
        }
        if is_output != (position >= inputs) {
            let message = format!("{id} is an {}, of {inputs} inputs", if is_output { "output" } else { "input" });
            report.value(&rule::EXTERNAL_IDS, index, "external_id", message);
            break;
        }
    }
    Ok(())
}
