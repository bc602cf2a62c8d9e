//! Detection of a file's kind, by content and never by name.
//!
//! Recognised is not sound: a truncated or damaged file of a known kind is still of that kind, and its verifier says
//! what is wrong with it. Detection looks at the first [`DETECT_LEN`] bytes only and never fails.

use core::fmt;

/// Number of bytes of a file that [`detect`] looks at: fewer are fine if the file is shorter, more are ignored.
///
/// Identifiers of flatbuffers are in the first 12 bytes, the magic of a tar archive ends at 263; the rest is for the
/// first names in a zip archive and the first keys of JSON.
pub const DETECT_LEN: usize = 4096;

/// The kinds of files the project reads.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum FileKind {
    /// An ExecuTorch program (`.pte`).
    Program,
    /// An ExecuTorch data file (`.ptd`), of any generation.
    Data,
    /// A FlatData file: named data without layouts.
    FlatData,
    /// A program with test cases (`.bpte`).
    Bundle,
    /// A trace (`.etdp`).
    Trace,
    /// A TensorFlow Lite model, which may hold Edge TPU packages.
    TfLite,
    /// A bare Edge TPU package.
    DarwinnPackage,
    /// A Model Library Format archive, or the `metadata.json` of an unpacked one.
    ModelLibrary,
    /// A PyTorch exported program (`.pt2`).
    ExportedProgram,
    /// A safetensors file.
    Safetensors,
    /// A NumPy array.
    Npy,
    /// Output of `edgepack dump`.
    Dump,
    /// Nothing of the above.
    Unknown,
}

impl FileKind {
    /// Returns the name of the kind for messages.
    pub const fn name(self) -> &'static str {
        match self {
            FileKind::Program => "ExecuTorch program",
            FileKind::Data => "ExecuTorch data file",
            FileKind::FlatData => "FlatData file",
            FileKind::Bundle => "bundled program",
            FileKind::Trace => "execution trace",
            FileKind::TfLite => "TensorFlow Lite model",
            FileKind::DarwinnPackage => "Edge TPU package",
            FileKind::ModelLibrary => "Model Library Format package",
            FileKind::ExportedProgram => "PyTorch exported program",
            FileKind::Safetensors => "safetensors file",
            FileKind::Npy => "NumPy array",
            FileKind::Dump => "JSON dump",
            FileKind::Unknown => "unknown file",
        }
    }
}

impl fmt::Display for FileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The kind of a file with this head.
pub fn detect(head: &[u8]) -> FileKind {
    let head = head.get(..DETECT_LEN).unwrap_or(head);
    if head.starts_with(b"\x93NUMPY") {
        return FileKind::Npy;
    }
    if head.starts_with(b"PK\x03\x04") {
        return zip(head);
    }
    if has_at(head, 257, b"ustar") {
        return FileKind::ModelLibrary;
    }
    flatbuffer(head).or_else(|| safetensors(head)).or_else(|| json(head)).unwrap_or(FileKind::Unknown)
}

fn has_at(head: &[u8], at: usize, magic: &[u8]) -> bool {
    head.get(at..).is_some_and(|rest| rest.starts_with(magic))
}

fn contains(head: &[u8], needle: &[u8]) -> bool {
    head.windows(needle.len()).any(|window| window == needle)
}

fn flatbuffer(head: &[u8]) -> Option<FileKind> {
    let identifier = head.get(4..8)?;
    // Two letters name the format, two digits its generation: another generation is that format all the same.
    Some(match identifier {
        [b'E', b'T', b'0'..=b'9', b'0'..=b'9'] => FileKind::Program,
        [b'F', b'T', b'0'..=b'9', b'0'..=b'9'] => FileKind::Data,
        [b'F', b'D', b'0'..=b'9', b'0'..=b'9'] => FileKind::FlatData,
        [b'B', b'P', b'0'..=b'9', b'0'..=b'9'] => FileKind::Bundle,
        [b'E', b'D', b'0'..=b'9', b'0'..=b'9'] => FileKind::Trace,
        b"TFL3" => FileKind::TfLite,
        b"DWN1" => FileKind::DarwinnPackage,
        // A damaged identifier in front of an intact header.
        _ if has_at(head, 8, b"eh00") => FileKind::Program,
        _ if has_at(head, 8, b"FH01") => FileKind::Data,
        _ if matches!(head.get(8..12), Some([b'E', b'D', b'0'..=b'9', b'0'..=b'9'])) => FileKind::Trace,
        _ => return None,
    })
}

