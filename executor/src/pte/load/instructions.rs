//! Reads chains into instructions, resolves operators, and checks every argument against its operator's schema.

use std::collections::HashSet;
use std::sync::Arc;

use edgepack_format::finding::ErrorCode;
use edgepack_format::notation::ValueName;
use edgepack_format::operators::MAX_NAME;
use edgepack_format::pte::fast::FastCalls;
use edgepack_format::pte::{
    Chain, DelegateCall, FreeCall, Instruction as InstructionRow, InstructionArguments, JumpFalseCall, KernelCall,
    MoveCall, Operator,
};
use edgepack_format::row::Scalars;
use edgepack_format::scalar::ScalarType;
use edgepack_format::wire;

use super::quick;
use super::{Source, checked};
use crate::api::context::MAX_ARGS;
use crate::api::error::KernelError;
use crate::api::kernel::OperatorRef;
use crate::api::operator::OperatorInfo;
use crate::api::room::grow;
use crate::api::state::{Span, Value, ValueId};
use crate::pte::error::{LoadError, Missing};
use crate::pte::plan_graph::{PlanGraph, PlanInstruction, PlanInstructionKind, PlanOperator};
use crate::pte::registry::Registry;

pub(super) fn read<'r>(
    source: &Source<'_>,
    registry: &'r Registry,
    graph: &mut PlanGraph<'r>,
) -> Result<(), LoadError> {
    operators(source, registry, graph)?;
    let chains = source.plan.chains.clone().unwrap_or_default();
    if chains.is_empty() {
        return Err(LoadError::method(ErrorCode::InvalidProgram, "the method has no chains"));
    }
    for (chain, table) in chains.tables().iter().enumerate() {
        let instructions = table?.get(Chain::INSTRUCTIONS)?;
        let Some(instructions) = instructions else {
            let message = format!("chains[{chain}] has no instruction list");
            return Err(LoadError::method(ErrorCode::InvalidProgram, message));
        };
        let tables = instructions.tables();
        let mut list = Vec::new();
        grow(&mut list, tables.len())?;
        let mut calls = FastCalls::new(tables.buffer());
        for (index, table) in tables.iter().enumerate() {
            if let Some(kind) = quick::call(&mut calls, tables.position(index)?, graph) {
                list.push(PlanInstruction { kind, origin: index as u32, node: None });
                continue;
            }
            let kind = instruction(source, graph, &table?, tables.len()).map_err(|fault| match fault {
                Fault::Unreadable(error) => LoadError::from(error),
                Fault::Refused(what, error) => {
                    let what = what.map_or_else(|| "instruction".to_owned(), str::to_owned);
                    let place = crate::pte::place::place(source.plan, chain, index, what);
                    LoadError::Instruction { place: Box::new(place), error }
                }
            })?;
            list.push(PlanInstruction { kind, origin: index as u32, node: None });
        }
        grow(&mut graph.chains, 1)?;
        graph.chains.push(list);
    }
    check_values(source, graph)
}

/// Holds the values of every call against its operator's schema, and the conditions of jumps. What numbers change is
/// known only now.
fn check_values(source: &Source<'_>, graph: &PlanGraph<'_>) -> Result<(), LoadError> {
    check_lists(source, graph)?;
    for (chain, instructions) in graph.chains.iter().enumerate() {
        for (index, instruction) in instructions.iter().enumerate() {
            let (what, checked) = match instruction.kind {
                PlanInstructionKind::Kernel { operator, args } => {
                    let operator = &graph.operators[operator as usize];
                    let checked = operator.info.check(&graph.args[args.range()], &graph.state, &graph.variable);
                    (&*operator.name, checked)
                }
                PlanInstructionKind::JumpFalse { condition, .. } => {
                    ("JumpFalseCall", check_condition(graph, condition))
                }
                _ => continue,
            };
            if let Err(error) = checked {
                let place = crate::pte::place::place(source.plan, chain, index, what.to_owned());
                return Err(LoadError::Instruction { place: Box::new(place), error });
            }
        }
    }
    Ok(())
}

/// Every call looks through the lists among its arguments, so a few kilobytes of calls that share a long list are paid for
/// as if each had its own.
fn check_lists(source: &Source<'_>, graph: &PlanGraph<'_>) -> Result<(), LoadError> {
    let len = |id: &ValueId| match graph.state.values[*id as usize] {
        Value::IntList(span) | Value::TensorList(span) | Value::OptionalTensorList(span) => u64::from(span.len),
        _ => 0,
    };
    let items = graph.args.iter().map(len).fold(0u64, u64::saturating_add);
    let limit = source.options.limits.unwrap_or(*source.program.limits()).visits;
    if items <= limit {
        return Ok(());
    }
    let message = format!("calls read {items} items of lists, the limits allow {limit}");
    Err(LoadError::method(ErrorCode::OutOfResources, message))
}

