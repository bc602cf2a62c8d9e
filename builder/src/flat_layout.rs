//! Layout of a flatbuffer beyond its rows: the place of every object, and the vtable of every table.
//!
//! [`FlatLayout::read`] takes the layout of a buffer whose rows are known; [`FlatLayout::write`] puts rows at these places.
//! No schema is needed: the calls that a row makes on a [`Sink`] list its objects, children first, and the offset that a
//! parent stores says where a child is. Objects at one place are shared. What belongs to no object (header, identifier,
//! padding, defaults that are stored all the same, slots of a newer schema) is `rest`.
//!
//! A layout may come from anywhere. Nothing is written outside its length, and the length is at most [`PADDING`] more than
//! a small multiple of what is written; that the result has the rows it was made of is for the caller to check.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use edgepack_format::row::{FieldValue, Sink, Table};
use edgepack_format::wire::ReadError;

use crate::Error;
use crate::buffer::MAX_LEN;

/// Bytes that belong to nothing, on top of as many as there are of objects.
pub const PADDING: u64 = 16 << 20;

/// Zeros that end a run of other bytes: as long as what it takes to say where the next one is.
const RUN_END: usize = 16;

/// Kind of an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ObjectKind {
    /// Text.
    Text,
    /// Text of any bytes.
    Bytes,
    /// A vector of numbers.
    Numbers,
    /// A vector of offsets.
    Offsets,
    /// A table.
    Table,
}

/// An object, and its place in bytes from the start of the buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Object {
    /// Kind of the object.
    pub kind: ObjectKind,
    /// Its place: that of the length of texts and vectors.
    pub at: u32,
    /// Place of its vtable; 0 unless it is a table.
    pub vtable: u32,
}

/// Layout of one flatbuffer.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FlatLayout {
    /// Bytes of the buffer.
    pub len: u32,
    /// The objects in the order in which rows write them: children first, the root last.
    pub objects: Vec<Object>,
    /// The vtables by their places: length in bytes, length of the table, offsets of the slots.
    pub vtables: BTreeMap<u32, Vec<u16>>,
    /// Bytes other than zero that belong to no object, by their places.
    pub rest: BTreeMap<u32, Vec<u8>>,
}

/// Reason rows and a layout do not go together.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FlatLayoutError {
    /// The rows cannot be listed.
    #[error(transparent)]
    Rows(#[from] Error),
    /// Rows of another shape: objects were added, removed or are of other kinds.
    #[error("the rows have {have} objects, the layout {want}, and object {index} differs")]
    Objects {
        /// Objects of the rows.
        have: usize,
        /// Objects of the layout.
        want: usize,
        /// The first that differs.
        index: usize,
    },
    /// An object does not fit its place.
    #[error("object {index} at {at:#x}: {reason}")]
    Object {
        /// Its number.
        index: usize,
        /// Its place.
        at: u32,
        /// Description of the error.
        reason: &'static str,
    },
    /// More bytes that belong to nothing than are allowed.
    #[error("{len} bytes for objects of {objects}")]
    Length {
        /// Bytes of the buffer.
        len: u64,
        /// Bytes of all objects.
        objects: u64,
    },
    /// Bytes of an object are not those that its rows give.
    #[error("the bytes at {at:#x} are not those that the rows give")]
    Bytes {
        /// The first such byte.
        at: usize,
    },
}

impl From<ReadError> for FlatLayoutError {
    fn from(error: ReadError) -> Self {
        Error::from(error).into()
    }
}

