//! Options by which commands record what they run.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use crate::outputs::is_stdout;
use crate::profile::Recorder;
use crate::session::Session;
use crate::status::Failure;

/// Files in which runs are recorded.
#[derive(clap::Args, Clone, Debug)]
pub struct Recording {
    /// File for a trace of the runs, as the developer tools of ExecuTorch read it (ETDump): when every instruction ran
    #[arg(long, value_name = "FILE")]
    pub etdump: Option<PathBuf>,

    /// File for what every instruction wrote, next to the trace. The program then runs instruction by instruction as it
    /// was exported
    #[arg(long, value_name = "FILE", requires = "etdump")]
    pub debug_buffer: Option<PathBuf>,
}

impl Recording {
    /// Returns a recorder if a trace was asked for, which records values if a file for them was.
    pub fn recorder(&self, session: &Session) -> Option<RefCell<Recorder>> {
        self.etdump.as_ref()?;
        let mut recorder = Recorder::new(session.limits.memory_bytes);
        recorder.record_values(self.debug_buffer.is_some());
        Some(RefCell::new(recorder))
    }

    /// The files, as far as they are asked for.
    pub fn files(&self) -> [Option<&Path>; 2] {
        [self.etdump.as_deref(), self.debug_buffer.as_deref()]
    }

    /// Writes what was recorded.
    pub fn write(&self, recorder: Option<RefCell<Recorder>>, session: &mut Session) -> Result<(), Failure> {
        let (Some(path), Some(recorder)) = (&self.etdump, recorder) else { return Ok(()) };
        let trace = recorder.into_inner().finish()?;
        session.stage(path, |out| Ok(out.write_all(&trace.etdump)?))?;
        if let Some(path) = &self.debug_buffer {
            session.stage(path, |out| Ok(out.write_all(&trace.debug_buffer)?))?;
        }
        session.outputs.commit()
    }
}

/// Returns whether one of these files is standard output, which then has no room for anything else. Two cannot be.
pub fn takes_stdout<'p>(files: impl IntoIterator<Item = Option<&'p Path>>, session: &Session) -> Result<bool, Failure> {
    match files.into_iter().flatten().filter(|path| is_stdout(path)).count() {
        0 => Ok(false),
        1 if !session.json => Ok(true),
        1 => Err(Failure::usage("standard output cannot hold both the JSON document and the content")),
        _ => Err(Failure::usage("standard output cannot hold two files")),
    }
}
