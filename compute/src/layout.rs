//! Shapes of dense tensors in memory: sizes, strides, the order of dimensions, and shapes that fit together.
//!
//! Sizes and strides count elements. A tensor is dense: its elements fill its memory, in the order of its dimensions.

use edgepack_format::tensor::{Dims, element_count};

/// Sizes and places of a dense tensor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout<'a> {
    /// Elements along each dimension.
    pub sizes: &'a [usize],
    /// Elements of memory between neighbours along each dimension.
    pub strides: &'a [usize],
    /// Dimensions from outermost to innermost in memory.
    pub dim_order: &'a [u8],
}

impl Layout<'_> {
    /// Returns the number of dimensions.
    pub fn rank(&self) -> usize {
        self.sizes.len()
    }

    /// Returns the number of elements, which the maker of the layout has checked to fit.
    pub fn element_count(&self) -> usize {
        self.sizes.iter().product()
    }
}

/// Sizes and strides of a tensor of `N` dimensions, in the order of its indices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Strided<const N: usize> {
    /// Elements along each dimension.
    pub sizes: [usize; N],
    /// Elements of memory between neighbours along each dimension.
    pub strides: [usize; N],
}

impl<const N: usize> Strided<N> {
    /// Returns those of a tensor; `None` if it has another number of dimensions.
    pub fn new<'a>(layout: impl Into<Layout<'a>>) -> Option<Self> {
        let layout = layout.into();
        Some(Strided { sizes: layout.sizes.try_into().ok()?, strides: layout.strides.try_into().ok()? })
    }

    /// Returns the number of elements.
    pub fn count(&self) -> usize {
        self.sizes.iter().product()
    }

    /// Returns how many elements of memory it takes to hold the last one.
    ///
    /// ```
    /// use edgepack_compute::layout::Strided;
    ///
    /// assert_eq!(Strided { sizes: [2, 3], strides: [10, 1] }.reach(), 13);
    /// ```
    pub fn reach(&self) -> usize {
        reach(self.sizes.into_iter().zip(self.strides))
    }
}

/// Returns how many elements of memory dimensions of these sizes and strides need.
pub(crate) fn reach(dims: impl Iterator<Item = (usize, usize)> + Clone) -> usize {
    if dims.clone().any(|(size, _)| size == 0) {
        return 0;
    }
    dims.fold(1, |reach: usize, (size, stride)| reach.saturating_add((size - 1).saturating_mul(stride)))
}

/// Returns the sizes two tensors have in common when dimensions of size 1 stretch; `None` if they do not fit, or if no
/// tensor can have them.
///
/// ```
/// use edgepack_compute::layout::broadcast;
///
/// assert_eq!(broadcast(&[2, 1, 3], &[4, 1]).as_deref(), Some(&[2, 4, 3][..]));
/// assert!(broadcast(&[2], &[3]).is_none());
/// ```
pub fn broadcast(a: &[usize], b: &[usize]) -> Option<Dims> {
    let (long, short) = if a.len() >= b.len() { (a, b) } else { (b, a) };
    let mut sizes = Dims::from_slice(long)?;
    let skip = long.len() - short.len();
    for (size, &other) in sizes[skip..].iter_mut().zip(short) {
        match (*size, other) {
            (have, want) if have == want => {}
            (_, 1) => {}
            (1, want) => *size = want,
            _ => return None,
        }
    }
    // Two shapes of no elements can make one that no tensor has.
    element_count(&sizes).map(|_| sizes)
}

/// The view of a dense tensor around one of its dimensions: `outer` blocks of `size` rows of `inner` elements.
///
/// It holds for every dim order, since memory is dense: the elements inside the dimension are `inner`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AxisView {
    /// Number of blocks.
    pub outer: usize,
    /// Length of the dimension.
    pub size: usize,
    /// Elements of memory between neighbours along the dimension.
    pub inner: usize,
}

impl AxisView {
    /// Returns the view around `dim`; rank 0 counts as one element along one dimension.
    ///
    /// ```
    /// use edgepack_compute::layout::AxisView;
    ///
    /// assert_eq!(AxisView::new(&[2, 3, 4], &[12, 4, 1], 1), AxisView { outer: 2, size: 3, inner: 4 });
    /// ```
    pub fn new(sizes: &[usize], strides: &[usize], dim: usize) -> AxisView {
        let (size, inner) = match (sizes.get(dim), strides.get(dim)) {
            (Some(&size), Some(&stride)) => (size, stride),
            _ => (1, 1),
        };
        let count: usize = sizes.iter().product();
        // Without elements there is nothing to visit, whatever the strides say.
        let outer = if count == 0 { 0 } else { count / (size * inner) };
        AxisView { outer, size, inner }
    }

    /// Returns the number of elements.
    pub fn count(&self) -> usize {
        self.outer * self.size * self.inner
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_stretch_from_the_right() {
        assert_eq!(broadcast(&[2, 1, 3], &[4, 1]).as_deref(), Some(&[2, 4, 3][..]));
        assert_eq!(broadcast(&[], &[0]).as_deref(), Some(&[0][..]));
        assert_eq!(broadcast(&[1], &[0]).as_deref(), Some(&[0][..]));
        assert!(broadcast(&[2], &[3]).is_none() && broadcast(&[2], &[0]).is_none());
    }

    #[test]
    fn views_follow_memory() {
        assert_eq!(AxisView::new(&[2, 3, 4], &[12, 4, 1], 1), AxisView { outer: 2, size: 3, inner: 4 });
        assert_eq!(AxisView::new(&[2, 3, 4, 5], &[60, 1, 15, 3], 1), AxisView { outer: 40, size: 3, inner: 1 });
        assert_eq!(AxisView::new(&[], &[], 0), AxisView { outer: 1, size: 1, inner: 1 });
        assert_eq!(AxisView::new(&[2, 0], &[1, 1], 0).outer, 0);
    }
}
