//! Numbers of every element type: conversions, and the arithmetic of the types that operators compute in.
//!
//! Conversions follow C++ where C++ defines them. A float outside the range of an integer of up to 16 bits wraps
//! around, as it does on x86; outside the range of a wider one it saturates; NaN becomes 0 and, as a bool, true.
//! Integer arithmetic wraps around. BOOL computes as `{0, 1}`: sums are "or", products are "and".

use crate::element::{PodElement, Scalar};
use edgepack_format::scalar::Bool;
use half::{bf16, f16};

/// A conversion between two element types.
pub trait Cast<To> {
    /// Converts.
    fn cast(self) -> To;
}

macro_rules! cast {
    // A narrow integer takes the low bits of a float, as the conversion instruction of x86 leaves them.
    (f32 => u8, $x:expr) => {
        $x as i32 as u8
    };
    (f32 => i8, $x:expr) => {
        $x as i32 as i8
    };
    (f32 => u16, $x:expr) => {
        $x as i32 as u16
    };
    (f32 => i16, $x:expr) => {
        $x as i32 as i16
    };
    (f64 => u8, $x:expr) => {
        $x as i32 as u8
    };
    (f64 => i8, $x:expr) => {
        $x as i32 as i8
    };
    (f64 => u16, $x:expr) => {
        $x as i32 as u16
    };
    (f64 => i16, $x:expr) => {
        $x as i32 as i16
    };
    ($from:ident => $to:ident, $x:expr) => {
        $x as $to
    };
}

macro_rules! casts {
    ($($from:ident)*) => { $(casts!(@from $from: u8 i8 i16 i32 i64 u16 u32 u64 f32 f64);)* };
    (@from $from:ident: $($to:ident)*) => {
        $(impl Cast<$to> for $from {
            #[inline(always)]
            fn cast(self) -> $to {
                cast!($from => $to, self)
            }
        })*
        impl Cast<Bool> for $from {
            #[inline(always)]
            fn cast(self) -> Bool {
                Bool::from(self != 0 as $from)
            }
        }
        impl Cast<$from> for Bool {
            #[inline(always)]
            fn cast(self) -> $from {
                self.get() as u8 as $from
            }
        }
        impl Cast<f16> for $from {
            #[inline(always)]
            fn cast(self) -> f16 {
                f16::from_f32(self as f32)
            }
        }
        impl Cast<bf16> for $from {
            #[inline(always)]
            fn cast(self) -> bf16 {
                bf16::from_f32(self as f32)
            }
        }
        impl Cast<$from> for f16 {
            #[inline(always)]
            fn cast(self) -> $from {
                self.to_f32().cast()
            }
        }
        impl Cast<$from> for bf16 {
            #[inline(always)]
            fn cast(self) -> $from {
                self.to_f32().cast()
            }
        }
    };
}

casts!(u8 i8 i16 i32 i64 u16 u32 u64 f32 f64);

macro_rules! small_casts {
    ($($from:ident => $to:ident: |$x:ident| $body:expr;)*) => {
        $(impl Cast<$to> for $from {
            #[inline(always)]
            fn cast(self) -> $to {
                let $x = self;
                $body
            }
        })*
    };
}

