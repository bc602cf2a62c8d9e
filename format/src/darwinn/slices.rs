//! Slices: an output as boxes of coordinates, each laid out by strides.
//!
//! Invariant: the boxes of [`Slices`] cover the layer's shape exactly once, and every element of each is inside the
//! buffer of one execution.

use alloc::vec::Vec;
use core::fmt;

use super::{Geometry, OutputShapeInfo, Range, TensorShape};
use crate::limits::Budget;
use crate::room;
use crate::wire::ReadError;

/// Batch, W, Y, X, Z.
pub const MAX_RANK: usize = 5;

/// One box.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Slice {
    /// Start in the tensor, counted from the tensor's own start, and length, per dimension.
    pub extent: Vec<(usize, usize)>,
    /// Elements from one coordinate to the next in the buffer, per dimension.
    pub strides: Vec<usize>,
    /// Offset of the box in the buffer, in bytes.
    pub offset: usize,
}

/// The boxes of an output.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Slices {
    /// Length of each dimension of the tensor.
    pub shape: Vec<usize>,
    /// Boxes in the order of the package; no two have a coordinate in common.
    pub slices: Vec<Slice>,
}

/// Kind of fault in slices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SliceFault {
    /// Ranks: of the layer's shape, of the slice, of its strides.
    Rank,
    /// Coordinates of a slice that run backwards or leave the layer's.
    Range,
    /// Stride that is shorter than all that is inside its dimension, or an innermost one other than 1.
    Stride,
    /// Start of a slice, negative or inside an element; or other starts than slices.
    Offset,
    /// End of a slice, behind the bytes of one execution.
    Bounds,
    /// Boxes that overlap, or that together are not the whole tensor.
    Cover,
    /// The cost of looking, in work or in memory.
    Budget(ReadError),
}

/// Reason slices do not describe an output.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SliceError {
    /// Kind of fault.
    pub fault: SliceFault,
    /// Index of the slice; `None` if the fault is about all of them.
    pub slice: Option<usize>,
    /// Description of the fault, with both numbers.
    pub message: alloc::string::String,
}

impl fmt::Display for SliceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(slice) = self.slice {
            write!(f, "slice {slice}: ")?;
        }
        f.write_str(&self.message)
    }
}

impl core::error::Error for SliceError {}

type Result<T> = core::result::Result<T, SliceError>;

macro_rules! fault {
    ($fault:ident, $slice:expr, $($message:tt)*) => {
        SliceError { fault: SliceFault::$fault, slice: $slice, message: alloc::format!($($message)*) }
    };
}

impl Slices {
    /// Of an output whose layer has this shape.
    pub fn new(
        info: &OutputShapeInfo<'_>,
        shape: Option<&TensorShape<'_>>,
        geometry: &Geometry,
        budget: &mut Budget,
    ) -> Result<Self> {
        let dimensions = shape.and_then(|shape| shape.dimension.clone()).unwrap_or_default();
        if dimensions.is_empty() || dimensions.len() > MAX_RANK {
            return Err(fault!(Rank, None, "the layer's shape has {} dimensions", dimensions.len()));
        }
        let dimensions: Vec<Range> = dimensions.iter().collect();
        // A shape with an empty range has been refused with the layer's sizes.
        let lens: Vec<usize> = dimensions.iter().map(|range| len(*range).unwrap_or(0)).collect();
        let layouts = info.slice_layout.clone().unwrap_or_default();
        let offsets = info.slice_offset.clone().unwrap_or_default();
        let pairs = (layouts.len() as u64).saturating_mul(layouts.len() as u64);
        if let Err(error) = budget.charge((pairs / 16).saturating_add(layouts.len() as u64), 0) {
            let message = alloc::format!("{} slices", layouts.len());
            return Err(SliceError { fault: SliceFault::Budget(error), slice: None, message });
        }
        if offsets.len() != layouts.len() {
            return Err(fault!(Offset, None, "{} offsets for {} slices", offsets.len(), layouts.len()));
        }
        let mut slices = Vec::new();
        for (index, (layout, offset)) in layouts.iter().zip(offsets.iter()).enumerate() {
            // What cannot be read has been reported by the structural check.
            let layout = layout.map_err(|error| fault!(Rank, Some(index), "{error}"))?;
            let ranges = layout.shape.and_then(|shape| shape.dimension).unwrap_or_default();
            let strides = layout.stride.unwrap_or_default();
            if ranges.len() != dimensions.len() || strides.len() != dimensions.len() {
                return Err(fault!(
                    Rank,
                    Some(index),
                    "{} ranges and {} strides, the layer's shape has {} dimensions",
                    ranges.len(),
                    strides.len(),
                    dimensions.len()
                ));
            }
            let (ranges, strides): (Vec<Range>, Vec<i32>) = (ranges.iter().collect(), strides.iter().collect());
            let slice = slice(index, &ranges, &strides, offset, &dimensions, geometry)?;
            room::push(&mut slices, slice).map_err(|error| SliceError {
                fault: SliceFault::Budget(error.into()),
                slice: None,
                message: alloc::format!("{error} of slices"),
            })?;
        }
        let slices = Slices { shape: lens, slices };
        slices.cover(geometry)?;
        Ok(slices)
    }

