//! Scattering by index where elements meet what is there: sums, products, means, extremes.

use edgepack_executor::kernel::{Kernel, KernelContext, KernelError, Prepare, Run};
use edgepack_executor::tensor::Scalar;
use edgepack_executor::with_element;
use edgepack_format::tensor::Dims;

use super::pick::{Places, expect_indices, expect_inside, index_at};
use super::row;
use super::transfer::{assign, conversion, expect_same_type};
use crate::dims::{dim_of, index_of};
use edgepack_compute::number::{Cast, Compute, Number};

/// How an element meets another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Meeting {
    Sum,
    Product,
    Mean,
    Greatest,
    Least,
}

impl Meeting {
    fn named(name: &str) -> Result<Meeting, KernelError> {
        Ok(match name {
            "sum" | "add" => Meeting::Sum,
            "prod" | "multiply" => Meeting::Product,
            "mean" => Meeting::Mean,
            "amax" => Meeting::Greatest,
            "amin" => Meeting::Least,
            other => return Err(KernelError::argument(format!("`reduce` is {other:?}"))),
        })
    }

    /// What changes nothing that meets it.
    fn neutral<T: Number>(self) -> T
    where
        T::Compute: Cast<T>,
    {
        match self {
            Meeting::Sum | Meeting::Mean => T::Compute::ZERO,
            Meeting::Product => T::Compute::ONE,
            Meeting::Greatest => T::Compute::LEAST,
            Meeting::Least => T::Compute::GREATEST,
        }
        .cast()
    }

    fn apply<T: Number>(self, a: T, b: T) -> T {
        let (a, b) = (a.to_compute(), b.to_compute());
        match self {
            Meeting::Sum | Meeting::Mean => a.plus(b),
            Meeting::Product => a.times(b),
            Meeting::Greatest => a.greater_of(b),
            Meeting::Least => a.lesser_of(b),
        }
        .cast()
    }
}

/// Where the arguments stand.
struct Form {
    /// A tensor, or a number that stands for all its elements.
    number: bool,
    /// The argument that says whether what was there takes part.
    include: Option<usize>,
    /// Whether one index along the dimension places whole slices of the source.
    slices: bool,
    out: usize,
}

