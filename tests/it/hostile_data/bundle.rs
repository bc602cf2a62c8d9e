//! Bundles that break one rule each: a real one with one row changed.

use edgepack_builder::raw;
use edgepack_format::bundle::{
    BundledMethodTestCase, BundledMethodTestSuite, BundledProgram, Double, Int, Tensor, Value, ValueUnion,
};
use edgepack_format::row::{Blob, Table as _};
use edgepack_format::rules::{bundle as rule, pte};
use edgepack_format::scalar::ScalarType;
use edgepack_format::wire;

use crate::hostile_data::{Case, patch};

/// Two cases of a linear layer, inputs f32[2, 3] and f32[2, 2], two outputs.
static REAL: &[u8] = include_bytes!("../../data/corpus/bundle/linear.bpte");

fn real() -> BundledProgram<'static> {
    BundledProgram::decode(wire::Table::root(REAL).unwrap()).unwrap()
}

/// The real bundle with its only suite changed.
fn with_suite(change: impl FnOnce(&mut BundledMethodTestSuite<'static>)) -> Vec<u8> {
    let mut row = real();
    change(&mut row.method_test_suites.as_mut().unwrap().to_mut().unwrap()[0]);
    raw::bundled(&row).unwrap()
}

/// The real bundle with the second case of its suite changed.
fn with_case(change: impl FnOnce(&mut BundledMethodTestCase<'static>)) -> Vec<u8> {
    with_suite(|suite| change(&mut suite.test_cases.as_mut().unwrap().to_mut().unwrap()[1]))
}

/// The real bundle with the first input of that case changed.
fn with_input(change: impl FnOnce(&mut Value<'static>)) -> Vec<u8> {
    with_case(|case| change(&mut case.inputs.as_mut().unwrap().to_mut().unwrap()[0]))
}

fn with_tensor(change: impl FnOnce(&mut Tensor<'static>)) -> Vec<u8> {
    with_input(|value| match &mut value.val {
        Some(ValueUnion::Tensor(tensor)) => change(tensor),
        other => panic!("{other:?} is not a tensor"),
    })
}

fn with_program(program: Option<Vec<u8>>) -> Vec<u8> {
    raw::bundled(&BundledProgram { program: program.map(|bytes| Blob(bytes.into())), ..real() }).unwrap()
}

/// The real bundle with its suite once for each name.
fn with_suites(names: &[&'static str]) -> Vec<u8> {
    let mut row = real();
    let suites = row.method_test_suites.as_mut().unwrap().to_mut().unwrap();
    let one = suites[0].clone();
    *suites =
        names.iter().map(|name| BundledMethodTestSuite { method_name: Some((*name).into()), ..one.clone() }).collect();
    raw::bundled(&row).unwrap()
}

const INPUTS: &str = "method_test_suites[0].test_cases[1].inputs";
const INPUT: &str = "method_test_suites[0].test_cases[1].inputs[0]";
const OUTPUTS: &str = "method_test_suites[0].test_cases[1].expected_outputs";
const OUTPUT: &str = "method_test_suites[0].test_cases[1].expected_outputs[1]";

pub fn cases() -> Vec<Case> {
    [file_cases(), suite_cases(), case_cases(), tensor_cases()].into_iter().flatten().collect()
}

fn file_cases() -> Vec<Case> {
    // The program in the bundle has the name, too.
    let name = REAL.windows(8).rposition(|window| window == b"forward\0").unwrap();
    let version = raw::bundled(&BundledProgram { version: 3, ..real() }).unwrap();
    let mut program = real().program.unwrap().0.into_owned();
    let identifier = patch(program.clone(), 4, b"XXXX");
    program.pop();
    vec![
        Case::new("empty", &rule::IDENTIFIER, "", Vec::new()),
        Case::new("identifier", &rule::IDENTIFIER, "", patch(REAL.to_vec(), 4, b"BP07")),
        Case::new("version", &rule::VERSION, "version", version),
        Case::new("program_absent", &rule::PROGRAM, "program", with_program(None)),
        Case::new("program_empty", &rule::PROGRAM, "program", with_program(Some(Vec::new()))),
        Case::new("program_identifier", &pte::IDENTIFIER, "program", with_program(Some(identifier))),
        Case::new("program_cut", &pte::TRUNCATED, "program.segment_data_size", with_program(Some(program))),
        Case::new("cut", &rule::MALFORMED, "program", REAL[..REAL.len() / 2].to_vec()),
        Case::new("root_beyond", &rule::MALFORMED, "", patch(REAL.to_vec(), 0, &[0xff; 4])),
        Case::new("shifted", &rule::MISALIGNED, "program", shifted()),
        Case::new(
            "name_not_utf8",
            &rule::TEXT,
            "method_test_suites[0].method_name",
            patch(REAL.to_vec(), name, b"\xff"),
        ),
        Case::new("budget", &rule::LIMITS, "method_test_suites[0].test_cases[0].inputs[1]", REAL.to_vec()).visits(12),
    ]
}

fn suite_cases() -> Vec<Case> {
    let (first, second) = ("method_test_suites[0]", "method_test_suites[1]");
    vec![
        Case::new(
            "method_absent",
            &rule::METHOD_NAME,
            "method_test_suites[0].method_name",
            with_suite(|suite| suite.method_name = None),
        ),
        Case::new("method_unknown", &rule::METHOD_UNKNOWN, first, with_suites(&["backward"])),
        Case::new("method_twice", &rule::METHOD_DUPLICATE, second, with_suites(&["forward", "forward"])),
        Case::new("methods_unsorted", &rule::METHOD_ORDER, second, with_suites(&["forward", "and_back"])),
    ]
}

fn case_cases() -> Vec<Case> {
    let drop_input = |case: &mut BundledMethodTestCase<'static>| {
        case.inputs.as_mut().unwrap().to_mut().unwrap().pop();
    };
    let double_outputs = |case: &mut BundledMethodTestCase<'static>| {
        let outputs = case.expected_outputs.as_mut().unwrap().to_mut().unwrap();
        outputs.extend(outputs.clone());
    };
    let set_output = |val: ValueUnion<'static>| {
        with_case(|case| case.expected_outputs.as_mut().unwrap().to_mut().unwrap()[1].val = Some(val))
    };
    vec![
        Case::new("input_missing", &rule::INPUT_COUNT, INPUTS, with_case(drop_input)),
        Case::new("inputs_absent", &rule::INPUT_COUNT, INPUTS, with_case(|case| case.inputs = None)),
        Case::new("outputs_double", &rule::OUTPUT_COUNT, OUTPUTS, with_case(double_outputs)),
        Case::new("value_none", &rule::VALUE, INPUT, with_input(|value| value.val = None)),
        Case::new("value_unknown", &rule::VALUE, INPUT, with_input(|value| value.val = Some(ValueUnion::Unknown(9)))),
        Case::new(
            "input_kind",
            &rule::INPUT_KIND,
            INPUT,
            with_input(|value| value.val = Some(ValueUnion::Int(Int { int_val: 1 }))),
        ),
        Case::new(
            "output_kind",
            &rule::OUTPUT_KIND,
            OUTPUT,
            set_output(ValueUnion::Double(Double { double_val: 0.5 })),
        ),
        Case::new("output_scalar", &rule::OUTPUT_SCALAR, OUTPUT, set_output(ValueUnion::Int(Int { int_val: 5 }))),
        Case::new("outputs_absent", &rule::NO_EXPECTATION, OUTPUTS, with_case(|case| case.expected_outputs = None)),
    ]
}

fn tensor_cases() -> Vec<Case> {
    let sizes = |sizes: &'static [i32]| with_tensor(|tensor| tensor.sizes = Some(sizes.to_vec().into()));
    let order = |order: &'static [u8]| with_tensor(|tensor| tensor.dim_order = Some(order.to_vec().into()));
    let data = |len| with_tensor(|tensor| tensor.data = Some(Blob(vec![0; len].into())));
    let with_rank_17 = with_tensor(|tensor| {
        tensor.sizes = Some(vec![1; 17].into());
        tensor.dim_order = Some((0..17u8).collect::<Vec<_>>().into());
    });
    vec![
        Case::new("tensor_without_sizes", &rule::TENSOR_PARTS, INPUT, with_tensor(|tensor| tensor.sizes = None)),
        Case::new(
            "tensor_without_dim_order",
            &rule::TENSOR_PARTS,
            INPUT,
            with_tensor(|tensor| tensor.dim_order = None),
        ),
        Case::new("tensor_without_data", &rule::TENSOR_PARTS, INPUT, with_tensor(|tensor| tensor.data = None)),
        Case::new(
            "tensor_dtype_unknown",
            &rule::LAYOUT,
            INPUT,
            with_tensor(|tensor| tensor.scalar_type = ScalarType(77)),
        ),
        Case::new("tensor_negative_size", &rule::LAYOUT, INPUT, sizes(&[2, -3])),
        Case::new("tensor_dim_order_twice", &rule::LAYOUT, INPUT, order(&[1, 1])),
        Case::new("tensor_dim_order_short", &rule::LAYOUT, INPUT, order(&[0])),
        Case::new("tensor_rank_17", &rule::LAYOUT, INPUT, with_rank_17),
        Case::new("tensor_sizes_beyond_data", &rule::DATA_SHORT, INPUT, sizes(&[2, 300])),
        Case::new("tensor_data_short", &rule::DATA_SHORT, INPUT, data(23)),
        Case::new("tensor_data_long", &rule::DATA_LONG, INPUT, data(25)),
        Case::new("tensor_dtype", &rule::DTYPE, INPUT, with_tensor(|tensor| tensor.scalar_type = ScalarType::INT)),
        Case::new("tensor_shape", &rule::SHAPE, INPUT, sizes(&[3, 2])),
        Case::new(
            "tensor_rank",
            &rule::SHAPE,
            INPUT,
            with_tensor(|tensor| {
                tensor.sizes = Some(vec![6].into());
                tensor.dim_order = Some(vec![0u8].into());
            }),
        ),
        Case::new("tensor_dim_order", &rule::DIM_ORDER, INPUT, order(&[1, 0])),
    ]
}

/// The real bundle with four bytes more behind the identifier: its parts are where they may not be.
fn shifted() -> Vec<u8> {
    let root = u32::from_le_bytes(REAL[..4].try_into().unwrap()) + 4;
    [&root.to_le_bytes(), &REAL[4..8], &[0; 4], &REAL[8..]].concat()
}
