//! Rows of a table, gathered in bags and summed, averaged or compared.
//!
//! Next to the result there is what its gradient needs: the bag every index is in, how many indices count in each bag, and
//! for maxima the row they came from. Lists of these may be empty; then they stay empty.

use std::ops::Range;

use crate::element::Scalar;
use crate::error::{Error, ErrorKind};
use crate::number::{Cast, Compute, Number};

/// Columns gathered side by side.
const LANES: usize = 64;

/// The result for the rows of a bag.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Sum of the rows.
    Sum,
    /// Mean of the rows.
    Mean,
    /// The greatest element of each column.
    Max,
}

/// The bags of a call.
#[derive(Clone, Copy, Debug)]
pub struct Bags<'a, T, I> {
    /// The table, row by row.
    pub table: &'a [T],
    /// Rows of the table.
    pub rows: usize,
    /// Elements of a row.
    pub width: usize,
    /// Rows in bags, one bag after the other.
    pub indices: &'a [I],
    /// The first index of each bag, and perhaps the end of the last.
    pub offsets: &'a [I],
    /// Bags.
    pub bags: usize,
    /// Factors of the rows of sums, one for each index.
    pub factors: Option<&'a [T]>,
    /// The row that does not count.
    pub padding: i64,
    /// The result for a bag.
    pub mode: Mode,
}

/// Results of all bags.
#[derive(Debug)]
pub struct Outputs<'a, T, I> {
    /// A row for each bag.
    pub rows: &'a mut [T],
    /// The bag of every index.
    pub bag_of_index: &'a mut [I],
    /// Number of indices that count in each bag.
    pub counts: &'a mut [I],
    /// The row that each maximum came from.
    pub maxima: &'a mut [I],
}

