//! The tables of `program.fbs`, one struct each. `schema/program.fbs` states the invariants; a test holds the two
//! together.

use serde::{Deserialize, Serialize};

use crate::open_enum;
use crate::row::{Blob, Rows, Scalars, Table, Text, Union};
use crate::scalar::ScalarType;
use crate::wire;

open_enum! {
    /// Freedom of a tensor's sizes to change at run time.
    pub struct TensorShapeDynamism(i8) default STATIC {
        /// Not at all.
        STATIC = 0,
        /// Up to the sizes in the file.
        DYNAMIC_BOUND = 1,
        /// Without a bound; no runtime supports it.
        DYNAMIC_UNBOUND = 2,
    }
}

open_enum! {
    /// Location of a constant tensor's data.
    pub struct TensorDataLocation(i8) default SEGMENT {
        /// In a segment of the program.
        SEGMENT = 0,
        /// In a data file, under the tensor's fully qualified name.
        EXTERNAL = 1,
    }
}

open_enum! {
    /// The kind of device memory is on.
    pub struct DeviceType(i8) default CPU {
        /// Host memory.
        CPU = 0,
        /// An NVIDIA GPU.
        CUDA = 1,
    }
}

open_enum! {
    /// Location of a delegate's processed bytes.
    pub struct DataLocation(i8) default INLINE {
        /// In `Program.backend_delegate_data`.
        INLINE = 0,
        /// In `Program.segments`.
        SEGMENT = 1,
    }
}

/// Nesting of arguments and results before they were flattened: two pytree strings.
#[derive(Clone, PartialEq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ContainerMetadata<'a> {
    /// Of the arguments.
    #[slot(0)]
    pub encoded_inp_str: Option<Text<'a>>,
    /// Of the results.
    #[slot(1)]
    pub encoded_out_str: Option<Text<'a>>,
}

/// `None`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Null {}

/// The place of a tensor in planned memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AllocationDetails {
    /// 1-based: index into `ExecutionPlan.non_const_buffer_sizes`, whose entry 0 is reserved.
    #[slot(0)]
    pub memory_id: u32,
    /// Low half of the offset in bytes.
    #[slot(1)]
    pub memory_offset_low: u32,
    /// High half of the offset in bytes.
    #[slot(2)]
    pub memory_offset_high: u32,
}

impl AllocationDetails {
    /// Offset in bytes.
    pub fn memory_offset(&self) -> u64 {
        u64::from(self.memory_offset_low) | u64::from(self.memory_offset_high) << 32
    }
}

/// Fields that few tensors need.
#[derive(Clone, PartialEq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ExtraTensorInfo<'a> {
    /// Index into `Program.mutable_data_segments` for an initial value.
    #[slot(0)]
    pub mutable_data_segments_idx: u64,
    /// Name of the parameter or buffer this tensor was; the key of an external one.
    #[slot(1)]
    pub fully_qualified_name: Option<Text<'a>>,
    /// Location of the tensor's data.
    #[slot(2)]
    pub location: TensorDataLocation,
    /// Kind of device its memory is on.
    #[slot(3)]
    pub device_type: DeviceType,
    /// Index of the device among those of its kind.
    #[slot(4)]
    pub device_index: i8,
}

/// A tensor value.
#[derive(Clone, PartialEq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Tensor<'a> {
    /// Element type.
    #[slot(0)]
    pub scalar_type: ScalarType,
    /// Always zero.
    #[slot(1)]
    pub storage_offset: i32,
    /// Elements along each dimension; upper bounds for a dynamic tensor.
    #[slot(2)]
    pub sizes: Option<Scalars<'a, i32>>,
    /// Dimensions from outermost to innermost in memory.
    #[slot(3)]
    pub dim_order: Option<Scalars<'a, u8>>,
    /// Informational.
    #[slot(4)]
    pub requires_grad: bool,
    /// Index of its constant or initial value; 0 for none.
    #[slot(5)]
    pub data_buffer_idx: u32,
    /// Its place in planned memory.
    #[slot(6)]
    pub allocation_info: Option<AllocationDetails>,
    /// Ignored by runtimes.
    #[slot(7)]
    pub layout: i8,
    /// Freedom of the sizes to change.
    #[slot(8)]
    pub shape_dynamism: TensorShapeDynamism,
    /// Fields that few tensors need.
    #[slot(9)]
    pub extra_tensor_info: Option<ExtraTensorInfo<'a>>,
}

/// A boxed integer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Int {
    /// Number that the value holds.
    #[slot(0)]
    pub int_val: i64,
}

