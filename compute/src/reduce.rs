//! Reductions: which dimensions of a dense tensor stay, which are folded, and the loops over both.
//!
//! They hold for every dim order of input and output. Neighbouring dimensions that are stored densely are merged, so
//! most reductions become one loop over contiguous rows ("fold each row") or one over contiguous lanes ("fold rows into
//! each other"). An operation on elements is a [`Fold`].

use edgepack_format::tensor::{Dims, MAX_RANK};

use crate::error::{Error, expect_elements};
use crate::fold::{Fold, Place, Sum};
use crate::lanes::{InBlocks, LANES, in_blocks};
use crate::layout::{Layout, reach};
use crate::simd::{Loop, run_wide};
use crate::threads::{Cost, for_each_piece_at};

/// Nanoseconds of an addition of numbers in single precision to sums in double precision, about.
const ADDITION: f64 = 0.17;
/// Nanoseconds of an addition of numbers that follow each other, about.
const ROW: f64 = 0.03;
/// Nanoseconds of a comparison of numbers in single precision with the extremes so far, about.
const COMPARISON: f64 = 0.05;

/// A loop: its rounds, and the elements it moves by in input and output.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
struct Axis {
    size: usize,
    input: usize,
    out: usize,
}

/// The dimensions of a tensor that are folded, one bit each.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Folded(u32);

impl Folded {
    /// Returns all of so many, up to 31.
    pub fn all(rank: usize) -> Self {
        Folded((1 << rank) - 1)
    }

    /// Returns these and one more; `None` if it is one of them.
    pub fn with(self, dim: usize) -> Option<Self> {
        (!self.contains(dim)).then_some(Folded(self.0 | 1 << dim))
    }

    /// Returns whether the dimension is folded.
    pub fn contains(self, dim: usize) -> bool {
        self.0 & 1 << dim != 0
    }

    /// Returns the sizes of the result; with `keepdim` a folded dimension stays, of size 1.
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

    /// Returns the number of elements that are folded into one.
    pub fn count(self, sizes: &[usize]) -> usize {
        sizes.iter().enumerate().filter(|&(dim, _)| self.contains(dim)).map(|(_, &size)| size).product()
    }
}

/// The loops of one reduction.
#[derive(Clone, Debug)]
pub struct Reduction {
    /// Over results.
    outer: Dims<Axis>,
    /// Over what is folded into one.
    folded: Dims<Axis>,
}