fn prepare(args: &Prepare<'_>, form: &'static Form) -> Result<Box<dyn Run>, KernelError> {
    expect_same_type(args, 0, form.out)?;
    expect_indices(args, 2, "index")?;
    let dtype = args.tensor(0)?.meta.dtype;
    if !form.number && args.tensor(3)?.meta.dtype != dtype {
        let have = args.tensor(3)?.meta.dtype;
        return Err(KernelError::argument(format!("`src` is {have}, `self` is {dtype}: the types differ")));
    }
    let meeting = Meeting::named(args.text(4)?)?;
    // How many elements met at every place, while means are computed.
    args.scratch(args.tensor(0)?.meta.element_count().saturating_mul(size_of::<u32>()));
    with_element!(dtype, T => Ok(Box::new(move |cx: &mut KernelContext<'_>| run::<T>(cx, form, meeting))), else => {
        Err(KernelError::unsupported(format!("sums of type {dtype}")))
    })
}

fn run<T: Number>(cx: &mut KernelContext<'_>, form: &Form, meeting: Meeting) -> Result<(), KernelError> {
    let (meta, index) = (cx.meta(0)?, cx.meta(2)?);
    let dim = dim_of("dim", cx.int(1)?, "self", meta.rank())?;
    if form.slices {
        let source = cx.meta(3)?;
        let fits = index.rank() <= 1
            && source.rank() == meta.rank()
            && (0..meta.rank()).all(|at| match at == dim {
                true => source.sizes[at] == index.element_count(),
                false => source.sizes[at] == meta.sizes[at],
            });
        if !fits {
            let (source, index) = (crate::check::Shape(source.sizes), crate::check::Shape(index.sizes));
            return Err(KernelError::argument(format!("`source` is {source}, `index` is {index}: they do not fit")));
        }
    } else {
        expect_inside(&index, "self", &meta, Some(dim))?;
        if !form.number {
            expect_inside(&index, "src", &cx.meta(3)?, None)?;
        }
    }
    let sizes = Dims::from_slice(meta.sizes).unwrap_or_default();
    cx.resize(form.out, &sizes)?;
    let number: T = if form.number { T::from_scalar(cx.scalar(3)?) } else { T::default() };
    let include = match form.include {
        Some(arg) => cx.bool(arg)?,
        None => true,
    };
    let views = cx.views();
    let (input, index, mut out) = (views.tensor(0)?, views.tensor(2)?, views.out(form.out)?);
    assign(conversion(input.dtype, out.dtype)?, &input, &mut out, &mut [])?;
    let source = if form.number { None } else { Some(views.tensor(3)?) };
    let values = source.as_ref().map(|source| source.as_slice::<T>()).transpose()?;
    let counts: &mut [u32] = bytemuck::try_cast_slice_mut(views.scratch()?).unwrap_or_default();
    let strides = Dims::from_slice(out.strides).unwrap_or_default();
    let elements = out.as_slice::<T>()?;
    let counts = counts
        .get_mut(..elements.len())
        .ok_or_else(|| KernelError::unsupported(format!("{} elements are more than at load", elements.len())))?;
    counts.fill(u32::from(include));
    let (size, stride) = (sizes.get(dim).copied().unwrap_or(1), strides.get(dim).copied().unwrap_or(0));
    let from_sizes = match (&source, form.slices) {
        (Some(source), true) => source.sizes,
        _ => index.sizes,
    };
    let source_strides = source.as_ref().map_or(index.strides, |source| source.strides);
    // Of slices the index is read by the place along the dimension alone.
    let index_strides = if form.slices { source_strides } else { index.strides };
    let mut places = Places::new(from_sizes, [source_strides, index_strides, &strides]);
    while let Some(([from, at, base], along)) = places.next(dim) {
        let at = if form.slices { along } else { at };
        let to = base - along * stride + index_of("index", index_at(&index, at), size)? * stride;
        let element = values.map_or(number, |values| values[from]);
        let before = if counts[to] == 0 { meeting.neutral() } else { elements[to] };
        elements[to] = meeting.apply(before, element);
        counts[to] += 1;
    }
    if meeting == Meeting::Mean {
        for (element, &count) in elements.iter_mut().zip(&*counts) {
            if count > 1 {
                let sum = element.to_compute();
                *element = match T::Compute::FLOATING {
                    true => T::from_scalar(Scalar::Double(Cast::<f64>::cast(sum) / f64::from(count))),
                    false => sum.floor_div(T::Compute::from_scalar(Scalar::Int(i64::from(count)))).cast(),
                };
            }
        }
    }
    Ok(())
}

/// The operators of this table.
pub const KERNELS: &[&Kernel] = &[
    &row(
        "aten::scatter_reduce.two_out",
        "(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True, Tensor(a!) out) -> Tensor(a!)",
        |args| prepare(args, &Form { number: false, include: Some(5), slices: false, out: 6 }),
    ),
    &row(
        "aten::scatter.reduce_out",
        "(Tensor self, int dim, Tensor index, Tensor src, *, str reduce, Tensor(a!) out) -> Tensor(a!)",
        |args| prepare(args, &Form { number: false, include: None, slices: false, out: 5 }),
    ),
    &row(
        "aten::scatter.value_reduce_out",
        "(Tensor self, int dim, Tensor index, Scalar value, *, str reduce, Tensor(a!) out) -> Tensor(a!)",
        |args| prepare(args, &Form { number: true, include: None, slices: false, out: 5 }),
    ),
    &row(
        "aten::index_reduce.out",
        "(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True, Tensor(a!) out) -> Tensor(a!)",
        |args| prepare(args, &Form { number: false, include: Some(5), slices: true, out: 6 }),
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use edgepack_executor::call::{Arg, call};
    use edgepack_format::scalar::ScalarType;

    fn reduced(reduce: &str, include: bool) -> Vec<f32> {
        let args = [
            Arg::tensor(&[4], &[1.0f32, 2.0, 3.0, 4.0]),
            Arg::int(0),
            Arg::tensor(&[5], &[0i64, 1, 0, 1, 2]),
            Arg::tensor(&[5], &[1.0f32, 6.0, 3.0, 4.0, -5.0]),
            Arg::Text(reduce.into()),
            Arg::bool(include),
            Arg::out(ScalarType::FLOAT, &[4]),
        ];
        call(KERNELS[0], &args).unwrap()[0].as_slice().unwrap()
    }

    /// What eager PyTorch answers.
    #[test]
    fn every_meeting() {
        assert_eq!(reduced("sum", true), [5.0, 12.0, -2.0, 4.0]);
        assert_eq!(reduced("sum", false), [4.0, 10.0, -5.0, 4.0]);
        assert_eq!(reduced("prod", true), [3.0, 48.0, -15.0, 4.0]);
        assert_eq!(reduced("mean", true), [5.0 / 3.0, 4.0, -1.0, 4.0]);
        assert_eq!(reduced("mean", false), [2.0, 5.0, -5.0, 4.0]);
        assert_eq!(reduced("amax", true), [3.0, 6.0, 3.0, 4.0]);
        assert_eq!(reduced("amin", false), [1.0, 4.0, -5.0, 4.0]);
    }

    #[test]
    fn slices_meet_by_one_index() {
        let args = [
            Arg::tensor(&[2, 2], &[1i32, 2, 3, 4]),
            Arg::int(1),
            Arg::tensor(&[3], &[1i64, 1, 0]),
            Arg::tensor(&[2, 3], &[5i32, 6, 7, 1, 1, 1]),
            Arg::Text("prod".into()),
            Arg::bool(true),
            Arg::out(ScalarType::INT, &[2, 2]),
        ];
        assert_eq!(call(KERNELS[3], &args).unwrap()[0].as_slice::<i32>().unwrap(), [7, 60, 3, 4]);
    }
}
