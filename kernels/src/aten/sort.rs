//! `sort` and `topk`: elements along a dimension in order, with the places they had.
//!
//! The loops are those of `edgepack_compute::sort`; input and outputs have one order of dimensions.

use edgepack_executor::kernel::{Alias, Kernel, KernelContext, KernelError, Prepare, Run};
use edgepack_executor::with_element;
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::Dims;

use crate::check::{Class, expect_class, expect_dtype, expect_same, expect_same_order};
use crate::dims::dim_of;
use crate::schema::{kernel, position};
use crate::scratch;
use edgepack_compute::layout::AxisView;
use edgepack_compute::number::Number;
use edgepack_compute::select::Entry;
use edgepack_compute::sort::{Part, sort};

/// The operators of this family.
pub static KERNELS: &[&Kernel] = &[&SORT, &SORT_STABLE, &TOPK];

macro_rules! kernels {
    ($($id:ident: $name:literal $row:ident;)*) => {
        $(static $id: Kernel = kernel($name, Alias::Disjoint, |args| {
            static FORM: Form = Form::$row($name);
            prepare(args, &FORM)
        });)*
    };
}

kernels! {
    SORT: "aten::sort.values" all;
    SORT_STABLE: "aten::sort.values_stable" all;
    TOPK: "aten::topk.values" first;
}

/// The arguments of an operator.
struct Form {
    input: usize,
    first: Option<First>,
    dim: usize,
    descending: usize,
    values: usize,
    indices: usize,
}

/// The arguments of `topk` that say how many elements it wants, and whether in order.
struct First {
    k: usize,
    sorted: usize,
}

impl Form {
    const fn new(name: &str, descending: &str, first: Option<First>) -> Form {
        Form {
            input: position(name, "self"),
            first,
            dim: position(name, "dim"),
            descending: position(name, descending),
            values: position(name, "values"),
            indices: position(name, "indices"),
        }
    }

    /// All elements in order.
    const fn all(name: &str) -> Form {
        Form::new(name, "descending", None)
    }

    /// The greatest elements, or the least.
    const fn first(name: &str) -> Form {
        Form::new(name, "largest", Some(First { k: position(name, "k"), sorted: position(name, "sorted") }))
    }
}

