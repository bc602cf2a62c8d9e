//! The host side of an Edge TPU package: addresses in instructions, transfers, outputs, shared on-chip memory.
//!
//! Invariant: a package is verified before anything of it is read.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use edgepack_executor::darwinn::{self, Addresses, Extraction, Output, Transfer, dequantize};
use edgepack_format::darwinn::{Accept, Executable, Layer, PackageRef};
use edgepack_loader::Registry;
use serde::Serialize;

use crate::file::name_of;
use crate::formats::{self, Format, Head, is_compiled, wrong_kind};
use crate::readable::sound_rows;
use crate::session::Session;
use crate::spelling;
use crate::status::{Failure, Status};
use crate::style::{DIM, NAME, TITLE, WARN};
use crate::table::{Align, Cell, Columns};
use crate::units::{bytes, count};

/// An executable of a file.
#[derive(clap::Args, Debug)]
pub struct Which {
    /// A model or a package
    pub file: PathBuf,

    /// Index of the package in the model
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub package: usize,

    /// Index of the executable in the package; the one that takes inputs if not given
    #[arg(long, value_name = "N")]
    pub executable: Option<usize>,
}

/// Output as the device delivered it.
#[derive(Clone, Copy, Debug)]
pub struct Delivered<'a> {
    /// The name of the output.
    pub output: &'a str,
    /// The file that holds it; `-` is standard input.
    pub file: &'a Path,
    /// True if real values are wanted instead of the tensor's numbers.
    pub values: bool,
}

/// The document of `link`.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct Chunks {
    /// Chunks in order.
    chunks: Vec<Chunk>,
}

/// A chunk of instructions.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct Chunk {
    /// Bytes of the chunk.
    bytes: usize,
    /// The file it was written to.
    file: String,
}

/// The document of `dma`.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct Transfers {
    /// Transfers in order.
    transfers: Vec<TransferLine>,
}

/// A transfer.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct TransferLine {
    /// Buffer of the host; absent if nothing is moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    buffer: Option<String>,
    /// Bytes that are moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<usize>,
    /// Kind of the transfer.
    kind: String,
    /// Offset in the buffer.
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<usize>,
}

/// The document of `relayout`.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct Relaid {
    /// Bytes of the tensor.
    bytes: usize,
    /// The file it was written to.
    output: String,
}

/// The document of `caching`.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct Groups {
    /// Groups by token.
    groups: Vec<Group>,
}

/// Files with the same caching token.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct Group {
    /// Bytes that stay on the chip, all together.
    cached_bytes: u64,
    /// The files of the group.
    files: Vec<CachedFile>,
    /// True if they share the chip.
    shares: bool,
    /// Caching token in hexadecimal digits.
    token: String,
}

/// Parameters of a file.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct CachedFile {
    /// Bytes that stay on the chip.
    cached_bytes: u64,
    /// The file.
    file: String,
    /// Bytes that are sent for every run.
    streamed_bytes: u64,
}

/// Writes the instruction chunks of an executable, with addresses in them, into a folder.
pub fn link(which: &Which, addresses: &Addresses, folder: &Path, session: &mut Session) -> Result<Status, Failure> {
    with_executable(which, session, |row, session| {
        let chunks = darwinn::link(row, addresses).map_err(Failure::usage)?;
        std::fs::create_dir_all(folder)
            .map_err(|error| Failure::unreadable(format!("{}: {error}", folder.display())))?;
        let mut written = Vec::new();
        for (index, chunk) in chunks.iter().enumerate() {
            let path = folder.join(format!("chunk{index}.bin"));
            session.stage(&path, |out| Ok(out.write_all(chunk)?))?;
            written.push(Chunk { bytes: chunk.len(), file: path.display().to_string() });
        }
        session.outputs.commit()?;
        if session.json {
            session.document(&Chunks { chunks: written })?;
        }
        Ok(Status::Fine)
    })
}

/// Lists the transfers of a run, in order.
pub fn transfers(which: &Which, extraction: Extraction, session: &mut Session) -> Result<Status, Failure> {
    with_executable(which, session, |row, session| {
        let list = darwinn::transfers(row, extraction, true).map_err(Failure::findings)?;
        if session.json {
            let entry = |transfer: &Transfer| match transfer.moved() {
                Some((buffer, range)) => TransferLine {
                    buffer: Some(buffer.to_string()),
                    bytes: Some(range.len()),
                    kind: transfer.kind(),
                    offset: Some(range.start),
                },
                None => TransferLine { buffer: None, bytes: None, kind: transfer.kind(), offset: None },
            };
            session.document(&Transfers { transfers: list.iter().map(entry).collect() })?;
            return Ok(Status::Fine);
        }
        let mut columns = Columns::new(0, &[Align::Right, Align::Left, Align::Left, Align::Right, Align::Right]);
        for (index, transfer) in list.iter().enumerate() {
            let (buffer, at, len) = match transfer.moved() {
                Some((buffer, range)) => (buffer.to_string(), format!("{:#x}", range.start), range.len().to_string()),
                None => Default::default(),
            };
            columns.row([
                Cell::new(index.to_string(), DIM),
                transfer.kind().into(),
                Cell::new(spelling::name(&buffer), NAME),
                at.into(),
                len.into(),
            ]);
        }
        columns.print(&mut session.out)?;
        Ok(Status::Fine)
    })
}

