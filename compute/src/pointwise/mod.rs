//! Loops over elements in the same place of their operands: slices of one type to compute in, or one number repeated.
//!
//! A [`Table`] names the function of an element and picks the loop for the type to compute in; a [`Loop`] takes operands as
//! bytes, so that all loops have one type. Nothing here knows shapes: callers bring every operand into this form.
//!
//! ```
//! use edgepack_compute::element::Scalar;
//! use edgepack_compute::pointwise::{Lane, Params, activation};
//! use edgepack_format::scalar::ScalarType;
//!
//! let slope = Params([Scalar::Double(0.5), Scalar::Int(0), Scalar::Int(0)]);
//! let (x, mut y) = ([-4.0f32, 3.0], [0.0f32; 2]);
//! let leaky_relu = activation::leaky_relu(ScalarType::FLOAT).unwrap();
//! let operand = Lane { bytes: bytemuck::cast_slice(&x), constant: false };
//! (leaky_relu.run)(&slope, &[operand], bytemuck::cast_slice_mut(&mut y));
//! assert_eq!(y, [-2.0, 3.0]);
//! ```

pub mod activation;
pub mod arithmetic;
pub mod complex;
mod exponential;
pub mod logic;
pub mod special;
pub mod unary;

use std::marker::PhantomData;

use bytemuck::Pod;
use edgepack_format::scalar::ScalarType;
pub(crate) use exponential::{silu, silu_in_place};

use crate::element::Scalar;
use crate::number::{Compute, Number};
use crate::simd::{self, run_wide};

/// `x * min(max(x + 3, 0), 6) / 6`; NaN stays.
#[inline(always)]
pub(crate) fn hard_swish(x: f32) -> f32 {
    let raised = if x + 3.0 < 0.0 { 0.0 } else { x + 3.0 };
    x * (if raised > 6.0 { 6.0 } else { raised }) / 6.0
}

/// One operand of a loop.
#[derive(Clone, Copy, Debug)]
pub struct Lane<'a> {
    /// The elements, aligned; only the first counts if it is constant.
    pub bytes: &'a [u8],
    /// True if the first element is the value of all.
    pub constant: bool,
}

/// The numbers of a function that are not operands, such as the slope of a leaky ReLU.
#[derive(Clone, Copy, Debug)]
pub struct Params(pub [Scalar; 3]);

impl Params {
    /// Returns the numbers in the type to compute in.
    pub fn of<C: Number>(&self) -> [C; 3] {
        self.0.map(C::from_scalar)
    }
}

/// A loop for one type to compute in: further numbers, operands, and the result, which has as many elements as every
/// operand that is not constant. Bytes are aligned to their elements.
pub type Loop = fn(&Params, &[Lane<'_>], &mut [u8]);

/// A loop and the type of what it writes.
#[derive(Clone, Copy)]
pub struct Body {
    /// Loop over lanes of the type to compute in.
    pub run: Loop,
    /// Element type of the bytes that the loop writes.
    pub result: ScalarType,
}

/// The loops of a function by type to compute in; `None` where the function is not defined.
pub type Table = fn(ScalarType) -> Option<Body>;

/// A lane as typed values.
#[derive(Clone, Copy)]
pub enum Values<'a, T> {
    /// One per element.
    Each(&'a [T]),
    /// One value for all elements.
    One(T),
}

impl<T: Pod> Values<'_, T> {
    #[inline(always)]
    fn at(&self, index: usize) -> T {
        match self {
            Values::Each(values) => values[index],
            Values::One(value) => *value,
        }
    }
}

impl Lane<'_> {
    /// Returns the elements as values of type `T`.
    pub fn values<T: Pod>(&self) -> Values<'_, T> {
        if self.constant {
            Values::One(bytemuck::pod_read_unaligned(&self.bytes[..size_of::<T>()]))
        } else {
            Values::Each(bytemuck::cast_slice(self.bytes))
        }
    }
}

/// The end of a type's range that replaces a bound that is not given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// Least number of the type; negative infinity for floats.
    Least,
    /// Greatest number of the type; infinity for floats.
    Greatest,
}

