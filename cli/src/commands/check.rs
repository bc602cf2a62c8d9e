//! `edgepack check`: replays recorded runs and compares.

use std::io::{self, Write};
use std::path::PathBuf;

use serde::Serialize;

use crate::cases::{ReplayError, Replayed};
use crate::compare::Comparison;
use crate::formats::{self, Execution};
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
struct Run<'a> {
    method: &'a str,
    run: u64,
    pass: bool,
    error: Option<String>,
    outputs: Vec<Output<'a>>,
}

#[derive(Serialize)]
struct Output<'a> {
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
        native: args.native,
        recorder: recorder.as_ref(),
    };
    let reports = format.check(&file, args.cases.as_deref(), args.tolerances.tolerance(), how, session)?;
    args.recording.write(recorder, session)?;
    match taken {
        true => Ok(reports.iter().map(status).max().unwrap_or(Status::Fine)),
        false => finish(&file.name, &reports, session),
    }
}

/// Says what came of the runs.
fn finish(file: &str, reports: &[Replayed], session: &mut Session) -> Result<Status, Failure> {
    if session.json {
        let runs: Vec<Run<'_>> = reports.iter().map(Run::new).collect();
        let passed = reports.iter().filter(|report| report.passes()).count();
        session.document(&serde_json::json!({ "file": file, "runs": runs, "passed": passed }))?;
    } else {
        print(reports, &mut session.out)?;
    }
    Ok(reports.iter().map(status).max().unwrap_or(Status::Fine))
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
    fn new(report: &'a Replayed) -> Self {
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
        }
    }
}

fn print(reports: &[Replayed], out: &mut dyn Write) -> io::Result<()> {
    for report in reports {
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
    }
    let passed = reports.iter().filter(|report| report.passes()).count();
    let (style, word) = if passed == reports.len() { (GOOD, "PASS") } else { (BAD, "FAIL") };
    writeln!(out, "{style}{word}{style:#}  runs that agree: {passed} of {}", reports.len())
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
