//! Settings of programs as commands show them, hostile ones included.

use edgepack::builder::args;
use edgepack::prelude::*;
use edgepack_tests::command::edgepack;

fn program(named: &[(&str, &[u8])]) -> Vec<u8> {
    let mut program = ProgramBuilder::new();
    program.getter("get_eos_ids", args![2i64, 7i64]).unwrap();
    for (key, bytes) in named {
        program.named_data(key, bytes.to_vec(), 1, None).unwrap();
    }
    program.finish().unwrap().to_bytes().unwrap()
}

fn inspected(bytes: Vec<u8>, args: &[&str]) -> String {
    let args: Vec<&str> = ["inspect", "-"].iter().chain(args).copied().collect();
    let ran = edgepack(&args, bytes, false);
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""));
    String::from_utf8(ran.stdout).unwrap()
}

#[test]
fn hostile_settings_are_shown_and_named() {
    let long = [&[3][..], "{% x %}\n".repeat(1000).as_bytes()].concat();
    let bytes = program(&[
        ("metadata.empty", &[]),
        ("metadata.odd", &[9, 1]),
        ("metadata.short", &[1, 2, 3]),
        ("metadata.list", &[4, 255, 255, 255, 255, 0]),
        ("metadata.text", &[3, 0xff]),
        ("metadata.escape", b"\x03\x1b[31m\xe2\x80\xae"),
        ("metadata.\x1b]0;title\x07", &[1, 1, 0, 0, 0, 0, 0, 0, 0]),
        ("metadata.nan", &[2, 0, 0, 0, 0, 0, 0, 0xf8, 0x7f]),
        ("metadata.long", &long),
    ]);
    let text = inspected(bytes.clone(), &[]);
    let section = text.split("\nmetadata\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let lines: Vec<&str> = section.lines().collect();
    assert_eq!(lines.len(), 10, "{section}");
    let line = |key: &str| *lines.iter().find(|line| line.trim_start().starts_with(key)).unwrap();
    assert!(line("get_eos_ids").ends_with("2, 7"));
    for (key, want) in [
        ("metadata.empty", "no setting: no bytes, the first one is to tell the type"),
        ("metadata.odd", "no setting: its first byte is 0x09, types are 1 to 5"),
        ("metadata.short", "no setting: 2 bytes for an integer, 8 are right"),
        ("metadata.list", "no setting: 5 bytes for a list of integers, 34359738364 are right"),
        ("metadata.text", "no setting: text that is not UTF-8, from byte 1 on"),
        ("metadata.nan", "NaN"),
    ] {
        assert!(line(key).ends_with(want), "{section}");
    }
    assert!(line("metadata.long").chars().count() < 300);
    assert!(!text.contains(['\x1b', '\x07', '\u{202e}']), "{text}");

    let document: serde_json::Value = serde_json::from_str(&inspected(bytes, &["--json"])).unwrap();
    let entry = |key: &str| {
        let named = document["named_data"].as_array().unwrap();
        named.iter().find(|entry| entry["key"] == key).unwrap().clone()
    };
    assert_eq!(entry("metadata.long")["value"].as_str().unwrap().len(), 8000);
    assert_eq!(entry("metadata.nan")["value"], "NaN");
    assert_eq!(entry("metadata.nan")["type"], "float");
    assert!(entry("metadata.odd")["value"].is_null() && entry("metadata.odd")["unreadable"].is_string());
}

#[test]
fn many_names_of_one_long_setting_are_read_once_in_sum() {
    // 300 keys of one segment of 16 KiB: 4.7 MiB if each were read.
    let long = vec![b'a'; 16 << 10];
    let keys: Vec<String> = (0..300).map(|index| format!("metadata.k{index}")).collect();
    let named: Vec<(&str, &[u8])> = keys.iter().map(|key| (key.as_str(), &long[..])).collect();
    let bytes = program(&named);
    assert!(bytes.len() < 100_000);
    let document = inspected(bytes, &["--json"]);
    assert!(document.len() < 2 << 20, "{}", document.len());
    assert!(document.contains("are too many to show"));
}
