//! Data files that break one rule each.

use edgepack_builder::raw::{self, Options};
use edgepack_format::ptd::{
    BlobEntry, DataSegment, FlatTensor, LegacyFlatTensor, NamedData, TensorLayout, TensorMetadata,
};
use edgepack_format::rules::ptd as rule;
use edgepack_format::scalar::ScalarType;

use crate::hostile_data::{Case, patch, position};

const SEGMENTS: [&[u8]; 2] = [&[7; 48], &[9; 12]];

fn layout(sizes: &[i32], dim_order: &[u8]) -> TensorLayout<'static> {
    TensorLayout {
        scalar_type: ScalarType::FLOAT,
        sizes: Some(sizes.to_vec().into()),
        dim_order: Some(dim_order.to_vec().into()),
    }
}

fn entry(key: &'static str, segment_index: u32, layout: Option<TensorLayout<'static>>) -> NamedData<'static> {
    NamedData { key: Some(key.into()), segment_index, tensor_layout: layout }
}

fn entries() -> Vec<NamedData<'static>> {
    vec![
        entry("weight", 0, Some(layout(&[3, 4], &[0, 1]))),
        entry("bias", 1, Some(layout(&[3], &[0]))),
        entry("opaque", 1, None),
    ]
}

fn segments() -> Vec<DataSegment> {
    raw::segments(&SEGMENTS, &Options::DEFAULT).unwrap()
}

fn write(segments: Option<Vec<DataSegment>>, entries: Option<Vec<NamedData<'static>>>) -> Vec<u8> {
    let row = FlatTensor { version: 0, segments: segments.map(Into::into), named_data: entries.map(Into::into) };
    raw::flat_tensor(&row, &SEGMENTS, &Options::DEFAULT).unwrap()
}

fn good() -> Vec<u8> {
    write(Some(segments()), Some(entries()))
}

/// A good file with one entry changed.
fn with_entry(index: usize, change: impl FnOnce(&mut NamedData<'static>)) -> Vec<u8> {
    let mut entries = entries();
    change(&mut entries[index]);
    write(Some(segments()), Some(entries))
}

/// A good file whose first tensor has this layout.
fn with_layout(layout: TensorLayout<'static>) -> Vec<u8> {
    with_entry(0, |entry| entry.tensor_layout = Some(layout))
}

fn with_segment(index: usize, offset: u64, size: u64) -> Vec<u8> {
    let mut segments = segments();
    segments[index] = DataSegment { offset, size };
    write(Some(segments), Some(entries()))
}

fn legacy(named: bool, offset: u64) -> Vec<u8> {
    let tensor = |name: &'static str, sizes: &[i32], order: &[u8], offset| TensorMetadata {
        fully_qualified_name: Some(name.into()),
        scalar_type: ScalarType::FLOAT,
        sizes: Some(sizes.to_vec().into()),
        dim_order: Some(order.to_vec().into()),
        segment_index: 0,
        offset,
    };
    let row = LegacyFlatTensor {
        version: 0,
        tensor_alignment: 16,
        tensors: Some(vec![tensor("weight", &[2, 4], &[0, 1], 0), tensor("bias", &[3], &[0], offset)].into()),
        segments: Some(segments().into()),
        named_data: named.then(|| vec![BlobEntry { key: Some("opaque".into()), segment_index: 1 }].into()),
    };
    raw::legacy_flat_tensor(&row, &SEGMENTS, &Options::DEFAULT).unwrap()
}

pub fn cases() -> Vec<Case> {
    [segment_cases(), entry_cases(), generation_cases(), header_cases(), structure_cases()]
        .into_iter()
        .flatten()
        .collect()
}

fn segment_cases() -> Vec<Case> {
    let narrow = Options::DEFAULT.segment_alignment(4);
    let rows = FlatTensor {
        version: 0,
        segments: Some(raw::segments(&[b"abcd", b"efgh"], &narrow).unwrap().into()),
        named_data: Some(vec![entry("a", 0, None), entry("b", 1, None)].into()),
    };
    let swapped = segments().into_iter().rev().collect();
    let unaligned = raw::flat_tensor(&rows, &[b"abcd", b"efgh"], &narrow).unwrap();
    vec![
        Case::new("segments_absent", &rule::SEGMENTS, "segments", write(None, Some(vec![]))),
        Case::new("segment_wraps", &rule::SEGMENT_RANGE, "segments[1]", with_segment(1, u64::MAX - 7, 12)),
        Case::new("segment_long", &rule::SEGMENT_RANGE, "segments[1]", with_segment(1, 128, 1 << 40)),
        Case::new("segment_beyond_area", &rule::SEGMENT_RANGE, "segments[1]", with_segment(1, 328, 12)),
        Case::new("segments_overlap", &rule::SEGMENT_ORDER, "segments[1]", with_segment(1, 32, 12)),
        Case::new("segments_unsorted", &rule::SEGMENT_ORDER, "segments[1]", write(Some(swapped), Some(vec![]))),
        Case::new("segment_unaligned", &rule::SEGMENT_ALIGNMENT, "segments[1]", unaligned),
        Case::new(
            "segment_unused",
            &rule::SEGMENT_UNUSED,
            "segments[1]",
            write(Some(segments()), Some(entries()[..1].to_vec())),
        ),
    ]
}

