//! Files of four gigabytes, which no disk holds: their server makes them up. Of each only the head comes over.

use std::process::{Command, Stdio};

use edgepack::prelude::ProgramBuilder;
use edgepack_format::row::{Blob, Text};
use edgepack_format::tflite::{Buffer, Metadata, Model, Operator, OperatorCode, SubGraph, Tensor};

use super::server::{File, Server};

/// Length of the data in the files as they are built.
const SMALL: u64 = 1_234_568;

/// Length that it is made out to have.
const LARGE: u64 = 4_000_000_000;

/// A program with one segment of data of this length, and its data file.
fn built(external: bool) -> Vec<u8> {
    let mut program = ProgramBuilder::new();
    let data = vec![7; SMALL as usize];
    program.named_data("weights", data, 16, external.then_some("data")).unwrap();
    let finished = program.finish().unwrap();
    match external {
        false => finished.to_bytes().unwrap(),
        true => finished.data_files().next().expect("a data file").1.to_bytes().unwrap(),
    }
}

/// The head of a file whose data has another length.
fn stretched(mut bytes: Vec<u8>) -> File {
    let (small, large) = (SMALL.to_le_bytes(), LARGE.to_le_bytes());
    let head = bytes.len() - SMALL as usize;
    let places: Vec<usize> = (0..head - 8).filter(|at| bytes[*at..*at + 8] == small).collect();
    // The header and the row of the segment.
    assert_eq!(places.len(), 2);
    places.iter().for_each(|at| bytes[*at..*at + 8].copy_from_slice(&large));
    bytes.truncate(head);
    File::new(bytes, head as u64 + LARGE)
}

/// A model whose weights are behind its flatbuffer.
fn model() -> File {
    let buffer =
        |index: u64| Buffer { offset: 65_536 + index * (LARGE / 1000), size: LARGE / 1000, ..Buffer::default() };
    let mut buffers = vec![Buffer::default(), Buffer { data: Some(Blob(vec![1; 16].into())), ..Buffer::default() }];
    buffers.extend((0..1000).map(buffer));
    let tensor = |index: u32| Tensor { buffer: index + 2, name: Some(Text::from("weight")), ..Tensor::default() };
    let graph = SubGraph {
        tensors: Some((0..1000).map(tensor).collect::<Vec<_>>().into()),
        operators: Some(vec![Operator::default()].into()),
        ..SubGraph::default()
    };
    let model = Model {
        version: 3,
        operator_codes: Some(vec![OperatorCode::default()].into()),
        subgraphs: Some(vec![graph].into()),
        description: Some(Text::from("a large model")),
        buffers: Some(buffers.into()),
        metadata: Some(vec![Metadata { name: Some(Text::from("min_runtime_version")), buffer: 1 }].into()),
        ..Model::default()
    };
    let bytes = edgepack::builder::tflite::model(&model).unwrap();
    let file = File::new(bytes, 65_536 + LARGE);
    assert!(file.pieces[0].1.len() < 65_536);
    file
}

/// Runs the command on a file of a server: what it printed, and the bytes that the server sent.
fn asked(file: File, args: &[&str]) -> (String, u64) {
    let server = Server::of(file);
    let mut command = Command::new(env!("CARGO_BIN_EXE_edgepack"));
    command.args(args).arg(server.url("model")).arg("--loopback-http").stdin(Stdio::null());
    let output = command.output().expect("the command");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    // Findings are fine: a program without methods has some.
    assert!(output.status.code().is_some_and(|code| code < 2), "{args:?}: {said}");
    (String::from_utf8(output.stdout).unwrap().replace(&server.url("model"), "FILE"), server.sent())
}

#[test]
fn heads_alone_come_of_large_files() {
    for (what, file, shown) in [
        ("program", stretched(built(false)), "weights"),
        ("data file", stretched(built(true)), "weights"),
        ("model", model(), "a large model"),
    ] {
        for command in ["inspect", "verify", "size"] {
            let (out, sent) = asked(file.clone(), &[command]);
            assert!(out.contains("FILE") && (command != "inspect" || out.contains(shown)), "{what}: {out}");
            assert!(sent < 1_000_000, "{command} of a {what}: {sent} bytes");
        }
        let (_, sent) = asked(file.clone(), &["inspect", "--all", "--json"]);
        assert!(sent < 1_000_000, "inspect of a {what}: {sent} bytes");
    }
    for (file, command) in [(stretched(built(false)), "ops"), (stretched(built(true)), "list")] {
        let (_, sent) = asked(file, &[command]);
        assert!(sent < 1_000_000, "{command}: {sent} bytes");
    }
}

/// The answer about a model is the one about the same model on this machine, where all of it can be read.
#[test]
fn a_model_without_its_weights_is_shown_as_with_them() {
    let mut file = model();
    file.len = 700_000;
    let folder = std::env::temp_dir().join(format!("edgepack-remote-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("model");
    std::fs::write(&path, file.bytes(0..file.len)).unwrap();
    for args in [&["inspect", "--json"][..], &["size", "--json"], &["verify", "--json"], &["inspect", "--all"]] {
        let (elsewhere, _) = asked(file.clone(), args);
        let here = Command::new(env!("CARGO_BIN_EXE_edgepack")).args(args).arg(&path).output().unwrap();
        let here = String::from_utf8(here.stdout).unwrap();
        assert!(elsewhere == here.replace(&path.display().to_string(), "FILE"), "{args:?}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
