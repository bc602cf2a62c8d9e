//! Where the bytes of a file go. The parts of an [`Anatomy`] never overlap, and sum up to the file if it is sound.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use edgepack_format::limits::Limits;
use edgepack_format::ptd::Accept;
use edgepack_format::pte::{KernelTypes, Program, Tensor};
use edgepack_format::tensor::TensorLayout;
use edgepack_format::{ptd, wire};
use edgepack_loader::{Source, machine_limits};
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::exported::ArchiveSummary;
use crate::file::File;
use crate::flatbuffer::{Compiled, Flatbuffer};
use crate::kind::Kind;
use crate::lenient;
use crate::notation;
use crate::status::Failure;
use crate::summary::bundle::program_bytes;
use crate::summary::data::DataSummary;
use crate::summary::library::LibrarySummary;
use crate::summary::program::ProgramSummary;
use crate::units::count;

/// Where the bytes go.
#[derive(Serialize, Default)]
pub struct Anatomy {
    /// All of them.
    pub bytes: u64,
    /// Parts of the file, largest first.
    pub parts: Vec<Part>,
    /// Stored tensors, largest first.
    pub tensors: Vec<Stored>,
    /// Ranges with the same content.
    pub duplicates: Vec<Duplicate>,
}

/// A part of the file.
#[derive(Serialize)]
pub struct Part {
    /// What it is.
    pub what: String,
    /// Its bytes.
    pub bytes: u64,
}

/// A stored tensor.
#[derive(Serialize)]
pub struct Stored {
    /// Its name, or `constant N`.
    pub name: String,
    /// `f32[2, 2]`.
    #[serde(rename = "type")]
    pub layout: String,
    /// Its bytes.
    pub bytes: u64,
    /// Where it is in the file.
    #[serde(skip)]
    offset: Option<u64>,
}

/// Content that is there more than once.
#[derive(Serialize)]
pub struct Duplicate {
    /// Bytes beyond the first copy.
    pub wasted: u64,
    /// Where the copies are.
    pub places: Vec<String>,
}

/// A named range of the file.
struct Range {
    name: String,
    offset: u64,
    bytes: u64,
}

/// The anatomy of a file.
pub fn of(file: &File, flatbuffer: &Flatbuffer, limits: &Limits) -> Result<Anatomy, Failure> {
    let mut anatomy = Anatomy { bytes: file.source.len(), ..Anatomy::default() };
    if file.kind == Kind::Library {
        anatomy.library(&flatbuffer.head, limits);
        return Ok(anatomy.sorted());
    }
    if file.kind == Kind::Exported {
        anatomy.exported(&flatbuffer.head);
        return Ok(anatomy.sorted());
    }
    let Some((root, _)) = flatbuffer.root().filter(|_| flatbuffer.is_modest(limits)) else {
        anatomy.part("nothing that can be read within reason", anatomy.bytes);
        return Ok(anatomy);
    };
    let mut ranges = Vec::new();
    match file.kind {
        Kind::Program => anatomy.program(&root, &flatbuffer.head, &mut ranges),
        Kind::Data | Kind::FlatData => anatomy.data(file, flatbuffer, &root, &mut ranges),
        Kind::Bundle => {
            let inside = program_bytes(&root).map_or(0, |bytes| bytes.len() as u64);
            anatomy.part("the program inside", inside);
            anatomy.part("recorded runs and tables", anatomy.bytes.saturating_sub(inside));
        }
        Kind::Trace => anatomy.part("events and tables", anatomy.bytes),
        Kind::Model | Kind::Package => anatomy.compiled(flatbuffer, limits),
        Kind::Library | Kind::Exported => {}
    }
    anatomy.duplicates = duplicates(&*file.source, ranges)?;
    Ok(anatomy.sorted())
}

impl Anatomy {
    fn part(&mut self, what: impl Into<String>, bytes: u64) {
        if bytes > 0 {
            self.parts.push(Part { what: what.into(), bytes });
        }
    }

