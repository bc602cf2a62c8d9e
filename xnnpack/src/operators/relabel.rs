//! Tensors whose bytes are the same in other sizes. Where input and output are at one place nothing moves.

use std::sync::Arc;

use edgepack_executor::kernel::{Alias, KernelContext, KernelError, Operator, Run};
use edgepack_format::finding::ErrorCode;
use edgepack_format::tensor::Dims;

use super::own;

const SCHEMA: &str = "(Tensor x, *, Tensor(a!) out) -> Tensor(a!)";

/// Dimension `i` of the result is dimension `order[i]` of the input. Both are in the same order in memory.
pub(crate) fn permuted(order: Vec<usize>) -> Arc<dyn Operator> {
    own("xnnpack::permuted.out", SCHEMA, Alias::SameRange, move |_| {
        let order = order.clone();
        Ok(Box::new(move |cx: &mut KernelContext<'_>| {
            // A number of a program is a list of one to a payload.
            let sizes: Dims = Dims::from_slice(cx.meta(0)?.sizes).unwrap_or_default();
            let new: Option<Dims> = match (order.len(), sizes.len()) {
                (0, 0) => Dims::from_slice(&[1]),
                (0, 1) => Dims::from_slice(&[]),
                _ => Dims::collect(order.iter().map(|dim| sizes.get(*dim).copied().unwrap_or(0))),
            };
            relabel(cx, &new.unwrap_or_default())
        }) as Box<dyn Run>)
    })
}

/// Other dimensions of the same elements. One of 0 is what is left.
pub(crate) fn reshaped(new: Vec<u32>) -> Arc<dyn Operator> {
    own("xnnpack::reshaped.out", SCHEMA, Alias::SameRange, move |_| {
        let new = new.clone();
        Ok(Box::new(move |cx: &mut KernelContext<'_>| {
            let elements = cx.meta(0)?.element_count();
            let known: usize = new.iter().filter(|dim| **dim != 0).map(|dim| *dim as usize).product();
            let left = elements.checked_div(known).unwrap_or(0);
            let sizes = new.iter().map(|dim| if *dim == 0 { left } else { *dim as usize });
            let sizes: Dims = Dims::collect(sizes).unwrap_or_default();
            if sizes.iter().product::<usize>() != elements {
                let message = format!("{elements} elements cannot be {:?}", &sizes[..]);
                return Err(KernelError::new(ErrorCode::InvalidArgument, message));
            }
            relabel(cx, &sizes)
        }) as Box<dyn Run>)
    })
}

/// All batches of matrices as one.
pub(crate) fn batched() -> Arc<dyn Operator> {
    own("xnnpack::batched.out", SCHEMA, Alias::SameRange, |_| {
        Ok(Box::new(|cx: &mut KernelContext<'_>| {
            let Some((batches, [rows, columns])) = cx.meta(0)?.sizes.split_last_chunk::<2>() else {
                return Err(KernelError::new(ErrorCode::InvalidArgument, "a matrix has two dimensions"));
            };
            let sizes = [batches.iter().product(), *rows, *columns];
            relabel(cx, &sizes)
        }) as Box<dyn Run>)
    })
}

/// Matrices in batches as those of another value are.
pub(crate) fn unbatched() -> Arc<dyn Operator> {
    let schema = "(Tensor like, Tensor x, *, Tensor(a!) out) -> Tensor(a!)";
    own("xnnpack::unbatched.out", schema, Alias::Disjoint, |_| {
        Ok(Box::new(|cx: &mut KernelContext<'_>| {
            let (like, of) = (cx.meta(0)?.sizes, cx.meta(1)?.sizes);
            let batches = &like[..like.len().saturating_sub(2)];
            let sizes = batches.iter().chain(of.iter().skip(1)).copied();
            let sizes: Dims = Dims::collect(sizes).unwrap_or_default();
            cx.resize(2, &sizes)?;
            let views = cx.views();
            let (from, mut to) = (views.tensor(1)?, views.out(2)?);
            match to.bytes_mut() {
                to if to.len() == from.bytes().len() => to.copy_from_slice(from.bytes()),
                _ => return Err(KernelError::new(ErrorCode::InvalidArgument, "other batches")),
            }
            Ok(())
        }) as Box<dyn Run>)
    })
}

fn relabel(cx: &mut KernelContext<'_>, sizes: &[usize]) -> Result<(), KernelError> {
    cx.resize(1, sizes)?;
    let views = cx.views();
    let (from, mut to) = (views.tensor(0)?, views.out(1)?);
    if !from.is_in_place() {
        let bytes = from.bytes();
        to.bytes_mut()
            .get_mut(..bytes.len())
            .ok_or_else(|| KernelError::new(ErrorCode::Internal, "other bytes"))?
            .copy_from_slice(bytes);
    }
    Ok(())
}
