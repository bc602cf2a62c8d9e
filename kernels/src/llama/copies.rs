//! Two operators that only move elements: a plain copy, and an image cut into square tiles.

use edgepack_executor::kernel::{Alias, Kernel, KernelContext, KernelError, Prepare, Run};
use edgepack_executor::tensor::TensorShape;
use edgepack_format::tensor::Dims;

use super::{expect_contiguous, sizes_of};
use crate::check::{Shape, expect_same, expect_same_order};

/// `llama::fallback.out`.
pub static FALLBACK: Kernel = Kernel {
    name: "llama::fallback.out",
    schema: "(Tensor input, *, Tensor(a!) output) -> Tensor(a!)",
    alias: Alias::Disjoint,
    prepare: prepare_fallback,
};

/// `preprocess::tile_crop.out`.
pub static TILE_CROP: Kernel = Kernel {
    name: "preprocess::tile_crop.out",
    schema: "(Tensor input, int tile_size, *, Tensor(a!) out) -> Tensor(a!)",
    alias: Alias::Disjoint,
    prepare: prepare_tiles,
};

fn prepare_fallback(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    args.expect_len(3)?;
    let (input, output) = (args.tensor(0)?.meta, args.tensor(1)?.meta);
    expect_same(("input", input.dtype), ("output", output.dtype))?;
    expect_same_order(("input", input.dim_order), ("output", output.dim_order))?;
    Ok(Box::new(|cx: &mut KernelContext<'_>| {
        let sizes = Dims::from_slice(cx.meta(0)?.sizes).unwrap_or_default();
        cx.resize(1, &sizes)?;
        let views = cx.views();
        views.out(1)?.bytes().copy_from_slice(views.tensor(0)?.bytes());
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
    args.expect_len(4)?;
    let (input, out) = (args.tensor(0)?, args.tensor(2)?);
    expect_same(("input", input.meta.dtype), ("out", out.meta.dtype))?;
    expect_contiguous("input", &input.meta)?;
    expect_contiguous("out", &out.meta)?;
    sizes_of::<3>("input", &input.meta)?;
    sizes_of::<4>("out", &out.meta)?;
    if let (false, Some(side)) = (input.dynamic, args.int(1)?) {
        tiles(&input.meta, side)?;
    }
    Ok(Box::new(|cx: &mut KernelContext<'_>| {
        let [channels, rows, columns, side] = tiles(&cx.meta(0)?, cx.int(1)?)?;
        cx.resize(2, &[rows * columns, channels, side, side])?;
        let views = cx.views();
        let (input, mut out) = (views.tensor(0)?, views.out(2)?);
        let run = side * input.dtype.size().unwrap_or(0);
        if input.bytes().is_empty() || run == 0 {
            return Ok(());
        }
        let mut lines = out.bytes().chunks_exact_mut(run);
        for tile in 0..rows * columns {
            for channel in 0..channels {
                for line in 0..side {
                    let y = (channel * rows + tile / columns) * side + line;
                    let from = &input.bytes()[(y * columns + tile % columns) * run..][..run];
                    lines.next().into_iter().for_each(|to| to.copy_from_slice(from));
                }
            }
        }
        Ok(())
    }))
}
