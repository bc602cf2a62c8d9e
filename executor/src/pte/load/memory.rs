//! Gives every tensor its bytes: planned memory, constants, external data, or storage of our own.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use edgepack_format::finding::ErrorCode;
use edgepack_format::ptd::{MissingData, external_key};
use edgepack_format::pte::{AllocationDetails, SubsegmentOffsets};
use edgepack_format::row::Scalars;
use edgepack_format::scalar::ScalarType;
use edgepack_loader::{Bytes, NamedDataMap};

use super::Source;
use crate::api::room::{OutOfMemory, grow, no_room};
use crate::api::state::State;
use crate::api::storage::{BLOCK_ALIGN, Region};
use crate::pte::account::Account;
use crate::pte::arena::Arena;
use crate::pte::error::LoadError;
use crate::pte::plan_graph::{Memory, PlanGraph};

/// A tensor that looks for its bytes.
pub(super) struct Place {
    /// Index of the value in the method.
    pub index: usize,
    /// Index of the tensor among those of the plan.
    pub tensor: u32,
    pub dtype: ScalarType,
    /// Bytes of one element.
    pub element: usize,
    /// Bytes of all elements, at the upper bound.
    pub bytes: usize,
    pub allocation: Option<AllocationDetails>,
    pub data_buffer_idx: u32,
    /// Index of the program's mutable segment that holds its initial value.
    pub mutable_set: u64,
}

/// A tensor that starts with data of the file.
pub(crate) struct Initial {
    tensor: u32,
    bytes: Bytes,
}

/// Memory that starts with data of the file, and gets them again on reset: those from `from` on.
pub(crate) struct InitialPiece {
    region: Region,
    bytes: Bytes,
    from: usize,
}

/// Makes the planned memories, or takes the caller's.
pub(super) fn arenas(source: &Source<'_>, memory: &mut Memory, account: &mut Account) -> Result<(), LoadError> {
    let sizes = source.plan.non_const_buffer_sizes.clone().unwrap_or_else(|| Vec::new().into());
    for (index, size) in sizes.iter().enumerate().skip(1) {
        let size = u64::try_from(size).map_err(|_| {
            LoadError::method(ErrorCode::InvalidProgram, format!("planned memory {index} has size {size}"))
        })?;
        let given = source.options.arenas.iter().find(|(id, _)| *id as usize == index);
        let arena = match given {
            Some((_, arena)) if memory.arenas.contains(arena) => {
                let message =
                    format!("planned memory {index} was given an arena that another memory of the method has");
                return Err(LoadError::method(ErrorCode::InvalidArgument, message));
            }
            Some((_, arena)) if arena.len() as u64 >= size => arena.clone(),
            Some((_, arena)) => {
                let message = format!("planned memory {index} needs {size} bytes, the given one has {}", arena.len());
                return Err(LoadError::method(ErrorCode::MemoryAllocationFailed, message));
            }
            None => {
                account.planned(size)?;
                let arena = usize::try_from(size).ok().and_then(Arena::new);
                arena.ok_or_else(|| no_room("planned memory", size))?
            }
        };
        memory.arenas.push(arena, given.is_some())?;
    }
    for device in source.plan.non_const_buffer_device.clone().unwrap_or_default().iter() {
        let device = device?;
        if device.device_type != edgepack_format::pte::DeviceType::CPU {
            let message = format!("planned memory {} is on a {} device", device.buffer_idx, device.device_type);
            return Err(LoadError::method(ErrorCode::NotSupported, message));
        }
    }
    Ok(())
}

