//! The reference's lowering compared with ours: from an exported program to the bytes of a program file.
//!
//! The reference's lane starts from a program that it has read already; ours opens the archive and reads it every time,
//! so that what is compared favours the reference. Memory that methods plan is compared too: the same computation should
//! not need more of it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use edgepack_exir::archive::Archive;
use edgepack_exir::lower::{Options, lower};
use edgepack_loader::Program;

use super::planned;
use super::reference::Reference;
use crate::clock::{Figure, Race, timed};
use crate::resident;

/// Time that one model may take, beyond the rounds that every race has.
const BUDGET: Duration = Duration::from_secs(2);

/// The archives that are part of the checkout.
pub const OWN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data/corpus");

pub fn run() {
    let reference = match Reference::start_in(Path::new(OWN), 1) {
        Ok(reference) => RefCell::new(reference),
        Err(reason) => return println!("\nlower: {reason}, nothing is measured"),
    };
    println!("\nlower, milliseconds; arenas in bytes, peaks of whole processes in MiB, ours / the reference's");
    println!(
        "| model | ours, median | best | reference, median | best | ratio of medians | of bests | arenas | peaks |"
    );
    println!("|---|--:|--:|--:|--:|--:|--:|--:|--:|");
    for (name, path) in archives() {
        match measure(&reference, &path) {
            Ok(row) => println!("| {name} | {row} |"),
            Err(reason) => println!("| {name} | {reason} |"),
        }
    }
}

fn measure(reference: &RefCell<Reference>, path: &Path) -> Result<String, String> {
    let ask = |what: &str| reference.borrow_mut().answer(&format!("{what} {}", path.display()));
    ask("lower").map_err(|error| format!("the reference: {error}"))?;
    let bytes = lowered(path).map_err(|error| format!("edgepack: {error}"))?;
    let arenas = arenas(bytes)?;
    let their_arenas = ask("arenas")?;
    resident::forget_peak().map_err(|error| error.to_string())?;
    ask("forget-peak")?;

    let mut race = Race::new("");
    race.lane("edgepack", 1_000_000, || timed(|| lowered(path)));
    race.lane("reference", 1_000_000, || Duration::from_nanos(ask("lower").expect("it did it before")));
    let figures = race.run(BUDGET);
    let [ours, theirs]: [Figure; 2] = figures.try_into().map_err(|_| "two lanes give two figures")?;
    Ok(format!(
        "{:.2} | {:.2} | {:.0} | {:.0} | {:.0} | {:.0} | {arenas} / {their_arenas} | {} / {}",
        ours.median,
        ours.best,
        theirs.median,
        theirs.best,
        theirs.median / ours.median,
        theirs.best / ours.best,
        resident::peak().ok_or("this system tells no peak")? >> 20,
        ask("peak")? >> 20,
    ))
}

/// Work of our lane: opens the archive at a path, lowers its program and returns the bytes of the file.
fn lowered(path: &Path) -> Result<Vec<u8>, Box<dyn std::error::Error>> {
    let program = Archive::open(path)?.program()?;
    Ok(lower(vec![("forward".to_owned(), program)], &Options::default())?.to_bytes()?)
}

/// Bytes that `forward` of a file plans, all memories together.
fn arenas(bytes: Vec<u8>) -> Result<i64, String> {
    let program = Program::from_bytes(bytes).map_err(|error| error.to_string())?;
    Ok(planned(&program).iter().skip(1).sum())
}

/// `pt2/NAME/model.pt2` of the checkout and of the folder that `EDGEPACK_CORPUS` names, which wins where both have it.
pub fn archives() -> BTreeMap<String, PathBuf> {
    let other = std::env::var_os("EDGEPACK_CORPUS").map(PathBuf::from);
    let folders = [Some(PathBuf::from(OWN)), other].into_iter().flatten();
    let models = folders.filter_map(|folder| std::fs::read_dir(folder.join("pt2")).ok()).flatten().flatten();
    let named = models.map(|model| (model.file_name().to_string_lossy().into_owned(), model.path().join("model.pt2")));
    named.filter(|(_, path)| path.is_file()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_measured_lowers_archives_to_programs_with_memory() {
        let archives = archives();
        let bytes = lowered(&archives["add"]).unwrap();
        assert!(arenas(bytes).unwrap() > 0);
    }
}
