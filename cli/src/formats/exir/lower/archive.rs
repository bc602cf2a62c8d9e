//! Archives to lower: files, of which the weights are read when they are written, or what standard input and pipes gave.

use std::path::{Path, PathBuf};

use edgepack_exir::archive::Archive;
use edgepack_exir::graph::ExportedProgram;
use edgepack_format::FileKind;
use edgepack_loader::AlignedBytes;

use super::failure;
use crate::edit::not_text;
use crate::file::{File, read_head, refused};
use crate::session::Session;
use crate::status::Failure;

/// An archive to lower, as it was opened.
pub struct OpenArchive {
    file: File,
    content: Content,
}

enum Content {
    /// A file that can be read in any order, again and again.
    File(PathBuf),
    /// Content of a stream.
    Bytes(AlignedBytes),
}

impl OpenArchive {
    /// Opens an archive; `-` is standard input. A file of a kind that is not an archive is refused.
    pub fn new(path: &Path, session: &mut Session) -> Result<OpenArchive, Failure> {
        let file = session.open(path)?;
        // Archives are known by their first names; one with others in front may be an archive all the same.
        if file.head.kind != FileKind::ExportedProgram && !read_head(&*file.source, 4)?.starts_with(b"PK\x03\x04") {
            return Err(not_text(&file, "an exported program"));
        }
        let content = match std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file()) {
            true => Content::File(path.to_owned()),
            false => Content::Bytes(read_head(&*file.source, file.source.len())?),
        };
        Ok(OpenArchive { file, content })
    }

    /// The programs that become methods, with their names where the archive says them.
    pub fn programs(&self) -> Result<Vec<(Option<String>, ExportedProgram<'_>)>, Failure> {
        let archive = match &self.content {
            Content::File(path) => Archive::open(path),
            Content::Bytes(bytes) => Archive::parse(bytes),
        };
        let about = |error| failure(error).about(&self.file.name);
        let archive = archive.map_err(about)?;
        let methods = archive.methods();
        if methods.is_empty() {
            return Err(match self.file.head.kind {
                FileKind::Unknown => refused(&self.file),
                _ => about(edgepack_exir::Error::NoRecord("models/NAME.json".to_owned())),
            });
        }
        let method = |(name, model): (Option<&str>, &str)| Ok((name.map(str::to_owned), archive.model(model)?));
        methods.into_iter().map(method).collect::<Result<_, _>>().map_err(about)
    }
}
