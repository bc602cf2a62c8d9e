//! `edgepack print`: a program as text.

use std::io::{self, Write};
use std::path::PathBuf;

use edgepack::text::{SideFile, print, print_with};

use crate::edit::{apart, package};
use crate::file::name_of;
use crate::formats::{self, Head};
use crate::outputs::is_stream;
use crate::session::Session;
use crate::status::{Failure, Status};

/// Write a program as readable assembly, which `parse` turns back into the same program
///
/// Comments behind it show the payloads of delegates whose backend is known.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The program
    pub file: PathBuf,

    /// File for the text, with large constants in a file of its name and `.bin` next to it; without it everything goes to
    /// standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Runs the command.
pub fn run(args: &Args, session: &mut Session) -> Result<Status, Failure> {
    let (file, format) = formats::open(&args.file, session)?;
    if let Some(text) = format.text(&file)? {
        session.write_text(args.output.as_deref(), &text)?;
        return Ok(Status::Fine);
    }
    let comments = format.payload_comments(&Head::read(file.clone(), &session.limits)?, session);
    let file = apart(file, session)?;
    let package = package(&file, &args.file)?;
    let about = |error: edgepack::edit::Error| Failure::from(error).about(&name_of(&args.file));
    let output = args.output.as_ref().filter(|path| !is_stream(path));
    let Some(output) = output else {
        let text = print(&package).map_err(about)? + &comments;
        session.write_text(args.output.as_deref(), &text)?;
        return Ok(Status::Fine);
    };
    let mut name = output.file_name().unwrap_or_default().to_owned();
    name.push(".bin");
    let side = output.with_file_name(&name);
    let name = name.to_string_lossy();
    let mut large = Large::default();
    let mut text = print_with(&package, Some(SideFile { name: &name, out: &mut large })).map_err(about)?;
    if large.bytes == 0 {
        // Nothing was large enough: the text is complete without a second file.
        text = print(&package).map_err(about)?;
    } else {
        session.stage(&side, |out| {
            print_with(&package, Some(SideFile { name: &name, out })).map_err(about)?;
            Ok(())
        })?;
    }
    session.write_text(Some(output), &(text + &comments))?;
    Ok(Status::Fine)
}

/// Counts bytes that go into the file next to the text.
#[derive(Default)]
struct Large {
    bytes: u64,
}

impl Write for Large {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
