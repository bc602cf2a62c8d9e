//! Tensors as images of one, two or three spatial dimensions, and lists of numbers along these, for pooling,
//! convolution and resizing.

use edgepack_compute::spatial::Images;
use edgepack_executor::kernel::KernelError;
use edgepack_executor::tensor::TensorShape;
use edgepack_format::tensor::Dims;

use crate::check::Shape;
use crate::instruction::Instruction;

/// Numbers that sizes are made of stay below this, so that their products do not overflow.
pub const MOST: i64 = 1 << 31;

/// A tensor, for messages `name`, of `rank` spatial dimensions after channels and, if it is there, the batch.
pub fn images(name: &str, meta: &TensorShape<'_>, rank: usize) -> Result<Images, KernelError> {
    let (leading, spatial) = match meta.rank().checked_sub(rank) {
        Some(leading @ (1 | 2)) => (leading, leading..meta.rank()),
        _ => {
            return Err(KernelError::argument(format!(
                "`{name}` is {}, the operator wants {rank} spatial dimensions after channels",
                Shape(meta.sizes)
            )));
        }
    };
    let mut images = Images {
        batch: (1, 0),
        channels: (meta.sizes[leading - 1], meta.strides[leading - 1]),
        sizes: [1; 3],
        strides: [0; 3],
    };
    if leading == 2 {
        images.batch = (meta.sizes[0], meta.strides[0]);
    }
    images.sizes[3 - rank..].copy_from_slice(&meta.sizes[spatial.clone()]);
    images.strides[3 - rank..].copy_from_slice(&meta.strides[spatial]);
    Ok(images)
}

/// The sizes of a tensor with the channels and the last `rank` sizes replaced.
pub fn resized(meta: &TensorShape<'_>, rank: usize, channels: usize, sizes: [usize; 3]) -> Dims {
    let mut result = Dims::from_slice(meta.sizes).unwrap_or_default();
    let first = result.len().saturating_sub(rank);
    result[first..].copy_from_slice(&sizes[3 - rank..]);
    if let Some(size) = first.checked_sub(1).and_then(|dim| result.get_mut(dim)) {
        *size = channels;
    }
    result
}

/// An argument with one number for all spatial dimensions or one for each; `None` if the list is empty. Dimensions that
/// are missing get `filler`.
pub fn numbers(
    cx: &impl Instruction,
    arg: usize,
    name: &str,
    rank: usize,
    least: usize,
    filler: usize,
) -> Result<Option<[usize; 3]>, KernelError> {
    let (count, items) = cx.ints(arg)?;
    if count == 0 {
        return Ok(None);
    }
    if count != 1 && count != rank {
        return Err(KernelError::argument(format!("`{name}` has {count} numbers for {rank} dimensions")));
    }
    let mut result = [filler; 3];
    for (index, slot) in result[3 - rank..].iter_mut().enumerate() {
        let value = items[if count == 1 { 0 } else { index }];
        if !(least as i64..MOST).contains(&value) {
            return Err(KernelError::argument(format!("`{name}` holds {value}, the least possible is {least}")));
        }
        *slot = value as usize;
    }
    Ok(Some(result))
}

/// [`numbers`] of a list that may not be empty.
pub fn required(
    cx: &impl Instruction,
    arg: usize,
    name: &str,
    rank: usize,
    least: usize,
    filler: usize,
) -> Result<[usize; 3], KernelError> {
    numbers(cx, arg, name, rank, least, filler)?
        .ok_or_else(|| KernelError::argument(format!("`{name}` is empty, the operator wants {rank} numbers")))
}
