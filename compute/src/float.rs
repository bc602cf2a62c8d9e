//! The functions of mathematics for the two floating types that operators compute in.

use crate::number::Compute;

/// `f32` or `f64`, with the functions of mathematics.
pub trait Float: Compute {
    /// Converts a double, rounded.
    fn of(value: f64) -> Self;
    /// `self / other`.
    fn over(self, other: Self) -> Self;
    /// e to the power of `self`.
    fn exp(self) -> Self;
    /// `exp(self) - 1`, accurate near 0.
    fn exp_m1(self) -> Self;
    /// Natural logarithm; NaN below 0.
    fn ln(self) -> Self;
    /// `ln(1 + self)`, accurate near 0.
    fn ln_1p(self) -> Self;
    /// Logarithm to base 2; NaN below 0.
    fn log2(self) -> Self;
    /// Logarithm to base 10; NaN below 0.
    fn log10(self) -> Self;
    /// Square root; NaN below 0.
    fn sqrt(self) -> Self;
    /// Sine of an angle in radians.
    fn sin(self) -> Self;
    /// Cosine of an angle in radians.
    fn cos(self) -> Self;
    /// Tangent of an angle in radians.
    fn tan(self) -> Self;
    /// Angle in radians, from -π/2 to π/2, that has this sine; NaN outside of -1 to 1.
    fn asin(self) -> Self;
    /// Angle in radians, from 0 to π, that has this cosine; NaN outside of -1 to 1.
    fn acos(self) -> Self;
    /// Angle in radians, from -π/2 to π/2, that has this tangent.
    fn atan(self) -> Self;
    /// Angle of the point (`other`, `self`) in radians, from -π to π.
    fn atan2(self, other: Self) -> Self;
    /// `(exp(self) - exp(-self)) / 2`.
    fn sinh(self) -> Self;
    /// `(exp(self) + exp(-self)) / 2`.
    fn cosh(self) -> Self;
    /// `sinh(self) / cosh(self)`, from -1 to 1.
    fn tanh(self) -> Self;
    /// Number that has this hyperbolic sine.
    fn asinh(self) -> Self;
    /// Number from 0 on that has this hyperbolic cosine; NaN below 1.
    fn acosh(self) -> Self;
    /// Number that has this hyperbolic tangent; NaN outside of -1 to 1.
    fn atanh(self) -> Self;
    /// The error function.
    fn erf(self) -> Self;
    /// The next integer below.
    fn floor(self) -> Self;
    /// The next integer above.
    fn ceil(self) -> Self;
    /// The next integer towards zero.
    fn trunc(self) -> Self;
    /// The nearest integer, the even one of two.
    fn round_even(self) -> Self;
    /// Returns whether it is an infinity.
    fn is_infinite(self) -> bool;
}

macro_rules! float {
    ($t:ident, acosh => $acosh:ident, $($method:ident => $function:ident),*; $($own:ident),*) => {
        impl Float for $t {
            #[inline(always)]
            fn of(value: f64) -> Self {
                value as $t
            }
            #[inline(always)]
            fn over(self, other: Self) -> Self {
                self / other
            }
            $(#[inline(always)]
            fn $method(self) -> Self {
                libm::$function(self)
            })*
            #[inline(always)]
            fn acosh(self) -> Self {
                // Far below 1 the function of the library answers with numbers.
                if self < 1.0 { $t::NAN } else { libm::$acosh(self) }
            }
            $(#[inline(always)]
            fn $own(self) -> Self {
                $t::$own(self)
            })*
            #[inline(always)]
            fn atan2(self, other: Self) -> Self {
                $t::atan2(self, other)
            }
            #[inline(always)]
            fn round_even(self) -> Self {
                self.round_ties_even()
            }
            #[inline(always)]
            fn is_infinite(self) -> bool {
                $t::is_infinite(self)
            }
        }
    };
}

// The standard library where it is accurate everywhere; its inverse hyperbolic functions lose digits near zero.
float!(f32, acosh => acoshf, erf => erff, asinh => asinhf, atanh => atanhf;
    exp, exp_m1, ln, ln_1p, log2, log10, sqrt, sin, cos, tan, asin, acos, atan, sinh, cosh, tanh, floor, ceil, trunc);
float!(f64, acosh => acosh, erf => erf, asinh => asinh, atanh => atanh;
    exp, exp_m1, ln, ln_1p, log2, log10, sqrt, sin, cos, tan, asin, acos, atan, sinh, cosh, tanh, floor, ceil, trunc);
