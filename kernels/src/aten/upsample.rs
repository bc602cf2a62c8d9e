//! Resizing images: `upsample_nearest2d` and `upsample_bilinear2d`.
//!
//! The loops are those of `edgepack_compute::resize`; the output has the sizes that are given, or follow from factors.

use edgepack_executor::kernel::{Alias, Kernel, KernelContext, KernelError, Prepare, Run};
use edgepack_executor::with_element;

use crate::check::{Class, Shape, expect_class, expect_same};
use crate::schema::{kernel, position};
use crate::spatial::{images, resized};
use edgepack_compute::layout::Strided;
use edgepack_compute::number::Number;
use edgepack_compute::resize::{Interpolation, Neighbours, Resize};

/// The operators of this family.
pub static KERNELS: &[&Kernel] = &[&BILINEAR, &NEAREST];

static BILINEAR: Kernel =
    kernel("aten::upsample_bilinear2d.vec_out", Alias::Disjoint, |args| prepare(args, &BILINEAR_FORM));
static NEAREST: Kernel =
    kernel("aten::upsample_nearest2d.vec_out", Alias::Disjoint, |args| prepare(args, &NEAREST_FORM));

/// The input of both.
const INPUT: usize = position("aten::upsample_bilinear2d.vec_out", "input");

/// Positions of the arguments; without `align_corners` the nearest pixel is taken.
struct Form {
    sizes: usize,
    align_corners: Option<usize>,
    scales: usize,
    out: usize,
}

impl Form {
    const fn of(name: &str, align_corners: Option<usize>) -> Form {
        Form {
            sizes: position(name, "output_size"),
            align_corners,
            scales: position(name, "scale_factors"),
            out: position(name, "out"),
        }
    }
}

static BILINEAR_FORM: Form = {
    const NAME: &str = "aten::upsample_bilinear2d.vec_out";
    Form::of(NAME, Some(position(NAME, "align_corners")))
};
static NEAREST_FORM: Form = Form::of("aten::upsample_nearest2d.vec_out", None);

