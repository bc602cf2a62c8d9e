//! Recorded runs of a program, replayed and compared.

use edgepack_executor::{Input, LoadError, Method, Options, Registry, RunError};
use edgepack_loader::{MethodMeta, Program};
use std::cell::RefCell;
use std::collections::BTreeMap;
use web_time::Instant;

use super::inputs::inputs;
use crate::cases::{Recorded, ReplayError, Replayed};
use crate::compare::{Comparison, Tolerance, compare};
use crate::profile::Recorder;
use crate::value::Value;

/// Replays recorded runs in order, each method loaded once. What goes wrong with one run is in its report.
pub fn replay(
    program: &Program,
    recorded: &[Recorded],
    registry: &Registry,
    options: &Options,
    tolerance: Tolerance,
) -> Vec<Replayed> {
    replay_and_record(program, recorded, registry, options, tolerance, None)
}

/// Replays runs, and records them if there is a recorder.
pub fn replay_and_record(
    program: &Program,
    recorded: &[Recorded],
    registry: &Registry,
    options: &Options,
    tolerance: Tolerance,
    recorder: Option<&RefCell<Recorder>>,
) -> Vec<Replayed> {
    let mut loaded: BTreeMap<&str, Option<Loaded>> = BTreeMap::new();
    let mut reports = Vec::new();
    for case in recorded {
        let mut report = Replayed { method: case.method.clone(), run: case.run, outputs: Vec::new(), failure: None };
        if !loaded.contains_key(case.method.as_str()) {
            let start = Instant::now();
            let method = load(program, &case.method, registry, options);
            if let Some(recorder) = recorder.filter(|_| method.is_ok()) {
                recorder.borrow_mut().loaded(start);
            }
            let method = method.map_err(|error| report.failure = Some(ReplayError::Load(error))).ok();
            loaded.insert(&case.method, method);
        }
        match loaded.get_mut(case.method.as_str()) {
            Some(Some(loaded)) => match replay_one(loaded, case, tolerance, (reports.len() as u64, recorder)) {
                Ok(outputs) => report.outputs = outputs,
                Err(error) => report.failure = Some(error),
            },
            _ => {
                report.failure.get_or_insert(ReplayError::NotLoaded);
            }
        }
        reports.push(report);
    }
    reports
}

/// A method that is replayed.
struct Loaded {
    method: Method,
    meta: MethodMeta,
    /// The outputs that are inputs, which the method changes and gives back.
    given_back: Vec<usize>,
}

fn load(program: &Program, name: &str, registry: &Registry, options: &Options) -> Result<Loaded, LoadError> {
    let method = Method::load(program, name, registry, options)?;
    let meta = program.method_meta(name)?;
    let mut given_back = Vec::new();
    for plan in program.view()?.plans().iter() {
        let plan = plan?;
        if plan.name.as_deref() != Some(name) {
            continue;
        }
        let inputs: Vec<i32> = plan.inputs.iter().flat_map(|inputs| inputs.iter()).collect();
        let outputs = plan.outputs.iter().flat_map(|outputs| outputs.iter());
        given_back.extend(outputs.enumerate().filter(|(_, id)| inputs.contains(id)).map(|(index, _)| index));
    }
    Ok(Loaded { method, meta, given_back })
}

fn replay_one(
    loaded: &mut Loaded,
    case: &Recorded,
    tolerance: Tolerance,
    (index, recorder): (u64, Option<&RefCell<Recorder>>),
) -> Result<Vec<(usize, Comparison)>, ReplayError> {
    let values = inputs(&loaded.meta, &case.inputs).map_err(ReplayError::Input)?;
    let inputs: Vec<Input<'_>> = values.iter().filter_map(Value::input).collect();
    let outputs = match recorder {
        None => loaded.method.run(&inputs),
        Some(recorder) => {
            let mut recorder = recorder.borrow_mut();
            recorder.next_run(index);
            let outputs = loaded.method.run_observed(&inputs, Some(&mut *recorder));
            outputs.inspect(|outputs| recorder.outputs(outputs))
        }
    };
    let outputs = outputs.map_err(|error| match error {
        RunError::Input { .. } => ReplayError::Input(error.to_string()),
        error => ReplayError::Run(error),
    })?;
    if case.outputs.is_empty() {
        return Ok(Vec::new());
    }
    let past = case.outputs.keys().next_back().map_or(0, |last| last + 1);
    // Runs may be recorded without the inputs that are changed: then what is left over is left out.
    let without = past + loaded.given_back.len() == outputs.len();
    let counted: Vec<usize> =
        (0..outputs.len().max(past)).filter(|index| !without || !loaded.given_back.contains(index)).collect();
    let mut comparisons = Vec::new();
    for (index, at) in counted.into_iter().enumerate() {
        let have = match outputs.get(at).map(Value::of) {
            Some(value) => value.map_err(|error| ReplayError::Input(error.to_string()))?,
            None => Value::Null,
        };
        match case.outputs.get(&index) {
            Some(want) => comparisons.push((index, compare(&have, want, tolerance))),
            // None and text are not recorded.
            None if have.to_tensor().is_none() => {}
            None => {
                let problem = format!("the output is {}", have.kind());
                comparisons.push((index, Comparison::impossible("None".to_owned(), problem)));
            }
        }
    }
    Ok(comparisons)
}
