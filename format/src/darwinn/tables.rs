//! The tables of Edge TPU packages, one struct each, and their enumerations. The schema is `schema/darwinn.fbs`.

use serde::{Deserialize, Serialize};

use crate::row::{Blob, Blobs, Rows, Scalar, ScalarKind, Scalars, Struct, StructDesc, Structs, Table, Text, Union};

/// Alignment of memory that the host maps for the device, in bytes.
pub const PAGE: usize = 4096;

crate::open_enum! {
    /// Kind of buffer that an address or a transfer is about. Outputs come before inputs.
    pub struct Description(i16) default BASE_ADDRESS_OUTPUT_ACTIVATION {
        /// Buffer of an output layer, which `name` and `batch` say.
        BASE_ADDRESS_OUTPUT_ACTIVATION = 0,
        /// Buffer of an input layer, which `name` and `batch` say.
        BASE_ADDRESS_INPUT_ACTIVATION = 1,
        /// All parameters of the executable.
        BASE_ADDRESS_PARAMETER = 2,
        /// Scratch memory of the executable.
        BASE_ADDRESS_SCRATCH = 3,
    }
}

crate::open_enum! {
    /// Half of an address.
    pub struct Position(i16) default LOWER_32BIT {
        /// Bits 0 to 31.
        LOWER_32BIT = 0,
        /// Bits 32 to 63.
        UPPER_32BIT = 1,
    }
}

crate::open_enum! {
    /// An interrupt of the device. Number 0 ends a run.
    pub struct InterruptType(i16) default SCALAR_CORE_INT_0 {
        /// Signal that the run has ended.
        SCALAR_CORE_INT_0 = 0,
        /// Second signal; a run goes on after it.
        SCALAR_CORE_INT_1 = 1,
        /// Third signal; a run goes on after it.
        SCALAR_CORE_INT_2 = 2,
        /// Fourth signal; a run goes on after it.
        SCALAR_CORE_INT_3 = 3,
    }
}

crate::open_enum! {
    /// Direction of a transfer.
    pub struct Direction(i16) default INFEED {
        /// From the host to the device.
        INFEED = 0,
        /// From the device to the host.
        OUTFEED = 1,
    }
}

crate::open_enum! {
    /// The element type of a layer.
    pub struct DataType(i16) default FIXED_POINT8 {
        /// Unsigned 8-bit.
        FIXED_POINT8 = 0,
        /// Unsigned 16-bit.
        FIXED_POINT16 = 1,
        /// Signed 32-bit.
        SIGNED_FIXED_POINT32 = 2,
        /// The upper half of a float.
        BFLOAT = 3,
        /// IEEE 754 half precision.
        HALF = 4,
        /// IEEE 754 single precision.
        SINGLE = 5,
        /// Signed 8-bit; the device works on it with the top bit flipped.
        SIGNED_FIXED_POINT8 = 8,
        /// Signed 16-bit; the device works on it with the top bit flipped.
        SIGNED_FIXED_POINT16 = 9,
    }
}

crate::open_enum! {
    /// Purpose of an executable.
    pub struct ExecutableType(i16) default STAND_ALONE {
        /// Everything in one.
        STAND_ALONE = 0,
        /// Loads parameters into on-chip memory; has no layers.
        PARAMETER_CACHING = 1,
        /// Runs with parameters that are in on-chip memory already.
        EXECUTION_ONLY = 2,
    }
}

/// Identity of an address: buffer, batch entry, layer and half.
#[derive(Clone, PartialEq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Meta<'a> {
    /// Kind of buffer.
    #[slot(0)]
    pub desc: Description,
    /// Batch entry of an activation.
    #[slot(1)]
    pub batch: i32,
    /// Name of the layer, for an activation.
    #[slot(2)]
    pub name: Option<Text<'a>>,
    /// Half of the address.
    #[slot(3)]
    pub position: Position,
}

/// 32 bits of an instruction chunk that receive half an address.
#[derive(Clone, PartialEq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FieldOffset<'a> {
    /// Address to write.
    #[slot(0)]
    pub meta: Option<Meta<'a>>,
    /// Position in bits from the start of the chunk.
    #[slot(1)]
    pub offset_bit: i32,
}