/// A condition is a bool, a BOOL tensor, or a number that is computed and may become one.
fn check_condition(graph: &PlanGraph<'_>, condition: ValueId) -> Result<(), KernelError> {
    let value = &graph.state.values[condition as usize];
    let fits = match value {
        Value::Bool(_) => true,
        Value::Tensor(tensor) => graph.state.tensors[*tensor as usize].dtype == ScalarType::BOOL,
        value => value.is_number() && graph.variable[condition as usize],
    };
    if fits {
        return Ok(());
    }
    let message = format!("the condition, {condition}, is a {}", value.kind(), condition = ValueName(condition));
    Err(KernelError::new(ErrorCode::InvalidProgram, message))
}

/// Resolves all operators and backends; what is missing is reported all at once.
fn operators<'r>(source: &Source<'_>, registry: &'r Registry, graph: &mut PlanGraph<'r>) -> Result<(), LoadError> {
    let mut missing = Missing::default();
    let mut seen = HashSet::new();
    for (index, table) in source.plan.operators.clone().unwrap_or_default().tables().iter().enumerate() {
        let table = table?;
        let invalid = |code, message: &str| LoadError::method(code, format!("operators[{index}]: {message}"));
        let Some(mut name) = table.get(Operator::NAME)?.map(|name| name.into_owned()) else {
            return Err(invalid(ErrorCode::InvalidProgram, "it has no name"));
        };
        if let Some(overload) = table.get(Operator::OVERLOAD)?.filter(|overload| !overload.is_empty()) {
            name.push('.');
            name.push_str(&overload);
        }
        if name.len() > MAX_NAME {
            return Err(invalid(ErrorCode::Internal, "its name is longer than 99 bytes"));
        }
        let Some(kernel) = registry.find(&name) else {
            if seen.insert(name.clone()) {
                grow(&mut missing.operators, 1)?;
                missing.operators.push(name);
            }
            continue;
        };
        let info = OperatorInfo::parse(kernel).map_err(|error| invalid(error.code, &error.message))?;
        grow(&mut graph.operators, 1)?;
        let kernel = OperatorRef::Borrowed(kernel);
        graph.operators.push(PlanOperator { name: name.into(), kernel, info: Arc::new(info) });
    }
    seen.clear();
    for delegate in source.plan.delegates.clone().unwrap_or_default().iter() {
        let id = delegate?.id.unwrap_or_default();
        if source.options.backends.find(&id).is_none() && !seen.contains(&*id) {
            seen.insert(id.clone().into_owned());
            grow(&mut missing.backends, 1)?;
            missing.backends.push(id.into_owned());
        }
    }
    if missing.is_empty() { Ok(()) } else { Err(LoadError::Missing(missing)) }
}

