//! Compares what `inspect --json` says of a file with facts measured elsewhere: every key of the facts is in the
//! document, with the same value.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::io::{self, Write};
use std::path::Path;
use std::rc::Rc;

use edgepack_cli::Io;
use serde_json::Value;

use super::Answer;

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

/// Runs a command and returns its standard output and its standard error.
fn run(args: &[&OsStr]) -> (Vec<u8>, String) {
    let (stdout, stderr) = (Captured::default(), Captured::default());
    let io = Io {
        progress: false,
        stdin: Box::new(io::empty()),
        stdout: Box::new(stdout.clone()),
        stderr: Box::new(stderr.clone()),
        terminal: false,
        color: (false, false),
        helper: None,
        files: None,
    };
    let args = std::iter::once("edgepack".into()).chain(args.iter().map(|arg| arg.to_os_string()));
    edgepack_cli::run(args, io);
    let complaints = String::from_utf8_lossy(&stderr.0.borrow()).into_owned();
    (stdout.0.take(), complaints)
}

/// Standard output of a command, as text for people.
pub fn report(args: &[&OsStr]) -> String {
    String::from_utf8_lossy(&run(args).0).into_owned()
}

/// The document of a command.
pub fn document(args: &[&OsStr]) -> Result<Value, String> {
    let (text, complaints) = run(args);
    serde_json::from_slice(&text).map_err(|error| format!("{error}; it complains: {complaints}"))
}

/// Compares a file's document with its facts.
pub fn facts(path: &Path) -> Answer {
    let facts = super::json(&path.with_extension("facts.json"))?;
    let ours = document(&["inspect".as_ref(), "--json".as_ref(), path.as_os_str()])?;
    for key in ["packages", "tflite"] {
        if let Some(want) = facts.get(key) {
            // Of the model around it, facts count some things that are not a concern of a package.
            contains(key, &ours[key], want)?;
        }
    }
    Ok(())
}

/// Checks that all of `want` is in `have`.
fn contains(path: &str, have: &Value, want: &Value) -> Answer {
    match (have, want) {
        (Value::Object(have), Value::Object(want)) => {
            for (key, want) in want {
                let path = format!("{path}.{key}");
                contains(&path, have.get(key).ok_or(format!("{path} is missing"))?, want)?;
            }
            Ok(())
        }
        (Value::Array(have), Value::Array(want)) if have.len() == want.len() => {
            for (index, (have, want)) in have.iter().zip(want).enumerate() {
                contains(&format!("{path}[{index}]"), have, want)?;
            }
            Ok(())
        }
        (have, want) if have == want => Ok(()),
        (have, want) => Err(format!("{path}: {have}, wanted {want}")),
    }
}
