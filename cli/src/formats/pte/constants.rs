//! Values of the tensors that constant methods return: `i64[4] 1, 2, 3, 4`, shortened.
//!
//! Invariant: whatever the file says, a bounded number of elements is read, none of them outside of their segment.

use edgepack_format::pte::{KernelTypes, Program, Tensor, TensorDataLocation};
use edgepack_loader::Source;

use super::summary::ProgramSummary;
use super::tables;
use crate::compare::element;
use crate::file::read_range;
use crate::readable;

/// Elements of a tensor that are shown.
const SHOWN: usize = 8;
/// Tensors of a file whose elements are shown.
const TENSORS: usize = 4096;

/// Adds their elements to the tensors that constant methods return, as far as they can be read.
pub fn read(summary: &mut ProgramSummary, program: &Program<'_>, source: &dyn Source) {
    let segments_at = summary.header.map_or(0, |header| header.segment_base_offset);
    let mut room = TENSORS;
    for (method, plan) in summary.methods.iter_mut().zip(tables::plans(program)) {
        if method.constants.is_empty() {
            continue;
        }
        let values = readable::rows(&plan.values);
        for (constant, output) in method.constants.iter_mut().zip(&method.outputs) {
            let value = usize::try_from(output.value).ok().and_then(|id| values.get(id)?.as_ref()?.val.as_ref());
            let Some(KernelTypes::Tensor(tensor)) = value else { continue };
            if room == 0 {
                return;
            }
            room -= 1;
            if let Some(elements) = elements(tensor, program, segments_at, source) {
                constant.push(' ');
                constant.push_str(&elements);
            }
        }
    }
}

/// The first elements of a tensor, with `…` behind them if there are more. None of one that is not in the file, or whose
/// order in memory is not that of its dimensions.
fn elements(tensor: &Tensor<'_>, program: &Program<'_>, segments_at: u64, source: &dyn Source) -> Option<String> {
    let sizes = tensor.sizes.iter().flat_map(|sizes| sizes.iter());
    let count = sizes.map(|size| u64::try_from(size).ok()).try_fold(1u64, |all, size| all.checked_mul(size?))?;
    let in_order = tensor.dim_order.iter().flat_map(|order| order.iter()).is_sorted();
    let elsewhere = tensor.extra_tensor_info.as_ref().is_some_and(|info| info.location == TensorDataLocation::EXTERNAL);
    let index = usize::try_from(tensor.data_buffer_idx).ok().filter(|index| *index > 0)?;
    if !in_order || elsewhere || tensor.allocation_info.is_some() || tensor.storage_offset != 0 {
        return None;
    }
    let size = tensor.scalar_type.size()?;
    let shown = SHOWN.min(usize::try_from(count).ok()?);
    let bytes = stored(program, index, shown * size, segments_at, source)?;
    let mut text: Vec<String> = bytes.chunks_exact(size).map(|one| element(tensor.scalar_type, one)).collect();
    if count > shown as u64 {
        text.push("…".to_owned());
    }
    Some(text.join(", "))
}

/// The first bytes of a constant.
fn stored(program: &Program<'_>, index: usize, len: usize, at: u64, source: &dyn Source) -> Option<Vec<u8>> {
    let list = program.constant_segment.as_ref().filter(|list| list.offsets.as_ref().is_some_and(|all| all.len() > 1));
    let Some(list) = list else {
        let buffer = program.constant_buffer.as_ref()?.get(index).ok()?.storage?;
        return Some(buffer.as_slice().get(..len)?.to_vec());
    };
    let segment = program.segments.as_ref()?.get(usize::try_from(list.segment_index).ok()?).ok()?;
    let offset = list.offsets.as_ref()?.get(index)?;
    let len = u64::try_from(len).ok()?;
    offset.checked_add(len).filter(|end| *end <= segment.size)?;
    let start = at.checked_add(segment.offset)?.checked_add(offset)?;
    Some(read_range(source, start, len).ok()?.to_vec())
}
