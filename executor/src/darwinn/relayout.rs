//! Outputs of the device: from the order of the device's buffer into that of the tensor.

use edgepack_format::darwinn::{DataType, Geometry, Layer, Route, RouteError, Slice, Slices, Tiles};
use edgepack_format::limits::{Budget, Limits};

use super::tensor::{TensorError, flip_signs, zeros};

/// Plan for taking apart the output of a layer; made once, used for every run.
pub struct Output<'a> {
    geometry: Geometry,
    data_type: DataType,
    route: Route<'a>,
}

impl<'a> Output<'a> {
    /// For this layer. Its maps or slices are verified.
    pub fn new(layer: &Layer<'a>) -> Result<Self, TensorError> {
        Self::within(layer, &Limits::DEFAULT)
    }

    /// Plans the output of a layer like [`Output::new`], at a cost within these limits.
    pub fn within(layer: &Layer<'a>, limits: &Limits) -> Result<Self, TensorError> {
        let geometry = Geometry::of(layer)?;
        let route = Route::of(layer, &mut Budget::new(limits))?;
        Ok(Output { geometry, data_type: layer.data_type, route })
    }

    /// Bytes of the device's buffer.
    pub fn device_bytes(&self) -> usize {
        self.geometry.padded_bytes
    }

    /// Bytes of the tensor.
    pub fn tensor_bytes(&self) -> usize {
        self.geometry.actual_bytes
    }

    /// Returns whether the tensor is the start of the buffer as it is.
    pub fn is_plain(&self) -> bool {
        self.route.is_plain()
    }

    /// Puts the elements into the order of the tensor, as numbers of the device.
    pub fn relayout(&self, device: &[u8], tensor: &mut [u8]) -> Result<(), TensorError> {
        let check = |what, have, want: usize| match have == want {
            true => Ok(()),
            false => Err(TensorError::Length { what, have, want: want.to_string() }),
        };
        check("the device's buffer", device.len(), self.device_bytes())?;
        check("the tensor", tensor.len(), self.tensor_bytes())?;
        let done = match &self.route {
            Route::Chunks { count, bytes, step } => chunks(device, tensor, *count, *bytes, *step),
            Route::Slices(slices) => move_slices(slices, self.geometry.element_bytes, device, tensor),
            Route::Tiles(tiles) => move_tiles(tiles, &self.geometry, device, tensor),
        };
        // Sizes and places were verified, so there is always an answer.
        done.ok_or(TensorError::Route(RouteError::NoLayout))
    }

    /// The tensor as the host sees it: relayout, then the sign flip.
    pub fn take(&self, device: &[u8]) -> Result<Vec<u8>, TensorError> {
        let mut tensor = zeros(self.tensor_bytes())?;
        self.relayout(device, &mut tensor)?;
        flip_signs(self.data_type, &mut tensor);
        Ok(tensor)
    }
}

fn chunks(device: &[u8], tensor: &mut [u8], count: usize, bytes: usize, step: usize) -> Option<()> {
    for (index, to) in tensor.chunks_exact_mut(bytes.max(1)).take(count).enumerate() {
        let start = index.checked_mul(step)?;
        to.copy_from_slice(device.get(start..start.checked_add(bytes)?)?);
    }
    Some(())
}

fn move_tiles(tiles: &Tiles<'_>, geometry: &Geometry, device: &[u8], tensor: &mut [u8]) -> Option<()> {
    let pixel = geometry.z * geometry.element_bytes;
    for (y, row) in tensor.chunks_exact_mut(pixel * geometry.x).enumerate() {
        for run in tiles.runs() {
            let start = tiles.start(y, run)?.checked_mul(geometry.element_bytes)?;
            let to = row.get_mut(run.x * pixel..(run.x + run.count) * pixel)?;
            let stride = isize::try_from(run.stride).ok()?.checked_mul(geometry.element_bytes as isize)?;
            let from = device.get(start..)?;
            match usize::try_from(stride) {
                Ok(stride) if stride >= pixel => gather(from, to, pixel, stride)?,
                // Columns that share bytes or run backwards are legal, though unusual.
                _ => {
                    let mut at = start;
                    for to in to.chunks_exact_mut(pixel) {
                        to.copy_from_slice(device.get(at..at.checked_add(pixel)?)?);
                        at = at.wrapping_add_signed(stride);
                    }
                }
            }
        }
    }
    Some(())
}

/// Copies pixels that are `stride` bytes apart, which is a pixel at least.
fn gather(from: &[u8], to: &mut [u8], pixel: usize, stride: usize) -> Option<()> {
    let count = to.len() / pixel;
    if stride == pixel || count == 1 {
        to.copy_from_slice(from.get(..to.len())?);
        return Some(());
    }
    let from = from.get(..(count - 1) * stride + pixel)?;
    // Lengths the compiler knows: most outputs have few channels of one or two bytes.
    match pixel {
        1 => gather_known::<1>(from, to, stride),
        2 => gather_known::<2>(from, to, stride),
        3 => gather_known::<3>(from, to, stride),
        4 => gather_known::<4>(from, to, stride),
        _ => {
            for (to, from) in to.chunks_exact_mut(pixel).zip(from.chunks(stride)) {
                to.copy_from_slice(from.get(..pixel)?);
            }
        }
    }
    Some(())
}

fn gather_known<const PIXEL: usize>(from: &[u8], to: &mut [u8], stride: usize) {
    let places = from.chunks(stride).filter_map(|from| from.first_chunk::<PIXEL>());
    for (to, from) in to.chunks_exact_mut(PIXEL).zip(places) {
        to.copy_from_slice(from);
    }
}

fn move_slices(slices: &Slices, element: usize, device: &[u8], tensor: &mut [u8]) -> Option<()> {
    // Elements between neighbours of each dimension of the tensor.
    let mut steps = vec![1usize; slices.shape.len()];
    for dimension in (1..steps.len()).rev() {
        steps[dimension - 1] = steps[dimension].checked_mul(slices.shape[dimension])?;
    }
    slices.slices.iter().try_for_each(|slice| move_slice(slice, &steps, element, device, tensor))
}

/// Copies a box row by row; the innermost dimension is packed on both sides.
fn move_slice(slice: &Slice, steps: &[usize], element: usize, device: &[u8], tensor: &mut [u8]) -> Option<()> {
    let (&(_, len), outer) = slice.extent.split_last()?;
    let start: usize = slice.extent.iter().zip(steps).map(|((start, _), step)| start * step).sum();
    let rows: usize = outer.iter().map(|(_, len)| *len).product();
    let mut place = vec![0usize; outer.len()];
    for _ in 0..rows {
        let from: usize = place.iter().zip(&slice.strides).map(|(at, stride)| at * stride).sum();
        let to: usize = start + place.iter().zip(steps).map(|(at, step)| at * step).sum::<usize>();
        let (from, bytes) = (slice.offset + from * element, len * element);
        tensor.get_mut(to * element..to * element + bytes)?.copy_from_slice(device.get(from..from + bytes)?);
        for (at, (_, len)) in place.iter_mut().zip(outer).rev() {
            *at += 1;
            if *at < *len {
                break;
            }
            *at = 0;
        }
    }
    Some(())
}
