//! The loops between floats and quantised integers, one per pair of types.

use edgepack_executor::kernel::KernelError;
use edgepack_executor::tensor::{TensorRef, storage_type};
use edgepack_executor::with_element;
use edgepack_format::scalar::ScalarType;

use edgepack_compute::number::{Cast, Number};
use edgepack_compute::simd::wide;

/// What the integers of a slice mean.
#[derive(Clone, Copy, Debug)]
pub struct Affine {
    /// The step between neighbouring integers.
    pub scale: f32,
    /// The integer that means 0.
    pub zero: i64,
    /// The least integer in use.
    pub least: i64,
    /// The greatest integer in use.
    pub greatest: i64,
}

/// Floats to integers, or back; slices are aligned to their elements.
pub type AffineLoop = fn(&Affine, &[u8], &mut [u8]);

/// Adding and subtracting this rounds a float below 2^22 to the nearest even integer, without a call.
const ROUNDER: f32 = 12_582_912.0;
const ROUNDED: f32 = 4_194_304.0;

fn quantize<F: Number, Q: Number>(affine: &Affine, from: &[u8], to: &mut [u8])
where
    i32: Cast<Q>,
    i64: Cast<Q>,
{
    let (from, to): (&[F], &mut [Q]) = (bytemuck::cast_slice(from), bytemuck::cast_slice_mut(to));
    let inverse = 1.0 / affine.scale;
    // Clamped before rounding: the bounds are integers, so the order does not matter, and NaN becomes the least.
    let (low, high) = ((affine.least - affine.zero) as f32, (affine.greatest - affine.zero) as f32);
    let zero = affine.zero as i32;
    if low > -ROUNDED && high < ROUNDED {
        wide(|| {
            for (to, &from) in to.iter_mut().zip(from) {
                let value = (Cast::<f32>::cast(from) * inverse).max(low).min(high);
                // The low bits of the sum are the integer: no conversion, which would have to look for overflow.
                *to = ((value + ROUNDER).to_bits().wrapping_sub(ROUNDER.to_bits()) as i32).wrapping_add(zero).cast();
            }
        });
    } else {
        for (to, &from) in to.iter_mut().zip(from) {
            let value = (Cast::<f32>::cast(from) * inverse).round_ties_even();
            let value = if value.is_nan() { affine.least } else { (value as i64).saturating_add(affine.zero) };
            *to = value.max(affine.least).min(affine.greatest).cast();
        }
    }
}

fn dequantize<Q: Number, F: Number>(affine: &Affine, from: &[u8], to: &mut [u8])
where
    f32: Cast<F>,
{
    let (from, to): (&[Q], &mut [F]) = (bytemuck::cast_slice(from), bytemuck::cast_slice_mut(to));
    let (zero, scale) = (affine.zero as i32, affine.scale);
    wide(|| {
        for (to, &from) in to.iter_mut().zip(from) {
            *to = (Cast::<i32>::cast(from).wrapping_sub(zero) as f32 * scale).cast();
        }
    });
}

macro_rules! pairs {
    ($float:expr, $integer:expr, |$F:ident, $Q:ident| $body:expr) => {
        match $float {
            ScalarType::FLOAT => pairs!(@ $integer, f32, |$F, $Q| $body),
            ScalarType::DOUBLE => pairs!(@ $integer, f64, |$F, $Q| $body),
            ScalarType::HALF => pairs!(@ $integer, half::f16, |$F, $Q| $body),
            ScalarType::BFLOAT16 => pairs!(@ $integer, half::bf16, |$F, $Q| $body),
            _ => None,
        }
    };
    (@ $integer:expr, $float:ty, |$F:ident, $Q:ident| $body:expr) => {{
        type $F = $float;
        match storage_type($integer) {
            ScalarType::BYTE => { type $Q = u8; Some($body) }
            ScalarType::CHAR => { type $Q = i8; Some($body) }
            ScalarType::SHORT => { type $Q = i16; Some($body) }
            ScalarType::INT => { type $Q = i32; Some($body) }
            ScalarType::UINT16 => { type $Q = u16; Some($body) }
            _ => None,
        }
    }};
}

/// The loop from a floating type to a quantised one.
pub fn quantizer(from: ScalarType, to: ScalarType) -> Result<AffineLoop, KernelError> {
    pairs!(from, to, |F, Q| quantize::<F, Q> as AffineLoop)
        .ok_or_else(|| KernelError::argument(format!("elements of type {from} cannot be quantised to {to}")))
}

/// The loop from a quantised type to a floating one.
pub fn dequantizer(from: ScalarType, to: ScalarType) -> Result<AffineLoop, KernelError> {
    pairs!(to, from, |F, Q| dequantize::<Q, F> as AffineLoop)
        .ok_or_else(|| KernelError::argument(format!("elements of type {from} cannot be dequantised to {to}")))
}

/// The integers that an element type holds, if it can be quantised to.
pub fn range_of(dtype: ScalarType) -> Option<(i64, i64)> {
    Some(match storage_type(dtype) {
        ScalarType::BYTE => (0, 255),
        ScalarType::CHAR => (-128, 127),
        ScalarType::SHORT => (-32768, 32767),
        ScalarType::UINT16 => (0, 65535),
        ScalarType::INT => (i32::MIN.into(), i32::MAX.into()),
        _ => return None,
    })
}

impl Affine {
    /// An error unless the bounds are in order and within an element type.
    pub fn expect_in(&self, dtype: ScalarType) -> Result<(), KernelError> {
        let (least, greatest) = (self.least, self.greatest);
        match range_of(dtype) {
            Some((low, high)) if low <= least && least <= greatest && greatest <= high => Ok(()),
            _ => Err(KernelError::argument(format!(
                "`quant_min` {least} and `quant_max` {greatest} are no range of {dtype}"
            ))),
        }
    }
}

/// Element `at`, in memory order, of a tensor of numbers.
pub fn number_at(tensor: &TensorRef<'_>, at: usize) -> Result<f64, KernelError> {
    let bytes = tensor.bytes();
    with_element!(tensor.dtype, T => {
        let Some(element) = bytes.get(at * size_of::<T>()..(at + 1) * size_of::<T>()) else {
            return Err(KernelError::argument(format!("a scale or zero point at {at} is missing: there are {}", tensor.element_count())));
        };
        Ok(bytemuck::pod_read_unaligned::<T>(element).cast())
    }, else => Err(KernelError::argument(format!("{} is no type of a scale or zero point", tensor.dtype))))
}
