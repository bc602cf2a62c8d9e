//! Traces that break one rule each.

use edgepack_builder::raw;
use edgepack_format::rules::trace as rule;
use edgepack_format::scalar::ScalarType;
use edgepack_format::trace::{
    AllocationEvent, Allocator, Bool, DebugEvent, Double, ETDump, Event, Int, ProfileEvent, RunData, Tensor,
    TensorList, Value, ValueType,
};

use crate::hostile_data::{Case, patch, position};

fn profile() -> ProfileEvent<'static> {
    ProfileEvent {
        name: Some("Method::execute".into()),
        chain_index: -1,
        instruction_id: -1,
        delegate_debug_id_int: -1,
        start_time: 1,
        end_time: 2,
        ..ProfileEvent::default()
    }
}

fn debug(value: Option<Value<'static>>) -> DebugEvent<'static> {
    DebugEvent { instruction_id: 3, debug_entry: value, delegate_debug_id_int: -1, ..DebugEvent::default() }
}

fn tensor() -> Tensor<'static> {
    Tensor {
        scalar_type: ScalarType::FLOAT,
        sizes: Some(vec![2, 3].into()),
        strides: Some(vec![3, 1].into()),
        offset: 64,
    }
}

fn events(events: Vec<Event<'static>>) -> Vec<u8> {
    let block = RunData {
        name: Some("Execute".into()),
        bundled_input_index: -1,
        allocators: Some(vec![Allocator { name: Some("planned".into()) }].into()),
        events: Some(events.into()),
    };
    raw::etdump(&ETDump { version: 0, run_data: Some(vec![block].into()) }).unwrap()
}