impl Reduction {
    /// Returns the loops from an input to a result that has the sizes [`Folded::result_sizes`] says. With `in_order` the folded
    /// elements are visited in index order, else as they are stored in memory.
    pub fn new<'a>(
        input: impl Into<Layout<'a>>,
        out: impl Into<Layout<'a>>,
        folded: Folded,
        in_order: bool,
    ) -> Reduction {
        let (input, out) = (input.into(), out.into());
        let (mut outer, mut fold) = (Dims::new(), Dims::new());
        let keepdim = out.rank() == input.rank();
        let mut own = 0;
        for (dim, (&size, &stride)) in input.sizes.iter().zip(input.strides).enumerate() {
            if folded.contains(dim) {
                let _ = fold.push(Axis { size, input: stride, out: 0 });
                own += usize::from(keepdim);
            } else {
                let out = out.strides.get(own).copied().unwrap_or(1);
                let _ = outer.push(Axis { size, input: stride, out });
                own += 1;
            }
        }
        Reduction { outer: merged(outer, true), folded: merged(fold, !in_order) }
    }

    /// Folds, and hands every result with its place in the output to `emit`. Without elements results are what a fold
    /// starts with.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Geometry`](crate::ErrorKind::Geometry) if the input has some elements, but fewer than the loops reach.
    ///
    /// ```
    /// use edgepack_compute::fold::Sum;
    /// use edgepack_compute::layout::Layout;
    /// use edgepack_compute::reduce::{Folded, Reduction};
    ///
    /// let input = Layout { sizes: &[2, 3], strides: &[3, 1], dim_order: &[0, 1] };
    /// let out = Layout { sizes: &[3], strides: &[1], dim_order: &[0] };
    /// let rows = Folded::default().with(0).unwrap();
    /// let mut sums = [0.0; 3];
    /// Reduction::new(input, out, rows, false).run(&[1, 2, 3, 10, 20, 30], &Sum, |at, sum| sums[at] = sum)?;
    /// assert_eq!(sums, [11.0, 22.0, 33.0]);
    /// # Ok::<(), edgepack_compute::Error>(())
    /// ```
    pub fn run<T: Copy, F: Fold<T>>(
        &self,
        input: &[T],
        fold: &F,
        mut emit: impl FnMut(usize, F::Acc),
    ) -> Result<(), Error> {
        if input.is_empty() {
            each(&self.outer, |_, to, _| emit(to, fold.start()));
            return Ok(());
        }
        expect_elements("the input", input.len(), self.reach())?;
        let rows_are_dense = self.folded.last().is_none_or(|axis| axis.input == 1);
        match self.outer.split_last() {
            Some((lane, outer)) if lane.input == 1 && lane.size > 1 && !rows_are_dense => {
                each(outer, |from, to, _| self.fold_lanes(*lane, &input[from..], to, fold, &mut emit));
            }
            _ => each(&self.outer, |from, to, _| emit(to, self.fold_one(input, from, fold))),
        }
        Ok(())
    }

    /// Sums as [`Reduction::run`] does with [`Sum`], to the bit, with the vector units of the machine and all threads where
    /// the input is large, and writes what `result` makes of a sum.
    ///
    /// # Errors
    ///
    /// As [`Reduction::run`]; and [`ErrorKind::Geometry`](crate::ErrorKind::Geometry) if there is less room for results than
    /// the loops reach.
    pub fn sums(&self, input: &[f32], out: &mut [f32], result: impl Fn(f64) -> f32 + Sync) -> Result<(), Error> {
        match self.lanes(input.len(), out.len())? {
            Some(lanes) => {
                lanes.each(ADDITION, out, |from, rows, out| {
                    run_wide(Sums { input: &input[from..], rows, out, result: &result });
                });
                Ok(())
            }
            None => match (&*self.outer, &*self.folded) {
                (&[rows], &[row]) if row.input == 1 && rows.out == 1 && !input.is_empty() => {
                    expect_elements("the input", input.len(), self.reach())?;
                    let cost = Cost::nanoseconds(ROW * row.size as f64);
                    for_each_piece_at(cost, &mut out[..rows.size], 1, |start, out| {
                        for (at, out) in (start..).zip(out) {
                            *out = result(self.fold_one(input, at * rows.input, &Sum));
                        }
                    });
                    Ok(())
                }
                _ => self.run(input, &Sum, |at, sum| out[at] = result(sum)),
            },
        }
    }

    /// Finds places of extremes as [`Reduction::run`] does with [`Place`], with the vector units of the machine and all threads
    /// where the input is large.
    ///
    /// # Errors
    ///
    /// As [`Reduction::sums`].
    ///
    /// ```
    /// use edgepack_compute::layout::Layout;
    /// use edgepack_compute::reduce::{Folded, Reduction};
    ///
    /// let input = Layout { sizes: &[2, 3], strides: &[3, 1], dim_order: &[0, 1] };
    /// let out = Layout { sizes: &[3], strides: &[1], dim_order: &[0] };
    /// let rows = Folded::default().with(0).unwrap();
    /// let mut places = [0; 3];
    /// Reduction::new(input, out, rows, true).places::<false>(&[1.0, 9.0, 3.0, 2.0, 2.0, 3.0], &mut places)?;
    /// assert_eq!(places, [1, 0, 0]);
    /// # Ok::<(), edgepack_compute::Error>(())
    /// ```
    pub fn places<const LEAST: bool>(&self, input: &[f32], out: &mut [i64]) -> Result<(), Error> {
        match self.lanes(input.len(), out.len())?.filter(|lanes| i32::try_from(lanes.rows[0]).is_ok()) {
            Some(lanes) => {
                lanes.each(COMPARISON, out, |from, rows, out| {
                    run_wide(Places::<LEAST> { input: &input[from..], rows, out });
                });
                Ok(())
            }
            _ => self.run(input, &Place::<f32, LEAST>::NEW, |at, (_, place)| out[at] = place as i64),
        }
    }

    /// The lanes, if all that is folded into a result are rows at a distance, and results next to each other come of numbers
    /// next to each other; `None` without elements, too. Refuses an output of fewer elements than the loops reach, and such an
    /// input of some.
    fn lanes(&self, input: usize, out: usize) -> Result<Option<Lanes<'_>>, Error> {
        expect_elements("the output", out, reach(self.outer.iter().map(|axis| (axis.size, axis.out))))?;
        let (&[ref outer @ .., lane], &[rows]) = (&*self.outer, &*self.folded) else { return Ok(None) };
        if input == 0 || lane.input != 1 || lane.out != 1 || rows.input <= 1 {
            return Ok(None);
        }
        expect_elements("the input", input, self.reach())?;
        Ok(Some(Lanes { outer, count: lane.size, rows: [rows.size, rows.input] }))
    }

    /// Elements of input up to the last one that is read.
    fn reach(&self) -> usize {
        reach(self.outer.iter().chain(&*self.folded).map(|axis| (axis.size, axis.input)))
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

/// Results next to each other, each of rows of numbers at a distance.
struct Lanes<'a> {
    outer: &'a [Axis],
    count: usize,
    /// Number of rows, and the elements from one to the next.
    rows: [usize; 2],
}

