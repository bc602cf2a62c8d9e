//! Reductions: sums, means, products, extremes and their places, truth, variance.
//!
//! The loops are those of `edgepack_compute::reduce`, a row here is an operator. The loop is chosen by the input's element type when the method is loaded; a result
//! is converted to the output's type as it is stored.

pub mod operators;

use edgepack_executor::kernel::{KernelContext, KernelError, Prepare, Run};
use edgepack_executor::tensor::{Scalar, TensorMut, TensorRef};
use edgepack_executor::with_element;
use edgepack_format::scalar::ScalarType;

pub use operators::KERNELS;

use crate::check::{Class, Shape, expect_class, expect_dtype, expect_same};
use crate::complex::{self, with_parts};
use crate::dims::dim_of;
use crate::schema::position;
use edgepack_compute::Error;
use edgepack_compute::complex::Complex;
use edgepack_compute::fold::{
    ComplexSum, Extreme, MomentsOf, OrderedSum, Place, Product, Sum, Truth, WholeProduct, WholeSum,
};
use edgepack_compute::number::{Cast, Compute, Number};
use edgepack_compute::reduce::{Folded, Reduction};

/// The input of all.
const SELF: usize = position("aten::sum.IntList_out", "self");

/// An operator of this family: the operation, and the positions of the arguments.
struct Row {
    operation: Operation,
    over: Over,
    keepdim: Option<usize>,
    out: usize,
    /// A second output: the places of the values, or the means of the variances.
    second: Option<usize>,
}

/// Operation is computed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Operation {
    Sum,
    Mean,
    Product,
    Any,
    All,
    /// The extreme itself.
    Max,
    Min,
    /// The place of the extreme.
    ArgMax,
    ArgMin,
    /// The extreme and its place.
    MaxWithPlace,
    MinWithPlace,
    /// The argument says whether to divide by one less than the count.
    VarianceUnbiased(usize),
    /// The argument says what to take from the count, 1 if `None`.
    Variance(usize),
}

/// The dimensions that are folded.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Over {
    /// All.
    Everything,
    /// One, by argument.
    One(usize),
    /// One by argument; all if it is `None`.
    OneOrAll(usize),
    /// A list by argument; all if it is `None` or empty.
    List(usize),
    /// A list by argument; all if it is `None`, none if it is empty.
    ExactList(usize),
}

impl Operation {
    fn keeps_place(self) -> bool {
        matches!(self, Operation::ArgMax | Operation::ArgMin | Operation::MaxWithPlace | Operation::MinWithPlace)
    }

    fn needs_elements(self) -> bool {
        self.keeps_place() || matches!(self, Operation::Max | Operation::Min)
    }
}

