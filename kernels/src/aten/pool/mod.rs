//! Pooling: `max_pool`, `avg_pool` and their adaptive kin over one, two or three spatial dimensions.
//!
//! One loop over output pixels and the taps of their windows, with a row per operator. Where the channels of a pixel are
//! neighbours they are pooled side by side.

mod backward;
mod engine;
mod operators;

pub use operators::KERNELS;

use edgepack_executor::kernel::{KernelContext, KernelError, Prepare, Run};
use edgepack_executor::tensor::Scalar;
use edgepack_executor::with_element;
use edgepack_format::scalar::ScalarType;

use crate::check::{Class, Shape, expect_class, expect_dtype, expect_same};
use crate::spatial::{Images, Slide, numbers, required, resized};
use edgepack_compute::number::{Cast, Number};
use engine::{Average, Axis, Greatest, Windows};

/// An operator of this family. The input is argument 0, the kernel or the output size argument 1.
struct Row {
    what: What,
    rank: usize,
}

/// What becomes of a window.
#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    /// The greatest element and its place.
    Max,
    /// The average.
    Average,
    /// The average of windows that divide the input evenly.
    Adaptive,
    /// The greatest element and its place, in such windows.
    AdaptiveMax,
}

impl What {
    fn out(self) -> usize {
        match self {
            What::Max => 6,
            What::Average => 7,
            What::Adaptive | What::AdaptiveMax => 2,
        }
    }

    fn is_max(self) -> bool {
        matches!(self, What::Max | What::AdaptiveMax)
    }

    fn is_adaptive(self) -> bool {
        matches!(self, What::Adaptive | What::AdaptiveMax)
    }

    fn ceil(self) -> usize {
        if self == What::Max { 5 } else { 4 }
    }
}

fn prepare(args: &Prepare<'_>, row: &'static Row) -> Result<Box<dyn Run>, KernelError> {
    let dtype = args.tensor(0)?.meta.dtype;
    expect_class("self", dtype, Class::Real)?;
    expect_same(("self", dtype), ("out", args.tensor(row.what.out())?.meta.dtype))?;
    if row.what.is_max() {
        expect_dtype("indices", args.tensor(row.what.out() + 1)?.meta.dtype, ScalarType::LONG)?;
    }
    with_element!(dtype, T => Ok(Box::new(move |cx: &mut KernelContext<'_>| run::<T>(row, cx))), else => {
        Err(KernelError::unsupported(dtype.to_string()))
    })
}

/// The windows along the three dimensions, and how many places there are.
fn axes(row: &Row, cx: &KernelContext<'_>, input: [usize; 3]) -> Result<([Axis; 3], [usize; 3]), KernelError> {
    let rank = row.rank;
    if row.what.is_adaptive() {
        let out = required(cx, 1, "output_size", rank, 1, 1)?;
        return Ok((std::array::from_fn(|i| Axis::Adaptive { input: input[i], out: out[i] }), out));
    }
    let kernel = required(cx, 1, "kernel_size", rank, 1, 1)?;
    let stride = numbers(cx, 2, "stride", rank, 1, 1)?.unwrap_or(kernel);
    let padding = required(cx, 3, "padding", rank, 0, 0)?;
    let dilation = if row.what == What::Max { required(cx, 4, "dilation", rank, 1, 1)? } else { [1; 3] };
    let ceil = cx.bool(row.what.ceil())?;
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
    let meta = cx.meta(0)?;
    let input = Images::new("self", &meta, row.rank)?;
    if input.sizes.contains(&0) || input.channels.0 == 0 {
        return Err(KernelError::argument(format!("`self` is {}: images without pixels", Shape(meta.sizes))));
    }
    let (axes, places) = axes(row, cx, input.sizes)?;
    let sizes = resized(&meta, row.rank, input.channels.0, places);
    let out_arg = row.what.out();
    cx.resize(out_arg, &sizes)?;
    let average = average(row, cx)?;
    if row.what.is_max() {
        cx.resize(out_arg + 1, &sizes)?;
    }
    let views = cx.views();
    let (data, out) = (views.tensor(0)?.as_slice::<T>()?, views.out(out_arg)?);
    let windows = Windows { input, out: Images::new("out", &out.meta(), row.rank)?, axes };
    let strides = out.strides;
    let out = out.into_slice::<T>()?;
    if row.what.is_max() {
        let places = views.out(out_arg + 1)?;
        if places.strides != strides {
            return Err(KernelError::unsupported("`out` and `indices` have different dim orders"));
        }
        let places = places.into_slice::<i64>()?;
        windows.run(data, &Greatest, |at, (value, place): (T::Compute, usize)| {
            out[at] = value.cast();
            places[at] = place as i64;
        });
    } else {
        windows.run(data, &average, |at, value: T| out[at] = value);
    }
    Ok(())
}

fn average(row: &Row, cx: &KernelContext<'_>) -> Result<Average, KernelError> {
    if row.what != What::Average {
        return Ok(Average { count_padding: false, divisor: None });
    }
    let divisor = cx.scalar_opt(6)?.map(Scalar::to_i64);
    if divisor == Some(0) {
        return Err(KernelError::argument("`divisor_override` is 0"));
    }
    Ok(Average { count_padding: cx.bool(5)?, divisor })
}

#[cfg(test)]
mod tests;
