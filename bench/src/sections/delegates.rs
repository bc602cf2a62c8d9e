//! Lowering to XNNPACK, the reference's compared with ours: how long it takes, and the programs that come of it.
//!
//! Programs of both are run by the reference runtime, on the inputs that were recorded beside the archive. Their outputs are
//! compared there, too. The reference's lane of lowering starts from a program that it has read already; ours opens the
//! archive every time.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use edgepack_exir::archive::Archive;
use edgepack_exir::backends::xnnpack;
use edgepack_exir::lower::{ByName, Options, ProgramManager};
use edgepack_format::pte::InstructionArguments;
use edgepack_loader::Program;

use super::lower::{OWN, archives};
use super::reference::Reference;
use crate::clock::{Figure, Race, geometric_mean, timed};

/// Time that both lanes of a model take turns, beyond the rounds that every race has.
const BUDGET: Duration = Duration::from_secs(2);

/// Most that a run of our program may take, as a multiple of the other's.
const GOAL: f64 = 1.05;

/// One line of the table.
struct Row {
    /// Calls of delegates and of kernels, ours first.
    calls: [[usize; 2]; 2],
    /// Bytes of the files.
    bytes: [usize; 2],
    /// Difference of outputs over the largest output, in parts of a thousand million.
    apart: u64,
    /// Nanoseconds of a run, the best of many.
    runs: [f64; 2],
    /// Nanoseconds of lowering, the best of many.
    lowering: [f64; 2],
}

pub fn run() {
    let reference = match Reference::start_in(Path::new(OWN), 1) {
        Ok(reference) => RefCell::new(reference),
        Err(reason) => return println!("\ndelegates: {reason}, nothing is measured"),
    };
    let folder = std::env::temp_dir().join(format!("edgepack-delegates-{}", std::process::id()));
    if let Err(error) = std::fs::create_dir_all(&folder) {
        return println!("\ndelegates: {}: {error}", folder.display());
    }
    println!(
        "\nLowering to XNNPACK and the programs that come of it, run by the reference: ours / the reference's, one thread"
    );
    println!(
        "| model | delegates | kernel calls | bytes | ratio | outputs apart | run, us | ratio | lowering, ms | times as fast |"
    );
    println!("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|");
    let mut rows = Vec::new();
    for (name, path) in archives().into_iter().chain(others()) {
        match measure(&reference, &path, &folder) {
            Ok(row) => {
                println!("| {name} | {row} |");
                rows.push(row);
            }
            Err(reason) => println!("| {name} | {reason} |"),
        }
    }
    // Files of this run alone; nothing can be done if they stay.
    let _ = std::fs::remove_dir_all(&folder);
    let mean = |ratio: fn(&Row) -> f64| geometric_mean(rows.iter().map(ratio));
    println!(
        "| geometric mean of {} | | | | {:.3} | | | {:.2} | | {:.0} |",
        rows.len(),
        mean(|row| row.bytes[0] as f64 / row.bytes[1] as f64),
        mean(|row| row.runs[0] / row.runs[1]),
        mean(|row| row.lowering[1] / row.lowering[0]),
    );
    let slow = rows.iter().filter(|row| row.runs[0] > GOAL * row.runs[1]).count();
    println!("\n{slow} programs run longer than {GOAL} times the reference's");
}

impl std::fmt::Display for Row {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Row { calls: [ours, theirs], bytes, apart, runs, lowering } = self;
        write!(out, "{} / {} | {} / {} | ", ours[0], theirs[0], ours[1], theirs[1])?;
        write!(out, "{} / {} | {:.3} | ", bytes[0], bytes[1], bytes[0] as f64 / bytes[1] as f64)?;
        write!(out, "{:.0e} | ", *apart as f64 / 1e9)?;
        write!(out, "{:.1} / {:.1} | {:.2} | ", runs[0] / 1e3, runs[1] / 1e3, runs[0] / runs[1])?;
        write!(out, "{:.2} / {:.0} | {:.0}", lowering[0] / 1e6, lowering[1] / 1e6, lowering[1] / lowering[0])
    }
}

