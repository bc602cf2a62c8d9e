//! Summary of a TensorFlow Lite model around its compiled parts.

use std::collections::BTreeMap;

use edgepack_format::tflite::{CompiledOp, CustomOptions, ModelRef, OperatorCode, Tensor};
use serde::Serialize;

use crate::formats::darwinn::parts::{Float, owned, sha256};
use crate::formats::darwinn::summary::{PackageSummary, package};
use crate::readable::sound_rows;

use super::bare::{self, BareSummary};

/// A model.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct ModelSummary {
    /// The model around the packages.
    tflite: Around,
    /// Compiled packages, level by level.
    packages: Vec<PackageSummary>,
}

/// A model around its packages.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct Around {
    /// Identifier of the flatbuffer.
    identifier: String,
    /// Version of the schema that the file states.
    version: u32,
    /// Description of the model.
    description: Option<String>,
    /// Number of subgraphs.
    subgraphs: usize,
    /// Operators in all subgraphs.
    operators_total: usize,
    /// Number of buffers.
    buffers: usize,
    /// Kinds of operators.
    operator_codes: Vec<CodeSummary>,
    /// Metadata of the model.
    metadata: Vec<MetadataSummary>,
    /// Archive behind the flatbuffer.
    appended_zip: Option<ZipSummary>,
    /// Operators that are compiled.
    custom_ops: Vec<OperatorSummary>,
}

/// A kind of operators.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct CodeSummary {
    /// Number of the operator.
    builtin_code: i32,
    /// Name of an operator that is not built in.
    custom_code: Option<String>,
    /// Version of the operator.
    version: i32,
}

/// An entry of the metadata.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct MetadataSummary {
    /// Name of the entry.
    name: Option<String>,
    /// Index of the buffer that holds it.
    buffer: u32,
    /// Bytes of the buffer.
    buffer_length: usize,
}

/// An archive behind the flatbuffer.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct ZipSummary {
    /// Offset of its first byte in the file.
    local_header_offset: usize,
    /// Offset of its directory's end.
    end_of_central_directory_offset: usize,
    /// Files in it.
    entries: Vec<ZipEntry>,
}

/// A file in the archive.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct ZipEntry {
    /// Path in the archive.
    name: String,
    /// Bytes when unpacked.
    size: u32,
    /// Offset of its header in the file.
    header_offset: usize,
}

/// A compiled operator.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct OperatorSummary {
    /// Index of the subgraph.
    subgraph: usize,
    /// Index of the operator in it.
    operator: usize,
    /// Index of its kind.
    opcode_index: u32,
    /// Number of the form of its options.
    custom_options_format: i8,
    /// Offset of its options in the file.
    custom_options_file_offset: usize,
    /// SHA-256 of its options.
    custom_options_sha256: String,
    /// Its options, if they can be read.
    custom_options: Option<OptionsSummary>,
    /// Offset of its first package in the file.
    package_file_offset: Option<usize>,
    /// Inputs.
    inputs: Vec<TensorSummary>,
    /// Outputs.
    outputs: Vec<TensorSummary>,
    /// Index of its first package among those of the document.
    package: usize,
    /// Executables without a package.
    bare_executables: Vec<BareSummary>,
}

/// Options of a compiled operator.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct OptionsSummary {
    /// Bytes of the options.
    length: usize,
    /// Bytes of the root's slot.
    root_byte_width: usize,
    /// Type and width of the root, as in the file.
    root_packed_type: u8,
    /// Keys in order.
    keys: Vec<String>,
    /// Type of the value of each key.
    key_types: BTreeMap<String, String>,
    /// Version of the wrapper.
    version: Option<i64>,
    /// Name of the chip, in files of 2019.
    chip_name: Option<String>,
    /// There is an executable apart that loads parameters.
    has_parameter_caching_executable_key: bool,
    /// Preference for its execution; -1 for none.
    execution_preference: i64,
    /// Chip of each package.
    chip_versions: Option<Vec<i64>>,
    /// Number of packages beyond the first.
    remaining_executables: Option<usize>,
    /// Offset of the first package in the options.
    package_offset_in_options: usize,
    /// Bytes of the first package.
    package_length: usize,
}

/// A tensor of a compiled operator.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct TensorSummary {
    /// Index of the tensor.
    tensor: i32,
    /// Facts about it, if there is such a tensor.
    #[serde(flatten)]
    found: Option<TensorFacts>,
}

/// Facts about a tensor.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct TensorFacts {
    /// Name of the tensor.
    name: Option<String>,
    /// Sizes.
    shape: Option<Vec<i32>>,
    /// Element type.
    #[serde(rename = "type")]
    kind: String,
    /// It keeps its value between runs.
    is_variable: bool,
    /// Scale of quantised numbers.
    scale: Option<Float>,
    /// Zero point of quantised numbers.
    zero_point: Option<i64>,
}

