//! Lists one behind another, in large pages that they share.
//!
//! A list that fills no large page alone is in small ones, where reading it from memory takes half as long again. So lists
//! are put into a row of large pages, as soon as there are more of them than one large page holds: who has few takes no more
//! memory than they fill. What the last large page has left is the price. A row is given back with its last list, but for the
//! one that has room: it is kept for lists to come, for which the system need not clear pages again.
#![expect(unsafe_code, reason = "lists in one row have owners of their own")]

use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::{LARGE, Zeros};
use crate::threads::aside;

/// Bytes of a row. Large pages that no list has touched take no memory.
const ROW: usize = 4 * LARGE;

/// Bytes between starts of lists: what any vector wants.
const ALIGN: usize = 64;

/// Bytes of lists that are on their own because there are few.
static ALONE: AtomicUsize = AtomicUsize::new(0);

/// The row that has room.
static OPEN: Mutex<Open> = Mutex::new(Open { row: None, used: 0, written: 0 });

/// A row that lists may be added to.
struct Open {
    row: Option<Arc<Row>>,
    /// Bytes that lists have.
    used: usize,
    /// Bytes that lists had when there were any before: they may be no zeros.
    written: usize,
}

/// Pages of lists, which only places of them read and write.
pub(super) struct Row {
    start: NonNull<u8>,
    /// The memory behind the pointer, to be given back. Nothing but the pointer reads or writes it.
    memory: Zeros,
    /// Held while a page is cleared: who waits for that finds it there.
    clears: Mutex<()>,
}

// SAFETY: a row is plain memory with one owner, which gives access to none of it.
unsafe impl Send for Row {}
// SAFETY: as above.
unsafe impl Sync for Row {}

impl Row {
    fn new() -> Option<Row> {
        let mut memory = Zeros::new(ROW, ALIGN)?;
        // The only borrow of the memory that there ever is.
        let start = NonNull::from(memory.bytes_mut()).cast();
        Some(Row { start, memory, clears: Mutex::new(()) })
    }

    /// Has the system clear a large page, of which the first byte is given, unless it is there. Threads that write to a new page at
    /// the same time each have one cleared, of which one is kept: so this is done before there are any.
    fn have_cleared(&self, first: &mut u8) {
        let _clears = self.clears.lock();
        *first = 0;
    }

    /// Has a thread that has nothing else to do ask for a large page.
    fn expect(self: Arc<Self>, page: usize) {
        aside(move || {
            let _clears = self.clears.lock();
            self.memory.expect(page, LARGE);
            false
        });
    }
}

/// Zeros of a list.
pub(super) enum Place {
    Alone {
        zeros: Zeros,
        counted: usize,
    },
    /// Bytes that no other place has.
    Row {
        start: NonNull<u8>,
        len: usize,
        _row: Arc<Row>,
    },
}

// SAFETY: a place owns its bytes, and they are plain memory.
unsafe impl Send for Place {}
// SAFETY: a shared place gives shared access to them alone.
unsafe impl Sync for Place {}

impl Place {
    /// Returns a place of so many zeros at a multiple of `align`, a power of two; `None` if there is no memory for it. What is
    /// overwritten anyway may be what an older list left.
    pub fn new(len: usize, align: usize, is_overwritten: bool) -> Option<Place> {
        if len >= LARGE || align > ALIGN {
            return Some(Place::Alone { zeros: Zeros::new(len, align)?, counted: 0 });
        }
        // Without memory for a whole row there may be some for the list.
        let few = ALONE.load(Ordering::Relaxed) + len <= LARGE;
        if cfg!(target_os = "linux")
            && let Some((mut place, written)) = Place::in_row(len, !few)
        {
            if !is_overwritten {
                place.bytes_mut()[..written].fill(0);
            }
            return Some(place);
        }
        let zeros = Zeros::new(len, align)?;
        ALONE.fetch_add(len, Ordering::Relaxed);
        Some(Place::Alone { zeros, counted: len })
    }

