//! Segments, constants, initial values and named data that are not what they should be.

use edgepack_format::pte::{NamedData, SubsegmentOffsets};
use edgepack_format::rules::pte as rule;
use edgepack_format::scalar::ScalarType;

use super::base::{buffer, float};
use super::{Case, Rows, changed, changed_full};

fn segments() -> Vec<Case> {
    vec![
        changed_full("segment_wraps", &rule::SEGMENT_RANGE, "segments[3]", |rows| {
            rows.segment(3).offset = u64::MAX - 7
        }),
        changed_full("segment_beyond_area", &rule::SEGMENT_RANGE, "segments[3]", |rows| rows.segment(3).size = 5),
        changed_full("segment_huge", &rule::SEGMENT_RANGE, "segments[3]", |rows| rows.segment(3).size = u64::MAX),
        changed_full("segments_overlap", &rule::SEGMENT_ORDER, "segments[1]", |rows| rows.segment(0).size = 17),
        changed_full("segments_unsorted", &rule::SEGMENT_ORDER, "segments[3]", |rows| {
            let offset = rows.segment(2).offset;
            rows.segment(2).offset = rows.segment(3).offset;
            rows.segment(3).offset = offset;
        }),
        changed("segment_without_area", &rule::SEGMENT_BASE, "segments[0]", |rows| rows.segment(0).size = 4),
        changed_full("segment_unused", &rule::SEGMENT_UNUSED, "segments[3]", |rows| rows.program.named_data = None),
        changed_full("segment_unaligned", &rule::SEGMENT_ALIGNMENT, "segments[3]", |rows| {
            rows.segment(3).offset += 2;
            rows.segment(3).size -= 2;
        }),
    ]
}

fn offsets(list: &[u64]) -> impl FnOnce(&mut Rows) {
    let list = list.to_vec();
    move |rows| rows.constants().offsets = Some(list.into())
}

fn constants() -> Vec<Case> {
    const INDEX: &str = "execution_plan[0].values[1].val.data_buffer_idx";
    vec![
        changed_full("constants_twice", &rule::CONSTANTS_TWICE, "constant_buffer", |rows| {
            rows.program.constant_buffer = Some(vec![buffer(0), buffer(16)].into());
        }),
        changed_full("constants_inline", &rule::CONSTANTS_INLINE, "constant_buffer", |rows| {
            rows.program.constant_buffer = Some(vec![buffer(0), buffer(16)].into());
            rows.program.constant_segment = None;
        }),
        changed("constant_segment_absent", &rule::CONSTANTS_INLINE, "constant_segment", |rows| {
            rows.program.constant_segment = None;
        }),
        changed("constant_offsets_empty", &rule::CONSTANTS_INLINE, "constant_segment", offsets(&[])),
        changed_full("constant_inline_short", &rule::CONSTANT_RANGE, INDEX, |rows| {
            rows.program.constant_buffer = Some(vec![buffer(0), buffer(15)].into());
            rows.program.constant_segment = None;
        }),
        changed_full("constant_segment_9", &rule::SUBSEGMENT_INDEX, "constant_segment.segment_index", |rows| {
            rows.constants().segment_index = 9;
        }),
        changed_full("segments_absent", &rule::SUBSEGMENT_INDEX, "constant_segment.segment_index", |rows| {
            rows.program.segments = None;
        }),
        changed_full("offset_first", &rule::SUBSEGMENT_FIRST, "constant_segment.offsets[0]", offsets(&[4, 4])),
        changed_full("offsets_descend", &rule::SUBSEGMENT_ORDER, "constant_segment.offsets[2]", offsets(&[0, 8, 4])),
        changed_full("offset_beyond", &rule::SUBSEGMENT_RANGE, "constant_segment.offsets[2]", offsets(&[0, 0, 17])),
        changed_full("constant_index", &rule::CONSTANT_INDEX, INDEX, |rows| rows.tensor(1).data_buffer_idx = 2),
        changed("constant_of_none", &rule::CONSTANT_INDEX, "execution_plan[0].values[3].val.data_buffer_idx", |rows| {
            rows.tensor(3).allocation_info = None;
            rows.tensor(3).data_buffer_idx = 1;
        }),
        changed_full("constant_long", &rule::CONSTANT_RANGE, INDEX, |rows| {
            rows.tensor(1).sizes = Some(vec![2, 3].into());
        }),
        changed_full("constant_shifted", &rule::CONSTANT_RANGE, INDEX, offsets(&[0, 4])),
        changed_full("constant_unaligned", &rule::CONSTANT_ALIGNMENT, INDEX, |rows| {
            rows.constants().offsets = Some(vec![0, 2].into());
            rows.tensor(1).sizes = Some(vec![1, 3].into());
        }),
    ]
}

fn initial() -> Vec<Case> {
    const INDEX: &str = "execution_plan[0].values[3].val.data_buffer_idx";
    let second = |segment_index| SubsegmentOffsets { segment_index, offsets: Some(vec![0].into()) };
    vec![
        changed_full("initial_lists", &rule::MUTABLE_SEGMENTS, "mutable_data_segments", |rows| {
            rows.initial().push(second(2));
        }),
        changed_full("initial_shared", &rule::MUTABLE_SHARED, "mutable_data_segments[1].segment_index", |rows| {
            rows.initial().push(second(1));
        }),
        changed_full("initial_segment_9", &rule::SUBSEGMENT_INDEX, "mutable_data_segments[0].segment_index", |rows| {
            rows.initial()[0].segment_index = 9;
        }),
        changed_full("initial_index", &rule::INITIAL_INDEX, INDEX, |rows| rows.tensor(3).data_buffer_idx = 2),
        changed_full("initial_absent", &rule::INITIAL_INDEX, INDEX, |rows| rows.program.mutable_data_segments = None),
        changed_full("initial_list_5", &rule::INITIAL_INDEX, INDEX, |rows| rows.extra(3).mutable_data_segments_idx = 5),
        changed_full("initial_list_1", &rule::INITIAL_LIST, INDEX, |rows| {
            rows.initial().insert(0, second(2));
            rows.extra(3).mutable_data_segments_idx = 1;
        }),
        changed_full("initial_long", &rule::INITIAL_RANGE, INDEX, |rows| {
            rows.tensor(3).scalar_type = ScalarType::DOUBLE;
        }),
        changed_full(
            "initial_overflow",
            &rule::INITIAL_RANGE,
            "execution_plan[0].values[0].val.data_buffer_idx",
            |rows| {
                let place = rows.tensor(0).allocation_info;
                *rows.tensor(0) = float(&[i32::MAX, i32::MAX, 4]);
                rows.tensor(0).allocation_info = place;
                rows.tensor(0).data_buffer_idx = 1;
                rows.tensor(0).shape_dynamism = edgepack_format::pte::TensorShapeDynamism::DYNAMIC_BOUND;
            },
        ),
    ]
}

fn named() -> Vec<Case> {
    let entry = |key: &'static str, segment_index| NamedData { key: Some(key.into()), segment_index };
    vec![
        changed_full("key_absent", &rule::NAMED_KEY, "named_data[0].key", |rows| rows.named()[0].key = None),
        changed_full("key_twice", &rule::NAMED_DUPLICATE, "named_data[2].key", |rows| {
            rows.named().extend([entry("another", 3), entry("key", 2)]);
        }),
        changed_full("key_segment_9", &rule::NAMED_SEGMENT, "named_data[0].segment_index", |rows| {
            rows.named()[0].segment_index = 9;
        }),
    ]
}

pub fn cases() -> Vec<Case> {
    [segments(), constants(), initial(), named()].into_iter().flatten().collect()
}
