//! Scales, zero points and bounds as arguments of operators, and what is refused of them.

use edgepack_compute::number::Cast;
use edgepack_compute::quantise::{self, Affine, AffineLoop};
use edgepack_executor::kernel::KernelError;
use edgepack_executor::tensor::TensorRef;
use edgepack_executor::with_element;
use edgepack_format::scalar::ScalarType;

/// The loop from a floating type to a quantised one.
pub fn quantizer(from: ScalarType, to: ScalarType) -> Result<AffineLoop, KernelError> {
    quantise::quantizer(from, to)
        .ok_or_else(|| KernelError::argument(format!("elements of type {from} cannot be quantised to {to}")))
}

/// The loop from a quantised type to a floating one.
pub fn dequantizer(from: ScalarType, to: ScalarType) -> Result<AffineLoop, KernelError> {
    quantise::dequantizer(from, to)
        .ok_or_else(|| KernelError::argument(format!("elements of type {from} cannot be dequantised to {to}")))
}

/// Returns an error unless the bounds are in order and within an element type.
pub fn expect_bounds(affine: &Affine, dtype: ScalarType) -> Result<(), KernelError> {
    if affine.fits(dtype) {
        return Ok(());
    }
    let Affine { least, greatest, .. } = affine;
    Err(KernelError::argument(format!("`quant_min` {least} and `quant_max` {greatest} are no range of {dtype}")))
}

/// Element `at`, in memory order, of a tensor of numbers.
pub fn number_at(tensor: &TensorRef<'_>, at: usize) -> Result<f64, KernelError> {
    let bytes = tensor.bytes();
    with_element!(tensor.dtype, T => {
        let Some(element) = bytes.get(at * size_of::<T>()..(at + 1) * size_of::<T>()) else {
            return Err(KernelError::argument(format!("a scale or zero point at {at} is missing: there are {}", tensor.element_count())));
        };
        Ok(bytemuck::pod_read_unaligned::<T>(element).cast())
    }, else => Err(KernelError::argument(format!("{} is not a type of a scale or zero point", tensor.dtype))))
}
