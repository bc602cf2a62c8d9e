//! `edgepack inspect`: what is inside.

use std::cell::RefCell;
use std::io::{self, Write};
use std::path::PathBuf;

use edgepack_format::darwinn::{Executable, MultiExecutable, Package, PackageRef};
use edgepack_format::finding::Finding;
use edgepack_format::limits::{Budget, Limits};
use edgepack_format::pte::{ExecutionPlan, Program};
use edgepack_format::row::{Table as _, TableDesc};
use serde::Serialize;

use crate::exported::ArchiveSummary;
use crate::flatbuffer::{Compiled, Flatbuffer};
use crate::kind::Kind;
use crate::listing::Listing;
use crate::report::print_section;
use crate::session::Session;
use crate::status::{Failure, Status};
use crate::style::{DIM, NAME, SHAPE, TITLE};
use crate::summary::bundle::{BundleSummary, program_bytes};
use crate::summary::data::DataSummary;
use crate::summary::library::LibrarySummary;
use crate::summary::program::ProgramSummary;
use crate::summary::trace::TraceSummary;
use crate::table::{Align, Cell, Columns};
use crate::tree::{self, Tree};
use crate::{lenient, notation, summary, units, view};

/// Show what is inside a file, broken files included
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The file
    pub file: PathBuf,

    /// Show every value, instruction, stack trace and field
    #[arg(short, long)]
    pub all: bool,
}

/// What is in a file of any kind; a kind's fields stand beside `kind`.
#[derive(Serialize)]
#[serde(untagged)]
enum Content {
    Program(ProgramSummary),
    Data(DataSummary),
    Bundle(BundleSummary),
    Trace(TraceSummary),
    Library(LibrarySummary),
    Exported(ArchiveSummary),
    /// A model with compiled parts, or a package.
    Compiled(serde_json::Value),
    /// Not even the root table can be located, or it unfolds into more than anybody could read.
    Nothing {},
}

#[derive(Serialize)]
struct Inspection<'a> {
    file: &'a str,
    kind: &'static str,
    #[serde(flatten)]
    content: &'a Content,
    findings: &'a [Finding],
    /// Findings that were counted but not kept.
    more_findings: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    tables: Option<Tree<'a, 'a>>,
    /// The tables of the program inside a bundle.
    #[serde(skip_serializing_if = "Option::is_none")]
    program_tables: Option<Tree<'a, 'a>>,
    /// The tables of what lies inside a compiled model as bytes: packages, multi-executables, executables.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    inner_tables: Vec<Tree<'a, 'a>>,
}

/// Runs the command.
pub fn run(args: &Args, session: &mut Session) -> Result<Status, Failure> {
    let file = session.open(&args.file)?;
    let flatbuffer = Flatbuffer::read(&file, &session.limits)?;
    let findings = flatbuffer.verify(&session.limits);
    let mut content = content(&flatbuffer, &session.limits);
    if let Content::Program(program) = &mut content {
        program.read_metadata(&*file.source);
    }
    let budget = tree::budget(&session.limits, flatbuffer.head.len() as u64);
    let tree = flatbuffer.root().filter(|_| args.all).map(|(table, desc)| Tree::new(table, desc, &budget));
    let inside = inner_program(&flatbuffer).filter(|_| args.all).map(|table| Tree::new(table, Program::DESC, &budget));
    let compiled = if args.all { flatbuffer.compiled(&session.limits) } else { None };
    let inner = compiled.as_ref().map(|compiled| inner_trees(compiled, &budget)).unwrap_or_default();
    if session.json {
        session.document(&Inspection {
            file: &file.name,
            kind: flatbuffer.kind.id(),
            content: &content,
            findings: findings.as_slice(),
            more_findings: findings.dropped(),
            tables: tree,
            program_tables: inside,
            inner_tables: inner,
        })?;
    } else {
        print(&file.name, &flatbuffer, &content, args.all, tree.as_ref(), &mut session.out)?;
        if let Some(inside) = inside {
            writeln!(session.out, "\n{TITLE}every field of the program inside{TITLE:#}")?;
            inside.print(2, &mut session.out)?;
        }
        for tree in inner {
            writeln!(session.out, "\n{TITLE}every field of {} inside{TITLE:#}", tree.name())?;
            tree.print(2, &mut session.out)?;
        }
        print_section(&findings, &mut session.out)?;
    }
    Ok(if findings.has_errors() { Status::Findings } else { Status::Fine })
}

fn content(flatbuffer: &Flatbuffer, limits: &Limits) -> Content {
    if !flatbuffer.is_modest(limits) {
        return Content::Nothing {};
    }
    let (head, bytes) = (&flatbuffer.head[..], flatbuffer.extent.len);
    if flatbuffer.kind == Kind::Library {
        return Content::Library(LibrarySummary::new(head, limits));
    }
    if flatbuffer.kind == Kind::Exported {
        return Content::Exported(ArchiveSummary::new(head));
    }
    let Some((root, _)) = flatbuffer.root() else { return Content::Nothing {} };
    match flatbuffer.kind {
        Kind::Program => Content::Program(ProgramSummary::new(&lenient::program(&root), head, bytes)),
        kind @ (Kind::Data | Kind::FlatData) => Content::Data(DataSummary::new(kind, &root, head, bytes)),
        Kind::Bundle => Content::Bundle(BundleSummary::new(&root, bytes)),
        Kind::Trace => Content::Trace(TraceSummary::new(&root, bytes)),
        Kind::Model | Kind::Package => match flatbuffer.compiled(limits) {
            Some(Compiled::Model(model)) => Content::Compiled(summary::model::model(&model)),
            Some(Compiled::Package(package)) => {
                Content::Compiled(serde_json::json!({ "packages": [summary::package::package(&package)] }))
            }
            None => Content::Nothing {},
        },
        Kind::Library | Kind::Exported => Content::Nothing {},
    }
}

