//! Recorded runs of a package.

use std::path::Path;

use super::cases::{from_folder, replay};
use super::library::open;
use crate::cases::{Replayed, from_file};
use crate::compare::Tolerance;
use crate::file::File;
use crate::file::name_of;
use crate::formats::Execution;
use crate::session::Session;
use crate::status::Failure;

/// Replays the runs of a folder or a file.
pub fn check(
    file: &File,
    cases: Option<&Path>,
    tolerance: Tolerance,
    how: Execution<'_>,
    session: &mut Session,
) -> Result<Vec<Replayed>, Failure> {
    super::not_recorded(how)?;
    let path = cases.ok_or_else(|| Failure::usage("say which runs to replay: a folder of NumPy arrays"))?;
    let (module, mut runner) = open(file, None, how.native, &session.limits)?;
    let recorded = if path.is_dir() {
        from_folder(path, &module.info().name).map_err(Failure::unreadable)?
    } else {
        let bytes = session.read_filled(path)?;
        from_file(&bytes, session.limits.memory_bytes)
            .map_err(|error| Failure::unreadable(error).about(&name_of(path)))?
    };
    match recorded.is_empty() {
        true => Err(Failure::usage("there are no runs in it").about(&name_of(path))),
        false => Ok(replay(&mut runner, &recorded, tolerance)),
    }
}
