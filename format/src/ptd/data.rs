//! Data files as a whole: from bytes to a verified view with a key index.
//!
//! Invariant: in a [`DataRef`] that [`DataRef::parse`] returned every entry has a key, a segment inside the file and,
//! if it is a tensor, a layout that fits its bytes.

use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

use super::{BlobEntry, DataSegment, FlatData, FlatTensor, Generation, LegacyFlatTensor, NamedData, TensorMetadata};
use crate::extent::FileExtent;
use crate::header::{DataHeader, HEAD_LEN};
use crate::row::{Rows, Scalars};
use crate::scalar::ScalarType;
use crate::tensor::{LayoutError, MAX_RANK, TensorLayout};
use crate::wire;

/// The identifier of a `.ptd` file, at byte 4.
pub const IDENTIFIER: [u8; 4] = *b"FT01";

/// The identifier of a FlatData file, at byte 4.
pub const FLAT_DATA_IDENTIFIER: [u8; 4] = *b"FD01";

/// Files to read besides current ones that say what they are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Accept {
    /// `FT01` files from before June 2025.
    pub legacy: bool,
    /// Files with no known identifier, as FlatData.
    pub bare_flat_data: bool,
}

impl Accept {
    /// Everything that can be read.
    pub const ALL: Accept = Accept { legacy: true, bare_flat_data: true };
}

/// Returns the number of bytes, from the start of the file, that hold the flatbuffer: [`DataRef::parse`] needs at least
/// these. A head of [`HEAD_LEN`](crate::header::HEAD_LEN) bytes is enough to tell.
pub fn data_len(head: &[u8], extent: FileExtent) -> u64 {
    match DataHeader::read(head).ok().and_then(|header| header.region_end()) {
        Some(end) => end.max(HEAD_LEN as u64).min(extent.len),
        None => extent.len,
    }
}

/// The root row of a data file.
#[derive(Clone, PartialEq, Debug)]
pub enum DataRoot<'a> {
    /// Of a current `.ptd` file.
    Current(FlatTensor<'a>),
    /// Of an older one.
    Legacy(LegacyFlatTensor<'a>),
    /// Of a FlatData file.
    FlatData(FlatData<'a>),
}

impl<'a> DataRoot<'a> {
    /// Returns the version of the schema that the file states; 0 is known.
    pub fn version(&self) -> u32 {
        match self {
            DataRoot::Current(root) => root.version,
            DataRoot::Legacy(root) => root.version,
            DataRoot::FlatData(root) => root.version,
        }
    }

    /// The list of segments.
    pub fn segments(&self) -> Option<&Rows<'a, DataSegment>> {
        match self {
            DataRoot::Current(root) => root.segments.as_ref(),
            DataRoot::Legacy(root) => root.segments.as_ref(),
            DataRoot::FlatData(root) => root.segments.as_ref(),
        }
    }

    /// The entries that are not tensors by their place in the file, then those that are, in lookup order.
    pub(super) fn lists(&self) -> [Option<List<'a>>; 2] {
        match self {
            DataRoot::Current(root) => [root.named_data.clone().map(List::Current), None],
            DataRoot::FlatData(root) => [root.named_data.clone().map(List::Blobs), None],
            DataRoot::Legacy(root) => {
                [root.named_data.clone().map(List::Blobs), root.tensors.clone().map(List::Tensors)]
            }
        }
    }
}

/// A list of entries.
pub(super) enum List<'a> {
    Current(Rows<'a, NamedData<'a>>),
    Blobs(Rows<'a, BlobEntry<'a>>),
    Tensors(Rows<'a, TensorMetadata<'a>>),
}

/// One entry, whatever table it came from.
pub(super) struct RawEntry<'a> {
    pub key: Option<&'a str>,
    pub segment: u32,
    /// Bytes from the start of the segment, where entries say so.
    pub within: Option<u64>,
    pub layout: Option<RawLayout<'a>>,
    /// Position of the entry's table.
    pub at: u32,
}

/// Element type, sizes and dim order, unchecked.
pub(super) struct RawLayout<'a> {
    pub scalar_type: ScalarType,
    pub sizes: Option<Scalars<'a, i32>>,
    pub dim_order: Option<Scalars<'a, u8>>,
}

impl RawLayout<'_> {
    /// The layout, if the three describe a tensor.
    pub fn check(&self) -> Result<TensorLayout, LayoutError> {
        let sizes = self.sizes.as_ref().map_or(0, |sizes| sizes.len());
        if sizes > MAX_RANK {
            return Err(LayoutError::Rank(sizes));
        }
        let order = self.dim_order.as_ref().map(|order| order.to_le_bytes()).unwrap_or_default();
        TensorLayout::from_wire(self.scalar_type, self.sizes.iter().flat_map(|sizes| sizes.iter()), &order)
    }
}

