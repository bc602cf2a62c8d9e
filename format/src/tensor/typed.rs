//! Tensors whose element type is a Rust type.
//!
//! Invariant: the element type of the layout is `T`'s, and the data are as many aligned `T` as the layout asks for, so
//! viewing them as a slice cannot fail.

use alloc::vec::Vec;
use core::marker::PhantomData;

use bytemuck::Pod;

use super::{LayoutError, TensorLayout, TensorView};
use crate::scalar::Element;

/// The element type of a [`TensorView`] that only its layout knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Untyped;

impl<'a> TensorView<'a> {
    /// The same tensor as one of `T`. Fails if its elements are of another type, or its bytes not aligned to it.
    pub fn typed<T: Element + Pod>(self) -> Result<TensorView<'a, T>, LayoutError> {
        if self.layout.scalar_type() != T::SCALAR_TYPE {
            return Err(LayoutError::Element { have: self.layout.scalar_type(), want: T::SCALAR_TYPE });
        }
        match bytemuck::try_cast_slice::<u8, T>(self.data) {
            Ok(_) => Ok(TensorView { layout: self.layout, data: self.data, element: PhantomData }),
            Err(_) => Err(LayoutError::Misaligned(align_of::<T>())),
        }
    }
}

impl<'a, T: Element + Pod> TensorView<'a, T> {
    /// A contiguous tensor of these sizes. Fails unless there are exactly as many elements.
    ///
    /// ```
    /// use edgepack_format::tensor::TensorView;
    /// let view = TensorView::from_slice(&[2, 2], &[1.0f32, 2.0, 3.0, 4.0]).unwrap();
    /// assert_eq!(view.as_slice()[3], 4.0);
    /// assert_eq!(view.layout().to_string(), "FLOAT[2, 2]");
    /// ```
    pub fn from_slice(sizes: &[usize], elements: &'a [T]) -> Result<Self, LayoutError> {
        Self::with_layout(TensorLayout::contiguous(T::SCALAR_TYPE, sizes)?, elements)
    }

    /// A tensor of any layout over elements in memory order.
    pub fn with_layout(layout: TensorLayout, elements: &'a [T]) -> Result<Self, LayoutError> {
        exactly(&layout, elements)?;
        TensorView::new(layout, bytemuck::cast_slice(elements))?.typed()
    }

    /// The elements in memory order.
    pub fn as_slice(&self) -> &'a [T] {
        bytemuck::try_cast_slice(self.data).unwrap_or_default()
    }

    /// The same tensor without the type.
    pub fn untyped(self) -> TensorView<'a> {
        TensorView { layout: self.layout, data: self.data, element: PhantomData }
    }
}

impl<T: Element + Pod + PartialEq> PartialEq for TensorView<'_, T> {
    fn eq(&self, other: &Self) -> bool {
        self.layout == other.layout && self.as_slice() == other.as_slice()
    }
}

/// A tensor that owns its elements.
#[derive(Clone, PartialEq, Debug)]
pub struct TensorBuf<T> {
    layout: TensorLayout,
    elements: Vec<T>,
}

impl<T: Element + Pod> TensorBuf<T> {
    /// A contiguous tensor of these sizes. Fails unless there are exactly as many elements.
    pub fn new(sizes: &[usize], elements: Vec<T>) -> Result<Self, LayoutError> {
        Self::with_layout(TensorLayout::contiguous(T::SCALAR_TYPE, sizes)?, elements)
    }

    /// A tensor of any layout over elements in memory order.
    pub fn with_layout(layout: TensorLayout, elements: Vec<T>) -> Result<Self, LayoutError> {
        exactly(&layout, &elements)?;
        Ok(TensorBuf { layout, elements })
    }

    /// What it looks like.
    pub fn layout(&self) -> &TensorLayout {
        &self.layout
    }

    /// The elements in memory order.
    pub fn as_slice(&self) -> &[T] {
        &self.elements
    }

    /// The elements in memory order, for writing.
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        &mut self.elements
    }

    /// The bytes of the elements, in memory order.
    pub fn data(&self) -> &[u8] {
        bytemuck::cast_slice(&self.elements)
    }

    /// A view of it.
    pub fn view(&self) -> TensorView<'_, T> {
        TensorView { layout: self.layout.clone(), data: self.data(), element: PhantomData }
    }
}

/// That the layout is one of these elements.
fn exactly<T: Element>(layout: &TensorLayout, elements: &[T]) -> Result<(), LayoutError> {
    if layout.scalar_type() != T::SCALAR_TYPE {
        return Err(LayoutError::Element { have: layout.scalar_type(), want: T::SCALAR_TYPE });
    }
    let (have, want) = (size_of_val(elements) as u64, layout.byte_len() as u64);
    if have == want { Ok(()) } else { Err(LayoutError::Data { have, want }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scalar::ScalarType;
    use alloc::vec;

    #[test]
    fn a_typed_view_is_its_elements() {
        let values = [1i32, -2, 3, -4, 5, -6];
        let layout = TensorLayout::new(ScalarType::INT, &[2, 3], &[1, 0]).unwrap();
        let view = TensorView::with_layout(layout.clone(), &values).unwrap();
        assert_eq!((view.as_slice(), view.data().len()), (&values[..], 24));
        let again = view.clone().untyped().typed::<i32>().unwrap();
        assert_eq!(again, view);
        let owned = TensorBuf::with_layout(layout, values.to_vec()).unwrap();
        assert_eq!(owned.view(), view);
    }

    #[test]
    fn another_type_count_or_address_is_refused() {
        let values = [0i32; 5];
        let want = LayoutError::Data { have: 20, want: 24 };
        assert_eq!(TensorView::from_slice(&[2, 3], &values).unwrap_err(), want);
        assert_eq!(TensorBuf::new(&[2, 3], values.to_vec()).unwrap_err(), want);
        let bytes: &[u8] = bytemuck::cast_slice(&values);
        let layout = TensorLayout::contiguous(ScalarType::INT, &[4]).unwrap();
        let odd = TensorView::new(layout.clone(), &bytes[1..]).unwrap();
        assert_eq!(odd.clone().typed::<i32>().unwrap_err(), LayoutError::Misaligned(4));
        let want = LayoutError::Element { have: ScalarType::INT, want: ScalarType::FLOAT };
        assert_eq!(odd.typed::<f32>().unwrap_err(), want);
        assert_eq!(TensorBuf::<f32>::with_layout(layout, vec![0.0; 4]).unwrap_err(), want);
    }
}