    fn sorted(mut self) -> Self {
        self.parts.sort_by_key(|part| Reverse(part.bytes));
        self.tensors.sort_by_key(|part| Reverse(part.bytes));
        self
    }

    /// Every record of an archive, and headers and padding.
    fn exported(&mut self, content: &[u8]) {
        let archive = ArchiveSummary::new(content);
        let records: u64 = archive.records.iter().map(|record| record.bytes).sum();
        for record in archive.records {
            self.part(notation::name(&record.name), record.bytes);
        }
        self.part("headers and padding of the archive", self.bytes.saturating_sub(records));
    }

    /// Every file of a package, headers and padding of the archive, and the parameters.
    fn library(&mut self, bytes: &[u8], limits: &Limits) {
        let library = LibrarySummary::new(bytes, limits);
        let mut rest = self.bytes;
        for member in &library.members {
            rest = rest.saturating_sub(member.bytes);
            self.part(notation::name(&member.path), member.bytes);
        }
        self.part("headers and padding of the archive", rest);
        for module in library.modules {
            self.tensors.extend(module.params.into_iter().map(|param| Stored {
                name: format!("{}.{}", notation::name(&module.name), notation::name(&param.name)),
                layout: param.layout,
                bytes: param.bytes,
                offset: None,
            }));
        }
    }

    /// Weights, instructions and the rest of every package, and what is around them.
    fn compiled(&mut self, flatbuffer: &Flatbuffer, limits: &Limits) {
        let Some(compiled) = flatbuffer.compiled(limits) else { return };
        let mut packages = 0u64;
        for (index, (_, package)) in compiled.packages().into_iter().enumerate() {
            let len = package.bytes().len() as u64;
            let mut rest = len;
            for executable in package.executables() {
                let kind = executable.row().kind;
                let parameters = executable.parameters().len() as u64;
                let chunks = crate::summary::package::rows(&executable.row().instruction_bitstreams);
                let code: u64 =
                    chunks.iter().filter_map(|chunk| Some(chunk.bitstream.as_ref()?.as_slice().len() as u64)).sum();
                self.part(format!("package {index}: parameters of {kind}"), parameters);
                self.part(format!("package {index}: instructions of {kind}"), code);
                // Levels may share bytes, so the sum can be more than there is.
                rest = rest.saturating_sub(parameters).saturating_sub(code);
            }
            self.part(format!("package {index}: layers, hints and page padding"), rest);
            packages = packages.saturating_add(len);
        }
        if let Compiled::Model(model) = &compiled {
            let archive = model.zip().map_or(0, |zip| self.bytes.saturating_sub(zip.start as u64));
            self.part("the archive behind the model", archive);
            self.part("the model around", self.bytes.saturating_sub(packages).saturating_sub(archive));
        }
    }

    fn program(&mut self, root: &wire::Table<'_>, head: &[u8], ranges: &mut Vec<Range>) {
        let program = lenient::program(root);
        let summary = ProgramSummary::new(&program, head, self.bytes);
        let constants = lenient::rows(&program.constant_buffer).into_iter().flatten();
        let inline: u64 = constants.filter_map(|buffer| buffer.storage).map(|blob| blob.as_slice().len() as u64).sum();
        let payloads = lenient::rows(&program.backend_delegate_data).into_iter().flatten();
        let payloads: u64 = payloads.filter_map(|data| data.data).map(|blob| blob.as_slice().len() as u64).sum();
        self.part("constants inside the flatbuffer", inline);
        self.part("delegates inside the flatbuffer", payloads);
        let tables = summary.flatbuffer_bytes.saturating_sub(inline).saturating_sub(payloads);
        self.part("tables: values, instructions, names", tables);
        self.tensors = stored(&program, &summary);
        let mut used: Vec<(u64, u64)> = vec![(0, summary.flatbuffer_bytes)];
        for (index, segment) in summary.segments.iter().enumerate() {
            let Some(offset) = segment.offset.filter(|_| segment.bytes > 0) else { continue };
            used.push((offset, segment.bytes));
            let what =
                if segment.holds.is_empty() { "nothing refers to it".to_owned() } else { segment.holds.join(", ") };
            let padding = match summary.constants.segment {
                Some(constants) if constants as usize == index => self.constant_padding(offset, segment.bytes),
                _ => 0,
            };
            self.part(format!("segment {index}: {what}"), segment.bytes - padding);
            self.part(format!("padding between constants in segment {index}"), padding);
            ranges.push(Range { name: format!("segment {index}"), offset, bytes: segment.bytes });
        }
        self.gaps(used);
        ranges.extend(self.tensors.iter().filter_map(|tensor| {
            Some(Range { name: tensor.name.clone(), offset: tensor.offset?, bytes: tensor.bytes })
        }));
    }

