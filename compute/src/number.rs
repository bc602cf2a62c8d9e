//! Numbers of every element type: conversions, and the arithmetic of the types that operators compute in.
//!
//! Integer arithmetic wraps around. BOOL computes as `{0, 1}`: sums are "or", products are "and".

mod arithmetic;
mod cast;

use std::any::TypeId;

use edgepack_format::scalar::Bool;
use half::{bf16, f16};

use crate::element::{PodElement, Scalar};

pub use cast::Cast;

/// Returns the elements as `f32`; `None` if they are of another type.
pub(crate) fn as_floats<T: Number>(data: &[T]) -> Option<&[f32]> {
    (TypeId::of::<T>() == TypeId::of::<f32>()).then(|| bytemuck::cast_slice(data))
}

/// Returns the elements as [`as_floats`] does, to write.
pub(crate) fn as_floats_mut<T: Number>(data: &mut [T]) -> Option<&mut [f32]> {
    (TypeId::of::<T>() == TypeId::of::<f32>()).then(|| bytemuck::cast_slice_mut(data))
}

/// An element type that converts to and from every other: the thirteen that `with_element!` names.
pub trait Number:
    PodElement
    + Default
    + Cast<u8>
    + Cast<i8>
    + Cast<i16>
    + Cast<i32>
    + Cast<i64>
    + Cast<u16>
    + Cast<u32>
    + Cast<u64>
    + Cast<f16>
    + Cast<bf16>
    + Cast<f32>
    + Cast<f64>
    + Cast<Bool>
{
    /// The type to compute in: itself, `f32` for the 16-bit floats, `i64` for the unsigned integers that fit it.
    type Compute: Compute + Cast<Self>;

    /// A number of an argument, cut to this type.
    fn from_scalar(scalar: Scalar) -> Self;

    /// Converted to the type to compute in.
    fn to_compute(self) -> Self::Compute;
}

macro_rules! numbers {
    ($($t:ty => $compute:ty),* $(,)?) => {
        $(impl Number for $t {
            type Compute = $compute;

            fn from_scalar(scalar: Scalar) -> Self {
                match scalar {
                    Scalar::Int(value) => value.cast(),
                    Scalar::Double(value) => value.cast(),
                    Scalar::Bool(value) => Bool::from(value).cast(),
                }
            }

            #[inline(always)]
            fn to_compute(self) -> $compute {
                self.cast()
            }
        })*
    };
}

numbers! {
    u8 => u8, i8 => i8, i16 => i16, i32 => i32, i64 => i64, f32 => f32, f64 => f64, Bool => Bool,
    f16 => f32, bf16 => f32, u16 => i64, u32 => i64, u64 => u64,
}

/// A type that operators compute in.
pub trait Compute: Number {
    /// 0.
    const ZERO: Self;
    /// 1.
    const ONE: Self;
    /// The least value: negative infinity for floats.
    const LEAST: Self;
    /// The greatest value: infinity for floats.
    const GREATEST: Self;
    /// True if it is `f32` or `f64`.
    const FLOATING: bool;

    /// `self + other`, wrapping around.
    fn plus(self, other: Self) -> Self;
    /// `self - other`, wrapping around.
    fn minus(self, other: Self) -> Self;
    /// `self * other`, wrapping around.
    fn times(self, other: Self) -> Self;
    /// `self / other` rounded towards zero; integers must not be divided by zero.
    fn trunc_div(self, other: Self) -> Self;
    /// `self / other` rounded down; integers must not be divided by zero.
    fn floor_div(self, other: Self) -> Self;
    /// The remainder that has the sign of `other`; integers must not be divided by zero.
    fn rem_floor(self, other: Self) -> Self;
    /// The remainder that has the sign of `self`; integers must not be divided by zero.
    fn rem_trunc(self, other: Self) -> Self;
    /// `self` to the power of `other`; an integer to a negative power is what rounding towards zero leaves.
    fn power(self, other: Self) -> Self;
    /// Returns whether `self < other`; false for NaN.
    fn less(self, other: Self) -> bool;
    /// Returns whether `self == other`; false for NaN.
    fn same(self, other: Self) -> bool;
    /// Returns whether it is NaN.
    fn is_nan(self) -> bool;

    /// Returns whether it is 0.
    #[inline(always)]
    fn is_zero(self) -> bool {
        self.same(Self::ZERO)
    }

    /// Returns whether it is true as a bool: everything but 0.
    #[inline(always)]
    fn is_true(self) -> bool {
        !self.is_zero()
    }

    /// Returns whether `self <= other`; false for NaN.
    #[inline(always)]
    fn less_or_same(self, other: Self) -> bool {
        self.less(other) || self.same(other)
    }

    /// The greater, NaN if one is NaN.
    #[inline(always)]
    fn greater_of(self, other: Self) -> Self {
        if self.is_nan() || other.less(self) { self } else { other }
    }

    /// The lesser, NaN if one is NaN.
    #[inline(always)]
    fn lesser_of(self, other: Self) -> Self {
        if self.is_nan() || self.less(other) { self } else { other }
    }

    /// `0 - self`, keeping the sign of zero.
    fn negative(self) -> Self;
    /// Without its sign.
    fn magnitude(self) -> Self;
}
