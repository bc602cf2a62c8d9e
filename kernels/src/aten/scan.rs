//! Running sums, products, extremes and logarithms of sums along a dimension.
//!
//! The loops are those of `edgepack_compute::scan`; input and outputs have one order of dimensions.

use edgepack_executor::kernel::{Alias, Kernel, KernelContext, KernelError, Prepare, Run};
use edgepack_executor::with_element;
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::Dims;

use crate::check::{Class, expect_class, expect_dtype, expect_same, expect_same_order, with_float};
use crate::dims::dim_of;
use crate::schema::{arguments, kernel};
use edgepack_compute::layout::AxisView;
use edgepack_compute::number::{Cast, Number};
use edgepack_compute::scan;

/// The operators of this family.
pub static KERNELS: &[&Kernel] = &[&CUMSUM, &CUMPROD, &CUMMAX, &CUMMIN, &LOGCUMSUMEXP];

static CUMSUM: Kernel = kernel("aten::cumsum.out", Alias::Disjoint, |args| prepare_totals(args, Total::Sum));
static CUMPROD: Kernel = kernel("aten::cumprod.out", Alias::Disjoint, |args| prepare_totals(args, Total::Product));
static CUMMAX: Kernel = kernel("aten::cummax.out", Alias::Disjoint, prepare_extremes::<false>);
static CUMMIN: Kernel = kernel("aten::cummin.out", Alias::Disjoint, prepare_extremes::<true>);
static LOGCUMSUMEXP: Kernel = kernel("aten::logcumsumexp.out", Alias::Disjoint, |args| {
    let dtype = args.tensor(SELF)?.meta.dtype;
    expect_same(("self", dtype), ("out", args.tensor(LOGARITHMS)?.meta.dtype))?;
    with_float!(dtype, T => Ok(Box::new(logarithms::<T>)))
});

// The input and the dimension of all, and their outputs.
arguments!("aten::cumsum.out"; SELF = "self", DIM = "dim", TOTALS = "out");
arguments!("aten::cummax.out"; VALUES = "values", INDICES = "indices");
arguments!("aten::logcumsumexp.out"; LOGARITHMS = "out");

/// The view of the input along the dimension; the outputs have its sizes.
fn view(cx: &mut KernelContext<'_>, outs: &[usize]) -> Result<AxisView, KernelError> {
    let (meta, dim) = (cx.meta(SELF)?, cx.int(DIM)?);
    let dim = dim_of("dim", dim, "self", meta.rank())?;
    let view = AxisView::new(meta.sizes, meta.strides, dim);
    let sizes = Dims::from_slice(meta.sizes).unwrap_or_default();
    for &out in outs {
        cx.resize(out, &sizes)?;
        expect_same_order(("self", cx.meta(SELF)?.dim_order), ("out", cx.meta(out)?.dim_order))?;
    }
    Ok(view)
}

/// The value that a line comes to.
#[derive(Clone, Copy)]
enum Total {
    Sum,
    Product,
}

fn prepare_totals(args: &Prepare<'_>, total: Total) -> Result<Box<dyn Run>, KernelError> {
    let (input, out) = (args.tensor(SELF)?.meta.dtype, args.tensor(TOTALS)?.meta.dtype);
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
    let view = view(cx, &[TOTALS])?;
    let views = cx.views();
    let (input, out) = (views.tensor(SELF)?.as_slice::<T>()?, views.out(TOTALS)?.into_slice::<U>()?);
    let real = |x: T| Cast::<f64>::cast(Cast::<U>::cast(x));
    let whole = |x: T| Cast::<i64>::cast(Cast::<U>::cast(x));
    match (total, U::SCALAR_TYPE.is_floating()) {
        (Total::Sum, true) => scan::accumulate(view, input, out, 0.0, |sum: f64, x| sum + real(x)),
        (Total::Sum, false) => scan::accumulate(view, input, out, 0, |sum: i64, x| sum.wrapping_add(whole(x))),
        (Total::Product, true) => scan::accumulate(view, input, out, 1.0, |product: f64, x| product * real(x)),
        (Total::Product, false) => {
            scan::accumulate(view, input, out, 1, |product: i64, x| product.wrapping_mul(whole(x)))
        }
    }?;
    Ok(())
}

fn prepare_extremes<const LEAST: bool>(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    let dtype = args.tensor(SELF)?.meta.dtype;
    expect_class("self", dtype, Class::Any)?;
    expect_same(("self", dtype), ("values", args.tensor(VALUES)?.meta.dtype))?;
    expect_dtype("indices", args.tensor(INDICES)?.meta.dtype, ScalarType::LONG)?;
    with_element!(dtype, T => Ok(Box::new(extremes::<T, LEAST>)), else => {
        Err(KernelError::unsupported(dtype.to_string()))
    })
}

fn extremes<T: Number, const LEAST: bool>(cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
    let view = view(cx, &[VALUES, INDICES])?;
    let views = cx.views();
    let (input, values) = (views.tensor(SELF)?.as_slice::<T>()?, views.out(VALUES)?.into_slice::<T>()?);
    Ok(scan::extremes::<T, LEAST>(view, input, values, views.out(INDICES)?.into_slice::<i64>()?)?)
}

fn logarithms<T: Number>(cx: &mut KernelContext<'_>) -> Result<(), KernelError>
where
    f64: Cast<T>,
{
    let view = view(cx, &[LOGARITHMS])?;
    let views = cx.views();
    let (input, out) = (views.tensor(SELF)?.as_slice::<T>()?, views.out(LOGARITHMS)?.into_slice::<T>()?);
    Ok(scan::logarithms_of_sums(view, input, out)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use edgepack_executor::call::{Arg, OwnedTensor, call};

    /// Compares with the results of eager PyTorch.
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
