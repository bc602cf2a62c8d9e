//! Programs as text: every program of the corpora is the same after it was printed and parsed, so is any row there can
//! be, and text that is not a program is refused with the place and what was expected there.
//!
//! `EDGEPACK_CORPUS` names a larger corpus of the same layout.

use std::path::Path;

use edgepack::builder::sink::flatbuffer;
use edgepack::edit::{self, Content, DiffOptions, Opened, Package, Root, diff};
use edgepack::format::pte::{Program, SubsegmentOffsets};
use edgepack::format::row::Table;
use edgepack::format::wire;
use edgepack::text::{SideFile, parse, parse_with, print, print_with};
use edgepack_smith::arbitrary::Unstructured;
use edgepack_smith::{Values, row};
use edgepack_tests::files;
use proptest::collection::vec;
use proptest::prelude::*;

const EXACT: DiffOptions = DiffOptions { rtol: 0.0, atol: 0.0, exact: true };

fn model(name: &str) -> Opened {
    Opened::open(Path::new(env!("CARGO_MANIFEST_DIR")).join("data/corpus/models").join(name)).unwrap()
}

fn rows(package: &Package<'_>) -> Vec<u8> {
    flatbuffer(package.program().unwrap(), *b"ET12").unwrap()
}

#[test]
fn every_program_comes_back_from_its_text() {
    let (mut count, mut longest) = (0, 0);
    for path in files(&["pte"]) {
        let file = Opened::open(&path).unwrap();
        let package = file.package().unwrap();
        let mut side = Vec::new();
        let text = print_with(&package, Some(SideFile { name: "weights.bin", out: &mut side })).unwrap();
        let parsed = parse_with(&text, &mut |_| Ok(Content::from(&side[..])));
        let parsed = parsed.unwrap_or_else(|error| panic!("{}:{error}", path.display()));
        assert!(rows(&parsed) == rows(&package), "{}", path.display());
        assert!(diff(&package, &parsed, &EXACT).unwrap().is_empty(), "{}", path.display());
        assert!(parsed.to_bytes().unwrap() == package.to_bytes().unwrap(), "{}", path.display());
        longest = longest.max(text.len());
        count += 1;
    }
    println!("{count} programs through text, the longest of {longest} bytes");
    assert!(count > 80, "only {count} programs");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// Any rows: absent and empty fields, unknown kinds, indices out of range, text with anything in it.
    #[test]
    fn any_rows_come_back(input in vec(any::<u8>(), 0..2000)) {
        let bytes = row(Program::DESC, Values::Any, &mut Unstructured::new(&input)).unwrap();
        let program = Program::decode(wire::Table::root(&bytes).unwrap()).unwrap();
        let count = program.segments.as_ref().map_or(0, |rows| rows.len());
        let mut package = Package::new(Root::Program(program));
        package.segments = vec![Content::empty(); count];
        let text = print(&package).unwrap();
        let parsed = parse(&text).unwrap_or_else(|error| panic!("{error} in\n{text}"));
        prop_assert!(rows(&parsed) == rows(&package), "{}", text);
        prop_assert_eq!(print(&parsed).unwrap(), text);
        // Dumps and builds the rows through JSON as well.
        let json = edit::dump(&package).unwrap();
        let built = edit::build(&json).unwrap();
        prop_assert!(rows(&built) == rows(&package), "{}", json);
    }

    /// A text with something else in one place is a program or an error, and an error has a place in the text.
    #[test]
    fn damaged_texts_are_answered(at: prop::sample::Index, with in "[ -~\n]{0,3}", cut: bool) {
        let text = print(&model("cond_portable.pte").package().unwrap()).unwrap();
        let at = at.index(text.len());
        let rest = if cut { "" } else { text.get(at + 1..).unwrap_or_default() };
        let damaged = format!("{}{with}{rest}", &text[..at]);
        if let Err(error) = parse(&damaged) {
            prop_assert!(error.line >= 1 && error.line <= damaged.matches('\n').count() + 1 && error.column >= 1);
        }
    }
}

