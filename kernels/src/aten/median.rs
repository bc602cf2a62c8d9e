//! `median` and its like: the middle element, the lower one of two, with its place; the k-th one.
//!
//! NaN counts as the median of every line that holds one, is left out by `nanmedian`, and is greatest for the others. Which of several equal elements is named is left to the same
//! partition that `topk` uses.

use edgepack_executor::kernel::{Alias, Kernel, KernelContext, KernelError, Prepare, Run};
use edgepack_executor::tensor::Scalar;
use edgepack_executor::with_element;
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::Dims;

use crate::aten::sort::{NAN, order};
use crate::check::{Around, Class, Shape, expect_class, expect_dtype, expect_same};
use crate::dims::dim_of;
use edgepack_compute::number::{Compute, Number};
use edgepack_compute::select::{Entry, partition_around};

/// The operators of this family.
pub static KERNELS: &[&Kernel] = &[&MEDIAN, &MEDIAN_ALL, &NAN_MEDIAN, &NAN_MEDIAN_ALL, &KTH];

static MEDIAN: Kernel = Kernel {
    name: "aten::median.dim_values",
    schema: "(Tensor self, int dim, bool keepdim=False, *, Tensor(a!) values, Tensor(b!) indices) -> (Tensor(a!) values, Tensor(b!) indices)",
    alias: Alias::Disjoint,
    prepare: |args| prepare(args, &Form { dim: Some(1), values: 3, which: Which::Median }),
};
static MEDIAN_ALL: Kernel = Kernel {
    name: "aten::median.out",
    schema: "(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    alias: Alias::Disjoint,
    prepare: |args| prepare(args, &Form { dim: None, values: 1, which: Which::Median }),
};

static NAN_MEDIAN: Kernel = Kernel {
    name: "aten::nanmedian.dim_values",
    schema: "(Tensor self, int dim, bool keepdim=False, *, Tensor(a!) values, Tensor(b!) indices) -> (Tensor(a!) values, Tensor(b!) indices)",
    alias: Alias::Disjoint,
    prepare: |args| prepare(args, &Form { dim: Some(1), values: 3, which: Which::NanMedian }),
};
static NAN_MEDIAN_ALL: Kernel = Kernel {
    name: "aten::nanmedian.out",
    schema: "(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    alias: Alias::Disjoint,
    prepare: |args| prepare(args, &Form { dim: None, values: 1, which: Which::NanMedian }),
};
static KTH: Kernel = Kernel {
    name: "aten::kthvalue.values",
    schema: "(Tensor self, SymInt k, int dim=-1, bool keepdim=False, *, Tensor(a!) values, Tensor(b!) indices) -> (Tensor(a!) values, Tensor(b!) indices)",
    alias: Alias::Disjoint,
    prepare: |args| prepare(args, &Form { dim: Some(2), values: 4, which: Which::Kth(1) }),
};
/// Which element of a line is wanted.
#[derive(Clone, Copy)]
enum Which {
    Median,
    NanMedian,
    /// That of the order which an argument says, counted from 1.
    Kth(usize),
}

/// Where the arguments stand. With a dimension, `keepdim` follows it and the places follow the values.
struct Form {
    dim: Option<usize>,
    values: usize,
    which: Which,
}

