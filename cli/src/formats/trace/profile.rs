//! Profile of a recorded run.

use std::collections::HashMap;

use edgepack_format::trace::TraceRef;

use crate::file::{File, read_head};
use crate::formats::Watching;
use crate::profile::{ExportRecord, Origins, Profile, observed};
use crate::session::Session;
use crate::status::Failure;

/// Method of which a trace is taken to be, since it does not say: modules are found by it in the record of an export.
const METHOD: &str = "forward";

/// Shows the runs of a trace.
pub fn profile(
    file: &File,
    method: Option<&str>,
    watching: Watching<'_>,
    session: &mut Session,
) -> Result<Profile, Failure> {
    let bytes = read_head(&*file.source, file.source.len())?;
    let trace = TraceRef::parse(&bytes, &session.limits).map_err(|findings| {
        let first = findings.iter().next().map(ToString::to_string).unwrap_or_default();
        Failure::findings(format!("{}: {first}", file.name))
    })?;
    let observation = observed(trace.root()).map_err(|failure| failure.about(&file.name))?;
    if observation.runs.is_empty() {
        return Err(Failure::findings(format!("{}: there is no run in it, only what is around runs", file.name)));
    }
    let modules = match watching.record {
        Some(path) => ExportRecord::read(path, session)?.modules(method.unwrap_or(METHOD))?,
        None => HashMap::new(),
    };
    Ok(Profile::of(&file.name, method, &observation, &Origins { modules, ..Origins::default() }))
}
