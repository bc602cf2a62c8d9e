//! Profile of a method: times and work by instruction, operator, part of a delegate and module.

use std::collections::HashMap;

use clap::ValueEnum;
use serde::Serialize;

use super::memory::MemoryUse;
use super::spread::Spread;
use super::watch::{Busy, Node, Observation, Step};
use super::work::Work;
use crate::spelling;

/// Groups of a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum By {
    /// Instructions of the file; a delegate is one
    Instruction,
    /// Operators, all calls of one together
    Operator,
    /// Instructions, and in the place of delegates their parts
    Node,
    /// Modules, by the stack traces of the file, or by --etrecord
    Module,
}

/// Facts about a method that times are shown with.
#[derive(Clone, Debug, Default)]
pub struct Origins {
    /// Backends of delegates, by index.
    pub backends: Vec<String>,
    /// Modules around an instruction, outermost first, by chain and instruction.
    pub modules: HashMap<(usize, usize), Vec<String>>,
    /// Modules around a part of a delegate, by index of the delegate and number of the part.
    pub parts: HashMap<(usize, u32), Vec<String>>,
}

/// Times and memory of a method.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Profile {
    /// Name of the file, as the command line has it.
    pub file: String,
    /// Name of the method; none in a trace.
    pub method: Option<String>,
    /// Threads that were asked for.
    pub threads: Option<u16>,
    /// Times that every instruction was measured: runs, or groups of runs that were watched in part.
    pub runs: usize,
    /// Whole runs.
    pub run: Spread,
    /// Cost of watching, where runs took turns with others that nobody watched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overhead: Option<Overhead>,
    /// Nanoseconds of the median run outside of instructions.
    pub outside_ns: u64,
    /// Instructions of the file.
    pub instructions: Vec<Row>,
    /// Operators and opaque delegates.
    pub operators: Vec<Row>,
    /// Instructions of the plan: parts of delegates, and all others.
    pub nodes: Vec<Row>,
    /// Modules.
    pub modules: Vec<Row>,
    /// The last run that was watched whole.
    pub timeline: Vec<Stretch>,
    /// Memory over the plan.
    pub memory: Option<MemoryUse>,
}

/// Cost of watching runs: the time of whole calls, inputs and outputs included.
#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Overhead {
    /// Nanoseconds of the median call that nobody watched.
    pub unwatched_ns: u64,
    /// Nanoseconds of the median call that was watched; less than the other where the difference is within the noise.
    pub watched_ns: u64,
}

impl Overhead {
    /// Compares the times of calls, in nanoseconds.
    pub fn of(unwatched: Vec<u64>, watched: Vec<u64>) -> Overhead {
        Overhead { unwatched_ns: Spread::of(unwatched).median_ns, watched_ns: Spread::of(watched).median_ns }
    }

    /// Returns the fraction of time that watching adds; 0 where it is within the noise.
    pub fn share(&self) -> f64 {
        let more = self.watched_ns.saturating_sub(self.unwatched_ns) as f64;
        more / self.unwatched_ns.max(1) as f64
    }
}

/// Time and work of a group of instructions. Rates are those of the median time.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Row {
    /// Operator, backend or module.
    pub name: String,
    /// Instruction in the file, `CHAIN:INDEX` beyond the first chain, and the part of a delegate behind a point.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// Index in the order of the plan, of rows that are one instruction of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<usize>,
    /// Place in the plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<usize>,
    /// Backend of the delegate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backend: Option<String>,
    /// Modules around it, outermost first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub modules: Vec<String>,
    /// Sizes of the first result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sizes: Option<Vec<usize>>,
    /// Instructions of the plan.
    pub instructions: usize,
    /// Calls in a run.
    pub calls: u64,
    /// Times of runs.
    #[serde(flatten)]
    pub time: Spread,
    /// Fraction of the time of all instructions.
    pub share: f64,
    /// Bytes of tensors that are read and written in a run.
    pub bytes: Option<u64>,
    /// Multiplications whose results are added, in a run.
    pub multiply_adds: Option<u64>,
    /// Bytes a second.
    pub bytes_per_second: Option<f64>,
    /// Multiply-adds a second.
    pub multiply_adds_per_second: Option<f64>,
}

/// A stretch of a run in which an instruction was busy.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Stretch {
    step: usize,
    start_ns: u64,
    end_ns: u64,
}

/// Module of instructions of which the file does not say where they are from.
const UNKNOWN: &str = "(no stack trace)";

