//! From a file to a package.
//!
//! The structure of every table is checked before any row is handed out, under the limits; what the rows mean is not,
//! so that a file with wrong contents can be repaired.

use std::path::Path;
use std::sync::Arc;

use edgepack_builder::envelope::program_head;
use edgepack_builder::sink::FlatSink;
use edgepack_format::check::{Checker, Path as Place, StructureRules};
use edgepack_format::header::{DataHeader, ProgramHeader, announced};
use edgepack_format::limits::Limits;
use edgepack_format::ptd::{FlatData, FlatTensor, Generation, LegacyFlatTensor};
use edgepack_format::pte::{BackendDelegateInlineData, Buffer, Program};
use edgepack_format::room;
use edgepack_format::row::Table;
use edgepack_format::{FileKind, bundle, ptd, pte, rules, wire};
use edgepack_loader::{AlignedBytes, FileHead, FileSource, MemorySource, Source, machine_limits};

use super::compiled::{CompiledModel, CompiledPackage};
use super::content::Content;
use super::error::Error;
use super::origin::Origin;
use super::package::{Layout, Package};
use super::places::Places;
use super::root::Root;

/// The kinds of files that are taken apart.
const OPENED: &[FileKind] = &[
    FileKind::Program,
    FileKind::Data,
    FileKind::FlatData,
    FileKind::Bundle,
    FileKind::DarwinnPackage,
    FileKind::TfLite,
];

/// A file whose head is in memory: what the rows of a [`Package`] are borrowed from.
///
/// ```
/// use edgepack::edit::{Opened, SplitOptions, split};
///
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/corpus/models/mlp_portable.pte");
/// let file = Opened::open(path)?;
/// let parts = split(file.package()?, &SplitOptions::default())?;
/// assert_eq!(parts.keys.len(), 6); // the constants are in `parts.data` now
/// # Ok::<(), edgepack::edit::Error>(())
/// ```
pub struct Opened {
    kind: FileKind,
    head: AlignedBytes,
    source: Arc<dyn Source>,
    limits: Limits,
}

