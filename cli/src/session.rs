//! State of a command while it runs: its output, its input, and the options common to all.

use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use edgepack::builder::write_file;
use edgepack_format::limits::Limits;
use edgepack_format::payload::Payloads;
use edgepack_loader::Source;
use serde::Serialize;

use crate::file::{self, File};
use crate::in_memory::MemoryFiles;
use crate::options::{Common, JsonForm};
use crate::outputs::{Outputs, is_stdout};
use crate::progress::{Progress, Work};
use crate::remote::remote;
use crate::status::{Failure, Status};
use crate::streams::ColorStream;
use crate::style::TITLE;

/// Bytes of a text that are collected before they are written.
const TEXT: usize = 64 << 10;

/// Streams of a session.
pub struct Streams {
    /// Stream for results.
    pub out: ColorStream,
    /// Stream for remarks and reasons.
    pub err: ColorStream,
    /// Input that `-` reads.
    pub stdin: Box<dyn Read>,
    /// True if results go to a terminal.
    pub terminal: bool,
    /// Bars of long work.
    pub progress: Progress,
}

/// One command being run.
pub struct Session {
    /// Stream for results.
    pub out: ColorStream,
    /// Stream for remarks and reasons.
    pub err: ColorStream,
    /// True if the result is JSON.
    pub json: bool,
    /// Ceilings for files.
    pub limits: Limits,
    /// Decoders of delegates' payloads.
    pub payloads: Payloads,
    /// Files that are written.
    pub outputs: Outputs,
    /// Bars of long work.
    pub progress: Progress,
    /// Program that runs the code of packages.
    pub helper: Option<PathBuf>,
    /// The highest status so far: that of the command if nobody reads its results to their end.
    reached: Status,
    files: Option<MemoryFiles>,
    form: JsonForm,
    /// Documents of an array that were printed; `None` if there is no array.
    listed: Option<usize>,
    /// Files with text about them, if the command is about several; `None` otherwise.
    told: Option<usize>,
    command: &'static str,
    stdin: Box<dyn Read>,
    /// True if standard input was read to its end.
    stdin_read: bool,
    terminal: bool,
    map: bool,
    /// Files of servers may come unencrypted from this machine.
    #[cfg_attr(not(feature = "remote"), expect(dead_code, reason = "no build without a client asks"))]
    loopback_http: bool,
}

/// A document of some command: its schema, then what the command says.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct Document<'a, T> {
    schema: String,
    #[serde(flatten)]
    body: &'a T,
}

/// The document of a command that could not finish.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct Failed<'a> {
    /// Reason that there is no answer.
    error: Reason<'a>,
    /// The file, if the command is about several.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
}

/// Reason that there is no answer.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct Reason<'a> {
    /// The reason in words.
    message: &'a str,
    /// Exit status, 1 to 4.
    status: u8,
}

impl<'a> Reason<'a> {
    fn of(failure: &'a Failure) -> Self {
        Reason { message: &failure.message, status: failure.status.code() }
    }
}

/// The failure of a command whose standard input is to be two things.
fn read_twice() -> Failure {
    Failure::usage("standard input can be read only once: name a file for the other")
}

impl Session {
    /// A session of a command, on these files if they are given.
    pub fn new(
        common: Common,
        command: &'static str,
        payloads: Payloads,
        streams: Streams,
        files: Option<MemoryFiles>,
    ) -> Session {
        let Streams { out, err, stdin, terminal, progress } = streams;
        let (limits, outputs) = (common.limits.limits(), Outputs::new(common.force, files.clone()));
        let map = common.maps_files();
        let (json, form) = (common.json.is_some(), common.json.unwrap_or(JsonForm::Document));
        Session {
            out,
            err,
            json,
            form,
            listed: None,
            told: None,
            limits,
            payloads,
            outputs,
            reached: Status::Fine,
            files,
            helper: None,
            command,
            stdin,
            stdin_read: false,
            terminal,
            progress,
            map,
            loopback_http: common.loopback_http,
        }
    }

