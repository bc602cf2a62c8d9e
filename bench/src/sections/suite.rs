//! Whole models compared with the reference's XNNPACK, one table: every program of the folder, on one and two threads.
//!
//! Of a model `NAME` there may be three files: `NAME.pte` has portable operators only, `NAME_xnn.pte` is lowered to
//! XNNPACK, `NAME_xnn_int8.pte` is quantised and lowered. The reference runs the lowered form of the same numbers, so a
//! portable program is compared with `NAME_xnn.pte`.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use edgepack_executor::{Method, Options};
use edgepack_kernels::registry;
use edgepack_loader::Program;

use super::reference::Reference;
use super::{Inputs, memory, run_once};
use crate::clock::{Race, bests, geometric_mean, timed};
use crate::programs;

/// Time for which one pair of lanes takes turns.
const BUDGET: Duration = Duration::from_millis(1500);

/// Forms of a model: what the table calls it, what its file adds to the name, and what the reference's file adds.
const FORMS: [(&str, &str, &str); 3] =
    [("portable", "", "_xnn"), ("XNNPACK", "_xnn", "_xnn"), ("XNNPACK, int8", "_xnn_int8", "_xnn_int8")];

/// One line of the table; times are the best of many, in nanoseconds.
struct Row {
    model: String,
    form: &'static str,
    threads: usize,
    run: [f64; 2],
    load: [f64; 2],
    /// Bytes, on one thread.
    memory: Option<[f64; 2]>,
}

pub fn run() {
    let names = programs::names();
    let mut rows = Vec::new();
    for threads in [1, 2] {
        let reference = match Reference::start(threads) {
            Ok(reference) => RefCell::new(reference),
            Err(reason) => return println!("\nsuite: {reason}, nothing is measured"),
        };
        for name in &names {
            for (form, ours, theirs) in FORMS {
                let (file, peer) = (format!("{name}{ours}"), format!("{name}{theirs}"));
                if programs::model(&peer).is_none() {
                    continue;
                }
                match measure(&reference, &file, &peer, threads) {
                    Ok(Some([run, load])) => {
                        let memory = (threads == 1).then(|| memory(&file, &peer)).transpose();
                        let memory = memory.unwrap_or_else(|reason| {
                            println!("memory of {file}: {reason}");
                            None
                        });
                        rows.push(Row { model: name.clone(), form, threads, run, load, memory });
                    }
                    Ok(None) => {}
                    Err(reason) => println!("{file}, {threads} threads: {reason}"),
                }
            }
        }
    }
    print(&mut rows);
}

/// Times runs and loads of one program, and the reference's runs and loads of `peer`; `None` if there is no such file.
fn measure(
    reference: &RefCell<Reference>,
    file: &str,
    peer: &str,
    threads: usize,
) -> Result<Option<[[f64; 2]; 2]>, String> {
    let Some(sample) = programs::model(file) else { return Ok(None) };
    let kernels = registry();
    let options = Options { threads: Some(threads), backends: edgepack::backends(), ..Options::default() };
    let open = |bytes: Arc<[u8]>| Program::from_bytes(bytes).map_err(|error| error.to_string());
    let load = || {
        let program = open(sample.bytes.clone())?;
        Method::load(&program, "forward", &kernels, &options).map_err(|error| error.to_string())
    };
    let mut method = load()?;
    reference.borrow_mut().answer(&format!("run {peer}"))?;
    let ask = |request: String| move || reference.borrow_mut().ask(&request);

    let inputs = Inputs::of(method.program());
    let inputs = inputs.views();
    let mut race = Race::new("");
    race.lane("edgepack", 1, || timed(|| run_once(&mut method, &inputs)));
    race.lane("reference", 1, ask(format!("run {peer}")));
    let runs = bests(&race.run(BUDGET));

    let mut race = Race::new("");
    race.lane("edgepack", 1, || timed(load));
    race.lane("reference", 1, ask(format!("load {peer}")));
    Ok(Some([runs, bests(&race.run(BUDGET))]))
}

/// Memory of one program, and of `peer` with the reference, each in a process of its own.
fn memory(file: &str, peer: &str) -> Result<[f64; 2], String> {
    let path = programs::models_dir().ok_or("EDGEPACK_BENCH_MODELS names no folder")?.join(file).with_extension("pte");
    let ours = memory::resident_of(&path, memory::Of::Method)?;
    let theirs = Reference::start(1)?.answer(&format!("growth {peer}"))?;
    Ok([ours, theirs].map(|bytes| bytes as f64))
}

fn print(rows: &mut [Row]) {
    rows.sort_by(|a, b| (&a.model, a.form).cmp(&(&b.model, b.form)).then(a.threads.cmp(&b.threads)));
    println!("\nModels beside the reference's XNNPACK: best of many, in ms; a ratio below 1 is faster\n");
    println!(
        "| model | form | threads | run | reference | ratio | load | reference | ratio | MiB | reference | ratio |"
    );
    println!("| --- | --- | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: |");
    for Row { model, form, threads, run, load, memory } in &*rows {
        let pair = |[ours, theirs]: [f64; 2], unit: f64| {
            format!("{:.3} | {:.3} | {:.2}", ours / unit, theirs / unit, ours / theirs)
        };
        let memory = memory.map_or(" | | ".to_owned(), |memory| pair(memory, f64::from(1 << 20)));
        println!("| {model} | {form} | {threads} | {} | {} | {memory} |", pair(*run, 1e6), pair(*load, 1e6));
    }
    println!("\n| geometric mean of ratios | threads | models | run | load | memory |");
    println!("| --- | --: | --: | --: | --: | --: |");
    for (form, ..) in FORMS {
        for threads in [1, 2] {
            let of: Vec<&Row> = rows.iter().filter(|row| row.form == form && row.threads == threads).collect();
            let mean = |pair: fn(&Row) -> Option<[f64; 2]>| {
                geometric_mean(of.iter().filter_map(|row| pair(row)).map(|[ours, theirs]| ours / theirs))
            };
            let (run, load) = (mean(|row| Some(row.run)), mean(|row| Some(row.load)));
            let memory = if threads == 1 { format!("{:.2}", mean(|row| row.memory)) } else { String::new() };
            println!("| {form} | {threads} | {} | {run:.2} | {load:.2} | {memory} |", of.len());
        }
    }
}
