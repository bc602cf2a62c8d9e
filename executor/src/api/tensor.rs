//! Tensors as kernels see them: shape, element type and bytes, borrowed for one call.

pub use edgepack_compute::element::{PodElement, Scalar, storage_type};
use edgepack_compute::layout::Layout;
use edgepack_format::scalar::{Bool, ScalarType};
use edgepack_format::tensor::{is_channels_last, is_contiguous};
use half::{bf16, f16};

use crate::api::error::KernelError;

/// The shape and element type shared by both kinds of views.
#[derive(Clone, Copy, Debug)]
pub struct TensorShape<'a> {
    /// Element type.
    pub dtype: ScalarType,
    /// Elements along each dimension.
    pub sizes: &'a [usize],
    /// Elements between neighbours along each dimension.
    pub strides: &'a [usize],
    /// Dimensions from outermost to innermost in memory.
    pub dim_order: &'a [u8],
}

impl<'a> TensorShape<'a> {
    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        self.sizes.len()
    }

    /// Number of elements.
    #[inline]
    pub fn element_count(&self) -> usize {
        // Sizes are checked whenever a tensor gets some, zeros or not.
        self.sizes.iter().product()
    }

    /// Number of bytes.
    pub fn byte_len(&self) -> usize {
        self.element_count() * self.dtype.size().unwrap_or(0)
    }

    /// Returns whether the elements are stored in index order.
    pub fn is_contiguous(&self) -> bool {
        is_contiguous(self.dim_order)
    }

    /// Returns whether a rank 4 or 5 tensor is stored channels-last.
    pub fn is_channels_last(&self) -> bool {
        is_channels_last(self.dim_order)
    }
}

impl<'a> From<&TensorShape<'a>> for Layout<'a> {
    fn from(meta: &TensorShape<'a>) -> Self {
        Layout { sizes: meta.sizes, strides: meta.strides, dim_order: meta.dim_order }
    }
}

impl<'a> From<&TensorRef<'a>> for Layout<'a> {
    fn from(tensor: &TensorRef<'a>) -> Self {
        Layout::from(&tensor.meta)
    }
}

/// A tensor to read.
#[derive(Clone, Copy, Debug)]
pub struct TensorRef<'a> {
    meta: TensorShape<'a>,
    data: &'a [u8],
    in_place: bool,
}

/// A tensor to write.
#[derive(Debug)]
pub struct TensorMut<'a> {
    meta: TensorShape<'a>,
    data: &'a mut [u8],
}

impl<'a> std::ops::Deref for TensorRef<'a> {
    type Target = TensorShape<'a>;
    fn deref(&self) -> &Self::Target {
        &self.meta
    }
}

impl<'a> std::ops::Deref for TensorMut<'a> {
    type Target = TensorShape<'a>;
    fn deref(&self) -> &Self::Target {
        &self.meta
    }
}

impl<'a> TensorRef<'a> {
    /// Shape and bytes; the bytes are those of the elements, no more.
    pub fn new(meta: TensorShape<'a>, data: &'a [u8]) -> Self {
        TensorRef { meta, data, in_place: false }
    }

    /// An input whose bytes are those of an output: it has none of its own.
    pub(crate) fn in_place(meta: TensorShape<'a>) -> Self {
        TensorRef { meta, data: &[], in_place: true }
    }

    /// Returns whether the bytes are to be found in the output (see [`Alias::SameRange`](crate::api::kernel::Alias)).
    pub fn is_in_place(&self) -> bool {
        self.in_place
    }

    /// Shape and element type.
    pub fn meta(&self) -> TensorShape<'a> {
        self.meta
    }

    /// The bytes in memory order.
    pub fn bytes(&self) -> &'a [u8] {
        self.data
    }

    /// The elements in memory order.
    #[inline]
    pub fn as_slice<T: PodElement>(&self) -> Result<&'a [T], KernelError> {
        expect_dtype::<T>(self.dtype)?;
        bytemuck::try_cast_slice(self.data).map_err(|_| misaligned(self.dtype))
    }
}