/// A chunk of instructions and the fields in it.
#[derive(Clone, PartialEq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct InstructionBitstream<'a> {
    /// Encoded instructions, not empty; addresses are filled in before they are sent.
    #[slot(0)]
    pub bitstream: Option<Blob<'a>>,
    /// Fields of the chunk that receive addresses.
    #[slot(1)]
    pub field_offsets: Option<Rows<'a, FieldOffset<'a>>>,
}

/// A transfer of a range of a buffer.
#[derive(Clone, PartialEq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DmaDescriptorHint<'a> {
    /// Buffer of the transfer.
    #[slot(0)]
    pub meta: Option<Meta<'a>>,
    /// Start of the range.
    #[slot(1)]
    pub offset_in_bytes: i32,
    /// Length of the range in bytes; the range is inside the buffer.
    #[slot(2)]
    pub size_in_bytes: i32,
}

/// A transfer of an instruction chunk.
#[derive(Clone, PartialEq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct InstructionHint {
    /// Index into `Executable.instruction_bitstreams`.
    #[slot(0)]
    pub instruction_chunk_index: i32,
}

/// The device raises an interrupt.
#[derive(Clone, PartialEq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct InterruptHint {
    /// Number of the interrupt, 0 to 3; any other is refused.
    #[slot(0, name = "type")]
    #[serde(rename = "type")]
    pub kind: InterruptType,
}

/// Nothing after it starts before all before it has finished.
#[derive(Clone, PartialEq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FenceHint {}

/// The kinds of hints.
#[derive(Clone, PartialEq, Debug, Union, Serialize, Deserialize)]
pub enum AnyHint<'a> {
    /// Transfer of a range of a buffer.
    #[tag(1)]
    DmaDescriptorHint(DmaDescriptorHint<'a>),
    /// A transfer of instructions.
    #[tag(2)]
    InstructionHint(InstructionHint),
    /// Wait for a signal of the device.
    #[tag(3)]
    InterruptHint(InterruptHint),
    /// Order: nothing after the fence starts before all before it has finished.
    #[tag(4)]
    FenceHint(FenceHint),
    /// A kind without a name yet.
    #[unknown]
    Unknown(u8),
}

/// One action of the host in a run.
#[derive(Clone, PartialEq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DmaHint<'a> {
    /// Content of the hint.
    #[slot(0)]
    pub any_hint: Option<AnyHint<'a>>,
    /// Direction of the hint; it decides for scratch only.
    #[slot(2)]
    pub direction: Direction,
}

/// Actions of the host in a run, in order.
#[derive(Clone, PartialEq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DmaHints<'a> {
    /// In order.
    #[slot(0)]
    pub hints: Option<Rows<'a, DmaHint<'a>>>,
    /// True if the hints are the whole run.
    #[slot(1)]
    pub fully_deterministic: bool,
}

/// Zero point and scale of a layer's numbers.
#[derive(Clone, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NumericsConstants {
    /// Of the unsigned number, for signed types too.
    #[slot(0)]
    pub zero_point: i32,
    /// Factor of a stored number less the zero point.
    #[slot(1)]
    #[serde(with = "crate::json::single")]
    pub dequantization_factor: f32,
}

/// Equal bits: NaN is itself, and -0.0 is not 0.0.
impl PartialEq for NumericsConstants {
    fn eq(&self, other: &Self) -> bool {
        self.zero_point == other.zero_point
            && self.dequantization_factor.to_bits() == other.dequantization_factor.to_bits()
    }
}

/// Places of the elements of a tiled output. All numbers are in elements, also where the schema's name says byte.
#[derive(Clone, PartialEq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OutputLayout<'a> {
    /// The y part of the tile number, for each y.
    #[slot(0)]
    pub y_coordinate_to_linear_tile_id_map: Option<Scalars<'a, i32>>,
    /// The x part of the tile number, for each x.
    #[slot(1)]
    pub x_coordinate_to_linear_tile_id_map: Option<Scalars<'a, i32>>,
    /// Start of each tile.
    #[slot(2)]
    pub linearized_tile_byte_offset: Option<Scalars<'a, i32>>,
    /// Start of each x in its row.
    #[slot(3)]
    pub x_coordinate_to_local_byte_offset: Option<Scalars<'a, i32>>,
    /// Row number of each y in its tile.
    #[slot(4)]
    pub y_coordinate_to_local_y_offset: Option<Scalars<'a, i32>>,
    /// Length of the rows of the tile that each x is in.
    #[slot(5)]
    pub x_coordinate_to_local_y_row_size: Option<Scalars<'a, i32>>,
}

