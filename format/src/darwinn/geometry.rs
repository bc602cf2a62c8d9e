//! The sizes of a layer: what the user sees of it and what the device moves.
//!
//! Invariant: all numbers of a [`Geometry`] are at least 1 and below 2³¹, and so are the byte counts computed from them.

use core::fmt;

use super::{DataType, Layer, TensorShape};

/// The most bytes of a layer's buffer, and one more than that is refused.
const MAX_BYTES: u64 = i32::MAX as u64;

/// The sizes of a layer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Geometry {
    /// Rows.
    pub y: usize,
    /// Columns.
    pub x: usize,
    /// Channels.
    pub z: usize,
    /// Elements of one execution, those of a batch inside the shape included.
    pub elements: usize,
    /// Bytes of one element.
    pub element_bytes: usize,
    /// Executions per inference.
    pub executions: usize,
    /// Bytes of the elements of one execution.
    pub execution_bytes: usize,
    /// Bytes the device moves for one execution.
    pub execution_padded: usize,
    /// Bytes of all elements: what the user sees.
    pub actual_bytes: usize,
    /// Bytes the device moves for one inference.
    pub padded_bytes: usize,
}

/// Reason a layer has no sizes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum GeometryError {
    /// The element type is unknown.
    DataType(DataType),
    /// A dimension is below 1.
    Dimension([i32; 3]),
    /// The execution count is below 1.
    Executions(i32),
    /// The shape has no dimension, or this one ends before it starts.
    Shape {
        /// Index of the dimension; the number of dimensions if there are none.
        dimension: usize,
        /// First coordinate of the range.
        start: i32,
        /// Last coordinate of the range.
        end: i32,
    },
    /// The elements of the shape are not a multiple of those of the dimensions.
    ShapeProduct {
        /// Of the shape.
        shape: u64,
        /// Of the dimensions.
        dimensions: u64,
    },
    /// A byte count reaches 2³¹.
    TooLarge,
    /// The buffer is smaller than the elements of one execution.
    Size {
        /// Bytes of the buffer.
        have: i32,
        /// Bytes of the elements.
        need: u64,
    },
}

impl fmt::Display for GeometryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GeometryError::DataType(data_type) => write!(f, "the element type is {data_type}"),
            GeometryError::Dimension([y, x, z]) => write!(f, "the dimensions are {y} x {x} x {z}"),
            GeometryError::Executions(count) => write!(f, "{count} executions per inference"),
            GeometryError::Shape { dimension, start, end } => {
                write!(f, "dimension {dimension} of the shape runs from {start} to {end}")
            }
            GeometryError::ShapeProduct { shape, dimensions } => {
                write!(f, "the shape has {shape} elements, the dimensions {dimensions}")
            }
            GeometryError::TooLarge => f.write_str("its buffer has 2^31 bytes or more"),
            GeometryError::Size { have, need } => write!(f, "{have} bytes for elements of {need} bytes"),
        }
    }
}

impl core::error::Error for GeometryError {}

impl Geometry {
    /// The sizes of this layer.
    pub fn of(layer: &Layer<'_>) -> Result<Geometry, GeometryError> {
        let element_bytes = layer.data_type.size().ok_or(GeometryError::DataType(layer.data_type))?;
        let dims = [layer.y_dim, layer.x_dim, layer.z_dim];
        let [Some(y), Some(x), Some(z)] = dims.map(positive) else {
            return Err(GeometryError::Dimension(dims));
        };
        let count = layer.execution_count_per_inference;
        let executions = positive(count).ok_or(GeometryError::Executions(count))?;
        // Each factor is below 2^31; what leaves 64 bits is too large all the same.
        let dimensions = product([y, x, z]).ok_or(GeometryError::TooLarge)?;
        let elements = match &layer.shape {
            Some(shape) => {
                let elements = shape_elements(shape)?;
                if elements.checked_rem(dimensions) != Some(0) {
                    return Err(GeometryError::ShapeProduct { shape: elements, dimensions });
                }
                elements
            }
            None => dimensions,
        };
        let execution_bytes = bounded(elements.checked_mul(element_bytes as u64))?;
        let actual_bytes = bounded(execution_bytes.checked_mul(executions))?;
        let size = u64::try_from(layer.size_bytes).unwrap_or(0);
        if size < execution_bytes {
            return Err(GeometryError::Size { have: layer.size_bytes, need: execution_bytes });
        }
        let padded_bytes = bounded(size.checked_mul(executions))?;
        Ok(Geometry {
            y: narrow(y)?,
            x: narrow(x)?,
            z: narrow(z)?,
            elements: narrow(elements)?,
            element_bytes,
            executions: narrow(executions)?,
            execution_bytes: narrow(execution_bytes)?,
            execution_padded: narrow(size)?,
            actual_bytes: narrow(actual_bytes)?,
            padded_bytes: narrow(padded_bytes)?,
        })
    }