fn profiled(change: impl FnOnce(&mut ProfileEvent<'static>)) -> Vec<u8> {
    let mut event = profile();
    change(&mut event);
    events(vec![Event { profile_event: Some(event), ..Event::default() }])
}

fn recorded(value: Value<'static>) -> Vec<u8> {
    events(vec![Event { debug_event: Some(debug(Some(value))), ..Event::default() }])
}

fn allocated(allocator_id: i32) -> Vec<u8> {
    let event = AllocationEvent { allocator_id, allocation_size: 16 };
    events(vec![Event { allocation_event: Some(event), ..Event::default() }])
}

fn with_tensor(change: impl FnOnce(&mut Tensor<'static>)) -> Vec<u8> {
    let mut tensor = tensor();
    change(&mut tensor);
    recorded(Value { val: ValueType::Tensor, tensor: Some(tensor), ..Value::default() })
}

pub fn cases() -> Vec<Case> {
    [event_cases(), value_cases(), file_cases()].into_iter().flatten().collect()
}

fn event_cases() -> Vec<Case> {
    let first = "run_data[0].events[0]";
    let both = Event {
        profile_event: Some(profile()),
        allocation_event: Some(AllocationEvent { allocator_id: 1, allocation_size: 1 }),
        debug_event: None,
    };
    let allocation = "run_data[0].events[0].allocation_event";
    let profile = "run_data[0].events[0].profile_event";
    vec![
        Case::new("event_empty", &rule::EVENT, first, events(vec![Event::default()])),
        Case::new("event_double", &rule::EVENT, first, events(vec![both])),
        Case::new("allocator_zero", &rule::ALLOCATOR, allocation, allocated(0)),
        Case::new("allocator_negative", &rule::ALLOCATOR, allocation, allocated(-1)),
        Case::new("allocator_beyond", &rule::ALLOCATOR, allocation, allocated(2)),
        Case::new(
            "delegate_ids",
            &rule::DELEGATE_ID,
            profile,
            profiled(|event| {
                event.delegate_debug_id_int = 4;
                event.delegate_debug_id_str = Some("four".into());
            }),
        ),
        Case::new("time_backwards", &rule::TIMES, profile, profiled(|event| event.start_time = 3)),
        Case::new(
            "debug_without_value",
            &rule::DEBUG_ENTRY,
            "run_data[0].events[0].debug_event",
            events(vec![Event { debug_event: Some(debug(None)), ..Event::default() }]),
        ),
    ]
}

fn value_cases() -> Vec<Case> {
    let entry = "run_data[0].events[0].debug_event.debug_entry";
    let held = "run_data[0].events[0].debug_event.debug_entry.tensor";
    let listed = "run_data[0].events[0].debug_event.debug_entry.tensor_list.tensors[1]";
    let list = TensorList { tensors: Some(vec![tensor(), Tensor { offset: -2, ..tensor() }].into()) };
    let two = Value {
        val: ValueType::Int,
        int_value: Some(Int { int_val: 1 }),
        double_value: Some(Double { double_val: 1.0 }),
        output: Some(Bool { bool_val: true }),
        ..Value::default()
    };
    let in_list = Value { val: ValueType::TensorList, tensor_list: Some(list), ..Value::default() };
    vec![
        Case::new("value_missing", &rule::VALUE, entry, recorded(Value { val: ValueType::Tensor, ..Value::default() })),
        Case::new("value_twice", &rule::VALUE_EXTRA, entry, recorded(two)),
        Case::new("value_kind", &rule::VALUE_KIND, entry, recorded(Value { val: ValueType(99), ..Value::default() })),
        Case::new("tensor_without_sizes", &rule::TENSOR_PARTS, held, with_tensor(|tensor| tensor.sizes = None)),
        Case::new("tensor_without_strides", &rule::TENSOR_PARTS, held, with_tensor(|tensor| tensor.strides = None)),
        Case::new(
            "tensor_strides_short",
            &rule::TENSOR_PARTS,
            held,
            with_tensor(|tensor| tensor.strides = Some(vec![1].into())),
        ),
        Case::new("tensor_dtype", &rule::TENSOR, held, with_tensor(|tensor| tensor.scalar_type = ScalarType(77))),
        Case::new(
            "tensor_negative_size",
            &rule::TENSOR,
            held,
            with_tensor(|tensor| tensor.sizes = Some(vec![2, -3].into())),
        ),
        Case::new(
            "tensor_overflow",
            &rule::TENSOR,
            held,
            with_tensor(|tensor| tensor.sizes = Some(vec![1 << 40, 1 << 40].into())),
        ),
        Case::new("tensor_offset", &rule::TENSOR_OFFSET, listed, recorded(in_list)),
        Case::new("tensor_unaligned", &rule::TENSOR_ALIGNMENT, held, with_tensor(|tensor| tensor.offset = 4)),
    ]
}

fn file_cases() -> Vec<Case> {
    let file = profiled(|_| {});
    let name = position(&file, b"Method::execute\0");
    let length = (file.len() as u32 - 4 - 16).to_le_bytes();
    let path = "run_data[0].events[0].profile_event.name";
    let version = raw::etdump(&ETDump { version: 1, ..ETDump::default() }).unwrap();
    vec![
        Case::new("empty", &rule::IDENTIFIER, "", Vec::new()),
        Case::new("identifier", &rule::IDENTIFIER, "", patch(file.clone(), 8, b"ED01")),
        Case::new("without_length", &rule::IDENTIFIER, "", file[4..].to_vec()),
        Case::new("cut", &rule::LENGTH, "", file[..file.len() - 1].to_vec()),
        Case::new("trailing", &rule::TRAILING, "", [file.clone(), vec![0]].concat()),
        Case::new("length_short", &rule::TRAILING, "", patch(file.clone(), 0, &length)),
        Case::new("version", &rule::VERSION, "version", version),
        Case::new("root_beyond", &rule::MALFORMED, "", patch(file.clone(), 4, &[0xff; 4])),
        Case::new("name_length", &rule::MALFORMED, path, patch(file.clone(), name - 4, &[0xff; 4])),
        Case::new("shifted", &rule::MISALIGNED, "", shifted(&file)),
        Case::new("name_not_utf8", &rule::TEXT, path, patch(file.clone(), name, b"\xff")),
        Case::new("budget", &rule::LIMITS, "run_data[0].events", file).visits(4),
    ]
}

/// The file with two bytes more between identifier and tables.
fn shifted(file: &[u8]) -> Vec<u8> {
    let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap()) + 2;
    let bytes = [&word(0).to_le_bytes(), &word(4).to_le_bytes()[..], &file[8..12], &[0, 0], &file[12..]];
    bytes.concat()
}
