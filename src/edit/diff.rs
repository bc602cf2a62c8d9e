//! What differs between two packages.
//!
//! By default contents count and places do not: constants, initial values, payloads and named data are compared wherever
//! they are stored, tensors element by element within a tolerance; names that `split` makes up are none.
//! [`DiffOptions::exact`] compares every field and byte.

use std::collections::{BTreeMap, BTreeSet};

use edgepack_format::bundle::BundledProgram;
use edgepack_format::pte::{DataLocation, Program};
use edgepack_format::row::Table;
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::TensorLayout;
use half::{bf16, f16};
use serde::Serialize;
use serde_json::Value;

use super::compiled::CompiledPackage;
use super::content::Content;
use super::dump::inline;
use super::error::Error;
use super::join::entries_of;
use super::open::Opened;
use super::package::{Package, Root};
use super::program::{constant_of, each_tensor, initial_of, layout_of};

/// What counts as a difference.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct DiffOptions {
    /// How far floating point elements may be apart, relative to the left one.
    pub rtol: f64,
    /// The same in absolute terms.
    pub atol: f64,
    /// Compare every field as it is, every byte of every segment, and the form of the header.
    pub exact: bool,
}

/// One difference.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Difference {
    /// Where.
    pub path: String,
    /// What the first file has.
    pub left: String,
    /// What the second file has.
    pub right: String,
}

/// What differs, in the order of the first file; nothing for packages with the same content.
pub fn diff(left: &Package<'_>, right: &Package<'_>, options: &DiffOptions) -> Result<Vec<Difference>, Error> {
    let mut out = Differences::default();
    if options.exact {
        out.exactly(left, right)?;
        return Ok(out.list);
    }
    match (&left.root, &right.root) {
        (Root::Program(a), Root::Program(b)) => {
            out.values("", &stripped(a)?, &stripped(b)?);
            out.contents(&program_contents(left, a)?, &program_contents(right, b)?, options)?;
        }
        (Root::Bundle(a), Root::Bundle(b)) => {
            let cases = |row: &BundledProgram<'_>| value(&BundledProgram { program: None, ..row.clone() });
            out.values("", &cases(a)?, &cases(b)?);
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
                let inside = |(path, _): &(String, _)| path.starts_with("packages");
                a.contents.retain(inside);
                b.contents.retain(inside);
            }
            out.values("", &a.rows, &b.rows);
            out.contents(&a.contents, &b.contents, options)?;
        }
        (a, b) if !(is_data(a) && is_data(b)) => {
            out.push(String::new(), left.root.kind().to_string(), right.root.kind().to_string());
        }
        _ => out.contents(&data_contents(left)?, &data_contents(right)?, options)?,
    }
    Ok(out.list)
}

fn is_data(root: &Root<'_>) -> bool {
    matches!(root, Root::Data(_) | Root::LegacyData(_) | Root::FlatData(_))
}

/// Compiled parts to be compared: packages by number, whether a model is around them or not.
struct Compiled {
    rows: Value,
    contents: Contents,
}

fn compiled(root: &Root<'_>) -> Result<Compiled, Error> {
    let mut root = root.clone();
    let mut contents = Contents::new();
    inline(&mut root, |path, blob| {
        let bytes = std::mem::take(blob);
        let path =
            path.strip_prefix("model.").map_or_else(|| path.replacen("package", "packages[0]", 1), str::to_owned);
        contents.push((path, (Content::from(bytes.as_slice()), None)));
        Ok(())
    })?;
    let mut packages = match root {
        Root::Model(model) => model.packages,
        Root::EdgeTpu(package) => vec![*package],
        _ => Vec::new(),
    };
    packages.iter_mut().for_each(unplaced);
    Ok(Compiled { rows: serde_json::json!({ "packages": value(&packages)? }), contents })
}

/// Forgets how a package is laid out.
fn unplaced(package: &mut CompiledPackage<'_>) {
    (package.paged, package.length) = (true, 0);
    package.chips.iter_mut().flatten().for_each(unplaced);
}