    /// Opens a file to read; `-` is standard input.
    pub fn open(&mut self, path: &Path) -> Result<File, Failure> {
        if let Some(name) = remote(path) {
            return File::of(file::name_of(path), self.elsewhere(name)?, &self.limits);
        }
        self.reads(path)?;
        if let Some(source) = self.in_memory(path)? {
            return File::of(file::name_of(path), source, &self.limits);
        }
        self.recover(path)?;
        let _reading = self.reading(path);
        file::open(path, &mut self.stdin, &self.limits, self.map)
    }

    /// Finds a file in memory; `None` if the command is not about such files.
    fn in_memory(&self, path: &Path) -> Result<Option<Arc<dyn Source>>, Failure> {
        match &self.files {
            Some(files) if !file::is_stdin(path) => files.open(path).map(Some),
            _ => Ok(None),
        }
    }

    /// Makes a file as it was if a change of it in place was interrupted.
    fn recover(&mut self, path: &Path) -> Result<(), Failure> {
        let name = file::name_of(path);
        let failed = |error: io::Error| Failure::unreadable(format!("{name}: {error}"));
        if !file::is_stdin(path) && write_file::recover(path).map_err(failed)? {
            writeln!(self.err, "{name}: a change that was interrupted was undone")?;
        }
        Ok(())
    }

    /// Opens a file in which there is to be something, to be read piece by piece; `-` is standard input, which is read whole.
    pub fn source(&mut self, path: &Path) -> Result<Arc<dyn Source>, Failure> {
        let source = match remote(path) {
            Some(name) => self.elsewhere(name)?,
            None => {
                self.reads(path)?;
                let _reading = self.reading(path);
                match self.in_memory(path)? {
                    Some(source) => source,
                    None => file::source(path, &mut self.stdin, &self.limits)?,
                }
            }
        };
        match source.len() {
            0 => Err(file::empty(&file::name_of(path))),
            _ => Ok(source),
        }
    }

    /// Reads a file whole; `-` is standard input.
    pub fn read(&mut self, path: &Path) -> Result<Vec<u8>, Failure> {
        if let Some(name) = remote(path) {
            let source = self.elsewhere(name)?;
            return file::read_all(&*source, &self.limits).map_err(|failure| failure.about(&file::name_of(path)));
        }
        self.reads(path)?;
        if let Some(source) = self.in_memory(path)? {
            return file::read_all(&*source, &self.limits).map_err(|failure| failure.about(&file::name_of(path)));
        }
        let _reading = self.reading(path);
        file::read(path, &mut self.stdin, &self.limits)
    }

    /// Reads a file whole in which there is to be something.
    pub fn read_filled(&mut self, path: &Path) -> Result<Vec<u8>, Failure> {
        let bytes = self.read(path)?;
        if bytes.is_empty() {
            return Err(file::empty(&file::name_of(path)));
        }
        Ok(bytes)
    }

    fn reading(&self, path: &Path) -> Work {
        self.progress.work(&format!("reading {}", file::name_of(path)))
    }

    /// Opens a file of a server, to be read range by range.
    #[cfg(feature = "remote")]
    fn elsewhere(&self, name: &str) -> Result<Arc<dyn Source>, Failure> {
        use crate::remote::{Access, RemoteError, open, shown};

        let access = Access::of_environment(self.loopback_http, self.limits).map_err(Failure::usage)?;
        let opened = open(name, &access).map_err(|error| match error {
            RemoteError::Url(_)
            | RemoteError::UserInfo
            | RemoteError::Unencrypted
            | RemoteError::Feature { .. }
            | RemoteError::Store(_) => Failure::usage(error),
            error => Failure::unreadable(error),
        });
        Ok(Arc::new(opened.map_err(|failure| failure.about(&shown(name)))?))
    }

    /// Refuses a file of a server: this build has no client.
    #[cfg(not(feature = "remote"))]
    fn elsewhere(&self, name: &str) -> Result<Arc<dyn Source>, Failure> {
        let message = "files of servers are read by builds with the feature `remote`, which this one lacks";
        Err(Failure::usage(message).about(&crate::remote::shown(name)))
    }