    /// Returns a place of so many bytes, fewer than a row has, in the row that has room, or in a new one if there may be one;
    /// and how many bytes at its begin older lists may have written. The others are zeros.
    fn in_row(len: usize, may_be_new: bool) -> Option<(Place, usize)> {
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        if open.row.as_mut().is_some_and(|row| Arc::get_mut(row).is_some()) {
            open.written = open.written.max(open.used);
            open.used = 0;
        } else if open.row.is_none() || open.used + len > ROW {
            if !may_be_new {
                return None;
            }
            *open = Open { row: Some(Arc::new(Row::new()?)), used: 0, written: 0 };
        }
        let row = open.row.clone()?;
        let (used, old) = (open.used, open.written);
        // SAFETY: `used + len` is at most the length of the row, a new or an empty one among them.
        let start = unsafe { row.start.add(used) };
        let mut place = Place::Row { start, len, _row: row.clone() };
        open.used = (used + len).next_multiple_of(ALIGN);
        drop(open);
        let page = used.next_multiple_of(LARGE);
        if let Some(first) = place.bytes_mut().get_mut(page - used) {
            row.have_cleared(first);
            let next = page + LARGE;
            // A program that fills one page may not need another.
            if page > 0 && (old..ROW).contains(&next) {
                row.expect(next);
            }
        }
        Some((place, old.saturating_sub(used).min(len)))
    }

    /// The bytes.
    #[inline(always)]
    pub fn bytes(&self) -> &[u8] {
        match self {
            Place::Alone { zeros, .. } => zeros.bytes(),
            // SAFETY: `len` bytes from there on are in the row, which lives as long as the place. They were given to no other
            // place: under the lock, each begins behind all before it, or there is none. They are initialised, as the whole row is.
            Place::Row { start, len, .. } => unsafe { std::slice::from_raw_parts(start.as_ptr(), *len) },
        }
    }

    /// The bytes, to write.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Place::Alone { zeros, .. } => zeros.bytes_mut(),
            // SAFETY: as in `bytes`; the place is borrowed alone.
            Place::Row { start, len, .. } => unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), *len) },
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Place::Alone { counted, .. } = self {
            ALONE.fetch_sub(*counted, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Weak;

    use super::*;

    /// Lists of all tests are in the same rows.
    static ONE: Mutex<()> = Mutex::new(());

    /// A place in a row, and how many bytes at its begin may be no zeros.
    fn in_row(len: usize) -> (Place, usize) {
        Place::in_row(len, true).unwrap()
    }

    fn row_of(place: &Place) -> Weak<Row> {
        match place {
            Place::Row { _row: row, .. } => Arc::downgrade(row),
            Place::Alone { .. } => unreachable!("it was put into a row"),
        }
    }

    #[test]
    fn lists_of_a_row_are_zeros_and_have_bytes_of_their_own() {
        let _one = ONE.lock();
        for _ in 0..3 {
            let lens = [1, 63, 64, 65, 1000, LARGE - 1];
            let mut places: Vec<(Place, usize)> = lens.iter().map(|len| in_row(*len)).collect();
            for (index, ((place, written), len)) in places.iter_mut().zip(lens).enumerate() {
                assert_eq!((place.bytes().len(), place.bytes().as_ptr().align_offset(ALIGN)), (len, 0));
                assert!(place.bytes()[*written..].iter().all(|byte| *byte == 0));
                place.bytes_mut().fill(index as u8 + 1);
            }
            for (index, (place, _)) in places.iter().enumerate() {
                assert!(place.bytes().iter().all(|byte| *byte == index as u8 + 1));
            }
        }
    }

    #[test]
    fn a_full_row_is_given_back_with_its_last_list_and_one_with_room_is_used_again() {
        let _one = ONE.lock();
        let places: Vec<Place> = (0..2 * ROW / LARGE + 1).map(|_| in_row(LARGE - 1).0).collect();
        let rows: Vec<Weak<Row>> = places.iter().map(row_of).collect();
        drop(places);
        let kept: Vec<&Weak<Row>> = rows.iter().filter(|row| row.upgrade().is_some()).collect();
        assert!(kept.len() < rows.len() && kept.iter().all(|row| row.ptr_eq(&rows[rows.len() - 1])));
        assert!(row_of(&Place::in_row(1, false).unwrap().0).ptr_eq(&rows[rows.len() - 1]));
    }
}
