//! From a package to a file.
//!
//! A package can hold anything, wrong rows too. What takes the place of a file is verified first.

use std::borrow::Cow;
use std::io::{self, Write};
use std::path::Path;

use edgepack_builder::envelope::{data_head, place_segments, program_head};
use edgepack_builder::sink::{FlatSink, flatbuffer};
use edgepack_builder::{MAX_SEGMENT_ALIGNMENT, raw, write_file};
use edgepack_format::FileKind;
use edgepack_format::extent::FileExtent;
use edgepack_format::finding::Findings;
use edgepack_format::header::ProgramHeader;
use edgepack_format::limits::Limits;
use edgepack_format::ptd::{self, DataSegment};
use edgepack_format::row::{Blob, Table};
use edgepack_format::{bundle, darwinn, pte, tflite};

use super::compiled::CompiledModel;
use super::content::Content;
use super::error::Error;
use super::file_places::Placed;
use super::origin::{Likeness, Origin};
use super::package::Package;
use super::root::Root;

/// A package whose every byte has its place: its head in memory, its segments as references to their contents.
#[derive(Debug)]
pub struct Ready<'p> {
    kind: FileKind,
    head: Vec<u8>,
    /// Segments with bytes, each with its place in the file, and what is between them.
    segments: Vec<(u64, Cow<'p, Content>)>,
    len: u64,
    unplaced: Option<String>,
}

impl Ready<'_> {
    /// Bytes of the whole file.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns whether the file has no bytes; no kind of file is so short.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns why the places of the package were not used, if it has any: rows or segments do not fit them.
    pub fn unplaced(&self) -> Option<&str> {
        self.unplaced.as_deref()
    }

    /// Compares the file with the one that a package was read from.
    pub fn likeness(&self, origin: &Origin) -> Result<Likeness, Error> {
        origin.likeness(|out| self.write_to(out))
    }

    /// Runs the verifier of its kind. The size of the file is not limited here: the author has decided to write
    /// it.
    pub fn verify(&self) -> Findings {
        let mut limits = Limits::DEFAULT;
        (limits.visits, limits.arena_bytes) = (u64::MAX, u64::MAX);
        let (head, extent) = (self.head.as_slice(), FileExtent { len: self.len });
        match self.kind {
            FileKind::Program => pte::verify::verify_all(head, extent, &limits).findings,
            FileKind::Bundle => bundle::verify::verify(head, &limits).findings,
            FileKind::DarwinnPackage => darwinn::verify::verify(head, &limits, darwinn::Accept::ALL).findings,
            FileKind::TfLite => tflite::verify::verify(head, &limits, darwinn::Accept::ALL).findings,
            _ => ptd::verify::verify(head, extent, &limits, ptd::Accept::ALL).findings,
        }
    }

    /// Writes the file; segments stream through.
    pub fn write_to(&self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(&self.head)?;
        let mut at = self.head.len() as u64;
        for (start, content) in &self.segments {
            Content::zeros(start.saturating_sub(at)).write_to(out)?;
            content.write_to(out)?;
            at = start.saturating_add(content.len());
        }
        Content::zeros(self.len.saturating_sub(at)).write_to(out)
    }
}

