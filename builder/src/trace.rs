//! Traces: what a runtime observed, as an ETDump file and the debug buffer next to it.
//!
//! Events come in blocks, usually one for loading and one per run. Bytes of recorded tensors go into the debug buffer,
//! each at a multiple of 64.

use edgepack_format::limits::Limits;
use edgepack_format::tensor::{TensorLayout, TensorView};
use edgepack_format::trace::verify::verify;
use edgepack_format::trace::{
    AllocationEvent, Allocator, Bool, DebugEvent, Double, ETDump, Event, Float, Int, ProfileEvent, RunData, Tensor,
    TensorList, Value, ValueType,
};

use crate::build_error::BuildError;
use crate::error::Error;
use crate::raw;

/// Alignment of tensors in the debug buffer.
const ALIGNMENT: usize = 64;

/// Place in a method.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TracePlace<'a> {
    /// Chain and instruction; `None` outside of any.
    pub instruction: Option<(u32, u32)>,
    /// A delegate's own name for the place.
    pub delegate: DelegatePlace<'a>,
}

/// A delegate's own name for a place: a number or a text, not both.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum DelegatePlace<'a> {
    /// No delegate's.
    #[default]
    None,
    /// A number from 0.
    Number(i32),
    /// Name that the delegate chose.
    Text(&'a str),
}

impl TracePlace<'_> {
    /// Makes the place of an instruction, by its indices in the program; no delegate's.
    pub fn instruction(chain: u32, instruction: u32) -> Self {
        TracePlace { instruction: Some((chain, instruction)), delegate: DelegatePlace::None }
    }
}

/// A value to record.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum TraceValue<'a> {
    /// `None`.
    Null,
    /// Recorded in `int_value`.
    Int(i64),
    /// Recorded in `bool_value`.
    Bool(bool),
    /// Recorded in `float_value`.
    Float(f32),
    /// Recorded in `double_value`.
    Double(f64),
    /// Recorded in `tensor`, its elements in the debug buffer.
    Tensor(TensorView<'a>),
    /// Recorded in `tensor_list`, all elements in the debug buffer.
    Tensors(Vec<TensorView<'a>>),
}

/// Records a trace.
#[derive(Clone, Debug, Default)]
pub struct TraceBuilder {
    blocks: Vec<Block>,
    debug: Vec<u8>,
}

#[derive(Clone, Debug)]
struct Block {
    name: String,
    bundled_input: i32,
    allocators: Vec<String>,
    events: Vec<Event<'static>>,
}

/// A trace and the bytes of the tensors in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trace {
    /// The `.etdp` file.
    pub etdump: Vec<u8>,
    /// The debug buffer; empty if no tensor was recorded.
    pub debug_buffer: Vec<u8>,
}

impl TraceBuilder {
    /// A trace without blocks.
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins a block. Runtimes call them `Default` while loading and `Execute` while running.
    pub fn block(&mut self, name: &str) -> &mut Self {
        let name = name.to_owned();
        self.blocks.push(Block { name, bundled_input: -1, allocators: Vec::new(), events: Vec::new() });
        self
    }

    /// The block that events go to; the first event begins one if none was.
    fn current(&mut self) -> Option<&mut Block> {
        if self.blocks.is_empty() {
            self.block("Default");
        }
        self.blocks.last_mut()
    }

    fn push(&mut self, event: Event<'static>) {
        if let Some(block) = self.current() {
            block.events.push(event);
        }
    }

    /// Says which case of a bundle the block runs.
    pub fn bundled_input(&mut self, case: u32) -> Result<&mut Self, BuildError> {
        let case = i32::try_from(case).map_err(|_| Error::Overflow)?;
        if let Some(block) = self.current() {
            block.bundled_input = case;
        }
        Ok(self)
    }

    /// Adds an allocator to the block and answers its id.
    pub fn allocator(&mut self, name: &str) -> Result<i32, BuildError> {
        let Some(block) = self.current() else { return Err(Error::Overflow.into()) };
        block.allocators.push(name.to_owned());
        // Ids count from 1.
        Ok(i32::try_from(block.allocators.len()).map_err(|_| Error::Overflow)?)
    }

    /// Records that an allocator of the block gave out memory.
    pub fn allocation(&mut self, allocator: i32, bytes: u64) -> Result<&mut Self, BuildError> {
        let known = self.current().map_or(0, |block| block.allocators.len());
        if !usize::try_from(allocator).is_ok_and(|id| (1..=known).contains(&id)) {
            return Err(BuildError::Kind {
                place: "allocation".to_owned(),
                want: format!("an allocator of the block, 1 to {known}"),
                found: allocator.to_string(),
            });
        }
        let event = AllocationEvent { allocator_id: allocator, allocation_size: bytes };
        self.push(Event { allocation_event: Some(event), ..Event::default() });
        Ok(self)
    }

