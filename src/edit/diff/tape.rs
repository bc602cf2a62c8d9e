//! Rows in a compact form that can be walked: what `diff` compares in place of trees of JSON, which take thirty times the
//! memory of the file.
//!
//! Invariant: two values are the same if and only if their bytes are, as long as both tapes share their [`Names`]. What is
//! absent takes no bytes in an object, names and short text take a number, everything else about what the file has.

use std::collections::HashMap;
use std::rc::Rc;

use serde::Serialize;
use serde::ser::{self, Error as _};

/// Text up to this length is stored once.
const SHORT: usize = 256;
/// Bytes of the length in front of a list or an object.
const LENGTH: usize = 4;

mod tag {
    pub(super) const NULL: u8 = 0;
    pub(super) const FALSE: u8 = 1;
    pub(super) const TRUE: u8 = 2;
    pub(super) const NUMBER: u8 = 3;
    /// Tag of the number -1 - n.
    pub(super) const NEGATIVE: u8 = 4;
    pub(super) const FLOAT: u8 = 5;
    pub(super) const SHORT: u8 = 6;
    pub(super) const LONG: u8 = 7;
    pub(super) const LIST: u8 = 8;
    pub(super) const OBJECT: u8 = 9;
}

/// Names and short text, each once.
#[derive(Default)]
pub(super) struct Names {
    list: Vec<Rc<str>>,
    numbers: HashMap<Rc<str>, u64>,
}

impl Names {
    fn number(&mut self, name: &str) -> u64 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let (name, number): (Rc<str>, u64) = (name.into(), self.list.len() as u64);
        self.list.push(name.clone());
        self.numbers.insert(name, number);
        number
    }

    /// Number of names.
    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    pub(super) fn get(&self, number: u64) -> &str {
        usize::try_from(number).ok().and_then(|number| self.list.get(number)).map_or("", |name| name)
    }

    /// The bytes of a value.
    pub(super) fn tape(&mut self, value: &(impl Serialize + ?Sized)) -> Result<Vec<u8>, serde_json::Error> {
        let mut writer = Writer { bytes: Vec::new(), names: self };
        value.serialize(&mut writer)?;
        Ok(writer.bytes)
    }
}

/// A value on a tape.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Node<'t> {
    Null,
    Bool(bool),
    Number(u64),
    Negative(u64),
    Float(f64),
    Short(u64),
    Long(&'t str),
    List(&'t [u8]),
    Object(&'t [u8]),
}

/// The value at the start of some bytes, and the bytes behind it.
pub(super) fn read(bytes: &[u8]) -> (Node<'_>, &[u8]) {
    let Some((tag, rest)) = bytes.split_first() else { return (Node::Null, bytes) };
    match *tag {
        tag::FALSE => (Node::Bool(false), rest),
        tag::TRUE => (Node::Bool(true), rest),
        tag::NUMBER | tag::NEGATIVE | tag::SHORT => {
            let (number, rest) = varint(rest);
            let node = match *tag {
                tag::NUMBER => Node::Number(number),
                tag::NEGATIVE => Node::Negative(number),
                _ => Node::Short(number),
            };
            (node, rest)
        }
        tag::FLOAT => {
            let (bytes, rest) = rest.split_at(rest.len().min(8));
            (Node::Float(f64::from_le_bytes(bytes.try_into().unwrap_or_default())), rest)
        }
        tag::LONG => {
            let (text, rest) = cut(rest);
            (Node::Long(std::str::from_utf8(text).unwrap_or_default()), rest)
        }
        tag::LIST | tag::OBJECT => {
            let (items, rest) = cut(rest);
            (if *tag == tag::LIST { Node::List(items) } else { Node::Object(items) }, rest)
        }
        _ => (Node::Null, rest),
    }
}

/// The items of a list, each as its own bytes.
pub(super) fn items(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let rest = (!bytes.is_empty()).then(|| read(bytes).1)?;
        let (item, _) = bytes.split_at(bytes.len().saturating_sub(rest.len()));
        bytes = rest;
        Some(item)
    })
}

/// The fields of an object: numbers of names, and the bytes of values.
pub(super) fn fields(mut bytes: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    std::iter::from_fn(move || {
        let (name, value) = (!bytes.is_empty()).then(|| varint(bytes))?;
        let rest = read(value).1;
        let (value, _) = value.split_at(value.len().saturating_sub(rest.len()));
        bytes = rest;
        Some((name, value))
    })
}

fn cut(bytes: &[u8]) -> (&[u8], &[u8]) {
    let (len, rest) = bytes.split_at(bytes.len().min(LENGTH));
    let len = u32::from_le_bytes(len.try_into().unwrap_or_default()) as usize;
    rest.split_at(rest.len().min(len))
}