fn entry_cases() -> Vec<Case> {
    let first = "named_data[0]";
    let dtype = TensorLayout { scalar_type: ScalarType(77), ..layout(&[3, 4], &[0, 1]) };
    let no_sizes = TensorLayout { sizes: None, ..layout(&[], &[0, 1]) };
    let no_order = TensorLayout { dim_order: None, ..layout(&[3, 4], &[]) };
    let rank_17 = layout(&[1; 17], &std::array::from_fn::<u8, 17, _>(|dim| dim as u8));
    vec![
        Case::new("entries_absent", &rule::ENTRIES, "named_data", write(Some(segments()), None)),
        Case::new("key_absent", &rule::KEY, "named_data[1]", with_entry(1, |entry| entry.key = None)),
        Case::new(
            "key_twice",
            &rule::KEY_DUPLICATE,
            "named_data[2]",
            with_entry(2, |entry| entry.key = Some("weight".into())),
        ),
        Case::new(
            "empty_key_twice",
            &rule::KEY_DUPLICATE,
            "named_data[1]",
            write(Some(segments()), Some(vec![entry("", 0, None), entry("", 1, None)])),
        ),
        Case::new(
            "segment_index",
            &rule::ENTRY_SEGMENT,
            "named_data[2]",
            with_entry(2, |entry| entry.segment_index = 77),
        ),
        Case::new("layout_without_sizes", &rule::LAYOUT_PARTS, first, with_layout(no_sizes)),
        Case::new("layout_without_dim_order", &rule::LAYOUT_PARTS, first, with_layout(no_order)),
        Case::new("layout_dtype", &rule::LAYOUT, first, with_layout(dtype)),
        Case::new("layout_negative_size", &rule::LAYOUT, first, with_layout(layout(&[3, -4], &[0, 1]))),
        Case::new("layout_dim_order_twice", &rule::LAYOUT, first, with_layout(layout(&[3, 4], &[0, 0]))),
        Case::new("layout_dim_order_range", &rule::LAYOUT, first, with_layout(layout(&[3, 4], &[0, 2]))),
        Case::new("layout_dim_order_short", &rule::LAYOUT, first, with_layout(layout(&[3, 4], &[0]))),
        Case::new("layout_rank_17", &rule::LAYOUT, first, with_layout(rank_17)),
        Case::new("layout_overflow", &rule::LAYOUT, first, with_layout(layout(&[i32::MAX; 3], &[0, 1, 2]))),
        Case::new("layout_longer_than_data", &rule::LAYOUT_LONG, first, with_layout(layout(&[4, 4], &[0, 1]))),
        Case::new("segment_shortened", &rule::LAYOUT_LONG, first, with_segment(0, 0, 4)),
        Case::new("layout_shorter_than_data", &rule::LAYOUT_SHORT, first, with_layout(layout(&[2, 4], &[0, 1]))),
        Case::new("legacy_tensor_beyond", &rule::TENSOR_RANGE, "tensors[1]", legacy(true, 40)).accepting_all(),
        Case::new("legacy_tensor_wraps", &rule::TENSOR_RANGE, "tensors[1]", legacy(false, u64::MAX - 3))
            .accepting_all(),
    ]
}

fn generation_cases() -> Vec<Case> {
    let version = FlatTensor { version: 1, segments: Some(segments().into()), named_data: Some(entries().into()) };
    let version = raw::flat_tensor(&version, &SEGMENTS, &Options::DEFAULT).unwrap();
    let flat_data = edgepack_format::ptd::FlatData {
        version: 0,
        named_data: Some(vec![BlobEntry { key: Some("a".into()), segment_index: 0 }].into()),
        segments: Some(segments().into()),
    };
    let flat_data = raw::flat_data(&flat_data, &SEGMENTS, &Options::DEFAULT).unwrap();
    vec![
        Case::new("generation_a", &rule::LEGACY_REFUSED, "", legacy(false, 32)),
        Case::new("generation_b", &rule::LEGACY_REFUSED, "", legacy(true, 32)),
        Case::new("generation_b_accepted", &rule::LEGACY, "", legacy(true, 32)).accepting_all(),
        Case::new("flat_data_unidentified", &rule::UNIDENTIFIED, "", patch(flat_data, 4, &[0; 4])).accepting_all(),
        Case::new("version", &rule::VERSION, "version", version),
    ]
}

