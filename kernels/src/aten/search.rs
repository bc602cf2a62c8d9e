//! Searching among sorted numbers: `searchsorted`, `bucketize`, and the bins of `histc`. The loops are those of
//! `edgepack_compute::search`.

use edgepack_executor::kernel::{Alias, Kernel, KernelContext, KernelError, Prepare, Run};
use edgepack_executor::tensor::{Scalar, TensorRef};
use edgepack_executor::with_element;
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::Dims;

use crate::check::{Class, Shape, expect_class, expect_dtype, with_float};
use crate::dims::size_of;
use crate::schema::{arguments, kernel, position};
use edgepack_compute::indices::Indices;
use edgepack_compute::number::{Cast, Number};
use edgepack_compute::search::{self, Key, Keys, Sorted};

/// The operators of this family.
pub static KERNELS: &[&Kernel] = &[&SEARCH, &SEARCH_NUMBER, &BUCKETS, &BUCKET_NUMBER, &HISTOGRAM];

macro_rules! searches {
    ($($id:ident: $name:literal $bounds:literal $number:literal $sorter:literal;)*) => {
        $(static $id: Kernel = kernel($name, Alias::Disjoint, |args| {
            static FORM: Form = Form::new($name, $bounds, $number, $sorter);
            prepare(args, &FORM)
        });)*
    };
}

searches! {
    SEARCH: "aten::searchsorted.Tensor_out" "sorted_sequence" false true;
    SEARCH_NUMBER: "aten::searchsorted.Scalar_out" "sorted_sequence" true true;
    BUCKETS: "aten::bucketize.Tensor_out" "boundaries" false false;
    BUCKET_NUMBER: "aten::bucketize.Scalar_out" "boundaries" true false;
}

static HISTOGRAM: Kernel = kernel("aten::histc.out", Alias::Disjoint, |args| {
    let dtype = args.tensor(SELF)?.meta.dtype;
    expect_dtype("out", args.tensor(COUNTS)?.meta.dtype, dtype)?;
    with_float!(dtype, T => Ok(Box::new(histogram::<T>)))
});

arguments!("aten::histc.out"; SELF = "self", BINS = "bins", MIN = "min", MAX = "max", COUNTS = "out");

/// The arguments of an operator.
struct Form {
    bounds: usize,
    /// Position of the values to search for, and whether they are a single number.
    values: usize,
    number: bool,
    right: usize,
    /// The side by name, and the order of the bounds.
    sorter: Option<(usize, usize)>,
    out: usize,
}

impl Form {
    const fn new(name: &str, bounds: &str, number: bool, sorter: bool) -> Form {
        Form {
            bounds: position(name, bounds),
            values: position(name, "self"),
            number,
            right: position(name, "right"),
            sorter: if sorter { Some((position(name, "side"), position(name, "sorter"))) } else { None },
            out: position(name, "out"),
        }
    }
}

