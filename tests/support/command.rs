//! The command in this process: what goes in, what comes out.

use std::cell::RefCell;
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use edgepack_cli::{Io, Status};
use edgepack_format::payload::Payloads;

/// A stream whose content can be read while the command owns it.
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

impl Captured {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.borrow()).into_owned()
    }
}

/// Result of a command: its output, its complaints, its status.
pub struct Ran {
    /// Bytes written to standard output.
    pub stdout: Vec<u8>,
    /// Text written to standard error.
    pub stderr: String,
    /// Exit status.
    pub status: u8,
}

/// Runs `edgepack` with these arguments inside this process.
pub fn edgepack(args: &[&str], stdin: Vec<u8>, terminal: bool) -> Ran {
    ran(stdin, terminal, |io| edgepack_cli::run(words(args), io))
}

/// Runs `edgepack` with these arguments and decoders of payloads inside this process.
pub fn edgepack_with(payloads: Payloads, args: &[&str]) -> Ran {
    ran(Vec::new(), false, |io| edgepack_cli::run_with(words(args), io, payloads))
}

/// Takes a command line apart at its spaces; what stands between double quotes is in one word.
pub fn split(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted) = (Vec::new(), None, false);
    for c in line.chars() {
        match c {
            '"' => {
                quoted = !quoted;
                word.get_or_insert_with(String::new);
            }
            c if c.is_whitespace() && !quoted => words.extend(word.take()),
            c => word.get_or_insert_with(String::new).push(c),
        }
    }
    words.extend(word);
    words
}

fn words(args: &[&str]) -> Vec<OsString> {
    ["edgepack"].iter().chain(args).map(OsString::from).collect()
}

fn ran(stdin: Vec<u8>, terminal: bool, run: impl FnOnce(Io) -> Status) -> Ran {
    let (stdout, stderr) = (Captured::default(), Captured::default());
    let io = Io {
        progress: false,
        stdin: Box::new(io::Cursor::new(stdin)) as Box<dyn Read>,
        stdout: Box::new(stdout.clone()),
        stderr: Box::new(stderr.clone()),
        terminal,
        color: (false, false),
        helper: None,
        files: None,
    };
    let status = run(io).code();
    let stdout = stdout.0.borrow().clone();
    Ran { stdout, stderr: stderr.text(), status }
}

/// An empty folder that is gone when the test is over.
pub struct Folder(PathBuf);

impl Folder {
    /// Makes a folder for the test of this name.
    pub fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("edgepack-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a temporary folder");
        Folder(path)
    }

    /// Returns where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Remains of the folder do no harm.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