    /// Bytes of the segment that no constant has. Zero where constants are not known by size.
    fn constant_padding(&self, offset: u64, len: u64) -> u64 {
        let end = offset.saturating_add(len);
        let inside = |tensor: &&Stored| tensor.offset.is_some_and(|at| at >= offset && at < end);
        // Of a broken file tensors may claim more bytes than there are.
        let covered =
            self.tensors.iter().filter(inside).fold(0u64, |covered, tensor| covered.saturating_add(tensor.bytes));
        if covered == 0 { 0 } else { len.saturating_sub(covered) }
    }

    /// What lies between used ranges is padding, what lies behind them is not declared.
    fn gaps(&mut self, mut used: Vec<(u64, u64)>) {
        used.sort_unstable();
        let (mut end, mut padding) = (0u64, 0u64);
        for (offset, bytes) in used {
            padding += offset.saturating_sub(end);
            end = end.max(offset.saturating_add(bytes));
        }
        self.part("padding between segments", padding);
        self.part("behind the last segment", self.bytes.saturating_sub(end));
    }

    fn data(&mut self, file: &File, flatbuffer: &Flatbuffer, root: &wire::Table<'_>, ranges: &mut Vec<Range>) {
        let summary = DataSummary::new(file.kind, root, &flatbuffer.head, self.bytes);
        let head = flatbuffer.head.len() as u64;
        let names = if summary.header.is_some() { "tables and keys" } else { "all of it: there is no header" };
        self.part(names, head);
        let mut used = vec![(0, head)];
        let mut first: BTreeMap<u32, &str> = BTreeMap::new();
        for entry in &summary.entries {
            first.entry(entry.segment).or_insert(&entry.key);
        }
        for (index, segment) in (0..).zip(&summary.segments) {
            let Some(offset) = segment.offset.filter(|_| segment.bytes > 0) else { continue };
            used.push((offset, segment.bytes));
            let what = match first.get(&index) {
                None => "nothing refers to it".to_owned(),
                Some(only) if segment.entries < 2 => (*only).to_owned(),
                Some(first) => format!("{first} and {}", count(segment.entries - 1, "other")),
            };
            self.part(format!("segment {index}: {what}"), segment.bytes);
            ranges.push(Range { name: format!("segment {index} ({what})"), offset, bytes: segment.bytes });
        }
        self.gaps(used);
        let limits = machine_limits();
        let verdict = ptd::verify::verify(&flatbuffer.head, flatbuffer.extent, &limits, Accept::ALL);
        let Some(data) = verdict.data else { return };
        for entry in (0..data.len()).filter_map(|index| data.entry(index)) {
            if let Some(layout) = entry.layout {
                let bytes = layout.byte_len() as u64;
                self.tensors.push(Stored {
                    name: notation::name(entry.key),
                    layout: notation::layout(&layout),
                    bytes,
                    offset: Some(entry.range.start),
                });
            }
        }
    }
}

