//! Pooling: `max_pool`, `avg_pool` and their adaptive kin over one, two or three spatial dimensions. An operator is a row
//! of a table; the loops are those of [`edgepack_compute::pool`].

mod backward;
mod operators;

pub use operators::{KERNELS, MAX_2D};

/// Max pooling in two dimensions of which no instruction reads the places; the arguments are those of [`MAX_2D`]
/// without `indices`.
pub(crate) static MAX_2D_ALONE: Kernel = Kernel {
    name: "edgepack::max_pool2d.out",
    schema: "(Tensor self, int[2] kernel_size, int[2] stride, int[2] padding, int[2] dilation, bool ceil_mode, *, Tensor(a!) out) -> Tensor(a!)",
    alias: Alias::Disjoint,
    is_pure: true,
    prepare: |args| {
        static ROW: Row = Row { result: Output::GreatestAlone, ..Row::max(MAX_2D_NAME, 2) };
        prepare(args, &ROW)
    },
};

const MAX_2D_NAME: &str = "aten::max_pool2d_with_indices.out";

/// The output of [`MAX_2D_ALONE`], and of [`MAX_2D`] the positions of that and of the places.
pub(crate) const MAX_2D_OUT: usize = position(MAX_2D_NAME, "out");
pub(crate) const MAX_2D_INDICES: usize = position(MAX_2D_NAME, "indices");

use edgepack_compute::number::Number;
use edgepack_compute::pool::{Average, Axis, Windows};
use edgepack_compute::spatial::Slide;
use edgepack_executor::kernel::{Alias, Kernel, KernelContext, KernelError, Prepare, Run};
use edgepack_executor::tensor::Scalar;
use edgepack_executor::with_element;
use edgepack_format::scalar::ScalarType;

use crate::check::{Class, Shape, expect_class, expect_dtype, expect_same};
use crate::schema::position;
use crate::spatial::{images, numbers, required, resized};

/// An operator of this family.
struct Row {
    rank: usize,
    input: usize,
    windows: Placement,
    result: Output,
    out: usize,
}

/// The positions of the arguments that place windows.
enum Placement {
    Sliding {
        kernel: usize,
        stride: usize,
        padding: usize,
        dilation: Option<usize>,
        ceil: usize,
    },
    /// Windows that divide the input evenly into as many as the argument says.
    Adaptive {
        size: usize,
    },
}

/// The result for a window, and the positions of the arguments that say more.
enum Output {
    /// The greatest element and its place, which goes to another output.
    Greatest { indices: usize },
    /// The greatest element.
    GreatestAlone,
    /// The average of the elements.
    Average,
    /// The average, with padding counted or not, or another divisor.
    AverageOf { count_padding: usize, divisor: usize },
}

impl Placement {
    const fn sliding(name: &str, dilation: bool) -> Self {
        Placement::Sliding {
            kernel: position(name, "kernel_size"),
            stride: position(name, "stride"),
            padding: position(name, "padding"),
            dilation: if dilation { Some(position(name, "dilation")) } else { None },
            ceil: position(name, "ceil_mode"),
        }
    }

    const fn adaptive(name: &str) -> Self {
        Placement::Adaptive { size: position(name, "output_size") }
    }
}

impl Row {
    const fn new(name: &str, rank: usize, windows: Placement, result: Output) -> Self {
        Row { rank, input: position(name, "self"), windows, result, out: position(name, "out") }
    }

    /// Max pooling in sliding windows.
    const fn max(name: &str, rank: usize) -> Self {
        Row::new(name, rank, Placement::sliding(name, true), Output::Greatest { indices: position(name, "indices") })
    }

    /// Average pooling in sliding windows.
    const fn average(name: &str, rank: usize) -> Self {
        let result = Output::AverageOf {
            count_padding: position(name, "count_include_pad"),
            divisor: position(name, "divisor_override"),
        };
        Row::new(name, rank, Placement::sliding(name, false), result)
    }

    /// Max pooling in windows that divide the input.
    const fn adaptive_max(name: &str, rank: usize) -> Self {
        Row::new(name, rank, Placement::adaptive(name), Output::Greatest { indices: position(name, "indices") })
    }

    /// Average pooling in windows that divide the input.
    const fn adaptive_average(name: &str, rank: usize) -> Self {
        Row::new(name, rank, Placement::adaptive(name), Output::Average)
    }
}

