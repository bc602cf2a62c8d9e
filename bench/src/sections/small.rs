//! Cost of a program that has next to nothing in it.

use edgepack_executor::{LoadMethod, Options};
use edgepack_kernels::registry;
use edgepack_loader::Program;

use super::{BUDGET, Inputs, run_once};
use crate::clock::{Race, timed};
use crate::programs;

pub fn run() {
    let sample = programs::small();
    let kernels = registry();
    let options = Options::default();
    let open = || Program::from_bytes(sample.bytes.clone()).expect("a valid program");
    let load = |program: &Program| program.method("forward").expect("the method is there").load(&kernels, &options);
    if let Err(error) = load(&open()) {
        return println!("\n{} does not load: {error}", sample.name);
    }
    let inputs = Inputs::of(&open());
    let inputs = inputs.views();
    let mut method = load(&open()).expect("it loaded before");

    let mut race = Race::new(format!("fixed cost, {}: {} bytes", sample.name, sample.bytes.len()));
    race.lane("open, verify, load", 1, || timed(|| load(&open())));
    race.lane("open, verify", 1, || timed(open));
    race.lane("open, verify, load, first run", 1, || {
        timed(|| {
            let mut method = load(&open()).expect("it loaded before");
            run_once(&mut method, &inputs);
            method
        })
    });
    race.lane("later runs", 1, || timed(|| run_once(&mut method, &inputs)));
    race.lane("making the registry", 1, || timed(registry));
    race.print("ns", BUDGET);
}