fn prepare(args: &Prepare<'_>, form: &'static Form) -> Result<Box<dyn Run>, KernelError> {
    let input = args.tensor(0)?;
    let dtype = input.meta.dtype;
    expect_class("self", dtype, Class::Real)?;
    expect_same(("self", dtype), ("out", args.tensor(form.values)?.meta.dtype))?;
    if form.dim.is_some() {
        expect_dtype("indices", args.tensor(form.values + 1)?.meta.dtype, ScalarType::LONG)?;
    }
    args.scratch(input.meta.element_count().saturating_mul(size_of::<Entry>()));
    with_element!(dtype, T => Ok(Box::new(move |cx: &mut KernelContext<'_>| run::<T>(form, cx))), else => {
        Err(KernelError::unsupported(dtype.to_string()))
    })
}

fn run<T: Number>(form: &Form, cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
    let meta = cx.meta(0)?;
    let order_of = match form.which {
        Which::Kth(arg) => cx.int(arg)?,
        _ => 1,
    };
    let mut sizes = Dims::new();
    let mut around = Around { outer: 1, size: meta.element_count(), inner: 1 };
    if let Some(arg) = form.dim {
        let dim = dim_of("dim", cx.int(arg)?, "self", meta.rank())?;
        let keep = cx.bool(arg + 1)?;
        let kept = meta.sizes.iter().enumerate().filter(|&(at, _)| keep || at != dim);
        sizes = Dims::collect(kept.map(|(at, &size)| if at == dim { 1 } else { size })).unwrap_or_default();
        if meta.sizes.get(dim) == Some(&0) && !sizes.contains(&0) {
            return Err(KernelError::argument(format!("`self` is {}: no elements to choose from", Shape(meta.sizes))));
        }
        around = Around::new(meta.sizes, meta.strides, dim);
        let contiguous = meta.is_contiguous();
        cx.resize(form.values, &sizes)?;
        cx.resize(form.values + 1, &sizes)?;
        if !contiguous || !cx.meta(form.values)?.is_contiguous() || !cx.meta(form.values + 1)?.is_contiguous() {
            return Err(KernelError::unsupported("`self`, `values` and `indices` must be contiguous"));
        }
    } else {
        cx.resize(form.values, &sizes)?;
    }
    let views = cx.views();
    let (input, values) = (views.tensor(0)?.as_slice::<T>()?, views.out(form.values)?.into_slice::<T>()?);
    let mut places = match form.dim {
        Some(_) => Some(views.out(form.values + 1)?.into_slice::<i64>()?),
        None => None,
    };
    if around.size == 0 {
        // Of nothing, a float has no median and an integer its least.
        let none = if T::Compute::FLOATING { Scalar::Double(f64::NAN) } else { Scalar::Int(i64::MIN) };
        values.fill(T::from_scalar(none));
        return Ok(());
    }
    let entries = bytemuck::try_cast_slice_mut::<u8, Entry>(views.scratch()?).ok();
    let entries = entries
        .and_then(|all| all.get_mut(..around.size))
        .ok_or_else(|| KernelError::unsupported(format!("{} elements are more than at load", around.size)))?;
    for line in 0..around.outer * around.inner {
        let start = line / around.inner * around.size * around.inner + line % around.inner;
        let elements = input[start..].iter().step_by(around.inner);
        for (place, (entry, &x)) in entries.iter_mut().zip(elements).enumerate() {
            *entry = [order(x), place as u64];
        }
        let place = match form.which {
            Which::Median => median(entries),
            Which::NanMedian => {
                let count = entries.iter().filter(|entry| entry[0] != NAN).count();
                at_order(entries, count.saturating_sub(1) / 2)
            }
            Which::Kth(_) => {
                let k = usize::try_from(order_of).ok().filter(|k| (1..=entries.len()).contains(k));
                let k = k.ok_or_else(|| {
                    let length = entries.len();
                    KernelError::argument(format!("`k` is {order_of}, the dimension has {length} elements"))
                })?;
                at_order(entries, k - 1)
            }
        };
        values[line] = input[start + place * around.inner];
        if let Some(places) = &mut places {
            places[line] = place as i64;
        }
    }
    Ok(())
}

/// The place of the element with so many before it.
fn at_order(entries: &mut [Entry], before: usize) -> usize {
    partition_around(entries, before);
    entries[before][1] as usize
}

/// The place of the median: that of the first NaN, if there is one.
fn median(entries: &mut [Entry]) -> usize {
    let middle = match entries.iter().find(|entry| entry[0] == NAN) {
        Some(&[_, place]) => place,
        None => {
            let middle = (entries.len() - 1) / 2;
            partition_around(entries, middle);
            entries[middle][1]
        }
    };
    middle as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use edgepack_compute::random::Random;
    use edgepack_executor::call::{Arg, call};

    #[test]
    fn the_lower_of_two_and_nan_first() {
        let input = Arg::tensor(&[2, 4], &[4.0f32, 1.0, 3.0, 2.0, 1.0, f32::NAN, 0.0, f32::NAN]);
        let outs = [Arg::out(ScalarType::FLOAT, &[2, 1]), Arg::out(ScalarType::LONG, &[2, 1])];
        let mut args = vec![input.clone(), Arg::int(-1), Arg::bool(true)];
        args.extend(outs);
        let outs = call(&MEDIAN, &args).unwrap();
        let values = outs[0].as_slice::<f32>().unwrap();
        assert!(values[0] == 2.0 && values[1].is_nan());
        assert_eq!(outs[1].as_slice::<i64>().unwrap(), [3, 1]);
        let all = call(&MEDIAN_ALL, &[input, Arg::out(ScalarType::FLOAT, &[])]).unwrap();
        assert!(all[0].as_slice::<f32>().unwrap()[0].is_nan());
    }

    #[test]
    fn agrees_with_sorting() {
        let mut random = Random::new(11);
        for _ in 0..40 {
            let sizes = [random.below(3) + 1, random.below(40) + 1, random.below(3) + 1];
            let values: Vec<i16> = random.values(sizes.iter().product());
            let args = [
                Arg::tensor(&sizes, &values),
                Arg::int(1),
                Arg::bool(false),
                Arg::out(ScalarType::SHORT, &[sizes[0], sizes[2]]),
                Arg::out(ScalarType::LONG, &[sizes[0], sizes[2]]),
            ];
            let outs = call(&MEDIAN, &args).unwrap();
            let (have, places) = (outs[0].as_slice::<i16>().unwrap(), outs[1].as_slice::<i64>().unwrap());
            for (line, (&have, &place)) in have.iter().zip(&places).enumerate() {
                let at = |i: usize| values[(line / sizes[2] * sizes[1] + i) * sizes[2] + line % sizes[2]];
                let mut sorted: Vec<i16> = (0..sizes[1]).map(at).collect();
                sorted.sort_unstable();
                assert_eq!((have, at(place as usize)), (sorted[(sizes[1] - 1) / 2], have));
            }
        }
    }

    /// What eager PyTorch answers.
    #[test]
    fn others_of_their_kind() {
        let input = Arg::tensor(&[2, 4], &[4.0f32, 1.0, f32::NAN, 1.0, f32::NAN, 3.0, 2.0, 7.0]);
        let outs = || [Arg::out(ScalarType::FLOAT, &[2]), Arg::out(ScalarType::LONG, &[2])];
        let of = |kernel: &Kernel, args: &[Arg]| {
            let args: Vec<Arg> = std::iter::once(input.clone()).chain(args.iter().cloned()).chain(outs()).collect();
            let outs = call(kernel, &args).unwrap();
            (outs[0].as_slice::<f32>().unwrap(), outs[1].as_slice::<i64>().unwrap())
        };
        assert_eq!(of(&NAN_MEDIAN, &[Arg::int(1), Arg::bool(false)]).0, [1.0, 3.0]);
        assert_eq!(of(&KTH, &[Arg::int(3), Arg::int(1), Arg::bool(false)]), (vec![4.0, 7.0], vec![0, 3]));
        let all = call(&NAN_MEDIAN_ALL, &[input, Arg::out(ScalarType::FLOAT, &[])]).unwrap();
        assert_eq!(all[0].as_slice::<f32>().unwrap(), [2.0]);
    }

    #[test]
    fn of_nothing() {
        let empty = Arg::tensor::<f32>(&[2, 0], &[]);
        let all = call(&MEDIAN_ALL, &[empty.clone(), Arg::out(ScalarType::FLOAT, &[])]).unwrap();
        assert!(all[0].as_slice::<f32>().unwrap()[0].is_nan());
        let args =
            [empty, Arg::int(1), Arg::bool(false), Arg::out(ScalarType::FLOAT, &[2]), Arg::out(ScalarType::LONG, &[2])];
        assert_eq!(call(&MEDIAN, &args).unwrap_err().message, "`self` is 2x0: no elements to choose from");
    }
}