/// A range of coordinates; both ends belong to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Range {
    /// Lowest coordinate.
    pub start: i32,
    /// Highest coordinate; less than `start` is an error.
    pub end: i32,
}

impl Struct for Range {
    const DESC: &'static StructDesc = &StructDesc {
        name: "Range",
        size: 8,
        align: 4,
        fields: &[("start", ScalarKind::I32), ("end", ScalarKind::I32)],
    };

    fn from_le(bytes: &[u8]) -> Option<Self> {
        Some(Range { start: Scalar::from_le(bytes)?, end: Scalar::from_le(bytes.get(4..)?)? })
    }

    fn put_le(self, out: &mut alloc::vec::Vec<u8>) {
        out.extend(self.start.to_le_bytes());
        out.extend(self.end.to_le_bytes());
    }
}

/// The coordinates a tensor has.
#[derive(Clone, PartialEq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TensorShape<'a> {
    /// From the outermost dimension to the innermost.
    #[slot(0)]
    pub dimension: Option<Structs<'a, Range>>,
}

/// A box of coordinates and its strides.
#[derive(Clone, PartialEq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TensorLayout<'a> {
    /// The box, in coordinates of the whole tensor.
    #[slot(0)]
    pub shape: Option<TensorShape<'a>>,
    /// In elements, one per dimension.
    #[slot(1)]
    pub stride: Option<Scalars<'a, i32>>,
}

/// An output as boxes laid out by strides.
#[derive(Clone, PartialEq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OutputShapeInfo<'a> {
    /// Coordinates and strides of each box.
    #[slot(0)]
    pub slice_layout: Option<Rows<'a, TensorLayout<'a>>>,
    /// Start of each box, in bytes.
    #[slot(1)]
    pub slice_offset: Option<Scalars<'a, i32>>,
}

/// Fields that only an output has.
#[derive(Clone, PartialEq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OutputLayer<'a> {
    /// Places of its elements, tile by tile.
    #[slot(0)]
    pub layout: Option<OutputLayout<'a>>,
    /// Not used: the layer's own counts.
    #[slot(1)]
    pub data_type: DataType,
    /// Places of its elements, box by box; this counts if both are there.
    #[slot(2)]
    pub shape_info: Option<OutputShapeInfo<'a>>,
}

/// Fields that only an input has: none.
#[derive(Clone, PartialEq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct InputLayer {}

/// The kinds of layers.
#[derive(Clone, PartialEq, Debug, Union, Serialize, Deserialize)]
#[allow(clippy::large_enum_variant, reason = "a row is read, looked at and dropped; it is never kept in numbers")]
pub enum AnyLayer<'a> {
    /// Output, with the places of its elements in the device's buffer.
    #[tag(1)]
    OutputLayer(OutputLayer<'a>),
    /// Input, which has no fields of its own.
    #[tag(2)]
    InputLayer(InputLayer),
    /// A kind without a name yet.
    #[unknown]
    Unknown(u8),
}

/// An input or output.
#[derive(Clone, PartialEq, Debug, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Layer<'a> {
    /// Name, which a tensor of the surrounding model has too; unique in its executable.
    #[slot(0)]
    pub name: Option<Text<'a>>,
    /// Bytes of one execution and one batch entry, padding included.
    #[slot(1)]
    pub size_bytes: i32,
    /// Rows.
    #[slot(2)]
    pub y_dim: i32,
    /// Columns.
    #[slot(3)]
    pub x_dim: i32,
    /// Channels.
    #[slot(4)]
    pub z_dim: i32,
    /// Meaning of the layer's numbers.
    #[slot(5)]
    pub numerics: Option<NumericsConstants>,
    /// Element type of the layer.
    #[slot(6)]
    pub data_type: DataType,
    /// Fields of an input or of an output; they tell the kind of layer.
    #[slot(7)]
    pub any_layer: Option<AnyLayer<'a>>,
    /// Number of runs of the executable for one inference.
    #[slot(9, default = 1)]
    pub execution_count_per_inference: i32,
    /// True if the layer's buffer may stay in the device's own memory.
    #[slot(10)]
    pub cache_on_dram: bool,
    /// Ranges of coordinates, outermost dimension first.
    #[slot(11)]
    pub shape: Option<TensorShape<'a>>,
}