impl Profile {
    /// Puts together what was observed.
    pub fn of(file: &str, method: Option<&str>, observation: &Observation, origins: &Origins) -> Profile {
        let Observation { steps, runs, timeline } = observation;
        let all = Spread::of(summed(steps.iter())).median_ns;
        let group = |by| grouped(steps, by, origins, all);
        let run = Spread::of(runs.clone());
        Profile {
            file: spelling::name(file),
            method: method.map(spelling::name),
            threads: None,
            runs: runs.len(),
            run,
            overhead: None,
            outside_ns: run.median_ns.saturating_sub(all),
            instructions: group(By::Instruction),
            operators: group(By::Operator),
            nodes: group(By::Node),
            modules: group(By::Module),
            timeline: timeline
                .iter()
                .map(|Busy { step, start, end }| Stretch { step: *step, start_ns: *start, end_ns: *end })
                .collect(),
            memory: None,
        }
    }

    /// Rows of one kind, most expensive first.
    pub fn rows(&self, by: By) -> &[Row] {
        match by {
            By::Instruction => &self.instructions,
            By::Operator => &self.operators,
            By::Node => &self.nodes,
            By::Module => &self.modules,
        }
    }
}

/// Identity of a group.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Key {
    Instruction(usize, usize),
    Step(usize),
    Name(String),
    Modules(Vec<String>),
}

fn grouped(steps: &[Step], by: By, origins: &Origins, all: u64) -> Vec<Row> {
    let mut index: HashMap<Key, usize> = HashMap::new();
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        let key = match by {
            By::Instruction => Key::Instruction(step.chain, step.instruction),
            By::Operator => Key::Name(step.name.clone()),
            By::Node => Key::Step(at),
            By::Module => Key::Modules(modules(step, origins)),
        };
        let group = *index.entry(key).or_insert_with(|| {
            groups.push(Vec::new());
            groups.len() - 1
        });
        groups[group].push(at);
    }
    let mut rows: Vec<Row> = groups.iter().map(|group| row(group, steps, by, origins, all)).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.time.median_ns));
    rows
}

/// Nanoseconds of steps together, by run.
fn summed<'s>(steps: impl Iterator<Item = &'s Step>) -> Vec<u64> {
    let mut sums: Vec<u64> = Vec::new();
    for step in steps {
        sums.resize(sums.len().max(step.samples.len()), 0);
        sums.iter_mut().zip(&step.samples).for_each(|(sum, sample)| *sum = sum.saturating_add(*sample));
    }
    sums
}

/// Modules around an instruction, outermost first.
fn modules(step: &Step, origins: &Origins) -> Vec<String> {
    let part = match (step.delegate, &step.node) {
        (Some(delegate), Some(Node::Number(node))) => origins.parts.get(&(delegate, *node)),
        _ => None,
    };
    let known = part.or_else(|| origins.modules.get(&(step.chain, step.instruction)));
    known.filter(|modules| !modules.is_empty()).cloned().unwrap_or_else(|| vec![UNKNOWN.to_owned()])
}

fn row(group: &[usize], steps: &[Step], by: By, origins: &Origins, all: u64) -> Row {
    let members = || group.iter().map(|&at| &steps[at]);
    let mut work = Some(Work::default());
    for step in members() {
        work = work.zip(step.work).map(|(sum, work)| sum.plus(work));
    }
    let time = Spread::of(summed(members()));
    let rate = |amount: u64| (time.median_ns > 0).then(|| amount as f64 * 1e9 / time.median_ns as f64);
    let first = &steps[group[0]];
    let backend = first.delegate.and_then(|delegate| origins.backends.get(delegate)).map(|name| spelling::name(name));
    let (single, whole) = (by == By::Node, by == By::Instruction);
    let own_name = spelling::name(&first.name);
    let name = match by {
        By::Operator | By::Node => own_name,
        By::Module => modules(first, origins).join(" / "),
        // A trace does not name backends.
        By::Instruction if first.node.is_some() => backend.clone().unwrap_or_else(|| "delegate".to_owned()),
        By::Instruction => backend.clone().unwrap_or(own_name),
    };
    let calls = members().map(|step| step.calls);
    Row {
        name,
        place: (single || whole).then(|| place(first, single)),
        step: single.then_some(group[0]),
        position: first.position.filter(|_| single),
        backend: backend.filter(|_| single || whole),
        modules: if by == By::Operator { Vec::new() } else { modules(first, origins) },
        sizes: (single || whole).then(|| steps[group[group.len() - 1]].sizes.clone()).flatten(),
        instructions: group.len(),
        // The parts of an instruction are one call of it.
        calls: if whole { calls.max().unwrap_or(0) } else { calls.fold(0, u64::saturating_add) },
        time,
        share: if all == 0 { 0.0 } else { time.median_ns as f64 / all as f64 },
        bytes: work.map(|work| work.bytes),
        multiply_adds: work.map(|work| work.multiply_adds),
        bytes_per_second: work.and_then(|work| rate(work.bytes)),
        multiply_adds_per_second: work.and_then(|work| rate(work.multiply_adds)),
    }
}

