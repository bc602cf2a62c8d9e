//! Summary of a program.

use std::collections::{BTreeMap, HashSet};

use edgepack_format::header::ProgramHeader;
use edgepack_format::pte::metadata::{METADATA_PREFIX, MetadataValue};
use edgepack_format::pte::{BackendDelegate, DataLocation, ExecutionPlan, InstructionArguments, KernelTypes, Program};
use edgepack_format::row::{Rows, Scalars, Table};
use edgepack_loader::Source;
use serde::Serialize;

use super::values::operator_name;
use super::{tables, values};
use crate::file::read_range;
use crate::setting::Setting;
use crate::{readable, spelling, units};

/// Facts about a program that `inspect` shows.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct ProgramSummary {
    /// Bytes of the whole file.
    pub bytes: u64,
    /// The extended header; absent for a bare flatbuffer.
    pub header: Option<ProgramHeader>,
    /// Bytes of the flatbuffer, the header in it included.
    pub flatbuffer_bytes: u64,
    /// Version of the schema that the file states.
    pub version: u32,
    /// Methods in the order of the file.
    pub methods: Vec<MethodSummary>,
    /// Constants, wherever they are.
    pub constants: Constants,
    /// Segments and what is in them.
    pub segments: Vec<SegmentSummary>,
    /// Data that delegates find by key.
    pub named_data: Vec<NamedSummary>,
}

/// Interface, memory and instructions of a method.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct MethodSummary {
    /// Name of the method; `?` if there is none.
    pub name: String,
    /// Inputs of the method.
    pub inputs: Vec<ValueSummary>,
    /// Outputs of the method.
    pub outputs: Vec<ValueSummary>,
    /// Bytes of each planned memory, memory id 1 first.
    pub planned_memory: Vec<i64>,
    /// Number of values, by kind.
    pub values: BTreeMap<&'static str, usize>,
    /// Instructions in all chains.
    pub instructions: usize,
    /// Operators with the number of instructions that call them.
    pub operators: Vec<OperatorSummary>,
    /// Delegates.
    pub delegates: Vec<DelegateSummary>,
    /// Results of a constant method: one that takes nothing and runs nothing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub constants: Vec<String>,
}

/// An input or output.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct ValueSummary {
    /// Index into the values of the method; it may be out of range.
    pub value: i32,
    /// Kind of the value; `none` if it is absent or out of range.
    pub kind: &'static str,
    /// Type as in a signature: `f32[1, 3]`.
    #[serde(rename = "type")]
    pub signature: String,
}

/// Entry of a method's list of operators.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct OperatorSummary {
    /// `aten::add.out`.
    pub name: String,
    /// Instructions that call it.
    pub calls: usize,
}

/// Delegate of a method, and the place of its payload.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct DelegateSummary {
    /// Name of its backend.
    pub backend: String,
    /// Instructions that call it.
    pub calls: usize,
    /// Place of the payload: `segment 3`, `inline 0`.
    pub place: String,
    /// Bytes of its payload; absent if it is nowhere to be found.
    pub bytes: Option<u64>,
    /// Names of the options given at export.
    pub options: Vec<String>,
}

/// Constants.
#[derive(Serialize, Default)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Constants {
    /// Number of constants.
    pub count: usize,
    /// Bytes of all constants.
    pub bytes: u64,
    /// The segment they are in; absent if they are in the flatbuffer.
    pub segment: Option<u32>,
    /// Names of tensors whose data are in data files.
    pub external: Vec<String>,
}

/// Range of the file, and the parts of the program that refer to it.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct SegmentSummary {
    /// Offset of the segment in the file; absent if it overflows.
    pub offset: Option<u64>,
    /// Length of the segment in bytes.
    pub bytes: u64,
    /// Parts of the program that refer to the segment.
    pub holds: Vec<String>,
}

/// An entry of named data.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct NamedSummary {
    /// Key that delegates ask for; empty if there is none.
    pub key: String,
    /// Index of the segment, of which there may be fewer.
    pub segment: u32,
    /// Length of the data in bytes; absent if there is no such segment.
    pub bytes: Option<u64>,
    /// Value, if it is a setting.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Setting>,
    /// Type of the value: `int`, `float`, `text`, `int[]`, `bytes`.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<&'static str>,
    /// Reason that it is a setting without a value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unreadable: Option<String>,
}

impl ProgramSummary {
    /// Summarises a program in a file of `file_bytes` bytes.
    pub fn new(program: &Program<'_>, head: &[u8], file_bytes: u64) -> Self {
        let header = ProgramHeader::read(head).ok();
        let plans = tables::plans(program);
        let segments = segments(program, header, &plans);
        let named = readable::rows(&program.named_data);
        let named_data = named.into_iter().flatten().map(|entry| NamedSummary {
            key: spelling::name(&entry.key.unwrap_or_default()),
            segment: entry.segment_index,
            bytes: segments.get(entry.segment_index as usize).map(|segment| segment.bytes),
            value: None,
            kind: None,
            unreadable: None,
        });
        ProgramSummary {
            bytes: file_bytes,
            header,
            flatbuffer_bytes: header.map_or(file_bytes, |header| header.program_size.min(file_bytes)),
            version: program.version,
            methods: plans.iter().map(|plan| MethodSummary::new(plan, program, &segments)).collect(),
            constants: Constants::new(program, &plans),
            named_data: named_data.collect(),
            segments,
        }
    }
}