/// Places of the data of a program, found once per method.
pub(super) struct Places<'a> {
    /// The constant segment, read at the first use.
    constants: Option<Bytes>,
    constant_offsets: Option<SubsegmentOffsets<'a>>,
    /// Segments of initial values by index, read at the first use.
    mutable: HashMap<u32, Bytes>,
    /// External constants by key, so that tensors of one key share memory.
    external: HashMap<String, Bytes>,
    /// Aligned copies of constants by where the constants are, so that tensors over one range share a copy.
    realigned: HashMap<Range<u64>, Region>,
    pub initial: Vec<Initial>,
    /// Tensors the program gives no storage: tensor index, element size, bytes.
    pub without_storage: Vec<(u32, usize)>,
    pub account: Account,
}

impl<'a> Places<'a> {
    pub fn new(source: &Source<'a>, account: Account) -> Result<Self, LoadError> {
        Ok(Places {
            constants: None,
            constant_offsets: source.view.program().constant_segment.clone(),
            mutable: HashMap::new(),
            external: HashMap::new(),
            realigned: HashMap::new(),
            initial: Vec::new(),
            without_storage: Vec::new(),
            account,
        })
    }

    /// The region of a tensor whose data, if any, are inside the program; `None` if it has no storage.
    pub fn internal(
        &mut self,
        source: &Source<'_>,
        memory: &mut Memory,
        place: &Place,
    ) -> Result<(Option<Region>, bool), LoadError> {
        match (&place.allocation, place.data_buffer_idx) {
            (Some(allocation), 0) => Ok((Some(planned(memory, place, allocation)?), false)),
            (Some(allocation), _) => {
                let region = planned(memory, place, allocation)?;
                let bytes = self.initial_value(source, place)?;
                grow(&mut self.initial, 1)?;
                self.initial.push(Initial { tensor: place.tensor, bytes });
                Ok((Some(region), false))
            }
            (None, 0) => {
                grow(&mut self.without_storage, 1)?;
                self.without_storage.push((place.tensor, place.bytes));
                Ok((None, false))
            }
            (None, _) => Ok((Some(self.constant(source, memory, place)?), true)),
        }
    }

    /// A constant of the segment, once that has been read.
    pub fn known_constant(&self, index: u32, bytes: usize) -> Option<Region> {
        let offset = self.constant_offsets.as_ref()?.offsets.as_ref()?.get(index as usize)?;
        let start = usize::try_from(offset).ok()?;
        let data = self.constants.as_deref()?.get(start..start.checked_add(bytes)?)?;
        Some(Region::read_only(data))
    }

    /// The region of a tensor whose data are found by name.
    pub fn external(
        &mut self,
        source: &Source<'_>,
        memory: &mut Memory,
        place: &Place,
        name: &str,
        sizes: &Scalars<'_, i32>,
        dim_order: &[u8],
    ) -> Result<(Option<Region>, bool), LoadError> {
        let fail = |code, message: String| LoadError::value(place.index, code, message);
        let Some(layout) = source.data.layout(name)? else {
            if source.data.contains(name) {
                return Err(fail(ErrorCode::InvalidExternalData, format!("the key {name} has no tensor layout")));
            }
            return Err(missing_data(source)?);
        };
        let same = layout.scalar_type() == place.dtype
            && layout.dim_order() == dim_order
            && layout.sizes().len() == sizes.len()
            && layout.sizes().iter().zip(sizes.iter()).all(|(&have, want)| i64::try_from(have) == Ok(i64::from(want)));
        if !same {
            let want: Vec<i32> = sizes.iter().collect();
            let message = format!(
                "the program wants {}{want:?} order {dim_order:?} under the key {name}, the data are {layout}",
                place.dtype
            );
            return Err(fail(ErrorCode::InvalidExternalData, message));
        }
        let bytes = match self.external.get(name) {
            Some(bytes) => bytes.clone(),
            None => {
                let Some(bytes) = source.data.data(name)? else {
                    let message = format!("the key {name} has a tensor layout, and no data");
                    return Err(fail(ErrorCode::NotFound, message));
                };
                self.external.insert(name.to_owned(), bytes.clone());
                bytes
            }
        };
        if bytes.len() < place.bytes {
            let message = format!("the key {name} has {} bytes of data for a tensor of {}", bytes.len(), place.bytes);
            return Err(fail(ErrorCode::InvalidExternalData, message));
        }
        match &place.allocation {
            Some(allocation) => {
                let region = planned(memory, place, allocation)?;
                grow(&mut self.initial, 1)?;
                self.initial.push(Initial { tensor: place.tensor, bytes });
                Ok((Some(region), false))
            }
            None => {
                let region = constant_region(memory, &mut self.account, &mut self.realigned, &bytes, 0, place)?;
                grow(&mut memory.constants, 1)?;
                memory.constants.push(bytes);
                Ok((Some(region), true))
            }
        }
    }

