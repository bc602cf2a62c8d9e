//! Summary of a data file.

use edgepack_format::header::DataHeader;
use edgepack_format::ptd::{FlatData, FlatTensor, Generation, LegacyFlatTensor};
use edgepack_format::pte::{DataSegment, TensorShapeDynamism};
use edgepack_format::row::{Rows, Scalars};
use edgepack_format::scalar::ScalarType;
use edgepack_format::wire::Table;
use serde::Serialize;

use crate::{readable, spelling};

/// Facts about a data file that `inspect` shows.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct DataSummary {
    /// Bytes of the whole file.
    pub bytes: u64,
    /// Extended header; absent if there is none that can be read.
    pub header: Option<DataHeader>,
    /// Generation of the layout of tables.
    pub generation: Generation,
    /// Version of the schema that the file states.
    pub version: u32,
    /// Data under keys, in the order of the file.
    pub entries: Vec<EntrySummary>,
    /// Segments by index, with the number of entries in each.
    pub segments: Vec<DataSegmentSummary>,
}

/// Data under a key.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct EntrySummary {
    /// Key of the data; `?` if there is none.
    pub key: String,
    /// Type such as `f32[2, 2]`; absent for data that is not a tensor.
    #[serde(rename = "type")]
    pub layout: Option<String>,
    /// Index of the segment, of which there may be fewer.
    pub segment: u32,
    /// Bytes from the start of the segment; only older files say.
    pub within: Option<u64>,
    /// Bytes of the segment; absent if there is no such segment.
    pub bytes: Option<u64>,
}

/// Range of the file that entries are in.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct DataSegmentSummary {
    /// Offset of the segment in the file.
    pub offset: Option<u64>,
    /// Length of the segment in bytes.
    pub bytes: u64,
    /// Entries in it.
    pub entries: usize,
}

type Layout<'a> = (ScalarType, Option<Scalars<'a, i32>>, Option<Scalars<'a, u8>>);

impl DataSummary {
    /// Summarises a data file with this root table.
    pub fn new(generation: Generation, root: &Table<'_>, head: &[u8], bytes: u64) -> Self {
        let mut summary = DataSummary {
            bytes,
            header: DataHeader::read(head).ok(),
            generation,
            version: 0,
            entries: Vec::new(),
            segments: Vec::new(),
        };
        match generation {
            Generation::A | Generation::B => summary.legacy(root),
            Generation::C => summary.current(root),
            Generation::FlatData => summary.flat_data(root),
        }
        summary
    }

    fn current(&mut self, root: &Table<'_>) {
        self.version = root.get(FlatTensor::VERSION).unwrap_or_default();
        self.read_segments(root.get(FlatTensor::SEGMENTS).unwrap_or_default());
        for entry in readable::rows(&root.get(FlatTensor::NAMED_DATA).unwrap_or_default()).into_iter().flatten() {
            let layout = entry.tensor_layout.map(|layout| (layout.scalar_type, layout.sizes, layout.dim_order));
            self.entry(entry.key.as_deref(), entry.segment_index, None, layout);
        }
    }

    fn flat_data(&mut self, root: &Table<'_>) {
        self.version = root.get(FlatData::VERSION).unwrap_or_default();
        self.read_segments(root.get(FlatData::SEGMENTS).unwrap_or_default());
        for entry in readable::rows(&root.get(FlatData::NAMED_DATA).unwrap_or_default()).into_iter().flatten() {
            self.entry(entry.key.as_deref(), entry.segment_index, None, None);
        }
    }

    fn legacy(&mut self, root: &Table<'_>) {
        self.version = root.get(LegacyFlatTensor::VERSION).unwrap_or_default();
        self.read_segments(root.get(LegacyFlatTensor::SEGMENTS).unwrap_or_default());
        let named = root.get(LegacyFlatTensor::NAMED_DATA).unwrap_or_default();
        for entry in readable::rows(&named).into_iter().flatten() {
            self.entry(entry.key.as_deref(), entry.segment_index, None, None);
        }
        let tensors = root.get(LegacyFlatTensor::TENSORS).unwrap_or_default();
        for entry in readable::rows(&tensors).into_iter().flatten() {
            let layout = Some((entry.scalar_type, entry.sizes, entry.dim_order));
            self.entry(entry.fully_qualified_name.as_deref(), entry.segment_index, Some(entry.offset), layout);
        }
    }

    fn read_segments(&mut self, segments: Option<Rows<'_, DataSegment>>) {
        let base = self.header.map_or(0, |header| header.segment_base_offset);
        self.segments = readable::rows(&segments)
            .into_iter()
            .map(|segment| {
                let segment = segment.unwrap_or_default();
                DataSegmentSummary { offset: base.checked_add(segment.offset), bytes: segment.size, entries: 0 }
            })
            .collect();
    }

    fn entry(&mut self, key: Option<&str>, index: u32, within: Option<u64>, layout: Option<Layout<'_>>) {
        let segment = self.segments.get_mut(index as usize);
        let bytes = segment.map(|segment| {
            segment.entries += 1;
            segment.bytes
        });
        let layout = layout.map(|(scalar_type, sizes, order)| {
            let sizes: Vec<i64> = sizes.iter().flat_map(|sizes| sizes.iter()).map(i64::from).collect();
            let order: Vec<u8> = order.iter().flat_map(|order| order.iter()).collect();
            spelling::shape(scalar_type, &sizes, &order, TensorShapeDynamism::STATIC)
        });
        let key = spelling::name(key.unwrap_or("?"));
        self.entries.push(EntrySummary { key, layout, segment: index, within, bytes });
    }
}
