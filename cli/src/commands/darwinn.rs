//! `edgepack darwinn`: the host side of an Edge TPU package, step by step.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Subcommand, ValueEnum};
use edgepack_executor::darwinn::{Addresses, Extraction, Output, dequantize, link, transfers};
use edgepack_format::darwinn::{Accept, Layer, PackageRef};
use edgepack_loader::Registry;
use serde_json::json;

use crate::formats;
use crate::readable::sound_rows;
use crate::session::Session;
use crate::spelling;
use crate::status::{Failure, Status};
use crate::style::{DIM, NAME, TITLE, WARN};
use crate::table::{Align, Cell, Columns};
use crate::units::{bytes, count};

/// Link instructions, list transfers, take outputs apart, see what shares on-chip memory
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Which step.
    #[command(subcommand)]
    step: Step,
}

#[derive(Subcommand, Debug)]
enum Step {
    Link(Link),
    Dma(Dma),
    Relayout(Relayout),
    Caching(Caching),
}

/// Which executable of a file.
#[derive(clap::Args, Debug)]
struct Which {
    /// A model or a package
    file: PathBuf,

    /// Which package of a model
    #[arg(long, value_name = "N", default_value_t = 0)]
    package: usize,

    /// Which executable of the package; the one that takes inputs if absent
    #[arg(long, value_name = "N")]
    executable: Option<usize>,
}

/// Write instruction chunks with addresses in them
#[derive(clap::Args, Debug)]
struct Link {
    #[command(flatten)]
    which: Which,

    /// Address of the parameters
    #[arg(long, value_name = "ADDR", value_parser = address)]
    parameter: Option<u64>,

    /// Address of the scratch memory
    #[arg(long, value_name = "ADDR", value_parser = address)]
    scratch: Option<u64>,

    /// Address of an input; once per batch entry
    #[arg(long, value_name = "NAME=ADDR", value_parser = named_address)]
    input: Vec<(String, u64)>,

    /// Address of an output; once per batch entry
    #[arg(long, value_name = "NAME=ADDR", value_parser = named_address)]
    output: Vec<(String, u64)>,

    /// Folder for the chunks, chunk0.bin and so on
    #[arg(short = 'o', long, value_name = "DIR")]
    out: PathBuf,
}

/// List the transfers of a run, in order
#[derive(clap::Args, Debug)]
struct Dma {
    #[command(flatten)]
    which: Which,

    /// How the list is made
    #[arg(long, value_name = "HOW", default_value = "hints")]
    from: From,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum From {
    /// From the hints, as over USB
    Hints,
    /// One transfer per chunk, as over PCIe
    Instructions,
    /// The first chunk alone, as over USB without hints
    First,
}

/// Bring an output from the device's order into the tensor's
#[derive(clap::Args, Debug)]
struct Relayout {
    #[command(flatten)]
    which: Which,

    /// Which output
    #[arg(long, value_name = "NAME")]
    output: String,

    /// What the device delivered; - is standard input
    #[arg(long, value_name = "FILE")]
    input: PathBuf,

    /// Write real values as 32-bit floats instead of the tensor's numbers
    #[arg(long)]
    values: bool,

