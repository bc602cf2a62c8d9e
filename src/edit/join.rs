//! Moving the contents of data files into the program that needs them.

use std::collections::{BTreeMap, BTreeSet};

use edgepack_format::ptd::MissingData;
use edgepack_format::pte::{ExtraTensorInfo, NamedData, TensorDataLocation};
use edgepack_format::tensor::TensorLayout;

use super::content::Content;
use super::error::Error;
use super::package::Package;
use super::program::{change_tensors, constant_of, each_tensor, is_external, layout_of, name_of};

/// Something in a data file.
#[derive(Clone)]
pub(super) struct Entry {
    pub(super) key: String,
    /// Segment of the file, and the offset in it.
    pub(super) place: (u32, u64),
    pub(super) content: Content,
    pub(super) layout: Option<TensorLayout>,
}

/// Everything in a data file of any generation, in its order.
pub(super) fn entries_of(package: &Package<'_>) -> Result<Vec<Entry>, Error> {
    use super::root::Root;
    let mut entries = Vec::new();
    let mut blob = |key: &str, segment: u32, layout: Option<TensorLayout>| -> Result<(), Error> {
        let content = package.segment(key, segment)?.clone();
        let content = match &layout {
            Some(layout) => part(key, &content, 0, layout)?,
            None => content,
        };
        entries.push(Entry { key: key.to_owned(), place: (segment, 0), content, layout });
        Ok(())
    };
    let layout = |place: &str, scalar_type, sizes: Vec<i32>, order: Option<Vec<u8>>| {
        let order = order.unwrap_or_else(|| (0..sizes.len() as u8).collect());
        let layout = TensorLayout::from_wire(scalar_type, sizes, &order);
        layout.map_err(|error| Error::Layout { place: place.to_owned(), error })
    };
    match &package.root {
        Root::Data(root) => {
            for row in root.named_data.iter().flat_map(|rows| rows.iter()) {
                let row = row?;
                let key = row.key.as_deref().unwrap_or_default();
                let found = row.tensor_layout.as_ref().map(|found| {
                    let sizes = found.sizes.iter().flat_map(|sizes| sizes.iter()).collect();
                    layout(key, found.scalar_type, sizes, found.dim_order.as_ref().map(|order| order.iter().collect()))
                });
                blob(key, row.segment_index, found.transpose()?)?;
            }
        }
        Root::FlatData(root) => {
            for row in root.named_data.iter().flat_map(|rows| rows.iter()) {
                let row = row?;
                blob(row.key.as_deref().unwrap_or_default(), row.segment_index, None)?;
            }
        }
        Root::LegacyData(root) => {
            for row in root.named_data.iter().flat_map(|rows| rows.iter()) {
                let row = row?;
                blob(row.key.as_deref().unwrap_or_default(), row.segment_index, None)?;
            }
            for row in root.tensors.iter().flat_map(|rows| rows.iter()) {
                let row = row?;
                let key = row.fully_qualified_name.as_deref().unwrap_or_default();
                let sizes = row.sizes.iter().flat_map(|sizes| sizes.iter()).collect();
                let order = row.dim_order.as_ref().map(|order| order.iter().collect());
                let layout = layout(key, row.scalar_type, sizes, order)?;
                let content = part(key, package.segment(key, row.segment_index)?, row.offset, &layout)?;
                let place = (row.segment_index, row.offset);
                entries.push(Entry { key: key.to_owned(), place, content, layout: Some(layout) });
            }
        }
        other => return Err(Error::Kind { found: other.kind(), wanted: "a data file" }),
    }
    Ok(entries)
}

fn part(key: &str, segment: &Content, offset: u64, layout: &TensorLayout) -> Result<Content, Error> {
    let len = layout.byte_len() as u64;
    let part = offset.checked_add(len).and_then(|end| segment.slice(offset..end));
    part.ok_or_else(|| Error::refused(key, format!("{len} bytes at {offset} of a segment of {}", segment.len())))
}

/// An entry, and which of the data files it is in.
type Found = (usize, Entry);

/// Entries as they get numbers: those that are one range of one segment get one.
struct Numbered {
    /// The number of the first that is added.
    first: u32,
    contents: Vec<Content>,
    numbers: BTreeMap<(usize, (u32, u64), u64), u32>,
    by_key: BTreeMap<String, u32>,
}

impl Numbered {
    fn from(first: u32) -> Self {
        Numbered { first, contents: Vec::new(), numbers: BTreeMap::new(), by_key: BTreeMap::new() }
    }

    fn add(&mut self, key: &str, (file, entry): &Found) {
        let next = self.first.saturating_add(self.contents.len() as u32);
        let number = *self.numbers.entry((*file, entry.place, entry.content.len())).or_insert(next);
        if number == next {
            self.contents.push(entry.content.clone());
        }
        self.by_key.insert(key.to_owned(), number);
    }
}

