//! A handle to bytes that stay where they are for as long as the handle lives.

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

use crate::aligned::AlignedBytes;
use crate::source::Source;

/// Read-only bytes: read into memory for this handle, or borrowed from the source it keeps alive. Cloning is cheap; the
/// memory is released with the last clone.
#[derive(Clone)]
pub struct Bytes {
    repr: Repr,
}

#[derive(Clone)]
enum Repr {
    Heap(Arc<AlignedBytes>, Range<usize>),
    Shared(Arc<[u8]>),
    /// Bytes of a caller that gave them away; moving them behind a count copies nothing.
    Owned(Arc<Vec<u8>>),
    Lent(Arc<dyn Source>, Range<u64>),
}

/// Bytes between two parts of a source that are released at once: they fill no page.
const NEAR: u64 = 4095;

impl Bytes {
    /// Borrows a range of a source; `None` if this range cannot be borrowed.
    pub fn lent(source: Arc<dyn Source>, range: Range<u64>) -> Option<Self> {
        source.borrow(range.clone())?;
        Some(Bytes { repr: Repr::Lent(source, range) })
    }

    /// A part of these bytes, sharing their memory; `None` if it is not inside.
    pub fn slice(&self, range: Range<usize>) -> Option<Bytes> {
        self.get(range.clone())?;
        let repr = match &self.repr {
            Repr::Heap(bytes, whole) => {
                let (start, end) = (whole.start.checked_add(range.start)?, whole.start.checked_add(range.end)?);
                Repr::Heap(bytes.clone(), start..end)
            }
            Repr::Lent(source, whole) => {
                let start = whole.start.checked_add(range.start as u64)?;
                Repr::Lent(source.clone(), start..whole.start.checked_add(range.end as u64)?)
            }
            // A caller's own memory is rarely sliced; a copy keeps this type small.
            Repr::Shared(bytes) => return Some(AlignedBytes::copy_of(bytes.get(range)?)?.into()),
            Repr::Owned(bytes) => return Some(AlignedBytes::copy_of(bytes.get(range)?)?.into()),
        };
        Some(Bytes { repr })
    }

    /// Tells the source of borrowed bytes that they will hardly be read again, so that it can give back the memory
    /// that mirrors them. They stay what they are.
    pub fn release(&self) {
        if let Repr::Lent(source, range) = &self.repr {
            source.release(range.clone());
        }
    }

    /// [Releases](Bytes::release) all of them. What lies next to each other in a source is released at once, however often it
    /// is named.
    pub fn release_all<'b>(all: impl Iterator<Item = &'b Bytes> + Clone) {
        let lent = all.filter_map(|bytes| match &bytes.repr {
            Repr::Lent(source, range) => Some((source, range.clone())),
            _ => None,
        });
        let mut sorted: Vec<(&Arc<dyn Source>, Range<u64>)> = Vec::new();
        if sorted.try_reserve_exact(lent.clone().count()).is_err() {
            return lent.for_each(|(source, range)| source.release(range));
        }
        sorted.extend(lent);
        sorted.sort_unstable_by_key(|(source, range)| (Arc::as_ptr(source).addr(), range.start));
        sorted.dedup_by(|(next_source, next), (source, range)| {
            let joins = Arc::ptr_eq(source, next_source) && next.start <= range.end.saturating_add(NEAR);
            if joins {
                range.end = range.end.max(next.end);
            }
            joins
        });
        sorted.into_iter().for_each(|(source, range)| source.release(range));
    }

    /// Returns whether they are borrowed from a source that [gives back](Source::gives_back) memory that is released.
    pub fn gives_back(&self) -> bool {
        matches!(&self.repr, Repr::Lent(source, _) if source.gives_back())
    }

    /// Returns whether the bytes are memory of this handle, rather than borrowed from its source.
    pub fn is_heap(&self) -> bool {
        !matches!(self.repr, Repr::Lent(..))
    }
}

impl From<AlignedBytes> for Bytes {
    fn from(bytes: AlignedBytes) -> Self {
        Arc::new(bytes).into()
    }
}

impl From<Arc<AlignedBytes>> for Bytes {
    fn from(bytes: Arc<AlignedBytes>) -> Self {
        let range = 0..bytes.len();
        Bytes { repr: Repr::Heap(bytes, range) }
    }
}

impl From<Arc<[u8]>> for Bytes {
    fn from(bytes: Arc<[u8]>) -> Self {
        Bytes { repr: Repr::Shared(bytes) }
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Self {
        Bytes { repr: Repr::Owned(Arc::new(bytes)) }
    }
}

impl From<Box<[u8]>> for Bytes {
    fn from(bytes: Box<[u8]>) -> Self {
        Vec::from(bytes).into()
    }
}

/// Copies. A caller that has a copy already gives that, or a slice that lives as long as the process
/// ([`StaticSource`](crate::StaticSource)).
impl From<&[u8]> for Bytes {
    fn from(bytes: &[u8]) -> Self {
        Arc::<[u8]>::from(bytes).into()
    }
}

impl<const N: usize> From<[u8; N]> for Bytes {
    fn from(bytes: [u8; N]) -> Self {
        bytes.as_slice().into()
    }
}

impl Deref for Bytes {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        match &self.repr {
            Repr::Heap(bytes, range) => bytes.get(range.clone()).unwrap_or(&[]),
            Repr::Shared(bytes) => bytes,
            Repr::Owned(bytes) => bytes,
            // A source that let a range be borrowed once does so always: that is its contract.
            Repr::Lent(source, range) => source.borrow(range.clone()).unwrap_or(&[]),
        }
    }
}

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.len())
    }
}
