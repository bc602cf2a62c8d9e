//! The most memory that loading and running a model takes, compared with what the executor says that it needs.
//!
//! Every row is a process of its own: this binary with a hidden argument, its allocator counting. Heap is what was
//! allocated and not yet freed, at its most; mapped is what of the model's file is resident at the end. Inputs and the
//! operator table are made before: they are the caller's.

use std::path::Path;
use std::process::Command;

use edgepack_executor::{LoadMethod, MemoryBytes, Options};
use edgepack_kernels::registry;
use edgepack_loader::Program;

use super::{Inputs, run_once};
use crate::programs::open;
use crate::{live, programs, resident, telling};

/// The argument that makes this binary measure one model: a path and how to open it follow.
pub const CHILD: &str = "--memory-of";
/// The models, with the one that has many values.
const MODELS: [&str; 4] = ["mlp", "transformer", "mobilenet_v2", "deep"];
/// Runs after the first.
const STEADY: usize = 20;

pub fn run() {
    let Some(dir) = programs::models_dir() else {
        return println!("\nmemory: EDGEPACK_BENCH_MODELS names no folder, nothing is measured");
    };
    println!("\nmemory of loading and running, one thread, KiB");
    println!(
        "| model | opened | planned | private | scratch | constants | packed | plan | flatbuffer | sum | peak of loading \
         | peak | peak / sum | file, resident |"
    );
    println!("|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|");
    for name in MODELS {
        let path = dir.join(name).with_extension("pte");
        for how in ["read", "mapped"].into_iter().filter(|_| path.is_file()) {
            match child(&path, how) {
                Ok(row) => println!("| {name} | {how} | {row} |"),
                Err(reason) => println!("| {name} | {how} | {reason} |"),
            }
        }
    }
}

fn child(path: &Path, how: &str) -> std::io::Result<String> {
    let output = Command::new(std::env::current_exe()?).arg(CHILD).arg(path).arg(how).output()?;
    let text = if output.status.success() { &output.stdout } else { &output.stderr };
    Ok(String::from_utf8_lossy(text).trim().to_owned())
}

/// Measures one model in this process and prints its row.
pub fn measure(arguments: &[String]) -> Result<(), Box<dyn std::error::Error>> {
    let [path, how] = arguments else { return Err("a path, and `read`, `mapped` or what is `resident`".into()) };
    if let Some(of) = [Of::Method, Of::Language].into_iter().find(|of| of.argument() == how) {
        println!("{}", growth(path.as_ref(), of)?);
        return Ok(());
    }
    live::count();
    let kernels = registry();
    let inputs = Inputs::of(&Program::open(path)?);
    let views = inputs.views();
    let before = live::live();
    let most = || (live::peak() - before) >> 10;
    live::forget_peak();

    let program = open(path.as_ref(), how == "mapped")?;
    let options = Options { threads: Some(1), ..Options::default() };
    let mut method = program.method("forward")?.load(&kernels, &options)?;
    let load = most();
    for _ in 0..=STEADY {
        run_once(&mut method, &views);
    }
    let peak = most();
    let memory = method.memory_bytes();
    let MemoryBytes { planned, private, scratch, constants, packed, plan, program, .. } = memory;
    for bytes in [planned, private, scratch, constants, packed, plan, program, memory.heap()] {
        print!("{} | ", bytes >> 10);
    }
    let share = peak as f64 * 1024.0 / memory.heap() as f64;
    println!(
        "{load} | {peak} | {share:.3} | {}",
        resident(path).map_or("–".to_owned(), |bytes| (bytes >> 10).to_string())
    );
    Ok(())
}

/// Runs whose resident memory is asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Of {
    /// `forward`, some times.
    Method,
    /// A prompt and single tokens of a language model.
    Language,
}

impl Of {
    /// The argument of the process that measures it.
    fn argument(self) -> &'static str {
        match self {
            Self::Method => "resident",
            Self::Language => "resident-language",
        }
    }
}

/// Bytes that the process of a model has resident at most for loading it from a mapped file, with all backends, and running
/// it, besides what it has before.
pub fn resident_of(path: &Path, of: Of) -> Result<u64, String> {
    let answer = child(path, of.argument()).map_err(|error| error.to_string())?;
    answer.parse().map_err(|_| answer)
}

/// [`resident_of`], in this process.
fn growth(path: &Path, of: Of) -> Result<u64, Box<dyn std::error::Error>> {
    if of == Of::Language {
        return grown(|| Ok(telling::tell(path)?));
    }
    let kernels = registry();
    let inputs = Inputs::of(&Program::open(path)?);
    let views = inputs.views();
    grown(|| {
        let options = Options { threads: Some(1), backends: edgepack::backends(), ..Options::default() };
        let mut method = open(path, true)?.method("forward")?.load(&kernels, &options)?;
        for _ in 0..=STEADY {
            run_once(&mut method, &views);
        }
        Ok(method)
    })
}

/// Bytes that are resident at most while something runs, besides what is before.
fn grown<T>(run: impl FnOnce() -> Result<T, Box<dyn std::error::Error>>) -> Result<u64, Box<dyn std::error::Error>> {
    resident::forget_peak()?;
    let before = resident::now().ok_or("this system does not tell")?;
    let result = run()?;
    let peak = resident::peak().ok_or("this system does not tell")?;
    drop(result);
    Ok(peak.saturating_sub(before))
}

/// Bytes of a mapped file that are in memory; `None` if it is not mapped or the system does not say.
fn resident(path: &str) -> Option<u64> {
    let path = std::fs::canonicalize(path).ok()?;
    let smaps = std::fs::read_to_string("/proc/self/smaps").ok()?;
    let mut lines = smaps.lines();
    lines.find(|line| line.ends_with(&*path.to_string_lossy()))?;
    let rss = lines.find_map(|line| line.strip_prefix("Rss:"))?;
    Some(rss.trim().strip_suffix(" kB")?.parse::<u64>().ok()? << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapped_file_is_resident_as_far_as_it_was_read() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data/corpus/models/mlp_portable.pte");
        assert_eq!(resident(path), None);
        let program = open(path.as_ref(), true).unwrap();
        assert!(program.method("forward").is_ok());
        assert!(resident(path).is_none_or(|bytes| bytes >= 4096));
    }
}
