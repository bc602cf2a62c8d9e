//! Searching among sorted numbers: `searchsorted`, `bucketize`, and the bins of `histc`.

use std::cmp::Ordering;

use edgepack_executor::kernel::{Alias, Kernel, KernelContext, KernelError, Prepare, Run};
use edgepack_executor::tensor::{TensorMut, TensorRef};
use edgepack_executor::with_element;
use edgepack_format::scalar::{Element, ScalarType};
use edgepack_format::tensor::Dims;

use crate::check::{Class, Shape, expect_class, expect_dtype, with_float};
use edgepack_compute::number::{Cast, Number};

/// The operators of this family.
pub static KERNELS: &[&Kernel] = &[&SEARCH, &SEARCH_NUMBER, &BUCKETS, &BUCKET_NUMBER, &HISTOGRAM];

static SEARCH: Kernel = Kernel {
    name: "aten::searchsorted.Tensor_out",
    schema: "(Tensor sorted_sequence, Tensor self, *, bool out_int32=False, bool right=False, str? side=None, Tensor? sorter=None, Tensor(a!) out) -> Tensor(a!)",
    alias: Alias::Disjoint,
    prepare: |args| prepare(args, &Form { bounds: 0, number: false, right: 3, side: Some((4, 5)), out: 6 }),
};
static SEARCH_NUMBER: Kernel = Kernel {
    name: "aten::searchsorted.Scalar_out",
    schema: "(Tensor sorted_sequence, Scalar self, *, bool out_int32=False, bool right=False, str? side=None, Tensor? sorter=None, Tensor(a!) out) -> Tensor(a!)",
    alias: Alias::Disjoint,
    prepare: |args| prepare(args, &Form { bounds: 0, number: true, right: 3, side: Some((4, 5)), out: 6 }),
};
static BUCKETS: Kernel = Kernel {
    name: "aten::bucketize.Tensor_out",
    schema: "(Tensor self, Tensor boundaries, *, bool out_int32=False, bool right=False, Tensor(a!) out) -> Tensor(a!)",
    alias: Alias::Disjoint,
    prepare: |args| prepare(args, &Form { bounds: 1, number: false, right: 3, side: None, out: 4 }),
};
static BUCKET_NUMBER: Kernel = Kernel {
    name: "aten::bucketize.Scalar_out",
    schema: "(Scalar self, Tensor boundaries, *, bool out_int32=False, bool right=False, Tensor(a!) out) -> Tensor(a!)",
    alias: Alias::Disjoint,
    prepare: |args| prepare(args, &Form { bounds: 1, number: true, right: 3, side: None, out: 4 }),
};
static HISTOGRAM: Kernel = Kernel {
    name: "aten::histc.out",
    schema: "(Tensor self, int bins=100, Scalar min=0, Scalar max=0, *, Tensor(a!) out) -> Tensor(a!)",
    alias: Alias::Disjoint,
    prepare: |args| {
        let dtype = args.tensor(0)?.meta.dtype;
        expect_dtype("out", args.tensor(4)?.meta.dtype, dtype)?;
        with_float!(dtype, T => Ok(Box::new(histogram::<T>)))
    },
};

/// Where the arguments stand: those that are searched are the other one of the first two.
struct Form {
    bounds: usize,
    number: bool,
    right: usize,
    side: Option<(usize, usize)>,
    out: usize,
}

