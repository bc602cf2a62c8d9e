//! Results that another run recorded: the debug events of a trace, their elements in the debug buffer next to it.

use std::collections::HashMap;

use edgepack_format::limits::Limits;
use edgepack_format::row::{Rows, Scalars};
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::{TensorBuf, TensorLayout};
use edgepack_format::trace::{DebugEvent, Event, RunData, Tensor, TraceRef, Value};
use edgepack_format::wire::ReadError;

use super::seen::{Seen, ordered};
use super::source::{MOST, Source, Take, Wanted};
use crate::spelling::cut;
use crate::status::Failure;

/// The recorded results of one run.
#[derive(Debug)]
pub struct Recorded {
    results: Vec<(Seen, Stored)>,
    buffer: Vec<u8>,
    more: bool,
}

/// Place of elements in the debug buffer.
#[derive(Debug)]
struct Stored {
    offset: usize,
    strides: Vec<usize>,
}

impl Recorded {
    /// Reads the first run of a trace that recorded results of instructions.
    ///
    /// # Errors
    ///
    /// The trace breaks a rule, records no results, or says that elements are where the buffer has none.
    pub fn new(trace: &[u8], buffer: Vec<u8>, limits: &Limits) -> Result<Recorded, Failure> {
        let trace = TraceRef::parse(trace, limits).map_err(Failure::findings)?;
        for block in trace.blocks().iter() {
            let block = block?;
            let mut found = Recorded { results: Vec::new(), buffer: Vec::new(), more: false };
            found.read(&block, &buffer)?;
            if !found.results.is_empty() {
                return Ok(Recorded { buffer, ..found });
            }
        }
        Err(Failure::usage("the trace records no results of instructions"))
    }

    fn read(&mut self, block: &RunData<'_>, buffer: &[u8]) -> Result<(), Failure> {
        let events = block.events.clone().unwrap_or_default();
        let operators = operators(&events)?;
        let mut visits: HashMap<(usize, usize), usize> = HashMap::new();
        let (mut last, mut call) = (None, 0);
        for event in events.iter() {
            let Some(event) = event?.debug_event else { continue };
            let Some((place, value)) = of_instruction(&event) else { continue };
            if last != Some(place) {
                *visits.entry(place).or_default() += 1;
                (last, call) = (Some(place), 0);
            }
            let visit = visits.get(&place).map_or(0, |count| count - 1);
            for tensor in tensors(value)? {
                if self.results.len() == MOST {
                    self.more = true;
                    return Ok(());
                }
                let about = |message: String| {
                    let (chain, instruction) = place;
                    Failure::findings(format!("the result of chain {chain}, instruction {instruction}: {message}"))
                };
                let (dtype, sizes, stored) = stored(&tensor, buffer.len()).map_err(about)?;
                let mut seen = Seen {
                    chain: place.0,
                    instruction: place.1,
                    delegate: None,
                    node: u32::try_from(event.delegate_debug_id_int).ok(),
                    visit,
                    call,
                    output: 0,
                    operator: match event.name.as_deref().filter(|name| !name.is_empty()) {
                        Some(name) => cut(name),
                        None => operators.get(&place).cloned().unwrap_or_else(|| "recorded".to_owned()),
                    },
                    name: None,
                    handle: None,
                    source: None,
                    dtype,
                    sizes,
                    affine: None,
                    sample: Vec::new(),
                    turned: Vec::new(),
                };
                seen.look(&stored.strides, &buffer[stored.offset..]);
                self.results.push((seen, stored));
                call += 1;
            }
        }
        Ok(())
    }

    /// Copies the elements of a result, in index order.
    fn elements(&self, seen: &Seen, stored: &Stored, turned: bool) -> Option<TensorBuf> {
        let (count, width) = (seen.sizes.iter().product::<usize>(), seen.dtype.size()?);
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(count.checked_mul(width)?).ok()?;
        for index in 0..count {
            let (mut rest, mut at) = (index, 0);
            for (size, stride) in seen.sizes.iter().zip(&stored.strides).rev() {
                at += rest % size * stride;
                rest /= size;
            }
            let start = stored.offset + at * width;
            bytes.extend_from_slice(self.buffer.get(start..start + width)?);
        }
        let layout = TensorLayout::contiguous(seen.dtype, &seen.sizes).ok()?;
        ordered(TensorBuf::from_bytes(layout, bytes).ok()?, turned).ok()
    }
}

