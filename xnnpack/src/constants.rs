//! The bytes of a payload's constants, borrowed from where they are: the payload, the program's named data, or a data file.
//!
//! Every key is asked for once, so what was verified is what is used.

use std::collections::HashMap;

use edgepack_executor::kernel::KernelError;
use edgepack_format::finding::ErrorCode;
use edgepack_format::xnnpack::{Constant, ConstantBytes, Payload};
use edgepack_loader::{Bytes, NamedDataMap};

/// The bytes of all constants, by index.
pub(crate) struct Weights {
    entries: Vec<Option<Entry>>,
}

struct Entry {
    bytes: Bytes,
    /// As many as the payload says.
    size: usize,
    named: bool,
}

impl Weights {
    /// Asks for every constant of a payload that lies in `processed`.
    pub fn of(payload: &Payload<'_>, processed: &Bytes, named: &dyn NamedDataMap) -> Result<Self, KernelError> {
        let mut known: HashMap<&str, Option<Bytes>> = HashMap::new();
        let mut entries = edgepack_executor::kernel::room(payload.constant_list().len())?;
        for constant in payload.constant_list() {
            entries.push(match constant {
                Constant::Inline(part) => {
                    let bytes = inside(processed, part);
                    bytes.map(|bytes| Entry { size: bytes.len(), bytes, named: false })
                }
                Constant::Named { key, size } => {
                    let found = match known.get(&**key) {
                        Some(found) => found.clone(),
                        None => {
                            let found = named.data(key).map_err(|error| {
                                KernelError::new(ErrorCode::InvalidExternalData, format!("the key {}: {error}", &**key))
                            })?;
                            known.insert(key, found.clone());
                            found
                        }
                    };
                    let size = usize::try_from(*size).unwrap_or(usize::MAX);
                    found.map(|bytes| Entry { bytes, size, named: true })
                }
                _ => None,
            });
        }
        Ok(Weights { entries })
    }

    /// The first `len` bytes of a constant, borrowed.
    pub fn shared(&self, index: u32, len: usize) -> Option<Bytes> {
        let entry = self.entry(index).filter(|entry| len <= entry.size)?;
        entry.bytes.slice(0..len)
    }

    fn entry(&self, index: u32) -> Option<&Entry> {
        self.entries.get(usize::try_from(index).ok()?)?.as_ref()
    }
}

impl ConstantBytes for Weights {
    fn bytes(&self, index: u32) -> Option<&[u8]> {
        let entry = self.entry(index)?;
        entry.bytes.get(..entry.size)
    }

    fn found(&self, index: u32) -> Option<&[u8]> {
        self.entry(index).filter(|entry| entry.named).map(|entry| &*entry.bytes)
    }
}

/// A part of some bytes, as bytes of its own.
fn inside(whole: &Bytes, part: &[u8]) -> Option<Bytes> {
    let start = (part.as_ptr() as usize).checked_sub(whole.as_ptr() as usize)?;
    whole.slice(start..start.checked_add(part.len())?)
}
