//! Elements along a dimension in order, with the places they had; and the middle ones, or those of any rank.
//!
//! NaN counts as greater than everything, -0 equals 0. Elements are compared as whole numbers that order like them, next to
//! their places, in memory of the caller's. Sorting keeps the order of equal elements; where only some are wanted, equal
//! ones stay where [`select`](crate::select) leaves them.

use edgepack_format::scalar::ScalarType;

use crate::error::{Error, ErrorKind, expect_elements};
use crate::layout::AxisView;
use crate::number::{Cast, Number};
use crate::select::{Entry, partition_around, select};

/// The key of NaN, and of no other float.
const NAN: u64 = u64::MAX;

/// The elements of a line that are wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// All of them, in order.
    All,
    /// The first so many, in order if `sorted`.
    First {
        /// Elements of a line, at most as many as there are.
        count: usize,
        /// True if their order counts.
        sorted: bool,
    },
}

/// Writes the elements of every line in ascending or descending order, and the places they had. Input and outputs are laid
/// out alike but for the length of a line; `entries` is room for one.
///
/// # Errors
///
/// [`ErrorKind::Geometry`] if a slice has fewer elements than its view, [`ErrorKind::Unsupported`] if there is too little
/// room.
///
/// ```
/// use edgepack_compute::{layout::AxisView, sort::{Part, sort}};
///
/// let view = AxisView { outer: 1, size: 3, inner: 1 };
/// let (mut values, mut places) = ([0.0f32; 2], [0; 2]);
/// let part = Part::First { count: 2, sorted: true };
/// sort(view, part, true, &[2.0, 9.0, 5.0], (&mut values, &mut places), &mut [[0; 2]; 3])?;
/// assert_eq!((values, places), ([9.0, 5.0], [1, 2]));
/// # Ok::<(), edgepack_compute::Error>(())
/// ```
pub fn sort<T: Number>(
    view: AxisView,
    part: Part,
    descending: bool,
    input: &[T],
    (values, places): (&mut [T], &mut [i64]),
    entries: &mut [Entry],
) -> Result<(), Error> {
    let AxisView { outer, size, inner } = view;
    let count = match part {
        Part::All => size,
        Part::First { count, .. } => count.min(size),
    };
    expect_elements("the input", input.len(), view.count())?;
    expect_elements("the output", values.len().min(places.len()), outer * count * inner)?;
    let entries = room(entries, size)?;
    if count == 0 {
        return Ok(());
    }
    for (block, lane) in (0..outer).flat_map(|block| (0..inner).map(move |lane| (block, lane))) {
        let line = input[block * size * inner + lane..].iter().step_by(inner);
        for (place, (entry, &x)) in entries.iter_mut().zip(line).enumerate() {
            let key = order(x);
            *entry = [if descending { !key } else { key }, place as u64];
        }
        match part {
            Part::All => entries.sort_unstable(),
            Part::First { sorted, .. } => select(entries, count, sorted),
        }
        for (i, &[_, place]) in entries[..count].iter().enumerate() {
            let to = (block * count + i) * inner + lane;
            values[to] = input[(block * size + place as usize) * inner + lane];
            places[to] = place as i64;
        }
    }
    Ok(())
}

/// An element of a line by its rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rank {
    /// The middle one, the lower of two; the first NaN, if there is one.
    Median,
    /// The middle one of those that are not NaN, the lower of two.
    NanMedian,
    /// The one with so many before it, fewer than a line has.
    Before(usize),
}

/// Writes the element of a rank of every line, and its place if places are wanted. `entries` is room for a line.
///
/// # Errors
///
/// [`ErrorKind::Geometry`] if a line has no element of the rank, or a slice fewer elements than its view;
/// [`ErrorKind::Unsupported`] if there is too little room.
///
/// ```
/// use edgepack_compute::{layout::AxisView, sort::{Rank, ranked}};
///
/// let (view, mut values) = (AxisView { outer: 1, size: 4, inner: 1 }, [0]);
/// ranked(view, Rank::Median, &[4, 1, 3, 2], &mut values, None, &mut [[0; 2]; 4])?;
/// assert_eq!(values, [2]);
/// # Ok::<(), edgepack_compute::Error>(())
/// ```
pub fn ranked<T: Number>(
    view: AxisView,
    rank: Rank,
    input: &[T],
    values: &mut [T],
    mut places: Option<&mut [i64]>,
    entries: &mut [Entry],
) -> Result<(), Error> {
    let AxisView { outer, size, inner } = view;
    let lines = outer * inner;
    expect_elements("the input", input.len(), view.count())?;
    expect_elements("the output", places.as_ref().map_or(values.len(), |all| all.len().min(values.len())), lines)?;
    let entries = room(entries, size)?;
    let least = if let Rank::Before(before) = rank { before + 1 } else { 1 };
    if lines > 0 && size < least {
        let message = format!("a line of {size} elements has none of rank {rank:?}");
        return Err(Error::new(ErrorKind::Geometry, message));
    }
    for line in 0..lines {
        let start = line / inner * size * inner + line % inner;
        for (place, (entry, &x)) in entries.iter_mut().zip(input[start..].iter().step_by(inner)).enumerate() {
            *entry = [order(x), place as u64];
        }
        let place = rank.place::<T>(entries);
        values[line] = input[start + place * inner];
        if let Some(places) = &mut places {
            places[line] = place as i64;
        }
    }
    Ok(())
}

