//! Every field of every table, walked by the schema's own description: nothing can be forgotten, and what cannot be
//! read says so in its place.

use std::cell::RefCell;
use std::io::{self, Write};

use edgepack_format::darwinn;
use edgepack_format::limits::{Budget, Limits};
use edgepack_format::pte::{DataLocation, DeviceType, TensorDataLocation, TensorShapeDynamism};
use edgepack_format::row::{FieldDesc, FieldKind, Scalar, ScalarKind, StructDesc, TableDesc};
use edgepack_format::scalar::ScalarType;
use edgepack_format::wire::{self, ReadError, Table, Tables};
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::{Number, Value};

use crate::style::{BAD, DIM, NAME, TITLE};
use crate::{spelling, units};

/// A table, and what is below it when it is asked for.
pub struct Fields<'a, 'b> {
    table: Table<'a>,
    desc: &'static TableDesc,
    budget: &'b RefCell<Budget>,
}

/// The content of one field.
enum Content<'a> {
    Absent,
    /// A number, text, or list of them.
    Leaf(Value),
    Blob(usize),
    Table(Table<'a>, &'static TableDesc),
    Rows(Tables<'a>, &'static TableDesc),
    Union(&'static str, u8, Option<(Table<'a>, &'static TableDesc)>),
    Unreadable(ReadError),
}

/// A budget for one walk of a file of `len` bytes. Showing a field costs far more than verifying it, so a tenth of the
/// visits is enough; where tables are shared, what they unfold into stays in proportion to the file.
pub fn budget(limits: &Limits, len: u64) -> RefCell<Budget> {
    let mut shown = limits.unfolding(len);
    shown.visits = shown.visits.min(limits.visits / 10);
    RefCell::new(Budget::new(&shown))
}

impl<'a, 'b> Fields<'a, 'b> {
    /// The fields below a table.
    pub fn new(table: Table<'a>, desc: &'static TableDesc, budget: &'b RefCell<Budget>) -> Self {
        Fields { table, desc, budget }
    }