fn prepare(args: &Prepare<'_>, row: &'static Row) -> Result<Box<dyn Run>, KernelError> {
    let dtype = args.tensor(row.input)?.meta.dtype;
    expect_class("self", dtype, Class::Real)?;
    expect_same(("self", dtype), ("out", args.tensor(row.out)?.meta.dtype))?;
    if let Output::Greatest { indices } = row.result {
        expect_dtype("indices", args.tensor(indices)?.meta.dtype, ScalarType::LONG)?;
    }
    with_element!(dtype, T => Ok(Box::new(move |cx: &mut KernelContext<'_>| run::<T>(row, cx))), else => {
        Err(KernelError::unsupported(dtype.to_string()))
    })
}

/// The windows along the three dimensions, and how many places there are.
fn axes(row: &Row, cx: &KernelContext<'_>, input: [usize; 3]) -> Result<([Axis; 3], [usize; 3]), KernelError> {
    let rank = row.rank;
    let (kernel_arg, stride, padding, dilation, ceil) = match row.windows {
        Placement::Adaptive { size } => {
            let out = required(cx, size, "output_size", rank, 1, 1)?;
            return Ok((std::array::from_fn(|i| Axis::Adaptive { input: input[i], out: out[i] }), out));
        }
        Placement::Sliding { kernel, stride, padding, dilation, ceil } => (kernel, stride, padding, dilation, ceil),
    };
    let kernel = required(cx, kernel_arg, "kernel_size", rank, 1, 1)?;
    let stride = numbers(cx, stride, "stride", rank, 1, 1)?.unwrap_or(kernel);
    let padding = required(cx, padding, "padding", rank, 0, 0)?;
    let dilation = dilation.map_or(Ok([1; 3]), |arg| required(cx, arg, "dilation", rank, 1, 1))?;
    let ceil = cx.bool(ceil)?;
    let mut places = [1; 3];
    let mut axes = [Axis::Adaptive { input: 1, out: 1 }; 3];
    for i in 3 - rank..3 {
        if padding[i] * 2 > kernel[i] {
            return Err(KernelError::argument(format!(
                "`padding` is {}, `kernel_size` is {}: at most half of it is possible",
                padding[i], kernel[i]
            )));
        }
        let slide =
            Slide { input: input[i], kernel: kernel[i], stride: stride[i], padding: padding[i], dilation: dilation[i] };
        axes[i] = Axis::Sliding(slide);
        places[i] = slide.places(ceil).ok_or_else(|| {
            KernelError::argument(format!(
                "`kernel_size` {} with dilation {} does not fit into {} elements padded by {}",
                kernel[i], dilation[i], input[i], padding[i]
            ))
        })?;
    }
    Ok((axes, places))
}

fn run<T: Number>(row: &Row, cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
    let meta = cx.meta(row.input)?;
    let input = images("self", &meta, row.rank)?;
    if input.sizes.contains(&0) || input.channels.0 == 0 {
        return Err(KernelError::argument(format!("`self` is {}: images without pixels", Shape(meta.sizes))));
    }
    let (axes, places) = axes(row, cx, input.sizes)?;
    let sizes = resized(&meta, row.rank, input.channels.0, places);
    cx.resize(row.out, &sizes)?;
    let average = average(row, cx)?;
    if let Output::Greatest { indices } = row.result {
        cx.resize(indices, &sizes)?;
    }
    let views = cx.views();
    let (data, out) = (views.tensor(row.input)?.as_slice::<T>()?, views.out(row.out)?);
    let windows = Windows { input, out: images("out", &out.meta(), row.rank)?, axes };
    let strides = out.strides;
    let out = out.into_slice::<T>()?;
    match row.result {
        Output::Greatest { indices } => {
            let places = views.out(indices)?;
            if places.strides != strides {
                return Err(KernelError::unsupported("`out` and `indices` have different dim orders"));
            }
            windows.greatest(data, out, places.into_slice::<i64>()?);
        }
        Output::GreatestAlone => windows.greatest_values(data, out),
        Output::Average | Output::AverageOf { .. } => windows.average(data, average, out),
    }
    Ok(())
}

fn average(row: &Row, cx: &KernelContext<'_>) -> Result<Average, KernelError> {
    let Output::AverageOf { count_padding, divisor } = row.result else { return Ok(Average::default()) };
    let divisor = cx.scalar_opt(divisor)?.map(Scalar::to_i64);
    if divisor == Some(0) {
        return Err(KernelError::argument("`divisor_override` is 0"));
    }
    Ok(Average { count_padding: cx.bool(count_padding)?, divisor })
}

#[cfg(test)]
mod tests;
