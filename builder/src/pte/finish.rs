//! From a builder to a file: rows, segments in the exporter's order, the verifier's word.
//!
//! Segments are the constants, the lists of initial values, delegate payloads in the order they were added, and named data
//! in the order of their first key. What the verifier calls an error is never written.

use std::io::Write;
use std::path::Path;

use edgepack_format::limits::Limits;
use edgepack_format::pte::verify::verify_all;
use edgepack_format::pte::{
    BackendDelegateInlineData, Buffer, DataSegment, FileExtent, NamedData, Program, SubsegmentOffsets,
};
use edgepack_format::row::{Blob, Table as _};

use super::program::ProgramBuilder;
use super::rows::{self, Payloads};
use super::{memory, parts::Method};
use crate::content::Data;
use crate::error::Error;
use crate::finished::{FinishedFile, Segment, place};
use crate::ptd::data_files;
use crate::sink::FlatSink;
use crate::write_file::Batch;
use crate::{BuildError, envelope};

/// A program and the data files that belong to it, ready to be written.
#[derive(Clone, Debug)]
pub struct BuiltProgram<'d> {
    program: FinishedFile<'d>,
    data_files: Vec<(String, FinishedFile<'d>)>,
}

impl<'d> BuiltProgram<'d> {
    /// The program itself.
    pub fn program(&self) -> &FinishedFile<'d> {
        &self.program
    }

    /// The data files, by tag.
    pub fn data_files(&self) -> impl Iterator<Item = (&str, &FinishedFile<'d>)> {
        self.data_files.iter().map(|(tag, file)| (tag.as_str(), file))
    }

    /// The program in memory.
    pub fn to_bytes(&self) -> Result<Vec<u8>, BuildError> {
        self.program.to_bytes()
    }

    /// Writes the program to anything.
    pub fn write_to(&self, out: &mut dyn Write) -> Result<(), BuildError> {
        Ok(self.program.write_to(out)?)
    }

    /// Writes the program under this name, and its data files next to it as `TAG.ptd`. Old files stay until all new ones
    /// are complete; the program takes its place last.
    pub fn write_to_path(&self, path: impl AsRef<Path>) -> Result<(), BuildError> {
        let path = path.as_ref();
        let mut batch = Batch::default();
        let beside = |tag: &String| path.with_file_name(format!("{tag}.ptd"));
        let data_files = self.data_files.iter().map(|(tag, file)| (beside(tag), file));
        for (path, file) in data_files.chain([(path.to_path_buf(), &self.program)]) {
            batch.write(&path, |out| file.write_to(out)).map_err(BuildError::reading(path.display().to_string()))?;
        }
        batch.commit().map_err(BuildError::reading(path.display().to_string()))
    }
}

impl<'d> ProgramBuilder<'d> {
    /// Plans memory, lays out the file and verifies it. The contents of segments are not read yet.
    pub fn finish(mut self) -> Result<BuiltProgram<'d>, BuildError> {
        self.methods.sort_by(|a, b| a.name.cmp(&b.name));
        for (index, getter) in self.getters.iter().enumerate() {
            let others = self.getters.iter().take(index).chain(&self.methods);
            if others.into_iter().any(|method| method.name == getter.name) {
                self.check_name_is_new(&getter.name)?;
            }
        }
        let mut segments = Segments::default();
        let (constant_buffer, constant_segment) = self.constants(&mut segments)?;
        let mutable = self.initial_values(&mut segments)?;
        let payloads = self.payloads(&mut segments)?;
        let named_data = self.named_segments(&mut segments)?;

        let methods = self.methods.iter().map(|method| (method, false));
        let methods = methods.chain(self.getters.iter().map(|method| (method, true)));
        let plans = methods.map(|(method, getter)| self.plan(method, &payloads, getter));
        let plans = plans.collect::<Result<Vec<_>, _>>()?;

        let inline = self.inline_payloads.items().iter().map(|payload| inline_bytes(payload, "delegate payload"));
        let inline = inline.map(|data| data.map(|data| BackendDelegateInlineData { data: Some(Blob(data.into())) }));
        let placement = place(&segments.0, self.options.segment_alignment)?;
        let rows = placement.offsets.iter().zip(&segments.0);
        let rows = rows.map(|(offset, segment)| DataSegment { offset: *offset, size: segment.len() });
        let row = Program {
            version: 0,
            execution_plan: Some(plans.into()),
            constant_buffer: Some(constant_buffer.into()),
            backend_delegate_data: Some(inline.collect::<Result<Vec<_>, _>>()?.into()),
            segments: Some(rows.collect::<Vec<_>>().into()),
            constant_segment,
            mutable_data_segments: (!mutable.is_empty()).then(|| mutable.into()),
            named_data: (!named_data.is_empty()).then(|| named_data.into()),
        };

