//! Two JSON texts, place by place, on tapes: no tree of either is made.

use std::cell::Cell;
use std::cmp::Ordering;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde::ser::{Error as _, Serialize, SerializeMap, SerializeSeq, Serializer};

use super::rows::{by_name, json};
use super::tape::{Names, Node, items, read};
use super::{Difference, DifferenceKind};
use crate::edit::error::Error;

/// Characters of a value that are shown.
const MOST: usize = 200;

/// Notes where two texts differ; a text that is not there is like `null`.
pub(in crate::edit) fn compare(
    path: &str,
    left: Option<&str>,
    right: Option<&str>,
    found: &mut Vec<Difference>,
) -> Result<(), Error> {
    if left == right {
        return Ok(());
    }
    let mut names = Names::default();
    let (left, right) = (names.tape(&left.map(Text))?, names.tape(&right.map(Text))?);
    values(path, &left, &right, &names, found);
    Ok(())
}

fn values(path: &str, a: &[u8], b: &[u8], names: &Names, found: &mut Vec<Difference>) {
    if a == b {
        return;
    }
    match (read(a).0, read(b).0) {
        (Node::Object(a), Node::Object(b)) => {
            let (a, b) = (by_name(a, names), by_name(b, names));
            let (mut ours, mut theirs) = (a.iter().peekable(), b.iter().peekable());
            // Both are in the order of their names; no bytes are nothing.
            loop {
                let order = match (ours.peek(), theirs.peek()) {
                    (Some((a, _)), Some((b, _))) => a.cmp(b),
                    (Some(_), None) => Ordering::Less,
                    (None, Some(_)) => Ordering::Greater,
                    (None, None) => break,
                };
                let mine = if order.is_le() { ours.next() } else { None };
                let other = if order.is_ge() { theirs.next() } else { None };
                let name = mine.or(other).map_or("", |(name, _)| *name);
                let (mine, other) = (mine.map_or(&[][..], |field| field.1), other.map_or(&[][..], |field| field.1));
                values(&format!("{path}.{name}"), mine, other, names, found);
            }
        }
        (Node::List(a), Node::List(b)) if items(a).count() == items(b).count() => {
            for (index, (a, b)) in items(a).zip(items(b)).enumerate() {
                if a != b {
                    values(&format!("{path}[{index}]"), a, b, names, found);
                }
            }
        }
        (a, b) => {
            let (left, right) = (shown(a, names), shown(b, names));
            found.push(Difference { path: path.to_owned(), left, right, kind: DifferenceKind::Structure });
        }
    }
}

fn shown(node: Node<'_>, names: &Names) -> String {
    match node {
        Node::Null => "absent".to_owned(),
        Node::List(list) => format!("{} elements", items(list).count()),
        node => {
            let mut text = String::new();
            json(node, names, &mut text);
            text.chars().take(MOST).collect()
        }
    }
}

/// A text as the value it is of.
struct Text<'t>(&'t str);

impl Serialize for Text<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut text = serde_json::Deserializer::from_str(self.0);
        let written = text.deserialize_any(Passed(serializer)).map_err(S::Error::custom)?;
        text.end().map_err(S::Error::custom)?;
        Ok(written)
    }
}

/// Visitor that serializes each value as soon as it is read.
struct Passed<S>(S);

impl<'de, S: Serializer> Visitor<'de> for Passed<S> {
    type Value = S::Ok;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }
    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<S::Ok, E> {
        self.0.serialize_bool(value).map_err(E::custom)
    }
    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<S::Ok, E> {
        self.0.serialize_i64(value).map_err(E::custom)
    }
    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<S::Ok, E> {
        self.0.serialize_u64(value).map_err(E::custom)
    }
    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<S::Ok, E> {
        self.0.serialize_f64(value).map_err(E::custom)
    }
    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<S::Ok, E> {
        self.0.serialize_str(value).map_err(E::custom)
    }
    fn visit_unit<E: serde::de::Error>(self) -> Result<S::Ok, E> {
        self.0.serialize_unit().map_err(E::custom)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<S::Ok, A::Error> {
        let mut list = self.0.serialize_seq(None).map_err(A::Error::custom)?;
        while items.next_element_seed(Item(&mut list))?.is_some() {}
        list.end().map_err(A::Error::custom)
    }
    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<S::Ok, A::Error> {
        let mut object = self.0.serialize_map(None).map_err(A::Error::custom)?;
        while let Some(key) = members.next_key::<String>()? {
            object.serialize_key(&key).map_err(A::Error::custom)?;
            members.next_value_seed(Member(&mut object))?;
        }
        object.end().map_err(A::Error::custom)
    }
}

/// A value that is read when it is written, once.
struct Value<D>(Cell<Option<D>>);

impl<'de, D: Deserializer<'de>> Serialize for Value<D> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let value = self.0.take().ok_or_else(|| S::Error::custom("a value that was read before"))?;
        value.deserialize_any(Passed(serializer)).map_err(S::Error::custom)
    }
}

struct Item<'l, L>(&'l mut L);

impl<'de, L: SerializeSeq> DeserializeSeed<'de> for Item<'_, L> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<(), D::Error> {
        self.0.serialize_element(&Value(Cell::new(Some(value)))).map_err(D::Error::custom)
    }
}

struct Member<'o, O>(&'o mut O);

impl<'de, O: SerializeMap> DeserializeSeed<'de> for Member<'_, O> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<(), D::Error> {
        self.0.serialize_value(&Value(Cell::new(Some(value)))).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(a: &str, b: &str) -> Vec<[String; 3]> {
        let mut found = Vec::new();
        compare("x", Some(a), Some(b), &mut found).unwrap();
        found.into_iter().map(|one| [one.path, one.left, one.right]).collect()
    }

    #[test]
    fn differences_are_named_by_place() {
        let a = r#"{"b": [1, 2.5, "t", -3], "a": null, "c": {"d": true}}"#;
        assert_eq!(found(a, r#"{"c": {"d": true}, "b": [1, 2.5, "t", -3]}"#), [[""; 3]; 0]);
        assert_eq!(
            found(a, r#"{"b": [1, 2.5, "u", -3], "c": {"e": [1]}, "z": {}}"#),
            [
                ["x.b[2]", "\"t\"", "\"u\""],
                ["x.c.d", "true", "absent"],
                ["x.c.e", "absent", "1 elements"],
                ["x.z", "absent", "{}"]
            ]
        );
        assert_eq!(found("[1, 2]", "[1]"), [["x", "2 elements", "1 elements"]]);
        assert!(compare("x", Some("[1"), None, &mut Vec::new()).is_err());
    }
}
