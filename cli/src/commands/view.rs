//! `edgepack view`: the graphs of a file as a page, for Graphviz or for Model Explorer, and its memory.

use std::io::Write;
use std::path::PathBuf;

use crate::findings::tally;
use crate::formats;
use crate::outputs::is_stdout;
use crate::profile::ExportRecord;
use crate::recording::takes_stdout;
use crate::session::Session;
use crate::status::{Failure, Status};
use crate::view::{View, dot, explorer, page, print_memory};

/// Show the graphs of a file as a page: nodes, values, memory, findings
///
/// Methods with what is inside of their delegates, exported programs, models and packages of an Edge TPU, Model Library
/// Format. The page needs nothing but itself. Nodes are in the modules that the file names, by its stack traces or by the
/// names of its weights; in a file that names none, in parts that repeat.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The file
    pub file: PathBuf,

    /// File for the page or text; standard output if not given
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Write the graphs as text for Graphviz
    #[arg(long, group = "form")]
    pub dot: bool,

    /// Write the graphs as JSON for Model Explorer
    #[arg(long, group = "form")]
    pub model_explorer: bool,

    /// Write memory as text: a picture of which values are where and when, and what is alive at the peak
    #[arg(long, group = "form")]
    pub memory: bool,

    /// Record of the export (ETRecord), which knows the module of every instruction
    #[arg(long, value_name = "FILE")]
    pub etrecord: Option<PathBuf>,
}

/// Runs the command.
pub fn run(args: &Args, session: &mut Session) -> Result<Status, Failure> {
    let asked = args.output.is_some() || args.dot || args.model_explorer || args.memory;
    let file = args.output.as_deref().or_else(|| asked.then_some("-".as_ref()));
    takes_stdout([file], session)?;
    let (head, format) = formats::read(&args.file, session)?;
    let findings = format.verify(&head, session);
    let status = if findings.has_errors() { Status::Findings } else { Status::Fine };
    let record = args.etrecord.as_deref().map(|path| ExportRecord::read(path, session)).transpose()?;
    let graphs = format.graphs(&head, record, session);
    let graphs = graphs.map_err(|failure| failure.about(&head.file.name))?;
    let view = View::new(&head.file.name, format.id(), graphs, &findings);
    if session.json {
        session.document(&view)?;
        if !asked {
            return Ok(status);
        }
    }
    let path = args.output.as_deref().filter(|path| !is_stdout(path));
    match (args.dot, args.model_explorer, args.memory) {
        (true, ..) => session.write_text_stream(path, |out| Ok(dot(&view, out)?))?,
        (_, true, _) => session.write_text(path, &explorer(&view)?)?,
        (.., true) => match path {
            Some(_) => session.write_text_stream(path, |out| Ok(print_memory(&view, out)?))?,
            None => print_memory(&view, &mut session.out)?,
        },
        _ => session.write_text(path, &page(&view)?)?,
    }
    // The status is not without a word: a page shows its findings itself, but is opened later.
    if findings.has_errors() {
        let cut = findings.cut_short().map(|cut| format!("{cut}; ")).unwrap_or_default();
        writeln!(session.err, "{}: {cut}{}; see `verify`", head.file.name, tally(&findings))?;
    }
    Ok(status)
}
