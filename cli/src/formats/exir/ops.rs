//! Operators that a program of export IR calls, and what becomes of each call.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use edgepack_exir::decompose;
use edgepack_exir::graph::{Argument, Graph};
use edgepack_exir::lower::is_written_out;
use edgepack_exir::operators::Operators;
use serde::Serialize;

use super::program::with_program;
use crate::file::{File, read_head};
use crate::session::Session;
use crate::spelling;
use crate::status::{Failure, Status};
use crate::style::{BAD, DIM, GOOD, NAME, TITLE};
use crate::table::{Align, Cell, Columns};
use crate::units::count;

/// The JSON document.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct GraphNeeds<'a> {
    /// Backends that parts of the graph were given to.
    delegates: &'a BTreeSet<String>,
    /// The file.
    file: &'a str,
    /// Number of operators and backends that this runtime does not have.
    missing: usize,
    /// Operators of the graph.
    operators: &'a [Need],
}

/// An operator of a graph.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct Need {
    /// Name of the operator.
    name: String,
    /// Number of calls.
    calls: usize,
    /// True if lowering decomposes the operator into others first.
    composite: bool,
    /// Operator of a program that replaces this one.
    emitted: Option<String>,
    /// True if this runtime has it.
    available: bool,
}

/// Lists what the first program of an archive calls, and what becomes of each call.
pub fn list(file: &File, session: &mut Session) -> Result<Status, Failure> {
    let content = read_head(&*file.source, file.source.len())?;
    let (graph, backends) = with_program(&content, &file.name, |program| {
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
        session.document(&GraphNeeds { delegates: &backends, file: &file.name, missing, operators: &needs })?;
    } else {
        session.title(&file.name)?;
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
            let names: Vec<String> = backends.iter().map(|name| spelling::name(name).to_string()).collect();
            writeln!(session.out, "{TITLE}delegates{TITLE:#}  {}  {BAD}missing{BAD:#}", names.join(" "))?;
        }
        match missing {
            0 => writeln!(session.out, "{GOOD}this runtime has all of them{GOOD:#}")?,
            _ => writeln!(session.out, "{BAD}missing: {missing} of {}{BAD:#}", needs.len() + backends.len())?,
        }
    }
    Ok(if missing == 0 { Status::Fine } else { Status::CannotRun })
}

/// Calls `each` for every call of an operator, with the operator of a program that replaces it.
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
