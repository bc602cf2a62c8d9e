//! Shapes of tensors: sizes, dim orders, strides, byte counts, with every product checked.
//!
//! A dim order lists the dimensions from outermost to innermost in memory: `[0, 1, 2, 3]` is contiguous,
//! `[0, 2, 3, 1]` is channels-last. Strides always follow from sizes and dim order; they are never stored in a file.

use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};

use crate::notation::TensorType;
use crate::scalar::{Element, ScalarType};

#[cfg(feature = "ndarray")]
mod ndarray;
#[cfg(feature = "safetensors")]
pub mod safetensors;
mod typed;

pub use typed::{TensorBuf, Untyped};

/// The most dimensions a tensor may have.
pub const MAX_RANK: usize = 16;

/// Up to [`MAX_RANK`] numbers without an allocation: sizes, strides, indices.
#[derive(Clone, Copy)]
pub struct Dims<T = usize> {
    items: [T; MAX_RANK],
    len: u8,
}

impl<T: Copy + Default> Dims<T> {
    /// No dimensions.
    pub fn new() -> Self {
        Dims { items: [T::default(); MAX_RANK], len: 0 }
    }

    /// The same number `len` times; `None` beyond [`MAX_RANK`].
    pub fn filled(value: T, len: usize) -> Option<Self> {
        (len <= MAX_RANK).then_some(Dims { items: [value; MAX_RANK], len: len as u8 })
    }

    /// Copies a slice; `None` beyond [`MAX_RANK`].
    pub fn from_slice(slice: &[T]) -> Option<Self> {
        Self::collect(slice.iter().copied())
    }

    /// Collects an iterator; `None` beyond [`MAX_RANK`].
    pub fn collect(items: impl IntoIterator<Item = T>) -> Option<Self> {
        let mut dims = Self::new();
        for item in items {
            dims.push(item)?;
        }
        Some(dims)
    }

    /// Appends one number; `None` when full.
    pub fn push(&mut self, value: T) -> Option<()> {
        *self.items.get_mut(self.len as usize)? = value;
        self.len = self.len.saturating_add(1);
        Some(())
    }
}

impl<T: Copy + Default> Default for Dims<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Deref for Dims<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        // `len` never exceeds the array.
        self.items.split_at_checked(self.len as usize).map_or(&[], |(head, _)| head)
    }
}

impl<T> DerefMut for Dims<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        self.items.split_at_mut_checked(self.len as usize).map_or(&mut [], |(head, _)| head)
    }
}

impl<T: PartialEq> PartialEq for Dims<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: Eq> Eq for Dims<T> {}

impl<T: fmt::Debug> fmt::Debug for Dims<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// Reason sizes, dim order and element type do not describe a tensor.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LayoutError {
    /// The number names no element type.
    #[error("{0} is not an element type")]
    ScalarType(ScalarType),
    /// Too many dimensions.
    #[error("{0} dimensions, at most {MAX_RANK} are possible")]
    Rank(usize),
    /// Sizes and dim order differ in length.
    #[error("{sizes} sizes, but dim_order has {dim_order}")]
    DimOrderLength {
        /// Number of sizes.
        sizes: usize,
        /// Number of entries in the dim order.
        dim_order: usize,
    },
    /// The dim order is not a permutation.
    #[error("dim_order is not a permutation of 0..{0}")]
    DimOrder(usize),
    /// A size is negative.
    #[error("size {size} in dimension {dim}")]
    NegativeSize {
        /// Index of the dimension.
        dim: usize,
        /// Size found there.
        size: i64,
    },
    /// The element or byte count does not fit a signed 64-bit number (or the address space).
    #[error("the byte count overflows")]
    Overflow,
    /// The data are shorter than the layout says.
    #[error("{have} bytes of data for a tensor of {want}")]
    Data {
        /// Bytes there are.
        have: u64,
        /// Bytes there should be.
        want: u64,
    },
    /// The elements are of another type than a typed view has.
    #[error("elements of type {have} cannot be viewed as {want}")]
    Element {
        /// The tensor's.
        have: ScalarType,
        /// The view's.
        want: ScalarType,
    },
    /// Memory for a copy is not there.
    #[error("there is no memory for {bytes} bytes")]
    Memory {
        /// Bytes of the copy.
        bytes: u64,
    },
    /// The elements are not next to each other in the order that is wanted.
    #[error("the elements are not next to each other in memory")]
    Strides,
    /// The data start at an address that elements of this type cannot have.
    #[error("the data are not aligned to {0} bytes")]
    Misaligned(usize),
}

/// Element count, or `None` on overflow. Rank 0 has one element.
#[inline]
pub fn element_count(sizes: &[usize]) -> Option<usize> {
    byte_count(sizes, 1)
}