fn presence(there: bool) -> String {
    if there { "present" } else { "absent" }.to_owned()
}

/// Bytes with what they look like, by where they are used.
type Contents = Vec<(String, (Content, Option<TensorLayout>))>;

fn program_contents(package: &Package<'_>, program: &Program<'_>) -> Result<Contents, Error> {
    let mut contents = Contents::new();
    each_tensor(program, |place, tensor| {
        let layout = layout_of(place, tensor);
        let len = layout.as_ref().map_or(0, |layout| layout.byte_len() as u64);
        let content = match (constant_of(tensor), initial_of(tensor)) {
            (Some(index), _) => package.constant(place, index, len)?,
            (_, Some((list, index))) => package.initial(place, list, index, len)?,
            _ => return Ok(()),
        };
        contents.push((format!("{place}.data"), (content, Some(layout?))));
        Ok(())
    })?;
    for (method, plan) in program.execution_plan.iter().flat_map(|plans| plans.iter()).enumerate() {
        for (index, delegate) in plan?.delegates.iter().flat_map(|rows| rows.iter()).enumerate() {
            let path = format!("execution_plan[{method}].delegates[{index}].processed");
            let Some(place) = delegate?.processed else { continue };
            let content = if place.location == DataLocation::SEGMENT {
                package.segment(&path, place.index)?.clone()
            } else {
                let blobs = program.backend_delegate_data.clone().unwrap_or_default();
                let missing = |_| Error::refused(&*path, format!("payload {} of {}", place.index, blobs.len()));
                let row = blobs.get(place.index as usize).map_err(missing)?;
                Content::from(row.data.unwrap_or_default().as_slice())
            };
            contents.push((path, (content, None)));
        }
    }
    for (index, entry) in program.named_data.iter().flat_map(|rows| rows.iter()).enumerate() {
        let entry = entry?;
        let content = package.segment(&format!("named_data[{index}]"), entry.segment_index)?.clone();
        contents.push((format!("named_data[{:?}]", entry.key.unwrap_or_default()), (content, None)));
    }
    Ok(contents)
}

fn data_contents(package: &Package<'_>) -> Result<Contents, Error> {
    let entries = entries_of(package)?.into_iter();
    Ok(entries.map(|entry| (format!("named_data[{:?}]", entry.key), (entry.content, entry.layout))).collect())
}

fn value<T: Serialize>(row: &T) -> Result<Value, Error> {
    Ok(serde_json::to_value(row)?)
}

/// The rows of a program without what says where bytes are.
fn stripped(program: &Program<'_>) -> Result<Value, Error> {
    let bare = Program {
        constant_buffer: None,
        backend_delegate_data: None,
        segments: None,
        constant_segment: None,
        mutable_data_segments: None,
        named_data: None,
        ..program.clone()
    };
    let mut root = value(&bare)?;
    let list = |value: &mut Value, name: &str| match value.get_mut(name) {
        Some(Value::Array(items)) => std::mem::take(items),
        _ => Vec::new(),
    };
    let mut plans = list(&mut root, "execution_plan");
    for plan in &mut plans {
        let mut values = list(plan, "values");
        for tensor in values.iter_mut().filter_map(|value| value.get_mut("val")?.get_mut("Tensor")?.as_object_mut()) {
            tensor.remove("data_buffer_idx");
            let Some(Value::Object(info)) = tensor.get_mut("extra_tensor_info") else { continue };
            info.remove("location");
            info.remove("mutable_data_segments_idx");
            let numbers = |rest: &str| rest.split('.').all(|number| number.parse::<u64>().is_ok());
            let made_up = |name: &str| name.strip_prefix("constant.").is_some_and(numbers);
            let unnamed = info.get("fully_qualified_name").and_then(Value::as_str).is_none_or(made_up);
            let elsewhere =
                info.get("device_type") != Some(&Value::from("CPU")) || info.get("device_index") != Some(&0.into());
            if unnamed && !elsewhere {
                // Nothing is left that the tensor would not be without it.
                tensor.remove("extra_tensor_info");
            } else if unnamed {
                info.remove("fully_qualified_name");
            }
        }
        for tensor in values.iter_mut().filter_map(|value| value.get_mut("val")?.get_mut("Tensor")?.as_object_mut()) {
            if tensor.get("extra_tensor_info") == Some(&Value::Null) {
                tensor.remove("extra_tensor_info");
            }
        }
        plan["values"] = values.into();
        if let Some(Value::Array(delegates)) = plan.get_mut("delegates") {
            for delegate in delegates.iter_mut().filter_map(Value::as_object_mut) {
                delegate.remove("processed");
            }
        }
    }
    root["execution_plan"] = plans.into();
    Ok(root)
}