/// Describes a model: what is around, and what is compiled.
pub fn model(model: &ModelRef<'_>) -> ModelSummary {
    ModelSummary { tflite: around(model), packages: model.packages().map(|(_, one)| package(one)).collect() }
}

fn around(model: &ModelRef<'_>) -> Around {
    let row = model.model();
    let graphs = sound_rows(&row.subgraphs);
    let buffers = sound_rows(&row.buffers);
    let code = |code: &OperatorCode<'_>| CodeSummary {
        builtin_code: code.code(),
        custom_code: owned(&code.custom_code),
        version: code.version,
    };
    let mut first = 0;
    let mut custom_ops = Vec::new();
    for op in model.operators() {
        custom_ops.push(operator(model, op, first));
        first += op.packages.len();
    }
    let metadata = sound_rows(&row.metadata);
    let metadata = metadata.iter().map(|entry| {
        let data = buffers.get(entry.buffer as usize).and_then(|buffer| buffer.data.as_ref());
        MetadataSummary {
            name: owned(&entry.name),
            buffer: entry.buffer,
            buffer_length: data.map_or(0, |data| data.as_slice().len()),
        }
    });
    let zip = model.zip().map(|zip| {
        let entry = |member: &edgepack_format::tflite::ZipMember| ZipEntry {
            name: member.name.clone(),
            size: member.size,
            header_offset: member.header,
        };
        ZipSummary {
            local_header_offset: zip.start,
            end_of_central_directory_offset: zip.end,
            entries: zip.members.iter().map(entry).collect(),
        }
    });
    Around {
        identifier: String::from_utf8_lossy(model.bytes().get(4..8).unwrap_or(&[])).into_owned(),
        version: row.version,
        description: owned(&row.description),
        subgraphs: graphs.len(),
        operators_total: graphs.iter().map(|graph| graph.operators.as_ref().map_or(0, |list| list.len())).sum(),
        buffers: buffers.len(),
        operator_codes: sound_rows(&row.operator_codes).iter().map(code).collect(),
        metadata: metadata.collect(),
        appended_zip: zip,
        custom_ops,
    }
}

/// A compiled operator whose first package is number `package` of the document.
fn operator(model: &ModelRef<'_>, op: &CompiledOp<'_>, package: usize) -> OperatorSummary {
    let blob = model.bytes().get(op.range.clone()).unwrap_or(&[]);
    let tensors = |list: Vec<(i32, Option<Tensor<'_>>)>| {
        list.into_iter().map(|(index, one)| tensor(index, one.as_ref())).collect::<Vec<_>>()
    };
    OperatorSummary {
        subgraph: op.subgraph,
        operator: op.operator,
        opcode_index: op.row.opcode_index,
        custom_options_format: op.row.custom_options_format,
        custom_options_file_offset: op.range.start,
        custom_options_sha256: sha256(blob),
        custom_options: op.options.as_ref().map(|options| self::options(options, blob.len())),
        package_file_offset: op.options.as_ref().map(|options| op.range.start + options.package.0),
        inputs: tensors(op.inputs()),
        outputs: tensors(op.outputs()),
        package,
        bare_executables: bare::summaries(op),
    }
}

fn options(options: &CustomOptions<'_>, length: usize) -> OptionsSummary {
    let types = options.keys.iter().map(|(key, kind)| ((*key).to_owned(), kind.name().to_owned()));
    OptionsSummary {
        length,
        root_byte_width: options.root_width,
        root_packed_type: options.root_type,
        keys: options.keys.iter().map(|(key, _)| (*key).to_owned()).collect(),
        key_types: types.collect(),
        version: options.version,
        chip_name: options.chip_name.map(|name| String::from_utf8_lossy(name).into_owned()),
        has_parameter_caching_executable_key: options.separate.is_some(),
        execution_preference: options.preference.unwrap_or(-1),
        chip_versions: options.chips.clone(),
        remaining_executables: options.further.as_ref().map(Vec::len),
        package_offset_in_options: options.package.0,
        package_length: options.package.1.len(),
    }
}

fn tensor(index: i32, tensor: Option<&Tensor<'_>>) -> TensorSummary {
    let found = tensor.map(|row| {
        let quantization = row.quantization.as_ref();
        TensorFacts {
            name: owned(&row.name),
            shape: row.shape.as_ref().map(|shape| shape.iter().collect()),
            kind: row.kind.to_string(),
            is_variable: row.is_variable,
            scale: quantization.and_then(|numbers| numbers.scale.as_ref()?.get(0)).map(Float::from),
            zero_point: quantization.and_then(|numbers| numbers.zero_point.as_ref()?.get(0)),
        }
    });
    TensorSummary { tensor: index, found }
}
