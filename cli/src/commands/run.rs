//! `edgepack run`: one method, once.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use edgepack_executor::{Input, Method, Options};
use edgepack_loader::MethodMeta;
use serde::Serialize;

use crate::cases::{Side, inputs, parse_key};
use crate::compare::{element, type_of};
use crate::interchange::{self, TensorFile};
use crate::kind::Kind;
use crate::library::{self, Native};
use crate::outputs::is_stdout;
use crate::session::Session;
use crate::status::{Failure, Status};
use crate::style::{DIM, SHAPE, TITLE};
use crate::value::Value;
use crate::{data_files, notation, npy, program};
use edgepack_format::tensor::{LayoutError, TensorBuf};

/// Run one method once
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The program
    pub file: PathBuf,

    /// Data files the program needs
    #[arg(long, value_name = "FILE")]
    pub data: Vec<PathBuf>,

    /// Which method, or module of a package; the only one, or `forward`, if not given
    #[arg(short, long, value_name = "NAME")]
    pub method: Option<String>,

    /// Inputs: a safetensors file with keys `I`, `in.I` or `METHOD.RUN.in.I` (the first run), or NumPy arrays in order
    #[arg(short, long, value_name = "FILE", num_args = 1..)]
    pub inputs: Vec<PathBuf>,

    /// Where outputs go, as safetensors with keys `METHOD.0.out.I`, or as one NumPy array if it is named .npy
    #[arg(short, long, value_name = "FILE")]
    pub outputs: Option<PathBuf>,

    /// Threads for kernels
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,

    /// For Model Library Format packages.
    #[command(flatten)]
    pub native: Native,
}

#[derive(Serialize)]
struct Shown {
    index: usize,
    #[serde(rename = "type")]
    signature: String,
    /// The elements, in index order; cut off after some.
    values: Vec<String>,
    elements: usize,
}

/// Runs the command.
pub fn run(args: &Args, session: &mut Session) -> Result<Status, Failure> {
    let file = session.open(&args.file)?;
    if file.kind == Kind::Library {
        let asked = args.method.as_deref();
        let (name, outputs) = library::run::run(&file, asked, &args.inputs, args.native, session)?;
        return finish(args, &file.name, &name, &outputs, session);
    }
    let opened = program::open(&file, &session.limits)?.program;
    let name = program::method(&opened, args.method.as_deref())?;
    let data = data_files::open(&args.data, session)?;
    let meta = opened.method_meta(&name)?;
    let given = read_inputs(&args.inputs, &meta, session)?;
    let values = inputs(&meta, &given).map_err(Failure::usage)?;
    let options = Options { data, threads: args.threads.map(usize::from), ..Options::default() };
    let mut method = Method::load(&opened, &name, &edgepack_kernels::registry(), &options)?;
    let given: Vec<Input<'_>> = values.iter().filter_map(Value::input).collect();
    let outputs: Result<Vec<Value>, _> = method.run(&given)?.iter().map(Value::of).collect();
    let outputs = outputs.map_err(Failure::cannot_run)?;
    finish(args, &file.name, &name, &outputs, session)
}

/// Writes and shows what came out.
fn finish(args: &Args, file: &str, name: &str, outputs: &[Value], session: &mut Session) -> Result<Status, Failure> {
    if let Some(path) = &args.outputs {
        write_outputs(path, name, outputs, session)?;
        if is_stdout(path) {
            return Ok(Status::Fine);
        }
    }
    show(file, name, outputs, session)?;
    Ok(Status::Fine)
}

/// The inputs that files give, by index.
pub fn read_inputs(
    paths: &[PathBuf],
    meta: &MethodMeta,
    session: &mut Session,
) -> Result<BTreeMap<usize, TensorBuf>, Failure> {
    let mut given = BTreeMap::new();
    let mut next = 0;
    for path in paths {
        let about = |failure: Failure| failure.about(&path.display().to_string());
        let bytes = session.read(path)?;
        match interchange::read(&bytes).map_err(|error| about(Failure::unreadable(error)))? {
            TensorFile::Single(tensor) => {
                given.insert(next, tensor);
                next += 1;
            }
            TensorFile::Named(tensors) => {
                for (index, tensor) in by_index(tensors, &meta.name).map_err(about)? {
                    given.insert(index, tensor);
                }
            }
        }
    }
    Ok(given)
}

