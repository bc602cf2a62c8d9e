//! Options of an exporter beyond the program: names, values, places and operators of its own.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use edgepack::builder::pte::Arg;
use edgepack::edit::Glob;
use edgepack_exir::archive::{Storage, Weight};
use edgepack_exir::dtype::Table;
use edgepack_exir::lower::{Alignments, ByName, Options};
use serde_json::Value;

use super::data::DataFiles;
use super::failure;
use crate::file::name_of;
use crate::interchange;
use crate::session::Session;
use crate::status::Failure;

/// The options of `lower` that say how a program is written, not which.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Options of the written program")]
pub struct Knobs {
    /// Put the weights into this data file
    #[arg(long, value_name = "FILE")]
    pub external_weights: Option<PathBuf>,

    /// Put weights with such a name into this data file; * matches any text, ? one character. The first that fits
    /// decides, --external-weights takes the rest. A file is known to runtimes by its name without extension
    #[arg(long, value_name = "GLOB=FILE")]
    pub external: Vec<String>,

    /// Add a method that takes nothing and gives these values: a number, true, false, text, or a JSON list of them
    #[arg(long, value_name = "NAME=VALUE")]
    pub constant_method: Vec<String>,

    /// Give every instruction the stack trace of its node
    #[arg(long)]
    pub stack_traces: bool,

    /// Write where every instruction comes from: its node, those of the exported program, and their debug handles, as JSON
    #[arg(long, value_name = "FILE")]
    pub debug_map: Option<PathBuf>,

    /// Plan no memory for inputs: the caller provides it
    #[arg(long)]
    pub unplanned_inputs: bool,

    /// Plan no memory for outputs: the caller provides it
    #[arg(long)]
    pub unplanned_outputs: bool,

    /// Start segments at multiples of this many bytes (128)
    #[arg(long, value_name = "BYTES")]
    pub segment_alignment: Option<u64>,

    /// Start constant tensors at multiples of this many bytes (16)
    #[arg(long, value_name = "BYTES")]
    pub tensor_alignment: Option<u64>,

    /// Start payloads of delegates inside the flatbuffer at multiples of this many bytes (16)
    #[arg(long, value_name = "BYTES")]
    pub delegate_alignment: Option<u64>,

    /// Plan memory in multiples of this many bytes (16)
    #[arg(long, value_name = "BYTES")]
    pub memory_alignment: Option<u64>,

    /// Plan tensors with such a name in the memory of this number, from 1 on; the first that fits decides. Names are those
    /// of `print` and of --debug-map
    #[arg(long, value_name = "GLOB=ID")]
    pub pool: Vec<String>,

    /// Table of the element types that go together, in the language of exporters; the Edge program is checked against it
    /// before it is emitted
    #[arg(long, value_name = "FILE")]
    pub edge_yaml: Option<PathBuf>,

    /// Operators of your own: a schema per line, functional and out variant, and behind `gives` what results look like,
    /// such as `gives like self` or `gives sizes [self[:-1], n] as Float`
    #[arg(long, value_name = "FILE")]
    pub operators: Vec<PathBuf>,

    /// Keep an operator that would be decomposed, such as aten::linear; refused if no program can hold it
    #[arg(long, value_name = "OPERATOR")]
    pub preserve: Vec<String>,

    /// First values of buffers that the program changes, by name, instead of their exported values (safetensors)
    #[arg(long, value_name = "FILE")]
    pub state: Option<PathBuf>,
}