fn prepare(args: &Prepare<'_>, form: &'static Form) -> Result<Box<dyn Run>, KernelError> {
    expect_class("boundaries", args.tensor(form.bounds)?.meta.dtype, Class::Real)?;
    if !form.number {
        expect_class("self", args.tensor(form.values)?.meta.dtype, Class::Real)?;
        expect_contiguous(args, form.values, "self")?;
    }
    expect_contiguous(args, form.bounds, "boundaries")?;
    expect_contiguous(args, form.out, "out")?;
    match args.tensor(form.out)?.meta.dtype {
        ScalarType::INT => Ok(Box::new(move |cx: &mut KernelContext<'_>| run::<i32>(cx, form))),
        ScalarType::LONG => Ok(Box::new(move |cx: &mut KernelContext<'_>| run::<i64>(cx, form))),
        other => Err(KernelError::argument(format!("`out` is {other}, the operator wants i32 or i64"))),
    }
}

fn expect_contiguous(args: &Prepare<'_>, arg: usize, name: &str) -> Result<(), KernelError> {
    match args.tensor(arg)?.meta.is_contiguous() {
        true => Ok(()),
        false => Err(KernelError::unsupported(format!("`{name}` must be contiguous"))),
    }
}

/// The elements of a tensor of numbers, as `prepare` looked at it.
fn keys<'a>(tensor: &TensorRef<'a>) -> Keys<'a> {
    with_element!(tensor.dtype, T => Keys::new::<T>(tensor.bytes()), else => Keys::One(Key::Whole(0)))
}

fn run<T: Number>(cx: &mut KernelContext<'_>, form: &Form) -> Result<(), KernelError>
where
    i64: Cast<T>,
{
    let bounds = cx.meta(form.bounds)?;
    let length = bounds.sizes.last().copied().unwrap_or(1);
    let several = bounds.rank() > 1;
    let sizes = match form.number {
        true => Dims::new(),
        false => Dims::from_slice(cx.meta(form.values)?.sizes).unwrap_or_default(),
    };
    if several && (sizes.len() != bounds.rank() || sizes[..sizes.len() - 1] != bounds.sizes[..bounds.rank() - 1]) {
        let (have, bounds) = (Shape(&sizes), Shape(bounds.sizes));
        return Err(KernelError::argument(format!("`self` is {have}, the boundaries are {bounds}: they do not fit")));
    }
    let mut right = cx.bool(form.right)?;
    if let Some((side, _)) = form.sorter {
        right |= cx.text_opt(side)? == Some("right");
    }
    let number = match form.number {
        true => Some(match cx.scalar(form.values)? {
            Scalar::Int(number) => Key::Whole(number),
            other => Key::Real(other.to_f64()),
        }),
        false => None,
    };
    cx.resize(form.out, &sizes)?;
    let views = cx.views();
    let values = match number {
        Some(number) => Keys::One(number),
        None => keys(&views.tensor(form.values)?),
    };
    let order = match form.sorter {
        Some((_, sorter)) => views.tensor_opt(sorter)?,
        None => None,
    };
    let order = order.map(|order| order.as_slice::<i64>()).transpose()?;
    let order = order.map(|order| Indices::long(bytemuck::cast_slice(order)));
    let sorted = Sorted { keys: keys(&views.tensor(form.bounds)?), length, order };
    let per_line = several.then(|| sizes.last().copied().unwrap_or(1));
    Ok(sorted.find(values, per_line, right, views.out(form.out)?.into_slice::<T>()?)?)
}

fn histogram<T: Number>(cx: &mut KernelContext<'_>) -> Result<(), KernelError>
where
    f64: Cast<T>,
{
    let bins = size_of("bins", cx.int(BINS)?)?;
    let bounds = [cx.scalar(MIN)?.to_f64(), cx.scalar(MAX)?.to_f64()];
    if bins == 0 {
        return Err(KernelError::argument("`bins` is 0"));
    }
    cx.resize(COUNTS, &[bins])?;
    let views = cx.views();
    Ok(search::histogram(views.tensor(SELF)?.as_slice::<T>()?, bounds, views.out(COUNTS)?.into_slice::<T>()?)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use edgepack_executor::call::{Arg, call};

    /// Compares with the results of eager PyTorch.
    #[test]
    fn places_among_sorted_numbers() {
        let bounds = Arg::tensor(&[2, 3], &[1.0f32, 2.0, 2.0, 0.0, 5.0, f32::NAN]);
        let values = Arg::tensor(&[2, 2], &[2.0f32, 0.0, f32::NAN, 9.0]);
        for (right, want) in [(false, [1, 0, 3, 3]), (true, [3, 0, 3, 3])] {
            let out = Arg::out(ScalarType::LONG, &[2, 2]);
            let args = [bounds.clone(), values.clone(), Arg::bool(false), Arg::bool(right), Arg::None, Arg::None, out];
            assert_eq!(call(&SEARCH, &args).unwrap()[0].as_slice::<i64>().unwrap(), want, "{right}");
        }
    }

    #[test]
    fn bins() {
        let x = Arg::tensor(&[5], &[1.0f32, 2.0, 1.0, 3.0, 9.0]);
        let bins = |low: f64, high: f64| {
            let args = [x.clone(), Arg::int(4), Arg::double(low), Arg::double(high), Arg::out(ScalarType::FLOAT, &[4])];
            call(&HISTOGRAM, &args).unwrap()[0].as_slice::<f32>().unwrap()
        };
        assert_eq!(bins(0.0, 3.0), [0.0, 2.0, 1.0, 1.0]);
        assert_eq!(bins(0.0, 0.0), [3.0, 1.0, 0.0, 1.0]);
    }
}
