//! The same bytes in other sizes. Where input and output are at one place nothing moves.

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

fn relabel(cx: &mut KernelContext<'_>, sizes: &[usize]) -> Result<(), KernelError> {
    cx.resize(1, sizes)?;
    let views = cx.views();
    let (from, mut to) = (views.tensor(0)?, views.out(1)?);
    if !from.is_in_place() {
        let bytes = from.bytes();
        to.bytes()
            .get_mut(..bytes.len())
            .ok_or_else(|| KernelError::new(ErrorCode::Internal, "other bytes"))?
            .copy_from_slice(bytes);
    }
    Ok(())
}
