//! Export IR to a program: archives in, a program and its data files out, and what became of each method.
//!
//! Invariant: nothing is written unless everything that was asked for before that agrees.

mod archive;
mod backend;
mod calibrate;
mod data;
mod knobs;
mod language;
mod self_check;

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::ValueEnum;
use edgepack::builder::plan::Strategy;
use edgepack::builder::pte::BuiltProgram;
use edgepack_executor::Registry;
use edgepack_executor::{LoadError, Method, Options as LoadOptions};
use edgepack_exir::dtype::Table;
use edgepack_exir::graph::{Dialect, ExportedProgram};
use edgepack_exir::lower::{InitialState, Lowered, MethodOrigins, Options, ProgramManager, begin_with, to_edge};
use edgepack_exir::verify;
use edgepack_format::finding::Findings;
use edgepack_format::pte::ProgramRef;
use edgepack_loader::{MemorySource, Program};
use serde::Serialize;

use crate::cases::{Recorded, from_safetensors};
use crate::file::name_of;
use crate::findings::{is_broken, print_findings};
use crate::formats::pte::values::operator_name;
use crate::formats::pte::{self, tables};
use crate::outputs::is_stdout;
use crate::readable;
use crate::session::Session;
use crate::status::{Failure, Status};
use crate::style::{BAD, DIM, NAME, TITLE};
use crate::units::{bytes, count};
use archive::OpenArchive;
use backend::{Delegation, Division};
use knobs::Knobs;
use self_check::Judged;

/// The largest program, in bytes, that is loaded to see whether it can be.
const TRIED: u64 = 16 << 20;

/// Archives to lower, and options of the program made of them.
#[derive(clap::Args, Debug)]
pub struct Lowering {
    /// Archives (.pt2) and ETRecords, each with the name of its method in front. Without a name a single archive becomes
    /// `forward`, one of several is called as its file, and an ETRecord says the names of its methods
    #[arg(required = true, value_name = "[NAME=]FILE")]
    pub files: Vec<String>,

    /// File for the program; - is standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,

    /// Algorithm that plans memory
    #[arg(long, value_name = "ALGORITHM", default_value = "best")]
    pub plan: Plan,

    /// Keep to the instructions of the reference exporter, also where they could be left out
    #[arg(long)]
    pub like_reference: bool,

    /// Check every program against its dialect first, and against the Edge dialect before it is emitted; nothing is written
    /// if it breaks a rule
    #[arg(long)]
    pub check_dialect: bool,

    /// Run every program call by call, with tensors that share memory as PyTorch has them, and the result as a whole; write
    /// nothing if they differ. Without --cases the inputs are random
    #[arg(long)]
    pub self_check: bool,

    /// Recorded runs to take the inputs of the self-check from, which this turns on
    #[arg(long, value_name = "FILE")]
    pub cases: Option<PathBuf>,

    /// With --check-dialect: let warnings count as errors
    #[arg(long, requires = "check_dialect")]
    pub strict: bool,

    /// Buffers, of those that the program changes, that begin with their exported values
    #[arg(long, value_name = "WHICH", default_value = "non-zero")]
    pub initial_state: State,

    /// The model continues a text: attention with caches becomes the operators that runtimes have for it, and methods say how
    /// long its texts are. The places of the tokens of a call must follow each other
    #[arg(long)]
    pub llm: bool,

    /// Options of delegation.
    #[command(flatten)]
    pub delegation: Delegation,

    /// Options of the written program.
    #[command(flatten)]
    pub knobs: Box<Knobs>,
}

/// Algorithm that plans memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Plan {
    /// As the reference exporter does
    Greedy,
    /// The smallest of several plans, that one included
    Best,
}

/// State that begins with exported values.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum State {
    /// Buffers with any value that is not zero
    NonZero,
    /// All buffers
    All,
    /// None: they begin with what memory holds
    None,
}

/// The JSON document.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct LoweredProgram<'a> {
    /// Lines about what became of attention.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    attention: &'a [String],
    /// Bytes of the program.
    bytes: u64,
    /// Parts that were given to a backend.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    delegation: &'a [Division],
    /// Methods of the program.
    methods: &'a [Written],
    /// The program.
    output: String,
    /// Comparison with the exported graph, if it was asked for.
    self_check: &'a [Judged],
}

/// Report on a written program.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct Written {
    method: String,
    values: usize,
    instructions: usize,
    arena_bytes: i64,
    undelegated: Vec<String>,
    missing: Vec<String>,
    /// Reason this runtime cannot load the program, although it has all operators.
    refused: Option<String>,
}

