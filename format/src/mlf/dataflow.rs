//! Contents of storages over time: no entry is read before it is written or after its storage was overwritten, and data
//! that stay from run to run are never overwritten.
//!
//! The calls are gone through once, in order. Every write makes a new value; a storage holds the value written last, an
//! entry is the value its node made. Reading an entry asks whether its storage still holds its value.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

use super::graph::{COPY, Call, Graph, NOP, Node};
use super::report::Report;
use super::storage::StoragePlan;
use crate::room;
use crate::rules::mlf as rules;

pub(super) fn check(graph: &Graph, report: &mut Report) {
    let Some(plan) = report.roomy(StoragePlan::of(graph)) else { return };
    storages(graph, &plan, report);
    let Some(holds) = report.roomy(room::filled(None, plan.storages.len())) else { return };
    let Some(kept) = report.roomy(room::filled(false, plan.storages.len())) else { return };
    let Some(value) = report.roomy(room::filled(0, graph.entries.len())) else { return };
    let mut walk = Walk { graph, plan: &plan, report, holds, kept, value };
    walk.arguments();
    for (id, node, call) in graph.calls() {
        walk.call(id, node, call);
    }
    for (index, &head) in graph.heads.iter().enumerate() {
        if let Some(entry) = graph.entry_id(head) {
            walk.read(entry, &format!("heads[{index}]"));
        }
    }
}

/// Storages are on one device each, and their numbers have no gaps.
fn storages(graph: &Graph, plan: &StoragePlan, report: &mut Report) {
    for (index, entry) in graph.entries.iter().enumerate() {
        let storage = plan.of_entry.get(index).and_then(|&place| plan.storages.get(place as usize));
        let Some(storage) = storage.filter(|storage| storage.device != entry.device) else { continue };
        let name = |device: Option<i32>| device.map_or("none".to_string(), |device| device.to_string());
        let message = format!(
            "storage {} is on a device of type {}, this entry on {}",
            storage.id,
            name(storage.device),
            name(entry.device)
        );
        report.add(&rules::STORAGE_DEVICE, format_args!("attrs.device_index[{index}]"), None, message);
    }
    let last = plan.storages.last().map_or(0, |storage| u64::from(storage.id).saturating_add(1));
    let count = plan.storages.len() as u64;
    if last > count {
        let message = format!("{count} storages are used, the highest is {}", last.saturating_sub(1));
        report.add(&rules::STORAGE_SPARSE, "attrs.storage_id", None, message);
    }
}

struct Walk<'g, 'r> {
    graph: &'g Graph,
    plan: &'g StoragePlan,
    report: &'r mut Report,
    /// The value in each storage.
    holds: Vec<Option<u32>>,
    /// True for each storage of an input or parameter.
    kept: Vec<bool>,
    /// The value of each entry.
    value: Vec<u32>,
}

impl Walk<'_, '_> {
    fn storage_id(&self, place: u32) -> u32 {
        self.plan.storages.get(place as usize).map_or(0, |storage| storage.id)
    }

    fn arguments(&mut self) {
        for (node, call) in (0u32..).zip(&self.graph.nodes).map(|(id, node)| (id, &node.call)) {
            if call.is_some() {
                continue;
            }
            for entry in self.graph.outputs_of(node) {
                let Some(place) = self.plan.place(entry) else { continue };
                if self.kept.get(place as usize) == Some(&true) {
                    let message = format!("storage {} is that of another input", self.storage_id(place));
                    self.report.add(&rules::ARG_STORAGE, format_args!("nodes[{node}]"), None, message);
                }
                self.set(place, entry, entry);
                self.kept.get_mut(place as usize).into_iter().for_each(|kept| *kept = true);
            }
        }
    }

    fn set(&mut self, place: u32, entry: u32, value: u32) {
        self.value.get_mut(entry as usize).into_iter().for_each(|slot| *slot = value);
        self.holds.get_mut(place as usize).into_iter().for_each(|slot| *slot = Some(value));
    }

