//! One operator at a time, through the executor as a program calls it, compared with what the machine can do.
//!
//! Operators that multiply are compared with two peaks of one thread: a loop of multiply-adds that never leaves the
//! registers, which nothing exceeds, and a large square product of packed matrices, which is what products of this size
//! can hope for. The others are compared with `copy_from_slice` of as many bytes. Peers take turns with the operator; a
//! turn is as many calls as take about a millisecond, so what fits the cache stays there, for all of them. With
//! `EDGEPACK_REFERENCE_PYTHON` the reference runtime runs the same programs.

mod cases;

use std::cell::RefCell;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::Duration;

use edgepack_compute::threads::Threads;
use edgepack_executor::{Input, LoadMethod, Method, Options};
use edgepack_format::scalar::ScalarType;
use edgepack_kernels::registry;
use edgepack_loader::{AlignedBytes, Program};
use rten_simd::ops::{BitOps, NumOps};
use rten_simd::{Isa, Simd, SimdOp};

use self::cases::{Case, Work};
use super::reference::Reference;
use super::{Inputs, run_once};
use crate::clock::{Figure, Race, timed, timed_many};

/// Time that one operator may take, beyond the rounds that every race has.
const BUDGET: Duration = Duration::from_millis(1500);
/// Time that a turn should take.
const TURN: Duration = Duration::from_millis(1);
/// Rows and columns of the product that others are compared with.
const SQUARE: usize = 768;

pub fn run() {
    let data = data();
    let folder = Folder::new();
    let reference = Reference::start_in(&folder.0, 1).map(RefCell::new);
    if let Err(reason) = &reference {
        println!("\noperators: {reason}, the reference is left out");
    }
    let reference = reference.ok();
    let bench = Bench { folder: &folder.0, reference: reference.as_ref() };

    println!("\noperators that multiply; GFLOP/s and shares of peaks from bests, one thread");
    println!(
        "| operator | us, median | best | GFLOP/s | of packed product | of registers | 2 threads, us, median | best \
         | reference, us, median | reference / ours |"
    );
    println!("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|");
    let square = cases::square(&data, SQUARE);
    cases::products(&data).iter().for_each(|case| bench.product(case, &square));

    println!("\noperators that read and write; GB/s from bests, one thread");
    println!(
        "| operator | us, median | best | GB/s | GB/s of a copy | time / copy, medians | bests | 2 threads, us, median \
         | best | reference, us, median | reference / ours |"
    );
    println!("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|");
    cases::moves(&data).iter().for_each(|case| bench.moves(case));
}

/// Weights: any numbers of both signs, none subnormal.
fn data() -> Vec<u8> {
    let number = |index: usize| (index.wrapping_mul(2_654_435_761) % 2000) as f32 / 1000.0 - 0.9995;
    (0..cases::MOST_DATA / 4).flat_map(|index| number(index).abs().to_le_bytes()).collect()
}

/// A folder for the programs, as long as they are needed.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let path = std::env::temp_dir().join(format!("edgepack-operators-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a temporary folder");
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Remains of a temporary folder do no harm.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Means of measuring: a folder for programs, and the reference if there is one.
struct Bench<'a> {
    folder: &'a Path,
    reference: Option<&'a RefCell<Reference>>,
}

impl Bench<'_> {
    fn product(&self, case: &Case, square: &Case) {
        let Work::Products(count) = case.work else { return };
        let Work::Products(most) = square.work else { return };
        let mut square = Loaded::new(square, 1);
        let mut race = Race::new("");
        // Nanoseconds per multiplication, so that figures of different sizes compare.
        let times = calls(|| square.run(1));
        race.lane("packed", times * most, move || square.run(times));
        race.lane("registers", Registers.dispatch().1, || timed(|| Registers.dispatch()));
        let Some([packed, registers, one, two, reference]) = self.race(case, race) else { return };
        let rate = count as f64 * 2.0 / one.best;
        println!(
            "| {} | {:.1} | {:.1} | {rate:.1} | {:.2} | {:.2} | {} |",
            case.name,
            one.median / 1000.0,
            one.best / 1000.0,
            rate * packed.best / 2.0,
            rate * registers.best / 2.0,
            others(&one, &two, &reference),
        );
    }

    fn moves(&self, case: &Case) {
        let Work::Moves(bytes) = case.work else { return };
        // Aligned, as the executor's memory is: a copy can be ten times slower otherwise.
        let (from, mut to) =
            (AlignedBytes::copy_of(&vec![1; bytes / 2]).unwrap(), AlignedBytes::zeroed(bytes / 2).unwrap());
        let mut copy =
            move |times| timed_many(times, || black_box(to.as_mut_slice()).copy_from_slice(black_box(&from)));
        let mut race = Race::new("");
        let times = calls(|| copy(1));
        race.lane("copy", times, move || copy(times));
        let Some([copy, one, two, reference]) = self.race(case, race) else { return };
        println!(
            "| {} | {:.1} | {:.1} | {:.1} | {:.1} | {:.2} | {:.2} | {} |",
            case.name,
            one.median / 1000.0,
            one.best / 1000.0,
            bytes as f64 / one.best,
            bytes as f64 / copy.best,
            one.median / copy.median,
            one.best / copy.best,
            others(&one, &two, &reference),
        );
    }

    /// Figures of the lanes there are, of one and two threads, and of the reference, whose figure is of no time where
    /// it does not run.
    fn race<'r, const N: usize>(&'r self, case: &Case, mut race: Race<'r>) -> Option<[Figure; N]> {
        for (threads, name) in [(1, "1 thread"), (2, "2 threads")] {
            let mut method = Loaded::new(case, threads);
            let times = calls(|| method.run(1));
            race.lane(name, times, move || method.run(times));
        }
        let ask = self.reference(case);
        match ask {
            Some(ask) => {
                let times = calls(|| ask(1));
                race.lane("reference", times, move || ask(times));
            }
            None => race.lane("reference", 1, || Duration::ZERO),
        }
        race.run(BUDGET).try_into().ok()
    }

    /// Returns a function that asks the reference for so many calls and returns their time; `None` if there is no
    /// reference or it does not run the program.
    fn reference<'r>(&'r self, case: &Case) -> Option<impl Fn(usize) -> Duration + use<'r>> {
        let reference = self.reference?;
        let name: String = case.name.chars().filter(char::is_ascii_alphanumeric).collect();
        std::fs::write(self.folder.join(&name).with_extension("pte"), &case.bytes).expect("room for a program");
        let answer = reference.borrow_mut().answer(&format!("calls 1 {name}"));
        match answer {
            Ok(_) => Some(move |times: usize| reference.borrow_mut().ask(&format!("calls {times} {name}"))),
            Err(reason) => {
                println!("| {}, the reference: {reason} |", case.name);
                None
            }
        }
    }
}

