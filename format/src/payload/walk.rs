//! The walk over a program that finds every payload whose decoder is known, with its bytes, options, calls and the sizes
//! of named data.
//!
//! Parts of the program around that cannot be read are skipped: its own verifier reports them. Tables, instructions,
//! arguments and bytes that are looked at are paid for, those of a payload that several delegates name each time.

use alloc::borrow::Cow;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::vec::Vec;

use super::file::PayloadFile;
use super::named::NamedEntries;
use super::{Call, Payload, PayloadFormat, Payloads};
use crate::check::{Checker, Path, StructureRules};
use crate::finding::Findings;
use crate::limits::Limits;
use crate::pte::{
    BackendDelegate, BackendDelegateDataReference, Chain, CompileSpec, DataLocation, EValue, ExecutionPlan,
    Instruction, InstructionArguments, Program,
};
use crate::room;
use crate::rules::pte as rule;
use crate::wire;

/// Visits that an argument of a call costs: its value is read from its row.
const ARGUMENT: u64 = 16;

const PROGRAM_RULES: StructureRules = StructureRules {
    malformed: &rule::MALFORMED,
    misaligned: &rule::MISALIGNED,
    text: &rule::TEXT,
    limits: &rule::LIMITS,
};

/// Holder of a payload's bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Holder {
    /// Segment of the file, by index.
    Segment(u32),
    /// Row of `Program.backend_delegate_data`, by index.
    Inline(u32),
}

/// A payload that was found.
pub struct Found<'f> {
    /// Decoder for the backend that the delegate names.
    pub format: &'f dyn PayloadFormat,
    /// Payload as the decoder gets it.
    pub payload: Payload<'f>,
    /// Holder of the bytes.
    pub holder: Holder,
    /// The place of its first byte in the file.
    pub offset: u64,
}

type Visit<'v> = dyn FnMut(&Found<'_>, &Path<'_>, &mut Checker) + 'v;

/// Calls of the delegates of one method: indices of values, by delegate.
type Calls = BTreeMap<usize, Vec<Vec<i32>>>;

impl Payloads {
    /// Calls back with every payload whose decoder is known, in the order of methods and delegates, and with its place:
    /// `execution_plan[0].delegates[2].processed`. The findings are those that the callback made, and what kept the walk
    /// from looking at a payload.
    pub fn visit(&self, file: &PayloadFile<'_>, limits: &Limits, visit: &mut Visit<'_>) -> Findings {
        let mut out = Checker::new(limits, PROGRAM_RULES);
        let path = Path::ROOT.field("execution_plan");
        if !self.formats.is_empty()
            && let Err(error) = self.methods(file, limits, &path, &mut out, visit)
        {
            out.unreadable(&path, error);
        }
        out.findings
    }

