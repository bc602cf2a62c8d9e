//! Summary of a TensorFlow Lite model around its compiled parts.

use edgepack_format::tflite::{CompiledOp, ModelRef, OperatorCode, Tensor};
use serde_json::{Map, Value, json};

use crate::formats::darwinn::summary::{float, package, sha256};
use crate::readable::sound_rows;

use super::bare;

/// A model: `tflite` for what is around, `packages` for what is compiled.
pub fn model(model: &ModelRef<'_>) -> Value {
    let packages: Vec<Value> = model.packages().map(|(_, one)| package(one)).collect();
    json!({ "tflite": around(model), "packages": packages })
}

fn around(model: &ModelRef<'_>) -> Value {
    let row = model.model();
    let graphs = sound_rows(&row.subgraphs);
    let buffers = sound_rows(&row.buffers);
    let code = |code: &OperatorCode<'_>| json!({ "builtin_code": code.code(), "custom_code": code.custom_code, "version": code.version });
    let mut first = 0;
    let mut ops = Vec::new();
    for op in model.operators() {
        ops.push(operator(model, op, first));
        first += op.packages.len();
    }
    let metadata = sound_rows(&row.metadata);
    let metadata = metadata.iter().map(|entry| {
        let data = buffers.get(entry.buffer as usize).and_then(|buffer| buffer.data.as_ref());
        json!({
            "name": entry.name,
            "buffer": entry.buffer,
            "buffer_length": data.map_or(0, |data| data.as_slice().len()),
        })
    });
    json!({
        "identifier": String::from_utf8_lossy(model.bytes().get(4..8).unwrap_or(&[])),
        "version": row.version,
        "description": row.description,
        "subgraphs": graphs.len(),
        "operators_total": graphs.iter().map(|graph| graph.operators.as_ref().map_or(0, |list| list.len())).sum::<usize>(),
        "buffers": buffers.len(),
        "operator_codes": sound_rows(&row.operator_codes).iter().map(code).collect::<Vec<_>>(),
        "metadata": metadata.collect::<Vec<_>>(),
        "appended_zip": model.zip().map(|zip| json!({
            "local_header_offset": zip.start,
            "end_of_central_directory_offset": zip.end,
            "entries": zip.members.iter().map(|member| json!({
                "name": member.name, "size": member.size, "header_offset": member.header,
            })).collect::<Vec<_>>(),
        })),
        "custom_ops": ops,
    })
}

/// A compiled operator whose first package is number `package` of the document.
fn operator(model: &ModelRef<'_>, op: &CompiledOp<'_>, package: usize) -> Value {
    let blob = model.bytes().get(op.range.clone()).unwrap_or(&[]);
    let options = op.options.as_ref();
    let tensors = |list: Vec<(i32, Option<Tensor<'_>>)>| {
        list.into_iter().map(|(index, one)| tensor(index, one.as_ref())).collect::<Vec<_>>()
    };
    json!({
        "subgraph": op.subgraph,
        "operator": op.operator,
        "opcode_index": op.row.opcode_index,
        "custom_options_format": op.row.custom_options_format,
        "custom_options_file_offset": op.range.start,
        "custom_options_sha256": sha256(blob),
        "custom_options": options.map(|options| {
            let keys: Vec<&str> = options.keys.iter().map(|(key, _)| *key).collect();
            let types: Map<String, Value> =
                options.keys.iter().map(|(key, kind)| ((*key).to_owned(), kind.name().into())).collect();
            json!({
                "length": blob.len(),
                "root_byte_width": options.root_width,
                "root_packed_type": options.root_type,
                "keys": keys,
                "key_types": types,
                "version": options.version,
                "chip_name": options.chip_name.map(String::from_utf8_lossy),
                "has_parameter_caching_executable_key": options.separate.is_some(),
                "execution_preference": options.preference.unwrap_or(-1),
                "chip_versions": options.chips,
                "remaining_executables": options.further.as_ref().map(Vec::len),
                "package_offset_in_options": options.package.0,
                "package_length": options.package.1.len(),
            })
        }),
        "package_file_offset": options.map(|options| op.range.start + options.package.0),
        "inputs": tensors(op.inputs()),
        "outputs": tensors(op.outputs()),
        "package": package,
        "bare_executables": bare::documents(op),
    })
}

fn tensor(index: i32, tensor: Option<&Tensor<'_>>) -> Value {
    let Some(row) = tensor else { return json!({ "tensor": index }) };
    let quantization = row.quantization.as_ref();
    let scale = quantization.and_then(|numbers| numbers.scale.as_ref()?.get(0));
    json!({
        "tensor": index,
        "name": row.name,
        "shape": row.shape.as_ref().map(|shape| shape.iter().collect::<Vec<_>>()),
        "type": row.kind,
        "is_variable": row.is_variable,
        "scale": scale.map(float),
        "zero_point": quantization.and_then(|numbers| numbers.zero_point.as_ref()?.get(0)),
    })
}