fn prepare(args: &Prepare<'_>, form: &'static Form) -> Result<Box<dyn Run>, KernelError> {
    let input = args.tensor(form.input)?;
    let dtype = input.meta.dtype;
    expect_class("self", dtype, Class::Any)?;
    expect_same(("self", dtype), ("values", args.tensor(form.values)?.meta.dtype))?;
    expect_dtype("indices", args.tensor(form.indices)?.meta.dtype, ScalarType::LONG)?;
    let rank = input.meta.rank();
    let length = match args.int(form.dim)? {
        Some(dim) if !input.dynamic && rank > 0 => input.meta.sizes[dim_of("dim", dim, "self", rank)?],
        _ => input.meta.element_count(),
    };
    args.scratch(length.saturating_mul(size_of::<Entry>()));
    with_element!(dtype, T => Ok(Box::new(move |cx: &mut KernelContext<'_>| run::<T>(form, cx))), else => {
        Err(KernelError::unsupported(dtype.to_string()))
    })
}

fn run<T: Number>(form: &Form, cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
    let (meta, dim) = (cx.meta(form.input)?, cx.int(form.dim)?);
    let dim = dim_of("dim", dim, "self", meta.rank())?;
    let descending = cx.bool(form.descending)?;
    let mut sizes = Dims::from_slice(meta.sizes).unwrap_or_default();
    let part = part(form, cx, sizes.get(dim).copied().unwrap_or(1))?;
    if let (Some(size), Part::First { count, .. }) = (sizes.get_mut(dim), part) {
        *size = count;
    }
    cx.resize(form.values, &sizes)?;
    cx.resize(form.indices, &sizes)?;
    let views = cx.views();
    let (input, values, indices) = (views.tensor(form.input)?, views.out(form.values)?, views.out(form.indices)?);
    expect_same_order(("self", input.dim_order), ("values", values.dim_order))?;
    expect_same_order(("self", input.dim_order), ("indices", indices.dim_order))?;
    let view = AxisView::new(input.sizes, input.strides, dim);
    let outs = (values.into_slice::<T>()?, indices.into_slice::<i64>()?);
    Ok(sort(view, part, descending, input.as_slice::<T>()?, outs, scratch::elements(&views)?)?)
}

/// The elements that are wanted of a line of so many.
fn part(form: &Form, cx: &KernelContext<'_>, length: usize) -> Result<Part, KernelError> {
    let Some(first) = &form.first else { return Ok(Part::All) };
    let k = cx.int(first.k)?;
    let count = usize::try_from(k).ok().filter(|&k| k <= length);
    let count =
        count.ok_or_else(|| KernelError::argument(format!("`k` is {k}, the dimension has {length} elements")))?;
    Ok(Part::First { count, sorted: cx.bool(first.sorted)? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use edgepack_compute::random::Random;
    use edgepack_executor::call::{Arg, call};

    #[test]
    fn ties_keep_their_order_and_nan_is_greatest() {
        let values = [2.0f32, f32::NAN, -0.0, 2.0, 0.0, f32::INFINITY];
        for (descending, want) in [(false, [2, 4, 0, 3, 5, 1]), (true, [1, 5, 0, 3, 2, 4])] {
            let outs = [Arg::out(ScalarType::FLOAT, &[6]), Arg::out(ScalarType::LONG, &[6])];
            let mut args = vec![Arg::tensor(&[6], &values), Arg::int(-1), Arg::bool(descending)];
            args.extend(outs);
            let outs = call(&SORT, &args).unwrap();
            assert_eq!(outs[1].as_slice::<i64>().unwrap(), want);
            let sorted: Vec<u32> = outs[0].as_slice::<f32>().unwrap().iter().map(|x| x.to_bits()).collect();
            let want: Vec<u32> = want.iter().map(|&at| values[at as usize].to_bits()).collect();
            assert_eq!(sorted, want);
        }
    }

    #[test]
    fn topk_is_the_head_of_a_sort() {
        let mut random = Random::new(5);
        for round in 0..30 {
            let sizes = [random.below(4) + 1, random.below(20) + 1, random.below(4) + 1];
            let values: Vec<i16> = (0..sizes.iter().product()).map(|_| random.below(9) as i16 - 4).collect();
            let (k, largest) = (random.below(sizes[1] + 1), round % 2 == 0);
            let out = |dtype| Arg::out(dtype, &[sizes[0], k, sizes[2]]);
            let input = Arg::tensor(&sizes, &values);
            let args = [
                input,
                Arg::int(k as i64),
                Arg::int(1),
                Arg::bool(largest),
                Arg::bool(true),
                out(ScalarType::SHORT),
                out(ScalarType::LONG),
            ];
            let outs = call(&TOPK, &args).unwrap();
            let (have, places) = (outs[0].as_slice::<i16>().unwrap(), outs[1].as_slice::<i64>().unwrap());
            for block in 0..sizes[0] {
                for lane in 0..sizes[2] {
                    let at = |i: usize, size: usize| (block * size + i) * sizes[2] + lane;
                    let mut line: Vec<(i16, i64)> =
                        (0..sizes[1]).map(|i| (values[at(i, sizes[1])], i as i64)).collect();
                    line.sort_by_key(|&(x, _)| if largest { -x } else { x });
                    for (i, &(want, _)) in line[..k].iter().enumerate() {
                        let place = places[at(i, k)] as usize;
                        assert_eq!((have[at(i, k)], values[at(place, sizes[1])]), (want, want));
                    }
                }
            }
        }
    }

    #[test]
    fn k_stays_within_the_dimension() {
        let outs = [Arg::out(ScalarType::FLOAT, &[4]), Arg::out(ScalarType::LONG, &[4])];
        let mut args =
            vec![Arg::tensor(&[3], &[1.0f32, 2.0, 3.0]), Arg::int(4), Arg::int(0), Arg::bool(true), Arg::bool(true)];
        args.extend(outs);
        assert_eq!(call(&TOPK, &args).unwrap_err().message, "`k` is 4, the dimension has 3 elements");
    }
}
