//! The reference, or another engine, as a child process that takes its turns like any other lane.
//!
//! `EDGEPACK_BENCH_MODELS` names its folder of models and `EDGEPACK_REFERENCE_PYTHON` a Python that has `executorch`
//! installed; the child is `reference.py`, which answers requests such as `load NAME` with a number, nanoseconds mostly,
//! or says why not.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use crate::programs;

/// The child process.
pub struct Reference {
    child: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Reference {
    /// A child with so many threads, or why there is none.
    pub fn start(threads: usize) -> Result<Self, String> {
        let dir = programs::models_dir().ok_or("EDGEPACK_BENCH_MODELS names no folder")?;
        Self::start_in(&dir, threads)
    }

    /// A child with so many threads and the models of a folder, or why there is none.
    pub fn start_in(dir: &Path, threads: usize) -> Result<Self, String> {
        let python = std::env::var_os("EDGEPACK_REFERENCE_PYTHON");
        let mut command = Command::new(python.ok_or("EDGEPACK_REFERENCE_PYTHON names no Python")?);
        command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/reference.py")).arg(dir).arg(threads.to_string());
        Self::spawn(&mut command).map_err(|error| format!("the reference does not start: {error}"))
    }

    /// Another engine that answers in the same way, with so many threads: `program` is what `bench/peers` is built to.
    pub fn start_engine(program: &Path, engine: &str, threads: usize) -> Result<Self, String> {
        let dir = programs::models_dir().ok_or("EDGEPACK_BENCH_MODELS names no folder")?;
        let mut command = Command::new(program);
        command.arg(engine).arg(dir).arg(threads.to_string());
        Self::spawn(&mut command).map_err(|error| format!("{engine} does not start: {error}"))
    }

    fn spawn(command: &mut Command) -> std::io::Result<Self> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let (Some(requests), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(std::io::ErrorKind::BrokenPipe.into());
        };
        let mut reference = Reference { child, requests, answers: BufReader::new(answers) };
        let mut ready = String::new();
        reference.answers.read_line(&mut ready)?;
        match ready.trim() {
            "ready" => Ok(reference),
            _ => Err(std::io::Error::other("it did not say that it is ready")),
        }
    }

    /// Time that the child says the request took.
    pub fn ask(&mut self, request: &str) -> Duration {
        Duration::from_nanos(self.answer(request).expect("a number of nanoseconds"))
    }

    /// The number that the child answers, or its reason for not doing what it was asked to.
    pub fn answer(&mut self, request: &str) -> Result<u64, String> {
        let mut answer = String::new();
        let asked = writeln!(self.requests, "{request}").and_then(|()| self.requests.flush());
        asked.and_then(|()| self.answers.read_line(&mut answer)).expect("the reference is alive");
        answer.trim().parse().map_err(|_| answer.trim().to_owned())
    }
}

impl Drop for Reference {
    fn drop(&mut self) {
        // The child ends by itself when its input does; nothing can be done about a child that cannot be ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