    /// Notes a file that is to be read. Standard input can be read once.
    fn reads(&mut self, path: &Path) -> Result<(), Failure> {
        if file::is_stdin(path) && std::mem::replace(&mut self.stdin_read, true) {
            return Err(read_twice());
        }
        self.outputs.reads(path);
        Ok(())
    }

    /// Refuses inputs of a command of which more than one is standard input, before any is read.
    pub fn reads_stdin_once<'p>(&self, paths: impl IntoIterator<Item = &'p Path>) -> Result<(), Failure> {
        match paths.into_iter().filter(|path| file::is_stdin(path)).count() {
            0 | 1 => Ok(()),
            _ => Err(read_twice()),
        }
    }

    /// Reads a line from standard input, without its end; `None` at the end of the input.
    pub fn read_line(&mut self) -> Result<Option<String>, Failure> {
        /// Bytes of a line.
        const MOST: usize = 16 << 20;
        let failed = |error: io::Error| Failure::unreadable(format!("standard input: {error}"));
        if self.stdin_read {
            return Err(read_twice());
        }
        let (mut line, mut byte) = (Vec::new(), [0]);
        loop {
            let count = match self.stdin.read(&mut byte) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                count => count.map_err(failed)?,
            };
            match (count, byte[0]) {
                (0, _) if line.is_empty() => return Ok(None),
                (0, _) | (_, b'\n') => break,
                (_, byte) => line.push(byte),
            }
            if line.len() > MOST {
                return Err(Failure::unreadable(format!("standard input: a line of more than {MOST} bytes")));
            }
        }
        line.pop_if(|last| *last == b'\r');
        let text = String::from_utf8(line);
        text.map(Some).map_err(|_| Failure::unreadable("standard input: a line that is not UTF-8"))
    }

    /// Prints a line of JSON, one of several that make up the output.
    pub fn event<T: Serialize>(&mut self, event: &T) -> Result<(), Failure> {
        serde_json::to_writer(&mut self.out, event)?;
        writeln!(self.out)?;
        Ok(self.out.flush()?)
    }

    /// Schema of the command's JSON.
    pub fn schema(&self) -> String {
        format!("edgepack/{}/1", self.command)
    }

    /// Prepares for answers about several files.
    pub fn several(&mut self) -> Result<(), Failure> {
        self.told = Some(0);
        if self.json && self.form != JsonForm::Lines {
            self.form = JsonForm::Array;
            self.begin_array()?;
        }
        Ok(())
    }

    /// Prints the empty line between texts about several files.
    pub fn separate(&mut self) -> Result<(), Failure> {
        if let Some(told) = &mut self.told {
            *told += 1;
            if *told > 1 {
                writeln!(self.out)?;
            }
        }
        Ok(())
    }

    /// Prints the name of a file above the text about it, if there are several.
    pub fn title(&mut self, name: &str) -> Result<(), Failure> {
        self.separate()?;
        if self.told.is_some() {
            writeln!(self.out, "{TITLE}{name}{TITLE:#}")?;
        }
        Ok(())
    }

    /// Returns whether a document per file was asked for.
    pub fn lists_documents(&self) -> bool {
        self.form != JsonForm::Document
    }

    fn begin_array(&mut self) -> Result<&mut usize, Failure> {
        if self.listed.is_none() {
            write!(self.out, "[")?;
        }
        Ok(self.listed.get_or_insert(0))
    }

    /// Prints a JSON document of the command.
    pub fn document<T: Serialize>(&mut self, body: &T) -> Result<(), Failure> {
        let document = Document { schema: self.schema(), body };
        match self.form {
            JsonForm::Lines => return self.event(&document),
            JsonForm::Document => {}
            JsonForm::Array => {
                let listed = self.begin_array()?;
                *listed += 1;
                let comma = if *listed > 1 { ",\n" } else { "\n" };
                write!(self.out, "{comma}")?;
            }
        }
        serde_json::to_writer_pretty(&mut self.out, &document)?;
        if self.form == JsonForm::Document {
            writeln!(self.out)?;
        }
        Ok(())
    }

    /// Ends the array of documents, if there is one.
    pub fn end_documents(&mut self) -> Result<(), Failure> {
        match self.listed.take() {
            None => Ok(()),
            Some(0) => Ok(writeln!(self.out, "]")?),
            Some(_) => Ok(writeln!(self.out, "\n]")?),
        }
    }

    /// Notes a status before anything is printed about it.
    pub fn reach(&mut self, status: Status) {
        self.reached = self.reached.max(status);
    }

    /// The highest status so far.
    pub fn reached(&self) -> Status {
        self.reached
    }

    /// Reports why there is no answer for one of several files.
    pub fn failed(&mut self, file: &str, failure: &Failure) -> Result<(), Failure> {
        self.reach(failure.status);
        if self.json {
            self.document(&Failed { error: Reason::of(failure), file: Some(file) })?;
        }
        self.out.flush()?;
        Ok(failure.print(&mut self.err)?)
    }

    /// Reports a file of several that cannot be read, so that the others can be; its status. A document has all of them or
    /// none.
    pub fn passed_over(&mut self, path: &Path, failure: Failure, files: usize) -> Result<Status, Failure> {
        if self.json || files < 2 || failure.output {
            return Err(failure);
        }
        self.failed(&file::name_of(path), &failure)?;
        Ok(failure.status)
    }

    /// Reports why the command could not finish. With `--json` the document says it, otherwise the caller does.
    pub fn fail(&mut self, failure: Failure) -> Result<Status, Failure> {
        if self.json && !failure.silent {
            self.document(&Failed { error: Reason::of(&failure), file: None })?;
        }
        Err(failure)
    }

    /// Writes binary content to a file, or to standard output for `-`, which must not be a terminal.
    pub fn write_binary(&mut self, path: &Path, bytes: &[u8]) -> Result<(), Failure> {
        self.write_stream(path, |out| Ok(out.write_all(bytes)?))
    }

    /// Writes content as a stream. An old file stays until the new one is complete.
    pub fn write_stream(
        &mut self,
        path: &Path,
        content: impl FnOnce(&mut dyn Write) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        self.stage(path, content)?;
        self.outputs.commit()
    }

    /// Writes content that replaces its file together with all other files of the command, when `outputs` are
    /// committed. A destination that is not a regular file gets the content at once.
    pub fn stage(
        &mut self,
        path: &Path,
        content: impl FnOnce(&mut dyn Write) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let copying = self.progress.bytes(&format!("writing {}", path.display()));
        let content = |out: &mut dyn Write| content(&mut copying.writer(out));
        if !is_stdout(path) {
            return self.outputs.stage(path, content);
        }
        if self.terminal {
            return Err(Failure::usage("this is binary: redirect standard output, or name a file with -o"));
        }
        if self.json {
            return Err(Failure::usage("standard output cannot hold both the JSON document and the content"));
        }
        self.out.flush()?;
        // Content passes the colour filter by.
        content(self.out.raw())
    }

    /// Writes text to a file, or to standard output as it is, together with files that wait.
    pub fn write_text(&mut self, path: Option<&Path>, text: &str) -> Result<(), Failure> {
        self.write_text_stream(path, |out| Ok(out.write_all(text.as_bytes())?))
    }

    /// The same with text as a stream.
    pub fn write_text_stream(
        &mut self,
        path: Option<&Path>,
        text: impl FnOnce(&mut dyn Write) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        match path {
            Some(path) if !is_stdout(path) => self.write_stream(path, text),
            _ => {
                self.outputs.commit()?;
                self.out.flush()?;
                let mut out = BufWriter::with_capacity(TEXT, self.out.raw());
                text(&mut out)?;
                Ok(out.flush()?)
            }
        }
    }
}