fn header_cases() -> Vec<Case> {
    let file = good;
    let long = |at, value: u64| patch(file(), at, &value.to_le_bytes());
    let word = |at, value: u32| patch(file(), at, &value.to_le_bytes());
    let (offset, size, base, data) = (16, 24, 32, 40);
    let cut = |less: usize| {
        let mut bytes = file();
        bytes.truncate(bytes.len() - less);
        bytes
    };
    let (region, area) = ("header.flatbuffer_size", "header.segment_data_size");
    vec![
        Case::new("empty", &rule::SHORT, "", Vec::new()),
        Case::new("short", &rule::SHORT, "", file()[..63].to_vec()),
        Case::new("identifier", &rule::IDENTIFIER, "", patch(file(), 4, b"XXXX")),
        Case::new("header_magic", &rule::HEADER, "header", patch(file(), 8, b"XXXX")),
        Case::new("header_length", &rule::HEADER, "header", word(12, 39)),
        Case::new("flatbuffer_offset_zero", &rule::FLATBUFFER_OFFSET, "header.flatbuffer_offset", long(offset, 0)),
        Case::new("flatbuffer_offset_wraps", &rule::REGION, region, long(offset, u64::MAX)),
        Case::new("flatbuffer_size_zero", &rule::REGION, region, long(size, 0)),
        Case::new("flatbuffer_size_huge", &rule::REGION, region, long(size, 1 << 60)),
        Case::new("cut_in_flatbuffer", &rule::REGION, region, file()[..200].to_vec()),
        Case::new("root_zero", &rule::ROOT, "", word(0, 0)),
        Case::new("root_in_header", &rule::ROOT, "", word(0, 8)),
        Case::new("root_at_end", &rule::ROOT, "", word(0, u32::MAX)),
        Case::new("base_zero", &rule::BASE, "header.segment_base_offset", long(base, 0)),
        Case::new("base_in_flatbuffer", &rule::BASE, "header.segment_base_offset", long(base, 64)),
        Case::new("base_overflows", &rule::TRUNCATED, area, long(base, u64::MAX)),
        Case::new("data_size_overflows", &rule::TRUNCATED, area, long(data, u64::MAX)),
        Case::new("last_byte_missing", &rule::TRUNCATED, area, cut(1)),
        Case::new("trailing", &rule::TRAILING, "", [file(), vec![0]].concat()),
    ]
}

fn structure_cases() -> Vec<Case> {
    let file = good();
    let key = position(&file, b"weight\0");
    let vtable_of_root = {
        let root = u32::from_le_bytes(file[..4].try_into().unwrap()) as usize;
        (root as i64 - i64::from(i32::from_le_bytes(file[root..root + 4].try_into().unwrap()))) as usize
    };
    vec![
        Case::new("key_unterminated", &rule::MALFORMED, "named_data[0].key", patch(file.clone(), key + 6, b"x")),
        Case::new("key_length", &rule::MALFORMED, "named_data[0].key", patch(file.clone(), key - 4, &[0xff; 4])),
        Case::new("vtable_length", &rule::MALFORMED, "", patch(file.clone(), vtable_of_root, &[3, 0])),
        Case::new("shifted_by_4", &rule::MISALIGNED, "", shifted(&file)),
        Case::new("key_not_utf8", &rule::TEXT, "named_data[0].key", patch(file.clone(), key, b"\xff")),
        Case::new("budget", &rule::LIMITS, "named_data[0].tensor_layout.sizes", file).visits(8),
    ]
}

/// The file with the flatbuffer two bytes further on: a header padded to 50.
fn shifted(file: &[u8]) -> Vec<u8> {
    let root = u32::from_le_bytes(file[..4].try_into().unwrap()) + 2;
    let mut bytes = [&file[..56], &[0, 0], &file[56..]].concat();
    // The padding in front of the segments becomes two bytes shorter.
    let pad = u64::from_le_bytes(file[32..40].try_into().unwrap()) as usize;
    bytes.drain(pad..pad + 2);
    let bytes = patch(bytes, 0, &root.to_le_bytes());
    patch(bytes, 16, &50u64.to_le_bytes())
}
