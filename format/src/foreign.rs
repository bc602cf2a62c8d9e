//! Formats of others: files that people have at hand and that the project does not read, and what can be done with them.
//!
//! Invariant: a kind that [`crate::detect()`] knows is not in here.

use core::fmt;

/// Bytes at the end of a file that [`foreign`] looks at: the directory of a zip archive is there.
pub const TAIL_LEN: usize = 64 << 10;

/// A format of others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Foreign {
    /// Name of the format, with its article.
    pub name: &'static str,
    /// A way to a file that is read.
    pub advice: &'static str,
}

impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "this is {}; {}", self.name, self.advice)
    }
}

const EXPORT: &str = "export the PyTorch model with torch.export.save, which `edgepack lower` reads";
const UNPACK: &str = "unpack it and name the file that is in it";

macro_rules! formats {
    ($($id:ident: $name:literal, $advice:expr;)*) => {
        $(const $id: Foreign = Foreign { name: $name, advice: $advice };)*
    };
}

formats! {
    GGUF: "a GGUF model of llama.cpp", EXPORT;
    GGML: "a GGML model of llama.cpp", EXPORT;
    ONNX: "an ONNX model", EXPORT;
    TORCHSCRIPT: "a TorchScript archive", EXPORT;
    CHECKPOINT: "a PyTorch checkpoint: weights without a program", EXPORT;
    CORE_ML: "a Core ML model", "it runs in Core ML alone: export the PyTorch model with torch.export.save, which `edgepack lower` reads";
    HDF5: "an HDF5 file, such as Keras writes", "convert it with TensorFlow Lite, or export a PyTorch model with torch.export.save";
    NPZ: "a NumPy archive (.npz)", "`--inputs` takes arrays of their own (.npy) and safetensors files";
    ZIP: "a zip archive without an exported program", UNPACK;
    GZIP: "a gzip file without a package", "unpack it with `gunzip`";
    XZ: "an xz file", "unpack it with `unxz`";
    ZSTD: "a Zstandard file", "unpack it with `unzstd`";
    BZIP2: "a bzip2 file", "unpack it with `bunzip2`";
    SEVEN_ZIP: "a 7-Zip archive", UNPACK;
    ORT: "an ONNX Runtime model (.ort)", EXPORT;
    PDF: "a PDF document", "name the model that belongs to it";
    LFS: "a pointer of Git LFS, in place of the file", "fetch the file with `git lfs pull`";
    HTML: "a web page, such as a server sends in place of a file", "download the file itself";
    ELF: "a program or library of Linux (ELF)", "name the model that belongs to it";
    JSON: "JSON that `edgepack dump` did not write", "`edgepack build` reads what `dump` wrote";
    TEXT: "text", "`edgepack parse` reads text that `print` wrote, `build` JSON that `dump` wrote";
}

/// The format of a file with this head and these bytes at its end, which are all of it if it is short; `None` if it is not
/// known.
pub fn foreign(head: &[u8], tail: &[u8]) -> Option<Foreign> {
    let magic: &[(&[u8], Foreign)] = &[
        (b"GGUF", GGUF),
        (b"lmgg", GGML),
        (b"tjgg", GGML),
        (b"\x89HDF\r\n\x1a\n", HDF5),
        (b"\x1f\x8b", GZIP),
        (b"\xfd7zXZ\0", XZ),
        (b"\x28\xb5\x2f\xfd", ZSTD),
        (b"BZh", BZIP2),
        (b"7z\xbc\xaf\x27\x1c", SEVEN_ZIP),
        (b"version https://git-lfs", LFS),
        (b"\x7fELF", ELF),
        (b"%PDF-", PDF),
    ];
    if let Some((_, found)) = magic.iter().find(|(magic, _)| head.starts_with(magic)) {
        return Some(*found);
    }
    if head.get(4..8) == Some(b"ORTM".as_slice()) {
        return Some(ORT);
    }
    if head.starts_with(b"PK\x03\x04") || head.starts_with(b"PK\x05\x06") {
        return Some(zip(tail));
    }
    pickle(head).or_else(|| protobuf(head)).or_else(|| text(head))
}

/// An archive by the names in its directory.
fn zip(tail: &[u8]) -> Foreign {
    let has = |name: &[u8]| tail.windows(name.len()).any(|window| window == name);
    if has(b"/constants.pkl") || has(b"/code/__torch__") {
        TORCHSCRIPT
    } else if has(b"/data.pkl") {
        CHECKPOINT
    } else if has(b"com.apple.CoreML") || has(b".mlmodel") {
        CORE_ML
    } else if has(b".npy") {
        NPZ
    } else {
        ZIP
    }
}

