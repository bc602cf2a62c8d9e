//! `median` and its like: the middle element, the lower one of two, with its place; the k-th one.
//!
//! NaN counts as the median of every line that holds one, is left out by `nanmedian`, and is greatest for `kthvalue`. The
//! loops are those of `edgepack_compute::sort`.

use edgepack_executor::kernel::{Alias, Kernel, KernelContext, KernelError, Prepare, Run};
use edgepack_executor::tensor::Scalar;
use edgepack_executor::with_element;
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::Dims;

use crate::check::{Class, Shape, expect_class, expect_dtype, expect_same};
use crate::dims::dim_of;
use crate::schema::{kernel, position};
use crate::scratch;
use edgepack_compute::layout::AxisView;
use edgepack_compute::number::{Compute, Number};
use edgepack_compute::select::Entry;
use edgepack_compute::sort::{Rank, ranked};

/// The operators of this family.
pub static KERNELS: &[&Kernel] = &[&MEDIAN, &MEDIAN_ALL, &NAN_MEDIAN, &NAN_MEDIAN_ALL, &KTH];

macro_rules! kernels {
    ($($id:ident: $name:literal $along:expr, $wanted:expr;)*) => {
        $(static $id: Kernel = kernel($name, Alias::Disjoint, |args| {
            static FORM: Form = Form::new($name, $along, $wanted);
            prepare(args, &FORM)
        });)*
    };
}

kernels! {
    MEDIAN: "aten::median.dim_values" true, Wanted::Median;
    MEDIAN_ALL: "aten::median.out" false, Wanted::Median;
    NAN_MEDIAN: "aten::nanmedian.dim_values" true, Wanted::NanMedian;
    NAN_MEDIAN_ALL: "aten::nanmedian.out" false, Wanted::NanMedian;
    KTH: "aten::kthvalue.values" true, Wanted::Kth(position("aten::kthvalue.values", "k"));
}

/// The element of a line that is wanted.
#[derive(Clone, Copy)]
enum Wanted {
    Median,
    NanMedian,
    /// The element of the rank that an argument says, counted from 1.
    Kth(usize),
}

/// The arguments of an operator.
struct Form {
    input: usize,
    along: Option<Along>,
    values: usize,
    wanted: Wanted,
}

/// The arguments of an operator that works along a dimension.
struct Along {
    dim: usize,
    keepdim: usize,
    indices: usize,
}

impl Form {
    const fn new(name: &str, along: bool, wanted: Wanted) -> Form {
        let input = position(name, "self");
        if !along {
            return Form { input, along: None, values: position(name, "out"), wanted };
        }
        let along = Along {
            dim: position(name, "dim"),
            keepdim: position(name, "keepdim"),
            indices: position(name, "indices"),
        };
        Form { input, along: Some(along), values: position(name, "values"), wanted }
    }
}

fn prepare(args: &Prepare<'_>, form: &'static Form) -> Result<Box<dyn Run>, KernelError> {
    let input = args.tensor(form.input)?;
    let dtype = input.meta.dtype;
    expect_class("self", dtype, Class::Real)?;
    expect_same(("self", dtype), ("out", args.tensor(form.values)?.meta.dtype))?;
    if let Some(along) = &form.along {
        expect_dtype("indices", args.tensor(along.indices)?.meta.dtype, ScalarType::LONG)?;
    }
    args.scratch(input.meta.element_count().saturating_mul(size_of::<Entry>()));
    with_element!(dtype, T => Ok(Box::new(move |cx: &mut KernelContext<'_>| run::<T>(form, cx))), else => {
        Err(KernelError::unsupported(dtype.to_string()))
    })
}

/// Gives the outputs their sizes; returns the view of the input along the dimension, or along all of them.
fn view(form: &Form, cx: &mut KernelContext<'_>) -> Result<AxisView, KernelError> {
    let meta = cx.meta(form.input)?;
    let Some(along) = &form.along else {
        let view = AxisView { outer: 1, size: meta.element_count(), inner: 1 };
        cx.resize(form.values, &[])?;
        return Ok(view);
    };
    let dim = dim_of("dim", cx.int(along.dim)?, "self", meta.rank())?;
    let keepdim = cx.bool(along.keepdim)?;
    let sizes = meta.sizes.iter().enumerate().filter(|&(at, _)| keepdim || at != dim);
    let sizes: Dims = Dims::collect(sizes.map(|(at, &size)| if at == dim { 1 } else { size })).unwrap_or_default();
    if meta.sizes.get(dim) == Some(&0) && !sizes.contains(&0) {
        return Err(KernelError::argument(format!("`self` is {}: no elements to choose from", Shape(meta.sizes))));
    }
    let view = AxisView::new(meta.sizes, meta.strides, dim);
    let contiguous = meta.is_contiguous();
    cx.resize(form.values, &sizes)?;
    cx.resize(along.indices, &sizes)?;
    if !contiguous || !cx.meta(form.values)?.is_contiguous() || !cx.meta(along.indices)?.is_contiguous() {
        return Err(KernelError::unsupported("`self`, `values` and `indices` must be contiguous"));
    }
    Ok(view)
}

/// The rank of the element that is wanted in the lines of a view.
fn rank(form: &Form, cx: &KernelContext<'_>, view: AxisView) -> Result<Rank, KernelError> {
    let k = match form.wanted {
        Wanted::Median => return Ok(Rank::Median),
        Wanted::NanMedian => return Ok(Rank::NanMedian),
        Wanted::Kth(argument) => cx.int(argument)?,
    };
    match usize::try_from(k).ok().and_then(|k| k.checked_sub(1)) {
        Some(before) if before < view.size => Ok(Rank::Before(before)),
        // Of no lines any rank is wanted.
        _ if view.count() == 0 => Ok(Rank::Before(0)),
        _ => Err(KernelError::argument(format!("`k` is {k}, the dimension has {} elements", view.size))),
    }
}

fn run<T: Number>(form: &Form, cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
    let view = view(form, cx)?;
    let rank = rank(form, cx, view)?;
    let views = cx.views();
    let (input, values) = (views.tensor(form.input)?.as_slice::<T>()?, views.out(form.values)?.into_slice::<T>()?);
    if view.size == 0 {
        // Of nothing, a float has no median and an integer its least.
        let none = if T::Compute::FLOATING { Scalar::Double(f64::NAN) } else { Scalar::Int(i64::MIN) };
        values.fill(T::from_scalar(none));
        return Ok(());
    }
    let places = form.along.as_ref().map(|along| views.out(along.indices)?.into_slice::<i64>()).transpose()?;
    Ok(ranked(view, rank, input, values, places, scratch::elements(&views)?)?)
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

    /// Compares with the results of eager PyTorch.
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
