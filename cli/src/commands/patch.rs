//! `edgepack patch`: other data for tensors of a file.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use edgepack::builder::write_file::overwrite;
use edgepack::edit::{NewTensor, change_metadata, patch, patch_in_place, sharers};
use edgepack_format::pte::metadata::{METADATA_PREFIX, MetadataValue};
use edgepack_format::tensor::{TensorBuf, TensorView};
use serde::Serialize;

use crate::edit::{Takes, open, package, write};
use crate::file::name_of;
use crate::interchange::{self, TensorFile};
use crate::outputs::unwritten;
use crate::remote::remote;
use crate::session::Session;
use crate::setting;
use crate::status::{Failure, Status};

/// Replace the data of tensors, set and remove what a program says of itself
///
/// A tensor is named as `list` and `size --all` print it: by its key, by the name a constant carries, or as `constant.K`.
/// Of a program these are constants and initial values; inputs and planned tensors have no data. Element type and sizes
/// must be the same. Tensors that share their bytes with it change, too, and are named.
///
/// Settings of a program are named data under `metadata.`, which runners read: tokens, chat templates. A value is a whole
/// number, a float, a list such as `[1, 2]`, or text, in double quotes if it would be one of the others; `@FILE` is the text
/// of a file.
#[derive(clap::Args, Debug)]
#[command(group = clap::ArgGroup::new("result").required(true))]
pub struct Args {
    /// The program or data file
    pub file: PathBuf,

    /// Tensor to replace, and its new data: a NumPy array, or a safetensors file that has a tensor of that name or only one
    #[arg(value_name = "NAME=TENSOR", required_unless_present_any = ["set", "remove"])]
    pub tensors: Vec<String>,

    /// Set a setting: `metadata.tokenizer.bos_id=128000`
    #[arg(long, value_name = "metadata.NAME=VALUE", conflicts_with = "in_place")]
    pub set: Vec<String>,

    /// Remove a setting
    #[arg(long, value_name = "metadata.NAME", conflicts_with = "in_place")]
    pub remove: Vec<String>,

    /// File for the result; - is standard output
    #[arg(short, long, value_name = "FILE", group = "result")]
    pub output: Option<PathBuf>,

    /// Change the file itself: the bytes of these tensors alone, with a journal next to it, so that a change that was
    /// interrupted is undone by the next command; not with --set and --remove, which move what follows
    #[arg(long, group = "result")]
    pub in_place: bool,
}

/// The JSON document.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct Patched {
    /// Bytes of the file.
    bytes: u64,
    /// The file.
    output: String,
    /// Settings that were removed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    removed: Vec<String>,
    /// Settings that were set.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    set: Vec<String>,
    /// Tensors that changed because they share their bytes with those that were asked for.
    shared: Vec<String>,
    /// Number of tensors that were asked for.
    tensors: usize,
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
    let settings = settings(args, session)?;
    let file = open(&args.file, Takes::Both, session)?;
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
        false => {
            let mut package = patch(package, &new).map_err(about)?;
            if !settings.is_empty() {
                package = change_metadata(package, &settings).map_err(about)?;
            }
            write(&package, output, session)?
        }
    };
    if session.json {
        let output = output.display().to_string();
        let names = |set: bool| settings.iter().filter(move |(_, value)| value.is_some() == set);
        let names = |set| names(set).map(|(name, _)| format!("{METADATA_PREFIX}{name}")).collect();
        let (set, removed) = (names(true), names(false));
        session.document(&Patched { bytes, output, removed, set, shared, tensors: tensors.len() })?;
    } else if !shared.is_empty() {
        session.out.flush()?;
        writeln!(session.err, "changed with them, as they share their bytes: {}", shared.join(", "))?;
    }
    Ok(Status::Fine)
}

/// Settings to set, and to remove.
fn settings(args: &Args, session: &mut Session) -> Result<BTreeMap<String, Option<MetadataValue>>, Failure> {
    let mut settings = BTreeMap::new();
    let twice = |name: &str| Failure::usage(format!("{METADATA_PREFIX}{name} is changed twice"));
    for text in &args.set {
        let (name, value) = setting::assignment(text, session)?;
        if settings.contains_key(&name) {
            return Err(twice(&name));
        }
        settings.insert(name, Some(value));
    }
    for key in &args.remove {
        let name = setting::name(key)?;
        if settings.insert(name.to_owned(), None).is_some() {
            return Err(twice(name));
        }
    }
    Ok(settings)
}

fn read(name: &str, path: &Path, session: &mut Session) -> Result<TensorBuf, Failure> {
    let about = |failure: Failure| failure.about(&name_of(path));
    let bytes = session.read_filled(path)?;
    match interchange::read(&bytes, session.limits.memory_bytes).map_err(|error| about(Failure::unreadable(error)))? {
        TensorFile::Single(tensor) => Ok(tensor),
        TensorFile::Named(mut tensors) => {
            let found = match tensors.iter().position(|(key, _)| key == name) {
                None if tensors.len() == 1 => 0,
                None => {
                    let mut known: Vec<&str> = tensors.iter().map(|(key, _)| key.as_str()).collect();
                    known.sort_unstable();
                    known.truncate(5);
                    let more = if tensors.len() > known.len() { ", …" } else { "" };
                    let known = known.join(", ");
                    return Err(about(Failure::usage(format!("there is no tensor {name:?}; there are {known}{more}"))));
                }
                Some(index) => index,
            };
            Ok(tensors.swap_remove(found).1)
        }
    }
}
