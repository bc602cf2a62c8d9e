//! The loops between floats and quantised integers, one per pair of types.
//!
//! An integer `q` represents `(q - zero) * scale`. Quantising computes in `f32`, rounds to the nearest even integer and
//! clamps; NaN becomes the least integer.

use edgepack_format::scalar::ScalarType;

use crate::element::storage_type;
use crate::number::{Cast, Number};
use crate::simd::wide;

/// The meaning of quantised integers.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Affine {
    /// The distance of the numbers that neighbouring integers represent.
    pub scale: f32,
    /// The integer that represents 0.
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
                let value = Cast::<f32>::cast(from) * inverse;
                // Comparisons that NaN fails: one instruction each.
                let value = if value > low { value } else { low };
                let value = if value < high { value } else { high };
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

/// Picks the loop from a floating type to a quantised one; `None` if there is none between these types.
///
/// ```
/// use edgepack_compute::quantise::{Affine, quantizer};
/// use edgepack_format::scalar::ScalarType;
///
/// let quantize = quantizer(ScalarType::FLOAT, ScalarType::CHAR).unwrap();
/// let (x, mut q) = ([0.6f32, -90.0], [0i8; 2]);
/// let affine = Affine { scale: 0.5, zero: 3, least: -128, greatest: 127 };
/// quantize(&affine, bytemuck::cast_slice(&x), bytemuck::cast_slice_mut(&mut q));
/// assert_eq!(q, [4, -128]);
/// ```
pub fn quantizer(from: ScalarType, to: ScalarType) -> Option<AffineLoop> {
    pairs!(from, to, |F, Q| quantize::<F, Q> as AffineLoop)
}

/// Picks the loop from a quantised type to a floating one; `None` if there is none between these types.
pub fn dequantizer(from: ScalarType, to: ScalarType) -> Option<AffineLoop> {
    pairs!(to, from, |F, Q| dequantize::<Q, F> as AffineLoop)
}

/// Returns the least and greatest integer of an element type, if it can be quantised to.
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
    /// Returns whether the bounds are in order and within an element type.
    pub fn fits(&self, dtype: ScalarType) -> bool {
        range_of(dtype)
            .is_some_and(|(low, high)| low <= self.least && self.least <= self.greatest && self.greatest <= high)
    }
}