    fn constant(&mut self, source: &Source<'_>, memory: &mut Memory, place: &Place) -> Result<Region, LoadError> {
        let segment = self.constant_offsets.as_ref().filter(|s| s.offsets.as_ref().is_some_and(|o| !o.is_empty()));
        let Some(SubsegmentOffsets { segment_index, offsets: Some(offsets) }) = segment else {
            return self.inline_constant(source, memory, place);
        };
        let Some(offset) = offsets.get(place.data_buffer_idx as usize) else {
            return Err(out_of_table(place, offsets.len()));
        };
        if self.constants.is_none() {
            let bytes = source.program.segment(*segment_index)?;
            memory.constants.push(bytes.clone());
            self.constants = Some(bytes);
        }
        let bytes = self.constants.as_ref().map_or(&[][..], |bytes| bytes);
        constant_region(memory, &mut self.account, &mut self.realigned, bytes, offset, place)
    }

    /// A constant inside the flatbuffer, as older files have them.
    fn inline_constant(
        &mut self,
        source: &Source<'_>,
        memory: &mut Memory,
        place: &Place,
    ) -> Result<Region, LoadError> {
        let buffers = source.view.program().constant_buffer.clone().unwrap_or_default();
        let index = place.data_buffer_idx as usize;
        if index >= buffers.len() {
            return Err(out_of_table(place, buffers.len()));
        }
        // The bytes belong to the program's head, which the method keeps alive.
        let buffer = edgepack_format::pte::Buffer::storage_of(&buffers, index)?;
        constant_region(memory, &mut self.account, &mut self.realigned, buffer, 0, place)
    }

    fn initial_value(&mut self, source: &Source<'_>, place: &Place) -> Result<Bytes, LoadError> {
        let fail = |code, message: String| LoadError::value(place.index, code, message);
        let sets = source.view.program().mutable_data_segments.clone().unwrap_or_default();
        let Some(index) = usize::try_from(place.mutable_set).ok().filter(|&index| index < sets.len()) else {
            let message = format!("its initial value is in mutable segment {} of {}", place.mutable_set, sets.len());
            return Err(fail(ErrorCode::NotFound, message));
        };
        let set = sets.get(index)?;
        let offset = set.offsets.as_ref().and_then(|offsets| offsets.get(place.data_buffer_idx as usize));
        let Some(offset) = offset else {
            let message = format!("initial value {} is beyond the mutable segment's table", place.data_buffer_idx);
            return Err(fail(ErrorCode::NotFound, message));
        };
        let segment = match self.mutable.entry(set.segment_index) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(source.program.segment(set.segment_index)?),
        };
        let start = usize::try_from(offset).ok();
        let bytes = start.and_then(|start| segment.slice(start..start.checked_add(place.bytes)?));
        bytes.ok_or_else(|| {
            let message = format!("an initial value of {} bytes at {offset} ends outside its segment", place.bytes);
            fail(ErrorCode::InvalidArgument, message)
        })
    }
}

