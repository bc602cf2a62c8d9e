//! Ranges of a file that are held in memory, so that a second reader gets the same bytes.
//!
//! Invariant: what is held of one file is never more than the file, whatever number of names it has for one segment.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::aligned::AlignedBytes;

/// The ranges of one file.
#[derive(Default)]
pub(crate) struct Live {
    ranges: Mutex<HashMap<Range<u64>, Weak<AlignedBytes>>>,
}

impl Live {
    /// The bytes of a range, read by `read` unless they are held.
    pub fn bytes<E>(
        &self,
        range: Range<u64>,
        read: impl FnOnce() -> Result<AlignedBytes, E>,
    ) -> Result<Arc<AlignedBytes>, E> {
        let known = |ranges: &HashMap<_, Weak<AlignedBytes>>| ranges.get(&range).and_then(Weak::upgrade);
        // Nothing is read under the lock: of two first readers both read, and the second is the one remembered.
        if let Some(bytes) = known(&self.ranges.lock().unwrap_or_else(PoisonError::into_inner)) {
            return Ok(bytes);
        }
        let bytes = Arc::new(read()?);
        let mut ranges = self.ranges.lock().unwrap_or_else(PoisonError::into_inner);
        // Where there is no room to remember them, the next reader reads for itself.
        if ranges.try_reserve(1).is_ok() {
            ranges.insert(range, Arc::downgrade(&bytes));
        }
        drop(ranges);
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_read_once_while_it_is_held() {
        let live = Live::default();
        let mut reads = 0;
        let mut read = |range: Range<u64>| {
            live.bytes(range, || {
                reads += 1;
                AlignedBytes::copy_of(&[reads]).ok_or(())
            })
            .unwrap()
        };
        let first = read(0..1);
        assert!(Arc::ptr_eq(&first, &read(0..1)));
        assert_eq!(**read(1..2), [2]);
        drop(first);
        assert_eq!(**read(0..1), [3]);
        assert_eq!(live.bytes(5..6, || Err("no memory")).unwrap_err(), "no memory");
    }
}
