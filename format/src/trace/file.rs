//! Traces as a whole: from bytes to a verified view.

use core::fmt;

use super::{ETDump, RunData};
use crate::row::{Rows, Table as _};
use crate::wire;

/// The identifier of a trace, at byte 8: behind the length and the root word.
pub const IDENTIFIER: [u8; 4] = *b"ED00";

/// Bytes of the length in front. The root word follows and counts from itself.
pub const PREFIX_LEN: usize = 4;

/// A trace that satisfies the rules, borrowed from the whole file.
#[derive(Clone)]
pub struct TraceRef<'a> {
    bytes: &'a [u8],
    root: ETDump<'a>,
}

impl<'a> TraceRef<'a> {
    /// Views bytes that [`TraceRef::parse`] has accepted before, without verifying them again. Other bytes are not
    /// dangerous, every access stays checked, but nothing that parsing promises holds for them.
    pub fn reopen(bytes: &'a [u8]) -> wire::Result<Self> {
        let len = declared_len(bytes).and_then(|len| usize::try_from(len).ok());
        let bytes = len.and_then(|len| bytes.get(..len)).unwrap_or(bytes);
        Ok(TraceRef { bytes, root: ETDump::decode(wire::Table::root_at(bytes, PREFIX_LEN)?)? })
    }

    /// The file up to the end that its length declares.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The root row.
    pub fn root(&self) -> &ETDump<'a> {
        &self.root
    }

    /// The blocks of events, in the order they were recorded.
    pub fn blocks(&self) -> Rows<'a, RunData<'a>> {
        self.root.run_data.clone().unwrap_or_default()
    }
}

impl fmt::Debug for TraceRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TraceRef({} bytes, {} blocks)", self.bytes.len(), self.blocks().len())
    }
}

/// Bytes of the whole trace, the length itself included.
pub(super) fn declared_len(bytes: &[u8]) -> Option<u64> {
    let prefix = bytes.first_chunk()?;
    Some(u64::from(u32::from_le_bytes(*prefix)).saturating_add(PREFIX_LEN as u64))
}