fn measure(reference: &RefCell<Reference>, path: &Path, folder: &Path) -> Result<Row, String> {
    let ask = |what: &str| reference.borrow_mut().answer(what).map_err(|error| format!("the reference: {error}"));
    let ours = lowered(path).map_err(|error| format!("edgepack: {error}"))?;
    let lower = format!("delegate {}", path.display());
    let lowering = turns(|| timed(|| lowered(path)), || ask(&lower).map(Duration::from_nanos))?;

    let names = ["ours", "theirs"].map(|name| folder.join(name));
    ask(&format!("keep {}.pte", names[1].display()))?;
    std::fs::write(names[0].with_extension("pte"), &ours).map_err(|error| error.to_string())?;
    let theirs = std::fs::read(names[1].with_extension("pte")).map_err(|error| error.to_string())?;
    let bytes = [ours.len(), theirs.len()];
    let calls = [calls(ours)?, calls(theirs)?];

    ask(&format!("cases {}", path.display()))?;
    let request = |name: &Path| format!("fresh {}", name.display());
    names.iter().try_for_each(|name| ask(&request(name)).map(drop))?;
    let apart = ask(&format!("apart {}", folder.display()))?;
    let mut race = Race::new("");
    for name in &names {
        let run = format!("run {}", name.display());
        race.lane("", 1, move || Duration::from_nanos(ask(&run).expect("it did it before")));
    }
    Ok(Row { calls, bytes, apart, runs: bests(&race.run(BUDGET))?, lowering })
}

/// Best times of both sides of lowering, in nanoseconds. The reference may take half a minute, so one turn has to do for it.
fn turns(
    mut ours: impl FnMut() -> Duration,
    theirs: impl Fn() -> Result<Duration, String>,
) -> Result<[f64; 2], String> {
    let (start, mut best) = (Instant::now(), [Duration::MAX; 2]);
    while best[1] == Duration::MAX || start.elapsed() < BUDGET {
        let round = [ours().min(ours()).min(ours()), theirs()?];
        best = [best[0].min(round[0]), best[1].min(round[1])];
    }
    Ok(best.map(|time| time.as_nanos() as f64))
}

fn bests(figures: &[Figure]) -> Result<[f64; 2], String> {
    match figures {
        [ours, theirs] => Ok([ours.best, theirs.best]),
        _ => Err("two lanes give two figures".to_owned()),
    }
}

/// `NAME.pt2` of the folder that `EDGEPACK_BENCH_ARCHIVES` names.
fn others() -> BTreeMap<String, PathBuf> {
    let folder = std::env::var_os("EDGEPACK_BENCH_ARCHIVES").map(PathBuf::from);
    let paths = folder.into_iter().flat_map(std::fs::read_dir).flatten().flatten().map(|entry| entry.path());
    let archives = paths.filter(|path| path.extension().is_some_and(|extension| extension == "pt2"));
    archives.map(|path| (path.file_stem().unwrap_or_default().to_string_lossy().into_owned(), path)).collect()
}

/// Work of our lane: opens the archive at a path, lowers its program to XNNPACK and returns the bytes of the file.
fn lowered(path: &Path) -> Result<Vec<u8>, Box<dyn std::error::Error>> {
    let mut manager = ProgramManager::new(Options::default());
    manager.keep_whole(xnnpack::whole_operators()).add("forward", Archive::open(path)?.program()?)?;
    xnnpack::delegate(&mut manager, &ByName::default())?;
    Ok(manager.finish()?.to_bytes()?)
}

/// Calls of delegates and of kernels in `forward` of a file.
fn calls(bytes: Vec<u8>) -> Result<[usize; 2], String> {
    let program = Program::from_bytes(bytes).map_err(|error| error.to_string())?;
    let view = program.view().map_err(|error| error.to_string())?;
    let plan = view.plan("forward").ok_or("it has no forward")?;
    let mut calls = [0, 0];
    for chain in plan.chains.iter().flat_map(|chains| chains.iter()).flatten() {
        for instruction in chain.instructions.iter().flat_map(|list| list.iter()).flatten() {
            match instruction.instr_args {
                Some(InstructionArguments::DelegateCall(_)) => calls[0] += 1,
                Some(InstructionArguments::KernelCall(_)) => calls[1] += 1,
                _ => {}
            }
        }
    }
    Ok(calls)
}
