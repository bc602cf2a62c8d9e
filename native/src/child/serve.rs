//! The child's side: reads requests, loads and calls code, answers.
#![allow(unsafe_code, reason = "closing descriptors that nothing owns; loading the code that the parent names")]

use std::fs;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};

use edgepack_executor::mlf::Operand;
use edgepack_format::limits::Limits;
use edgepack_format::tensor::TensorView;
use edgepack_loader::MemorySource;
use edgepack_loader::mlf::Library;
use rustix::process::{Signal, getpgrp, getpid, kill_current_process_group};

use super::protocol::{Load, Loaded, Request, Run, read_request, send_failed, send_loaded, send_ran};
use crate::error::Error;
use crate::in_process::{InProcess, run_aot, run_graph};
use crate::library::NativeLibrary;

/// Serves the parent that is connected to standard input, until it hangs up; then this process is ended, with its group.
///
/// Fails if standard input is no connection of a parent, or a message cannot be read.
///
/// # Safety
///
/// The parent may make this process load and call any code. Nothing else in this process uses standard input, or a
/// descriptor beyond the three standard ones: those are closed, so that the code inherits none.
pub unsafe fn serve() -> Result<(), Error> {
    let stream = connection().map_err(|error| Error::Io { what: "standard input".to_owned(), error })?;
    // SAFETY: by the caller, nothing owns the others.
    unsafe { close_others(stream.as_raw_fd()) }
    let requests = read_all(&stream)?;
    let mut out = &stream;
    let mut runner = None;
    while let Ok(request) = requests.recv() {
        match request {
            Request::Load(load) => match open(&load) {
                Ok(opened) => {
                    let loaded = Loaded {
                        inputs: opened.inputs(),
                        outputs: opened.outputs(),
                        calls: opened.call_count() as u64,
                        memory_bytes: opened.memory_bytes() as u64,
                    };
                    runner = Some(opened);
                    send_loaded(&mut out, &loaded)?;
                }
                Err(error) => send_failed(&mut out, &error.to_string())?,
            },
            Request::Run(run) => match runner.as_mut() {
                Some(runner) => answer(runner, &run, &mut out)?,
                None => send_failed(&mut out, "no module is loaded")?,
            },
        }
    }
    end()
}

/// The connection to the parent, out of the way of the code: its standard input is empty.
fn connection() -> io::Result<UnixStream> {
    let stdin = io::stdin();
    let kind = rustix::fs::FileType::from_raw_mode(rustix::fs::fstat(&stdin)?.st_mode);
    if kind != rustix::fs::FileType::Socket {
        return Err(io::Error::other("there is no parent at the other end; this is run by a program, not by people"));
    }
    let stream = UnixStream::from(stdin.as_fd().try_clone_to_owned()?);
    rustix::stdio::dup2_stdin(fs::File::open("/dev/null")?)?;
    Ok(stream)
}

/// Closes all descriptors except the standard ones and this one.
///
/// # Safety
/// Nothing in this process owns them.
unsafe fn close_others(keep: RawFd) {
    let entries = ["/proc/self/fd", "/dev/fd"].into_iter().find_map(|folder| fs::read_dir(folder).ok());
    let names = entries.into_iter().flatten().flatten().map(|entry| entry.file_name());
    let listed: Vec<RawFd> = names.filter_map(|name| name.to_str()?.parse().ok()).collect();
    for descriptor in listed.into_iter().filter(|descriptor| *descriptor > 2 && *descriptor != keep) {
        // SAFETY: it is only asked for its flags; the list itself was read through one that is closed again.
        let is_open = rustix::io::fcntl_getfd(unsafe { BorrowedFd::borrow_raw(descriptor) }).is_ok();
        if is_open {
            // SAFETY: it is open, and by the caller nothing owns it.
            drop(unsafe { OwnedFd::from_raw_fd(descriptor) });
        }
    }
}

/// Reads requests on a thread of its own: when the parent is gone the process ends, even in the midst of a run.
fn read_all(stream: &UnixStream) -> Result<Receiver<Request>, Error> {
    let failed = |error| Error::Io { what: "standard input".to_owned(), error };
    let mut from = stream.try_clone().map_err(failed)?;
    let (sender, receiver) = sync_channel(1);
    let body = move || {
        while let Ok(Some(request)) = read_request(&mut from) {
            if sender.send(request).is_err() {
                break;
            }
        }
        // A process that is not ended by this ends when the queue of requests does.
        let _ended = end();
    };
    std::thread::Builder::new().name("requests".to_owned()).spawn(body).map_err(failed)?;
    Ok(receiver)
}

/// Ends this process and those it started, if it leads their group.
fn end() -> Result<(), Error> {
    if getpgrp() == getpid() {
        kill_current_process_group(Signal::KILL)
            .map_err(|error| Error::Io { what: "the process group".to_owned(), error: error.into() })?;
    }
    std::process::exit(0)
}

fn open(load: &Load) -> Result<InProcess, Error> {
    let mut limits = Limits::default();
    [limits.visits, limits.arena_bytes, limits.memory_bytes] = load.limits;
    let package = Library::from_source(Arc::new(MemorySource::new(load.package.as_slice())), &limits)?;
    let module = package.module(Some(&load.module))?;
    let path = PathBuf::from(std::ffi::OsString::from_vec(load.library.clone()));
    let library = NativeLibrary::load(&path)?;
    library.set_threads(usize::try_from(load.threads).unwrap_or(1));
    InProcess::with(&module, load.function.as_deref(), library, &limits)
}

/// Runs, and sends the outputs or the reason there are none.
fn answer(runner: &mut InProcess, run: &Run, out: &mut dyn Write) -> Result<(), Error> {
    let sent = match runner {
        InProcess::Graph(graph) => {
            let views = run.inputs.iter().map(|(operand, bytes)| Ok(TensorView::new(operand.layout()?, bytes)?));
            let views = views.collect::<Result<Vec<_>, Error>>();
            views
                .and_then(|views| run_graph(graph, &views))
                .map(|outputs| send_ran(out, &outputs.iter().map(|output| output.data()).collect::<Vec<_>>()))
        }
        InProcess::Aot(aot) => {
            let given: Vec<(&Operand, &[u8])> = run.inputs.iter().map(|(operand, bytes)| (operand, &**bytes)).collect();
            let ran = run_aot(aot, &given, run.outputs.clone());
            ran.map(|outputs| send_ran(out, &outputs.iter().map(|(_, bytes)| &**bytes).collect::<Vec<_>>()))
        }
    };
    let sent = sent.unwrap_or_else(|error| send_failed(out, &error.to_string()));
    Ok(sent?)
}
