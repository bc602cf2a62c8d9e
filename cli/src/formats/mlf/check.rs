//! Recorded runs of a package: those of one module or function, or of every module that has some.

use std::path::Path;

use edgepack_loader::mlf::{Library, LibraryModule};

use super::cases::{from_folder, replay};
use super::library::{chosen, label, library, open};
use crate::cases::{Recorded, Replayed, from_file};
use crate::compare::Tolerance;
use crate::file::{File, name_of};
use crate::formats::Execution;
use crate::options::Native;
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
    let library = library(file, &session.limits)?;
    let about = |failure: Failure| failure.about(&file.name);
    let several = library.modules().len() > 1;
    let asked = match (several, how.native.module.as_deref(), &how.native.function) {
        (true, None, None) => None,
        (_, module, _) => Some(chosen(&library, module).map_err(about)?),
    };
    let modules = asked.map_or_else(|| library.modules().collect(), |module| vec![module]);
    let recorded = match path.is_dir() {
        true => of_folder(path, &modules, several, how.native)?,
        false => {
            let bytes = session.read_filled(path)?;
            let recorded = from_file(&bytes, session.limits.memory_bytes)
                .map_err(|error| Failure::unreadable(error).about(&name_of(path)))?;
            of_file(recorded, &library, modules, how.native).map_err(|failure| failure.about(&name_of(path)))?
        }
    };
    if recorded.iter().all(|(_, runs)| runs.is_empty()) {
        return Err(Failure::usage("there are no runs in it").about(&name_of(path)));
    }
    let mut replayed = Vec::new();
    for (module, runs) in recorded.iter().filter(|(_, runs)| !runs.is_empty()) {
        let mut runner = open(module, how.native, session).map_err(about)?;
        let _replaying = session.progress.work("replaying");
        replayed.extend(replay(&mut runner, runs, tolerance));
    }
    Ok(replayed)
}

/// Modules with their runs.
type Runs = Vec<(LibraryModule, Vec<Recorded>)>;

/// Runs of a folder: of a package of several modules each has a folder of its name in it, and a function has a folder of
/// its name in that of its module. A folder without such folders has the runs of the one module that is asked for.
fn of_folder(path: &Path, modules: &[LibraryModule], several: bool, consent: &Native) -> Result<Runs, Failure> {
    let mut runs = Vec::new();
    for module in modules {
        let own = path.join(&module.info().name);
        let folder = if several && own.is_dir() { own } else { path.to_owned() };
        if several && modules.len() > 1 && folder == path {
            continue;
        }
        let inner = consent.function.as_ref().map(|function| folder.join(function)).filter(|inner| inner.is_dir());
        let recorded = from_folder(&inner.unwrap_or(folder), &label(module, consent)).map_err(Failure::unreadable)?;
        runs.push((module.clone(), recorded));
    }
    Ok(runs)
}

/// Runs of a file, by the name that is in front of their number. A package of one module has all of them.
fn of_file(
    recorded: Vec<Recorded>,
    library: &Library,
    modules: Vec<LibraryModule>,
    consent: &Native,
) -> Result<Runs, Failure> {
    if let ([module], None, None) = (modules.as_slice(), &consent.module, &consent.function) {
        return Ok(vec![(module.clone(), recorded)]);
    }
    let is_asked = consent.module.is_some() || consent.function.is_some();
    let known = |name: &str| library.modules().any(|module| module.info().name == name);
    if let Some(stranger) = recorded.iter().find(|run| !is_asked && !known(&run.method)) {
        let names: Vec<String> = modules.iter().map(|module| module.info().name.clone()).collect();
        let message = format!("runs of {:?}, the modules are {}", stranger.method, names.join(", "));
        return Err(Failure::usage(message));
    }
    let mut runs: Runs = modules.into_iter().map(|module| (module, Vec::new())).collect();
    for run in recorded {
        if let Some((_, list)) = runs.iter_mut().find(|(module, _)| label(module, consent) == run.method) {
            list.push(run);
        }
    }
    Ok(runs)
}
