//! Export IR archives at the command line: what is in them, what they need, their programs as text.

pub mod self_check;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use edgepack_exir::archive::Archive;
use edgepack_exir::decompose;
use edgepack_exir::graph::{Argument, ExportedProgram, Graph, InputKind, LoweredPart, OutputKind};
use edgepack_exir::lower::is_written_out;
use edgepack_exir::operators::Operators;
use serde::Serialize;

use crate::file::{File, read_head};
use crate::notation;
use crate::session::Session;
use crate::status::{Failure, Status};
use crate::style::{BAD, DIM, GOOD, NAME, SHAPE, TITLE, WARN};
use crate::table::{Align, Cell, Columns};
use crate::units::{bytes, count};

/// What is in an archive.
#[derive(Serialize)]
pub struct ArchiveSummary {
    /// The folder of all records.
    pub root: String,
    /// Its programs.
    pub models: Vec<ModelSummary>,
    /// Its records.
    pub records: Vec<RecordSummary>,
    /// Why a program cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A program of an archive.
#[derive(Serialize)]
pub struct ModelSummary {
    name: String,
    dialect: &'static str,
    /// Whether it computes gradients.
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
struct Delegated {
    backend: String,
    /// Absent if the archive only says who runs it.
    payload_bytes: Option<usize>,
    options: Vec<String>,
    named_data: usize,
}

/// An input or output.
#[derive(Serialize)]
struct Border {
    name: String,
    what: String,
}

/// A record of an archive.
#[derive(Serialize)]
pub struct RecordSummary {
    /// Its name below the root folder.
    pub name: String,
    /// How long it is.
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
            columns.row([bytes(record.bytes).into(), Cell::new(notation::name(&record.name), NAME)]);
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
        let (name, torch) = (notation::name(&self.name), notation::name(&self.torch_version));
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
                columns.row([Cell::new(notation::name(&border.name), NAME), Cell::new(border.what.clone(), SHAPE)]);
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
            columns.row([calls.to_string().into(), Cell::new(notation::name(operator), NAME)]);
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
                columns.row([Cell::new(notation::name(&delegate.backend), NAME), payload, about.join(", ").into()]);
            }
            columns.print(out)?;
        }
        if all {
            writeln!(out, "\n{}", self.text)?;
        }
        Ok(())
    }
}

/// How often each callee is called, sub-graphs included, and how many calls there are.
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

/// Asks something of the first program of an archive. Without its tensors, if those cannot be read: only the graph is
/// wanted.
fn program<T>(content: &[u8], name: &str, ask: impl FnOnce(&ExportedProgram<'_>) -> T) -> Result<T, Failure> {
    let about = |error: edgepack_exir::Error| Failure::findings(error).about(name);
    let archive = Archive::parse(content).map_err(about)?;
    if let Ok(program) = archive.program() {
        return Ok(ask(&program));
    }
    let model = archive.models().next().unwrap_or("model").to_owned();
    let document = archive.document(&model).map_err(about)?;
    ExportedProgram::from_document(document, Default::default()).map(|program| ask(&program)).map_err(about)
}

/// `edgepack print` of an archive: its first program.
pub fn text(file: &File) -> Result<String, Failure> {
    let content = read_head(&*file.source, file.source.len())?;
    program(&content, &file.name, |program| format!("{program}\n"))
}

#[derive(Serialize)]
struct Need {
    name: String,
    calls: usize,
    /// Whether it is written out in others first.
    composite: bool,
    /// The operator of a program that stands for it.
    emitted: Option<String>,
    available: bool,
}

/// `edgepack ops` of an archive: what its first program calls, and what becomes of each call.
pub fn operators(file: &File, session: &mut Session) -> Result<Status, Failure> {
    let content = read_head(&*file.source, file.source.len())?;
    let (graph, backends) = program(&content, &file.name, |program| {
        let backends: BTreeSet<String> = program.about.modules.iter().map(|module| module.backend.clone()).collect();
        (program.graph.clone(), backends)
    })?;
    let operators = Operators::new();
    let registry = edgepack_kernels::registry();
    let composites: BTreeSet<String> = decompose::composites(&graph).into_iter().collect();
    let mut found: BTreeMap<String, Need> = BTreeMap::new();
    needs(&graph, &operators, &mut |name, emitted| {
        let need = found.entry(name.clone()).or_insert_with(|| Need {
            calls: 0,
            composite: composites.contains(&name) || is_written_out(&name),
            available: emitted.as_ref().is_some_and(|emitted| registry.find(emitted).is_some()),
            emitted,
            name,
        });
        need.calls += 1;
    });
    let needs: Vec<Need> = found.into_values().collect();
    // The runtime has no backends of its own.
    let missing = needs.iter().filter(|need| !need.available && !need.composite).count() + backends.len();
    if session.json {
        session.document(
            &serde_json::json!({ "file": file.name, "operators": needs, "delegates": backends, "missing": missing }),
        )?;
    } else {
        writeln!(session.out, "{TITLE}operators{TITLE:#}  {}", needs.len())?;
        let mut columns = Columns::new(2, &[Align::Left, Align::Right, Align::Left]);
        for need in &needs {
            let becomes = match (&need.emitted, need.composite, need.available) {
                (_, true, _) => Cell::new("written out in core operators", DIM),
                (Some(emitted), _, true) => Cell::new(emitted, DIM),
                (Some(emitted), ..) => Cell::new(format!("{emitted}, missing"), BAD),
                (None, ..) => Cell::new("no form in a program", BAD),
            };
            columns.row([Cell::new(&need.name, NAME), count(need.calls, "call").into(), becomes]);
        }
        columns.print(&mut session.out)?;
        if !backends.is_empty() {
            let names: Vec<String> = backends.iter().map(|name| notation::name(name).to_string()).collect();
            writeln!(session.out, "{TITLE}delegates{TITLE:#}  {}  {BAD}missing{BAD:#}", names.join(" "))?;
        }
        match missing {
            0 => writeln!(session.out, "{GOOD}this runtime has all of them{GOOD:#}")?,
            _ => writeln!(session.out, "{BAD}missing: {missing} of {}{BAD:#}", needs.len() + backends.len())?,
        }
    }
    Ok(if missing == 0 { Status::Fine } else { Status::CannotRun })
}

/// Every call of an operator, with the operator of a program that stands for it.
fn needs(graph: &Graph, operators: &Operators, each: &mut dyn FnMut(String, Option<String>)) {
    for node in &graph.nodes {
        for input in &node.inputs {
            if let Argument::Graph(_, inner) = &input.arg {
                needs(inner, operators, each);
            }
        }
        if let Some(op) = node.target.operator() {
            each(op.to_string(), operators.emitted(op, node));
        }
    }
}
