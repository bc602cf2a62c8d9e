//! Checks of chains and their instructions.

use alloc::format;
use alloc::vec::Vec;

use super::facts::{Facts, mark};
use super::quick::Quick;
use crate::check::{Checker, Path};
use crate::pte::{Chain, DelegateCall, FreeCall, Instruction, JumpFalseCall, KernelCall, MoveCall};
use crate::room;
use crate::row::Scalars;
use crate::rules::pte as rule;
use crate::wire::{Table, Tables};

/// Checks the meaning of all chains of a plan, and the structure of their instructions.
pub(super) fn check<'a>(
    chains: Tables<'a>,
    plan: &Facts<'a>,
    quick: &mut Quick<'a>,
    path: &Path<'_>,
    out: &mut Checker,
) {
    if chains.is_empty() {
        out.report(&rule::CHAINS, path, None, "there is none".into());
    }
    let mut given = Given { chains, values: plan.marks.len(), found: None };
    for (index, chain) in chains.iter().enumerate() {
        let Ok(chain) = chain else { continue };
        let path = path.index(index);
        let at = Some(chain.offset());
        for (name, list) in [("inputs", chain.get(Chain::INPUTS)), ("outputs", chain.get(Chain::OUTPUTS))] {
            if let Ok(Some(list)) = list {
                in_range(&list, plan, &rule::CHAIN_IO, &path.field(name), at, out);
            }
        }
        let instructions = match chain.get(Chain::INSTRUCTIONS) {
            Ok(Some(rows)) => rows.tables(),
            Ok(None) => {
                out.report(&rule::INSTRUCTIONS, &path.field("instructions"), at, "there is no list".into());
                continue;
            }
            Err(_) => continue,
        };
        if let Ok(Some(frames)) = chain.get(Chain::STACKTRACE)
            && frames.len() != instructions.len()
        {
            let message = format!("{} traces for {} instructions", frames.len(), instructions.len());
            out.report(&rule::STACKTRACE, &path.field("stacktrace"), at, message);
        }
        let path = path.field("instructions");
        for index in 0..instructions.len() {
            if quick.instruction(&instructions, index, plan, out) {
                continue;
            }
            if out.is_spent() {
                return;
            }
            let path = path.index(index);
            match instructions.get(index) {
                Ok(table) => instruction(table, (index, instructions.len()), plan, &mut given, &path, out),
                Err(error) => out.unreadable(&path, error),
            }
        }
    }
}

/// Values that calls are given last, the place of results; looked for at the first question.
struct Given<'a> {
    chains: Tables<'a>,
    values: usize,
    found: Option<Vec<bool>>,
}

impl Given<'_> {
    /// Returns whether any call is given this value last, and so may write it.
    fn has(&mut self, value: i32, path: &Path<'_>, out: &mut Checker) -> bool {
        if self.found.is_none() {
            self.found = out.roomy(path, self.last_of_calls());
        }
        let found = self.found.as_ref().and_then(|found| found.get(usize::try_from(value).ok()?));
        found.copied().unwrap_or(false)
    }

    fn last_of_calls(&self) -> room::Result<Vec<bool>> {
        let mut found = room::filled(false, self.values)?;
        let lists = self.chains.iter().flatten().filter_map(|chain| chain.get(Chain::INSTRUCTIONS).ok().flatten());
        for tables in lists.map(|rows| rows.tables()) {
            for instruction in tables.iter().flatten() {
                let args = match instruction.union(Instruction::INSTR_ARGS.index) {
                    Ok(Some((1, Some(call)))) => call.get(KernelCall::ARGS),
                    Ok(Some((2, Some(call)))) => call.get(DelegateCall::ARGS),
                    _ => continue,
                };
                let last = args.ok().flatten().and_then(|args| args.iter().last());
                if let Some(found) = last.and_then(|value| found.get_mut(usize::try_from(value).ok()?)) {
                    *found = true;
                }
            }
        }
        Ok(found)
    }
}