/// A boxed bool.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Bool {
    /// Bool that the value holds.
    #[slot(0)]
    pub bool_val: bool,
}

/// A boxed double.
#[derive(Clone, Copy, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Double {
    /// The value. Non-finite numbers are legal; in JSON they are strings.
    #[slot(0)]
    #[serde(with = "crate::json::double")]
    pub double_val: f64,
}

impl PartialEq for Double {
    fn eq(&self, other: &Self) -> bool {
        // A file that holds NaN equals its copy.
        self.double_val.to_bits() == other.double_val.to_bits()
    }
}

/// Text, such as a rounding mode.
#[derive(Clone, PartialEq, Eq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct String<'a> {
    /// Text that the value holds.
    #[slot(0)]
    pub string_val: Option<Text<'a>>,
}

/// A list of integers, by value index of each.
#[derive(Clone, PartialEq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct IntList<'a> {
    /// Indices of `Int` values.
    #[slot(0)]
    pub items: Option<Scalars<'a, i64>>,
}

/// A list of doubles, literally.
#[derive(Clone, PartialEq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DoubleList<'a> {
    /// The values. In JSON non-finite ones are strings.
    #[slot(0)]
    #[serde(with = "crate::json::doubles")]
    pub items: Option<Scalars<'a, f64>>,
}

/// A list of bools, literally.
#[derive(Clone, PartialEq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BoolList<'a> {
    /// Items of the list.
    #[slot(0)]
    pub items: Option<Scalars<'a, bool>>,
}

/// A list of tensors.
#[derive(Clone, PartialEq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TensorList<'a> {
    /// Indices of `Tensor` values.
    #[slot(0)]
    pub items: Option<Scalars<'a, i32>>,
}

/// A list of tensors, some of which may be missing.
#[derive(Clone, PartialEq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OptionalTensorList<'a> {
    /// Indices of `Tensor` or `Null` values; -1 for a missing tensor.
    #[slot(0)]
    pub items: Option<Scalars<'a, i32>>,
}

/// Value of a method, by kind.
#[derive(Clone, PartialEq, Debug, Union, Serialize, Deserialize)]
#[allow(clippy::large_enum_variant, reason = "rows are read one at a time; a box would be an allocation each")]
pub enum KernelTypes<'a> {
    /// `None`.
    #[tag(1)]
    Null(Null),
    /// Whole number, or the code of an element type, layout or memory format.
    #[tag(2)]
    Int(Int),
    /// Truth value, such as the condition of a jump.
    #[tag(3)]
    Bool(Bool),
    /// Number in double precision, NaN and infinities included.
    #[tag(4)]
    Double(Double),
    /// Tensor: a constant, a range of planned memory, or memory supplied at run time.
    #[tag(5)]
    Tensor(Tensor<'a>),
    /// Text.
    #[tag(6)]
    String(String<'a>),
    /// A list of integers.
    #[tag(7)]
    IntList(IntList<'a>),
    /// A list of doubles.
    #[tag(8)]
    DoubleList(DoubleList<'a>),
    /// A list of bools.
    #[tag(9)]
    BoolList(BoolList<'a>),
    /// A list of tensors.
    #[tag(10)]
    TensorList(TensorList<'a>),
    /// A list of tensors, some missing.
    #[tag(11)]
    OptionalTensorList(OptionalTensorList<'a>),
    /// A kind without a name yet.
    #[unknown]
    Unknown(u8),
}

/// One value of a plan.
#[derive(Clone, PartialEq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EValue<'a> {
    /// Kind of the value, and what it holds.
    #[slot(0)]
    pub val: Option<KernelTypes<'a>>,
}

/// An operator, by name.
#[derive(Clone, PartialEq, Eq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Operator<'a> {
    /// `namespace::op`.
    #[slot(0)]
    pub name: Option<Text<'a>>,
    /// Name after the dot; empty for none.
    #[slot(1)]
    pub overload: Option<Text<'a>>,
}

/// Calls an operator.
#[derive(Clone, PartialEq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct KernelCall<'a> {
    /// Index into `ExecutionPlan.operators`.
    #[slot(0)]
    pub op_index: i32,
    /// Value indices: the schema's arguments, then the result again.
    #[slot(1)]
    pub args: Option<Scalars<'a, i32>>,
}

/// Calls a delegate.
#[derive(Clone, PartialEq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DelegateCall<'a> {
    /// Index into `ExecutionPlan.delegates`.
    #[slot(0)]
    pub delegate_index: i32,
    /// Value indices: inputs, then outputs.
    #[slot(1)]
    pub args: Option<Scalars<'a, i32>>,
}

/// Copies one value to another.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MoveCall {
    /// Value index of the source.
    #[slot(0)]
    pub move_from: i32,
    /// Value index of the destination.
    #[slot(1)]
    pub move_to: i32,
}

/// Jumps if a condition is false.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct JumpFalseCall {
    /// Value index of the condition: a `Bool`, or a BOOL tensor (false if any element is).
    #[slot(0)]
    pub cond_value_index: i32,
    /// Instruction to go on with; the number of instructions ends the chain.
    #[slot(1)]
    pub destination_instruction: i32,
}

