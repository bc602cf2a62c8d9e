//! Whole models: loading, the first run, and runs after that on one and two threads.

use edgepack_executor::{Method, Options};
use edgepack_kernels::registry;
use edgepack_loader::Program;

use super::{BUDGET, Inputs, run_once};
use crate::clock::{Race, timed};
use crate::programs;

/// The reference exports that are measured.
pub const MODELS: [&str; 3] = ["mlp", "transformer", "mobilenet_v2"];

pub fn run() {
    if programs::models_dir().is_none() {
        return println!("\nmodels: EDGEPACK_BENCH_MODELS names no folder, nothing is measured");
    }
    let kernels = registry();
    for sample in MODELS.iter().filter_map(|name| programs::model(name)) {
        let program = Program::from_bytes(sample.bytes.clone()).expect("a valid program");
        let inputs = Inputs::of(&program);
        let inputs = inputs.views();
        let options = |threads| Options { threads: Some(threads), ..Options::default() };
        if let Err(error) = Method::load(&program, "forward", &kernels, &options(1)) {
            println!("\n{} does not load: {error}", sample.name);
            continue;
        }
        let load = |options: &Options| {
            let program = Program::from_bytes(sample.bytes.clone()).expect("a valid program");
            Method::load(&program, "forward", &kernels, options).expect("it loaded before")
        };
        let mut steady = [1, 2].map(|threads| (threads, load(&options(threads))));
        let plain = Options { threads: Some(1), no_optimize: true, ..Options::default() };
        let mut unoptimized = load(&plain);

        let mut race = Race::new(sample.name.clone());
        for (threads, method) in &mut steady {
            race.lane(format!("run, {threads} threads"), 1000, || timed(|| run_once(method, &inputs)));
        }
        race.lane("run, 1 thread, not optimized", 1000, || timed(|| run_once(&mut unoptimized, &inputs)));
        race.lane("open, verify, load", 1000, || timed(|| load(&Options::default())));
        race.lane("open, verify, load, not optimized", 1000, || timed(|| load(&plain)));
        race.lane("open, verify, load, first run", 1000, || {
            timed(|| {
                let mut method = load(&options(1));
                run_once(&mut method, &inputs);
                method
            })
        });
        race.print("us", BUDGET);
    }
}
