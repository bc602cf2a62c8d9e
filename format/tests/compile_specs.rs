//! Options as compile specs and back: every kind of value, every attribute, every error.

use edgepack_format::pte::CompileSpec;
use edgepack_format::row::Blob;
use edgepack_format::spec::{CompileSpecs, SpecProblem, SpecValue};
use proptest::prelude::*;

#[derive(CompileSpecs, Clone, Copy, PartialEq, Debug)]
#[spec(rename_all = "snake_case")]
enum Precision {
    Full,
    HalfFloat,
    #[spec(key = "int 8")]
    Quantised,
}

#[derive(CompileSpecs, Clone, Copy, PartialEq, Debug)]
#[spec(repr = "i16")]
enum Level {
    Low = -1,
    High = 300,
}

#[derive(CompileSpecs, Clone, PartialEq, Debug)]
struct Everything {
    a: u8,
    b: i8,
    c: u16,
    d: i16,
    e: u32,
    f: i32,
    g: u64,
    h: i64,
    i: f32,
    j: f64,
    truth: bool,
    text: String,
    bytes: Vec<u8>,
    numbers: Vec<f32>,
    three: [u16; 3],
    precision: Precision,
    level: Level,
    maybe: Option<String>,
    // Names that generated code might be tempted to use for itself.
    reader: u8,
    specs: u8,
    options: u8,
    r#type: u8,
}

prop_compose! {
    fn everything()(
        (a, b, c, d, e) in any::<(u8, i8, u16, i16, u32)>(),
        (f, g, h, truth, three) in any::<(i32, u64, i64, bool, [u16; 3])>(),
        (i, j) in (-1e9f32..1e9, -1e9f64..1e9),
        (text, bytes) in (".*", prop::collection::vec(any::<u8>(), 0..20)),
        numbers in prop::collection::vec(-1e9f32..1e9, 0..5),
        precision in prop::sample::select(vec![Precision::Full, Precision::HalfFloat, Precision::Quantised]),
        level in prop::sample::select(vec![Level::Low, Level::High]),
        maybe in prop::option::of(".*"),
        own: [u8; 4],
    ) -> Everything {
        let [reader, specs, options, r#type] = own;
        Everything {
            a, b, c, d, e, f, g, h, i, j, truth, text, bytes, numbers, three, precision, level, maybe,
            reader, specs, options, r#type,
        }
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read(options in everything()) {
        let specs = options.to_specs();
        prop_assert_eq!(specs.len(), 21 + usize::from(options.maybe.is_some()));
        prop_assert_eq!(&Everything::from_specs(&specs).unwrap(), &options);
        // The order of the rows means nothing.
        let backwards: Vec<_> = specs.into_iter().rev().collect();
        prop_assert_eq!(&Everything::from_specs(&backwards).unwrap(), &options);
    }

    #[test]
    fn any_bytes_give_options_or_errors(
        rows in prop::collection::vec(("[a-j]|text|three|level", prop::collection::vec(any::<u8>(), 0..10)), 0..8)
    ) {
        // Half of the options are never there.
        prop_assert!(Everything::from_specs(&rows).unwrap_err().as_slice().len() > 5);
    }
}

#[derive(CompileSpecs, PartialEq, Debug)]
#[spec(rename_all = "kebab-case")]
struct Defaults {
    max_value: u32,
    #[spec(default = "true")]
    is_fused: bool,
    #[spec(default = "cpu")]
    device: String,
    #[spec(default = 1 << 4)]
    block: i64,
    #[spec(default = Precision::Quantised)]
    precision: Precision,
    #[spec(default)]
    weights: Vec<f32>,
    #[spec(key = "C")]
    cache: Option<u8>,
    #[spec(skip)]
    calls: u64,
}

#[test]
fn an_absent_key_means_the_default() {
    let read = Defaults::from_specs(&[("max-value", [9, 0, 0, 0])]).unwrap();
    let want = Defaults {
        max_value: 9,
        is_fused: true,
        device: "cpu".into(),
        block: 16,
        precision: Precision::Quantised,
        weights: vec![],
        cache: None,
        calls: 0,
    };
    assert_eq!(read, want);
    let keys: Vec<_> =
        Defaults { cache: Some(1), calls: 5, ..want }.to_specs().into_iter().map(|row| row.key).collect();
    let keys: Vec<_> = keys.iter().flatten().map(|key| &**key).collect();
    assert_eq!(keys, ["max-value", "is-fused", "device", "block", "precision", "weights", "C"]);
}

#[test]
fn every_problem_is_reported_at_once() {
    let rows: [(&str, &[u8]); 9] = [
        ("is-fused", &[3]),
        ("device", &[0xff, 0xfe]),
        ("block", b"12"),
        ("precision", b"quarter"),
        ("weights", &[0; 30]),
        ("C", &[]),
        ("max_value", &[1]),
        ("C", &[1]),
        ("new\nline", &[]),
    ];
    let errors = Defaults::from_specs(&rows).unwrap_err();
    assert_eq!(
        errors.to_string(),
        "max_value: no such option\n\
         C: given more than once\n\
         new\\nline: no such option\n\
         max-value: missing, u32 (4 bytes, little-endian) is expected\n\
         is-fused: [3] (1 byte), bool (one byte, 0 or 1) is expected\n\
         device: [255, 254] (2 bytes), text (UTF-8) is expected\n\
         block: \"12\" (2 bytes), i64 (8 bytes, little-endian) is expected\n\
         precision: \"quarter\" (7 bytes), Precision (`full` or `half_float` or `int 8`) is expected\n\
         weights: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]… (30 bytes), a list of f32 (4 bytes each, \
         little-endian) is expected"
    );
    assert_eq!(errors.as_slice()[1].problem, SpecProblem::Twice);
}

#[test]
fn other_keys_are_fine_where_the_struct_says_so() {
    #[derive(CompileSpecs, PartialEq, Debug)]
    #[spec(allow_unknown)]
    struct Lenient {
        x: u8,
    }
    assert_eq!(Lenient::from_specs(&[("y", [1]), ("x", [2]), ("y", [3])][1..]).unwrap(), Lenient { x: 2 });
}

#[test]
fn rows_without_key_or_value_are_empty() {
    #[derive(CompileSpecs, PartialEq, Debug)]
    struct One {
        x: Vec<u8>,
    }
    let row = |key: Option<&'static str>, value: Option<Blob<'static>>| CompileSpec { key: key.map(Into::into), value };
    assert_eq!(One::from_specs(&[row(Some("x"), None)]).unwrap(), One { x: vec![] });
    let errors = One::from_specs(&[row(None, None)]).unwrap_err();
    assert_eq!(errors.to_string(), ": no such option\nx: missing, bytes is expected");
}

#[test]
fn an_enum_is_its_text_or_its_number() {
    assert_eq!(Precision::HalfFloat.to_bytes(), b"half_float");
    assert_eq!(Level::Low.to_bytes(), [0xff, 0xff]);
    assert_eq!(Level::from_bytes(&[0x2c, 1]), Some(Level::High));
    assert_eq!(Level::from_bytes(&[0, 0]), None);
    assert_eq!(Level::expected(), "Level as i16, little-endian (`-1` or `300`)");
}