fn prepare(args: &Prepare<'_>, form: &'static Form) -> Result<Box<dyn Run>, KernelError> {
    expect_class("boundaries", args.tensor(form.bounds)?.meta.dtype, Class::Real)?;
    if !form.number {
        expect_class("self", args.tensor(1 - form.bounds)?.meta.dtype, Class::Real)?;
        expect_contiguous(args, 1 - form.bounds, "self")?;
    }
    expect_contiguous(args, form.bounds, "boundaries")?;
    expect_contiguous(args, form.out, "out")?;
    match args.tensor(form.out)?.meta.dtype {
        ScalarType::LONG | ScalarType::INT => Ok(Box::new(move |cx: &mut KernelContext<'_>| search(cx, form))),
        other => Err(KernelError::argument(format!("`out` is {other}, the operator wants INT or LONG"))),
    }
}

fn expect_contiguous(args: &Prepare<'_>, arg: usize, name: &str) -> Result<(), KernelError> {
    match args.tensor(arg)?.meta.is_contiguous() {
        true => Ok(()),
        false => Err(KernelError::unsupported(format!("`{name}` must be contiguous"))),
    }
}

/// An element as a number that orders exactly: whole numbers of 64 bits keep all their digits.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Key {
    Whole(i64),
    Real(f64),
}

impl Key {
    fn at(tensor: &TensorRef<'_>, at: usize) -> Key {
        let width = tensor.dtype.size().unwrap_or(1);
        let bytes = &tensor.bytes()[at * width..][..width];
        with_element!(tensor.dtype, T => {
            let value: T = bytemuck::pod_read_unaligned(bytes);
            match T::SCALAR_TYPE.is_floating() {
                true => Key::Real(value.cast()),
                false => Key::Whole(value.cast()),
            }
        }, else => Key::Whole(0))
    }

    /// How it compares to another; NaN does not.
    fn compare(self, other: Key) -> Option<Ordering> {
        match (self, other) {
            (Key::Whole(a), Key::Whole(b)) => Some(a.cmp(&b)),
            (a, b) => a.real().partial_cmp(&b.real()),
        }
    }

    fn real(self) -> f64 {
        match self {
            Key::Whole(number) => number as f64,
            Key::Real(number) => number,
        }
    }
}

fn search(cx: &mut KernelContext<'_>, form: &Form) -> Result<(), KernelError> {
    let bounds = cx.meta(form.bounds)?;
    let length = bounds.sizes.last().copied().unwrap_or(1);
    let several = bounds.rank() > 1;
    let sizes = match form.number {
        true => Dims::new(),
        false => Dims::from_slice(cx.meta(1 - form.bounds)?.sizes).unwrap_or_default(),
    };
    if several && (sizes.len() != bounds.rank() || sizes[..sizes.len() - 1] != bounds.sizes[..bounds.rank() - 1]) {
        let (have, bounds) = (Shape(&sizes), Shape(bounds.sizes));
        return Err(KernelError::argument(format!("`self` is {have}, the boundaries are {bounds}: they do not fit")));
    }
    let mut right = cx.bool(form.right)?;
    let mut sorter = None;
    if let Some((side, order)) = form.side {
        right |= cx.text_opt(side)? == Some("right");
        sorter = cx.meta_opt(order)?.map(|_| order);
    }
    let number = match form.number {
        true => match cx.scalar(1 - form.bounds)? {
            edgepack_executor::tensor::Scalar::Int(number) => Some(Key::Whole(number)),
            other => Some(Key::Real(other.to_f64())),
        },
        false => None,
    };
    cx.resize(form.out, &sizes)?;
    let views = cx.views();
    let bounds = views.tensor(form.bounds)?;
    let values = if form.number { None } else { Some(views.tensor(1 - form.bounds)?) };
    let sorter = sorter.map(|arg| views.tensor(arg)).transpose()?;
    let order = sorter.as_ref().map(|sorter| sorter.as_slice::<i64>()).transpose()?;
    let mut out = views.out(form.out)?;
    let count: usize = sizes.iter().product();
    let line = sizes.last().copied().unwrap_or(1).max(1);
    for at in 0..count {
        let start = if several { at / line * length } else { 0 };
        let key = match &values {
            Some(values) => Key::at(values, at),
            None => number.unwrap_or(Key::Whole(0)),
        };
        let bound = |place: usize| -> Result<Key, KernelError> {
            let Some(order) = order else { return Ok(Key::at(&bounds, start + place)) };
            let place = order.get(start + place).copied().unwrap_or(0);
            let place = crate::dims::index_of("sorter", place, length)?;
            Ok(Key::at(&bounds, start + place))
        };
        let (mut low, mut high) = (0, length);
        while low < high {
            let middle = low + (high - low) / 2;
            let there = bound(middle)?;
            // To the left of equals, or to their right; NaN is passed by.
            let found = there.compare(key);
            let beyond = found != Some(Ordering::Greater) && (right || found != Some(Ordering::Equal));
            if beyond { low = middle + 1 } else { high = middle }
        }
        put(&mut out, at, low)?;
    }
    Ok(())
}

fn put(out: &mut TensorMut<'_>, at: usize, place: usize) -> Result<(), KernelError> {
    match out.dtype {
        ScalarType::INT => out.as_slice::<i32>()?[at] = place as i32,
        _ => out.as_slice::<i64>()?[at] = place as i64,
    }
    Ok(())
}

fn histogram<T: Number>(cx: &mut KernelContext<'_>) -> Result<(), KernelError>
where
    f64: Cast<T>,
{
    let bins = crate::dims::size_of("bins", cx.int(1)?)?;
    let (mut low, mut high) = (cx.scalar(2)?.to_f64(), cx.scalar(3)?.to_f64());
    if bins == 0 {
        return Err(KernelError::argument("`bins` is 0"));
    }
    cx.resize(4, &[bins])?;
    let views = cx.views();
    let (input, out) = (views.tensor(0)?.as_slice::<T>()?, views.out(4)?.into_slice::<T>()?);
    let real = |x: &T| -> f64 { (*x).cast() };
    if low == high && !input.is_empty() {
        // Without bounds, those of the elements.
        (low, high) = input.iter().map(real).fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| (a.min(x), b.max(x)));
    }
    if low == high {
        (low, high) = (low - 1.0, high + 1.0);
    }
    if !low.is_finite() || !high.is_finite() || low > high {
        return Err(KernelError::argument(format!("there are no bins from {low} to {high}")));
    }
    out.fill(T::default());
    // As many digits as the elements have decide on which side of a bound they fall.
    for x in input.iter().map(real).filter(|x| (low..=high).contains(x)) {
        let part = if T::SCALAR_TYPE == ScalarType::DOUBLE {
            (x - low) / (high - low) * bins as f64
        } else {
            f64::from((x as f32 - low as f32) / (high as f32 - low as f32) * bins as f32)
        };
        let bin = (part as usize).min(bins - 1);
        out[bin] = (real(&out[bin]) + 1.0).cast();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use edgepack_executor::call::{Arg, call};

    /// What eager PyTorch answers.
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