impl FlatLayout {
    /// Takes the layout of the buffer that this row is the root of. With the same rows, [`FlatLayout::write`] gives the
    /// same bytes: that is checked here.
    pub fn read<'a, T: Table<'a>>(row: &T, bytes: &[u8]) -> Result<Self, FlatLayoutError> {
        let mut outline = Outline::default();
        let root = row.encode(&mut outline)?;
        let len = u32::try_from(bytes.len()).ok().filter(|len| *len as usize <= MAX_LEN);
        let len = len.ok_or(Error::TooLarge { bytes: bytes.len() as u64, most: MAX_LEN as u64 })?;
        let mut layout = FlatLayout { len, ..FlatLayout::default() };
        let mut places = vec![0u32; outline.nodes.len()];
        if let (Some(place), Some(at)) = (places.get_mut(root as usize), number(bytes, 0)) {
            *place = at;
        }
        // Vtables that do not cover each other fit the buffer together.
        let mut room = bytes.len();
        // Parents come after their children, so backwards every object has its place before it is looked at.
        for (index, node) in outline.nodes.iter().enumerate().rev() {
            let at = places.get(index).copied().unwrap_or_default();
            let wrong = |reason| FlatLayoutError::Object { index, at, reason };
            let mut vtable = 0;
            match node {
                Node::Leaf(_) => {}
                Node::Offsets(children) => {
                    if number(bytes, at) != Some(children.len() as u32) {
                        return Err(wrong("another number of elements"));
                    }
                    for (slot, child) in (at.saturating_add(4)..).step_by(4).zip(children) {
                        let target = target(bytes, slot).ok_or_else(|| wrong("an element that points nowhere"))?;
                        set(&mut places, *child, target);
                    }
                }
                Node::Table(children) => {
                    let place = vtable_place(bytes, at).ok_or_else(|| wrong("a table without vtable"))?;
                    let words = match layout.vtables.entry(place) {
                        Entry::Occupied(known) => known.into_mut(),
                        Entry::Vacant(new) => {
                            let words = vtable_words(bytes, place).ok_or_else(|| wrong("a table without vtable"))?;
                            let left = room.checked_sub(words.len().saturating_mul(2));
                            room = left.ok_or_else(|| wrong("vtables that cover each other"))?;
                            new.insert(words)
                        }
                    };
                    for (slot, child) in children {
                        let field = offset_of(words, *slot).and_then(|offset| at.checked_add(offset.into()));
                        let target = field.and_then(|field| target(bytes, field));
                        set(&mut places, *child, target.ok_or_else(|| wrong("a field that is not there"))?);
                    }
                    vtable = place;
                }
            }
            layout.objects.push(Object { kind: node.kind(), at, vtable });
        }
        layout.objects.reverse();
        let objects = layout.write(row)?;
        layout.rest = runs(bytes, &objects);
        drop(objects);
        let whole = layout.write(row)?;
        match whole.iter().zip(bytes).position(|(have, want)| have != want) {
            Some(at) => Err(FlatLayoutError::Bytes { at }),
            None => Ok(layout),
        }
    }

    /// Puts the objects of a row at their places. Whoever wants to be sure that they do not cover each other reads the
    /// result and compares.
    pub fn write<'a, T: Table<'a>>(&self, row: &T) -> Result<Vec<u8>, FlatLayoutError> {
        let mut outline = Outline::default();
        let root = row.encode(&mut outline)?;
        let (have, want) = (outline.nodes.len(), self.objects.len());
        let kinds = outline.nodes.iter().zip(&self.objects);
        let differs = kinds.clone().position(|(node, object)| node.kind() != object.kind);
        if have != want || differs.is_some() {
            return Err(FlatLayoutError::Objects { have, want, index: differs.unwrap_or(have.min(want)) });
        }
        let rest = self.rest.values().map(|bytes| bytes.len() as u64);
        let vtables = self.vtables.values().map(|words| (words.len() as u64).saturating_mul(2));
        let objects = rest.chain(vtables).fold(outline.bytes, u64::saturating_add);
        let most = objects.saturating_mul(2).saturating_add(PADDING);
        if u64::from(self.len) > most || self.len as usize > MAX_LEN {
            return Err(FlatLayoutError::Length { len: self.len.into(), objects });
        }
        let mut placed = Placed { layout: self, next: 0, out: vec![0; self.len as usize] };
        for (at, bytes) in &self.rest {
            placed.put(*at, bytes)?;
        }
        for (at, words) in &self.vtables {
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            placed.put(*at, &bytes)?;
        }
        drop(outline);
        row.encode(&mut placed)?;
        let at = self.objects.get(root as usize).map_or(0, |object| object.at);
        placed.put(0, &at.to_le_bytes())?;
        Ok(placed.out)
    }
}

