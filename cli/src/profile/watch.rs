//! Watches runs of a method: the time of every instruction in every run.
//!
//! Instructions may take less than a microsecond, so little is done for each: where one follows upon another, the end of that
//! is its beginning, and the clock is read once. Times of a run lie in the order of the plan until all runs are over.
//!
//! Invariant: between two looks at the clock there are one instruction and the noting of a time, nothing else. All that is
//! noted once is noted in the first run that an instruction is seen in, and the clock is read again behind it.

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

/// An instruction of the plan, as it was first seen.
#[derive(Clone, Copy)]
struct Seen {
    /// Index of the step; `NOT_SEEN` of one that has not run.
    step: u32,
    /// Index of the run.
    run: u32,
}

/// Step of a place in the plan at which nothing has run.
const NOT_SEEN: u32 = u32::MAX;

/// Watches runs.
pub struct Watch<'r> {
    observation: Observation,
    /// Gets the very times that are noted here.
    recorder: Option<&'r mut Recorder>,
    /// Instructions, by place in the plan.
    seen: Vec<Seen>,
    /// Nanoseconds of the run that is going on, by place in the plan.
    current: Vec<u64>,
    /// Nanoseconds of the runs before, by place in the plan.
    times: Vec<Vec<u64>>,
    began: Instant,
    /// Beginning of the instruction that runs.
    start: Instant,
    /// Place of the instruction that begins where the last one ended, if it is the next one.
    next: usize,
}

/// Place that no instruction has.
const NONE_NEXT: usize = usize::MAX;

impl<'r> Watch<'r> {
    /// Watches runs, and records them, too, if there is a recorder.
    pub fn new(recorder: Option<&'r mut Recorder>) -> Self {
        let now = Instant::now();
        Watch {
            observation: Observation::default(),
            recorder,
            seen: Vec::new(),
            current: Vec::new(),
            times: Vec::new(),
            began: now,
            start: now,
            next: NONE_NEXT,
        }
    }

    /// Refuses to go on where more times would be noted than there is room for.
    pub fn check(&self) -> Result<(), Failure> {
        check_times(self.observation.runs.len() + 1, self.current.len())
    }

    /// Returns what was seen.
    pub fn finish(self) -> Observation {
        let Watch { mut observation, times, .. } = self;
        for step in &mut observation.steps {
            let of = |run: &Vec<u64>| step.position.and_then(|position| run.get(position)).copied().unwrap_or(0);
            step.samples = times.iter().map(of).collect();
        }
        observation
    }

    /// Notes what is noted once of an instruction, in every call of its first run.
    #[cold]
    fn note(&mut self, event: &Event<'_>, results: &Results<'_>) {
        let run = self.times.len() as u32;
        if self.seen.len() <= event.position {
            self.seen.resize(event.position + 1, Seen { step: NOT_SEEN, run });
            self.current.resize(event.position + 1, 0);
        }
        let steps = &mut self.observation.steps;
        let seen = &mut self.seen[event.position];
        if seen.step == NOT_SEEN {
            *seen = Seen { step: steps.len() as u32, run };
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
        }
        let step = &mut steps[seen.step as usize];
        let work = Work::of(event.name, results);
        let sum = step.work.get_or_insert_default();
        sum.bytes = sum.bytes.saturating_add(work.bytes);
        sum.multiply_adds = sum.multiply_adds.saturating_add(work.multiply_adds);
        step.calls += 1;
        step.sizes = results.tensors().first().map(|tensor| tensor.meta().sizes.to_vec());
    }
}

impl Observer for Watch<'_> {
    fn started(&mut self) {
        if let Some(recorder) = &mut self.recorder {
            recorder.started();
        }
        self.observation.timeline.clear();
        self.current.fill(0);
        self.next = NONE_NEXT;
        self.began = Instant::now();
    }

    #[inline]
    fn before(&mut self, event: &Event<'_>) {
        if event.position != self.next {
            self.start = Instant::now();
        }
    }

    #[inline]
    fn after(&mut self, event: &Event<'_>, results: &Results<'_>) {
        let (start, end) = (self.start, Instant::now());
        (self.start, self.next) = (end, event.position + 1);
        if let Some(recorder) = &mut self.recorder {
            recorder.ran(event, [start, end], results);
            self.next = NONE_NEXT;
        }
        let run = self.times.len() as u32;
        if self.seen.get(event.position).is_none_or(|seen| seen.step == NOT_SEEN || seen.run == run) {
            self.note(event, results);
            self.next = NONE_NEXT;
        }
        let sum = &mut self.current[event.position];
        let (from, to) = (nanos(start.duration_since(self.began)), nanos(end.duration_since(self.began)));
        *sum = sum.saturating_add(to.saturating_sub(from));
        if self.observation.timeline.len() < LONGEST {
            let step = self.seen[event.position].step as usize;
            self.observation.timeline.push(Busy { step, start: from, end: to });
        }
    }

    fn finished(&mut self) {
        self.observation.runs.push(nanos(self.began.elapsed()));
        self.times.push(self.current.clone());
        if let Some(recorder) = &mut self.recorder {
            recorder.finished();
        }
    }
}

#[cfg(test)]
mod tests {
    use edgepack_executor::{Input, Method, Options};
    use edgepack_loader::Program;

    use super::*;

    /// Watches runs of a small program.
    fn watched(runs: usize) -> Observation {
        let models = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data/corpus/models");
        let program = Program::open(format!("{models}/mlp_portable.pte")).unwrap();
        let mut method = Method::load(&program, "forward", &edgepack_kernels::registry(), &Options::default()).unwrap();
        let layout =
            edgepack_format::tensor::TensorLayout::contiguous(edgepack_format::scalar::ScalarType::FLOAT, &[3, 8]);
        let (layout, zeros) = (layout.unwrap(), [0; 96]);
        let view = edgepack_format::tensor::TensorView::new(layout, &zeros).unwrap();
        let mut watch = Watch::new(None);
        for _ in 0..runs {
            watch.check().unwrap();
            method.run_observed(&[Input::Tensor(view.clone())], Some(&mut watch)).unwrap();
        }
        watch.finish()
    }

    #[test]
    fn every_step_has_a_time_of_every_run() {
        let observation = watched(5);
        assert!(observation.steps.len() > 2 && observation.runs.len() == 5);
        for step in &observation.steps {
            assert_eq!((step.samples.len(), step.calls), (5, 1), "{}", step.name);
            assert!(step.work.is_some_and(|work| work.bytes > 0) && step.sizes.is_some());
        }
        for (run, whole) in observation.runs.iter().enumerate() {
            let sum: u64 = observation.steps.iter().map(|step| step.samples[run]).sum();
            assert!(sum > 0 && sum <= *whole, "run {run}: {sum} of {whole}");
        }
    }

    #[test]
    fn the_timeline_is_the_last_run_without_overlaps() {
        let observation = watched(3);
        assert_eq!(observation.timeline.len(), observation.steps.len());
        let ends = observation.timeline.windows(2).all(|pair| pair[0].end <= pair[1].start);
        assert!(ends && observation.timeline.iter().all(|busy| busy.start <= busy.end));
        for busy in &observation.timeline {
            assert_eq!(observation.steps[busy.step].samples[2], busy.end - busy.start);
        }
    }
}
