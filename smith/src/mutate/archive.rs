//! Mutations of export-IR archives that know the document inside: numbers, texts, callees and arguments are changed,
//! and the archive around them stays sound.
//!
//! A flipped byte of an archive ends in the reader of JSON. Here the document is read, a few of its [places](Place) are
//! each replaced by something that the schema allows there, and the archive is written again, so that the code behind
//! the reader is reached.
//!
//! This crate does not read archives: an implementation of [`Container`] does, and `edgepack-exir` has what it takes.

use serde_json::Value;

use super::bytes;
use crate::dictionary;
use crate::rng::Rng;

/// Reads and writes archives of records.
pub trait Container {
    /// The records of an archive, in order, with their full names; `None` if the bytes are not an archive.
    fn read<'a>(&self, archive: &'a [u8]) -> Option<Vec<(String, &'a [u8])>>;

    /// An archive of these records.
    fn write(&self, records: &[(&str, &[u8])]) -> Option<Vec<u8>>;
}

/// As many places of a document as are told apart.
const MAX_PLACES: usize = 1 << 16;

/// Longest list that repeating one of its items makes.
const MAX_LIST: usize = 300;

/// Numbers that programs get wrong in sizes and positions.
const NUMBERS: [i64; 22] = [
    -1,
    -2,
    0,
    1,
    2,
    3,
    7,
    64,
    65,
    1 << 16,
    1 << 31,
    -(1 << 31),
    (1 << 31) - 1,
    1 << 32,
    1 << 40,
    1 << 62,
    -(1 << 62),
    i64::MAX,
    i64::MAX - 1,
    i64::MIN,
    i64::MIN + 1,
    -1000,
];

/// Formulas for sizes: of other signs, of no value, of all functions and arguments.
const FORMULAS: [&str; 14] = [
    "Integer(-3)",
    "Integer(9223372036854775807)",
    "Mul(Integer(-1), Symbol('s0', positive=True, integer=True))",
    "Mul(Integer(9223372036854775807), Symbol('s0', integer=True))",
    "Add(Symbol('s0', integer=True), Integer(-9223372036854775808))",
    "FloorDiv(Symbol('s0', integer=True), Integer(0))",
    "FloorDiv(Integer(-9223372036854775808), Integer(-1))",
    "Mod(Symbol('s0', integer=True), Integer(0))",
    "Mod(Integer(-9223372036854775808), Integer(-1))",
    "Pow(Symbol('s0', integer=True), Integer(64))",
    "Max(Integer(1), Symbol('u0'))",
    "Min()",
    "Add()",
    "Symbol('nobody')",
];

/// Tags of arguments, by the kind of their payload.
const TAGS: [&[&str]; 5] = [
    &["as_int", "as_scalar_type", "as_memory_format", "as_layout"],
    &["as_ints", "as_sym_ints", "as_floats"],
    &["as_string", "as_operator"],
    &["as_tensor", "as_custom_obj"],
    &["as_none", "as_bool"],
];

/// Something in a document that can be changed by itself.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Place {
    /// A number: a size, stride or offset of a tensor, or a bound of a symbol.
    Size,
    /// Any other number.
    Number,
    /// Formula over symbols, as text.
    Formula,
    /// The callee of a node.
    Callee,
    /// Any other text.
    Text,
    /// A union: an object with one key that says what its value is.
    Union,
    /// The arguments of a node, or its results.
    Arguments,
    /// The nodes of a graph.
    Nodes,
    /// Any other list.
    List,
    /// A map from names.
    Map,
    /// Yes or no.
    Flag,
}

/// Returns all places of a document with the path of each, in order.
pub fn places(document: &Value) -> Vec<(Place, String)> {
    let mut found = Vec::new();
    walk(document, &mut String::new(), "", false, &mut found);
    found
}

