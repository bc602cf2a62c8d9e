//! The graph, its constants, and what the delegate is called with.

use edgepack_builder::xnnpack::key_of;
use edgepack_format::rules::xnnpack as rule;
use edgepack_format::xnnpack::{NO_OFFSET, QuantParams};
use edgepack_tests::xnnpack::hex;
use serde_json::{Value, json};

use super::base::{Rows, bytes, changed, small, with_region};
use crate::hostile_data::Case;

pub fn cases() -> Vec<Case> {
    [constants(), named(), graph(), calls()].into_iter().flatten().collect()
}

fn constants() -> Vec<Case> {
    let index = "xvalues[1].xvalue_union.constant_buffer_idx";
    vec![
        changed("constant_beyond", &rule::CONSTANT_INDEX, index, small, |rows| rows.tensor(1).constant_buffer_idx = 3),
        changed(
            "scales_beyond",
            &rule::CONSTANT_INDEX,
            "xvalues[2].xvalue_union.quant_params.scale_buffer_idx",
            bytes,
            |rows| {
                if let Some(QuantParams::PerChannelQuant(params)) = rows.params(2) {
                    params.scale_buffer_idx = 99;
                }
            },
        ),
        changed("region_beyond", &rule::CONSTANT_RANGE, "constant_data[2]", with_region, |rows| {
            rows.constants[2].offset += 1;
        }),
        changed("region_huge", &rule::CONSTANT_RANGE, "constant_data[1]", with_region, |rows| {
            rows.constants[1].size = u64::MAX;
        }),
        changed("constant_short", &rule::CONSTANT_LENGTH, index, small, |rows| rows.constants[1].size = 287),
        changed("constant_of_the_region_short", &rule::CONSTANT_LENGTH, index, with_region, |rows| {
            rows.constants[1].size = 287;
        }),
        changed(
            "scales_short",
            &rule::CONSTANT_LENGTH,
            "xvalues[2].xvalue_union.quant_params.scale_buffer_idx",
            bytes,
            |rows| rows.constants[1].size = 31,
        ),
        changed("key_and_offset", &rule::CONSTANT_PLACE, "constant_data[1]", small, |rows| {
            rows.constants[1].offset = 0
        }),
        changed("neither_key_nor_offset", &rule::CONSTANT_PLACE, "constant_data[1]", with_region, |rows| {
            rows.constants[1].offset = NO_OFFSET;
        }),
        changed("key_of_two_sizes", &rule::NAMED_AGREES, "constant_data[2]", small, |rows| {
            rows.constants[2].named_key = rows.constants[1].named_key.clone();
        }),
    ]
}

/// The named data of the convolution, with these bytes of the weights.
fn weights(bytes: &[u8]) -> Value {
    json!({ key_of(&[1; 288], false): hex(bytes), key_of(&[2; 16], false): hex(&[2; 16]) })
}

fn named() -> Vec<Case> {
    let first = "constant_data[1]";
    let plain = |id, rule, bytes: &[u8]| Case::new(id, rule, first, small().write()).around("named", weights(bytes));
    let absent = Case::new("named_absent", &rule::NAMED, first, small().write()).around("named", json!({}));
    vec![absent, plain("named_short", &rule::NAMED, &[1; 287]), plain("digest", &rule::DIGEST, &[9; 288])]
}

fn graph() -> Vec<Case> {
    let id = "xvalues[0].xvalue_union.external_id";
    let of_output = "xvalues[4].xvalue_union.external_id";
    let exchange = |rows: &mut Rows| (rows.tensor(0).external_id, rows.tensor(4).external_id) = (1, 0);
    vec![
        changed("no_nodes", &rule::LISTS, "xnodes", small, |rows| rows.graph.xnodes = None),
        changed("no_values", &rule::LISTS, "xvalues", small, |rows| rows.graph.xvalues = None),
        changed("externs_many", &rule::EXTERNS, "num_externs", small, |rows| rows.graph.num_externs = 4097),
        changed("externs_few", &rule::EXTERNS, of_output, small, |rows| rows.graph.num_externs = 1),
        changed("external_gap", &rule::EXTERNAL_IDS, of_output, small, |rows| {
            rows.graph.num_externs = 3;
            rows.tensor(4).external_id = 2;
        }),
        changed("external_twice", &rule::EXTERNAL_IDS, of_output, small, |rows| rows.tensor(4).external_id = 0),
        changed("output_first", &rule::EXTERNAL_IDS, of_output, small, exchange),
        changed("external_without_id", &rule::EXTERNAL_IDS, id, small, |rows| rows.tensor(0).external_id = u32::MAX),
        changed("internal_with_id", &rule::EXTERNAL_IDS, "xvalues[3].xvalue_union.external_id", small, |rows| {
            rows.tensor(3).external_id = 1;
        }),
        changed("input_ids", &rule::ID_LISTS, "input_ids", small, |rows| rows.graph.input_ids = None),
        changed("output_ids", &rule::ID_LISTS, "output_ids", small, |rows| {
            rows.graph.output_ids = Some(vec![3].into());
        }),
    ]
}

fn calls() -> Vec<Case> {
    let input = || json!([0, "FLOAT", [1, 2, 6, 6], [0, 2, 3, 1]]);
    let output = || json!([1, "FLOAT", [1, 16, 4], [0, 1, 2]]);
    let case = |id, rule, path, call| Case::new(id, rule, path, small().write()).around("call", call);
    let (first, second) = ("arguments[0]", "arguments[1]");
    let other = |place: usize, value: Value| {
        let mut argument = input();
        argument[place] = value;
        json!([argument, output()])
    };
    let alias = json!([0, "FLOAT", [1, 16, 4], [0, 1, 2]]);
    vec![
        case("call_of_one", &rule::ARGUMENT_COUNT, "num_externs", json!([input()])),
        case("call_of_a_number", &rule::ARGUMENT_COUNT, second, json!([input(), null])),
        case("call_of_ints", &rule::ARGUMENT_TYPE, first, other(1, json!("INT"))),
        case("call_in_another_order", &rule::ARGUMENT_SHAPE, first, other(3, json!([0, 1, 2, 3]))),
        case("call_of_another_size", &rule::ARGUMENT_SHAPE, first, other(2, json!([1, 2, 6, 7]))),
        case("call_of_another_rank", &rule::ARGUMENT_SHAPE, first, other(2, json!([2, 6, 6]))),
        case("call_in_place", &rule::ARGUMENT_ALIAS, second, json!([input(), alias])),
    ]
}
