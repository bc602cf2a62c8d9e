//! `edgepack compare`: two runs, layer by layer.

use std::io::Write;
use std::path::{Path, PathBuf};

use edgepack_executor::Options;
use edgepack_exir::lower::MethodOrigins;
use edgepack_loader::{MethodMeta, Program};

use crate::file::name_of;
use crate::formats::{self, Execution, Layered, Run, pte};
use crate::inputs;
use crate::inputs::fill::Fill;
use crate::layers::page::{Compared, page};
use crate::layers::recorded::Recorded;
use crate::layers::source::Source;
use crate::layers::{Bounds, Relation, compare};
use crate::options::{Invocation, Native, Threads, Tolerances};
use crate::recording::takes_stdout;
use crate::session::Session;
use crate::status::{Failure, Status};
use crate::style::{DIM, TITLE};
use crate::value::Value;

/// Seed of inputs that are not given.
const SEED: u64 = 0;

/// Compare two runs layer by layer, and name the first layer that diverges
///
/// Two programs; a program and an exported one (.pt2), which is lowered here; a program and a trace (ETDump) with its
/// debug buffer; or, with --rewrites, one program as it is loaded and as it is written. Programs run without rewrites, and
/// delegates show their nodes. Results are matched by place in programs that are alike, by name or debug handle where
/// both sides have them, else by order and shape. SQNR is the ratio of signal to noise; the left side counts as the signal.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The file that the other is compared with: a program, an exported program, or a trace
    pub left: PathBuf,

    /// The other file
    #[arg(required_unless_present = "rewrites")]
    pub right: Option<PathBuf>,

    /// Compare the program without rewrites with itself as it is loaded
    #[arg(long, conflicts_with = "right")]
    pub rewrites: bool,

    /// Method and inputs; random ones of seed 0 if there are none.
    #[command(flatten)]
    pub invocation: Invocation,

    /// Data files of the right program, where they are not those of the left
    #[arg(long, value_name = "FILE")]
    pub data_right: Vec<PathBuf>,

    /// The debug buffer of the trace
    #[arg(long, value_name = "FILE")]
    pub trace_buffer: Option<PathBuf>,

    /// Bounds of the distance between results.
    #[command(flatten)]
    pub tolerances: Tolerances,

    /// A layer diverges if its SQNR is less than this many dB, instead of by the bounds of elements
    #[arg(long, value_name = "DB", conflicts_with_all = ["rtol", "atol"], allow_negative_numbers = true)]
    pub sqnr: Option<f64>,

    /// File for the comparison as a page that a browser shows
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,

    /// Number of threads.
    #[command(flatten)]
    pub threads: Threads,

    /// Show every layer, not only the first 20 that differ
    #[arg(short, long)]
    pub all: bool,
}

/// A program of a side, to be run.
struct Side {
    program: Program,
    origins: Vec<MethodOrigins>,
    options: Options,
}