/// Bytes of `bytes` that are not zero where `objects` has zeros: what no object wrote.
fn runs(bytes: &[u8], objects: &[u8]) -> BTreeMap<u32, Vec<u8>> {
    let mut runs = BTreeMap::new();
    let mut run: Option<(u32, Vec<u8>)> = None;
    let mut zeros = 0usize;
    for (at, (byte, written)) in (0u32..).zip(bytes.iter().zip(objects)) {
        let open = *byte != *written && *written == 0;
        match &mut run {
            None if open => run = Some((at, vec![*byte])),
            None => {}
            Some((_, found)) => {
                zeros = if open { 0 } else { zeros.saturating_add(1) };
                // Bytes of objects are written over what is here.
                found.push(if open { *byte } else { 0 });
                if zeros >= RUN_END {
                    close(&mut runs, run.take(), zeros);
                    zeros = 0;
                }
            }
        }
    }
    close(&mut runs, run, zeros);
    runs
}

fn close(runs: &mut BTreeMap<u32, Vec<u8>>, run: Option<(u32, Vec<u8>)>, zeros: usize) {
    if let Some((at, mut bytes)) = run {
        bytes.truncate(bytes.len().saturating_sub(zeros));
        runs.insert(at, bytes);
    }
}

fn set(places: &mut [u32], child: u32, target: u32) {
    if let Some(place) = places.get_mut(child as usize) {
        *place = target;
    }
}

fn number(bytes: &[u8], at: u32) -> Option<u32> {
    bytes.get(at as usize..)?.first_chunk().map(|number| u32::from_le_bytes(*number))
}

/// Place that the offset stored here points to.
fn target(bytes: &[u8], at: u32) -> Option<u32> {
    at.checked_add(number(bytes, at)?)
}

/// Place of the vtable of the table at this place.
fn vtable_place(bytes: &[u8], at: u32) -> Option<u32> {
    let distance = number(bytes, at)? as i32;
    u32::try_from(i64::from(at).checked_sub(distance.into())?).ok()
}

/// Words of the vtable at this place.
fn vtable_words(bytes: &[u8], place: u32) -> Option<Vec<u16>> {
    let rest = bytes.get(place as usize..)?;
    let len = u16::from_le_bytes(*rest.first_chunk()?);
    let words = rest.get(..usize::from(len))?.as_chunks().0;
    Some(words.iter().map(|word| u16::from_le_bytes(*word)).collect())
}

/// Offset of a slot in its table; `None` if it is absent.
fn offset_of(words: &[u16], slot: u16) -> Option<u16> {
    words.get(usize::from(slot).saturating_add(2)).copied().filter(|offset| *offset != 0)
}

enum Node {
    Leaf(ObjectKind),
    Offsets(Vec<u32>),
    Table(Vec<(u16, u32)>),
}

impl Node {
    fn kind(&self) -> ObjectKind {
        match self {
            Node::Leaf(kind) => *kind,
            Node::Offsets(_) => ObjectKind::Offsets,
            Node::Table(_) => ObjectKind::Table,
        }
    }
}

/// Objects of a row with their children, without their bytes.
#[derive(Default)]
struct Outline {
    nodes: Vec<Node>,
    /// Bytes of all objects, without those of vtables.
    bytes: u64,
}

impl Outline {
    fn push(&mut self, node: Node, bytes: usize) -> Result<u32, Error> {
        let index = u32::try_from(self.nodes.len()).map_err(|_| Error::Overflow)?;
        self.nodes.push(node);
        self.bytes = self.bytes.saturating_add(bytes as u64).saturating_add(4);
        Ok(index)
    }
}

