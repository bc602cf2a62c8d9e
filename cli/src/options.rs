//! Arguments that several commands have, each group declared once.

use std::path::PathBuf;

use clap::ValueEnum;
use clap::builder::TypedValueParser;
use edgepack_format::limits::Limits;

use crate::compare::Tolerance;
use crate::inputs::fill::Fill;
use crate::inputs::image::Preparation;
use crate::inputs::item::Item;

/// Options of every command.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct Common {
    /// Print JSON: one document; of several files an array of them, of `verify` one document with `files`. `lines` prints a
    /// document per line, `array` always an array
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

    /// Also read `http://` of this machine; elsewhere only `https://` is read
    #[arg(long, global = true)]
    pub loopback_http: bool,

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

    /// Inputs.
    #[command(flatten)]
    pub inputs: Inputs,
}

/// Inputs of a run.
#[derive(clap::Args, Debug)]
pub struct Inputs {
    /// Inputs in order, or with their index in front (`1=mask.npy`): NumPy arrays, pictures (.png, .jpg, see --image),
    /// numbers, `true` and `false`, raw elements with their type (`f32[1, 3]=FILE`, or `raw=FILE` for the type of the
    /// input); a safetensors file or an archive of arrays (.npz) gives several, by the keys `I`, `in.I`, `arr_I` or
    /// `METHOD.RUN.in.I` (the first run). A file that is named as a number is `./3`
    #[arg(short, long, value_name = "ITEM", num_args = 1.., allow_negative_numbers = true)]
    #[arg(value_parser = clap::builder::OsStringValueParser::new().try_map(Item::parse))]
    pub inputs: Vec<Item>,

    /// Steps from pictures to inputs: a preset, settings, or both. `imagenet` (the shorter side becomes 8/7 of the
    /// input's, the middle is cut out, mean and deviation of ImageNet), `signed` (-1 to 1), `unit` (0 to 1), `bytes` (0 to
    /// 255). Settings: `resize=224` (shorter side; the middle is cut out) or `resize=224x320` (height and width),
    /// `mean=` and `std=` (one number or three, of colours from 0 to 1), `max=` (a factor at the end), `order=bgr`,
    /// `layout=nhwc`. Resizing is bilinear over all pixels; transparency and orientation are not looked at
    #[arg(long, value_name = "PRESET,KEY=VALUE,…")]
    pub image: Option<Preparation>,

    /// Random elements for inputs that are not given: floats between -1 and 1, bytes and bools of any value, wider
    /// integers 0 or 1, since they may be indices. An equal seed gives equal elements
    #[arg(long, value_name = "SEED", conflicts_with = "zeros")]
    pub random: Option<u64>,

    /// Zeros for inputs that are not given
    #[arg(long)]
    pub zeros: bool,
}

impl Inputs {
    /// Returns what fills inputs that are not given, if anything was asked for.
    pub fn fill(&self) -> Option<Fill> {
        self.random.map(Fill::Random).or(self.zeros.then_some(Fill::Zeros))
    }
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

/// Consent to run the code of a package, and what of it is run.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Native {
    /// Compile and call the code of a Model Library Format package, which then has all your rights. It runs in a process
    /// of its own, which is no protection from it: a crash is an error, not the end of the command
    #[arg(long)]
    pub allow_native_code: bool,

    /// Run that code in the process of the command, which is faster and ends where the code crashes
    #[arg(long, requires = "allow_native_code")]
    pub in_process: bool,

    /// Time that loading that code and every run of it may take; 600 if not given
    #[arg(long, value_name = "SECONDS", requires = "allow_native_code", conflicts_with = "in_process")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub time_limit: Option<u32>,

    /// Module of a package of several
    #[arg(long, value_name = "NAME")]
    pub module: Option<String>,

    /// One function of the module, called alone: an operator that its graph calls, or a single operator's
    #[arg(long, value_name = "NAME")]
    pub function: Option<String>,
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

/// Reads a tolerance.
pub fn tolerance(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value >= 0.0 => Ok(value),
        _ => Err("a tolerance is a number that is not negative".to_owned()),
    }
}
