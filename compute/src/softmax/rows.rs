//! Softmax of rows of `f32`, in the vectors of the machine from the first element to the last.

use rten_simd::ops::{BitOps, MaskOps, NumOps};
use rten_simd::{Isa, Simd, SimdOp, SimdUnaryOp};

use crate::fold::{PARTS, joined};

/// Rows of `size` elements, one behind the other.
pub(super) struct Rows<'a> {
    pub size: usize,
    pub input: &'a [f32],
    pub out: &'a mut [f32],
}

impl SimdOp for Rows<'_> {
    type Output = ();

    #[inline(always)]
    fn eval<I: Isa>(self, isa: I) {
        let Rows { size, input, out } = self;
        for (input, out) in input.chunks_exact(size).zip(out.chunks_exact_mut(size)) {
            row(isa, input, out);
        }
    }
}

/// One row. What is NaN, or an infinity of the wrong sign, is NaN behind the exponential, and so is the sum.
#[inline(always)]
fn row<I: Isa>(isa: I, input: &[f32], out: &mut [f32]) {
    let ops = isa.f32();
    let lanes = ops.len();
    let (whole, rest) = input.split_at(input.len() / lanes * lanes);
    let least = ops.splat(f32::NEG_INFINITY);
    let (last, is_there) = ops.load_pad(rest);
    let mut max = ops.select(last, least, is_there);
    for x in whole.chunks_exact(lanes) {
        max = ops.max(max, ops.load(x));
    }
    let max = ops.splat(of_lanes(max, f32::NEG_INFINITY, f32::max));

    let (whole_out, rest_out) = out.split_at_mut(whole.len());
    let mut sum = ops.zero();
    for (x, y) in whole.chunks_exact(lanes).zip(whole_out.chunks_exact_mut(lanes)) {
        let exp = rten_vecmath::Exp::apply(isa, ops.sub(ops.load(x), max));
        sum = ops.add(sum, exp);
        ops.store(exp, y);
    }
    let last = rten_vecmath::Exp::apply(isa, ops.sub(last, max));
    if isa.m32().any(is_there) {
        sum = ops.add(sum, ops.select(last, ops.zero(), is_there));
    }
    let factor = ops.splat(1.0 / of_lanes(sum, 0.0, |a, b| a + b));

    for y in whole_out.chunks_exact_mut(lanes) {
        ops.store(ops.mul(ops.load(y), factor), y);
    }
    rest_out.copy_from_slice(&ops.mul(last, factor).to_array().as_ref()[..rest_out.len()]);
}

/// The lanes of a vector as one number.
#[inline(always)]
fn of_lanes<V: Simd<Elem = f32>>(vector: V, start: f32, f: impl Fn(f32, f32) -> f32) -> f32 {
    let mut parts = [start; PARTS];
    parts.iter_mut().zip(vector.to_array()).for_each(|(part, lane)| *part = lane);
    joined(parts, f)
}
