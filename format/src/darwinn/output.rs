//! Routes of an output's elements from the device's buffer into the order of the tensor.

use core::fmt;

use super::{AnyLayer, Geometry, GeometryError, Layer, OutputLayer, SliceError, Slices, TileError, Tiles};
use crate::limits::Budget;

/// Route from the buffer of an inference to the tensor.
#[derive(Clone, PartialEq, Debug)]
pub enum Route<'a> {
    /// Chunks of `bytes` follow each other in the tensor; in the buffer each starts `step` after the one before.
    Chunks {
        /// Number of chunks.
        count: usize,
        /// Bytes of each.
        bytes: usize,
        /// Bytes between their starts.
        step: usize,
    },
    /// Boxes of coordinates.
    Slices(Slices),
    /// Rows of tiles.
    Tiles(Tiles<'a>),
}

/// Reason an output has no such route.
#[derive(Clone, PartialEq, Debug)]
pub enum RouteError {
    /// The layer is not an output, or not said to be one.
    NotAnOutput,
    /// It has no sizes.
    Geometry(GeometryError),
    /// Its tile maps are wrong.
    Tiles(TileError),
    /// Its slices are wrong.
    Slices(SliceError),
    /// An image with neither maps nor slices.
    NoLayout,
    /// The format does not say how several executions, or a batch, are laid out here.
    Undefined {
        /// Executions per inference.
        executions: usize,
        /// Batch entries inside the shape.
        batches: usize,
    },
}

impl fmt::Display for RouteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RouteError::NotAnOutput => f.write_str("it does not say that it is an output"),
            RouteError::Geometry(error) => error.fmt(f),
            RouteError::Tiles(error) => error.fmt(f),
            RouteError::Slices(error) => error.fmt(f),
            RouteError::NoLayout => f.write_str("an image with neither tile maps nor slices"),
            RouteError::Undefined { executions, batches } => {
                write!(f, "{executions} executions and {batches} batch entries have no defined order here")
            }
        }
    }
}

impl core::error::Error for RouteError {}

/// Returns the part of a layer that only an output has, if the layer is one.
pub fn output_of<'l, 'a>(layer: &'l Layer<'a>) -> Option<&'l OutputLayer<'a>> {
    match &layer.any_layer {
        Some(AnyLayer::OutputLayer(output)) => Some(output),
        _ => None,
    }
}

impl<'a> Route<'a> {
    /// Returns the route of this output. Maps and slices are verified as far as the route uses them.
    pub fn of(layer: &Layer<'a>, budget: &mut Budget) -> Result<Self, RouteError> {
        let geometry = Geometry::of(layer).map_err(RouteError::Geometry)?;
        let output = output_of(layer).ok_or(RouteError::NotAnOutput)?;
        let is_flat = geometry.y == 1 && geometry.x == 1;
        let undefined = RouteError::Undefined { executions: geometry.executions, batches: geometry.batches() };
        let whole = Route::Chunks { count: 1, bytes: geometry.actual_bytes, step: geometry.padded_bytes };
        let is_unpadded = geometry.padded_bytes == geometry.actual_bytes;

        if let Some(info) = &output.shape_info {
            let slices = Slices::new(info, layer.shape.as_ref(), &geometry, budget).map_err(RouteError::Slices)?;
            if geometry.executions == 1 {
                return Ok(Route::Slices(slices));
            }
            // Without padding one execution follows the other as in the tensor.
            if slices.is_packed() && is_unpadded {
                return Ok(whole);
            }
        }
        if geometry.batches() > 1 {
            return Err(undefined);
        }
        if is_flat {
            return Ok(match geometry.executions == 1 || is_unpadded {
                true => whole,
                false => Route::Chunks {
                    count: geometry.executions,
                    bytes: geometry.execution_bytes,
                    step: geometry.execution_padded,
                },
            });
        }
        if geometry.executions > 1 {
            return Err(undefined);
        }
        let layout = output.layout.as_ref().ok_or(RouteError::NoLayout)?;
        let tiles = Tiles::new(layout, &geometry).map_err(RouteError::Tiles)?;
        tiles.verify(&geometry, budget).map_err(RouteError::Tiles)?;
        Ok(Route::Tiles(tiles))
    }

    /// Returns whether the tensor is the start of the buffer as it is.
    pub fn is_plain(&self) -> bool {
        match self {
            Route::Chunks { count, .. } => *count == 1,
            Route::Slices(slices) => slices.is_packed() && slices.slices.iter().all(|slice| slice.offset == 0),
            Route::Tiles(_) => false,
        }
    }
}
