//! The list of transfers of a run.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};

use super::context::Context;
use crate::check::{Checker, Path};
use crate::darwinn::{
    Description, Direction, DmaDescriptorHint, DmaHint, DmaHints, Executable, InstructionHint, InterruptHint,
};
use crate::row::Table as _;
use crate::rules::darwinn as rule;
use crate::wire;

/// State of the walk over the hints.
#[derive(Default)]
struct Seen {
    /// Bytes moved of each output and batch entry.
    outputs: BTreeMap<(String, i32), usize>,
    parameters: usize,
    interrupts: usize,
    /// True if the hint before was a transfer, which a fence can wait for.
    transfer: bool,
}

/// Verifies the hints of an executable.
pub fn check(table: &wire::Table<'_>, context: &Context, path: &Path<'_>, out: &mut Checker) {
    let path = path.field("dma_hints");
    let hints = match table.table(Executable::DMA_HINTS.index) {
        Ok(Some(hints)) => hints,
        Ok(None) => return out.report(&rule::HINTS, &path, Some(table.offset()), "absent".to_string()),
        // Reported by the structural check.
        Err(_) => return,
    };
    let tables = match hints.tables(DmaHints::HINTS.index) {
        Ok(Some(tables)) => tables,
        Ok(None) => {
            return out.report(&rule::HINTS, &path.field("hints"), Some(hints.offset()), "absent".to_string());
        }
        Err(_) => return,
    };
    let is_whole = hints.get(DmaHints::FULLY_DETERMINISTIC).unwrap_or(false);
    if !is_whole {
        out.report(&rule::HINT_PARTIAL, &path.field("fully_deterministic"), Some(hints.offset()), "false".to_string());
    }
    let mut seen = Seen::default();
    let list = path.field("hints");
    for (index, hint) in tables.iter().enumerate() {
        if out.is_spent() {
            return;
        }
        if let Ok(hint) = hint {
            one(&hint, context, &mut seen, &list.index(index), out);
        }
    }
    if is_whole {
        whole(&seen, context, &list, out);
    }
}

fn one(hint: &wire::Table<'_>, context: &Context, seen: &mut Seen, path: &Path<'_>, out: &mut Checker) {
    let at = Some(hint.offset());
    let direction = hint.get(DmaHint::DIRECTION).unwrap_or_default();
    let (tag, value) = match hint.union(DmaHint::ANY_HINT.index) {
        Ok(Some((tag, Some(value)))) => (tag, value),
        Ok(Some((tag, None))) => {
            return out.report(&rule::HINT, path, at, format!("it is of kind {tag} and has no value"));
        }
        Ok(None) => return out.report(&rule::HINT, path, at, "it is of kind 0, which is none".to_string()),
        Err(_) => return,
    };
    let was_transfer = core::mem::replace(&mut seen.transfer, tag <= 2);
    match tag {
        1 => {
            if let Ok(hint) = DmaDescriptorHint::decode(value) {
                transfer(&hint, direction, context, seen, path, at, out);
            }
        }
        2 => {
            let chunk = value.get(InstructionHint::INSTRUCTION_CHUNK_INDEX).unwrap_or_default();
            if usize::try_from(chunk).is_err() || usize::try_from(chunk).is_ok_and(|chunk| chunk >= context.chunks) {
                let message = format!("chunk {chunk} of {}", context.chunks);
                out.report(&rule::HINT_CHUNK, path, at, message);
            }
            way(direction, Direction::INFEED, path, at, out);
        }
        3 => {
            let kind = value.get(InterruptHint::TYPE).unwrap_or_default();
            if kind.name().is_none() {
                out.report(&rule::HINT_INTERRUPT, path, at, format!("{kind}"));
            }
            seen.interrupts = seen.interrupts.saturating_add(1);
        }
        4 if !was_transfer => {
            out.report(&rule::HINT_FENCE, path, at, "there is no transfer in front of it".to_string());
        }
        4 => {}
        tag => out.report(&rule::HINT, path, at, format!("it is of kind {tag}, which has no name")),
    }
}

fn way(found: Direction, want: Direction, path: &Path<'_>, at: Option<u32>, out: &mut Checker) {
    if found != want {
        out.report(&rule::HINT_DIRECTION, &path.field("direction"), at, format!("{found}, it goes {want}"));
    }
}