/// Operators by chain and instruction, as the spans of their kernels are called.
fn operators(events: &Rows<'_, Event<'_>>) -> Result<HashMap<(usize, usize), String>, ReadError> {
    let mut found = HashMap::new();
    for event in events.iter() {
        let Some(event) = event?.profile_event else { continue };
        let place = (usize::try_from(event.chain_index), usize::try_from(event.instruction_id));
        let name = event.name.as_deref().and_then(|name| name.strip_prefix("native_call_"));
        if let ((Ok(chain), Ok(instruction)), Some(name)) = (place, name) {
            found.insert((chain, instruction), cut(name));
        }
    }
    Ok(found)
}

/// Chain, instruction and value of an event; `None` outside of instructions, and for outputs of the method, which repeat
/// results.
fn of_instruction<'e, 'a>(event: &'e DebugEvent<'a>) -> Option<((usize, usize), &'e Value<'a>)> {
    let place = (usize::try_from(event.chain_index).ok()?, usize::try_from(event.instruction_id).ok()?);
    let value = event.debug_entry.as_ref()?;
    let is_output = value.output.as_ref().is_some_and(|output| output.bool_val);
    (!is_output).then_some((place, value))
}

fn tensors<'a>(value: &Value<'a>) -> Result<Vec<Tensor<'a>>, ReadError> {
    let list = value.tensor_list.as_ref().and_then(|list| list.tensors.clone()).unwrap_or_default();
    let one = value.tensor.clone().map(Ok);
    one.into_iter().chain(list.iter()).take(MOST).collect()
}

/// Type, sizes and place of a tensor whose elements, all of them different ones, are in a buffer of so many bytes.
fn stored(tensor: &Tensor<'_>, len: usize) -> Result<(ScalarType, Vec<usize>, Stored), String> {
    let numbers = |list: &Option<Scalars<'_, i64>>| -> Option<Vec<usize>> {
        list.as_ref()?.iter().map(|number| usize::try_from(number).ok()).collect()
    };
    let (Some(sizes), Some(strides)) = (numbers(&tensor.sizes), numbers(&tensor.strides)) else {
        return Err("there are no sizes or strides".to_owned());
    };
    let width = tensor.scalar_type.size().unwrap_or(1);
    let count = sizes.iter().try_fold(1usize, |count, size| count.checked_mul(*size));
    if count == Some(0) {
        return Ok((tensor.scalar_type, sizes, Stored { offset: 0, strides }));
    }
    let last = sizes
        .iter()
        .zip(&strides)
        .try_fold(0usize, |at, (size, stride)| at.checked_add(size.checked_sub(1)?.checked_mul(*stride)?));
    let end = |elements: Option<usize>| {
        let bytes = elements?.checked_mul(width)?;
        usize::try_from(tensor.offset).ok()?.checked_add(bytes).filter(|end| *end <= len)
    };
    match (end(count), end(last.and_then(|last| last.checked_add(1))), usize::try_from(tensor.offset)) {
        (Some(_), Some(_), Ok(offset)) => Ok((tensor.scalar_type, sizes, Stored { offset, strides })),
        _ => Err(format!(
            "sizes {sizes:?} from byte {} on do not fit the {len} bytes of the debug buffer",
            tensor.offset
        )),
    }
}

impl Source for Recorded {
    fn describe(&mut self) -> Result<(Vec<Seen>, bool), Failure> {
        Ok((self.results.iter().map(|(seen, _)| seen.clone()).collect(), self.more))
    }

    fn give(&mut self, wanted: &[Wanted], take: &mut Take<'_>) -> Result<(), Failure> {
        for (position, &(index, turned)) in wanted.iter().enumerate() {
            let elements = self.results.get(index).and_then(|(seen, stored)| self.elements(seen, stored, turned));
            let elements = elements.ok_or_else(|| Failure::findings("a recorded result cannot be read"))?;
            take(position, elements);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(sizes: &[i64], strides: &[i64], offset: i64) -> Tensor<'static> {
        Tensor {
            scalar_type: ScalarType::FLOAT,
            sizes: Some(sizes.to_vec().into()),
            strides: Some(strides.to_vec().into()),
            offset,
        }
    }

    #[test]
    fn elements_are_within_the_buffer() {
        assert!(stored(&tensor(&[2, 3], &[3, 1], 8), 32).is_ok());
        let huge = i64::MAX;
        for (sizes, strides, offset) in [
            (&[2, 3][..], &[3, 1][..], 12),
            (&[2, 3], &[3, 1], -1),
            (&[2, 3], &[4, 1], 8),
            (&[2, 3], &[huge, 1], 0),
            (&[huge, huge, 0], &[1, 1, 1], 0),
            (&[huge, huge], &[0, 0], 0),
            (&[1 << 20], &[0], 0),
            (&[-1], &[1], 0),
        ] {
            assert!(stored(&tensor(sizes, strides, offset), 32).is_err(), "{sizes:?} {strides:?} {offset}");
        }
    }
}
