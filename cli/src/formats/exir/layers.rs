//! An archive as a program to compare: lowered in memory, instruction by instruction as the reference exporter does.

use std::sync::Arc;

use edgepack_exir::archive::Archive;
use edgepack_exir::lower::{Lowered, Options, ProgramManager};
use edgepack_loader::MemorySource;

use crate::file::{File, read_head};
use crate::formats::Layered;
use crate::formats::pte;
use crate::session::Session;
use crate::status::Failure;

/// Lowers all programs of an archive to portable operators; one without a name becomes `forward`.
pub fn lowered(file: &File, session: &Session) -> Result<Layered, Failure> {
    let about = |error| super::lower::failure(error).about(&file.name);
    let content = read_head(&*file.source, file.source.len())?;
    let archive = Archive::parse(&content).map_err(about)?;
    let methods = archive.methods();
    if methods.is_empty() {
        return Err(about(edgepack_exir::Error::NoRecord("models/NAME.json".to_owned())));
    }
    let options = Options { like_reference: true, stack_traces: true, limits: session.limits, ..Options::default() };
    let mut manager = ProgramManager::new(options);
    for (name, model) in methods {
        manager.add(name.unwrap_or("forward"), archive.model(model).map_err(about)?).map_err(about)?;
    }
    let Lowered { program, origins } = manager.emit().map_err(about)?;
    let bytes = program.to_bytes().map_err(Failure::unreadable)?;
    let program = pte::open(Arc::new(MemorySource::new(bytes)), &session.limits)?;
    Ok(Layered::Program(program, origins))
}
