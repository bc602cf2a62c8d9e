//! The first program of an archive.

use edgepack_exir::archive::Archive;
use edgepack_exir::graph::ExportedProgram;

use crate::status::Failure;

/// Asks something of the first program of an archive. Without its tensors, if those cannot be read: only the graph is
/// wanted.
pub fn with_program<T>(content: &[u8], name: &str, ask: impl FnOnce(&ExportedProgram<'_>) -> T) -> Result<T, Failure> {
    let about = |error: edgepack_exir::Error| Failure::findings(error).about(name);
    let archive = Archive::parse(content).map_err(about)?;
    if let Ok(program) = archive.program() {
        return Ok(ask(&program));
    }
    let model = archive.models().next().unwrap_or("model").to_owned();
    let document = archive.document(&model).map_err(about)?;
    ExportedProgram::from_document(document, Default::default()).map(|program| ask(&program)).map_err(about)
}