/// Byte count of elements of so many bytes, or `None` on overflow.
///
/// Zeros do not hide an overflow: `[0, 2^40, 2^40]` has no elements, but its strides overflow. So wherever sizes were
/// accepted no stride, and no product of some of them, is too large for a signed number.
#[inline]
pub fn byte_count(sizes: &[usize], element: usize) -> Option<usize> {
    let product = sizes.iter().try_fold(element, |product, &size| product.checked_mul(size.max(1)));
    let spread = product.filter(|&product| product <= isize::MAX as usize)?;
    Some(if sizes.contains(&0) { 0 } else { spread })
}

/// Returns whether `dim_order` is a permutation of `0..rank`.
#[inline]
pub fn is_permutation(dim_order: &[u8], rank: usize) -> bool {
    if dim_order.len() != rank || rank > MAX_RANK {
        return false;
    }
    let seen = dim_order.iter().fold(0u32, |seen, &dim| seen | 1u32.checked_shl(u32::from(dim)).unwrap_or(0));
    seen == 1u32.checked_shl(rank as u32).unwrap_or(0).wrapping_sub(1)
}

/// Writes the strides, in elements, that sizes and dim order imply. Zero-sized dimensions count as one.
///
/// The three slices have one length and the dim order is a permutation; entries outside are ignored. Products
/// saturate, which only sizes can notice whose [`element_count`] overflows.
#[inline]
pub fn write_strides(sizes: &[usize], dim_order: &[u8], strides: &mut [usize]) {
    let mut stride = 1usize;
    for &dim in dim_order.iter().rev() {
        let (Some(out), Some(&size)) = (strides.get_mut(dim as usize), sizes.get(dim as usize)) else { continue };
        *out = stride;
        stride = stride.saturating_mul(size.max(1));
    }
}

/// The identity: `0, 1, …, rank - 1`.
pub fn is_contiguous(dim_order: &[u8]) -> bool {
    dim_order.iter().enumerate().all(|(index, &dim)| index == dim as usize)
}

/// Channels-last, for rank 4 and 5.
pub fn is_channels_last(dim_order: &[u8]) -> bool {
    matches!(dim_order, [0, 2, 3, 1] | [0, 2, 3, 4, 1])
}

/// Layout of a tensor without its data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TensorLayout {
    scalar_type: ScalarType,
    sizes: Dims,
    dim_order: Dims<u8>,
    bytes: usize,
}

impl TensorLayout {
    /// A layout whose byte count fits the address space.
    pub fn new(scalar_type: ScalarType, sizes: &[usize], dim_order: &[u8]) -> Result<Self, LayoutError> {
        let element = scalar_type.size().ok_or(LayoutError::ScalarType(scalar_type))?;
        let known = Dims::from_slice(sizes).ok_or(LayoutError::Rank(sizes.len()))?;
        if sizes.len() != dim_order.len() {
            return Err(LayoutError::DimOrderLength { sizes: sizes.len(), dim_order: dim_order.len() });
        }
        let order = Dims::from_slice(dim_order).filter(|order| is_permutation(order, sizes.len()));
        let dim_order = order.ok_or(LayoutError::DimOrder(sizes.len()))?;
        let bytes = byte_count(sizes, element).ok_or(LayoutError::Overflow)?;
        Ok(TensorLayout { scalar_type, sizes: known, dim_order, bytes })
    }

    /// A contiguous layout.
    pub fn contiguous(scalar_type: ScalarType, sizes: &[usize]) -> Result<Self, LayoutError> {
        let order: Dims<u8> = Dims::collect(0..sizes.len() as u8).ok_or(LayoutError::Rank(sizes.len()))?;
        Self::new(scalar_type, sizes, &order)
    }

    /// A layout from the signed sizes of a file.
    pub fn from_wire(
        scalar_type: ScalarType,
        sizes: impl IntoIterator<Item = i32>,
        dim_order: &[u8],
    ) -> Result<Self, LayoutError> {
        let mut list = Vec::new();
        for (dim, size) in sizes.into_iter().enumerate() {
            list.push(usize::try_from(size).map_err(|_| LayoutError::NegativeSize { dim, size: i64::from(size) })?);
        }
        Self::new(scalar_type, &list, dim_order)
    }

    /// The element type.
    pub fn scalar_type(&self) -> ScalarType {
        self.scalar_type
    }

    /// Elements along each dimension.
    pub fn sizes(&self) -> &[usize] {
        &self.sizes
    }

    /// Dimensions from outermost to innermost in memory.
    pub fn dim_order(&self) -> &[u8] {
        &self.dim_order
    }

    /// Elements between neighbours along each dimension.
    pub fn strides(&self) -> Dims {
        let mut strides = Dims::filled(0, self.sizes.len()).unwrap_or_default();
        write_strides(&self.sizes, &self.dim_order, &mut strides);
        strides
    }

