//! Inputs of the device: padding between executions, and the sign flip.

use edgepack_format::darwinn::{DataType, Geometry, GeometryError, Layer, RouteError};

/// Reason for which a tensor does not fit its layer.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TensorError {
    /// The layer has no sizes.
    #[error("{0}")]
    Geometry(#[from] GeometryError),
    /// The output's elements have no defined place.
    #[error("{0}")]
    Route(#[from] RouteError),
    /// A buffer is of another length.
    #[error("{what} has {have} bytes, {want} are needed")]
    Length {
        /// Name of the buffer.
        what: &'static str,
        /// Bytes it has.
        have: usize,
        /// Bytes it should have.
        want: String,
    },
    /// The layer says no scale, or one that means nothing.
    #[error("numbers of scale {0} stand for no values")]
    Scale(f32),
    /// Memory that is not there.
    #[error("there is no memory for {0} bytes")]
    Memory(usize),
}

/// Zeros for a buffer whose size comes from the file; they are not touched.
pub(super) fn zeros(len: usize) -> Result<Vec<u8>, TensorError> {
    bytemuck::try_zeroed_vec(len).map_err(|()| TensorError::Memory(len))
}

/// Flips the top bit of every element of a signed type; other types stay.
pub fn flip_signs(data_type: DataType, bytes: &mut [u8]) {
    if !data_type.is_flipped() {
        return;
    }
    let size = data_type.size().unwrap_or(1);
    // The top byte is the last of each element.
    for last in bytes.iter_mut().skip(size.saturating_sub(1)).step_by(size) {
        *last ^= 0x80;
    }
}

/// Returns the bytes the device gets for an input: executions apart by their padding, top bit of signed types flipped.
///
/// `bytes` are the elements without padding, or with it, as they come. Unlike the stock driver this leaves the caller's
/// memory alone and flips every element, also those of later executions and of a batch inside the shape.
pub fn prepare_input(layer: &Layer<'_>, bytes: &[u8]) -> Result<Vec<u8>, TensorError> {
    let geometry = Geometry::of(layer)?;
    check_input(&geometry, bytes.len())?;
    let is_alone = geometry.executions == 1 && bytes.len() == geometry.actual_bytes;
    let mut out = zeros(if is_alone { bytes.len() } else { geometry.padded_bytes })?;
    fill_input(layer, &geometry, bytes, &mut out);
    Ok(out)
}

/// Checks that so many bytes are the elements of an input, without or with padding.
pub(super) fn check_input(geometry: &Geometry, have: usize) -> Result<(), TensorError> {
    if have == geometry.padded_bytes || have == geometry.actual_bytes {
        return Ok(());
    }
    let want = match geometry.actual_bytes == geometry.padded_bytes {
        true => geometry.actual_bytes.to_string(),
        false => format!("{} or, with padding, {}", geometry.actual_bytes, geometry.padded_bytes),
    };
    Err(TensorError::Length { what: "the input", have, want })
}

/// Writes an input of a length that was checked into the device's buffer. Padding that `bytes` do not have becomes zeros.
pub(super) fn fill_input(layer: &Layer<'_>, geometry: &Geometry, bytes: &[u8], out: &mut [u8]) {
    let is_padded = bytes.len() == geometry.padded_bytes;
    let (len, step) = (geometry.execution_bytes, geometry.execution_padded);
    for (to, from) in out.chunks_mut(step).zip(bytes.chunks(if is_padded { step } else { len })) {
        let (content, padding) = to.split_at_mut(from.len().min(to.len()));
        content.copy_from_slice(&from[..content.len()]);
        padding.fill(0);
        // Padding belongs to no element and stays.
        let elements = len.min(content.len());
        flip_signs(layer.data_type, &mut content[..elements]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer(data_type: DataType) -> Layer<'static> {
        Layer {
            data_type,
            y_dim: 1,
            x_dim: 1,
            z_dim: 3,
            size_bytes: 8,
            execution_count_per_inference: 2,
            ..Layer::default()
        }
    }

    #[test]
    fn executions_are_spread_and_signs_flipped() {
        let plain = prepare_input(&layer(DataType::FIXED_POINT8), &[1, 2, 3, 4, 5, 6]).unwrap();
        assert_eq!(plain, [1, 2, 3, 0, 0, 0, 0, 0, 4, 5, 6, 0, 0, 0, 0, 0]);
        let signed = prepare_input(&layer(DataType::SIGNED_FIXED_POINT8), &[1, 2, 3, 4, 5, 6]).unwrap();
        assert_eq!(signed[..3], [0x81, 0x82, 0x83]);
        assert_eq!(signed[8..11], [0x84, 0x85, 0x86]);
        assert_eq!(signed[3], 0);
        let wide = prepare_input(&layer(DataType::SIGNED_FIXED_POINT16), &[1; 12]).unwrap();
        assert_eq!(wide[..6], [1, 0x81, 1, 0x81, 1, 0x81]);
    }

    #[test]
    fn padded_input_keeps_its_padding() {
        let padded = prepare_input(&layer(DataType::SIGNED_FIXED_POINT8), &[7; 16]).unwrap();
        assert_eq!(padded, [[0x87, 0x87, 0x87, 7, 7, 7, 7, 7], [0x87, 0x87, 0x87, 7, 7, 7, 7, 7]].concat());
        let error = prepare_input(&layer(DataType::FIXED_POINT8), &[0; 7]).unwrap_err();
        assert_eq!(error.to_string(), "the input has 7 bytes, 6 or, with padding, 16 are needed");
    }
}