#[derive(Default)]
struct Differences {
    list: Vec<Difference>,
}

impl Differences {
    fn push(&mut self, path: String, left: String, right: String) {
        self.list.push(Difference { path, left, right });
    }

    fn exactly(&mut self, left: &Package<'_>, right: &Package<'_>) -> Result<(), Error> {
        // Alignments are conclusions from places, and the places are compared.
        self.values("layout.header", &value(&left.layout.header)?, &value(&right.layout.header)?);
        match (&left.root, &right.root) {
            (Root::Program(a), Root::Program(b)) => self.rows(a, b)?,
            (Root::Data(a), Root::Data(b)) => self.rows(a, b)?,
            (Root::LegacyData(a), Root::LegacyData(b)) => self.rows(a, b)?,
            (Root::FlatData(a), Root::FlatData(b)) => self.rows(a, b)?,
            (Root::Bundle(a), Root::Bundle(b)) => self.rows(a, b)?,
            (Root::EdgeTpu(a), Root::EdgeTpu(b)) => self.values("package", &value(a)?, &value(b)?),
            (Root::Model(a), Root::Model(b)) => self.values("model", &value(a)?, &value(b)?),
            (a, b) => self.push(String::new(), a.kind().to_string(), b.kind().to_string()),
        }
        for (index, (a, b)) in left.segments.iter().zip(&right.segments).enumerate() {
            self.bytes(&format!("segments[{index}]"), a, b)?;
        }
        Ok(())
    }

    fn rows<'a, 'b, A: Table<'a> + Serialize, B: Table<'b> + Serialize>(&mut self, a: &A, b: &B) -> Result<(), Error> {
        self.values("", &value(a)?, &value(b)?);
        Ok(())
    }

    fn bytes(&mut self, path: &str, a: &Content, b: &Content) -> Result<(), Error> {
        if a.len() != b.len() {
            self.push(path.to_owned(), format!("{} bytes", a.len()), format!("{} bytes", b.len()));
        } else if !a.same(b).map_err(Error::io(path))? {
            let (a, b) = (a.read().map_err(Error::io(path))?, b.read().map_err(Error::io(path))?);
            let mut different = a.iter().zip(&*b).enumerate().filter(|(_, (a, b))| a != b);
            let first = different.next();
            let more = different.count();
            if let Some((at, (a, b))) = first {
                self.push(format!("{path}, byte {at} and {more} more"), format!("{a:#04x}"), format!("{b:#04x}"));
            }
        }
        Ok(())
    }

