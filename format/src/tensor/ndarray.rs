//! Conversions between tensors and the arrays of `ndarray` (feature `ndarray`).
//!
//! What can be viewed is not copied: a view of an array that is contiguous in some order of its dimensions, and any tensor
//! as a view of an array. Owned arrays become tensors in index order.

use alloc::vec::Vec;

use ::ndarray::{ArrayBase, ArrayD, ArrayView1, ArrayViewD, Data, Dimension, IxDyn, OwnedRepr, ShapeBuilder};
use bytemuck::Pod;

use super::{LayoutError, TensorBuf, TensorLayout, TensorView};
use crate::scalar::Element;

/// A view of an array without a copy.
///
/// # Errors
///
/// [`LayoutError::Strides`] if its elements are not next to each other in some order of the dimensions, as those of a
/// slice with steps are not; [`LayoutError::Rank`] beyond 16 dimensions.
///
/// ```
/// use edgepack_format::tensor::TensorView;
/// use ndarray::array;
///
/// let array = array![[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0]];
/// let view = TensorView::try_from(&array).unwrap();
/// assert_eq!(view.layout().to_string(), "f32[2, 3]");
/// // Transposed, it is the same memory in another order.
/// let transposed = array.t();
/// let view = TensorView::try_from(&transposed).unwrap();
/// assert_eq!((view.layout().sizes(), view.layout().dim_order()), (&[3, 2][..], &[1, 0][..]));
/// assert!(TensorView::try_from(&array.slice(ndarray::s![.., ..;2])).is_err());
/// ```
impl<'a, T: Element + Pod, S: Data<Elem = T>, D: Dimension> TryFrom<&'a ArrayBase<S, D>> for TensorView<'a, T> {
    type Error = LayoutError;

    fn try_from(array: &'a ArrayBase<S, D>) -> Result<Self, LayoutError> {
        let rank = u8::try_from(array.ndim()).map_err(|_| LayoutError::Rank(array.ndim()))?;
        let mut dim_order: Vec<u8> = (0..rank).collect();
        // Outermost first; dimensions of one element may have any stride, so they stay where they are.
        let stride = |dim: &u8| array.strides().get(usize::from(*dim)).copied().unwrap_or(0);
        let varies = |dim: &u8| array.shape().get(usize::from(*dim)).is_some_and(|&size| size > 1);
        let mut varying: Vec<u8> = dim_order.iter().copied().filter(varies).collect();
        varying.sort_by_key(|dim| core::cmp::Reverse(stride(dim)));
        let mut next = varying.into_iter();
        for place in dim_order.iter_mut().filter(|dim| varies(dim)) {
            *place = next.next().unwrap_or(*place);
        }
        // Elements in memory order, from the first one on; `None` where there are gaps or steps backwards.
        let elements = array.as_slice_memory_order().ok_or(LayoutError::Strides)?;
        if array.shape().iter().zip(array.strides()).any(|(&size, &stride)| size > 1 && stride < 0) {
            return Err(LayoutError::Strides);
        }
        TensorView::with_layout(TensorLayout::new(T::SCALAR_TYPE, array.shape(), &dim_order)?, elements)
    }
}

/// A tensor of the elements of an array, in index order; no copy if they are in that order already.
///
/// # Errors
///
/// [`LayoutError::Rank`] beyond 16 dimensions.
impl<T: Element + Pod, D: Dimension> TryFrom<ArrayBase<OwnedRepr<T>, D>> for TensorBuf<T> {
    type Error = LayoutError;

    fn try_from(array: ArrayBase<OwnedRepr<T>, D>) -> Result<Self, LayoutError> {
        let sizes = array.shape().to_vec();
        let elements = match array.is_standard_layout() {
            // The vector may hold more than the array shows of it.
            true => match array.into_raw_vec_and_offset() {
                (elements, Some(0) | None) if elements.len() == sizes.iter().product::<usize>() => elements,
                (elements, offset) => {
                    let count = sizes.iter().product::<usize>();
                    elements.into_iter().skip(offset.unwrap_or(0)).take(count).collect()
                }
            },
            false => array.iter().copied().collect(),
        };
        TensorBuf::new(&sizes, elements)
    }
}

/// A tensor as a view of an array, in whatever order it is in memory.
///
/// ```
/// use edgepack_format::tensor::TensorView;
///
/// let view = TensorView::from_slice(&[2, 2], &[1i64, 2, 3, 4]).unwrap();
/// let array = ndarray::ArrayViewD::from(&view);
/// assert_eq!(array[[1, 0]], 3);
/// ```
impl<'a, T: Element + Pod> From<&TensorView<'a, T>> for ArrayViewD<'a, T> {
    fn from(view: &TensorView<'a, T>) -> Self {
        let (layout, elements) = (view.layout(), view.as_slice());
        let shape = IxDyn(layout.sizes()).strides(IxDyn(&layout.strides()));
        // The layout holds for its elements, with strides that reach every one of them once: there is no other case.
        ArrayViewD::from_shape(shape, elements).unwrap_or_else(|_| ArrayView1::from(elements).into_dyn())
    }
}

/// An array with a copy of the elements.
impl<T: Element + Pod> From<&TensorBuf<T>> for ArrayD<T> {
    fn from(tensor: &TensorBuf<T>) -> Self {
        ArrayViewD::from(&tensor.view()).to_owned()
    }
}
