//! The fields of an instruction chunk that addresses are written to.

use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

use super::context::Context;
use crate::check::{Checker, Path};
use crate::darwinn::{Description, FieldOffset, InstructionBitstream, Meta, Position};
use crate::room;
use crate::row::Table as _;
use crate::rules::darwinn as rule;
use crate::wire;

/// Bits of a field.
const FIELD_BITS: u64 = 32;
/// Bits of an instruction.
const INSTRUCTION_BITS: i32 = 128;
/// Bit position at which compilers put the immediate of an instruction.
const IMMEDIATE: i32 = 70;

/// A field that is inside its chunk.
struct Placed<'a> {
    index: usize,
    bit: i32,
    meta: Option<Meta<'a>>,
}

/// Verifies the fields of one chunk.
pub fn check(chunk: &wire::Table<'_>, bytes: &[u8], context: &Context, path: &Path<'_>, out: &mut Checker) {
    let Ok(Some(tables)) = chunk.tables(InstructionBitstream::FIELD_OFFSETS.index) else { return };
    let path = path.field("field_offsets");
    let mut placed: Vec<Placed<'_>> = Vec::new();
    for (index, table) in tables.iter().enumerate() {
        let Ok(table) = table else { continue };
        let (path, at) = (path.index(index), Some(table.offset()));
        let Ok(field) = FieldOffset::decode(table) else { continue };
        match &field.meta {
            Some(meta) => meta_of(meta, context, &path.field("meta"), at, out),
            None => out.report(&rule::FIELD_META, &path, at, "absent".to_string()),
        }
        let bit = field.offset_bit;
        let end = u64::try_from(bit).ok().map(|bit| bit.saturating_add(FIELD_BITS));
        let bits = (bytes.len() as u64).saturating_mul(8);
        if end.is_none_or(|end| end > bits) {
            out.report(&rule::FIELD_RANGE, &path, at, format!("bits from {bit} in a chunk of {bits} bits"));
            continue;
        }
        if bit.checked_rem(INSTRUCTION_BITS) != Some(IMMEDIATE) {
            out.report(&rule::FIELD_PHASE, &path, at, format!("bit {bit}"));
        }
        if !is_zero(bytes, bit) {
            out.report(&rule::FIELD_PLACEHOLDER, &path, at, format!("bits {bit} to {}", bit.saturating_add(31)));
        }
        if let Err(error) = room::push(&mut placed, Placed { index, bit, meta: field.meta }) {
            return out.no_room(&path, error);
        }
    }
    order(placed, &path, out);
}

fn meta_of(meta: &Meta<'_>, context: &Context, path: &Path<'_>, at: Option<u32>, out: &mut Checker) {
    if !matches!(meta.position, Position::LOWER_32BIT | Position::UPPER_32BIT) {
        out.report(&rule::FIELD_POSITION, &path.field("position"), at, format!("{}", meta.position));
    }
    let layers = match meta.desc {
        Description::BASE_ADDRESS_INPUT_ACTIVATION => &context.inputs,
        Description::BASE_ADDRESS_OUTPUT_ACTIVATION => &context.outputs,
        Description::BASE_ADDRESS_PARAMETER => return,
        Description::BASE_ADDRESS_SCRATCH if meta.batch == 0 => return,
        Description::BASE_ADDRESS_SCRATCH => {
            let message = format!("{} for scratch", meta.batch);
            return out.report(&rule::FIELD_BATCH, &path.field("batch"), at, message);
        }
        other => return out.report(&rule::FIELD_DESCRIPTION, &path.field("desc"), at, format!("{other}")),
    };
    match meta.name.as_deref() {
        None => out.report(&rule::FIELD_NAME, &path.field("name"), at, "absent".to_string()),
        Some(name) if !layers.contains_key(name) => {
            let message = format!("{name:?} is the name of no layer of that kind");
            out.report(&rule::FIELD_LAYER, &path.field("name"), at, message);
        }
        Some(_) => {}
    }
    if !context.has_batch(meta.batch) {
        let message = format!("{}, the batch size is {}", meta.batch, context.batch);
        out.report(&rule::FIELD_BATCH, &path.field("batch"), at, message);
    }
}

/// Checks fields against each other: apart, and in pairs of two halves.
fn order(mut placed: Vec<Placed<'_>>, path: &Path<'_>, out: &mut Checker) {
    placed.sort_unstable_by_key(|field| (field.bit, field.index));
    for pair in placed.windows(2) {
        let [first, second] = pair else { continue };
        let apart = i64::from(second.bit).saturating_sub(first.bit.into());
        if apart < FIELD_BITS as i64 {
            let message = format!("bit {} is {apart} bits behind field {}", second.bit, first.index);
            out.report(&rule::FIELD_OVERLAP, &path.index(second.index), None, message);
        }
    }
    for pair in placed.chunks(2) {
        let is_pair = match pair {
            [Placed { meta: Some(first), bit, .. }, Placed { meta: Some(second), bit: next, .. }] => {
                let same = (first.desc, first.batch, &first.name) == (second.desc, second.batch, &second.name);
                same && first.position != second.position && bit.checked_add(INSTRUCTION_BITS) == Some(*next)
            }
            _ => false,
        };
        if let ([first, ..], false) = (pair, is_pair) {
            let message = format!("bit {} has no other half one instruction on", first.bit);
            // One is enough: behind it the pairing is lost.
            return out.report(&rule::FIELD_PAIR, &path.index(first.index), None, message);
        }
    }
}

/// Returns whether the 32 bits from here, which are inside, are all zero.
fn is_zero(bytes: &[u8], bit: i32) -> bool {
    let bit = usize::try_from(bit).unwrap_or(0);
    let (byte, shift) = (bit / 8, bit % 8);
    let mut window = [0u8; 8];
    for (to, from) in window.iter_mut().zip(bytes.get(byte..).unwrap_or(&[]).iter().take(5)) {
        *to = *from;
    }
    (u64::from_le_bytes(window) >> shift) & u64::from(u32::MAX) == 0
}