impl Limit {
    /// Returns the value of a type to compute in, in the first bytes of a word; 0 for other types.
    pub fn bits(self, compute: ScalarType) -> u64 {
        fn of<C: Compute>(limit: Limit) -> u64 {
            let mut word = 0;
            let value = if limit == Limit::Least { C::LEAST } else { C::GREATEST };
            bytemuck::bytes_of_mut(&mut word)[..size_of::<C>()].copy_from_slice(bytemuck::bytes_of(&value));
            word
        }
        with_class!(all, compute, T => of::<T>(self)).unwrap_or(0)
    }
}

/// Applies a function to every element.
#[inline(always)]
pub fn map1<A: Pod, R: Pod>(lanes: &[Lane<'_>], out: &mut [u8], f: impl Fn(A) -> R) {
    let out: &mut [R] = bytemuck::cast_slice_mut(out);
    match lanes[0].values() {
        Values::Each(a) => out.iter_mut().zip(a).for_each(|(out, &a)| *out = f(a)),
        Values::One(a) => out.fill(f(a)),
    }
}

/// Applies a function to every pair of elements.
#[inline(always)]
pub fn map2<A: Pod, B: Pod, R: Pod>(lanes: &[Lane<'_>], out: &mut [u8], f: impl Fn(A, B) -> R) {
    let out: &mut [R] = bytemuck::cast_slice_mut(out);
    match (lanes[0].values(), lanes[1].values()) {
        (Values::Each(a), Values::Each(b)) => {
            out.iter_mut().zip(a).zip(b).for_each(|((out, &a), &b)| *out = f(a, b));
        }
        (Values::Each(a), Values::One(b)) => out.iter_mut().zip(a).for_each(|(out, &a)| *out = f(a, b)),
        (Values::One(a), Values::Each(b)) => out.iter_mut().zip(b).for_each(|(out, &b)| *out = f(a, b)),
        (Values::One(a), Values::One(b)) => out.fill(f(a, b)),
    }
}

/// Applies a function to every three elements.
#[inline(always)]
pub fn map3<A: Pod, B: Pod, C: Pod, R: Pod>(lanes: &[Lane<'_>], out: &mut [u8], f: impl Fn(A, B, C) -> R) {
    let out: &mut [R] = bytemuck::cast_slice_mut(out);
    match (lanes[0].values(), lanes[1].values(), lanes[2].values()) {
        (Values::Each(a), Values::Each(b), Values::Each(c)) => {
            out.iter_mut().zip(a).zip(b).zip(c).for_each(|(((out, &a), &b), &c)| *out = f(a, b, c));
        }
        (Values::Each(a), Values::Each(b), Values::One(c)) => {
            out.iter_mut().zip(a).zip(b).for_each(|((out, &a), &b)| *out = f(a, b, c));
        }
        (Values::Each(a), Values::One(b), Values::Each(c)) => {
            out.iter_mut().zip(a).zip(c).for_each(|((out, &a), &c)| *out = f(a, b, c));
        }
        (Values::Each(a), Values::One(b), Values::One(c)) => {
            out.iter_mut().zip(a).for_each(|(out, &a)| *out = f(a, b, c));
        }
        (a, b, c) => out.iter_mut().enumerate().for_each(|(i, out)| *out = f(a.at(i), b.at(i), c.at(i))),
    }
}

/// Operands that go through a function of `A`, a tuple of as many numbers.
struct Mapped<'a, 'l, A, F> {
    lanes: &'a [Lane<'l>],
    out: &'a mut [u8],
    f: F,
    of: PhantomData<A>,
}

impl<'a, 'l, A, F> Mapped<'a, 'l, A, F> {
    fn of(lanes: &'a [Lane<'l>], out: &'a mut [u8], f: F) -> Self {
        Mapped { lanes, out, f, of: PhantomData }
    }

    /// Runs the loop, that of `f32` with every vector instruction of this machine: those of other types are rarely long, and
    /// each would be compiled once more for every kind of machine.
    #[inline(always)]
    fn run_as<C: Compute>(self)
    where
        Self: simd::Loop,
    {
        if const { C::FLOATING && size_of::<C>() == size_of::<f32>() } { run_wide(self) } else { simd::Loop::run(self) }
    }
}

impl<A: Pod, R: Pod, F: Fn(A) -> R> simd::Loop for Mapped<'_, '_, (A,), F> {
    #[inline(always)]
    fn run(self) {
        map1(self.lanes, self.out, self.f);
    }
}

impl<A: Pod, B: Pod, R: Pod, F: Fn(A, B) -> R> simd::Loop for Mapped<'_, '_, (A, B), F> {
    #[inline(always)]
    fn run(self) {
        map2(self.lanes, self.out, self.f);
    }
}

impl<A: Pod, B: Pod, C: Pod, R: Pod, F: Fn(A, B, C) -> R> simd::Loop for Mapped<'_, '_, (A, B, C), F> {
    #[inline(always)]
    fn run(self) {
        map3(self.lanes, self.out, self.f);
    }
}

/// Picks the type to compute in from a class of types: `all` of them, `real` (without BOOL), `bits` (integers and
/// BOOL) or `float`.
macro_rules! with_class {
    (all, $dtype:expr, $T:ident => $body:expr) => {
        $crate::pointwise::with_class!(@ $dtype, $T => $body; BYTE u8, CHAR i8, SHORT i16, INT i32, LONG i64, FLOAT f32, DOUBLE f64,
            BOOL edgepack_format::scalar::Bool)
    };
    (real, $dtype:expr, $T:ident => $body:expr) => {
        $crate::pointwise::with_class!(@ $dtype, $T => $body; BYTE u8, CHAR i8, SHORT i16, INT i32, LONG i64, FLOAT f32, DOUBLE f64)
    };
    (bits, $dtype:expr, $T:ident => $body:expr) => {
        $crate::pointwise::with_class!(@ $dtype, $T => $body; BYTE u8, CHAR i8, SHORT i16, INT i32, LONG i64,
            BOOL edgepack_format::scalar::Bool)
    };
    (integer, $dtype:expr, $T:ident => $body:expr) => {
        $crate::pointwise::with_class!(@ $dtype, $T => $body; BYTE u8, CHAR i8, SHORT i16, INT i32, LONG i64)
    };
    (float, $dtype:expr, $T:ident => $body:expr) => {
        $crate::pointwise::with_class!(@ $dtype, $T => $body; FLOAT f32, DOUBLE f64)
    };
    (@ $dtype:expr, $T:ident => $body:expr; $($name:ident $rust:ty),*) => {
        match $dtype {
            $(edgepack_format::scalar::ScalarType::$name => {
                type $T = $rust;
                Some($body)
            })*
            _ => None,
        }
    };
}

/// Table functions: `[pub] name: class<C: Bound> -> Result, |params; operands| value;`.
macro_rules! loops {
    ($($(#[$meta:meta])* $vis:vis $name:ident: $class:ident<$C:ident: $bound:path> -> $R:ty, |$p:ident; $($x:ident),+| $body:expr;)*) => {$(
        $(#[$meta])*
        #[doc = concat!("Picks the loop of `", stringify!($body), "`.")]
        $vis fn $name(compute: edgepack_format::scalar::ScalarType) -> Option<crate::pointwise::Body> {
            fn run<$C: $bound>(
                params: &crate::pointwise::Params,
                lanes: &[crate::pointwise::Lane<'_>],
                out: &mut [u8],
            ) {
                let $p: [$C; 3] = params.of();
                let _ = $p;
                $crate::pointwise::loops!(@map lanes, out, |$($x),+| -> $R { $body }; $C);
            }
            fn body<$C: $bound>() -> crate::pointwise::Body {
                crate::pointwise::Body {
                    run: run::<$C>,
                    result: <$R as edgepack_format::scalar::Element>::SCALAR_TYPE,
                }
            }
            $crate::pointwise::with_class!($class, compute, T => body::<T>())
        }
    )*};
    (@map $lanes:ident, $out:ident, |$a:ident| -> $R:ty $body:block; $C:ident) => {
        $crate::pointwise::Mapped::<($C,), _>::of($lanes, $out, |$a: $C| -> $R { $body }).run_as::<$C>()
    };
    (@map $lanes:ident, $out:ident, |$a:ident, $b:ident| -> $R:ty $body:block; $C:ident) => {
        $crate::pointwise::Mapped::<($C, $C), _>::of($lanes, $out, |$a: $C, $b: $C| -> $R { $body }).run_as::<$C>()
    };
    (@map $lanes:ident, $out:ident, |$a:ident, $b:ident, $c:ident| -> $R:ty $body:block; $C:ident) => {
        $crate::pointwise::Mapped::<($C, $C, $C), _>::of($lanes, $out, |$a: $C, $b: $C, $c: $C| -> $R { $body })
            .run_as::<$C>()
    };
}

pub(crate) use {loops, with_class};
