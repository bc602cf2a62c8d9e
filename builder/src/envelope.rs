//! Envelope of a flatbuffer in a file: the extended header inside it and the segments behind it.
//!
//! The header goes between the identifier and the rest, so everything after byte 8 moves by the padded header, which is
//! a multiple of the largest alignment inside: offsets between tables and all alignments stay true, only the root word
//! changes.

use edgepack_format::header::{DataHeader, HEADER_OFFSET, ProgramHeader};

use crate::Error;

/// The next multiple of any number but zero. Where segments start need not be a power of two.
pub(crate) fn align_up(value: u64, align: usize) -> Result<u64, Error> {
    if align == 0 {
        return Err(Error::Alignment(align));
    }
    value.checked_next_multiple_of(align as u64).ok_or(Error::Overflow)
}

/// Returns the start of each of these segments, counted from the first, and the end of the last one.
pub fn place_segments(lens: impl IntoIterator<Item = u64>, align: usize) -> Result<(Vec<u64>, u64), Error> {
    let mut offsets = Vec::new();
    let mut end = 0u64;
    for len in lens {
        let start = align_up(end, align)?;
        offsets.push(start);
        end = start.checked_add(len).ok_or(Error::Overflow)?;
    }
    Ok((offsets, end))
}

/// A flatbuffer with a header inserted after its identifier, padded with zeros to `header_len`.
fn insert(flatbuffer: &[u8], header: &[u8], header_len: u64) -> Result<Vec<u8>, Error> {
    let header_len = usize::try_from(header_len).map_err(|_| Error::Overflow)?;
    let len = flatbuffer.len().checked_add(header_len).ok_or(Error::Overflow)?;
    let shift = u32::try_from(header_len).map_err(|_| Error::Overflow)?;
    let (Some((root, rest)), Some(tail)) = (flatbuffer.split_first_chunk::<4>(), flatbuffer.get(HEADER_OFFSET..))
    else {
        return Err(Error::Overflow);
    };
    let mut out = Vec::with_capacity(len);
    out.extend(u32::from_le_bytes(*root).checked_add(shift).ok_or(Error::Overflow)?.to_le_bytes());
    out.extend(rest.iter().take(4));
    out.extend(header);
    out.resize(HEADER_OFFSET.saturating_add(header_len), 0);
    out.extend(tail);
    Ok(out)
}

/// A program file up to its first segment. Without segment bytes it has no header: the flatbuffer is the file.
///
/// `inline_align` is the largest alignment of data inside the flatbuffer, at least 16.
pub fn program_head(
    flatbuffer: Vec<u8>,
    segment_data_size: u64,
    inline_align: usize,
    segment_align: usize,
) -> Result<Vec<u8>, Error> {
    if segment_data_size == 0 {
        return Ok(flatbuffer);
    }
    let header_len = align_up(u64::from(ProgramHeader::LEN), inline_align)?;
    let program_size = (flatbuffer.len() as u64).checked_add(header_len).ok_or(Error::Overflow)?;
    let header = ProgramHeader {
        length: ProgramHeader::LEN,
        program_size,
        segment_base_offset: align_up(program_size, segment_align)?,
        segment_data_size: Some(segment_data_size),
    };
    let mut out = insert(&flatbuffer, &header.to_bytes(), header_len)?;
    pad_to(&mut out, header.segment_base_offset)?;
    Ok(out)
}

/// A data file up to its first segment. The header is always there.
pub fn data_head(
    flatbuffer: &[u8],
    segment_data_size: u64,
    inline_align: usize,
    segment_align: usize,
) -> Result<Vec<u8>, Error> {
    let header_len = align_up(u64::from(DataHeader::LEN), inline_align)?;
    let flatbuffer_size = flatbuffer.len() as u64;
    let end = header_len.checked_add(flatbuffer_size).ok_or(Error::Overflow)?;
    let header = DataHeader {
        length: DataHeader::LEN,
        flatbuffer_offset: header_len,
        flatbuffer_size,
        segment_base_offset: align_up(end, segment_align)?,
        segment_data_size,
    };
    let mut out = insert(flatbuffer, &header.to_bytes(), header_len)?;
    pad_to(&mut out, header.segment_base_offset)?;
    Ok(out)
}

/// Appends segments to a head that ends where they start.
pub(crate) fn append_segments(out: &mut Vec<u8>, segments: &[&[u8]], align: usize) -> Result<(), Error> {
    let base = out.len() as u64;
    let (offsets, _) = place_segments(segments.iter().map(|segment| segment.len() as u64), align)?;
    for (segment, offset) in segments.iter().zip(offsets).filter(|(segment, _)| !segment.is_empty()) {
        pad_to(out, base.checked_add(offset).ok_or(Error::Overflow)?)?;
        out.extend_from_slice(segment);
    }
    Ok(())
}

fn pad_to(out: &mut Vec<u8>, len: u64) -> Result<(), Error> {
    let len = usize::try_from(len).map_err(|_| Error::Overflow)?;
    if len > out.len() {
        out.resize(len, 0);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_padded_apart_and_the_last_is_not_padded() {
        let (offsets, end) = place_segments([60, 0, 0, 720, 48, 12], 128).unwrap();
        assert_eq!(offsets, [0, 128, 128, 128, 896, 1024]);
        assert_eq!(end, 1036);
        assert_eq!(place_segments([u64::MAX, 1], 128), Err(Error::Overflow));
        assert_eq!(place_segments([1, 1], 12).unwrap(), (vec![0, 12], 13));
        assert_eq!(place_segments([1], 0), Err(Error::Alignment(0)));
    }

    #[test]
    fn the_header_grows_with_the_alignment_inside() {
        let flatbuffer = [&28u32.to_le_bytes()[..], b"ET12", &[7; 24]].concat();
        for (align, header_len) in [(16, 32), (32, 32), (64, 64), (128, 128)] {
            let head = program_head(flatbuffer.clone(), 60, align, 128).unwrap();
            assert_eq!(u32::from_le_bytes(head[..4].try_into().unwrap()), 28 + header_len);
            let header = ProgramHeader::read(&head).unwrap();
            assert_eq!(header.program_size, 32 + u64::from(header_len));
            assert_eq!(header.segment_base_offset as usize, head.len());
            assert_eq!(head.len() % 128, 0);
            assert_eq!(head[8 + header_len as usize..][..24], [7; 24]);
        }
        assert_eq!(program_head(flatbuffer.clone(), 0, 16, 128).unwrap(), flatbuffer);
    }

    #[test]
    fn the_data_header_is_padded_to_48() {
        let flatbuffer = [&28u32.to_le_bytes()[..], b"FT01", &[7; 264]].concat();
        let head = data_head(&flatbuffer, 140, 16, 128).unwrap();
        let header = DataHeader::read(&head).unwrap();
        assert_eq!((header.flatbuffer_offset, header.flatbuffer_size, header.segment_base_offset), (48, 272, 384));
        assert_eq!(head.len(), 384);
        assert!(data_head(b"short", 0, 16, 128).is_err());
    }
}
