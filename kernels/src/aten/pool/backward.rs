//! The gradient of max pooling: what reached a window's greatest element goes back to its place.

use edgepack_executor::kernel::{Alias, Kernel, KernelContext, KernelError, Prepare, Run};
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::Dims;

use crate::check::{Class, Shape, expect_class, expect_dtype, expect_same, with_float};
use crate::spatial::{Images, Slide, numbers, required, resized};
use edgepack_compute::number::{Cast, Compute, Number};

/// `aten::max_pool2d_with_indices_backward.grad_input`.
pub static MAX_2D_BACKWARD: Kernel = Kernel {
    name: "aten::max_pool2d_with_indices_backward.grad_input",
    schema: "(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] stride, int[2] padding, int[2] dilation, bool ceil_mode, Tensor indices, *, Tensor(a!) grad_input) -> Tensor(a!)",
    alias: Alias::Disjoint,
    prepare,
};

fn prepare(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    let dtype = args.tensor(0)?.meta.dtype;
    expect_class("grad_output", dtype, Class::Float)?;
    expect_same(("grad_output", dtype), ("self", args.tensor(1)?.meta.dtype))?;
    expect_same(("grad_output", dtype), ("grad_input", args.tensor(8)?.meta.dtype))?;
    expect_dtype("indices", args.tensor(7)?.meta.dtype, ScalarType::LONG)?;
    with_float!(dtype, T => Ok(Box::new(run::<T>) as Box<dyn Run>))
}

/// An error unless gradient and places have the sizes that pooling gives.
fn check(cx: &KernelContext<'_>, input: &Images) -> Result<(), KernelError> {
    let (meta, grad, indices) = (cx.meta(1)?, cx.meta(0)?, cx.meta(7)?);
    let kernel = required(cx, 2, "kernel_size", 2, 1, 1)?;
    let stride = numbers(cx, 3, "stride", 2, 1, 1)?.unwrap_or(kernel);
    let padding = required(cx, 4, "padding", 2, 0, 0)?;
    let dilation = required(cx, 5, "dilation", 2, 1, 1)?;
    let ceil = cx.bool(6)?;
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
    let meta = cx.meta(1)?;
    check(cx, &Images::new("self", &meta, 2)?)?;
    let sizes: Dims = Dims::from_slice(meta.sizes).unwrap_or_default();
    cx.resize(8, &sizes)?;
    let (from, to) = (Images::new("grad_output", &cx.meta(0)?, 2)?, Images::new("grad_input", &cx.meta(8)?, 2)?);
    let places = Images::new("indices", &cx.meta(7)?, 2)?;
    let views = cx.views();
    let (grad, indices) = (views.tensor(0)?.as_slice::<T>()?, views.tensor(7)?.as_slice::<i64>()?);
    let out = views.out(8)?.into_slice::<T>()?;
    out.fill(T::default());
    for plane in 0..from.batch.0 * from.channels.0 {
        let (n, channel) = (plane / from.channels.0, plane % from.channels.0);
        let start = n * from.batch.1 + channel * from.channels.1;
        let target = n * to.batch.1 + channel * to.channels.1;
        for pixel in 0..from.area() {
            let (y, x) = (pixel / from.sizes[2], pixel % from.sizes[2]);
            let at = start + y * from.strides[1] + x * from.strides[2];
            let index =
                n * places.batch.1 + channel * places.channels.1 + y * places.strides[1] + x * places.strides[2];
            let place = usize::try_from(indices[index]).ok().filter(|&place| place < to.area()).ok_or_else(|| {
                let (place, count) = (indices[index], to.area());
                KernelError::argument(format!("`indices` holds {place}, an image has {count} pixels"))
            })?;
            let at_out = target + place / to.sizes[2] * to.strides[1] + place % to.sizes[2] * to.strides[2];
            out[at_out] = out[at_out].to_compute().plus(grad[at].to_compute()).cast();
        }
    }
    Ok(())
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
