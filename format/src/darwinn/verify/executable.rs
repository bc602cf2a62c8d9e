//! One executable: its numbers and its instruction chunks; layers, fields and hints are looked at next door.

use alloc::format;
use alloc::string::ToString;

use super::context::Context;
use super::{bytes_of, fields, hints, layers, root};
use crate::check::{Checker, Path};
use crate::darwinn::package::ExecutableRef;
use crate::darwinn::{Executable, ExecutableType, InstructionBitstream, NARROW_MEMORY, PAGE};
use crate::room;
use crate::rules::darwinn as rule;
use crate::wire;

/// Verifies an executable that starts at `offset` of its package.
pub fn check<'a>(bytes: &'a [u8], offset: usize, path: &Path<'_>, out: &mut Checker) -> Option<ExecutableRef<'a>> {
    let (table, row) = root::<Executable<'_>>(bytes, path, out)?;
    if !out.is_spent() {
        numbers(&row, &table, path, out);
        let (inputs, outputs) = layers::check(&table, path, out);
        let context = Context {
            inputs: room::map(inputs),
            outputs: room::map(outputs),
            batch: row.batch_size,
            parameters: row.parameters.as_ref().map_or(0, |blob| blob.as_slice().len()),
            scratch: usize::try_from(row.scratch_size_bytes).unwrap_or(0),
            chunks: row.instruction_bitstreams.as_ref().map_or(0, |chunks| chunks.len()),
        };
        chunks(&table, &context, path, out);
        hints::check(&table, &context, path, out);
    }
    Some(ExecutableRef { bytes, offset, row })
}

fn numbers(row: &Executable<'_>, table: &wire::Table<'_>, path: &Path<'_>, out: &mut Checker) {
    let at = Some(table.offset());
    if row.batch_size < 1 {
        out.report(&rule::BATCH, &path.field("batch_size"), at, format!("{}", row.batch_size));
    }
    if row.scratch_size_bytes < 0 {
        let message = format!("{}", row.scratch_size_bytes);
        out.report(&rule::SCRATCH, &path.field("scratch_size_bytes"), at, message);
    }
    let narrow = row.used_narrow_memory_bytes_per_tile;
    if !(0..=NARROW_MEMORY).contains(&narrow) {
        let message = format!("{narrow} bytes, a tile has {NARROW_MEMORY}");
        out.report(&rule::NARROW_MEMORY, &path.field("used_narrow_memory_bytes_per_tile"), at, message);
    }
    let layers = [&row.input_layers, &row.output_layers].map(|list| list.as_ref().map_or(0, |list| list.len()));
    if row.kind == ExecutableType::PARAMETER_CACHING && layers != [0, 0] {
        let message = format!("{} inputs and {} outputs", layers[0], layers[1]);
        out.report(&rule::CACHING_LAYERS, path, at, message);
    }
    if let Some((start, parameters)) = bytes_of(table, Executable::PARAMETERS)
        && !parameters.is_empty()
        && (!start.is_multiple_of(PAGE) || !parameters.len().is_multiple_of(64))
    {
        let message = format!("{} bytes at byte {start} of the executable", parameters.len());
        out.report(&rule::PAGES, &path.field("parameters"), Some(start as u32), message);
    }
}

fn chunks(table: &wire::Table<'_>, context: &Context, path: &Path<'_>, out: &mut Checker) {
    let path = path.field("instruction_bitstreams");
    let tables = match table.tables(Executable::INSTRUCTION_BITSTREAMS.index) {
        Ok(Some(tables)) if !tables.is_empty() => tables,
        Ok(_) => return out.report(&rule::CHUNKS, &path, None, "absent or empty".to_string()),
        // Reported by the structural check.
        Err(_) => return,
    };
    for (index, chunk) in tables.iter().enumerate() {
        if out.is_spent() {
            return;
        }
        let Ok(chunk) = chunk else { continue };
        let path = path.index(index);
        let bytes = match bytes_of(&chunk, InstructionBitstream::BITSTREAM) {
            Some((_, bytes)) if !bytes.is_empty() => bytes,
            _ => {
                let message = "absent or empty".to_string();
                out.report(&rule::CHUNK, &path.field("bitstream"), Some(chunk.offset()), message);
                &[]
            }
        };
        if !bytes.len().is_multiple_of(16) {
            let message = format!("{} bytes", bytes.len());
            out.report(&rule::CHUNK_LENGTH, &path.field("bitstream"), Some(chunk.offset()), message);
        }
        fields::check(&chunk, bytes, context, &path, out);
    }
}