impl Sink for Outline {
    type Error = Error;
    type Ref = u32;

    fn string(&mut self, text: &str) -> Result<u32, Error> {
        self.push(Node::Leaf(ObjectKind::Text), text.len())
    }

    fn byte_string(&mut self, _: usize, bytes: &[u8]) -> Result<u32, Error> {
        self.push(Node::Leaf(ObjectKind::Bytes), bytes.len())
    }

    fn scalars(&mut self, _: usize, _: usize, bytes: &[u8]) -> Result<u32, Error> {
        self.push(Node::Leaf(ObjectKind::Numbers), bytes.len())
    }

    fn refs(&mut self, refs: &[u32]) -> Result<u32, Error> {
        self.push(Node::Offsets(refs.to_vec()), refs.len().saturating_mul(4))
    }

    fn table(&mut self, fields: &[(u16, FieldValue<u32>)]) -> Result<u32, Error> {
        let children = fields.iter().filter_map(|(slot, value)| match value {
            FieldValue::Ref(child) => Some((*slot, *child)),
            FieldValue::Scalar(..) => None,
        });
        self.push(Node::Table(children.collect()), fields.len().saturating_mul(8))
    }
}

/// Writes objects at the places of a layout. References are places.
struct Placed<'l> {
    layout: &'l FlatLayout,
    next: usize,
    out: Vec<u8>,
}

impl Placed<'_> {
    fn next(&mut self) -> Result<(usize, Object), FlatLayoutError> {
        let index = self.next;
        self.next = index.saturating_add(1);
        let (have, want) = (self.next, self.layout.objects.len());
        let object = self.layout.objects.get(index);
        Ok((index, *object.ok_or(FlatLayoutError::Objects { have, want, index })?))
    }

    fn put(&mut self, at: u32, bytes: &[u8]) -> Result<(), FlatLayoutError> {
        let index = self.next.saturating_sub(1);
        let outside = FlatLayoutError::Object { index, at, reason: "it ends behind the buffer" };
        let rest = self.out.get_mut(at as usize..).and_then(|rest| rest.get_mut(..bytes.len()));
        rest.ok_or(outside)?.copy_from_slice(bytes);
        Ok(())
    }

    /// Writes a length and what has it.
    fn counted(&mut self, count: usize, bytes: &[u8]) -> Result<u32, FlatLayoutError> {
        let (index, Object { at, .. }) = self.next()?;
        let behind = at.checked_add(4).zip(u32::try_from(count).ok());
        let reason = "it ends behind the buffer";
        let (content, count) = behind.ok_or(FlatLayoutError::Object { index, at, reason })?;
        self.put(at, &count.to_le_bytes())?;
        self.put(content, bytes)?;
        Ok(at)
    }

    /// Writes the offset to a target, which is behind it.
    fn point(&mut self, at: u32, target: u32) -> Result<(), FlatLayoutError> {
        let index = self.next.saturating_sub(1);
        let distance = target.checked_sub(at).filter(|distance| *distance > 0);
        let reason = "what it points to is in front of it";
        self.put(at, &distance.ok_or(FlatLayoutError::Object { index, at, reason })?.to_le_bytes())
    }
}

