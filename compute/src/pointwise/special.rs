//! Special functions.

use edgepack_format::scalar::{Element, ScalarType};

use super::{Body, Lane, Params, loops, map2, with_class};
use crate::float::Float;
use crate::functions as f;
use crate::functions::Kind;
use crate::number::{Cast, Compute};

fn double<C: Float>(x: C) -> f64 {
    x.cast()
}

fn to_i64<C: Compute>(x: C) -> i64 {
    x.cast()
}

loops! {
    pub airy_ai: float<C: Float> -> C, |p; a| C::of(f::airy_ai(double(a)));
    pub bessel_j0: float<C: Float> -> C, |p; a| C::of(libm::j0(double(a)));
    pub bessel_j1: float<C: Float> -> C, |p; a| C::of(libm::j1(double(a)));
    pub bessel_y0: float<C: Float> -> C, |p; a| C::of(libm::y0(double(a)));
    pub bessel_y1: float<C: Float> -> C, |p; a| C::of(libm::y1(double(a)));
    pub digamma: float<C: Float> -> C, |p; a| C::of(f::digamma(double(a)));
    pub erfc: float<C: Float> -> C, |p; a| C::of(libm::erfc(double(a)));
    pub erfcx: float<C: Float> -> C, |p; a| C::of(f::erfcx(double(a)));
    pub erfinv: float<C: Float> -> C, |p; a| C::of(f::erfinv(double(a)));
    pub exp2: float<C: Float> -> C, |p; a| C::of(double(a).exp2());
    pub i0: float<C: Float> -> C, |p; a| C::of(f::i0(double(a)));
    pub i0e: float<C: Float> -> C, |p; a| C::of(f::i0e(double(a)));
    pub i1: float<C: Float> -> C, |p; a| C::of(f::i1(double(a)));
    pub i1e: float<C: Float> -> C, |p; a| C::of(f::i1e(double(a)));
    pub k0: float<C: Float> -> C, |p; a| C::of(f::k0(double(a)));
    pub k0e: float<C: Float> -> C, |p; a| C::of(f::k0e(double(a)));
    pub k1: float<C: Float> -> C, |p; a| C::of(f::k1(double(a)));
    pub k1e: float<C: Float> -> C, |p; a| C::of(f::k1e(double(a)));
    pub lgamma: float<C: Float> -> C, |p; a| C::of(libm::lgamma(double(a)));
    pub mvlgamma: float<C: Float> -> C, |p; a| C::of(f::multivariate_lgamma(double(a), double(p[0])));
    pub ndtri: float<C: Float> -> C, |p; a| C::of(f::ndtri(double(a)));
    pub polygamma: float<C: Float> -> C, |p; a| C::of(f::polygamma(double(p[0]), double(a)));
    pub spherical_j0: float<C: Float> -> C, |p; a| C::of(f::spherical_j0(double(a)));
    pub hypot: float<C: Float> -> C, |p; a, b| C::of(double(a).hypot(double(b)));
    pub igamma: float<C: Float> -> C, |p; a, b| C::of(f::igamma(double(a), double(b)));
    pub igammac: float<C: Float> -> C, |p; a, b| C::of(f::igammac(double(a), double(b)));
    pub zeta: float<C: Float> -> C, |p; a, b| C::of(f::zeta(double(a), double(b)));
    pub chebyshev_t: float<C: Float> -> C, |p; a, b| C::of(f::polynomial(Kind::ChebyshevT, double(a), double(b)));
    pub chebyshev_u: float<C: Float> -> C, |p; a, b| C::of(f::polynomial(Kind::ChebyshevU, double(a), double(b)));
    pub chebyshev_v: float<C: Float> -> C, |p; a, b| C::of(f::polynomial(Kind::ChebyshevV, double(a), double(b)));
    pub chebyshev_w: float<C: Float> -> C, |p; a, b| C::of(f::polynomial(Kind::ChebyshevW, double(a), double(b)));
    pub shifted_t: float<C: Float> -> C, |p; a, b| C::of(f::polynomial(Kind::ChebyshevT, double(a) * 2.0 - 1.0, double(b)));
    pub shifted_u: float<C: Float> -> C, |p; a, b| C::of(f::polynomial(Kind::ChebyshevU, double(a) * 2.0 - 1.0, double(b)));
    pub shifted_v: float<C: Float> -> C, |p; a, b| C::of(f::polynomial(Kind::ChebyshevV, double(a) * 2.0 - 1.0, double(b)));
    pub shifted_w: float<C: Float> -> C, |p; a, b| C::of(f::polynomial(Kind::ChebyshevW, double(a) * 2.0 - 1.0, double(b)));
    pub hermite_h: float<C: Float> -> C, |p; a, b| C::of(f::polynomial(Kind::HermiteH, double(a), double(b)));
    pub hermite_he: float<C: Float> -> C, |p; a, b| C::of(f::polynomial(Kind::HermiteHe, double(a), double(b)));
    pub laguerre: float<C: Float> -> C, |p; a, b| C::of(f::polynomial(Kind::Laguerre, double(a), double(b)));
    pub legendre: float<C: Float> -> C, |p; a, b| C::of(f::polynomial(Kind::Legendre, double(a), double(b)));
}

/// Functions of two whole numbers.
macro_rules! whole {
    ($($name:ident: |$a:ident, $b:ident| $body:expr;)*) => {$(
        #[doc = concat!("Picks the loop of `", stringify!($body), "`.")]
        pub fn $name(compute: ScalarType) -> Option<Body> {
            fn run<C: Compute>(_: &Params, lanes: &[Lane<'_>], out: &mut [u8])
            where
                i64: Cast<C>,
            {
                map2(lanes, out, |a: C, b: C| -> C {
                    let ($a, $b) = (to_i64(a), to_i64(b));
                    Cast::cast($body)
                });
            }
            fn body<C: Compute>() -> Body
            where
                i64: Cast<C>,
            {
                Body { run: run::<C>, result: C::SCALAR_TYPE }
            }
            with_class!(integer, compute, T => body::<T>())
        }
    )*};
}

whole! {
    gcd: |a, b| f::gcd(a, b);
    lcm: |a, b| match f::gcd(a, b) {
        0 => 0,
        divisor => (a / divisor).wrapping_mul(b).wrapping_abs(),
    };
}

/// Picks the loop of the next number from `a` towards `b`.
pub fn nextafter(compute: ScalarType) -> Option<Body> {
    macro_rules! next {
        ($t:ident) => {{
            fn run(_: &Params, lanes: &[Lane<'_>], out: &mut [u8]) {
                map2(lanes, out, |a: $t, b: $t| match a.partial_cmp(&b) {
                    Some(std::cmp::Ordering::Less) => a.next_up(),
                    Some(std::cmp::Ordering::Greater) => a.next_down(),
                    Some(std::cmp::Ordering::Equal) => b,
                    None => $t::NAN,
                });
            }
            Some(Body { run, result: $t::SCALAR_TYPE })
        }};
    }
    match compute {
        ScalarType::FLOAT => next!(f32),
        ScalarType::DOUBLE => next!(f64),
        _ => None,
    }
}