/// Everything that the method looks up in data files and that is not there.
#[cold]
fn missing_data(source: &Source<'_>) -> Result<LoadError, LoadError> {
    let mut missing = MissingData::default();
    for table in source.plan.values.iter().flat_map(|values| values.tables().iter()) {
        if let Some(key) = external_key(&table?)? {
            missing.wants(&key, source.data.contains(&key));
        }
    }
    let (code, other) = match source.data.key(0) {
        Some(other) => (ErrorCode::NotFound, Some(other)),
        None => (ErrorCode::InvalidState, None),
    };
    Ok(LoadError::method(code, missing.described(other)))
}

fn out_of_table(place: &Place, len: usize) -> LoadError {
    let message = format!("constant {} of {len}", place.data_buffer_idx);
    LoadError::value(place.index, ErrorCode::InvalidProgram, message)
}

fn planned(memory: &Memory, place: &Place, allocation: &AllocationDetails) -> Result<Region, LoadError> {
    let fail = |code, message: String| Err(LoadError::value(place.index, code, message));
    let (id, offset) = (allocation.memory_id, allocation.memory_offset());
    let Some(arena) = (id as usize).checked_sub(1).and_then(|index| memory.arenas.get(index)) else {
        return fail(ErrorCode::InvalidArgument, format!("memory id {id}, there are {}", memory.arenas.len()));
    };
    let region = usize::try_from(offset).ok().and_then(|offset| arena.region(offset, place.bytes));
    match region {
        Some(region) if region.is_aligned(place.element) => Ok(region),
        Some(_) => fail(ErrorCode::InvalidProgram, format!("offset {offset} for elements of {} bytes", place.element)),
        None => {
            let message = format!("{} bytes at {offset} of memory {id}, which has {}", place.bytes, arena.len());
            fail(ErrorCode::MemoryAllocationFailed, message)
        }
    }
}

/// Bytes of a constant where they are, or an aligned copy if they are not aligned for their element.
fn constant_region(
    memory: &mut Memory,
    account: &mut Account,
    realigned: &mut HashMap<Range<u64>, Region>,
    bytes: &[u8],
    offset: u64,
    place: &Place,
) -> Result<Region, LoadError> {
    let range = usize::try_from(offset).ok().and_then(|start| Some(start..start.checked_add(place.bytes)?));
    let Some(data) = range.and_then(|range| bytes.get(range)) else {
        let message = format!("a constant of {} bytes at {offset} of {}", place.bytes, bytes.len());
        return Err(LoadError::value(place.index, ErrorCode::InvalidArgument, message));
    };
    let region = Region::read_only(data);
    if region.is_aligned(place.element) {
        return Ok(region);
    }
    if let Some(copy) = realigned.get(&region.addresses()) {
        return Ok(*copy);
    }
    let mut block = account.block("realigned constants", data.len())?;
    grow(&mut memory.private, 1)?;
    block.bytes_mut().copy_from_slice(data);
    let copy = Region::read_only(block.bytes_mut());
    memory.private.push(block);
    realigned.insert(region.addresses(), copy);
    Ok(copy)
}

/// Gives tensors without storage a place in one block of our own. Returns their indices.
pub(super) fn private_storage(graph: &mut PlanGraph<'_>, without: &[(u32, usize)]) -> Result<Vec<u32>, LoadError> {
    const WHAT: &str = "values without planned memory";
    let padded = |bytes: usize| bytes.checked_next_multiple_of(BLOCK_ALIGN);
    let total = without.iter().try_fold(0usize, |total, &(_, bytes)| total.checked_add(padded(bytes)?));
    let total = total.ok_or_else(|| no_room(WHAT, u64::MAX))?;
    let block = graph.account.block(WHAT, total)?;
    let mut offset = 0usize;
    let mut tensors = Vec::new();
    grow(&mut tensors, without.len())?;
    for &(tensor, bytes) in without {
        graph.state.tensors[tensor as usize].region = block.region(offset, bytes).unwrap_or_else(Region::empty);
        // As far as the sum above, which fits.
        offset += padded(bytes).unwrap_or_default();
        tensors.push(tensor);
    }
    grow(&mut graph.memory.private, 1)?;
    graph.memory.private.push(block);
    Ok(tensors)
}

