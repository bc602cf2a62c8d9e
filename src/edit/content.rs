//! The bytes of a segment: ranges of sources and zeros, one after another.
//!
//! Cutting, joining and replacing a part move references, never bytes. Bytes are read when they are written somewhere or
//! asked for.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use edgepack_format::room;
use edgepack_loader::{Bytes, FileSource, MemorySource, Source};

use super::error::Error;

/// Bytes that are read at a time.
const PIECE: usize = 1 << 20;

/// Bytes that are somewhere. A clone refers to the same.
#[derive(Clone, Default)]
pub struct Content {
    parts: Vec<Part>,
    len: u64,
}

#[derive(Clone)]
enum Part {
    Source(Arc<dyn Source>, Range<u64>),
    Zeros(u64),
}

impl Part {
    fn len(&self) -> u64 {
        match self {
            Part::Source(_, range) => range.end.saturating_sub(range.start),
            Part::Zeros(len) => *len,
        }
    }

    fn slice(&self, from: u64, to: u64) -> Part {
        match self {
            Part::Source(source, range) => {
                Part::Source(source.clone(), range.start.saturating_add(from)..range.start.saturating_add(to))
            }
            Part::Zeros(_) => Part::Zeros(to.saturating_sub(from)),
        }
    }
}

impl Content {
    /// No bytes.
    pub fn empty() -> Self {
        Self::default()
    }

    /// A range of a source; `None` if the source does not have it.
    pub fn of(source: Arc<dyn Source>, range: Range<u64>) -> Option<Self> {
        let inside = range.start <= range.end && range.end <= source.len();
        let len = range.end.saturating_sub(range.start);
        inside.then(|| Content { parts: vec![Part::Source(source, range)], len })
    }

    /// A whole file, read when it is needed.
    pub fn of_file(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let source = FileSource::open(path).map_err(Error::io(path.display().to_string()))?;
        let len = source.len();
        let content = Content::of(Arc::new(source), 0..len);
        content.ok_or_else(|| Error::refused(path.display().to_string(), "its length changes"))
    }

    /// Returns `len` zeros.
    pub fn zeros(len: u64) -> Self {
        Content { parts: vec![Part::Zeros(len)], len }
    }

    /// Returns the number of bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// A part of it; `None` if it is not inside.
    pub fn slice(&self, range: Range<u64>) -> Option<Content> {
        if range.start > range.end || range.end > self.len {
            return None;
        }
        let mut cut = Content::empty();
        let mut at = 0u64;
        for part in &self.parts {
            let end = at.saturating_add(part.len());
            let (from, to) = (range.start.max(at), range.end.min(end));
            if from < to {
                cut.push(part.slice(from - at, to - at));
            }
            at = end;
        }
        Some(cut)
    }

    /// Appends another.
    pub fn append(&mut self, other: Content) {
        other.parts.into_iter().for_each(|part| self.push(part));
    }

    /// Appends zeros up to a multiple of `align`.
    pub fn align(&mut self, align: u64) {
        let end = self.len.checked_next_multiple_of(align.max(1)).unwrap_or(self.len);
        if end > self.len {
            self.push(Part::Zeros(end - self.len));
        }
    }

    /// Returns these bytes with those from `at` on replaced; `None` if the new ones do not fit inside.
    pub fn replaced(&self, at: u64, with: Content) -> Option<Content> {
        let end = at.checked_add(with.len)?;
        let tail = self.slice(end..self.len)?;
        let mut out = self.slice(0..at)?;
        out.append(with);
        out.append(tail);
        Some(out)
    }

    /// Writes all bytes, a piece at a time.
    pub fn write_to(&self, out: &mut dyn Write) -> io::Result<()> {
        self.pieces(|piece| out.write_all(piece))
    }

    /// Gives back the memory of what is borrowed from files.
    fn release(&self) {
        for part in &self.parts {
            if let Part::Source(source, range) = part {
                source.release(range.clone());
            }
        }
    }

