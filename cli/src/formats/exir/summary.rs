//! Summary of an archive of export IR.

use std::collections::BTreeMap;
use std::io::{self, Write};

use edgepack_exir::archive::Archive;
use edgepack_exir::graph::{Argument, ExportedProgram, Graph, InputKind, LoweredPart, OutputKind};
use serde::Serialize;

use crate::spelling;
use crate::style::{DIM, NAME, SHAPE, TITLE, WARN};
use crate::table::{Align, Cell, Columns};
use crate::units::{bytes, count};

/// Content of an archive.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct ArchiveSummary {
    /// The folder of all records.
    pub root: String,
    /// Programs of the archive.
    pub models: Vec<ModelSummary>,
    /// Records of the archive.
    pub records: Vec<RecordSummary>,
    /// Reason a program cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A program of an archive.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct ModelSummary {
    name: String,
    dialect: &'static str,
    /// True if the program computes gradients.
    training: bool,
    torch_version: String,
    nodes: usize,
    operators: BTreeMap<String, usize>,
    inputs: Vec<Border>,
    outputs: Vec<Border>,
    parameters: usize,
    buffers: usize,
    constants: usize,
    symbols: BTreeMap<String, [Option<i64>; 2]>,
    /// Parts that backends have taken over.
    delegates: Vec<Delegated>,
    #[serde(skip)]
    text: String,
}

/// A part that a backend has taken over.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct Delegated {
    backend: String,
    /// Absent if the archive only says who runs it.
    payload_bytes: Option<usize>,
    options: Vec<String>,
    named_data: usize,
}

/// An input or output.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct Border {
    name: String,
    what: String,
}

/// A record of an archive.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct RecordSummary {
    /// Name of the record below the root folder.
    pub name: String,
    /// Length of the record in bytes.
    pub bytes: u64,
}

impl ArchiveSummary {
    /// As much as can be read.
    pub fn new(content: &[u8]) -> ArchiveSummary {
        let nothing = |error: edgepack_exir::Error| ArchiveSummary {
            root: String::new(),
            models: Vec::new(),
            records: Vec::new(),
            error: Some(error.to_string()),
        };
        let archive = match Archive::parse(content) {
            Ok(archive) => archive,
            Err(error) => return nothing(error),
        };
        let record =
            |record: &edgepack_exir::archive::Record| RecordSummary { name: record.name.clone(), bytes: record.len };
        let mut summary = ArchiveSummary {
            root: archive.root().to_owned(),
            models: Vec::new(),
            records: archive.records().iter().map(record).collect(),
            error: None,
        };
        for name in archive.models() {
            match archive.model(name) {
                Ok(program) => summary.models.push(ModelSummary::new(name, &program)),
                Err(error) => summary.error = Some(error.to_string()),
            }
        }
        summary
    }

    /// Prints it.
    pub fn print(&self, all: bool, out: &mut dyn Write) -> io::Result<()> {
        for model in &self.models {
            model.print(all, out)?;
        }
        if let Some(error) = &self.error {
            writeln!(out, "{WARN}not read{WARN:#}  {error}")?;
        }
        writeln!(out, "\n{TITLE}records{TITLE:#}  {}", self.records.len())?;
        let mut columns = Columns::new(2, &[Align::Right, Align::Left]);
        for record in &self.records {
            columns.row([bytes(record.bytes).into(), Cell::new(spelling::name(&record.name), NAME)]);
        }
        columns.print(out)
    }
}

impl Delegated {
    fn new(module: &LoweredPart) -> Self {
        Delegated {
            backend: module.backend.clone(),
            payload_bytes: module.payload.as_ref().map(|payload| payload.len()),
            options: module.specs.iter().map(|(name, _)| name.clone()).collect(),
            named_data: module.named_data.len(),
        }
    }
}