/// The end of a row: two threads, the reference, and the reference as a multiple of one thread.
fn others(one: &Figure, two: &Figure, reference: &Figure) -> String {
    let two = format!("{:.1} | {:.1}", two.median / 1000.0, two.best / 1000.0);
    match reference.median > 0.0 {
        true => format!("{two} | {:.1} | {:.2}", reference.median / 1000.0, reference.median / one.median),
        false => format!("{two} | – | –"),
    }
}

/// Number of calls that fill a turn, judged by the second call; at least 1 and at most 1000.
fn calls(mut once: impl FnMut() -> Duration) -> usize {
    once();
    let took = once().as_nanos().max(1);
    (TURN.as_nanos() / took).clamp(1, 1000) as usize
}

/// A program that is ready to run, with inputs.
struct Loaded {
    method: Method,
    inputs: Inputs,
    pool: Threads,
}

impl Loaded {
    fn new(case: &Case, threads: usize) -> Self {
        let program = Program::from_bytes(case.bytes.clone()).expect("what the builder made");
        let pool = Threads::new(threads).expect("threads");
        let method = program.method("forward").expect("it has one").load(&registry(), &Options::default());
        let method = method.unwrap_or_else(|error| panic!("{}: {error}", case.name));
        let mut inputs = Inputs::of(&program);
        for (layout, bytes) in &mut inputs.tensors {
            match layout.scalar_type() {
                // Indices of rows, far apart.
                ScalarType::LONG => {
                    let numbers = bytes.as_chunks_mut::<8>().0.iter_mut().enumerate();
                    numbers.for_each(|(index, out)| *out = (index as i64 * 2_654_435_761 % 1000).to_le_bytes());
                }
                ScalarType::CHAR => bytes.iter_mut().enumerate().for_each(|(index, out)| *out = index as u8),
                _ => {}
            }
        }
        Loaded { method, inputs, pool }
    }

    fn run(&mut self, times: usize) -> Duration {
        let inputs: Vec<Input<'_>> = self.inputs.views();
        let method = &mut self.method;
        // A turn is spent in the pool: waking its threads is not the operator's work.
        self.pool.run(|| timed_many(times, || run_once(method, &inputs)))
    }
}

/// Number of sums held in registers: enough that one is always ready for the next multiply-add.
const SUMS: usize = 12;
const REGISTER_ROUNDS: usize = 20_000;

/// Multiply-adds of whole registers that wait for nothing but each other.
struct Registers;

impl SimdOp for Registers {
    /// Something that depends on all of them, and how many there were.
    type Output = (f32, usize);

    #[inline(always)]
    fn eval<I: Isa>(self, isa: I) -> (f32, usize) {
        let ops = isa.f32();
        let (factor, term) = (ops.splat(black_box(0.999)), ops.splat(black_box(0.001)));
        let mut sums = [ops.splat(1.0); SUMS];
        for _ in 0..REGISTER_ROUNDS {
            for sum in &mut sums {
                *sum = ops.mul_add(*sum, factor, term);
            }
        }
        let sum = sums.into_iter().fold(ops.splat(0.0), |sum, next| ops.add(sum, next));
        (sum.to_array().into_iter().sum(), REGISTER_ROUNDS * SUMS * ops.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operator_runs_and_its_result_depends_on_its_input() {
        let data = data();
        for case in cases::products(&data).iter().chain(&cases::moves(&data)) {
            let mut loaded = Loaded::new(case, 1);
            assert_eq!(loaded.method.program().method_meta("forward").unwrap().instructions, 1, "{}", case.name);
            let mut outputs = [1, 2].map(|_| {
                run_once(&mut loaded.method, &loaded.inputs.views());
                let output =
                    loaded.method.outputs().get(0).and_then(|output| output.tensor()).unwrap().bytes().to_vec();
                loaded.inputs.tensors.iter_mut().for_each(|(_, bytes)| bytes.fill(0));
                output
            });
            let [first, second] = &mut outputs;
            assert_ne!(first, second, "{}", case.name);
        }
    }
}