impl Lanes<'_> {
    /// Calls `f` with the first number that some results come of, the rows, and those results, on all threads if what a number
    /// costs makes that worth it.
    fn each<R: Send>(&self, number: f64, out: &mut [R], f: impl Fn(usize, [usize; 2], &mut [R]) + Send + Sync) {
        let cost = Cost::nanoseconds(number * self.rows[0] as f64);
        each(self.outer, |from, to, _| {
            for_each_piece_at(cost, &mut out[to..to + self.count], LANES, |start, out| f(from + start, self.rows, out));
        });
    }
}

/// Sums of rows at a distance, in as many lanes as there are results, and what `result` makes of them.
struct Sums<'a, 'o, R> {
    input: &'a [f32],
    rows: [usize; 2],
    out: &'o mut [f32],
    result: R,
}

impl<R: Fn(f64) -> f32> Loop for Sums<'_, '_, R> {
    #[inline(always)]
    fn run(mut self) {
        in_blocks(self.out.len(), &mut self);
    }
}

impl<R: Fn(f64) -> f32> InBlocks for Sums<'_, '_, R> {
    #[inline(always)]
    fn block<const N: usize>(&mut self, first: usize) {
        let (mut sums, [rows, stride]) = ([0.0; N], self.rows);
        for row in 0..rows {
            let row: &[f32; N] = self.input[row * stride + first..].first_chunk().expect("a number for every lane");
            for lane in 0..N {
                sums[lane] += f64::from(row[lane]);
            }
        }
        for (out, sum) in self.out[first..].iter_mut().zip(sums) {
            *out = (self.result)(sum);
        }
    }
}

/// Places of the extremes of rows at a distance, in as many lanes as there are results.
struct Places<'a, 'o, const LEAST: bool> {
    input: &'a [f32],
    rows: [usize; 2],
    out: &'o mut [i64],
}

impl<const LEAST: bool> Loop for Places<'_, '_, LEAST> {
    #[inline(always)]
    fn run(mut self) {
        in_blocks(self.out.len(), &mut self);
    }
}

impl<const LEAST: bool> InBlocks for Places<'_, '_, LEAST> {
    #[inline(always)]
    fn block<const N: usize>(&mut self, first: usize) {
        let (mut extremes, mut places) = ([Place::<f32, LEAST>::NEW.start().0; N], [0; N]);
        let [rows, stride] = self.rows;
        for index in 0..rows {
            let row: &[f32; N] = self.input[index * stride + first..].first_chunk().expect("a number for every lane");
            for lane in 0..N {
                let (x, extreme) = (row[lane], extremes[lane]);
                let beyond = if LEAST { x < extreme } else { x > extreme };
                let take = beyond | (x.is_nan() & !extreme.is_nan());
                extremes[lane] = if take { x } else { extreme };
                places[lane] = if take { index as i32 } else { places[lane] };
            }
        }
        for (out, place) in self.out[first..].iter_mut().zip(places) {
            *out = i64::from(place);
        }
    }
}

