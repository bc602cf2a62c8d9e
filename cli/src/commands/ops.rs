//! `edgepack ops`: what a file needs of a runtime.

use std::io::Write;
use std::path::{Path, PathBuf};

use edgepack_format::pte::releases::Release;

use crate::edit::read_text;
use crate::file::{File, name_of};
use crate::formats::pte::{Offered, Selection, list_releases};
use crate::formats::{self, Format};
use crate::many::Files;
use crate::session::Session;
use crate::status::{Failure, Status};

/// List the operators and delegates that programs need, and which of them this runtime has
///
/// Of a Model Library Format package: the functions its graphs call, and which of them it has. Of export IR: what becomes
/// of each operator.
///
/// Exits with 4 if something is missing, or if no release, or not the one that is named, loads a program.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Files.
    #[command(flatten)]
    pub files: Files,

    /// Print the build list of a runtime with the operators of these programs and no others, as ExecuTorch's selective build
    /// reads it (`selected_operators.yaml`)
    #[arg(long, conflicts_with_all = ["against", "json"])]
    pub yaml: bool,

    /// Compare with the operators and backends of another runtime instead: a name per line, or the YAML of its build, which
    /// has operators alone
    #[arg(long, value_name = "LIST")]
    pub against: Option<PathBuf>,

    /// Report the lowest release of ExecuTorch that loads the programs, and why: what was added to the format and to the
    /// releases since the first one. Kernels and backends that no release has are listed, and do not count
    #[arg(long, conflicts_with_all = ["against", "yaml"])]
    pub releases: bool,

    /// Report whether this release of ExecuTorch loads the programs: 0.6, 1.0
    #[arg(long, value_name = "RELEASE", conflicts_with_all = ["against", "yaml"])]
    pub release: Option<Release>,
}

/// Runs the command.
pub fn run(args: &Args, session: &mut Session) -> Result<Status, Failure> {
    if args.yaml {
        let mut selection = Selection::default();
        let status = args.files.each(session, |file, session| {
            let (file, format) = open(&file.path, session)?;
            let program = format.program(&file, &session.limits)?;
            selection.add(&program, &file.name).map(|()| Status::Fine)
        })?;
        session.write_text(None, &selection.yaml())?;
        if let Some(backends) = selection.backends() {
            writeln!(session.err, "such a list has no backends; the programs also need {backends}")?;
        }
        return Ok(status);
    }
    if args.releases || args.release.is_some() {
        return args.files.each(session, |file, session| {
            let (file, format) = open(&file.path, session)?;
            list_releases(&format.program(&file, &session.limits)?, &file, args.release, session)
        });
    }
    let offered = args.against.as_ref().map(|path| offered(path, session)).transpose()?;
    args.files.each(session, |file, session| {
        let (file, format) = open(&file.path, session)?;
        match &offered {
            None => format.ops(&file, session),
            offered => format.ops_against(&file, offered.as_ref(), session),
        }
    })
}

/// Opens a file that has operators to look up.
fn open(path: &Path, session: &mut Session) -> Result<(File, &'static dyn Format), Failure> {
    let (file, format) = formats::open(path, session)?;
    match formats::is_compiled(format.kind()) {
        true => Err(formats::wrong_kind(&file, "a program or package")),
        false => Ok((file, format)),
    }
}

/// Operators and backends of another runtime.
fn offered(path: &Path, session: &mut Session) -> Result<Offered, Failure> {
    let offered = Offered::parse(&read_text(path, "a list of operators", session)?);
    match offered.is_empty() {
        true => Err(Failure::findings(format!("{}: there is no operator in it", name_of(path)))),
        false => Ok(offered),
    }
}