impl<T: Number, I: Number + Into<i64>> Bags<'_, T, I>
where
    usize: TryInto<I>,
{
    /// Computes all bags.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Data`] if an index is not a row, or an offset not one of the indices, in their order.
    ///
    /// ```
    /// use edgepack_compute::embedding_bag::{Bags, Mode, Outputs};
    ///
    /// let table = [1.0f32, 2.0, 4.0];
    /// let (indices, offsets) = ([0i64, 2, 1], [0, 2]);
    /// let bags = Bags {
    ///     table: &table, rows: 3, width: 1, indices: &indices, offsets: &offsets, bags: 2, factors: None, padding: -1,
    ///     mode: Mode::Sum,
    /// };
    /// let mut rows = [0.0; 2];
    /// bags.run(Outputs { rows: &mut rows, bag_of_index: &mut [], counts: &mut [], maxima: &mut [] })?;
    /// assert_eq!(rows, [5.0, 2.0]);
    /// # Ok::<(), edgepack_compute::Error>(())
    /// ```
    pub fn run(&self, out: Outputs<'_, T, I>) -> Result<(), Error> {
        self.check()?;
        let number = |value: usize| value.try_into().unwrap_or_default();
        let width = self.width;
        out.maxima.fill(I::default());
        for bag in 0..self.bags {
            let range = self.members(bag);
            let counted = self.indices[range.clone()].iter().filter(|&&index| index.into() != self.padding).count();
            if let Some(count) = out.counts.get_mut(bag) {
                *count = number(counted);
            }
            if let Some(places) = out.bag_of_index.get_mut(range.clone()) {
                places.fill(number(bag));
            }
            let row = &mut out.rows[bag * width..][..width];
            if self.mode == Mode::Max {
                let places = out.maxima.get_mut(bag * width..(bag + 1) * width).unwrap_or_default();
                self.greatest(range, row, places);
            } else {
                self.sum(bag, counted, row);
            }
        }
        Ok(())
    }

    /// Every index has to be a row, and every offset one of the indices or their end, from 0 on and in order.
    fn check(&self) -> Result<(), Error> {
        let refuse = |message| Err(Error::new(ErrorKind::Data, message));
        let rows = self.rows;
        if let Some(&index) = self.indices.iter().find(|&&index| !(0..rows as i64).contains(&index.into())) {
            let index: i64 = index.into();
            return refuse(format!("`indices` holds {index}, `weight` has {rows} rows"));
        }
        let count = self.indices.len() as i64;
        let mut before = 0i64;
        for &offset in self.offsets {
            let offset: i64 = offset.into();
            if offset < before || offset > count {
                return refuse(format!("`offsets` holds {offset} after {before}, there are {count} indices"));
            }
            before = offset;
        }
        match self.offsets.first().map(|&first| -> i64 { first.into() }) {
            Some(first) if first != 0 => refuse(format!("`offsets` begins with {first}, not 0")),
            _ => Ok(()),
        }
    }

    /// The places of the indices in a bag; the offsets were checked.
    fn range(&self, bag: usize) -> Range<usize> {
        let end = self.offsets.get(bag + 1).map_or(self.indices.len(), |&end| end.into() as usize);
        self.offsets[bag].into() as usize..end
    }

    /// The indices that belong to a bag. All that are left belong to the last one, also behind an offset that is its
    /// end: they count in its size and its maximum, though not in its sum.
    fn members(&self, bag: usize) -> Range<usize> {
        let range = self.range(bag);
        if bag + 1 == self.bags { range.start..self.indices.len() } else { range }
    }

    /// The rows of these indices that count, each with its place among them.
    fn items(&self, range: Range<usize>) -> impl Iterator<Item = (usize, usize)> + '_ {
        range
            .map(|at| (at, self.indices[at].into()))
            .filter(|&(_, index)| index != self.padding)
            .map(|(at, index)| (at, index as usize))
    }

    fn sum(&self, bag: usize, counted: usize, out: &mut [T]) {
        for (block, out) in out.chunks_mut(LANES).enumerate() {
            let mut sums = [T::Compute::ZERO; LANES];
            for (at, row) in self.items(self.range(bag)) {
                let row = &self.table[row * self.width + block * LANES..][..out.len()];
                match self.factors {
                    None => sums.iter_mut().zip(row).for_each(|(sum, x)| *sum = sum.plus(x.to_compute())),
                    Some(factors) => {
                        let factor = factors[at].to_compute();
                        sums.iter_mut().zip(row).for_each(|(sum, x)| *sum = sum.plus(factor.times(x.to_compute())));
                    }
                }
            }
            let mean = self.mode == Mode::Mean && counted > 0;
            for (out, sum) in out.iter_mut().zip(sums) {
                let sum: f64 = if mean { Cast::<f64>::cast(sum) / counted as f64 } else { sum.cast() };
                *out = T::from_scalar(Scalar::Double(sum));
            }
        }
    }

    fn greatest(&self, range: Range<usize>, out: &mut [T], places: &mut [I]) {
        out.fill(T::default());
        for (order, (at, row)) in self.items(range).enumerate() {
            let row = &self.table[row * self.width..][..self.width];
            for (column, (out, &x)) in out.iter_mut().zip(row).enumerate() {
                if order == 0 || out.to_compute().less(x.to_compute()) {
                    *out = x;
                    if let Some(place) = places.get_mut(column) {
                        *place = self.indices[at];
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bags<'a>(indices: &'a [i32], offsets: &'a [i32], mode: Mode) -> Bags<'a, f32, i32> {
        let table = &[1.0, 10.0, 2.0, -20.0, 3.0, 30.0];
        Bags { table, rows: 3, width: 2, indices, offsets, bags: 2, factors: None, padding: -1, mode }
    }

    #[test]
    fn bags_come_to_sums_means_and_maxima() {
        let (mut rows, mut bag_of_index, mut counts, mut maxima) = ([0.0; 4], [9; 3], [9; 2], [9; 4]);
        let mut run = |mode, padding| {
            let out =
                Outputs { rows: &mut rows, bag_of_index: &mut bag_of_index, counts: &mut counts, maxima: &mut maxima };
            Bags { padding, ..bags(&[2, 1, 0], &[0, 2], mode) }.run(out).unwrap();
            (rows, bag_of_index, counts, maxima)
        };
        assert_eq!(run(Mode::Mean, -1), ([2.5, 5.0, 1.0, 10.0], [0, 0, 1], [2, 1], [0; 4]));
        assert_eq!(run(Mode::Sum, 2), ([2.0, -20.0, 1.0, 10.0], [0, 0, 1], [1, 1], [0; 4]));
        assert_eq!(run(Mode::Max, -1), ([3.0, 30.0, 1.0, 10.0], [0, 0, 1], [2, 1], [2, 2, 0, 0]));
    }

    #[test]
    fn indices_and_offsets_are_checked() {
        let refused = |indices: &[i32], offsets: &[i32]| {
            let out = Outputs { rows: &mut [0.0; 4], bag_of_index: &mut [], counts: &mut [], maxima: &mut [] };
            bags(indices, offsets, Mode::Sum).run(out).map_err(|error| error.message.into_owned())
        };
        assert_eq!(refused(&[0], &[0, 1]), Ok(()));
        assert_eq!(refused(&[3], &[0, 1]).unwrap_err(), "`indices` holds 3, `weight` has 3 rows");
        assert_eq!(refused(&[0], &[0, 2]).unwrap_err(), "`offsets` holds 2 after 0, there are 1 indices");
        assert_eq!(refused(&[0], &[1, 1]).unwrap_err(), "`offsets` begins with 1, not 0");
    }
}
