//! A Model Library Format package, for people: modules, targets, memory, the graph as a listing, parameters, sources.

use std::io::{self, Write};

use edgepack_format::mlf::Module;

use super::summary::{GraphSummary, IoSummary, LibrarySummary, ModuleSummary};
use crate::spelling;
use crate::style::{DIM, NAME, SHAPE, TITLE, WARN};
use crate::table::{Align, Cell, Columns};
use crate::units::{bytes, count};

/// Prints a package.
pub fn print(library: &LibrarySummary, all: bool, out: &mut dyn Write) -> io::Result<()> {
    if let Some(metadata) = &library.metadata {
        let modules = count(metadata.modules.len(), "module");
        writeln!(out, "{DIM}version {}, {modules}, {}{DIM:#}", metadata.version, count(library.members.len(), "file"))?;
        for (info, module) in metadata.modules.iter().zip(&library.modules) {
            print_module(info, module, all, out)?;
        }
    }
    writeln!(out, "\n{TITLE}files{TITLE:#}  {}", library.members.len())?;
    let mut columns = Columns::new(2, &[Align::Right, Align::Left]);
    for member in &library.members {
        columns.row([bytes(member.bytes).into(), Cell::new(spelling::name(&member.path), NAME)]);
    }
    columns.print(out)
}

fn print_module(info: &Module, module: &ModuleSummary, all: bool, out: &mut dyn Write) -> io::Result<()> {
    let executor = match info.executors.as_slice() {
        [] => info.style.name().to_owned(),
        names => format!("{} executor", names.join(", ")),
    };
    let name = spelling::name(&info.name);
    writeln!(out, "\n{TITLE}module {name}{TITLE:#}  {executor}, exported {}", spelling::name(&info.export_datetime))?;
    for target in info.target.names() {
        writeln!(out, "  {DIM}target{DIM:#}  {}", spelling::name(target))?;
    }
    for main in info.memory.main.iter().flatten() {
        let (work, constants, io) = (main.workspace_size_bytes, main.constants_size_bytes, main.io_size_bytes);
        let parts =
            format!("{} workspace, {} constants, {} inputs and outputs", bytes(work), bytes(constants), bytes(io));
        writeln!(out, "  {DIM}memory of device {}, as exported{DIM:#}  {parts}", main.device)?;
    }
    let operators = info.memory.operators.iter().flatten();
    let wanting: Vec<_> = operators.filter(|one| all || one.workspace.iter().any(|(_, bytes)| *bytes > 0)).collect();
    if !wanting.is_empty() {
        writeln!(out, "\n  {TITLE}workspace of functions{TITLE:#}")?;
        let mut columns = Columns::new(4, &[Align::Right, Align::Left]);
        for operator in wanting {
            let most = operator.workspace.iter().map(|(_, bytes)| *bytes).max().unwrap_or(0);
            columns.row([bytes(most).into(), Cell::new(spelling::name(&operator.function_name), NAME)]);
        }
        columns.print(out)?;
    }
    for (function, buffers) in &info.memory.buffers {
        writeln!(out, "\n  {TITLE}arguments of {}{TITLE:#}", spelling::name(function))?;
        let mut columns = Columns::new(4, &[Align::Left, Align::Left, Align::Right]);
        for buffer in buffers {
            let layout = format!("{}{:?}", buffer.dtype, buffer.shape);
            columns.row([
                Cell::new(spelling::name(buffer.input_binding.as_deref().unwrap_or("-")), NAME),
                Cell::new(spelling::name(&layout), SHAPE),
                bytes(buffer.size_bytes).into(),
            ]);
        }
        columns.print(out)?;
    }
    print_interfaces(module, out)?;
    if let Some(graph) = &module.graph {
        print_graph(graph, out)?;
    }
    print_params(module, all, out)?;
    print_text(module, all, out)?;
    if module.sources.is_empty() && module.objects.is_empty() {
        return writeln!(out, "\n  {WARN}no code{WARN:#}");
    }
    writeln!(out, "\n  {TITLE}code{TITLE:#}")?;
    for source in &module.sources {
        let path = spelling::name(&source.path);
        writeln!(
            out,
            "    {NAME}{path}{NAME:#}  {}, {}",
            bytes(source.bytes),
            count(source.functions.len(), "function")
        )?;
        for function in source.functions.iter().filter(|_| all) {
            writeln!(out, "      {}", spelling::name(function))?;
        }
    }
    let mut objects = module.objects.iter();
    objects.try_for_each(|one| writeln!(out, "    {NAME}{}{NAME:#}  {}", spelling::name(&one.path), one.kind))
}

