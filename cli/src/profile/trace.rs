//! Profiles of traces that other runtimes, or this one, recorded.
//!
//! A time inside of another is taken off it: of `OPERATOR_CALL` the kernel's own, of `DELEGATE_CALL` those of its parts. So
//! times add up, and what is left of a call is what the runtime spent around the work.

use std::collections::HashMap;

use edgepack_format::trace::{ETDump, Event, ProfileEvent, RunData};

use super::bounds::check_times;
use super::watch::{Busy, Node, Observation, Step};
use crate::readable;
use crate::spelling::short;
use crate::status::Failure;

/// Event of a whole run.
const RUN: &str = "Method::execute";
/// Event around a kernel.
const OPERATOR: &str = "OPERATOR_CALL";
/// Event around the parts of a delegate.
const DELEGATE: &str = "DELEGATE_CALL";
/// Beginning of the names of kernels.
const KERNEL: &str = "native_call_";

/// Identity of an instruction in all runs.
type Key = (i32, i32, String, Option<Node>);

/// Returns the runs of a trace, as if they were watched. Blocks without instructions, as those of loading, are no runs.
pub fn observed(trace: &ETDump<'_>) -> Result<Observation, Failure> {
    let mut observation = Observation::default();
    let mut steps: HashMap<Key, usize> = HashMap::new();
    for block in readable::sound_rows(&trace.run_data) {
        run(&block, &mut observation, &mut steps)?;
    }
    let runs = observation.runs.len();
    observation.steps.iter_mut().for_each(|step| step.samples.resize(runs, 0));
    Ok(observation)
}

/// Time of an event.
fn ticks(event: &ProfileEvent<'_>) -> u64 {
    event.end_time.saturating_sub(event.start_time)
}

fn run(block: &RunData<'_>, observation: &mut Observation, known: &mut HashMap<Key, usize>) -> Result<(), Failure> {
    let events: Vec<ProfileEvent<'_>> = readable::sound_rows(&block.events)
        .into_iter()
        .filter_map(|Event { profile_event, .. }| profile_event)
        .collect();
    // Events of the runtime itself are outside of any chain.
    let inside: Vec<&ProfileEvent<'_>> =
        events.iter().filter(|event| event.chain_index >= 0 && event.instruction_id >= 0).collect();
    let Some(start) = inside.iter().map(|event| event.start_time).min() else { return Ok(()) };
    check_times(observation.runs.len() + 1, observation.steps.len())?;
    let whole = events.iter().find(|event| event.chain_index < 0 && event.name.as_deref() == Some(RUN));
    let start = whole.map_or(start, |whole| whole.start_time);
    let run = observation.runs.len();
    let end = inside.iter().map(|event| event.end_time).max().unwrap_or(start);
    observation.runs.push(whole.map_or(end.saturating_sub(start), ticks));
    observation.timeline.clear();

    // Ticks of what is inside of the event around an instruction, until that event comes.
    let mut within: HashMap<(i32, i32), u64> = HashMap::new();
    for event in inside {
        let place = (event.chain_index, event.instruction_id);
        let name = event.name.as_deref().unwrap_or_default();
        let node = node(event);
        let around = node.is_none() && (name == OPERATOR || name == DELEGATE);
        let own = match around {
            true => ticks(event).saturating_sub(within.remove(&place).unwrap_or(0)),
            false => {
                let sum = within.entry(place).or_default();
                *sum = sum.saturating_add(ticks(event));
                ticks(event)
            }
        };
        let name = match &node {
            Some(Node::Text(text)) if name.is_empty() => text.clone(),
            _ => short(name.strip_prefix(KERNEL).unwrap_or(name)),
        };
        let key = (place.0, place.1, name.clone(), node.clone());
        let steps = &mut observation.steps;
        if !known.contains_key(&key) {
            check_times(run + 1, steps.len() + 1)?;
        }
        let index = *known.entry(key).or_insert_with(|| {
            let index = |number: i32| usize::try_from(number).unwrap_or(0);
            steps.push(Step {
                chain: index(place.0),
                instruction: index(place.1),
                position: None,
                name,
                // A trace does not say which of the method's delegates it is.
                delegate: None,
                node,
                sizes: None,
                work: None,
                calls: 0,
                samples: Vec::new(),
            });
            steps.len() - 1
        });
        let step = &mut steps[index];
        if step.samples.len() <= run {
            step.samples.resize(run + 1, 0);
            step.calls = 0;
        }
        step.calls += 1;
        if let Some(sample) = step.samples.last_mut() {
            *sample = sample.saturating_add(own);
        }
        // What is around others would hide them.
        if !around || own == ticks(event) {
            let since = |at: u64| at.saturating_sub(start);
            observation.timeline.push(Busy { step: index, start: since(event.start_time), end: since(event.end_time) });
        }
    }
    Ok(())
}

/// A delegate's name for the place of an event.
fn node(event: &ProfileEvent<'_>) -> Option<Node> {
    match (u32::try_from(event.delegate_debug_id_int), event.delegate_debug_id_str.as_deref()) {
        (Ok(number), _) => Some(Node::Number(number)),
        (_, Some(text)) if !text.is_empty() => Some(Node::Text(short(text))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use edgepack::builder::trace::{DelegatePlace, TraceBuilder, TracePlace};
    use edgepack_format::trace::TraceRef;

    use super::*;

    #[test]
    fn times_inside_of_others_are_taken_off_them() {
        let mut trace = TraceBuilder::new();
        trace.block("Default").profile("Method::init", TracePlace::default(), 0..9, None).unwrap();
        for run in [0, 100] {
            let mut event = |name, place, start: u64, end: u64| {
                trace.profile(name, place, run + start..run + end, None).map(drop).unwrap();
            };
            let part = |text| TracePlace { delegate: DelegatePlace::Text(text), ..TracePlace::instruction(0, 1) };
            event("native_call_add.out", TracePlace::instruction(0, 0), 2, 8);
            event("OPERATOR_CALL", TracePlace::instruction(0, 0), 1, 9);
            event("", part("GEMM #1"), 12, 15);
            event("", part("GEMM #2"), 15, 20);
            event("DELEGATE_CALL", TracePlace::instruction(0, 1), 10, 30);
            event("Method::execute", TracePlace::default(), 0, 40);
            trace.block("Execute");
        }
        let etdump = trace.finish().unwrap().etdump;
        let observation = observed(TraceRef::reopen(&etdump).unwrap().root()).unwrap();
        // Loading and the first run are one block here, the second run another, the last one is empty.
        assert_eq!(observation.runs, [40, 40]);
        let step = |step: &Step| (step.instruction, step.name.clone(), step.samples.clone());
        let steps: Vec<_> = observation.steps.iter().map(step).collect();
        let want = [(0, "add.out", 6), (0, OPERATOR, 2), (1, "GEMM #1", 3), (1, "GEMM #2", 5), (1, DELEGATE, 12)];
        assert_eq!(steps, want.map(|(at, name, ticks)| (at, name.to_owned(), vec![ticks; 2])));
        let busy: Vec<_> = observation.timeline.iter().map(|busy| (busy.start, busy.end)).collect();
        assert_eq!(busy, [(2, 8), (12, 15), (15, 20)]);
    }
}
