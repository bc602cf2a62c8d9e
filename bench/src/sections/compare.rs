//! The reference runtime beside this one, in one run: a child process takes its turns like any other lane.
//!
//! `EDGEPACK_REFERENCE_PYTHON` names a Python that has `executorch` installed; the child is `reference.py`, which
//! answers `load NAME` and `run NAME` with nanoseconds.

use std::cell::RefCell;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use edgepack_executor::{Method, Options};
use edgepack_kernels::registry;
use edgepack_loader::Program;

use super::models::MODELS;
use super::{BUDGET, Inputs, run_once};
use crate::clock::{Race, timed};
use crate::programs;

pub fn run() {
    let Some(dir) = programs::models_dir() else {
        return println!("\ncompare: EDGEPACK_BENCH_MODELS names no folder, nothing is measured");
    };
    let Some(python) = std::env::var_os("EDGEPACK_REFERENCE_PYTHON") else {
        return println!("\ncompare: EDGEPACK_REFERENCE_PYTHON names no Python, nothing is measured");
    };
    for threads in [1, 2] {
        let mut command = Command::new(&python);
        command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/reference.py")).arg(&dir).arg(threads.to_string());
        match Reference::start(&mut command) {
            Ok(reference) => compare(&RefCell::new(reference), threads),
            Err(error) => return println!("\ncompare: the reference does not start: {error}"),
        }
    }
}

fn compare(reference: &RefCell<Reference>, threads: usize) {
    let kernels = registry();
    let options = Options { threads: Some(threads), ..Options::default() };
    for name in MODELS.iter().chain(&["deep"]) {
        let Some(sample) = programs::model(name) else { continue };
        let load = || {
            let program = Program::from_bytes(sample.bytes.clone()).expect("a valid program");
            Method::load(&program, "forward", &kernels, &options)
        };
        let mut method = match load() {
            Ok(method) => method,
            Err(error) => {
                println!("\n{name} does not load: {error}");
                continue;
            }
        };
        let lowered = format!("{name}_xnn");
        let has_lowered = programs::model(&lowered).is_some();
        let ask = |request: String| move || reference.borrow_mut().ask(&request);

        let mut race = Race::new(format!("{name}, load, {threads} threads"));
        race.lane("edgepack", 1000, || timed(load));
        race.lane("reference", 1000, ask(format!("load {name}")));
        if has_lowered {
            race.lane("reference, XNNPACK", 1000, ask(format!("load {lowered}")));
        }
        race.print("us", BUDGET);

        let inputs = Inputs::of(method.program());
        let inputs = inputs.views();
        let mut race = Race::new(format!("{name}, run, {threads} threads"));
        race.lane("edgepack", 1000, || timed(|| run_once(&mut method, &inputs)));
        race.lane("reference", 1000, ask(format!("run {name}")));
        if has_lowered {
            race.lane("reference, XNNPACK", 1000, ask(format!("run {lowered}")));
        }
        race.print("us", BUDGET);
    }
}

/// The child process.
struct Reference {
    child: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Reference {
    fn start(command: &mut Command) -> std::io::Result<Self> {
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

    fn ask(&mut self, request: &str) -> Duration {
        let mut answer = String::new();
        let asked = writeln!(self.requests, "{request}").and_then(|()| self.requests.flush());
        asked.and_then(|()| self.answers.read_line(&mut answer)).expect("the reference is alive");
        Duration::from_nanos(answer.trim().parse().expect("a number of nanoseconds"))
    }
}

impl Drop for Reference {
    fn drop(&mut self) {
        // It ends by itself when its input does; nothing can be done about a child that cannot be ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
