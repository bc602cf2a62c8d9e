//! Tools that edits of a program share: tensors one by one, the bytes of constants, the numbers of segments.

use std::collections::{BTreeMap, BTreeSet};

use edgepack_format::pte::{
    Buffer, DataLocation, EValue, ExecutionPlan, KernelTypes, Program, SubsegmentOffsets, Tensor, TensorDataLocation,
};
use edgepack_format::row::Rows;
use edgepack_format::tensor::TensorLayout;

use super::content::Content;
use super::error::Error;
use super::package::{Layout, Package};

/// Alignment of constants and initial values in their segments, unless the file has another.
const CONSTANT_ALIGNMENT: u64 = 16;
/// The place of lists of initial values.
const INITIAL: &str = "mutable_data_segments";

/// Visits every tensor with its place, in the order of the file.
pub(super) fn each_tensor<'a>(
    program: &Program<'a>,
    mut visit: impl FnMut(&str, &Tensor<'a>) -> Result<(), Error>,
) -> Result<(), Error> {
    for (method, plan) in program.execution_plan.iter().flat_map(|plans| plans.iter()).enumerate() {
        let plan = plan?;
        for (index, value) in plan.values.iter().flat_map(|values| values.iter()).enumerate() {
            if let Some(KernelTypes::Tensor(tensor)) = &value?.val {
                visit(&place(method, index), tensor)?;
            }
        }
    }
    Ok(())
}

/// Visits the tensors of a program one by one, to change them.
pub(super) fn change_tensors<'a>(
    program: &mut Program<'a>,
    mut visit: impl FnMut(&str, &mut Tensor<'a>) -> Result<(), Error>,
) -> Result<(), Error> {
    let Some(plans) = &mut program.execution_plan else { return Ok(()) };
    for (method, plan) in plans.to_mut()?.iter_mut().enumerate() {
        let plan: &mut ExecutionPlan<'a> = plan;
        let Some(values) = &mut plan.values else { continue };
        for (index, value) in values.to_mut()?.iter_mut().enumerate() {
            let value: &mut EValue<'a> = value;
            if let Some(KernelTypes::Tensor(tensor)) = &mut value.val {
                visit(&place(method, index), tensor)?;
            }
        }
    }
    Ok(())
}

fn place(method: usize, index: usize) -> String {
    format!("execution_plan[{method}].values[{index}]")
}

/// Returns the layout of a tensor of a program.
pub(super) fn layout_of(place: &str, tensor: &Tensor<'_>) -> Result<TensorLayout, Error> {
    let sizes: Vec<i32> = tensor.sizes.iter().flat_map(|sizes| sizes.iter()).collect();
    let order: Vec<u8> = match &tensor.dim_order {
        Some(order) => order.iter().collect(),
        None => (0..sizes.len() as u8).collect(),
    };
    TensorLayout::from_wire(tensor.scalar_type, sizes, &order)
        .map_err(|error| Error::Layout { place: place.to_owned(), error })
}

/// Returns whether a tensor's data are in a data file.
pub(super) fn is_external(tensor: &Tensor<'_>) -> bool {
    tensor.extra_tensor_info.as_ref().is_some_and(|info| info.location == TensorDataLocation::EXTERNAL)
}

/// The name a tensor carries, if any.
pub(super) fn name_of<'t>(tensor: &'t Tensor<'_>) -> Option<&'t str> {
    let info = tensor.extra_tensor_info.as_ref()?;
    info.fully_qualified_name.as_deref().filter(|name| !name.is_empty())
}

/// The number of a tensor's constant, if it is one of this program.
pub(super) fn constant_of(tensor: &Tensor<'_>) -> Option<u32> {
    let constant = tensor.allocation_info.is_none() && !is_external(tensor);
    Some(tensor.data_buffer_idx).filter(|index| constant && *index > 0)
}

/// The number of a tensor's initial value and the list it is in, if it has one.
pub(super) fn initial_of(tensor: &Tensor<'_>) -> Option<(u64, u32)> {
    let list = tensor.extra_tensor_info.as_ref().map_or(0, |info| info.mutable_data_segments_idx);
    Some((list, tensor.data_buffer_idx)).filter(|(_, index)| tensor.allocation_info.is_some() && *index > 0)
}

/// The name to know a constant by: its own, or `constant.K`.
pub(super) fn constant_name(tensor: &Tensor<'_>, index: u32) -> String {
    name_of(tensor).map_or_else(|| format!("constant.{index}"), str::to_owned)
}

impl<'a> Package<'a> {
    /// The first `len` bytes of constant `index` of a program.
    pub(super) fn constant(&self, place: &str, index: u32, len: u64) -> Result<Content, Error> {
        let program = self.program().ok_or_else(|| Error::refused(place, "constants are in programs"))?;
        match constant_place(program)? {
            Some(list) => self.within(place, &list, index, len),
            None => {
                let buffers = program.constant_buffer.clone().unwrap_or_default();
                let missing = || Error::refused(place, format!("constant {index} of {}", buffers.len()));
                let row: Buffer<'_> = buffers.get(index as usize).map_err(|_| missing())?;
                let bytes = row.storage.unwrap_or_default();
                let have = bytes.as_slice().len() as u64;
                let wanted = usize::try_from(len).ok().and_then(|len| bytes.as_slice().get(..len));
                let short = || Error::refused(place, format!("constant {index} has {have} bytes, {len} are wanted"));
                Ok(wanted.ok_or_else(short)?.into())
            }
        }
    }

