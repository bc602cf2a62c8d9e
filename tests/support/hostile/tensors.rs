//! Values and tensors that are not what they should be.

use edgepack_format::pte::{
    AllocationDetails, BoolList, DeviceType, DoubleList, IntList, KernelTypes, OptionalTensorList, String,
    TensorDataLocation, TensorList, TensorShapeDynamism,
};
use edgepack_format::rules::pte as rule;
use edgepack_format::scalar::ScalarType;

use super::base::float;
use super::{Case, changed, changed_full};

fn value(index: usize) -> &'static str {
    ["execution_plan[0].values[0].val", "execution_plan[0].values[1].val", "execution_plan[0].values[2].val"][index]
}

fn with_allocation(change: fn(&mut AllocationDetails)) -> impl FnOnce(&mut super::Rows) {
    move |rows| change(rows.tensor(0).allocation_info.get_or_insert_default())
}

fn shapes() -> Vec<Case> {
    const SIZES: &str = "execution_plan[0].values[0].val.sizes";
    const ORDER: &str = "execution_plan[0].values[0].val.dim_order";
    const DYNAMISM: &str = "execution_plan[0].values[0].val.shape_dynamism";
    vec![
        changed("dtype_77", &rule::SCALAR_TYPE, "execution_plan[0].values[0].val.scalar_type", |rows| {
            rows.tensor(0).scalar_type = ScalarType(77);
        }),
        changed("dtype_negative", &rule::SCALAR_TYPE, "execution_plan[0].values[0].val.scalar_type", |rows| {
            rows.tensor(0).scalar_type = ScalarType(-1);
        }),
        changed("storage_offset", &rule::STORAGE_OFFSET, "execution_plan[0].values[0].val.storage_offset", |rows| {
            rows.tensor(0).storage_offset = 1;
        }),
        changed("sizes_absent", &rule::SIZES, SIZES, |rows| rows.tensor(0).sizes = None),
        changed("dim_order_absent", &rule::SIZES, ORDER, |rows| rows.tensor(0).dim_order = None),
        changed("rank_17", &rule::RANK, SIZES, |rows| *rows.tensor(0) = float(&[1; 17])),
        changed("dim_order_short", &rule::DIM_ORDER_LENGTH, ORDER, |rows| {
            rows.tensor(0).dim_order = Some(vec![0].into());
        }),
        changed("dim_order_twice", &rule::DIM_ORDER, ORDER, |rows| {
            rows.tensor(0).dim_order = Some(vec![1, 1].into());
        }),
        changed("dim_order_beyond", &rule::DIM_ORDER, ORDER, |rows| {
            rows.tensor(0).dim_order = Some(vec![0, 2].into());
        }),
        changed("size_negative", &rule::NEGATIVE_SIZE, "execution_plan[0].values[0].val.sizes[1]", |rows| {
            rows.tensor(0).sizes = Some(vec![2, -3].into());
        }),
        changed("overflow_static", &rule::OVERFLOW, SIZES, |rows| {
            *rows.tensor(0) = float(&[i32::MAX, i32::MAX, 4]);
        }),
        changed("overflow_before_zero", &rule::OVERFLOW, SIZES, |rows| {
            *rows.tensor(0) = float(&[i32::MAX, i32::MAX, i32::MAX, 0]);
        }),
        changed("overflow_dynamic_not_input", &rule::OVERFLOW, "execution_plan[0].values[3].val.sizes", |rows| {
            *rows.tensor(3) = float(&[i32::MAX, i32::MAX, 4]);
            rows.tensor(3).shape_dynamism = TensorShapeDynamism::DYNAMIC_BOUND;
        }),
        changed("overflow_planned", &rule::ARENA_RANGE, "execution_plan[0].values[0].val.allocation_info", |rows| {
            rows.tensor(0).sizes = Some(vec![i32::MAX, i32::MAX, 4].into());
            rows.tensor(0).dim_order = Some(vec![0, 1, 2].into());
            rows.tensor(0).shape_dynamism = TensorShapeDynamism::DYNAMIC_BOUND;
        }),
        changed("dynamism_3", &rule::DYNAMISM, DYNAMISM, |rows| {
            rows.tensor(0).shape_dynamism = TensorShapeDynamism(3);
        }),
        changed("dynamism_unbound", &rule::UNBOUND, DYNAMISM, |rows| {
            rows.tensor(0).shape_dynamism = TensorShapeDynamism::DYNAMIC_UNBOUND;
        }),
    ]
}

