//! Two operators that only move elements: a plain copy, and an image cut into square tiles.

use edgepack_executor::kernel::{Alias, Kernel, KernelContext, KernelError, Prepare, Run};
use edgepack_executor::tensor::TensorShape;
use edgepack_format::tensor::Dims;

use super::{expect_contiguous, sizes_of};
use crate::check::{Shape, expect_same, expect_same_order};
use crate::schema::{kernel, position};
use edgepack_compute::walk::{Axis, Walk};

const FALLBACK_NAME: &str = "llama::fallback.out";
const TILE_CROP_NAME: &str = "preprocess::tile_crop.out";

/// `llama::fallback.out`.
pub static FALLBACK: Kernel = kernel(FALLBACK_NAME, Alias::Disjoint, prepare_fallback);

/// `preprocess::tile_crop.out`.
pub static TILE_CROP: Kernel = kernel(TILE_CROP_NAME, Alias::Disjoint, prepare_tiles);

/// The input of both.
const INPUT: usize = position(FALLBACK_NAME, "input");
const FALLBACK_OUT: usize = position(FALLBACK_NAME, "output");
const TILE_SIZE: usize = position(TILE_CROP_NAME, "tile_size");
const TILES: usize = position(TILE_CROP_NAME, "out");

fn prepare_fallback(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    args.expect_len(FALLBACK_OUT + 2)?;
    let (input, output) = (args.tensor(INPUT)?.meta, args.tensor(FALLBACK_OUT)?.meta);
    expect_same(("input", input.dtype), ("output", output.dtype))?;
    expect_same_order(("input", input.dim_order), ("output", output.dim_order))?;
    Ok(Box::new(|cx: &mut KernelContext<'_>| {
        let sizes = Dims::from_slice(cx.meta(INPUT)?.sizes).unwrap_or_default();
        cx.resize(FALLBACK_OUT, &sizes)?;
        let views = cx.views();
        views.out(FALLBACK_OUT)?.bytes_mut().copy_from_slice(views.tensor(INPUT)?.bytes());
        Ok(())
    }))
}

/// Channels, rows and columns of tiles, and their side.
fn tiles(input: &TensorShape<'_>, side: i64) -> Result<[usize; 4], KernelError> {
    let [channels, height, width] = sizes_of("input", input)?;
    match usize::try_from(side) {
        Ok(side) if side > 0 && height.is_multiple_of(side) && width.is_multiple_of(side) => {
            Ok([channels, height / side, width / side, side])
        }
        _ => Err(KernelError::argument(format!(
            "`tile_size` is {side}, `input` is {}: tiles must fill it",
            Shape(input.sizes)
        ))),
    }
}

fn prepare_tiles(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    args.expect_len(TILES + 2)?;
    let (input, out) = (args.tensor(INPUT)?, args.tensor(TILES)?);
    expect_same(("input", input.meta.dtype), ("out", out.meta.dtype))?;
    expect_contiguous("input", &input.meta)?;
    expect_contiguous("out", &out.meta)?;
    sizes_of::<3>("input", &input.meta)?;
    sizes_of::<4>("out", &out.meta)?;
    if let (false, Some(side)) = (input.dynamic, args.int(TILE_SIZE)?) {
        tiles(&input.meta, side)?;
    }
    Ok(Box::new(|cx: &mut KernelContext<'_>| {
        let [channels, rows, columns, side] = tiles(&cx.meta(INPUT)?, cx.int(TILE_SIZE)?)?;
        cx.resize(TILES, &[rows * columns, channels, side, side])?;
        let views = cx.views();
        let (input, mut out) = (views.tensor(INPUT)?, views.out(TILES)?);
        let width = input.dtype.size().unwrap_or(0);
        if input.bytes().is_empty() || width == 0 {
            return Ok(());
        }
        // Tiles of rows of tiles, their channels and their lines, one after the other.
        let line = columns * side;
        let channel = rows * side * line;
        let axes = [(rows, side * line), (columns, side), (channels, channel), (side, line), (side, 1)];
        let walk = Walk::new(axes.map(|(size, stride)| Axis { size, stride: stride as isize }), 0);
        walk.gather(width, input.bytes(), out.bytes_mut());
        Ok(())
    }))
}
