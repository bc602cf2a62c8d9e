//! Campaigns: seeds, then mutations of them, until a number of executions or a time is reached.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use edgepack_fuzz::Body;
use edgepack_smith::{Rng, mutate, shrink};

use crate::guard::{self, Failure};

/// Limits of a campaign.
#[derive(Clone, Copy)]
pub struct Budget {
    /// Executions beyond the seeds.
    pub executions: u64,
    /// Time beyond the seeds.
    pub time: Duration,
}

/// Result of a campaign.
pub struct Outcome {
    /// Inputs run, seeds included.
    pub executions: u64,
    /// Time that the campaign took.
    pub time: Duration,
    /// The smallest input of every place that failed.
    pub failures: BTreeMap<String, (Failure, Vec<u8>)>,
}

/// Runs a body over its seeds, more files to start from, and their mutations.
pub fn run(body: &'static Body, more: &[PathBuf], budget: Budget, seed: u64) -> Outcome {
    let mut seeds = (body.seeds)();
    seeds.extend(body.files().iter().chain(more).filter_map(|path| std::fs::read(path).ok()));
    let begun = Instant::now();
    let mut outcome = Outcome { executions: 0, time: Duration::ZERO, failures: BTreeMap::new() };
    for input in &seeds {
        outcome.case(body, input);
    }
    let (mut engine, mutating) = (Engine::new(body, seeds, seed), Instant::now());
    for number in 0..budget.executions {
        if number % 16 == 0 && mutating.elapsed() > budget.time {
            break;
        }
        let input = engine.next();
        outcome.case(body, &input);
    }
    outcome.time = begun.elapsed();
    outcome
}

impl Outcome {
    fn case(&mut self, body: &'static Body, input: &[u8]) {
        self.executions += 1;
        let Err(failure) = guard::run(body, input) else { return };
        let known = self.failures.get(&failure.place);
        if known.is_none_or(|(_, smallest)| input.len() < smallest.len()) {
            let path = guard::save(body.name, input);
            if known.is_none() {
                eprintln!("{}: {}: {}\n    {}", body.name, failure.place, failure.message, path.display());
            }
            self.failures.insert(failure.place.clone(), (failure, input.to_vec()));
        }
    }
}

/// Makes one input after another.
struct Engine {
    body: &'static Body,
    seeds: Vec<Vec<u8>>,
    dictionary: Vec<Vec<u8>>,
    rng: Rng,
    current: Vec<u8>,
}

impl Engine {
    fn new(body: &'static Body, seeds: Vec<Vec<u8>>, seed: u64) -> Self {
        Engine { body, seeds, dictionary: body.words(), rng: Rng::new(seed), current: Vec::new() }
    }

    fn next(&mut self) -> Vec<u8> {
        let rng = &mut self.rng;
        // Mutations pile up on one input for a while.
        if self.current.is_empty() || rng.one_in(6) {
            self.current = rng.pick(&self.seeds).cloned().unwrap_or_default();
        }
        let mut input = self.current.clone();
        let other = rng.pick(&self.seeds).map_or(&[][..], Vec::as_slice);
        let root = (self.body.root)(&input);
        let choice = rng.below(10);
        let edited = if (4..9).contains(&choice) { (self.body.edit)(&input, rng) } else { None };
        match (choice, root, edited) {
            (_, _, Some(edited)) => input = edited,
            (0..7, Some((at, desc)), None) => drop(mutate::mutate(&mut input, at, desc, rng)),
            _ => mutate::bytes::mutate(&mut input, other, &self.dictionary, rng),
        }
        if rng.one_in(3) {
            self.current.clone_from(&input);
        }
        input
    }
}

/// The smallest input found that fails at the same place.
pub fn minimise(body: &'static Body, input: &[u8]) -> Option<(Failure, Vec<u8>)> {
    let failure = guard::run(body, input).err()?;
    let fails = |input: &[u8]| guard::run(body, input).is_err_and(|found| found.place == failure.place);
    let best = shrink::shrink(input, fails).unwrap_or_else(|| input.to_vec());
    Some((failure, best))
}
