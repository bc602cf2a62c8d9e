//! Checks of kernel calls against the schemas of their operators: as many values as the schema asks for, of the right
//! kinds, and nothing constant where the operator writes.
//!
//! Not part of opening a program: whoever runs it resolves every call anyway and refuses what does not fit. Here it is
//! said for all calls at once, also for operators that are not implemented here.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::facts::mark;
use crate::check::{Checker, Path};
use crate::notation::ValueName;
use crate::operators::{Schema, lookup_overload};
use crate::pte::{
    Chain, EValue, ExecutionPlan, ExtraTensorInfo, Instruction, KernelCall, Operator, OptionalTensorList, Tensor,
    TensorDataLocation,
};
use crate::room;
use crate::rules::pte as rule;
use crate::wire::{ReadError, ReadErrorKind, Result, Table, Tables};

/// An operator of a plan, as far as it is known.
type Known = Option<Schema<'static>>;

/// Checks every kernel call of a program without error-level findings.
pub(super) fn check(plans: Tables<'_>, out: &mut Checker) {
    let path = Path::ROOT.field("execution_plan");
    for (index, plan) in plans.iter().enumerate() {
        let path = path.index(index);
        // What cannot be read was an error, so there is nothing of the kind; memory can be missing.
        if let Err(error @ ReadError { kind: ReadErrorKind::Memory, .. }) =
            plan.and_then(|plan| check_plan(&plan, &path, out))
        {
            return out.unreadable(&path, error);
        }
    }
}

fn check_plan(plan: &Table<'_>, path: &Path<'_>, out: &mut Checker) -> Result<()> {
    let marks = marks(plan.tables(ExecutionPlan::VALUES.index)?.unwrap_or(Tables::empty()))?;
    let operators = plan.tables(ExecutionPlan::OPERATORS.index)?.unwrap_or(Tables::empty());
    let schemas = schemas(operators, &path.field("operators"), out)?;
    let path = path.field("chains");
    for (index, chain) in plan.tables(ExecutionPlan::CHAINS.index)?.unwrap_or(Tables::empty()).iter().enumerate() {
        let path = path.index(index);
        let path = path.field("instructions");
        let instructions = chain?.tables(Chain::INSTRUCTIONS.index)?.unwrap_or(Tables::empty());
        for (index, instruction) in instructions.iter().enumerate() {
            if let Some((1, Some(call))) = instruction?.union(Instruction::INSTR_ARGS.index)? {
                check_call(&call, &schemas, &marks, &path.index(index), out)?;
            }
        }
    }
    Ok(())
}

/// The kinds of all values; tensors that are constant and lists that hold one are marked as such.
fn marks(values: Tables<'_>) -> Result<Vec<u8>> {
    let mut marks = room::filled(0, values.len())?;
    for (index, value) in values.iter().enumerate() {
        let Some((kind, Some(value))) = value?.union(EValue::VAL.index)? else {
            put(&mut marks, index, mark::NULL);
            continue;
        };
        let constant = match kind {
            mark::TENSOR => is_constant(&value)?,
            // Both kinds of list keep their items alike, and tensors come before the lists that hold them.
            mark::TENSOR_LIST | mark::OPTIONAL_TENSOR_LIST => {
                value.get(OptionalTensorList::ITEMS)?.is_some_and(|items| {
                    let found = |item: i32| usize::try_from(item).ok().and_then(|item| marks.get(item));
                    items.iter().any(|item| found(item).is_some_and(|found| found & mark::CONSTANT != 0))
                })
            }
            _ => false,
        };
        put(&mut marks, index, kind | if constant { mark::CONSTANT } else { 0 });
    }
    Ok(marks)
}

fn put(marks: &mut [u8], index: usize, found: u8) {
    if let Some(place) = marks.get_mut(index) {
        *place = found;
    }
}

fn is_constant(tensor: &Table<'_>) -> Result<bool> {
    if tensor.has(Tensor::ALLOCATION_INFO.index) {
        return Ok(false);
    }
    let external = match tensor.table(Tensor::EXTRA_TENSOR_INFO.index)? {
        Some(extra) => extra.get(ExtraTensorInfo::LOCATION)? == TensorDataLocation::EXTERNAL,
        None => false,
    };
    Ok(external || tensor.get(Tensor::DATA_BUFFER_IDX)? > 0)
}

fn schemas(operators: Tables<'_>, path: &Path<'_>, out: &mut Checker) -> Result<Vec<Known>> {
    let mut schemas = room::with_room(operators.len())?;
    let mut names = room::with_room(operators.len())?;
    for (index, operator) in operators.iter().enumerate() {
        let operator = operator?;
        let name = operator.get(Operator::NAME)?.unwrap_or_default();
        let overload = operator.get(Operator::OVERLOAD)?.unwrap_or_default();
        let schema = lookup_overload(&name, &overload).and_then(|text| Schema::parse(text).ok());
        if schema.is_none() {
            let message = format!("`{name}`, overload `{overload}`");
            out.report(&rule::OPERATOR_UNKNOWN, &path.index(index), Some(operator.offset()), message);
        }
        schemas.push(schema);
        names.push((format!("{name}.{overload}"), index));
    }
    let texts = room::collect(names.iter().map(|(name, index): &(String, usize)| (name.as_bytes(), *index)))?;
    for (name, first, again) in super::data::duplicates(texts) {
        let message = format!("`{}` is operator {first} already", name.escape_ascii());
        out.report(&rule::OPERATOR_TWICE, &path.index(again), None, message);
    }
    Ok(schemas)
}

fn check_call(call: &Table<'_>, schemas: &[Known], marks: &[u8], path: &Path<'_>, out: &mut Checker) -> Result<()> {
    let operator = usize::try_from(call.get(KernelCall::OP_INDEX)?).ok();
    let (Some(Some(schema)), Some(args)) =
        (operator.and_then(|operator| schemas.get(operator)), call.get(KernelCall::ARGS)?)
    else {
        return Ok(());
    };
    let at = Some(call.offset());
    let path = path.field("instr_args");
    let path = path.field("args");
    if args.len() != schema.stack_len() {
        let message = format!("{} values, {} takes {}", args.len(), schema.full_name(), schema.stack_len());
        out.report(&rule::CALL_LENGTH, &path, at, message);
        return Ok(());
    }
    for (place, value) in args.iter().enumerate() {
        let Some(found) = usize::try_from(value).ok().and_then(|value| marks.get(value)) else { continue };
        let kind = found & mark::KIND;
        let name = schema.args().get(place).map_or("result", |arg| arg.name);
        if !schema.accepts(place, kind) {
            let message = format!("`{name}` of {} cannot be {}", schema.full_name(), mark::name(kind));
            out.report(&rule::CALL_KIND, &path.index(place), at, message);
        } else if schema.is_mutated(place) && found & mark::CONSTANT != 0 {
            let message =
                format!("{} writes `{name}`, but {value} is constant", schema.full_name(), value = ValueName(value));
            out.report(&rule::CALL_CONSTANT, &path.index(place), at, message);
        }
    }
    Ok(())
}