fn varint(bytes: &[u8]) -> (u64, &[u8]) {
    let mut number = 0u64;
    for (index, byte) in bytes.iter().enumerate().take(10) {
        number |= u64::from(byte & 0x7f) << (7 * index as u32).min(63);
        if byte & 0x80 == 0 {
            return (number, bytes.get(index + 1..).unwrap_or_default());
        }
    }
    (number, &[])
}

/// Writes values of any type.
pub(super) struct Writer<'n> {
    bytes: Vec<u8>,
    names: &'n mut Names,
}

impl<'n> Writer<'n> {
    fn tagged(&mut self, tag: u8, number: u64) {
        self.bytes.push(tag);
        self.varint(number);
    }

    fn varint(&mut self, mut number: u64) {
        while number > 0x7f {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    fn name(&mut self, name: &str) {
        let number = self.names.number(name);
        self.varint(number);
    }

    fn begin<'w>(&'w mut self, tag: u8) -> Open<'w, 'n> {
        self.bytes.push(tag);
        self.bytes.extend_from_slice(&[0; LENGTH]);
        let start = self.bytes.len();
        Open { writer: self, start, outer: None }
    }

    fn begin_variant<'w>(&'w mut self, variant: &str, tag: u8) -> Open<'w, 'n> {
        let outer = self.begin(tag::OBJECT).start;
        self.name(variant);
        Open { outer: Some(outer), ..self.begin(tag) }
    }

    /// States the length of what began there.
    fn close(&mut self, start: usize) -> Result<(), serde_json::Error> {
        let len =
            u32::try_from(self.bytes.len() - start).map_err(|_| serde_json::Error::custom("over 4 GiB of rows"))?;
        if let Some(place) = self.bytes.get_mut(start - LENGTH..start) {
            place.copy_from_slice(&len.to_le_bytes());
        }
        Ok(())
    }
}

/// A list or an object that has begun.
pub(super) struct Open<'w, 'n> {
    writer: &'w mut Writer<'n>,
    start: usize,
    /// The object that names the variant this is.
    outer: Option<usize>,
}

impl Open<'_, '_> {
    fn item(&mut self, value: &(impl Serialize + ?Sized)) -> Result<(), serde_json::Error> {
        value.serialize(&mut *self.writer)
    }

    fn field(&mut self, name: &str, value: &(impl Serialize + ?Sized)) -> Result<(), serde_json::Error> {
        let before = self.writer.bytes.len();
        self.writer.name(name);
        let value_start = self.writer.bytes.len();
        value.serialize(&mut *self.writer)?;
        if self.writer.bytes.get(value_start..) == Some(&[tag::NULL]) {
            self.writer.bytes.truncate(before);
        }
        Ok(())
    }

    fn close(self) -> Result<(), serde_json::Error> {
        self.writer.close(self.start)?;
        self.outer.map_or(Ok(()), |outer| self.writer.close(outer))
    }
}

macro_rules! numbers {
    ($($name:ident: $type:ty),*) => {
        $(fn $name(self, value: $type) -> Result<(), Self::Error> {
            match u64::try_from(value) {
                Ok(number) => self.tagged(tag::NUMBER, number),
                // Of a negative number only bits that are not set are left.
                Err(_) => self.tagged(tag::NEGATIVE, !(value as i64) as u64),
            }
            Ok(())
        })*
    };
}

impl<'w, 'n> ser::Serializer for &'w mut Writer<'n> {
    type Ok = ();
    type Error = serde_json::Error;
    type SerializeSeq = Open<'w, 'n>;
    type SerializeTuple = Open<'w, 'n>;
    type SerializeTupleStruct = Open<'w, 'n>;
    type SerializeTupleVariant = Open<'w, 'n>;
    type SerializeMap = Named<'w, 'n>;
    type SerializeStruct = Open<'w, 'n>;
    type SerializeStructVariant = Open<'w, 'n>;

    numbers!(serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64);
    numbers!(serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64);

    fn serialize_bool(self, value: bool) -> Result<(), Self::Error> {
        self.bytes.push(if value { tag::TRUE } else { tag::FALSE });
        Ok(())
    }

    fn serialize_f32(self, value: f32) -> Result<(), Self::Error> {
        self.serialize_f64(value.into())
    }

    fn serialize_f64(self, value: f64) -> Result<(), Self::Error> {
        self.bytes.push(tag::FLOAT);
        self.bytes.extend_from_slice(&value.to_le_bytes());
        Ok(())
    }

    fn serialize_char(self, value: char) -> Result<(), Self::Error> {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, text: &str) -> Result<(), Self::Error> {
        if text.len() <= SHORT {
            let number = self.names.number(text);
            self.tagged(tag::SHORT, number);
            return Ok(());
        }
        let start = self.begin(tag::LONG).start;
        self.bytes.extend_from_slice(text.as_bytes());
        self.close(start)
    }

    fn serialize_bytes(self, bytes: &[u8]) -> Result<(), Self::Error> {
        bytes.serialize(self)
    }

