//! The operators that exporters of language models add: attention over a cache, writing the cache, gated recurrences,
//! Hadamard transforms, mixtures of experts.
//!
//! Invariant: an operator that writes a cache has checked everything before it writes; a refused call changes nothing.

mod cache;
mod copies;
mod delta;
mod hadamard;
mod moe;
mod sdpa;
#[cfg(test)]
mod tests;

use edgepack_executor::kernel::{Kernel, KernelError};
use edgepack_executor::tensor::TensorShape;

use crate::check::Shape;

/// The operators of this family.
pub static KERNELS: &[&Kernel] = &[
    &cache::UPDATE,
    &cache::UPDATE_WITH_INDICES,
    &copies::FALLBACK,
    &copies::TILE_CROP,
    &delta::GATED,
    &delta::CHANNELWISE,
    &hadamard::TRANSFORM,
    &moe::FFN,
    &sdpa::CUSTOM,
    &sdpa::QUANTIZED,
    &sdpa::WITH_CACHE,
];

/// The sizes of a tensor of rank `N`.
fn sizes_of<const N: usize>(name: &str, meta: &TensorShape<'_>) -> Result<[usize; N], KernelError> {
    meta.sizes.try_into().map_err(|_| {
        let have = Shape(meta.sizes);
        KernelError::argument(format!("`{name}` is {have}, the operator wants {N} dimensions"))
    })
}

/// Returns an error unless a tensor is stored in memory in the order of its indices.
fn expect_contiguous(name: &str, meta: &TensorShape<'_>) -> Result<(), KernelError> {
    if meta.is_contiguous() {
        return Ok(());
    }
    Err(KernelError::unsupported(format!(
        "`{name}` has dim order {:?}, the operator wants index order",
        meta.dim_order
    )))
}

/// Returns an error unless two shapes are the same where `wanted` says what is needed.
fn expect_sizes(name: &str, have: &[usize], wanted: &[usize], whose: &str) -> Result<(), KernelError> {
    if have == wanted {
        return Ok(());
    }
    Err(KernelError::argument(format!("`{name}` is {}, {whose} asks for {}", Shape(have), Shape(wanted))))
}

/// The scratch memory as numbers of one type, `count` of them.
fn scratch_of<T: bytemuck::Pod>(scratch: &mut [u8], count: usize) -> Result<&mut [T], KernelError> {
    let bytes = scratch.get_mut(..count.saturating_mul(size_of::<T>()));
    let bytes = bytes.ok_or_else(|| KernelError::unsupported("the tensors are larger than at load"))?;
    bytemuck::try_cast_slice_mut(bytes).map_err(|_| KernelError::argument("the scratch memory is not aligned"))
}