small_casts! {
    f16 => f16: |x| x;
    bf16 => bf16: |x| x;
    Bool => Bool: |x| Bool::from(x.get());
    f16 => bf16: |x| bf16::from_f32(x.to_f32());
    bf16 => f16: |x| f16::from_f32(x.to_f32());
    f16 => Bool: |x| Bool::from(x.to_f32() != 0.0);
    bf16 => Bool: |x| Bool::from(x.to_f32() != 0.0);
    Bool => f16: |x| f16::from_f32(f32::from(u8::from(x.get())));
    Bool => bf16: |x| bf16::from_f32(f32::from(u8::from(x.get())));
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
    /// Whether it is `f32` or `f64`.
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
    /// Whether `self < other`; false for NaN.
    fn less(self, other: Self) -> bool;
    /// Whether `self == other`; false for NaN.
    fn same(self, other: Self) -> bool;
    /// Whether it is NaN.
    fn is_nan(self) -> bool;

    /// Whether it is 0.
    #[inline(always)]
    fn is_zero(self) -> bool {
        self.same(Self::ZERO)
    }

    /// Whether it is true as a bool: everything but 0.
    #[inline(always)]
    fn is_true(self) -> bool {
        !self.is_zero()
    }

    /// Whether `self <= other`; false for NaN.
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

macro_rules! compute_integer {
    ($($t:ident)*) => {
        $(impl Compute for $t {
            const ZERO: Self = 0;
            const ONE: Self = 1;
            const LEAST: Self = $t::MIN;
            const GREATEST: Self = $t::MAX;
            const FLOATING: bool = false;

            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn minus(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }
            #[inline(always)]
            fn times(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }
            #[inline(always)]
            fn trunc_div(self, other: Self) -> Self {
                self.wrapping_div(other)
            }
            #[inline(always)]
            fn floor_div(self, other: Self) -> Self {
                let quotient = self.wrapping_div(other);
                #[allow(unused_comparisons, reason = "one body for signed and unsigned types")]
                if self.wrapping_rem(other) != 0 && (self < 0) != (other < 0) {
                    quotient.wrapping_sub(1)
                } else {
                    quotient
                }
            }
            #[inline(always)]
            fn rem_floor(self, other: Self) -> Self {
                let rest = self.wrapping_rem(other);
                #[allow(unused_comparisons, reason = "one body for signed and unsigned types")]
                if rest != 0 && (rest < 0) != (other < 0) {
                    rest.wrapping_add(other)
                } else {
                    rest
                }
            }
            #[inline(always)]
            fn rem_trunc(self, other: Self) -> Self {
                self.wrapping_rem(other)
            }
            #[inline]
            fn power(self, other: Self) -> Self {
                #[allow(unused_comparisons, reason = "one body for signed and unsigned types")]
                if other < 0 {
                    return match self {
                        1 => 1,
                        _ if self.wrapping_add(1) == 0 => if other % 2 == 0 { 1 } else { self },
                        _ => 0,
                    };
                }
                let (mut base, mut exponent, mut result) = (self, other, 1);
                while exponent != 0 {
                    if exponent & 1 == 1 {
                        result = $t::wrapping_mul(result, base);
                    }
                    base = base.wrapping_mul(base);
                    exponent >>= 1;
                }
                result
            }
            #[inline(always)]
            fn less(self, other: Self) -> bool {
                self < other
            }
            #[inline(always)]
            fn same(self, other: Self) -> bool {
                self == other
            }
            #[inline(always)]
            fn is_nan(self) -> bool {
                false
            }
            #[inline(always)]
            fn negative(self) -> Self {
                self.wrapping_neg()
            }
            #[inline(always)]
            fn magnitude(self) -> Self {
                #[allow(unused_comparisons, reason = "one body for signed and unsigned types")]
                if self < 0 { self.wrapping_neg() } else { self }
            }
        })*
    };
}

compute_integer!(u8 i8 i16 i32 i64 u64);

macro_rules! compute_float {
    ($($t:ident)*) => {
        $(impl Compute for $t {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const LEAST: Self = $t::NEG_INFINITY;
            const GREATEST: Self = $t::INFINITY;
            const FLOATING: bool = true;

            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self + other
            }
            #[inline(always)]
            fn minus(self, other: Self) -> Self {
                self - other
            }
            #[inline(always)]
            fn times(self, other: Self) -> Self {
                self * other
            }
            #[inline(always)]
            fn trunc_div(self, other: Self) -> Self {
                (self / other).trunc()
            }
            #[inline]
            fn floor_div(self, other: Self) -> Self {
                if other == 0.0 {
                    return self / other;
                }
                // From the exact remainder: the rounded quotient may be an integer that the exact one does not reach.
                let rest = self % other;
                let mut quotient = (self - rest) / other;
                if rest != 0.0 && (other < 0.0) != (rest < 0.0) {
                    quotient -= 1.0;
                }
                if quotient == 0.0 {
                    return (0.0 as $t).copysign(self / other);
                }
                let floor = quotient.floor();
                if quotient - floor > 0.5 { floor + 1.0 } else { floor }
            }
            #[inline(always)]
            fn rem_floor(self, other: Self) -> Self {
                let rest = self % other;
                if rest != 0.0 && (rest < 0.0) != (other < 0.0) { rest + other } else { rest }
            }
            #[inline(always)]
            fn rem_trunc(self, other: Self) -> Self {
                self % other
            }
            #[inline(always)]
            fn power(self, other: Self) -> Self {
                self.powf(other)
            }
            #[inline(always)]
            fn less(self, other: Self) -> bool {
                self < other
            }
            #[inline(always)]
            fn same(self, other: Self) -> bool {
                self == other
            }
            #[inline(always)]
            fn is_nan(self) -> bool {
                $t::is_nan(self)
            }
            #[inline(always)]
            fn negative(self) -> Self {
                -self
            }
            #[inline(always)]
            fn magnitude(self) -> Self {
                self.abs()
            }
        })*
    };
}