/// Gives up the data of a tensor.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FreeCall {
    /// Value index of the tensor.
    #[slot(0)]
    pub value_index: i32,
}

/// Kind of an instruction, with its arguments.
#[derive(Clone, PartialEq, Debug, Union, Serialize, Deserialize)]
pub enum InstructionArguments<'a> {
    /// Calls an operator.
    #[tag(1)]
    KernelCall(KernelCall<'a>),
    /// Calls a delegate.
    #[tag(2)]
    DelegateCall(DelegateCall<'a>),
    /// Copies a value.
    #[tag(3)]
    MoveCall(MoveCall),
    /// Jumps if false.
    #[tag(4)]
    JumpFalseCall(JumpFalseCall),
    /// Gives up a tensor's data.
    #[tag(5)]
    FreeCall(FreeCall),
    /// A kind without a name yet.
    #[unknown]
    Unknown(u8),
}

/// One instruction.
#[derive(Clone, PartialEq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Instruction<'a> {
    /// Kind and arguments of the instruction.
    #[slot(0)]
    pub instr_args: Option<InstructionArguments<'a>>,
}

/// A line of source an instruction came from.
#[derive(Clone, PartialEq, Eq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Frame<'a> {
    /// File.
    #[slot(0)]
    pub filename: Option<Text<'a>>,
    /// Line.
    #[slot(1)]
    pub lineno: i32,
    /// Function.
    #[slot(2)]
    pub name: Option<Text<'a>>,
    /// The line itself.
    #[slot(3)]
    pub context: Option<Text<'a>>,
}

/// The stack trace of one instruction.
#[derive(Clone, PartialEq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FrameList<'a> {
    /// Outermost first.
    #[slot(0)]
    pub items: Option<Rows<'a, Frame<'a>>>,
}

/// Place of a delegate's processed bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BackendDelegateDataReference {
    /// List that holds the bytes.
    #[slot(0)]
    pub location: DataLocation,
    /// Index into it.
    #[slot(1)]
    pub index: u32,
}

/// An option given to a backend at export.
#[derive(Clone, PartialEq, Eq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CompileSpec<'a> {
    /// Name of the option, which the backend knows.
    #[slot(0)]
    pub key: Option<Text<'a>>,
    /// Its bytes; the backend knows what they mean.
    #[slot(1)]
    pub value: Option<Blob<'a>>,
}

/// A part of the graph that a backend runs.
#[derive(Clone, PartialEq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BackendDelegate<'a> {
    /// Name under which runtimes have the backend.
    #[slot(0)]
    pub id: Option<Text<'a>>,
    /// Place of the bytes that the backend made of it at export.
    #[slot(1)]
    pub processed: Option<BackendDelegateDataReference>,
    /// Options given at export.
    #[slot(2)]
    pub compile_specs: Option<Rows<'a, CompileSpec<'a>>>,
}

/// A sequence of instructions.
#[derive(Clone, PartialEq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Chain<'a> {
    /// Value indices; empty in practice.
    #[slot(0)]
    pub inputs: Option<Scalars<'a, i32>>,
    /// Value indices; empty in practice.
    #[slot(1)]
    pub outputs: Option<Scalars<'a, i32>>,
    /// Instructions to execute, in order.
    #[slot(2)]
    pub instructions: Option<Rows<'a, Instruction<'a>>>,
    /// Stack trace of each instruction.
    #[slot(3)]
    pub stacktrace: Option<Rows<'a, FrameList<'a>>>,
}

/// Device of a planned memory that is not on the CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NonConstBufferDevice {
    /// Index into `ExecutionPlan.non_const_buffer_sizes`.
    #[slot(0)]
    pub buffer_idx: i32,
    /// Kind of device.
    #[slot(1)]
    pub device_type: DeviceType,
    /// Index of the device among those of its kind.
    #[slot(2)]
    pub device_index: i8,
}

