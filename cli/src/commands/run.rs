//! `edgepack run`: one method, once.

use std::io::Write;
use std::path::{Path, PathBuf};

use edgepack_format::tensor::LayoutError;
use serde::Serialize;

use crate::compare::{element, type_of};
use crate::formats::{self, Execution};
use crate::interchange;
use crate::options::{Invocation, Native, PackCache, Threads};
use crate::outputs::is_stdout;
use crate::session::Session;
use crate::spelling;
use crate::status::{Failure, Status};
use crate::style::{DIM, SHAPE, TITLE};
use crate::value::Value;

/// Run one method once
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The program
    pub file: PathBuf,

    /// Method and inputs.
    #[command(flatten)]
    pub invocation: Invocation,

    /// File for the outputs: safetensors with keys `METHOD.0.out.I`, or one NumPy array if it is named .npy
    #[arg(short, long, value_name = "FILE")]
    pub outputs: Option<PathBuf>,

    /// Number of threads.
    #[command(flatten)]
    pub threads: Threads,

    /// Folder of packed weights.
    #[command(flatten)]
    pub pack_cache: PackCache,

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
    let (file, format) = formats::open(&args.file, session)?;
    let Invocation { data, method, inputs } = &args.invocation;
    let how = Execution {
        data: &data.data,
        threads: args.threads.threads,
        pack_cache: args.pack_cache.folder.as_deref(),
        native: args.native,
    };
    let (name, outputs) = format.run(&file, method.as_deref(), inputs, how, session)?;
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

fn write_outputs(path: &Path, method: &str, outputs: &[Value], session: &mut Session) -> Result<(), Failure> {
    let tensors = outputs.iter().enumerate().filter_map(|(index, output)| Some((index, output.to_tensor()?)));
    let bytes = if path.extension().is_some_and(|extension| extension == "npy") {
        let tensors: Vec<_> = tensors.collect();
        match tensors.as_slice() {
            [(_, only)] => interchange::write_npy(only),
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
        Value::Double(value) => ("double".to_owned(), vec![spelling::double(*value)], 1),
        Value::Text(text) => ("text".to_owned(), vec![spelling::text(text)], 1),
        Value::Null => ("none".to_owned(), Vec::new(), 0),
        Value::List(kind) => ((*kind).to_owned(), Vec::new(), 0),
    };
    Ok(Shown { index, signature, values, elements })
}
