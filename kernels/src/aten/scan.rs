//! Running sums, products, extremes and logarithms of sums along a dimension.
//!
//! Invariant: a line is read and written once, in order; what a line has in common is kept in registers.

use edgepack_executor::kernel::{Alias, Kernel, KernelContext, KernelError, Prepare, Run};
use edgepack_executor::with_element;
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::Dims;

use crate::check::{Around, Class, expect_class, expect_dtype, expect_same, expect_same_order, with_float};
use crate::dims::dim_of;
use edgepack_compute::number::{Cast, Compute, Number};

/// The operators of this family.
pub static KERNELS: &[&Kernel] = &[&CUMSUM, &CUMPROD, &CUMMAX, &CUMMIN, &LOGCUMSUMEXP];

static CUMSUM: Kernel = Kernel {
    name: "aten::cumsum.out",
    schema: "(Tensor self, int dim, *, ScalarType? dtype=None, Tensor(a!) out) -> Tensor(a!)",
    alias: Alias::Disjoint,
    prepare: |args| prepare_totals(args, Total::Sum),
};
static CUMPROD: Kernel = Kernel {
    name: "aten::cumprod.out",
    schema: "(Tensor self, int dim, *, ScalarType? dtype=None, Tensor(a!) out) -> Tensor(a!)",
    alias: Alias::Disjoint,
    prepare: |args| prepare_totals(args, Total::Product),
};
static CUMMAX: Kernel = Kernel {
    name: "aten::cummax.out",
    schema: "(Tensor self, int dim, *, Tensor(a!) values, Tensor(b!) indices) -> (Tensor(a!) values, Tensor(b!) indices)",
    alias: Alias::Disjoint,
    prepare: |args| prepare_extremes(args, true),
};
static CUMMIN: Kernel = Kernel {
    name: "aten::cummin.out",
    schema: "(Tensor self, int dim, *, Tensor(a!) values, Tensor(b!) indices) -> (Tensor(a!) values, Tensor(b!) indices)",
    alias: Alias::Disjoint,
    prepare: |args| prepare_extremes(args, false),
};
static LOGCUMSUMEXP: Kernel = Kernel {
    name: "aten::logcumsumexp.out",
    schema: "(Tensor self, int dim, *, Tensor(a!) out) -> Tensor(a!)",
    alias: Alias::Disjoint,
    prepare: |args| {
        let dtype = args.tensor(0)?.meta.dtype;
        expect_same(("self", dtype), ("out", args.tensor(2)?.meta.dtype))?;
        with_float!(dtype, T => Ok(Box::new(logarithms::<T>)))
    },
};

/// The lines of the input along the dimension; the outputs have its sizes.
fn lines(cx: &mut KernelContext<'_>, outs: &[usize]) -> Result<Around, KernelError> {
    let (meta, dim) = (cx.meta(0)?, cx.int(1)?);
    let dim = dim_of("dim", dim, "self", meta.rank())?;
    let around = Around::new(meta.sizes, meta.strides, dim);
    let sizes = Dims::from_slice(meta.sizes).unwrap_or_default();
    for &out in outs {
        cx.resize(out, &sizes)?;
        expect_same_order(("self", cx.meta(0)?.dim_order), ("out", cx.meta(out)?.dim_order))?;
    }
    Ok(around)
}

/// The places of the elements of every line, in order.
fn places(around: Around) -> impl Iterator<Item = impl Iterator<Item = usize>> {
    let Around { outer, size, inner } = around;
    let first = (0..outer).flat_map(move |block| (0..inner).map(move |lane| block * size * inner + lane));
    first.map(move |first| (0..size).map(move |index| first + index * inner))
}

/// Writes what each line comes to, element by element, from `start` on.
fn fold<T: Copy, U, S: Copy + Cast<U>>(around: Around, input: &[T], out: &mut [U], start: S, next: impl Fn(S, T) -> S) {
    for line in places(around) {
        let mut total = start;
        for at in line {
            total = next(total, input[at]);
            out[at] = total.cast();
        }
    }
}

/// What lines come to.
#[derive(Clone, Copy)]
enum Total {
    Sum,
    Product,
}

