//! The inner loops of element-wise operators: over slices of one type to compute in, or one number repeated.
//!
//! A row of an operator table names a table function made by `loops!`; it picks the instance of a generic loop for a
//! type. Loops know nothing of shapes and element types: the engine brings every input into this form.

use bytemuck::Pod;
use edgepack_executor::tensor::Scalar;
use edgepack_format::scalar::ScalarType;

use edgepack_compute::number::Number;

/// One input of a loop.
#[derive(Clone, Copy, Debug)]
pub struct Lane<'a> {
    /// The elements, aligned; only the first counts if it is constant.
    pub bytes: &'a [u8],
    /// Whether the first element stands for all.
    pub constant: bool,
}

/// The numbers of an operator that are no operand, such as `alpha`.
#[derive(Clone, Copy, Debug)]
pub struct Params(pub [Scalar; 3]);

impl Params {
    /// As numbers of the type to compute in.
    pub fn of<C: Number>(&self) -> [C; 3] {
        self.0.map(C::from_scalar)
    }
}

/// A loop for one type to compute in.
pub type Loop = fn(&Params, &[Lane<'_>], &mut [u8]);

/// A loop and the type of what it writes.
#[derive(Clone, Copy)]
pub struct Body {
    /// The loop.
    pub run: Loop,
    /// The element type of its result.
    pub result: ScalarType,
}

/// The loops of an operator by type to compute in; `None` where the operator is not defined.
pub type Table = fn(ScalarType) -> Option<Body>;

/// A lane as typed values.
#[derive(Clone, Copy)]
pub enum Values<'a, T> {
    /// One per element.
    Each(&'a [T]),
    /// The same for all.
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
    /// As values of a type.
    pub fn values<T: Pod>(&self) -> Values<'_, T> {
        if self.constant {
            Values::One(bytemuck::pod_read_unaligned(&self.bytes[..size_of::<T>()]))
        } else {
            Values::Each(bytemuck::cast_slice(self.bytes))
        }
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
        (Values::Each(a), Values::One(b), Values::One(c)) => {
            out.iter_mut().zip(a).for_each(|(out, &a)| *out = f(a, b, c));
        }
        (a, b, c) => out.iter_mut().enumerate().for_each(|(i, out)| *out = f(a.at(i), b.at(i), c.at(i))),
    }
}

/// Picks the type to compute in from a class of types: `all` of them, `real` (without BOOL), `bits` (integers and
/// BOOL) or `float`.
macro_rules! with_class {
    (all, $dtype:expr, $T:ident => $body:expr) => {
        $crate::aten::elementwise::lanes::with_class!(@ $dtype, $T => $body; BYTE u8, CHAR i8, SHORT i16, INT i32, LONG i64, FLOAT f32, DOUBLE f64,
            BOOL edgepack_format::scalar::Bool)
    };
    (real, $dtype:expr, $T:ident => $body:expr) => {
        $crate::aten::elementwise::lanes::with_class!(@ $dtype, $T => $body; BYTE u8, CHAR i8, SHORT i16, INT i32, LONG i64, FLOAT f32, DOUBLE f64)
    };
    (bits, $dtype:expr, $T:ident => $body:expr) => {
        $crate::aten::elementwise::lanes::with_class!(@ $dtype, $T => $body; BYTE u8, CHAR i8, SHORT i16, INT i32, LONG i64,
            BOOL edgepack_format::scalar::Bool)
    };
    (integer, $dtype:expr, $T:ident => $body:expr) => {
        $crate::aten::elementwise::lanes::with_class!(@ $dtype, $T => $body; BYTE u8, CHAR i8, SHORT i16, INT i32, LONG i64)
    };
    (float, $dtype:expr, $T:ident => $body:expr) => {
        $crate::aten::elementwise::lanes::with_class!(@ $dtype, $T => $body; FLOAT f32, DOUBLE f64)
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

/// Table functions: `name: class<C: Bound> -> Result, |params; operands| value;`.
macro_rules! loops {
    ($($(#[$meta:meta])* $name:ident: $class:ident<$C:ident: $bound:path> -> $R:ty, |$p:ident; $($x:ident),+| $body:expr;)*) => {$(
        $(#[$meta])*
        pub(super) fn $name(compute: edgepack_format::scalar::ScalarType) -> Option<crate::aten::elementwise::lanes::Body> {
            fn run<$C: $bound>(
                params: &crate::aten::elementwise::lanes::Params,
                lanes: &[crate::aten::elementwise::lanes::Lane<'_>],
                out: &mut [u8],
            ) {
                let $p: [$C; 3] = params.of();
                let _ = $p;
                $crate::aten::elementwise::lanes::loops!(@map lanes, out, |$($x),+| -> $R { $body }; $C);
            }
            fn body<$C: $bound>() -> crate::aten::elementwise::lanes::Body {
                crate::aten::elementwise::lanes::Body {
                    run: run::<$C>,
                    result: <$R as edgepack_format::scalar::Element>::SCALAR_TYPE,
                }
            }
            $crate::aten::elementwise::lanes::with_class!($class, compute, T => body::<T>())
        }
    )*};
    (@map $lanes:ident, $out:ident, |$a:ident| -> $R:ty $body:block; $C:ident) => {
        crate::aten::elementwise::lanes::map1($lanes, $out, |$a: $C| -> $R { $body })
    };
    (@map $lanes:ident, $out:ident, |$a:ident, $b:ident| -> $R:ty $body:block; $C:ident) => {
        crate::aten::elementwise::lanes::map2($lanes, $out, |$a: $C, $b: $C| -> $R { $body })
    };
    (@map $lanes:ident, $out:ident, |$a:ident, $b:ident, $c:ident| -> $R:ty $body:block; $C:ident) => {
        crate::aten::elementwise::lanes::map3($lanes, $out, |$a: $C, $b: $C, $c: $C| -> $R { $body })
    };
}

pub(crate) use {loops, with_class};