        let inside = self.options.tensor_alignment.max(self.options.delegate_alignment).max(16);
        let inside = usize::try_from(inside).map_err(|_| Error::Overflow)?;
        let base = usize::try_from(placement.base_align).map_err(|_| Error::Overflow)?;
        let mut sink = FlatSink::new().with_data_alignment(inside);
        let root = row.encode(&mut sink)?;
        let flatbuffer = sink.finish(root, *b"ET12")?;
        let head = envelope::program_head(flatbuffer, placement.size, inside, base)?;
        let program = FinishedFile::new(head, segments.0, &placement)?;
        verify(&program)?;
        Ok(BuiltProgram { program, data_files: data_files(&self.named, self.options.segment_alignment)? })
    }

    fn plan(
        &self,
        method: &Method,
        payloads: &Payloads,
        getter: bool,
    ) -> Result<edgepack_format::pte::ExecutionPlan<'static>, BuildError> {
        let mut plan = rows::plan(method, self, payloads, getter)?;
        memory::assign(&mut plan, method, self.options.memory_alignment, self.options.strategy, getter)?;
        Ok(plan)
    }

    /// Constants in the first segment, or inside the flatbuffer if that was asked for.
    #[allow(clippy::type_complexity, reason = "the two forms of the same list")]
    fn constants(
        &self,
        segments: &mut Segments<'d>,
    ) -> Result<(Vec<Buffer<'static>>, Option<SubsegmentOffsets<'static>>), BuildError> {
        let buffers = self.buffers.items();
        if self.options.inline_constants {
            let mut rows = vec![Buffer { storage: Some(Blob(Vec::new().into())) }];
            for data in buffers {
                rows.push(Buffer { storage: Some(Blob(inline_bytes(data, "constant")?.into())) });
            }
            return Ok((rows, None));
        }
        let (segment, offsets) = Segment::packed(buffers, self.options.tensor_alignment)?;
        let segment_index = segments.push(segment)?;
        Ok((Vec::new(), Some(subsegments(segment_index, offsets))))
    }

    fn initial_values(&self, segments: &mut Segments<'d>) -> Result<Vec<SubsegmentOffsets<'static>>, BuildError> {
        let mut lists = Vec::new();
        for pool in self.initial.values() {
            // Initial values are copied, so nothing asks for alignment.
            let (segment, offsets) = Segment::packed(pool.items(), 1)?;
            let segment_index = segments.push(segment)?;
            lists.push(subsegments(segment_index, offsets));
        }
        Ok(lists)
    }

    fn payloads(&self, segments: &mut Segments<'d>) -> Result<Payloads, BuildError> {
        let mut payloads = Payloads { inline: Vec::new(), segments: Vec::new() };
        for data in self.payloads.items() {
            payloads.segments.push(segments.push(Segment::of(data.clone(), 1))?);
        }
        for index in 0..self.inline_payloads.items().len() {
            payloads.inline.push(u32::try_from(index).map_err(|_| Error::Overflow)?);
        }
        Ok(payloads)
    }

    fn named_segments(&self, segments: &mut Segments<'d>) -> Result<Vec<NamedData<'static>>, BuildError> {
        let entries: Vec<_> = self.named.entries().iter().filter(|entry| entry.tag.is_none()).collect();
        let placed = crate::ptd::place_entries(&self.named, &entries);
        let mut indices = Vec::with_capacity(placed.len());
        for (data, align) in placed.contents {
            indices.push(segments.push(Segment::of(data, align))?);
        }
        let row = |(entry, content): (&&crate::named_data::NamedEntry, usize)| NamedData {
            key: Some(entry.key.clone().into()),
            segment_index: indices.get(content).copied().unwrap_or_default(),
        };
        Ok(entries.iter().zip(placed.by_entry).map(row).collect())
    }
}

/// The segments so far.
#[derive(Default)]
struct Segments<'d>(Vec<Segment<'d>>);

impl<'d> Segments<'d> {
    fn push(&mut self, segment: Segment<'d>) -> Result<u32, Error> {
        let index = u32::try_from(self.0.len()).map_err(|_| Error::Overflow)?;
        self.0.push(segment);
        Ok(index)
    }
}

fn subsegments(segment_index: u32, mut offsets: Vec<u64>) -> SubsegmentOffsets<'static> {
    // Entry 0 is reserved.
    offsets.insert(0, 0);
    SubsegmentOffsets { segment_index, offsets: Some(offsets.into()) }
}

fn inline_bytes(data: &Data<'_>, what: &str) -> Result<Vec<u8>, BuildError> {
    data.to_vec().map_err(BuildError::reading(what))
}

/// The file must verify; only its head is looked at.
fn verify(file: &FinishedFile<'_>) -> Result<(), BuildError> {
    let mut limits = Limits::DEFAULT;
    // The author's own program may be as large as it likes.
    limits.visits = u64::MAX;
    limits.arena_bytes = u64::MAX;
    let verdict = verify_all(file.head(), FileExtent { len: file.len() }, &limits);
    match verdict.findings.has_errors() {
        true => Err(BuildError::Findings(verdict.findings)),
        false => Ok(()),
    }
}