impl Rank {
    /// The place of the element of this rank in a line.
    fn place<T: Number>(self, entries: &mut [Entry]) -> usize {
        // The greatest of the integers has the key of NaN.
        let is_nan = |entry: &&Entry| T::SCALAR_TYPE.is_floating() && entry[0] == NAN;
        let before = match self {
            Rank::Median => match entries.iter().find(is_nan) {
                Some(&[_, place]) => return place as usize,
                None => (entries.len() - 1) / 2,
            },
            Rank::NanMedian => entries.iter().filter(|entry| !is_nan(entry)).count().saturating_sub(1) / 2,
            Rank::Before(before) => before,
        };
        partition_around(entries, before);
        entries[before][1] as usize
    }
}

fn room(entries: &mut [Entry], size: usize) -> Result<&mut [Entry], Error> {
    let too_few = || Error::new(ErrorKind::Unsupported, format!("{size} elements are more than at load"));
    entries.get_mut(..size).ok_or_else(too_few)
}

/// A whole number that orders like the element; [`NAN`] for NaN.
fn order<T: Number>(x: T) -> u64 {
    const TOP: u64 = 1 << 63;
    if T::SCALAR_TYPE == ScalarType::UINT64 {
        return x.cast();
    }
    if !T::SCALAR_TYPE.is_floating() {
        return Cast::<i64>::cast(x) as u64 ^ TOP;
    }
    let x: f64 = x.cast();
    if x.is_nan() {
        return NAN;
    }
    // Adding 0 makes 0 of -0.
    let bits = (x + 0.0).to_bits();
    if bits & TOP == 0 { bits | TOP } else { !bits }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: AxisView = AxisView { outer: 1, size: 6, inner: 1 };

    #[test]
    fn equal_elements_keep_their_order_and_nan_is_greatest() {
        let values = [2.0f32, f32::NAN, -0.0, 2.0, 0.0, f32::INFINITY];
        for (descending, want) in [(false, [2, 4, 0, 3, 5, 1]), (true, [1, 5, 0, 3, 2, 4])] {
            let (mut sorted, mut places) = ([0.0; 6], [0; 6]);
            sort(LINE, Part::All, descending, &values, (&mut sorted, &mut places), &mut [[0; 2]; 6]).unwrap();
            assert_eq!(places, want);
            assert_eq!(sorted.map(f32::to_bits), want.map(|at| values[at as usize].to_bits()));
        }
        let refused = sort(LINE, Part::All, true, &values, (&mut [0.0; 6], &mut [0; 6]), &mut [[0; 2]; 5]);
        assert_eq!(refused.unwrap_err().kind, ErrorKind::Unsupported);
    }

    #[test]
    fn every_rank_is_that_of_the_sorted_columns() {
        let view = AxisView { outer: 1, size: 3, inner: 2 };
        let columns = [3u64, 9, 1, u64::MAX, 2, 0];
        let rank = |rank| {
            let (mut values, mut places) = ([0; 2], [0; 2]);
            ranked(view, rank, &columns, &mut values, Some(&mut places), &mut [[0; 2]; 3]).map(|()| (values, places))
        };
        assert_eq!(rank(Rank::Median).unwrap(), ([2, 9], [2, 0]));
        assert_eq!(rank(Rank::Before(2)).unwrap(), ([3, u64::MAX], [0, 1]));
        assert_eq!(rank(Rank::Before(3)).unwrap_err().kind, ErrorKind::Geometry);
    }

    #[test]
    fn a_median_is_nan_or_without_nan() {
        let values = [f32::NAN, 3.0, f32::NAN, 1.0, 2.0, f32::NAN];
        let rank = |rank| {
            let mut value = [0.0];
            ranked(LINE, rank, &values, &mut value, None, &mut [[0; 2]; 6]).unwrap();
            value[0]
        };
        assert!(rank(Rank::Median).is_nan());
        assert_eq!(rank(Rank::NanMedian), 2.0);
    }
}