impl Default for Layer<'_> {
    fn default() -> Self {
        Layer {
            name: None,
            size_bytes: 0,
            y_dim: 0,
            x_dim: 0,
            z_dim: 0,
            numerics: None,
            data_type: DataType::default(),
            any_layer: None,
            execution_count_per_inference: 1,
            cache_on_dram: false,
            shape: None,
        }
    }
}

/// A program for the device.
#[derive(Clone, PartialEq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Executable<'a> {
    /// Not used.
    #[slot(0)]
    pub version: i32,
    /// Name of the executable.
    #[slot(1, near)]
    pub name: Option<Text<'a>>,
    /// Not used.
    #[slot(2)]
    pub serialized_model: Option<Blob<'a>>,
    /// Batch entries of one run.
    #[slot(3)]
    pub batch_size: i32,
    /// Bytes of memory it needs in addition to its layers.
    #[slot(4)]
    pub scratch_size_bytes: i32,
    /// Its instructions, in chunks.
    #[slot(5)]
    pub instruction_bitstreams: Option<Rows<'a, InstructionBitstream<'a>>>,
    /// Weights, in rows of 64 bytes.
    #[slot(6, page = 4096)]
    pub parameters: Option<Blob<'a>>,
    /// Actions of the host in a run, in order.
    #[slot(7, near)]
    pub dma_hints: Option<DmaHints<'a>>,
    /// Layers that go in.
    #[slot(8)]
    pub input_layers: Option<Rows<'a, Layer<'a>>>,
    /// Layers that come out.
    #[slot(9)]
    pub output_layers: Option<Rows<'a, Layer<'a>>>,
    /// The chip it is for.
    #[slot(10, near)]
    pub chip: Option<Text<'a>>,
    /// Replaced by the 64-bit number.
    #[slot(11)]
    pub estimated_cycles: i32,
    /// Bytes used of each tile's own memory.
    #[slot(12)]
    pub used_narrow_memory_bytes_per_tile: i32,
    /// Purpose of the executable.
    #[slot(13, name = "type")]
    #[serde(rename = "type")]
    pub kind: ExecutableType,
    /// Executables of one token may have their parameters in on-chip memory together.
    #[slot(14)]
    pub parameter_caching_token: u64,
    /// True if parameters go to the device's own memory.
    #[slot(15)]
    pub use_tpu_dram_for_parameters: bool,
    /// Duration of a run in cycles, as the compiler estimates it.
    #[slot(16)]
    pub estimated_cycles_64bit: i64,
}

/// The executables of a package.
#[derive(Clone, PartialEq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MultiExecutable<'a> {
    /// An [`Executable`] each.
    #[slot(0, page = 4096)]
    pub serialized_executables: Option<Blobs<'a>>,
}

/// A package for one of several chips.
#[derive(Clone, PartialEq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SerializedPackage<'a> {
    /// A [`Package`].
    #[slot(0, page = 4096)]
    pub serialized_package: Option<Blob<'a>>,
}

/// Root table of a package.
#[derive(Clone, PartialEq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Package<'a> {
    /// The oldest runtime that can run it.
    #[slot(0)]
    pub min_runtime_version: i32,
    /// A [`MultiExecutable`].
    #[slot(1, page = 4096)]
    pub serialized_multi_executable: Option<Blob<'a>>,
    /// Over the bytes of the multi-executable.
    #[slot(2, near)]
    pub signature: Option<Blob<'a>>,
    /// Version of the key that signed.
    #[slot(3)]
    pub keypair_version: i32,
    /// The compiler that made it.
    #[slot(4, near)]
    pub compiler_version: Option<Text<'a>>,
    /// Chip the package is for; -1 for several.
    #[slot(5)]
    pub virtual_chip_id: i32,
    /// Packages for several chips.
    #[slot(6)]
    pub multi_chip_package: Option<Rows<'a, SerializedPackage<'a>>>,
    /// A name for the model.
    #[slot(7, near)]
    pub model_identifier: Option<Text<'a>>,
}