/// Runs the command.
pub fn run(args: &Args, session: &mut Session) -> Result<Status, Failure> {
    let taken = takes_stdout([args.html.as_deref()], session)?;
    let left = open(&args.left, session)?;
    let right = args.right.as_ref().map(|path| open(path, session)).transpose()?;
    let data = &args.invocation.data.data;
    let mut side = |program, origins, data: &[PathBuf]| -> Result<Side, Failure> {
        let how = Execution {
            data,
            threads: args.threads.threads,
            pack_cache: None,
            native: &Native::default(),
            recorder: None,
        };
        Ok(Side { program, origins, options: pte::options(how, session)? })
    };
    let (programs, trace) = match (left, right) {
        (Layered::Program(program, origins), None) => (vec![side(program, origins, data)?], None),
        (Layered::Trace(_), None) => return Err(Failure::usage("a trace has no rewrites")),
        (Layered::Program(program, origins), Some(Layered::Program(other, others))) => {
            let data_right = if args.data_right.is_empty() { data } else { &args.data_right };
            let left = side(program, origins, data)?;
            // Data files are the same sources if both sides have them: one may be standard input.
            let right = match args.data_right.is_empty() {
                true => Side { program: other, origins: others, options: left.options.clone() },
                false => side(other, others, data_right)?,
            };
            (vec![left, right], None)
        }
        (Layered::Trace(trace), Some(Layered::Program(program, origins))) => {
            (vec![side(program, origins, data)?], Some((trace, true)))
        }
        (Layered::Program(program, origins), Some(Layered::Trace(trace))) => {
            (vec![side(program, origins, data)?], Some((trace, false)))
        }
        (Layered::Trace(_), Some(Layered::Trace(_))) => {
            return Err(Failure::usage("one of two traces must be a program, which says what they are of"));
        }
    };
    if args.trace_buffer.is_some() && trace.is_none() {
        return Err(Failure::usage("--trace-buffer is of a trace, and neither file is one"));
    }
    let name = pte::method(&programs[0].program, args.invocation.method.as_deref())?;
    let meta = programs[0].program.method_meta(&name)?;
    let (values, seed) = values(args, &name, &meta, trace.is_some(), session)?;
    let registry = edgepack_kernels::registry();
    let load = |side: &Side, rewrites: bool| {
        let run = Run {
            program: &side.program,
            origins: &side.origins,
            method: &name,
            registry: &registry,
            options: &side.options,
            before: Vec::new(),
            inputs: values.clone(),
        };
        run.load(rewrites)
    };
    let comparing = session.progress.work("loading and comparing");
    let first: Box<dyn Source> = Box::new(load(&programs[0], false)?);
    let (mut left, mut right, relation) = match (trace, programs.get(1)) {
        (Some((trace, is_left)), _) => {
            let buffer = debug_buffer(args.trace_buffer.as_deref(), session)?;
            let trace: Box<dyn Source> = Box::new(Recorded::new(&trace, buffer, &session.limits)?);
            let (left, right) = if is_left { (trace, first) } else { (first, trace) };
            (left, right, Relation::Record)
        }
        (None, Some(other)) => {
            let other: Box<dyn Source> = Box::new(load(other, false)?);
            (first, other, Relation::TwoPrograms)
        }
        (None, None) => (first, Box::new(load(&programs[0], true)?) as Box<dyn Source>, Relation::OneProgram),
    };
    let bounds = Bounds { tolerance: args.tolerances.tolerance(), sqnr: args.sqnr };
    let report = compare(&mut *left, &mut *right, relation, bounds)?;
    let (left, right) = (name_of(&args.left), args.right.as_deref().map(name_of));
    let compared = Compared { left: &left, right: right.as_deref(), method: &name, seed, report: &report };
    if let Some(path) = &args.html {
        session.write_text(Some(path), &page(&compared)?)?;
    }
    drop(comparing);
    if session.json {
        session.document(&compared)?;
    } else if !taken {
        let right = compared.right.unwrap_or("itself with rewrites");
        writeln!(session.out, "{TITLE}{name}{TITLE:#}  {left} {DIM}and{DIM:#} {right}")?;
        if let Some(seed) = seed {
            writeln!(session.out, "  {DIM}random inputs of seed {seed}{DIM:#}")?;
        }
        report.print(args.all, 2, &mut session.out)?;
    }
    Ok(if report.agrees() { Status::Fine } else { Status::Findings })
}

fn open(path: &Path, session: &mut Session) -> Result<Layered, Failure> {
    let (file, format) = formats::open(path, session)?;
    format.layers(&file, session)
}

/// The inputs, and their seed if any are random.
fn values(
    args: &Args,
    name: &str,
    meta: &MethodMeta,
    is_recorded: bool,
    session: &mut Session,
) -> Result<(Vec<Value>, Option<u64>), Failure> {
    let given = &args.invocation.inputs;
    let fill = given.fill().unwrap_or(Fill::Random(SEED));
    let wanted = pte::wanted(meta);
    let mut read = inputs::read(given, None, Some(name), &wanted, session)?;
    let filled = inputs::complete(&mut read, fill, &wanted, &session.limits)?;
    if is_recorded && filled > 0 && given.fill().is_none() {
        return Err(Failure::usage("a trace does not hold the inputs of its run: give them with --inputs"));
    }
    let seed = match fill {
        Fill::Random(seed) if filled > 0 => Some(seed),
        _ => None,
    };
    Ok((pte::inputs(meta, &read).map_err(Failure::usage)?, seed))
}

/// Reads the debug buffer of a trace.
pub fn debug_buffer(path: Option<&Path>, session: &mut Session) -> Result<Vec<u8>, Failure> {
    match path {
        Some(path) => session.read_filled(path),
        None => Err(Failure::usage(
            "the elements of a trace's results are in its debug buffer: name it with --trace-buffer",
        )),
    }
}
