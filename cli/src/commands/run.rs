//! `edgepack run`: one method, once.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use edgepack_format::tensor::{LayoutError, TensorBuf};
use serde::Serialize;

use crate::compare::{element, type_of};
use crate::edit::read_text;
use crate::formats::{self, Execution};
use crate::interchange;
use crate::options::{Invocation, Native, PackCache, Threads};
use crate::ranking::{Labels, Ranked, classes, rank};
use crate::recording::{Recording, takes_stdout};
use crate::session::Session;
use crate::spelling;
use crate::status::{Failure, Status};
use crate::style::{DIM, SHAPE, TITLE};
use crate::table::{Align, Cell, Columns};
use crate::units::count;
use crate::value::Value;

/// Run one method once
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The program
    pub file: PathBuf,

    /// Method and inputs.
    #[command(flatten)]
    pub invocation: Invocation,

    /// File for the outputs: safetensors with keys `METHOD.0.out.I`; an archive of NumPy arrays with these keys if it is
    /// named .npz, one NumPy array if .npy, the raw elements of one output if .bin or .raw
    #[arg(short, long, value_name = "FILE")]
    pub outputs: Option<PathBuf>,

    /// Show the greatest elements of every row of an output, such as the classes of a picture; 5 if --labels is given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub top: Option<u32>,

    /// Names of the classes for --top, one a line
    #[arg(long, value_name = "FILE")]
    pub labels: Option<PathBuf>,

    /// Files in which the run is recorded.
    #[command(flatten)]
    pub recording: Recording,

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
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct Shown {
    index: usize,
    #[serde(rename = "type")]
    signature: String,
    /// The elements, in index order; cut off after some.
    values: Vec<String>,
    elements: usize,
    /// The greatest elements of every row, if they are asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    top: Option<Vec<Vec<Ranked>>>,
}

/// The greatest elements that are asked for.
struct Top {
    count: usize,
    labels: Option<Labels>,
}

/// Runs the command.
pub fn run(args: &Args, session: &mut Session) -> Result<Status, Failure> {
    let taken = takes_stdout(args.recording.files().into_iter().chain([args.outputs.as_deref()]), session)?;
    let (file, format) = formats::open(&args.file, session)?;
    let Invocation { data, method, inputs } = &args.invocation;
    let recorder = args.recording.recorder(session);
    let how = Execution {
        data: &data.data,
        threads: args.threads.threads,
        pack_cache: args.pack_cache.folder.as_deref(),
        native: &args.native,
        recorder: recorder.as_ref(),
    };
    let (name, outputs) = format.run(&file, method.as_deref(), inputs, how, session)?;
    args.recording.write(recorder, session)?;
    let top = top(args, &outputs, session)?;
    if let Some(path) = &args.outputs {
        write_outputs(path, &name, &outputs, session)?;
    }
    if !taken {
        show(&file.name, &name, &outputs, top.as_ref(), session)?;
    }
    Ok(Status::Fine)
}

/// Outputs to be ranked; names of classes must be as many as some output has.
fn top(args: &Args, outputs: &[Value], session: &mut Session) -> Result<Option<Top>, Failure> {
    let labels = match &args.labels {
        Some(path) => {
            let labels = Labels::parse(&read_text(path, "a file of names", session)?);
            let classes: Vec<usize> =
                outputs.iter().filter_map(Value::to_tensor).map(|output| classes(&output)).collect();
            if !classes.contains(&labels.count()) {
                let (path, names, classes) = (path.display(), count(labels.count(), "name"), classes.iter());
                let classes = classes.map(usize::to_string).collect::<Vec<_>>().join(", ");
                return Err(Failure::usage(format!("{path}: {names}, the outputs have rows of {classes}")));
            }
            Some(labels)
        }
        None => None,
    };
    let wanted = args.top.or(labels.is_some().then_some(5));
    Ok(wanted.map(|count| Top { count: count as usize, labels }))
}

fn write_outputs(path: &Path, method: &str, outputs: &[Value], session: &mut Session) -> Result<(), Failure> {
    let tensors = outputs.iter().enumerate().filter_map(|(index, output)| Some((index, output.to_tensor()?)));
    let named = tensors.map(|(index, tensor)| (format!("{method}.0.out.{index}"), tensor));
    let named: Vec<(String, TensorBuf)> = named.collect();
    let only = || match named.as_slice() {
        [(_, only)] => Ok(only),
        _ => {
            let what = format!("{} outputs do not fit a file of one; use .safetensors or .npz", named.len());
            Err(Failure::usage(what))
        }
    };
    let bytes = match path.extension().and_then(OsStr::to_str) {
        Some("npy") => interchange::write_npy(only()?),
        Some("npz") => interchange::write_npz(&named),
        Some("bin" | "raw") => only()?.contiguous().map(TensorBuf::into_data).map_err(Into::into),
        _ => interchange::write_safetensors(&named),
    };
    session.write_binary(path, &bytes.map_err(Failure::cannot_run)?)
}

/// Elements of an output that are shown.
const SHOWN: usize = 8;
/// Elements of an output that a document holds.
const LISTED: usize = 1024;

/// The JSON document.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct Outcome<'a> {
    /// The file.
    file: &'a str,
    /// Name of the method that ran.
    method: &'a str,
    /// Outputs in order.
    outputs: Vec<Shown>,
}

fn show(file: &str, method: &str, outputs: &[Value], top: Option<&Top>, session: &mut Session) -> Result<(), Failure> {
    let most = if session.json { LISTED } else { SHOWN };
    let shown = outputs.iter().enumerate().map(|(index, output)| shown(index, output, most, top));
    let shown = shown.collect::<Result<Vec<_>, _>>().map_err(Failure::cannot_run)?;
    if session.json {
        return session.document(&Outcome { file, method, outputs: shown });
    }
    writeln!(session.out, "{TITLE}{method}{TITLE:#}")?;
    for output in shown {
        let Shown { index, signature, values, elements, top } = output;
        let more = if elements > values.len() { ", …" } else { "" };
        let values = values.join(", ");
        writeln!(session.out, "  {DIM}{index}{DIM:#}  {SHAPE}{signature}{SHAPE:#}  {values}{more}")?;
        ranking(&top.unwrap_or_default(), &mut session.out)?;
    }
    Ok(())
}

/// Prints the greatest elements of the first rows.
fn ranking(rows: &[Vec<Ranked>], out: &mut dyn Write) -> io::Result<()> {
    for (place, row) in rows.iter().take(SHOWN).enumerate() {
        if rows.len() > 1 {
            writeln!(out, "     {DIM}row {place}{DIM:#}")?;
        }
        let mut columns = Columns::new(5, &[Align::Right, Align::Right, Align::Left]);
        for Ranked { index, value, label } in row {
            let label = label.as_deref().map(spelling::name).unwrap_or_default();
            columns.row([Cell::new(index.to_string(), DIM), Cell::from(value.clone()), Cell::from(label)]);
        }
        columns.print(out)?;
    }
    match rows.len() > SHOWN {
        true => writeln!(out, "     {DIM}and {} more rows{DIM:#}", rows.len() - SHOWN),
        false => Ok(()),
    }
}

fn shown(index: usize, output: &Value, most: usize, top: Option<&Top>) -> Result<Shown, LayoutError> {
    let mut ranked = None;
    let (signature, values, elements) = match output {
        Value::Tensor(tensor) => {
            let tensor = tensor.contiguous()?;
            ranked = top.map(|top| rank(&tensor, top.count, top.labels.as_ref()));
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
    Ok(Shown { index, signature, values, elements, top: ranked })
}