/// Moves what is in data files into the program: what its tensors name becomes constants, or initial values where the
/// tensor is in planned memory, everything else becomes named data. A key in two places, a key that is missing, and a
/// layout that differs are errors.
pub fn join<'a>(mut package: Package<'a>, data: &[Package<'_>]) -> Result<Package<'a>, Error> {
    let kind = Error::Kind { found: package.root.kind(), wanted: "a program" };
    let program = package.program().ok_or(kind)?;
    let mut taken = BTreeSet::new();
    for entry in program.named_data.iter().flat_map(|entries| entries.iter()) {
        taken.insert(entry?.key.unwrap_or_default().into_owned());
    }
    let mut order = Vec::new();
    let mut entries: BTreeMap<String, Found> = BTreeMap::new();
    for (file, data) in data.iter().enumerate() {
        for entry in entries_of(data)? {
            if !taken.insert(entry.key.clone()) {
                return Err(Error::refused("named_data", format!("the key {:?} is in two places", entry.key)));
            }
            order.push(entry.key.clone());
            entries.insert(entry.key.clone(), (file, entry));
        }
    }

    // Constants and initial values keep their numbers; new ones follow.
    let mut lens: BTreeMap<u32, u64> = BTreeMap::new();
    let mut next = 1u32;
    let (mut constants, mut initial) = (Vec::new(), Vec::new());
    let (mut missing, mut first) = (MissingData::default(), None);
    each_tensor(program, |place, tensor| {
        if is_external(tensor) {
            let key = name_of(tensor).unwrap_or_default();
            missing.wants(key, entries.contains_key(key));
            let Some((_, entry)) = entries.get(key) else {
                first.get_or_insert_with(|| place.to_owned());
                return Ok(());
            };
            let (have, want) = (entry.layout.as_ref(), layout_of(place, tensor)?);
            if have.is_some_and(|have| *have != want) || entry.content.len() != want.byte_len() as u64 {
                let have = have.map_or_else(|| format!("{} bytes", entry.content.len()), ToString::to_string);
                return Err(Error::refused(place, format!("{key:?} is {have}, the program has {want}")));
            }
            let wanted = if tensor.allocation_info.is_some() { &mut initial } else { &mut constants };
            wanted.push(key.to_owned());
        } else if let Some(index) = constant_of(tensor) {
            let most = lens.entry(index).or_insert(0);
            *most = (layout_of(place, tensor)?.byte_len() as u64).max(*most);
            next = next.max(index.saturating_add(1));
        }
        Ok(())
    })?;
    if let Some(place) = first {
        return Err(Error::refused(place, missing.described(order.first().map(String::as_str))));
    }
    let number = |wanted: &[String], first| {
        let mut numbered = Numbered::from(first);
        for key in wanted {
            entries.get(key).into_iter().for_each(|found| numbered.add(key, found));
        }
        numbered
    };
    let new_constants = number(&constants, next);
    if !constants.is_empty() {
        let mut contents = Vec::new();
        for index in 1..next {
            // A number that no tensor has keeps its place, without bytes.
            let len = lens.get(&index).copied().unwrap_or(0);
            contents.push(if len == 0 { Content::empty() } else { package.constant("constant", index, len)? });
        }
        contents.extend(new_constants.contents);
        package.set_constants(contents)?;
    }
    let new_initial = number(&initial, package.next_initial()?);
    package.add_initial(new_initial.contents)?;
    if let Some(program) = package.program_mut() {
        change_tensors(program, |_, tensor| {
            let planned = tensor.allocation_info.is_some();
            let by_key = if planned { &new_initial.by_key } else { &new_constants.by_key };
            let number = name_of(tensor).filter(|_| is_external(tensor)).and_then(|key| by_key.get(key).copied());
            if let Some(number) = number {
                tensor.data_buffer_idx = number;
                let info = tensor.extra_tensor_info.get_or_insert_with(ExtraTensorInfo::default);
                info.location = TensorDataLocation::SEGMENT;
                info.mutable_data_segments_idx = 0;
            }
            Ok(())
        })?;
    }
    constants.iter().chain(&initial).for_each(|key| drop(entries.remove(key)));
    let mut places: BTreeMap<(usize, (u32, u64), u64), u32> = BTreeMap::new();
    let mut rows = Vec::new();
    for key in &order {
        let Some((file, entry)) = entries.remove(key) else { continue };
        let segment = *places.entry((file, entry.place, entry.content.len())).or_insert_with(|| {
            package.segments.push(entry.content);
            (package.segments.len() as u32).saturating_sub(1)
        });
        rows.push(NamedData { key: Some(entry.key.into()), segment_index: segment });
    }
    if let Some(program) = package.program_mut()
        && !rows.is_empty()
    {
        program.named_data.get_or_insert_default().to_mut()?.extend(rows);
    }
    package.settle()?;
    Ok(package)
}
