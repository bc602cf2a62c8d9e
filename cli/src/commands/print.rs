//! `edgepack print`: a program as text.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use edgepack::text::{SideFile, print, print_to, print_with};
use edgepack_format::FileKind;

use crate::edit::{apart, package};
use crate::formats::{self, Head};
use crate::many::{Files, Found};
use crate::outputs::{is_stream, unwritten};
use crate::session::Session;
use crate::spelling;
use crate::status::{Failure, Status};

/// Write programs as readable assembly, which `parse` turns back into the same programs
///
/// Comments behind it show the payloads of delegates whose backend is known.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Programs.
    #[command(flatten)]
    pub files: Files,

    /// File for the text, with large constants in a file of its name and `.bin` next to it; without it everything goes to
    /// standard output. For several files a folder, where each text has the name of its file and `.txt`
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Runs the command.
pub fn run(args: &Args, session: &mut Session) -> Result<Status, Failure> {
    let several = args.files.named() != Some(1);
    if let Some(output) = args.output.as_ref().filter(|path| several && path.is_file()) {
        let message = format!("{} is a file: texts of several files go into a folder", output.display());
        return Err(Failure::usage(message));
    }
    let mut written = BTreeSet::new();
    args.files.each(session, |file, session| {
        let output = match (&args.output, several) {
            (Some(folder), true) if !is_stream(folder) => {
                let output = within(folder, file);
                if !written.insert(output.clone()) {
                    let message = format!("{}: another file has this name: print it on its own", output.display());
                    return Err(Failure::usage(message));
                }
                Some(output)
            }
            (output, _) => output.clone(),
        };
        print_one(&file.path, output.as_deref(), several, session)
    })
}

/// Path for the text of a file among several.
fn within(folder: &Path, file: &Found) -> PathBuf {
    let name = match &file.below {
        Some(below) => below.as_os_str(),
        None => file.path.file_name().filter(|name| *name != "-").unwrap_or(OsStr::new("stdin")),
    };
    let mut name = name.to_owned();
    name.push(".txt");
    folder.join(name)
}

/// Prints one program; a comment names the file if there are several.
fn print_one(path: &Path, output: Option<&Path>, several: bool, session: &mut Session) -> Result<Status, Failure> {
    let (file, format) = formats::open(path, session)?;
    let name = file.name.clone();
    let title = if several { format!("// {}\n", spelling::name(&name)) } else { String::new() };
    let above = |output: Option<&Path>| match output.and_then(Path::parent) {
        Some(above) if several => std::fs::create_dir_all(above).map_err(|error| unwritten(&error, above)),
        _ => Ok(()),
    };
    if let Some(text) = format.text(&file)? {
        above(output)?;
        session.write_text(output, &(title + &text))?;
        return Ok(Status::Fine);
    }
    if format.kind() != FileKind::Program {
        return Err(formats::wrong_kind(&file, "a program"));
    }
    let comments = format.payload_comments(&Head::read(file.clone(), &session.limits)?, session);
    let file = apart(file, session)?;
    let package = package(&file, path)?;
    let about = |error: edgepack::edit::Error| Failure::from(error).about(&name);
    let Some(output) = output.filter(|path| !is_stream(path)) else {
        session.write_text_stream(output, |out| {
            // A file that is no program, of those of a folder, is left out.
            if package.program().is_some() {
                out.write_all(title.as_bytes())?;
            }
            print_to(&package, None, out).map_err(about)?;
            Ok(out.write_all(comments.as_bytes())?)
        })?;
        return Ok(Status::Fine);
    };
    above(Some(output))?;
    let mut side_name = output.file_name().unwrap_or_default().to_owned();
    side_name.push(".bin");
    let side = output.with_file_name(&side_name);
    let side_name = side_name.to_string_lossy();
    let mut large = Large::default();
    let mut text = print_with(&package, Some(SideFile { name: &side_name, out: &mut large })).map_err(about)?;
    if large.bytes == 0 {
        // Nothing was large enough: the text is complete without a second file.
        text = print(&package).map_err(about)?;
    } else {
        session.stage(&side, |out| {
            print_with(&package, Some(SideFile { name: &side_name, out })).map_err(about)?;
            Ok(())
        })?;
    }
    session.write_text(Some(output), &(title + &text + &comments))?;
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
