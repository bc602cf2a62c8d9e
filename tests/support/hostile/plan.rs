//! Programs and methods that are not what they should be.

use edgepack_format::pte::{DeviceType, IntList, KernelTypes, NonConstBufferDevice, TensorDataLocation};
use edgepack_format::rules::pte as rule;

use super::{Case, Rows, changed, changed_full};

fn program() -> Vec<Case> {
    vec![
        changed("version_1", &rule::VERSION, "version", |rows| rows.program.version = 1),
        changed("plans_absent", &rule::PLANS, "execution_plan", |rows| rows.program.execution_plan = None),
        changed("plans_empty", &rule::PLANS_EMPTY, "execution_plan", |rows| rows.plans().clear()),
        changed("name_absent", &rule::PLAN_NAME, "execution_plan[0].name", |rows| rows.plan().name = None),
        changed("name_twice", &rule::PLAN_DUPLICATE, "execution_plan[1].name", |rows| {
            let plan = rows.plan().clone();
            rows.plans().push(plan);
        }),
        changed("values_absent", &rule::VALUES, "execution_plan[0].values", |rows| rows.plan().values = None),
        changed("inputs_absent", &rule::INPUTS, "execution_plan[0].inputs", |rows| rows.plan().inputs = None),
        changed("outputs_absent", &rule::INPUTS, "execution_plan[0].outputs", |rows| rows.plan().outputs = None),
        changed("delegates_absent", &rule::DELEGATES, "execution_plan[0].delegates", |rows| {
            rows.plan().delegates = None;
        }),
    ]
}

fn inputs(list: &[i32]) -> impl FnOnce(&mut Rows) {
    let list = list.to_vec();
    move |rows| rows.plan().inputs = Some(list.into())
}

fn inputs_and_outputs() -> Vec<Case> {
    const INPUT: &str = "execution_plan[0].inputs[1]";
    vec![
        changed("input_77", &rule::IO_INDEX, INPUT, inputs(&[0, 77])),
        changed("input_negative", &rule::IO_INDEX, INPUT, inputs(&[0, -1])),
        changed("input_twice", &rule::INPUT_TWICE, INPUT, inputs(&[0, 0])),
        changed_full("input_constant", &rule::INPUT_CONSTANT, INPUT, inputs(&[0, 1])),
        changed("input_external", &rule::INPUT_CONSTANT, INPUT, |rows| {
            rows.tensor(1).allocation_info = None;
            rows.extra(1).location = TensorDataLocation::EXTERNAL;
            rows.extra(1).fully_qualified_name = Some("weight".into());
        }),
        changed("input_list", &rule::INPUT_KIND, "execution_plan[0].inputs[0]", |rows| {
            rows.plan().inputs = Some(vec![2].into());
            *rows.value(2) = Some(KernelTypes::IntList(IntList { items: Some(Vec::new().into()) }));
        }),
        changed("output_77", &rule::IO_INDEX, "execution_plan[0].outputs[0]", |rows| {
            rows.plan().outputs = Some(vec![77].into());
        }),
        changed("output_negative", &rule::IO_INDEX, "execution_plan[0].outputs[0]", |rows| {
            rows.plan().outputs = Some(vec![-1].into());
        }),
    ]
}

fn sizes(list: &[i64]) -> impl FnOnce(&mut Rows) {
    let list = list.to_vec();
    move |rows| rows.plan().non_const_buffer_sizes = Some(list.into())
}

fn device(buffers: &[i32], device_type: DeviceType) -> impl FnOnce(&mut Rows) {
    let list: Vec<_> =
        buffers.iter().map(|&buffer_idx| NonConstBufferDevice { buffer_idx, device_type, device_index: 0 }).collect();
    move |rows| rows.plan().non_const_buffer_device = Some(list.into())
}

fn memory() -> Vec<Case> {
    const SIZES: &str = "execution_plan[0].non_const_buffer_sizes";
    const PLACE: &str = "execution_plan[0].values[0].val.allocation_info";
    const BUFFER: &str = "execution_plan[0].non_const_buffer_device[0].buffer_idx";
    vec![
        changed("arenas_absent", &rule::ARENA_SIZES, SIZES, |rows| rows.plan().non_const_buffer_sizes = None),
        changed(
            "arenas_empty",
            &rule::ARENA_ID,
            "execution_plan[0].values[0].val.allocation_info.memory_id",
            sizes(&[]),
        ),
        changed(
            "arena_negative",
            &rule::ARENA_NEGATIVE,
            "execution_plan[0].non_const_buffer_sizes[1]",
            sizes(&[0, -5]),
        ),
        changed(
            "arena_reserved",
            &rule::ARENA_RESERVED,
            "execution_plan[0].non_const_buffer_sizes[0]",
            sizes(&[7, 48]),
        ),
        changed("arena_short", &rule::ARENA_RANGE, "execution_plan[0].values[3].val.allocation_info", sizes(&[0, 47])),
        changed("arena_huge", &rule::ARENA_LIMIT, SIZES, sizes(&[0, i64::MAX, i64::MAX, i64::MAX])),
        changed("device_of_0", &rule::DEVICE_BUFFER, BUFFER, device(&[0], DeviceType::CPU)),
        changed("device_of_9", &rule::DEVICE_BUFFER, BUFFER, device(&[9], DeviceType::CPU)),
        changed("device_of_negative", &rule::DEVICE_BUFFER, BUFFER, device(&[-1], DeviceType::CPU)),
        changed(
            "device_twice",
            &rule::DEVICE_DUPLICATE,
            "execution_plan[0].non_const_buffer_device[1].buffer_idx",
            device(&[1, 1], DeviceType::CPU),
        ),
        changed(
            "device_unknown",
            &rule::DEVICE_TYPE,
            "execution_plan[0].non_const_buffer_device[0].device_type",
            device(&[1], DeviceType(9)),
        ),
        changed("device_differs", &rule::TENSOR_DEVICE, PLACE, device(&[1], DeviceType::CUDA)),
    ]
}

pub fn cases() -> Vec<Case> {
    [program(), inputs_and_outputs(), memory()].into_iter().flatten().collect()
}
