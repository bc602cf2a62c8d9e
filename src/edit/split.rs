//! Moving constants and named data out of a program into a data file.
//!
//! Bytes are not touched: the data file's segments are ranges of the program's. What the program computes stays the same.

use std::collections::BTreeMap;

use edgepack_format::ptd::{FlatTensor, NamedData, TensorLayout as LayoutRow};
use edgepack_format::pte::{ExtraTensorInfo, Tensor, TensorDataLocation};
use edgepack_format::tensor::TensorLayout;

use super::content::Content;
use super::error::Error;
use super::names::{Glob, Keys};
use super::package::Package;
use super::program::{
    change_tensors, constant_name, constant_of, each_tensor, is_external, layout_of, name_of, references,
};
use super::root::Root;

/// Choice of the data that are moved.
#[derive(Clone, Debug, Default)]
pub struct SplitOptions {
    /// Moves only data with a name that the pattern matches.
    pub matching: Option<Glob>,
    /// Also the data that delegates find by key.
    pub named: bool,
}

/// A program and what was taken out of it.
#[derive(Debug)]
pub struct Split<'a> {
    /// The program, which now needs the data file.
    pub program: Package<'a>,
    /// The data file.
    pub data: Package<'static>,
    /// The keys in the data file, in its order.
    pub keys: Vec<String>,
}

/// A data file as it grows.
#[derive(Default)]
struct Growing {
    entries: Vec<NamedData<'static>>,
    segments: Vec<Content>,
    /// Segments of constants, by number and length.
    places: BTreeMap<(u32, u64), u32>,
    keys: Keys,
    /// Segment and layout of the constant that each key stands for.
    meanings: BTreeMap<String, (u32, TensorLayout)>,
}

/// Moves constants, and named data if asked for, from a program into a data file. Constants without a name become
/// `constant.K`; one constant that is used under several layouts or names becomes several keys on one segment.
pub fn split<'a>(mut package: Package<'a>, options: &SplitOptions) -> Result<Split<'a>, Error> {
    let matches = |name: &str| options.matching.as_ref().is_none_or(|glob| glob.matches(name));
    let mut growing = Growing::default();
    let kind = Error::Kind { found: package.root.kind(), wanted: "a program" };
    let program = package.program().ok_or(kind)?;
    for entry in program.named_data.iter().flat_map(|entries| entries.iter()) {
        growing.keys.take(&entry?.key.unwrap_or_default());
    }
    each_tensor(program, |_, tensor| {
        if is_external(tensor) {
            growing.keys.take(name_of(tensor).unwrap_or_default());
        }
        Ok(())
    })?;

    // What moves under which key, and what stays with how many bytes.
    let mut moving: BTreeMap<String, String> = BTreeMap::new();
    let mut staying: BTreeMap<u32, u64> = BTreeMap::new();
    each_tensor(program, |place, tensor| {
        let Some(index) = constant_of(tensor) else { return Ok(()) };
        let layout = layout_of(place, tensor)?;
        let len = layout.byte_len() as u64;
        let name = constant_name(tensor, index);
        if !matches(&name) {
            let most = staying.entry(index).or_insert(0);
            *most = len.max(*most);
            return Ok(());
        }
        let content = package.constant(place, index, len)?;
        moving.insert(place.to_owned(), growing.tensor(&name, index, layout, content));
        Ok(())
    })?;

    if !moving.is_empty() {
        let mut numbers: BTreeMap<u32, u32> = BTreeMap::new();
        let mut constants = Vec::new();
        for (number, (index, len)) in (1u32..).zip(&staying) {
            numbers.insert(*index, number);
            constants.push(package.constant("constant_segment", *index, *len)?);
        }
        package.set_constants(constants)?;
        if let Some(program) = package.program_mut() {
            change_tensors(program, |place, tensor| {
                let Some(index) = constant_of(tensor) else { return Ok(()) };
                match moving.get(place) {
                    Some(key) => externalise(tensor, key),
                    None => tensor.data_buffer_idx = numbers.get(&index).copied().unwrap_or(0),
                }
                Ok(())
            })?;
        }
    }
    if options.named {
        move_named(&mut package, &mut growing, matches)?;
    }
    package.settle()?;
    growing.finish(package)
}