/// A zip archive is told by the names of its first members.
fn zip(head: &[u8]) -> FileKind {
    const NAMES: [&[u8]; 7] = [
        b"/archive_format",
        b"/archive_version",
        b"/data/weights/",
        b"/data/constants/",
        b"/models/",
        // As exporters before 2025 wrote it, and as exporters of programs for a device still do.
        b"serialized_exported_program",
        // Such programs with what became of them, for a profiler.
        b"ETRECORD_V",
    ];
    match NAMES.iter().any(|name| contains(head, name)) {
        true => FileKind::ExportedProgram,
        false => FileKind::Unknown,
    }
}

/// The length of a JSON header, and the header.
fn safetensors(head: &[u8]) -> Option<FileKind> {
    /// The most that readers of the format accept.
    const MAX_HEADER: u64 = 100_000_000;
    let len = u64::from_le_bytes(*head.first_chunk()?);
    ((2..=MAX_HEADER).contains(&len) && head.get(8) == Some(&b'{')).then_some(FileKind::Safetensors)
}

fn json(head: &[u8]) -> Option<FileKind> {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
    if head.first() != Some(&b'{') {
        return None;
    }
    if contains(head, b"\"edgepack/dump/") {
        return Some(FileKind::Dump);
    }
    contains(head, b"\"export_datetime\"").then_some(FileKind::ModelLibrary)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;

    fn tar() -> Vec<u8> {
        let mut bytes = vec![0; 512];
        bytes[..15].copy_from_slice(b"./metadata.json");
        bytes[257..262].copy_from_slice(b"ustar");
        bytes
    }

    fn zip_of(name: &[u8]) -> Vec<u8> {
        [b"PK\x03\x04".as_slice(), &[0; 26], name].concat()
    }

    #[test]
    fn every_kind_is_known_by_its_content() {
        let tar = tar();
        let (pt2, npz) = (zip_of(b"model/data/weights/model_weights_config.json"), zip_of(b"x.npy"));
        let cases: &[(&[u8], FileKind)] = &[
            (b"\x3c\0\0\0ET12eh00", FileKind::Program),
            (b"\x3c\0\0\0ET99", FileKind::Program),
            (b"\x3c\0\0\0????eh00", FileKind::Program),
            (b"\x3c\0\0\0FT01FH01", FileKind::Data),
            (b"\x3c\0\0\0????FH01", FileKind::Data),
            (b"\x3c\0\0\0FD01FH01", FileKind::FlatData),
            (b"\x3c\0\0\0BP08", FileKind::Bundle),
            (b"\x3c\0\0\0\x08\0\0\0ED00", FileKind::Trace),
            (b"\x1c\0\0\0TFL3", FileKind::TfLite),
            (b"\x18\0\0\0DWN1", FileKind::DarwinnPackage),
            (b"\x93NUMPY\x01\0", FileKind::Npy),
            (b"\x02\0\0\0\0\0\0\0{}", FileKind::Safetensors),
            (b" \n{\"schema\": \"edgepack/dump/1\"}", FileKind::Dump),
            (b"\xef\xbb\xbf{\"version\": 7, \"export_datetime\": \"\"}", FileKind::ModelLibrary),
            (&tar, FileKind::ModelLibrary),
            (&pt2, FileKind::ExportedProgram),
            (&npz, FileKind::Unknown),
            (b"{\"a\": 1}", FileKind::Unknown),
            (b"\xff\xff\xff\xff\xff\xff\xff\xff{}", FileKind::Unknown),
            (b"ET12", FileKind::Unknown),
            (b"", FileKind::Unknown),
        ];
        for (bytes, kind) in cases {
            assert_eq!(detect(bytes), *kind, "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn what_lies_beyond_the_head_does_not_count() {
        let mut bytes = zip_of(b"x");
        bytes.resize(DETECT_LEN, 0);
        bytes.extend_from_slice(b"model/archive_format");
        assert_eq!(detect(&bytes), FileKind::Unknown);
    }
}
