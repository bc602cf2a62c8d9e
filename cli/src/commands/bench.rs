//! `edgepack bench`: how long opening, loading and running take, and what memory they need.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use edgepack_executor::{Input, MemoryBytes, Method, Options};
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::{TensorBuf, TensorLayout};
use edgepack_loader::{MethodMeta, ValueMeta};
use half::{bf16, f16};
use serde::Serialize;

use crate::commands::run::read_inputs;
use crate::file::File;
use crate::kind::Kind;
use crate::library::{self, Native};
use crate::session::Session;
use crate::status::{Failure, Status};
use crate::style::{DIM, TITLE};
use crate::table::{Align, Cell, Columns};
use crate::units::{bytes, count, duration};
use crate::value::Value;
use crate::{cases, data_files, notation, program};

/// Measure opening, loading and running a method
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The program
    pub file: PathBuf,

    /// Data files the program needs
    #[arg(long, value_name = "FILE")]
    pub data: Vec<PathBuf>,

    /// Which method; the only one, or `forward`, if not given
    #[arg(short, long, value_name = "NAME")]
    pub method: Option<String>,

    /// Inputs, as for `run`; arbitrary numbers if not given
    #[arg(short, long, value_name = "FILE", num_args = 1..)]
    pub inputs: Vec<PathBuf>,

    /// Threads for kernels
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,

    /// How long to measure steady runs
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    pub time: Duration,

    /// For Model Library Format packages.
    #[command(flatten)]
    pub native: Native,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().map_err(|_| "seconds are a number".to_owned())?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

/// Steady runs that are made at least.
const FEWEST: usize = 5;
/// Steady runs that are made at most.
const MOST: usize = 1_000_000;

#[derive(Serialize)]
struct Measured {
    file: String,
    method: String,
    threads: Option<u16>,
    open_ns: u64,
    load_ns: u64,
    first_run_ns: u64,
    steady: Steady,
    memory: Memory,
}

#[derive(Serialize)]
struct Steady {
    runs: usize,
    median_ns: u64,
    min_ns: u64,
    max_ns: u64,
    /// A quarter of the runs was faster.
    lower_quartile_ns: u64,
    /// A quarter of the runs was slower.
    upper_quartile_ns: u64,
}

#[derive(Serialize)]
struct Memory {
    planned_bytes: usize,
    private_bytes: usize,
    scratch_bytes: usize,
    constant_bytes: usize,
    packed_bytes: usize,
    plan_bytes: usize,
    /// The most the whole process ever had in memory; absent where the system does not say.
    peak_resident_bytes: Option<u64>,
}

/// Runs the command.
pub fn run(args: &Args, session: &mut Session) -> Result<Status, Failure> {
    let file = session.open(&args.file)?;
    if file.kind == Kind::Library {
        return of_library(args, &file, session);
    }
    let start = Instant::now();
    let opened = program::open(&file, &session.limits)?.program;
    let open = start.elapsed();
    let name = program::method(&opened, args.method.as_deref())?;
    let meta = opened.method_meta(&name)?;
    let given = match args.inputs.is_empty() {
        true => all_arbitrary(&meta, session.limits.arena_bytes)?,
        false => read_inputs(&args.inputs, &meta, session)?,
    };
    let values = cases::inputs(&meta, &given).map_err(Failure::usage)?;
    let inputs: Vec<Input<'_>> = values.iter().filter_map(Value::input).collect();
    let data = data_files::open(&args.data, session)?;
    let options = Options { data, threads: args.threads.map(usize::from), ..Options::default() };
    let registry = edgepack_kernels::registry();
    let start = Instant::now();
    let mut method = Method::load(&opened, &name, &registry, &options)?;
    let load = start.elapsed();
    let start = Instant::now();
    method.run(&inputs)?;
    let first = start.elapsed();
    let mut times = Vec::new();
    let begin = Instant::now();
    while times.len() < FEWEST || (begin.elapsed() < args.time && times.len() < MOST) {
        let start = Instant::now();
        method.run(&inputs)?;
        times.push(start.elapsed());
    }
    let measured = Measured {
        file: file.name,
        threads: args.threads,
        open_ns: nanos(open),
        load_ns: nanos(load),
        first_run_ns: nanos(first),
        steady: Steady::of(times),
        memory: Memory::of(method.memory_bytes()),
        method: name,
    };
    if session.json {
        session.document(&measured)?;
    } else {
        measured.print(&count(meta.instructions, "instruction"), &mut session.out)?;
    }
    Ok(Status::Fine)
}