/// `12`, beyond the first chain `1:12`, with the part of a delegate `12.3`.
fn place(step: &Step, with_node: bool) -> String {
    let chain = if step.chain == 0 { String::new() } else { format!("{}:", step.chain) };
    match &step.node {
        Some(Node::Text(_)) | None => format!("{chain}{}", step.instruction),
        Some(node) if with_node => format!("{chain}{}.{node}", step.instruction),
        Some(_) => format!("{chain}{}", step.instruction),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(instruction: usize, name: &str, node: Option<u32>, samples: &[u64]) -> Step {
        Step {
            chain: 0,
            instruction,
            position: None,
            name: name.to_owned(),
            delegate: node.map(|_| 0),
            node: node.map(Node::Number),
            sizes: None,
            work: Some(Work { of_bytes: false, bytes: 8, multiply_adds: 100 }),
            calls: 1,
            samples: samples.to_vec(),
        }
    }

    fn profile() -> Profile {
        let steps = vec![
            step(0, "add", None, &[10, 30, 20]),
            step(1, "conv", Some(0), &[100, 120, 110]),
            step(1, "add", Some(1), &[5, 1, 9]),
            step(2, "mul", None, &[1, 1, 1]),
        ];
        let mut origins = Origins { backends: vec!["Backend".to_owned()], ..Origins::default() };
        origins.modules.insert((0, 0), vec!["net".to_owned(), "head".to_owned()]);
        origins.modules.insert((0, 2), vec!["net".to_owned(), "head".to_owned()]);
        let observation = Observation { steps, runs: vec![200, 190, 210], timeline: Vec::new() };
        Profile::of("m.pte", Some("forward"), &observation, &origins)
    }

    fn rows(by: By) -> Vec<(String, Option<String>, u64, Option<u64>)> {
        let row = |row: &Row| (row.name.clone(), row.place.clone(), row.time.median_ns, row.multiply_adds);
        profile().rows(by).iter().map(row).collect()
    }

    #[test]
    fn watching_adds_what_calls_took_longer() {
        assert_eq!(Overhead::of(vec![100, 90, 110], vec![102, 400, 101]).share(), 0.02);
        assert_eq!(Overhead::of(vec![100], vec![99]).share(), 0.0);
        assert_eq!(Overhead::of(vec![], vec![]).share(), 0.0);
    }

    #[test]
    fn groups_add_up_run_by_run() {
        let place = |place: &str| Some(place.to_owned());
        assert_eq!(
            rows(By::Instruction),
            [
                ("Backend".to_owned(), place("1"), 119, Some(200)),
                ("add".to_owned(), place("0"), 20, Some(100)),
                ("mul".to_owned(), place("2"), 1, Some(100))
            ]
        );
        // 15, 31 and 29 in the three runs, not 20 and 5.
        assert_eq!(rows(By::Operator)[1], ("add".to_owned(), None, 29, Some(200)));
        assert_eq!(rows(By::Node)[2], ("add".to_owned(), place("1.1"), 5, Some(100)));
        assert_eq!(rows(By::Module)[0].0, UNKNOWN);
        assert_eq!(rows(By::Module)[1], ("net / head".to_owned(), None, 21, Some(200)));
    }

    #[test]
    fn shares_and_rates_are_those_of_the_medians() {
        let profile = profile();
        assert_eq!((profile.run.median_ns, profile.outside_ns), (200, 200 - 140));
        let conv = &profile.nodes[0];
        assert_eq!((conv.share, conv.multiply_adds_per_second), (110.0 / 140.0, Some(100.0 * 1e9 / 110.0)));
        assert_eq!(profile.instructions[0].bytes, Some(16));
    }
}
