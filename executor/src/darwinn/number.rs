//! Conversion of stored numbers to real values, and back.

use edgepack_format::darwinn::{DataType, Layer, NumericsConstants};
use half::{bf16, f16};

use super::tensor::TensorError;

/// The real values of a tensor in the host's numbers.
pub fn dequantize(layer: &Layer<'_>, bytes: &[u8]) -> Result<Vec<f32>, TensorError> {
    let data_type = layer.data_type;
    let Some(size) = data_type.size() else {
        return Err(edgepack_format::darwinn::GeometryError::DataType(data_type).into());
    };
    if !bytes.len().is_multiple_of(size) {
        return Err(TensorError::Length {
            what: "the tensor",
            have: bytes.len(),
            want: format!("a multiple of {size}"),
        });
    }
    let numerics = layer.numerics.clone().unwrap_or_default();
    let real = |number: i32| numerics.real(data_type, number);
    Ok(match data_type {
        DataType::FIXED_POINT8 => bytes.iter().map(|byte| real(i32::from(*byte))).collect(),
        DataType::SIGNED_FIXED_POINT8 => bytes.iter().map(|byte| real(i32::from(*byte as i8))).collect(),
        DataType::FIXED_POINT16 => wide(bytes, |bytes| real(u16::from_le_bytes(bytes).into())),
        DataType::SIGNED_FIXED_POINT16 => wide(bytes, |bytes| real(i16::from_le_bytes(bytes).into())),
        DataType::SIGNED_FIXED_POINT32 => wide(bytes, |bytes| real(i32::from_le_bytes(bytes))),
        DataType::BFLOAT => wide(bytes, |bytes| bf16::from_le_bytes(bytes).to_f32()),
        DataType::HALF => wide(bytes, |bytes| f16::from_le_bytes(bytes).to_f32()),
        _ => wide(bytes, f32::from_le_bytes),
    })
}

/// Checks that the numbers of a layer have a meaning: they are floats, or have a scale that is positive and finite.
pub fn check_numerics(layer: &Layer<'_>) -> Result<(), TensorError> {
    let scale = layer.numerics.as_ref().map_or(0.0, |numerics| numerics.dequantization_factor);
    match layer.data_type.is_quantized() && !(scale.is_finite() && scale > 0.0) {
        true => Err(TensorError::Scale(scale)),
        false => Ok(()),
    }
}

fn wide<const N: usize>(bytes: &[u8], read: impl Fn([u8; N]) -> f32) -> Vec<f32> {
    bytes.as_chunks::<N>().0.iter().map(|bytes| read(*bytes)).collect()
}

/// The host's numbers nearest to these values: halves away from zero, what does not fit at the nearest end. NaN becomes
/// the zero point. Refused for a layer whose numbers have no meaning ([`check_numerics`]).
pub fn quantize(layer: &Layer<'_>, values: &[f32]) -> Result<Vec<u8>, TensorError> {
    let data_type = layer.data_type;
    check_numerics(layer)?;
    let numerics = layer.numerics.clone().unwrap_or_default();
    let number = |value: f32, low: i32, high: i32| nearest(&numerics, data_type, value, low, high);
    let mut out = Vec::with_capacity(values.len() * data_type.size().unwrap_or(0));
    for &value in values {
        match data_type {
            DataType::FIXED_POINT8 => out.push(number(value, 0, 255) as u8),
            DataType::SIGNED_FIXED_POINT8 => out.push(number(value, -128, 127) as i8 as u8),
            DataType::FIXED_POINT16 => out.extend((number(value, 0, 65_535) as u16).to_le_bytes()),
            DataType::SIGNED_FIXED_POINT16 => out.extend((number(value, -32_768, 32_767) as i16).to_le_bytes()),
            DataType::SIGNED_FIXED_POINT32 => out.extend(number(value, i32::MIN, i32::MAX).to_le_bytes()),
            DataType::BFLOAT => out.extend(bf16::from_f32(value).to_le_bytes()),
            DataType::HALF => out.extend(f16::from_f32(value).to_le_bytes()),
            DataType::SINGLE => out.extend(value.to_le_bytes()),
            other => return Err(edgepack_format::darwinn::GeometryError::DataType(other).into()),
        }
    }
    Ok(out)
}

fn nearest(numerics: &NumericsConstants, data_type: DataType, value: f32, low: i32, high: i32) -> i32 {
    let zero = f64::from(data_type.host_zero_point(numerics.zero_point));
    let number = (f64::from(value) / f64::from(numerics.dequantization_factor)).round() + zero;
    // Casting clamps; of NaN nothing is known but that zero stands for nothing.
    if number.is_nan() { zero as i32 } else { (number as i64).max(low.into()).min(high.into()) as i32 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer(data_type: DataType, zero_point: i32) -> Layer<'static> {
        let numerics = Some(NumericsConstants { zero_point, dequantization_factor: 0.5 });
        Layer { data_type, numerics, ..Layer::default() }
    }

    #[test]
    fn values_survive_every_type() {
        let types = [
            (DataType::FIXED_POINT8, 100),
            (DataType::FIXED_POINT16, 1000),
            (DataType::SIGNED_FIXED_POINT8, 100),
            (DataType::SIGNED_FIXED_POINT16, 32768),
            (DataType::SIGNED_FIXED_POINT32, 0),
            (DataType::BFLOAT, 0),
            (DataType::HALF, 0),
            (DataType::SINGLE, 0),
        ];
        for (data_type, zero) in types {
            let layer = layer(data_type, zero);
            let values = [0.0, 1.5, -3.0, 20.5];
            let numbers = quantize(&layer, &values).unwrap();
            assert_eq!(dequantize(&layer, &numbers).unwrap(), values, "{data_type}");
        }
    }

    #[test]
    fn what_does_not_fit_goes_to_the_nearest_end() {
        let layer = layer(DataType::SIGNED_FIXED_POINT8, 128);
        let values = [1e9, -1e9, f32::INFINITY, f32::NAN, 0.25, -0.25];
        assert_eq!(quantize(&layer, &values).unwrap(), [127, 0x80, 127, 0, 1, 0xff]);
        let none = Layer { numerics: None, ..self::layer(DataType::FIXED_POINT8, 0) };
        assert_eq!(quantize(&none, &[1.0]).unwrap_err().to_string(), "numbers of scale 0 stand for no values");
        assert!(quantize(&Layer { data_type: DataType::SINGLE, ..none }, &[1.0]).is_ok());
        assert!(dequantize(&self::layer(DataType(6), 0), &[0]).is_err());
        assert!(dequantize(&self::layer(DataType::HALF, 0), &[0]).is_err());
    }
}
