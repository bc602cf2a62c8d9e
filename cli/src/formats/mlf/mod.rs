//! Model Library Format packages: what is in them, and running them.
//!
//! The code of a package runs only with `--allow-native-code`.

mod bench;
pub mod cases;
mod check;
pub mod convert;
mod graph;
mod inputs;
mod library;
pub mod native;
pub(crate) mod ops;
mod print;
mod run;
pub(crate) mod summary;

use std::io::{self, Write};
use std::path::Path;

use edgepack_format::FileKind;
use edgepack_format::finding::Findings;
use edgepack_format::limits::Limits;
use edgepack_loader::mlf::{Archive, Library, verify};

use super::inspection::{Inside, Summary, show};
use super::size::StoredTensor;
use super::{Execution, Format, Head, Measured, Measurement, Piece, Size};
use crate::cases::Replayed;
use crate::compare::Tolerance;
use crate::file::File;
use crate::options::Inputs;
use crate::profile::ExportRecord;
use crate::session::Session;
use crate::spelling;
use crate::status::{Failure, Status};
use crate::value::Value;
use crate::view::Graph;
pub use library::library as open_library;
use summary::LibrarySummary;

/// Packages.
pub struct Mlf;

impl Summary for LibrarySummary {
    fn print(&self, all: bool, out: &mut dyn Write) -> io::Result<()> {
        print::print(self, all, out)
    }
}

impl Format for Mlf {
    fn kind(&self) -> FileKind {
        FileKind::ModelLibrary
    }

    fn id(&self) -> &'static str {
        "mlf"
    }

    fn verify(&self, head: &Head, session: &Session) -> Findings {
        verify(&head.bytes, &session.limits).findings
    }

    fn inspect(&self, head: &Head, all: bool, session: &mut Session) -> Result<Status, Failure> {
        let summary = LibrarySummary::new(&head.bytes, &session.limits);
        show(self, head, Some(&summary), Inside::default(), all, session)
    }

    /// Every file, headers and padding of the archive, and the parameters.
    fn size(&self, head: &Head, session: &Session) -> Result<Size, Failure> {
        let library = LibrarySummary::new(&head.bytes, &session.limits);
        let mut size = Size::new(head.file_len());
        let mut rest = size.bytes;
        for member in &library.members {
            rest = rest.saturating_sub(member.bytes);
            size.part(spelling::name(&member.path), member.bytes);
        }
        size.part("headers and padding of the archive", rest);
        for module in library.modules {
            size.tensors.extend(module.params.into_iter().map(|param| StoredTensor {
                name: format!("{}.{}", spelling::name(&module.name), spelling::name(&param.name)),
                layout: param.layout,
                bytes: param.bytes,
                offset: None,
            }));
        }
        Ok(size.sorted())
    }

    fn extract(&self, head: &Head, piece: Piece<'_>, session: &Session) -> Result<Vec<u8>, Failure> {
        let limits = &session.limits;
        let Piece::Member(path) = piece else {
            return Err(Failure::usage("this package has files; take one with --member"));
        };
        let archive = Archive::read(&head.bytes, limits).archive;
        let range = archive.find(path.trim_start_matches("./"));
        let bytes = range.and_then(|range| head.bytes.get(range));
        bytes.map(<[u8]>::to_vec).ok_or_else(|| Failure::usage(format!("there is no file {path:?} in it")))
    }

    fn ops(&self, file: &File, session: &mut Session) -> Result<Status, Failure> {
        ops::list(file, session)
    }

    fn run(
        &self,
        file: &File,
        method: Option<&str>,
        inputs: &Inputs,
        how: Execution<'_>,
        session: &mut Session,
    ) -> Result<(String, Vec<Value>), Failure> {
        run::run(file, method, inputs, how, session)
    }

    fn check(
        &self,
        file: &File,
        cases: Option<&Path>,
        tolerance: Tolerance,
        how: Execution<'_>,
        session: &mut Session,
    ) -> Result<Vec<Replayed>, Failure> {
        check::check(file, cases, tolerance, how, session)
    }

    fn bench(
        &self,
        file: &File,
        method: Option<&str>,
        inputs: &Inputs,
        measurement: Measurement,
        how: Execution<'_>,
        session: &mut Session,
    ) -> Result<Measured, Failure> {
        if measurement.roofline {
            return Err(Failure::usage(
                "--roofline is for programs: nothing inside of a package's own code is observed",
            ));
        }
        bench::bench(file, method, inputs, measurement.time, how, session)
    }

    fn graphs(&self, head: &Head, record: Option<ExportRecord>, session: &mut Session) -> Result<Vec<Graph>, Failure> {
        match record {
            None => graph::graphs(&head.bytes, &session.limits),
            Some(_) => Err(self.lacks("record of an export")),
        }
    }

    fn library(&self, file: &File, limits: &Limits) -> Result<Option<Library>, Failure> {
        library::library(file, limits).map(Some)
    }
}

/// Refuses to record runs.
fn not_recorded(how: Execution<'_>) -> Result<(), Failure> {
    match how.recorder {
        None => Ok(()),
        Some(_) => Err(Failure::usage("--etdump is for programs: nothing inside of a package's own code is observed")),
    }
}