/// `key` is the nearest name around a value, `sized` true inside of the description of a size.
fn walk(value: &Value, way: &mut String, key: &str, sized: bool, found: &mut Vec<(Place, String)>) {
    if found.len() >= MAX_PLACES {
        return;
    }
    let place = match value {
        Value::Null => return,
        Value::Number(_) if sized => Place::Size,
        Value::Number(_) => Place::Number,
        Value::Bool(_) => Place::Flag,
        Value::String(_) if key == "expr_str" => Place::Formula,
        Value::String(_) if key == "target" => Place::Callee,
        Value::String(_) => Place::Text,
        Value::Array(_) if key == "nodes" => Place::Nodes,
        Value::Array(_) if key == "inputs" || key == "outputs" => Place::Arguments,
        Value::Array(_) => Place::List,
        Value::Object(fields) if fields.len() == 1 && fields.keys().all(|key| key.starts_with("as_")) => Place::Union,
        Value::Object(_) => Place::Map,
    };
    found.push((place, way.clone()));
    let len = way.len();
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                let sized = sized || matches!(&**name, "sizes" | "strides" | "storage_offset" | "range_constraints");
                *way += "/";
                *way += &name.replace('~', "~0").replace('/', "~1");
                walk(field, way, name, sized, found);
                way.truncate(len);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                *way += &format!("/{index}");
                // Items go by the name of their list, but are no lists of nodes themselves.
                walk(item, way, if item.is_array() { "" } else { key }, sized, found);
                way.truncate(len);
            }
        }
        _ => {}
    }
}

/// Changes one place of a document. `false` if there was none of the kind that was looked for.
pub fn change(document: &mut Value, rng: &mut Rng) -> bool {
    let wanted = match rng.below(20) {
        0..4 => Place::Size,
        4..8 => Place::Number,
        8 => Place::Formula,
        9..11 => Place::Callee,
        11 => Place::Text,
        12..14 => Place::Union,
        14..16 => Place::Arguments,
        16 => Place::Nodes,
        17 => Place::List,
        18 => Place::Map,
        _ => Place::Flag,
    };
    let ways: Vec<String> =
        places(document).into_iter().filter(|(place, _)| *place == wanted).map(|(_, way)| way).collect();
    let (Some(way), Some(other)) = (rng.pick(&ways), rng.pick(&ways)) else { return false };
    let other = document.pointer(other).cloned().unwrap_or_default();
    let Some(value) = document.pointer_mut(way) else { return false };
    match wanted {
        Place::Size | Place::Number => *value = number(value, other, rng),
        Place::Formula => {
            *value = match rng.one_in(3) {
                true => other,
                false => (*rng.pick(&FORMULAS).unwrap_or(&"")).into(),
            };
        }
        Place::Callee | Place::Text => text(value, other, rng),
        Place::Union => union(value, other, rng),
        Place::Arguments | Place::Nodes | Place::List => list(value, other, rng),
        Place::Map => map(value, other, rng),
        Place::Flag => *value = (value != &Value::Bool(true)).into(),
    }
    true
}

fn number(value: &Value, other: Value, rng: &mut Rng) -> Value {
    match rng.below(8) {
        0 => other,
        1 => value.as_i64().unwrap_or(0).wrapping_add(rng.below(5) as i64 - 2).into(),
        2 => (rng.edge() as i64).into(),
        3 if rng.one_in(4) => [1e300, -0.5, 0.0, 1e-300][rng.below(4)].into(),
        4 if rng.one_in(4) => u64::MAX.into(),
        _ => (*rng.pick(&NUMBERS).unwrap_or(&0)).into(),
    }
}

fn text(value: &mut Value, other: Value, rng: &mut Rng) {
    match value {
        // A document within the document, as those of lowered modules are.
        Value::String(text) if text.starts_with('{') && !rng.one_in(4) => {
            let Ok(mut document) = serde_json::from_str(text) else { return };
            change(&mut document, rng);
            *text = document.to_string();
        }
        Value::String(text) if rng.one_in(8) => {
            let end = text.char_indices().nth(rng.below(text.len() + 1)).map_or(text.len(), |(at, _)| at);
            text.truncate(end);
        }
        _ => *value = other,
    }
}

/// Another union, another tag for the same payload, or a formula where a number was.
fn union(value: &mut Value, other: Value, rng: &mut Rng) {
    let Some((tag, payload)) = value.as_object().and_then(|fields| fields.iter().next()) else { return };
    let alike = TAGS.iter().find(|tags| tags.contains(&tag.as_str()));
    *value = match alike {
        Some(tags) if rng.one_in(2) => {
            let tag = *rng.pick(tags).unwrap_or(&"as_none");
            [(tag.to_owned(), payload.clone())].into_iter().collect()
        }
        _ if tag == "as_int" && rng.one_in(2) => {
            let formula = *rng.pick(&FORMULAS).unwrap_or(&"");
            serde_json::json!({ "as_expr": { "expr_str": formula, "hint": { "as_int": payload } } })
        }
        _ => other,
    };
}

