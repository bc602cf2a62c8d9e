//! Tables that exporters wrote as `FT01` before June 2025: the same identifier, header and version over other slots.
//!
//! Generation A has the slots up to `segments`, generation B adds `named_data`. Read as a current file, the scalar
//! `tensor_alignment` would pass for an offset; [`Generation::of`](super::Generation::of) tells them apart first.

use serde::{Deserialize, Serialize};

use crate::row::{Rows, Scalars, Table, Text};
use crate::scalar::ScalarType;

use super::{BlobEntry, DataSegment};

/// A tensor inside a segment.
#[derive(Clone, PartialEq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TensorMetadata<'a> {
    /// Key of the tensor.
    #[slot(0)]
    pub fully_qualified_name: Option<Text<'a>>,
    /// Element type.
    #[slot(1)]
    pub scalar_type: ScalarType,
    /// Elements along each dimension.
    #[slot(2)]
    pub sizes: Option<Scalars<'a, i32>>,
    /// Dimensions from outermost to innermost in memory.
    #[slot(3)]
    pub dim_order: Option<Scalars<'a, u8>>,
    /// Index of the segment.
    #[slot(4)]
    pub segment_index: u32,
    /// Bytes from the start of the segment.
    #[slot(5)]
    pub offset: u64,
}

/// The root of a `.ptd` file of generation A or B.
#[derive(Clone, PartialEq, Debug, Default, Table, Serialize, Deserialize)]
#[table(name = "FlatTensor")]
#[serde(default, deny_unknown_fields)]
pub struct LegacyFlatTensor<'a> {
    /// Always 0.
    #[slot(0)]
    pub version: u32,
    /// Alignment of tensors inside a segment.
    #[slot(1)]
    pub tensor_alignment: u32,
    /// Tensors of the file.
    #[slot(2)]
    pub tensors: Option<Rows<'a, TensorMetadata<'a>>>,
    /// Ranges of the file after the flatbuffer.
    #[slot(3)]
    pub segments: Option<Rows<'a, DataSegment>>,
    /// Data that is not a tensor (generation B).
    #[slot(4)]
    pub named_data: Option<Rows<'a, BlobEntry<'a>>>,
}