fn transfer(
    hint: &DmaDescriptorHint<'_>,
    direction: Direction,
    context: &Context,
    seen: &mut Seen,
    path: &Path<'_>,
    at: Option<u32>,
    out: &mut Checker,
) {
    let Some(meta) = &hint.meta else {
        return out.report(&rule::HINT_META, path, at, "absent".to_string());
    };
    let name = meta.name.as_deref();
    let (size, is_output) = match meta.desc {
        Description::BASE_ADDRESS_PARAMETER => {
            way(direction, Direction::INFEED, path, at, out);
            (Some(Some(context.parameters)), false)
        }
        Description::BASE_ADDRESS_SCRATCH if context.scratch == 0 => {
            return out.report(&rule::HINT_SCRATCH, path, at, "the executable has no scratch memory".to_string());
        }
        Description::BASE_ADDRESS_SCRATCH => {
            if direction.name().is_none() {
                out.report(&rule::HINT_DIRECTION, &path.field("direction"), at, format!("{direction}"));
            }
            (Some(Some(context.scratch)), false)
        }
        Description::BASE_ADDRESS_INPUT_ACTIVATION => {
            way(direction, Direction::INFEED, path, at, out);
            (name.and_then(|name| context.inputs.get(name)).copied(), false)
        }
        Description::BASE_ADDRESS_OUTPUT_ACTIVATION => {
            way(direction, Direction::OUTFEED, path, at, out);
            (name.and_then(|name| context.outputs.get(name)).copied(), true)
        }
        other => return out.report(&rule::HINT_DESCRIPTION, path, at, format!("{other}")),
    };
    let Some(size) = size else {
        let message = format!("{:?} is the name of no layer of that kind", name.unwrap_or("(no name)"));
        return out.report(&rule::HINT_LAYER, path, at, message);
    };
    let is_activation =
        matches!(meta.desc, Description::BASE_ADDRESS_INPUT_ACTIVATION | Description::BASE_ADDRESS_OUTPUT_ACTIVATION);
    if is_activation && !context.has_batch(meta.batch) {
        let message = format!("{}, the batch size is {}", meta.batch, context.batch);
        out.report(&rule::HINT_BATCH, path, at, message);
    }
    // A buffer without a size has been reported; nothing can be said about its ranges.
    let Some(size) = size else { return };
    let range = usize::try_from(hint.offset_in_bytes).ok().zip(usize::try_from(hint.size_in_bytes).ok());
    let end = range.map(|(offset, len)| offset.saturating_add(len));
    if end.is_none_or(|end| end > size) {
        let message = format!("{} bytes at {} of a buffer of {size}", hint.size_in_bytes, hint.offset_in_bytes);
        return out.report(&rule::HINT_RANGE, path, at, message);
    }
    if hint.size_in_bytes == 0 {
        out.report(&rule::HINT_EMPTY, path, at, "0 bytes".to_string());
    }
    let moved = range.map_or(0, |(_, len)| len);
    if is_output {
        let sum = seen.outputs.entry((name.unwrap_or_default().to_string(), meta.batch)).or_default();
        *sum = sum.saturating_add(moved);
    } else if meta.desc == Description::BASE_ADDRESS_PARAMETER {
        seen.parameters = seen.parameters.saturating_add(moved);
    }
}

/// Checks a list that is the whole run.
fn whole(seen: &Seen, context: &Context, path: &Path<'_>, out: &mut Checker) {
    if seen.interrupts == 0 {
        out.report(&rule::HINT_END, path, None, "there is no interrupt in it".to_string());
    }
    for (name, size) in &context.outputs {
        let moved = seen.outputs.get(&(name.to_string(), 0)).copied().unwrap_or(0);
        if let Some(size) = size.filter(|size| *size != moved) {
            let message = format!("{moved} of {size} bytes of output {name:?} are moved");
            out.report(&rule::HINT_COVERAGE, path, None, message);
        }
    }
    if seen.parameters < context.parameters {
        let message = format!("{} of {} bytes of parameters are moved", seen.parameters, context.parameters);
        out.report(&rule::HINT_COVERAGE, path, None, message);
    }
}
