//! A file that is ready to be written: its head in memory, its segments as references to their contents.
//!
//! Writing streams: the memory it takes does not depend on the size of the segments, and the same file yields the same
//! bytes each time.

use std::io::{self, Write};
use std::path::Path;

use edgepack_format::room;

use crate::build_error::BuildError;
use crate::content::{Data, pad};
use crate::named_data::lcm;
use crate::{Error, concurrent, write_file};

/// One segment: contents at offsets, zeros between them.
#[derive(Clone, Debug)]
pub(crate) struct Segment<'d> {
    parts: Vec<(u64, Data<'d>)>,
    len: u64,
    align: u64,
}

impl<'d> Segment<'d> {
    /// A segment of one content.
    pub(crate) fn of(data: Data<'d>, align: u64) -> Self {
        Segment { len: data.len(), parts: vec![(0, data)], align }
    }

    /// Contents one after another, each but the last padded; their offsets in the segment are the other result.
    pub(crate) fn packed(contents: &[Data<'d>], align: u64) -> Result<(Self, Vec<u64>), Error> {
        let mut segment = Segment { parts: Vec::with_capacity(contents.len()), len: 0, align: 1 };
        let mut offsets = Vec::with_capacity(contents.len());
        for data in contents {
            let start = segment.len.checked_next_multiple_of(align).ok_or(Error::Overflow)?;
            segment.len = start.checked_add(data.len()).ok_or(Error::Overflow)?;
            segment.parts.push((start, data.clone()));
            offsets.push(start);
        }
        segment.align = align;
        Ok((segment, offsets))
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    fn write_to(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut at = 0u64;
        for (start, data) in &self.parts {
            pad(out, start.saturating_sub(at))?;
            data.write_to(out)?;
            at = start.saturating_add(data.len());
        }
        Ok(())
    }
}

/// Places of segments, counted from the start of the first.
pub(crate) struct Placement {
    pub(crate) offsets: Vec<u64>,
    /// Bytes from the start of the first to the end of the last.
    pub(crate) size: u64,
    /// Alignment of the first segment in the file, in bytes.
    pub(crate) base_align: u64,
}

/// Places segments in order, each aligned to the multiple of its own alignment and the common one.
///
/// The base is aligned to the powers of two among the alignments, so those hold in the file; others hold from the base on.
pub(crate) fn place(segments: &[Segment<'_>], common: u64) -> Result<Placement, Error> {
    let mut placement = Placement { offsets: Vec::with_capacity(segments.len()), size: 0, base_align: common };
    for segment in segments {
        let align = lcm(common, segment.align);
        let start = placement.size.checked_next_multiple_of(align).ok_or(Error::Overflow)?;
        placement.size = start.checked_add(segment.len).ok_or(Error::Overflow)?;
        placement.offsets.push(start);
        if segment.align.is_power_of_two() {
            placement.base_align = lcm(placement.base_align, segment.align);
        }
    }
    Ok(placement)
}

/// A file ready to be written.
#[derive(Clone, Debug)]
pub struct FinishedFile<'d> {
    head: Vec<u8>,
    /// Each with its offset in the file.
    segments: Vec<(u64, Segment<'d>)>,
    len: u64,
}

impl<'d> FinishedFile<'d> {
    /// A file of this head; segments with bytes are placed behind it.
    pub(crate) fn new(head: Vec<u8>, segments: Vec<Segment<'d>>, placement: &Placement) -> Result<Self, Error> {
        let base = head.len() as u64;
        let len = base.checked_add(placement.size).ok_or(Error::Overflow)?;
        let offsets = placement.offsets.iter().map(|offset| base.saturating_add(*offset));
        let segments = offsets.zip(segments).filter(|(_, segment)| segment.len > 0).collect();
        Ok(FinishedFile { head, segments, len })
    }

    /// Bytes of the whole file.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns whether the file has no bytes; a finished file always has some.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Everything in front of the segments.
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// Writes the file.
    pub fn write_to(&self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(&self.head)?;
        let mut at = self.head.len() as u64;
        for (start, segment) in &self.segments {
            pad(out, start.saturating_sub(at))?;
            segment.write_to(out)?;
            at = start.saturating_add(segment.len);
        }
        pad(out, self.len.saturating_sub(at))
    }

    /// The file in memory. Contents are read on several threads.
    pub fn to_bytes(&self) -> Result<Vec<u8>, BuildError> {
        let len = usize::try_from(self.len).map_err(|_| Error::Overflow)?;
        let mut bytes = room::zeros(len).map_err(|error| io::Error::new(io::ErrorKind::OutOfMemory, error))?;
        let (head, mut rest) = bytes.split_at_mut_checked(self.head.len()).ok_or(Error::Overflow)?;
        head.copy_from_slice(&self.head);
        let mut at = self.head.len() as u64;
        let mut places = Vec::new();
        for (start, segment) in &self.segments {
            for (offset, data) in &segment.parts {
                let start = start.saturating_add(*offset);
                let place;
                (place, rest) = part_of(rest, start.saturating_sub(at), data.len())?;
                at = start.saturating_add(data.len());
                places.push((place, data));
            }
        }
        places.sort_by_key(|(place, _)| std::cmp::Reverse(place.len()));
        let read = concurrent::map(places, self.len, |(mut place, data)| data.write_to(&mut place));
        read.into_iter().collect::<io::Result<()>>()?;
        Ok(bytes)
    }

    /// Writes the file under this name. An old one stays until the new one is complete.
    pub fn write_to_path(&self, path: impl AsRef<Path>) -> Result<(), BuildError> {
        let what = path.as_ref().display().to_string();
        write_file::replace(path, |out| self.write_to(out)).map_err(BuildError::reading(what))
    }
}

/// `len` bytes behind the first `gap`, and what is behind them.
fn part_of(bytes: &mut [u8], gap: u64, len: u64) -> Result<(&mut [u8], &mut [u8]), Error> {
    let [gap, len] = [gap, len].map(|count| usize::try_from(count).unwrap_or(usize::MAX));
    bytes.split_at_mut_checked(gap).and_then(|(_, rest)| rest.split_at_mut_checked(len)).ok_or(Error::Overflow)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(len: usize, align: u64) -> Segment<'static> {
        Segment::of(vec![7; len].into(), align)
    }

    #[test]
    fn constants_are_padded_apart_but_not_at_the_end() {
        for a in [16, 128] {
            let lens = [a / 2, a - 1, a, a + 1];
            let contents: Vec<Data<'_>> = lens.iter().map(|len| vec![1; *len].into()).collect();
            let (segment, offsets) = Segment::packed(&contents, a as u64).unwrap();
            assert_eq!(segment.len(), 4 * a as u64 + 1);
            assert_eq!(offsets, [0, a as u64, 2 * a as u64, 3 * a as u64]);
            let mut bytes = Vec::new();
            segment.write_to(&mut bytes).unwrap();
            assert_eq!(bytes.len(), 4 * a + 1);
            assert_eq!(bytes.iter().filter(|byte| **byte == 1).count(), lens.iter().sum::<usize>());
        }
    }

    #[test]
    fn segments_honour_both_alignments() {
        let place = |common, aligns: &[u64]| {
            let segments: Vec<_> = aligns.iter().map(|align| segment(10, *align)).collect();
            let placement = place(&segments, common).unwrap();
            (placement.offsets, placement.size, placement.base_align)
        };
        assert_eq!(place(128, &[1, 3, 256]), (vec![0, 384, 512], 522, 256));
        assert_eq!(place(12, &[8, 32, 24]), (vec![0, 96, 120], 130, 96));
        assert_eq!(place(128, &[]), (vec![], 0, 128));
    }

    #[test]
    fn a_file_is_its_head_and_segments() {
        let segments = vec![segment(3, 1), segment(0, 1), segment(2, 1)];
        let placement = place(&segments, 8).unwrap();
        let file = FinishedFile::new(vec![1; 16], segments, &placement).unwrap();
        let bytes = file.to_bytes().unwrap();
        assert_eq!(bytes.len() as u64, file.len());
        assert_eq!(bytes[16..], [7, 7, 7, 0, 0, 0, 0, 0, 7, 7]);
    }
}
