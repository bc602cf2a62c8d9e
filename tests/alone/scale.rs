//! Twice as much of anything is twice as much work: for loading and for every command that reads, over every list of every
//! format.
//!
//! Work is instructions, counted by callgrind, so the answer does not depend on the machine's mood. The test runs itself
//! under `valgrind`; where that is not installed it says so and counts nothing. `cargo test --profile fuzz -p edgepack-tests
//! --test scale -- --ignored --exact work_is_in_proportion` runs it.

use std::collections::{BTreeMap, BTreeSet};
use std::hint::black_box;
use std::path::Path;
use std::process::{Command, Stdio};
use std::{env, fs};

use edgepack_executor::delegate::{Backend, Backends, Delegate, DelegateInit};
use edgepack_executor::kernel::{KernelContext, KernelError, Prepare, Run};
use edgepack_executor::{Method, Options};
use edgepack_loader::Program;
use edgepack_tests::command::edgepack;
use edgepack_tests::scale::{Document, List, ONE_RANGE, documents};

/// Times the items of a document that a list gains, so that both increases between them can be compared. A table that
/// is rehashed or moved in one of the increases makes that increase look steep; a case that was steep is counted again
/// with more items, and must be steep there as well.
const MORE: [[usize; 3]; 2] = [[1, 2, 4], [4, 8, 16]];

/// Ceiling of the second increase, in multiples of the first. The second adds twice the items of the first. Sorting and
/// maps make that a little more; every pair of items compared makes it four times. To count as steep, the whole must
/// have more than doubled as well.
const MOST: f64 = 2.6;

/// Number of instructions below which an increase says nothing.
const LEAST: f64 = 300_000.0;

/// Commands that read one file; `-` is the file.
const COMMANDS: [&[&str]; 10] = [
    &["inspect", "-"],
    &["inspect", "--all", "-"],
    &["verify", "-"],
    &["ops", "-"],
    &["size", "-"],
    &["dump", "-"],
    &["print", "-"],
    &["view", "-", "-o", "-"],
    &["view", "-", "--model-explorer"],
    &["load"],
];

/// The command that reads two files: both are the file.
const DIFF: &[&str] = &["diff"];

/// A backend that does nothing with its payloads.
struct Idle;

impl Backend for Idle {
    fn id(&self) -> &str {
        ONE_RANGE
    }
    fn init(&self, _: DelegateInit<'_>) -> Result<Box<dyn Delegate>, KernelError> {
        Ok(Box::new(Idle))
    }
}