impl Sink for Placed<'_> {
    type Error = FlatLayoutError;
    type Ref = u32;

    fn string(&mut self, text: &str) -> Result<u32, FlatLayoutError> {
        self.counted(text.len(), text.as_bytes())
    }

    fn byte_string(&mut self, _: usize, bytes: &[u8]) -> Result<u32, FlatLayoutError> {
        self.counted(bytes.len(), bytes)
    }

    fn scalars(&mut self, size: usize, _: usize, bytes: &[u8]) -> Result<u32, FlatLayoutError> {
        let count = bytes.len().checked_div(size).filter(|count| count.checked_mul(size) == Some(bytes.len()));
        self.counted(count.ok_or(Error::Elements { bytes: bytes.len(), size })?, bytes)
    }

    fn refs(&mut self, refs: &[u32]) -> Result<u32, FlatLayoutError> {
        let at = self.counted(refs.len(), &[])?;
        for (slot, target) in (at.saturating_add(4)..).step_by(4).zip(refs) {
            self.point(slot, *target)?;
        }
        Ok(at)
    }

    fn table(&mut self, fields: &[(u16, FieldValue<u32>)]) -> Result<u32, FlatLayoutError> {
        let (index, Object { at, vtable, .. }) = self.next()?;
        let wrong = |reason| FlatLayoutError::Object { index, at, reason };
        let layout = self.layout;
        let words = layout.vtables.get(&vtable).ok_or_else(|| wrong("the layout does not have its vtable"))?;
        // Both are below 2^31.
        self.put(at, &(at as i32).wrapping_sub(vtable as i32).to_le_bytes())?;
        for (slot, value) in fields {
            let place = offset_of(words, *slot).and_then(|offset| at.checked_add(offset.into()));
            let place = place.ok_or_else(|| wrong("its vtable has no place for a field"))?;
            match value {
                FieldValue::Ref(target) => self.point(place, *target)?,
                FieldValue::Scalar(number, width) => {
                    self.put(place, number.get(..usize::from(*width)).unwrap_or(number))?;
                }
            }
        }
        Ok(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::flatbuffer;
    use edgepack_format::pte::{Frame, FrameList};
    use edgepack_format::wire;

    fn frames(names: &[&'static str]) -> FrameList<'static> {
        let row = |name: &&'static str| Frame { name: Some((*name).into()), lineno: 3, ..Frame::default() };
        FrameList { items: Some(names.iter().map(row).collect::<Vec<_>>().into()) }
    }

    /// Up to 32 tables one behind the other, each with a vtable that covers most of those of the others.
    fn covering(tables: u32) -> Vec<u8> {
        const SPAN: u32 = 128;
        // Length of the vtable, length of the table, no slot 0, slot 1, and slots that no schema has or that are empty.
        const WORDS: [u16; 8] = [SPAN as u16, SPAN as u16 + 4, 0, SPAN as u16, 0, 0, 0, 0];
        let (first, text) = (36 + 4 * tables, 40 + 8 * tables + SPAN);
        let vtables = text + 8;
        let mut bytes = vec![0; vtables as usize];
        let mut put = |at: u32, data: &[u8]| bytes[at as usize..at as usize + data.len()].copy_from_slice(data);
        put(0, &24u32.to_le_bytes());
        put(16, &[6, 0, 8, 0, 4, 0]);
        put(24, &[8, 0, 0, 0, 4, 0, 0, 0]);
        put(32, &tables.to_le_bytes());
        put(text, &[1, 0, 0, 0, b'x', 0]);
        for index in 0..tables {
            let (slot, table) = (36 + 4 * index, first + 4 * index);
            put(slot, &(table - slot).to_le_bytes());
            put(table, &(table as i32 - (vtables + 16 * index) as i32).to_le_bytes());
        }
        for index in 0..tables {
            let field = first + 4 * index + SPAN;
            put(field, &(text - field).to_le_bytes());
        }
        let words: Vec<u8> = WORDS.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.extend(words.repeat((tables + SPAN / 16) as usize));
        bytes
    }

    #[test]
    fn vtables_that_cover_each_other_are_refused() {
        let read = |bytes: &[u8]| {
            let row = FrameList::decode(wire::Table::root(bytes).unwrap()).unwrap();
            FlatLayout::read(&row, bytes).map(|layout| layout.vtables.len())
        };
        assert_eq!(read(&covering(1)).unwrap(), 2);
        let error = read(&covering(32)).unwrap_err().to_string();
        assert!(error.contains("cover each other"), "{error}");
    }

    /// A buffer as our writer would not lay it out: a vtable per table, one with a slot of its own, texts in front.
    fn foreign() -> Vec<u8> {
        let mut bytes = vec![0; 96];
        let mut put = |at: usize, data: &[u8]| bytes[at..at + data.len()].copy_from_slice(data);
        put(0, &[24, 0, 0, 0]);
        put(4, b"TEST");
        // Vtable and table of the root: one vector.
        put(16, &[6, 0, 8, 0, 4, 0]);
        put(24, &[8, 0, 0, 0, 4, 0, 0, 0]);
        put(32, &[2, 0, 0, 0, 28, 0, 0, 0, 40, 0, 0, 0]);
        // Slots 1 and 2, and slot 4, which no schema has.
        put(46, &[14, 0, 14, 0, 0, 0, 4, 0, 8, 0, 0, 0, 12, 0]);
        put(64, &[18, 0, 0, 0, 3, 0, 0, 0, 20, 0, 0, 0, 0x77]);
        put(80, &[34, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0]);
        bytes.extend([3, 0, 0, 0, b'a', b'b', b'c', 0]);
        bytes[72..76].copy_from_slice(&[24, 0, 0, 0]);
        bytes[88..92].copy_from_slice(&[8, 0, 0, 0]);
        bytes
    }

    #[test]
    fn what_our_writer_makes_comes_back() {
        let row = frames(&["one", "two", "one"]);
        let bytes = flatbuffer(&row, *b"TEST").unwrap();
        let layout = FlatLayout::read(&row, &bytes).unwrap();
        assert_eq!(layout.write(&row).unwrap(), bytes);
        assert_eq!(layout.rest.keys().collect::<Vec<_>>(), [&4], "the identifier alone");
        assert_eq!(layout.objects[0], layout.objects[4], "equal texts are shared");
    }

    #[test]
    fn what_others_make_comes_back_with_what_no_schema_has() {
        let bytes = foreign();
        let row = FrameList::decode(wire::Table::root(&bytes).unwrap()).unwrap();
        assert_eq!(row, frames(&["abc", "abc"]));
        let layout = FlatLayout::read(&row, &bytes).unwrap();
        assert_eq!(layout.write(&row).unwrap(), bytes);
        assert_eq!(layout.rest[&76], [0x77]);
        assert_ne!(bytes, flatbuffer(&row, *b"TEST").unwrap());
        // Other content of the same size goes to the same places.
        let other = layout.write(&frames(&["xyz", "xyz"])).unwrap();
        assert_eq!(FrameList::decode(wire::Table::root(&other).unwrap()).unwrap(), frames(&["xyz", "xyz"]));
        assert_eq!(other.iter().zip(&bytes).filter(|(a, b)| a != b).count(), 3);
    }

    #[test]
    fn rows_of_another_shape_and_impossible_layouts_are_refused() {
        let row = frames(&["one", "two"]);
        let bytes = flatbuffer(&row, *b"TEST").unwrap();
        let layout = FlatLayout::read(&row, &bytes).unwrap();
        let refused = layout.write(&frames(&["one"])).unwrap_err();
        assert_eq!(refused, FlatLayoutError::Objects { have: 4, want: 6, index: 2 });
        let change = |change: &dyn Fn(&mut FlatLayout)| {
            let mut layout = layout.clone();
            change(&mut layout);
            layout.write(&row).unwrap_err().to_string()
        };
        assert!(change(&|layout| layout.len = 1 << 30).contains("1073741824 bytes for objects of"));
        assert!(change(&|layout| layout.len = 20).contains("ends behind the buffer"));
        assert!(change(&|layout| layout.objects[0].at = u32::MAX).contains("ends behind the buffer"));
        assert!(change(&|layout| layout.objects[0].at = 0).contains("in front of it"));
        assert!(change(&|layout| layout.objects[1].vtable = 2).contains("does not have its vtable"));
        assert!(change(&|layout| layout.vtables.values_mut().for_each(|words| words.truncate(2))).contains("no place"));
        assert!(change(&|layout| layout.objects.truncate(5)).contains("the layout 5"));
        assert!(FlatLayout::read(&row, &bytes[..bytes.len() - 2]).unwrap_err().to_string().contains("behind"));
    }
}
