//! The flatbuffer of a file: read into memory, its root table located, its rules checked.

use edgepack_format::extent::FileExtent;
use edgepack_format::finding::Findings;
use edgepack_format::header::HEAD_LEN;
use edgepack_format::limits::Limits;
use edgepack_format::ptd::{Accept, Generation};
use edgepack_format::row::{Table as _, TableDesc};
use edgepack_format::{bundle, ptd, pte, trace, wire};
use edgepack_loader::AlignedBytes;

use crate::file::{File, read_head};
use crate::kind::Kind;
use crate::status::Failure;

/// A file's flatbuffer in memory; segments stay where they are.
pub struct Flatbuffer {
    /// Its kind.
    pub kind: Kind,
    /// From the start of the file to the end of the flatbuffer.
    pub head: AlignedBytes,
    /// The file's length.
    pub extent: FileExtent,
}

impl Flatbuffer {
    /// Reads it.
    pub fn read(file: &File, limits: &Limits) -> Result<Flatbuffer, Failure> {
        let extent = FileExtent { len: file.source.len() };
        let first = read_head(&*file.source, HEAD_LEN as u64)?;
        let len = match file.kind {
            Kind::Program => pte::program_len(&first, extent),
            Kind::Data | Kind::FlatData => ptd::data_len(&first, extent),
            Kind::Bundle | Kind::Trace => extent.len,
        };
        if len > limits.segment_bytes {
            let message = format!("{}: a flatbuffer of {len} bytes, {} are allowed", file.name, limits.segment_bytes);
            return Err(Failure::findings(message));
        }
        let head = read_head(&*file.source, len).map_err(|failure| failure.about(&file.name))?;
        Ok(Flatbuffer { kind: file.kind, head, extent })
    }

    /// Everything the rules of its kind have to say.
    pub fn verify(&self, limits: &Limits) -> Findings {
        let (head, extent) = (&self.head[..], self.extent);
        match self.kind {
            Kind::Program => pte::verify::verify(head, extent, limits).findings,
            Kind::Data | Kind::FlatData => ptd::verify::verify(head, extent, limits, Accept::ALL).findings,
            Kind::Bundle => bundle::verify::verify(head, limits).findings,
            Kind::Trace => trace::verify::verify(head, limits).findings,
        }
    }

    /// The root table with its description, if it can be located at all.
    pub fn root(&self) -> Option<(wire::Table<'_>, &'static TableDesc)> {
        let start = if self.kind == Kind::Trace { trace::PREFIX_LEN } else { 0 };
        let table = wire::Table::root_at(&self.head, start).ok()?;
        let desc = match self.kind {
            Kind::Program => pte::Program::DESC,
            Kind::Data => match Generation::of(&table) {
                Generation::A | Generation::B => ptd::LegacyFlatTensor::DESC,
                Generation::C | Generation::FlatData => ptd::FlatTensor::DESC,
            },
            Kind::FlatData => ptd::FlatData::DESC,
            Kind::Bundle => bundle::BundledProgram::DESC,
            Kind::Trace => trace::ETDump::DESC,
        };
        Some((table, desc))
    }

    /// Where the bytes of a key of a data file are.
    pub fn data_entry(&self, key: &str) -> Option<std::ops::Range<u64>> {
        let verdict = ptd::verify::verify(&self.head, self.extent, &Limits::DEFAULT, Accept::ALL);
        Some(verdict.data?.lookup(key)?.range)
    }
}
