//! Files to read: opened without reading them whole, recognised by content.
#![allow(unsafe_code, reason = "large files are mapped; the help of `--no-map` and SECURITY.md state what that takes")]

use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use edgepack::builder::content::{Digest, digest_of};
use edgepack_format::FileKind;
use edgepack_format::detect::DETECT_LEN;
use edgepack_format::foreign::{TAIL_LEN, foreign};
use edgepack_format::limits::Limits;
use edgepack_loader::mlf;
use edgepack_loader::{AlignedBytes, FileHead, FileSource, MappedFile, MemorySource, Source};

use crate::remote::{remote, shown};
use crate::status::Failure;

/// An open file.
#[derive(Clone)]
pub struct File {
    /// As the command line names it.
    pub name: String,
    /// Kind of the content, and the end of its flatbuffer.
    pub head: FileHead,
    /// Bytes of the file.
    pub source: Arc<dyn Source>,
}

/// Length from which on files are mapped: below it, reading is as fast.
const LARGE: u64 = 16 << 20;

/// A path in messages: `-` by what it stands for, a file of a server without what may be secret.
pub fn name_of(path: &Path) -> String {
    if is_stdin(path) { "standard input".to_owned() } else { listed(path) }
}

/// A path in lists of files, where `-` is `-`.
pub fn listed(path: &Path) -> String {
    remote(path).map_or_else(|| path.display().to_string(), shown)
}

/// Returns whether a path stands for standard input.
pub fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Opens a file; `-` is standard input. What cannot be sought (pipes) is read into memory. Large files are mapped if `map`
/// says so, and the others read where something of them is wanted.
pub fn open(path: &Path, stdin: &mut dyn Read, limits: &Limits, map: bool) -> Result<File, Failure> {
    File::of(name_of(path), sourced(path, stdin, limits, map)?, limits)
}

impl File {
    /// Recognises a source by its content; a package in gzip is what it is inflated to.
    pub fn of(name: String, source: Arc<dyn Source>, limits: &Limits) -> Result<File, Failure> {
        let inflated = mlf::inflate(&*source, limits).map_err(|error| match error {
            // The bytes could be read: what they hold is damaged.
            edgepack_loader::Error::Io { error, .. } if is_damage(&error) => {
                Failure::findings(format!("{name}: cut short or damaged gzip: {error}"))
            }
            error => unreadable(error).about(&name),
        });
        let source = inflated?.unwrap_or(source);
        let head = FileHead::detect(&*source, limits).map_err(|error| unreadable(error).about(&name))?;
        Ok(File { name, head, source })
    }
}

/// Returns whether the content of a stream, rather than reading it, failed.
fn is_damage(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput)
}

/// Opens a file of any content, to be read piece by piece; `-` is standard input.
pub fn source(path: &Path, stdin: &mut dyn Read, limits: &Limits) -> Result<Arc<dyn Source>, Failure> {
    sourced(path, stdin, limits, false)
}

fn sourced(path: &Path, stdin: &mut dyn Read, limits: &Limits, map: bool) -> Result<Arc<dyn Source>, Failure> {
    let name = name_of(path);
    let failed = |error: io::Error| Failure::unreadable(format!("{name}: {error}"));
    Ok(if is_stdin(path) {
        Arc::new(MemorySource::new(read_whole(stdin, limits, &name)?))
    } else {
        let metadata = metadata(path)?;
        if metadata.is_file() && map && metadata.len() >= LARGE {
            // SAFETY: who runs the command answers for its files, as its help says: they do not change while it runs. The
            // command itself puts new files in the places of old ones; `patch --in-place`, which writes into one, drops it
            // before.
            Arc::new(unsafe { MappedFile::open(path) }.map_err(failed)?)
        } else if metadata.is_file() {
            Arc::new(FileSource::open(path).map_err(failed)?)
        } else {
            let mut stream = std::fs::File::open(path).map_err(failed)?;
            Arc::new(MemorySource::new(read_whole(&mut stream, limits, &name)?))
        }
    })
}

/// Reads a file whole; `-` is standard input.
pub fn read(path: &Path, stdin: &mut dyn Read, limits: &Limits) -> Result<Vec<u8>, Failure> {
    let name = name_of(path);
    if is_stdin(path) {
        return read_whole(stdin, limits, &name);
    }
    metadata(path)?;
    let mut file = std::fs::File::open(path).map_err(|error| Failure::unreadable(format!("{name}: {error}")))?;
    read_whole(&mut file, limits, &name)
}

/// Facts about what a path leads to, which is not a folder.
fn metadata(path: &Path) -> Result<std::fs::Metadata, Failure> {
    let name = name_of(path);
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => Err(Failure::unreadable(format!("{name}: this is a folder"))),
        Ok(metadata) => Ok(metadata),
        Err(error) => Err(Failure::unreadable(format!("{name}: {error}"))),
    }
}