fn prepare(args: &Prepare<'_>, row: &'static Row) -> Result<Box<dyn Run>, KernelError> {
    let (input, out) = (args.tensor(SELF)?.meta.dtype, args.tensor(row.out)?.meta.dtype);
    if row.operation == Operation::Sum && input.is_complex() {
        expect_same(("self", input), ("out", out))?;
        return with_parts!(input, R => Ok(Box::new(move |cx: &mut KernelContext<'_>| complex_sum::<R>(row, cx))), else => {
            Err(KernelError::unsupported(input.to_string()))
        });
    }
    expect_class("self", input, Class::Any)?;
    match row.operation {
        Operation::Mean => expect_class("out", out, Class::Float)?,
        Operation::Any | Operation::All if out != ScalarType::BYTE => expect_dtype("out", out, ScalarType::BOOL)?,
        Operation::ArgMax | Operation::ArgMin => expect_dtype("out", out, ScalarType::LONG)?,
        Operation::MaxWithPlace | Operation::MinWithPlace => expect_same(("self", input), ("out", out))?,
        Operation::Variance(_) | Operation::VarianceUnbiased(_) => {
            expect_class("self", input, Class::Float)?;
            expect_class("out", out, Class::Float)?;
        }
        _ => expect_class("out", out, Class::Any)?,
    }
    if let Some(second) = row.second {
        let dtype = args.tensor(second)?.meta.dtype;
        if row.operation.keeps_place() {
            expect_dtype("indices", dtype, ScalarType::LONG)?;
        } else {
            expect_class("out1", dtype, Class::Float)?;
        }
    }
    with_element!(input, T => Ok(Box::new(move |cx: &mut KernelContext<'_>| run::<T>(row, cx))), else => {
        Err(KernelError::unsupported(input.to_string()))
    })
}

fn folded(row: &Row, cx: &KernelContext<'_>, rank: usize) -> Result<Folded, KernelError> {
    // A tensor of rank 0 has nothing to fold; its only dimension may be named all the same.
    let with = |folded: Folded, dim: i64| {
        let dim = dim_of("dim", dim, "self", rank)?;
        if rank == 0 {
            return Ok(folded);
        }
        folded.with(dim).ok_or_else(|| KernelError::argument(format!("`dim` names dimension {dim} twice")))
    };
    let list = |arg| -> Result<Option<Folded>, KernelError> {
        let Some(dims) = cx.ints_opt(arg)? else { return Ok(None) };
        dims.iter().try_fold(Folded::default(), with).map(Some)
    };
    Ok(match row.over {
        Over::Everything => Folded::all(rank),
        Over::One(arg) => with(Folded::default(), cx.int(arg)?)?,
        Over::OneOrAll(arg) => match cx.int_opt(arg)? {
            Some(dim) => with(Folded::default(), dim)?,
            None => Folded::all(rank),
        },
        Over::List(arg) => list(arg)?.filter(|&folded| folded != Folded::default()).unwrap_or(Folded::all(rank)),
        Over::ExactList(arg) => list(arg)?.unwrap_or(Folded::all(rank)),
    })
}

/// Returns the number that is subtracted from the count before a variance divides by it.
fn correction(operation: Operation, cx: &KernelContext<'_>) -> Result<f64, KernelError> {
    match operation {
        Operation::VarianceUnbiased(arg) => Ok(f64::from(u8::from(cx.bool(arg)?))),
        Operation::Variance(arg) => Ok(cx.scalar_opt(arg)?.map_or(1.0, Scalar::to_f64)),
        _ => Ok(0.0),
    }
}

fn run<T: Number>(row: &Row, cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
    let meta = cx.meta(SELF)?;
    let folded = folded(row, cx, meta.rank())?;
    let keepdim = match row.keepdim {
        Some(arg) => cx.bool(arg)?,
        None => false,
    };
    let count = folded.count(meta.sizes);
    let sizes = folded.result_sizes(meta.sizes, keepdim);
    if count == 0 && row.operation.needs_elements() && !sizes.contains(&0) {
        return Err(KernelError::argument(format!("`self` is {}: no elements to choose from", Shape(meta.sizes))));
    }
    let correction = correction(row.operation, cx)?;
    cx.resize(row.out, &sizes)?;
    if let Some(second) = row.second {
        cx.resize(second, &sizes)?;
    }
    let views = cx.views();
    let (input, out) = (views.tensor(SELF)?, views.out(row.out)?);
    let second = row.second.map(|arg| views.out(arg)).transpose()?;
    let reduction = Reduction::new(&input.meta(), &out.meta(), folded, row.operation.keeps_place());
    if let Some(second) = &second
        && second.strides != out.strides
    {
        return Err(KernelError::unsupported("the two outputs have different dim orders"));
    }
    fold_into::<T>(row.operation, &reduction, &input, count, correction, out, second)
}

/// Sums of complex numbers; real parts and imaginary parts do not meet.
fn complex_sum<R: Number>(row: &Row, cx: &mut KernelContext<'_>) -> Result<(), KernelError>
where
    f64: Cast<R>,
{
    let meta = cx.meta(SELF)?;
    let folded = folded(row, cx, meta.rank())?;
    let keepdim = row.keepdim.map_or(Ok(false), |arg| cx.bool(arg))?;
    let sizes = folded.result_sizes(meta.sizes, keepdim);
    cx.resize(row.out, &sizes)?;
    let views = cx.views();
    let (input, mut out) = (views.tensor(SELF)?, views.out(row.out)?);
    let reduction = Reduction::new(&input.meta(), &out.meta(), folded, false);
    let to: &mut [Complex<R>] = bytemuck::cast_slice_mut(out.bytes_mut());
    reduction.run(complex::elements::<R>(input.bytes())?, &ComplexSum, |at, sum| to[at] = sum.map(Cast::cast))?;
    Ok(())
}

/// Up to so many elements a mean of rows in single precision is summed as the portable mean of ExecuTorch sums it, one by
/// one: where a model rounds to 8 bits behind it, as norms of language models do, the last bit decides. Longer sums, whose
/// rounding would count, and means of images are in double precision.
const ORDERED: usize = 1 << 14;

fn fold_into<T: Number>(
    operation: Operation,
    reduction: &Reduction,
    input: &TensorRef<'_>,
    count: usize,
    correction: f64,
    mut out: TensorMut<'_>,
    mut second: Option<TensorMut<'_>>,
) -> Result<(), KernelError> {
    let is_single = input.meta().dtype == ScalarType::FLOAT && out.meta().dtype == ScalarType::FLOAT;
    let is_row = input.meta().sizes.last() == Some(&count) && count <= ORDERED;
    let ordered = (is_single && is_row).then(|| input.as_slice::<f32>()).transpose()?;
    if is_single && (operation == Operation::Sum || operation == Operation::Mean && !is_row) {
        let (input, out) = (input.as_slice::<f32>()?, out.into_slice::<f32>()?);
        let divisor = if operation == Operation::Sum { 1.0 } else { count as f64 };
        return Ok(reduction.sums(input, out, |sum| (sum / divisor) as f32)?);
    }
    if input.meta().dtype == ScalarType::FLOAT && matches!(operation, Operation::ArgMax | Operation::ArgMin) {
        let (input, out) = (input.as_slice::<f32>()?, out.into_slice::<i64>()?);
        match operation {
            Operation::ArgMin => reduction.places::<true>(input, out)?,
            _ => reduction.places::<false>(input, out)?,
        }
        return Ok(());
    }
    let input = input.as_slice::<T>()?;
    let mut out = Store::new(&mut out)?;
    let mut second = second.as_mut().map(Store::new).transpose()?;
    let whole = |value: usize| Scalar::Int(value as i64);
    match operation {
        Operation::Sum if out.floating => reduction.run(input, &Sum, |at, sum| out.put(at, Scalar::Double(sum))),
        Operation::Sum if out.truth => any(reduction, input, &mut out),
        Operation::Sum => reduction.run(input, &WholeSum, |at, sum| out.put(at, Scalar::Int(sum))),
        Operation::Mean => match ordered {
            Some(input) => {
                reduction.run(input, &OrderedSum, |at, sum| out.put(at, Scalar::Double((sum / count as f32).into())))
            }
            None => reduction.run(input, &Sum, |at, sum| out.put(at, Scalar::Double(sum / count as f64))),
        },
        Operation::Product if out.floating => reduction.run(input, &Product, |at, x| out.put(at, Scalar::Double(x))),
        Operation::Product if out.truth => all(reduction, input, &mut out),
        Operation::Product => reduction.run(input, &WholeProduct, |at, x| out.put(at, Scalar::Int(x))),
        Operation::Any => any(reduction, input, &mut out),
        Operation::All => all(reduction, input, &mut out),
        Operation::Max => reduction.run(input, &Extreme::<T, false>::NEW, |at, x| out.put(at, number(x))),
        Operation::Min => reduction.run(input, &Extreme::<T, true>::NEW, |at, x| out.put(at, number(x))),
        Operation::ArgMax => reduction.run(input, &Place::<T, false>::NEW, |at, (_, place)| out.put(at, whole(place))),
        Operation::ArgMin => reduction.run(input, &Place::<T, true>::NEW, |at, (_, place)| out.put(at, whole(place))),
        Operation::MaxWithPlace | Operation::MinWithPlace => {
            let mut both = |at, (value, place): (T::Compute, usize)| {
                out.put(at, number(value));
                if let Some(second) = &mut second {
                    second.put(at, whole(place));
                }
            };
            if operation == Operation::MaxWithPlace {
                reduction.run(input, &Place::<T, false>::NEW, &mut both)
            } else {
                reduction.run(input, &Place::<T, true>::NEW, &mut both)
            }
        }
        Operation::Variance(_) | Operation::VarianceUnbiased(_) => reduction.run(input, &MomentsOf, |at, moments| {
            out.put(at, Scalar::Double(moments.variance(correction)));
            if let Some(second) = &mut second {
                second.put(at, Scalar::Double(moments.mean()));
            }
        }),
    }?;
    Ok(())
}

fn any<T: Number>(reduction: &Reduction, input: &[T], out: &mut Store<'_>) -> Result<(), Error> {
    reduction.run(input, &Truth::<false>, |at, x| out.put(at, Scalar::Bool(x)))
}

fn all<T: Number>(reduction: &Reduction, input: &[T], out: &mut Store<'_>) -> Result<(), Error> {
    reduction.run(input, &Truth::<true>, |at, x| out.put(at, Scalar::Bool(x)))
}

/// A number of the type that was computed in, as one to store.
fn number<C: Compute>(x: C) -> Scalar {
    if C::FLOATING { Scalar::Double(x.cast()) } else { Scalar::Int(x.cast()) }
}

/// An output of any element type, written one element at a time.
struct Store<'a> {
    bytes: &'a mut [u8],
    put: fn(&mut [u8], usize, Scalar),
    floating: bool,
    truth: bool,
}

impl<'a> Store<'a> {
    fn new(out: &'a mut TensorMut<'_>) -> Result<Self, KernelError> {
        let dtype = out.meta().dtype;
        let put = with_element!(dtype, T => put::<T> as fn(&mut [u8], usize, Scalar), else => {
            return Err(KernelError::unsupported(dtype.to_string()));
        });
        let (floating, truth) = (dtype.is_floating(), dtype == ScalarType::BOOL);
        Ok(Store { bytes: out.bytes_mut(), put, floating, truth })
    }

    #[inline]
    fn put(&mut self, at: usize, scalar: Scalar) {
        (self.put)(self.bytes, at, scalar);
    }
}

fn put<T: Number>(bytes: &mut [u8], at: usize, scalar: Scalar) {
    bytemuck::cast_slice_mut::<u8, T>(bytes)[at] = T::from_scalar(scalar);
}

#[cfg(test)]
mod tests;
