//! Memory whose size a file decides: it can fail to be there, and then it is an answer and never an abort.
//!
//! Every list that grows with a file, in all crates that read one, grows by these functions. What is small and of no
//! file's size (messages, names, boxes, nodes of maps) is allocated as usual.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::wire::{ReadError, ReadErrorKind};

/// There is no memory for a piece of this size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoRoom {
    /// Bytes that were asked for.
    pub bytes: u64,
}

impl NoRoom {
    /// For that many items more.
    #[cold]
    pub fn of<T>(count: usize) -> Self {
        NoRoom { bytes: (count as u64).saturating_mul(size_of::<T>() as u64) }
    }
}

impl fmt::Display for NoRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no memory for {} bytes", self.bytes)
    }
}

impl core::error::Error for NoRoom {}

impl From<NoRoom> for ReadError {
    fn from(_: NoRoom) -> Self {
        ReadError { kind: ReadErrorKind::Memory, offset: 0 }
    }
}

/// The result of making room.
pub type Result<T> = core::result::Result<T, NoRoom>;

/// Room for so many more items.
#[inline]
pub fn grow<T>(list: &mut Vec<T>, more: usize) -> Result<()> {
    list.try_reserve(more).map_err(|_| NoRoom::of::<T>(list.len().saturating_add(more)))
}

/// An empty list with room for exactly so many items.
pub fn with_room<T>(count: usize) -> Result<Vec<T>> {
    let mut list = Vec::new();
    list.try_reserve_exact(count).map_err(|_| NoRoom::of::<T>(count))?;
    Ok(list)
}

/// Returns a list of `count` copies of a value.
pub fn filled<T: Clone>(value: T, count: usize) -> Result<Vec<T>> {
    let mut list = with_room(count)?;
    list.resize(count, value);
    Ok(list)
}

/// Returns so many zeros; those that the system gives are not touched before something is written.
pub fn zeros(count: usize) -> Result<Vec<u8>> {
    bytemuck::allocation::try_zeroed_vec(count).map_err(|()| NoRoom::of::<u8>(count))
}

/// Adds an item.
#[inline]
pub fn push<T>(list: &mut Vec<T>, item: T) -> Result<()> {
    if list.len() == list.capacity() {
        grow(list, 1)?;
    }
    list.push(item);
    Ok(())
}

/// Adds items.
pub fn extend<T>(list: &mut Vec<T>, items: impl IntoIterator<Item = T>) -> Result<()> {
    let items = items.into_iter();
    grow(list, items.size_hint().0)?;
    for item in items {
        push(list, item)?;
    }
    Ok(())
}

/// All items of an iterator.
pub fn collect<T>(items: impl IntoIterator<Item = T>) -> Result<Vec<T>> {
    let items = items.into_iter();
    let mut list = with_room(items.size_hint().0)?;
    for item in items {
        push(&mut list, item)?;
    }
    Ok(list)
}

/// A map of these pairs, one after another: collecting them would sort a list of all first.
pub fn map<K: Ord, V>(pairs: impl IntoIterator<Item = (K, V)>) -> BTreeMap<K, V> {
    let mut map = BTreeMap::new();
    for (key, value) in pairs {
        map.insert(key, value);
    }
    map
}

/// A set of these items, made as [`map`] is.
pub fn set<T: Ord>(items: impl IntoIterator<Item = T>) -> BTreeSet<T> {
    let mut set = BTreeSet::new();
    for item in items {
        set.insert(item);
    }
    set
}

/// A copy of a slice.
pub fn copy_of<T: Copy>(items: &[T]) -> Result<Vec<T>> {
    let mut list = with_room(items.len())?;
    list.extend_from_slice(items);
    Ok(list)
}

/// Adds text.
pub fn push_str(text: &mut String, more: &str) -> Result<()> {
    text.try_reserve(more.len()).map_err(|_| NoRoom::of::<u8>(text.len().saturating_add(more.len())))?;
    text.push_str(more);
    Ok(())
}

/// A copy of a text.
pub fn text_of(text: &str) -> Result<String> {
    let mut copy = String::new();
    copy.try_reserve_exact(text.len()).map_err(|_| NoRoom::of::<u8>(text.len()))?;
    copy.push_str(text);
    Ok(copy)
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    #[test]
    fn lists_that_are_too_long_are_refused() {
        assert!(grow(&mut Vec::<u64>::new(), usize::MAX / 8).is_err());
        assert_eq!(filled(0u64, usize::MAX / 2), Err(NoRoom { bytes: u64::MAX }));
        assert!(with_room::<u8>(usize::MAX).is_err());
        assert_eq!(filled(7u8, 3).unwrap(), [7, 7, 7]);
    }

    #[test]
    fn lists_hold_what_was_put_into_them() {
        let mut list = collect((0..100).filter(|n| n % 2 == 0)).unwrap();
        push(&mut list, 7).unwrap();
        extend(&mut list, vec![8, 9]).unwrap();
        assert_eq!(list.len(), 53);
        assert_eq!(copy_of(&list).unwrap(), list);
        let mut text = text_of("one").unwrap();
        push_str(&mut text, " two").unwrap();
        assert_eq!(text, "one two");
    }
}