    /// The first `len` bytes of an initial value.
    pub(super) fn initial(&self, place: &str, list: u64, index: u32, len: u64) -> Result<Content, Error> {
        let lists = self.program().and_then(|program| program.mutable_data_segments.clone()).unwrap_or_default();
        let found = usize::try_from(list).ok().and_then(|list| lists.get(list).ok());
        let missing = || Error::refused(place, format!("list {list} of {} lists of initial values", lists.len()));
        self.within(place, &found.ok_or_else(missing)?, index, len)
    }

    /// `len` bytes at entry `index` of a list of offsets.
    fn within(&self, place: &str, list: &SubsegmentOffsets<'_>, index: u32, len: u64) -> Result<Content, Error> {
        let count = list.offsets.as_ref().map_or(0, |offsets| offsets.len());
        let offset = list.offsets.as_ref().and_then(|offsets| offsets.get(index as usize));
        let offset = offset.ok_or_else(|| Error::refused(place, format!("constant {index} of {count}")))?;
        let segment = self.segment(place, list.segment_index)?;
        let part = offset.checked_add(len).and_then(|end| segment.slice(offset..end));
        let message =
            || format!("{len} bytes at {offset} of segment {}, which has {}", list.segment_index, segment.len());
        part.ok_or_else(|| Error::refused(place, message()))
    }

    /// The bytes of a segment.
    pub(super) fn segment(&self, place: &str, index: u32) -> Result<&Content, Error> {
        let missing = || Error::refused(place, format!("segment {index} of {}", self.segments.len()));
        self.segments.get(index as usize).ok_or_else(missing)
    }

    /// Replaces the constants of a program, which are then in a segment: the reserved first entry comes by itself.
    pub(super) fn set_constants(&mut self, constants: Vec<Content>) -> Result<(), Error> {
        let align = self.constant_alignment()?;
        let old = match self.program() {
            Some(program) => constant_place(program)?.map(|list| list.segment_index),
            None => None,
        };
        let mut segment = Content::empty();
        let mut offsets = vec![0u64];
        for constant in constants {
            segment.align(align);
            offsets.push(segment.len());
            segment.append(constant);
        }
        let shared = old.is_none_or(|index| {
            let used = self.program().map(|program| references(program).unwrap_or_default()).unwrap_or_default();
            used.get(&index).copied().unwrap_or(0) > 1 || self.segments.get(index as usize).is_none()
        });
        let index = match old.filter(|_| !shared) {
            Some(index) => {
                if let Some(place) = self.segments.get_mut(index as usize) {
                    *place = segment;
                }
                index
            }
            None => {
                self.segments.push(segment);
                (self.segments.len() as u32).saturating_sub(1)
            }
        };
        if let Some(program) = self.program_mut() {
            if program.constant_buffer.is_some() {
                program.constant_buffer = Some(Rows::default());
            }
            program.constant_segment = Some(SubsegmentOffsets { segment_index: index, offsets: Some(offsets.into()) });
        }
        Ok(())
    }

    /// The number that an added initial value gets.
    pub(super) fn next_initial(&self) -> Result<u32, Error> {
        let list = self.initial_list()?;
        let count = list.and_then(|list| list.offsets).map_or(0, |offsets| offsets.len());
        // The first entry is reserved.
        u32::try_from(count.max(1)).map_err(|_| Error::refused(INITIAL, format!("{count} entries")))
    }

    /// Adds initial values behind those in the first list, the one that runtimes look at; what is there keeps its place.
    pub(super) fn add_initial(&mut self, values: Vec<Content>) -> Result<(), Error> {
        if values.is_empty() {
            return Ok(());
        }
        let old = self.initial_list()?;
        let (mut segment, mut offsets) = match &old {
            Some(list) => {
                let offsets: Vec<u64> = list.offsets.iter().flat_map(|offsets| offsets.iter()).collect();
                (self.segment(INITIAL, list.segment_index)?.clone(), offsets)
            }
            None => (Content::empty(), Vec::new()),
        };
        if offsets.is_empty() {
            offsets.push(0);
        }
        for value in values {
            segment.align(CONSTANT_ALIGNMENT);
            offsets.push(segment.len());
            segment.append(value);
        }
        let Some(program) = self.program() else { return Ok(()) };
        // Other references to the segment mean the bytes that were there.
        let own = match &old {
            Some(list) if references(program)?.get(&list.segment_index) == Some(&1) => Some(list.segment_index),
            _ => None,
        };
        let index = match own.and_then(|index| Some((index, self.segments.get_mut(index as usize)?))) {
            Some((index, place)) => {
                *place = segment;
                index
            }
            None => {
                self.segments.push(segment);
                (self.segments.len() as u32).saturating_sub(1)
            }
        };
        let list = SubsegmentOffsets { segment_index: index, offsets: Some(offsets.into()) };
        if let Some(program) = self.program_mut() {
            let lists = program.mutable_data_segments.get_or_insert_default().to_mut()?;
            match lists.first_mut() {
                Some(first) => *first = list,
                None => lists.push(list),
            }
        }
        Ok(())
    }

