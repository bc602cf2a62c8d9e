//! Indices, each as often as a list of numbers says.

use crate::error::{Error, ErrorKind};
use crate::indices::Indices;
use crate::number::{Cast, Number};

/// Returns the sum of repeats; it saturates.
///
/// # Errors
///
/// [`ErrorKind::Data`] if one is negative.
pub fn total(repeats: Indices<'_>) -> Result<i64, Error> {
    (0..repeats.len()).try_fold(0i64, |sum, at| match repeats.at(at) {
        times if times < 0 => Err(Error::new(ErrorKind::Data, "`repeats` holds a negative number")),
        times => Ok(sum.saturating_add(times)),
    })
}

/// Writes index `i` as often as the repeats say, which are not negative, until the output is full.
///
/// ```
/// use edgepack_compute::{indices::Indices, repeat};
///
/// let repeats = [2, 0, 1].map(i32::to_ne_bytes).concat();
/// let mut to = [0i64; 3];
/// repeat::interleave(Indices::int(&repeats), &mut to);
/// assert_eq!((repeat::total(Indices::int(&repeats)), to), (Ok(3), [0, 0, 2]));
/// ```
pub fn interleave<T: Number>(repeats: Indices<'_>, out: &mut [T])
where
    i64: Cast<T>,
{
    let mut places = out.iter_mut();
    for index in 0..repeats.len() {
        for place in places.by_ref().take(repeats.at(index) as usize) {
            *place = (index as i64).cast();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_are_not_negative_and_sums_saturate() {
        let total = |repeats: [i64; 2]| total(Indices::long(&repeats.map(i64::to_ne_bytes).concat()));
        assert_eq!(total([1, -1]).unwrap_err().kind, ErrorKind::Data);
        assert_eq!(total([i64::MAX, 1]), Ok(i64::MAX));
    }
}
