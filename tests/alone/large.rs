//! Commands on a file that is larger than the memory they may take: bytes of segments stream, and of a mapped file no more
//! than a piece is in memory.
//!
//! Peaks are known for a whole process only, so each command runs in a process of its own.
#![cfg(target_os = "linux")]

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;

use edgepack_builder::args;
use edgepack_builder::content::Data;
use edgepack_builder::pte::{ProgramBuilder, TensorSpec};
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::TensorLayout;
use edgepack_tests::command::{edgepack, split};

const LINE: &str = "EDGEPACK_LARGE_COMMAND";
const NAME: &str = "commands_take_little_memory_for_large_files";
/// Rows of four numbers: 48 MiB.
const ROWS: usize = 3 << 20;
/// The most that a command may take on top of what its process has.
const MOST: u64 = 20 << 20;

/// A number of `/proc/self/status`, in bytes.
fn status(name: &str) -> u64 {
    let text = fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).unwrap();
    line.split_whitespace().next().unwrap().parse::<u64>().unwrap() * 1024
}

/// Runs a command and says by how much its peak is above what was there before.
fn run(line: &str) {
    let words = split(line);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    // What the code of the process takes is in memory once it has run.
    assert_eq!(edgepack(&["help"], Vec::new(), false).status, 0);
    fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = status("VmRSS");
    let ran = edgepack(&words, Vec::new(), false);
    println!("\ngrown {} status {} {}", status("VmHWM").saturating_sub(before), ran.status, ran.stderr.trim());
}

/// A program that looks up rows of a table of zeros.
fn program(path: &Path) {
    let mut program = ProgramBuilder::new();
    let layout = TensorLayout::contiguous(ScalarType::FLOAT, &[ROWS, 4]);
    let table = program.constant_from("table", layout.unwrap(), Data::zeros(ROWS as u64 * 16)).unwrap();
    let mut forward = program.method("forward");
    let rows = forward.input(TensorSpec::new(ScalarType::LONG, [2])).unwrap();
    let found = TensorSpec::new(ScalarType::FLOAT, [2, 4]);
    let found = forward.call("aten::embedding.out", args![table, rows, 0i64, false, false], found).unwrap();
    forward.output(found).unwrap();
    program.finish().unwrap().write_to_path(path).unwrap();
}

#[test]
fn commands_take_little_memory_for_large_files() {
    if let Ok(line) = std::env::var(LINE) {
        return run(&line);
    }
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    program(&file("a.pte"));
    fs::copy(file("a.pte"), file("b.pte")).unwrap();
    OpenOptions::new().write(true).open(file("b.pte")).unwrap().write_all_at(&[1], 40 << 20).unwrap();
    let lines = [
        ("dump TMP/a.pte --layout -o TMP/a.json", 0, ""),
        ("build TMP/a.json -o TMP/again.pte", 0, ""),
        ("dump TMP/b.pte --data-dir TMP/b -o TMP/b.json", 0, ""),
        ("build TMP/b.json --data-dir TMP/b -o /dev/null", 0, ""),
        ("print TMP/a.pte -o /dev/null", 0, ""),
        ("print TMP/a.pte -o TMP/a.txt", 0, ""),
        ("diff TMP/a.pte TMP/again.pte --exact", 0, ""),
        ("diff TMP/a.pte TMP/b.pte", 1, ""),
        ("run TMP/a.pte --inputs TMP/in.npy", 0, ""),
        ("diff TMP/a.pte TMP/b.pte --no-map", 1, ""),
        ("dump TMP/a.pte -o /dev/null --no-map", 0, ""),
    ];
    // The numbers 3 and 5 as a NumPy array.
    let mut array = b"\x93NUMPY\x01\x00\x76\x00{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }".to_vec();
    array.resize(127, b' ');
    array.push(b'\n');
    array.extend([3i64, 5].iter().flat_map(|number| number.to_le_bytes()));
    fs::write(file("in.npy"), array).unwrap();
    for (line, status, complaint) in lines {
        let line = line.replace("TMP", &folder.path().display().to_string());
        let mut command = Command::new(std::env::current_exe().unwrap());
        let output = command.args(["--exact", NAME, "--nocapture"]).env(LINE, &line).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let said = text.lines().find_map(|line| line.strip_prefix("grown "));
        let said = said.unwrap_or_else(|| panic!("{line}: {text}\n{}", String::from_utf8_lossy(&output.stderr)));
        let (grown, rest) = said.split_once(" status ").unwrap();
        assert_eq!(rest.trim(), format!("{status} {complaint}").trim(), "{line}");
        let grown: u64 = grown.parse().unwrap();
        println!("{grown} bytes: {line}");
        assert!(grown <= MOST, "{grown} bytes: {line}");
    }
    assert!(fs::read(file("a.pte")).unwrap() == fs::read(file("again.pte")).unwrap());
}
