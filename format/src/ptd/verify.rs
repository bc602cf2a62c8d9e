//! The verifier of data files: every rule a file can break, all findings, in `O(n log n)` of its entries.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::data::{DataRef, DataRoot, FLAT_DATA_IDENTIFIER, IDENTIFIER, List};
use super::{Accept, FlatData, FlatTensor, Generation, LegacyFlatTensor};
use crate::check::{Checker, Path, StructureRules};
use crate::extent::FileExtent;
use crate::finding::{Findings, Rule};
use crate::header::{self, DataHeader, HEAD_LEN, HEADER_OFFSET, announced};
use crate::limits::Limits;
use crate::room;
use crate::row::Table;
use crate::rules::ptd as rules;
use crate::wire;

const STRUCTURE: StructureRules = StructureRules {
    malformed: &rules::MALFORMED,
    misaligned: &rules::MISALIGNED,
    text: &rules::TEXT,
    limits: &rules::LIMITS,
};

/// The longest flatbuffer.
const MAX_FLATBUFFER: u64 = i32::MAX as u64;

/// Result of verification.
pub struct Verdict<'a> {
    /// Everything found.
    pub findings: Findings,
    /// The file, as far as it could be read at all. Its index holds the entries that have a key.
    pub data: Option<DataRef<'a>>,
}

impl<'a> DataRef<'a> {
    /// Parses and verifies a current file. `head` holds at least the first [`data_len`](super::data_len) bytes of a file of that extent.
    ///
    /// The errors are all findings, the harmless ones included.
    pub fn parse(head: &'a [u8], extent: FileExtent, limits: &Limits) -> Result<Self, Findings> {
        Self::parse_as(head, extent, limits, Accept::default())
    }

    /// The same for files that `accept` names, too.
    pub fn parse_as(head: &'a [u8], extent: FileExtent, limits: &Limits, accept: Accept) -> Result<Self, Findings> {
        match verify(head, extent, limits, accept) {
            Verdict { findings, data: Some(data) } if !findings.has_errors() => Ok(data),
            Verdict { findings, .. } => Err(findings),
        }
    }
}

/// Verifies a data file: header, structure, segments, entries.
pub fn verify<'a>(head: &'a [u8], extent: FileExtent, limits: &Limits, accept: Accept) -> Verdict<'a> {
    let mut walk = Walk { checker: Checker::new(limits, STRUCTURE), extent };
    let data = walk.file(head, accept);
    walk.checker.findings.announce(extent.len, announced(head));
    Verdict { findings: walk.checker.findings, data }
}

struct Walk {
    checker: Checker,
    extent: FileExtent,
}

impl Walk {
    fn report(&mut self, rule: &'static Rule, field: &'static str, offset: Option<u32>, message: String) {
        let path = if field.is_empty() { Path::ROOT } else { Path::ROOT.field(field) };
        self.checker.report(rule, &path, offset, message);
    }

