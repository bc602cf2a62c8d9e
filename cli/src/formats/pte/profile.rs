//! Profile of a method: watched runs, and what the file says about its instructions.

use edgepack_executor::{Input, Method};
use edgepack_format::pte::{Chain, ExecutionPlan, Frame};
use edgepack_loader::Program;
use std::collections::HashMap;
use web_time::Instant;

use super::handles::node_handles;
use super::inputs::{inputs as recorded, wanted};
use super::open::{method, options};
use crate::formats::{Execution, Watching};
use crate::inputs::{self, fill::Fill};
use crate::options::Inputs;
use crate::profile::{ExportRecord, MemoryUse, NameRoom, Origins, Overhead, Profile, Watch, nanos};
use crate::readable;
use crate::session::Session;
use crate::spelling::short;
use crate::status::Failure;
use crate::value::Value;

/// Runs before those that are watched: weights are packed, caches are warm.
const BEFORE: usize = 2;
/// Frames of a stack trace that are shown, innermost ones first to go.
const FRAMES: usize = 32;

/// Watches runs of a method. Without inputs they are arbitrary.
pub fn profile(
    program: &Program,
    file: &str,
    asked: Option<&str>,
    given: &Inputs,
    watching: Watching<'_>,
    how: Execution<'_>,
    session: &mut Session,
) -> Result<Profile, Failure> {
    let name = method(program, asked)?;
    let origins = origins(program, &name, watching, session)?;
    let meta = program.method_meta(&name)?;
    let fill = given.fill().or(given.inputs.is_empty().then_some(Fill::Floats));
    let read = inputs::read(given, fill, Some(&name), &wanted(&meta), session)?;
    let values = recorded(&meta, &read).map_err(Failure::usage)?;
    let inputs: Vec<Input<'_>> = values.iter().filter_map(Value::input).collect();
    let registry = edgepack_kernels::registry();
    let options = options(how, session)?;
    let start = Instant::now();
    let _watching = session.progress.work("loading and watching");
    let mut loaded = Method::load(program, &name, &registry, &options)?;
    let mut recorder = how.recorder.map(|recorder| recorder.borrow_mut());
    if let Some(recorder) = &mut recorder {
        recorder.loaded(start);
    }
    for _ in 0..BEFORE {
        loaded.run(&inputs)?;
    }
    let (mut unwatched, mut watched) = (Vec::new(), Vec::new());
    let observation = Watch::passes(watching.passes, recorder.as_deref_mut(), |watch| {
        let counts = watch.counts();
        let start = Instant::now();
        loaded.run(&inputs)?;
        let between = Instant::now();
        loaded.run_observed(&inputs, Some(watch))?;
        if counts {
            unwatched.push(nanos(between.duration_since(start)));
            watched.push(nanos(between.elapsed()));
        }
        Ok(())
    })?;
    let mut profile = Profile::of(file, Some(&name), &observation, &origins);
    profile.overhead = Some(Overhead::of(unwatched, watched));
    profile.threads = how.threads;
    profile.memory = Some(MemoryUse::of(&loaded.lifetimes(), loaded.memory_bytes()));
    if let Some(recorder) = recorder.as_deref_mut().filter(|_| watching.values) {
        // What an instruction wrote is found where the file has the instruction.
        let options = edgepack_executor::Options { no_optimize: true, ..options };
        let mut plain = Method::load(program, &name, &registry, &options)?;
        recorder.record_values(true);
        let outputs = plain.run_observed(&inputs, Some(&mut *recorder))?;
        recorder.outputs(&outputs);
    }
    Ok(profile)
}

/// Backends of the method's delegates and the modules of its instructions, by the record of the export if there is one,
/// otherwise by the stack traces of the file.
fn origins(program: &Program, name: &str, watching: Watching<'_>, session: &mut Session) -> Result<Origins, Failure> {
    let view = program.view()?;
    let Some(plan) = view.plan(name) else { return Ok(Origins::default()) };
    let delegates = readable::rows(&plan.delegates);
    let id = |delegate: &edgepack_format::pte::BackendDelegate<'_>| delegate.id.as_deref().map(short);
    let backends = delegates.iter().map(|delegate| delegate.as_ref().and_then(id).unwrap_or_default()).collect();
    let Some(path) = watching.record else {
        return Ok(Origins { backends, modules: stack_traces(&plan)?, parts: HashMap::new() });
    };
    let record = ExportRecord::read(path, session)?;
    let mut parts = HashMap::new();
    if let Some(by_handle) = record.by_handle(name) {
        let handles = node_handles(program, &plan).into_iter();
        parts.extend(handles.filter_map(|(node, handle)| Some((node, by_handle.get(&handle)?.clone()))));
    }
    Ok(Origins { backends, modules: record.modules(name)?, parts })
}

/// The frames of every instruction that has some, outermost first.
pub fn stack_traces(plan: &ExecutionPlan<'_>) -> Result<HashMap<(usize, usize), Vec<String>>, Failure> {
    let (mut found, mut room) = (HashMap::new(), NameRoom::default());
    for (chain, row) in readable::rows(&plan.chains).into_iter().enumerate() {
        let Some(Chain { stacktrace, .. }) = row else { continue };
        for (instruction, list) in readable::rows(&stacktrace).into_iter().enumerate() {
            let frames = list.map(|list| readable::sound_rows(&list.items)).unwrap_or_default();
            if !frames.is_empty() {
                let labels: Vec<String> = frames.iter().take(FRAMES).map(label).collect();
                room.take(&labels)?;
                found.insert((chain, instruction), labels);
            }
        }
    }
    Ok(found)
}

/// `self.norm(x), model.py:12 in forward`.
fn label(frame: &Frame<'_>) -> String {
    let text = |text: &Option<_>| -> String { text.as_deref().map(short).unwrap_or_default() };
    let path = frame.filename.as_deref().unwrap_or_default();
    let file = short(path.rsplit(['/', '\\']).next().unwrap_or(path));
    let at = format!("{file}:{} in {}", frame.lineno, text(&frame.name));
    match frame.context.as_deref().map(str::trim).filter(|context| !context.is_empty()) {
        Some(context) => format!("{}, {at}", short(context)),
        None => at,
    }
}
