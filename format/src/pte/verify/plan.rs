//! Checks of one method: its values, inputs and outputs, planned memory, operators and delegates.

use alloc::format;
use alloc::vec::Vec;

use super::data::{Data, Inline};
use super::facts::{Facts, mark};
use super::quick::Quick;
use super::{code, values};
use crate::check::{Checker, Path};
use crate::finding::Rule;
use crate::notation::ValueName;
use crate::pte::{
    BackendDelegate, BackendDelegateDataReference, CompileSpec, DataLocation, DeviceType, ExecutionPlan,
    NonConstBufferDevice, Operator,
};
use crate::room;
use crate::row::Scalars;
use crate::rules::pte as rule;
use crate::wire::{Table, Tables};

/// Checks one plan.
pub(super) fn check<'a>(
    table: &Table<'a>,
    data: &mut Data<'a>,
    quick: &mut Quick<'a>,
    arena_bytes: u64,
    path: &Path<'_>,
    out: &mut Checker,
) -> room::Result<()> {
    let at = Some(table.offset());
    let list =
        |read: crate::wire::Result<Option<Tables<'a>>>, name, broken: Option<&'static Rule>, out: &mut Checker| {
            if let (Ok(None), Some(broken)) = (&read, broken) {
                out.report(broken, &path.field(name), at, "there is no list".into());
            }
            read.ok().flatten().unwrap_or(Tables::empty())
        };
    let values = list(table.tables(ExecutionPlan::VALUES.index), "values", Some(&rule::VALUES), out);
    let operators = list(table.tables(ExecutionPlan::OPERATORS.index), "operators", None, out);
    let delegates = list(table.tables(ExecutionPlan::DELEGATES.index), "delegates", Some(&rule::DELEGATES), out);
    let mut facts = Facts {
        values,
        marks: room::filled(0, values.len())?,
        arenas: memory(table, arena_bytes, path, out),
        devices: Vec::new(),
        operators: operators.len(),
        delegates: delegates.len(),
    };
    devices(table, &mut facts, path, out)?;
    let inputs = table.get(ExecutionPlan::INPUTS);
    inputs_before(&inputs, &mut facts, at, path, out);
    check_values(&mut facts, data, quick, path, out)?;
    if let Ok(Some(inputs)) = &inputs {
        inputs_after(inputs, &facts, at, &path.field("inputs"), out);
    }
    match table.get(ExecutionPlan::OUTPUTS) {
        Ok(Some(outputs)) => code::in_range(&outputs, &facts, &rule::IO_INDEX, &path.field("outputs"), at, out),
        Ok(None) => out.report(&rule::INPUTS, &path.field("outputs"), at, "there is no list".into()),
        Err(_) => {}
    }
    check_operators(operators, &path.field("operators"), out);
    check_delegates(delegates, data, &path.field("delegates"), out);
    if let Ok(chains) = table.tables(ExecutionPlan::CHAINS.index) {
        code::check(chains.unwrap_or(Tables::empty()), &facts, quick, &path.field("chains"), out);
    }
    Ok(())
}

/// Checks the sizes of planned memory and returns them.
fn memory<'a>(table: &Table<'a>, most: u64, path: &Path<'_>, out: &mut Checker) -> Option<Scalars<'a, i64>> {
    let path = path.field("non_const_buffer_sizes");
    let at = Some(table.offset());
    let sizes = match table.get(ExecutionPlan::NON_CONST_BUFFER_SIZES) {
        Ok(Some(sizes)) => sizes,
        Ok(None) => {
            out.report(&rule::ARENA_SIZES, &path, at, "there is no list".into());
            return None;
        }
        Err(_) => return None,
    };
    let mut total = 0u64;
    for (index, size) in sizes.iter().enumerate() {
        match u64::try_from(size) {
            Ok(0) => {}
            Ok(size) if index == 0 => {
                out.report(&rule::ARENA_RESERVED, &path.index(0), at, format!("{size} bytes"));
            }
            Ok(size) => total = total.saturating_add(size),
            Err(_) => out.report(&rule::ARENA_NEGATIVE, &path.index(index), at, format!("{size} bytes")),
        }
    }
    if total > most {
        out.report(&rule::ARENA_LIMIT, &path, at, format!("{total} bytes, the limit is {most}"));
    }
    Some(sizes)
}