fn print(
    name: &str,
    flatbuffer: &Flatbuffer,
    content: &Content,
    all: bool,
    tree: Option<&Tree<'_, '_>>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let (title, size) = (flatbuffer.kind.title(), units::bytes(flatbuffer.extent.len));
    writeln!(out, "{TITLE}{name}{TITLE:#}  {title}, {size}")?;
    match content {
        Content::Program(program) => view::program::print(program, out)?,
        Content::Data(data) => view::data::print(data, out)?,
        Content::Bundle(bundle) => view::bundle::print(bundle, out)?,
        Content::Trace(trace) => view::trace::print(trace, out)?,
        Content::Library(library) => view::library::print(library, all, out)?,
        Content::Exported(archive) => archive.print(all, out)?,
        Content::Compiled(_) => {
            if let Some(compiled) = flatbuffer.compiled(&Limits::DEFAULT) {
                view::compiled::print(&compiled, out)?;
            }
        }
        Content::Nothing {} => writeln!(out, "{DIM}nothing in it can be read within reason{DIM:#}")?,
    }
    if let Some(tree) = tree {
        if !matches!(content, Content::Nothing {}) {
            print_code(flatbuffer, out)?;
        }
        writeln!(out, "\n{TITLE}every field{TITLE:#}")?;
        tree.print(2, out)?;
    }
    Ok(())
}

/// What lies inside as bytes, level by level.
fn inner_trees<'a, 'b>(compiled: &Compiled<'a>, budget: &'b RefCell<Budget>) -> Vec<Tree<'a, 'b>> {
    fn add<'a, 'b>(
        bytes: &'a [u8],
        desc: &'static TableDesc,
        budget: &'b RefCell<Budget>,
        trees: &mut Vec<Tree<'a, 'b>>,
    ) {
        trees.extend(edgepack_format::wire::Table::root(bytes).ok().map(|root| Tree::new(root, desc, budget)));
    }
    fn walk<'a, 'b>(package: &PackageRef<'a>, budget: &'b RefCell<Budget>, trees: &mut Vec<Tree<'a, 'b>>) {
        add(package.multi_executable_bytes(), MultiExecutable::DESC, budget, trees);
        for executable in package.executables() {
            add(executable.bytes(), Executable::DESC, budget, trees);
        }
        for chip in package.chips() {
            add(chip.bytes(), Package::DESC, budget, trees);
            walk(chip, budget, trees);
        }
    }
    let mut trees = Vec::new();
    for (_, package) in compiled.packages() {
        if matches!(compiled, Compiled::Model(_)) {
            add(package.bytes(), Package::DESC, budget, &mut trees);
        }
        walk(package, budget, &mut trees);
    }
    trees
}

/// The root table of the program in a bundle.
fn inner_program(flatbuffer: &Flatbuffer) -> Option<edgepack_format::wire::Table<'_>> {
    let (root, _) = flatbuffer.root().filter(|_| flatbuffer.kind == Kind::Bundle)?;
    edgepack_format::wire::Table::root(program_bytes(&root)?).ok()
}

/// Values, instructions and stack traces of every method.
fn print_code(flatbuffer: &Flatbuffer, out: &mut dyn Write) -> io::Result<()> {
    let root = match flatbuffer.kind {
        Kind::Program => flatbuffer.root().map(|(root, _)| root),
        _ => inner_program(flatbuffer),
    };
    let Some(root) = root else { return Ok(()) };
    for plan in lenient::plans(&lenient::program(&root)) {
        print_method(&plan, out)?;
    }
    Ok(())
}

fn print_method(plan: &ExecutionPlan<'_>, out: &mut dyn Write) -> io::Result<()> {
    let name = notation::name(plan.name.as_deref().unwrap_or("?"));
    let listing = Listing::new(plan);
    writeln!(out, "\n{TITLE}values of {name}{TITLE:#}")?;
    let mut columns = Columns::new(2, &[Align::Right, Align::Left, Align::Left, Align::Left]);
    for line in listing.values() {
        let what = if line.literal.is_empty() { line.kind } else { format!("{} {}", line.kind, line.literal) };
        columns.row([Cell::new(line.id, NAME), Cell::new(what, SHAPE), Cell::new(line.place, DIM)]);
    }
    columns.print(out)?;
    let chains = lenient::chains(plan);
    for (index, (code, chain)) in listing.chains().zip(&chains).enumerate() {
        let which = if chains.len() > 1 { format!(", chain {index}") } else { String::new() };
        writeln!(out, "\n{TITLE}instructions of {name}{which}{TITLE:#}")?;
        let traces = lenient::rows(&chain.stacktrace);
        let width = code.len().saturating_sub(1).to_string().len();
        for (index, line) in code.iter().enumerate() {
            writeln!(out, "  {DIM}{index:>width$}{DIM:#}  {line}")?;
            let Some(Some(trace)) = traces.get(index) else { continue };
            for frame in lenient::rows(&trace.items).into_iter().flatten() {
                let text =
                    |text: &Option<edgepack_format::row::Text<'_>>| notation::name(text.as_deref().unwrap_or("?"));
                let (file, function) = (text(&frame.filename), text(&frame.name));
                write!(out, "  {:width$}    {DIM}{file}:{} in {function}", "", frame.lineno)?;
                if let Some(context) = frame.context.as_deref().filter(|context| !context.is_empty()) {
                    write!(out, ": {}", notation::name(context.trim()))?;
                }
                writeln!(out, "{DIM:#}")?;
            }
        }
    }
    Ok(())
}
