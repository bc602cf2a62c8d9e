//! A program inside a page or a server that runs WebAssembly: bytes go in and come out through a handful of exports,
//! nothing of the host is imported.
//!
//! Elsewhere the same code is an ordinary command, `wasm MODEL < inputs > outputs`; `run.mjs` compares what the two
//! compute.

use std::io::{Read, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

use edgepack::prelude::*;

type Error = Box<dyn std::error::Error + Send + Sync>;

/// A method of one input, and what passes between it and the host.
struct Session {
    /// Written by the host before a call, read by it after.
    bytes: Vec<u8>,
    layout: Option<TensorLayout>,
    method: Option<Method>,
}

static SESSION: Mutex<Session> = Mutex::new(Session { bytes: Vec::new(), layout: None, method: None });

fn session() -> MutexGuard<'static, Session> {
    SESSION.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Session {
    fn load(&mut self) -> Result<Vec<u8>, Error> {
        let program = Program::from_bytes(std::mem::take(&mut self.bytes))?;
        let forward = program.method("forward")?;
        let meta = forward.meta()?;
        let [input] = &meta.inputs[..] else { return Err("a program of one input".into()) };
        self.layout = Some(input.tensor().ok_or("the input is not a tensor")?.layout.clone());
        // Asked for more threads than there are: where none can be started, the caller's does the work.
        self.method = Some(forward.load(&kernels::registry(), &Options { threads: Some(2), ..Options::default() })?);
        Ok(Vec::new())
    }

    fn run(&mut self) -> Result<Vec<u8>, Error> {
        let (Some(method), Some(layout)) = (&mut self.method, &self.layout) else {
            return Err("nothing loaded".into());
        };
        let outputs = method.run(&[TensorView::new(layout.clone(), &self.bytes)?])?;
        let output = outputs.get(0).and_then(|output| output.tensor()).ok_or("the output is not a tensor")?;
        Ok(output.as_slice::<f32>()?.iter().flat_map(|value| value.to_le_bytes()).collect())
    }
}

#[cfg(target_family = "wasm")]
mod exports {
    use edgepack::builder::write_file;
    use edgepack::prelude::*;

    use super::{Error, Session, session};

    /// Makes room for so many bytes, and says where: the host writes a program there before `load`, an input before `run`.
    #[unsafe(no_mangle)]
    extern "C" fn room(len: usize) -> *mut u8 {
        let mut session = session();
        session.bytes = vec![0; len];
        session.bytes.as_mut_ptr()
    }

    /// Opens the program, loads `forward`; negative if that failed, and then the length of the message.
    #[unsafe(no_mangle)]
    extern "C" fn load() -> isize {
        answered(Session::load)
    }

    /// Runs it, and says how long the output is; negative if that failed, and then the length of the message.
    #[unsafe(no_mangle)]
    extern "C" fn run() -> isize {
        answered(Session::run)
    }

    /// Returns the address of the last call's answer: an output, or an error message.
    #[unsafe(no_mangle)]
    extern "C" fn answer() -> *const u8 {
        session().bytes.as_ptr()
    }

    /// Answers with the errors of opening and writing files on a platform without files.
    #[unsafe(no_mangle)]
    extern "C" fn files() -> isize {
        answered(|_| {
            let read = Program::open("model.pte").err().map(|error| error.to_string());
            let write = write_file::replace("model.pte", |out| out.write_all(b"")).err().map(|error| error.to_string());
            Ok(format!("{}; {}", read.ok_or("opened")?, write.ok_or("written")?).into_bytes())
        })
    }

    fn answered(call: impl FnOnce(&mut Session) -> Result<Vec<u8>, Error>) -> isize {
        let mut session = session();
        let (bytes, sign) = match call(&mut session) {
            Ok(bytes) => (bytes, 1),
            Err(error) => (error.to_string().into_bytes(), -1),
        };
        session.bytes = bytes;
        session.bytes.len() as isize * sign
    }
}

/// Inputs one after the other from standard input, outputs to standard output. It is not called in WebAssembly.
fn main() -> Result<(), Error> {
    let Some(model) = std::env::args_os().nth(1) else { return Err("wasm MODEL < inputs > outputs".into()) };
    let mut session = session();
    session.bytes = std::fs::read(model)?;
    session.load()?;
    let len = session.layout.as_ref().map_or(0, |layout| layout.byte_len());
    let mut inputs = Vec::new();
    std::io::stdin().read_to_end(&mut inputs)?;
    for input in inputs.chunks_exact(len) {
        session.bytes = input.to_vec();
        let output = session.run()?;
        std::io::stdout().write_all(&output)?;
    }
    Ok(())
}
