//! A file with its flatbuffer in memory. An archive has none; it is read whole all the same.

use edgepack_format::FileKind;
use edgepack_format::check::{Checker, Path, StructureRules};
use edgepack_format::darwinn::Accept;
use edgepack_format::limits::Limits;
use edgepack_format::row::Table;
use edgepack_format::rules::pte::{LIMITS, MALFORMED, MISALIGNED, TEXT};
use edgepack_format::tflite::{AppendedZip, verify};
use edgepack_format::wire;
use edgepack_loader::AlignedBytes;

use crate::file::{File, read_head, read_tail};
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
        let len = match file.head.kind {
            FileKind::TfLite => model_len(&file, limits).map_err(|failure| failure.about(&file.name))?,
            _ => file.head.len,
        };
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

/// Bytes at the start of a TensorFlow Lite model to which everything leads but its weights: those of a large model are
/// behind its flatbuffer, which does not say where it ends. The whole file, if any of it is different without the rest.
fn model_len(file: &File, limits: &Limits) -> Result<u64, Failure> {
    /// Bytes that are tried first.
    const FIRST: u64 = 256 << 10;
    /// Bytes in which the directory of an archive behind the model ends.
    const TAIL: u64 = 22 + 0xffff;
    let (whole, mut len) = (file.head.len, FIRST);
    if whole <= FIRST * 2 || read_tail(&*file.source, TAIL)?.windows(4).any(|bytes| bytes == b"PK\x05\x06") {
        return Ok(whole);
    }
    while len < whole && len <= limits.segment_bytes {
        let start = read_head(&*file.source, len)?;
        let verdict = verify::verify(&start, limits, Accept::ALL);
        let rules = &verify::STRUCTURE;
        let structure = [rules.malformed.id, rules.misaligned.id, rules.text.id, rules.limits.id];
        let broken = verdict.findings.dropped() > 0
            || verdict.findings.iter().any(|finding| structure.contains(&finding.rule.id));
        match verdict.model {
            Some(model) if !broken => {
                let behind = model.operators().iter().any(|one| one.row.large_custom_options_size > 0);
                let archive = !matches!(AppendedZip::find(&start), Ok(None));
                return Ok(if behind || archive { whole } else { len });
            }
            _ => len = len.saturating_mul(2),
        }
    }
    Ok(whole)
}