impl ModelSummary {
    fn new(name: &str, program: &ExportedProgram<'_>) -> ModelSummary {
        let mut operators = BTreeMap::new();
        let nodes = calls(&program.graph, &mut operators);
        let show = |argument: &Argument| match argument.value().and_then(|id| program.graph.value(id)) {
            Some(value) => Border { name: value.name.clone(), what: value.meta.to_string() },
            None => Border { name: String::new(), what: format!("{argument:?}") },
        };
        let users = program.inputs.iter().filter(|spec| matches!(spec.kind, InputKind::User | InputKind::Literal(_)));
        let results = program.outputs.iter().filter(|spec| spec.kind == OutputKind::User);
        let of = |kind: fn(&InputKind) -> bool| program.inputs.iter().filter(|spec| kind(&spec.kind)).count();
        ModelSummary {
            name: name.to_owned(),
            dialect: program.dialect.name(),
            training: program.trains(),
            torch_version: program.about.torch_version.clone(),
            nodes,
            operators,
            inputs: users.map(|spec| show(&spec.arg)).collect(),
            outputs: results.map(|spec| show(&spec.arg)).collect(),
            parameters: of(|kind| matches!(kind, InputKind::Parameter(_))),
            buffers: of(|kind| matches!(kind, InputKind::Buffer { .. })),
            constants: of(|kind| matches!(kind, InputKind::Constant(_))),
            symbols: program.ranges.iter().map(|(name, range)| (name.clone(), [range.min, range.max])).collect(),
            delegates: program.about.modules.iter().map(Delegated::new).collect(),
            text: program.to_string(),
        }
    }

    fn print(&self, all: bool, out: &mut dyn Write) -> io::Result<()> {
        let (name, torch) = (spelling::name(&self.name), spelling::name(&self.torch_version));
        let training = if self.training { ", a training graph" } else { "" };
        let torch = if torch.is_empty() { String::new() } else { format!(", torch {torch}") };
        writeln!(out, "\n{TITLE}{name}{TITLE:#}  {} dialect{training}{torch}", self.dialect)?;
        let parts = [
            count(self.nodes, "node"),
            count(self.parameters, "parameter"),
            count(self.buffers, "buffer"),
            count(self.constants, "constant"),
        ];
        writeln!(out, "  {}", parts.join(", "))?;
        for (title, borders) in [("inputs", &self.inputs), ("outputs", &self.outputs)] {
            writeln!(out, "  {TITLE}{title}{TITLE:#}")?;
            let mut columns = Columns::new(4, &[Align::Left, Align::Left]);
            for border in borders {
                columns.row([Cell::new(spelling::name(&border.name), NAME), Cell::new(border.what.clone(), SHAPE)]);
            }
            columns.print(out)?;
        }
        for (symbol, [least, most]) in &self.symbols {
            let end = |end: &Option<i64>| end.map_or("…".to_owned(), |end| end.to_string());
            writeln!(out, "  {DIM}{symbol} from {} to {}{DIM:#}", end(least), end(most))?;
        }
        writeln!(out, "  {TITLE}operators{TITLE:#}")?;
        let mut columns = Columns::new(4, &[Align::Right, Align::Left]);
        for (operator, calls) in &self.operators {
            columns.row([calls.to_string().into(), Cell::new(spelling::name(operator), NAME)]);
        }
        columns.print(out)?;
        if !self.delegates.is_empty() {
            writeln!(out, "  {TITLE}delegates{TITLE:#}")?;
            let mut columns = Columns::new(4, &[Align::Left, Align::Right, Align::Left]);
            for delegate in &self.delegates {
                let payload =
                    delegate.payload_bytes.map_or(Cell::new("no payload", WARN), |len| bytes(len as u64).into());
                let mut about = vec![count(delegate.options.len(), "option")];
                if delegate.named_data > 0 {
                    about.push(format!("named data: {}", delegate.named_data));
                }
                columns.row([Cell::new(spelling::name(&delegate.backend), NAME), payload, about.join(", ").into()]);
            }
            columns.print(out)?;
        }
        if all {
            writeln!(out, "\n{}", self.text)?;
        }
        Ok(())
    }
}

/// Counts the calls of each callee, sub-graphs included, and returns the number of calls.
fn calls(graph: &Graph, found: &mut BTreeMap<String, usize>) -> usize {
    let mut nodes = graph.nodes.len();
    for node in &graph.nodes {
        *found.entry(node.target.to_string()).or_default() += 1;
        for input in &node.inputs {
            if let Argument::Graph(_, inner) = &input.arg {
                nodes += calls(inner, found);
            }
        }
    }
    nodes
}
