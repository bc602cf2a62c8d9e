//! Writes custom options: a FlexBuffer map, byte for byte as the standard builder writes it.
//!
//! Front to back: each key and its value where it is not inline, then the vector of keys, then the map. Every part takes
//! the smallest width that holds its numbers, its length, and its offsets from where they would then stand.

use edgepack_format::tflite::{CustomOptions, FlexType, KEYS};

use crate::BuildError;

/// A value of the map.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OptionValue<'a> {
    /// Signed number, in as few of 1, 2, 4 or 8 bytes as hold it.
    Int(i64),
    /// A string of any bytes.
    String(&'a [u8]),
    /// A vector of numbers.
    Ints(Vec<i64>),
    /// A vector of strings.
    Strings(Vec<&'a [u8]>),
}

/// The options with these entries, which are sorted by key.
pub fn custom_options(entries: &[(&str, OptionValue<'_>)]) -> Vec<u8> {
    let mut sorted: Vec<_> = entries.iter().collect();
    sorted.sort_by_key(|(key, _)| *key);
    let mut out = Writer { bytes: Vec::new() };
    let (mut keys, mut values) = (Vec::new(), Vec::new());
    for (key, value) in sorted {
        keys.push(out.key(key));
        values.push(out.value(value));
    }
    let keys = out.vector(&keys, None, false);
    let map = out.vector(&values, Some(keys), true);
    out.finish(Item { kind: FlexType::MAP, ..map })
}

/// The options with another package, everything else as it was.
pub fn rewrite_options(options: &CustomOptions<'_>, package: &[u8]) -> Result<Vec<u8>, BuildError> {
    let mut entries: Vec<(&str, OptionValue<'_>)> = Vec::new();
    for (key, kind) in &options.keys {
        let value = match *key {
            "1" => options.version.map(OptionValue::Int),
            "2" => options.chip_name.map(OptionValue::String),
            "3" => options.separate.map(OptionValue::String),
            "4" => Some(OptionValue::String(package)),
            "5" => options.preference.map(OptionValue::Int),
            "6" => options.chips.clone().map(OptionValue::Ints),
            "7" => {
                options.further.as_ref().map(|list| OptionValue::Strings(list.iter().map(|(_, one)| *one).collect()))
            }
            _ => None,
        };
        match value {
            Some(value) => entries.push((key, value)),
            None => {
                return Err(BuildError::Compiled {
                    place: format!("key {key:?} of the custom options ({})", kind.name()),
                    message: format!("it is none of {} with a value of its type", KEYS.join(", ")),
                });
            }
        }
    }
    Ok(custom_options(&entries))
}

/// Something that a vector can hold.
#[derive(Clone, Copy)]
struct Item {
    kind: FlexType,
    /// The number, or where it points.
    place: Place,
    /// Width of a vector's or string's length field; of a number, the least that holds it.
    width: Width,
}

#[derive(Clone, Copy)]
enum Place {
    Inline(i64),
    At(usize),
}

/// The two low bits of a type byte: 1, 2, 4 or 8 bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Width(u8);

impl Width {
    const ALL: [Width; 4] = [Width(0), Width(1), Width(2), Width(3)];

    fn bytes(self) -> usize {
        1 << self.0
    }

    fn of(number: u64) -> Width {
        match number {
            0..=0xff => Width(0),
            0x100..=0xffff => Width(1),
            0x1_0000..=0xffff_ffff => Width(2),
            _ => Width(3),
        }
    }

    fn of_signed(number: i64) -> Width {
        // The top bit is the sign, so the magnitude has one bit less.
        let magnitude = if number < 0 { !number } else { number } as u64;
        Width::of(magnitude.saturating_mul(2))
    }
}

impl Item {
    fn packed_type(&self, slot: Width) -> u8 {
        let width = match self.place {
            Place::Inline(_) => slot.max(self.width),
            Place::At(_) => self.width,
        };
        (self.kind.0 << 2) | width.0
    }

    /// Returns the smallest width of its slot, as slot `index` of a container that starts behind `len` bytes.
    fn slot(&self, len: usize, index: usize) -> Width {
        let Place::At(target) = self.place else { return self.width };
        let fits = |width: &Width| {
            let place = len.next_multiple_of(width.bytes()).saturating_add(index.saturating_mul(width.bytes()));
            Width::of(place.saturating_sub(target) as u64) <= *width
        };
        Width::ALL.into_iter().find(fits).unwrap_or(Width(3))
    }
}

struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    fn align(&mut self, width: Width) {
        self.bytes.resize(self.bytes.len().next_multiple_of(width.bytes()), 0);
    }

    fn number(&mut self, number: u64, width: Width) {
        self.bytes.extend(number.to_le_bytes().iter().take(width.bytes()));
    }

    fn item(&mut self, item: &Item, width: Width) {
        match item.place {
            Place::Inline(number) => self.number(number as u64, width),
            Place::At(target) => self.number(self.bytes.len().saturating_sub(target) as u64, width),
        }
    }

    fn key(&mut self, key: &str) -> Item {
        let at = self.bytes.len();
        self.bytes.extend(key.as_bytes());
        self.bytes.push(0);
        Item { kind: FlexType::KEY, place: Place::At(at), width: Width(0) }
    }

    fn value(&mut self, value: &OptionValue<'_>) -> Item {
        match value {
            OptionValue::Int(number) => int(*number),
            OptionValue::String(bytes) => self.string(bytes),
            OptionValue::Ints(list) => {
                let items: Vec<Item> = list.iter().map(|number| int(*number)).collect();
                self.vector(&items, None, true)
            }
            OptionValue::Strings(list) => {
                let items: Vec<Item> = list.iter().map(|bytes| self.string(bytes)).collect();
                self.vector(&items, None, true)
            }
        }
    }

    fn string(&mut self, bytes: &[u8]) -> Item {
        let width = Width::of(bytes.len() as u64);
        self.align(width);
        self.number(bytes.len() as u64, width);
        let at = self.bytes.len();
        self.bytes.extend(bytes);
        self.bytes.push(0);
        Item { kind: FlexType::STRING, place: Place::At(at), width }
    }

    /// A vector; with keys, a map. Vectors of keys alone have no type bytes.
    fn vector(&mut self, items: &[Item], keys: Option<Item>, typed: bool) -> Item {
        let len = self.bytes.len();
        let prefix = if keys.is_some() { 3usize } else { 1 };
        let of_keys = keys.map_or(Width(0), |keys| keys.slot(len, 0));
        let of_items = items.iter().enumerate().map(|(index, item)| item.slot(len, index.saturating_add(prefix)));
        let width = of_items.chain([of_keys, Width::of(items.len() as u64)]).max().unwrap_or(Width(0));
        self.align(width);
        if let Some(keys) = keys {
            self.item(&keys, width);
            self.number(keys.width.bytes() as u64, width);
        }
        self.number(items.len() as u64, width);
        let at = self.bytes.len();
        for item in items {
            self.item(item, width);
        }
        if typed {
            self.bytes.extend(items.iter().map(|item| item.packed_type(width)));
        }
        Item { kind: FlexType::VECTOR, place: Place::At(at), width }
    }

    fn finish(mut self, root: Item) -> Vec<u8> {
        let width = root.slot(self.bytes.len(), 0);
        self.align(width);
        self.item(&root, width);
        self.bytes.extend([root.packed_type(width), width.bytes() as u8]);
        self.bytes
    }
}

fn int(number: i64) -> Item {
    Item { kind: FlexType::INT, place: Place::Inline(number), width: Width::of_signed(number) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_small_file() {
        let package = vec![7; 36864];
        let written = custom_options(&[
            ("7", OptionValue::Strings(vec![])),
            ("1", OptionValue::Int(0)),
            ("4", OptionValue::String(&package)),
            ("5", OptionValue::Int(1)),
            ("6", OptionValue::Ints(vec![17])),
        ]);
        assert_eq!(written[..6], [0x31, 0, 0x34, 0, 0, 0x90]);
        #[rustfmt::skip]
        let tail = [
            0, 0x35, 0, 0x36, 0, 1, 0x11, 4, 0x37, 0, 0, 0, 5, 0,
            0x14, 0x90, 0x14, 0x90, 0x11, 0, 0x11, 0, 0x0e, 0,
            0x0a, 0, 2, 0, 5, 0,
            0, 0, 0x20, 0x90, 1, 0, 0x1e, 0, 0x1b, 0,
            5, 0x15, 5, 0x28, 0x28,
            0x0f, 0x25, 1,
        ];
        assert_eq!(written[0x9006..], tail);
        let read = CustomOptions::parse(&written).unwrap();
        assert_eq!(
            (read.package, read.preference, read.chips.as_deref()),
            ((6, &package[..]), Some(1), Some(&[17][..]))
        );
        assert_eq!(rewrite_options(&read, &package).unwrap(), written);
    }

    #[test]
    fn what_is_written_is_read_around_every_width() {
        for len in [0, 1, 200, 230, 254, 255, 256, 257, 65_500, 65_534, 65_535, 65_536, 65_537] {
            let package = vec![b'x'; len];
            for number in [0, -1, 127, 128, -128, -129, 1 << 40] {
                let written = custom_options(&[
                    ("1", OptionValue::Int(number)),
                    ("4", OptionValue::String(&package)),
                    ("6", OptionValue::Ints(vec![number, 1, -300])),
                    ("7", OptionValue::Strings(vec![&package, b"a"])),
                ]);
                let read = CustomOptions::parse(&written);
                if len == 0 {
                    assert_eq!(read, Err(edgepack_format::tflite::OptionsError::NoPackage));
                    continue;
                }
                let read = read.unwrap();
                assert_eq!((read.version, read.package.1), (Some(number), &package[..]));
                assert_eq!(read.chips.as_deref(), Some(&[number, 1, -300][..]));
                assert_eq!(read.further.as_ref().unwrap()[0].1, package);
                assert_eq!(rewrite_options(&read, &package).unwrap(), written);
            }
        }
    }
}