impl Opened {
    /// Opens a file.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let source = FileSource::open(path).map_err(Error::io(path.display().to_string()))?;
        Self::from_source(Arc::new(source), machine_limits())
    }

    /// Opens a file that is in memory.
    pub fn from_bytes(bytes: impl Into<edgepack_loader::Bytes>) -> Result<Self, Error> {
        Self::from_source(Arc::new(MemorySource::new(bytes)), machine_limits())
    }

    /// Opens a file from any source, under these limits.
    pub fn from_source(source: Arc<dyn Source>, limits: Limits) -> Result<Self, Error> {
        let located = FileHead::detect(&*source, &limits)?;
        let kind = located.kind;
        if !OPENED.contains(&kind) {
            return Err(Error::Kind { found: kind, wanted: "a program, data file, bundled program or compiled model" });
        }
        let head = located.read(&*source, &limits).map_err(|error| match error {
            edgepack_loader::Error::Limit { bytes, limit, .. } => {
                Error::refused(source.name(), format!("a flatbuffer of {bytes} bytes, {limit} are allowed"))
            }
            error => error.into(),
        })?;
        Ok(Opened { kind, head, source, limits: limits.unfolding(located.len) })
    }

    /// Returns the kind of the file.
    pub fn kind(&self) -> FileKind {
        self.kind
    }

    /// Its rows and segments.
    pub fn package(&self) -> Result<Package<'_>, Error> {
        let compiled = match self.kind {
            FileKind::DarwinnPackage => Root::EdgeTpu(Box::new(CompiledPackage::open(&self.head, &self.limits)?)),
            FileKind::TfLite => Root::Model(Box::new(CompiledModel::open(&self.head, &self.limits)?)),
            _ => return self.family(),
        };
        Ok(Package::new(compiled))
    }

    /// Returns the places of everything in the file; `package` is the one of this file as it was opened. With them it gives
    /// the bytes of the file: what is no different in any row but in a byte, as a flag of 2, is an error.
    pub fn places(&self, package: &Package<'_>) -> Result<Places, Error> {
        let base = self.base();
        let mut segments = Vec::new();
        for row in package.root.segments().iter().flat_map(|rows| rows.iter()) {
            let row = row?;
            if row.size > 0 {
                let start = base.saturating_add(row.offset);
                segments.push(start..start.saturating_add(row.size));
            }
        }
        segments.sort_by_key(|segment| (segment.start, segment.end));
        Places::of(&package.root, &self.head, &self.content()?, &segments)
    }

    /// The start of the first segment.
    pub(super) fn base(&self) -> u64 {
        match (ProgramHeader::read(&self.head), DataHeader::read(&self.head)) {
            (Ok(header), _) => header.segment_base_offset,
            (_, Ok(header)) => header.segment_base_offset,
            _ => 0,
        }
    }

    /// Returns what identifies the file, and what our own writer makes of `package`, the one of this file as it was
    /// opened.
    pub fn origin(&self, package: &Package<'_>) -> Result<Origin, Error> {
        let own = Package { places: None, ..package.clone() };
        let ready = own.ready()?;
        Origin::of(&self.content()?, |out| ready.write_to(out))
    }

    /// The bytes of the whole file.
    fn content(&self) -> Result<Content, Error> {
        let content = Content::of(self.source.clone(), 0..self.source.len());
        content.ok_or_else(|| Error::refused(self.source.name(), "its length changes"))
    }

    /// The rows and segments of a file of the ExecuTorch family.
    fn family(&self) -> Result<Package<'_>, Error> {
        let identifier = self.head.get(4..8).unwrap_or_default();
        let (want, root): ([u8; 4], Root<'_>) = match self.kind {
            FileKind::Program => (pte::IDENTIFIER, Root::Program(self.root::<Program<'_>>()?)),
            FileKind::FlatData => (ptd::FLAT_DATA_IDENTIFIER, Root::FlatData(self.root::<FlatData<'_>>()?)),
            FileKind::Bundle => (bundle::IDENTIFIER, Root::Bundle(self.root()?)),
            _ => (ptd::IDENTIFIER, self.data_root()?),
        };
        if identifier != want {
            let (have, want) = (identifier.escape_ascii(), want.escape_ascii());
            return Err(Error::refused("identifier", format!("`{have}` where `{want}` is known")));
        }
        let (header, base, end) = match self.kind {
            FileKind::Program => match ProgramHeader::read(&self.head) {
                Ok(header) => {
                    let length =
                        if header.segment_data_size.is_some() { ProgramHeader::LEN } else { ProgramHeader::SHORT_LEN };
                    (Some(length), header.segment_base_offset, header.program_size)
                }
                Err(_) => (None, 0, 0),
            },
            FileKind::Data | FileKind::FlatData => match DataHeader::read(&self.head) {
                Ok(header) => (Some(DataHeader::LEN), header.segment_base_offset, header.region_end().unwrap_or(0)),
                Err(_) => (None, 0, 0),
            },
            _ => (None, 0, 0),
        };
        let mut package = Package::new(root);
        package.layout = Layout { header, ..Layout::DEFAULT };
        let mut starts = Vec::new();
        if let Some(rows) = package.root.segments() {
            for (index, row) in rows.iter().enumerate() {
                let row = row?;
                if row.size == 0 {
                    room::push(&mut package.segments, Content::empty())?;
                    continue;
                }
                room::push(&mut starts, row.offset)?;
                let start = base.checked_add(row.offset).filter(|_| header.is_some());
                let range = start.and_then(|start| Some(start..start.checked_add(row.size)?));
                let content = range.and_then(|range| Content::of(self.source.clone(), range));
                let place = || format!("segments[{index}]");
                let content = content.ok_or_else(|| {
                    let (bytes, have, start) = (row.size, self.source.len(), base.saturating_add(row.offset));
                    let message = match start.checked_add(bytes) {
                        Some(end) if header.is_some() && end > have => {
                            format!("cut short: its {bytes} bytes end at {end}, the file has {have}")
                        }
                        _ => format!("{bytes} bytes at {base}+{} are not in any file", row.offset),
                    };
                    Error::refused(place(), message)
                })?;
                room::push(&mut package.segments, content)?;
            }
        }
        // A place behind the file, which a header without segments may give, explains nothing.
        if header.is_some() && base <= self.source.len() {
            package.layout.segment_alignment = segment_alignment(base, end, &starts);
        }
        if let Root::Program(program) = &package.root {
            package.layout.data_alignment = self.data_alignment(program, header)?;
        }
        Ok(package)
    }

    fn data_root(&self) -> Result<Root<'_>, Error> {
        match Generation::of(&wire::Table::root(&self.head)?) {
            Generation::A | Generation::B => Ok(Root::LegacyData(self.root::<LegacyFlatTensor<'_>>()?)),
            _ => Ok(Root::Data(self.root::<FlatTensor<'_>>()?)),
        }
    }

    /// The root row, once everything below it is known to be readable within the limits.
    fn root<'a, T: Table<'a>>(&'a self) -> Result<T, Error> {
        let program = &rules::pte::MALFORMED;
        let (malformed, misaligned, text, limits) = match self.kind {
            FileKind::Data | FileKind::FlatData => {
                (&rules::ptd::MALFORMED, &rules::ptd::MISALIGNED, &rules::ptd::TEXT, &rules::ptd::LIMITS)
            }
            FileKind::Bundle => {
                (&rules::bundle::MALFORMED, &rules::bundle::MISALIGNED, &rules::bundle::TEXT, &rules::bundle::LIMITS)
            }
            _ => (program, &rules::pte::MISALIGNED, &rules::pte::TEXT, &rules::pte::LIMITS),
        };
        let root = wire::Table::root(&self.head)?;
        let mut checker = Checker::new(&self.limits, StructureRules { malformed, misaligned, text, limits });
        checker.table::<T>(root, &Place::ROOT);
        if checker.findings.has_errors() {
            let want = if self.kind == FileKind::Bundle {
                bundle::verify::announced(&self.head)
            } else {
                announced(&self.head)
            };
            checker.findings.announce(self.source.len(), want);
            return Err(Error::Invalid(checker.findings));
        }
        Ok(T::decode(root)?)
    }

    /// Returns the alignment of data inside the flatbuffer.
    ///
    /// The file does not say. The padded header bounds it, and so do the places of the data. If our own writer gives these
    /// very bytes for one of the possible numbers, it is that one.
    fn data_alignment(&self, program: &Program<'_>, header: Option<u32>) -> Result<u64, Error> {
        const LEAST: u64 = Layout::DEFAULT.data_alignment;
        let root = u64::from(wire::Table::root(&self.head)?.offset());
        let within_header = match header {
            // The header is padded to a multiple of the alignment, the root follows within as much again.
            Some(_) => 1u64 << root.saturating_sub(8).max(LEAST).ilog2(),
            None => edgepack_builder::sink::MAX_ALIGNMENT as u64,
        };
        let mut places = inline_places(program)?;
        places.retain(|place| *place > 0);
        if places.is_empty() {
            return Ok(if header.is_some() && within_header > 2 * LEAST { within_header } else { LEAST });
        }
        let common = places.iter().fold(u64::MAX, |common, place| common.min(1 << place.trailing_zeros()));
        let most = common.min(within_header).clamp(LEAST, edgepack_builder::sink::MAX_ALIGNMENT as u64);
        let candidates = (LEAST.ilog2()..most.ilog2()).map(|shift| 1u64 << shift);
        for align in candidates {
            let mut sink = FlatSink::new().with_data_alignment(align as usize);
            let written = program.encode(&mut sink)?;
            let flatbuffer = sink.finish(written, pte::IDENTIFIER)?;
            let size = u64::from(header.is_some());
            let head = program_head(flatbuffer, size, align as usize, 1)?;
            // The header itself is not compared: its numbers follow from the rest.
            const BEHIND: usize = 8 + ProgramHeader::LEN as usize;
            if head.len() == self.head.len() && head.get(BEHIND..) == self.head.get(BEHIND..) {
                return Ok(align);
            }
        }
        Ok(most)
    }
}

/// Returns the starts of the data inside a flatbuffer; 0 for empty data.
fn inline_places(program: &Program<'_>) -> Result<Vec<u64>, Error> {
    let place = |table: wire::Table<'_>, slot: u16| -> Result<u64, Error> {
        Ok(table.vector(slot, 1)?.filter(|bytes| !bytes.is_empty()).map_or(0, |bytes| u64::from(bytes.offset())))
    };
    let mut places = Vec::new();
    let constants = program.constant_buffer.as_ref().map(|rows| (rows.tables(), Buffer::STORAGE.index));
    let payloads = program.backend_delegate_data.as_ref();
    let payloads = payloads.map(|rows| (rows.tables(), BackendDelegateInlineData::DATA.index));
    for (tables, slot) in constants.into_iter().chain(payloads) {
        room::grow(&mut places, tables.len())?;
        for table in tables.iter() {
            places.push(place(table?, slot)?);
        }
    }
    Ok(places)
}

/// An alignment that explains where segments start: what exporters use if that does, else a power of two, else whatever
/// does. With any number that explains them, the same head gives the same places.
fn segment_alignment(base: u64, end: u64, offsets: &[u64]) -> u64 {
    const PAGE: u64 = 4096;
    let usual = Layout::DEFAULT.segment_alignment;
    if base == 0 {
        return usual;
    }
    let common = offsets.iter().fold(base, |common, offset| gcd(common, *offset));
    let gap = base.saturating_sub(end);
    let power = 1u64 << common.trailing_zeros();
    let mut align = usual.min(power);
    // A gap as large as the alignment is there because of a larger one.
    while align <= gap && align < power {
        align = align.saturating_mul(2);
    }
    if align > usual && power >= PAGE {
        // Of several numbers that do, the one that exporters choose for files that are mapped.
        align = align.max(PAGE);
    }
    if align <= gap {
        const TRIES: u64 = 4096;
        let most = common / gap.saturating_add(1);
        let divisor = (1..=most).rev().take(TRIES as usize).find(|factor| common.is_multiple_of(*factor));
        align = divisor.map_or(power, |factor| common / factor);
    }
    align.min(edgepack_builder::MAX_SEGMENT_ALIGNMENT)
}

fn gcd(a: u64, b: u64) -> u64 {
    let (mut a, mut b) = (a, b);
    while let Some(rest) = a.checked_rem(b) {
        (a, b) = (b, rest);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alignments_are_found_again() {
        let cases: &[(u64, u64, &[u64], u64)] = &[
            (1024, 1000, &[0, 128], 128),
            (4096, 1000, &[0, 8192], 4096),
            (4096, 4000, &[0, 4096], 128),
            (4096, 3080, &[0], 4096),
            (1008, 1000, &[0, 48], 16),
            (1000, 1000, &[0], 8),
            (0, 0, &[], 128),
            (1536, 1000, &[0, 512], 512),
            (96, 50, &[0, 48], 48),
            (1152, 100, &[0], 1152),
            // A gap that nothing explains.
            (1152, 100, &[0, 128], 128),
        ];
        for (base, end, offsets, want) in cases {
            assert_eq!(segment_alignment(*base, *end, offsets), *want, "{base} {end} {offsets:?}");
        }
    }
}
