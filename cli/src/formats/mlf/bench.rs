//! Times of a module: opening, compiling or finding the code, and runs.

use std::time::Duration;

use edgepack_executor::MemoryBytes;
use web_time::Instant;

use super::inputs::read_inputs;
use super::library::{label, module, open};
use crate::file::File;
use crate::formats::Execution;
use crate::formats::measured::{Measured, Memory, Steady};
use crate::inputs::fill::Fill;
use crate::options::Inputs;
use crate::session::Session;
use crate::status::Failure;
use crate::units::count;

/// Measures a module. Without inputs they are zeros.
pub fn bench(
    file: &File,
    asked: Option<&str>,
    given: &Inputs,
    time: Duration,
    how: Execution<'_>,
    session: &mut Session,
) -> Result<Measured, Failure> {
    let start = Instant::now();
    let module = module(file, asked.or(how.native.module.as_deref()), &session.limits)?;
    let opened = start.elapsed();
    let start = Instant::now();
    let mut runner = open(&module, how.native, session).map_err(|failure| failure.about(&file.name))?;
    let load = start.elapsed();
    let fill = given.fill().or(given.inputs.is_empty().then_some(Fill::Zeros));
    let inputs = read_inputs(given, fill, &runner, session)?;
    let _measuring = session.progress.work("measuring");
    let mut once = || {
        let start = Instant::now();
        runner.run(&inputs, &[]).map_err(Failure::cannot_run)?;
        Ok(start.elapsed())
    };
    let first_run = once()?;
    let steady = Steady::measure(time, once)?;
    let (calls, storage) = (runner.call_count(), runner.memory_bytes());
    Ok(Measured {
        file: file.name.clone(),
        method: label(&module, how.native),
        threads: None,
        open: opened,
        load,
        first_run,
        steady,
        memory: Memory::of(MemoryBytes { planned: storage, ..MemoryBytes::default() }),
        roofline: None,
        work: count(calls, "call"),
    })
}
