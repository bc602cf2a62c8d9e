//! Operators and backends that a program needs, and which of them this runtime has.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use edgepack_format::payload::PayloadFile;
use edgepack_format::pte::{EValue, ExecutionPlan, InstructionArguments, KernelTypes};
use edgepack_format::row::Scalars;
use serde::Serialize;

use super::open::Opened;
use super::payloads::{self, DelegatedOperator, SourceRanges};
use super::probe;
use super::selection::Offered;
use super::tables;
use super::values::operator_name;
use crate::file::File;
use crate::session::Session;
use crate::status::{Failure, Status};
use crate::style::{BAD, DIM, GOOD, NAME, SHAPE, TITLE, WARN};
use crate::table::{Align, Cell, Columns};
use crate::units::count;
use crate::{readable, spelling};

/// The JSON document.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct ProgramNeeds<'a> {
    /// Backends of delegates.
    delegates: &'a [Need],
    /// The file.
    file: &'a str,
    /// Operators in payloads.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    inside_delegates: &'a [DelegatedOperator],
    /// Number of operators and backends that the runtime does not have.
    missing: usize,
    /// Nodes of payloads, and whether this runtime runs them.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    nodes: &'a [probe::Node],
    /// Operators.
    operators: &'a [Need],
    /// Number of nodes that this runtime refuses.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused_nodes: Option<usize>,
}

/// Something a program needs.
#[derive(Serialize, Default)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct Need {
    /// Name of the operator or backend.
    name: String,
    /// Instructions that call it.
    calls: usize,
    /// Element types of its tensors.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    dtypes: BTreeSet<String>,
    /// Methods that name it.
    methods: BTreeSet<String>,
    /// True if the runtime has it; null for a backend if a list of another runtime names none.
    available: Option<bool>,
}

#[derive(Default)]
struct Needs {
    operators: BTreeMap<String, Need>,
    delegates: BTreeMap<String, Need>,
}

/// Lists operators and delegates of all methods.
pub fn list_needs(
    opened: &Opened,
    file: &File,
    offered: Option<&Offered>,
    session: &mut Session,
) -> Result<Status, Failure> {
    let mut needs = Needs::default();
    for plan in opened.program.view()?.plans().iter() {
        needs.add(&plan?);
    }
    let registry = edgepack_kernels::registry();
    for need in needs.operators.values_mut() {
        need.available = Some(match offered {
            Some(offered) => offered.has(&need.name),
            None => registry.find(&need.name).is_some(),
        });
    }
    let backends = edgepack::backends();
    for need in needs.delegates.values_mut() {
        need.available = match offered {
            Some(offered) => offered.has_backend(&need.name),
            None => Some(backends.find(&need.name).is_some()),
        };
    }
    let (operators, delegates): (Vec<_>, Vec<_>) =
        (needs.operators.into_values().collect(), needs.delegates.into_values().collect());
    let source = SourceRanges(&**opened.program.source());
    let inside = payloads::operators(&payloads::describe(
        PayloadFile::new(opened.program.flatbuffer(), &source),
        false,
        session,
    ));
    let probed = if offered.is_some() { Vec::new() } else { probe::probe(&opened.program)? };
    let runtime = if offered.is_some() { "the list" } else { "this runtime" };
    let refused = probed.iter().filter(|node| node.refused.is_some()).count();
    let missing = operators.iter().chain(&delegates).filter(|need| need.available == Some(false)).count();
    let unknown: Vec<&str> = delegates.iter().filter(|need| need.available.is_none()).map(|need| &*need.name).collect();
    if session.json {
        let refused_nodes = (!probed.is_empty()).then_some(refused);
        session.document(&ProgramNeeds {
            delegates: &delegates,
            file: &file.name,
            inside_delegates: &inside,
            missing,
            nodes: &probed,
            operators: &operators,
            refused_nodes,
        })?;
    } else {
        session.title(&file.name)?;
        print("operators", &operators, &mut session.out)?;
        print("delegates", &delegates, &mut session.out)?;
        payloads::print_operators(&inside, &mut session.out)?;
        probe::print(&probed, &mut session.out)?;
        let total = operators.len() + delegates.len();
        match (total, missing) {
            (_, 0) if refused > 0 => {
                writeln!(session.out, "{BAD}this runtime refuses {}{BAD:#}", count(refused, "node"))?;
            }
            (0, _) => writeln!(session.out, "{GOOD}nothing is needed{GOOD:#}")?,
            (_, 0) if !unknown.is_empty() && operators.is_empty() => {}
            (_, 0) if !unknown.is_empty() => writeln!(session.out, "{GOOD}{runtime} has all operators{GOOD:#}")?,
            (_, 0) => writeln!(session.out, "{GOOD}{runtime} has all of them{GOOD:#}")?,
            _ => writeln!(session.out, "{BAD}missing in {runtime}: {missing} of {total}{BAD:#}")?,
        }
        if !unknown.is_empty() {
            writeln!(session.out, "{WARN}backends are not in the list: {}{WARN:#}", unknown.join(", "))?;
        }
    }
    Ok(if missing == 0 && refused == 0 { Status::Fine } else { Status::CannotRun })
}

