//! Sums, differences, products, quotients, magnitudes and conjugates of complex numbers.

use edgepack_format::scalar::{Element, ScalarType};

use super::{Body, Lane, Params, map1, map2};
use crate::complex::{Complex, conjugate, magnitude, minus, over, plus, times};
use crate::element::Scalar;
use crate::float::Float;
use crate::number::Number;

/// The parts of complex numbers that are computed with.
trait Part: Float + Element {
    /// The type of the numbers.
    const COMPLEX: ScalarType;
}

impl Part for f32 {
    const COMPLEX: ScalarType = ScalarType::COMPLEX_FLOAT;
}

impl Part for f64 {
    const COMPLEX: ScalarType = ScalarType::COMPLEX_DOUBLE;
}

/// Loops over pairs of complex numbers; `p` is the first further number.
macro_rules! pairs {
    ($($name:ident: |$p:ident; $a:ident, $b:ident| $body:expr;)*) => {$(
        pub(super) fn $name(compute: ScalarType) -> Option<Body> {
            fn run<R: Part>(params: &Params, lanes: &[Lane<'_>], out: &mut [u8]) {
                let $p: Complex<R> = real(params.0[0]);
                let _ = $p;
                map2(lanes, out, |$a: Complex<R>, $b: Complex<R>| -> Complex<R> { $body });
            }
            match compute {
                ScalarType::COMPLEX_FLOAT => Some(Body { run: run::<f32>, result: f32::COMPLEX }),
                ScalarType::COMPLEX_DOUBLE => Some(Body { run: run::<f64>, result: f64::COMPLEX }),
                _ => None,
            }
        }
    )*};
}

pairs! {
    add: |p; a, b| plus(a, times(b, p));
    plain_add: |p; a, b| plus(a, b);
    sub: |p; a, b| minus(a, times(b, p));
    mul: |p; a, b| times(a, b);
    div: |p; a, b| over(a, b);
}

fn real<R: Number>(number: Scalar) -> Complex<R> {
    [R::from_scalar(number), R::default()]
}

/// Returns a number as a complex one of a type, in the first bytes of two words.
pub fn bits(number: Scalar, dtype: ScalarType) -> u128 {
    fn of<R: Number>(number: Scalar) -> u128 {
        let mut word = 0u128;
        bytemuck::bytes_of_mut(&mut word)[..2 * size_of::<R>()].copy_from_slice(bytemuck::bytes_of(&real::<R>(number)));
        word
    }
    match dtype {
        ScalarType::COMPLEX_DOUBLE => of::<f64>(number),
        ScalarType::COMPLEX_HALF => of::<half::f16>(number),
        _ => of::<f32>(number),
    }
}

/// Picks the loop of magnitudes, which are real.
pub(super) fn abs(compute: ScalarType) -> Option<Body> {
    fn run<R: Part>(_: &Params, lanes: &[Lane<'_>], out: &mut [u8]) {
        map1(lanes, out, |x: Complex<R>| magnitude(x));
    }
    match compute {
        ScalarType::COMPLEX_FLOAT => Some(Body { run: run::<f32>, result: f32::SCALAR_TYPE }),
        ScalarType::COMPLEX_DOUBLE => Some(Body { run: run::<f64>, result: f64::SCALAR_TYPE }),
        _ => None,
    }
}

/// Picks the loop of conjugates.
pub fn conj(compute: ScalarType) -> Option<Body> {
    fn run<R: Part>(_: &Params, lanes: &[Lane<'_>], out: &mut [u8]) {
        map1(lanes, out, |x: Complex<R>| conjugate(x));
    }
    match compute {
        ScalarType::COMPLEX_FLOAT => Some(Body { run: run::<f32>, result: f32::COMPLEX }),
        ScalarType::COMPLEX_DOUBLE => Some(Body { run: run::<f64>, result: f64::COMPLEX }),
        _ => None,
    }
}
