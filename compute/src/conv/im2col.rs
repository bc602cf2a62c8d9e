//! Patches of images as matrices, gathered while a product packs them.
//!
//! A patch holds the elements that the taps of a window meet at one place; elements in the padding are 0. A kernel of one
//! tap at every pixel needs no patches.

use rten_gemm::{ColOffsets, Im2Col, RowOffsets};
use rten_tensor::NdTensorView;

use super::geometry::Geometry;
use crate::error::{Error, ErrorKind, room};
use crate::gemm::{Bias, Fast, Gemm, Operand};

/// Offsets of the elements of patches: by tap, and by output pixel.
pub(super) type Offsets = (RowOffsets, ColOffsets);

/// Multiplies with the patches of one group's channels. The offsets are those of the geometry, or made here.
pub(super) fn multiply_patches(
    offsets: &mut Option<Offsets>,
    geometry: &Geometry,
    out: &mut [f32],
    lhs: Operand<'_, f32, <Fast as Gemm<f32>>::PackedLhs>,
    data: &[f32],
    bias: Bias<'_, f32>,
) -> Result<(), Error> {
    let Geometry { input: images, slides, .. } = geometry;
    let (n_rows, n_cols) = (lhs.mat.cols, geometry.out.area());
    let [channels, _] = geometry.group_channels();
    let shape = [channels, images.sizes[1], images.sizes[2]];
    let image =
        NdTensorView::from_slice_with_strides(shape, data, [images.channels.1, images.strides[1], images.strides[2]])
            .map_err(|error| {
            Error::new(ErrorKind::Unsupported, format!("the image has no strides to gather by: {error:?}"))
        })?;
    let (row_offsets, col_offsets) = match offsets.take() {
        Some(known) => known,
        None => patch_offsets(geometry, channels)?,
    };
    let most = |dim: usize| ((slides[dim].input - 1) * images.strides[dim]) as i32;
    let patches =
        Im2Col { image, row_offsets, col_offsets, n_cols, n_rows, max_y_offset: most(1), max_x_offset: most(2) };
    let result = Fast::multiply_patches(out, lhs, &patches, bias);
    *offsets = Some((patches.row_offsets, patches.col_offsets));
    result
}

/// Finds where the elements of patches are. Sizes are padded to what the packing wants; the
/// padding of rows is outside of the image, that of columns is never stored.
fn patch_offsets(geometry: &Geometry, channels: usize) -> Result<Offsets, Error> {
    let Geometry { input: images, out: to, slides, .. } = geometry;
    let [column_multiple, row_multiple] = Fast::patch_steps();
    let taps = (channels * slides[1].kernel * slides[2].kernel).next_multiple_of(row_multiple.max(1));
    let mut rows = RowOffsets { chan: room(taps)?, y: room(taps)?, x: room(taps)? };
    for channel in 0..channels {
        for ky in 0..slides[1].kernel {
            for kx in 0..slides[2].kernel {
                rows.chan.push((channel * images.channels.1) as i32);
                rows.y.push((ky * slides[1].dilation * images.strides[1]) as i32);
                rows.x.push((kx * slides[2].dilation * images.strides[2]) as i32);
            }
        }
    }
    let padded = rows.chan.len().next_multiple_of(row_multiple.max(1));
    rows.chan.resize(padded, 0);
    rows.y.resize(padded, i32::MIN / 2);
    rows.x.resize(padded, i32::MIN / 2);
    let pixels = to.area().next_multiple_of(column_multiple.max(1));
    let mut cols = ColOffsets { y: room(pixels)?, x: room(pixels)? };
    let start = |dim: usize, place: usize| {
        let at = (place * slides[dim].stride) as i64 - slides[dim].padding as i64;
        (at * images.strides[dim] as i64) as i32
    };
    for y in 0..to.sizes[1] {
        for x in 0..to.sizes[2] {
            cols.y.push(start(1, y));
            cols.x.push(start(2, x));
        }
    }
    let padded = cols.y.len().next_multiple_of(column_multiple.max(1));
    cols.y.resize(padded, 0);
    cols.x.resize(padded, 0);
    Ok((rows, cols))
}