fn prepare(args: &Prepare<'_>, form: &'static Form) -> Result<Box<dyn Run>, KernelError> {
    let (input, out) = (args.tensor(INPUT)?, args.tensor(form.out)?);
    let dtype = input.meta.dtype;
    expect_class("input", dtype, Class::Real)?;
    expect_same(("input", dtype), ("out", out.meta.dtype))?;
    let longest = match (out.dynamic, out.meta.sizes.last()) {
        (false, Some(&width)) => width,
        _ => out.meta.element_count(),
    };
    args.scratch(longest.saturating_mul(size_of::<Neighbours>()));
    with_element!(dtype, T => Ok(Box::new(move |cx: &mut KernelContext<'_>| run::<T>(form, cx))), else => {
        Err(KernelError::unsupported(dtype.to_string()))
    })
}

/// Height and width of the output, and the factors if they were given.
fn target(
    form: &Form,
    cx: &KernelContext<'_>,
    input: [usize; 2],
) -> Result<([usize; 2], [Option<f64>; 2]), KernelError> {
    let sizes = cx.ints_opt(form.sizes)?;
    let scales = if cx.is_none(form.scales) { None } else { Some(cx.doubles(form.scales)?) };
    match (sizes, scales) {
        (Some(sizes), None) if sizes.len() == 2 => {
            let size = |index| usize::try_from(sizes.at(index).unwrap_or(0)).ok().filter(|&size| size > 0);
            match (size(0), size(1)) {
                (Some(height), Some(width)) => Ok(([height, width], [None; 2])),
                _ => Err(KernelError::argument(format!("`output_size` is {:?}", sizes.iter().collect::<Vec<_>>()))),
            }
        }
        (None, Some(&[height, width])) => {
            let size = |size: usize, scale: f64| size as f64 * scale;
            let (tall, broad) = (size(input[0], height), size(input[1], width));
            if !(1.0..1e9).contains(&tall) || !(1.0..1e9).contains(&broad) {
                return Err(KernelError::argument(format!("`scale_factors` {height} and {width} give no image")));
            }
            Ok(([tall as usize, broad as usize], [Some(height), Some(width)]))
        }
        _ => Err(KernelError::argument("one of `output_size` and `scale_factors` must hold two numbers")),
    }
}

fn run<T: Number>(form: &Form, cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
    let meta = cx.meta(INPUT)?;
    let images = images("input", &meta, 2)?;
    let input = Strided::new(&meta)
        .filter(|_| images.area() != 0)
        .ok_or_else(|| KernelError::argument(format!("`input` is {}, the operator wants images", Shape(meta.sizes))))?;
    let [_, channels, height, width] = input.sizes;
    let (sizes, scales) = target(form, cx, [height, width])?;
    let interpolation = match form.align_corners {
        Some(arg) => Interpolation::Bilinear { align_corners: cx.bool(arg)? },
        None => Interpolation::Nearest,
    };
    let out_sizes = resized(&meta, 2, channels, [1, sizes[0], sizes[1]]);
    cx.resize(form.out, &out_sizes)?;
    let views = cx.views();
    let (data, out) = (views.tensor(INPUT)?.as_slice::<T>()?, views.out(form.out)?);
    let to = Strided::new(&out.meta()).ok_or_else(|| KernelError::argument("`out` is not a batch of images"))?;
    let out = out.into_slice::<T>()?;
    if out.is_empty() {
        // No images or no channels, of any height.
        return Ok(());
    }
    let columns = bytemuck::try_cast_slice_mut::<u8, Neighbours>(views.scratch()?).ok();
    let columns = columns
        .and_then(|all| all.get_mut(..sizes[1]))
        .ok_or_else(|| KernelError::unsupported(format!("a width of {} is more than at load", sizes[1])))?;
    Ok(Resize { input, out: to, scales, interpolation }.run(data, out, columns)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use edgepack_executor::call::{Arg, call};
    use edgepack_format::scalar::ScalarType;

    fn resize(align: Option<bool>, sizes: Option<[i64; 2]>, scales: Option<[f64; 2]>, out: [usize; 2]) -> Vec<f32> {
        let mut args = vec![
            Arg::tensor(&[1, 1, 2, 3], &[0.0f32, 1.0, 2.0, 3.0, 4.0, 5.0]),
            sizes.map_or(Arg::None, |sizes| Arg::Ints(sizes.to_vec())),
        ];
        args.extend(align.map(Arg::bool));
        args.push(scales.map_or(Arg::None, |scales| Arg::Doubles(scales.to_vec())));
        args.push(Arg::out(ScalarType::FLOAT, &[1, 1, out[0], out[1]]));
        let kernel = if align.is_some() { &BILINEAR } else { &NEAREST };
        call(kernel, &args).unwrap()[0].as_slice().unwrap()
    }

    #[test]
    fn nearest_takes_the_element_before() {
        let out = resize(None, Some([3, 4]), None, [3, 4]);
        assert_eq!(out, [0.0, 0.0, 1.0, 2.0, 0.0, 0.0, 1.0, 2.0, 3.0, 3.0, 4.0, 5.0]);
        assert_eq!(resize(None, None, Some([1.0, 2.0]), [2, 6])[..6], [0.0, 0.0, 1.0, 1.0, 2.0, 2.0]);
    }

    #[test]
    fn bilinear_follows_both_conventions() {
        let corners = resize(Some(true), Some([2, 5]), None, [2, 5]);
        assert_eq!(corners, [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 3.5, 4.0, 4.5, 5.0]);
        let centers = resize(Some(false), Some([4, 3]), None, [4, 3]);
        assert_eq!(centers, [0.0, 1.0, 2.0, 0.75, 1.75, 2.75, 2.25, 3.25, 4.25, 3.0, 4.0, 5.0]);
    }
}