impl ProgramSummary {
    /// Reads the named data that are settings. Those beyond 1 MiB are not read: many keys may name one segment.
    pub fn read_metadata(&mut self, source: &dyn Source) {
        let mut room = 1u64 << 20;
        for entry in self.named_data.iter_mut().filter(|entry| entry.key.starts_with(METADATA_PREFIX)) {
            let Some(segment) = self.segments.get(entry.segment as usize) else { continue };
            let Some(start) = segment.offset else { continue };
            if segment.bytes > room {
                entry.unreadable = Some(format!("{} are too many to show", units::bytes(segment.bytes)));
                continue;
            }
            room -= segment.bytes;
            let Ok(bytes) = read_range(source, start, segment.bytes) else { continue };
            match MetadataValue::decode(&bytes) {
                Ok(value) => (entry.kind, entry.value) = (Some(value.kind()), Some(Setting(value))),
                Err(error) => entry.unreadable = Some(error.to_string()),
            }
        }
    }
}

impl MethodSummary {
    fn new(plan: &ExecutionPlan<'_>, program: &Program<'_>, segments: &[SegmentSummary]) -> Self {
        let values = readable::rows(&plan.values);
        let value = |id: i32| values.get(usize::try_from(id).ok()?)?.as_ref()?.val.as_ref();
        let list = |ids: &Option<Scalars<'_, i32>>| -> Vec<ValueSummary> {
            let ids = ids.iter().flat_map(|ids| ids.iter());
            ids.map(|id| ValueSummary {
                value: id,
                kind: value(id).map_or("none", values::kind),
                signature: values::signature(value(id)),
            })
            .collect()
        };
        let mut kinds = BTreeMap::new();
        for value in &values {
            let kind = match value {
                Some(value) => value.val.as_ref().map_or("none", values::kind),
                None => "unreadable",
            };
            *kinds.entry(kind).or_insert(0) += 1;
        }
        let mut calls = Calls::default();
        for chain in tables::chains(plan) {
            for instruction in readable::rows(&chain.instructions) {
                calls.count(instruction.and_then(|instruction| instruction.instr_args));
            }
        }
        let operators = readable::rows(&plan.operators).into_iter().enumerate().map(|(index, operator)| {
            let name = operator.map_or("?".to_owned(), |operator| operator_name(&operator));
            OperatorSummary { name, calls: calls.operators.get(&(index as i32)).copied().unwrap_or(0) }
        });
        let delegates = readable::rows(&plan.delegates).into_iter().enumerate().map(|(index, delegate)| {
            let calls = calls.delegates.get(&(index as i32)).copied().unwrap_or(0);
            DelegateSummary::new(&delegate.unwrap_or_default(), calls, program, segments)
        });
        let (inputs, outputs) = (list(&plan.inputs), list(&plan.outputs));
        let is_constant = inputs.is_empty() && calls.instructions == 0;
        let number = |id: i64| match value(i32::try_from(id).ok()?) {
            Some(KernelTypes::Int(int)) => Some(int.int_val),
            _ => None,
        };
        // Many outputs may be one list: what unfolds into far more than there are values is cut short.
        let mut room = values.len().saturating_mul(4).saturating_add(4096);
        let mut constants = Vec::new();
        for output in outputs.iter().filter(|_| is_constant) {
            let one = value(output.value);
            let Some(rest) = room.checked_sub(values::items(one)) else { break };
            room = rest;
            constants.push(values::constant(one, number));
        }
        MethodSummary {
            name: spelling::name(plan.name.as_deref().unwrap_or("?")),
            constants,
            inputs,
            outputs,
            planned_memory: plan.non_const_buffer_sizes.iter().flat_map(|sizes| sizes.iter()).skip(1).collect(),
            instructions: calls.instructions,
            operators: operators.collect(),
            delegates: delegates.collect(),
            values: kinds,
        }
    }

    /// `forward(f32[1, 3]) -> f32[1, 10]`, in its parts.
    pub fn arguments(&self) -> (String, String) {
        let join = |values: &[ValueSummary]| {
            values.iter().map(|value| value.signature.as_str()).collect::<Vec<_>>().join(", ")
        };
        let results = match self.outputs.len() {
            1 => join(&self.outputs),
            _ => format!("({})", join(&self.outputs)),
        };
        (join(&self.inputs), results)
    }
}

/// Number of calls of each operator and delegate.
#[derive(Default)]
struct Calls {
    instructions: usize,
    operators: BTreeMap<i32, usize>,
    delegates: BTreeMap<i32, usize>,
}

