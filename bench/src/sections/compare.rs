//! The reference runtime beside this one, in one run: a child process takes its turns like any other lane.

use std::cell::RefCell;

use edgepack_executor::{Method, Options};
use edgepack_kernels::registry;
use edgepack_loader::Program;

use super::models::MODELS;
use super::reference::Reference;
use super::{BUDGET, Inputs, run_once};
use crate::clock::{Race, timed};
use crate::programs;

pub fn run() {
    for threads in [1, 2] {
        match Reference::start(threads) {
            Ok(reference) => compare(&RefCell::new(reference), threads),
            Err(reason) => return println!("\ncompare: {reason}, nothing is measured"),
        }
    }
}

fn compare(reference: &RefCell<Reference>, threads: usize) {
    let kernels = registry();
    let options = Options { threads: Some(threads), ..Options::default() };
    for name in MODELS.iter().chain(&["deep"]) {
        let Some(sample) = programs::model(name) else { continue };
        let load = || {
            let program = Program::from_bytes(sample.bytes.clone()).expect("a valid program");
            Method::load(&program, "forward", &kernels, &options)
        };
        let mut method = match load() {
            Ok(method) => method,
            Err(error) => {
                println!("\n{name} does not load: {error}");
                continue;
            }
        };
        let lowered = format!("{name}_xnn");
        let has_lowered = programs::model(&lowered).is_some();
        let ask = |request: String| move || reference.borrow_mut().ask(&request);

        let mut race = Race::new(format!("{name}, load, {threads} threads"));
        race.lane("edgepack", 1000, || timed(load));
        race.lane("reference", 1000, ask(format!("load {name}")));
        if has_lowered {
            race.lane("reference, XNNPACK", 1000, ask(format!("load {lowered}")));
        }
        race.print("us", BUDGET);

        let inputs = Inputs::of(method.program());
        let inputs = inputs.views();
        let mut race = Race::new(format!("{name}, run, {threads} threads"));
        race.lane("edgepack", 1000, || timed(|| run_once(&mut method, &inputs)));
        race.slow_lane("reference", 1000, ask(format!("run {name}")));
        if has_lowered {
            race.lane("reference, XNNPACK", 1000, ask(format!("run {lowered}")));
        }
        race.print("us", BUDGET);
    }
}
