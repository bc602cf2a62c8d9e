//! The walk of a reduction: which dimensions stay, which are folded, and the loops over both.
//!
//! Works for every dim order of input and output. Neighbouring dimensions that lie dense are merged, so most reductions
//! become one loop over contiguous rows ("fold each row") or one over contiguous lanes ("fold rows into each other").

use edgepack_executor::kernel::KernelError;
use edgepack_executor::tensor::TensorShape;
use edgepack_format::tensor::{Dims, MAX_RANK};

use edgepack_compute::fold::Fold;

/// Accumulators of neighbouring results, kept on the stack.
const LANES: usize = 64;

/// A loop: how often, and how far it moves in input and output.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
struct Axis {
    size: usize,
    input: usize,
    out: usize,
}

/// Which dimensions of a tensor are folded: one bit each.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Folded(u32);

impl Folded {
    /// All of them.
    pub fn all(rank: usize) -> Self {
        Folded((1 << rank) - 1)
    }

    /// One more; an error if it was named before.
    pub fn with(self, dim: usize) -> Result<Self, KernelError> {
        if self.contains(dim) {
            return Err(KernelError::argument(format!("`dim` names dimension {dim} twice")));
        }
        Ok(Folded(self.0 | 1 << dim))
    }

    /// Whether the dimension is folded.
    pub fn contains(self, dim: usize) -> bool {
        self.0 & 1 << dim != 0
    }

    /// The sizes of the result.
    pub fn result_sizes(self, sizes: &[usize], keepdim: bool) -> Dims {
        let mut result = Dims::new();
        for (dim, &size) in sizes.iter().enumerate() {
            if !self.contains(dim) {
                let _ = result.push(size);
            } else if keepdim {
                let _ = result.push(1);
            }
        }
        result
    }

    /// How many elements are folded into one.
    pub fn count(self, sizes: &[usize]) -> usize {
        sizes.iter().enumerate().filter(|&(dim, _)| self.contains(dim)).map(|(_, &size)| size).product()
    }
}

/// The loops of one reduction.
#[derive(Clone, Debug)]
pub struct Plan {
    kept: Dims<Axis>,
    folded: Dims<Axis>,
}

impl Plan {
    /// The loops from an input to a result that has the sizes [`Folded::result_sizes`] says. With `in_order` the folded
    /// elements are visited in index order, else as they lie in memory.
    pub fn new(input: &TensorShape<'_>, out: &TensorShape<'_>, folded: Folded, in_order: bool) -> Plan {
        let (mut kept, mut fold) = (Dims::new(), Dims::new());
        let keepdim = out.rank() == input.rank();
        let mut own = 0;
        for (dim, (&size, &stride)) in input.sizes.iter().zip(input.strides).enumerate() {
            if folded.contains(dim) {
                let _ = fold.push(Axis { size, input: stride, out: 0 });
                own += usize::from(keepdim);
            } else {
                let out = out.strides.get(own).copied().unwrap_or(1);
                let _ = kept.push(Axis { size, input: stride, out });
                own += 1;
            }
        }
        Plan { kept: merged(kept, true), folded: merged(fold, !in_order) }
    }

    /// Folds, and hands every result with its place in the output to `emit`.
    pub fn run<T: Copy, F: Fold<T>>(&self, input: &[T], fold: &F, mut emit: impl FnMut(usize, F::Acc)) {
        if input.is_empty() {
            each(&self.kept, |_, to, _| emit(to, fold.start()));
            return;
        }
        let rows_are_dense = self.folded.last().is_none_or(|axis| axis.input == 1);
        match self.kept.split_last() {
            Some((lane, outer)) if lane.input == 1 && lane.size > 1 && !rows_are_dense => {
                each(outer, |from, to, _| self.fold_lanes(*lane, &input[from..], to, fold, &mut emit));
            }
            _ => each(&self.kept, |from, to, _| emit(to, self.fold_one(input, from, fold))),
        }
    }

