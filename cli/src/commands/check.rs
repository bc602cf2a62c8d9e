//! `edgepack check`: replays recorded runs and compares.

use std::io::{self, Write};
use std::path::PathBuf;

use serde::Serialize;

use crate::cases::{ReplayError, Replayed};
use crate::commands::compare::debug_buffer;
use crate::compare::Comparison;
use crate::formats::{self, Blame, Execution, Layered};
use crate::layers::Report;
use crate::layers::recorded::Recorded;
use crate::options::{DataFiles, Native, PackCache, Threads, Tolerances};
use crate::recording::{Recording, takes_stdout};
use crate::session::Session;
use crate::status::{Failure, Status};
use crate::style::{BAD, DIM, GOOD, SHAPE, TITLE};
use crate::table::{Align, Cell, Columns};

/// Replay recorded runs of a program and compare the outputs
///
/// Floating point elements agree within atol + rtol * |want|; by default rtol is 1e-3 and atol 1e-4 for 32 and 64
/// bits, both are 1e-2 for 16 bits. NaN equals NaN, everything else is exact. Where a recording says that ExecuTorch
/// computed its outputs (metadata `source`: `executorch`), integer remainders are computed as ExecuTorch does.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The program
    pub file: PathBuf,

    /// The runs: a safetensors file or an archive of NumPy arrays (.npz) with keys METHOD.RUN.in.I and METHOD.RUN.out.I;
    /// a bundle carries its own. For a Model Library Format package also a folder of caseK_inI.npy and caseK_outJ.npy
    pub cases: Option<PathBuf>,

    /// Data files of the program.
    #[command(flatten)]
    pub data: DataFiles,

    /// Bounds of the distance between outputs and recorded ones.
    #[command(flatten)]
    pub tolerances: Tolerances,

    /// Of a run that disagrees, name the first layer that diverges: of the program with rewrites compared with itself
    /// without them, and of the program compared with a trace
    #[arg(long)]
    pub layers: bool,

    /// With --layers: a trace (ETDump) by another runtime of the first run that disagrees
    #[arg(long, value_name = "FILE", requires_all = ["layers", "trace_buffer"])]
    pub trace: Option<PathBuf>,

    /// The debug buffer of the trace
    #[arg(long, value_name = "FILE", requires = "trace")]
    pub trace_buffer: Option<PathBuf>,

    /// Files in which the runs are recorded.
    #[command(flatten)]
    pub recording: Recording,

    /// Number of threads.
    #[command(flatten)]
    pub threads: Threads,

    /// Folder of packed weights.
    #[command(flatten)]
    pub pack_cache: PackCache,

    /// For Model Library Format packages.
    #[command(flatten)]
    pub native: Native,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct Run<'a> {
    method: &'a str,
    run: u64,
    pass: bool,
    error: Option<String>,
    outputs: Vec<Output<'a>>,
    /// The search for the layer to blame, if it was asked for and the run disagrees.
    #[serde(skip_serializing_if = "Option::is_none")]
    layers: Option<Blamed<'a>>,
}

