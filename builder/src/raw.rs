//! Whole files from rows as they are.
//!
//! Nothing is checked: the rows may contradict each other, the segments, or every rule there is. Only the framing is
//! right: flatbuffer, extended header, segments where [`segments`] says. Header, segments and padding are laid out
//! as the reference exporter lays them out; tables of the flatbuffer may come in another order.

use edgepack_format::bundle::BundledProgram;
use edgepack_format::ptd::{DataSegment, FlatData, FlatTensor, LegacyFlatTensor};
use edgepack_format::pte::Program;
use edgepack_format::row::Table;
use edgepack_format::trace::ETDump;

use crate::Error;
use crate::envelope;
use crate::sink::{FlatSink, flatbuffer};

/// Layout options of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Alignment of segments in the file: any number but 0.
    pub segment_alignment: usize,
    /// Alignment of data inside the flatbuffer, constants and delegate payloads alike: a power of two. The header is
    /// padded to a multiple of it.
    pub data_alignment: usize,
}

impl Options {
    /// Options of the reference exporter.
    pub const DEFAULT: Options = Options { segment_alignment: 128, data_alignment: 16 };

    /// The same with segments at multiples of `align`.
    pub const fn segment_alignment(self, align: usize) -> Self {
        Options { segment_alignment: align, ..self }
    }

    /// The same with data inside the flatbuffer at multiples of `align`.
    pub const fn data_alignment(self, align: usize) -> Self {
        Options { data_alignment: align, ..self }
    }