    fn fold_one<T: Copy, F: Fold<T>>(&self, input: &[T], from: usize, fold: &F) -> F::Acc {
        let mut acc = fold.start();
        let Some((inner, outer)) = self.folded.split_last() else {
            fold.add(&mut acc, input[from], 0);
            return acc;
        };
        each(outer, |offset, _, index| {
            let (start, index) = (from + offset, index * inner.size);
            if inner.input == 1 {
                fold.add_row(&mut acc, &input[start..start + inner.size], index);
            } else {
                for i in 0..inner.size {
                    fold.add(&mut acc, input[start + i * inner.input], index + i);
                }
            }
        });
        acc
    }

    fn fold_lanes<T: Copy, F: Fold<T>>(
        &self,
        lane: Axis,
        input: &[T],
        to: usize,
        fold: &F,
        emit: &mut impl FnMut(usize, F::Acc),
    ) {
        for first in (0..lane.size).step_by(LANES) {
            let count = LANES.min(lane.size - first);
            let mut accs = [fold.start(); LANES];
            let accs = &mut accs[..count];
            each(&self.folded, |offset, _, index| {
                let row = &input[first + offset..][..count];
                for (acc, &x) in accs.iter_mut().zip(row) {
                    fold.add(acc, x, index);
                }
            });
            for (i, acc) in accs.iter().enumerate() {
                emit(to + (first + i) * lane.out, *acc);
            }
        }
    }
}

/// Drops loops of one round, sorts by stride if asked, and merges what lies dense.
fn merged(mut axes: Dims<Axis>, sort: bool) -> Dims<Axis> {
    if sort {
        axes.sort_unstable_by_key(|axis| std::cmp::Reverse(axis.input));
    }
    let mut result: Dims<Axis> = Dims::new();
    for &axis in axes.iter().filter(|axis| axis.size != 1) {
        match result.last_mut() {
            Some(outer) if outer.input == axis.input * axis.size && outer.out == axis.out * axis.size => {
                *outer = Axis { size: outer.size * axis.size, ..axis };
            }
            _ => {
                let _ = result.push(axis);
            }
        }
    }
    result
}

/// Calls `f` with the offsets in input and output and the count of calls before; once if there are no loops.
fn each(axes: &[Axis], mut f: impl FnMut(usize, usize, usize)) {
    let total: usize = axes.iter().map(|axis| axis.size).product();
    let mut place = [0usize; MAX_RANK];
    let (mut from, mut to) = (0, 0);
    for count in 0..total {
        f(from, to, count);
        for (axis, place) in axes.iter().zip(&mut place[..axes.len()]).rev() {
            *place += 1;
            from += axis.input;
            to += axis.out;
            if *place < axis.size {
                break;
            }
            from -= axis.input * axis.size;
            to -= axis.out * axis.size;
            *place = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use edgepack_format::scalar::ScalarType;

    fn meta<'a>(sizes: &'a [usize], strides: &'a [usize]) -> TensorShape<'a> {
        TensorShape { dtype: ScalarType::FLOAT, sizes, strides, dim_order: &[] }
    }

    #[test]
    fn dense_dimensions_merge() {
        let folded = Folded::default().with(2).unwrap().with(3).unwrap();
        let plan = Plan::new(&meta(&[2, 3, 4, 5], &[60, 20, 5, 1]), &meta(&[2, 3, 1, 1], &[3, 1, 1, 1]), folded, false);
        assert_eq!(*plan.kept, [Axis { size: 6, input: 20, out: 1 }]);
        assert_eq!(*plan.folded, [Axis { size: 20, input: 1, out: 0 }]);
    }

    #[test]
    fn channels_last_folds_lanes() {
        let folded = Folded::default().with(2).unwrap().with(3).unwrap();
        let plan = Plan::new(&meta(&[2, 3, 4, 5], &[60, 1, 15, 3]), &meta(&[2, 3], &[3, 1]), folded, false);
        assert_eq!(*plan.kept, [Axis { size: 2, input: 60, out: 3 }, Axis { size: 3, input: 1, out: 1 }]);
        assert_eq!(*plan.folded, [Axis { size: 20, input: 3, out: 0 }]);
    }

    #[test]
    fn a_dimension_is_named_once() {
        assert!(Folded::default().with(1).unwrap().with(1).is_err());
        assert_eq!(*Folded::all(2).result_sizes(&[3, 4], true), [1, 1]);
        assert_eq!(Folded::all(2).count(&[3, 4]), 12);
    }
}