impl Delegate for Idle {
    fn outputs(&self, count: usize) -> std::ops::Range<usize> {
        0..count
    }
    fn prepare(&self, _: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
        Ok(Box::new(|_: &mut KernelContext<'_>| Ok(())))
    }
}

fn load(bytes: &[u8]) {
    let Ok(program) = Program::from_bytes(bytes.to_vec()) else { return };
    let registry = edgepack_kernels::registry();
    // Every method is loaded where methods are few; of many, the last one.
    let names = program.method_names().unwrap_or_default();
    for name in names.iter().rev().take(2) {
        let options = Options { backends: Backends::new().with(Idle), ..Options::default() };
        let _ = black_box(Method::load(&program, name, &registry, &options));
    }
}

fn run(command: &[&str], bytes: &[u8]) {
    match command {
        ["load"] => load(bytes),
        _ => drop(black_box(edgepack(command, bytes.to_vec(), false))),
    }
}

/// Marks the place where the counter is read and set to zero again; callgrind finds it by its name.
#[inline(never)]
fn count_ends_here(what: &str) {
    black_box(what);
}

/// Says to a process which of the parts is its own: one out of so many lists.
const PART: &str = "EDGEPACK_SCALE_PART";
const PARTS: usize = 2;

/// Says to a process which cases to count again, a line each.
const AGAIN: &str = "EDGEPACK_SCALE_AGAIN";

fn each(part: usize, mut then: impl FnMut(&Document, &List, bool)) {
    let mut seen = BTreeSet::new();
    for document in documents() {
        let lists = document.lists();
        assert!(lists.len() > 2, "{}: {lists:?}", document.name);
        for list in lists.iter().filter(|list| seen.insert(list.name.clone()) && seen.len() % PARTS == part) {
            for named in [false, true] {
                then(&document, list, named);
            }
        }
    }
}

/// Every file is read by every command; the lines say what was counted between two marks.
#[test]
#[ignore = "is run by the test below, under callgrind"]
fn counted() {
    let part = env::var(PART).ok().and_then(|part| part.parse().ok()).unwrap_or(0);
    let again = env::var(AGAIN).ok();
    let again = again.as_ref().map(|cases| cases.lines().collect::<BTreeSet<_>>());
    let more = MORE[usize::from(again.is_some())];
    let folder = env::temp_dir().join(format!("edgepack-scale-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join("file");
    each(part, |document, list, named| {
        let case = |command: &[&str]| format!("{} {} {} {}", document.name, list.name, named, command.join("_"));
        let wanted = |command: &[&str]| again.as_ref().is_none_or(|again| again.contains(case(command).as_str()));
        if !COMMANDS.into_iter().chain([DIFF]).any(wanted) {
            return;
        }
        let files: Vec<_> = more.iter().map(|&more| document.with(list, more * document.items, named)).collect();
        let [Some(one), Some(two), Some(four)] = files.as_slice() else { return };
        if named && document.with(list, document.items, false).as_deref() == Some(one) {
            return;
        }
        let work = |command: &[&str], run: &dyn Fn(&[u8])| {
            if !wanted(command) {
                return;
            }
            for bytes in [one, two, four] {
                fs::write(&path, bytes).unwrap();
                count_ends_here("before");
                run(bytes);
                count_ends_here("after");
            }
            println!("\nWORK {}", case(command));
        };
        for command in COMMANDS {
            work(command, &|bytes| run(command, bytes));
        }
        let same = path.to_str().unwrap();
        work(DIFF, &|_| drop(black_box(edgepack(&["diff", same, same], Vec::new(), false))));
    });
    fs::remove_dir_all(&folder).unwrap();
}

/// Number of instructions that one part of callgrind's output counted; `None` if it cannot be read.
fn instructions(path: &Path) -> Option<f64> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().rev().find_map(|line| line.strip_prefix("totals: "))?;
    line.split_whitespace().next()?.parse().ok()
}

#[test]
#[ignore = "takes very long without optimisation: `.ci/full proportion` counts with the profile `fuzz`"]
fn work_is_in_proportion() {
    let version = Command::new("valgrind").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !version.is_ok_and(|status| status.success()) {
        println!("valgrind is not installed: no work was counted");
        return;
    }
    let said = std::thread::scope(|scope| {
        let parts: Vec<_> = (0..PARTS).map(|part| scope.spawn(move || counted_under_callgrind(part, None))).collect();
        parts.into_iter().flat_map(|part| part.join().unwrap()).collect::<Vec<_>>()
    });
    let mut counted = BTreeMap::<&str, usize>::new();
    for (what, _) in &said {
        *counted.entry(what.rsplit(' ').next().unwrap_or_default()).or_default() += 1;
    }
    println!("{counted:?}");
    assert!(counted.len() == COMMANDS.len() + 1 && counted.values().all(|&count| count > 60), "{counted:?}");
    let cases: Vec<_> = said.iter().filter(|(_, work)| is_steep(*work)).map(|(what, _)| what.as_str()).collect();
    if cases.is_empty() {
        return;
    }
    println!("counted again:\n{}", cases.join("\n"));
    let said: Vec<_> = (0..PARTS).flat_map(|part| counted_under_callgrind(part, Some(&cases.join("\n")))).collect();
    assert_eq!(said.len(), cases.len(), "every case is counted again");
    let steep: Vec<_> = said.iter().filter(|(_, work)| is_steep(*work)).map(|case| format!("{case:?}")).collect();
    assert!(steep.is_empty(), "more than in proportion:\n{}", steep.join("\n"));
}

/// Returns whether the work of three sizes grows by more than the sizes do.
fn is_steep([one, two, four]: [f64; 3]) -> bool {
    let (first, second) = (two - one, four - two);
    // Allocators and hash seeds make small increases uneven; work by pairs shows in the whole, too.
    second > LEAST && second > MOST * first && four > 2.0 * two
}

/// Counts of one process: each case, and the instructions of its three files.
fn counted_under_callgrind(part: usize, again: Option<&str>) -> Vec<(String, [f64; 3])> {
    let folder = env::temp_dir().join(format!("edgepack-callgrind-{}-{part}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let out = folder.join("out");
    let ran = Command::new("valgrind")
        .args(["--tool=callgrind", "--dump-after=*count_ends_here*", "--compress-strings=yes"])
        .arg(format!("--callgrind-out-file={}", out.display()))
        .arg(env::current_exe().unwrap())
        .args(["--exact", "counted", "--ignored", "--nocapture", "--test-threads=1"])
        .env("RAYON_NUM_THREADS", "1")
        .env(PART, part.to_string())
        .envs(again.map(|cases| (AGAIN, cases)))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(ran.status.success(), "{said}{}", String::from_utf8_lossy(&ran.stderr));
    let mut dump = 0;
    let mut next = || {
        dump += 2;
        instructions(&folder.join(format!("out.{dump}"))).expect("a part for every mark")
    };
    let cases = said.lines().filter_map(|line| line.strip_prefix("WORK "));
    let counted = cases.map(|what| (what.to_owned(), [next(), next(), next()])).collect();
    fs::remove_dir_all(&folder).unwrap();
    counted
}