    fn serialize_none(self) -> Result<(), Self::Error> {
        self.bytes.push(tag::NULL);
        Ok(())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Self::Error> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Self::Error> {
        self.serialize_none()
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Self::Error> {
        self.serialize_none()
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<(), Self::Error> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Result<(), Self::Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Self::Error> {
        let mut object = self.begin(tag::OBJECT);
        object.field(variant, value)?;
        object.close()
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Open<'w, 'n>, Self::Error> {
        Ok(self.begin(tag::LIST))
    }

    fn serialize_tuple(self, _: usize) -> Result<Open<'w, 'n>, Self::Error> {
        Ok(self.begin(tag::LIST))
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Open<'w, 'n>, Self::Error> {
        Ok(self.begin(tag::LIST))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Open<'w, 'n>, Self::Error> {
        Ok(self.begin_variant(variant, tag::LIST))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Named<'w, 'n>, Self::Error> {
        Ok(Named { open: self.begin(tag::OBJECT), name: String::new() })
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Open<'w, 'n>, Self::Error> {
        Ok(self.begin(tag::OBJECT))
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Open<'w, 'n>, Self::Error> {
        Ok(self.begin_variant(variant, tag::OBJECT))
    }
}

macro_rules! lists {
    ($($trait:ident::$method:ident),*) => {
        $(impl ser::$trait for Open<'_, '_> {
            type Ok = ();
            type Error = serde_json::Error;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Self::Error> {
                self.item(value)
            }

            fn end(self) -> Result<(), Self::Error> {
                self.close()
            }
        })*
    };
}

macro_rules! objects {
    ($($trait:ident),*) => {
        $(impl ser::$trait for Open<'_, '_> {
            type Ok = ();
            type Error = serde_json::Error;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                name: &'static str,
                value: &T,
            ) -> Result<(), Self::Error> {
                self.field(name, value)
            }

            fn end(self) -> Result<(), Self::Error> {
                self.close()
            }
        })*
    };
}

lists!(
    SerializeSeq::serialize_element,
    SerializeTuple::serialize_element,
    SerializeTupleStruct::serialize_field,
    SerializeTupleVariant::serialize_field
);
objects!(SerializeStruct, SerializeStructVariant);

/// An object whose names are values, too.
pub(super) struct Named<'w, 'n> {
    open: Open<'w, 'n>,
    name: String,
}

impl ser::SerializeMap for Named<'_, '_> {
    type Ok = ();
    type Error = serde_json::Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, name: &T) -> Result<(), Self::Error> {
        self.name = match serde_json::to_value(name)? {
            serde_json::Value::String(name) => name,
            other => other.to_string(),
        };
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Self::Error> {
        let name = std::mem::take(&mut self.name);
        self.open.field(&name, value)
    }

    fn end(self) -> Result<(), Self::Error> {
        self.open.close()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize)]
    enum Kind {
        Plain,
        One(i32),
        Two(u8, u8),
        Named { a: f32 },
    }

    #[derive(Serialize)]
    struct Row<'a> {
        numbers: &'a [i64],
        kinds: Vec<Kind>,
        text: &'a str,
        absent: Option<u8>,
    }

    /// As JSON, to be compared with what serde makes of the same value.
    fn json(bytes: &[u8], names: &Names) -> serde_json::Value {
        match read(bytes).0 {
            Node::Null => serde_json::Value::Null,
            Node::Bool(value) => value.into(),
            Node::Number(value) => value.into(),
            Node::Negative(value) => (!(value as i64)).into(),
            Node::Float(value) => value.into(),
            Node::Short(number) => names.get(number).into(),
            Node::Long(text) => text.into(),
            Node::List(list) => items(list).map(|item| json(item, names)).collect(),
            Node::Object(object) => fields(object)
                .map(|(name, value)| (names.get(name).to_owned(), json(value, names)))
                .collect::<serde_json::Map<_, _>>()
                .into(),
        }
    }

    #[test]
    fn a_tape_says_what_json_says_in_fewer_bytes() {
        let long = "é".repeat(SHORT);
        let kinds = || vec![Kind::Plain, Kind::One(-7), Kind::Two(1, 255), Kind::Named { a: 0.5 }];
        let numbers = [0, 1, -1, 127, 128, i64::MIN, i64::MAX];
        let row = |text| Row { numbers: &numbers, kinds: kinds(), text, absent: None };
        let rows = [row("short"), row(&long), row("short")];
        let mut names = Names::default();
        let tape = names.tape(&rows).unwrap();
        let mut want = serde_json::to_value(&rows).unwrap();
        for row in want.as_array_mut().unwrap() {
            row.as_object_mut().unwrap().remove("absent");
        }
        assert_eq!(json(&tape, &names), want);
        assert_eq!(names.tape(&rows).unwrap(), tape);
        let Node::List(list) = read(&tape).0 else { panic!("no list") };
        let items: Vec<_> = items(list).collect();
        assert!(items[0] == items[2] && items[0] != items[1]);
        assert!(items[0].len() < 100, "{}", items[0].len());
    }
}