fn print(title: &str, needs: &[Need], out: &mut dyn Write) -> std::io::Result<()> {
    if needs.is_empty() {
        return Ok(());
    }
    writeln!(out, "{TITLE}{title}{TITLE:#}  {}", needs.len())?;
    let mut columns = Columns::new(2, &[Align::Left, Align::Right, Align::Left, Align::Left]);
    for need in needs {
        let dtypes: Vec<&str> = need.dtypes.iter().map(String::as_str).collect();
        let here = match need.available {
            Some(true) => Cell::new("", DIM),
            Some(false) => Cell::new("missing", BAD),
            None => Cell::new("not in the list", WARN),
        };
        columns.row([
            Cell::new(&need.name, NAME),
            count(need.calls, "call").into(),
            Cell::new(dtypes.join(" "), SHAPE),
            here,
        ]);
    }
    columns.print(out)?;
    writeln!(out)
}

impl Needs {
    fn add(&mut self, plan: &ExecutionPlan<'_>) {
        let method = spelling::name(plan.name.as_deref().unwrap_or("?"));
        let operators: Vec<String> = readable::rows(&plan.operators)
            .iter()
            .map(|row| row.as_ref().map_or("?".to_owned(), operator_name))
            .collect();
        let delegates: Vec<String> = readable::rows(&plan.delegates)
            .into_iter()
            .map(|row| spelling::name(&row.and_then(|delegate| delegate.id).unwrap_or_default()))
            .collect();
        // What is listed is resolved at load, called or not.
        operators.iter().for_each(|name| need(&mut self.operators, name, &method, 0));
        delegates.iter().for_each(|name| need(&mut self.delegates, name, &method, 0));
        let values = readable::rows(&plan.values);
        for chain in tables::chains(plan) {
            for instruction in readable::rows(&chain.instructions).into_iter().flatten() {
                match instruction.instr_args {
                    Some(InstructionArguments::KernelCall(call)) => {
                        let Some(name) = operators.get(call.op_index as usize) else { continue };
                        need(&mut self.operators, name, &method, 1);
                        let entry = self.operators.entry(name.clone()).or_default();
                        dtypes(&values, call.args.as_ref(), &mut entry.dtypes);
                    }
                    Some(InstructionArguments::DelegateCall(call)) => {
                        let Some(name) = delegates.get(call.delegate_index as usize) else { continue };
                        need(&mut self.delegates, name, &method, 1);
                        let entry = self.delegates.entry(name.clone()).or_default();
                        dtypes(&values, call.args.as_ref(), &mut entry.dtypes);
                    }
                    _ => {}
                }
            }
        }
    }
}

fn need(needs: &mut BTreeMap<String, Need>, name: &str, method: &str, calls: usize) {
    let need = needs.entry(name.to_owned()).or_default();
    name.clone_into(&mut need.name);
    need.calls += calls;
    need.methods.insert(method.to_owned());
}

fn dtypes(values: &[Option<EValue<'_>>], args: Option<&Scalars<'_, i32>>, found: &mut BTreeSet<String>) {
    let value = |id: i32| values.get(usize::try_from(id).ok()?)?.as_ref()?.val.as_ref();
    let mut tensor = |id: i32| {
        if let Some(KernelTypes::Tensor(tensor)) = value(id) {
            found.insert(tensor.scalar_type.to_string());
        }
    };
    for id in args.iter().flat_map(|args| args.iter()) {
        match value(id) {
            Some(KernelTypes::TensorList(list)) => list.items.iter().flat_map(|ids| ids.iter()).for_each(&mut tensor),
            Some(KernelTypes::OptionalTensorList(list)) => {
                list.items.iter().flat_map(|ids| ids.iter()).for_each(&mut tensor);
            }
            _ => tensor(id),
        }
    }
}
