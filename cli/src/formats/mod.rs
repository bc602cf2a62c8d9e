//! Families of files, a folder each: all that differs between them is behind one trait.
//!
//! A command opens a file, which finds its family by content, and asks the family. Families know of commands nothing but
//! what is asked.

pub mod bundle;
pub mod darwinn;
pub(crate) mod exir;
mod fields;
mod head;
pub(crate) mod inspection;
mod measured;
pub mod mlf;
pub(crate) mod ptd;
pub mod pte;
mod roofline;
mod size;
pub(crate) mod tflite;
pub(crate) mod trace;

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::time::Duration;

use edgepack_format::FileKind;
use edgepack_format::finding::Findings;
use edgepack_format::limits::Limits;
use edgepack_format::row::TableDesc;
use edgepack_format::wire;
use edgepack_loader::mlf::Library;
use edgepack_smith::Rng;

use crate::cases::Replayed;
use crate::compare::Tolerance;
use crate::file::{self, File};
use crate::layers::recorded::Recorded;
use crate::options::{Inputs, Native};
use crate::profile::{ExportRecord, Profile, Recorder};
use crate::session::Session;
use crate::status::{Failure, Status};
use crate::value::Value;
use crate::view::Graph;

pub use exir::{Lowering, lower};
pub use head::Head;
pub use measured::{Measured, Memory};
pub use ptd::open_data;
pub use pte::layers::{Blame, Layered, Run};
pub use size::Size;

/// A root table with its description.
pub type Root<'a> = (wire::Table<'a>, &'static TableDesc);

/// A piece of a file.
#[derive(Clone, Copy, Debug)]
pub enum Piece<'a> {
    /// Segment, by its index in the program or data file.
    Segment(u32),
    /// The payload of a delegate, by its place among the delegates of all methods.
    Delegate(usize),
    /// A weight of that payload, by its place in the list that `inspect` shows.
    Weight(usize, usize),
    /// Named data, by key.
    Named(&'a str),
    /// Program inside of a bundle.
    Program,
    /// Compiled package of the Edge TPU, by its place among those of the file.
    Package(usize),
    /// A file of an archive, by its path in it.
    Member(&'a str),
}

/// Options for running a file.
#[derive(Clone, Copy)]
pub struct Execution<'a> {
    /// Data files.
    pub data: &'a [PathBuf],
    /// Threads for kernels.
    pub threads: Option<u16>,
    /// A folder of packed weights.
    pub pack_cache: Option<&'a Path>,
    /// Permission to call the code of a package, and what of it is called.
    pub native: &'a Native,
    /// Recorder of what runs.
    pub recorder: Option<&'a RefCell<Recorder>>,
}

/// Settings of a measurement by `bench`.
#[derive(Clone, Copy, Debug)]
pub struct Measurement {
    /// Time that steady runs take, all together.
    pub time: Duration,
    /// Every instruction is compared with the limits of the machine.
    pub roofline: bool,
}

/// Settings of a profile.
#[derive(Clone, Copy, Debug)]
pub struct Watching<'a> {
    /// Times that every instruction is measured.
    pub passes: usize,
    /// Values are recorded, in a run of their own.
    pub values: bool,
    /// Record of the export, which knows modules.
    pub record: Option<&'a Path>,
}

/// Operations on one kind of file. An operation that a family does not support is refused with a message that names the
/// kind.
pub trait Format: Sync {
    /// The kind, as it is detected.
    fn kind(&self) -> FileKind;

    /// Name of the kind in JSON documents.
    fn id(&self) -> &'static str;

    /// Everything its rules have to say.
    fn verify(&self, head: &Head, session: &Session) -> Findings;

    /// Checks a file together with its data files; `None` if there is no such pair.
    fn pair(&self, _head: &Head, _data: &[&Head], _session: &Session) -> Option<Findings> {
        None
    }

