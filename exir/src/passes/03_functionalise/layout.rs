//! Memory layout of tensors, as far as it decides whether PyTorch gives a view or a copy.
//!
//! Sizes that are formulas count with their values at export: an exporter assumes that none of them is 0 or 1, so what is
//! contiguous for one value is for all.

use crate::graph::{MemoryFormat, Size, TensorMeta, channels_last};

/// Sizes and strides in numbers, if every one is known or has a value at export.
pub(super) fn numbers(meta: &TensorMeta) -> Option<(Vec<i64>, Vec<i64>)> {
    let list = |sizes: &[Size]| sizes.iter().map(Size::hint).collect::<Option<Vec<i64>>>();
    Some((list(&meta.sizes)?, list(&meta.strides)?))
}

/// Returns whether a tensor is dense in this order of dimensions, outermost first.
fn is_dense(sizes: &[i64], strides: &[i64], order: impl DoubleEndedIterator<Item = usize>) -> bool {
    let mut step = 1i64;
    order.rev().all(|dim| match (sizes.get(dim), strides.get(dim)) {
        (Some(1), Some(_)) => true,
        (Some(size), Some(stride)) => {
            let fits = *stride == step;
            step = step.saturating_mul(*size);
            fits
        }
        _ => false,
    })
}

/// Returns whether a tensor is contiguous in a memory format; `None` if that is not known.
pub(super) fn is_contiguous(meta: &TensorMeta, format: MemoryFormat) -> Option<bool> {
    let (sizes, strides) = numbers(meta)?;
    let rank = sizes.len();
    if sizes.contains(&0) {
        return Some(format == MemoryFormat::Contiguous || channels_last(rank).is_some());
    }
    match format {
        MemoryFormat::Contiguous => Some(is_dense(&sizes, &strides, 0..rank)),
        MemoryFormat::ChannelsLast | MemoryFormat::ChannelsLast3d => {
            let wanted = if format == MemoryFormat::ChannelsLast { 4 } else { 5 };
            let order = channels_last(rank).filter(|_| rank == wanted);
            Some(order.is_some_and(|order| is_dense(&sizes, &strides, order.into_iter().map(usize::from))))
        }
        MemoryFormat::Preserve => None,
    }
}

/// Returns the dimensions of a dense tensor in their order in memory, outermost first; `None` if it is not dense.
pub(super) fn memory_order(meta: &TensorMeta) -> Option<Vec<i64>> {
    let (sizes, strides) = numbers(meta)?;
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    // Dimensions of one element may have any stride; sorting is stable.
    order.sort_by_key(|dim| std::cmp::Reverse(strides.get(*dim).copied().unwrap_or(0)));
    let dense = is_dense(&sizes, &strides, order.iter().copied());
    dense.then(|| order.into_iter().filter_map(|dim| i64::try_from(dim).ok()).collect())
}

/// Returns whether a tensor can be viewed with other sizes without a copy; `None` if that is not known.
///
/// Dimensions that lie behind one another without a gap form runs. The new sizes must cut each run into pieces, and none
/// may reach over the end of one. Dimensions of one element count for nothing.
pub(super) fn can_be_viewed(meta: &TensorMeta, wanted: &[Size]) -> Option<bool> {
    let (sizes, strides) = numbers(meta)?;
    let wanted: Vec<i64> = wanted.iter().map(Size::hint).collect::<Option<_>>()?;
    if sizes.contains(&0) {
        return Some(true);
    }
    let mut runs: Vec<i64> = Vec::new();
    let mut inner: Option<i64> = None;
    for (size, stride) in sizes.iter().zip(&strides).rev().filter(|(size, _)| **size != 1) {
        match (inner == Some(*stride), runs.last_mut()) {
            (true, Some(run)) => *run = run.saturating_mul(*size),
            _ => runs.push(*size),
        }
        inner = Some(stride.saturating_mul(*size));
    }
    let mut pieces = wanted.into_iter().rev().filter(|size| *size != 1);
    for run in runs {
        let mut covered = 1i64;
        while covered < run {
            match pieces.next() {
                Some(piece) => covered = covered.saturating_mul(piece),
                None => return Some(false),
            }
        }
        if covered != run {
            return Some(false);
        }
    }
    Some(pieces.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use edgepack_format::scalar::ScalarType;

    fn meta(sizes: &[i64], strides: &[i64]) -> TensorMeta {
        let list = |numbers: &[i64]| numbers.iter().copied().map(Size::Known).collect::<Vec<_>>();
        TensorMeta { strides: list(strides), ..TensorMeta::contiguous(ScalarType::FLOAT, &list(sizes)) }
    }

    #[test]
    fn views_and_copies() {
        let viewed = |sizes: &[i64], strides: &[i64], wanted: &[i64]| {
            let wanted: Vec<Size> = wanted.iter().copied().map(Size::Known).collect();
            can_be_viewed(&meta(sizes, strides), &wanted).unwrap()
        };
        assert!(viewed(&[4, 6], &[6, 1], &[24]) && viewed(&[4, 6], &[6, 1], &[2, 2, 3, 2]));
        // Transposed, and with gaps.
        assert!(!viewed(&[6, 4], &[1, 6], &[24]) && viewed(&[6, 4], &[1, 6], &[3, 2, 4]));
        assert!(!viewed(&[4, 2], &[6, 1], &[8]) && viewed(&[4, 2], &[6, 1], &[2, 2, 1, 2]));
        // One row of a transposed tensor, dimensions of one element, nothing at all.
        assert!(viewed(&[1, 4], &[1, 6], &[4]) && viewed(&[4, 1, 3], &[3, 99, 1], &[12]));
        assert!(viewed(&[0, 3], &[3, 1], &[0]) && viewed(&[], &[], &[1, 1]));
        // Repeated elements lie in no run.
        assert!(!viewed(&[2, 3], &[0, 1], &[6]) && viewed(&[2, 3], &[0, 1], &[2, 3, 1]));
    }

    #[test]
    fn orders_in_memory() {
        assert_eq!(memory_order(&meta(&[2, 3], &[1, 2])), Some(vec![1, 0]));
        assert_eq!(memory_order(&meta(&[2, 3], &[6, 1])), None);
        assert_eq!(is_contiguous(&meta(&[2, 3], &[3, 1]), MemoryFormat::Contiguous), Some(true));
        let image = meta(&[2, 3, 4, 5], &[60, 1, 15, 3]);
        assert_eq!(is_contiguous(&image, MemoryFormat::ChannelsLast), Some(true));
        assert_eq!(is_contiguous(&image, MemoryFormat::Contiguous), Some(false));
    }
}