    /// The first list of initial values, if there is one.
    fn initial_list(&self) -> Result<Option<SubsegmentOffsets<'a>>, Error> {
        let lists = self.program().and_then(|program| program.mutable_data_segments.clone()).unwrap_or_default();
        Ok(if lists.is_empty() { None } else { Some(lists.get(0)?) })
    }

    /// Returns the alignment of the constants of this program in their segment.
    fn constant_alignment(&self) -> Result<u64, Error> {
        const USUAL: u64 = CONSTANT_ALIGNMENT;
        let Some(program) = self.program() else { return Ok(USUAL) };
        let Some(list) = constant_place(program)? else { return Ok(USUAL.max(self.layout.data_alignment)) };
        let offsets = list.offsets.iter().flat_map(|offsets| offsets.iter()).filter(|offset| *offset > 0);
        let common = offsets.map(u64::trailing_zeros).min().map_or(USUAL, |zeros| 1 << zeros.min(20));
        Ok(common.clamp(USUAL, self.layout.segment_alignment.max(USUAL)))
    }

    /// Removes segments from a program, and gives the ones behind them their new numbers everywhere.
    pub(super) fn remove_segments(&mut self, gone: &BTreeSet<u32>) -> Result<(), Error> {
        if gone.is_empty() {
            return Ok(());
        }
        let kept = std::mem::take(&mut self.segments).into_iter().zip(0u32..);
        self.segments = kept.filter(|(_, index)| !gone.contains(index)).map(|(content, _)| content).collect();
        let renumber = |index: &mut u32| *index = index.saturating_sub(gone.range(..*index).count() as u32);
        let Some(program) = self.program_mut() else { return Ok(()) };
        if let Some(list) = &mut program.constant_segment {
            renumber(&mut list.segment_index);
        }
        for list in program.mutable_data_segments.iter_mut() {
            list.to_mut()?.iter_mut().for_each(|list| renumber(&mut list.segment_index));
        }
        for entries in program.named_data.iter_mut() {
            entries.to_mut()?.iter_mut().for_each(|entry| renumber(&mut entry.segment_index));
        }
        let Some(plans) = &mut program.execution_plan else { return Ok(()) };
        for plan in plans.to_mut()? {
            let Some(delegates) = &mut plan.delegates else { continue };
            for delegate in delegates.to_mut()? {
                if let Some(place) = &mut delegate.processed
                    && place.location == DataLocation::SEGMENT
                {
                    renumber(&mut place.index);
                }
            }
        }
        Ok(())
    }

    /// Finishes an edit of a program: rows for the segments, and a header if there is anything it is for.
    pub(super) fn settle(&mut self) -> Result<(), Error> {
        self.place()?;
        let bytes = self.segments.iter().any(|content| !content.is_empty());
        if !bytes {
            self.layout.header = None;
        }
        self.layout.segment_alignment = self.layout.segment_alignment.max(Layout::DEFAULT.data_alignment);
        Ok(())
    }
}

/// The list of constants in a segment; `None` if they are in the flatbuffer.
pub(super) fn constant_place<'a>(program: &Program<'a>) -> Result<Option<SubsegmentOffsets<'a>>, Error> {
    let inline = program.constant_buffer.as_ref().is_some_and(|buffers| !buffers.is_empty());
    let list = program.constant_segment.clone();
    let listed = list.as_ref().and_then(|list| list.offsets.as_ref()).is_some_and(|offsets| !offsets.is_empty());
    match (inline, listed) {
        (true, true) => Err(Error::refused("constant_buffer", "constants are in the flatbuffer and in a segment")),
        (_, true) => Ok(list),
        _ => Ok(None),
    }
}

/// Counts the references to each segment.
pub(super) fn references(program: &Program<'_>) -> Result<BTreeMap<u32, usize>, Error> {
    let mut counts = BTreeMap::new();
    let mut count = |index: u32| *counts.entry(index).or_insert(0usize) += 1;
    program.constant_segment.iter().for_each(|list| count(list.segment_index));
    for list in program.mutable_data_segments.iter().flat_map(|lists| lists.iter()) {
        count(list?.segment_index);
    }
    for entry in program.named_data.iter().flat_map(|entries| entries.iter()) {
        count(entry?.segment_index);
    }
    for plan in program.execution_plan.iter().flat_map(|plans| plans.iter()) {
        for delegate in plan?.delegates.iter().flat_map(|delegates| delegates.iter()) {
            match delegate?.processed {
                Some(place) if place.location == DataLocation::SEGMENT => count(place.index),
                _ => {}
            }
        }
    }
    Ok(counts)
}
