//! Differences between two packages.
//!
//! By default contents count and places do not: constants, initial values, payloads and named data are compared wherever
//! they are stored, tensors element by element within a tolerance; names that `split` makes up are none.
//! [`DiffOptions::exact`] compares every field and byte.

mod contents;
pub(super) mod json;
mod rows;
mod tape;

use std::collections::{BTreeMap, HashMap};

use edgepack_format::bundle::BundledProgram;
use edgepack_format::pte::{
    BackendDelegate, DeviceType, EValue, ExecutionPlan, KernelTypes, Program, TensorDataLocation,
};
use edgepack_format::row::{Rows, Table};
use edgepack_format::tensor::TensorLayout;
use edgepack_format::wire::ReadError;
use serde::ser::{Error as _, SerializeSeq};
use serde::{Serialize, Serializer};

use super::compiled::CompiledPackage;
use super::content::Content;
use super::dump::inline;
use super::error::Error;
use super::open::Opened;
use super::package::Package;
use super::payload::PayloadRows;
use super::root::Root;
use contents::{Contents, Listed, OfData, OfProgram, Place};
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
pub struct Difference {
    /// Path of the difference.
    pub path: String,
    /// Content of the first file.
    pub left: String,
    /// Content of the second file.
    pub right: String,
}

/// Returns the differences, in the order of the first file; none for packages with equal content.
pub fn diff(left: &Package<'_>, right: &Package<'_>, options: &DiffOptions) -> Result<Vec<Difference>, Error> {
    let mut out = Differences::default();
    if options.exact {
        out.exactly(left, right)?;
        return Ok(out.list);
    }
    match (&left.root, &right.root) {
        (Root::Program(a), Root::Program(b)) => {
            out.rows("", &Bare(a), &Bare(b))?;
            out.contents(&OfProgram::new(left, a)?, &OfProgram::new(right, b)?, options)?;
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
                    for found in diff(&a.package()?, &b.package()?, options)? {
                        out.push(format!("program.{}", found.path), found.left, found.right);
                    }
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
    Ok(out.list)
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

/// The rows of a program without what says where bytes are, one at a time.
struct Bare<'p, 'a>(&'p Program<'a>);

impl Serialize for Bare<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Fields<P> {
            version: u32,
            execution_plan: P,
        }
        Fields { version: self.0.version, execution_plan: Each(self.0.execution_plan.as_ref(), bare_plan) }
            .serialize(serializer)
    }
}

/// Rows, each changed before it is looked at. No list is as good as an empty one.
struct Each<'r, 'a, T, F>(Option<&'r Rows<'a, T>>, F);

impl<'a, T: Table<'a> + Clone, R: Serialize, F: Fn(T) -> R> Serialize for Each<'_, 'a, T, F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(None)?;
        for row in self.0.iter().flat_map(|rows| rows.iter()) {
            let row: Result<T, ReadError> = row;
            list.serialize_element(&self.1(row.map_err(S::Error::custom)?))?;
        }
        list.end()
    }
}

/// A method without the places of its constants and payloads.
struct BarePlan<'a>(ExecutionPlan<'a>);

fn bare_plan(plan: ExecutionPlan<'_>) -> BarePlan<'_> {
    BarePlan(plan)
}

impl Serialize for BarePlan<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Fields<'p, 'a, V, D> {
            #[serde(flatten)]
            rest: &'p ExecutionPlan<'a>,
            values: V,
            delegates: Option<D>,
        }
        let plan = &self.0;
        let rest = ExecutionPlan { values: None, delegates: None, ..plan.clone() };
        let delegates = plan.delegates.as_ref().map(|rows| Each(Some(rows), bare_delegate));
        Fields { rest: &rest, values: Each(plan.values.as_ref(), bare_value), delegates }.serialize(serializer)
    }
}

