//! Times of a method.

use edgepack_compute::threads;
use edgepack_executor::{Input, Method};
use edgepack_format::limits::Limits;
use web_time::Instant;

use super::inputs::{inputs as recorded, wanted};
use super::open::{Opened, method, options};
use crate::formats::measured::{Measured, Memory, Steady};
use crate::formats::roofline::Roofline;
use crate::formats::{Execution, Measurement};
use crate::inputs::{self, fill::Fill};
use crate::options::Inputs;
use crate::profile::Watch;
use crate::session::Session;
use crate::status::Failure;
use crate::units::count;
use crate::value::Value;

/// Runs that are watched; the best time of each instruction counts.
const WATCHED: usize = 20;

/// Measures a method of the program that `open` opens: for some time, and with the second every instruction. Without inputs
/// they are arbitrary.
pub fn bench(
    open: &dyn Fn(&Limits) -> Result<Opened, Failure>,
    file: &str,
    asked: Option<&str>,
    given: &Inputs,
    Measurement { time, roofline }: Measurement,
    how: Execution<'_>,
    session: &mut Session,
) -> Result<Measured, Failure> {
    if roofline && cfg!(target_family = "wasm") {
        return Err(Failure::usage("--roofline times this machine with a clock that WebAssembly lacks"));
    }
    let start = Instant::now();
    let opened = open(&session.limits)?.program;
    let open = start.elapsed();
    let name = method(&opened, asked)?;
    let meta = opened.method_meta(&name)?;
    // Without a word about inputs all of them are arbitrary.
    let fill = given.fill().or(given.inputs.is_empty().then_some(Fill::Floats));
    let read = inputs::read(given, fill, Some(&name), &wanted(&meta), session)?;
    let values = recorded(&meta, &read).map_err(Failure::usage)?;
    let inputs: Vec<Input<'_>> = values.iter().filter_map(Value::input).collect();
    let options = options(how, session)?;
    let registry = edgepack_kernels::registry();
    let loading = session.progress.work("loading the method");
    let start = Instant::now();
    let mut method = Method::load(&opened, &name, &registry, &options)?;
    let load = start.elapsed();
    drop(loading);
    let _measuring = session.progress.work("measuring");
    let mut once = || {
        let start = Instant::now();
        method.run(&inputs)?;
        Ok(start.elapsed())
    };
    let first_run = once()?;
    let steady = Steady::measure(time, once)?;
    let roofline = match roofline {
        true => {
            let run = |watch: &mut Watch<'_>| Ok(method.run_observed(&inputs, Some(watch)).map(drop)?);
            let observation = Watch::passes(WATCHED, None, run)?;
            Some(Roofline::of(observation, how.threads.map_or_else(threads::current, usize::from)))
        }
        false => None,
    };
    Ok(Measured {
        file: file.to_owned(),
        method: name,
        threads: how.threads,
        open,
        load,
        first_run,
        steady,
        memory: Memory::of(method.memory_bytes()),
        roofline,
        work: count(meta.instructions, "instruction"),
    })
}
