//! Scattering by index where elements are reduced with what is there. The loops are those of `edgepack_compute::gather`.

use edgepack_executor::kernel::{Kernel, KernelContext, KernelError, Prepare, Run};
use edgepack_executor::with_element;
use edgepack_format::tensor::Dims;

use super::pick::expect_inside;
use super::row;
use super::transfer::{assign, conversion, expect_same_type};
use crate::check::Shape;
use crate::dims::dim_of;
use crate::indices::{expect_indices, indices};
use crate::schema::position;
use crate::scratch;
use edgepack_compute::gather::{Reduction, Scatter};
use edgepack_compute::layout::Layout;
use edgepack_compute::number::Number;

fn reduction(name: &str) -> Result<Reduction, KernelError> {
    Ok(match name {
        "sum" | "add" => Reduction::Sum,
        "prod" | "multiply" => Reduction::Product,
        "mean" => Reduction::Mean,
        "amax" => Reduction::Greatest,
        "amin" => Reduction::Least,
        other => return Err(KernelError::argument(format!("`reduce` is {other:?}"))),
    })
}

/// The elements that are scattered.
#[derive(Clone, Copy, PartialEq)]
enum Source {
    /// One for each index.
    Elements,
    /// One for all.
    Number,
    /// A slice for each index.
    Slices,
}

/// The arguments of an operator.
struct Form {
    input: usize,
    dim: usize,
    index: usize,
    source: (Source, usize),
    reduce: usize,
    /// Position of the argument that says whether the elements of the input take part; without this argument they do.
    include: Option<usize>,
    out: usize,
}

impl Form {
    const fn new(name: &str, kind: Source, source: &str, include: bool) -> Form {
        Form {
            input: position(name, "self"),
            dim: position(name, "dim"),
            index: position(name, "index"),
            source: (kind, position(name, source)),
            reduce: position(name, "reduce"),
            include: if include { Some(position(name, "include_self")) } else { None },
            out: position(name, "out"),
        }
    }

    /// The argument that holds the elements, if it is a tensor.
    fn tensor(&self) -> Option<usize> {
        let (kind, argument) = self.source;
        (kind != Source::Number).then_some(argument)
    }
}

fn prepare(args: &Prepare<'_>, form: &'static Form) -> Result<Box<dyn Run>, KernelError> {
    expect_same_type(args, form.input, form.out)?;
    expect_indices(args, form.index, "index")?;
    let input = args.tensor(form.input)?.meta;
    let dtype = input.dtype;
    if let Some(source) = form.tensor() {
        let have = args.tensor(source)?.meta.dtype;
        if have != dtype {
            return Err(KernelError::argument(format!("`src` is {have}, `self` is {dtype}: the types differ")));
        }
    }
    let reduction = reduction(args.text(form.reduce)?)?;
    // How many elements were reduced at every place.
    args.scratch(input.element_count().saturating_mul(size_of::<u32>()));
    with_element!(dtype, T => Ok(Box::new(move |cx: &mut KernelContext<'_>| run::<T>(cx, form, reduction))), else => {
        Err(KernelError::unsupported(format!("sums of type {dtype}")))
    })
}

/// Checks that index, source and input fit along a dimension.
fn expect_fit(cx: &KernelContext<'_>, form: &Form, dim: usize) -> Result<(), KernelError> {
    let (meta, index) = (cx.meta(form.input)?, cx.meta(form.index)?);
    let (kind, source) = form.source;
    if kind != Source::Slices {
        expect_inside(&index, "self", &meta, Some(dim))?;
        return match form.tensor() {
            Some(source) => expect_inside(&index, "src", &cx.meta(source)?, None),
            None => Ok(()),
        };
    }
    let source = cx.meta(source)?;
    let fits = index.rank() <= 1
        && source.rank() == meta.rank()
        && (0..meta.rank()).all(|at| match at == dim {
            true => source.sizes[at] == index.element_count(),
            false => source.sizes[at] == meta.sizes[at],
        });
    if fits {
        return Ok(());
    }
    let (source, index) = (Shape(source.sizes), Shape(index.sizes));
    Err(KernelError::argument(format!("`source` is {source}, `index` is {index}: they do not fit")))
}

fn run<T: Number>(cx: &mut KernelContext<'_>, form: &Form, reduction: Reduction) -> Result<(), KernelError> {
    let meta = cx.meta(form.input)?;
    let dim = dim_of("dim", cx.int(form.dim)?, "self", meta.rank())?;
    expect_fit(cx, form, dim)?;
    let sizes = Dims::from_slice(meta.sizes).unwrap_or_default();
    cx.resize(form.out, &sizes)?;
    let (kind, source) = form.source;
    let number = if kind == Source::Number { [T::from_scalar(cx.scalar(source)?)] } else { [T::default()] };
    let include = form.include.map_or(Ok(true), |argument| cx.bool(argument))?;
    let views = cx.views();
    let (input, index, mut out) = (views.tensor(form.input)?, views.tensor(form.index)?, views.out(form.out)?);
    assign(conversion(input.dtype, out.dtype)?, &input, &mut out, &mut [])?;
    let source = form.tensor().map(|argument| views.tensor(argument)).transpose()?;
    let elements = source.as_ref().map(|source| source.as_slice::<T>()).transpose()?;
    let meta = out.meta();
    let scatter = Scatter {
        dim,
        index: Layout::from(&index),
        indices: indices(&index),
        source: source.as_ref().map(Layout::from),
        slices: kind == Source::Slices,
        out: Layout::from(&meta),
    };
    let counts = scratch::elements(&views)?;
    Ok(scatter.reduce(reduction, include, elements.unwrap_or(&number), out.as_mut_slice::<T>()?, counts)?)
}

macro_rules! rows {
    ($($name:literal $kind:ident $source:literal $include:literal;)*) => {
        /// The operators of this table.
        pub const KERNELS: &[&Kernel] = &[$(&row($name, |args| {
            static FORM: Form = Form::new($name, Source::$kind, $source, $include);
            prepare(args, &FORM)
        })),*];
    };
}

rows! {
    "aten::scatter_reduce.two_out" Elements "src" true;
    "aten::scatter.reduce_out" Elements "src" false;
    "aten::scatter.value_reduce_out" Number "value" false;
    "aten::index_reduce.out" Slices "source" true;
}

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

    /// Compares with the results of eager PyTorch.
    #[test]
    fn every_reduction() {
        assert_eq!(reduced("sum", true), [5.0, 12.0, -2.0, 4.0]);
        assert_eq!(reduced("sum", false), [4.0, 10.0, -5.0, 4.0]);
        assert_eq!(reduced("prod", true), [3.0, 48.0, -15.0, 4.0]);
        assert_eq!(reduced("mean", true), [5.0 / 3.0, 4.0, -1.0, 4.0]);
        assert_eq!(reduced("mean", false), [2.0, 5.0, -5.0, 4.0]);
        assert_eq!(reduced("amax", true), [3.0, 6.0, 3.0, 4.0]);
        assert_eq!(reduced("amin", false), [1.0, 4.0, -5.0, 4.0]);
    }

    #[test]
    fn slices_are_placed_by_one_index() {
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
