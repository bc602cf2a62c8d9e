//! Memory that weights of four bits take once a method is loaded and has run: at most a tenth more than in the file.
//!
//! Memory is known for a whole process only, so a process of its own opens, loads and runs the program.
#![cfg(target_os = "linux")]

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use edgepack_builder::pte::ProgramBuilder;
use edgepack_executor::{Method, Options};
use edgepack_format::tensor::TensorView;
use edgepack_loader::{FileSource, MappedFile, OpenOptions, Source};
use edgepack_tests::lowered::{Sizes, data, lengths, method, ones};

const SIZES: Sizes = [8192, 4096];
const FILE: &str = "EDGEPACK_RESIDENT_FILE";
const MAPPED: &str = "EDGEPACK_RESIDENT_MAPPED";
const NAME: &str = "four_bit_weights_are_resident_once";

/// Bytes in memory of this process that it made, or that mirror the program: not those of its own code, which comes into
/// memory as it runs.
fn resident(program: &Path) -> u64 {
    let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
    let (mut counts, mut bytes) = (false, 0);
    for line in maps.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["Rss:", count, "kB"] if counts => bytes += count.parse::<u64>().unwrap() * 1024,
            // Addresses, permissions, offset, device, inode, and what is mapped there.
            [_, _, _, _, "0", ..] => counts = true,
            [_, _, _, _, _, file] => counts = Path::new(file) == program,
            _ => {}
        }
    }
    bytes
}

/// Loads and runs, and says by how much memory has grown.
fn grown(path: &Path, mapped: bool) -> u64 {
    let source: Arc<dyn Source> = match mapped {
        // SAFETY: the file is in a folder of this test, which does not change it.
        true => Arc::new(unsafe { MappedFile::open(path).unwrap() }),
        false => Arc::new(FileSource::open(path).unwrap()),
    };
    let before = resident(path);
    let program = OpenOptions::default().open_source(source).unwrap();
    let options = Options { backends: edgepack::backends(), threads: Some(1), ..Options::default() };
    let mut method = Method::load(&program, "forward", &edgepack_kernels::registry(), &options).unwrap();
    let row = vec![1.0f32; SIZES[1]];
    let view = || TensorView::of::<f32>(&[1, SIZES[1]], bytemuck::cast_slice(&row)).unwrap();
    method.run(&[view()]).unwrap();
    let outputs = method.run(&[view()]).unwrap();
    let y: &[f32] = outputs.get(0).unwrap().tensor().unwrap().as_slice().unwrap();
    assert!((y[0] - 3.0 * SIZES[1] as f32).abs() < 1.0, "{}", y[0]);
    resident(path) - before
}

#[test]
fn four_bit_weights_are_resident_once() {
    if let Some(path) = std::env::var_os(FILE) {
        println!("\ngrown {}", grown(Path::new(&path), std::env::var_os(MAPPED).is_some()));
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("program.pte");
    let [weights, scales] = lengths(SIZES);
    let mut program = ProgramBuilder::new();
    method(&mut program.method("forward"), SIZES, 1);
    data(&mut program, vec![0xbb; weights], ones(SIZES));
    std::fs::write(&path, program.finish().unwrap().to_bytes().unwrap()).unwrap();
    for mapped in [true, false] {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", NAME, "--nocapture"]).env(FILE, &path).env_remove(MAPPED);
        if mapped {
            command.env(MAPPED, "1");
        }
        let output = command.output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let grown = text.lines().find_map(|line| line.strip_prefix("grown ")?.parse::<u64>().ok());
        let grown = grown.unwrap_or_else(|| panic!("{text}\n{}", String::from_utf8_lossy(&output.stderr)));
        let file = (weights + scales) as u64;
        println!("mapped {mapped}: {grown} bytes for {file} in the file, {:.3}", grown as f64 / file as f64);
        assert!(grown > file / 2 && grown * 10 <= file * 11, "mapped {mapped}: {grown} bytes for {file} in the file");
    }
}