/// Origins of instructions, as a debug map.
#[derive(Serialize)]
struct DebugMap<'o> {
    schema: &'static str,
    methods: &'o [MethodOrigins],
}

/// Lowers archives to a program and writes it.
pub fn lower(args: &Lowering, session: &mut Session) -> Result<Status, Failure> {
    let mut archives = Vec::new();
    for file in &args.files {
        let (name, path) = match file.split_once('=') {
            Some((name, path)) if !name.contains(['/', '\\']) => (Some(name.to_owned()), PathBuf::from(path)),
            _ => (None, PathBuf::from(file)),
        };
        let stem = || path.file_stem().map_or("forward".to_owned(), |stem| stem.to_string_lossy().into_owned());
        let otherwise = || if args.files.len() == 1 { "forward".to_owned() } else { stem() };
        let otherwise = otherwise();
        archives.push((name, otherwise, OpenArchive::new(&path, session)?));
    }
    let lowering = session.progress.work("lowering");
    let mut programs = Vec::new();
    for (name, otherwise, archive) in &archives {
        for (own, program) in archive.programs()? {
            programs.push((name.clone().or(own).unwrap_or_else(|| otherwise.clone()), program));
        }
    }
    let (options, data_files) = args.knobs.options(session)?;
    let options = Options {
        strategy: match args.plan {
            Plan::Greedy => Strategy::Greedy,
            Plan::Best => Strategy::Smallest,
        },
        like_reference: args.like_reference,
        limits: session.limits,
        initial_state: match args.initial_state {
            State::NonZero => InitialState::NonZero,
            State::All => InitialState::All,
            State::None => InitialState::Nothing,
        },
        ..options
    };
    if args.check_dialect {
        let findings = check(&programs, &options)?;
        if is_broken(&findings, args.strict) {
            print_findings(&findings, &mut session.out)?;
            return Ok(Status::Findings);
        }
    }
    let judged = (args.self_check || args.cases.is_some()).then(|| programs.clone());
    let about = |error| failure(error).about(&args.files.join(" "));
    let mut manager = ProgramManager::new(options.clone());
    if args.llm {
        manager.keep_whole(edgepack_exir::language::WHOLE);
    }
    args.delegation.prepare(&mut manager);
    for (name, program) in programs {
        manager.add(&name, program).map_err(about)?;
    }
    let attention = if args.llm { language::recognise(&mut manager)? } else { Vec::new() };
    let divisions = args.delegation.delegate(&mut manager, &options, session);
    let divisions = divisions.map_err(|failure| failure.about(&args.files.join(" ")))?;
    let Lowered { program: built, origins } = manager.emit().map_err(about)?;
    let mut checked = Vec::new();
    if let Some(mut programs) = judged {
        programs.iter_mut().try_for_each(|(_, program)| begin_with(program, &options.state)).map_err(about)?;
        let cases = args.cases.as_ref().map(|path| recorded(path, session)).transpose()?;
        checked = self_check::judge(&programs, &built, &options, cases.as_deref(), args.self_check)?;
    }
    drop(lowering);
    data_files.stage(&built, &args.output, session)?;
    if let Some(path) = &args.knobs.debug_map {
        let map = DebugMap { schema: "edgepack/debug-map/1", methods: &origins };
        session.stage(path, |out| {
            serde_json::to_writer_pretty(&mut *out, &map)?;
            Ok(writeln!(out)?)
        })?;
    }
    let unwritten = |error: edgepack::builder::BuildError| Failure::unreadable(error);
    session.write_stream(&args.output, |out| built.write_to(out).map_err(unwritten))?;
    if is_stdout(&args.output) {
        return Ok(Status::Fine);
    }
    report(args, &built, &(attention, divisions), &checked, session)
}

/// Runs that were recorded.
fn recorded(path: &Path, session: &mut Session) -> Result<Vec<Recorded>, Failure> {
    let bytes = session.read_filled(path)?;
    from_safetensors(&bytes).map_err(|error| Failure::findings(error).about(&name_of(path)))
}

