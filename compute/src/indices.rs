//! Tensors of indices: their integers, and the places they name.
//!
//! Negative indices count from the end; an index that names no place is an error, never a read elsewhere.

use crate::error::{Error, ErrorKind};

/// The integers of an index tensor in memory order, at any alignment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Indices<'a> {
    /// Integers of 32 bits.
    Int(&'a [[u8; 4]]),
    /// Integers of 64 bits.
    Long(&'a [[u8; 8]]),
}

impl<'a> Indices<'a> {
    /// Returns the integers of 32 bits that bytes hold.
    pub fn int(bytes: &'a [u8]) -> Self {
        Indices::Int(bytes.as_chunks().0)
    }

    /// Returns the integers of 64 bits that bytes hold.
    ///
    /// ```
    /// use edgepack_compute::indices::Indices;
    ///
    /// assert_eq!(Indices::long(&(-3i64).to_ne_bytes()).at(0), -3);
    /// ```
    pub fn long(bytes: &'a [u8]) -> Self {
        Indices::Long(bytes.as_chunks().0)
    }

    /// Returns how many there are.
    pub fn len(&self) -> usize {
        match self {
            Indices::Int(all) => all.len(),
            Indices::Long(all) => all.len(),
        }
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns an integer by its place in memory.
    ///
    /// # Panics
    ///
    /// If there are not as many.
    #[inline]
    pub fn at(&self, place: usize) -> i64 {
        match self {
            Indices::Int(all) => i64::from(i32::from_ne_bytes(all[place])),
            Indices::Long(all) => i64::from_ne_bytes(all[place]),
        }
    }
}

/// Returns the place that an index, one of a list of this name, names along a dimension of `size` elements.
///
/// # Errors
///
/// [`ErrorKind::Data`] if there is no such place.
///
/// ```
/// use edgepack_compute::indices::place;
///
/// assert_eq!(place("index", -1, 3)?, 2);
/// assert_eq!(place("index", 3, 3).unwrap_err().message, "`index` is 3, the dimension has 3 elements");
/// # Ok::<(), edgepack_compute::Error>(())
/// ```
#[inline]
pub fn place(name: &str, index: i64, size: usize) -> Result<usize, Error> {
    let at = if index < 0 { index.saturating_add(size as i64) } else { index };
    if (0..size as i64).contains(&at) {
        return Ok(at as usize);
    }
    Err(outside(name, index, size))
}

#[cold]
fn outside(name: &str, index: i64, size: usize) -> Error {
    Error::new(ErrorKind::Data, format!("`{name}` is {index}, the dimension has {size} elements"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_read_at_any_alignment() {
        let mut bytes = [0; 9];
        bytes[1..].copy_from_slice(&[7, -9].map(i32::to_ne_bytes).concat());
        let ints = Indices::int(&bytes[1..]);
        assert_eq!((ints.len(), ints.at(0), ints.at(1)), (2, 7, -9));
        assert!(Indices::long(&bytes[..7]).is_empty());
    }

    #[test]
    fn places_stay_inside() {
        assert_eq!(place("index", -3, 3), Ok(0));
        for (index, size) in [(3, 3), (-4, 3), (0, 0), (i64::MIN, 3), (i64::MAX, 3)] {
            assert_eq!(place("index", index, size).unwrap_err().kind, ErrorKind::Data);
        }
    }
}