fn externalise(tensor: &mut Tensor<'_>, key: &str) {
    tensor.data_buffer_idx = 0;
    let info = tensor.extra_tensor_info.get_or_insert_with(ExtraTensorInfo::default);
    info.location = TensorDataLocation::EXTERNAL;
    info.fully_qualified_name = Some(key.to_owned().into());
}

fn move_named(package: &mut Package<'_>, growing: &mut Growing, matches: impl Fn(&str) -> bool) -> Result<(), Error> {
    let Some(Ok(before)) = package.program().map(references) else { return Ok(()) };
    let entries = package.program().and_then(|program| program.named_data.clone()).unwrap_or_default();
    let mut places: BTreeMap<u32, u32> = BTreeMap::new();
    let mut kept = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let entry = entry?;
        let key = entry.key.clone().unwrap_or_default();
        if !matches(&key) {
            kept.push(entry);
            continue;
        }
        let content = package.segment(&format!("named_data[{index}]"), entry.segment_index)?.clone();
        let segment = *places.entry(entry.segment_index).or_insert_with(|| growing.segment(content));
        let row = NamedData { key: Some(key.into_owned().into()), segment_index: segment, tensor_layout: None };
        growing.entries.push(row);
    }
    if places.is_empty() {
        return Ok(());
    }
    let Some(program) = package.program_mut() else { return Ok(()) };
    program.named_data = Some(kept.into());
    let after = references(program)?;
    // What nothing referred to before is none of this edit's business.
    let gone = before.keys().filter(|index| !after.contains_key(index)).copied().collect();
    package.remove_segments(&gone)
}

impl Growing {
    fn segment(&mut self, content: Content) -> u32 {
        self.segments.push(content);
        (self.segments.len() as u32).saturating_sub(1)
    }

    /// The key of a constant under a layout; made if there is none yet.
    fn tensor(&mut self, name: &str, index: u32, layout: TensorLayout, content: Content) -> String {
        let meaning = (index, layout);
        // Names lead to few keys each: the name itself and numbered ones.
        let mut known = self.meanings.range(name.to_owned()..).take_while(|(key, _)| key.starts_with(name));
        if let Some((key, _)) = known.find(|(key, found)| **found == meaning && is_of(key, name)) {
            return key.clone();
        }
        let key = self.keys.fresh(name);
        let place = (index, content.len());
        let segment = match self.places.get(&place) {
            Some(segment) => *segment,
            None => {
                let segment = self.segment(content);
                self.places.insert(place, segment);
                segment
            }
        };
        let layout = Some(row_of(&meaning.1));
        self.entries.push(NamedData { key: Some(key.clone().into()), segment_index: segment, tensor_layout: layout });
        self.meanings.insert(key.clone(), meaning);
        key
    }

    fn finish(self, program: Package<'_>) -> Result<Split<'_>, Error> {
        let keys = self.entries.iter().map(|entry| entry.key.as_deref().unwrap_or_default().to_owned()).collect();
        let root = FlatTensor { version: 0, segments: Some(Vec::new().into()), named_data: Some(self.entries.into()) };
        let mut data = Package::new(Root::Data(root));
        data.segments = self.segments;
        data.place()?;
        Ok(Split { program, data, keys })
    }
}

/// Returns whether a key is this name or it with a number.
fn is_of(key: &str, name: &str) -> bool {
    let rest = key.strip_prefix(name);
    rest.is_some_and(|rest| rest.is_empty() || rest.strip_prefix('.').is_some_and(|n| n.parse::<u64>().is_ok()))
}

/// A layout as a row of a data file.
pub(super) fn row_of(layout: &TensorLayout) -> LayoutRow<'static> {
    let sizes: Vec<i32> = layout.sizes().iter().map(|size| i32::try_from(*size).unwrap_or(i32::MAX)).collect();
    LayoutRow {
        scalar_type: layout.scalar_type(),
        sizes: Some(sizes.into()),
        dim_order: Some(layout.dim_order().to_vec().into()),
    }
}
