//! `edgepack patch`: other data for tensors of a file.

use std::io::Write;
use std::path::{Path, PathBuf};

use edgepack::builder::write_file::overwrite;
use edgepack::edit::{NewTensor, patch, patch_in_place, sharers};
use edgepack_format::tensor::{TensorBuf, TensorView};

use crate::edit::{open, package, write};
use crate::file::name_of;
use crate::interchange::{self, TensorFile};
use crate::outputs::unwritten;
use crate::remote::remote;
use crate::session::Session;
use crate::status::{Failure, Status};

/// Replace the data of tensors
///
/// A tensor is named as `list` and `size --all` print it: by its key, by the name a constant carries, or as `constant.K`.
/// Of a program these are constants and initial values; inputs and planned tensors have no data. Element type and sizes
/// must be the same. Tensors that share their bytes with it change, too, and are named.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The program or data file
    pub file: PathBuf,

    /// Tensor to replace, and its new data: a NumPy array, or a safetensors file that has a tensor of that name or only one
    #[arg(value_name = "NAME=TENSOR", required = true)]
    pub tensors: Vec<String>,

    /// File for the result; - is standard output
    #[arg(short, long, value_name = "FILE", required_unless_present = "in_place", conflicts_with = "in_place")]
    pub output: Option<PathBuf>,

    /// Change the file itself: the bytes of these tensors alone, with a journal next to it, so that a change that was
    /// interrupted is undone by the next command
    #[arg(long)]
    pub in_place: bool,
}

/// Runs the command.
pub fn run(args: &Args, session: &mut Session) -> Result<Status, Failure> {
    if args.in_place && remote(&args.file).is_some() {
        let message = "a file of a server is not changed in place; -o names a file for the changed one";
        return Err(Failure::usage(message).about(&name_of(&args.file)));
    }
    if args.in_place && args.file.as_os_str() == "-" {
        return Err(Failure::usage("standard input cannot be changed in place: name a file, or the result with -o"));
    }
    let mut tensors = Vec::new();
    for assignment in &args.tensors {
        let split = assignment.split_once('=');
        let (name, path) = split.ok_or_else(|| Failure::usage(format!("{assignment:?} is not NAME=TENSOR")))?;
        tensors.push((name.to_owned(), read(name, &PathBuf::from(path), session)?));
    }
    let file = open(&args.file, session)?;
    let package = package(&file, &args.file)?;
    let about = |error: edgepack::edit::Error| Failure::from(error).about(&name_of(&args.file));
    let mut new = Vec::new();
    for (name, tensor) in &tensors {
        let view = TensorView::new(tensor.layout().clone(), tensor.data()).map_err(Failure::findings)?;
        new.push(NewTensor { name, tensor: view });
    }
    let shared = sharers(&package, &new).map_err(about)?;
    let output = args.output.as_ref().unwrap_or(&args.file);
    let bytes = match args.in_place {
        true => {
            session.outputs.verified(&args.file, &package.ready()?.verify())?;
            let changes = patch_in_place(&file, &package, &new).map_err(about)?;
            // The file may be mapped: nothing of it may be in use when its bytes change.
            drop(package);
            drop(file);
            overwrite(&args.file, &changes).map_err(|error| unwritten(&error, &args.file))?;
            std::fs::metadata(&args.file).map_err(|error| unwritten(&error, &args.file))?.len()
        }
        false => write(&patch(package, &new).map_err(about)?, output, session)?,
    };
    if session.json {
        let output = output.display().to_string();
        session.document(
            &serde_json::json!({ "output": output, "bytes": bytes, "tensors": tensors.len(), "shared": shared }),
        )?;
    } else if !shared.is_empty() {
        session.out.flush()?;
        writeln!(session.err, "changed with them, as they share their bytes: {}", shared.join(", "))?;
    }
    Ok(Status::Fine)
}

fn read(name: &str, path: &Path, session: &mut Session) -> Result<TensorBuf, Failure> {
    let about = |failure: Failure| failure.about(&name_of(path));
    let bytes = session.read_filled(path)?;
    match interchange::read(&bytes, session.limits.memory_bytes).map_err(|error| about(Failure::unreadable(error)))? {
        TensorFile::Single(tensor) => Ok(tensor),
        TensorFile::Named(mut tensors) => {
            let found = match tensors.iter().position(|(key, _)| key == name) {
                None if tensors.len() == 1 => 0,
                None => return Err(about(Failure::usage(format!("there is no tensor {name:?}")))),
                Some(index) => index,
            };
            Ok(tensors.swap_remove(found).1)
        }
    }
}