impl<'a> List<'a> {
    /// Its name in the schema.
    pub fn name(&self) -> &'static str {
        match self {
            List::Tensors(_) => "tensors",
            _ => "named_data",
        }
    }

    fn tables(&self) -> wire::Tables<'a> {
        match self {
            List::Current(rows) => rows.tables(),
            List::Blobs(rows) => rows.tables(),
            List::Tensors(rows) => rows.tables(),
        }
    }

    pub fn len(&self) -> usize {
        self.tables().len()
    }

    pub fn entry(&self, index: usize) -> wire::Result<RawEntry<'a>> {
        let table = self.tables().get(index)?;
        let at = table.offset();
        Ok(match self {
            List::Current(_) => RawEntry {
                key: key(&table, NamedData::KEY.index)?,
                segment: table.get(NamedData::SEGMENT_INDEX)?,
                within: None,
                layout: table.get(NamedData::TENSOR_LAYOUT)?.map(|layout| RawLayout {
                    scalar_type: layout.scalar_type,
                    sizes: layout.sizes,
                    dim_order: layout.dim_order,
                }),
                at,
            },
            List::Blobs(_) => RawEntry {
                key: key(&table, BlobEntry::KEY.index)?,
                segment: table.get(BlobEntry::SEGMENT_INDEX)?,
                within: None,
                layout: None,
                at,
            },
            List::Tensors(_) => RawEntry {
                key: key(&table, TensorMetadata::FULLY_QUALIFIED_NAME.index)?,
                segment: table.get(TensorMetadata::SEGMENT_INDEX)?,
                within: Some(table.get(TensorMetadata::OFFSET)?),
                layout: Some(RawLayout {
                    scalar_type: table.get(TensorMetadata::SCALAR_TYPE)?,
                    sizes: table.get(TensorMetadata::SIZES)?,
                    dim_order: table.get(TensorMetadata::DIM_ORDER)?,
                }),
                at,
            },
        })
    }
}

/// The text of a slot, borrowed from the file.
fn key<'a>(table: &wire::Table<'a>, slot: u16) -> wire::Result<Option<&'a str>> {
    Ok(table.string(slot)?.and_then(|text| core::str::from_utf8(text.bytes()).ok()))
}

/// Named data: where its bytes are and what they look like.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry<'a> {
    /// Key of the entry, unique in the file.
    pub key: &'a str,
    /// Index into the segments of the file.
    pub segment: u32,
    /// Its bytes, from the start of the file.
    pub range: Range<u64>,
    /// Tensor layout of the data; `None` for data that is not a tensor.
    pub layout: Option<TensorLayout>,
}

/// A data file that satisfies the rules, borrowed from the bytes before its segments.
#[derive(Clone)]
pub struct DataRef<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) header: DataHeader,
    pub(super) generation: Generation,
    pub(super) root: DataRoot<'a>,
    /// Keys in lookup order.
    pub(super) keys: Vec<&'a str>,
    /// Places in `keys`, by key; equal keys in lookup order.
    pub(super) sorted: Vec<u32>,
}

impl<'a> DataRef<'a> {
    /// The flatbuffer with the header in it.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The extended header.
    pub fn header(&self) -> DataHeader {
        self.header
    }

    /// Returns the generation of the file's tables.
    pub fn generation(&self) -> Generation {
        self.generation
    }

    /// The root row.
    pub fn root(&self) -> &DataRoot<'a> {
        &self.root
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// All keys, in the order of the file.
    pub fn keys(&self) -> &[&'a str] {
        &self.keys
    }

    /// Entry `index`, in the order of [`DataRef::keys`].
    pub fn entry(&self, index: usize) -> Option<Entry<'a>> {
        let key = *self.keys.get(index)?;
        let mut rest = index;
        for list in self.root.lists().into_iter().flatten() {
            if let Some(beyond) = rest.checked_sub(list.len()) {
                rest = beyond;
                continue;
            }
            let entry = list.entry(rest).ok()?;
            let layout = entry.layout.as_ref().map(RawLayout::check).transpose().ok()?;
            let segment = self.segment_range(entry.segment)?;
            let range = match (entry.within, &layout) {
                (Some(within), Some(layout)) => {
                    let start = segment.start.checked_add(within)?;
                    start..start.checked_add(layout.byte_len() as u64)?
                }
                _ => segment,
            };
            return Some(Entry { key, segment: entry.segment, range, layout });
        }
        None
    }

    /// The place of this key in [`DataRef::keys`], by binary search.
    pub fn find(&self, key: &str) -> Option<usize> {
        let at = self.sorted.partition_point(|&index| self.keys.get(index as usize).is_some_and(|other| *other < key));
        let index = *self.sorted.get(at)? as usize;
        (*self.keys.get(index)? == key).then_some(index)
    }

    /// The entry of this key.
    pub fn lookup(&self, key: &str) -> Option<Entry<'a>> {
        self.entry(self.find(key)?)
    }

    /// Returns the range of a segment in the file; `None` if there is no such segment or its range overflows.
    pub fn segment_range(&self, index: u32) -> Option<Range<u64>> {
        let segment = self.root.segments()?.get(index as usize).ok()?;
        let start = self.header.segment_base_offset.checked_add(segment.offset)?;
        Some(start..start.checked_add(segment.size)?)
    }
}

impl fmt::Debug for DataRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DataRef({} bytes, {} entries, {:?})", self.bytes.len(), self.len(), self.generation)
    }
}
