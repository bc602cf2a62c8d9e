//! The gradient of max pooling: that of a window's greatest element goes back to its place.

use edgepack_compute::number::Number;
use edgepack_compute::pool::{OutsideImage, add_to_places};
use edgepack_compute::spatial::{Images, Slide};
use edgepack_executor::kernel::{Alias, Kernel, KernelContext, KernelError, Prepare, Run};
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::Dims;

use crate::check::{Class, Shape, expect_class, expect_dtype, expect_same, with_float};
use crate::schema::{kernel, position};
use crate::spatial::{images, numbers, required, resized};

/// The gradient of max pooling in two dimensions.
pub static MAX_2D_BACKWARD: Kernel = kernel(NAME, Alias::Disjoint, prepare);

const NAME: &str = "aten::max_pool2d_with_indices_backward.grad_input";
const GRAD: usize = position(NAME, "grad_output");
const SELF: usize = position(NAME, "self");
const KERNEL_SIZE: usize = position(NAME, "kernel_size");
const STRIDE: usize = position(NAME, "stride");
const PADDING: usize = position(NAME, "padding");
const DILATION: usize = position(NAME, "dilation");
const CEIL_MODE: usize = position(NAME, "ceil_mode");
const INDICES: usize = position(NAME, "indices");
const OUT: usize = position(NAME, "grad_input");

fn prepare(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    let dtype = args.tensor(GRAD)?.meta.dtype;
    expect_class("grad_output", dtype, Class::Float)?;
    expect_same(("grad_output", dtype), ("self", args.tensor(SELF)?.meta.dtype))?;
    expect_same(("grad_output", dtype), ("grad_input", args.tensor(OUT)?.meta.dtype))?;
    expect_dtype("indices", args.tensor(INDICES)?.meta.dtype, ScalarType::LONG)?;
    with_float!(dtype, T => Ok(Box::new(run::<T>) as Box<dyn Run>))
}

/// Returns an error unless gradient and places have the sizes that pooling gives.
fn check(cx: &KernelContext<'_>, input: &Images) -> Result<(), KernelError> {
    let (meta, grad, indices) = (cx.meta(SELF)?, cx.meta(GRAD)?, cx.meta(INDICES)?);
    let kernel = required(cx, KERNEL_SIZE, "kernel_size", 2, 1, 1)?;
    let stride = numbers(cx, STRIDE, "stride", 2, 1, 1)?.unwrap_or(kernel);
    let padding = required(cx, PADDING, "padding", 2, 0, 0)?;
    let dilation = required(cx, DILATION, "dilation", 2, 1, 1)?;
    let ceil = cx.bool(CEIL_MODE)?;
    let mut places = [1; 3];
    for i in 1..3 {
        let slide = Slide {
            input: input.sizes[i],
            kernel: kernel[i],
            stride: stride[i],
            padding: padding[i],
            dilation: dilation[i],
        };
        places[i] = slide.places(ceil).ok_or_else(|| {
            KernelError::argument(format!("`self` is {}, smaller than `kernel_size`", Shape(meta.sizes)))
        })?;
    }
    let pooled = resized(&meta, 2, input.channels.0, places);
    for (name, sizes) in [("grad_output", grad.sizes), ("indices", indices.sizes)] {
        if *sizes != *pooled {
            return Err(KernelError::argument(format!(
                "`{name}` is {}, pooling gives {}",
                Shape(sizes),
                Shape(&pooled)
            )));
        }
    }
    Ok(())
}

fn run<T: Number>(cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
    let meta = cx.meta(SELF)?;
    check(cx, &images("self", &meta, 2)?)?;
    let sizes: Dims = Dims::from_slice(meta.sizes).unwrap_or_default();
    cx.resize(OUT, &sizes)?;
    let (from, to) = (images("grad_output", &cx.meta(GRAD)?, 2)?, images("grad_input", &cx.meta(OUT)?, 2)?);
    let places = images("indices", &cx.meta(INDICES)?, 2)?;
    let views = cx.views();
    let (grad, indices) = (views.tensor(GRAD)?.as_slice::<T>()?, views.tensor(INDICES)?.as_slice::<i64>()?);
    let out = views.out(OUT)?.into_slice::<T>()?;
    out.fill(T::default());
    add_to_places([&from, &places, &to], grad, indices, out).map_err(|OutsideImage(place)| {
        KernelError::argument(format!("`indices` holds {place}, an image has {} pixels", to.area()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use edgepack_executor::call::{Arg, call};

    fn back(grad: &[f32], indices: &[i64]) -> Result<Vec<f32>, KernelError> {
        let args = [
            Arg::tensor(&[1, 2, 2], grad),
            Arg::tensor(&[1, 3, 3], &[0.0f32; 9]),
            Arg::Ints(vec![2]),
            Arg::Ints(vec![1]),
            Arg::Ints(vec![0]),
            Arg::Ints(vec![1]),
            Arg::bool(false),
            Arg::tensor(&[1, 2, 2], indices),
            Arg::out(ScalarType::FLOAT, &[1, 3, 3]),
        ];
        Ok(call(&MAX_2D_BACKWARD, &args)?[0].as_slice().unwrap())
    }

    #[test]
    fn windows_that_share_a_place_add_up() {
        let out = back(&[1.0, 2.0, 3.0, 4.0], &[4, 4, 4, 8]).unwrap();
        assert_eq!(out, [0.0, 0.0, 0.0, 0.0, 6.0, 0.0, 0.0, 0.0, 4.0]);
    }

    #[test]
    fn places_outside_the_image_are_refused() {
        assert_eq!(back(&[1.0; 4], &[0, 1, 9, 2]).unwrap_err().message, "`indices` holds 9, an image has 9 pixels");
        assert!(back(&[1.0; 4], &[0, 1, -1, 2]).is_err());
    }
}