    fn inline_align(&self) -> usize {
        self.data_alignment.max(Self::DEFAULT.data_alignment)
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The rows that describe these segments truthfully: where the functions of this module put them.
pub fn segments(segments: &[&[u8]], options: &Options) -> Result<Vec<DataSegment>, Error> {
    let lens = segments.iter().map(|segment| segment.len() as u64);
    let (offsets, _) = envelope::place_segments(lens.clone(), options.segment_alignment)?;
    Ok(offsets.into_iter().zip(lens).map(|(offset, size)| DataSegment { offset, size }).collect())
}

/// A program file: `ET12`, with the header `eh00` if there are segment bytes.
pub fn program(row: &Program<'_>, segments: &[&[u8]], options: &Options) -> Result<Vec<u8>, Error> {
    let mut sink = FlatSink::new().with_data_alignment(options.inline_align());
    let root = row.encode(&mut sink)?;
    let flatbuffer = sink.finish(root, *b"ET12")?;
    let size = data_size(segments, options)?;
    let mut out = envelope::program_head(flatbuffer, size, options.inline_align(), options.segment_alignment)?;
    envelope::append_segments(&mut out, segments, options.segment_alignment)?;
    Ok(out)
}

/// A data file: `FT01` with the header `FH01`.
pub fn flat_tensor(row: &FlatTensor<'_>, segments: &[&[u8]], options: &Options) -> Result<Vec<u8>, Error> {
    data_file(row, *b"FT01", segments, options)
}

/// A data file of generation A or B.
pub fn legacy_flat_tensor(row: &LegacyFlatTensor<'_>, segments: &[&[u8]], options: &Options) -> Result<Vec<u8>, Error> {
    data_file(row, *b"FT01", segments, options)
}

/// A FlatData file: `FD01` with the header `FH01`.
pub fn flat_data(row: &FlatData<'_>, segments: &[&[u8]], options: &Options) -> Result<Vec<u8>, Error> {
    data_file(row, *b"FD01", segments, options)
}

fn data_file<'a, T: Table<'a>>(
    row: &T,
    identifier: [u8; 4],
    segments: &[&[u8]],
    options: &Options,
) -> Result<Vec<u8>, Error> {
    let flatbuffer = flatbuffer(row, identifier)?;
    let size = data_size(segments, options)?;
    let mut out = envelope::data_head(&flatbuffer, size, options.inline_align(), options.segment_alignment)?;
    envelope::append_segments(&mut out, segments, options.segment_alignment)?;
    Ok(out)
}

/// A bundled program: `BP08`, a plain flatbuffer.
pub fn bundled(row: &BundledProgram<'_>) -> Result<Vec<u8>, Error> {
    flatbuffer(row, *b"BP08")
}

/// A trace: `ED00`, a flatbuffer behind its length.
pub fn etdump(row: &ETDump<'_>) -> Result<Vec<u8>, Error> {
    let mut sink = FlatSink::new();
    let root = row.encode(&mut sink)?;
    sink.finish_prefixed(root, *b"ED00")
}

fn data_size(segments: &[&[u8]], options: &Options) -> Result<u64, Error> {
    let lens = segments.iter().map(|segment| segment.len() as u64);
    Ok(envelope::place_segments(lens, options.segment_alignment)?.1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use edgepack_format::header::{DataHeader, ProgramHeader, identifier};
    use edgepack_format::ptd::NamedData;
    use edgepack_format::pte::{Buffer, SubsegmentOffsets};
    use edgepack_format::wire;

    fn decode<'a, T: Table<'a>>(bytes: &'a [u8], root: usize) -> T {
        T::decode(wire::Table::root_at(bytes, root).unwrap()).unwrap()
    }

    fn with_segments(segments: &[&[u8]]) -> Program<'static> {
        Program {
            segments: Some(super::segments(segments, &Options::DEFAULT).unwrap().into()),
            constant_segment: Some(SubsegmentOffsets { segment_index: 0, offsets: Some(vec![0u64].into()) }),
            ..Program::default()
        }
    }

    #[test]
    fn a_program_without_segment_bytes_has_no_header() {
        let bytes = program(&with_segments(&[b""]), &[b""], &Options::DEFAULT).unwrap();
        assert_eq!(identifier(&bytes), Some(*b"ET12"));
        assert!(ProgramHeader::read(&bytes).is_err());
        assert_eq!(decode::<Program<'_>>(&bytes, 0), with_segments(&[b""]));
    }

    #[test]
    fn segments_follow_the_header() {
        let segments: [&[u8]; 4] = [&[1; 200], b"", b"two", &[3; 128]];
        let bytes = program(&with_segments(&segments), &segments, &Options::DEFAULT).unwrap();
        let header = ProgramHeader::read(&bytes).unwrap();
        let base = header.segment_base_offset as usize;
        assert_eq!(base % 128, 0);
        assert_eq!(bytes.len() as u64, header.segment_base_offset + header.segment_data_size.unwrap());
        let row: Program<'_> = decode(&bytes[..header.program_size as usize], 0);
        for (segment, place) in segments.iter().zip(row.segments.unwrap().iter().map(Result::unwrap)) {
            let start = base + place.offset as usize;
            assert_eq!(&&bytes[start..start + place.size as usize], segment);
        }
    }

    #[test]
    fn inline_data_is_aligned_in_the_file() {
        for align in [1, 16, 64, 4096] {
            let buffers =
                [5usize, 17, 0].map(|len| Buffer { storage: Some(edgepack_format::row::Blob(vec![9; len].into())) });
            let row = Program { constant_buffer: Some(buffers.to_vec().into()), ..Program::default() };
            let bytes = program(&row, &[b"x"], &Options::DEFAULT.data_alignment(align)).unwrap();
            let root = wire::Table::root(&bytes).unwrap();
            for table in root.get(Program::CONSTANT_BUFFER).unwrap().unwrap().tables().iter() {
                let storage = table.unwrap().vector(0, 1).unwrap().unwrap();
                assert_eq!(storage.offset() as usize % align.max(16), 0, "{align}");
            }
        }
    }

    #[test]
    fn data_files_differ_in_identifier_and_slots() {
        let entry = NamedData { key: Some("a".into()), ..NamedData::default() };
        let row = FlatTensor {
            segments: Some(segments(&[b"abc"], &Options::DEFAULT).unwrap().into()),
            named_data: Some(vec![entry].into()),
            ..FlatTensor::default()
        };
        let bytes = flat_tensor(&row, &[b"abc"], &Options::DEFAULT).unwrap();
        let header = DataHeader::read(&bytes).unwrap();
        assert_eq!((header.flatbuffer_offset, header.segment_data_size), (48, 3));
        assert_eq!(&bytes[header.segment_base_offset as usize..], b"abc");
        assert_eq!(decode::<FlatTensor<'_>>(&bytes[..header.region_end().unwrap() as usize], 0), row);
        let other = flat_data(&FlatData { version: 3, ..FlatData::default() }, &[], &Options::DEFAULT).unwrap();
        assert_eq!(identifier(&other), Some(*b"FD01"));
        assert_eq!(DataHeader::read(&other).unwrap().segment_data_size, 0);
    }

    #[test]
    fn an_embedded_program_starts_at_a_multiple_of_32() {
        let inner = program(&with_segments(&[b"weights"]), &[b"weights"], &Options::DEFAULT).unwrap();
        let row = BundledProgram {
            version: 2,
            program: Some(edgepack_format::row::Blob((&inner[..]).into())),
            ..BundledProgram::default()
        };
        let bytes = bundled(&row).unwrap();
        let at = wire::Table::root(&bytes).unwrap().vector(2, 1).unwrap().unwrap();
        assert_eq!(at.offset() % 32, 0);
        assert_eq!(at.bytes(), inner);
    }

    #[test]
    fn a_trace_has_its_length_in_front() {
        let bytes = etdump(&ETDump { version: 9, ..ETDump::default() }).unwrap();
        assert_eq!(bytes[..4], (bytes.len() as u32 - 4).to_le_bytes());
        assert_eq!(decode::<ETDump<'_>>(&bytes, 4).version, 9);
    }
}
