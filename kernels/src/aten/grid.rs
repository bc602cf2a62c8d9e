//! Sampling images and volumes at places that a grid says: `grid_sampler_2d`, `grid_sampler_3d`.
//!
//! The loops are those of `edgepack_compute::sample`.

use edgepack_executor::kernel::{Alias, Kernel, KernelContext, KernelError, Prepare};
use edgepack_executor::tensor::TensorShape;
use edgepack_format::scalar::ScalarType;

use crate::check::{Shape, expect_same, with_float};
use crate::schema::{kernel, position};
use crate::spatial::resized;
use edgepack_compute::float::Float;
use edgepack_compute::layout::Strided;
use edgepack_compute::number::Number;
use edgepack_compute::sample::{Mode, Padding, Sampler};

/// The operators of this family.
pub static KERNELS: &[&Kernel] = &[&GRID_SAMPLER, &VOLUME_SAMPLER];

static GRID_SAMPLER: Kernel = kernel("aten::grid_sampler_2d.out", Alias::Disjoint, |args| {
    let dtype = expect_types(args)?;
    with_float!(dtype, T => Ok(Box::new(images::<T>)))
});
static VOLUME_SAMPLER: Kernel = kernel("aten::grid_sampler_3d.out", Alias::Disjoint, |args| {
    let dtype = expect_types(args)?;
    with_float!(dtype, T => Ok(Box::new(volumes::<T>)))
});

/// Arguments of both.
const INPUT: usize = position("aten::grid_sampler_2d.out", "input");
const GRID: usize = position("aten::grid_sampler_2d.out", "grid");
const MODE: usize = position("aten::grid_sampler_2d.out", "interpolation_mode");
const PADDING: usize = position("aten::grid_sampler_2d.out", "padding_mode");
const ALIGN_CORNERS: usize = position("aten::grid_sampler_2d.out", "align_corners");
const OUT: usize = position("aten::grid_sampler_2d.out", "out");

/// The element type that all tensors have.
fn expect_types(args: &Prepare<'_>) -> Result<ScalarType, KernelError> {
    let dtype = args.tensor(INPUT)?.meta.dtype;
    expect_same(("input", dtype), ("grid", args.tensor(GRID)?.meta.dtype))?;
    expect_same(("input", dtype), ("out", args.tensor(OUT)?.meta.dtype))?;
    Ok(dtype)
}

fn images<T: Number<Compute: Float>>(cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
    let (input, grid) = (cx.meta(INPUT)?, cx.meta(GRID)?);
    let (&[batch, channels, height, width], &[grid_batch, rows, columns, 2]) = (input.sizes, grid.sizes) else {
        return Err(shapes(input.sizes, grid.sizes, "the operator wants images and pairs of coordinates"));
    };
    if batch != grid_batch || height * width == 0 {
        return Err(shapes(input.sizes, grid.sizes, "as many images with pixels as grids are needed"));
    }
    let sampler = sampler(cx)?;
    let sizes = resized(&input, 2, channels, [1, rows, columns]);
    cx.resize(OUT, &sizes)?;
    let views = cx.views();
    let (input, grid, out) = (views.tensor(INPUT)?, views.tensor(GRID)?, views.out(OUT)?);
    let (from, places, to) = (of_rank(&input.meta())?, of_rank(&grid.meta())?, of_rank(&out.meta())?);
    let (data, points, out) = (input.as_slice::<T>()?, grid.as_slice::<T>()?, out.into_slice::<T>()?);
    Ok(sampler.images((from, data), (places, points), (to, out))?)
}