    /// The name of its table.
    pub fn name(&self) -> &'static str {
        self.desc.name
    }

    fn below(&self, table: Table<'a>, desc: &'static TableDesc) -> Self {
        Fields { table, desc, budget: self.budget }
    }

    fn content(&self, field: &FieldDesc) -> Content<'a> {
        self.read(field).unwrap_or_else(Content::Unreadable)
    }

    fn read(&self, field: &FieldDesc) -> wire::Result<Content<'a>> {
        let (table, slot) = (&self.table, field.slot);
        self.budget.borrow_mut().charge(1, table.offset())?;
        Ok(match field.kind {
            FieldKind::Scalar(kind) => {
                let bytes = match size(kind) {
                    1 => table.scalar::<1>(slot)?.map(|b| widen(&b)),
                    2 => table.scalar::<2>(slot)?.map(|b| widen(&b)),
                    4 => table.scalar::<4>(slot)?.map(|b| widen(&b)),
                    _ => table.scalar::<8>(slot)?,
                };
                let value = number(kind, &bytes.unwrap_or(field.default));
                Content::Leaf(named(self.desc.name, field.name, &value).unwrap_or(value))
            }
            FieldKind::Text => match table.string(slot)? {
                Some(text) => {
                    self.budget.borrow_mut().charge_bytes(text.len(), text.offset())?;
                    Content::Leaf(String::from_utf8_lossy(text.bytes()).into_owned().into())
                }
                None => Content::Absent,
            },
            FieldKind::Scalars(kind) => match table.vector(slot, size(kind))? {
                Some(vector) => {
                    self.budget.borrow_mut().charge_bytes(vector.bytes().len(), vector.offset())?;
                    let numbers = vector.bytes().chunks_exact(size(kind)).map(|bytes| number(kind, &widen(bytes)));
                    Content::Leaf(Value::Array(numbers.collect()))
                }
                None => Content::Absent,
            },
            FieldKind::Blob => table.vector(slot, 1)?.map_or(Content::Absent, |vector| Content::Blob(vector.len())),
            FieldKind::Blobs => match table.strings(slot)? {
                Some(strings) => {
                    self.budget.borrow_mut().charge(strings.len() as u64, strings.offset())?;
                    let lens = (0..strings.len()).map(|index| Ok(strings.get(index)?.len().into()));
                    Content::Leaf(Value::Array(lens.collect::<wire::Result<_>>()?))
                }
                None => Content::Absent,
            },
            FieldKind::Structs(desc) => match table.vector(slot, desc.size)? {
                Some(vector) => {
                    self.budget.borrow_mut().charge_bytes(vector.bytes().len(), vector.offset())?;
                    let items = vector.bytes().chunks_exact(desc.size).map(|bytes| structure(desc, bytes));
                    Content::Leaf(Value::Array(items.collect()))
                }
                None => Content::Absent,
            },
            FieldKind::Table(desc) => table.table(slot)?.map_or(Content::Absent, |below| Content::Table(below, desc)),
            FieldKind::Rows(desc) => table.tables(slot)?.map_or(Content::Absent, |rows| Content::Rows(rows, desc)),
            FieldKind::Union(desc) => match table.union(slot)? {
                None => Content::Absent,
                Some((tag, value)) => match desc.variants.iter().find(|variant| variant.0 == tag) {
                    Some((_, name, table)) => Content::Union(name, tag, value.map(|value| (value, *table))),
                    None => Content::Union("unknown", tag, None),
                },
            },
        })
    }

    /// Prints the fields, one per line; a table without lists of tables takes one line.
    pub fn print(&self, indent: usize, out: &mut dyn Write) -> io::Result<()> {
        self.print_fields(indent, indent, out)
    }

    /// Prints the fields with another indentation for the first line of each field.
    fn print_fields(&self, first: usize, indent: usize, out: &mut dyn Write) -> io::Result<()> {
        for field in self.desc.fields {
            write!(out, "{:first$}{NAME}{}{NAME:#}", "", field.name)?;
            match self.content(field) {
                Content::Table(table, desc) => self.below(table, desc).print_below(desc.name, indent, out)?,
                Content::Union(name, _, Some((table, desc))) => {
                    self.below(table, desc).print_below(name, indent, out)?;
                }
                Content::Rows(rows, desc) => {
                    writeln!(out, " {DIM}{} × {}{DIM:#}", rows.len(), desc.name)?;
                    for (index, row) in rows.iter().enumerate() {
                        write!(out, "{:1$}[{index}]", "", indent + 2)?;
                        match row {
                            Ok(table) => self.below(table, desc).print_below("", indent + 2, out)?,
                            Err(error) => writeln!(out, " {BAD}unreadable{BAD:#}: {error}")?,
                        }
                        if self.budget.borrow().is_spent() {
                            return Ok(());
                        }
                    }
                }
                leaf => {
                    print_leaf(&leaf, out)?;
                    writeln!(out)?;
                }
            }
        }
        Ok(())
    }

    fn print_below(&self, name: &str, indent: usize, out: &mut dyn Write) -> io::Result<()> {
        if !name.is_empty() {
            write!(out, " {TITLE}{name}{TITLE:#}")?;
        }
        if is_flat(self.desc) {
            self.print_inline(out)?;
            return writeln!(out);
        }
        // A table that only wraps a union is printed on the line of the union.
        if let [FieldDesc { kind: FieldKind::Union(_), .. }] = self.desc.fields {
            write!(out, " ")?;
            return self.print_fields(0, indent, out);
        }
        writeln!(out)?;
        self.print(indent + 4, out)
    }

    /// All fields on the line that was begun, sub-tables in braces.
    fn print_inline(&self, out: &mut dyn Write) -> io::Result<()> {
        for field in self.desc.fields {
            write!(out, "  {DIM}{}{DIM:#}", field.name)?;
            match self.content(field) {
                Content::Table(table, desc) => {
                    write!(out, " {{")?;
                    self.below(table, desc).print_inline(out)?;
                    write!(out, " }}")?;
                }
                leaf => print_leaf(&leaf, out)?,
            }
        }
        Ok(())
    }
}

/// The numbers of a struct, in order.
fn structure(desc: &StructDesc, mut bytes: &[u8]) -> Value {
    let mut numbers = Vec::new();
    for (_, kind) in desc.fields {
        let Some((number_bytes, rest)) = bytes.split_at_checked(size(*kind)) else { break };
        numbers.push(number(*kind, &widen(number_bytes)));
        bytes = rest;
    }
    Value::Array(numbers)
}

/// Returns whether a table and everything below it fit on a line: no lists of tables, no unions.
fn is_flat(desc: &TableDesc) -> bool {
    desc.fields.iter().all(|field| match field.kind {
        FieldKind::Rows(_) | FieldKind::Union(_) => false,
        FieldKind::Table(below) => is_flat(below),
        _ => true,
    })
}

fn print_leaf(content: &Content<'_>, out: &mut dyn Write) -> io::Result<()> {
    match content {
        Content::Leaf(Value::Array(items)) => {
            let items: Vec<String> = items.iter().map(Value::to_string).collect();
            write!(out, " [{}]", items.join(", "))
        }
        Content::Leaf(Value::String(text)) => write!(out, " {}", spelling::text(text)),
        Content::Leaf(value) => write!(out, " {value}"),
        Content::Blob(len) => write!(out, " {}", units::bytes(*len as u64)),
        Content::Unreadable(error) => write!(out, " {BAD}unreadable{BAD:#}: {error}"),
        Content::Union(name, tag, None) => write!(out, " {name} (tag {tag}, no value)"),
        _ => write!(out, " {DIM}-{DIM:#}"),
    }
}

#[cfg(feature = "schemas")]
impl schemars::JsonSchema for Fields<'_, '_> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Fields".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "Every field of a table, by the names of its schema, as the file has them.",
            "type": "object",
        })
    }
}

