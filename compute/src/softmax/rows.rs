//! Softmax of rows of `f32`, in the vectors of the machine from the first element to the last.

use rten_simd::ops::{BitOps, NumOps};
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

/// One row. What is NaN, or an infinity of the wrong sign, is NaN behind the exponential, and so is the sum, which has as many
/// parts whatever vectors the machine has.
#[inline(always)]
fn row<I: Isa>(isa: I, input: &[f32], out: &mut [f32]) {
    let ops = isa.f32();
    let lanes = ops.len();
    let (whole, rest) = input.split_at(input.len() / PARTS * PARTS);
    let least = ops.splat(f32::NEG_INFINITY);
    let mut max = least;
    for x in whole.chunks_exact(lanes) {
        max = ops.max(max, ops.load(x));
    }
    for x in rest.chunks(lanes) {
        let (x, is_there) = ops.load_pad(x);
        max = ops.max(max, ops.select(x, least, is_there));
    }
    let max = ops.splat(of_lanes([max], f32::NEG_INFINITY, f32::max));

    let (whole_out, rest_out) = out.split_at_mut(whole.len());
    let mut sums = [ops.zero(); PARTS];
    for (x, y) in whole.chunks_exact(PARTS).zip(whole_out.chunks_exact_mut(PARTS)) {
        let vectors = x.chunks_exact(lanes).zip(y.chunks_exact_mut(lanes));
        for ((x, y), sum) in vectors.zip(&mut sums) {
            let exp = rten_vecmath::Exp::apply(isa, ops.sub(ops.load(x), max));
            *sum = ops.add(*sum, exp);
            ops.store(exp, y);
        }
    }
    let mut last = [ops.zero(); PARTS];
    for ((x, sum), last) in rest.chunks(lanes).zip(&mut sums).zip(&mut last) {
        let (x, is_there) = ops.load_pad(x);
        *last = rten_vecmath::Exp::apply(isa, ops.sub(x, max));
        *sum = ops.add(*sum, ops.select(*last, ops.zero(), is_there));
    }
    let factor = ops.splat(1.0 / of_lanes(sums, 0.0, |a, b| a + b));

    for y in whole_out.chunks_exact_mut(lanes) {
        ops.store(ops.mul(ops.load(y), factor), y);
    }
    for (y, last) in rest_out.chunks_mut(lanes).zip(last) {
        y.copy_from_slice(&ops.mul(last, factor).to_array().as_ref()[..y.len()]);
    }
}

/// As many lanes as there are parts, one vector's behind the other's, as one number.
#[inline(always)]
fn of_lanes<V: Simd<Elem = f32>, const N: usize>(vectors: [V; N], start: f32, f: impl Fn(f32, f32) -> f32) -> f32 {
    let mut parts = [start; PARTS];
    let lanes = vectors.into_iter().flat_map(|vector| vector.to_array());
    parts.iter_mut().zip(lanes).for_each(|(part, lane)| *part = lane);
    joined(parts, f)
}