/// Prints what each part says about inputs and outputs.
fn print_interfaces(module: &ModuleSummary, out: &mut dyn Write) -> io::Result<()> {
    if module.interfaces.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n  {TITLE}inputs and outputs{TITLE:#}")?;
    let tensor = |tensor: &IoSummary| match (tensor.name.as_str(), &tensor.layout) {
        ("", layout) => layout.as_deref().map_or("?".to_owned(), spelling::name),
        (name, None) => spelling::name(name),
        (name, Some(layout)) => format!("{}: {}", spelling::name(name), spelling::name(layout)),
    };
    let list = |tensors: &Vec<IoSummary>| tensors.iter().map(tensor).collect::<Vec<_>>().join(", ");
    for interface in &module.interfaces {
        let outputs = interface.outputs.as_ref().map_or("?".to_owned(), list);
        let part = spelling::name(&interface.part);
        writeln!(out, "    {NAME}{part}{NAME:#}  {} -> {outputs}", list(&interface.inputs))?;
    }
    Ok(())
}

/// Prints the model's text, or how long it is.
fn print_text(module: &ModuleSummary, all: bool, out: &mut dyn Write) -> io::Result<()> {
    let Some(text) = &module.text else { return Ok(()) };
    let path = spelling::name(&text.path);
    writeln!(out, "\n  {TITLE}model's text{TITLE:#}  {NAME}{path}{NAME:#}, {}", count(text.lines, "line"))?;
    let mut lines = text.text.lines().filter(|_| all);
    lines.try_for_each(|line| writeln!(out, "    {}", spelling::name(line)))
}

fn print_graph(graph: &GraphSummary, out: &mut dyn Write) -> io::Result<()> {
    let (calls, storages) = (count(graph.calls.len(), "call"), count(graph.storages, "storage"));
    writeln!(out, "\n  {TITLE}graph{TITLE:#}  {calls}, {storages} of {} in all", bytes(graph.storage_bytes))?;
    for arg in &graph.args {
        let (name, storage) = (spelling::name(&arg.name), arg.storage.unwrap_or_default());
        writeln!(out, "    {NAME}{name}{NAME:#}: {SHAPE}{}{SHAPE:#}  {DIM}in {storage}{DIM:#}", arg.layout)?;
    }
    for call in &graph.calls {
        let results: Vec<String> = call
            .outputs
            .iter()
            .map(|output| {
                let storage = output.storage.unwrap_or_default();
                format!("{NAME}{}{NAME:#}: {SHAPE}{}{SHAPE:#} {DIM}in {storage}{DIM:#}", output.name, output.layout)
            })
            .collect();
        let inputs: Vec<String> = call.inputs.iter().map(|name| spelling::name(name)).collect();
        writeln!(out, "    {} = {}({})", results.join(", "), spelling::name(&call.function), inputs.join(", "))?;
    }
    let outputs: Vec<String> = graph.outputs.iter().map(|name| spelling::name(name)).collect();
    writeln!(out, "    return {}", outputs.join(", "))
}

/// Parameters that are shown if not all are.
const SHOWN: usize = 12;

fn print_params(module: &ModuleSummary, all: bool, out: &mut dyn Write) -> io::Result<()> {
    let total = module.params.iter().fold(0u64, |sum, param| sum.saturating_add(param.bytes));
    writeln!(out, "\n  {TITLE}parameters{TITLE:#}  {} of {}", module.params.len(), bytes(total))?;
    let shown = if all { module.params.len() } else { SHOWN.min(module.params.len()) };
    let mut columns = Columns::new(4, &[Align::Left, Align::Left, Align::Right]);
    for param in module.params.iter().take(shown) {
        columns.row([
            Cell::new(spelling::name(&param.name), NAME),
            Cell::new(&param.layout, SHAPE),
            bytes(param.bytes).into(),
        ]);
    }
    columns.print(out)?;
    match module.params.len().saturating_sub(shown) {
        0 => Ok(()),
        more => writeln!(out, "    {DIM}and {more} more{DIM:#}"),
    }
}
