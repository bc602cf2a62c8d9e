//! A child process: started in a group of its own, spoken to until a deadline, and ended with its group.
//!
//! Invariant: a process in [`GROUPS`] was not waited for, so its number is no other process's.

use std::ffi::OsString;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use edgepack_executor::mlf::Operand;
use edgepack_format::limits::Limits;
use rustix::process::{Pid, Signal, kill_process_group};

use super::protocol::{Answer, Expected, Load, ProtocolError, read_answer, send_run};
use crate::error::Error;

/// Groups of processes that were started and not waited for.
static GROUPS: Mutex<Vec<u32>> = Mutex::new(Vec::new());

/// Ends all child processes, with their groups. For a program that is about to be ended by a signal: a terminal sends
/// its signals to the groups of a job, and child processes have groups of their own.
pub fn end_all() {
    let groups = GROUPS.lock().unwrap_or_else(PoisonError::into_inner);
    groups.iter().for_each(|group| end_group(*group));
}

fn end_group(group: u32) {
    let group = i32::try_from(group).ok().and_then(Pid::from_raw);
    // It may have ended by itself.
    let _ended = group.map(|group| kill_process_group(group, Signal::KILL));
}

/// A child process, and the connection to it.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    stream: UnixStream,
    deadline: Duration,
}

impl Process {
    /// Starts a program. Its standard input is the connection.
    pub(super) fn start(helper: &Path, arguments: &[OsString], deadline: Duration) -> Result<Process, Error> {
        let failed = |error| Error::Io { what: helper.display().to_string(), error };
        let (stream, theirs) = UnixStream::pair().map_err(failed)?;
        let mut command = Command::new(helper);
        command.args(arguments).stdin(Stdio::from(OwnedFd::from(theirs))).stdout(Stdio::from(io::stderr()));
        command.process_group(0);
        // Locked until it is listed: a signal in between would leave it behind.
        let mut groups = GROUPS.lock().unwrap_or_else(PoisonError::into_inner);
        let child = command.spawn().map_err(failed)?;
        groups.push(child.id());
        drop(groups);
        Ok(Process { child, stream, deadline })
    }

    /// Asks it to load a module.
    pub(super) fn load(&mut self, load: &Load, limits: &Limits) -> Result<Answer, Error> {
        self.exchange(|line| {
            load.send(line)?;
            read_answer(line, Expected::Loaded, limits)
        })
    }

    /// Asks it to run the module.
    pub(super) fn run(
        &mut self,
        inputs: &[(Operand, &[u8])],
        outputs: &[Operand],
        limits: &Limits,
    ) -> Result<Answer, Error> {
        self.exchange(|line| {
            send_run(line, inputs, outputs)?;
            read_answer(line, Expected::Ran(outputs), limits)
        })
    }

    /// Sends and reads until the deadline; the error of a process that ended is how it ended.
    fn exchange(&mut self, talk: impl FnOnce(&mut Line<'_>) -> Result<Answer, ProtocolError>) -> Result<Answer, Error> {
        let mut line = Line { stream: &self.stream, end: Instant::now().checked_add(self.deadline) };
        match talk(&mut line) {
            Ok(answer) => Ok(answer),
            Err(ProtocolError::Io(error)) if error.kind() == ErrorKind::TimedOut => {
                Err(Error::Deadline { seconds: self.deadline.as_secs_f64() })
            }
            Err(ProtocolError::Io(error)) if is_closed(&error) => Err(self.ended()),
            Err(error) => Err(error.into()),
        }
    }

    /// Describes the end of a process that closed its connection. It is given a moment to end.
    fn ended(&mut self) -> Error {
        /// Time between closing and ending.
        const MOMENT: Duration = Duration::from_secs(2);
        let start = Instant::now();
        while start.elapsed() < MOMENT {
            match self.child.try_wait() {
                Ok(Some(status)) => return of_status(status),
                Ok(None) => std::thread::sleep(Duration::from_millis(1)),
                Err(error) => return Error::Io { what: "the child process".to_owned(), error },
            }
        }
        Error::Protocol(ProtocolError::Malformed("the child closed its connection and went on"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let group = self.child.id();
        let mut groups = GROUPS.lock().unwrap_or_else(PoisonError::into_inner);
        // Processes that it started may be left, even if it has ended.
        end_group(group);
        // It was just ended; nothing can be done if the system says otherwise.
        let _status = self.child.wait();
        groups.retain(|listed| *listed != group);
    }
}

fn is_closed(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::BrokenPipe | ErrorKind::ConnectionReset)
}

fn of_status(status: ExitStatus) -> Error {
    match (status.signal(), status.code()) {
        (Some(signal), _) => Error::Crash { signal, name: signal_name(signal) },
        (None, code) => Error::Exit { code: code.unwrap_or_default() },
    }
}

/// Names of the signals that end a process for its own fault, and of those that others end it with.
fn signal_name(signal: i32) -> &'static str {
    let names = [
        (Signal::ILL, "SIGILL"),
        (Signal::TRAP, "SIGTRAP"),
        (Signal::ABORT, "SIGABRT"),
        (Signal::BUS, "SIGBUS"),
        (Signal::FPE, "SIGFPE"),
        (Signal::KILL, "SIGKILL"),
        (Signal::SEGV, "SIGSEGV"),
        (Signal::PIPE, "SIGPIPE"),
        (Signal::ALARM, "SIGALRM"),
        (Signal::TERM, "SIGTERM"),
        (Signal::XCPU, "SIGXCPU"),
        (Signal::SYS, "SIGSYS"),
    ];
    names.into_iter().find(|(number, _)| number.as_raw() == signal).map_or("a signal", |(_, name)| name)
}

/// The connection, until a point in time.
struct Line<'s> {
    stream: &'s UnixStream,
    /// `None` if the point is beyond what clocks can say.
    end: Option<Instant>,
}

impl Line<'_> {
    /// Time that is left.
    fn left(&self) -> io::Result<Option<Duration>> {
        let Some(end) = self.end else { return Ok(None) };
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(Some(left)) }
    }

    /// Tries until something happens or the time is over.
    fn wait<T>(
        &self,
        set: impl Fn(&UnixStream, Option<Duration>) -> io::Result<()>,
        mut act: impl FnMut() -> io::Result<T>,
    ) -> io::Result<T> {
        loop {
            set(self.stream, self.left()?)?;
            match act() {
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted) => {
                }
                done => return done,
            }
        }
    }
}

impl Read for Line<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut stream = self.stream;
        self.wait(UnixStream::set_read_timeout, || stream.read(into))
    }
}

impl Write for Line<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut stream = self.stream;
        self.wait(UnixStream::set_write_timeout, || stream.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
