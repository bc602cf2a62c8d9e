//! The named data inside a program.

use std::collections::HashMap;
use std::sync::Arc;

use edgepack_format::room;
use edgepack_format::tensor::TensorLayout;

use crate::bytes::Bytes;
use crate::error::Error;
use crate::named_data::{NamedDataMap, index};

use super::program::Program;

/// The named data inside a program.
pub struct ProgramData {
    program: Program,
    keys: Vec<Arc<str>>,
    segments: HashMap<Arc<str>, u32>,
}

impl Program {
    /// The data that delegates find by key.
    pub fn named_data(&self) -> Result<ProgramData, Error> {
        ProgramData::new(self.clone())
    }
}

impl ProgramData {
    fn new(program: Program) -> Result<Self, Error> {
        let named = program.view()?.program().named_data.clone().unwrap_or_default().tables();
        let mut keys = room::with_room(named.len())?;
        let mut segments = index(named.len())?;
        for entry in program.view()?.program().named_data.clone().unwrap_or_default().iter() {
            let entry = entry?;
            let key: Arc<str> = Arc::from(&*entry.key.unwrap_or_default());
            if segments.insert(Arc::clone(&key), entry.segment_index).is_some() {
                return Err(Error::DuplicateKey { key: key.to_string() });
            }
            keys.push(key);
        }
        Ok(ProgramData { program, keys, segments })
    }
}

impl NamedDataMap for ProgramData {
    fn data(&self, key: &str) -> Result<Option<Bytes>, Error> {
        self.segments.get(key).map(|&segment| self.program.segment(segment)).transpose()
    }
    fn layout(&self, _: &str) -> Result<Option<TensorLayout>, Error> {
        // A program records keys and segments only.
        Ok(None)
    }
    fn len(&self) -> usize {
        self.keys.len()
    }
    fn key(&self, index: usize) -> Option<&str> {
        self.keys.get(index).map(|key| &**key)
    }
    fn contains(&self, key: &str) -> bool {
        self.segments.contains_key(key)
    }
}