    /// Checks that the boxes cover the shape exactly once: they do not overlap and have as many elements together.
    fn cover(&self, geometry: &Geometry) -> Result<()> {
        let covered = self.slices.iter().fold(0usize, |sum, slice| sum.saturating_add(slice.elements()));
        for (index, slice) in self.slices.iter().enumerate() {
            let before = self.slices.iter().take(index).position(|other| slice.meets(other));
            if let Some(other) = before {
                return Err(fault!(Cover, Some(index), "it has coordinates of slice {other}"));
            }
        }
        if covered != geometry.elements {
            return Err(fault!(Cover, None, "the slices have {covered} elements, the shape {}", geometry.elements));
        }
        Ok(())
    }

    /// Returns whether there is one box and it is the tensor in its plain order.
    pub fn is_packed(&self) -> bool {
        matches!(self.slices.as_slice(), [only] if only.is_packed())
    }
}

impl Slice {
    /// Returns the number of coordinates in the box.
    pub fn elements(&self) -> usize {
        self.extent.iter().fold(1usize, |product, (_, len)| product.saturating_mul(*len))
    }

    fn meets(&self, other: &Slice) -> bool {
        self.extent
            .iter()
            .zip(&other.extent)
            .all(|((a, a_len), (b, b_len))| *a < b.saturating_add(*b_len) && *b < a.saturating_add(*a_len))
    }

    fn is_packed(&self) -> bool {
        let mut step = 1usize;
        self.extent.iter().zip(&self.strides).rev().all(|((_, len), stride)| {
            let same = *stride == step;
            step = step.saturating_mul(*len);
            same
        })
    }
}

fn len(range: Range) -> Option<usize> {
    range.extent().and_then(|len| usize::try_from(len).ok())
}

fn slice(
    index: usize,
    ranges: &[Range],
    strides: &[i32],
    offset: i32,
    dimensions: &[Range],
    geometry: &Geometry,
) -> Result<Slice> {
    let index = Some(index);
    let mut extent = Vec::new();
    for (dimension, (range, whole)) in ranges.iter().zip(dimensions).enumerate() {
        let start = i64::from(range.start).saturating_sub(whole.start.into());
        let found = len(*range).filter(|_| range.end <= whole.end).zip(usize::try_from(start).ok());
        let Some((len, start)) = found else {
            return Err(fault!(
                Range,
                index,
                "dimension {dimension} runs from {} to {}, that of the layer from {} to {}",
                range.start,
                range.end,
                whole.start,
                whole.end
            ));
        };
        extent.push((start, len));
    }
    // From the innermost dimension outwards: each stride passes over all that is inside.
    let mut inner = 1i64;
    let mut steps = Vec::new();
    for (dimension, (stride, (_, len))) in strides.iter().zip(&extent).enumerate().rev() {
        let stride = i64::from(*stride);
        let is_last = steps.is_empty();
        if stride < inner || (is_last && stride != 1) {
            return Err(fault!(Stride, index, "dimension {dimension} steps by {stride}, {inner} are inside"));
        }
        inner = stride.saturating_mul(*len as i64);
        steps.push(usize::try_from(stride).unwrap_or(usize::MAX));
    }
    steps.reverse();
    let aligned = usize::try_from(offset).ok().filter(|offset| offset.is_multiple_of(geometry.element_bytes));
    let Some(start) = aligned else {
        return Err(fault!(Offset, index, "it starts at byte {offset}, elements have {}", geometry.element_bytes));
    };
    let last = extent
        .iter()
        .zip(&steps)
        .fold(0usize, |last, ((_, len), step)| last.saturating_add(len.saturating_sub(1).saturating_mul(*step)));
    let end = last.saturating_add(1).saturating_mul(geometry.element_bytes).saturating_add(start);
    if end > geometry.execution_padded {
        return Err(fault!(Bounds, index, "it ends at byte {end} of {}", geometry.execution_padded));
    }
    Ok(Slice { extent, strides: steps, offset: start })
}