/// A failure about a file that the caller names.
pub fn unreadable(error: edgepack_loader::Error) -> Failure {
    match error {
        edgepack_loader::Error::Io { error, .. } => Failure::unreadable(error),
        error => error.into(),
    }
}

/// The failure of a file of a kind that commands do not open.
pub fn refused(file: &File) -> Failure {
    let name = &file.name;
    if file.head.kind != FileKind::Unknown {
        let kind = file.head.kind.name();
        let article = if kind.starts_with(['E', 'e']) { "an" } else { "a" };
        let way = match file.head.kind {
            FileKind::Safetensors => {
                "`edgepack convert` makes a data file of it, `--inputs` and `check` read its tensors"
            }
            FileKind::Npy => "`--inputs` and `patch` read it",
            FileKind::Dump => "`edgepack build` makes the file of it that was dumped",
            _ => "`edgepack inspect` shows it",
        };
        return Failure::unreadable(format!(
            "{name}: this is {article} {kind}, which this command does not open; {way}"
        ));
    }
    let (first, last) = match (read_head(&*file.source, DETECT_LEN as u64), read_tail(&*file.source, TAIL_LEN as u64)) {
        (Ok(first), Ok(last)) => (first, last),
        (Err(failure), _) | (_, Err(failure)) => return failure.about(name),
    };
    if let Some(foreign) = foreign(&first, &last) {
        return Failure::unreadable(format!("{name}: {foreign}"));
    }
    let first = &first[..first.len().min(12)];
    let shown: Vec<String> = first.iter().map(|byte| format!("{byte:02x}")).collect();
    Failure::unreadable(match shown.is_empty() {
        true => return empty(name),
        false => format!("{name}: this is not a file that edgepack reads; it starts with {}", shown.join(" ")),
    })
}

/// The failure of a file without bytes.
pub fn empty(name: &str) -> Failure {
    Failure::unreadable(format!("{name}: the file is empty"))
}

/// Reads a stream to its end, within the limits.
pub fn read_whole(from: &mut dyn Read, limits: &Limits, name: &str) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    // One byte more than allowed tells a file that is too long from one that just fits.
    from.take(limits.segment_bytes.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::unreadable(format!("{name}: {error}")))?;
    if bytes.len() as u64 > limits.segment_bytes {
        return Err(Failure::unreadable(format!("{name}: more than the {} bytes allowed", limits.segment_bytes)));
    }
    Ok(bytes)
}

/// All bytes of a source, within the limits.
pub fn read_all(source: &dyn Source, limits: &Limits) -> Result<Vec<u8>, Failure> {
    let len = source.len();
    if len > limits.segment_bytes {
        return Err(Failure::unreadable(format!("{len} bytes, more than the {} allowed", limits.segment_bytes)));
    }
    Ok(read_range(source, 0, len)?.to_vec())
}

/// The first `len` bytes of a source, or all it has.
pub fn read_head(source: &dyn Source, len: u64) -> Result<AlignedBytes, Failure> {
    read_range(source, 0, len.min(source.len()))
}

/// The last `len` bytes of a source, or all it has.
pub fn read_tail(source: &dyn Source, len: u64) -> Result<AlignedBytes, Failure> {
    let len = len.min(source.len());
    read_range(source, source.len() - len, len)
}

/// The SHA-256 of a range of a source, read piece by piece.
pub fn digest(source: &dyn Source, range: Range<u64>, done: &mut dyn FnMut(u64)) -> io::Result<Digest> {
    const PIECE: u64 = 1 << 20;
    digest_of(|out| {
        let mut piece = vec![0; PIECE.min(range.end.saturating_sub(range.start)) as usize];
        let mut at = range.start;
        while at < range.end {
            let len = PIECE.min(range.end - at);
            let piece = &mut piece[..len as usize];
            source.read_at(at, piece)?;
            out.write_all(piece)?;
            source.release(at..at + len);
            done(len);
            at += len;
        }
        Ok(())
    })
}

/// A range of a source.
pub fn read_range(source: &dyn Source, start: u64, len: u64) -> Result<AlignedBytes, Failure> {
    let outside = || Failure::findings(format!("bytes {start}..{start}+{len} of {}", source.len()));
    // Checked before anything is reserved: the length may come from the file.
    if start.checked_add(len).is_none_or(|end| end > source.len()) {
        return Err(outside());
    }
    let room = AlignedBytes::zeroed(usize::try_from(len).map_err(|_| outside())?);
    let mut bytes = room.ok_or_else(|| Failure::unreadable(format!("there is no memory for {len} bytes")))?;
    source.read_at(start, bytes.as_mut_slice()).map_err(Failure::unreadable)?;
    Ok(bytes)
}
