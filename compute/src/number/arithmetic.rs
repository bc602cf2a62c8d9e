//! The arithmetic of the types that operators compute in: integers, floats, BOOL.

use edgepack_format::scalar::Bool;

use super::Compute;

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
}
