//! Heads, regions, and the structure of the flatbuffer.

use edgepack_builder::xnnpack::Storage;
use edgepack_format::rules::xnnpack as rule;

use super::base::{small, small_bytes};
use crate::hostile_data::{Case, patch, position};

/// Offsets of the header's fields.
const LENGTH: usize = 8;
const OFFSET: usize = 10;
const SIZE: usize = 14;
const CONSTANTS: usize = 18;

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..][..4].try_into().unwrap())
}

/// The payload with its flatbuffer so many bytes further on.
fn moved(by: u32) -> Vec<u8> {
    let bytes = small().write();
    let (offset, constants) = (u32_at(&bytes, OFFSET) + by, u32_at(&bytes, CONSTANTS) + by);
    let bytes = patch(patch(bytes, OFFSET, &offset.to_le_bytes()), CONSTANTS, &constants.to_le_bytes());
    [&bytes[..32], &vec![0; by as usize], &bytes[32..]].concat()
}

/// The flatbuffer with two bytes more between identifier and tables.
fn shifted() -> Vec<u8> {
    let bytes = small_bytes(Storage::Bare);
    let root = u32_at(&bytes, 0) + 2;
    [&root.to_le_bytes(), &bytes[4..8], &[0, 0], &bytes[8..]].concat()
}

pub fn cases() -> Vec<Case> {
    let bytes = small().write();
    let bare = small_bytes(Storage::Bare);
    let number = |at: usize, number: u32| patch(small().write(), at, &number.to_le_bytes());
    let len = bytes.len() as u32;
    let case = Case::new;
    let text = position(&bytes, b"\x40\0\0\0") + 4;
    vec![
        case("empty", &rule::HEADER, "", Vec::new()),
        case("short", &rule::HEADER, "", bytes[..29].to_vec()),
        case("header_length_29", &rule::HEADER, "", patch(bytes.clone(), LENGTH, &[29, 0])),
        case("flatbuffer_beyond", &rule::FLATBUFFER_RANGE, "", number(SIZE, len)),
        case("flatbuffer_huge", &rule::FLATBUFFER_RANGE, "", number(OFFSET, u32::MAX)),
        case("flatbuffer_of_7", &rule::FLATBUFFER_RANGE, "", number(SIZE, 7)),
        case("constants_beyond", &rule::CONSTANTS_RANGE, "", number(CONSTANTS, len + 1)),
        case("constants_in_the_flatbuffer", &rule::CONSTANTS_RANGE, "", number(CONSTANTS, 64)),
        case("constants_huge", &rule::CONSTANTS_RANGE, "", patch(bytes.clone(), CONSTANTS + 4, &[0xff; 8])),
        case("last_bytes_missing", &rule::CONSTANTS_RANGE, "", bytes[..bytes.len() - 1].to_vec()),
        case("moved_by_2", &rule::FLATBUFFER_ALIGNMENT, "", moved(2)),
        case("moved_by_4", &rule::FLATBUFFER_PLACE, "", moved(4)),
        case("identifier_xn02", &rule::IDENTIFIER, "", patch(bytes.clone(), 36, b"XN02")),
        case("identifier_without_header", &rule::IDENTIFIER, "", patch(bare.clone(), 4, b"ET12")),
        case("padding", &rule::PADDING, "", patch(bytes.clone(), 31, &[1])),
        case("trailing", &rule::TRAILING, "", [bytes.clone(), vec![0; 3]].concat()),
        case("root_beyond", &rule::MALFORMED, "", patch(bytes.clone(), 32, &[0xff; 4])),
        case("root_beyond_without_header", &rule::MALFORMED, "", patch(bare, 0, &[0xff; 4])),
        case("shifted", &rule::MISALIGNED, "", shifted()),
        case("key_not_utf8", &rule::TEXT, "constant_data[2].named_key", patch(bytes.clone(), text, b"\xff")),
        case("budget", &rule::LIMITS, "xvalues", bytes).visits(5),
    ]
}
