//! The command as a function: what it prints, and the JSON of inspecting a file.

use std::cell::RefCell;
use std::ffi::{OsString, c_char, c_void};
use std::io::{self, Cursor, Write};
use std::path::Path;
use std::rc::Rc;

use edgepack_cli::Io;

use crate::entry;
use crate::error::{EdgepackCode, EdgepackError};
use crate::failure::Failure;
use crate::file::{EdgepackFile, File, os_string};
use crate::handles::{close, get, handle, put};
use crate::limits::EdgepackPreset;
use crate::pointer::{In, Out};
use crate::text::{EdgepackText, Terminated};

/// Output of a command.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EdgepackReport {
    /// Number of the object; zero for none.
    pub id: u64,
}

handle!(EdgepackReport, Report, ReportObject, "a report");

pub(crate) struct ReportObject {
    /// Exit status.
    pub status: u8,
    output: Terminated,
    complaints: Terminated,
}

/// A stream into memory.
#[derive(Clone, Default)]
struct Memory(Rc<RefCell<Vec<u8>>>);

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut all = self.0.borrow_mut();
        all.try_reserve(bytes.len()).map_err(|_| io::ErrorKind::OutOfMemory)?;
        all.extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Output of a command: its status, standard output and standard error.
pub(crate) struct Output {
    pub status: u8,
    pub out: Vec<u8>,
    pub err: Vec<u8>,
}

/// Runs a command with an input; the name of the program is not among the arguments.
pub(crate) fn run(args: impl IntoIterator<Item = OsString>, input: Vec<u8>) -> Output {
    let (out, err) = (Memory::default(), Memory::default());
    let io = Io {
        stdin: Box::new(Cursor::new(input)),
        stdout: Box::new(out.clone()),
        stderr: Box::new(err.clone()),
        terminal: false,
        progress: false,
        color: (false, false),
        helper: None,
        ..Io::standard()
    };
    let args = std::iter::once(OsString::from("edgepack")).chain(args);
    let status = edgepack_cli::run(args, io).code();
    Output { status, out: out.0.take(), err: err.0.take() }
}

/// Runs a command that prints JSON on one file, with limits of a preset.
pub(crate) fn run_on(command: &str, preset: u32, file: &EdgepackFile) -> Result<Output, Failure> {
    let limits = match preset {
        preset if preset == EdgepackPreset::Machine as u32 => "default",
        preset if preset == EdgepackPreset::Hostile as u32 => "hostile",
        other => return Err(Failure::missing("preset of limits", other)),
    };
    let args = [command, "--json", "--limits", limits].into_iter().map(OsString::from);
    Ok(match file.file()? {
        File::Path(path) => {
            // A name that the command would take for its input is that of a file.
            let path = if path.as_os_str() == "-" { Path::new(".").join(path) } else { path };
            run(args.chain(["--".into(), path.into_os_string()]), Vec::new())
        }
        File::Bytes(bytes) => {
            let mut copy = Vec::new();
            copy.try_reserve_exact(bytes.len()).map_err(|_| edgepack::loader::Error::Memory {
                what: "a copy of the file".to_owned(),
                bytes: bytes.len() as u64,
            })?;
            copy.extend_from_slice(bytes);
            run(args.chain(["-".into()]), copy)
        }
    })
}

impl From<Output> for ReportObject {
    fn from(output: Output) -> Self {
        let text = |bytes: Vec<u8>| Terminated::of_bytes(bytes);
        ReportObject { status: output.status, output: text(output.out), complaints: text(output.err) }
    }
}

/// Writes a report of a command on a file.
fn report(
    command: &str,
    file: In<EdgepackFile>,
    preset: u32,
    report: Out<EdgepackReport>,
    error: Out<EdgepackError>,
) -> EdgepackCode {
    entry::call(error, || {
        report.check(1, "report")?;
        let output = run_on(command, preset, file.one("file")?)?;
        report.write(put(ReportObject::from(output)), "report")
    })
}

