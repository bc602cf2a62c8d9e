//! Constants: where a payload has them, and their bytes once named data was asked.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Deref;

use crate::room::{self, NoRoom};
use crate::row::Text;

/// The offset of a constant that has a key.
pub const NO_OFFSET: u64 = u64::MAX;

/// The place of a constant.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum Constant<'a> {
    /// Entry 0, or one that contradicts itself or is outside of the payload.
    None,
    /// In the payload.
    Inline(&'a [u8]),
    /// In the named data of the program or of its data files.
    Named {
        /// Key under which the constant is named data.
        key: Text<'a>,
        /// Bytes.
        size: u64,
    },
}

/// A key in text: quoted, and cut where it is longer than any that exporters write.
pub(super) struct ShownKey<'k>(pub &'k str);

impl fmt::Display for ShownKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MOST: usize = 96;
        match self.0.char_indices().nth(MOST) {
            Some((end, _)) => write!(f, "{:?}… ({} bytes)", self.0.get(..end).unwrap_or_default(), self.0.len()),
            None => write!(f, "{:?}", self.0),
        }
    }
}

impl Constant<'_> {
    /// Bytes it has, or says it has.
    pub fn size(&self) -> u64 {
        match self {
            Constant::None => 0,
            Constant::Inline(bytes) => bytes.len() as u64,
            Constant::Named { size, .. } => *size,
        }
    }
}

/// Lends the bytes of constants.
pub trait ConstantBytes {
    /// The bytes of constant `index`, as many as it says; `None` where they are missing or fewer.
    fn bytes(&self, index: u32) -> Option<&[u8]>;

    /// The bytes found under the key of constant `index`, however many; `None` if it has no key or there are none.
    fn found(&self, index: u32) -> Option<&[u8]>;

    /// The number of bytes found under the key of constant `index`, for lenders that know it without reading them.
    fn found_len(&self, index: u32) -> Option<u64> {
        self.found(index).map(|bytes| bytes.len() as u64)
    }
}

/// The bytes of all constants of a payload. `D` is what a lookup gives: borrowed bytes, or what keeps them alive.
#[derive(Clone, Debug)]
pub struct Constants<'p, D> {
    entries: Vec<Entry<'p>>,
    data: Vec<D>,
}

#[derive(Clone, Copy, Debug)]
enum Entry<'p> {
    None,
    Inline(&'p [u8]),
    Named { data: usize, size: u64 },
}

/// The failure to get constants.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConstantsError<E> {
    /// The lookup failed.
    #[error("constant {index}: {source}")]
    Lookup {
        /// The first constant of that key.
        index: u32,
        /// The lookup's own error.
        source: E,
    },
    /// There is no memory for the list.
    #[error(transparent)]
    Memory(#[from] NoRoom),
}

impl<'p, D: Deref<Target = [u8]>> Constants<'p, D> {
    /// Asks for every key once, in the order of the file. Keys that nothing is found under are left out.
    pub(super) fn resolve<E>(
        list: &'p [Constant<'p>],
        mut lookup: impl FnMut(&str) -> Result<Option<D>, E>,
    ) -> Result<Self, ConstantsError<E>> {
        let mut asked: BTreeMap<&str, Option<usize>> = BTreeMap::new();
        let (mut entries, mut data) = (room::with_room(list.len())?, Vec::new());
        for (index, constant) in list.iter().enumerate() {
            let entry = match constant {
                Constant::None => Entry::None,
                Constant::Inline(bytes) => Entry::Inline(bytes),
                Constant::Named { key, size } => {
                    let place = match asked.get(&**key) {
                        Some(place) => *place,
                        None => {
                            let found = lookup(key);
                            // The list has fewer than 2^32 entries.
                            let found =
                                found.map_err(|source| ConstantsError::Lookup { index: index as u32, source })?;
                            let place = found.is_some().then_some(data.len());
                            if let Some(found) = found {
                                room::push(&mut data, found)?;
                            }
                            asked.insert(key, place);
                            place
                        }
                    };
                    place.map_or(Entry::None, |data| Entry::Named { data, size: *size })
                }
            };
            room::push(&mut entries, entry)?;
        }
        Ok(Constants { entries, data })
    }

    fn entry(&self, index: u32) -> Option<&Entry<'p>> {
        self.entries.get(usize::try_from(index).ok()?)
    }
}

impl<D: Deref<Target = [u8]>> ConstantBytes for Constants<'_, D> {
    fn bytes(&self, index: u32) -> Option<&[u8]> {
        match self.entry(index)? {
            Entry::None => None,
            Entry::Inline(bytes) => Some(bytes),
            Entry::Named { size, .. } => self.found(index)?.get(..usize::try_from(*size).ok()?),
        }
    }

    fn found(&self, index: u32) -> Option<&[u8]> {
        match self.entry(index)? {
            Entry::Named { data, .. } => self.data.get(*data).map(|data| &**data),
            _ => None,
        }
    }
}
