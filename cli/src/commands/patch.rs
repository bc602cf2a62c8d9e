//! `edgepack patch`: other data for tensors of a file.

use std::path::{Path, PathBuf};

use edgepack::edit::{NewTensor, patch};
use edgepack_format::tensor::{TensorBuf, TensorView};

use crate::edit::{open, package, write};
use crate::interchange::{self, TensorFile};
use crate::session::Session;
use crate::status::{Failure, Status};

/// Replace the data of tensors
///
/// A tensor is named as in the file: by its key, by the name a constant carries, or as `constant.K`. Element type and
/// sizes must be the same.
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

    /// Change the file itself
    #[arg(long)]
    pub in_place: bool,
}

/// Runs the command.
pub fn run(args: &Args, session: &mut Session) -> Result<Status, Failure> {
    let mut tensors = Vec::new();
    for assignment in &args.tensors {
        let split = assignment.split_once('=');
        let (name, path) = split.ok_or_else(|| Failure::usage(format!("{assignment:?} is not NAME=TENSOR")))?;
        tensors.push((name.to_owned(), read(name, &PathBuf::from(path), session)?));
    }
    let file = open(&args.file, session)?;
    let package = package(&file, &args.file)?;
    let about = |error: edgepack::edit::Error| Failure::from(error).about(&args.file.display().to_string());
    let mut new = Vec::new();
    for (name, tensor) in &tensors {
        let view = TensorView::new(tensor.layout().clone(), tensor.data()).map_err(Failure::findings)?;
        new.push(NewTensor { name, tensor: view });
    }
    let patched = patch(package, &new).map_err(about)?;
    let output = args.output.as_ref().unwrap_or(&args.file);
    if args.in_place {
        session.outputs.changes(&args.file);
    }
    let bytes = write(&patched, output, session)?;
    if session.json {
        let output = output.display().to_string();
        session.document(&serde_json::json!({ "output": output, "bytes": bytes, "tensors": tensors.len() }))?;
    }
    Ok(Status::Fine)
}

fn read(name: &str, path: &Path, session: &mut Session) -> Result<TensorBuf, Failure> {
    let about = |failure: Failure| failure.about(&path.display().to_string());
    let bytes = session.read(path)?;
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
