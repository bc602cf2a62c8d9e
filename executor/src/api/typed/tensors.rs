//! Tensors whose element type is a Rust type, as kernels see them.
//!
//! Invariant: the bytes were viewed as elements when the value was made, so the slices are there without a check.

use std::marker::PhantomData;
use std::ops::Deref;

use crate::api::error::KernelError;
use crate::api::kernel::Views;
use crate::api::tensor::{PodElement, TensorRef, TensorShape};

/// A tensor to read.
#[derive(Clone, Copy, Debug)]
pub struct Tensor<'a, T> {
    meta: TensorShape<'a>,
    elements: &'a [T],
}

/// A tensor to write. It has its sizes already.
#[derive(Debug)]
pub struct TensorMut<'a, T> {
    meta: TensorShape<'a>,
    elements: &'a mut [T],
}

impl<'a, T: PodElement> Tensor<'a, T> {
    /// The elements of a tensor that are `T`.
    pub fn new(tensor: TensorRef<'a>) -> Result<Self, KernelError> {
        Ok(Tensor { meta: tensor.meta(), elements: tensor.as_slice()? })
    }
}

impl<'a, T> Tensor<'a, T> {
    /// Shape and element type.
    pub fn meta(&self) -> TensorShape<'a> {
        self.meta
    }

    /// The elements in memory order.
    #[inline]
    pub fn as_slice(&self) -> &'a [T] {
        self.elements
    }
}

impl<'a, T: PodElement> TensorMut<'a, T> {
    /// The elements of a tensor that are `T`.
    pub fn new(tensor: crate::api::tensor::TensorMut<'a>) -> Result<Self, KernelError> {
        Ok(TensorMut { meta: tensor.meta(), elements: tensor.into_slice()? })
    }
}

impl<'a, T> TensorMut<'a, T> {
    /// Shape and element type.
    pub fn meta(&self) -> TensorShape<'a> {
        self.meta
    }

    /// The elements in memory order.
    #[inline]
    pub fn as_slice(&self) -> &[T] {
        self.elements
    }

    /// The elements in memory order, for writing.
    #[inline]
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        self.elements
    }
}

impl<'a, T> Deref for Tensor<'a, T> {
    type Target = TensorShape<'a>;
    fn deref(&self) -> &Self::Target {
        &self.meta
    }
}

impl<'a, T> Deref for TensorMut<'a, T> {
    type Target = TensorShape<'a>;
    fn deref(&self) -> &Self::Target {
        &self.meta
    }
}

/// A list of tensors to read.
#[derive(Clone, Copy)]
pub struct TensorList<'v, T> {
    views: &'v Views<'v>,
    arg: usize,
    len: usize,
    element: PhantomData<T>,
}

impl<'v, T: PodElement> TensorList<'v, T> {
    pub(super) fn new(views: &'v Views<'v>, arg: usize) -> Result<Self, KernelError> {
        Ok(TensorList { views, arg, len: views.context().list_len(arg)?, element: PhantomData })
    }

    /// Number of items.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no items.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Item `index`; `None` for a missing one.
    pub fn item(&self, index: usize) -> Result<Option<Tensor<'v, T>>, KernelError> {
        self.views.item(self.arg, index)?.map(Tensor::new).transpose()
    }
}
