//! Files that appear whole or not at all, alone or several together.
//!
//! Content goes into a hidden folder next to its target ([`Workspace`]), is forced to the disk and then takes the place of
//! the target in one rename. Of several files all are complete before the first takes its place. Whatever fails before that
//! leaves the old files as they were and no temporary behind. What exists and is not a regular file is written into and never
//! replaced. Bytes of a file change where they are only by [`overwrite`], which can be undone. A [`Batch`] never puts a file in the place of one that it was told is read, nor two files in one place.

mod batch;
mod live;
mod lock;
mod overwrite;
mod target;
mod workspace;

#[cfg(test)]
mod tests;

use std::io::{self, Write};
use std::path::Path;

pub use batch::{Batch, Conflict};
pub use live::{Abandoned, abandon};
pub use overwrite::{Change, overwrite, recover};
pub use target::is_stream;
pub use workspace::Workspace;

/// Makes `path` a file with what `content` writes, or leaves everything as it was. What a symbolic link at `path` points
/// at is replaced, not the link; a device, a pipe or an open descriptor gets the content and stays what it is.
pub fn replace<E: From<io::Error>>(
    path: impl AsRef<Path>,
    content: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> Result<(), E> {
    let mut batch = Batch::default();
    batch.write(path, content)?;
    Ok(batch.commit()?)
}
