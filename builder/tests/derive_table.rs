//! A payload that a delegate's author declares with `#[derive(Table)]` and `#[derive(Union)]`: written, read, verified and
//! described by what the derives make of it.

use edgepack_builder::sink::flatbuffer;
use edgepack_format::check::{Checker, Path, StructureRules};
use edgepack_format::finding::{Rule, Severity};
use edgepack_format::limits::Limits;
use edgepack_format::row::{Blob, FieldKind, Rows, ScalarKind, Scalars, Table, Text, Union};
use edgepack_format::wire;
use proptest::prelude::*;

#[derive(Table, Clone, PartialEq, Debug, Default)]
struct Marker;

#[derive(Table, Clone, PartialEq, Debug, Default)]
#[table(name = "Scale")]
struct ScaleRow {
    #[slot(0, default = 1)]
    factor: i32,
    #[slot(2, name = "type")]
    kind: u8,
}

#[derive(Union, Clone, PartialEq, Debug)]
enum Step<'a> {
    #[tag(1)]
    Marker(Marker),
    #[tag(3)]
    Name(Name<'a>),
    #[unknown]
    Unknown(u8),
}

#[derive(Table, Clone, PartialEq, Debug, Default)]
struct Name<'a> {
    #[slot(0)]
    text: Option<Text<'a>>,
}

#[derive(Table, Clone, PartialEq, Debug, Default)]
struct Payload<'a> {
    #[slot(0, default = -7)]
    version: i64,
    #[slot(1)]
    step: Option<Step<'a>>,
    #[slot(3)]
    scale: Option<ScaleRow>,
    #[slot(4)]
    names: Option<Rows<'a, Name<'a>>>,
    #[slot(5)]
    sizes: Option<Scalars<'a, u16>>,
    #[slot(6, align = 64)]
    weights: Option<Blob<'a>>,
}

const BROKEN: Rule = Rule { id: "TST-1", severity: Severity::Error, title: "structure", explanation: "", code: None };

fn findings(bytes: &[u8]) -> Vec<String> {
    let rules = StructureRules { malformed: &BROKEN, misaligned: &BROKEN, text: &BROKEN, limits: &BROKEN };
    let mut checker = Checker::new(&Limits::hostile(), rules);
    match wire::Table::root(bytes) {
        Ok(root) => checker.table::<Payload<'_>>(root, &Path::ROOT),
        Err(error) => checker.unreadable(&Path::ROOT, error),
    }
    checker.findings.iter().map(|finding| finding.to_string()).collect()
}

fn read(bytes: &[u8]) -> wire::Result<Payload<'_>> {
    Payload::decode(wire::Table::root(bytes)?)
}

prop_compose! {
    fn payload()(
        version: i64,
        step in prop::option::of(prop_oneof![
            Just(Step::Marker(Marker)),
            prop::option::of(".{0,6}").prop_map(|text| Step::Name(Name { text: text.map(Text::from) })),
        ]),
        scale in prop::option::of((any::<i32>(), any::<u8>()).prop_map(|(factor, kind)| ScaleRow { factor, kind })),
        names in prop::option::of(prop::collection::vec(prop::option::of(".{0,6}"), 0..4)),
        sizes in prop::option::of(prop::collection::vec(any::<u16>(), 0..5)),
        weights in prop::option::of(prop::collection::vec(any::<u8>(), 0..70)),
    ) -> Payload<'static> {
        let name = |text: Option<String>| Name { text: text.map(Text::from) };
        Payload {
            version, step, scale,
            names: names.map(|names| names.into_iter().map(name).collect::<Vec<_>>().into()),
            sizes: sizes.map(Into::into),
            weights: weights.map(|bytes| Blob(bytes.into())),
        }
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read(payload in payload()) {
        let bytes = flatbuffer(&payload, *b"TEST").unwrap();
        prop_assert_eq!(findings(&bytes), Vec::<String>::new());
        prop_assert_eq!(read(&bytes).unwrap(), payload);
    }

    #[test]
    fn any_change_gives_a_row_or_an_error(payload in payload(), at: prop::sample::Index, bit in 0u32..8) {
        let mut bytes = flatbuffer(&payload, *b"TEST").unwrap();
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        let clean = findings(&bytes).is_empty();
        // What verifies can be read, with all the rows in it.
        let names = read(&bytes).map(|row| row.names.unwrap_or_default().iter().collect::<Result<Vec<_>, _>>());
        prop_assert!(!clean || matches!(names, Ok(Ok(_))));
    }
}

