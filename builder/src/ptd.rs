//! Data files: `.ptd` (`FT01`) and FlatData (`FD01`), from a store of named data.
//!
//! Entries keep their order; equal bytes are one segment, in the order of their first key, aligned for every key that
//! names them.

use std::collections::BTreeMap;

use edgepack_format::extent::FileExtent;
use edgepack_format::limits::Limits;
use edgepack_format::ptd::verify::verify;
use edgepack_format::ptd::{
    Accept, BlobEntry, DataSegment, FlatData, FlatTensor, NamedData, TensorLayout as LayoutRow,
};
use edgepack_format::row::Table;
use edgepack_format::tensor::TensorLayout;

use crate::build_error::{BuildError, check_alignment};
use crate::content::Data;
use crate::error::Error;
use crate::finished::{FinishedFile, Segment, place};
use crate::named_data::{NamedDataStore, NamedEntry, lcm};
use crate::{envelope, sink};

/// Kind of data file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum DataFormat {
    /// `.ptd`: entries may have layouts.
    #[default]
    FlatTensor,
    /// FlatData: bytes only.
    FlatData,
}

/// Builds a data file out of all entries of a store, whatever their tags. `segment_alignment` is 128 for the reference
/// exporter.
pub fn data_file<'d>(
    store: &NamedDataStore<'d>,
    format: DataFormat,
    segment_alignment: u64,
) -> Result<FinishedFile<'d>, BuildError> {
    let entries: Vec<_> = store.entries().iter().collect();
    file(store, &entries, format, check_alignment("segments", segment_alignment)?)
}

/// One file per tag, in the order of the tags.
pub(crate) fn data_files<'d>(
    store: &NamedDataStore<'d>,
    segment_alignment: u64,
) -> Result<Vec<(String, FinishedFile<'d>)>, BuildError> {
    let mut tags: BTreeMap<&str, Vec<&NamedEntry>> = BTreeMap::new();
    for entry in store.entries() {
        if let Some(tag) = &entry.tag {
            tags.entry(tag).or_default().push(entry);
        }
    }
    let built = tags
        .into_iter()
        .map(|(tag, entries)| Ok((tag.to_owned(), file(store, &entries, DataFormat::FlatTensor, segment_alignment)?)));
    built.collect()
}

/// Contents of some entries, each once.
pub(crate) struct Placed<'d> {
    /// With the alignment that satisfies all entries that share it.
    pub(crate) contents: Vec<(Data<'d>, u64)>,
    /// For each entry, which content.
    pub(crate) by_entry: Vec<usize>,
}

impl Placed<'_> {
    pub(crate) fn len(&self) -> usize {
        self.contents.len()
    }
}

pub(crate) fn place_entries<'d>(store: &NamedDataStore<'d>, entries: &[&NamedEntry]) -> Placed<'d> {
    let mut placed = Placed { contents: Vec::new(), by_entry: Vec::with_capacity(entries.len()) };
    let mut seen: BTreeMap<usize, usize> = BTreeMap::new();
    for entry in entries {
        let index = *seen.entry(entry.buffer).or_insert_with(|| {
            let data = store.buffers().get(entry.buffer).cloned().unwrap_or(Data::zeros(0));
            placed.contents.push((data, 1));
            placed.contents.len().saturating_sub(1)
        });
        if let Some((_, align)) = placed.contents.get_mut(index) {
            *align = lcm(*align, entry.alignment);
        }
        placed.by_entry.push(index);
    }
    placed
}

fn file<'d>(
    store: &NamedDataStore<'d>,
    entries: &[&NamedEntry],
    format: DataFormat,
    segment_alignment: u64,
) -> Result<FinishedFile<'d>, BuildError> {
    let placed = place_entries(store, entries);
    let segments: Vec<_> = placed.contents.into_iter().map(|(data, align)| Segment::of(data, align)).collect();
    let placement = place(&segments, segment_alignment)?;
    let rows = placement.offsets.iter().zip(&segments);
    let rows: Vec<_> = rows.map(|(offset, segment)| DataSegment { offset: *offset, size: segment.len() }).collect();
    let index = |content: usize| u32::try_from(content).map_err(|_| Error::Overflow);
    let pairs = || entries.iter().zip(&placed.by_entry);
    let flatbuffer = match format {
        DataFormat::FlatTensor => {
            let named = pairs().map(|(entry, content)| {
                Ok(NamedData {
                    key: Some(entry.key.as_str().into()),
                    segment_index: index(*content)?,
                    tensor_layout: entry.layout.as_ref().map(|layout| layout_row(&entry.key, layout)).transpose()?,
                })
            });
            let named = named.collect::<Result<Vec<_>, BuildError>>()?;
            encode(&FlatTensor { version: 0, segments: Some(rows.into()), named_data: Some(named.into()) }, *b"FT01")?
        }
        DataFormat::FlatData => {
            let mut named = Vec::with_capacity(entries.len());
            for (entry, content) in pairs() {
                if let Some(layout) = &entry.layout {
                    return Err(BuildError::Kind {
                        place: format!("FlatData entry `{}`", entry.key),
                        want: "bytes without a layout".to_owned(),
                        found: layout.to_string(),
                    });
                }
                named.push(BlobEntry { key: Some(entry.key.as_str().into()), segment_index: index(*content)? });
            }
            encode(&FlatData { version: 0, named_data: Some(named.into()), segments: Some(rows.into()) }, *b"FD01")?
        }
    };
    let base = usize::try_from(placement.base_align).map_err(|_| Error::Overflow)?;
    let head = envelope::data_head(&flatbuffer, placement.size, 16, base)?;
    let file = FinishedFile::new(head, segments, &placement)?;
    let mut limits = Limits::DEFAULT;
    limits.visits = u64::MAX;
    let verdict = verify(file.head(), FileExtent { len: file.len() }, &limits, Accept::default());
    match verdict.findings.has_errors() {
        true => Err(BuildError::Findings(verdict.findings)),
        false => Ok(file),
    }
}

fn encode<'a, T: Table<'a>>(row: &T, identifier: [u8; 4]) -> Result<Vec<u8>, Error> {
    sink::flatbuffer(row, identifier)
}

fn layout_row(key: &str, layout: &TensorLayout) -> Result<LayoutRow<'static>, BuildError> {
    let sizes: Result<Vec<i32>, _> = layout.sizes().iter().map(|size| i32::try_from(*size)).collect();
    let sizes = sizes.map_err(|_| BuildError::Layout {
        place: format!("named data `{key}`"),
        source: edgepack_format::tensor::LayoutError::Overflow,
    })?;
    Ok(LayoutRow {
        scalar_type: layout.scalar_type(),
        sizes: Some(sizes.into()),
        dim_order: Some(layout.dim_order().to_vec().into()),
    })
}
