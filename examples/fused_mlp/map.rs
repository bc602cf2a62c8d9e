//! Named data wherever one likes: here in a `HashMap`.

use std::collections::HashMap;

use edgepack::format::tensor::TensorLayout;
use edgepack::loader::{Bytes, Error, NamedDataMap};

/// Data by key, in memory.
#[derive(Default)]
pub struct OwnMap {
    keys: Vec<String>,
    data: HashMap<String, Bytes>,
}

impl OwnMap {
    /// Everything of another map.
    pub fn copy_of(other: &dyn NamedDataMap) -> Result<OwnMap, Error> {
        let mut map = OwnMap::default();
        for key in (0..other.len()).filter_map(|index| other.key(index)) {
            if let Some(data) = other.data(key)? {
                map.keys.push(key.to_owned());
                map.data.insert(key.to_owned(), data);
            }
        }
        Ok(map)
    }
}

impl NamedDataMap for OwnMap {
    fn data(&self, key: &str) -> Result<Option<Bytes>, Error> {
        Ok(self.data.get(key).cloned())
    }

    fn layout(&self, _: &str) -> Result<Option<TensorLayout>, Error> {
        Ok(None)
    }

    fn len(&self) -> usize {
        self.keys.len()
    }

    fn key(&self, index: usize) -> Option<&str> {
        self.keys.get(index).map(String::as_str)
    }

    fn contains(&self, key: &str) -> bool {
        self.data.contains_key(key)
    }
}