impl Knobs {
    /// The options that these ask for, on top of the usual ones; and where data files go.
    pub fn options(&self, session: &mut Session) -> Result<(Options, DataFiles), Failure> {
        let mut options = Options {
            stack_traces: self.stack_traces,
            plan_inputs: !self.unplanned_inputs,
            plan_outputs: !self.unplanned_outputs,
            alignments: Alignments {
                segment: self.segment_alignment,
                tensor: self.tensor_alignment,
                delegate: self.delegate_alignment,
                memory: self.memory_alignment,
            },
            ..Options::default()
        };
        let mut files = DataFiles::default();
        let mut tags = Vec::new();
        for rule in &self.external {
            let (glob, file) = halves(rule, "GLOB=FILE")?;
            tags.push((Glob::new(glob), files.asked(glob, Path::new(file))?));
        }
        if let Some(file) = &self.external_weights {
            tags.push((Glob::new("*"), files.add(file)?));
        }
        if !tags.is_empty() {
            options.external_weights = first_that_fits(tags);
        }
        for method in &self.constant_method {
            let (name, value) = halves(method, "NAME=VALUE")?;
            options.constant_methods.push((name.to_owned(), values(value)?));
        }
        let pools = self.pool.iter().map(|rule| {
            let (glob, id) = halves(rule, "GLOB=ID")?;
            let id = id.parse().ok().filter(|id: &u32| *id > 0);
            Ok((Glob::new(glob), id.ok_or_else(|| Failure::usage(format!("{rule:?}: memories are counted from 1")))?))
        });
        options.pools = first_that_fits(pools.collect::<Result<_, Failure>>()?);
        if let Some(path) = &self.edge_yaml {
            let table = Table::parse(&text(path, session)?).map_err(|error| about(Failure::findings(error), path))?;
            options.edge_table = Some(Arc::new(table));
        }
        for path in &self.operators {
            let text = text(path, session)?;
            options.operators.declare(&text).map_err(|error| about(failure(error), path))?;
        }
        for name in &self.preserve {
            options.operators.preserve(name).map_err(failure)?;
        }
        if let Some(path) = &self.state {
            let bytes = session.read_filled(path)?;
            let tensors = interchange::read_safetensors(&bytes);
            for (name, tensor) in tensors.map_err(|error| about(Failure::findings(error), path))? {
                let layout = tensor.layout();
                let storage = Storage::owned(format!("recorded state {name}"), tensor.data().to_vec());
                let weight = Weight::contiguous(storage, layout.scalar_type(), layout.sizes());
                options.state.insert(name, weight.map_err(|error| about(failure(error), path))?);
            }
        }
        Ok((options, files))
    }
}

/// Returns the answer of the first pattern that matches a name.
fn first_that_fits<T: Clone + Send + Sync + 'static>(rules: Vec<(Glob, T)>) -> ByName<T> {
    match rules.is_empty() {
        true => ByName::default(),
        false => {
            ByName::new(move |name| rules.iter().find(|(glob, _)| glob.matches(name)).map(|(_, answer)| answer.clone()))
        }
    }
}

fn about(failure: Failure, path: &Path) -> Failure {
    failure.about(&name_of(path))
}

/// Both sides of an assignment.
fn halves<'a>(rule: &'a str, form: &str) -> Result<(&'a str, &'a str), Failure> {
    let halves = rule.split_once('=').filter(|(name, value)| !name.is_empty() && !value.is_empty());
    halves.ok_or_else(|| Failure::usage(format!("{rule:?} is not {form}")))
}

fn text(path: &Path, session: &mut Session) -> Result<String, Failure> {
    String::from_utf8(session.read(path)?).map_err(|_| about(Failure::findings("it is not text"), path))
}

/// The values of a constant method. What is not JSON is text.
fn values(text: &str) -> Result<Vec<Arg>, Failure> {
    let wrong = |what: &str| Failure::usage(format!("{text:?}: {what}"));
    let one = |value: Value| match value {
        Value::Bool(truth) => Ok(Arg::Bool(truth)),
        Value::String(text) => Ok(Arg::Text(text)),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(number), _) => Ok(Arg::Int(number)),
            (None, Some(real)) if number.is_f64() => Ok(Arg::Double(real)),
            _ => Err(wrong("programs hold whole numbers of 64 bits with a sign")),
        },
        _ => Err(wrong("values are numbers, true, false, text, or a list of them")),
    };
    match serde_json::from_str(text) {
        Ok(Value::Array(items)) => items.into_iter().map(one).collect(),
        Ok(value) => Ok(vec![one(value)?]),
        Err(error) if text.starts_with(['[', '{', '"']) => Err(wrong(&format!("no JSON: {error}"))),
        Err(_) => Ok(vec![Arg::Text(text.to_owned())]),
    }
}
