//! Differences between two packages.
//!
//! By default contents count and places do not: constants, initial values, payloads and named data are compared wherever
//! they are stored, tensors element by element within a tolerance; names that `split` makes up are none. Of two programs
//! it is found out first what is what: methods by name, instructions by alignment, values by the roles that they have in
//! them, named data by key and by content; numbers that indices have say nothing. [`DiffOptions::exact`] compares every
//! field and byte.

mod align;
mod contents;
pub(super) mod json;
mod keyed;
mod matching;
mod methods;
mod programs;
mod rest;
mod rows;
mod side;
mod tape;
mod words;

use std::collections::{BTreeMap, HashMap};

use edgepack_format::bundle::BundledProgram;
use edgepack_format::pte::{BackendDelegate, DeviceType, EValue, KernelTypes, TensorDataLocation};
use edgepack_format::tensor::TensorLayout;
use edgepack_format::xnnpack::Graph;
use serde::Serialize;

use super::compiled::CompiledPackage;
use super::content::Content;
use super::dump::inline;
use super::error::Error;
use super::open::Opened;
use super::package::Package;
use super::payload::PayloadRows;
use super::root::Root;
use contents::{Found, Listed, OfData, OfProgram, Place};
use tape::Names;

/// Options that decide what counts as a difference.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct DiffOptions {
    /// Tolerance of floating point elements, relative to the left one.
    pub rtol: f64,
    /// Tolerance of floating point elements in absolute terms.
    pub atol: f64,
    /// Compares every field as it is, every byte of every segment, and the form of the header.
    pub exact: bool,
}

/// One difference.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Difference {
    /// Path of the difference. Indices are those of the first file, of what only the second has those of the second;
    /// `[3→5]` has both where they differ.
    pub path: String,
    /// Content of the first file.
    pub left: String,
    /// Content of the second file.
    pub right: String,
    /// Kind of what differs.
    pub kind: DifferenceKind,
}

/// Kinds of differences.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum DifferenceKind {
    /// Difference of structure: one file has what the other has not, or another row.
    Structure,
    /// Difference of bytes: weights, payloads, and whatever else has the same place and size in both.
    Content,
}

/// Answer of [`compare`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Comparison {
    /// The differences, in the order of the first file; none for packages with equal content.
    pub differences: Vec<Difference>,
    /// Number of values of programs that have another index in the second file, or share what they hold with others
    /// in one file alone. They are no differences.
    pub renumbered: usize,
}

/// Returns the differences, in the order of the first file; none for packages with equal content.
pub fn diff(left: &Package<'_>, right: &Package<'_>, options: &DiffOptions) -> Result<Vec<Difference>, Error> {
    Ok(compare(left, right, options)?.differences)
}

/// Returns the differences, and what else is to be said of two packages.
///
/// Time and memory are in proportion to the rows and bytes of both, whatever they are.
pub fn compare(left: &Package<'_>, right: &Package<'_>, options: &DiffOptions) -> Result<Comparison, Error> {
    let mut out = Differences::default();
    if options.exact {
        out.exactly(left, right)?;
        return Ok(out.answer());
    }
    match (&left.root, &right.root) {
        (Root::Program(a), Root::Program(b)) => {
            out.programs(&OfProgram::new(left, a)?, &OfProgram::new(right, b)?, options)?;
        }
        (Root::Bundle(a), Root::Bundle(b)) => {
            fn cases<'a>(row: &BundledProgram<'a>) -> BundledProgram<'a> {
                BundledProgram { program: None, ..row.clone() }
            }
            out.rows("", &cases(a), &cases(b))?;
            let inside = |row: &BundledProgram<'_>| {
                row.program.as_ref().map(|blob| Opened::from_bytes(blob.as_slice())).transpose()
            };
            match (inside(a)?, inside(b)?) {
                (Some(a), Some(b)) => {
                    let found = compare(&a.package()?, &b.package()?, options)?;
                    out.renumbered += found.renumbered;
                    let inside = |one: Difference| Difference { path: format!("program.{}", one.path), ..one };
                    out.list.extend(found.differences.into_iter().map(inside));
                }
                (None, None) => {}
                (a, b) => out.push("program".into(), presence(a.is_some()), presence(b.is_some())),
            }
        }
        (Root::EdgeTpu(_) | Root::Model(_), Root::EdgeTpu(_) | Root::Model(_)) => {
            let (mut a, mut b) = (compiled(&left.root)?, compiled(&right.root)?);
            if left.root.kind() != right.root.kind() {
                // Only one of them has something around its packages.
                let inside = |path: &String, _: &mut Content| path.starts_with("packages");
                a.contents.0.retain(inside);
                b.contents.0.retain(inside);
            }
            out.rows("packages", &a.packages, &b.packages)?;
            out.contents(&a.contents, &b.contents, options)?;
        }
        (a, b) if !(is_data(a) && is_data(b)) => {
            out.push(String::new(), left.root.kind().to_string(), right.root.kind().to_string());
        }
        _ => out.contents(&OfData::new(left)?, &OfData::new(right)?, options)?,
    }
    Ok(out.answer())
}

