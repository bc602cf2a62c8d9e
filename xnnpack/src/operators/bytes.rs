//! Element by element: other types of the same numbers, and functions of 8-bit numbers that are computed as floats.

use std::sync::Arc;

use edgepack_executor::kernel::{KernelContext, KernelError, Operator, Run};
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::Dims;

use super::elementwise;
use super::integer::binary;

const UNARY: &str = "(Tensor x, *, Tensor(a!) out) -> Tensor(a!)";

/// Converts numbers between outside and inside: 32-bit as 64-bit ones, and unsigned bytes as signed ones, 128 less, or
/// back.
pub(crate) fn converted() -> Arc<dyn Operator> {
    elementwise("xnnpack::converted.out", UNARY, |args| {
        let types = (args.tensor(0)?.meta.dtype, args.tensor(1)?.meta.dtype);
        let is_known = matches!(
            types,
            (ScalarType::BYTE, ScalarType::CHAR)
                | (ScalarType::CHAR, ScalarType::BYTE)
                | (ScalarType::INT, ScalarType::LONG)
        );
        if !is_known {
            return Err(KernelError::unsupported(types.0.to_string()));
        }
        Ok(Box::new(move |cx: &mut KernelContext<'_>| {
            let sizes: Dims = Dims::from_slice(cx.meta(0)?.sizes).unwrap_or_default();
            cx.resize(1, &sizes)?;
            let views = cx.views();
            let (from, mut to) = (views.tensor(0)?, views.out(1)?);
            match types.1 {
                ScalarType::LONG => {
                    let pairs = to.as_mut_slice::<i64>()?.iter_mut().zip(from.as_slice::<i32>()?);
                    pairs.for_each(|(to, from)| *to = i64::from(*from));
                }
                _ => to.bytes_mut().iter_mut().zip(from.bytes()).for_each(|(to, from)| *to = from ^ 0x80),
            }
            Ok(())
        }) as Box<dyn Run>)
    })
}

/// Scale and zero point of numbers between which a function of floats is computed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Affine {
    pub scale: f32,
    pub zero: i32,
    /// Number that stored numbers are less than those of the payload by: rounding happens where these are.
    pub less: i32,
}

impl Affine {
    /// The number that a byte represents.
    pub fn real(self, byte: i8) -> f32 {
        (i32::from(byte) - self.zero) as f32 * self.scale
    }

    /// The byte that represents a number; that of NaN is the least.
    pub fn byte(self, real: f32) -> i8 {
        let less = self.less as f32;
        let number = real * (1.0 / self.scale) + (self.zero + self.less) as f32;
        let number = if number.is_nan() { f32::NEG_INFINITY } else { number };
        (number.clamp(less - 128.0, less + 127.0).round_ties_even() - less) as i8
    }
}

/// The ratios of scales that eight bits behind the point can say.
const RATIOS: std::ops::RangeInclusive<f32> = 1.0 / 256.0..=128.0;

/// A table of other scales, with a slope for numbers below zero: integers with eight bits behind the point, as XNNPACK
/// has them. `None` if the scales are too far apart.
pub(crate) fn sloped(x: Affine, y: Affine, slope: f32) -> Option<[i8; 256]> {
    let ratio = x.scale / y.scale;
    if !RATIOS.contains(&ratio) || !(-RATIOS.end()..=*RATIOS.end()).contains(&(ratio * slope)) {
        return None;
    }
    let [above, below] = [256.0 * ratio, 256.0 * ratio * slope].map(|ratio| ratio.round_ties_even() as i32);
    let mut table = [0i8; 256];
    for (entry, number) in table.iter_mut().zip(i8::MIN..=i8::MAX) {
        let number = i32::from(number) - x.zero;
        let scaled = number * if number < 0 { below } else { above };
        *entry = (((y.zero << 8) + 0x80 + scaled) >> 8).clamp(-128, 127) as i8;
    }
    Some(table)
}

/// A table of a function of one number, for [`table`](super::integer::table).
pub(crate) fn tabulated(x: Affine, y: Affine, function: impl Fn(f32) -> f32) -> [i8; 256] {
    let mut table = [0i8; 256];
    for (entry, number) in table.iter_mut().zip(i8::MIN..=i8::MAX) {
        *entry = y.byte(function(x.real(number)));
    }
    table
}

/// A function of two numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Pair {
    /// `a / b`.
    Quotient,
    /// `a` if it is not negative, else `a * b`.
    Slope,
}

/// A function of two numbers that are broadcast, computed as floats. Results are within the bounds.
pub(crate) fn pair(which: Pair, [a, b, y]: [Affine; 3], [least, most]: [i32; 2]) -> Arc<dyn Operator> {
    let name = match which {
        Pair::Quotient => "xnnpack::quotient.int8",
        Pair::Slope => "xnnpack::slope.int8",
    };
    binary(name, move |left, right| {
        let (left, right) = (a.real(left), b.real(right));
        let real = match which {
            Pair::Quotient => left / right,
            Pair::Slope if left < 0.0 => left * right,
            Pair::Slope => left,
        };
        i32::from(y.byte(real)).max(least).min(most) as i8
    })
}