    fn file<'a>(&mut self, head: &'a [u8], accept: Accept) -> Option<DataRef<'a>> {
        if self.extent.len < HEAD_LEN as u64 || head.len() < HEAD_LEN {
            let len = self.extent.len.min(head.len() as u64);
            self.report(&rules::SHORT, "", None, format!("{len} bytes, at least {HEAD_LEN} are needed"));
            return None;
        }
        let identifier = header::identifier(head).unwrap_or_default();
        let is_flat_data = match identifier {
            IDENTIFIER => false,
            FLAT_DATA_IDENTIFIER => true,
            other => {
                let rule = if accept.bare_flat_data { &rules::UNIDENTIFIED } else { &rules::IDENTIFIER };
                self.report(rule, "", Some(4), format!("the identifier is {}", other.escape_ascii()));
                if !accept.bare_flat_data {
                    return None;
                }
                true
            }
        };
        let header = match DataHeader::read(head) {
            Ok(header) => header,
            Err(error) => {
                self.report(&rules::HEADER, "header", Some(HEADER_OFFSET as u32), error.to_string());
                return None;
            }
        };
        let bytes = self.region(head, &header)?;
        self.area(&header);
        self.root(bytes, header, is_flat_data, accept)
    }

    /// The bytes of the flatbuffer with the header in it.
    fn region<'a>(&mut self, head: &'a [u8], header: &DataHeader) -> Option<&'a [u8]> {
        let DataHeader { flatbuffer_offset: offset, flatbuffer_size: size, .. } = *header;
        if offset < u64::from(DataHeader::LEN) {
            let message = format!("{offset}, the header alone has {} bytes", DataHeader::LEN);
            self.report(&rules::FLATBUFFER_OFFSET, "header.flatbuffer_offset", Some(16), message);
        }
        let limit = self.extent.len.min(head.len() as u64).min(MAX_FLATBUFFER);
        let region = header.region_end().filter(|end| *end <= limit && size > HEADER_OFFSET as u64);
        let Some(bytes) = region.and_then(|end| head.get(..usize::try_from(end).ok()?)) else {
            let message = format!("offset {offset} and size {size} in a file of {} bytes", self.extent.len);
            self.report(&rules::REGION, "header.flatbuffer_size", Some(24), message);
            return None;
        };
        let root = bytes.first_chunk().map_or(0, |word| u64::from(u32::from_le_bytes(*word)));
        let first = offset.saturating_add(HEADER_OFFSET as u64);
        let last = (bytes.len() as u64).saturating_sub(4);
        if root < first || root > last {
            let message = format!("the root offset is {root}, tables lie between {first} and {last}");
            self.report(&rules::ROOT, "", Some(0), message);
            // Behind the first eight bytes there may still be something to show; in the header there is not.
            return None;
        }
        Some(bytes)
    }

    /// The segment area as the header declares it.
    fn area(&mut self, header: &DataHeader) {
        let DataHeader { segment_base_offset: base, segment_data_size: size, .. } = *header;
        let region = header.region_end().unwrap_or(u64::MAX);
        if size > 0 && base < region {
            let message = format!("{base}, the flatbuffer ends at {region}");
            self.report(&rules::BASE, "header.segment_base_offset", Some(32), message);
        }
        let len = self.extent.len;
        match base.checked_add(size) {
            Some(end) if end <= len => {
                let end = end.max(region);
                if end < len {
                    let more = len.saturating_sub(end);
                    let message = format!("{more} bytes behind the declared end at {end}");
                    self.report(&rules::TRAILING, "", None, message);
                }
            }
            end => {
                let end = end.map_or("beyond 64 bits".to_string(), |end| end.to_string());
                let message = format!("segment data ends at {end}, the file has {len} bytes");
                self.report(&rules::TRUNCATED, "header.segment_data_size", Some(40), message);
            }
        }
    }

    fn root<'a>(
        &mut self,
        bytes: &'a [u8],
        header: DataHeader,
        is_flat_data: bool,
        accept: Accept,
    ) -> Option<DataRef<'a>> {
        let table = match wire::Table::root(bytes) {
            Ok(table) => table,
            Err(error) => {
                self.checker.unreadable(&Path::ROOT, error);
                return None;
            }
        };
        let generation = if is_flat_data { Generation::FlatData } else { Generation::of(&table) };
        if generation.is_legacy() {
            let rule = if accept.legacy { &rules::LEGACY } else { &rules::LEGACY_REFUSED };
            self.report(rule, "", Some(table.offset()), format!("the tables are of generation {generation:?}"));
            if !accept.legacy {
                return None;
            }
        }
        let root = match generation {
            Generation::C => self.structure::<FlatTensor<'_>>(table).map(DataRoot::Current),
            Generation::FlatData => self.structure::<FlatData<'_>>(table).map(DataRoot::FlatData),
            Generation::A | Generation::B => self.structure::<LegacyFlatTensor<'_>>(table).map(DataRoot::Legacy),
        }?;
        if root.version() != 0 {
            let message = format!("version {}, this reader knows 0", root.version());
            self.report(&rules::VERSION, "version", Some(table.offset()), message);
        }
        let mut data = DataRef { bytes, header, generation, root, keys: Vec::new(), sorted: Vec::new() };
        if !self.checker.is_spent()
            && let Err(error) = self.meaning(&mut data)
        {
            self.checker.no_room(&Path::ROOT, error);
        }
        Some(data)
    }

    fn meaning(&mut self, data: &mut DataRef<'_>) -> room::Result<()> {
        let mut used = self.segments(data)?;
        self.entries(data, &mut used)?;
        self.unused(&used);
        Ok(())
    }

    fn structure<'a, T: Table<'a>>(&mut self, table: wire::Table<'a>) -> Option<T> {
        self.checker.table::<T>(table, &Path::ROOT);
        // What cannot be read has been reported by the check.
        T::decode(table).ok()
    }

    /// Checks the segments; the answer has one `false` for each.
    fn segments(&mut self, data: &DataRef<'_>) -> room::Result<Vec<bool>> {
        let Some(segments) = data.root.segments() else {
            self.report(&rules::SEGMENTS, "segments", None, "absent".to_string());
            return Ok(Vec::new());
        };
        let path = Path::ROOT.field("segments");
        let DataHeader { segment_base_offset: base, segment_data_size: size, .. } = data.header;
        let mut previous_end = 0u64;
        for (index, table) in segments.tables().iter().enumerate() {
            let path = path.index(index);
            let Some((at, segment)) =
                table.ok().and_then(|table| Some((table.offset(), super::DataSegment::decode(table).ok()?)))
            else {
                continue;
            };
            let end = segment.offset.checked_add(segment.size).filter(|end| base.checked_add(*end).is_some());
            match end {
                Some(end) if end <= size => {}
                _ => {
                    let message = format!(
                        "offset {} and size {}, the header declares {size} bytes",
                        segment.offset, segment.size
                    );
                    self.checker.report(&rules::SEGMENT_RANGE, &path, Some(at), message);
                    continue;
                }
            }
            if segment.offset < previous_end {
                let message = format!("starts at {}, the segment before ends at {previous_end}", segment.offset);
                self.checker.report(&rules::SEGMENT_ORDER, &path, Some(at), message);
            }
            previous_end = previous_end.max(end.unwrap_or(0));
            let start = base.saturating_add(segment.offset);
            if segment.size > 0 && !start.is_multiple_of(16) {
                let message = format!("starts at {start:#x} of the file");
                self.checker.report(&rules::SEGMENT_ALIGNMENT, &path, Some(at), message);
            }
        }
        room::filled(false, segments.len())
    }

    fn entries(&mut self, data: &mut DataRef<'_>, used: &mut [bool]) -> room::Result<()> {
        let lists = data.root.lists();
        if lists.iter().all(Option::is_none) {
            self.report(&rules::ENTRIES, "named_data", None, "absent".to_string());
        }
        let mut bounds = Vec::new();
        let mut missing = false;
        for list in lists.into_iter().flatten() {
            room::grow(&mut data.keys, list.len())?;
            for index in 0..list.len() {
                let path = Path::ROOT.field(list.name());
                let key = self.entry(data, &list, index, &path.index(index), used);
                // An entry without a key keeps its place, so that places stay those of the file.
                missing |= key.is_none();
                data.keys.push(key.unwrap_or_default());
            }
            bounds.push((list.name(), data.keys.len()));
        }
        data.sorted = room::collect(0..data.keys.len() as u32)?;
        let keys = &data.keys;
        // By place where keys are equal: sorting in place needs no memory, and is not stable.
        data.sorted.sort_unstable_by_key(|&index| (keys.get(index as usize), index));
        self.duplicates(data, &bounds, missing);
        Ok(())
    }

    /// Checks one entry and answers its key.
    fn entry<'a>(
        &mut self,
        data: &DataRef<'a>,
        list: &List<'a>,
        index: usize,
        path: &Path<'_>,
        used: &mut [bool],
    ) -> Option<&'a str> {
        // What cannot be read has been reported by the structural check.
        let entry = list.entry(index).ok()?;
        let at = Some(entry.at);
        if entry.key.is_none() {
            self.checker.report(&rules::KEY, path, at, "the entry has no key".to_string());
        }
        match used.get_mut(entry.segment as usize) {
            Some(used) => *used = true,
            None => {
                let message = format!("segment {} of {}", entry.segment, used.len());
                self.checker.report(&rules::ENTRY_SEGMENT, path, at, message);
            }
        }
        let Some(layout) = &entry.layout else { return entry.key };
        if layout.sizes.is_none() || layout.dim_order.is_none() {
            let which = if layout.sizes.is_none() { "sizes" } else { "dim_order" };
            self.checker.report(&rules::LAYOUT_PARTS, path, at, format!("the layout has no {which}"));
            return entry.key;
        }
        let want = match layout.check() {
            Ok(layout) => layout.byte_len() as u64,
            Err(error) => {
                self.checker.report(&rules::LAYOUT, path, at, error.to_string());
                return entry.key;
            }
        };
        let segment = data.root.segments().and_then(|segments| segments.get(entry.segment as usize).ok());
        let Some(have) = segment.map(|segment| segment.size) else { return entry.key };
        if let Some(within) = entry.within {
            if within.checked_add(want).is_none_or(|end| end > have) {
                let message = format!("{want} bytes at {within} of a segment of {have}");
                self.checker.report(&rules::TENSOR_RANGE, path, at, message);
            }
        } else if want > have {
            let message = format!("the layout asks for {want} bytes, the segment has {have}");
            self.checker.report(&rules::LAYOUT_LONG, path, at, message);
        } else if want < have {
            let message = format!("the layout asks for {want} bytes, the segment has {have}");
            self.checker.report(&rules::LAYOUT_SHORT, path, at, message);
        }
        entry.key
    }

    /// Equal keys of one list. Across the two lists of an older file the first list wins, as it always did.
    fn duplicates(&mut self, data: &DataRef<'_>, bounds: &[(&'static str, usize)], missing: bool) {
        for pair in data.sorted.windows(2) {
            let &[first, second] = pair else { continue };
            let (first, second) = (first as usize, second as usize);
            let (Some(key), Some(other)) = (data.keys.get(first), data.keys.get(second)) else { continue };
            // A missing key is stored as an empty one, which is not a duplicate.
            if key != other || (missing && key.is_empty()) {
                continue;
            }
            let mut start = 0;
            for (name, end) in bounds {
                if (start..*end).contains(&first) && (start..*end).contains(&second) {
                    let place = second.saturating_sub(start);
                    let message = format!("{key:?} is the key of entry {} already", first.saturating_sub(start));
                    let path = Path::ROOT.field(name);
                    self.checker.report(&rules::KEY_DUPLICATE, &path.index(place), None, message);
                }
                start = *end;
            }
        }
    }

    fn unused(&mut self, used: &[bool]) {
        for (index, _) in used.iter().enumerate().filter(|(_, used)| !**used) {
            let path = Path::ROOT.field("segments");
            self.checker.report(&rules::SEGMENT_UNUSED, &path.index(index), None, "no entry refers to it".to_string());
        }
    }
}