impl<'a> TensorMut<'a> {
    /// Shape and bytes; the bytes are those of the elements, no more.
    pub fn new(meta: TensorShape<'a>, data: &'a mut [u8]) -> Self {
        TensorMut { meta, data }
    }

    /// Shape and element type.
    pub fn meta(&self) -> TensorShape<'a> {
        self.meta
    }

    /// The bytes in memory order, for writing.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.data
    }

    /// The bytes in memory order, as they are so far.
    pub fn bytes(&self) -> &[u8] {
        self.data
    }

    /// The elements in memory order, for writing.
    #[inline]
    pub fn as_mut_slice<T: PodElement>(&mut self) -> Result<&mut [T], KernelError> {
        expect_dtype::<T>(self.meta.dtype)?;
        bytemuck::try_cast_slice_mut(self.data).map_err(|_| misaligned(self.meta.dtype))
    }

    /// The elements in memory order, as they are so far.
    #[inline]
    pub fn as_slice<T: PodElement>(&self) -> Result<&[T], KernelError> {
        expect_dtype::<T>(self.meta.dtype)?;
        bytemuck::try_cast_slice(self.data).map_err(|_| misaligned(self.meta.dtype))
    }

    /// The elements in memory order, for the whole borrow.
    pub fn into_slice<T: PodElement>(self) -> Result<&'a mut [T], KernelError> {
        expect_dtype::<T>(self.meta.dtype)?;
        bytemuck::try_cast_slice_mut(self.data).map_err(|_| misaligned(self.meta.dtype))
    }
}

#[cold]
fn misaligned(dtype: ScalarType) -> KernelError {
    KernelError::argument(format!("the data of a tensor of {dtype} are not aligned to its element"))
}

#[inline]
fn expect_dtype<T: PodElement>(dtype: ScalarType) -> Result<(), KernelError> {
    // The quantised types are stored as the plain integers of their width.
    if dtype == T::SCALAR_TYPE || storage_type(dtype) == T::SCALAR_TYPE {
        return Ok(());
    }
    Err(KernelError::argument(format!("a tensor of {} is needed, this one is {dtype}", T::SCALAR_TYPE)))
}

/// Calls a generic function with the Rust type of an element type: the thirteen numeric ones and BOOL.
///
/// ```
/// use edgepack_executor::with_element;
/// use edgepack_format::scalar::ScalarType;
/// let size = with_element!(ScalarType::SHORT, T => size_of::<T>(), else => 0);
/// assert_eq!(size, 2);
/// ```
#[macro_export]
macro_rules! with_element {
    ($dtype:expr, $T:ident => $body:expr, else => $other:expr) => {{
        use $crate::tensor::elements::*;
        match $crate::tensor::storage_type($dtype) {
            Scalars::BYTE => {
                type $T = u8;
                $body
            }
            Scalars::CHAR => {
                type $T = i8;
                $body
            }
            Scalars::SHORT => {
                type $T = i16;
                $body
            }
            Scalars::INT => {
                type $T = i32;
                $body
            }
            Scalars::LONG => {
                type $T = i64;
                $body
            }
            Scalars::HALF => {
                type $T = F16;
                $body
            }
            Scalars::FLOAT => {
                type $T = f32;
                $body
            }
            Scalars::DOUBLE => {
                type $T = f64;
                $body
            }
            Scalars::BOOL => {
                type $T = BoolByte;
                $body
            }
            Scalars::BFLOAT16 => {
                type $T = BF16;
                $body
            }
            Scalars::UINT16 => {
                type $T = u16;
                $body
            }
            Scalars::UINT32 => {
                type $T = u32;
                $body
            }
            Scalars::UINT64 => {
                type $T = u64;
                $body
            }
            _ => $other,
        }
    }};
}

/// Names the macro [`with_element`] needs.
#[doc(hidden)]
pub mod elements {
    pub use super::{BF16, BoolByte, F16, Scalars};
}
#[doc(hidden)]
pub type Scalars = ScalarType;
#[doc(hidden)]
pub type F16 = f16;
#[doc(hidden)]
pub type BF16 = bf16;
#[doc(hidden)]
pub type BoolByte = Bool;
