//! Sizes of the parts of a program.

use std::collections::{BTreeMap, BTreeSet};

use edgepack_format::payload::{Holder, PayloadFile, Place};
use edgepack_format::pte::{KernelTypes, Program, Tensor};
use edgepack_format::tensor::TensorLayout;
use edgepack_format::wire;

use super::payloads::{self, Described, SourceRanges};
use super::summary::ProgramSummary;
use super::{tables, values};
use crate::formats::Head;
use crate::formats::size::{Range, Size, StoredTensor};
use crate::session::Session;
use crate::status::Failure;
use crate::{readable, spelling};

/// Measures the parts of a program in bytes.
pub fn size(head: &Head, root: &wire::Table<'_>, session: &Session) -> Result<Size, Failure> {
    let mut size = Size::new(head.file_len());
    let mut ranges = Vec::new();
    let program = tables::program(root);
    let summary = ProgramSummary::new(&program, &head.bytes, size.bytes);
    let constants = readable::rows(&program.constant_buffer).into_iter().flatten();
    let inline: u64 = constants.filter_map(|buffer| buffer.storage).map(|blob| blob.as_slice().len() as u64).sum();
    let delegates = readable::rows(&program.backend_delegate_data).into_iter().flatten();
    let delegates: u64 = delegates.filter_map(|data| data.data).map(|blob| blob.as_slice().len() as u64).sum();
    let payloads = payloads::describe(PayloadFile::new(&head.bytes, &SourceRanges(&*head.file.source)), false, session);
    let weights = payloads::weight_bytes(&payloads);
    let inline_weights: u64 =
        weights.iter().filter(|(holder, _)| matches!(holder, Holder::Inline(_))).map(|(_, bytes)| bytes).sum();
    size.part("constants inside the flatbuffer", inline);
    size.part("weights of delegates inside the flatbuffer", inline_weights);
    size.part("delegates inside the flatbuffer", delegates.saturating_sub(inline_weights));
    let tables = summary.flatbuffer_bytes.saturating_sub(inline).saturating_sub(delegates);
    size.part("tables: values, instructions, names", tables);
    size.tensors = stored(&program, &summary);
    let mut used: Vec<(u64, u64)> = vec![(0, summary.flatbuffer_bytes)];
    for (index, segment) in summary.segments.iter().enumerate() {
        let Some(offset) = segment.offset.filter(|_| segment.bytes > 0) else { continue };
        used.push((offset, segment.bytes));
        let what = if segment.holds.is_empty() { "nothing refers to it".to_owned() } else { segment.holds.join(", ") };
        let padding = match summary.constants.segment {
            Some(constants) if constants as usize == index => constant_padding(&size.tensors, offset, segment.bytes),
            _ => 0,
        };
        let holder = u32::try_from(index).map(Holder::Segment);
        let weights =
            holder.ok().and_then(|holder| weights.get(&holder)).copied().unwrap_or(0).min(segment.bytes - padding);
        size.part(format!("segment {index}: weights of {what}"), weights);
        size.part(format!("segment {index}: {what}"), segment.bytes - padding - weights);
        size.part(format!("padding between constants in segment {index}"), padding);
        ranges.push(Range { name: format!("segment {index}"), offset, bytes: segment.bytes });
    }
    size.gaps(used);
    size.tensors.extend(payload_weights(&payloads, &summary));
    ranges.extend(
        size.tensors.iter().filter_map(|tensor| {
            Some(Range { name: tensor.name.clone(), offset: tensor.offset?, bytes: tensor.bytes })
        }),
    );
    size.duplicates_among(&*head.file.source, ranges)?;
    Ok(size.sorted())
}

/// Weights of payloads, each once, wherever they are.
fn payload_weights(payloads: &[Described], summary: &ProgramSummary) -> Vec<StoredTensor> {
    let mut known = BTreeSet::new();
    let mut list = Vec::new();
    for payload in payloads {
        for weight in &payload.description.weights {
            let offset = match &weight.place {
                Place::Offset(at) => payload.offset.checked_add(*at),
                Place::DataFile(_) => continue,
                Place::Key(key) => {
                    let entry = summary.named_data.iter().find(|entry| entry.key == *key);
                    entry.and_then(|entry| summary.segments.get(entry.segment as usize)?.offset)
                }
            };
            // What is at a place is stored once, whatever payloads call it.
            let name = if offset.is_some() { "" } else { weight.name.as_str() };
            if known.insert((name, offset, weight.bytes)) {
                list.push(StoredTensor {
                    name: spelling::name(&weight.name),
                    layout: spelling::name(&weight.kind),
                    bytes: weight.bytes,
                    offset,
                });
            }
        }
    }
    list
}

/// Bytes of the segment that no constant has. Zero where constants are not known by size.
fn constant_padding(tensors: &[StoredTensor], offset: u64, len: u64) -> u64 {
    let end = offset.saturating_add(len);
    let inside = |tensor: &&StoredTensor| tensor.offset.is_some_and(|at| at >= offset && at < end);
    // Tensors of a broken file may claim more bytes than there are.
    let covered = tensors.iter().filter(inside).fold(0u64, |covered, tensor| covered.saturating_add(tensor.bytes));
    if covered == 0 { 0 } else { len.saturating_sub(covered) }
}

/// The constants that tensors of the methods refer to, each once.
fn stored(program: &Program<'_>, summary: &ProgramSummary) -> Vec<StoredTensor> {
    let offsets = program.constant_segment.as_ref().and_then(|list| list.offsets.as_ref());
    let segment = summary.constants.segment.and_then(|index| summary.segments.get(index as usize));
    let base = segment.and_then(|segment| segment.offset);
    let mut found: BTreeMap<u32, StoredTensor> = BTreeMap::new();
    for value in tables::plans(program).iter().flat_map(|plan| readable::rows(&plan.values)).flatten() {
        let Some(KernelTypes::Tensor(tensor)) = value.val else { continue };
        let index = tensor.data_buffer_idx;
        let external = tensor.extra_tensor_info.as_ref().is_some_and(|info| info.location.0 != 0);
        if index == 0 || external || tensor.allocation_info.is_some() {
            continue;
        }
        let Some(bytes) = byte_len(&tensor) else { continue };
        let name = tensor.extra_tensor_info.as_ref().and_then(|info| info.fully_qualified_name.as_deref());
        let offset = offsets.and_then(|offsets| base?.checked_add(offsets.get(index as usize)?));
        let stored = StoredTensor {
            name: name.map_or_else(|| format!("constant.{index}"), spelling::name),
            layout: values::tensor(&tensor),
            bytes,
            offset,
        };
        // Several tensors may view one constant; the largest view is its size.
        match found.get(&index) {
            Some(known) if known.bytes >= bytes => {}
            _ => {
                found.insert(index, stored);
            }
        }
    }
    found.into_values().collect()
}

fn byte_len(tensor: &Tensor<'_>) -> Option<u64> {
    let order: Vec<u8> = tensor.dim_order.as_ref()?.iter().collect();
    let layout = TensorLayout::from_wire(tensor.scalar_type, tensor.sizes.as_ref()?.iter(), &order);
    Some(layout.ok()?.byte_len() as u64)
}