    fn methods(
        &self,
        file: &PayloadFile<'_>,
        limits: &Limits,
        path: &Path<'_>,
        out: &mut Checker,
        visit: &mut Visit<'_>,
    ) -> wire::Result<()> {
        let Ok(Some(plans)) = file.root.tables(Program::EXECUTION_PLAN.index) else { return Ok(()) };
        let mut named_data = None;
        for (method, plan) in plans.iter().enumerate() {
            let Ok(plan) = plan else { continue };
            let Ok(Some(delegates)) = plan.tables(ExecutionPlan::DELEGATES.index) else { continue };
            let path = path.index(method);
            let path = path.field("delegates");
            let mut all_calls = None;
            for (index, delegate) in delegates.iter().enumerate() {
                let Ok(delegate) = delegate else { continue };
                out.budget().charge(1, delegate.offset())?;
                let Some((format, reference)) = self.decoder(&delegate) else { continue };
                let path = path.index(index);
                let path = path.field("processed");
                let bytes = bytes_of(file, reference, limits, format, &path, out)?;
                let Some(Located { bytes, offset, holder }) = bytes else { continue };
                let named_data = match &mut named_data {
                    Some(known) => known,
                    unknown => unknown.insert(NamedEntries::of(file, out)?),
                };
                let calls = match &mut all_calls {
                    Some(known) => known,
                    unknown => unknown.insert(calls_of(&plan, out)?),
                };
                let calls = arguments(&plan, calls.get(&index).map_or(&[][..], Vec::as_slice), out)?;
                let options = options(&delegate, out)?;
                let payload = Payload { bytes: &bytes, options: &options, calls: &calls, named_data };
                visit(&Found { format, payload, holder, offset }, &path, out);
                if out.is_spent() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// The decoder of a delegate's backend, and the place of its payload.
    fn decoder(&self, delegate: &wire::Table<'_>) -> Option<(&dyn PayloadFormat, BackendDelegateDataReference)> {
        let backend = delegate.string(BackendDelegate::ID.index).ok()??;
        let format = self.find(core::str::from_utf8(backend.bytes()).ok()?)?;
        Some((format, delegate.get(BackendDelegate::PROCESSED).ok()??))
    }
}

/// Bytes of a payload.
struct Located<'f> {
    bytes: Cow<'f, [u8]>,
    /// The place of the first in the file.
    offset: u64,
    holder: Holder,
}

/// The bytes of a payload. `None` if they cannot be looked at: of a segment that is reported, of a row the program's own
/// rules say so.
fn bytes_of<'f>(
    file: &PayloadFile<'f>,
    at: BackendDelegateDataReference,
    limits: &Limits,
    format: &dyn PayloadFormat,
    path: &Path<'_>,
    out: &mut Checker,
) -> wire::Result<Option<Located<'f>>> {
    if at.location == DataLocation::INLINE {
        let Some((bytes, offset)) = file.inline(at.index) else { return Ok(None) };
        out.budget().charge_bytes(bytes.len(), 0)?;
        let holder = Holder::Inline(at.index);
        return Ok(Some(Located { bytes: Cow::Borrowed(bytes), offset, holder }));
    }
    let Some(range) = file.segment(at.index).filter(|_| at.location == DataLocation::SEGMENT) else {
        return Ok(None);
    };
    let len = range.end.saturating_sub(range.start);
    let most = limits.segment_bytes.min(limits.memory_bytes);
    if len > most {
        let message = format!("a payload of {len} bytes, of which {most} may be read");
        out.report(format.rules().limits, path, None, message);
        return Ok(None);
    }
    out.budget().charge_bytes(usize::try_from(len).unwrap_or(usize::MAX), 0)?;
    let Some(bytes) = file.read(range.clone()) else {
        let message = format!("bytes {:#x}..{:#x} of the file cannot be read", range.start, range.end);
        out.report(format.rules().malformed, path, None, message);
        return Ok(None);
    };
    Ok(Some(Located { bytes, offset: range.start, holder: Holder::Segment(at.index) }))
}

/// The calls of every delegate of a method.
fn calls_of(plan: &wire::Table<'_>, out: &mut Checker) -> wire::Result<Calls> {
    let mut calls = Calls::new();
    let Ok(Some(chains)) = plan.tables(ExecutionPlan::CHAINS.index) else { return Ok(calls) };
    for chain in chains.iter().flatten() {
        let Ok(Some(instructions)) = chain.tables(Chain::INSTRUCTIONS.index) else { continue };
        for instruction in instructions.iter().flatten() {
            out.budget().charge(1, instruction.offset())?;
            let Ok(Some(InstructionArguments::DelegateCall(call))) = instruction.get(Instruction::INSTR_ARGS) else {
                continue;
            };
            let Ok(index) = usize::try_from(call.delegate_index) else { continue };
            let args = call.args.unwrap_or_default();
            out.budget().charge((args.len() as u64).saturating_mul(ARGUMENT), instruction.offset())?;
            let mut list = room::with_room(args.len())?;
            list.extend(args.iter());
            room::push(calls.entry(index).or_default(), list)?;
        }
    }
    Ok(calls)
}

/// The values that calls name.
fn arguments<'p>(plan: &wire::Table<'p>, calls: &[Vec<i32>], out: &mut Checker) -> wire::Result<Vec<Call<'p>>> {
    let values = plan.tables(ExecutionPlan::VALUES.index).ok().flatten();
    let value = |id: i32| values.as_ref()?.get(usize::try_from(id).ok()?).ok()?.get(EValue::VAL).ok()?;
    let mut list = room::with_room(calls.len())?;
    for ids in calls {
        // A delegate of another place may have the same calls again.
        out.budget().charge(ids.len() as u64, plan.offset())?;
        let mut args = room::with_room(ids.len())?;
        args.extend(ids.iter().map(|id| value(*id)));
        list.push(Call { args, values: room::copy_of(ids)? });
    }
    Ok(list)
}

/// Options that can be read.
fn options<'p>(delegate: &wire::Table<'p>, out: &mut Checker) -> wire::Result<Vec<CompileSpec<'p>>> {
    let specs = delegate.get(BackendDelegate::COMPILE_SPECS).ok().flatten().unwrap_or_default();
    out.budget().charge(specs.len() as u64, delegate.offset())?;
    let mut list = room::with_room(specs.len())?;
    list.extend(specs.iter().flatten());
    Ok(list)
}