/// Checkpoints before PyTorch 1.6 begin with a pickled number.
fn pickle(head: &[u8]) -> Option<Foreign> {
    matches!(head, [0x80, 2..=5, 0x8a, 0x0a, ..]).then_some(CHECKPOINT)
}

/// Models that are messages of Protocol Buffers and begin with a small number, their version. Then comes text in ONNX, the
/// name of the producer, or its graph; in Core ML a description, which is a message.
fn protobuf(head: &[u8]) -> Option<Foreign> {
    match head {
        [0x08, 1..=30, 0x12, len, first, ..] if *len > 0 && (first.is_ascii_alphanumeric()) => Some(ONNX),
        [0x08, 1..=30, 0x3a | 0x42 | 0x1a | 0x22, ..] => Some(ONNX),
        [0x08, 1..=30, 0x12, rest @ ..] => {
            // The length has up to five bytes; the description begins with a feature or with metadata.
            let begins = rest.iter().position(|byte| byte & 0x80 == 0)?;
            let at = rest.get(begins.checked_add(1)?..)?;
            (begins < 5 && (at.starts_with(b"\x0a") || at.starts_with(b"\xa2\x06"))).then_some(CORE_ML)
        }
        _ => None,
    }
}

fn text(head: &[u8]) -> Option<Foreign> {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let start = head.trim_ascii_start();
    let begins = |word: &[u8]| start.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word));
    if begins(b"<!doctype html") || begins(b"<html") {
        return Some(HTML);
    }
    // The head may end inside a character.
    let valid = match core::str::from_utf8(head) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() => core::str::from_utf8(head.get(..error.valid_up_to())?).ok()?,
        Err(_) => return None,
    };
    let plain = |c: char| !c.is_control() || c.is_whitespace();
    if valid.len() < 4 || !valid.chars().all(plain) {
        return None;
    }
    Some(if begins(b"{") || begins(b"[") { JSON } else { TEXT })
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    fn archive(names: &[&str]) -> Vec<u8> {
        let mut bytes = b"PK\x03\x04".to_vec();
        names.iter().for_each(|name| bytes.extend_from_slice(name.as_bytes()));
        bytes
    }

    #[test]
    fn formats_of_others_are_known_by_their_content() {
        let cases: &[(&[u8], Option<Foreign>)] = &[
            (b"GGUF\x03\0\0\0", Some(GGUF)),
            (b"\x08\x08\x12\x07pytorch\x1a\x05", Some(ONNX)),
            (b"\x08\x07:\xff\x01", Some(ONNX)),
            (b"\x08\x04\x12\x80\x02\x0a\x10", Some(CORE_ML)),
            (b"\x08\x04\x12\x21\xa2\x06", Some(CORE_ML)),
            (b"\x08\x04\x12\x21\x33", Some(ONNX)),
            (b"\x08\x04\x12\x21\x01", None),
            (b"\x1f\x8b\x08\0", Some(GZIP)),
            (b"\x80\x02\x8a\x0al\xfc", Some(CHECKPOINT)),
            (b"version https://git-lfs.github.com/spec/v1\n", Some(LFS)),
            (b"<!DOCTYPE html><html>", Some(HTML)),
            (b" \n{\"a\": 1}", Some(JSON)),
            ("# Gr\u{fc}\u{df}e".as_bytes(), Some(TEXT)),
            (b"# Gr\xc3", Some(TEXT)),
            (b"abc\0", None),
            (b"\xff\xfe\xfd\xfc", None),
            (b"ab", None),
            (b"", None),
        ];
        for (bytes, kind) in cases {
            assert_eq!(foreign(bytes, bytes), *kind, "{}", bytes.escape_ascii());
        }
        for (names, kind) in [
            (&["m/data.pkl", "m/code/__torch__.py", "m/constants.pkl"][..], TORCHSCRIPT),
            (&["m/data.pkl", "m/data/0", "m/version"], CHECKPOINT),
            (&["Manifest.json", "Data/com.apple.CoreML/model.mlmodel"], CORE_ML),
            (&["arr_0.npy"], NPZ),
            (&["readme.txt"], ZIP),
        ] {
            let bytes = archive(names);
            assert_eq!(foreign(&bytes, &bytes), Some(kind), "{names:?}");
        }
    }
}
