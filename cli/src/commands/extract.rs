//! `edgepack extract`: one raw piece of a file.

use std::path::PathBuf;

use edgepack_format::header::{DataHeader, ProgramHeader};
use edgepack_format::limits::Limits;
use edgepack_format::pte::{BackendDelegate, DataLocation, Program};

use crate::file::{File, read_range};
use crate::flatbuffer::Flatbuffer;
use crate::kind::Kind;
use crate::lenient;
use crate::session::Session;
use crate::status::{Failure, Status};
use crate::summary::bundle::program_bytes;
use crate::summary::data::DataSummary;
use crate::summary::program::ProgramSummary;

/// Take one raw piece out of a file
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The file
    pub file: PathBuf,

    /// Which piece.
    #[command(flatten)]
    pub piece: Piece,

    /// Where it goes; - is standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
}

/// Which piece: exactly one.
#[derive(clap::Args, Debug)]
#[group(required = true, multiple = false)]
pub struct Piece {
    /// A segment, by index
    #[arg(long, value_name = "N")]
    pub segment: Option<u32>,

    /// A delegate's payload, by its place among the delegates of all methods
    #[arg(long, value_name = "N")]
    pub delegate: Option<usize>,

    /// Named data, by key
    #[arg(long, value_name = "KEY")]
    pub named: Option<String>,

    /// The program inside a bundle
    #[arg(long)]
    pub program: bool,

    /// An Edge TPU package inside a model, by index
    #[arg(long, value_name = "N")]
    pub package: Option<usize>,

    /// A file of a Model Library Format package, by its path in it
    #[arg(long, value_name = "PATH")]
    pub member: Option<String>,
}

/// Runs the command.
pub fn run(args: &Args, session: &mut Session) -> Result<Status, Failure> {
    let file = session.open(&args.file)?;
    let flatbuffer = Flatbuffer::read(&file, &session.limits)?;
    let bytes = piece(&args.piece, &file, &flatbuffer, &session.limits).map_err(|failure| failure.about(&file.name))?;
    session.write_binary(&args.output, &bytes)?;
    if session.json {
        session.document(&serde_json::json!({
            "file": file.name, "output": args.output.display().to_string(), "bytes": bytes.len(),
        }))?;
    }
    Ok(Status::Fine)
}

fn piece(piece: &Piece, file: &File, flatbuffer: &Flatbuffer, limits: &Limits) -> Result<Vec<u8>, Failure> {
    if file.kind == Kind::Library {
        return member(piece, flatbuffer, limits);
    }
    let root = flatbuffer.root().filter(|_| flatbuffer.is_modest(limits));
    let (root, _) = root.ok_or_else(|| Failure::findings("nothing in it can be read within reason"))?;
    let of_kind = |what: &str| Failure::usage(format!("this {} has no {what}", file.kind.title()));
    match file.kind {
        Kind::Program => {
            let program = lenient::program(&root);
            match piece {
                Piece { segment: Some(index), .. } => segment(file, &flatbuffer.head, *index),
                Piece { delegate: Some(index), .. } => delegate(file, &flatbuffer.head, &program, *index),
                Piece { named: Some(key), .. } => {
                    let entries = lenient::rows(&program.named_data).into_iter().flatten();
                    let mut entries = entries.filter(|entry| entry.key.as_deref() == Some(key));
                    let entry = entries.next().ok_or_else(|| Failure::usage(format!("there is no key {key:?}")))?;
                    segment(file, &flatbuffer.head, entry.segment_index)
                }
                _ => Err(of_kind("program inside")),
            }
        }
        Kind::Data | Kind::FlatData => {
            let summary = DataSummary::new(file.kind, &root, &flatbuffer.head, file.source.len());
            match piece {
                Piece { segment: Some(index), .. } => data_segment(file, &summary, *index),
                Piece { named: Some(key), .. } => {
                    let entry = summary.entries.iter().find(|entry| entry.key == *key);
                    let entry = entry.ok_or_else(|| Failure::usage(format!("there is no key {key:?}")))?;
                    let verdict = flatbuffer.data_entry(key);
                    match verdict {
                        // Older files keep several tensors in a segment.
                        Some(range) => read(file, range.start, range.end.saturating_sub(range.start)),
                        None => data_segment(file, &summary, entry.segment),
                    }
                }
                Piece { delegate: Some(_), .. } => Err(of_kind("delegates")),
                _ => Err(of_kind("program inside")),
            }
        }
        Kind::Bundle => match (piece.program, program_bytes(&root)) {
            (true, Some(bytes)) => Ok(bytes.to_vec()),
            (true, None) => Err(Failure::findings("there is no program in it")),
            (false, _) => Err(Failure::usage("take the program out first, with --program")),
        },
        Kind::Trace | Kind::Library | Kind::Exported => Err(of_kind("pieces")),
        Kind::Model | Kind::Package => {
            let Some(index) = piece.package else { return Err(of_kind("such pieces; take a package, with --package")) };
            let compiled = flatbuffer.compiled(limits);
            let packages = compiled.as_ref().map(|compiled| compiled.packages()).unwrap_or_default();
            match packages.get(index) {
                Some((_, package)) => Ok(package.bytes().to_vec()),
                None => Err(Failure::usage(format!("there is no package {index}; there are {}", packages.len()))),
            }
        }
    }
}

