//! Files in memory stand in for those of the system: nothing else is opened, and outputs are among them.

use std::cell::RefCell;
use std::ffi::OsString;
use std::io::{self, Write};
use std::rc::Rc;
use std::sync::Arc;

use edgepack_cli::{Io, MemoryFiles};
use edgepack_loader::MemorySource;

use super::*;

#[derive(Clone, Default)]
struct Captured(Rc<RefCell<Vec<u8>>>);

impl Write for Captured {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Runs the command on files in memory: its status, and what it said.
fn asked(files: &MemoryFiles, args: &[&str]) -> (u8, String) {
    let said = Captured::default();
    let io = Io {
        stdin: Box::new(io::empty()),
        stdout: Box::new(said.clone()),
        stderr: Box::new(said.clone()),
        terminal: false,
        progress: false,
        color: (false, false),
        helper: None,
        files: Some(files.clone()),
    };
    let status = edgepack_cli::run(["edgepack"].iter().chain(args).map(OsString::from), io).code();
    let said = String::from_utf8(said.0.take()).expect("text");
    (status, said)
}

fn model(name: &str) -> Arc<MemorySource> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/corpus/models").join(name);
    Arc::new(MemorySource::new(fs::read(path).expect("a model")))
}

#[test]
fn commands_read_and_write_files_in_memory() {
    let files = MemoryFiles::default();
    files.insert("m.pte", model("mlp_portable.pte"));
    files.insert("cases", model("mlp_portable.safetensors"));
    for args in
        [&["inspect", "m.pte"][..], &["verify", "m.pte"], &["check", "m.pte", "cases"], &["view", "m.pte", "--json"]]
    {
        let (status, said) = asked(&files, args);
        assert_eq!(status, 0, "{args:?}: {said}");
    }
    let split = asked(&files, &["split", "m.pte", "-o", "small.pte", "--data-out", "data.ptd"]);
    assert_eq!(split.0, 0, "{}", split.1);
    let joined = asked(&files, &["join", "small.pte", "--data", "data.ptd", "-o", "again.pte"]);
    assert_eq!(joined.0, 0, "{}", joined.1);
    assert_eq!(asked(&files, &["diff", "m.pte", "again.pte"]).0, 0);
}

#[test]
fn nothing_is_opened_that_is_not_in_memory() {
    let files = MemoryFiles::default();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/corpus/models/mlp_portable.pte");
    for args in [["inspect"], ["verify"], ["run"], ["size"]] {
        let (status, said) = asked(&files, &[args[0], path.to_str().expect("a path")]);
        assert_eq!(status, 3, "{args:?}: {said}");
        assert!(said.contains("there is no file of this name in memory"), "{said}");
    }
}

#[test]
fn files_in_memory_are_replaced_by_force_alone() {
    let files = MemoryFiles::default();
    files.insert("m.pte", model("mlp_portable.pte"));
    let patch = ["patch", "m.pte", "--set", "metadata.x=1", "-o", "m.pte"];
    let (status, said) = asked(&files, &patch);
    assert_eq!(status, 2, "{said}");
    assert!(said.contains("there is a file of this name; --force writes it all the same"), "{said}");
    assert_eq!(asked(&files, &[&patch[..], &["--force"]].concat()).0, 0);
    assert!(asked(&files, &["inspect", "m.pte"]).1.contains("metadata.x"));
    assert!(files.remove("m.pte").is_some() && files.get("m.pte").is_none());
}
