//! Tensors whose element type is a Rust type, and tensors that own their elements.
//!
//! Invariant: the element type of the layout is `T`'s, and the data are as many aligned `T` as the layout asks for, so
//! viewing them as a slice cannot fail. An [`Untyped`] tensor has the bytes of its elements, at any alignment.

use alloc::vec::Vec;
use core::marker::PhantomData;

use bytemuck::Pod;

use super::{Dims, LayoutError, TensorLayout, TensorView};
use crate::room;
use crate::scalar::{Element, ScalarType};

/// The element type of a [`TensorView`] or [`TensorBuf`] that only its layout knows: a byte of such an element.
#[derive(Clone, Copy, PartialEq, Eq, Debug, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
pub struct Untyped(u8);

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
    /// assert_eq!(view.layout().to_string(), "f32[2, 2]");
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
}

impl<T: Element + Pod + PartialEq> PartialEq for TensorView<'_, T> {
    fn eq(&self, other: &Self) -> bool {
        self.layout == other.layout && self.as_slice() == other.as_slice()
    }
}

/// A tensor that owns its elements. `TensorBuf` alone knows its element type at run time only.
#[derive(Clone, PartialEq, Debug)]
pub struct TensorBuf<T = Untyped> {
    layout: TensorLayout,
    elements: Vec<T>,
}

impl<T: Pod> TensorBuf<T> {
    /// Returns the layout of the tensor.
    pub fn layout(&self) -> &TensorLayout {
        &self.layout
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

impl TensorBuf {
    /// A tensor of exactly these bytes, in the memory order of the layout.
    pub fn from_bytes(layout: TensorLayout, data: Vec<u8>) -> Result<Self, LayoutError> {
        let (have, want) = (data.len() as u64, layout.byte_len() as u64);
        match have == want {
            true => Ok(TensorBuf { layout, elements: bytemuck::cast_vec(data) }),
            false => Err(LayoutError::Data { have, want }),
        }
    }

    /// A tensor without dimensions.
    pub fn scalar(scalar_type: ScalarType, data: &[u8]) -> Result<Self, LayoutError> {
        Self::from_bytes(TensorLayout::contiguous(scalar_type, &[])?, data.to_vec())
    }

    /// Its bytes, taken out.
    pub fn into_data(self) -> Vec<u8> {
        bytemuck::cast_vec(self.elements)
    }

    /// The same tensor in another memory order: as [`TensorView::in_order`].
    pub fn in_order(&self, dim_order: &[u8]) -> Result<Self, LayoutError> {
        self.view().in_order(dim_order)
    }

    /// The same tensor with its elements in index order.
    pub fn contiguous(&self) -> Result<Self, LayoutError> {
        let layout = TensorLayout::contiguous(self.layout.scalar_type(), self.layout.sizes())?;
        self.in_order(layout.dim_order())
    }
}

impl TensorView<'_> {
    /// The same tensor in another memory order, copied. Fails if the order is not a permutation of its dimensions, or there
    /// is no memory for the copy.
    pub fn in_order(&self, dim_order: &[u8]) -> Result<TensorBuf, LayoutError> {
        let layout = TensorLayout::new(self.layout.scalar_type(), self.layout.sizes(), dim_order)?;
        let short = |error: room::NoRoom| LayoutError::Memory { bytes: error.bytes };
        if layout == self.layout {
            return TensorBuf::from_bytes(layout, room::copy_of(self.data).map_err(short)?);
        }
        let mut data = room::filled(0u8, layout.byte_len()).map_err(short)?;
        let size = layout.scalar_type().size().unwrap_or(1);
        // Elements are written one after the other; an odometer over the dimensions, in the order of the copy, finds each.
        let strides = self.layout.strides();
        let along = |dim: &u8| {
            let dim = usize::from(*dim);
            let size_and_stride = layout.sizes().get(dim).zip(strides.get(dim));
            size_and_stride.map_or((1, 0), |(&size, &stride)| (size, stride))
        };
        let dims: Vec<(usize, usize)> = dim_order.iter().map(along).collect();
        let mut index = Dims::filled(0usize, dims.len()).unwrap_or_default();
        let mut at = 0usize;
        for element in data.chunks_exact_mut(size) {
            let start = at.saturating_mul(size);
            let source = self.data.get(start..start.saturating_add(size));
            element.copy_from_slice(source.ok_or(LayoutError::Overflow)?);
            for (index, (len, stride)) in index.iter_mut().zip(&dims).rev() {
                *index = index.saturating_add(1);
                at = at.saturating_add(*stride);
                if *index < *len {
                    break;
                }
                at = at.saturating_sub(stride.saturating_mul(*len));
                *index = 0;
            }
        }
        TensorBuf::from_bytes(layout, data)
    }
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

    /// The elements in memory order.
    pub fn as_slice(&self) -> &[T] {
        &self.elements
    }

    /// The elements in memory order, for writing.
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        &mut self.elements
    }
}

/// Checks that the layout is one of these elements.
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

    #[test]
    fn reordering_keeps_the_logical_tensor() {
        let layout = TensorLayout::contiguous(ScalarType::BYTE, &[1, 2, 2, 3]).unwrap();
        let tensor = TensorBuf::from_bytes(layout, (0..12).collect()).unwrap();
        let last = tensor.in_order(&[0, 2, 3, 1]).unwrap();
        assert_eq!(last.data(), [0, 6, 1, 7, 2, 8, 3, 9, 4, 10, 5, 11]);
        assert_eq!(last.contiguous().unwrap(), tensor);
        assert_eq!(last.in_order(&[3, 1, 2, 0]).unwrap().contiguous().unwrap(), tensor);
        assert!(tensor.in_order(&[0, 1, 2]).is_err());
        let empty = TensorBuf::from_bytes(TensorLayout::contiguous(ScalarType::INT, &[2, 0]).unwrap(), vec![]).unwrap();
        assert!(empty.in_order(&[1, 0]).unwrap().data().is_empty());
        let scalar = TensorBuf::scalar(ScalarType::SHORT, &[1, 2]).unwrap();
        assert_eq!(scalar.contiguous().unwrap(), scalar);
        assert!(TensorBuf::scalar(ScalarType::SHORT, &[1]).is_err());
    }
}