/// One method.
#[derive(Clone, PartialEq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ExecutionPlan<'a> {
    /// Name of the method, unique in the program.
    #[slot(0)]
    pub name: Option<Text<'a>>,
    /// Nesting of arguments and results.
    #[slot(1)]
    pub container_meta_type: Option<ContainerMetadata<'a>>,
    /// All values.
    #[slot(2)]
    pub values: Option<Rows<'a, EValue<'a>>>,
    /// Value indices of the inputs.
    #[slot(3)]
    pub inputs: Option<Scalars<'a, i32>>,
    /// Value indices of the outputs.
    #[slot(4)]
    pub outputs: Option<Scalars<'a, i32>>,
    /// Chains to execute.
    #[slot(5)]
    pub chains: Option<Rows<'a, Chain<'a>>>,
    /// Operators the instructions name by index.
    #[slot(6)]
    pub operators: Option<Rows<'a, Operator<'a>>>,
    /// Delegates the instructions name by index.
    #[slot(7)]
    pub delegates: Option<Rows<'a, BackendDelegate<'a>>>,
    /// Bytes of each planned memory; entry 0 is reserved.
    #[slot(8)]
    pub non_const_buffer_sizes: Option<Scalars<'a, i64>>,
    /// Planned memories that are not on the CPU.
    #[slot(9)]
    pub non_const_buffer_device: Option<Rows<'a, NonConstBufferDevice>>,
}

/// A constant stored inside the flatbuffer, as older exporters did.
#[derive(Clone, PartialEq, Eq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Buffer<'a> {
    /// Elements in memory order; entries without data have none.
    #[slot(0, align = 16)]
    pub storage: Option<Blob<'a>>,
}

impl<'a> Buffer<'a> {
    /// The bytes of buffer `index` of a file's list, borrowed from the file; empty if it has none.
    pub fn storage_of(buffers: &Rows<'a, Buffer<'a>>, index: usize) -> wire::Result<&'a [u8]> {
        let vector = buffers.tables().get(index)?.vector(Self::STORAGE.index, 1)?;
        Ok(vector.map_or(&[], |vector| vector.bytes()))
    }
}

/// A delegate's processed bytes stored inside the flatbuffer.
#[derive(Clone, PartialEq, Eq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BackendDelegateInlineData<'a> {
    /// Bytes that the backend made of its part of the graph.
    #[slot(0, align = 16)]
    pub data: Option<Blob<'a>>,
}

/// A range of the file after the flatbuffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DataSegment {
    /// Bytes from the segment base.
    #[slot(0)]
    pub offset: u64,
    /// Bytes without padding.
    #[slot(1)]
    pub size: u64,
}

/// Start in a segment of each of a list of buffers.
#[derive(Clone, PartialEq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SubsegmentOffsets<'a> {
    /// Index into `Program.segments`.
    #[slot(0)]
    pub segment_index: u32,
    /// Bytes from its start; entry 0 is reserved.
    #[slot(1)]
    pub offsets: Option<Scalars<'a, u64>>,
}

/// A key that names a segment.
#[derive(Clone, PartialEq, Eq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NamedData<'a> {
    /// Key of the entry, unique in the program.
    #[slot(0)]
    pub key: Option<Text<'a>>,
    /// Index into `Program.segments`; several keys may have one.
    #[slot(1)]
    pub segment_index: u32,
}

/// The root of a `.pte` file.
#[derive(Clone, PartialEq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Program<'a> {
    /// Always 0 so far.
    #[slot(0)]
    pub version: u32,
    /// Methods.
    #[slot(1)]
    pub execution_plan: Option<Rows<'a, ExecutionPlan<'a>>>,
    /// Constants inside the flatbuffer (older files); entry 0 is reserved.
    #[slot(2)]
    pub constant_buffer: Option<Rows<'a, Buffer<'a>>>,
    /// Delegate payloads inside the flatbuffer.
    #[slot(3)]
    pub backend_delegate_data: Option<Rows<'a, BackendDelegateInlineData<'a>>>,
    /// Ranges of the file after the flatbuffer.
    #[slot(4)]
    pub segments: Option<Rows<'a, DataSegment>>,
    /// Constants in a segment.
    #[slot(5)]
    pub constant_segment: Option<SubsegmentOffsets<'a>>,
    /// Initial values of mutable tensors.
    #[slot(6)]
    pub mutable_data_segments: Option<Rows<'a, SubsegmentOffsets<'a>>>,
    /// Data that delegates find by key.
    #[slot(7)]
    pub named_data: Option<Rows<'a, NamedData<'a>>>,
}
