//! Shapes of tensors of a program: sizes as upper bounds, order of dimensions.

use edgepack_builder::pte::TensorSpec;

use crate::error::Error;
use crate::graph::{Graph, Ranges, Size, TensorMeta, ValueId};

/// The largest a size can be.
pub(super) fn bound(size: &Size, ranges: &Ranges, place: &str) -> Result<usize, Error> {
    let (most, text) = match size {
        Size::Known(number) => (Some(*number), number.to_string()),
        Size::Symbolic(expr, _) => (expr.bounds(ranges).max, expr.to_string()),
    };
    let unbounded = || Error::Unbounded { place: place.to_owned(), expression: text.clone() };
    // A file holds sizes of 31 bits, so a larger bound is none.
    let most = most.filter(|most| *most < i64::from(i32::MAX)).ok_or_else(unbounded)?;
    usize::try_from(most).map_err(|_| Error::program(place, format!("its size {text} is negative")))
}

/// All sizes of a tensor as upper bounds.
pub(crate) fn bounds(meta: &TensorMeta, ranges: &Ranges, place: &str) -> Result<Vec<usize>, Error> {
    meta.sizes.iter().map(|size| bound(size, ranges, place)).collect()
}

/// A tensor of the program.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Shape {
    pub(super) spec: TensorSpec,
    pub(super) sizes: Vec<usize>,
    pub(super) dim_order: Vec<u8>,
    pub(super) dynamic: bool,
}

/// Returns the shape that the tensor of a value is to have.
pub(super) fn shape(
    graph: &Graph,
    value: ValueId,
    dim_order: Option<Vec<u8>>,
    ranges: &Ranges,
) -> Result<Shape, Error> {
    let place = format!("value `{}`", graph.name(value));
    let meta = graph.tensor(value).ok_or_else(|| Error::program(&place, "it is not a tensor"))?;
    if !meta.is_strided() {
        return Err(Error::unsupported(place, format!("layout {}, programs hold strided tensors", meta.layout)));
    }
    let sizes = bounds(meta, ranges, &place)?;
    let dim_order = dim_order.unwrap_or_else(|| crate::graph::identity(sizes.len()));
    let mut spec = TensorSpec::new(meta.scalar_type, sizes.clone()).dim_order(dim_order.clone());
    let dynamic = meta.is_dynamic();
    if dynamic {
        spec = spec.dynamic();
    }
    Ok(Shape { spec, sizes, dim_order, dynamic })
}
