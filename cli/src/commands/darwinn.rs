//! `edgepack darwinn`: the host side of an Edge TPU package, one operation per subcommand.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};
use edgepack_executor::darwinn::{Addresses, Extraction};

use crate::formats::darwinn::host::{self, Delivered, Which};
use crate::formats::darwinn::plan;
use crate::session::Session;
use crate::status::{Failure, Status};

/// Link instructions, list transfers, take outputs apart, see what shares on-chip memory
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Operation on the package.
    #[command(subcommand)]
    step: Step,
}

#[derive(Subcommand, Debug)]
enum Step {
    Link(Link),
    Dma(Dma),
    Relayout(Relayout),
    Caching(Caching),
    Plan(Plan),
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

    /// Source of the list
    #[arg(long, value_name = "SOURCE", default_value = "hints")]
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

    /// Name of the output
    #[arg(long, value_name = "NAME")]
    output: String,

    /// File with the bytes that the device delivered; - is standard input
    #[arg(long, value_name = "FILE")]
    input: PathBuf,

    /// Write real values as 32-bit floats instead of the tensor's numbers
    #[arg(long)]
    values: bool,

    /// File for the tensor; - is standard output
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

/// Say whether models fit the chip together, what is sent for every run, and whether pipeline segments meet
///
/// Inputs are compared with outputs of the same name of the files before: names, shapes, types, scales and zero points.
/// The exit status is 1 if the models do not stay on the chip together, or if an input differs.
#[derive(clap::Args, Debug)]
struct Plan {
    /// Models or packages, in the order of the pipeline
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Bytes of the chip for parameters; an Edge TPU has 8 MiB, of which compilers use a little less
    #[arg(long, value_name = "BYTES", default_value_t = 8 << 20)]
    memory: u64,
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

fn by_name(list: &[(String, u64)]) -> BTreeMap<String, Vec<u64>> {
    let mut map: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    list.iter().for_each(|(name, address)| map.entry(name.clone()).or_default().push(*address));
    map
}

/// Runs the command.
pub fn run(args: &Args, session: &mut Session) -> Result<Status, Failure> {
    match &args.step {
        Step::Link(Link { which, parameter, scratch, input, output, out }) => {
            let (inputs, outputs) = (by_name(input), by_name(output));
            let addresses = Addresses { parameter: *parameter, scratch: *scratch, inputs, outputs };
            host::link(which, &addresses, out, session)
        }
        Step::Dma(Dma { which, from }) => {
            let extraction = match from {
                From::Hints => Extraction::Hints,
                From::Instructions => Extraction::Instructions,
                From::First => Extraction::FirstInstruction,
            };
            host::transfers(which, extraction, session)
        }
        Step::Relayout(Relayout { which, output, input, values, out }) => {
            host::relayout(which, &Delivered { output, file: input, values: *values }, out, session)
        }
        Step::Caching(Caching { files }) => host::caching(files, session),
        Step::Plan(Plan { files, memory }) => plan::plan(files, *memory, session),
    }
}
