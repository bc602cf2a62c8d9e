//! A file with its flatbuffer in memory. An archive has none; it is read whole all the same.

use edgepack_format::check::{Checker, Path, StructureRules};
use edgepack_format::limits::Limits;
use edgepack_format::row::Table;
use edgepack_format::rules::pte::{LIMITS, MALFORMED, MISALIGNED, TEXT};
use edgepack_format::wire;
use edgepack_loader::AlignedBytes;

use crate::file::{File, read_head};
use crate::status::Failure;

/// A file and its flatbuffer; segments stay where they are.
pub struct Head {
    /// Name, kind and source of the file.
    pub file: File,
    /// From the start of the file to the end of the flatbuffer.
    pub bytes: AlignedBytes,
}

impl Head {
    /// Reads it.
    pub fn read(file: File, limits: &Limits) -> Result<Head, Failure> {
        let len = file.head.len;
        if len > limits.segment_bytes {
            let message =
                format!("{}: {len} bytes to be read at once, {} are allowed", file.name, limits.segment_bytes);
            return Err(Failure::findings(message));
        }
        let bytes = read_head(&*file.source, len).map_err(|failure| failure.about(&file.name))?;
        Ok(Head { file, bytes })
    }

    /// Bytes of the whole file.
    pub fn file_len(&self) -> u64 {
        self.file.head.extent.len
    }

    /// Returns whether a walk over everything below a table of the file stays within the limits.
    pub fn unfolds<'a, T: Table<'a>>(&self, root: wire::Table<'a>, limits: &Limits) -> bool {
        // What is wrong is said elsewhere; here only the length of the walk counts.
        let mut limits = limits.unfolding(self.bytes.len() as u64);
        limits.findings = 0;
        let rules = StructureRules { malformed: &MALFORMED, misaligned: &MISALIGNED, text: &TEXT, limits: &LIMITS };
        let mut checker = Checker::new(&limits, rules);
        checker.table::<T>(root, &Path::ROOT);
        !checker.is_spent()
    }
}