    /// Records how long something took, in ticks of any clock.
    pub fn profile(
        &mut self,
        name: &str,
        place: TracePlace<'_>,
        ticks: std::ops::Range<u64>,
        metadata: Option<&[u8]>,
    ) -> Result<&mut Self, BuildError> {
        if ticks.end < ticks.start {
            return Err(BuildError::Kind {
                place: format!("event `{name}`"),
                want: format!("an end from {} on", ticks.start),
                found: ticks.end.to_string(),
            });
        }
        let (chain, instruction) = match place.instruction {
            None => (-1, -1),
            Some((chain, instruction)) => (index(chain)?, index(instruction)?),
        };
        let (number, text) = delegate(place.delegate)?;
        let event = ProfileEvent {
            name: Some(name.to_owned().into()),
            chain_index: chain,
            instruction_id: instruction,
            delegate_debug_id_int: number,
            delegate_debug_id_str: text.map(Into::into),
            delegate_debug_metadata: metadata.map(|bytes| edgepack_format::row::Blob(bytes.to_vec().into())),
            start_time: ticks.start,
            end_time: ticks.end,
        };
        self.push(Event { profile_event: Some(event), ..Event::default() });
        Ok(self)
    }

    /// Records a value: what an instruction wrote, or an output of the method.
    pub fn value(
        &mut self,
        name: Option<&str>,
        place: TracePlace<'_>,
        value: &TraceValue<'_>,
        output: bool,
    ) -> Result<&mut Self, BuildError> {
        let (chain_index, instruction_id) = match place.instruction {
            // All ones, as -1 is stored in a number without sign.
            None => (u64::MAX, -1),
            Some((chain, instruction)) => (u64::from(chain), index(instruction)?),
        };
        let (number, text) = delegate(place.delegate)?;
        let entry = Value { output: output.then_some(Bool { bool_val: true }), ..self.entry(value)? };
        let event = DebugEvent {
            chain_index,
            instruction_id,
            debug_entry: Some(entry),
            delegate_debug_id_int: number,
            delegate_debug_id_str: text.map(Into::into),
            name: name.map(|name| name.to_owned().into()),
        };
        self.push(Event { debug_event: Some(event), ..Event::default() });
        Ok(self)
    }

