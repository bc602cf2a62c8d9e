//! `_softmax` and `_log_softmax`, along any dimension in any dim order.
//!
//! The maximum is taken off before the exponential, so nothing overflows; a NaN, or an infinity of the wrong sign, makes
//! its whole row NaN. 16-bit floats are computed in `f32`.

use edgepack_executor::kernel::{Alias, Kernel, KernelContext, KernelError, Prepare, Run};
use edgepack_format::tensor::Dims;
use rten_simd::SimdUnaryOp;

use crate::broadcast::Walk;
use crate::check::{Around, expect_same, with_float};
use crate::dims::dim_of;
use crate::schema::{kernel, position};
use edgepack_compute::float::Float;
use edgepack_compute::fold::row_max;
use edgepack_compute::number::{Compute, Number};
use edgepack_compute::simd::wide;
use edgepack_compute::threads::for_each_piece;

/// The operators of this family.
pub static KERNELS: &[&Kernel] = &[&SOFTMAX, &LOG_SOFTMAX];

static SOFTMAX: Kernel = kernel("aten::_softmax.out", Alias::Disjoint, prepare::<false>);
static LOG_SOFTMAX: Kernel = kernel("aten::_log_softmax.out", Alias::Disjoint, prepare::<true>);

/// Arguments of both.
const SELF: usize = position("aten::_softmax.out", "self");
const DIM: usize = position("aten::_softmax.out", "dim");
const OUT: usize = position("aten::_softmax.out", "out");

/// Elements worked on at a time; a buffer of them fits the stack.
const BLOCK: usize = 128;

/// A float whose exponentials are computed many at a time.
trait Exponential: Float {
    fn exp_all(values: &mut [Self]);
}

impl Exponential for f32 {
    fn exp_all(values: &mut [f32]) {
        rten_vecmath::Exp {}.map_mut(values);
    }
}

impl Exponential for f64 {
    fn exp_all(values: &mut [f64]) {
        values.iter_mut().for_each(|x| *x = x.exp());
    }
}

fn prepare<const LOG: bool>(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    let (input, out) = (args.tensor(SELF)?.meta, args.tensor(OUT)?.meta);
    expect_same(("self", input.dtype), ("out", out.dtype))?;
    if input.dim_order != out.dim_order {
        args.scratch(input.byte_len());
    }
    with_float!(input.dtype, T => Ok(Box::new(run::<T, LOG>)))
}