/// Checks structure and meaning of one instruction out of so many.
fn instruction(
    table: Table<'_>,
    (index, count): (usize, usize),
    plan: &Facts<'_>,
    given: &mut Given<'_>,
    path: &Path<'_>,
    out: &mut Checker,
) {
    out.table::<Instruction<'_>>(table, path);
    let path = path.field("instr_args");
    let at = Some(table.offset());
    let (kind, args) = match table.union(Instruction::INSTR_ARGS.index) {
        Ok(Some((kind, Some(args)))) => (kind, args),
        Ok(Some((kind, None))) => {
            out.report(&rule::INSTRUCTION_KIND, &path, at, format!("kind {kind}, but its table is absent"));
            return;
        }
        Ok(None) => {
            out.report(&rule::INSTRUCTION_KIND, &path, at, "it has none".into());
            return;
        }
        Err(_) => return,
    };
    let at = Some(args.offset());
    let value = |slot, name: &'static str, out: &mut Checker| match args.get(slot) {
        Ok(value) => plan.mark(value, &rule::ARG_INDEX, &path.field(name), at, out),
        Err(_) => None,
    };
    match kind {
        1 => {
            let index = args.get(KernelCall::OP_INDEX);
            below(index.ok(), plan.operators, "operator", &rule::OPERATOR_INDEX, &path.field("op_index"), at, out);
            arguments(args.get(KernelCall::ARGS), plan, &path.field("args"), at, out);
        }
        2 => {
            let (index, path_index) = (args.get(DelegateCall::DELEGATE_INDEX), path.field("delegate_index"));
            below(index.ok(), plan.delegates, "delegate", &rule::DELEGATE_INDEX, &path_index, at, out);
            arguments(args.get(DelegateCall::ARGS), plan, &path.field("args"), at, out);
        }
        3 => {
            let from = value(MoveCall::MOVE_FROM, "move_from", out);
            let to = value(MoveCall::MOVE_TO, "move_to", out);
            if let (Some(from), Some(to)) = (from, to)
                && from & mark::KIND != to & mark::KIND
                && from & mark::KIND != mark::UNCLEAR
                && to & mark::KIND != mark::UNCLEAR
            {
                let message = format!("{} to {}", mark::name(from & mark::KIND), mark::name(to & mark::KIND));
                out.report(&rule::MOVE_KIND, &path, at, message);
            }
        }
        4 => {
            if let Some(found) = value(JumpFalseCall::COND_VALUE_INDEX, "cond_value_index", out)
                && found & mark::TRUTH == 0
                && found & mark::KIND != mark::UNCLEAR
                && !(matches!(found & mark::KIND, mark::INT | mark::DOUBLE)
                    && args.get(JumpFalseCall::COND_VALUE_INDEX).is_ok_and(|value| given.has(value, &path, out)))
            {
                let what = match found & mark::KIND {
                    mark::TENSOR => "a tensor that is not bool",
                    kind => mark::name(kind),
                };
                out.report(&rule::JUMP_CONDITION, &path.field("cond_value_index"), at, format!("it is {what}"));
            }
            if let Ok(target) = args.get(JumpFalseCall::DESTINATION_INSTRUCTION) {
                let path = path.field("destination_instruction");
                match usize::try_from(target) {
                    Ok(target) if target == index => {
                        out.report(&rule::JUMP_SELF, &path, at, format!("instruction {index} jumps to itself"));
                    }
                    Ok(target) if target <= count => {}
                    _ => out.report(&rule::JUMP_TARGET, &path, at, format!("{target} of {count} instructions")),
                }
            }
        }
        5 => {
            if let Some(found) = value(FreeCall::VALUE_INDEX, "value_index", out)
                && !matches!(found & mark::KIND, mark::TENSOR | mark::UNCLEAR)
            {
                let message = format!("it is of kind {}", mark::name(found & mark::KIND));
                out.report(&rule::FREE_KIND, &path.field("value_index"), at, message);
            }
        }
        kind => out.report(&rule::INSTRUCTION_KIND, &path, at, format!("kind {kind}")),
    }
}

fn below(
    index: Option<i32>,
    count: usize,
    what: &str,
    broken: &'static crate::finding::Rule,
    path: &Path<'_>,
    at: Option<u32>,
    out: &mut Checker,
) {
    if let Some(index) = index
        && !usize::try_from(index).is_ok_and(|index| index < count)
    {
        out.report(broken, path, at, format!("{what} {index} of {count}"));
    }
}

fn arguments(
    args: crate::wire::Result<Option<Scalars<'_, i32>>>,
    plan: &Facts<'_>,
    path: &Path<'_>,
    at: Option<u32>,
    out: &mut Checker,
) {
    match args {
        Ok(Some(args)) => in_range(&args, plan, &rule::ARG_INDEX, path, at, out),
        Ok(None) => out.report(&rule::ARGS, path, at, "there is no list".into()),
        Err(_) => {}
    }
}

/// Every number is a value index.
pub(super) fn in_range(
    list: &Scalars<'_, i32>,
    plan: &Facts<'_>,
    broken: &'static crate::finding::Rule,
    path: &Path<'_>,
    at: Option<u32>,
    out: &mut Checker,
) {
    for (place, value) in list.iter().enumerate() {
        plan.mark(value, broken, &path.index(place), at, out);
    }
}