fn places() -> Vec<Case> {
    const ALLOCATION: &str = "execution_plan[0].values[0].val.allocation_info";
    const ID: &str = "execution_plan[0].values[0].val.allocation_info.memory_id";
    vec![
        changed("memory_0", &rule::ARENA_ID, ID, with_allocation(|place| place.memory_id = 0)),
        changed("memory_9", &rule::ARENA_ID, ID, with_allocation(|place| place.memory_id = 9)),
        changed("memory_beyond", &rule::ARENA_RANGE, ALLOCATION, with_allocation(|place| place.memory_offset_low = 48)),
        changed(
            "memory_high",
            &rule::ARENA_RANGE,
            ALLOCATION,
            with_allocation(|place| {
                place.memory_offset_high = u32::MAX;
                place.memory_offset_low = u32::MAX - 3;
            }),
        ),
        changed(
            "memory_unaligned",
            &rule::ARENA_ALIGNMENT,
            ALLOCATION,
            with_allocation(|place| {
                place.memory_offset_low = 2;
            }),
        ),
        changed("location_5", &rule::LOCATION, "execution_plan[0].values[0].val.extra_tensor_info.location", |rows| {
            rows.extra(0).location = TensorDataLocation(5);
        }),
        changed(
            "external_nameless",
            &rule::EXTERNAL_NAME,
            "execution_plan[0].values[0].val.extra_tensor_info.fully_qualified_name",
            |rows| rows.extra(0).location = TensorDataLocation::EXTERNAL,
        ),
        changed(
            "external_empty_name",
            &rule::EXTERNAL_NAME,
            "execution_plan[0].values[0].val.extra_tensor_info.fully_qualified_name",
            |rows| {
                rows.extra(0).location = TensorDataLocation::EXTERNAL;
                rows.extra(0).fully_qualified_name = Some("".into());
            },
        ),
        changed("tensor_device", &rule::TENSOR_DEVICE, ALLOCATION, |rows| rows.extra(0).device_type = DeviceType::CUDA),
        changed(
            "tensor_device_unknown",
            &rule::TENSOR_DEVICE,
            "execution_plan[0].values[0].val.extra_tensor_info.device_type",
            |rows| {
                rows.tensor(0).allocation_info = None;
                rows.extra(0).device_type = DeviceType(9);
            },
        ),
    ]
}

fn kinds() -> Vec<Case> {
    const ITEMS: &str = "execution_plan[0].values[2].val.items";
    const ITEM: &str = "execution_plan[0].values[2].val.items[0]";
    let ints = |items: Vec<i64>| KernelTypes::IntList(IntList { items: Some(items.into()) });
    let tensors = |items: Vec<i32>| KernelTypes::TensorList(TensorList { items: Some(items.into()) });
    let optional = |items: Vec<i32>| KernelTypes::OptionalTensorList(OptionalTensorList { items: Some(items.into()) });
    let second =
        |id, rule, path, kind: KernelTypes<'static>| changed(id, rule, path, |rows| *rows.value(2) = Some(kind));
    vec![
        changed("value_none", &rule::VALUE_KIND, value(2), |rows| *rows.value(2) = None),
        second("value_unknown", &rule::VALUE_KIND, value(2), KernelTypes::Unknown(99)),
        second("value_kind_12", &rule::VALUE_KIND, value(2), KernelTypes::Unknown(12)),
        second("string_absent", &rule::VALUE_PAYLOAD, "execution_plan[0].values[2].val.string_val", {
            KernelTypes::String(String { string_val: None })
        }),
        second("int_list_absent", &rule::VALUE_PAYLOAD, ITEMS, KernelTypes::IntList(IntList { items: None })),
        second("bool_list_absent", &rule::VALUE_PAYLOAD, ITEMS, KernelTypes::BoolList(BoolList { items: None })),
        second("double_list_absent", &rule::VALUE_PAYLOAD, ITEMS, KernelTypes::DoubleList(DoubleList { items: None })),
        second("tensor_list_absent", &rule::VALUE_PAYLOAD, ITEMS, KernelTypes::TensorList(TensorList { items: None })),
        second("optional_list_absent", &rule::VALUE_PAYLOAD, ITEMS, {
            KernelTypes::OptionalTensorList(OptionalTensorList { items: None })
        }),
        second("int_list_beyond", &rule::LIST_INDEX, ITEM, ints(vec![99])),
        second("int_list_negative", &rule::LIST_INDEX, ITEM, ints(vec![-1])),
        second("int_list_wide", &rule::LIST_INDEX, ITEM, ints(vec![1 << 32])),
        second("int_list_of_tensor", &rule::LIST_KIND, ITEM, ints(vec![0])),
        second("int_list_of_itself", &rule::LIST_KIND, ITEM, ints(vec![2])),
        second("tensor_list_beyond", &rule::LIST_INDEX, ITEM, tensors(vec![4])),
        second("tensor_list_negative", &rule::LIST_INDEX, ITEM, tensors(vec![-1])),
        second("tensor_list_forward", &rule::LIST_FORWARD, ITEM, tensors(vec![3])),
        second("tensor_list_of_itself", &rule::LIST_KIND, ITEM, tensors(vec![2])),
        changed_full("tensor_list_of_int", &rule::LIST_KIND, "execution_plan[0].values[6].val.items[0]", |rows| {
            *rows.value(6) = Some(KernelTypes::TensorList(TensorList { items: Some(vec![4].into()) }));
        }),
        second("optional_list_minus_2", &rule::LIST_INDEX, ITEM, optional(vec![-2])),
        second("optional_list_forward", &rule::LIST_FORWARD, ITEM, optional(vec![3])),
        changed_full("optional_list_of_int", &rule::LIST_KIND, "execution_plan[0].values[7].val.items[0]", |rows| {
            let items = Some(vec![4].into());
            *rows.value(7) = Some(KernelTypes::OptionalTensorList(OptionalTensorList { items }));
        }),
    ]
}

pub fn cases() -> Vec<Case> {
    [shapes(), places(), kinds()].into_iter().flatten().collect()
}
