//! Places of numbers among sorted ones, and counts of numbers in bins.
//!
//! Whole numbers are compared with all their digits; NaN is passed by, so it comes behind every number.

use std::cmp::Ordering;

use edgepack_format::scalar::ScalarType;

use crate::error::{Error, ErrorKind};
use crate::indices::{Indices, place};
use crate::number::{Cast, Number};

/// A number that orders exactly: whole numbers of 64 bits keep all their digits.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Key {
    /// Whole number; two of them are compared without rounding.
    Whole(i64),
    /// Floating point number; a whole number is rounded to be compared with it.
    Real(f64),
}

impl Key {
    /// Returns the key of an element.
    pub fn of<T: Number>(value: T) -> Key {
        match T::SCALAR_TYPE.is_floating() {
            true => Key::Real(value.cast()),
            false => Key::Whole(value.cast()),
        }
    }

    /// Returns the order of the two keys; `None` if one is NaN.
    fn compare(self, other: Key) -> Option<Ordering> {
        match (self, other) {
            (Key::Whole(a), Key::Whole(b)) => Some(a.cmp(&b)),
            (a, b) => a.real().partial_cmp(&b.real()),
        }
    }

    fn real(self) -> f64 {
        match self {
            Key::Whole(number) => number as f64,
            Key::Real(number) => number,
        }
    }
}

/// Numbers as keys: the elements of a tensor in memory order, at any alignment, or one number.
#[derive(Clone, Copy, Debug)]
pub enum Keys<'a> {
    /// One number, wherever it is asked for.
    One(Key),
    /// Elements, and the function that reads one.
    Each(&'a [u8], fn(&[u8], usize) -> Key),
}

impl<'a> Keys<'a> {
    /// Returns the elements that bytes hold.
    pub fn new<T: Number>(bytes: &'a [u8]) -> Self {
        Keys::Each(bytes, |bytes, at| {
            let width = size_of::<T>();
            Key::of::<T>(bytemuck::pod_read_unaligned(&bytes[at * width..][..width]))
        })
    }

    fn at(&self, at: usize) -> Key {
        match self {
            Keys::One(key) => *key,
            Keys::Each(bytes, read) => read(bytes, at),
        }
    }
}

/// Lines of sorted numbers.
#[derive(Clone, Copy, Debug)]
pub struct Sorted<'a> {
    /// Numbers of the lines, one line after the other.
    pub keys: Keys<'a>,
    /// Numbers of a line.
    pub length: usize,
    /// The places of the numbers of each line in their order, if they are not sorted themselves.
    pub order: Option<Indices<'a>>,
}

impl Sorted<'_> {
    /// Writes the place of every value among the numbers of its line: in front of equal ones, or, on the `right`, behind
    /// them. So many values in a row belong to a line, or without a number all to the first.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Data`] if the order names a place outside of the line.
    ///
    /// ```
    /// use edgepack_compute::search::{Key, Keys, Sorted};
    ///
    /// let line = Sorted { keys: Keys::new::<u8>(&[1, 3, 3, 7]), length: 4, order: None };
    /// let mut places = [0i64; 2];
    /// line.find(Keys::new::<i8>(&[3, 9]), None, false, &mut places)?;
    /// assert_eq!(places, [1, 4]);
    /// line.find(Keys::One(Key::Real(3.0)), None, true, &mut places[..1])?;
    /// assert_eq!(places, [3, 4]);
    /// # Ok::<(), edgepack_compute::Error>(())
    /// ```
    pub fn find<T: Number>(
        &self,
        values: Keys<'_>,
        per_line: Option<usize>,
        right: bool,
        places: &mut [T],
    ) -> Result<(), Error>
    where
        i64: Cast<T>,
    {
        for (at, to) in places.iter_mut().enumerate() {
            let start = per_line.map_or(0, |values| at / values.max(1) * self.length);
            *to = (self.place(start, values.at(at), right)? as i64).cast();
        }
        Ok(())
    }

    /// The place of a number among those of the line that starts at a number.
    fn place(&self, start: usize, key: Key, right: bool) -> Result<usize, Error> {
        let (mut low, mut high) = (0, self.length);
        while low < high {
            let middle = low + (high - low) / 2;
            let found = self.at(start, middle)?.compare(key);
            // To the left of equals, or to their right; NaN is passed by.
            let beyond = found != Some(Ordering::Greater) && (right || found != Some(Ordering::Equal));
            if beyond { low = middle + 1 } else { high = middle }
        }
        Ok(low)
    }

    fn at(&self, start: usize, at: usize) -> Result<Key, Error> {
        let at = match self.order {
            Some(order) if start + at < order.len() => place("sorter", order.at(start + at), self.length)?,
            Some(_) => 0,
            None => at,
        };
        Ok(self.keys.at(start + at))
    }
}

