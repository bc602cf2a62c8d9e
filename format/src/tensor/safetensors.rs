//! Conversions between tensors and views of safetensors files (feature `safetensors`).

use ::safetensors::tensor::Dtype;
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::StrDeserializer;

use super::{LayoutError, TensorLayout, TensorView};
use crate::scalar::ScalarType;

/// A tensor of a safetensors file, without a copy.
///
/// # Errors
///
/// [`LayoutError::ScalarType`] for element types that programs do not have.
///
/// ```
/// use edgepack_format::tensor::TensorView;
/// use safetensors::tensor::{Dtype, SafeTensors, serialize};
///
/// let weight = TensorView::from_slice(&[2], &[1.0f32, 2.0]).unwrap();
/// let tensor = safetensors::tensor::TensorView::try_from(&weight.untyped()).unwrap();
/// let file = serialize([("weight", tensor)], None).unwrap();
///
/// let file = SafeTensors::deserialize(&file).unwrap();
/// let back = TensorView::try_from(file.tensor("weight").unwrap()).unwrap();
/// assert_eq!((back.layout().to_string().as_str(), back.data()), ("f32[2]", weight.data()));
/// ```
impl<'a> TryFrom<::safetensors::tensor::TensorView<'a>> for TensorView<'a> {
    type Error = LayoutError;

    fn try_from(view: ::safetensors::tensor::TensorView<'a>) -> Result<Self, LayoutError> {
        let unknown = LayoutError::ScalarType(ScalarType(-1));
        let scalar_type = scalar_type_of(view.dtype()).ok_or(unknown)?;
        TensorView::new(TensorLayout::contiguous(scalar_type, view.shape())?, view.data())
    }
}

/// A tensor for a safetensors file, without a copy.
///
/// # Errors
///
/// [`LayoutError::ScalarType`] for element types that safetensors does not have, [`LayoutError::Strides`] for a tensor that
/// is not contiguous: [`TensorView::in_order`] makes it so.
impl<'a> TryFrom<&TensorView<'a>> for ::safetensors::tensor::TensorView<'a> {
    type Error = LayoutError;

    fn try_from(view: &TensorView<'a>) -> Result<Self, LayoutError> {
        let layout = view.layout();
        if !super::is_contiguous(layout.dim_order()) {
            return Err(LayoutError::Strides);
        }
        let dtype = dtype_of(layout.scalar_type()).ok_or(LayoutError::ScalarType(layout.scalar_type()))?;
        let view = ::safetensors::tensor::TensorView::new(dtype, layout.sizes().to_vec(), view.data());
        view.map_err(|_| LayoutError::Overflow)
    }
}

/// The element type that a safetensors file calls so.
pub fn scalar_type_of(dtype: Dtype) -> Option<ScalarType> {
    let name = alloc::string::ToString::to_string(&dtype);
    ScalarType::called(|names| names.safetensors == Some(&name))
}

/// Returns the safetensors type of an element type.
pub fn dtype_of(scalar_type: ScalarType) -> Option<Dtype> {
    let name: StrDeserializer<'_, serde::de::value::Error> = scalar_type.names()?.safetensors?.into_deserializer();
    Dtype::deserialize(name).ok()
}