/// A module of a package.
fn of_library(args: &Args, file: &File, session: &mut Session) -> Result<Status, Failure> {
    let how = (args.time, FEWEST, MOST);
    let times = library::bench::run(file, args.method.as_deref(), &args.inputs, args.native, how, session)?;
    let measured = Measured {
        file: file.name.clone(),
        method: times.name,
        threads: None,
        open_ns: nanos(times.open),
        load_ns: nanos(times.load),
        first_run_ns: nanos(times.first),
        steady: Steady::of(times.steady),
        memory: Memory::of(MemoryBytes { planned: times.storage, ..MemoryBytes::default() }),
    };
    match session.json {
        true => session.document(&measured)?,
        false => measured.print(&count(times.calls, "call"), &mut session.out)?,
    }
    Ok(Status::Fine)
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Tensors for all inputs that are tensors, unless they are larger than a planned memory may be.
fn all_arbitrary(meta: &MethodMeta, most: u64) -> Result<BTreeMap<usize, TensorBuf>, Failure> {
    let mut given = BTreeMap::new();
    for (index, meta) in meta.inputs.iter().enumerate() {
        if let ValueMeta::Tensor(tensor) = meta
            && tensor.layout.byte_len() as u64 > most
        {
            let (bytes, layout) = (tensor.layout.byte_len(), notation::layout(&tensor.layout));
            return Err(Failure::cannot_run(format!("input {index}, {layout}, has {bytes} bytes; {most} are allowed")));
        }
        given.extend(arbitrary(meta).map(|tensor| (index, tensor)));
    }
    Ok(given)
}

/// Numbers for an input nobody gave: floats between -1 and 1, zeros otherwise, since an integer may be an index.
fn arbitrary(meta: &ValueMeta) -> Option<TensorBuf> {
    let ValueMeta::Tensor(meta) = meta else { return None };
    let layout: TensorLayout = meta.layout.clone();
    let mut state = 0x9e37_79b9_u32;
    let mut next = || {
        // A linear congruence is random enough to keep kernels from shortcuts.
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    let count = layout.element_count();
    let data: Vec<u8> = match layout.scalar_type() {
        ScalarType::FLOAT => (0..count).flat_map(|_| next().to_le_bytes()).collect(),
        ScalarType::DOUBLE => (0..count).flat_map(|_| f64::from(next()).to_le_bytes()).collect(),
        ScalarType::HALF => (0..count).flat_map(|_| f16::from_f32(next()).to_le_bytes()).collect(),
        ScalarType::BFLOAT16 => (0..count).flat_map(|_| bf16::from_f32(next()).to_le_bytes()).collect(),
        _ => vec![0; layout.byte_len()],
    };
    TensorBuf::from_bytes(layout, data).ok()
}

impl Steady {
    fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        let at = |share: f64| nanos(times[((times.len() - 1) as f64 * share).round() as usize]);
        Steady {
            runs: times.len(),
            median_ns: at(0.5),
            min_ns: at(0.0),
            max_ns: at(1.0),
            lower_quartile_ns: at(0.25),
            upper_quartile_ns: at(0.75),
        }
    }
}

impl Memory {
    fn of(memory: MemoryBytes) -> Self {
        let MemoryBytes { planned, private, scratch, constants, lent, packed, plan, program } = memory;
        Memory {
            planned_bytes: planned,
            private_bytes: private,
            scratch_bytes: scratch,
            constant_bytes: constants + lent,
            packed_bytes: packed,
            plan_bytes: plan + program,
            peak_resident_bytes: peak_resident(),
        }
    }
}

/// From the process's own account, on Linux.
fn peak_resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

impl Measured {
    fn print(&self, steps: &str, out: &mut dyn Write) -> std::io::Result<()> {
        let time = |nanos| duration(Duration::from_nanos(nanos));
        let threads = self.threads.map_or(String::new(), |threads| format!(", {threads} threads"));
        writeln!(out, "{TITLE}{}{TITLE:#}  {}{threads}, {steps}", self.method, self.file)?;
        let mut columns = Columns::new(2, &[Align::Left, Align::Right, Align::Left]);
        let mut row = |name: &str, value: String, note: String| {
            columns.row([Cell::new(name, DIM), value.into(), Cell::new(note, DIM)]);
        };
        row("open and verify", time(self.open_ns), String::new());
        row("load", time(self.load_ns), String::new());
        row("first run", time(self.first_run_ns), String::new());
        let Steady { runs, median_ns, min_ns, max_ns, lower_quartile_ns, upper_quartile_ns } = self.steady;
        let spread = format!(
            "half within {} to {}, all within {} to {}",
            time(lower_quartile_ns),
            time(upper_quartile_ns),
            time(min_ns),
            time(max_ns)
        );
        row("steady run", time(median_ns), format!("median of {runs}; {spread}"));
        let memory = &self.memory;
        row("planned memory", bytes(memory.planned_bytes as u64), String::new());
        row("other memory", bytes(memory.private_bytes as u64), "values without a plan".to_owned());
        row("scratch", bytes(memory.scratch_bytes as u64), String::new());
        row("constants", bytes(memory.constant_bytes as u64), String::new());
        row("packed weights", bytes(memory.packed_bytes as u64), String::new());
        row("plan", bytes(memory.plan_bytes as u64), "with the flatbuffer".to_owned());
        if let Some(peak) = memory.peak_resident_bytes {
            row("process, at most", bytes(peak), "resident".to_owned());
        }
        columns.print(out)
    }
}
