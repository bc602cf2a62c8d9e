//! Models compared with other engines of Rust: `rten` and `tract`, which run the ONNX form of a model, and the reference, which
//! runs the form lowered to XNNPACK, all in turns.
//!
//! `EDGEPACK_BENCH_PEERS` names the program that `bench/peers` is built to. A model takes part if the folder of models has
//! `NAME.onnx` next to `NAME.pte`.

use std::cell::RefCell;
use std::path::PathBuf;
use std::time::Duration;

use edgepack_executor::{Method, Options};
use edgepack_kernels::registry;
use edgepack_loader::Program;

use super::reference::Reference;
use super::{Inputs, run_once};
use crate::clock::{Race, timed};
use crate::programs;

/// Time for which the lanes of a model take turns.
const BUDGET: Duration = Duration::from_millis(2500);

/// Lanes besides our own.
const PEERS: [&str; 3] = ["reference", "rten", "tract"];

pub fn run() {
    let Some(program) = std::env::var_os("EDGEPACK_BENCH_PEERS").map(PathBuf::from) else {
        return println!("\nengines: EDGEPACK_BENCH_PEERS names no program, nothing is measured");
    };
    let names: Vec<String> = programs::names().into_iter().filter(|name| programs::has_onnx(name)).collect();
    if names.is_empty() {
        return println!("\nengines: no NAME.onnx in the folder of models, nothing is measured");
    }
    println!("\nModels beside other engines: best of many, in ms, and time of edgepack over that time\n");
    println!("| model | threads | edgepack, portable | reference | ratio | rten | ratio | tract | ratio |");
    println!("| --- | --: | --: | --: | --: | --: | --: | --: | --: |");
    for threads in [1, 2] {
        let peers = PEERS.map(|peer| match peer {
            "reference" => Reference::start(threads),
            engine => Reference::start_engine(&program, engine, threads),
        });
        let peers = peers.map(|peer| peer.map(RefCell::new));
        for (name, reason) in PEERS.iter().zip(&peers).filter_map(|(name, peer)| Some((name, peer.as_ref().err()?))) {
            println!("{name}, {threads} threads: {reason}");
        }
        for name in &names {
            match measure(name, threads, &peers) {
                Ok(cells) => println!("| {name} | {threads} | {cells} |"),
                Err(reason) => println!("{name}, {threads} threads: {reason}"),
            }
        }
    }
}

/// The cells of a row behind the number of threads.
fn measure(
    name: &str,
    threads: usize,
    peers: &[Result<RefCell<Reference>, String>; PEERS.len()],
) -> Result<String, String> {
    let sample = programs::model(name).ok_or("there is no such program")?;
    let options = Options { threads: Some(threads), backends: edgepack::backends(), ..Options::default() };
    let program = Program::from_bytes(sample.bytes.clone()).map_err(|error| error.to_string())?;
    let mut method = Method::load(&program, "forward", &registry(), &options).map_err(|error| error.to_string())?;
    let inputs = Inputs::of(method.program());
    let inputs = inputs.views();

    let mut race = Race::new("");
    race.lane("edgepack", 1, || timed(|| run_once(&mut method, &inputs)));
    let mut lanes = [None; PEERS.len()];
    let mut count = 1;
    for ((lane, peer), engine) in lanes.iter_mut().zip(peers).zip(PEERS) {
        let Ok(peer) = peer else { continue };
        let request = if engine == "reference" { format!("run {name}_xnn") } else { format!("run {name}") };
        // A model that an engine does not run has no lane there.
        if peer.borrow_mut().answer(&request).is_err() {
            continue;
        }
        race.lane(engine, 1, move || peer.borrow_mut().ask(&request));
        *lane = Some(count);
        count += 1;
    }
    let figures = race.run(BUDGET);
    let best = |lane: usize| figures.get(lane).map_or(f64::NAN, |figure| figure.best);
    let ours = best(0);
    let cells = lanes.map(|lane| match lane.map(best) {
        Some(theirs) => format!("{:.3} | {:.2}", theirs / 1e6, ours / theirs),
        None => "– | –".to_owned(),
    });
    Ok(format!("{:.3} | {}", ours / 1e6, cells.join(" | ")))
}