/// Drops loops of one round, sorts by stride if asked, and merges dimensions that are stored densely.
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

    fn layout<'a>(sizes: &'a [usize], strides: &'a [usize]) -> Layout<'a> {
        Layout { sizes, strides, dim_order: &[] }
    }

    #[test]
    fn dense_dimensions_merge() {
        let folded = Folded::default().with(2).unwrap().with(3).unwrap();
        let plan =
            Reduction::new(layout(&[2, 3, 4, 5], &[60, 20, 5, 1]), layout(&[2, 3, 1, 1], &[3, 1, 1, 1]), folded, false);
        assert_eq!(*plan.outer, [Axis { size: 6, input: 20, out: 1 }]);
        assert_eq!(*plan.folded, [Axis { size: 20, input: 1, out: 0 }]);
    }

    #[test]
    fn channels_last_folds_lanes() {
        let folded = Folded::default().with(2).unwrap().with(3).unwrap();
        let plan = Reduction::new(layout(&[2, 3, 4, 5], &[60, 1, 15, 3]), layout(&[2, 3], &[3, 1]), folded, false);
        assert_eq!(*plan.outer, [Axis { size: 2, input: 60, out: 3 }, Axis { size: 3, input: 1, out: 1 }]);
        assert_eq!(*plan.folded, [Axis { size: 20, input: 3, out: 0 }]);
    }

    #[test]
    fn sums_of_floats_are_those_of_the_loop() {
        let input: Vec<f32> = (0..2 * 70 * 6).map(|i| (i as f32 * 0.37).sin()).collect();
        let folded = Folded::default().with(2).unwrap().with(3).unwrap();
        for strides in [[420, 1, 210, 70], [420, 6, 3, 1]] {
            let plan = Reduction::new(layout(&[2, 70, 2, 3], &strides), layout(&[2, 70], &[70, 1]), folded, false);
            let (mut want, mut have) = (vec![0.0; 140], vec![0.0; 140]);
            plan.run(&input, &Sum, |at, sum| want[at] = sum as f32).unwrap();
            plan.sums(&input, &mut have, |sum| sum as f32).unwrap();
            assert_eq!(have, want);
            assert!(plan.sums(&input, &mut have[..139], |sum| sum as f32).is_err());
        }
    }

    #[test]
    fn places_of_extremes_are_those_of_the_loop() {
        let mut input: Vec<f32> = (0..2 * 9 * 150).map(|i| (i as f32 * 0.37).sin().mul_add(4.0, 0.5).round()).collect();
        // Lanes with one NaN, with several, and of nothing but infinities.
        input[7] = f32::NAN;
        (3..9).for_each(|row| input[row * 150 + 80] = f32::NAN);
        (0..9).for_each(|row| input[row * 150 + 149] = f32::NEG_INFINITY);
        (0..9).for_each(|row| input[row * 150 + 3] = f32::INFINITY);
        let folded = Folded::default().with(1).unwrap();
        for (size, strides) in [(150, [1350, 150, 1]), (20, [1350, 150, 1]), (150, [1350, 1, 9])] {
            let plan = Reduction::new(layout(&[2, 9, size], &strides), layout(&[2, size], &[size, 1]), folded, true);
            let (mut want, mut have) = (vec![0; 2 * size], vec![0; 2 * size]);
            plan.run(&input, &Place::<f32, false>::NEW, |at, (_, place)| want[at] = place as i64).unwrap();
            plan.places::<false>(&input, &mut have).unwrap();
            assert_eq!(have, want);
            plan.run(&input, &Place::<f32, true>::NEW, |at, (_, place)| want[at] = place as i64).unwrap();
            plan.places::<true>(&input, &mut have).unwrap();
            assert_eq!(have, want);
            assert!(plan.places::<true>(&input, &mut have[1..]).is_err());
        }
    }

    #[test]
    fn a_dimension_is_named_once() {
        assert!(Folded::default().with(1).unwrap().with(1).is_none());
        assert_eq!(*Folded::all(2).result_sizes(&[3, 4], true), [1, 1]);
        assert_eq!(Folded::all(2).count(&[3, 4]), 12);
    }

    #[test]
    fn short_inputs_are_refused() {
        let folded = Folded::default().with(1).unwrap();
        let reduction = Reduction::new(layout(&[2, 3], &[3, 1]), layout(&[2], &[1]), folded, false);
        assert!(reduction.run(&[1.0f32; 5], &Sum, |_, _| ()).is_err());
        let mut sums = [0.0; 2];
        reduction.run(&[1.0f32; 6], &Sum, |at, sum| sums[at] = sum).unwrap();
        assert_eq!(sums, [3.0; 2]);
    }
}