/// Which input each name is for.
fn by_index(tensors: Vec<(String, TensorBuf)>, method: &str) -> Result<Vec<(usize, TensorBuf)>, Failure> {
    let first =
        tensors.iter().filter_map(|(key, _)| parse_key(key)).filter(|key| key.0 == method).map(|key| key.1).min();
    let single = tensors.len() == 1;
    let mut found = Vec::new();
    for (key, tensor) in tensors {
        let plain = key.strip_prefix("in.").unwrap_or(&key).parse().ok();
        match (plain, parse_key(&key)) {
            (Some(index), _) => found.push((index, tensor)),
            // Other methods, later runs and recorded outputs are not for this run.
            (None, Some((name, run, side, index))) => {
                if name == method && Some(run) == first && side == Side::In {
                    found.push((index, tensor));
                }
            }
            (None, None) if single => found.push((0, tensor)),
            (None, None) => {
                return Err(Failure::usage(format!("the key {key:?} is not I, in.I or METHOD.RUN.in.I")));
            }
        }
    }
    Ok(found)
}

fn write_outputs(path: &Path, method: &str, outputs: &[Value], session: &mut Session) -> Result<(), Failure> {
    let tensors = outputs.iter().enumerate().filter_map(|(index, output)| Some((index, output.to_tensor()?)));
    let bytes = if path.extension().is_some_and(|extension| extension == "npy") {
        let tensors: Vec<_> = tensors.collect();
        match tensors.as_slice() {
            [(_, only)] => npy::write(only),
            _ => {
                let message = format!("{} outputs do not fit one NumPy array; use .safetensors", tensors.len());
                return Err(Failure::usage(message));
            }
        }
    } else {
        let named = tensors.map(|(index, tensor)| (format!("{method}.0.out.{index}"), tensor));
        interchange::write_safetensors(&named.collect::<Vec<_>>())
    };
    session.write_binary(path, &bytes.map_err(Failure::cannot_run)?)
}

/// Elements of an output that are shown.
const SHOWN: usize = 8;
/// Elements of an output that a document holds.
const LISTED: usize = 1024;

fn show(file: &str, method: &str, outputs: &[Value], session: &mut Session) -> Result<(), Failure> {
    let most = if session.json { LISTED } else { SHOWN };
    let shown = outputs.iter().enumerate().map(|(index, output)| shown(index, output, most));
    let shown = shown.collect::<Result<Vec<_>, _>>().map_err(Failure::cannot_run)?;
    if session.json {
        return session.document(&serde_json::json!({ "file": file, "method": method, "outputs": shown }));
    }
    writeln!(session.out, "{TITLE}{method}{TITLE:#}")?;
    for output in shown {
        let Shown { index, signature, values, elements } = output;
        let more = if elements > values.len() { ", …" } else { "" };
        let values = values.join(", ");
        writeln!(session.out, "  {DIM}{index}{DIM:#}  {SHAPE}{signature}{SHAPE:#}  {values}{more}")?;
    }
    Ok(())
}

fn shown(index: usize, output: &Value, most: usize) -> Result<Shown, LayoutError> {
    let (signature, values, elements) = match output {
        Value::Tensor(tensor) => {
            let tensor = tensor.contiguous()?;
            let layout = tensor.layout();
            let (scalar_type, size) = (layout.scalar_type(), layout.scalar_type().size().unwrap_or(1));
            let values = tensor.data().chunks_exact(size).take(most).map(|bytes| element(scalar_type, bytes));
            (type_of(&tensor), values.collect(), layout.element_count())
        }
        Value::Int(value) => ("int".to_owned(), vec![value.to_string()], 1),
        Value::Bool(value) => ("bool".to_owned(), vec![value.to_string()], 1),
        Value::Double(value) => ("double".to_owned(), vec![notation::double(*value)], 1),
        Value::Text(text) => ("text".to_owned(), vec![notation::text(text)], 1),
        Value::Null => ("none".to_owned(), Vec::new(), 0),
        Value::List(kind) => ((*kind).to_owned(), Vec::new(), 0),
    };
    Ok(Shown { index, signature, values, elements })
}