/// Checks the programs against the rules of their own dialects, and against those of Edge after conversion.
fn check(programs: &[(String, ExportedProgram<'_>)], options: &Options) -> Result<Findings, Failure> {
    let mut findings = Findings::new(&options.limits);
    for (name, program) in programs {
        let table = options.edge_table.as_deref().unwrap_or_else(|| Table::built_in());
        let rules = verify::Options { table, ..verify::Options::new(&options.operators) };
        findings.extend(verify::verify(program, &rules).moved(name, 0));
        let edge = to_edge(program.clone(), options).map_err(|error| failure(error).about(name))?;
        findings.extend(verify::verify(&edge, &rules.dialect(Dialect::Edge)).moved(&format!("{name}.edge"), 0));
    }
    Ok(findings)
}

/// Prints what was written, in readable form.
fn report(
    args: &Lowering,
    built: &BuiltProgram<'_>,
    (attention, divisions): &(Vec<String>, Vec<Division>),
    checked: &[Judged],
    session: &mut Session,
) -> Result<Status, Failure> {
    let file = built.program();
    // What was built is verified.
    let program = ProgramRef::reopen(file.head())?;
    let registry = edgepack_kernels::registry();
    // Whether element types and forms suit the operators shows when it is loaded.
    let loaded = match file.len() {
        0..=TRIED => {
            file.to_bytes().ok().and_then(|bytes| pte::open(Arc::new(MemorySource::new(bytes)), &session.limits).ok())
        }
        _ => None,
    };
    let mut methods = Vec::new();
    for plan in program.plans().iter() {
        let plan = plan?;
        let operators: BTreeSet<String> = readable::rows(&plan.operators)
            .iter()
            .map(|row| row.as_ref().map_or("?".to_owned(), operator_name))
            .collect();
        let missing: Vec<String> = operators.iter().filter(|name| registry.find(name).is_none()).cloned().collect();
        let name = plan.name.as_deref().unwrap_or("?").to_owned();
        let tried = missing.is_empty() && built.data_files().next().is_none();
        let refused = loaded.as_ref().filter(|_| tried).and_then(|program| refusal(program, &name, &registry));
        methods.push(Written {
            method: name,
            values: readable::rows(&plan.values).len(),
            instructions: tables::chains(&plan).iter().map(|chain| readable::rows(&chain.instructions).len()).sum(),
            arena_bytes: plan.non_const_buffer_sizes.iter().flat_map(|sizes| sizes.iter()).sum(),
            undelegated: operators.into_iter().collect(),
            missing,
            refused,
        });
    }
    let (output, len) = (args.output.display().to_string(), file.len());
    if session.json {
        session.document(&LoweredProgram {
            attention,
            bytes: len,
            delegation: divisions,
            methods: &methods,
            output,
            self_check: checked,
        })?;
        return Ok(Status::Fine);
    }
    writeln!(session.out, "{TITLE}{output}{TITLE:#}  {}", bytes(len))?;
    for method in &methods {
        writeln!(
            session.out,
            "  {NAME}{}{NAME:#}  {}, {}, {}, arena {}",
            method.method,
            count(method.instructions, "instruction"),
            count(method.values, "value"),
            count(method.undelegated.len(), "operator"),
            bytes(u64::try_from(method.arena_bytes).unwrap_or(0)),
        )?;
        if !method.missing.is_empty() {
            let missing = method.missing.join(" ");
            writeln!(session.out, "    {BAD}missing in this runtime{BAD:#}  {DIM}{missing}{DIM:#}")?;
        }
        if let Some(refused) = &method.refused {
            writeln!(session.out, "    {BAD}this runtime cannot load it{BAD:#}  {DIM}{refused}{DIM:#}")?;
        }
    }
    for line in attention {
        writeln!(session.out, "  {line}")?;
    }
    backend::print(divisions, &mut session.out)?;
    self_check::print(checked, &mut session.out)?;
    Ok(Status::Fine)
}

/// Reason a method cannot be loaded here, for lack of a form of an operator.
fn refusal(program: &Program, method: &str, registry: &Registry) -> Option<String> {
    let options = LoadOptions { backends: edgepack::backends(), ..LoadOptions::default() };
    match Method::load(program, method, registry, &options) {
        Err(error @ LoadError::Instruction { .. }) => Some(error.to_string()),
        _ => None,
    }
}

/// The failure of reading or lowering an archive.
pub fn failure(error: edgepack_exir::Error) -> Failure {
    match error {
        edgepack_exir::Error::Io(_) => Failure::unreadable(error),
        edgepack_exir::Error::Operators(_) | edgepack_exir::Error::Unsupported { .. } => Failure::cannot_run(error),
        _ => Failure::findings(error),
    }
}