/// Comparisons layer by layer, or the reasons there are none.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct Blamed<'a> {
    rewrites: Outcome<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace: Option<Outcome<'a>>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub(crate) enum Outcome<'a> {
    Report(&'a Report),
    Error { error: &'a str },
}

impl<'a> Outcome<'a> {
    fn new(outcome: &'a Result<Report, Failure>) -> Self {
        match outcome {
            Ok(report) => Outcome::Report(report),
            Err(failure) => Outcome::Error { error: &failure.message },
        }
    }
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct Output<'a> {
    index: usize,
    pass: bool,
    #[serde(flatten)]
    comparison: &'a Comparison,
}

/// Runs the command.
pub fn run(args: &Args, session: &mut Session) -> Result<Status, Failure> {
    let taken = takes_stdout(args.recording.files(), session)?;
    let (file, format) = formats::open(&args.file, session)?;
    let recorder = args.recording.recorder(session);
    let how = Execution {
        data: &args.data.data,
        threads: args.threads.threads,
        pack_cache: args.pack_cache.folder.as_deref(),
        native: &args.native,
        recorder: recorder.as_ref(),
    };
    let (cases, tolerance) = (args.cases.as_deref(), args.tolerances.tolerance());
    let reports = match args.layers {
        true => {
            let trace = trace(args, session)?;
            format.check_layers(&file, cases, tolerance, how, trace, session)?
        }
        false => {
            let reports = format.check(&file, cases, tolerance, how, session)?;
            reports.into_iter().map(|report| (report, None)).collect()
        }
    };
    args.recording.write(recorder, session)?;
    let status = reports.iter().map(|(report, _)| status(report)).max().unwrap_or(Status::Fine);
    session.reach(status);
    if !taken {
        finish(&file.name, &reports, session)?;
    }
    Ok(status)
}

/// The trace to search with, if there is one.
fn trace(args: &Args, session: &mut Session) -> Result<Option<Recorded>, Failure> {
    let Some(path) = &args.trace else { return Ok(None) };
    let (file, format) = formats::open(path, session)?;
    match format.layers(&file, session)? {
        Layered::Trace(trace) => {
            let buffer = debug_buffer(args.trace_buffer.as_deref(), session)?;
            Ok(Some(Recorded::new(&trace, buffer, &session.limits).map_err(|failure| failure.about(&file.name))?))
        }
        Layered::Program(..) => {
            Err(Failure::usage(format!("{}: this {} is not a trace", file.name, format.kind().name())))
        }
    }
}

/// The JSON document.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct Checked<'a> {
    /// The file.
    file: &'a str,
    /// Number of runs that agree.
    passed: usize,
    /// Runs in order.
    runs: Vec<Run<'a>>,
}

/// Says what came of the runs.
fn finish(file: &str, reports: &[(Replayed, Option<Blame>)], session: &mut Session) -> Result<(), Failure> {
    if session.json {
        let runs: Vec<Run<'_>> = reports.iter().map(|(report, blame)| Run::new(report, blame.as_ref())).collect();
        let passed = reports.iter().filter(|(report, _)| report.passes()).count();
        session.document(&Checked { file, passed, runs })?;
    } else {
        print(reports, &mut session.out)?;
    }
    Ok(())
}

fn status(report: &Replayed) -> Status {
    match &report.failure {
        None if report.passes() => Status::Fine,
        // The recording is of another program: a difference, not a failure to run.
        None | Some(ReplayError::Input(_)) => Status::Findings,
        Some(_) => Status::CannotRun,
    }
}

impl<'a> Run<'a> {
    fn new(report: &'a Replayed, blame: Option<&'a Blame>) -> Self {
        let output = |(index, comparison): &'a (usize, Comparison)| Output {
            index: *index,
            pass: comparison.passes(),
            comparison,
        };
        Run {
            method: &report.method,
            run: report.run,
            pass: report.passes(),
            error: report.failure.as_ref().map(ToString::to_string),
            outputs: report.outputs.iter().map(output).collect(),
            layers: blame.map(|blame| Blamed {
                rewrites: Outcome::new(&blame.rewrites),
                trace: blame.trace.as_ref().map(Outcome::new),
            }),
        }
    }
}

fn print(reports: &[(Replayed, Option<Blame>)], out: &mut dyn Write) -> io::Result<()> {
    for (report, blame) in reports {
        let (style, word) = if report.passes() { (GOOD, "pass") } else { (BAD, "FAIL") };
        writeln!(out, "{style}{word}{style:#}  {TITLE}{} run {}{TITLE:#}", report.method, report.run)?;
        if let Some(failure) = &report.failure {
            writeln!(out, "      {failure}")?;
        } else if report.outputs.is_empty() {
            writeln!(out, "      {DIM}it ran; nothing was recorded to compare with{DIM:#}")?;
        }
        let mut columns = Columns::new(6, &[Align::Right, Align::Left, Align::Left, Align::Left, Align::Left]);
        for (index, comparison) in &report.outputs {
            let verdict = if comparison.passes() { Cell::new("ok", GOOD) } else { Cell::new("differs", BAD) };
            let (abs, rel) = match comparison.problem {
                Some(_) => (String::new(), String::new()),
                None => (error("abs", comparison.max_abs), error("rel", comparison.max_rel)),
            };
            let mut row = vec![
                Cell::new(index.to_string(), DIM),
                verdict,
                Cell::new(&comparison.want, SHAPE),
                Cell::new(abs, DIM),
                Cell::new(rel, DIM),
            ];
            row.extend(explanation(comparison).map(Cell::from));
            columns.row(row);
        }
        columns.print(out)?;
        if let Some(blame) = blame {
            print_blame(blame, out)?;
        }
    }
    let passed = reports.iter().filter(|(report, _)| report.passes()).count();
    let (style, word) = if passed == reports.len() { (GOOD, "PASS") } else { (BAD, "FAIL") };
    writeln!(out, "{style}{word}{style:#}  runs that agree: {passed} of {}", reports.len())
}

fn print_blame(blame: &Blame, out: &mut dyn Write) -> io::Result<()> {
    let sides = [
        ("layers without rewrites and with them", Some(&blame.rewrites)),
        ("layers of the trace and here", blame.trace.as_ref()),
    ];
    for (title, outcome) in sides.into_iter().filter_map(|(title, outcome)| Some((title, outcome?))) {
        writeln!(out, "      {TITLE}{title}{TITLE:#}")?;
        match outcome {
            Ok(report) => report.print(false, 8, out)?,
            Err(failure) => writeln!(out, "        {}", failure.message)?,
        }
    }
    Ok(())
}

fn error(kind: &str, value: f64) -> String {
    if value == 0.0 { format!("{kind} 0") } else { format!("{kind} {value:.1e}") }
}

fn explanation(comparison: &Comparison) -> Option<String> {
    if let Some(problem) = &comparison.problem {
        return Some(problem.clone());
    }
    let first = comparison.first.as_ref()?;
    let (different, elements) = (comparison.different, comparison.elements);
    Some(format!("{different} of {elements} differ, first at {:?}: {}, want {}", first.index, first.have, first.want))
}