impl Serialize for Fields<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.desc.fields.len()))?;
        for field in self.desc.fields {
            map.serialize_key(field.name)?;
            match self.content(field) {
                Content::Absent => map.serialize_value(&Value::Null)?,
                Content::Leaf(value) => map.serialize_value(&value)?,
                Content::Blob(len) => map.serialize_value(&serde_json::json!({ "bytes": len }))?,
                Content::Table(table, desc) => map.serialize_value(&self.below(table, desc))?,
                Content::Rows(rows, desc) => map.serialize_value(&Rows { rows, desc, budget: self.budget })?,
                Content::Union(name, _, Some((table, desc))) => {
                    map.serialize_value(&Variant { name, fields: self.below(table, desc) })?;
                }
                Content::Union(name, tag, None) => map.serialize_value(&serde_json::json!({ name: tag }))?,
                Content::Unreadable(error) => map.serialize_value(&unreadable(&error))?,
            }
        }
        map.end()
    }
}

struct Rows<'a, 'b> {
    rows: Tables<'a>,
    desc: &'static TableDesc,
    budget: &'b RefCell<Budget>,
}

impl Serialize for Rows<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut seq = serializer.serialize_seq(None)?;
        for row in self.rows.iter() {
            match row {
                Ok(table) => seq.serialize_element(&Fields::new(table, self.desc, self.budget))?,
                Err(error) => seq.serialize_element(&unreadable(&error))?,
            }
            if self.budget.borrow().is_spent() {
                break;
            }
        }
        seq.end()
    }
}

struct Variant<'a, 'b> {
    name: &'static str,
    fields: Fields<'a, 'b>,
}

impl Serialize for Variant<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry(self.name, &self.fields)?;
        map.end()
    }
}

fn unreadable(error: &ReadError) -> Value {
    serde_json::json!({ "unreadable": error.to_string() })
}

fn size(kind: ScalarKind) -> usize {
    match kind {
        ScalarKind::Bool | ScalarKind::I8 | ScalarKind::U8 => 1,
        ScalarKind::I16 | ScalarKind::U16 => 2,
        ScalarKind::I32 | ScalarKind::U32 | ScalarKind::F32 => 4,
        ScalarKind::I64 | ScalarKind::U64 | ScalarKind::F64 => 8,
    }
}

fn widen(bytes: &[u8]) -> [u8; 8] {
    let mut out = [0; 8];
    out.iter_mut().zip(bytes).for_each(|(out, byte)| *out = *byte);
    out
}

fn number(kind: ScalarKind, bytes: &[u8; 8]) -> Value {
    fn of<T: Scalar + Into<Value>>(bytes: &[u8]) -> Value {
        T::from_le(bytes).map_or(Value::Null, Into::into)
    }
    match kind {
        ScalarKind::Bool => of::<bool>(bytes),
        ScalarKind::I8 => of::<i8>(bytes),
        ScalarKind::U8 => of::<u8>(bytes),
        ScalarKind::I16 => of::<i16>(bytes),
        ScalarKind::U16 => of::<u16>(bytes),
        ScalarKind::I32 => of::<i32>(bytes),
        ScalarKind::U32 => of::<u32>(bytes),
        ScalarKind::I64 => of::<i64>(bytes),
        ScalarKind::U64 => of::<u64>(bytes),
        ScalarKind::F32 => float(f32::from_le(bytes).map_or(0.0, f64::from)),
        ScalarKind::F64 => float(f64::from_le_bytes(*bytes)),
    }
}

/// JSON has no non-finite numbers; they are text.
fn float(value: f64) -> Value {
    match Number::from_f64(value) {
        Some(number) => Value::Number(number),
        None if value.is_nan() => "NaN".into(),
        None if value > 0.0 => "Infinity".into(),
        None => "-Infinity".into(),
    }
}

/// The name of an enumeration's number, where the field is one.
fn named(table: &str, field: &str, value: &Value) -> Option<Value> {
    let number = value.as_i64()?;
    // Names that only one family uses; its numbers are wider.
    let wide = i16::try_from(number).ok()?;
    let name = match (table, field) {
        ("Meta", "desc") => darwinn::Description(wide).name(),
        ("Meta", "position") => darwinn::Position(wide).name(),
        ("InterruptHint", "type") => darwinn::InterruptType(wide).name(),
        ("DmaHint", "direction") => darwinn::Direction(wide).name(),
        ("Layer" | "OutputLayer", "data_type") => darwinn::DataType(wide).name(),
        ("Executable", "type") => darwinn::ExecutableType(wide).name(),
        _ => None,
    };
    if name.is_some() {
        return name.map(Value::from);
    }
    let number = i8::try_from(number).ok()?;
    let name = match (table, field) {
        (_, "scalar_type") => ScalarType(number).name(),
        (_, "shape_dynamism") => TensorShapeDynamism(number).name(),
        (_, "device_type") => DeviceType(number).name(),
        ("ExtraTensorInfo", "location") => TensorDataLocation(number).name(),
        ("BackendDelegateDataReference", "location") => DataLocation(number).name(),
        ("Value", "val") => edgepack_format::trace::ValueType(number).name(),
        _ => None,
    };
    name.map(Value::from)
}