fn list(value: &mut Value, other: Value, rng: &mut Rng) {
    let Value::Array(items) = value else { return };
    let (len, at) = (items.len(), rng.below(items.len()));
    match rng.below(8) {
        0 | 1 if len > 0 => drop(items.remove(at)),
        2 if len > 1 => items.swap(at, rng.below(len)),
        3 if len > 0 => items.insert(rng.below(len), items[at].clone()),
        4 if len > 0 && rng.one_in(4) => {
            let one = items[at].clone();
            let room = MAX_LIST.saturating_sub(len);
            items.extend(std::iter::repeat_n(one, rng.below(room)));
        }
        5 => items.clear(),
        6 => *value = other,
        _ => {
            // Any order of all.
            for index in (1..len).rev() {
                items.swap(index, rng.below(index + 1));
            }
        }
    }
}

/// One entry for another, or taken away, or moved to another name.
fn map(value: &mut Value, other: Value, rng: &mut Rng) {
    let Value::Object(fields) = value else { return };
    let names: Vec<String> = fields.keys().cloned().collect();
    let (Some(name), Some(twin)) = (rng.pick(&names), rng.pick(&names)) else { return };
    match rng.below(4) {
        0 => drop(fields.remove(name)),
        1 | 2 => {
            let copy = fields.get(twin).cloned().unwrap_or_default();
            fields.insert(name.clone(), copy);
        }
        _ => *value = other,
    }
}

/// An archive with a few places of a document changed, or with a few bytes of a pickle; `None` if the bytes are not an
/// archive or have no document.
pub fn edit(bytes: &[u8], container: &dyn Container, rng: &mut Rng) -> Option<Vec<u8>> {
    let records = container.read(bytes)?;
    let is_pickled = |content: &[u8]| content.starts_with(b"PK");
    let (pickled, plain): (Vec<_>, Vec<_>) = records.iter().partition(|(_, content)| is_pickled(content));
    let documents: Vec<_> = plain.into_iter().filter(|(_, content)| content.starts_with(b"{")).collect();
    let programs: Vec<_> = documents.iter().copied().filter(|(_, content)| find(content, b"\"nodes\"")).collect();
    let (chosen, changed) = match rng.below(6) {
        0 if !pickled.is_empty() => {
            let (name, content) = rng.pick(&pickled)?;
            (name, repickled(content, container, rng)?)
        }
        // The descriptions of stored tensors are documents, too.
        which => {
            let (name, content) = if which == 1 { rng.pick(&documents)? } else { rng.pick(&programs)? };
            (name, redocumented(content, rng)?)
        }
    };
    let edited: Vec<(&str, &[u8])> = records
        .iter()
        .map(|(name, content)| (name.as_str(), if name == chosen { changed.as_slice() } else { content }))
        .collect();
    container.write(&edited)
}

fn find(content: &[u8], word: &[u8]) -> bool {
    content.windows(word.len()).any(|window| window == word)
}

fn redocumented(content: &[u8], rng: &mut Rng) -> Option<Vec<u8>> {
    let mut document: Value = serde_json::from_slice(content).ok()?;
    for _ in 0..1 << rng.below(4) {
        change(&mut document, rng);
    }
    serde_json::to_vec(&document).ok()
}

/// A file of `torch.save` whose pickle has other bytes in a few places.
fn repickled(content: &[u8], container: &dyn Container, rng: &mut Rng) -> Option<Vec<u8>> {
    let mut edited: Vec<(String, Vec<u8>)> = Vec::new();
    for (name, content) in container.read(content)? {
        let mut content = content.to_vec();
        if name.ends_with("data.pkl") {
            let words = dictionary::read(dictionary::PICKLE);
            for _ in 0..1 << rng.below(3) {
                bytes::mutate(&mut content, &[], &words, rng);
            }
        }
        edited.push((name, content));
    }
    let edited: Vec<(&str, &[u8])> = edited.iter().map(|(name, content)| (name.as_str(), content.as_slice())).collect();
    container.write(&edited)
}
