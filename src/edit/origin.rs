//! Identity of the file that a document was made of: digests that tell whether it came back byte for byte.

use std::io::{self, Write};

use edgepack_builder::content::{digest_of, hex};
use serde::{Deserialize, Serialize};

use super::content::Content;
use super::error::Error;

/// Digests of a file and of what our own writer makes of its content.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Origin {
    /// Bytes of the file.
    pub bytes: u64,
    /// SHA-256 of the file, in hexadecimal digits.
    pub sha256: String,
    /// SHA-256 of what our own writer makes of the same content, if that is another file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_layout_sha256: Option<String>,
}

/// Likeness of a file to its origin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Likeness {
    /// Every byte.
    Bytes,
    /// The content; the bytes are others.
    Content,
    /// Not known: content was changed, or written by another version.
    Unknown,
}

impl Origin {
    /// Digests of a file, and of what `own` writes.
    pub(super) fn of(file: &Content, own: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<Self, Error> {
        let sha256 = digest(|out| file.write_to(out))?;
        let own = Some(digest(own)?).filter(|own| *own != sha256);
        Ok(Origin { bytes: file.len(), sha256, own_layout_sha256: own })
    }

    /// Compares what `file` writes with this one.
    pub fn likeness(&self, file: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<Likeness, Error> {
        let found = digest(file)?;
        Ok(match &self.own_layout_sha256 {
            _ if found == self.sha256 => Likeness::Bytes,
            Some(own) if found == *own => Likeness::Content,
            _ => Likeness::Unknown,
        })
    }
}

/// SHA-256 of what is written, in hexadecimal digits.
fn digest(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<String, Error> {
    Ok(hex(&digest_of(write)?))
}
