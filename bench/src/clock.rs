//! Timing: peers take turns, so that whatever else the machine does falls on all of them.
//!
//! A lane times its own work and leaves out what is not part of it (dropping results, making inputs). Figures are
//! medians over rounds; ratios are between lanes of one race, never between runs.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// Peers that do the same work.
pub struct Race<'a> {
    title: String,
    lanes: Vec<Lane<'a>>,
}

struct Lane<'a> {
    name: String,
    run: Box<dyn FnMut() -> Duration + 'a>,
    times: Vec<Duration>,
    /// Units of work that one turn does.
    units: f64,
}

/// Times that one lane took.
#[derive(Clone, Debug)]
pub struct Figure {
    /// Name of the lane.
    pub name: String,
    /// Nanoseconds per unit: the median.
    pub median: f64,
    /// Nanoseconds per unit: the best.
    pub best: f64,
}

/// Times one call; dropping the result is not part of it.
pub fn timed<T>(work: impl FnOnce() -> T) -> Duration {
    let start = Instant::now();
    let result = black_box(work());
    let took = start.elapsed();
    drop(result);
    took
}

/// Times many calls of something short.
pub fn timed_many<T>(times: usize, mut work: impl FnMut() -> T) -> Duration {
    let start = Instant::now();
    for _ in 0..times {
        black_box(work());
    }
    start.elapsed()
}

impl<'a> Race<'a> {
    /// A race without lanes.
    pub fn new(title: impl Into<String>) -> Self {
        Race { title: title.into(), lanes: Vec::new() }
    }

    /// Adds a lane whose turn does `units` of work. The first lane is what the others are compared with.
    pub fn lane(&mut self, name: impl Into<String>, units: usize, run: impl FnMut() -> Duration + 'a) {
        self.lanes.push(Lane { name: name.into(), run: Box::new(run), times: Vec::new(), units: units.max(1) as f64 });
    }

    /// Runs all lanes in turn for about `budget` (at least five rounds, after one that does not count) and returns
    /// the figures in order.
    pub fn run(mut self, budget: Duration) -> Vec<Figure> {
        for lane in &mut self.lanes {
            (lane.run)();
        }
        let start = Instant::now();
        let mut rounds = 0;
        while rounds < 5 || (start.elapsed() < budget && rounds < 2000) {
            for lane in &mut self.lanes {
                lane.times.push((lane.run)());
            }
            rounds += 1;
        }
        self.lanes.iter_mut().map(Lane::figure).collect()
    }

    /// Runs all lanes and prints them, in nanoseconds per `unit`.
    pub fn print(self, unit: &str, budget: Duration) {
        let title = self.title.clone();
        print(&title, unit, &self.run(budget));
    }
}

impl Lane<'_> {
    fn figure(&mut self) -> Figure {
        self.times.sort_unstable();
        let nanos = |time: Option<&Duration>| time.map_or(0.0, |time| time.as_nanos() as f64 / self.units);
        Figure {
            name: self.name.clone(),
            median: nanos(self.times.get(self.times.len() / 2)),
            best: nanos(self.times.first()),
        }
    }
}

/// The best figures of the first two lanes; NaN where there is none.
pub fn bests(figures: &[Figure]) -> [f64; 2] {
    [0, 1].map(|lane| figures.get(lane).map_or(f64::NAN, |figure| figure.best))
}

/// The geometric mean of ratios; NaN of none.
pub fn geometric_mean(ratios: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = ratios.fold((0.0, 0.0), |(sum, count), ratio| (sum + ratio.ln(), count + 1.0));
    (sum / count).exp()
}

/// Prints figures as a table: median, best, and the median as a multiple of the first lane's.
pub fn print(title: &str, unit: &str, figures: &[Figure]) {
    println!("\n{title}");
    println!("| {:40} | median {unit:>10} | best {unit:>10} | ratio |", "");
    println!("|{:-<42}|------------------:|----------------:|------:|", "");
    let base = figures.first().map_or(1.0, |figure| figure.median);
    for Figure { name, median, best } in figures {
        println!("| {name:40} | {:>17} | {:>15} | {:>5.2} |", number(*median), number(*best), median / base);
    }
}

/// A number with as many digits as mean something.
fn number(value: f64) -> String {
    if value < 100.0 { format!("{value:.1}") } else { format!("{value:.0}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_take_turns_and_units_divide() {
        let order = std::cell::RefCell::new(Vec::new());
        let mut race = Race::new("");
        for (name, nanos) in [("a", 1000), ("b", 3000)] {
            let order = &order;
            race.lane(name, 10, move || {
                order.borrow_mut().push(name);
                Duration::from_nanos(nanos)
            });
        }
        let figures = race.run(Duration::ZERO);
        assert_eq!(figures.iter().map(|figure| figure.median).collect::<Vec<_>>(), [100.0, 300.0]);
        assert_eq!(order.borrow()[..4], ["a", "b", "a", "b"]);
    }
}