    /// Number of elements.
    pub fn element_count(&self) -> usize {
        // Known not to overflow since construction.
        self.sizes.iter().product()
    }

    /// Number of bytes.
    pub fn byte_len(&self) -> usize {
        self.bytes
    }
}

impl fmt::Display for TensorLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        TensorType { element: self.scalar_type, sizes: &self.sizes, dim_order: &self.dim_order }.fmt(f)
    }
}

/// A tensor whose data are somewhere else: a layout and at least as many bytes as it asks for.
///
/// `TensorView<'a, f32>` knows its element type as well: its data are a slice of it.
#[derive(Clone, Debug)]
pub struct TensorView<'a, T = Untyped> {
    layout: TensorLayout,
    data: &'a [u8],
    element: PhantomData<T>,
}

impl<'a> TensorView<'a> {
    /// A view of `data`, which may be longer than needed.
    pub fn new(layout: TensorLayout, data: &'a [u8]) -> Result<Self, LayoutError> {
        match data.get(..layout.byte_len()) {
            Some(data) => Ok(TensorView { layout, data, element: PhantomData }),
            None => Err(LayoutError::Data { have: data.len() as u64, want: layout.byte_len() as u64 }),
        }
    }

    /// A contiguous view over the raw bytes of elements of type `T`.
    pub fn of<T: Element>(sizes: &[usize], data: &'a [u8]) -> Result<Self, LayoutError> {
        Self::new(TensorLayout::contiguous(T::SCALAR_TYPE, sizes)?, data)
    }
}

impl<'a, T> TensorView<'a, T> {
    /// The same tensor, of which the element type is known at run time only.
    pub fn untyped(&self) -> TensorView<'a> {
        TensorView { layout: self.layout.clone(), data: self.data, element: PhantomData }
    }

    /// Returns the layout of the tensor.
    pub fn layout(&self) -> &TensorLayout {
        &self.layout
    }

    /// Exactly the bytes of its elements, in memory order.
    pub fn data(&self) -> &'a [u8] {
        self.data
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strides(sizes: &[usize], order: &[u8]) -> Vec<usize> {
        TensorLayout::new(ScalarType::BYTE, sizes, order).unwrap().strides().to_vec()
    }

    #[test]
    fn strides_follow_dim_order() {
        assert_eq!(strides(&[2, 5, 7], &[0, 2, 1]), [35, 1, 5]);
        assert_eq!(strides(&[2, 5, 7, 8], &[0, 2, 3, 1]), [280, 1, 40, 5]);
        assert_eq!(strides(&[2, 5, 7, 8], &[3, 1, 2, 0]), [1, 14, 2, 70]);
        assert_eq!(strides(&[2, 5, 7, 8, 9], &[4, 2, 0, 3, 1]), [40, 1, 80, 5, 560]);
        assert_eq!(strides(&[2, 0, 5], &[0, 1, 2]), [5, 5, 1]);
        assert_eq!(strides(&[0, 2, 5], &[0, 1, 2]), [10, 5, 1]);
        assert_eq!(strides(&[], &[]), [0usize; 0]);
    }

    #[test]
    fn only_permutations_are_dim_orders() {
        assert!(is_permutation(&[2, 0, 1], 3));
        for bad in [&[0u8, 0, 1][..], &[0, 1, 3], &[0, 1], &[0, 1, 2, 3], &[255, 1, 0]] {
            assert!(!is_permutation(bad, 3), "{bad:?}");
        }
        assert!(is_permutation(&core::array::from_fn::<u8, 16, _>(|i| i as u8), 16));
        assert!(!is_permutation(&[0; 17], 17));
    }

    #[test]
    fn overflow_is_an_error() {
        let huge = TensorLayout::contiguous(ScalarType::DOUBLE, &[1 << 31, 1 << 31]);
        assert_eq!(huge, Err(LayoutError::Overflow));
        assert_eq!(element_count(&[1 << 40, 1 << 40, 0]), None);
        assert_eq!(element_count(&[0, 1 << 40, 1 << 40]), None);
        assert_eq!(element_count(&[0, 1 << 40]), Some(0));
        assert_eq!(TensorLayout::contiguous(ScalarType::DOUBLE, &[0, 1 << 60]), Err(LayoutError::Overflow));
    }

    #[test]
    fn a_view_needs_its_bytes() {
        let layout = TensorLayout::contiguous(ScalarType::FLOAT, &[2, 2]).unwrap();
        assert_eq!(TensorView::new(layout.clone(), &[0; 20]).unwrap().data().len(), 16);
        assert_eq!(TensorView::new(layout, &[0; 15]).unwrap_err(), LayoutError::Data { have: 15, want: 16 });
    }
}