fn devices(table: &Table<'_>, facts: &mut Facts<'_>, path: &Path<'_>, out: &mut Checker) -> room::Result<()> {
    let Ok(Some(list)) = table.tables(ExecutionPlan::NON_CONST_BUFFER_DEVICE.index) else { return Ok(()) };
    let count = facts.arenas.as_ref().map_or(0, |sizes| sizes.len());
    if list.is_empty() || facts.arenas.is_none() {
        return Ok(());
    }
    let mut found = room::filled(None, count)?;
    let path = path.field("non_const_buffer_device");
    for (index, entry) in list.iter().enumerate() {
        let Ok(entry) = entry else { continue };
        let at = Some(entry.offset());
        let path = path.index(index);
        let (Ok(buffer), Ok(kind), Ok(device)) = (
            entry.get(NonConstBufferDevice::BUFFER_IDX),
            entry.get(NonConstBufferDevice::DEVICE_TYPE),
            entry.get(NonConstBufferDevice::DEVICE_INDEX),
        ) else {
            continue;
        };
        if kind.name().is_none() {
            out.report(&rule::DEVICE_TYPE, &path.field("device_type"), at, format!("{kind}"));
        }
        match usize::try_from(buffer).ok().filter(|&buffer| buffer > 0).and_then(|buffer| found.get_mut(buffer)) {
            Some(place @ None) => *place = Some((kind, device)),
            Some(Some(_)) => {
                let message = format!("memory {buffer} has a device already");
                out.report(&rule::DEVICE_DUPLICATE, &path.field("buffer_idx"), at, message);
            }
            None => {
                let message = format!("{buffer}, the plan has memories 1 to {}", count.saturating_sub(1));
                out.report(&rule::DEVICE_BUFFER, &path.field("buffer_idx"), at, message);
            }
        }
    }
    let found = found.into_iter().map(|device| device.unwrap_or((DeviceType::CPU, 0)));
    facts.devices = room::collect(found)?;
    Ok(())
}

/// Marks the inputs: what a tensor may be depends on whether it is one.
fn inputs_before(
    inputs: &crate::wire::Result<Option<Scalars<'_, i32>>>,
    facts: &mut Facts<'_>,
    at: Option<u32>,
    path: &Path<'_>,
    out: &mut Checker,
) {
    let path = path.field("inputs");
    let inputs = match inputs {
        Ok(Some(inputs)) => inputs,
        Ok(None) => return out.report(&rule::INPUTS, &path, at, "there is no list".into()),
        Err(_) => return,
    };
    for (place, value) in inputs.iter().enumerate() {
        match facts.mark(value, &rule::IO_INDEX, &path.index(place), at, out) {
            Some(found) if found & mark::INPUT != 0 => {
                out.report(
                    &rule::INPUT_TWICE,
                    &path.index(place),
                    at,
                    format!("{value} again", value = ValueName(value)),
                );
            }
            Some(_) => {
                if let Some(found) = usize::try_from(value).ok().and_then(|value| facts.marks.get_mut(value)) {
                    *found |= mark::INPUT;
                }
            }
            None => {}
        }
    }
}

fn inputs_after(inputs: &Scalars<'_, i32>, facts: &Facts<'_>, at: Option<u32>, path: &Path<'_>, out: &mut Checker) {
    for (place, value) in inputs.iter().enumerate() {
        let Some(found) = usize::try_from(value).ok().and_then(|value| facts.marks.get(value)) else { continue };
        if found & mark::CONSTANT != 0 {
            let message = format!("{value} is a constant tensor", value = ValueName(value));
            out.report(&rule::INPUT_CONSTANT, &path.index(place), at, message);
        }
        if (mark::INT_LIST..=mark::LAST_KIND).contains(&(found & mark::KIND)) {
            let message = format!("{value} is of kind {}", mark::name(found & mark::KIND), value = ValueName(value));
            out.report(&rule::INPUT_KIND, &path.index(place), at, message);
        }
    }
}