fn is_data(root: &Root<'_>) -> bool {
    matches!(root, Root::Data(_) | Root::LegacyData(_) | Root::FlatData(_))
}

/// Compiled parts to be compared: packages by number, whether a model is around them or not.
struct Compiled<'a> {
    packages: Vec<CompiledPackage<'a>>,
    contents: Listed,
}

fn compiled<'a>(root: &Root<'a>) -> Result<Compiled<'a>, Error> {
    let mut root = root.clone();
    let mut contents = BTreeMap::new();
    inline(&mut root, |path, blob| {
        let bytes = std::mem::take(blob);
        let path =
            path.strip_prefix("model.").map_or_else(|| path.replacen("package", "packages[0]", 1), str::to_owned);
        contents.insert(path, Content::from(bytes.as_slice()));
        Ok(())
    })?;
    let mut packages = match root {
        Root::Model(model) => model.packages,
        Root::EdgeTpu(package) => vec![*package],
        _ => Vec::new(),
    };
    packages.iter_mut().for_each(unplaced);
    Ok(Compiled { packages, contents: Listed(contents) })
}

/// Forgets how a package is laid out.
fn unplaced(package: &mut CompiledPackage<'_>) {
    (package.paged, package.length) = (true, 0);
    package.chips.iter_mut().flatten().for_each(unplaced);
}

fn presence(there: bool) -> String {
    if there { "present" } else { "absent" }.to_owned()
}

