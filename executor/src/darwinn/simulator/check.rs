//! Checks of what a device is given: transfers against the list of hints and the tables of layers, instructions against
//! those of the package and the addresses of buffers.
//!
//! Nothing here is used by the code that makes lists and links: it is read from the package a second time.

use std::ops::Range;

use edgepack_format::darwinn::{
    AnyHint, Description, Direction, DmaDescriptorHint, DmaHint, Executable, InstructionBitstream, Layer, Position,
};
use edgepack_format::row::Rows;

use super::super::transfer::{Buffer, Transfer};

type Answer = Result<(), String>;

/// The bytes of a buffer by the tables of the executable; `None` if there is no such buffer.
pub fn table_bytes(row: &Executable<'_>, buffer: &Buffer) -> Option<usize> {
    let layer = |rows: &Option<Rows<'_, Layer<'_>>>, name: &str, batch: usize| {
        let mut layers = rows.iter().flat_map(|rows| rows.iter().flatten().collect::<Vec<_>>());
        let layer = layers.find(|layer| layer.name.as_deref() == Some(name))?;
        let is_entry = (batch as u64) < u64::try_from(row.batch_size).ok()?;
        let bytes = i64::from(layer.size_bytes) * i64::from(layer.execution_count_per_inference);
        usize::try_from(bytes).ok().filter(|_| is_entry)
    };
    match buffer {
        Buffer::Input(name, batch) => layer(&row.input_layers, name, *batch),
        Buffer::Output(name, batch) => layer(&row.output_layers, name, *batch),
        Buffer::Parameter => row.parameters.as_ref().map(|blob| blob.as_slice().len()),
        Buffer::Scratch => usize::try_from(row.scratch_size_bytes).ok(),
        Buffer::Instruction(chunk) => {
            let chunk = row.instruction_bitstreams.as_ref()?.get(*chunk).ok()?;
            chunk.bitstream.map(|blob| blob.as_slice().len())
        }
    }
}

/// The hints of an executable.
pub fn hints<'a>(row: &Executable<'a>) -> Result<Vec<DmaHint<'a>>, String> {
    let rows = row.dma_hints.as_ref().and_then(|hints| hints.hints.as_ref());
    let rows = rows.ok_or("the executable has no hints")?;
    rows.iter().collect::<Result<_, _>>().map_err(|error| error.to_string())
}

/// Checks a whole list against the hints.
pub fn list(row: &Executable<'_>, transfers: &[Transfer]) -> Answer {
    let hints = hints(row)?;
    let listed = match transfers.split_last() {
        Some((Transfer::GlobalFence, rest)) => rest,
        _ => transfers,
    };
    if listed.len() != hints.len() {
        return Err(format!("{} transfers, the list of the package has {}", listed.len(), hints.len()));
    }
    for (index, (hint, transfer)) in hints.iter().zip(listed).enumerate() {
        one(row, hint, transfer).map_err(|error| format!("transfer {index}, {}: {error}", transfer.kind()))?;
    }
    Ok(())
}

fn one(row: &Executable<'_>, hint: &DmaHint<'_>, transfer: &Transfer) -> Answer {
    match (&hint.any_hint, transfer) {
        (Some(AnyHint::InterruptHint(hint)), Transfer::Interrupt(number)) if hint.kind.0 == i16::from(*number) => {
            Ok(())
        }
        (Some(AnyHint::FenceHint(_)), Transfer::LocalFence) => Ok(()),
        (Some(AnyHint::InstructionHint(hint)), Transfer::Instruction(buffer, range)) => {
            let wanted = usize::try_from(hint.instruction_chunk_index).map(Buffer::Instruction);
            if wanted.as_ref() != Ok(buffer) || Some(range.clone()) != table_bytes(row, buffer).map(|len| 0..len) {
                return Err(format!("{buffer} {range:?}, the hint is about chunk {}", hint.instruction_chunk_index));
            }
            Ok(())
        }
        (Some(AnyHint::DmaDescriptorHint(descriptor)), _) => moved(row, descriptor, hint.direction, transfer),
        (hint, _) => Err(format!("the hint is {hint:?}")),
    }
}

