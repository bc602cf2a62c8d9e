//! The tables of data files: the current `FlatTensor`, and `FlatData`. What older exporters wrote under the same
//! identifier is in [`legacy`](super::legacy).

use serde::{Deserialize, Serialize};

use crate::row::{Rows, Scalars, Table, Text};
use crate::scalar::ScalarType;

pub use crate::pte::{DataSegment, NamedData as BlobEntry};

/// Tensor layout of an entry's bytes.
#[derive(Clone, PartialEq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TensorLayout<'a> {
    /// Element type.
    #[slot(0)]
    pub scalar_type: ScalarType,
    /// Elements along each dimension.
    #[slot(1)]
    pub sizes: Option<Scalars<'a, i32>>,
    /// Dimensions from outermost to innermost in memory.
    #[slot(2)]
    pub dim_order: Option<Scalars<'a, u8>>,
}

/// A key that names a segment.
#[derive(Clone, PartialEq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NamedData<'a> {
    /// Key of the entry, unique in the file.
    #[slot(0)]
    pub key: Option<Text<'a>>,
    /// Index of the segment.
    #[slot(1)]
    pub segment_index: u32,
    /// Tensor layout of the bytes; absent for data that is not a tensor.
    #[slot(2)]
    pub tensor_layout: Option<TensorLayout<'a>>,
}

/// The root of a `.ptd` file.
#[derive(Clone, PartialEq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FlatTensor<'a> {
    /// Always 0 so far.
    #[slot(0)]
    pub version: u32,
    /// Ranges of the file after the flatbuffer.
    #[slot(1)]
    pub segments: Option<Rows<'a, DataSegment>>,
    /// Entries of the file.
    #[slot(2)]
    pub named_data: Option<Rows<'a, NamedData<'a>>>,
}

/// The root of a FlatData file: [`FlatTensor`] with two slots swapped, and entries without layouts.
#[derive(Clone, PartialEq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FlatData<'a> {
    /// Always 0 so far.
    #[slot(0)]
    pub version: u32,
    /// Entries of the file.
    #[slot(1)]
    pub named_data: Option<Rows<'a, BlobEntry<'a>>>,
    /// Ranges of the file after the flatbuffer.
    #[slot(2)]
    pub segments: Option<Rows<'a, DataSegment>>,
}