    /// Elements that the buffer of one execution has room for.
    pub fn capacity(&self) -> usize {
        self.execution_padded.checked_div(self.element_bytes).unwrap_or(0)
    }

    /// Returns the number of times the dimensions fit into the shape: batch entries inside it.
    pub fn batches(&self) -> usize {
        let dimensions = self.y.saturating_mul(self.x).saturating_mul(self.z);
        self.elements.checked_div(dimensions).unwrap_or(1)
    }
}

/// Returns the number of coordinates in a shape. Fails if it has no dimension, a range ends before it starts, or the
/// product overflows.
pub fn shape_elements(shape: &TensorShape<'_>) -> Result<u64, GeometryError> {
    let ranges = shape.dimension.clone().unwrap_or_default();
    if ranges.is_empty() {
        return Err(GeometryError::Shape { dimension: 0, start: 0, end: 0 });
    }
    let mut elements = 1u64;
    for (dimension, range) in ranges.iter().enumerate() {
        let len = range.extent().ok_or(GeometryError::Shape { dimension, start: range.start, end: range.end })?;
        elements = elements.checked_mul(len).ok_or(GeometryError::TooLarge)?;
    }
    Ok(elements)
}

impl super::Range {
    /// Returns the number of coordinates; `None` if the range ends before it starts.
    pub fn extent(self) -> Option<u64> {
        let len = i64::from(self.end).checked_sub(self.start.into())?.checked_add(1)?;
        u64::try_from(len).ok().filter(|len| *len > 0)
    }
}

fn positive(number: i32) -> Option<u64> {
    u64::try_from(number).ok().filter(|number| *number > 0)
}

fn product(factors: [u64; 3]) -> Option<u64> {
    factors.into_iter().try_fold(1u64, u64::checked_mul)
}

fn bounded(bytes: Option<u64>) -> Result<u64, GeometryError> {
    bytes.filter(|bytes| *bytes <= MAX_BYTES).ok_or(GeometryError::TooLarge)
}

fn narrow(number: u64) -> Result<usize, GeometryError> {
    usize::try_from(number).map_err(|_| GeometryError::TooLarge)
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use super::super::Range;
    use super::*;

    fn layer() -> Layer<'static> {
        Layer { y_dim: 2, x_dim: 3, z_dim: 5, size_bytes: 32, ..Layer::default() }
    }

    #[test]
    fn sizes_count_executions_and_padding() {
        let geometry = Geometry::of(&Layer { execution_count_per_inference: 3, ..layer() }).unwrap();
        assert_eq!((geometry.actual_bytes, geometry.padded_bytes), (90, 96));
        assert_eq!((geometry.execution_bytes, geometry.capacity(), geometry.batches()), (30, 32, 1));
    }

    #[test]
    fn a_shape_may_have_a_batch_in_front() {
        let ranges = vec![Range { start: 1, end: 2 }, Range { start: 0, end: 5 }, Range { start: 0, end: 4 }];
        let shape = TensorShape { dimension: Some(ranges.into()) };
        let geometry = Geometry::of(&Layer { shape: Some(shape), size_bytes: 64, ..layer() }).unwrap();
        assert_eq!((geometry.elements, geometry.batches()), (60, 2));
    }

    #[test]
    fn nonsense_is_refused() {
        let refused = |layer: Layer<'_>| Geometry::of(&layer).unwrap_err();
        assert_eq!(refused(Layer { data_type: DataType(6), ..layer() }), GeometryError::DataType(DataType(6)));
        assert_eq!(refused(Layer { z_dim: 0, ..layer() }), GeometryError::Dimension([2, 3, 0]));
        assert_eq!(refused(Layer { execution_count_per_inference: -1, ..layer() }), GeometryError::Executions(-1));
        assert_eq!(refused(Layer { size_bytes: 29, ..layer() }), GeometryError::Size { have: 29, need: 30 });
        let huge = Layer { y_dim: i32::MAX, x_dim: i32::MAX, z_dim: i32::MAX, ..layer() };
        assert_eq!(refused(huge), GeometryError::TooLarge);
        let shape = |ranges: Vec<Range>| Some(TensorShape { dimension: Some(ranges.into()) });
        assert!(matches!(refused(Layer { shape: shape(vec![]), ..layer() }), GeometryError::Shape { .. }));
        let backwards = shape(vec![Range { start: 3, end: 2 }]);
        assert!(matches!(refused(Layer { shape: backwards, ..layer() }), GeometryError::Shape { dimension: 0, .. }));
        let other = shape(vec![Range { start: 0, end: 30 }]);
        assert!(matches!(refused(Layer { shape: other, ..layer() }), GeometryError::ShapeProduct { shape: 31, .. }));
    }
}