/// The constants that tensors of the methods refer to, each once.
fn stored(program: &Program<'_>, summary: &ProgramSummary) -> Vec<Stored> {
    let offsets = program.constant_segment.as_ref().and_then(|list| list.offsets.as_ref());
    let segment = summary.constants.segment.and_then(|index| summary.segments.get(index as usize));
    let base = segment.and_then(|segment| segment.offset);
    let mut found: BTreeMap<u32, Stored> = BTreeMap::new();
    for value in lenient::plans(program).iter().flat_map(|plan| lenient::rows(&plan.values)).flatten() {
        let Some(KernelTypes::Tensor(tensor)) = value.val else { continue };
        let index = tensor.data_buffer_idx;
        let external = tensor.extra_tensor_info.as_ref().is_some_and(|info| info.location.0 != 0);
        if index == 0 || external || tensor.allocation_info.is_some() {
            continue;
        }
        let Some(bytes) = byte_len(&tensor) else { continue };
        let name = tensor.extra_tensor_info.as_ref().and_then(|info| info.fully_qualified_name.as_deref());
        let offset = offsets.and_then(|offsets| base?.checked_add(offsets.get(index as usize)?));
        let stored = Stored {
            name: name.map_or_else(|| format!("constant {index}"), notation::name),
            layout: notation::tensor(&tensor),
            bytes,
            offset,
        };
        // Several tensors may view one constant; the largest view is its size.
        match found.get(&index) {
            Some(known) if known.bytes >= bytes => {}
            _ => {
                found.insert(index, stored);
            }
        }
    }
    found.into_values().collect()
}

fn byte_len(tensor: &Tensor<'_>) -> Option<u64> {
    let order: Vec<u8> = tensor.dim_order.as_ref()?.iter().collect();
    let layout = TensorLayout::from_wire(tensor.scalar_type, tensor.sizes.as_ref()?.iter(), &order);
    Some(layout.ok()?.byte_len() as u64)
}

/// Content below this size is not worth sharing.
const WORTH: u64 = 64;
const CHUNK: usize = 1 << 20;

/// How often the file may be read to compare its parts: ranges may overlap as they like.
const READS: u64 = 4;

/// Ranges of equal content. Only ranges of equal length are read at all, and no more than a few times the file.
fn duplicates(source: &dyn Source, ranges: Vec<Range>) -> Result<Vec<Duplicate>, Failure> {
    let mut by_length: BTreeMap<u64, Vec<Range>> = BTreeMap::new();
    let mut known = BTreeSet::new();
    for range in ranges {
        let inside = range.offset.checked_add(range.bytes).is_some_and(|end| end <= source.len());
        // The same range under two names is stored once.
        if range.bytes >= WORTH && inside && known.insert((range.offset, range.bytes)) {
            by_length.entry(range.bytes).or_default().push(range);
        }
    }
    let mut duplicates = Vec::new();
    let mut left = source.len().saturating_mul(READS).saturating_add(1);
    for (bytes, same) in by_length.into_iter().filter(|(_, same)| same.len() > 1) {
        let mut by_content: BTreeMap<[u8; 32], Vec<String>> = BTreeMap::new();
        for range in same {
            left = left.saturating_sub(bytes);
            if left == 0 {
                break;
            }
            by_content.entry(hash(source, range.offset, bytes)?).or_default().push(range.name);
        }
        for places in by_content.into_values().filter(|places| places.len() > 1) {
            duplicates.push(Duplicate { wasted: bytes.saturating_mul(places.len() as u64 - 1), places });
        }
    }
    duplicates.sort_by_key(|duplicate| Reverse(duplicate.wasted));
    Ok(duplicates)
}

fn hash(source: &dyn Source, offset: u64, len: u64) -> Result<[u8; 32], Failure> {
    let mut sha = Sha256::new();
    let mut chunk = vec![0; CHUNK.min(usize::try_from(len).unwrap_or(CHUNK))];
    let mut done = 0;
    while done < len {
        let part = chunk.len().min(usize::try_from(len - done).unwrap_or(CHUNK));
        source.read_at(offset + done, &mut chunk[..part]).map_err(Failure::unreadable)?;
        sha.update(&chunk[..part]);
        done += part as u64;
    }
    Ok(sha.finalize().into())
}