#[test]
fn errors_say_where_and_what_was_expected() {
    let method = |body: &str| format!("edgepack_program 1\nmethods {{ method \"f\" {{\n{body}\n}} }}");
    let cases = [
        ("".to_owned(), "1:1: expected `edgepack_program`, found the end"),
        ("edgepack_program 2".to_owned(), "1:18: version 2 of the text form; 1 is known"),
        ("edgepack_program 1 version -1".to_owned(), "1:28: -1 does not fit its 32 bits"),
        ("edgepack_program 1\nversion 1 version 1".to_owned(), "2:11: `version` is there twice"),
        ("edgepack_program 1 nonsense".to_owned(), "1:20: expected a part of a program, found `nonsense`"),
        ("edgepack_program 1 methods { chain".to_owned(), "1:30: expected `method` or `}`, found `chain`"),
        ("edgepack_program 1 methods {".to_owned(), "1:29: expected `method` or `}`, found the end"),
        ("edgepack_program 1 file \"../x\"".to_owned(), "1:25: file: \"../x\" is not the plain name of a file"),
        ("edgepack_program 1 file \"x\"".to_owned(), "1:25: \"x\" is in a folder that was not given"),
        (
            "edgepack_program 1 segments { segment at 0 size 1 file 0 1 }".to_owned(),
            "1:51: 1 bytes at 0 of a file of 0, of which 0 are used before",
        ),
        (
            "edgepack_program 1 segments { segment at 0 size 1 base64 \"?\" }".to_owned(),
            "1:58: this is not base64: Invalid symbol 63, offset 0.",
        ),
        (method("values { %1 = none }"), "3:10: expected `%0`, found `%1`: values are numbered in order"),
        (method("values { %0 = float 1 }"), "3:15: expected a kind of value, found `float`"),
        (method("values { %0 = tensor f33[1] }"), "3:22: expected an element type, found `f33`"),
        (method("values { %0 = tensor f32[1 2] }"), "3:28: expected `,` or `]`, found `2`"),
        (
            method("values { %0 = tensor f32 wrong }"),
            "3:26: expected something about the tensor, or the next value, found `wrong`",
        ),
        (method("values { %0 = double nan#3 }"), "3:25: expected the bits of a NaN, found `#3`"),
        (
            method("chains { chain { code { aten::add.out(%0) } } }"),
            "3:25: `aten::add.out` is not an operator of this method",
        ),
        (method("chains { chain { code { jump_if_false %0 -> L1 } } }"), "3:45: there is no label `L1` in this chain"),
        (method("chains { chain { code { L1: L1: } } }"), "3:29: the label `L1` is there twice"),
        (method("chains { chain { code { move %0 %1 } } }"), "3:33: expected `->`, found `%1`"),
        (method("chains { chain { code { free 0 } } }"), "3:30: expected a value such as `%3`, found `0`"),
    ];
    for (text, want) in cases {
        match parse(&text) {
            Ok(_) => panic!("{text} is taken for a program"),
            Err(error) => assert_eq!(error.to_string(), want, "{text}"),
        }
    }
}

/// Hostile texts: nothing recurses, nothing is reserved before it is there.
#[test]
fn hostile_texts_are_answered() {
    for unit in ["methods {", "{", "[", "\"", "%", "(", "edgepack_program 1 ", "-", "#", "\\", "//", "é"] {
        let text = format!("edgepack_program 1\n{}", unit.repeat(200_000));
        assert!(parse(&text).is_err() || unit == "//", "{unit}");
    }
    for name in ["cond_portable.pte", "mlp_portable_int8.pte"] {
        let text = print(&model(name).package().unwrap()).unwrap();
        for end in (0..text.len()).step_by(97) {
            // Some prefixes are whole programs; all others are errors.
            let _ = parse(&text[..end]);
        }
    }
}

/// The bytes next to a text are used once each, so that a short text cannot ask for them again and again.
#[test]
fn bytes_beside_a_text_are_used_once() {
    let text =
        |second: &str| format!("edgepack_program 1 file \"x\" inline_constants {{ data file 0 4 data file {second} }}");
    let mut open = |_: &str| Ok(Content::from(vec![7; 8]));
    assert!(parse_with(&text("4 4"), &mut open).is_ok());
    for second in ["0 4", "3 4", "4 5", "18446744073709551615 1"] {
        let error = parse_with(&text(second), &mut open).unwrap_err().to_string();
        assert!(error.contains("of a file of 8, of which 4 are used before"), "{error}");
    }
}

/// A reviewable program, written by hand.
#[test]
fn a_program_written_by_hand() {
    let text = r#"
        edgepack_program 1
        methods {
          method "forward" {
            memory [0, 32]
            trees absent -> absent
            operators { operator "aten::add" "out" operator "aten::add" "out" }
            delegates { }
            values {
              %0 = tensor f32[2, 2] at 1:0
              %1 = tensor f32[2, 2] order [1, 0] constant 1
              %2 = int 1
              %3 = bool true
              %4 = tensor f32[2, 2] at 1:16
            }
            inputs [%0]
            outputs [%4]
            chains { chain { inputs [] outputs [] code {
              jump_if_false %3 -> end          // never
              again: aten::add.out(%0, %1, %2, %4, %4)
              operator#1(%0, %1, %2, %4, %4)
              jump_if_false %3 -> again
              end:
            } } }
          }
        }
        constants segment 0 [0, 0]
        segments { segment at 0 size 16 base64 "AACAPwAAAEAAAEBAAACAQA==" }
        inline_constants { }
        inline_delegates { }
    "#;
    let package = parse(text).unwrap();
    let program = package.program().unwrap();
    let list: SubsegmentOffsets<'_> = program.constant_segment.clone().unwrap();
    assert_eq!(list.offsets.unwrap().len(), 2);
    let printed = print(&package).unwrap();
    for line in [
        "      jump_if_false %3 -> L4",
        "        L1:",
        "          aten::add.out(%0, %1, %2, %4, %4)",
        "          operator#1(%0, %1, %2, %4, %4)",
        "        L4:",
        "      %1 = tensor f32[2, 2] order [1, 0] constant 1",
    ] {
        assert!(printed.lines().any(|found| found.ends_with(line.trim_start())), "{line} in\n{printed}");
    }
    let bytes = package.to_bytes().unwrap();
    edgepack::loader::Program::from_bytes(bytes.clone()).unwrap();
    assert_eq!(parse(&printed).unwrap().to_bytes().unwrap(), bytes);
}
