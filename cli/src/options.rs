//! Arguments that several commands have, each group declared once.

use std::path::PathBuf;

use clap::ValueEnum;
use edgepack_format::limits::Limits;

use crate::compare::Tolerance;

/// Options of every command.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct Common {
    /// Print JSON: one document; of several files an array of them. `lines` prints a document per line, `array` always
    /// an array
    #[arg(
        long,
        global = true,
        value_name = "FORM",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "document",
        hide_possible_values = true
    )]
    pub json: Option<JsonForm>,

    /// Use of colour
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub color: Color,

    /// Ceilings of memory and work that a file may ask for
    #[arg(long, global = true, value_name = "WHICH", default_value = "default")]
    pub limits: LimitsChoice,

    /// Read files instead of mapping those of 16 MiB or more: for files that others may change or shorten meanwhile. With
    /// hostile limits no file is mapped
    #[arg(long, global = true)]
    pub no_map: bool,

    /// Also write over a file that is read, two outputs to one file, and what is not valid
    #[arg(long, global = true)]
    pub force: bool,
}

/// Form of JSON output.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum JsonForm {
    /// One document, or an array if there are several files
    Document,
    /// A document per line
    Lines,
    /// An array of documents
    Array,
}

/// Use of colour.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Color {
    /// On terminals, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// Ceilings of memory and work.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum LimitsChoice {
    /// Those of this machine: a method may have half of its memory
    Default,
    /// For files of strangers: at most 128 MiB and 100 000 instructions
    Hostile,
}

impl Common {
    /// Returns whether large files are mapped. Replacing a mapped file is not possible everywhere.
    pub fn maps_files(&self) -> bool {
        cfg!(unix) && !self.no_map && self.limits != LimitsChoice::Hostile
    }
}

impl LimitsChoice {
    /// Returns the ceilings; the default ones depend on the memory of this machine.
    pub fn limits(self) -> Limits {
        match self {
            LimitsChoice::Default => edgepack_loader::machine_limits(),
            LimitsChoice::Hostile => Limits::hostile(),
        }
    }
}

/// Data files of a program that runs.
#[derive(clap::Args, Clone, Debug)]
pub struct DataFiles {
    /// Data files the program needs
    #[arg(long, value_name = "FILE")]
    pub data: Vec<PathBuf>,
}

/// A method and its inputs.
#[derive(clap::Args, Debug)]
pub struct Invocation {
    /// Data files of the program.
    #[command(flatten)]
    pub data: DataFiles,

    /// Name of the method, or of the module of a package; the only one, or `forward`, if not given
    #[arg(short, long, value_name = "NAME")]
    pub method: Option<String>,

    /// Inputs: a safetensors file with keys `I`, `in.I` or `METHOD.RUN.in.I` (the first run), or NumPy arrays in order
    #[arg(short, long, value_name = "FILE", num_args = 1..)]
    pub inputs: Vec<PathBuf>,
}

/// Number of threads that compute.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct Threads {
    /// Threads that compute; as many as the machine has if not given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
}

/// Folder in which packed weights are stored for the next time.
#[derive(clap::Args, Clone, Debug)]
pub struct PackCache {
    /// A folder of yours alone for packed weights, which are then read instead of packed again
    #[arg(long = "pack-cache", value_name = "DIR")]
    pub folder: Option<PathBuf>,
}

/// Consent to run the code of a package.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct Native {
    /// Compile and call the code of a Model Library Format package, which then has all your rights
    #[arg(long)]
    pub allow_native_code: bool,
}

/// Bounds of the distance between results and recorded ones.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct Tolerances {
    /// Relative tolerance
    #[arg(long, value_name = "R", value_parser = tolerance, allow_negative_numbers = true)]
    pub rtol: Option<f64>,

    /// Absolute tolerance
    #[arg(long, value_name = "A", value_parser = tolerance, allow_negative_numbers = true)]
    pub atol: Option<f64>,
}

impl Tolerances {
    /// Returns the given bounds; a bound that is not given depends on the element type.
    pub fn tolerance(self) -> Tolerance {
        Tolerance { rtol: self.rtol, atol: self.atol }
    }
}

fn tolerance(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value >= 0.0 => Ok(value),
        _ => Err("a tolerance is a number that is not negative".to_owned()),
    }
}
