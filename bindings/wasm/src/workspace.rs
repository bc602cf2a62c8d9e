//! Files under names, and the command over them.

use std::cell::RefCell;
use std::ffi::OsString;
use std::io::{self, Write};
use std::rc::Rc;
use std::sync::Arc;

use edgepack::format::ptd::Accept;
use edgepack::loader::{DataFile, MemorySource, NamedDataMap, Source, machine_limits};
use edgepack_cli::{Io, MemoryFiles};
use js_sys::Uint8Array;
use wasm_bindgen::prelude::*;

use crate::failure::{unreadable, usage};
use crate::method::LoadedMethod;
use crate::room::Room;

/// Files in memory. Nothing else is ever read or written.
#[wasm_bindgen]
#[derive(Default)]
pub struct Workspace {
    files: MemoryFiles,
}

/// Output of a command, and its exit status.
#[wasm_bindgen]
pub struct Answer {
    status: u8,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

#[wasm_bindgen]
impl Answer {
    /// Exit status, 0 to 4, as `edgepack --help` states them.
    #[wasm_bindgen(getter)]
    pub fn status(&self) -> u8 {
        self.status
    }

    /// Standard output. It is given away: a second time there is none.
    #[wasm_bindgen(js_name = takeOutput)]
    pub fn take_output(&mut self) -> Uint8Array {
        Uint8Array::from(&*std::mem::take(&mut self.stdout))
    }

    /// Standard output as text. It is given away: a second time there is none.
    #[wasm_bindgen(js_name = takeText)]
    pub fn take_text(&mut self) -> String {
        text(std::mem::take(&mut self.stdout))
    }

    /// Standard error as text.
    #[wasm_bindgen(js_name = takeErrors)]
    pub fn take_errors(&mut self) -> String {
        text(std::mem::take(&mut self.stderr))
    }
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// A stream that is kept.
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

#[wasm_bindgen]
impl Workspace {
    /// Without files.
    #[wasm_bindgen(constructor)]
    pub fn new() -> Workspace {
        Workspace::default()
    }

    /// Puts a file under a name, in the place of another one of that name.
    pub fn put(&self, name: &str, room: Room) {
        self.files.insert(name, Arc::new(MemorySource::new(room.into_bytes())));
    }

    /// Removes a file; returns whether there was one of that name.
    pub fn remove(&self, name: &str) -> bool {
        self.files.remove(name).is_some()
    }

    /// Returns a copy of a file, such as one that a command wrote.
    pub fn get(&self, name: &str) -> Result<Uint8Array, JsValue> {
        let source = self.source(name)?;
        let whole = source.borrow(0..source.len());
        whole.map(Uint8Array::from).ok_or_else(|| unreadable(format!("{name}: the bytes are not in memory")))
    }

    /// Runs the command with these arguments, which name files of this workspace.
    pub fn command(&self, arguments: Vec<String>) -> Answer {
        let (stdout, stderr) = (Captured::default(), Captured::default());
        let io = Io {
            stdin: Box::new(io::empty()),
            stdout: Box::new(stdout.clone()),
            stderr: Box::new(stderr.clone()),
            terminal: false,
            progress: false,
            color: (false, false),
            helper: None,
            files: Some(self.files.clone()),
        };
        let arguments = std::iter::once("edgepack".to_owned()).chain(arguments).map(OsString::from);
        let status = edgepack_cli::run(arguments, io).code();
        Answer { status, stdout: stdout.0.take(), stderr: stderr.0.take() }
    }

    /// Loads a method of a program, or of the program in a bundle or package: the one of this name, the only one, or
    /// `forward`. `data` names the program's data files.
    pub fn load(&self, name: &str, method: Option<String>, data: Vec<String>) -> Result<LoadedMethod, JsValue> {
        let data = data.iter().map(|name| self.data(name)).collect::<Result<Vec<_>, _>>()?;
        LoadedMethod::load(self.source(name)?, name, method, data)
    }
}

impl Workspace {
    fn source(&self, name: &str) -> Result<Arc<dyn Source>, JsValue> {
        self.files.get(name).ok_or_else(|| usage(format!("{name}: there is no file of this name")))
    }

    fn data(&self, name: &str) -> Result<Arc<dyn NamedDataMap>, JsValue> {
        let source = self.source(name)?;
        let about = |error| unreadable(format!("{name}: {error}"));
        Ok(Arc::new(DataFile::from_source(source, machine_limits(), Accept::ALL).map_err(about)?))
    }
}