    /// The root table, if it can be located at all. Archives have none.
    fn root<'a>(&self, _head: &'a Head) -> Option<Root<'a>> {
        None
    }

    /// Returns whether the content can be walked table by table in short time. Tables may be referred to several times,
    /// so that a few kilobytes unfold into billions of rows; of such a file only the findings and a bounded walk are
    /// shown.
    fn is_modest(&self, _head: &Head, _limits: &Limits) -> bool {
        true
    }

    /// The root table of a file that can be looked at table by table.
    fn modest_root<'a>(&self, head: &'a Head, limits: &Limits) -> Option<Root<'a>> {
        self.root(head).filter(|_| self.is_modest(head, limits))
    }

    /// Shows what is inside, broken or not; with `all` every value, instruction and field.
    fn inspect(&self, head: &Head, all: bool, session: &mut Session) -> Result<Status, Failure>;

    /// Measures the parts of the file in bytes.
    fn size(&self, head: &Head, session: &Session) -> Result<Size, Failure>;

    /// One raw piece.
    fn extract(&self, head: &Head, _piece: Piece<'_>, session: &Session) -> Result<Vec<u8>, Failure> {
        self.modest_root(head, &session.limits).ok_or_else(unreadable)?;
        Err(self.lacks("pieces"))
    }

    /// The bytes of compiled packages.
    fn packages<'a>(&self, _head: &'a Head, _limits: &Limits) -> Vec<&'a [u8]> {
        Vec::new()
    }

    /// The program to run. What is wrong with it fails with all findings.
    fn program(&self, file: &File, _limits: &Limits) -> Result<pte::Opened, Failure> {
        Err(wrong_kind(file, "a program"))
    }

    /// Lists what it needs of a runtime, and which of it is here.
    fn ops(&self, file: &File, session: &mut Session) -> Result<Status, Failure> {
        self.ops_against(file, None, session)
    }

    /// Lists what a program needs of a runtime, and which of its operators the list of another runtime has.
    fn ops_against(
        &self,
        file: &File,
        offered: Option<&pte::Offered>,
        session: &mut Session,
    ) -> Result<Status, Failure> {
        pte::list_needs(&self.program(file, &session.limits)?, file, offered, session)
    }

    /// Runs one method once: its name, and what came out.
    fn run(
        &self,
        file: &File,
        method: Option<&str>,
        inputs: &Inputs,
        how: Execution<'_>,
        session: &mut Session,
    ) -> Result<(String, Vec<Value>), Failure> {
        pte::run(&self.program(file, &session.limits)?, method, inputs, how, session)
    }

    /// Replays recorded runs.
    fn check(
        &self,
        file: &File,
        cases: Option<&Path>,
        tolerance: Tolerance,
        how: Execution<'_>,
        session: &mut Session,
    ) -> Result<Vec<Replayed>, Failure> {
        pte::check(self.program(file, &session.limits)?, cases, tolerance, how, session)
    }

    /// The side of a comparison layer by layer that the file is: a program, or the record of a run.
    fn layers(&self, file: &File, session: &mut Session) -> Result<Layered, Failure> {
        Ok(Layered::Program(self.program(file, &session.limits)?.program, Vec::new()))
    }

    /// Replays recorded runs, and searches for the layer that is to blame for each that disagrees.
    fn check_layers(
        &self,
        file: &File,
        cases: Option<&Path>,
        tolerance: Tolerance,
        how: Execution<'_>,
        trace: Option<Recorded>,
        session: &mut Session,
    ) -> Result<Vec<(Replayed, Option<Blame>)>, Failure> {
        pte::check_layers(self.program(file, &session.limits)?, cases, tolerance, how, trace, session)
    }

    /// Measures opening, loading and running a method.
    fn bench(
        &self,
        file: &File,
        method: Option<&str>,
        inputs: &Inputs,
        measurement: Measurement,
        how: Execution<'_>,
        session: &mut Session,
    ) -> Result<Measured, Failure> {
        let open = |limits: &Limits| self.program(file, limits);
        pte::bench(&open, &file.name, method, inputs, measurement, how, session)
    }

    /// Watches runs of a method, or shows those that a trace recorded.
    fn profile(
        &self,
        file: &File,
        method: Option<&str>,
        inputs: &Inputs,
        watching: Watching<'_>,
        how: Execution<'_>,
        session: &mut Session,
    ) -> Result<Profile, Failure> {
        let opened = self.program(file, &session.limits)?;
        pte::profile(&opened.program, &file.name, method, inputs, watching, how, session)
    }

    /// Graphs of the file, each before those that its nodes contain. `record` is the record of the export.
    fn graphs(
        &self,
        _head: &Head,
        _record: Option<ExportRecord>,
        _session: &mut Session,
    ) -> Result<Vec<Graph>, Failure> {
        Err(self.lacks("graph"))
    }

    /// The library of a package that holds one.
    fn library(&self, _file: &File, _limits: &Limits) -> Result<Option<Library>, Failure> {
        Ok(None)
    }

    /// Payloads of delegates whose backend is known, described as JSON.
    fn payloads(&self, _head: &Head, _session: &Session) -> Result<Vec<serde_json::Value>, Failure> {
        Ok(Vec::new())
    }

    /// Payloads of delegates whose backend is known, as comments of a program's text.
    fn payload_comments(&self, _head: &Head, _session: &Session) -> String {
        String::new()
    }

    /// Returns text for readers only, which cannot be read back into a file.
    fn text(&self, _file: &File) -> Result<Option<String>, Failure> {
        Ok(None)
    }

    /// Returns bytes with small changes, for commands that look for faults of readers.
    fn variant(&self, bytes: &[u8], rng: &mut Rng) -> Vec<u8> {
        edgepack_smith::mutate::variant(bytes, rng)
    }

    /// The failure of who asks for what files of the kind do not have.
    fn lacks(&self, what: &str) -> Failure {
        Failure::usage(format!("this {} has no {what}", self.kind().name()))
    }
}

