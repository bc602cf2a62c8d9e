//! A new, minimal model around a package: one operator, its tensors, nothing else.

use edgepack_format::darwinn::{Geometry, Layer, PackageRef};
use edgepack_format::limits::Limits;
use edgepack_format::row::{Blob, Rows, Table as _};
use edgepack_format::tflite::verify::tensor_type;
use edgepack_format::tflite::{
    Buffer, IDENTIFIER, Model, ModelRef, OPERATOR, Operator, OperatorCode, QuantizationParameters, SubGraph, Tensor,
    TensorType, VARIABLE_SUFFIX,
};

use super::{OptionValue, custom_options};
use crate::sink::FlatSink;
use crate::{BuildError, Error};

/// The flatbuffer of a model, as it is.
pub fn model(row: &Model<'_>) -> Result<Vec<u8>, Error> {
    let mut sink = FlatSink::new();
    let root = row.encode(&mut sink)?;
    sink.finish(root, IDENTIFIER)
}

/// A model that does nothing but run this package.
pub fn wrap(package: &[u8]) -> Result<Vec<u8>, BuildError> {
    let parsed = PackageRef::parse(package, &Limits::DEFAULT).map_err(BuildError::Findings)?;
    let main = parsed.main().and_then(|index| parsed.executables().get(index));
    let Some(main) = main else {
        return Err(BuildError::Compiled {
            place: "the package".to_owned(),
            message: "it has no executable that takes inputs".to_owned(),
        });
    };
    let mut tensors = Vec::new();
    let inputs = layers(&main.row().input_layers, &mut tensors)?;
    let outputs = layers(&main.row().output_layers, &mut tensors)?;
    let options =
        custom_options(&[("1", OptionValue::Int(0)), ("4", OptionValue::String(package)), ("5", OptionValue::Int(-1))]);
    let operator = Operator {
        inputs: Some(inputs.clone().into()),
        outputs: Some(outputs.clone().into()),
        custom_options: Some(Blob(options.into())),
        ..Operator::default()
    };
    let code = OperatorCode {
        deprecated_builtin_code: OperatorCode::CUSTOM as i8,
        custom_code: Some(OPERATOR.into()),
        builtin_code: OperatorCode::CUSTOM,
        ..OperatorCode::default()
    };
    let subgraph = SubGraph {
        tensors: Some(tensors.into()),
        inputs: Some(inputs.into()),
        outputs: Some(outputs.into()),
        operators: Some(vec![operator].into()),
        name: Some("main".into()),
    };
    let row = Model {
        version: 3,
        operator_codes: Some(vec![code].into()),
        subgraphs: Some(vec![subgraph].into()),
        buffers: Some(vec![Buffer::default()].into()),
        ..Model::default()
    };
    let bytes = model(&row)?;
    match ModelRef::parse(&bytes, &Limits::DEFAULT) {
        Ok(_) => Ok(bytes),
        Err(findings) => Err(BuildError::Findings(findings)),
    }
}

/// Appends a tensor per layer and answers their numbers. Variable outputs have none.
fn layers(rows: &Option<Rows<'_, Layer<'_>>>, tensors: &mut Vec<Tensor<'static>>) -> Result<Vec<i32>, BuildError> {
    let mut indices = Vec::new();
    for layer in rows.iter().flat_map(|rows| rows.iter().collect::<Vec<_>>()) {
        let layer = layer.map_err(Error::Read)?;
        let name = layer.name.as_deref().unwrap_or_default();
        if !name.ends_with(VARIABLE_SUFFIX) {
            indices.push(i32::try_from(tensors.len()).map_err(|_| Error::Overflow)?);
            tensors.push(tensor(&layer));
        }
    }
    Ok(indices)
}

fn tensor(layer: &Layer<'_>) -> Tensor<'static> {
    let kind = tensor_type(layer.data_type).unwrap_or(TensorType::UINT8);
    let ranges = layer.shape.iter().flat_map(|shape| shape.dimension.iter()).flat_map(|list| list.iter());
    let mut shape: Vec<i32> = ranges.filter_map(|range| i32::try_from(range.extent()?).ok()).collect();
    if shape.is_empty() {
        // Several executions are one more dimension in front of one batch entry.
        let executions = Geometry::of(layer).map_or(1, |geometry| geometry.executions);
        if executions > 1 {
            shape.extend(i32::try_from(executions).ok());
        }
        shape.extend([layer.y_dim, layer.x_dim, layer.z_dim]);
        shape.insert(0, 1);
    }
    let quantization = layer.numerics.as_ref().filter(|_| layer.data_type.is_quantized()).map(|numerics| {
        let zero = layer.data_type.host_zero_point(numerics.zero_point);
        QuantizationParameters {
            scale: Some(vec![numerics.dequantization_factor].into()),
            zero_point: Some(vec![i64::from(zero)].into()),
            ..QuantizationParameters::default()
        }
    });
    let name = layer.name.as_deref().unwrap_or_default().to_owned();
    Tensor { shape: Some(shape.into()), kind, name: Some(name.into()), quantization, ..Tensor::default() }
}
