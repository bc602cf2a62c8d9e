//! The command: as a program with the streams of the process, and as a function of its arguments.

use std::ffi::OsString;
use std::io::{self, Cursor, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use edgepack_cli::{HELPER, Io};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::problem::detached;

/// A stream that is read when the command has ended.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Written {
    fn take(&self) -> Vec<u8> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Runs a command line, without the program's name in front: exit status, standard output, standard error. `helper` is the
/// program that runs the code of packages in a process of its own.
#[pyfunction]
#[pyo3(signature = (args, stdin = None, helper = None))]
pub fn command<'py>(
    py: Python<'py>,
    args: Vec<OsString>,
    stdin: Option<Vec<u8>>,
    helper: Option<PathBuf>,
) -> PyResult<(u8, Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
    let (status, out, err) = detached(py, move || {
        let (out, err) = (Written::default(), Written::default());
        let io = Io {
            stdin: Box::new(Cursor::new(stdin.unwrap_or_default())),
            stdout: Box::new(out.clone()),
            stderr: Box::new(err.clone()),
            terminal: false,
            progress: false,
            color: (false, false),
            helper,
            ..Io::standard()
        };
        let line = std::iter::once(OsString::from("edgepack")).chain(args);
        let status = edgepack_cli::run(line, io);
        Ok((status.code(), out.take(), err.take()))
    })?;
    Ok((status, PyBytes::new(py, &out), PyBytes::new(py, &err)))
}

/// Is the program: takes the arguments behind its name, uses the streams of the process, takes care of signals, and returns the
/// exit status.
#[pyfunction]
#[pyo3(signature = (args, helper = None))]
pub fn main(py: Python<'_>, args: Vec<OsString>, helper: Option<PathBuf>) -> PyResult<u8> {
    detached(py, move || {
        if args.first().is_some_and(|first| first == HELPER) {
            return Ok(edgepack_cli::serve_native_code().code());
        }
        edgepack_cli::interrupt::install();
        let line = std::iter::once(OsString::from("edgepack")).chain(args);
        Ok(edgepack_cli::run(line, Io { helper, ..Io::standard() }).code())
    })
}
