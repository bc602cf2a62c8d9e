//! `edgepack convert`: writes a data file from a safetensors file, and the reverse; packages in other versions.

use std::path::PathBuf;

use edgepack::edit::{from_safetensors, write_safetensors};
use edgepack_format::FileKind;
use edgepack_loader::mlf::verify;
use serde::Serialize;

use crate::edit::{apart, package, write};
use crate::file::refused;
use crate::formats;
use crate::formats::mlf::convert::{to_safetensors, to_version, with_parameters};
use crate::session::Session;
use crate::status::{Failure, Status};

/// Turn a data file into a safetensors file, or a safetensors file into a data file; or a package into another version
///
/// Of a Model Library Format package the parameters become a safetensors file, by their names (`MODULE.NAME` if there are
/// several modules). With --library they are put back: each has the type and shape of the one it replaces. With
/// --library-version the package becomes one of that version, unless it has something that version has no place for.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// File to convert; a safetensors file becomes a data file, any data file a safetensors file
    pub from: PathBuf,

    /// File for the result; - is standard output
    pub to: PathBuf,

    /// A Model Library Format package that the parameters in a safetensors file are put into
    #[arg(long, value_name = "PACKAGE", conflicts_with = "library_version")]
    pub library: Option<PathBuf>,

    /// Version of the Model Library Format, 1 to 7, that a package is turned into
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=7))]
    pub library_version: Option<u32>,
}

/// The JSON document.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct Converted {
    /// The file that was read.
    from: String,
    /// The file that was written.
    to: String,
}

/// Runs the command.
pub fn run(args: &Args, session: &mut Session) -> Result<Status, Failure> {
    let file = session.open(&args.from)?;
    let name = file.name.clone();
    let about = |error: edgepack::edit::Error| Failure::from(error).about(&name);
    let is_library = file.head.kind == FileKind::ModelLibrary;
    if args.library_version.is_some() && !is_library {
        return Err(Failure::usage("--library-version is for Model Library Format packages").about(&name));
    }
    if let Some(target) = &args.library {
        let target = session.open(target)?;
        let library = formats::mlf::open_library(&target, &session.limits)?;
        let tensors = crate::file::read_range(&*file.source, 0, file.source.len())?;
        let bytes = with_parameters(&library, &tensors, &session.limits).map_err(|failure| failure.about(&name))?;
        package_to(args, &bytes, session)?;
    } else if is_library {
        let library = formats::mlf::open_library(&file, &session.limits)?;
        match args.library_version {
            Some(version) => {
                let bytes = to_version(&library, version).map_err(|failure| failure.about(&name))?;
                package_to(args, &bytes, session)?;
            }
            None => {
                let bytes = to_safetensors(&library).map_err(|failure| failure.about(&name))?;
                session.write_binary(&args.to, &bytes)?;
            }
        }
    } else if file.head.kind == FileKind::Safetensors {
        let package = from_safetensors(file.source).map_err(about)?;
        write(&package, &args.to, session)?;
    } else if formats::of(file.head.kind).is_none() {
        return Err(refused(&file));
    } else {
        let opened = apart(file, session)?;
        let package = package(&opened, &args.from)?;
        session.write_stream(&args.to, |out| write_safetensors(&package, out).map_err(about))?;
    }
    if session.json {
        session.document(&Converted { from: name, to: args.to.display().to_string() })?;
    }
    Ok(Status::Fine)
}

/// Writes a package, if it is valid.
fn package_to(args: &Args, bytes: &[u8], session: &mut Session) -> Result<(), Failure> {
    session.outputs.verified(&args.to, &verify(bytes, &session.limits).findings)?;
    session.write_binary(&args.to, bytes)
}