/// Reason for which an instruction is refused; its place is known to the caller.
enum Fault {
    Unreadable(wire::ReadError),
    Refused(Option<&'static str>, KernelError),
}

impl From<wire::ReadError> for Fault {
    fn from(error: wire::ReadError) -> Self {
        Fault::Unreadable(error)
    }
}

fn invalid(what: &'static str, message: String) -> Fault {
    Fault::Refused(Some(what), KernelError::new(ErrorCode::InvalidProgram, message))
}

fn instruction(
    source: &Source<'_>,
    graph: &mut PlanGraph<'_>,
    table: &wire::Table<'_>,
    count: usize,
) -> Result<PlanInstructionKind, Fault> {
    let slot = InstructionRow::INSTR_ARGS.index;
    let Some((tag, Some(call))) = table.union(slot)? else {
        return Err(invalid("instruction", "it has no content".into()));
    };
    let values = graph.state.values.len();
    let id = |what: &'static str, id: i32| {
        checked(id.into(), values, what).map_err(|_| invalid(what, format!("{id} of {values}", id = ValueName(id))))
    };
    Ok(match tag {
        InstructionArguments::KERNEL_CALL => {
            let index = call.get(KernelCall::OP_INDEX)?;
            let args = arguments(graph, call.get(KernelCall::ARGS)?)?;
            let operators = graph.operators.len();
            let Some(operator) = usize::try_from(index).ok().and_then(|index| graph.operators.get(index)) else {
                return Err(invalid("KernelCall", format!("operator {index} of {operators}")));
            };
            operator.info.mark_written(&graph.args[args.range()], &mut graph.variable);
            PlanInstructionKind::Kernel { operator: index as u32, args }
        }
        InstructionArguments::DELEGATE_CALL => {
            let index = call.get(DelegateCall::DELEGATE_INDEX)?;
            let args = arguments(graph, call.get(DelegateCall::ARGS)?)?;
            let delegates = source.plan.delegates.as_ref().map_or(0, |delegates| delegates.len());
            if usize::try_from(index).map_or(true, |index| index >= delegates) {
                return Err(invalid("DelegateCall", format!("delegate {index} of {delegates}")));
            }
            // What a delegate writes is known once it exists; until then all of it may change.
            for &id in &graph.args[args.range()] {
                graph.variable[id as usize] = true;
            }
            PlanInstructionKind::Delegate { delegate: index as u32, args }
        }
        InstructionArguments::MOVE_CALL => {
            let from = id("MoveCall", call.get(MoveCall::MOVE_FROM)?)?;
            let to = id("MoveCall", call.get(MoveCall::MOVE_TO)?)?;
            check_move(graph, from, to)?;
            graph.variable[to as usize] = true;
            PlanInstructionKind::Move { from, to }
        }
        InstructionArguments::JUMP_FALSE_CALL => {
            let condition = id("JumpFalseCall", call.get(JumpFalseCall::COND_VALUE_INDEX)?)?;
            let target = call.get(JumpFalseCall::DESTINATION_INSTRUCTION)?;
            match u32::try_from(target) {
                Ok(target) if target as usize <= count => PlanInstructionKind::JumpFalse { condition, target },
                _ => return Err(invalid("JumpFalseCall", format!("a jump to {target} of {count} instructions"))),
            }
        }
        InstructionArguments::FREE_CALL => {
            let value = id("FreeCall", call.get(FreeCall::VALUE_INDEX)?)?;
            match &graph.state.values[value as usize] {
                Value::Tensor(_) => PlanInstructionKind::Free { value },
                other => {
                    let error = KernelError::kind(format!(
                        "{value} is a {}, no tensor",
                        other.kind(),
                        value = ValueName(value)
                    ));
                    return Err(Fault::Refused(Some("FreeCall"), error));
                }
            }
        }
        other => return Err(invalid("instruction", format!("of the unknown kind {other}"))),
    })
}

fn arguments(graph: &mut PlanGraph<'_>, args: Option<Scalars<'_, i32>>) -> Result<Span, Fault> {
    let Some(args) = args else { return Err(invalid("call", "it has no argument list".into())) };
    let (start, values) = (graph.args.len(), graph.state.values.len());
    grow(&mut graph.args, args.len()).map_err(|error| Fault::Refused(None, error.into()))?;
    for id in args.iter() {
        match u32::try_from(id) {
            Ok(id) if (id as usize) < values => graph.args.push(id),
            _ => {
                return Err(invalid(
                    "call",
                    format!("argument {} is {id} of {values}", graph.args.len() - start, id = ValueName(id)),
                ));
            }
        }
    }
    if args.len() > MAX_ARGS {
        return Err(invalid("call", format!("{} arguments, at most {MAX_ARGS} are possible", args.len())));
    }
    Ok(Span { start: start as u32, len: args.len() as u32 })
}

/// A value can be moved onto one of its own kind; a tensor also needs dtype, rank, dim order and room.
fn check_move(graph: &PlanGraph<'_>, from: ValueId, to: ValueId) -> Result<(), Fault> {
    let state = &graph.state;
    let (source, target) = (&state.values[from as usize], &state.values[to as usize]);
    let fault = |message: String| {
        Err(invalid("MoveCall", format!("{from} onto {to}: {message}", from = ValueName(from), to = ValueName(to))))
    };
    match (source, target) {
        (Value::Null, Value::Null) => Ok(()),
        (source, target) if source.is_number() && target.is_number() => Ok(()),
        (Value::Tensor(source), Value::Tensor(target)) => {
            let (source, target) = (&state.tensors[*source as usize], &state.tensors[*target as usize]);
            if source.dtype != target.dtype || state.dim_order(source) != state.dim_order(target) {
                return fault(format!(
                    "{} order {:?} onto {} order {:?}",
                    source.dtype,
                    state.dim_order(source),
                    target.dtype,
                    state.dim_order(target)
                ));
            }
            if target.constant {
                return fault("the destination is a constant".into());
            }
            Ok(())
        }
        _ => fault(format!("a {} onto a {}", source.kind(), target.kind())),
    }
}