/// Counts the elements in bins of one width from `low` to `high`; if these are equal, from the least element to the greatest.
/// Elements outside of the bins, and NaN, do not count.
///
/// # Errors
///
/// [`ErrorKind::Data`] if there are no such bins.
///
/// ```
/// let mut bins = [0.0; 4];
/// edgepack_compute::search::histogram(&[1.0f32, 2.0, 1.0, 3.0, 9.0], [0.0, 3.0], &mut bins)?;
/// assert_eq!(bins, [0.0, 2.0, 1.0, 1.0]);
/// # Ok::<(), edgepack_compute::Error>(())
/// ```
pub fn histogram<T: Number>(input: &[T], [mut low, mut high]: [f64; 2], bins: &mut [T]) -> Result<(), Error>
where
    f64: Cast<T>,
{
    let real = |x: &T| -> f64 { (*x).cast() };
    if low == high && !input.is_empty() {
        // Without bounds, those of the elements.
        (low, high) = input.iter().map(real).fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| (a.min(x), b.max(x)));
    }
    if low == high {
        (low, high) = (low - 1.0, high + 1.0);
    }
    if !low.is_finite() || !high.is_finite() || low > high || bins.is_empty() {
        return Err(Error::new(ErrorKind::Data, format!("there are no bins from {low} to {high}")));
    }
    bins.fill(T::default());
    let (count, last) = (bins.len(), bins.len() - 1);
    // As many digits as the elements have decide on which side of a bound they fall.
    for x in input.iter().map(real).filter(|x| (low..=high).contains(x)) {
        let part = if T::SCALAR_TYPE == ScalarType::DOUBLE {
            (x - low) / (high - low) * count as f64
        } else {
            f64::from((x as f32 - low as f32) / (high as f32 - low as f32) * count as f32)
        };
        let bin = &mut bins[(part as usize).min(last)];
        *bin = (real(bin) + 1.0).cast();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(line: Sorted<'_>, value: Key) -> Result<i64, Error> {
        let mut place = [0];
        line.find(Keys::One(value), None, false, &mut place).map(|()| place[0])
    }

    #[test]
    fn orders_stand_for_sorted_numbers() {
        let order = [2, 0, 1i64].map(i64::to_ne_bytes).concat();
        let line = |order| Sorted { keys: Keys::new::<u8>(&[5, 9, 1]), length: 3, order: Some(Indices::long(order)) };
        assert_eq!(find(line(&order), Key::Whole(6)), Ok(2));
        let beyond = [3i64; 3].map(i64::to_ne_bytes).concat();
        let refused = find(line(&beyond), Key::Whole(6)).unwrap_err();
        assert_eq!(refused.message, "`sorter` is 3, the dimension has 3 elements");
    }

    #[test]
    fn long_numbers_keep_their_digits_and_nan_is_behind() {
        let numbers = [i64::MAX - 1, i64::MAX].map(i64::to_ne_bytes).concat();
        let line = Sorted { keys: Keys::new::<i64>(&numbers), length: 2, order: None };
        assert_eq!(find(line, Key::Whole(i64::MAX)), Ok(1));
        assert_eq!(find(line, Key::Real(f64::NAN)), Ok(2));
    }

    #[test]
    fn values_belong_to_lines() {
        let lines = Sorted { keys: Keys::new::<u8>(&[1, 2, 8, 9]), length: 2, order: None };
        let mut places = [0i32; 4];
        lines.find(Keys::new::<u8>(&[2, 9, 2, 9]), Some(2), false, &mut places).unwrap();
        assert_eq!(places, [1, 2, 0, 1]);
    }

    #[test]
    fn bins_need_bounds() {
        let mut bins = [0.0f64; 2];
        histogram(&[], [0.0, 0.0], &mut bins).unwrap();
        assert_eq!(bins, [0.0; 2]);
        assert!(histogram(&[f64::INFINITY], [0.0, 0.0], &mut bins).is_err());
        assert!(histogram(&[1.0], [2.0, 1.0], &mut bins).is_err());
    }
}