impl Package<'_> {
    /// Gives the segments the rows that say where they will be: one after another, aligned as the layout says.
    pub fn place(&mut self) -> Result<(), Error> {
        let align = number(self.layout.segment_alignment, "segment_alignment")?;
        let lens = self.segments.iter().map(Content::len);
        let (offsets, _) = place_segments(lens, align)?;
        let rows = offsets.into_iter().zip(&self.segments);
        let rows: Vec<_> = rows.map(|(offset, content)| DataSegment { offset, size: content.len() }).collect();
        // No list stays no list.
        if !rows.is_empty() || self.root.segments().is_some() {
            self.root.set_segments(rows);
        }
        Ok(())
    }

    /// Bytes of the whole file.
    pub fn file_len(&self) -> Result<u64, Error> {
        Ok(self.ready()?.len)
    }

    /// Writes the file as it is, valid or not; segments stream through.
    pub fn write_to(&self, out: &mut dyn Write) -> Result<(), Error> {
        Ok(self.ready()?.write_to(out)?)
    }

    /// The file in memory as it is, valid or not.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        self.write_to(&mut bytes)?;
        Ok(bytes)
    }

    /// Writes the file under this name if it is valid. An old one stays until the new one is complete; it may be the one
    /// that this package comes from.
    pub fn write_to_path(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        let ready = self.ready()?;
        let findings = ready.verify();
        if findings.has_errors() {
            return Err(Error::Unsound(findings));
        }
        let what = path.as_ref().display().to_string();
        write_file::replace(path, |out| ready.write_to(out)).map_err(Error::io(what))
    }

    /// Lays everything out: what a file would be, to be verified and written.
    pub fn ready(&self) -> Result<Ready<'_>, Error> {
        let rows = match self.root.segments() {
            Some(rows) => rows.iter().collect::<Result<Vec<_>, _>>()?,
            None => Vec::new(),
        };
        if rows.len() != self.segments.len() {
            let message = format!("{} rows for {} contents", rows.len(), self.segments.len());
            return Err(Error::refused("segments", message));
        }
        let mut placed: Vec<(u64, usize, &Content)> = rows
            .iter()
            .zip(&self.segments)
            .enumerate()
            .filter(|(_, (_, content))| !content.is_empty())
            .map(|(index, (row, content))| (row.offset, index, content))
            .collect();
        placed.sort_by_key(|(offset, index, _)| (*offset, *index));
        let mut end = 0u64;
        for (offset, index, content) in &placed {
            let place = || format!("segments[{index}]");
            let gap = offset.checked_sub(end);
            let gap = gap.ok_or_else(|| Error::refused(place(), format!("at {offset}, inside the one before it")))?;
            if gap > MAX_SEGMENT_ALIGNMENT {
                let message = format!("{gap} bytes behind the one before it, {MAX_SEGMENT_ALIGNMENT} are allowed");
                return Err(Error::refused(place(), message));
            }
            let sum = offset.checked_add(content.len());
            end = sum.ok_or_else(|| Error::refused(place(), format!("at {offset}, beyond any file")))?;
        }
        let (file, unplaced) = self.placed(end)?;
        let (base, len) = (file.base, file.len);
        let segments = placed.into_iter().map(|(offset, _, content)| (offset, Cow::Borrowed(content)));
        let mut segments: Vec<_> = segments.map(|(offset, content)| (base.saturating_add(offset), content)).collect();
        segments.extend(file.gaps.into_iter().map(|(at, content)| (at, Cow::Owned(content))));
        segments.sort_by_key(|(at, _)| *at);
        let mut last = file.head.len() as u64;
        for (at, content) in &segments {
            if *at < last || at.checked_add(content.len()).is_none_or(|end| end > len) {
                return Err(Error::refused("places", format!("{} bytes at {at:#x} of other content", content.len())));
            }
            last = at.saturating_add(content.len());
        }
        Ok(Ready { kind: self.root.kind(), head: file.head, segments, len, unplaced })
    }

    /// Everything but `end` bytes of segments: at the places of the package, or, with the reason, laid out by our writer.
    fn placed(&self, end: u64) -> Result<(Placed, Option<String>), Error> {
        let unplaced = match self.places.as_ref().map(|places| places.place(&self.root, end)) {
            Some(Ok(placed)) => return Ok((placed, None)),
            Some(Err(reason)) => Some(reason.to_string()),
            None => None,
        };
        let head = self.head(end)?;
        let base = head.len() as u64;
        let len = base.checked_add(end).ok_or(edgepack_builder::Error::Overflow)?;
        Ok((Placed { head, base, len, gaps: Vec::new() }, unplaced))
    }

    /// Everything in front of `size` bytes of segments.
    fn head(&self, size: u64) -> Result<Vec<u8>, Error> {
        let segment_align = number(self.layout.segment_alignment, "segment_alignment")?;
        let inline_align = number(self.layout.data_alignment, "data_alignment")?.max(16);
        if !inline_align.is_power_of_two() {
            return Err(edgepack_builder::Error::Alignment(inline_align).into());
        }
        let data = |flatbuffer: Vec<u8>| -> Result<Vec<u8>, Error> {
            match self.layout.header {
                None if size == 0 => Ok(flatbuffer),
                _ => Ok(data_head(&flatbuffer, size, inline_align, segment_align)?),
            }
        };
        match &self.root {
            Root::Program(row) => {
                let mut sink = FlatSink::new().with_data_alignment(inline_align);
                let root = row.encode(&mut sink)?;
                let flatbuffer = sink.finish(root, pte::IDENTIFIER)?;
                match self.layout.header {
                    None => Ok(program_head(flatbuffer, size, inline_align, segment_align)?),
                    Some(length) => {
                        // A header can be there without anything behind it.
                        let mut head = program_head(flatbuffer, size.max(1), inline_align, segment_align)?;
                        restate(&mut head, length, size);
                        Ok(head)
                    }
                }
            }
            Root::Data(row) => data(flatbuffer(row, ptd::IDENTIFIER)?),
            Root::LegacyData(row) => data(flatbuffer(row, ptd::IDENTIFIER)?),
            Root::FlatData(row) => data(flatbuffer(row, ptd::FLAT_DATA_IDENTIFIER)?),
            Root::Bundle(row) => Ok(raw::bundled(row)?),
            Root::EdgeTpu(package) => package.to_bytes(),
            Root::Model(model) => match (&model.rows, &self.places) {
                (None, _) => model.to_bytes(),
                (Some(_), None) => Err(Error::refused("model.rows", "they need the places they were read from")),
                (Some(_), Some(places)) => {
                    let around = places.around(&self.root)?.unwrap_or_default();
                    let around = around.into_iter().map(|piece| Blob(piece.into())).collect();
                    CompiledModel { around, rows: None, packages: model.packages.clone() }.to_bytes()
                }
            },
        }
    }
}

/// Makes a program's header one of this length and size.
fn restate(head: &mut [u8], length: u32, size: u64) {
    let (length, size) = match length {
        0..ProgramHeader::LEN => (ProgramHeader::SHORT_LEN, 0),
        _ => (ProgramHeader::LEN, size),
    };
    let mut put = |at: usize, bytes: &[u8]| {
        if let Some(place) = head.get_mut(at..at + bytes.len()) {
            place.copy_from_slice(bytes);
        }
    };
    put(12, &length.to_le_bytes());
    put(32, &size.to_le_bytes());
}

fn number(align: u64, what: &'static str) -> Result<usize, Error> {
    match usize::try_from(align) {
        Ok(number) if (1..=MAX_SEGMENT_ALIGNMENT).contains(&align) => Ok(number),
        _ => {
            let error = io::Error::new(io::ErrorKind::InvalidInput, format!("{align} is not a possible alignment"));
            Err(Error::Io { what: what.to_owned(), error })
        }
    }
}