    fn read(&mut self, entry: u32, path: &str) {
        let Some(place) = self.plan.place(entry) else { return };
        let held = self.holds.get(place as usize).copied().flatten();
        if held != self.value.get(entry as usize).copied() {
            let by = held
                .and_then(|value| self.writer(value))
                .map_or("by no node yet".to_string(), |node| format!("last by node {node}"));
            let message = format!("storage {} was written {by}, not with this entry", self.storage_id(place));
            self.report.add(&rules::OVERWRITTEN, path, None, message);
        }
    }

    /// The node that made a value: values are numbered by the entry they were first.
    fn writer(&self, value: u32) -> Option<usize> {
        self.graph.row_ptr.partition_point(|&first| first <= value).checked_sub(1)
    }

    fn call(&mut self, id: u32, node: &Node, call: &Call) {
        let inputs = room::collect(node.inputs.iter().filter_map(|&input| self.graph.entry_id(input)));
        let Some(inputs): Option<Vec<u32>> = self.report.roomy(inputs) else { return };
        for (index, &entry) in inputs.iter().enumerate() {
            self.read(entry, &format!("nodes[{id}].inputs[{index}]"));
        }
        match call.function.as_str() {
            NOP => self.nop(id, &inputs),
            COPY => {
                self.like_input(id, &inputs);
                self.write(id, &inputs);
            }
            _ => self.write(id, &inputs),
        }
    }

    fn write(&mut self, id: u32, inputs: &[u32]) {
        let read = room::set(inputs.iter().filter_map(|&entry| self.plan.place(entry)));
        let mut written = BTreeSet::new();
        for entry in self.graph.outputs_of(id) {
            let Some(place) = self.plan.place(entry) else { continue };
            let path = format_args!("nodes[{id}]").to_string();
            let storage = self.storage_id(place);
            if read.contains(&place) {
                self.report.add(&rules::OVERLAP, &path, None, format!("it reads and writes storage {storage}"));
            } else if written.contains(&place) {
                self.report.add(&rules::OVERLAP, &path, None, format!("two of its results are in storage {storage}"));
            }
            if self.kept.get(place as usize) == Some(&true) {
                let message = format!("storage {storage} is that of an input or parameter");
                self.report.add(&rules::ARG_WRITTEN, &path, None, message);
            }
            written.insert(place);
            self.set(place, entry, entry);
        }
    }

    /// One input and one output of the same bytes.
    fn like_input(&mut self, id: u32, inputs: &[u32]) -> Option<(u32, u32)> {
        let outputs = self.graph.outputs_of(id);
        let (&[input], 1) = (inputs, outputs.len()) else {
            let message = format!("{} inputs and {} outputs", inputs.len(), outputs.len());
            self.report.add(&rules::RESERVED, format_args!("nodes[{id}]"), None, message);
            return None;
        };
        let output = outputs.start;
        let bytes = |entry: u32| self.graph.entries.get(entry as usize).and_then(|entry| entry.bytes());
        if bytes(input) != bytes(output) {
            let (from, to) = (bytes(input).unwrap_or_default(), bytes(output).unwrap_or_default());
            let message = format!("its input has {from} bytes, its output {to}");
            self.report.add(&rules::RESERVED, format_args!("nodes[{id}]"), None, message);
            return None;
        }
        Some((input, output))
    }

    fn nop(&mut self, id: u32, inputs: &[u32]) {
        let Some((input, output)) = self.like_input(id, inputs) else { return self.write(id, &[]) };
        let (Some(from), Some(to)) = (self.plan.place(input), self.plan.place(output)) else { return };
        if from != to {
            let message =
                format!("its input is in storage {}, its output in {}", self.storage_id(from), self.storage_id(to));
            self.report.add(&rules::RESERVED, format_args!("nodes[{id}]"), None, message);
        }
        // The output is the value of the input; nothing is written.
        let value = self.value.get(input as usize).copied().unwrap_or(input);
        self.value.get_mut(output as usize).into_iter().for_each(|slot| *slot = value);
    }
}
