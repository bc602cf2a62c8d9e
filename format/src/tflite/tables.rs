//! The tables of TensorFlow Lite models that are looked at, one struct each. The schema is `schema/tflite.fbs`; fields
//! of real files beyond it are neither read nor checked.

use serde::{Deserialize, Serialize};

use crate::row::{Blob, Rows, Scalars, Table, Text};

crate::open_enum! {
    /// The element type of a tensor.
    pub struct TensorType(i8) default FLOAT32 {
        /// Single precision.
        FLOAT32 = 0,
        /// Half precision.
        FLOAT16 = 1,
        /// Signed 32-bit.
        INT32 = 2,
        /// Unsigned 8-bit.
        UINT8 = 3,
        /// Signed 64-bit.
        INT64 = 4,
        /// Text.
        STRING = 5,
        /// Truth values.
        BOOL = 6,
        /// Signed 16-bit.
        INT16 = 7,
        /// Two floats.
        COMPLEX64 = 8,
        /// Signed 8-bit.
        INT8 = 9,
        /// Double precision.
        FLOAT64 = 10,
        /// Two doubles.
        COMPLEX128 = 11,
        /// Unsigned 64-bit.
        UINT64 = 12,
        /// Handle of state that several operators use.
        RESOURCE = 13,
        /// Anything.
        VARIANT = 14,
        /// Unsigned 32-bit.
        UINT32 = 15,
        /// Unsigned 16-bit.
        UINT16 = 16,
        /// Signed 4-bit.
        INT4 = 17,
        /// The upper half of a float.
        BFLOAT16 = 18,
    }
}

/// Quantization of a tensor's numbers.
#[derive(Clone, PartialEq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct QuantizationParameters<'a> {
    /// The smallest values that were seen.
    #[slot(0)]
    #[serde(with = "crate::json::singles")]
    pub min: Option<Scalars<'a, f32>>,
    /// The largest values that were seen.
    #[slot(1)]
    #[serde(with = "crate::json::singles")]
    pub max: Option<Scalars<'a, f32>>,
    /// One, or one per channel.
    #[slot(2)]
    #[serde(with = "crate::json::singles")]
    pub scale: Option<Scalars<'a, f32>>,
    /// As many as there are scales.
    #[slot(3)]
    pub zero_point: Option<Scalars<'a, i64>>,
}

/// Operand of operators, by its index in the graph; constant if its buffer has bytes.
#[derive(Clone, PartialEq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Tensor<'a> {
    /// Elements along each dimension.
    #[slot(0)]
    pub shape: Option<Scalars<'a, i32>>,
    /// Element type.
    #[slot(1, name = "type")]
    #[serde(rename = "type")]
    pub kind: TensorType,
    /// Index of the buffer with its data.
    #[slot(2)]
    pub buffer: u32,
    /// Name of the tensor.
    #[slot(3)]
    pub name: Option<Text<'a>>,
    /// Quantization of its numbers.
    #[slot(4)]
    pub quantization: Option<QuantizationParameters<'a>>,
    /// True if it retains its value from run to run.
    #[slot(5)]
    pub is_variable: bool,
}

/// An operator that the model uses.
#[derive(Clone, PartialEq, Debug, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OperatorCode<'a> {
    /// Code that older files have instead of `builtin_code`.
    #[slot(0)]
    pub deprecated_builtin_code: i8,
    /// Its name when it is not built in.
    #[slot(1)]
    pub custom_code: Option<Text<'a>>,
    /// Version of the operator.
    #[slot(2, default = 1)]
    pub version: i32,
    /// Number of a built-in operator.
    #[slot(3)]
    pub builtin_code: i32,
}

impl Default for OperatorCode<'_> {
    fn default() -> Self {
        OperatorCode { deprecated_builtin_code: 0, custom_code: None, version: 1, builtin_code: 0 }
    }
}

impl OperatorCode<'_> {
    /// The number of operators that are not built in.
    pub const CUSTOM: i32 = 32;

    /// Its number, wherever the file has it.
    pub fn code(&self) -> i32 {
        self.builtin_code.max(self.deprecated_builtin_code.into())
    }
}