fn bare_delegate(delegate: BackendDelegate<'_>) -> BackendDelegate<'_> {
    BackendDelegate { processed: None, ..delegate }
}

fn bare_value(mut value: EValue<'_>) -> EValue<'_> {
    let Some(KernelTypes::Tensor(tensor)) = &mut value.val else { return value };
    tensor.data_buffer_idx = 0;
    let Some(info) = &mut tensor.extra_tensor_info else { return value };
    (info.location, info.mutable_data_segments_idx) = (TensorDataLocation::SEGMENT, 0);
    if info.fully_qualified_name.as_deref().is_none_or(made_up) {
        info.fully_qualified_name = None;
        if info.device_type == DeviceType::CPU && info.device_index == 0 {
            // Nothing is left that the tensor would not be without it.
            tensor.extra_tensor_info = None;
        }
    }
    value
}

/// Returns whether a name is one that `split` gives to a constant without a name.
fn made_up(name: &str) -> bool {
    let numbers = |rest: &str| rest.split('.').all(|number| number.parse::<u64>().is_ok());
    name.strip_prefix("constant.").is_some_and(numbers)
}

/// Bytes of some place, as people read them.
fn show(found: Option<&Found>) -> String {
    match found {
        None => "absent".to_owned(),
        Some((_, Some(layout))) => layout.to_string(),
        Some((content, None)) => format!("{} bytes", content.len()),
    }
}

/// Names that are remembered from one comparison of rows to the next.
const MOST_NAMES: usize = 4096;

#[derive(Default)]
struct Differences {
    list: Vec<Difference>,
    names: Names,
    renumbered: usize,
    /// Keys of the second file that have another name in the first one.
    keys: HashMap<String, String>,
}

impl Differences {
    fn answer(self) -> Comparison {
        Comparison { differences: self.list, renumbered: self.renumbered }
    }

    fn push(&mut self, path: String, left: String, right: String) {
        self.list.push(Difference { path, left, right, kind: DifferenceKind::Structure });
    }

    fn push_content(&mut self, path: String, left: String, right: String) {
        self.list.push(Difference { path, left, right, kind: DifferenceKind::Content });
    }

    fn exactly(&mut self, left: &Package<'_>, right: &Package<'_>) -> Result<(), Error> {
        // Alignments are conclusions from places, and the places are compared.
        self.rows("layout.header", &left.layout.header, &right.layout.header)?;
        match (&left.root, &right.root) {
            (Root::Program(a), Root::Program(b)) => self.rows("", a, b)?,
            (Root::Data(a), Root::Data(b)) => self.rows("", a, b)?,
            (Root::LegacyData(a), Root::LegacyData(b)) => self.rows("", a, b)?,
            (Root::FlatData(a), Root::FlatData(b)) => self.rows("", a, b)?,
            (Root::Bundle(a), Root::Bundle(b)) => self.rows("", a, b)?,
            (Root::EdgeTpu(a), Root::EdgeTpu(b)) => self.rows("package", a, b)?,
            (Root::Model(a), Root::Model(b)) => self.rows("model", a, b)?,
            (a, b) => self.push(String::new(), a.kind().to_string(), b.kind().to_string()),
        }
        for (index, (a, b)) in left.segments.iter().zip(&right.segments).enumerate() {
            self.bytes(&format!("segments[{index}]"), a, b)?;
        }
        Ok(())
    }

    /// Two values of one type, field by field.
    fn rows(&mut self, path: &str, a: &impl Serialize, b: &impl Serialize) -> Result<(), Error> {
        let mut names = std::mem::take(&mut self.names);
        let (a, b) = (names.tape(a)?, names.tape(b)?);
        rows::compare(path, &a, &b, &names, self);
        if names.len() < MOST_NAMES {
            self.names = names;
        }
        Ok(())
    }

    /// Bytes of a place; payloads of delegates by their rows, where both sides have such.
    fn payload(&mut self, place: Place<'_>, a: &Content, b: &Content) -> Result<(), Error> {
        let path = place.path();
        if !matches!(place, Place::Delegate(..)) || a.same(b).map_err(Error::io(&path))? {
            return self.bytes(&path, a, b);
        }
        let (left, right) = (a.read().map_err(Error::io(&path))?, b.read().map_err(Error::io(&path))?);
        let (Some(left), Some(mut right)) = (PayloadRows::read(&left), PayloadRows::read(&right)) else {
            return self.bytes(&path, a, b);
        };
        let renamed = self.rename(&mut right.graph)?;
        let before = self.list.len();
        self.rows(&path, &left.graph, &right.graph)?;
        let region = |rows: &PayloadRows<'_>| Content::from(rows.constants.as_slice());
        self.bytes(&format!("{path}.constants"), &region(&left), &region(&right))?;
        if self.list.len() == before && !renamed {
            // The same graph, laid out otherwise.
            return self.bytes(&path, a, b);
        }
        Ok(())
    }

    /// Gives the keys that a payload names the names that they have in the first file; returns whether there are some.
    fn rename(&self, graph: &mut Graph<'_>) -> Result<bool, Error> {
        let Some(rows) = graph.constant_data.as_mut().filter(|_| !self.keys.is_empty()) else { return Ok(false) };
        let mut renamed = false;
        for constant in rows.to_mut()? {
            let name = constant.named_key.as_deref().and_then(|key| self.keys.get(key)).cloned();
            if let Some(name) = name {
                constant.named_key = Some(name.into());
                renamed = true;
            }
        }
        Ok(renamed)
    }

    fn bytes(&mut self, path: &str, a: &Content, b: &Content) -> Result<(), Error> {
        if a.len() != b.len() {
            self.push(path.to_owned(), format!("{} bytes", a.len()), format!("{} bytes", b.len()));
            return Ok(());
        }
        if let Some((at, more, a, b)) = unlike(a, b, 1, |a, b| a == b).map_err(Error::io(path))? {
            let show = |bytes: &[u8]| format!("{:#04x}", bytes.first().copied().unwrap_or(0));
            self.push_content(format!("{path}, byte {at} and {more} more"), show(&a), show(&b));
        }
        Ok(())
    }

    fn elements(
        &mut self,
        path: &str,
        layout: &TensorLayout,
        a: &Content,
        b: &Content,
        options: &DiffOptions,
    ) -> Result<(), Error> {
        let scalar_type = layout.scalar_type();
        let size = scalar_type.size().unwrap_or(1);
        let alike = |a: &[u8], b: &[u8]| match (scalar_type.read_float(a), scalar_type.read_float(b)) {
            (Some(a), Some(b)) => close(a, b, options),
            _ => a == b,
        };
        if let Some((at, more, a, b)) = unlike(a, b, size, alike).map_err(Error::io(path))? {
            let show = |bytes: &[u8]| match scalar_type.read_float(bytes) {
                Some(number) => format!("{number:?}"),
                None => format!("0x{}", bytes.iter().rev().map(|byte| format!("{byte:02x}")).collect::<String>()),
            };
            let more = if more == 0 { String::new() } else { format!(" and {more} more") };
            self.push_content(format!("{path}, element {at}{more} of {layout}"), show(&a), show(&b));
        }
        Ok(())
    }
}

/// The first of two elements that are not alike, and how many more there are.
type Unlike = (u64, u64, Vec<u8>, Vec<u8>);

/// Compares elements of two contents, a piece at a time.
fn unlike(
    a: &Content,
    b: &Content,
    size: usize,
    alike: impl Fn(&[u8], &[u8]) -> bool,
) -> std::io::Result<Option<Unlike>> {
    let mut found: Option<Unlike> = None;
    let mut at = 0u64;
    a.each_pair(b, size, &mut |a, b| {
        if a != b {
            for (index, (a, b)) in (0u64..).zip(a.chunks_exact(size).zip(b.chunks_exact(size))) {
                if a != b && !alike(a, b) {
                    match &mut found {
                        Some((_, more, ..)) => *more += 1,
                        None => found = Some((at + index, 0, a.to_vec(), b.to_vec())),
                    }
                }
            }
        }
        at += (a.len() / size) as u64;
    })?;
    Ok(found)
}

pub(super) fn close(a: f64, b: f64, options: &DiffOptions) -> bool {
    let tolerance = options.atol + options.rtol * a.abs();
    (a.is_nan() && b.is_nan()) || a == b || (a - b).abs() <= tolerance
}