/// All that commands open.
static FORMATS: [&dyn Format; 9] = [
    &pte::Pte,
    &ptd::Ptd::DATA,
    &ptd::Ptd::FLAT_DATA,
    &bundle::Bundle,
    &trace::Trace,
    &tflite::TfLite,
    &darwinn::Darwinn,
    &mlf::Mlf,
    &exir::Exir,
];

/// The format of a kind; `None` if commands do not open it.
pub fn of(kind: FileKind) -> Option<&'static dyn Format> {
    FORMATS.into_iter().find(|format| format.kind() == kind)
}

/// Opens a file of a known format; `-` is standard input.
pub fn open(path: &Path, session: &mut Session) -> Result<(File, &'static dyn Format), Failure> {
    let file = session.open(path)?;
    match of(file.head.kind) {
        Some(format) => Ok((file, format)),
        None => Err(file::refused(&file)),
    }
}

/// Opens a file of a known format and reads its flatbuffer.
pub fn read(path: &Path, session: &mut Session) -> Result<(Head, &'static dyn Format), Failure> {
    let (file, format) = open(path, session)?;
    Ok((Head::read(file, &session.limits)?, format))
}

/// Returns whether files of a kind hold code that was compiled for an Edge TPU, in place of operators.
pub fn is_compiled(kind: FileKind) -> bool {
    matches!(kind, FileKind::TfLite | FileKind::DarwinnPackage)
}

/// The failure of a file of another kind than the command is for, with a way to one where there is one.
pub fn wrong_kind(file: &File, wanted: &str) -> Failure {
    let way = match file.head.kind {
        FileKind::ExportedProgram => "; `edgepack lower` makes a program of it",
        FileKind::Bundle => "; `edgepack extract --program` takes the program out of it",
        FileKind::Safetensors => "; `edgepack convert` makes a data file of it",
        FileKind::Dump => "; `edgepack build` makes the file of it that was dumped",
        _ => "",
    };
    Failure::usage(format!("{}: {wanted} is wanted here, not this {}{way}", file.name, file.head.kind.name()))
}

/// The failure of a file whose tables cannot be looked at.
fn unreadable() -> Failure {
    Failure::findings("nothing in it can be read within reason")
}
