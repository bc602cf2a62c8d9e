//! Recorded runs of a program, from its own file or from another.

use std::path::Path;

use edgepack_executor::Registry;

use super::open::{Opened, options};
use super::replay::replay_and_record;
use crate::cases::{Recorded, Replayed, from_file, registry_for};
use crate::compare::Tolerance;
use crate::file::name_of;
use crate::formats::Execution;
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
    let (recorded, registry) = match (cases, opened.recorded) {
        (None, Some(recorded)) => (recorded, edgepack_kernels::registry()),
        (None, None) => return Err(Failure::usage("say which runs to replay: a safetensors file")),
        (Some(path), _) => read_cases(path, session)?,
    };
    let options = options(how, session)?;
    Ok(replay_and_record(&opened.program, &recorded, &registry, &options, tolerance, how.recorder))
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
