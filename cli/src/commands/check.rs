//! `edgepack check`: replays recorded runs and compares.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use edgepack_executor::Options;
use edgepack_executor::Registry;
use serde::Serialize;

use crate::cases::{Recorded, ReplayError, Replayed, from_safetensors, registry_for, replay};
use crate::compare::{Comparison, Tolerance};
use crate::kind::Kind;
use crate::library::{self, Native};
use crate::session::Session;
use crate::status::{Failure, Status};
use crate::style::{BAD, DIM, GOOD, SHAPE, TITLE};
use crate::table::{Align, Cell, Columns};
use crate::{data_files, program};

/// Replay recorded runs of a program and compare the outputs
///
/// Floating point elements agree within atol + rtol * |want|; by default rtol is 1e-3 and atol 1e-4 for 32 and 64
/// bits, both are 1e-2 for 16 bits. NaN equals NaN, everything else is exact. Where a recording says that ExecuTorch
/// computed its outputs (metadata `source`: `executorch`), integer remainders are computed as ExecuTorch does.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The program
    pub file: PathBuf,

    /// The runs: a safetensors file with keys METHOD.RUN.in.I and METHOD.RUN.out.I; a bundle carries its own. For a
    /// Model Library Format package also a folder of caseK_inI.npy and caseK_outJ.npy
    pub cases: Option<PathBuf>,

    /// Data files the program needs
    #[arg(long, value_name = "FILE")]
    pub data: Vec<PathBuf>,

    /// Relative tolerance
    #[arg(long, value_name = "R", value_parser = tolerance, allow_negative_numbers = true)]
    pub rtol: Option<f64>,

    /// Absolute tolerance
    #[arg(long, value_name = "A", value_parser = tolerance, allow_negative_numbers = true)]
    pub atol: Option<f64>,

    /// Threads for kernels
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,

    /// For Model Library Format packages.
    #[command(flatten)]
    pub native: Native,
}

fn tolerance(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value >= 0.0 => Ok(value),
        _ => Err("a tolerance is a number that is not negative".to_owned()),
    }
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
    let file = session.open(&args.file)?;
    let tolerance = Tolerance { rtol: args.rtol, atol: args.atol };
    if file.kind == Kind::Library {
        let reports = library::check::run(&file, args.cases.as_ref(), args.native, tolerance, session)?;
        return finish(&file.name, &reports, session);
    }
    let opened = program::open(&file, &session.limits)?;
    let (recorded, registry) = match (&args.cases, opened.recorded) {
        (None, Some(recorded)) => (recorded, edgepack_kernels::registry()),
        (None, None) => return Err(Failure::usage("say which runs to replay: a safetensors file")),
        (Some(path), _) => read_cases(path, session)?,
    };
    let data = data_files::open(&args.data, session)?;
    let options = Options { data, threads: args.threads.map(usize::from), ..Options::default() };
    let reports = replay(&opened.program, &recorded, &registry, &options, tolerance);
    finish(&file.name, &reports, session)
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

fn read_cases(path: &Path, session: &mut Session) -> Result<(Vec<Recorded>, Registry), Failure> {
    let about = |failure: Failure| failure.about(&path.display().to_string());
    let bytes = session.read(path)?;
    let recorded = from_safetensors(&bytes).map_err(|error| about(Failure::unreadable(error)))?;
    match recorded.is_empty() {
        true => Err(about(Failure::usage("there are no runs in it"))),
        false => Ok((recorded, registry_for(&bytes))),
    }
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
