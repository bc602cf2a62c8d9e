//! Scratch memory as elements.

use bytemuck::Pod;
use edgepack_executor::kernel::{KernelError, Views};

/// Returns the scratch memory of a call as elements: as many as fit, of any content.
pub fn elements<'v, T: Pod>(views: &Views<'v>) -> Result<&'v mut [T], KernelError> {
    let bytes = views.scratch()?;
    let whole = bytes.len() / size_of::<T>() * size_of::<T>();
    Ok(bytemuck::cast_slice_mut(&mut bytes[..whole]))
}