fn bare_delegate(delegate: BackendDelegate<'_>) -> BackendDelegate<'_> {
    BackendDelegate { processed: None, ..delegate }
}

fn bare_value(mut value: EValue<'_>) -> EValue<'_> {
    let Some(KernelTypes::Tensor(tensor)) = &mut value.val else { return value };
    tensor.data_buffer_idx = 0;
    let Some(info) = &mut tensor.extra_tensor_info else { return value };
    (info.location, info.mutable_data_segments_idx) = (TensorDataLocation::SEGMENT, 0);
    let numbers = |rest: &str| rest.split('.').all(|number| number.parse::<u64>().is_ok());
    let made_up = |name: &str| name.strip_prefix("constant.").is_some_and(numbers);
    if info.fully_qualified_name.as_deref().is_none_or(made_up) {
        info.fully_qualified_name = None;
        if info.device_type == DeviceType::CPU && info.device_index == 0 {
            // Nothing is left that the tensor would not be without it.
            tensor.extra_tensor_info = None;
        }
    }
    value
}

#[derive(Default)]
struct Differences {
    list: Vec<Difference>,
    names: Names,
}

impl Differences {
    fn push(&mut self, path: String, left: String, right: String) {
        self.list.push(Difference { path, left, right });
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
        Ok(())
    }

    /// Bytes of a place; payloads of delegates by their rows, where both sides have such.
    fn payload(&mut self, place: Place<'_>, a: &Content, b: &Content) -> Result<(), Error> {
        let path = place.path();
        if !matches!(place, Place::Delegate(..)) || a.same(b).map_err(Error::io(&path))? {
            return self.bytes(&path, a, b);
        }
        let (left, right) = (a.read().map_err(Error::io(&path))?, b.read().map_err(Error::io(&path))?);
        let (Some(left), Some(right)) = (PayloadRows::read(&left), PayloadRows::read(&right)) else {
            return self.bytes(&path, a, b);
        };
        let before = self.list.len();
        self.rows(&path, &left.graph, &right.graph)?;
        let region = |rows: &PayloadRows<'_>| Content::from(rows.constants.as_slice());
        self.bytes(&format!("{path}.constants"), &region(&left), &region(&right))?;
        if self.list.len() == before {
            // The same graph, laid out otherwise.
            return self.bytes(&path, a, b);
        }
        Ok(())
    }

    fn bytes(&mut self, path: &str, a: &Content, b: &Content) -> Result<(), Error> {
        if a.len() != b.len() {
            self.push(path.to_owned(), format!("{} bytes", a.len()), format!("{} bytes", b.len()));
            return Ok(());
        }
        if let Some((at, more, a, b)) = unlike(a, b, 1, |a, b| a == b).map_err(Error::io(path))? {
            let show = |bytes: &[u8]| format!("{:#04x}", bytes.first().copied().unwrap_or(0));
            self.push(format!("{path}, byte {at} and {more} more"), show(&a), show(&b));
        }
        Ok(())
    }

    fn contents(&mut self, left: &impl Contents, right: &impl Contents, options: &DiffOptions) -> Result<(), Error> {
        let show = |found: Option<&(Content, Option<TensorLayout>)>| match found {
            None => "absent".to_owned(),
            Some((_, Some(layout))) => layout.to_string(),
            Some((content, None)) => format!("{} bytes", content.len()),
        };
        // Many tensors may show one range: what was alike once is not read again.
        let mut alike = HashMap::new();
        left.each(&mut |place, mine| match (&mine, right.find(place)?) {
            ((content, layout), Some((other, their))) if *layout == their => {
                let places = content.place().zip(other.place());
                let places = places.map(|places| (places, layout.as_ref().map(TensorLayout::scalar_type)));
                if places.is_some_and(|places| alike.contains_key(&places)) {
                    return Ok(());
                }
                let before = self.list.len();
                match layout {
                    Some(layout) => self.elements(&place.path(), layout, content, &other, options)?,
                    None => self.payload(place, content, &other)?,
                }
                if let (Some(places), true) = (places, self.list.len() == before) {
                    // Held, so that no other source comes to be at its address.
                    alike.insert(places, (content.clone(), other));
                }
                Ok(())
            }
            (_, other) => {
                self.push(place.path(), show(Some(&mine)), show(other.as_ref()));
                Ok(())
            }
        })?;
        right.each(&mut |place, found| {
            if left.find(place)?.is_none() {
                self.push(place.path(), show(None), show(Some(&found)));
            }
            Ok(())
        })
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
            self.push(format!("{path}, element {at}{more} of {layout}"), show(&a), show(&b));
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
