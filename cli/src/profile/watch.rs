//! Watches runs of a method: the time of every instruction in every pass.
//!
//! Instructions may take less than a microsecond, so little is done for each: where one follows upon another, the end of that
//! is its beginning, and the clock is read once. Of a run of very many such instructions only a part is watched, so that it takes
//! about as long as one that nobody watches. Times of a pass lie in the order of the plan until all runs are over.
//!
//! Invariant: between two looks at the clock there are one instruction and the noting of a time, nothing else. All that is
//! noted once is noted in the first run that an instruction is seen in, and the clock is read again behind it.

use std::ops::Range;

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
    /// Nanoseconds, by pass.
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
    /// Nanoseconds of whole runs, by pass.
    pub runs: Vec<u64>,
    /// The last run that was watched from its beginning to its end.
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

/// Part of the time of a run that looking at the clock may add.
const ADDED: u64 = 100;
/// Looks at the clock that watching an instruction takes about as long as: one look, two calls, the noting of a time.
const LOOKS: u64 = 3;

/// Purpose of a run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// Noting what is noted once, and how long a run is.
    Noting,
    /// Times of a part of the plan.
    Times,
    /// The timeline, which is of one run.
    Timeline,
}

/// Watches runs.
///
/// Where looking at the clock around every instruction would make a run noticeably longer, a run is watched in part: the next
/// run goes on behind that part, and a *pass* is as many runs as it takes to see every instruction once.
pub struct Watch<'r> {
    observation: Observation,
    /// Gets the very times that are noted here.
    recorder: Option<&'r mut Recorder>,
    purpose: Purpose,
    /// Instructions, by place in the plan.
    seen: Vec<Seen>,
    /// Nanoseconds of the pass that is going on, by place in the plan.
    current: Vec<u64>,
    /// Nanoseconds of the passes before, by place in the plan.
    times: Vec<Vec<u64>>,
    /// Places that are watched in one run.
    part: usize,
    /// Places that are watched in this run.
    places: Range<usize>,
    /// Runs there have been.
    runs: u32,
    /// Nanoseconds and number of the runs of this pass.
    of_pass: (u64, u64),
    began: Instant,
    /// Beginning of the instruction that runs.
    start: Instant,
    /// Place of the instruction that begins where the last one ended, if it is the next one.
    next: usize,
}

/// Place that no instruction has.
const NONE_NEXT: usize = usize::MAX;
/// All places of a plan.
const ALL: Range<usize> = 0..usize::MAX;

impl<'r> Watch<'r> {
    /// Watches so many passes, and records them, too, if there is a recorder, which wants to see every run whole. `run` runs the
    /// method once; [`Watch::counts`] says whether the time of that run is one of those that are measured.
    pub fn passes(
        count: usize,
        recorder: Option<&'r mut Recorder>,
        mut run: impl FnMut(&mut Watch<'r>) -> Result<(), Failure>,
    ) -> Result<Observation, Failure> {
        let now = Instant::now();
        let mut watch = Watch {
            observation: Observation::default(),
            recorder,
            purpose: Purpose::Noting,
            seen: Vec::new(),
            current: Vec::new(),
            times: Vec::new(),
            part: usize::MAX,
            places: ALL,
            runs: 0,
            of_pass: (0, 0),
            began: now,
            start: now,
            next: NONE_NEXT,
        };
        // What is noted makes the first run longer than others.
        run(&mut watch)?;
        run(&mut watch)?;
        watch.begin();
        while watch.times.len() < count {
            check_times(watch.times.len() + 1, watch.current.len())?;
            run(&mut watch)?;
        }
        if watch.part < watch.current.len() {
            watch.purpose = Purpose::Timeline;
            run(&mut watch)?;
        }
        Ok(watch.finish())
    }

    /// Returns whether the run that comes is one of those whose times count.
    pub fn counts(&self) -> bool {
        self.purpose == Purpose::Times
    }

    /// Begins with the runs that count, now that it is known how long a run is.
    fn begin(&mut self) {
        self.purpose = Purpose::Times;
        if self.recorder.is_none() {
            let (nanos, _) = self.of_pass;
            let part = nanos / ADDED / (LOOKS * look()).max(1);
            self.part = usize::try_from(part).unwrap_or(usize::MAX).max(1);
        }
        self.of_pass = (0, 0);
        self.current.fill(0);
        self.places = 0..self.part;
    }

    /// Goes on behind the places that were watched in the run that is over; from the first on if those were the last.
    fn go_on(&mut self) {
        let end = self.places.end;
        if end < self.current.len() {
            self.places = end..end.saturating_add(self.part);
            return;
        }
        let (nanos, runs) = std::mem::take(&mut self.of_pass);
        self.observation.runs.push(nanos / runs.max(1));
        self.times.push(self.current.clone());
        self.current.fill(0);
        self.places = 0..self.part;
    }

    fn finish(self) -> Observation {
        let Watch { mut observation, times, .. } = self;
        for step in &mut observation.steps {
            let of = |pass: &Vec<u64>| step.position.and_then(|position| pass.get(position)).copied().unwrap_or(0);
            step.samples = times.iter().map(of).collect();
        }
        observation
    }

    /// Gets the recorder, in runs that are recorded.
    fn recorder(&mut self) -> Option<&mut Recorder> {
        self.recorder.as_deref_mut().filter(|_| self.purpose == Purpose::Times)
    }

    /// Notes what is noted once of an instruction, in every call of its first run.
    #[cold]
    fn note(&mut self, event: &Event<'_>, results: &Results<'_>) {
        let run = self.runs;
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
        step.work = Some(step.work.unwrap_or_default().plus(Work::of(event.name, results)));
        step.calls += 1;
        step.sizes = results.tensors().first().map(|tensor| tensor.meta().sizes.to_vec());
    }
}

impl Observer for Watch<'_> {
    fn started(&mut self) {
        if let Some(recorder) = self.recorder() {
            recorder.started();
        }
        self.observation.timeline.clear();
        self.next = NONE_NEXT;
        self.began = Instant::now();
    }

