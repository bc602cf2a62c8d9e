//! `_upsample_bilinear2d_aa`: resizing that lets every input pixel count, also where there are more of them.
//!
//! The loops are those of `edgepack_compute::resize::antialias`.

use edgepack_executor::kernel::{Alias, Kernel, KernelContext, KernelError, Prepare, Run};
use edgepack_executor::with_element;

use crate::check::{Class, Shape, expect_class, expect_same, named};
use crate::schema::{kernel, position};
use crate::spatial::{images, required, resized};
use edgepack_compute::layout::Strided;
use edgepack_compute::number::Number;
use edgepack_compute::resize::antialias::{Line, resize};

/// The operators of this family.
pub static KERNELS: &[&Kernel] = &[&BILINEAR];

const NAME: &str = "aten::_upsample_bilinear2d_aa.out";

static BILINEAR: Kernel = kernel(NAME, Alias::Disjoint, prepare);

const SELF: usize = position(NAME, "self");
const SIZES: usize = position(NAME, "output_size");
const ALIGN_CORNERS: usize = position(NAME, "align_corners");
const SCALE_H: usize = position(NAME, "scales_h");
const SCALE_W: usize = position(NAME, "scales_w");
const OUT: usize = position(NAME, "out");

fn prepare(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    let input = args.tensor(SELF)?;
    let dtype = input.meta.dtype;
    expect_class("self", dtype, Class::Real)?;
    expect_same(("self", dtype), ("out", args.tensor(OUT)?.meta.dtype))?;
    let longest = match (input.dynamic, input.meta.sizes.last()) {
        (false, Some(&width)) => width,
        _ => input.meta.element_count(),
    };
    args.scratch(longest.saturating_mul(size_of::<f64>()));
    with_element!(dtype, T => Ok(Box::new(run::<T>) as Box<dyn Run>), else => {
        Err(KernelError::unsupported(dtype.to_string()))
    })
}

fn run<T: Number>(cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
    let meta = cx.meta(SELF)?;
    let images = images("self", &meta, 2)?;
    let input = Strided::new(&meta)
        .filter(|_| images.area() != 0)
        .ok_or_else(|| KernelError::argument(format!("`self` is {}, the operator wants images", Shape(meta.sizes))))?;
    let [_, channels, have_height, have_width] = input.sizes;
    let [_, height, width] = required(cx, SIZES, "output_size", 2, 1, 1)?;
    let align = cx.bool(ALIGN_CORNERS)?;
    let rows = Line::new(have_height, height, align, cx.double_opt(SCALE_H)?);
    let rows = rows.map_err(|error| named("scales_h", error))?;
    let columns = Line::new(have_width, width, align, cx.double_opt(SCALE_W)?);
    let columns = columns.map_err(|error| named("scales_w", error))?;
    let sizes = resized(&meta, 2, channels, [1, height, width]);
    cx.resize(OUT, &sizes)?;
    let views = cx.views();
    let (data, out) = (views.tensor(SELF)?.as_slice::<T>()?, views.out(OUT)?);
    let to = Strided::new(&out.meta()).ok_or_else(|| KernelError::argument("`out` is not a batch of images"))?;
    let out = out.into_slice::<T>()?;
    let line = bytemuck::try_cast_slice_mut::<u8, f64>(views.scratch()?).ok();
    let line = line
        .and_then(|all| all.get_mut(..have_width))
        .ok_or_else(|| KernelError::unsupported(format!("a width of {have_width} is more than at load")))?;
    Ok(resize((input, data), (to, out), [rows, columns], line)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use edgepack_executor::call::{Arg, call};
    use edgepack_format::scalar::ScalarType;

    fn resize(row: &[f32], out: usize, align: bool) -> Vec<f32> {
        let args = [
            Arg::tensor(&[1, 1, 1, row.len()], row),
            Arg::Ints(vec![1, out as i64]),
            Arg::bool(align),
            Arg::None,
            Arg::None,
            Arg::out(ScalarType::FLOAT, &[1, 1, 1, out]),
        ];
        call(&BILINEAR, &args).unwrap()[0].as_slice().unwrap()
    }

    #[test]
    fn growing_is_bilinear() {
        assert_eq!(resize(&[0.0, 4.0], 4, false), [0.0, 1.0, 3.0, 4.0]);
    }
}