/// A file of an archive.
fn member(piece: &Piece, flatbuffer: &Flatbuffer, limits: &Limits) -> Result<Vec<u8>, Failure> {
    let wanted = || Failure::usage("this package has files; take one with --member");
    let path = piece.member.as_deref().ok_or_else(wanted)?;
    let archive = edgepack_loader::mlf::Archive::read(&flatbuffer.head, limits).archive;
    let range = archive.find(path.trim_start_matches("./"));
    let bytes = range.and_then(|range| flatbuffer.head.get(range));
    bytes.map(<[u8]>::to_vec).ok_or_else(|| Failure::usage(format!("there is no file {path:?} in it")))
}

fn read(file: &File, start: u64, len: u64) -> Result<Vec<u8>, Failure> {
    Ok(read_range(&*file.source, start, len)?.to_vec())
}

fn no_segment(index: u32, count: usize) -> Failure {
    Failure::usage(format!("there is no segment {index}; there are {count}"))
}

fn segment(file: &File, head: &[u8], index: u32) -> Result<Vec<u8>, Failure> {
    let table = edgepack_format::wire::Table::root(head)?;
    let summary = ProgramSummary::new(&lenient::program(&table), head, file.source.len());
    let found = summary.segments.get(index as usize);
    let found = found.ok_or_else(|| no_segment(index, summary.segments.len()))?;
    if ProgramHeader::read(head).is_err() {
        return Err(Failure::findings("there is no extended header that says where segments are"));
    }
    read(file, found.offset.unwrap_or(u64::MAX), found.bytes)
}

fn data_segment(file: &File, summary: &DataSummary, index: u32) -> Result<Vec<u8>, Failure> {
    let found = summary.segments.get(index as usize);
    let found = found.ok_or_else(|| no_segment(index, summary.segments.len()))?;
    if summary.header.is_none() {
        return Err(Failure::findings(format!("there is no {} header", DataHeader::MAGIC.escape_ascii())));
    }
    read(file, found.offset.unwrap_or(u64::MAX), found.bytes)
}

fn delegate(file: &File, head: &[u8], program: &Program<'_>, index: usize) -> Result<Vec<u8>, Failure> {
    let plans = lenient::plans(program);
    let delegates: Vec<Option<BackendDelegate<'_>>> =
        plans.iter().flat_map(|plan| lenient::rows(&plan.delegates)).collect();
    let found = delegates.get(index);
    let found =
        found.ok_or_else(|| Failure::usage(format!("there is no delegate {index}; there are {}", delegates.len())))?;
    let place = found.as_ref().and_then(|delegate| delegate.processed);
    match place {
        Some(place) if place.location == DataLocation::SEGMENT => segment(file, head, place.index),
        Some(place) if place.location == DataLocation::INLINE => {
            let blobs = program.backend_delegate_data.clone().unwrap_or_default();
            let blob = blobs.get(place.index as usize)?;
            Ok(blob.data.ok_or_else(|| Failure::findings("its payload is absent"))?.0.into_owned())
        }
        _ => Err(Failure::findings(format!("delegate {index} does not say where its payload is"))),
    }
}