/// Says what is inside of a file of any format, as JSON: the document of `edgepack inspect --json`. What a broken file still
/// says is in it, too. `preset` is an EdgepackPreset, the limits.
///
/// Ownership: the report is the caller's, who closes it; bytes of the file are copied. Threads: any, at any time.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_inspect(
    file: In<EdgepackFile>,
    preset: u32,
    report: Out<EdgepackReport>,
    error: Out<EdgepackError>,
) -> EdgepackCode {
    self::report("inspect", file, preset, report, error)
}

/// Lists the operators and delegates that a file needs, as JSON, and which of them this library has: the document of
/// `edgepack ops --json`. `preset` is an EdgepackPreset, the limits.
///
/// Ownership: the report is the caller's, who closes it; bytes of the file are copied. Threads: any, at any time.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_ops(
    file: In<EdgepackFile>,
    preset: u32,
    report: Out<EdgepackReport>,
    error: Out<EdgepackError>,
) -> EdgepackCode {
    self::report("ops", file, preset, report, error)
}

/// Says where the bytes of a file go, as JSON: the document of `edgepack size --json`. `preset` is an
/// EdgepackPreset, the limits.
///
/// Ownership: the report is the caller's, who closes it; bytes of the file are copied. Threads: any, at any time.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_size(
    file: In<EdgepackFile>,
    preset: u32,
    report: Out<EdgepackReport>,
    error: Out<EdgepackError>,
) -> EdgepackCode {
    self::report("size", file, preset, report, error)
}

/// Runs the command `edgepack` with `count` arguments, the name of the program not among them; `input` is what `-` reads.
/// Commands read and write the files that they are told to, and `run --allow-native-code` runs the code of a package in this
/// process: arguments are as trusted as a caller is. No connections are made. That a command fails is no error of this
/// function; its status says so.
///
/// Ownership: the report is the caller's, who closes it; arguments and input are copied. Threads: any, at any time.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_command(
    args: In<In<c_char>>,
    count: usize,
    input: In<c_void>,
    input_len: usize,
    report: Out<EdgepackReport>,
    error: Out<EdgepackError>,
) -> EdgepackCode {
    entry::call(error, || {
        report.check(1, "report")?;
        let mut list = Vec::new();
        for arg in args.slice(count, "args")? {
            list.push(os_string(arg.c_str("an argument")?)?);
        }
        let input = input.bytes(input_len, "input")?.to_vec();
        report.write(put(ReportObject::from(run(list, input))), "report")
    })
}

/// Returns the exit status of a command by `status`: 0 fine, 1 findings or a difference, 2 wrong usage, 3 unreadable, 4 valid
/// but cannot run here.
///
/// Threads: any, at any time.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_report_status(
    report: EdgepackReport,
    status: Out<u32>,
    error: Out<EdgepackError>,
) -> EdgepackCode {
    entry::call(error, || status.write(get(report)?.status.into(), "status"))
}

/// Returns what a command printed by `text`. Some commands print other things than text.
///
/// Ownership: it is that of the report, until it is closed. Threads: any, at any time.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_report_output(
    report: EdgepackReport,
    text: Out<EdgepackText>,
    error: Out<EdgepackError>,
) -> EdgepackCode {
    entry::call(error, || text.write(get(report)?.output.text(), "text"))
}

/// Returns what a command complained of by `text`.
///
/// Ownership: it is that of the report, until it is closed. Threads: any, at any time.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_report_complaints(
    report: EdgepackReport,
    text: Out<EdgepackText>,
    error: Out<EdgepackError>,
) -> EdgepackCode {
    entry::call(error, || text.write(get(report)?.complaints.text(), "text"))
}

/// Closes a report. Zero is closed at any time.
///
/// Threads: any, at any time. Returns EDGEPACK_CODE_INVALID_ARGUMENT if it was closed before.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_report_close(report: EdgepackReport) -> EdgepackCode {
    entry::call(Out::NULL, || close(report))
}