    /// Returns all bytes in memory, borrowed from the source where it can.
    pub fn read(&self) -> io::Result<Cow<'_, [u8]>> {
        if let [Part::Source(source, range)] = self.parts.as_slice()
            && let Some(bytes) = source.borrow(range.clone())
        {
            return Ok(Cow::Borrowed(bytes));
        }
        let len = usize::try_from(self.len).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let mut bytes = room::with_room(len).map_err(|error| io::Error::new(io::ErrorKind::OutOfMemory, error))?;
        self.write_to(&mut bytes)?;
        Ok(Cow::Owned(bytes))
    }

    /// Returns a handle to all bytes, which stays when this goes: borrowed from the source where it can, read otherwise.
    pub fn held(&self) -> io::Result<Bytes> {
        if let [Part::Source(source, range)] = self.parts.as_slice()
            && let Some(bytes) = Bytes::lent(source.clone(), range.clone())
        {
            return Ok(bytes);
        }
        Ok(self.read()?.into_owned().into())
    }

    /// Returns whether the bytes are equal. Two references to one place are, without a comparison.
    pub fn same(&self, other: &Content) -> io::Result<bool> {
        if self.len != other.len {
            return Ok(false);
        }
        let mut same = true;
        self.each_pair(other, 1, &mut |a, b| same &= a == b)?;
        Ok(same)
    }

    /// Returns the place of the bytes, if they are one range of a source that others hold too: while it is held, an
    /// equal place means equal bytes.
    pub(super) fn place(&self) -> Option<(usize, u64, u64)> {
        match self.parts.as_slice() {
            [Part::Source(source, range)] if Arc::strong_count(source) > 1 => {
                Some((Arc::as_ptr(source).addr(), range.start, range.end))
            }
            _ => None,
        }
    }

    /// Visits the bytes of both, a piece of whole elements at a time, so that two files of any size compare in little
    /// memory. What one has more than the other is left out.
    pub(super) fn each_pair(
        &self,
        other: &Content,
        element: usize,
        visit: &mut dyn FnMut(&[u8], &[u8]),
    ) -> io::Result<()> {
        let piece = PIECE.next_multiple_of(element.max(1)) as u64;
        let len = self.len.min(other.len);
        let mut at = 0u64;
        while at < len {
            let end = len.min(at.saturating_add(piece));
            let cut = |content: &Content| content.slice(at..end).unwrap_or_default();
            let (left, right) = (cut(self), cut(other));
            visit(&left.read()?, &right.read()?);
            left.release();
            right.release();
            at = end;
        }
        Ok(())
    }

    /// Visits runs of bytes other than zero with their places, short zeros between them included.
    pub(super) fn nonzero(&self, visit: &mut dyn FnMut(u64, &[u8])) -> io::Result<()> {
        /// Zeros that end a run.
        const APART: usize = 16;
        let mut at = 0u64;
        self.pieces(|piece| {
            let mut run: Option<Range<usize>> = None;
            for (place, _) in piece.iter().enumerate().filter(|(_, byte)| **byte != 0) {
                run = Some(match run.take() {
                    Some(run) if place - run.end < APART => run.start..place + 1,
                    Some(run) => {
                        visit(at.saturating_add(run.start as u64), &piece[run]);
                        place..place + 1
                    }
                    None => place..place + 1,
                });
            }
            if let Some(run) = run {
                visit(at.saturating_add(run.start as u64), &piece[run]);
            }
            at = at.saturating_add(piece.len() as u64);
            Ok(())
        })
    }

    fn push(&mut self, part: Part) {
        self.len = self.len.saturating_add(part.len());
        self.parts.push(part);
    }

    fn pieces(&self, mut take: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        let mut buffer = Vec::new();
        for part in &self.parts {
            if let Part::Source(source, range) = part
                && let Some(bytes) = source.borrow(range.clone())
            {
                let mut at = range.start;
                for piece in bytes.chunks(PIECE) {
                    take(piece)?;
                    let end = at.saturating_add(piece.len() as u64);
                    // Whatever size a file has, no more than a piece of it is in memory.
                    source.release(at..end);
                    at = end;
                }
                continue;
            }
            let (mut at, len) = (0u64, part.len());
            while at < len {
                let piece = usize::try_from(len - at).unwrap_or(PIECE).min(PIECE);
                if let Part::Zeros(_) = part {
                    buffer.clear();
                }
                buffer.resize(piece, 0);
                if let Part::Source(source, range) = part {
                    source.read_at(range.start.saturating_add(at), &mut buffer)?;
                }
                take(&buffer)?;
                at = at.saturating_add(piece as u64);
            }
        }
        Ok(())
    }
}

impl From<Vec<u8>> for Content {
    fn from(bytes: Vec<u8>) -> Self {
        let len = bytes.len() as u64;
        Content { parts: vec![Part::Source(Arc::new(MemorySource::new(bytes)), 0..len)], len }
    }
}

impl From<&[u8]> for Content {
    fn from(bytes: &[u8]) -> Self {
        bytes.to_vec().into()
    }
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined() -> Content {
        let mut content = Content::from(vec![1, 2, 3]);
        content.align(4);
        content.append(Content::from(vec![4, 5]));
        content
    }

    #[test]
    fn parts_are_cut_joined_and_replaced() {
        let content = joined();
        assert_eq!(*content.read().unwrap(), [1, 2, 3, 0, 4, 5]);
        assert_eq!(*content.slice(2..5).unwrap().read().unwrap(), [3, 0, 4]);
        assert_eq!(content.slice(3..3).unwrap().len(), 0);
        assert!(content.slice(5..7).is_none());
        let replaced = content.replaced(2, vec![9, 9].into()).unwrap();
        assert_eq!(*replaced.read().unwrap(), [1, 2, 9, 9, 4, 5]);
        assert!(content.replaced(5, vec![9, 9].into()).is_none());
        assert!(content.replaced(u64::MAX, vec![9].into()).is_none());
    }

    #[test]
    fn handles_borrow_where_a_source_can() {
        let source: Arc<dyn Source> = Arc::new(MemorySource::new(vec![1, 2, 3, 4]));
        let content = Content::of(source, 1..3).unwrap();
        let handle = content.held().unwrap();
        assert!(!handle.is_heap());
        drop(content);
        assert_eq!(*handle, [2, 3]);
        let copy = joined().held().unwrap();
        assert!(copy.is_heap());
        assert_eq!(*copy, [1, 2, 3, 0, 4, 5]);
    }

    #[test]
    fn equality_is_by_bytes() {
        assert!(joined().same(&vec![1, 2, 3, 0, 4, 5].into()).unwrap());
        assert!(!joined().same(&vec![1, 2, 3, 1, 4, 5].into()).unwrap());
        assert!(!joined().same(&vec![1].into()).unwrap());
        let source: Arc<dyn Source> = Arc::new(MemorySource::new(vec![0; 8]));
        assert!(Content::of(source.clone(), 3..9).is_none());
        assert!(Content::of(source, 0..8).unwrap().same(&Content::zeros(8)).unwrap());
    }
}
