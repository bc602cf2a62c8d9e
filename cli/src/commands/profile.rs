//! `edgepack profile`: what a method, or a trace of one, spends its time and memory on.

use std::path::PathBuf;

use crate::formats::{self, Execution, Watching};
use crate::options::{Invocation, Native, PackCache, Threads};
use crate::profile::{By, folded, page, print};
use crate::recording::{Recording, takes_stdout};
use crate::session::Session;
use crate::status::{Failure, Status};

/// Show what a method spends its time and memory on
///
/// Runs are watched instruction by instruction. A trace of another runtime (ETDump) is shown by the same tables; its ticks
/// are taken for nanoseconds. Modules are those of the stack traces in the file, or of the record of its export.
#[derive(clap::Args, Debug)]
#[command(
    mut_arg("method", |arg| arg.help("Name of the method; the only one, or `forward`, if not given")),
    mut_arg("inputs", |arg| arg.help("Inputs, as for `run`; arbitrary numbers if not given")),
    mut_arg("debug_buffer", |arg| arg.help(
        "File for what every instruction wrote, next to the trace: of one more run, which goes instruction by instruction as \
         the program was exported"
    ))
)]
pub struct Args {
    /// The program, or a trace
    pub file: PathBuf,

    /// Method and inputs.
    #[command(flatten)]
    pub invocation: Invocation,

    /// Groups of the table
    #[arg(long, value_enum, default_value = "instruction")]
    pub by: By,

    /// Rows of the table, the most expensive ones
    #[arg(long, value_name = "N", default_value = "20", value_parser = clap::value_parser!(u32).range(1..))]
    pub top: u32,

    /// Times that every instruction is measured: in one run, or in several where watching all of a run would slow it down
    #[arg(long, value_name = "N", default_value = "20", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub runs: u32,

    /// File for a page: the tables, a flame graph, a timeline, memory over time. It needs nothing but itself
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,

    /// File for stacks of modules and operators with their nanoseconds, as flame-graph tools read them
    #[arg(long, value_name = "FILE")]
    pub folded: Option<PathBuf>,

    /// Record of the export (ETRecord), which knows the module of every instruction
    #[arg(long, value_name = "FILE")]
    pub etrecord: Option<PathBuf>,

    /// Files in which the runs are recorded.
    #[command(flatten)]
    pub recording: Recording,

    /// Number of threads.
    #[command(flatten)]
    pub threads: Threads,

    /// Folder of packed weights.
    #[command(flatten)]
    pub pack_cache: PackCache,
}

/// Runs the command.
pub fn run(args: &Args, session: &mut Session) -> Result<Status, Failure> {
    let files = args.recording.files().into_iter().chain([args.html.as_deref(), args.folded.as_deref()]);
    let taken = takes_stdout(files, session)?;
    let (file, format) = formats::open(&args.file, session)?;
    let Invocation { data, method, inputs } = &args.invocation;
    let recorder = args.recording.recorder(session);
    if let Some(recorder) = &recorder {
        // The runs that are measured go as they always do; values are recorded after them.
        recorder.borrow_mut().record_values(false);
    }
    let how = Execution {
        data: &data.data,
        threads: args.threads.threads,
        pack_cache: args.pack_cache.folder.as_deref(),
        native: &Native::default(),
        recorder: recorder.as_ref(),
    };
    let watching = Watching {
        passes: args.runs as usize,
        values: args.recording.debug_buffer.is_some(),
        record: args.etrecord.as_deref(),
    };
    let profile = format.profile(&file, method.as_deref(), inputs, watching, how, session)?;
    args.recording.write(recorder, session)?;
    if let Some(path) = &args.html {
        session.write_text(Some(path), &page(&profile)?)?;
    }
    if let Some(path) = &args.folded {
        session.write_text(Some(path), &folded(&profile))?;
    }
    match session.json {
        true => session.document(&profile)?,
        false if taken => {}
        false => print(&profile, args.by, args.top as usize, &mut session.out)?,
    }
    Ok(Status::Fine)
}