compute_float!(f32 f64);

impl Compute for Bool {
    const ZERO: Self = Bool(0);
    const ONE: Self = Bool(1);
    const LEAST: Self = Bool(0);
    const GREATEST: Self = Bool(1);
    const FLOATING: bool = false;

    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        Bool::from(self.get() | other.get())
    }
    #[inline(always)]
    fn minus(self, other: Self) -> Self {
        Bool::from(self.get() ^ other.get())
    }
    #[inline(always)]
    fn times(self, other: Self) -> Self {
        Bool::from(self.get() & other.get())
    }
    #[inline(always)]
    fn trunc_div(self, _: Self) -> Self {
        Bool::from(self.get())
    }
    #[inline(always)]
    fn floor_div(self, _: Self) -> Self {
        Bool::from(self.get())
    }
    #[inline(always)]
    fn rem_floor(self, _: Self) -> Self {
        Bool(0)
    }
    #[inline(always)]
    fn rem_trunc(self, _: Self) -> Self {
        Bool(0)
    }
    #[inline(always)]
    fn power(self, other: Self) -> Self {
        Bool::from(self.get() | !other.get())
    }
    #[inline(always)]
    fn less(self, other: Self) -> bool {
        !self.get() & other.get()
    }
    #[inline(always)]
    fn same(self, other: Self) -> bool {
        self.get() == other.get()
    }
    #[inline(always)]
    fn is_nan(self) -> bool {
        false
    }
    #[inline(always)]
    fn negative(self) -> Self {
        self
    }
    #[inline(always)]
    fn magnitude(self) -> Self {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn division_rounds_as_asked() {
        for (a, b, trunc, floor, rest) in
            [(7i32, 2, 3, 3, 1), (-7, 2, -3, -4, 1), (7, -2, -3, -4, -1), (-7, -2, 3, 3, -1)]
        {
            assert_eq!((a.trunc_div(b), a.floor_div(b), a.rem_floor(b)), (trunc, floor, rest), "{a} by {b}");
            let (x, y) = (a as f32, b as f32);
            assert_eq!((x.trunc_div(y), x.floor_div(y), x.rem_floor(y)), (trunc as f32, floor as f32, rest as f32));
        }
        assert_eq!(i8::MIN.floor_div(-1), i8::MIN);
        assert_eq!(i8::MIN.rem_floor(-1), 0);
        assert_eq!(1.0f64.floor_div(0.0), f64::INFINITY);
        assert!(f64::NAN.rem_floor(2.0).is_nan());
    }

    #[test]
    fn powers_of_integers_wrap_and_vanish() {
        assert_eq!(3u8.power(6), 217);
        assert_eq!((2i32.power(-1), (-1i32).power(-3), (-1i32).power(-2), 1i32.power(-9)), (0, -1, 1, 1));
        assert_eq!(5i64.power(0), 1);
    }

    #[test]
    fn nan_wins_extremes() {
        for (a, b) in [(f32::NAN, 1.0), (1.0, f32::NAN)] {
            assert!(a.greater_of(b).is_nan() && a.lesser_of(b).is_nan());
        }
        assert_eq!((2i8.greater_of(3), 2i8.lesser_of(3)), (3, 2));
    }

    #[test]
    fn conversions_wrap_and_saturate() {
        assert_eq!(Cast::<u8>::cast(-1.0f32), 255);
        assert_eq!(Cast::<i8>::cast(300i64), 44);
        assert_eq!(Cast::<i64>::cast(f64::INFINITY), i64::MAX);
        assert_eq!(Cast::<Bool>::cast(f16::NAN), Bool(1));
        assert_eq!(Cast::<i32>::cast(Bool(7)), 1);
        assert_eq!(Cast::<f32>::cast(bf16::from_f32(1.5)), 1.5);
    }
}