    fn contents(&mut self, left: &Contents, right: &Contents, options: &DiffOptions) -> Result<(), Error> {
        let show = |found: Option<&(Content, Option<TensorLayout>)>| match found {
            None => "absent".to_owned(),
            Some((_, Some(layout))) => layout.to_string(),
            Some((content, None)) => format!("{} bytes", content.len()),
        };
        let there: BTreeMap<&str, _> = right.iter().map(|(path, found)| (path.as_str(), found)).collect();
        for (path, mine) in left {
            let (content, layout) = mine;
            match there.get(path.as_str()) {
                Some((other, their)) if their == layout => match layout {
                    Some(layout) => self.elements(path, layout, content, other, options)?,
                    None => self.bytes(path, content, other)?,
                },
                other => self.push(path.clone(), show(Some(mine)), show(other.copied())),
            }
        }
        let here: BTreeSet<&str> = left.iter().map(|(path, _)| path.as_str()).collect();
        for (path, found) in right.iter().filter(|(path, _)| !here.contains(path.as_str())) {
            self.push(path.clone(), show(None), show(Some(found)));
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
        if a.same(b).map_err(Error::io(path))? {
            return Ok(());
        }
        let (a, b) = (a.read().map_err(Error::io(path))?, b.read().map_err(Error::io(path))?);
        let scalar_type = layout.scalar_type();
        let size = scalar_type.size().unwrap_or(1);
        let pairs = a.chunks_exact(size).zip(b.chunks_exact(size)).enumerate();
        let mut different = pairs.filter(|(_, (a, b))| match (float(scalar_type, a), float(scalar_type, b)) {
            (Some(a), Some(b)) => !close(a, b, options),
            _ => a != b,
        });
        let first = different.next();
        let more = different.count();
        if let Some((at, (a, b))) = first {
            let show = |bytes: &[u8]| match float(scalar_type, bytes) {
                Some(number) => format!("{number:?}"),
                None => format!("0x{}", bytes.iter().rev().map(|byte| format!("{byte:02x}")).collect::<String>()),
            };
            let more = if more == 0 { String::new() } else { format!(" and {more} more") };
            self.push(format!("{path}, element {at}{more} of {layout}"), show(a), show(b));
        }
        Ok(())
    }

    fn values(&mut self, path: &str, a: &Value, b: &Value) {
        match (a, b) {
            _ if a == b => {}
            (Value::Object(a), Value::Object(b)) => {
                let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
                for (name, one) in a {
                    self.values(&below(name), one, b.get(name).unwrap_or(&Value::Null));
                }
                for (name, other) in b.iter().filter(|(name, _)| !a.contains_key(*name)) {
                    self.values(&below(name), &Value::Null, other);
                }
            }
            (Value::Array(a), Value::Array(b)) if a.iter().chain(b).all(|item| item.is_object()) => {
                for (index, (a, b)) in a.iter().zip(b).enumerate() {
                    self.values(&format!("{path}[{index}]"), a, b);
                }
                if a.len() != b.len() {
                    self.push(path.to_owned(), format!("{} items", a.len()), format!("{} items", b.len()));
                }
            }
            _ => {
                let (a, b) = shown(a, b);
                self.push(path.to_owned(), a, b);
            }
        }
    }
}

/// Two values on a line each, from where they begin to differ if they are long.
fn shown(a: &Value, b: &Value) -> (String, String) {
    const MOST: usize = 60;
    const BEFORE: usize = 12;
    let text = |value: &Value| if value.is_null() { "absent".to_owned() } else { value.to_string() };
    let (a, b) = (text(a), text(b));
    let same = a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count();
    let cut = |text: &str| {
        let skip = if text.chars().count() > MOST { same.saturating_sub(BEFORE) } else { 0 };
        let shown: String = text.chars().skip(skip).take(MOST).collect();
        let more = text.chars().count() > skip + MOST;
        format!("{}{shown}{}", if skip > 0 { "…" } else { "" }, if more { "…" } else { "" })
    };
    (cut(&a), cut(&b))
}

pub(super) fn close(a: f64, b: f64, options: &DiffOptions) -> bool {
    let tolerance = options.atol + options.rtol * a.abs();
    (a.is_nan() && b.is_nan()) || a == b || (a - b).abs() <= tolerance
}

/// A floating point element.
fn float(scalar_type: ScalarType, bytes: &[u8]) -> Option<f64> {
    Some(match scalar_type {
        ScalarType::HALF => f16::from_le_bytes(bytes.try_into().ok()?).to_f64(),
        ScalarType::BFLOAT16 => bf16::from_le_bytes(bytes.try_into().ok()?).to_f64(),
        ScalarType::FLOAT => f32::from_le_bytes(bytes.try_into().ok()?).into(),
        ScalarType::DOUBLE => f64::from_le_bytes(bytes.try_into().ok()?),
        _ => return None,
    })
}
