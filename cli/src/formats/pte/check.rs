//! Recorded runs of a program, from its own file or from another.

use std::path::Path;

use edgepack_executor::Registry;

use super::layers::{Blame, blame, runs_before};
use super::open::{Opened, options};
use super::replay::replay_and_record;
use crate::cases::{Recorded, Replayed, from_file, registry_for};
use crate::compare::Tolerance;
use crate::file::name_of;
use crate::formats::Execution;
use crate::layers::Bounds;
use crate::layers::recorded::Recorded as Trace;
use crate::session::Session;
use crate::status::Failure;

/// Replays the runs of a file, or those that came with the program.
pub fn check(
    opened: Opened,
    cases: Option<&Path>,
    tolerance: Tolerance,
    how: Execution<'_>,
    session: &mut Session,
) -> Result<Vec<Replayed>, Failure> {
    let (recorded, registry) = runs(opened.recorded, cases, session)?;
    let options = options(how, session)?;
    let _replaying = session.progress.work("loading and replaying");
    Ok(replay_and_record(&opened.program, &recorded, &registry, &options, tolerance, how.recorder))
}

/// Replays runs as [`check`] does, and searches for the layer that is to blame for each that disagrees. The trace is one of
/// the first of them.
pub fn check_layers(
    opened: Opened,
    cases: Option<&Path>,
    tolerance: Tolerance,
    how: Execution<'_>,
    mut trace: Option<Trace>,
    session: &mut Session,
) -> Result<Vec<(Replayed, Option<Blame>)>, Failure> {
    let (recorded, registry) = runs(opened.recorded, cases, session)?;
    let options = options(how, session)?;
    let _replaying = session.progress.work("loading and replaying");
    let (program, bounds) = (&opened.program, Bounds { tolerance, sqnr: None });
    let reports = replay_and_record(program, &recorded, &registry, &options, tolerance, how.recorder);
    let mut blamed = Vec::with_capacity(reports.len());
    for (index, report) in reports.into_iter().enumerate() {
        // A run that failed says itself where.
        let found = match report.passes() || report.failure.is_some() {
            true => None,
            false => {
                let (runs, trace) = (runs_before(&recorded, index), trace.take());
                Some(blame(program, &registry, &options, &runs, trace, bounds)?)
            }
        };
        blamed.push((report, found));
    }
    Ok(blamed)
}

/// The runs of a file, or those that came with the program, and the operators to replay them with.
fn runs(
    own: Option<Vec<Recorded>>,
    cases: Option<&Path>,
    session: &mut Session,
) -> Result<(Vec<Recorded>, Registry), Failure> {
    match (cases, own) {
        (None, Some(recorded)) => Ok((recorded, edgepack_kernels::registry())),
        (None, None) => Err(Failure::usage("say which runs to replay: a safetensors file")),
        (Some(path), _) => read_cases(path, session),
    }
}

fn read_cases(path: &Path, session: &mut Session) -> Result<(Vec<Recorded>, Registry), Failure> {
    let about = |failure: Failure| failure.about(&name_of(path));
    let bytes = session.read_filled(path)?;
    let recorded = from_file(&bytes, session.limits.memory_bytes).map_err(|error| about(Failure::unreadable(error)))?;
    match recorded.is_empty() {
        true => Err(about(Failure::usage("there are no runs in it"))),
        false => Ok((recorded, registry_for(&bytes))),
    }
}
