//! TensorFlow Lite models with compiled parts that break one rule each.

use edgepack_builder::tflite::{self, OptionValue, custom_options};
use edgepack_format::limits::Limits;
use edgepack_format::row::{Blob, Rows, Table};
use edgepack_format::rules::tflite as rule;
use edgepack_format::tflite::{Model, ModelRef, Operator, SubGraph, Tensor, TensorType};

use crate::hostile_data::{Case, darwinn, patch, position};

const OPTIONS: &str = "subgraphs[0].operators[0].custom_options";

fn good() -> Vec<u8> {
    tflite::wrap(&darwinn::good()).unwrap()
}

fn rows<'r, 'a, T: Table<'a> + Clone>(rows: &'r mut Option<Rows<'a, T>>) -> &'r mut Vec<T> {
    rows.get_or_insert_default().to_mut().unwrap()
}

/// A good model with something changed.
fn with(change: impl FnOnce(&mut Model<'_>)) -> Vec<u8> {
    let file = good();
    let mut row = ModelRef::parse(&file, &Limits::hostile()).unwrap().model().clone();
    change(&mut row);
    tflite::model(&row).unwrap()
}

fn with_graph(change: impl FnOnce(&mut SubGraph<'_>)) -> Vec<u8> {
    with(|row| change(&mut rows(&mut row.subgraphs)[0]))
}

fn with_operator(change: impl FnOnce(&mut Operator<'_>)) -> Vec<u8> {
    with_graph(|graph| change(&mut rows(&mut graph.operators)[0]))
}

/// The input is tensor 0, the output tensor 1.
fn with_tensor(index: usize, change: impl FnOnce(&mut Tensor<'_>)) -> Vec<u8> {
    with_graph(|graph| change(&mut rows(&mut graph.tensors)[index]))
}

fn with_options(options: Vec<u8>) -> Vec<u8> {
    with_operator(|operator| operator.custom_options = Some(Blob(options.into())))
}

/// A good model with these entries next to the package.
fn with_entries(entries: &[(&str, OptionValue<'_>)]) -> Vec<u8> {
    let package = darwinn::good();
    let package = [("4", OptionValue::String(&package))];
    with_options(custom_options(&[&package, entries].concat()))
}

pub fn cases() -> Vec<Case> {
    [model_cases(), option_cases(), structure_cases(), side_cases()].into_iter().flatten().collect()
}

fn model_cases() -> Vec<Case> {
    let renamed = with(|row| rows(&mut row.operator_codes)[0].custom_code = Some("another".into()));
    // An end record whose directory is not where it says.
    let mut end = b"PK\x05\x06\0\0\0\0\x01\0\x01\0".to_vec();
    end.extend([46, 0, 0, 0, 8, 0, 0, 0, 0, 0]);
    vec![
        Case::new("identifier", &rule::IDENTIFIER, "", patch(good(), 4, b"TFL4")),
        Case::new("short", &rule::IDENTIFIER, "", good()[..7].to_vec()),
        Case::new("version", &rule::VERSION, "version", with(|row| row.version = 4)),
        Case::new("no_operator", &rule::NO_OPERATOR, "", renamed),
        Case::new(
            "opcode",
            &rule::OPCODE,
            "subgraphs[0].operators[0].opcode_index",
            with_operator(|operator| operator.opcode_index = 1),
        ),
        Case::new(
            "options_format",
            &rule::OPTIONS_FORMAT,
            OPTIONS,
            with_operator(|operator| operator.custom_options_format = 1),
        ),
        Case::new("archive", &rule::ZIP, "", [good(), end].concat()),
    ]
}

fn option_cases() -> Vec<Case> {
    let package = darwinn::good();
    let text = OptionValue::String(b"beagle");
    let beyond = with_operator(|operator| {
        operator.custom_options = None;
        (operator.large_custom_options_offset, operator.large_custom_options_size) = (u64::MAX, 8);
    });
    let numbers = OptionValue::Ints(vec![18]);
    vec![
        Case::new("options_absent", &rule::OPTIONS, OPTIONS, with_operator(|operator| operator.custom_options = None)),
        Case::new("options_beyond", &rule::OPTIONS, OPTIONS, beyond),
        Case::new("options_one_byte", &rule::FLEX, OPTIONS, with_options(vec![1])),
        Case::new("options_two_bytes", &rule::FLEX, OPTIONS, with_options(vec![0x25, 1])),
        Case::new("options_root_before", &rule::FLEX, OPTIONS, with_options(vec![200, 0x25, 1])),
        Case::new("options_number", &rule::MAP, OPTIONS, with_options(vec![7, 4, 1])),
        Case::new(
            "package_number",
            &rule::VALUE_TYPE,
            OPTIONS,
            with_options(custom_options(&[("4", OptionValue::Int(7))])),
        ),
        Case::new("version_text", &rule::VALUE_TYPE, OPTIONS, with_entries(&[("1", text.clone())])),
        Case::new(
            "chips_text",
            &rule::VALUE_TYPE,
            OPTIONS,
            with_entries(&[("6", OptionValue::Strings(vec![b"beagle"]))]),
        ),
        Case::new(
            "package_absent",
            &rule::PACKAGE,
            OPTIONS,
            with_options(custom_options(&[("1", OptionValue::Int(0))])),
        ),
        Case::new(
            "package_empty",
            &rule::PACKAGE,
            OPTIONS,
            with_options(custom_options(&[("4", OptionValue::String(b""))])),
        ),
        Case::new("chips_none", &rule::CHIPS, OPTIONS, with_entries(&[("6", OptionValue::Ints(vec![]))])),
        Case::new(
            "chips_few",
            &rule::CHIPS,
            OPTIONS,
            with_entries(&[("6", numbers), ("7", OptionValue::Strings(vec![&package]))]),
        ),
        Case::new(
            "further",
            &rule::FURTHER,
            OPTIONS,
            with_entries(&[("6", OptionValue::Ints(vec![18, 20])), ("7", OptionValue::Strings(vec![&package]))]),
        ),
        Case::new("separate", &rule::SEPARATE, OPTIONS, with_entries(&[("3", text.clone())])),
        Case::new("wrapper_version", &rule::WRAPPER_VERSION, OPTIONS, with_entries(&[("1", OptionValue::Int(7))])),
        Case::new("bare_executables", &rule::BARE, OPTIONS, bare()),
        Case::new("key", &rule::KEY, OPTIONS, with_entries(&[("8", text)])),
    ]
}

/// Executables without a package: key 4 runs, key 3 loads parameters.
fn bare() -> Vec<u8> {
    let package = darwinn::good();
    let package = edgepack_format::darwinn::PackageRef::parse(&package, &Limits::hostile()).unwrap();
    let executable = package.executables()[0].bytes();
    with_options(custom_options(&[
        ("1", OptionValue::Int(0)),
        ("2", OptionValue::String(b"beagle")),
        ("3", OptionValue::String(executable)),
        ("4", OptionValue::String(executable)),
    ]))
}

fn structure_cases() -> Vec<Case> {
    let file = good();
    let name = position(&file, b"edgetpu-custom-op\0");
    let root = u32::from_le_bytes(file[..4].try_into().unwrap()) + 2;
    let shifted = [&root.to_le_bytes()[..], &file[4..8], &[0; 2], &file[8..]].concat();
    vec![
        Case::new("root_beyond", &rule::MALFORMED, "", patch(file.clone(), 0, &[0xff; 4])),
        Case::new(
            "code_unterminated",
            &rule::MALFORMED,
            "operator_codes[0].custom_code",
            patch(file.clone(), name + 17, b"x"),
        ),
        Case::new("shifted", &rule::MISALIGNED, "", shifted),
        Case::new("code_not_utf8", &rule::TEXT, "operator_codes[0].custom_code", patch(file.clone(), name, b"\xff")),
        Case::new("budget", &rule::LIMITS, "subgraphs[0].tensors[0].quantization.zero_point", file).visits(12),
    ]
}

fn side_cases() -> Vec<Case> {
    let (inputs, outputs) = ("subgraphs[0].operators[0].inputs", "subgraphs[0].operators[0].outputs");
    let (input, output) = ("subgraphs[0].operators[0].inputs[0]", "subgraphs[0].operators[0].outputs[0]");
    let number = |change: fn(&mut edgepack_format::tflite::QuantizationParameters<'_>)| {
        with_tensor(0, |tensor| change(tensor.quantization.get_or_insert_default()))
    };
    vec![
        Case::new(
            "input_count",
            &rule::INPUT_COUNT,
            inputs,
            with_operator(|operator| {
                operator.inputs = Some(vec![0, 0].into());
            }),
        ),
        Case::new(
            "output_count",
            &rule::OUTPUT_COUNT,
            outputs,
            with_operator(|operator| {
                operator.outputs = Some(vec![].into());
            }),
        ),
        Case::new("tensor", &rule::TENSOR, input, with_operator(|operator| operator.inputs = Some(vec![7].into()))),
        Case::new(
            "tensor_none",
            &rule::TENSOR,
            input,
            with_operator(|operator| {
                operator.inputs = Some(vec![-1].into());
            }),
        ),
        Case::new("bytes", &rule::BYTES, output, with_tensor(1, |tensor| tensor.shape = Some(vec![1, 3, 3, 3].into()))),
        Case::new(
            "shape_negative",
            &rule::BYTES,
            output,
            with_tensor(1, |tensor| {
                tensor.shape = Some(vec![1, -3, -3, 2].into());
            }),
        ),
        Case::new("type", &rule::TYPE, output, with_tensor(1, |tensor| tensor.kind = TensorType::INT8)),
        Case::new("name", &rule::NAME, input, with_tensor(0, |tensor| tensor.name = Some("z".into()))),
        Case::new("scale", &rule::SCALE, input, number(|numbers| numbers.scale = Some(vec![0.25].into()))),
        Case::new("zero_point", &rule::ZERO_POINT, input, number(|numbers| numbers.zero_point = Some(vec![4].into()))),
        Case::new("variable_order", &rule::VARIABLE_ORDER, outputs, variable_first()),
        Case::new("package_broken", &edgepack_format::rules::darwinn::BATCH, PACKAGE_BATCH, {
            let broken = darwinn::with(|row| row.batch_size = 0);
            with_options(custom_options(&[("4", OptionValue::String(&broken))]))
        }),
        Case::new("opcode_huge", &rule::OPCODE, OPCODE, with_operator(|operator| operator.opcode_index = u32::MAX)),
    ]
}

const OPCODE: &str = "subgraphs[0].operators[0].opcode_index";
const PACKAGE_BATCH: &str = "subgraphs[0].operators[0].custom_options.package.serialized_multi_executable.\
                             serialized_executables[0].batch_size";

/// A model whose executable has a variable output in front of the real one.
fn variable_first() -> Vec<u8> {
    let package = darwinn::with(|row| {
        let outputs = rows(&mut row.output_layers);
        let mut variable = outputs[0].clone();
        variable.name = Some("x_variable_output".into());
        outputs.insert(0, variable);
    });
    with_options(custom_options(&[("4", OptionValue::String(&package))]))
}
