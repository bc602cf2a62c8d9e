//! Watches runs of a method: the time of every instruction in every run.
//!
//! Invariant: between the two looks at the clock around an instruction nothing else is done. All that is noted once is noted
//! in the first run that an instruction is seen in.

use edgepack_executor::observer::{Event, Observer, Results};
use web_time::Instant;

use super::bounds::check_times;
use super::record::Recorder;
use super::spread::nanos;
use super::work::Work;
use crate::spelling::short;
use crate::status::Failure;

/// An instruction of a plan, and what it took in each run.
#[derive(Clone, Debug)]
pub struct Step {
    /// Index of the chain.
    pub chain: usize,
    /// Index in the file.
    pub instruction: usize,
    /// Place in the plan, if it is known.
    pub position: Option<usize>,
    /// Operator or backend.
    pub name: String,
    /// Index of the delegate that it is, or is a part of.
    pub delegate: Option<usize>,
    /// Part of the delegate.
    pub node: Option<Node>,
    /// Sizes of the first result.
    pub sizes: Option<Vec<usize>>,
    /// Work of its calls in one run.
    pub work: Option<Work>,
    /// Calls in one run.
    pub calls: u64,
    /// Nanoseconds, by run.
    pub samples: Vec<u64>,
}

/// Name of a part of a delegate.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Node {
    /// Copies of arguments that the backend's instructions need.
    Copies,
    /// Number that the backend gives it.
    Number(u32),
    /// Text that the backend gives it.
    Text(String),
}

impl std::fmt::Display for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Node::Copies => f.write_str("copy"),
            Node::Number(number) => write!(f, "{number}"),
            Node::Text(text) => f.write_str(text),
        }
    }
}

/// A stretch of a run in which one step was busy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Busy {
    /// Index of the step.
    pub step: usize,
    /// Nanoseconds from the beginning of the run.
    pub start: u64,
    /// Nanoseconds from the beginning of the run.
    pub end: u64,
}

/// Runs that were watched.
#[derive(Clone, Debug, Default)]
pub struct Observation {
    /// In the order in which they first ran.
    pub steps: Vec<Step>,
    /// Nanoseconds of whole runs.
    pub runs: Vec<u64>,
    /// The last run.
    pub timeline: Vec<Busy>,
}

/// Stretches of the timeline that are noted at most.
const LONGEST: usize = 100_000;

/// Watches runs.
pub struct Watch<'r> {
    observation: Observation,
    /// Gets the very times that are noted here.
    recorder: Option<&'r mut Recorder>,
    /// Index of the step and the run it was first seen in, by position.
    by_position: Vec<Option<(usize, usize)>>,
    began: Instant,
    start: Instant,
}

impl<'r> Watch<'r> {
    /// Watches runs, and records them, too, if there is a recorder.
    pub fn new(recorder: Option<&'r mut Recorder>) -> Self {
        let now = Instant::now();
        Watch { observation: Observation::default(), recorder, by_position: Vec::new(), began: now, start: now }
    }

    /// Refuses to go on where more times would be noted than there is room for.
    pub fn check(&self) -> Result<(), Failure> {
        check_times(self.observation.runs.len() + 1, self.observation.steps.len())
    }

    /// Returns what was seen.
    pub fn finish(self) -> Observation {
        let mut observation = self.observation;
        let runs = observation.runs.len();
        observation.steps.iter_mut().for_each(|step| step.samples.resize(runs, 0));
        observation
    }

    /// Index of the step of an event, and the run it was first seen in: this one if it was never seen.
    fn step(&mut self, event: &Event<'_>) -> (usize, usize) {
        let Observation { steps, runs, .. } = &mut self.observation;
        if let Some(seen) = self.by_position.get(event.position).copied().flatten() {
            return seen;
        }
        steps.push(Step {
            chain: event.chain,
            instruction: event.instruction,
            position: Some(event.position),
            name: short(event.name),
            delegate: event.delegate,
            node: event.node.map(|node| if node == u32::MAX { Node::Copies } else { Node::Number(node) }),
            sizes: None,
            work: None,
            calls: 0,
            samples: Vec::new(),
        });
        if self.by_position.len() <= event.position {
            self.by_position.resize(event.position + 1, None);
        }
        let new = (steps.len() - 1, runs.len());
        self.by_position[event.position] = Some(new);
        new
    }
}

impl Observer for Watch<'_> {
    fn started(&mut self) {
        if let Some(recorder) = &mut self.recorder {
            recorder.started();
        }
        self.observation.timeline.clear();
        self.began = Instant::now();
    }

    fn before(&mut self, _: &Event<'_>) {
        self.start = Instant::now();
    }

    fn after(&mut self, event: &Event<'_>, results: &Results<'_>) {
        let end = Instant::now();
        if let Some(recorder) = &mut self.recorder {
            recorder.ran(event, [self.start, end], results);
        }
        let (index, first_run) = self.step(event);
        let run = self.observation.runs.len();
        let Observation { steps, timeline, .. } = &mut self.observation;
        let step = &mut steps[index];
        // It did not run in the runs between, or this is the first of its calls in this one.
        if step.samples.len() <= run {
            step.samples.resize(run + 1, 0);
        }
        if run == first_run {
            let work = Work::of(event.name, results);
            let sum = step.work.get_or_insert_default();
            sum.bytes = sum.bytes.saturating_add(work.bytes);
            sum.multiply_adds = sum.multiply_adds.saturating_add(work.multiply_adds);
            step.calls += 1;
            step.sizes = results.tensors().first().map(|tensor| tensor.meta().sizes.to_vec());
        }
        if let Some(sample) = step.samples.last_mut() {
            *sample = sample.saturating_add(nanos(end - self.start));
        }
        if timeline.len() < LONGEST {
            let since = |at: Instant| nanos(at.saturating_duration_since(self.began));
            timeline.push(Busy { step: index, start: since(self.start), end: since(end) });
        }
    }

    fn finished(&mut self) {
        self.observation.runs.push(nanos(self.began.elapsed()));
        if let Some(recorder) = &mut self.recorder {
            recorder.finished();
        }
    }
}
