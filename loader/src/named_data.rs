//! Data found by key: the trait of every place that has some, and several such places as one.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use edgepack_format::room::{self, NoRoom};
use edgepack_format::tensor::TensorLayout;

use crate::bytes::Bytes;
use crate::error::Error;

/// Read-only data by key. Looking up does not scan; bytes are read when they are asked for and released when dropped.
///
/// A map of your own, which `Options::data` of the executor takes:
///
/// ```
/// use edgepack_format::tensor::TensorLayout;
/// use edgepack_loader::{Bytes, Error, NamedDataMap};
///
/// /// A single tensor.
/// struct Single(&'static str, TensorLayout, Vec<u8>);
///
/// impl NamedDataMap for Single {
///     fn data(&self, key: &str) -> Result<Option<Bytes>, Error> {
///         Ok((key == self.0).then(|| Bytes::from(self.2.clone())))
///     }
///     fn layout(&self, key: &str) -> Result<Option<TensorLayout>, Error> {
///         Ok((key == self.0).then(|| self.1.clone()))
///     }
///     fn len(&self) -> usize {
///         1
///     }
///     fn key(&self, index: usize) -> Option<&str> {
///         (index == 0).then_some(self.0)
///     }
///     fn contains(&self, key: &str) -> bool {
///         key == self.0
///     }
/// }
///
/// let layout = TensorLayout::contiguous(edgepack_format::scalar::ScalarType::FLOAT, &[2])?;
/// let map = Single("bias", layout, vec![0; 8]);
/// assert_eq!(map.data("bias")?.unwrap().len(), 8);
/// assert!(map.data("weight")?.is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait NamedDataMap: Send + Sync {
    /// The bytes of a key, or `None` if there is no such key.
    fn data(&self, key: &str) -> Result<Option<Bytes>, Error>;

    /// Fills a buffer with the bytes of a key. Its length has to be theirs; where it is not, or there is no such key, nothing
    /// is written and the answer is an error.
    ///
    /// ```
    /// # use edgepack_loader::NamedDataMap;
    /// # fn demo(weights: &dyn NamedDataMap) -> Result<(), edgepack_loader::Error> {
    /// let mut device_memory = vec![0; 4096];
    /// weights.load_into("layers.0.weight", &mut device_memory)?;
    /// # Ok(())
    /// # }
    /// ```
    fn load_into(&self, key: &str, into: &mut [u8]) -> Result<(), Error> {
        let data = self.data(key)?.ok_or_else(|| Error::NotFound { what: "key", name: key.to_owned() })?;
        check_length(key, data.len() as u64, into)?;
        into.copy_from_slice(&data);
        Ok(())
    }

    /// Returns the layout of a tensor under this key, or `None` if there is no such key or it is not a tensor.
    fn layout(&self, key: &str) -> Result<Option<TensorLayout>, Error>;

    /// Number of keys.
    fn len(&self) -> usize;

    /// Returns whether there are no keys.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Key `index`, in the order of the file.
    fn key(&self, index: usize) -> Option<&str>;

    /// Returns whether there is such a key.
    fn contains(&self, key: &str) -> bool;
}

/// An empty index with room for so many keys.
pub(crate) fn index<K: Eq + Hash, V>(keys: usize) -> Result<HashMap<K, V>, NoRoom> {
    let mut index = HashMap::new();
    index.try_reserve(keys).map_err(|_| NoRoom::of::<(K, V)>(keys))?;
    Ok(index)
}

/// Checks that a buffer is as long as the data it is to be filled with.
pub(crate) fn check_length(key: &str, have: u64, into: &[u8]) -> Result<(), Error> {
    let want = into.len() as u64;
    if have == want { Ok(()) } else { Err(Error::Length { key: key.to_owned(), have, want }) }
}

/// Several maps as one. A key in two of them is an error.
#[derive(Clone, Default)]
pub struct MergedData {
    /// Those that are not empty.
    maps: Vec<Arc<dyn NamedDataMap>>,
    /// Index of the map that has each key, and all keys, if there are several maps.
    index: HashMap<String, usize>,
    keys: Vec<String>,
}

impl MergedData {
    /// Merges maps, in order.
    pub fn new(maps: impl IntoIterator<Item = Arc<dyn NamedDataMap>>) -> Result<Self, Error> {
        let maps: Vec<_> = maps.into_iter().filter(|map| !map.is_empty()).collect();
        if maps.len() < 2 {
            return Ok(MergedData { maps, ..Self::default() });
        }
        let count = maps.iter().fold(0usize, |count, map| count.saturating_add(map.len()));
        let (mut index, mut keys) = (index(count)?, Vec::new());
        for (number, map) in maps.iter().enumerate() {
            for key in (0..map.len()).filter_map(|index| map.key(index)) {
                if index.insert(key.to_owned(), number).is_some() {
                    return Err(Error::DuplicateKey { key: key.to_owned() });
                }
                room::push(&mut keys, key.to_owned())?;
            }
        }
        Ok(MergedData { maps, index, keys })
    }

    fn map(&self, key: &str) -> Option<&dyn NamedDataMap> {
        match self.only() {
            Some(only) => Some(only),
            None => self.maps.get(*self.index.get(key)?).map(|map| &**map),
        }
    }

    /// The map, if there is one.
    fn only(&self) -> Option<&dyn NamedDataMap> {
        match &self.maps[..] {
            [only] => Some(&**only),
            _ => None,
        }
    }
}

impl NamedDataMap for MergedData {
    fn data(&self, key: &str) -> Result<Option<Bytes>, Error> {
        self.map(key).map_or(Ok(None), |map| map.data(key))
    }
    fn load_into(&self, key: &str, into: &mut [u8]) -> Result<(), Error> {
        let missing = || Error::NotFound { what: "key", name: key.to_owned() };
        self.map(key).ok_or_else(missing)?.load_into(key, into)
    }
    fn layout(&self, key: &str) -> Result<Option<TensorLayout>, Error> {
        self.map(key).map_or(Ok(None), |map| map.layout(key))
    }
    fn len(&self) -> usize {
        self.only().map_or(self.keys.len(), NamedDataMap::len)
    }
    fn key(&self, index: usize) -> Option<&str> {
        self.only().map_or_else(|| self.keys.get(index).map(String::as_str), |only| only.key(index))
    }
    fn contains(&self, key: &str) -> bool {
        self.only().map_or_else(|| self.index.contains_key(key), |only| only.contains(key))
    }
}