/// Returns the pieces that are written at the start: every byte of memory once, whatever number of tensors start with
/// data there. If several do, the data of the last one stay, so those of the others are left out.
pub(crate) fn initial_pieces(state: &State, initial: &[Initial]) -> Result<Vec<InitialPiece>, OutOfMemory> {
    let mut pieces = Vec::new();
    let mut covered = Covered::default();
    for Initial { tensor, bytes } in initial.iter().rev() {
        let region = state.tensors[*tensor as usize].region.prefix(bytes.len());
        // Rewrites make tensors constants and take memory away that no instruction reads.
        if region.is_empty() || !region.is_writable() {
            continue;
        }
        let range = region.addresses();
        covered.cover(range.clone(), |gap| {
            let from = (gap.start - range.start) as usize;
            grow(&mut pieces, 1)?;
            pieces.push(InitialPiece {
                region: region.after(from).prefix((gap.end - gap.start) as usize),
                bytes: bytes.clone(),
                from,
            });
            Ok::<_, OutOfMemory>(())
        })?;
    }
    Ok(pieces)
}

/// Ranges of addresses, none of which touches another: start to end.
#[derive(Default)]
pub(crate) struct Covered(BTreeMap<u64, u64>);

impl Covered {
    /// Adds a range; `gap` is told each part of it that was not there before. Work is in proportion to the parts that become
    /// one, over all ranges together.
    pub fn cover<E>(&mut self, range: Range<u64>, mut gap: impl FnMut(Range<u64>) -> Result<(), E>) -> Result<(), E> {
        let Covered(known) = self;
        let (mut start, mut at) = (range.start, range.start);
        if let Some((&first, &end)) = known.range(..=range.start).next_back()
            && end >= range.start
        {
            (start, at) = (first, end);
        }
        while at < range.end {
            let next = known.range(at..).next().map(|(&next, &end)| (next, end));
            let (stop, end) = next.filter(|(next, _)| *next <= range.end).unwrap_or((range.end, range.end));
            if at < stop {
                gap(at..stop)?;
            }
            known.remove(&stop);
            at = end;
        }
        known.insert(start, at);
        Ok(())
    }
}

/// Copies initial values into the memory of their tensors. The caller has the method to itself and holds the locks of its
/// shared memories.
pub(crate) fn write_initial_values(initial: &[InitialPiece]) {
    for InitialPiece { region, bytes, from } in initial {
        let data = bytes.get(*from..).unwrap_or_default();
        // SAFETY: the method is exclusively borrowed and holds the locks of its shared memories; the source is a
        // read-only segment, never the same memory.
        unsafe { region.copy_from(&Region::read_only(data)) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ranges of every kind, against a byte for each address.
    #[test]
    fn every_address_is_told_once() {
        let mut state = 1u64;
        let mut number = |below: usize| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as usize % below
        };
        for _ in 0..300 {
            let (mut covered, mut seen) = (Covered::default(), [false; 100]);
            for _ in 0..30 {
                let start = number(90);
                let range = start..start + 1 + number(if start % 3 == 0 { 10 } else { 3 });
                let mut told = [false; 100];
                let fine = covered.cover(range.start as u64..range.end as u64, |gap| {
                    gap.for_each(|at| assert!(!std::mem::replace(&mut told[at as usize], true)));
                    Ok::<_, ()>(())
                });
                fine.unwrap();
                for at in 0..100 {
                    assert_eq!(told[at], range.contains(&at) && !seen[at], "{at} of {range:?}");
                    seen[at] |= told[at];
                }
                let ranges: Vec<_> = covered.0.iter().map(|(start, end)| (*start, *end)).collect();
                assert!(ranges.windows(2).all(|pair| pair[0].1 < pair[1].0), "{ranges:?}");
            }
        }
    }
}