fn volumes<T: Number<Compute: Float>>(cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
    let (input, grid) = (cx.meta(INPUT)?, cx.meta(GRID)?);
    let (&[batch, channels, depth, height, width], &[grid_batch, slices, rows, columns, 3]) = (input.sizes, grid.sizes)
    else {
        return Err(shapes(input.sizes, grid.sizes, "the operator wants volumes and triples of coordinates"));
    };
    if batch != grid_batch || depth * height * width == 0 {
        return Err(shapes(input.sizes, grid.sizes, "as many volumes with points as grids are needed"));
    }
    let sampler = sampler(cx)?;
    if sampler.mode == Mode::Bicubic {
        return Err(KernelError::argument("`interpolation_mode` is 2, volumes have 0 and 1"));
    }
    cx.resize(OUT, &[batch, channels, slices, rows, columns])?;
    let views = cx.views();
    let (input, grid, out) = (views.tensor(INPUT)?, views.tensor(GRID)?, views.out(OUT)?);
    let (from, places, to) = (of_rank(&input.meta())?, of_rank(&grid.meta())?, of_rank(&out.meta())?);
    let (data, points, out) = (input.as_slice::<T>()?, grid.as_slice::<T>()?, out.into_slice::<T>()?);
    Ok(sampler.volumes((from, data), (places, points), (to, out))?)
}

fn of_rank<const N: usize>(meta: &TensorShape<'_>) -> Result<Strided<N>, KernelError> {
    Strided::new(meta).ok_or_else(|| KernelError::argument(format!("{} has not {N} dimensions", Shape(meta.sizes))))
}

/// The conventions of a call.
fn sampler(cx: &KernelContext<'_>) -> Result<Sampler, KernelError> {
    let mode = match cx.int(MODE)? {
        0 => Mode::Bilinear,
        1 => Mode::Nearest,
        2 => Mode::Bicubic,
        other => return Err(KernelError::argument(format!("`interpolation_mode` is {other}, 0 to 2 are known"))),
    };
    let padding = match cx.int(PADDING)? {
        0 => Padding::Zeros,
        1 => Padding::Border,
        2 => Padding::Reflection,
        other => return Err(KernelError::argument(format!("`padding_mode` is {other}, 0 to 2 are known"))),
    };
    Ok(Sampler { mode, padding, align_corners: cx.bool(ALIGN_CORNERS)? })
}

#[cold]
fn shapes(input: &[usize], grid: &[usize], why: &str) -> KernelError {
    KernelError::argument(format!("`input` is {}, `grid` is {}: {why}", Shape(input), Shape(grid)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use edgepack_executor::call::{Arg, call};

    /// Samples the row 0, 1, 4, 9 at places given in pixels.
    fn sample(mode: i64, padding: i64, places: &[f32]) -> Vec<f32> {
        let grid: Vec<f32> = places.iter().flat_map(|x| [x / 1.5 - 1.0, 0.0]).collect();
        let args = [
            Arg::tensor(&[1, 1, 1, 4], &[0.0f32, 1.0, 4.0, 9.0]),
            Arg::tensor(&[1, 1, places.len(), 2], &grid),
            Arg::int(mode),
            Arg::int(padding),
            Arg::bool(true),
            Arg::out(ScalarType::FLOAT, &[1, 1, 1, places.len()]),
        ];
        let out = call(&GRID_SAMPLER, &args).unwrap()[0].as_slice::<f32>().unwrap();
        out.iter().map(|x| (x * 1000.0).round() / 1000.0).collect()
    }

    #[test]
    fn values_between_pixels_are_mixed() {
        assert_eq!(sample(0, 0, &[0.0, 0.5, 2.5, 3.5, -1.0]), [0.0, 0.5, 6.5, 4.5, 0.0]);
        assert_eq!(sample(0, 0, &[f32::NAN]), [0.0]);
        assert_eq!(sample(1, 0, &[0.4, 1.6, 2.9, 3.6]), [0.0, 4.0, 9.0, 0.0]);
    }

    #[test]
    fn outside_is_the_border_or_a_reflection() {
        assert_eq!(sample(0, 1, &[-2.0, 3.5, 9.0]), [0.0, 9.0, 9.0]);
        assert_eq!(sample(0, 2, &[-1.0, 3.5, 5.0, 6.0, 8.0]), [1.0, 6.5, 1.0, 0.0, 4.0]);
    }

    #[test]
    fn cubic_weights_meet_the_pixels() {
        assert_eq!(sample(2, 1, &[1.0, 2.0]), [1.0, 4.0]);
    }
}