fn prepare_totals(args: &Prepare<'_>, total: Total) -> Result<Box<dyn Run>, KernelError> {
    let (input, out) = (args.tensor(0)?.meta.dtype, args.tensor(3)?.meta.dtype);
    expect_class("self", input, Class::Any)?;
    expect_class("out", out, Class::Any)?;
    with_element!(input, T => with_element!(out, U => {
        Ok(Box::new(move |cx: &mut KernelContext<'_>| totals::<T, U>(cx, total)))
    }, else => {
        Err(KernelError::unsupported(out.to_string()))
    }), else => Err(KernelError::unsupported(input.to_string())))
}

/// Totals of elements in the output's type, in 64 bits.
fn totals<T, U>(cx: &mut KernelContext<'_>, total: Total) -> Result<(), KernelError>
where
    T: Number + Cast<U>,
    U: Number,
    f64: Cast<U>,
    i64: Cast<U>,
{
    let around = lines(cx, &[3])?;
    let views = cx.views();
    let (input, out) = (views.tensor(0)?.as_slice::<T>()?, views.out(3)?.into_slice::<U>()?);
    let real = |x: T| Cast::<f64>::cast(Cast::<U>::cast(x));
    let whole = |x: T| Cast::<i64>::cast(Cast::<U>::cast(x));
    match (total, U::SCALAR_TYPE.is_floating()) {
        (Total::Sum, true) => fold(around, input, out, 0.0, |sum: f64, x| sum + real(x)),
        (Total::Sum, false) => fold(around, input, out, 0, |sum: i64, x| sum.wrapping_add(whole(x))),
        (Total::Product, true) => fold(around, input, out, 1.0, |product: f64, x| product * real(x)),
        (Total::Product, false) => fold(around, input, out, 1, |product: i64, x| product.wrapping_mul(whole(x))),
    }
    Ok(())
}

fn prepare_extremes(args: &Prepare<'_>, greatest: bool) -> Result<Box<dyn Run>, KernelError> {
    let dtype = args.tensor(0)?.meta.dtype;
    expect_class("self", dtype, Class::Any)?;
    expect_same(("self", dtype), ("values", args.tensor(2)?.meta.dtype))?;
    expect_dtype("indices", args.tensor(3)?.meta.dtype, ScalarType::LONG)?;
    with_element!(dtype, T => Ok(Box::new(move |cx: &mut KernelContext<'_>| extremes::<T>(cx, greatest))), else => {
        Err(KernelError::unsupported(dtype.to_string()))
    })
}

fn extremes<T: Number>(cx: &mut KernelContext<'_>, greatest: bool) -> Result<(), KernelError> {
    let around = lines(cx, &[2, 3])?;
    let views = cx.views();
    let (input, values) = (views.tensor(0)?.as_slice::<T>()?, views.out(2)?.into_slice::<T>()?);
    let indices = views.out(3)?.into_slice::<i64>()?;
    for line in places(around) {
        let (mut best, mut index) = (T::default(), 0);
        for (here, at) in (0i64..).zip(line) {
            let (x, known) = (input[at].to_compute(), best.to_compute());
            // The later one of equals counts, and NaN stays.
            let better = if greatest { known.less_or_same(x) } else { x.less_or_same(known) };
            if here == 0 || x.is_nan() || !known.is_nan() && better {
                (best, index) = (input[at], here);
            }
            values[at] = best;
            indices[at] = index;
        }
    }
    Ok(())
}

/// `ln(exp(a) + exp(b))`.
fn logarithm_of_sum(a: f64, b: f64) -> f64 {
    let (low, high) = if b < a { (b, a) } else { (a, b) };
    match () {
        () if a.is_nan() || b.is_nan() => f64::NAN,
        // Of infinities there is no difference.
        () if low == high && high.is_infinite() => high,
        () => high + (low - high).exp().ln_1p(),
    }
}

fn logarithms<T: Number>(cx: &mut KernelContext<'_>) -> Result<(), KernelError>
where
    f64: Cast<T>,
{
    let around = lines(cx, &[2])?;
    let views = cx.views();
    let (input, out) = (views.tensor(0)?.as_slice::<T>()?, views.out(2)?.into_slice::<T>()?);
    for line in places(around) {
        let mut total: Option<f64> = None;
        for at in line {
            let x: f64 = input[at].cast();
            let sum = total.map_or(x, |sum| logarithm_of_sum(sum, x));
            total = Some(sum);
            out[at] = sum.cast();
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use edgepack_executor::call::{Arg, OwnedTensor, call};

    /// What eager PyTorch answers.
    #[test]
    fn running_values() {
        let x = Arg::tensor(&[2, 3], &[2.0f32, -3.0, 0.5, 1.0, f32::NAN, 4.0]);
        let out = || Arg::out(ScalarType::FLOAT, &[2, 3]);
        let products = call(&CUMPROD, &[x.clone(), Arg::int(1), Arg::None, out()]).unwrap();
        assert_eq!(products[0].as_slice::<f32>().unwrap()[..3], [2.0, -6.0, -3.0]);
        let places = Arg::out(ScalarType::LONG, &[2, 3]);
        let greatest = call(&CUMMAX, &[x.clone(), Arg::int(-1), out(), places.clone()]).unwrap();
        assert_eq!(greatest[1].as_slice::<i64>().unwrap(), [0, 0, 0, 0, 1, 1]);
        let ties = Arg::tensor(&[3], &[1i32, 1, 0]);
        let outs = [Arg::out(ScalarType::INT, &[3]), Arg::out(ScalarType::LONG, &[3])];
        let least = call(&CUMMIN, &[ties, Arg::int(0), outs[0].clone(), outs[1].clone()]).unwrap();
        assert_eq!(least[1].as_slice::<i64>().unwrap(), [0, 1, 2]);
        let far = Arg::tensor(&[3], &[-200.0f64, 0.0, f64::NEG_INFINITY]);
        let sums = call(&LOGCUMSUMEXP, &[far, Arg::int(0), Arg::out(ScalarType::DOUBLE, &[3])]).unwrap();
        assert_eq!(
            sums[0].as_slice::<f64>().unwrap(),
            [-200.0, 1.383_896_526_736_737_6e-87, 1.383_896_526_736_737_6e-87]
        );
    }

    #[test]
    fn running_sums_follow_the_dimension() {
        let sum = |dim, order: &[u8]| {
            let input = OwnedTensor::new(&[2, 3], &[1i32, 2, 3, 4, 5, 6]).with_dim_order(order);
            let out = OwnedTensor::zeros(ScalarType::LONG, &[2, 3]).with_dim_order(order);
            let args = [Arg::Tensor(input), Arg::int(dim), Arg::None, Arg::Tensor(out)];
            call(&CUMSUM, &args).unwrap()[0].as_slice::<i64>().unwrap()
        };
        assert_eq!(sum(1, &[0, 1]), [1, 3, 6, 4, 9, 15]);
        assert_eq!(sum(0, &[0, 1]), [1, 2, 3, 5, 7, 9]);
        assert_eq!(sum(0, &[1, 0]), [1, 3, 3, 7, 5, 11]);
    }
}