/// Stands for any of the built-in operators' option tables.
#[derive(Clone, PartialEq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BuiltinOptions {}

/// A use of an operator.
#[derive(Clone, PartialEq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Operator<'a> {
    /// Index of the operator code.
    #[slot(0)]
    pub opcode_index: u32,
    /// Tensors; -1 for none.
    #[slot(1)]
    pub inputs: Option<Scalars<'a, i32>>,
    /// Tensors.
    #[slot(2)]
    pub outputs: Option<Scalars<'a, i32>>,
    /// Number of the option table.
    #[slot(3)]
    pub builtin_options_type: u8,
    /// Options of a built-in operator.
    #[slot(4)]
    pub builtin_options: Option<BuiltinOptions>,
    /// Options of another.
    #[slot(5)]
    pub custom_options: Option<Blob<'a>>,
    /// Encoding of the custom options: 0 for a FlexBuffer, the only one there is.
    #[slot(6)]
    pub custom_options_format: i8,
    /// Flags of the inputs that are changed.
    #[slot(7)]
    pub mutating_variable_inputs: Option<Scalars<'a, bool>>,
    /// Tensors for its own use.
    #[slot(8)]
    pub intermediates: Option<Scalars<'a, i32>>,
    /// Offset of custom options that are behind the flatbuffer.
    #[slot(9)]
    pub large_custom_options_offset: u64,
    /// Length of those options.
    #[slot(10)]
    pub large_custom_options_size: u64,
}

/// Operators in the order in which they run, and the tensors that they read and write.
#[derive(Clone, PartialEq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SubGraph<'a> {
    /// Tensors that operators name by index.
    #[slot(0)]
    pub tensors: Option<Rows<'a, Tensor<'a>>>,
    /// Tensors that go in.
    #[slot(1)]
    pub inputs: Option<Scalars<'a, i32>>,
    /// Tensors that come out.
    #[slot(2)]
    pub outputs: Option<Scalars<'a, i32>>,
    /// In the order in which they run.
    #[slot(3)]
    pub operators: Option<Rows<'a, Operator<'a>>>,
    /// Name of the graph.
    #[slot(4)]
    pub name: Option<Text<'a>>,
}

/// The data of a tensor or of metadata.
#[derive(Clone, PartialEq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Buffer<'a> {
    /// Bytes inside of the flatbuffer; empty or absent for tensors that are computed.
    #[slot(0, page = 16)]
    pub data: Option<Blob<'a>>,
    /// Offset of bytes that are behind the flatbuffer.
    #[slot(1)]
    pub offset: u64,
    /// Number of those bytes.
    #[slot(2)]
    pub size: u64,
}

/// Something said about the model.
#[derive(Clone, PartialEq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Metadata<'a> {
    /// Name that readers look the entry up by.
    #[slot(0)]
    pub name: Option<Text<'a>>,
    /// Index of the buffer that holds it.
    #[slot(1)]
    pub buffer: u32,
}

/// Root table of a model.
#[derive(Clone, PartialEq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Model<'a> {
    /// Version of the schema: 3.
    #[slot(0)]
    pub version: u32,
    /// The operators it uses.
    #[slot(1)]
    pub operator_codes: Option<Rows<'a, OperatorCode<'a>>>,
    /// Graphs; the first one runs.
    #[slot(2)]
    pub subgraphs: Option<Rows<'a, SubGraph<'a>>>,
    /// Description of the model's origin.
    #[slot(3)]
    pub description: Option<Text<'a>>,
    /// Data of tensors; entry 0 is empty.
    #[slot(4)]
    pub buffers: Option<Rows<'a, Buffer<'a>>>,
    /// Replaced by `metadata`.
    #[slot(5)]
    pub metadata_buffer: Option<Scalars<'a, i32>>,
    /// Metadata of the model.
    #[slot(6)]
    pub metadata: Option<Rows<'a, Metadata<'a>>>,
}
