//! The tables of execution traces, one struct each.
#![allow(non_upper_case_globals, reason = "the schema spells `ValueType` so")]

use serde::{Deserialize, Serialize};

use crate::open_enum;
use crate::row::{Blob, Rows, Scalars, Table, Text};
use crate::scalar::ScalarType;

pub use crate::pte::{Bool, Double, Int, Null, String};

open_enum! {
    /// Selector of the sub-table of a [`Value`] that is set.
    pub struct ValueType(i8) default Null {
        /// None of them.
        Null = 0,
        /// `int_value`.
        Int = 1,
        /// `bool_value`.
        Bool = 2,
        /// `float_value`.
        Float = 3,
        /// `double_value`.
        Double = 4,
        /// `tensor`.
        Tensor = 5,
        /// `tensor_list`.
        TensorList = 6,
        /// No sub-table: text is not recorded.
        String = 7,
    }
}

/// A tensor as it was at one moment; its bytes are in the debug buffer next to the trace.
#[derive(Clone, PartialEq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Tensor<'a> {
    /// Element type.
    #[slot(0)]
    pub scalar_type: ScalarType,
    /// Elements along each dimension.
    #[slot(1)]
    pub sizes: Option<Scalars<'a, i64>>,
    /// Elements between neighbours along each dimension.
    #[slot(2)]
    pub strides: Option<Scalars<'a, i64>>,
    /// Bytes from the start of the debug buffer; -1 for an empty tensor.
    #[slot(3)]
    pub offset: i64,
}

/// A single-precision number.
#[derive(Clone, Copy, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Float {
    /// The value. Non-finite numbers are legal; in JSON they are strings.
    #[slot(0)]
    #[serde(with = "super::json::float")]
    pub float_val: f32,
}

impl PartialEq for Float {
    fn eq(&self, other: &Self) -> bool {
        // A file that holds NaN equals its copy.
        self.float_val.to_bits() == other.float_val.to_bits()
    }
}

/// Several tensors.
#[derive(Clone, PartialEq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TensorList<'a> {
    /// Items of the list.
    #[slot(0)]
    pub tensors: Option<Rows<'a, Tensor<'a>>>,
}

/// A recorded value: `val` says which of the sub-tables is set.
#[derive(Clone, PartialEq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Value<'a> {
    /// Sub-table that is set.
    #[slot(0)]
    pub val: ValueType,
    /// Set if `val` is `Tensor`.
    #[slot(1)]
    pub tensor: Option<Tensor<'a>>,
    /// Set if `val` is `TensorList`.
    #[slot(2)]
    pub tensor_list: Option<TensorList<'a>>,
    /// Set if `val` is `Int`.
    #[slot(3)]
    pub int_value: Option<Int>,
    /// Set if `val` is `Float`.
    #[slot(4)]
    pub float_value: Option<Float>,
    /// Set if `val` is `Double`.
    #[slot(5)]
    pub double_value: Option<Double>,
    /// Set if `val` is `Bool`.
    #[slot(6)]
    pub bool_value: Option<Bool>,
    /// True if the value is an output of the method.
    #[slot(7)]
    pub output: Option<Bool>,
}

/// An intermediate value.
#[derive(Clone, PartialEq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DebugEvent<'a> {
    /// Index of the chain; all ones outside of any.
    #[slot(0)]
    pub chain_index: u64,
    /// Index of the instruction; -1 for none.
    #[slot(1, default = -1)]
    pub instruction_id: i32,
    /// Value that was recorded.
    #[slot(2)]
    pub debug_entry: Option<Value<'a>>,
    /// A delegate's number for the place; -1 if it uses text.
    #[slot(3, default = -1)]
    pub delegate_debug_id_int: i32,
    /// A delegate's text for the place.
    #[slot(4)]
    pub delegate_debug_id_str: Option<Text<'a>>,
    /// Name of the event.
    #[slot(5)]
    pub name: Option<Text<'a>>,
}

/// Memory taken from an allocator.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AllocationEvent {
    /// 1-based: which of the block's allocators.
    #[slot(0)]
    pub allocator_id: i32,
    /// Bytes.
    #[slot(1)]
    pub allocation_size: u64,
}

/// Time spent on something.
#[derive(Clone, PartialEq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProfileEvent<'a> {
    /// Name of the event.
    #[slot(0)]
    pub name: Option<Text<'a>>,
    /// Index of the chain; -1 outside of any.
    #[slot(1)]
    pub chain_index: i32,
    /// Index of the instruction; -1 for none.
    #[slot(2, default = -1)]
    pub instruction_id: i32,
    /// A delegate's number for the place; -1 if it uses text.
    #[slot(3, default = -1)]
    pub delegate_debug_id_int: i32,
    /// A delegate's text for the place.
    #[slot(4)]
    pub delegate_debug_id_str: Option<Text<'a>>,
    /// Further data of the delegate; it knows the meaning of the bytes.
    #[slot(5)]
    pub delegate_debug_metadata: Option<Blob<'a>>,
    /// Ticks of the runtime's clock.
    #[slot(6)]
    pub start_time: u64,
    /// Ticks of the runtime's clock.
    #[slot(7)]
    pub end_time: u64,
}

/// One event: exactly one of the three.
#[derive(Clone, PartialEq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Event<'a> {
    /// Time that an instruction or another span took.
    #[slot(0)]
    pub profile_event: Option<ProfileEvent<'a>>,
    /// Bytes taken from an allocator of the block.
    #[slot(1)]
    pub allocation_event: Option<AllocationEvent>,
    /// Value that was recorded, with its place in the method.
    #[slot(2)]
    pub debug_event: Option<DebugEvent<'a>>,
}

/// An allocator, by name.
#[derive(Clone, PartialEq, Eq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Allocator<'a> {
    /// Name of the allocator.
    #[slot(0)]
    pub name: Option<Text<'a>>,
}

/// A block of events: loading, or one execution.
#[derive(Clone, PartialEq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RunData<'a> {
    /// Name of the block: `Default` for loading, `Execute` for a run, or any other.
    #[slot(0)]
    pub name: Option<Text<'a>>,
    /// Index of the bundled input that was run; -1 for none.
    #[slot(1, default = -1)]
    pub bundled_input_index: i32,
    /// Allocators that events name by 1-based index.
    #[slot(2)]
    pub allocators: Option<Rows<'a, Allocator<'a>>>,
    /// Events in order.
    #[slot(3)]
    pub events: Option<Rows<'a, Event<'a>>>,
}

/// The root of an `.etdp` file.
#[derive(Clone, PartialEq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ETDump<'a> {
    /// Always 0 so far.
    #[slot(0)]
    pub version: u32,
    /// Blocks in the order in which they were recorded.
    #[slot(1)]
    pub run_data: Option<Rows<'a, RunData<'a>>>,
}