    fn places(&self) -> Range<usize> {
        match self.purpose {
            Purpose::Times => self.places.clone(),
            Purpose::Noting | Purpose::Timeline => ALL,
        }
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
        if let Some(recorder) = self.recorder() {
            recorder.ran(event, [start, end], results);
            self.next = NONE_NEXT;
        }
        let run = self.runs;
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
        let nanos = nanos(self.began.elapsed());
        self.runs += 1;
        match self.purpose {
            Purpose::Times => {
                self.of_pass = (self.of_pass.0.saturating_add(nanos), self.of_pass.1 + 1);
                if let Some(recorder) = self.recorder() {
                    recorder.finished();
                }
                self.go_on();
            }
            Purpose::Noting | Purpose::Timeline => self.of_pass = (nanos, 1),
        }
    }
}

/// Nanoseconds of a look at the clock.
fn look() -> u64 {
    const TIMES: u32 = 256;
    let start = Instant::now();
    for _ in 1..TIMES {
        std::hint::black_box(Instant::now());
    }
    nanos(start.elapsed()) / u64::from(TIMES)
}

#[cfg(test)]
mod tests {
    use edgepack_executor::{Input, Method, Options};
    use edgepack_loader::Program;

    use super::*;

    /// Watches passes of a small program; `part` places in a run, if it is given.
    fn watched(passes: usize, part: Option<usize>) -> Observation {
        let models = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data/corpus/models");
        let program = Program::open(format!("{models}/mlp_portable.pte")).unwrap();
        let mut method = Method::load(&program, "forward", &edgepack_kernels::registry(), &Options::default()).unwrap();
        let layout =
            edgepack_format::tensor::TensorLayout::contiguous(edgepack_format::scalar::ScalarType::FLOAT, &[3, 8]);
        let (layout, zeros) = (layout.unwrap(), [0; 96]);
        let view = edgepack_format::tensor::TensorView::new(layout, &zeros).unwrap();
        Watch::passes(passes, None, |watch| {
            if let Some(part) = part.filter(|&part| watch.part != part && watch.counts()) {
                (watch.part, watch.places) = (part, 0..part);
            }
            Ok(method.run_observed(&[Input::Tensor(view.clone())], Some(watch)).map(drop)?)
        })
        .unwrap()
    }

    #[test]
    fn every_step_has_a_time_of_every_pass() {
        for part in [None, Some(1), Some(2), Some(usize::MAX)] {
            let observation = watched(5, part);
            assert!(observation.steps.len() > 2 && observation.runs.len() == 5);
            for step in &observation.steps {
                assert_eq!((step.samples.len(), step.calls), (5, 1), "{}", step.name);
                assert!(step.samples.iter().all(|&sample| sample > 0), "{} {part:?}", step.name);
                assert!(step.work.is_some_and(|work| work.bytes > 0) && step.sizes.is_some());
            }
        }
        let observation = watched(5, Some(usize::MAX));
        for (run, whole) in observation.runs.iter().enumerate() {
            let sum: u64 = observation.steps.iter().map(|step| step.samples[run]).sum();
            assert!(sum > 0 && sum <= *whole, "run {run}: {sum} of {whole}");
        }
    }

    #[test]
    fn the_timeline_is_a_whole_run_without_overlaps() {
        for part in [Some(1), Some(usize::MAX)] {
            let observation = watched(3, part);
            assert_eq!(observation.timeline.len(), observation.steps.len());
            let ends = observation.timeline.windows(2).all(|pair| pair[0].end <= pair[1].start);
            assert!(ends && observation.timeline.iter().all(|busy| busy.start <= busy.end));
        }
    }
}