    fn entry(&mut self, value: &TraceValue<'_>) -> Result<Value<'static>, BuildError> {
        let none = Value::default();
        Ok(match value {
            TraceValue::Null => none,
            TraceValue::Int(number) => Value { val: ValueType::Int, int_value: Some(Int { int_val: *number }), ..none },
            TraceValue::Bool(truth) => {
                Value { val: ValueType::Bool, bool_value: Some(Bool { bool_val: *truth }), ..none }
            }
            TraceValue::Float(number) => {
                Value { val: ValueType::Float, float_value: Some(Float { float_val: *number }), ..none }
            }
            TraceValue::Double(number) => {
                Value { val: ValueType::Double, double_value: Some(Double { double_val: *number }), ..none }
            }
            TraceValue::Tensor(tensor) => Value { val: ValueType::Tensor, tensor: Some(self.tensor(tensor)?), ..none },
            TraceValue::Tensors(tensors) => {
                let rows = tensors.iter().map(|tensor| self.tensor(tensor)).collect::<Result<Vec<_>, _>>()?;
                Value {
                    val: ValueType::TensorList,
                    tensor_list: Some(TensorList { tensors: Some(rows.into()) }),
                    ..none
                }
            }
        })
    }

    fn tensor(&mut self, tensor: &TensorView<'_>) -> Result<Tensor<'static>, BuildError> {
        let layout: &TensorLayout = tensor.layout();
        let long = |number: &usize| i64::try_from(*number).map_err(|_| Error::Overflow);
        let offset = match tensor.data() {
            [] => -1,
            bytes => {
                let start = self.debug.len().checked_next_multiple_of(ALIGNMENT).ok_or(Error::Overflow)?;
                self.debug.resize(start, 0);
                self.debug.extend_from_slice(bytes);
                long(&start)?
            }
        };
        Ok(Tensor {
            scalar_type: layout.scalar_type(),
            sizes: Some(layout.sizes().iter().map(long).collect::<Result<Vec<_>, _>>()?.into()),
            strides: Some(layout.strides().iter().map(long).collect::<Result<Vec<_>, _>>()?.into()),
            offset,
        })
    }

    /// The trace so far. The builder starts over.
    pub fn finish(&mut self) -> Result<Trace, BuildError> {
        let TraceBuilder { blocks, debug } = std::mem::take(self);
        let blocks = blocks.into_iter().map(|block| RunData {
            name: Some(block.name.into()),
            bundled_input_index: block.bundled_input,
            allocators: Some(names(block.allocators).into()),
            events: Some(block.events.into()),
        });
        let etdump = raw::etdump(&ETDump { version: 0, run_data: Some(blocks.collect::<Vec<_>>().into()) })?;
        let verdict = verify(&etdump, &Limits::DEFAULT);
        match verdict.findings.has_errors() {
            true => Err(BuildError::Findings(verdict.findings)),
            false => Ok(Trace { etdump, debug_buffer: debug }),
        }
    }
}

fn names(names: Vec<String>) -> Vec<Allocator<'static>> {
    names.into_iter().map(|name| Allocator { name: Some(name.into()) }).collect()
}

fn index(number: u32) -> Result<i32, Error> {
    i32::try_from(number).map_err(|_| Error::Overflow)
}

fn delegate(place: DelegatePlace<'_>) -> Result<(i32, Option<String>), BuildError> {
    match place {
        DelegatePlace::None => Ok((-1, None)),
        DelegatePlace::Number(number @ 0..) => Ok((number, None)),
        DelegatePlace::Number(number) => Err(BuildError::Kind {
            place: "a delegate's place".to_owned(),
            want: "a number from 0".to_owned(),
            found: number.to_string(),
        }),
        DelegatePlace::Text(text) => Ok((-1, Some(text.to_owned()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use edgepack_format::trace::TraceRef;

    #[test]
    fn all_kinds_of_events_come_back() {
        let mut trace = TraceBuilder::new();
        trace.block("Default").profile("Program::load_method", TracePlace::default(), 5..9, None).unwrap();
        trace.block("Execute").bundled_input(2).unwrap();
        let arena = trace.allocator("arena").unwrap();
        trace.allocation(arena, 640).unwrap();
        let delegate = |delegate| TracePlace { instruction: Some((0, 3)), delegate };
        trace.profile("conv", delegate(DelegatePlace::Number(7)), 10..12, Some(b"meta")).unwrap();
        trace.profile("conv", delegate(DelegatePlace::Text("conv2d")), 10..12, None).unwrap();
        let data = [1u8; 12];
        let (tensor, empty) = (TensorView::of::<f32>(&[3], &data).unwrap(), TensorView::of::<f32>(&[0], &[]).unwrap());
        let values = [
            TraceValue::Null,
            TraceValue::Int(-1),
            TraceValue::Bool(true),
            TraceValue::Float(0.5),
            TraceValue::Double(f64::NAN),
            TraceValue::Tensor(tensor.clone()),
            TraceValue::Tensors(vec![tensor.clone(), empty, tensor]),
        ];
        for value in &values {
            trace.value(Some("add"), TracePlace::instruction(0, 1), value, false).unwrap();
        }
        trace.value(None, TracePlace::default(), &TraceValue::Int(3), true).unwrap();
        let Trace { etdump, debug_buffer } = trace.finish().unwrap();
        assert_eq!(debug_buffer.len(), 128 + 12);
        let parsed = TraceRef::reopen(&etdump).unwrap();
        let blocks: Vec<_> = parsed.blocks().iter().map(Result::unwrap).collect();
        assert_eq!(blocks.len(), 2);
        assert_eq!((blocks[1].bundled_input_index, blocks[0].bundled_input_index), (2, -1));
        let events: Vec<_> = blocks[1].events.as_ref().unwrap().iter().map(Result::unwrap).collect();
        assert_eq!(events.len(), 3 + values.len() + 1);
        let last = events.last().unwrap().debug_event.as_ref().unwrap();
        assert_eq!(
            (last.chain_index, last.debug_entry.as_ref().unwrap().output),
            (u64::MAX, Some(Bool { bool_val: true }))
        );
        let list = events[9].debug_event.as_ref().unwrap().debug_entry.as_ref().unwrap().tensor_list.clone().unwrap();
        let offsets: Vec<_> = list.tensors.unwrap().iter().map(|tensor| tensor.unwrap().offset).collect();
        assert_eq!(offsets, [64, -1, 128]);
    }

    #[test]
    fn a_finished_builder_starts_over() {
        let mut trace = TraceBuilder::new();
        let record = |trace: &mut TraceBuilder| {
            trace.block("Execute").profile("add", TracePlace::instruction(0, 0), 1..2, None).unwrap();
            trace.finish().unwrap()
        };
        let first = record(&mut trace);
        assert_eq!(first, record(&mut trace));
        assert_ne!(first, trace.finish().unwrap());
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let mut trace = TraceBuilder::new();
        assert!(trace.allocation(1, 5).is_err());
        assert_eq!(trace.allocator("a").unwrap(), 1);
        assert!(trace.allocation(1, 5).is_ok());
        assert!(trace.allocation(0, 5).is_err() && trace.allocation(2, 5).is_err());
        // The clock ran backwards.
        assert!(trace.profile("x", TracePlace::default(), std::ops::Range { start: 2, end: 1 }, None).is_err());
        let place = TracePlace { delegate: DelegatePlace::Number(-1), ..TracePlace::default() };
        assert!(trace.profile("x", place, 1..1, None).is_err());
        assert!(trace.bundled_input(u32::MAX).is_err());
    }
}
