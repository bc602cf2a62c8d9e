//! Time that the executor adds to every instruction.

use std::hint::black_box;

use edgepack_executor::{Method, Options};
use edgepack_kernels::registry;
use edgepack_loader::Program;

use super::{BUDGET, Inputs, run_once};
use crate::clock::{Race, timed, timed_many};
use crate::{idle, programs};

const CALLS: usize = 10_000;

/// The least that a call needs: one indirect call that adds two numbers.
type Bare = Box<dyn FnMut(&mut [f32; 3])>;

pub fn run() {
    let options = Options { no_optimize: true, ..Options::default() };
    let trivial = programs::trivial(CALLS);
    let program = Program::from_bytes(trivial.bytes).expect("a valid program");
    let inputs = Inputs::of(&program);
    let inputs = inputs.views();

    let mut bare: Vec<Bare> =
        (0..CALLS).map(|call| -> Bare { Box::new(move |x| x[(call + 1) % 2] = x[call % 2] + x[2]) }).collect();
    let mut numbers = [1.0f32, 0.0, 0.5];
    let mut idle_method = Method::load(&program, "forward", &idle::registry(), &options).expect("it loads");
    let mut method = Method::load(&program, "forward", &registry(), &options);

    let mut race = Race::new(format!("{CALLS} {}", trivial.name));
    race.lane("indirect calls, nothing else", CALLS, || {
        timed(|| bare.iter_mut().for_each(|call| call(black_box(&mut numbers))))
    });
    race.lane("executor, idle kernels", CALLS, || timed(|| run_once(&mut idle_method, &inputs)));
    match &mut method {
        Ok(method) => race.lane("executor, aten::add.out", CALLS, || timed(|| run_once(method, &inputs))),
        Err(error) => println!("\nwith all kernels it does not load: {error}"),
    }
    race.print("ns/call", BUDGET);
    deep();
}

/// Times a model whose instructions do some work: with idle kernels, and with all kernels on one thread.
fn deep() {
    let Some(sample) = programs::model("deep") else { return };
    let program = Program::from_bytes(sample.bytes).expect("a valid program");
    let inputs = Inputs::of(&program);
    let inputs = inputs.views();
    let calls = 5601;
    let plain = Options { no_optimize: true, ..Options::default() };
    let single = Options { threads: Some(1), ..Options::default() };
    let mut idle_method = Method::load(&program, "forward", &idle::registry(), &plain).expect("it loads");
    let mut method = Method::load(&program, "forward", &registry(), &single);

    let mut race = Race::new(format!("{}: {calls} instructions", sample.name));
    race.lane("executor, idle kernels", calls * 10, || timed_many(10, || run_once(&mut idle_method, &inputs)));
    match &mut method {
        Ok(method) => race.lane("executor, all kernels, 1 thread", calls, || timed(|| run_once(method, &inputs))),
        Err(error) => println!("\nwith all kernels it does not load: {error}"),
    }
    race.print("ns/call", BUDGET);
}
