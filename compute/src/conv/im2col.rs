//! Patches of images as matrices: gathered while a product packs them, or into scratch memory some rows at a time.
//!
//! A patch holds the elements that the taps of a window meet at one place; elements in the padding are 0. A kernel of one
//! tap at every pixel needs no patches.

use rten_gemm::{ColOffsets, Im2Col, RowOffsets};
use rten_tensor::NdTensorView;

use super::geometry::Geometry;
use crate::error::{Error, ErrorKind, room};
use crate::gemm::{Bias, Fast, Gemm, Mat, Operand};
use crate::threads::{WriteAll, for_each_piece, pays, try_for_each};

/// Elements of patches gathered at a time, and the fewest rows of them.
const PATCHES: usize = 1 << 16;
const LEAST_ROWS: usize = 16;

/// Patches of so many elements that are gathered at a time.
pub(super) fn rows_at_once(taps: usize) -> usize {
    (PATCHES / taps).max(LEAST_ROWS)
}

/// Where the elements of patches are: by tap, and by output pixel.
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

/// Calls `multiply` with rows of the output and the patches they are made of, until all of a channels-last output is made.
pub(super) fn multiply_rows(
    geometry: &Geometry,
    input: &[f32],
    scratch: &mut [f32],
    out: &mut [f32],
    multiply: impl Fn(&mut [f32], Mat<'_, f32>) -> Result<(), Error> + Send + Sync,
) -> Result<(), Error> {
    let Geometry { input: images, weight: kernel, out: to, .. } = *geometry;
    let (taps, area, channels) = (images.channels.0 * kernel.area(), to.area(), to.channels.0);
    let pointwise = geometry.is_pointwise();
    // Few enough rows that what was computed is still in the cache for what is done to it.
    let rows = if pointwise { (PATCHES / channels.max(taps)).max(LEAST_ROWS) } else { rows_at_once(taps) };
    for n in 0..to.batch.0 {
        let data = &input[n * images.batch.1..];
        let out = &mut out[n * to.batch.1..][..area * channels];
        if pointwise {
            let parallel = pays(size_of_val(out));
            try_for_each(parallel, WriteAll(out, rows * channels), |block, out| {
                multiply(out, Mat::new(&data[block * rows * taps..], [out.len() / channels, taps], [taps, 1])?)
            })?;
            continue;
        }
        for (block, out) in out.chunks_mut(rows * channels).enumerate() {
            let count = out.len() / channels;
            let patches = scratch
                .get_mut(..count * taps)
                .ok_or_else(|| Error::new(ErrorKind::Unsupported, "patches are larger than at load"))?;
            for_each_piece(patches, taps, |start, patches| {
                gather(geometry, data, block * rows + start / taps, patches);
            });
            multiply(out, Mat::new(patches, [count, taps], [taps, 1])?)?;
        }
    }
    Ok(())
}

/// Finds where the elements of patches are. Sizes are padded to what the packing wants; the
/// padding of rows lies outside of the image, that of columns is never stored.
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

/// Gathers the patches of output pixels from number `first` on, one row each: taps, and their channels innermost.
fn gather(geometry: &Geometry, data: &[f32], first: usize, patches: &mut [f32]) {
    let Geometry { input: images, out: to, slides, .. } = geometry;
    let channels = images.channels.0;
    let [height, width] = [slides[1].kernel, slides[2].kernel];
    for (pixel, patch) in patches.chunks_exact_mut(height * width * channels).enumerate() {
        let (y, x) = ((first + pixel) / to.sizes[2], (first + pixel) % to.sizes[2]);
        for (ky, line) in patch.chunks_exact_mut(width * channels).enumerate() {
            let Some(row) = slides[1].element(y, ky) else {
                line.fill(0.0);
                continue;
            };
            for (kx, place) in line.chunks_exact_mut(channels).enumerate() {
                match slides[2].element(x, kx) {
                    Some(column) => {
                        let from = row * images.strides[1] + column * images.strides[2];
                        if images.channels.1 == 1 {
                            place.copy_from_slice(&data[from..from + channels]);
                        } else {
                            let values = data[from..].iter().step_by(images.channels.1);
                            place.iter_mut().zip(values).for_each(|(place, &x)| *place = x);
                        }
                    }
                    None => place.fill(0.0),
                }
            }
        }
    }
}