#[test]
fn absent_fields_are_defaults_or_none() {
    let bytes = flatbuffer(&Marker, *b"TEST").unwrap();
    let empty = Payload { version: -7, ..Payload::default() };
    assert_eq!(read(&bytes).unwrap(), empty);
    // A field that has its default is not written.
    assert_eq!(flatbuffer(&empty, *b"TEST").unwrap(), bytes);
    let zero = flatbuffer(&Payload::default(), *b"TEST").unwrap();
    assert_eq!(read(&zero).unwrap().version, 0);
}

#[test]
fn slots_read_one_field_without_the_rest() {
    let scale = Some(ScaleRow { factor: 1, kind: 9 });
    let bytes = flatbuffer(&Payload { version: 3, scale, ..Payload::default() }, *b"TEST").unwrap();
    let root = wire::Table::root(&bytes).unwrap();
    assert_eq!(root.get(Payload::VERSION).unwrap(), 3);
    let scale = root.table(Payload::SCALE.index).unwrap().unwrap();
    assert_eq!((scale.get(ScaleRow::FACTOR).unwrap(), scale.get(ScaleRow::TYPE).unwrap()), (1, 9));
}

#[test]
fn an_unknown_variant_keeps_its_tag() {
    let name = Step::Name(Name { text: Some("x".into()) });
    let mut bytes = flatbuffer(&Payload { step: Some(name), ..Payload::default() }, *b"TEST").unwrap();
    let root = wire::Table::root(&bytes).unwrap();
    let tag = root.field(Payload::STEP.index, 1).unwrap().unwrap();
    bytes[tag] = 200;
    assert_eq!(read(&bytes).unwrap().step, Some(Step::Unknown(200)));
}

#[test]
fn vectors_start_where_the_declaration_says() {
    let weights = Some(Blob((&[1u8; 3][..]).into()));
    let bytes = flatbuffer(&Payload { weights, ..Payload::default() }, *b"TEST").unwrap();
    let root = wire::Table::root(&bytes).unwrap();
    let vector = root.vector(Payload::WEIGHTS.index, 1).unwrap().unwrap();
    assert!((vector.bytes().as_ptr().addr() - bytes.as_ptr().addr()).is_multiple_of(64));
}

#[test]
fn the_description_lists_every_field() {
    let payload = Payload::DESC;
    let fields: Vec<_> = payload.fields.iter().map(|field| (field.name, field.slot, field.align)).collect();
    assert_eq!(payload.name, "Payload");
    assert_eq!(
        fields,
        [("version", 0, 1), ("step", 1, 1), ("scale", 3, 1), ("names", 4, 1), ("sizes", 5, 1), ("weights", 6, 64)]
    );
    assert!(matches!(payload.fields[0].kind, FieldKind::Scalar(ScalarKind::I64)));
    assert_eq!(payload.fields[0].default, (-7i64).to_le_bytes());
    let FieldKind::Table(scale) = payload.fields[2].kind else { panic!() };
    assert_eq!((scale.name, scale.fields[1].name, scale.fields[1].slot), ("Scale", "type", 2));
    let FieldKind::Union(step) = payload.fields[1].kind else { panic!() };
    let variants: Vec<_> = step.variants.iter().map(|(tag, name, table)| (*tag, *name, table.name)).collect();
    assert_eq!((step.name, &*variants), ("Step", &[(1, "Marker", "Marker"), (3, "Name", "Name")][..]));
}
