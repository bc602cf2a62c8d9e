//! From a verified program to a graph: values, memory, instructions.

mod delegates;
mod instructions;
mod memory;
mod quick;
mod values;

use edgepack_format::finding::ErrorCode;
use edgepack_format::notation::ValueName;
use edgepack_format::pte::fast::FastValues;
use edgepack_format::pte::{ExecutionPlan, ProgramRef};
use edgepack_format::row::Scalars;
use edgepack_loader::{MergedData, Program};

use crate::api::room::{filled, grow};
use crate::api::state::{State, Value, ValueId};
use crate::pte::account::Account;
use crate::pte::error::LoadError;
use crate::pte::options::Options;
use crate::pte::plan_graph::{Found, Memory, PlanGraph};
use crate::pte::registry::Registry;

pub(crate) use delegates::{LoadedDelegate, delegates, packer_of_constants};
pub(crate) use memory::{Covered, Initial, InitialPiece, initial_pieces, write_initial_values};

/// A loaded graph and what the method holds besides it.
pub(crate) struct Loaded<'r> {
    pub graph: PlanGraph<'r>,
    /// Tensors whose memory starts with data of the file.
    pub initial: Vec<Initial>,
    /// Tensors without storage in the program, for which private storage was made: inputs and outputs among them can
    /// be bound to a caller's memory for one call.
    pub unplanned: Vec<u32>,
    /// External data, merged, if the method was given any or needs any.
    pub data: MergedData,
}

/// Sources that all phases of loading read.
struct Source<'a> {
    program: &'a Program,
    view: &'a ProgramRef<'a>,
    plan: &'a ExecutionPlan<'a>,
    options: &'a Options,
    data: &'a MergedData,
}

pub(crate) fn load<'r>(
    program: &Program,
    view: &ProgramRef<'_>,
    plan: &ExecutionPlan<'_>,
    registry: &'r Registry,
    options: &Options,
) -> Result<Loaded<'r>, LoadError> {
    let limits = options.limits.unwrap_or(*program.limits());
    let data = MergedData::new(options.data.iter().cloned())?;
    let source = Source { program, view, plan, options, data: &data };

    let mut memory = Memory::default();
    let mut account = Account::new(&limits);
    memory::arenas(&source, &mut memory, &mut account)?;
    let values = plan.values.clone().unwrap_or_default();
    let mut state = State::with_capacity(values.len())?;
    let mut places = memory::Places::new(&source, account)?;
    let fast = FastValues::new(values.tables().buffer());
    values::read(&source, &values.tables(), &mut state, &mut memory, &mut places, Some(fast))?;

    let inputs = ids(&plan.inputs, &state, "inputs")?;
    let outputs = ids(&plan.outputs, &state, "outputs")?;
    let mut graph = PlanGraph {
        variable: filled(false, state.values.len())?,
        state,
        operators: Vec::new(),
        chains: Vec::new(),
        args: Vec::new(),
        inputs,
        outputs,
        memory,
        account: places.account,
        found: Found::new(),
    };
    instructions::read(&source, registry, &mut graph)?;
    for &input in &graph.inputs {
        // Callers choose numbers too, where instructions read them. Text and missing values are what the program was traced with.
        let value = graph.state.values[input as usize];
        graph.variable[input as usize] |= value.is_number();
        let Value::Tensor(tensor) = value else { continue };
        graph.variable[input as usize] = true;
        if graph.state.tensors[tensor as usize].constant {
            return Err(LoadError::value(input as usize, ErrorCode::InvalidProgram, "an input is a constant"));
        }
    }
    let unplanned = memory::private_storage(&mut graph, &places.without_storage)?;
    Ok(Loaded { graph, initial: places.initial, unplanned, data })
}

fn ids(list: &Option<Scalars<'_, i32>>, state: &State, what: &str) -> Result<Vec<ValueId>, LoadError> {
    let ids = list.iter().flat_map(|list| list.iter());
    let mut found = Vec::new();
    grow(&mut found, list.as_ref().map_or(0, |list| list.len()))?;
    for id in ids {
        found.push(checked(id.into(), state.values.len(), what)?);
    }
    Ok(found)
}

/// A value index of the file as an id.
fn checked(id: i64, values: usize, what: &str) -> Result<ValueId, LoadError> {
    match u32::try_from(id) {
        Ok(id) if (id as usize) < values => Ok(id),
        _ => Err(LoadError::method(ErrorCode::InvalidProgram, format!("{what}: {id} of {values}", id = ValueName(id)))),
    }
}