fn moved(row: &Executable<'_>, hint: &DmaDescriptorHint<'_>, direction: Direction, transfer: &Transfer) -> Answer {
    let meta = hint.meta.as_ref().ok_or("the hint has no meta")?;
    let is_meta = |name: &str, batch: usize| meta.name.as_deref() == Some(name) && meta.batch as i64 == batch as i64;
    let (buffer, range) = match transfer {
        Transfer::Parameter(buffer @ Buffer::Parameter, range) if meta.desc == Description::BASE_ADDRESS_PARAMETER => {
            (buffer, range)
        }
        Transfer::InputActivation(buffer @ Buffer::Input(name, batch), range)
            if meta.desc == Description::BASE_ADDRESS_INPUT_ACTIVATION && is_meta(name, *batch) =>
        {
            (buffer, range)
        }
        Transfer::OutputActivation(buffer @ Buffer::Output(name, batch), range)
            if meta.desc == Description::BASE_ADDRESS_OUTPUT_ACTIVATION && is_meta(name, *batch) =>
        {
            (buffer, range)
        }
        Transfer::InputActivation(buffer @ Buffer::Scratch, range)
            if meta.desc == Description::BASE_ADDRESS_SCRATCH && direction == Direction::INFEED =>
        {
            (buffer, range)
        }
        Transfer::OutputActivation(buffer @ Buffer::Scratch, range)
            if meta.desc == Description::BASE_ADDRESS_SCRATCH && direction == Direction::OUTFEED =>
        {
            (buffer, range)
        }
        _ => return Err(format!("the hint is about {} {:?}", meta.desc, meta.name)),
    };
    let Range { start, end } = *range;
    let is_range = start as i64 == i64::from(hint.offset_in_bytes)
        && end as i64 == i64::from(hint.offset_in_bytes) + i64::from(hint.size_in_bytes);
    let size = table_bytes(row, buffer).ok_or_else(|| format!("the tables have no {buffer}"))?;
    if !is_range || end > size {
        let (at, len) = (hint.offset_in_bytes, hint.size_in_bytes);
        return Err(format!("{range:?} of the {size} bytes of {buffer}, the hint has {len} bytes at {at}"));
    }
    Ok(())
}

/// Checks that a chunk is that of the package, with the address of the buffer it names in every field. A buffer without
/// an address is one that the executable does not have, and its fields stay as they are.
pub fn chunk(row: &InstructionBitstream<'_>, bytes: &[u8], address: impl Fn(&Buffer) -> Option<u64>) -> Answer {
    let mut want = row.bitstream.as_ref().map_or_else(Vec::new, |blob| blob.as_slice().to_vec());
    for (index, field) in row.field_offsets.iter().flat_map(|rows| rows.iter().collect::<Vec<_>>()).enumerate() {
        let field = field.map_err(|error| error.to_string())?;
        let meta = field.meta.ok_or_else(|| format!("field {index} has no meta"))?;
        let batch = usize::try_from(meta.batch).map_err(|_| format!("field {index}: batch entry {}", meta.batch))?;
        let name = || meta.name.as_deref().unwrap_or_default().to_owned();
        let buffer = match meta.desc {
            Description::BASE_ADDRESS_INPUT_ACTIVATION => Buffer::Input(name(), batch),
            Description::BASE_ADDRESS_OUTPUT_ACTIVATION => Buffer::Output(name(), batch),
            Description::BASE_ADDRESS_SCRATCH => Buffer::Scratch,
            _ => Buffer::Parameter,
        };
        let Some(address) = address(&buffer) else { continue };
        let half = if meta.position == Position::LOWER_32BIT { address as u32 } else { (address >> 32) as u32 };
        let found = usize::try_from(field.offset_bit).ok().and_then(|bit| read_bits(bytes, bit));
        if found != Some(half) {
            return Err(format!("field {index} holds {found:x?}, {buffer} wants {half:#x}"));
        }
        write_bits(&mut want, usize::try_from(field.offset_bit).unwrap_or(usize::MAX), half);
    }
    match want == bytes {
        true => Ok(()),
        false => Err("instructions differ from the package's outside of its fields".to_owned()),
    }
}

/// The 32 bits from here, one by one: another algorithm than the one that links.
fn read_bits(bytes: &[u8], bit: usize) -> Option<u32> {
    (0..32).try_fold(0u32, |value, k| {
        let at = bit.checked_add(k)?;
        let set = (bytes.get(at / 8)? >> (at % 8)) & 1;
        Some(value | (u32::from(set) << k))
    })
}

/// Sets 32 bits that [`read_bits`] has found to be there.
fn write_bits(bytes: &mut [u8], bit: usize, value: u32) {
    for k in 0..32 {
        let Some(at) = bit.checked_add(k) else { return };
        if let Some(byte) = bytes.get_mut(at / 8) {
            *byte = (*byte & !(1 << (at % 8))) | ((((value >> k) & 1) as u8) << (at % 8));
        }
    }
}