/// Brings an output from the device's order into the tensor's, or to real values.
pub fn relayout(which: &Which, delivered: &Delivered<'_>, to: &Path, session: &mut Session) -> Result<Status, Failure> {
    let device = session.read_filled(delivered.file)?;
    with_executable(which, session, |row, session| {
        let layers = sound_rows(&row.output_layers);
        let named = |layer: &&Layer<'_>| layer.name.as_deref() == Some(delivered.output);
        let layer = layers.iter().find(named);
        let layer = layer.ok_or_else(|| {
            let names: Vec<String> =
                layers.iter().map(|layer| spelling::name(layer.name.as_deref().unwrap_or("?"))).collect();
            Failure::usage(format!(
                "there is no output {:?}; there {} {}",
                delivered.output,
                if names.len() == 1 { "is" } else { "are" },
                names.join(", ")
            ))
        })?;
        let output = Output::within(layer, &session.limits).map_err(Failure::findings)?;
        let tensor = output.take(&device).map_err(Failure::usage)?;
        let tensor = match delivered.values {
            true => {
                let values = dequantize(layer, &tensor).map_err(Failure::findings)?;
                values.iter().flat_map(|value| value.to_le_bytes()).collect()
            }
            false => tensor,
        };
        session.write_binary(to, &tensor)?;
        if session.json {
            session.document(&Relaid { bytes: tensor.len(), output: to.display().to_string() })?;
        }
        Ok(Status::Fine)
    })
}

/// Reports which models use the same caching token, and what of each is cached and streamed.
pub fn caching(files: &[PathBuf], session: &mut Session) -> Result<Status, Failure> {
    let mut registry = Registry::accepting(Accept::ALL);
    let mut found = Vec::new();
    for path in files {
        let bytes = package(path, 0, session)?;
        let registration = registry.register(&bytes).map_err(Failure::cannot_run)?;
        found.push((name_of(path), registration));
    }
    let mut groups: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for (index, (_, registration)) in found.iter().enumerate() {
        groups.entry(registration.token()).or_default().push(index);
    }
    if session.json {
        let groups = groups.iter().map(|(token, members)| {
            let cached: u64 = members.iter().map(|index| found[*index].1.cached_bytes()).sum();
            let members = members.iter().map(|index| {
                let (file, registration) = &found[*index];
                CachedFile {
                    cached_bytes: registration.cached_bytes(),
                    file: file.clone(),
                    streamed_bytes: registration.streamed_bytes(),
                }
            });
            Group {
                cached_bytes: cached,
                files: members.collect(),
                shares: *token != 0,
                token: format!("{token:#018x}"),
            }
        });
        session.document(&Groups { groups: groups.collect() })?;
        return Ok(Status::Fine);
    }
    for (token, members) in &groups {
        let cached: u64 = members.iter().map(|index| found[*index].1.cached_bytes()).sum();
        let together = match (*token, members.len()) {
            (0, _) => format!("{WARN}no token: nothing stays on the chip next to another model{WARN:#}"),
            (_, 1) => "alone: any other model makes it load its parameters again".to_owned(),
            (_, several) => format!("{} share the chip, {} cached together", count(several, "model"), bytes(cached)),
        };
        writeln!(session.out, "{TITLE}{token:#018x}{TITLE:#}  {together}")?;
        let mut columns = Columns::new(2, &[Align::Left, Align::Right, Align::Right]);
        for index in members {
            let (file, registration) = &found[*index];
            columns.row([
                Cell::new(file, NAME),
                format!("{} cached", bytes(registration.cached_bytes())).into(),
                format!("{} streamed", bytes(registration.streamed_bytes())).into(),
            ]);
        }
        columns.print(&mut session.out)?;
    }
    Ok(Status::Fine)
}

/// The bytes of a valid package of the file.
fn package(path: &Path, index: usize, session: &mut Session) -> Result<Vec<u8>, Failure> {
    let (head, format) = compiled(path, session)?;
    let packages = format.packages(&head, &session.limits);
    packages.get(index).map(|package| package.to_vec()).ok_or_else(|| {
        let (name, packages) = (&head.file.name, count(packages.len(), "package"));
        Failure::usage(format!("{name}: there is no package {index}; the file has {packages}"))
    })
}

/// Opens a valid file with something in it that is compiled for an Edge TPU.
pub fn compiled(path: &Path, session: &mut Session) -> Result<(Head, &'static dyn Format), Failure> {
    let (head, format) = formats::read(path, session)?;
    let (name, kind) = (&head.file.name, format.kind());
    if !is_compiled(kind) {
        return Err(wrong_kind(&head.file, "a compiled model or package"));
    }
    if let Some(error) = format.verify(&head, session).first_error() {
        return Err(Failure::findings(format!("{name}: {error}")));
    }
    if format.packages(&head, &session.limits).is_empty() {
        let message = format!("{name}: this {} holds nothing that is compiled for an Edge TPU", kind.name());
        return Err(Failure::usage(message));
    }
    Ok((head, format))
}

/// Calls back with the row of the executable that was asked for.
fn with_executable<T>(
    which: &Which,
    session: &mut Session,
    visit: impl FnOnce(&Executable<'_>, &mut Session) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let bytes = package(&which.file, which.package, session)?;
    let package = PackageRef::reopen(&bytes)?;
    let index = which.executable.or(package.main()).unwrap_or(0);
    let count = package.executables().len();
    let executable = package.executables().get(index);
    let executable = executable.ok_or_else(|| {
        Failure::usage(format!(
            "there is no executable {index}; the package has {}",
            crate::units::count(count, "executable")
        ))
    })?;
    visit(executable.row(), session)
}
