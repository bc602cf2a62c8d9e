//! The verifier of traces: every rule a file can break, all findings, in linear time.

use alloc::format;
use alloc::string::ToString;

use super::file::declared_len;
use super::value::check_value;
use super::{AllocationEvent, DebugEvent, ETDump, Event, IDENTIFIER, PREFIX_LEN, ProfileEvent, RunData, TraceRef};
use crate::check::{Checker, Path, StructureRules};
use crate::finding::Findings;
use crate::limits::Limits;
use crate::row::Table as _;
use crate::rules::trace as rule;
use crate::wire;

const STRUCTURE: StructureRules = StructureRules {
    malformed: &rule::MALFORMED,
    misaligned: &rule::MISALIGNED,
    text: &rule::TEXT,
    limits: &rule::LIMITS,
};

/// Result of verification.
pub struct Verdict<'a> {
    /// Everything found.
    pub findings: Findings,
    /// The trace, as far as it could be read at all.
    pub trace: Option<TraceRef<'a>>,
}

impl<'a> TraceRef<'a> {
    /// Parses and verifies a whole file.
    ///
    /// The errors are all findings, the harmless ones included.
    pub fn parse(bytes: &'a [u8], limits: &Limits) -> Result<Self, Findings> {
        match verify(bytes, limits) {
            Verdict { findings, trace: Some(trace) } if !findings.has_errors() => Ok(trace),
            Verdict { findings, .. } => Err(findings),
        }
    }
}

/// Verifies a trace: its length, structure, events.
pub fn verify<'a>(bytes: &'a [u8], limits: &Limits) -> Verdict<'a> {
    let mut out = Checker::new(limits, STRUCTURE);
    let trace = file(bytes, &mut out);
    Verdict { findings: out.findings, trace }
}

fn file<'a>(bytes: &'a [u8], out: &mut Checker) -> Option<TraceRef<'a>> {
    let identifier = bytes.get(8..).and_then(|rest| rest.first_chunk::<4>()).copied().unwrap_or_default();
    if identifier != IDENTIFIER {
        let message = format!("the identifier is {}", identifier.escape_ascii());
        out.report(&rule::IDENTIFIER, &Path::ROOT, None, message);
        return None;
    }
    let (len, want) = (bytes.len() as u64, declared_len(bytes).unwrap_or(0));
    out.findings.announce(len, Some(want));
    if len != want {
        let rule = if len < want { &rule::LENGTH } else { &rule::TRAILING };
        out.report(rule, &Path::ROOT, Some(0), format!("{want} bytes are declared, the file has {len}"));
    }
    let bytes = usize::try_from(want).ok().and_then(|want| bytes.get(..want)).unwrap_or(bytes);
    match wire::Table::root_at(bytes, PREFIX_LEN) {
        Ok(table) => out.table::<ETDump<'_>>(table, &Path::ROOT),
        Err(error) => out.unreadable(&Path::ROOT, error),
    }
    // What cannot be read has been reported by the check.
    let trace = TraceRef::reopen(bytes).ok()?;
    if trace.root().version != 0 {
        let message = format!("version {}, this reader knows 0", trace.root().version);
        out.report(&rule::VERSION, &Path::ROOT.field("version"), None, message);
    }
    if !out.is_spent() {
        for (index, block) in trace.blocks().tables().iter().enumerate() {
            if let Ok(block) = block.and_then(RunData::decode) {
                check_block(&block, &Path::ROOT.field("run_data").index(index), out);
            }
        }
    }
    Some(trace)
}

fn check_block(block: &RunData<'_>, path: &Path<'_>, out: &mut Checker) {
    let allocators = block.allocators.as_ref().map_or(0, |rows| rows.len());
    let events = block.events.clone().unwrap_or_default();
    for (index, table) in events.tables().iter().enumerate() {
        let Ok(table) = table else { continue };
        let path = path.field("events");
        let path = path.index(index);
        let at = Some(table.offset());
        let slots = [Event::PROFILE_EVENT.index, Event::ALLOCATION_EVENT.index, Event::DEBUG_EVENT.index];
        let set = slots.iter().filter(|slot| table.has(**slot)).count();
        if set != 1 {
            out.report(&rule::EVENT, &path, at, format!("{set} of the three are set"));
        }
        if let Ok(Some(event)) = table.get(Event::PROFILE_EVENT) {
            check_profile(&event, &path.field("profile_event"), at, out);
        }
        if let Ok(Some(event)) = table.get(Event::ALLOCATION_EVENT) {
            check_allocation(&event, allocators, &path.field("allocation_event"), at, out);
        }
        if let Ok(Some(event)) = table.get(Event::DEBUG_EVENT) {
            check_debug(&event, &path.field("debug_event"), at, out);
        }
    }
}

fn check_profile(event: &ProfileEvent<'_>, path: &Path<'_>, at: Option<u32>, out: &mut Checker) {
    delegate_id(event.delegate_debug_id_int, event.delegate_debug_id_str.as_deref(), path, at, out);
    if event.end_time < event.start_time {
        let message = format!("starts at {}, ends at {}", event.start_time, event.end_time);
        out.report(&rule::TIMES, path, at, message);
    }
}

fn check_allocation(event: &AllocationEvent, allocators: usize, path: &Path<'_>, at: Option<u32>, out: &mut Checker) {
    let known = usize::try_from(event.allocator_id).is_ok_and(|id| (1..=allocators).contains(&id));
    if !known {
        let message = format!("allocator {} of {allocators}", event.allocator_id);
        out.report(&rule::ALLOCATOR, path, at, message);
    }
}

fn check_debug(event: &DebugEvent<'_>, path: &Path<'_>, at: Option<u32>, out: &mut Checker) {
    delegate_id(event.delegate_debug_id_int, event.delegate_debug_id_str.as_deref(), path, at, out);
    match &event.debug_entry {
        Some(value) => check_value(value, &path.field("debug_entry"), at, out),
        None => out.report(&rule::DEBUG_ENTRY, path, at, "there is no value".to_string()),
    }
}

fn delegate_id(number: i32, text: Option<&str>, path: &Path<'_>, at: Option<u32>, out: &mut Checker) {
    if let Some(text) = text.filter(|text| number != -1 && !text.is_empty()) {
        out.report(&rule::DELEGATE_ID, path, at, format!("both {number} and {text:?}"));
    }
}