fn check_values<'a>(
    facts: &mut Facts<'a>,
    data: &Data<'a>,
    quick: &mut Quick<'a>,
    path: &Path<'_>,
    out: &mut Checker,
) -> room::Result<()> {
    let path = path.field("values");
    let mut lists = Vec::new();
    for index in 0..facts.values.len() {
        let before = facts.marks.get(index).copied().unwrap_or(0);
        let found = match quick.value(index, facts, data, out) {
            Some(found) => found,
            None if out.is_spent() => return Ok(()),
            None => {
                let path = path.index(index);
                let found = match facts.values.get(index) {
                    Ok(table) => values::check(table, before & mark::INPUT != 0, facts, data, &path, out),
                    Err(error) => {
                        out.unreadable(&path, error);
                        mark::UNCLEAR
                    }
                };
                if matches!(found, mark::INT_LIST | mark::TENSOR_LIST | mark::OPTIONAL_TENSOR_LIST) {
                    room::push(&mut lists, index)?;
                }
                found
            }
        };
        if let Some(place) = facts.marks.get_mut(index) {
            *place = before | found;
        }
    }
    for index in lists {
        values::list(index, facts, &path.index(index), out);
    }
    Ok(())
}

fn check_operators(operators: Tables<'_>, path: &Path<'_>, out: &mut Checker) {
    for (index, table) in operators.iter().enumerate() {
        let Ok(table) = table else { continue };
        let path = path.index(index);
        let at = Some(table.offset());
        let name = match table.string(Operator::NAME.index) {
            Ok(Some(name)) => name.len(),
            Ok(None) => {
                out.report(&rule::OPERATOR_NAME, &path.field("name"), at, "there is none".into());
                continue;
            }
            Err(_) => continue,
        };
        let overload = table.string(Operator::OVERLOAD.index).ok().flatten().map_or(0, |overload| overload.len());
        let len = name.saturating_add(overload).saturating_add(usize::from(overload > 0));
        if len > crate::operators::MAX_NAME {
            out.report(&rule::OPERATOR_LONG, &path, at, format!("{len} bytes"));
        }
    }
}

fn check_delegates(delegates: Tables<'_>, data: &mut Data<'_>, path: &Path<'_>, out: &mut Checker) {
    for (index, table) in delegates.iter().enumerate() {
        let Ok(table) = table else { continue };
        let path = path.index(index);
        let at = Some(table.offset());
        if !table.has(BackendDelegate::ID.index) {
            out.report(&rule::DELEGATE_ID, &path.field("id"), at, "there is none".into());
        }
        match table.table(BackendDelegate::PROCESSED.index) {
            Ok(Some(processed)) => payload(&processed, data, &path.field("processed"), out),
            Ok(None) => {
                out.report(&rule::DELEGATE_PROCESSED, &path.field("processed"), at, "there is none".into());
            }
            Err(_) => {}
        }
        let Ok(Some(specs)) = table.tables(BackendDelegate::COMPILE_SPECS.index) else { continue };
        let path = path.field("compile_specs");
        for (index, spec) in specs.iter().enumerate() {
            let Ok(spec) = spec else { continue };
            for (name, slot) in [("key", CompileSpec::KEY.index), ("value", CompileSpec::VALUE.index)] {
                if !spec.has(slot) {
                    let path = path.index(index);
                    out.report(&rule::COMPILE_SPEC, &path.field(name), Some(spec.offset()), "there is none".into());
                }
            }
        }
    }
}

fn payload(table: &Table<'_>, data: &mut Data<'_>, path: &Path<'_>, out: &mut Checker) {
    let (Ok(location), Ok(index)) =
        (table.get(BackendDelegateDataReference::LOCATION), table.get(BackendDelegateDataReference::INDEX))
    else {
        return;
    };
    let at = Some(table.offset());
    let path_index = path.field("index");
    match location {
        DataLocation::INLINE => match data.use_inline(index) {
            Inline::Found => {}
            Inline::Empty => {
                let message = format!("entry {index} has no data");
                out.report(&rule::DELEGATE_INLINE_DATA, &path_index, at, message);
            }
            Inline::Missing(count) => {
                out.report(&rule::DELEGATE_INLINE_INDEX, &path_index, at, format!("entry {index} of {count}"));
            }
        },
        DataLocation::SEGMENT => {
            if !data.use_segment(index) {
                let message = format!("segment {index} of {}", data.segment_count());
                out.report(&rule::DELEGATE_SEGMENT_INDEX, &path_index, at, message);
            }
        }
        other => out.report(&rule::DELEGATE_LOCATION, &path.field("location"), at, format!("{other}")),
    }
}