fn run<T, const LOG: bool>(cx: &mut KernelContext<'_>) -> Result<(), KernelError>
where
    T: Number<Compute: Exponential>,
{
    let (meta, dim) = (cx.meta(SELF)?, cx.int(DIM)?);
    let dim = dim_of("dim", dim, "self", meta.rank())?;
    let sizes = Dims::from_slice(meta.sizes).unwrap_or_default();
    cx.resize(OUT, &sizes)?;
    let views = cx.views();
    let (input, out) = (views.tensor(SELF)?, views.out(OUT)?);
    let around = Around::new(out.sizes, out.strides, dim);
    let input = if input.dim_order == out.dim_order {
        input.as_slice::<T>()?
    } else {
        // Laid out as the output first: everything below takes one order.
        let turned = views.scratch()?.get_mut(..input.bytes().len()).ok_or_else(too_large)?;
        Walk::stretched(&out.meta(), &input).gather(size_of::<T>(), input.bytes(), turned);
        bytemuck::try_cast_slice(turned).map_err(|_| too_large())?
    };
    let out = out.into_slice::<T>()?;
    // A row, or rows side by side.
    let unit = (around.size * around.inner).max(1);
    let out = &mut out[..around.outer * around.size * around.inner];
    for_each_piece(out, unit, |start, out| {
        for (input, out) in input[start..].chunks_exact(unit).zip(out.chunks_exact_mut(unit)) {
            if around.inner == 1 {
                row::<T, LOG>(input, out);
                continue;
            }
            for first in (0..around.inner).step_by(BLOCK) {
                lanes::<T, LOG>(around, first, input, out);
            }
        }
    });
    Ok(())
}

fn too_large() -> KernelError {
    KernelError::unsupported("`self` is larger than at load")
}

/// One row of neighbouring elements.
fn row<T, const LOG: bool>(input: &[T], out: &mut [T])
where
    T: Number<Compute: Exponential>,
{
    // Where the output holds exponentials without loss they wait there for their sum.
    let lossless = size_of::<T>() == size_of::<T::Compute>();
    let max = wide(|| row_max(input));
    let mut buffer = [T::Compute::ZERO; BLOCK];
    let mut sum = T::Compute::ZERO;
    for (input, out) in input.chunks(BLOCK).zip(out.chunks_mut(BLOCK)) {
        let buffer = &mut buffer[..input.len()];
        wide(|| buffer.iter_mut().zip(input).for_each(|(y, x)| *y = x.to_compute().minus(max)));
        Exponential::exp_all(buffer);
        sum = sum.plus(wide(|| total(buffer)));
        if lossless && !LOG {
            buffer.iter().zip(out).for_each(|(y, out)| *out = cast(*y));
        }
    }
    let log = sum.ln();
    for (input, out) in input.chunks(BLOCK).zip(out.chunks_mut(BLOCK)) {
        if LOG {
            wide(|| out.iter_mut().zip(input).for_each(|(y, x)| *y = cast(x.to_compute().minus(max).minus(log))));
        } else if lossless {
            wide(|| out.iter_mut().for_each(|y| *y = cast(y.to_compute().over(sum))));
        } else {
            let buffer = &mut buffer[..input.len()];
            buffer.iter_mut().zip(input).for_each(|(y, x)| *y = x.to_compute().minus(max));
            Exponential::exp_all(buffer);
            buffer.iter().zip(out).for_each(|(y, out)| *out = cast(y.over(sum)));
        }
    }
}

#[inline(always)]
fn cast<T: Number>(x: T::Compute) -> T {
    edgepack_compute::number::Cast::cast(x)
}

/// The sum in independent parts, so that it vectorises.
#[inline(always)]
fn total<C: Compute>(values: &[C]) -> C {
    let mut parts = [C::ZERO; 16];
    let (chunks, rest) = values.as_chunks::<16>();
    for chunk in chunks {
        parts.iter_mut().zip(chunk).for_each(|(part, &x)| *part = part.plus(x));
    }
    parts.into_iter().chain(rest.iter().copied()).fold(C::ZERO, C::plus)
}

/// Up to [`BLOCK`] neighbouring rows whose elements are `inner` apart.
fn lanes<T, const LOG: bool>(around: Around, first: usize, input: &[T], out: &mut [T])
where
    T: Number<Compute: Exponential>,
{
    let Around { size, inner, .. } = around;
    let count = BLOCK.min(inner - first);
    let at = |i: usize| i * inner + first..i * inner + first + count;
    let (mut max, mut sum) = ([T::Compute::LEAST; BLOCK], [T::Compute::ZERO; BLOCK]);
    let (max, sum) = (&mut max[..count], &mut sum[..count]);
    for i in 0..size {
        max.iter_mut().zip(&input[at(i)]).for_each(|(max, x)| *max = max.greater_of(x.to_compute()));
    }
    let mut buffer = [T::Compute::ZERO; BLOCK];
    let buffer = &mut buffer[..count];
    let mut exponentials = |i: usize, max: &[T::Compute], then: &mut dyn FnMut(&[T::Compute])| {
        buffer.iter_mut().zip(&input[at(i)]).zip(max).for_each(|((y, x), max)| *y = x.to_compute().minus(*max));
        if !LOG {
            Exponential::exp_all(buffer);
        }
        then(buffer);
    };
    for i in 0..size {
        exponentials(i, max, &mut |values| {
            sum.iter_mut().zip(values).for_each(|(sum, &y)| *sum = sum.plus(if LOG { y.exp() } else { y }));
        });
    }
    if LOG {
        sum.iter_mut().for_each(|sum| *sum = sum.ln());
    }
    for i in 0..size {
        exponentials(i, max, &mut |values| {
            for ((out, &y), &sum) in out[at(i)].iter_mut().zip(values).zip(&*sum) {
                *out = cast(if LOG { y.minus(sum) } else { y.over(sum) });
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use edgepack_compute::random::Random;
    use edgepack_executor::call::{Arg, OwnedTensor, call};

    fn naive(values: &[f64], log: bool) -> Vec<f64> {
        let max = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = values.iter().map(|x| (x - max).exp()).sum();
        values.iter().map(|x| if log { x - max - sum.ln() } else { (x - max).exp() / sum }).collect()
    }

    #[test]
    fn every_dimension_and_order_agrees_with_the_definition() {
        let mut random = Random::new(3);
        for round in 0..40 {
            let sizes = [random.below(3) + 1, random.below(150) + 1, random.below(4) + 1, random.below(5) + 1];
            let order = [[0, 1, 2, 3], [0, 2, 3, 1]][round % 2];
            let (dim, log) = (round / 2 % 4, round % 3 == 0);
            let values: Vec<f32> = random.floats(sizes.iter().product()).iter().map(|x| x * 9.0).collect();
            let input = OwnedTensor::new(&sizes, &values).with_dim_order(&order);
            let mut strides = [0; 4];
            edgepack_format::tensor::write_strides(&sizes, &order, &mut strides);
            let out = OwnedTensor::zeros(edgepack_format::scalar::ScalarType::FLOAT, &sizes).with_dim_order(&order);
            let kernel = if log { &LOG_SOFTMAX } else { &SOFTMAX };
            let args = [Arg::Tensor(input), Arg::int(dim as i64 - 4), Arg::bool(false), Arg::Tensor(out)];
            let result = call(kernel, &args).unwrap()[0].as_slice::<f32>().unwrap();
            for start in 0..values.len() {
                if start / strides[dim] % sizes[dim] != 0 {
                    continue;
                }
                let places = (0..sizes[dim]).map(|i| start + i * strides[dim]);
                let row: Vec<f64> = places.clone().map(|at| values[at].into()).collect();
                for (at, want) in places.zip(naive(&row, log)) {
                    assert!((f64::from(result[at]) - want).abs() < 1e-5, "{sizes:?} dim {dim}: {} {want}", result[at]);
                }
            }
        }
    }

    #[test]
    fn nan_and_wrong_infinities_spread_over_their_row() {
        let inf = f32::INFINITY;
        let values = [1.0, f32::NAN, 1.0, 1.0, inf, 0.0, -inf, -inf, -inf, -inf, 0.0, 0.0];
        let args = |dim| {
            [
                Arg::tensor(&[4, 3], &values),
                Arg::int(dim),
                Arg::bool(false),
                Arg::out(edgepack_format::scalar::ScalarType::FLOAT, &[4, 3]),
            ]
        };
        let out = call(&SOFTMAX, &args(1)).unwrap()[0].as_slice::<f32>().unwrap();
        assert!(out[..9].iter().all(|x| x.is_nan()), "{out:?}");
        assert_eq!(out[9..], [0.0, 0.5, 0.5]);
    }

    #[test]
    fn halves_are_computed_in_single_precision() {
        let values: Vec<half::f16> = (0..300).map(|i| half::f16::from_f32(i as f32 / 50.0)).collect();
        let out = Arg::out(edgepack_format::scalar::ScalarType::HALF, &[300]);
        let args = [Arg::tensor(&[300], &values), Arg::int(0), Arg::bool(false), out];
        let out = call(&SOFTMAX, &args).unwrap()[0].as_slice::<half::f16>().unwrap();
        let values: Vec<f64> = values.iter().map(|x| x.to_f64()).collect();
        for (have, want) in out.iter().zip(naive(&values, false)) {
            assert!((have.to_f64() - want).abs() < 1e-5 + want * 1e-3, "{have} {want}");
        }
    }
}