impl Calls {
    fn count(&mut self, instruction: Option<InstructionArguments<'_>>) {
        self.instructions += 1;
        match instruction {
            Some(InstructionArguments::KernelCall(call)) => *self.operators.entry(call.op_index).or_default() += 1,
            Some(InstructionArguments::DelegateCall(call)) => {
                *self.delegates.entry(call.delegate_index).or_default() += 1;
            }
            _ => {}
        }
    }
}

impl DelegateSummary {
    fn new(delegate: &BackendDelegate<'_>, calls: usize, program: &Program<'_>, segments: &[SegmentSummary]) -> Self {
        let (place, bytes) = match delegate.processed {
            None => ("nowhere".to_owned(), None),
            Some(at) if at.location == DataLocation::SEGMENT => {
                (format!("segment {}", at.index), segments.get(at.index as usize).map(|segment| segment.bytes))
            }
            Some(at) if at.location == DataLocation::INLINE => {
                let blob = row(&program.backend_delegate_data, at.index).and_then(|data| data.data);
                (format!("inline {}", at.index), blob.map(|blob| blob.as_slice().len() as u64))
            }
            Some(at) => (format!("{} {}", at.location, at.index), None),
        };
        let options = readable::rows(&delegate.compile_specs).into_iter().flatten();
        DelegateSummary {
            backend: spelling::name(delegate.id.as_deref().unwrap_or("?")),
            calls,
            place,
            bytes,
            options: options.map(|spec| spelling::name(&spec.key.unwrap_or_default())).collect(),
        }
    }
}

fn row<'a, T: Table<'a> + Clone>(rows: &Option<Rows<'a, T>>, index: u32) -> Option<T> {
    rows.as_ref()?.get(index as usize).ok()
}

impl Constants {
    fn new(program: &Program<'_>, plans: &[ExecutionPlan<'_>]) -> Self {
        let mut constants = Constants::default();
        // Entry 0 of either list is reserved.
        if let Some(list) = &program.constant_segment {
            let offsets = list.offsets.as_ref().map_or(0, |offsets| offsets.len());
            constants.count = offsets.saturating_sub(1);
            if constants.count > 0 {
                constants.segment = Some(list.segment_index);
                constants.bytes = row(&program.segments, list.segment_index).map_or(0, |segment| segment.size);
            }
        }
        if constants.count == 0 {
            let inline = readable::rows(&program.constant_buffer);
            constants.count = inline.len().saturating_sub(1);
            let blobs = inline.into_iter().flatten().filter_map(|buffer| buffer.storage);
            constants.bytes = blobs.map(|blob| blob.as_slice().len() as u64).sum();
        }
        let mut known = HashSet::new();
        for value in plans.iter().flat_map(|plan| readable::rows(&plan.values)).flatten() {
            if let Some(KernelTypes::Tensor(tensor)) = value.val
                && let Some(info) = tensor.extra_tensor_info
                && info.location == edgepack_format::pte::TensorDataLocation::EXTERNAL
            {
                let name = spelling::name(&info.fully_qualified_name.unwrap_or_default());
                if known.insert(name.clone()) {
                    constants.external.push(name);
                }
            }
        }
        constants
    }
}

fn segments(program: &Program<'_>, header: Option<ProgramHeader>, plans: &[ExecutionPlan<'_>]) -> Vec<SegmentSummary> {
    let base = header.map_or(0, |header| header.segment_base_offset);
    let mut segments: Vec<SegmentSummary> = readable::rows(&program.segments)
        .into_iter()
        .map(|segment| {
            let segment = segment.unwrap_or_default();
            SegmentSummary { offset: base.checked_add(segment.offset), bytes: segment.size, holds: Vec::new() }
        })
        .collect();
    let mut known = HashSet::new();
    let mut hold = |index: u32, what: String| {
        if let Some(segment) = segments.get_mut(index as usize)
            && known.insert((index, what.clone()))
        {
            segment.holds.push(what);
        }
    };
    if let Some(list) = &program.constant_segment
        && let Some(count) = list.offsets.as_ref().map(|offsets| offsets.len()).filter(|&len| len > 1)
    {
        hold(list.segment_index, units::count(count - 1, "constant"));
    }
    for list in readable::rows(&program.mutable_data_segments).into_iter().flatten() {
        let count = list.offsets.as_ref().map_or(0, |offsets| offsets.len()).saturating_sub(1);
        hold(list.segment_index, units::count(count, "initial value"));
    }
    for plan in plans {
        for delegate in readable::rows(&plan.delegates).into_iter().flatten() {
            if let Some(at) = delegate.processed.filter(|at| at.location == DataLocation::SEGMENT) {
                hold(at.index, format!("delegate {}", spelling::name(delegate.id.as_deref().unwrap_or("?"))));
            }
        }
    }
    for entry in readable::rows(&program.named_data).into_iter().flatten() {
        hold(entry.segment_index, format!("named {}", spelling::name(&entry.key.unwrap_or_default())));
    }
    segments
}
