//! Cost of one value of a large program: to verify, to visit, to load.

use edgepack_executor::{Method, Options};
use edgepack_format::pte::{Chain, ExecutionPlan, ProgramRef};
use edgepack_kernels::registry;
use edgepack_loader::Program;

use super::{BUDGET, extent, head, parse, with_arenas};
use crate::clock::{Race, timed};
use crate::{idle, programs, readers};

pub fn run() {
    let sample = programs::large();
    let head = head(&sample.bytes);
    let extent = extent(&sample.bytes);
    let program = parse(&head, extent);
    let (values, instructions) = counts(&program);
    let title = format!("{}: {values} values, {instructions} instructions, {} bytes", sample.name, head.len());

    let mut verify = Race::new(format!("open and verify, {title}"));
    verify.lane("edgepack: structure and meaning", values, || timed(|| parse(&head, extent)));
    verify.lane("flatbuffers: structure", values, || timed(|| readers::official::verified(&head)));
    verify.print("ns/value", BUDGET);

    let official = readers::official::verified(&head);
    let mut walk = Race::new(format!("visit every value and instruction, {title}"));
    walk.lane("edgepack", values, || timed(|| readers::ours::walk(&program)));
    walk.lane("flatbuffers", values, || timed(|| readers::official::walk(&official)));
    walk.lane("planus", values, || timed(|| readers::planus::walk(&head)));
    walk.lane("floor: offsets and loads", values, || timed(|| readers::floor::walk(&head)));
    walk.print("ns/value", BUDGET);

    let opened = Program::from_bytes(sample.bytes.clone()).expect("a valid program");
    let options = Options { no_optimize: true, ..with_arenas(&opened) };
    let (kernels, idle) = (registry(), idle::registry());
    let missing = Method::load(&opened, "forward", &kernels, &options).err();
    let mut load = Race::new(format!("load from bytes in memory to a frozen plan, {title}"));
    load.lane("open, verify, load; idle kernels", values, || {
        timed(|| {
            let program = Program::from_bytes(sample.bytes.clone()).expect("a valid program");
            Method::load(&program, "forward", &idle, &options).expect("it loads")
        })
    });
    match &missing {
        None => load.lane("open, verify, load; all kernels", values, || {
            timed(|| {
                let program = Program::from_bytes(sample.bytes.clone()).expect("a valid program");
                Method::load(&program, "forward", &kernels, &options).expect("it loads")
            })
        }),
        Some(error) => println!("\nwith all kernels it does not load: {error}"),
    }
    load.lane("open and verify", values, || {
        timed(|| Program::from_bytes(sample.bytes.clone()).expect("a valid program"))
    });
    load.lane("load; idle kernels", values, || {
        timed(|| Method::load(&opened, "forward", &idle, &options).expect("it loads"))
    });
    load.print("ns/value", BUDGET);
}

/// Values and instructions of all methods.
fn counts(program: &ProgramRef<'_>) -> (usize, usize) {
    let (mut values, mut instructions) = (0, 0);
    for plan in program.plans().tables().iter().flatten() {
        values += plan.get(ExecutionPlan::VALUES).ok().flatten().map_or(0, |rows| rows.len());
        for chain in plan.get(ExecutionPlan::CHAINS).ok().flatten().unwrap_or_default().tables().iter().flatten() {
            instructions += chain.get(Chain::INSTRUCTIONS).ok().flatten().map_or(0, |rows| rows.len());
        }
    }
    (values, instructions)
}