    /// Where the tensor goes; - is standard output
    #[arg(short = 'o', long, value_name = "FILE")]
    out: PathBuf,
}

/// Say which models share a caching token, and what is cached and streamed
#[derive(clap::Args, Debug)]
struct Caching {
    /// Models or packages
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

fn address(text: &str) -> Result<u64, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.map_err(|error| error.to_string())
}

fn named_address(text: &str) -> Result<(String, u64), String> {
    // Names may have any character, addresses have no equals sign.
    let (name, number) = text.rsplit_once('=').ok_or("NAME=ADDR is asked for")?;
    Ok((name.to_owned(), address(number)?))
}

/// Runs the command.
pub fn run(args: &Args, session: &mut Session) -> Result<Status, Failure> {
    match &args.step {
        Step::Link(args) => run_link(args, session),
        Step::Dma(args) => run_dma(args, session),
        Step::Relayout(args) => run_relayout(args, session),
        Step::Caching(args) => run_caching(args, session),
    }
}

/// The bytes of a valid package of the file.
fn package(path: &Path, index: usize, session: &mut Session) -> Result<Vec<u8>, Failure> {
    let (head, format) = formats::read(path, session)?;
    let name = &head.file.name;
    if let Some(error) = format.verify(&head, session).first_error() {
        return Err(Failure::findings(format!("{name}: {error}")));
    }
    let packages = format.packages(&head, &session.limits);
    match packages.get(index) {
        Some(package) => Ok(package.to_vec()),
        None => Err(Failure::usage(format!("{name}: there is no package {index}; there are {}", packages.len()))),
    }
}

/// Calls back with the row of the executable that was asked for.
fn with_executable<T>(
    which: &Which,
    session: &mut Session,
    visit: impl FnOnce(&edgepack_format::darwinn::Executable<'_>, &mut Session) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let bytes = package(&which.file, which.package, session)?;
    let package = PackageRef::reopen(&bytes)?;
    let index = which.executable.or(package.main()).unwrap_or(0);
    let count = package.executables().len();
    let executable = package.executables().get(index);
    let executable =
        executable.ok_or_else(|| Failure::usage(format!("there is no executable {index}; there are {count}")))?;
    visit(executable.row(), session)
}

fn by_name(list: &[(String, u64)]) -> BTreeMap<String, Vec<u64>> {
    let mut map: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    list.iter().for_each(|(name, address)| map.entry(name.clone()).or_default().push(*address));
    map
}

fn run_link(args: &Link, session: &mut Session) -> Result<Status, Failure> {
    with_executable(&args.which, session, |row, session| {
        let addresses = Addresses {
            parameter: args.parameter,
            scratch: args.scratch,
            inputs: by_name(&args.input),
            outputs: by_name(&args.output),
        };
        let chunks = link(row, &addresses).map_err(Failure::usage)?;
        std::fs::create_dir_all(&args.out)
            .map_err(|error| Failure::unreadable(format!("{}: {error}", args.out.display())))?;
        let mut written = Vec::new();
        for (index, chunk) in chunks.iter().enumerate() {
            let path = args.out.join(format!("chunk{index}.bin"));
            session.stage(&path, |out| Ok(out.write_all(chunk)?))?;
            written.push(json!({ "file": path.display().to_string(), "bytes": chunk.len() }));
        }
        session.outputs.commit()?;
        if session.json {
            session.document(&json!({ "chunks": written }))?;
        }
        Ok(Status::Fine)
    })
}

fn run_dma(args: &Dma, session: &mut Session) -> Result<Status, Failure> {
    let extraction = match args.from {
        From::Hints => Extraction::Hints,
        From::Instructions => Extraction::Instructions,
        From::First => Extraction::FirstInstruction,
    };
    with_executable(&args.which, session, |row, session| {
        let list = transfers(row, extraction, true).map_err(Failure::findings)?;
        if session.json {
            let entry = |transfer: &edgepack_executor::darwinn::Transfer| match transfer.moved() {
                Some((buffer, range)) => json!({
                    "kind": transfer.kind(), "buffer": buffer.to_string(), "offset": range.start, "bytes": range.len(),
                }),
                None => json!({ "kind": transfer.kind() }),
            };
            session.document(&json!({ "transfers": list.iter().map(entry).collect::<Vec<_>>() }))?;
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

fn run_relayout(args: &Relayout, session: &mut Session) -> Result<Status, Failure> {
    let device = session.read(&args.input)?;
    with_executable(&args.which, session, |row, session| {
        let layers = sound_rows(&row.output_layers);
        let named = |layer: &&Layer<'_>| layer.name.as_deref() == Some(&args.output);
        let layer = layers.iter().find(named);
        let layer = layer.ok_or_else(|| {
            let names: Vec<String> =
                layers.iter().map(|layer| spelling::name(layer.name.as_deref().unwrap_or("?"))).collect();
            Failure::usage(format!("there is no output {:?}; there are {}", args.output, names.join(", ")))
        })?;
        let output = Output::within(layer, &session.limits).map_err(Failure::findings)?;
        let tensor = output.take(&device).map_err(Failure::usage)?;
        let tensor = match args.values {
            true => {
                let values = dequantize(layer, &tensor).map_err(Failure::findings)?;
                values.iter().flat_map(|value| value.to_le_bytes()).collect()
            }
            false => tensor,
        };
        session.write_binary(&args.out, &tensor)?;
        if session.json {
            session.document(&json!({ "output": args.out.display().to_string(), "bytes": tensor.len() }))?;
        }
        Ok(Status::Fine)
    })
}

fn run_caching(args: &Caching, session: &mut Session) -> Result<Status, Failure> {
    let mut registry = Registry::accepting(Accept::ALL);
    let mut found = Vec::new();
    for path in &args.files {
        let bytes = package(path, 0, session)?;
        let registration = registry.register(&bytes).map_err(Failure::cannot_run)?;
        found.push((path.display().to_string(), registration));
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
                json!({
                    "file": file,
                    "cached_bytes": registration.cached_bytes(),
                    "streamed_bytes": registration.streamed_bytes(),
                })
            });
            json!({
                "token": format!("{token:#018x}"),
                "shares": *token != 0,
                "cached_bytes": cached,
                "files": members.collect::<Vec<_>>(),
            })
        });
        session.document(&json!({ "groups": groups.collect::<Vec<_>>() }))?;
        return Ok(Status::Fine);
    }
    for (token, members) in &groups {
        let cached: u64 = members.iter().map(|index| found[*index].1.cached_bytes()).sum();
        let together = match (*token, members.len()) {
            (0, _) => format!("{WARN}no token: nothing stays on the chip beside another model{WARN:#}"),
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
