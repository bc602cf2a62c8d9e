//! Times and memory of opening, loading and running.

use std::io::{self, Write};
use std::time::Duration;

use edgepack_executor::MemoryBytes;
use serde::{Serialize, Serializer};
use web_time::Instant;

use crate::formats::roofline::Roofline;
use crate::profile::{Spread, nanos};
use crate::status::Failure;
use crate::style::{DIM, TITLE};
use crate::table::{Align, Cell, Columns};
use crate::units::{bytes, count, duration};

/// Time of opening, loading and running, and the memory needed.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Measured {
    /// Name of the file, as the command line has it.
    pub file: String,
    /// Name of the method; of a package, that of its module.
    pub method: String,
    /// Threads that were asked for.
    pub threads: Option<u16>,
    /// Opening and verifying.
    #[serde(rename = "open_ns", serialize_with = "as_nanos")]
    #[cfg_attr(feature = "schemas", schemars(with = "u64"))]
    pub open: Duration,
    /// Loading; of a package compiling its code, or finding what was compiled.
    #[serde(rename = "load_ns", serialize_with = "as_nanos")]
    #[cfg_attr(feature = "schemas", schemars(with = "u64"))]
    pub load: Duration,
    /// The first run.
    #[serde(rename = "first_run_ns", serialize_with = "as_nanos")]
    #[cfg_attr(feature = "schemas", schemars(with = "u64"))]
    pub first_run: Duration,
    /// All others.
    pub steady: Steady,
    /// Memory of all kinds.
    pub memory: Memory,
    /// Every instruction next to the limits of the machine, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub roofline: Option<Roofline>,
    /// Work of one run: `12 instructions`.
    #[serde(skip)]
    pub work: String,
}

/// Runs after the first.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Steady {
    runs: usize,
    #[serde(flatten)]
    spread: Spread,
}

/// Bytes of memory by use.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Memory {
    planned_bytes: usize,
    private_bytes: usize,
    scratch_bytes: usize,
    constant_bytes: usize,
    packed_bytes: usize,
    plan_bytes: usize,
    /// The most the whole process ever had in memory; absent where the system does not say.
    peak_resident_bytes: Option<u64>,
}

/// Steady runs that are made at least.
const FEWEST: usize = 5;
/// Steady runs that are made at most.
const MOST: usize = 1_000_000;

fn as_nanos<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(nanos(*time))
}

impl Steady {
    /// Measures runs for some time. `once` makes one and says how long it took.
    pub fn measure(time: Duration, mut once: impl FnMut() -> Result<Duration, Failure>) -> Result<Steady, Failure> {
        let (mut times, begin) = (Vec::new(), Instant::now());
        while times.len() < FEWEST || (begin.elapsed() < time && times.len() < MOST) {
            times.push(nanos(once()?));
        }
        Ok(Steady { runs: times.len(), spread: Spread::of(times) })
    }
}

impl Memory {
    /// As the executor accounts for it.
    pub fn of(memory: MemoryBytes) -> Self {
        let MemoryBytes { planned, private, scratch, constants, lent, packed, plan, program } = memory;
        Memory {
            planned_bytes: planned,
            private_bytes: private,
            scratch_bytes: scratch,
            constant_bytes: constants + lent,
            packed_bytes: packed,
            plan_bytes: plan + program,
            peak_resident_bytes: peak_resident(),
        }
    }

    /// Rows of a table: the use, the bytes, and a remark.
    pub fn rows(&self) -> Vec<(&'static str, String, &'static str)> {
        let mut rows = vec![
            ("planned memory", self.planned_bytes as u64, ""),
            ("other memory", self.private_bytes as u64, "values without a plan"),
            ("scratch", self.scratch_bytes as u64, ""),
            ("constants", self.constant_bytes as u64, ""),
            ("packed weights", self.packed_bytes as u64, ""),
            ("plan", self.plan_bytes as u64, "with the flatbuffer"),
        ];
        rows.extend(self.peak_resident_bytes.map(|peak| ("process, at most", peak, "resident")));
        rows.into_iter().map(|(name, count, note)| (name, bytes(count), note)).collect()
    }
}

/// From the process's own account, on Linux.
fn peak_resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

impl Measured {
    /// Prints it.
    pub fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        let time = |nanos| duration(Duration::from_nanos(nanos));
        let threads = self.threads.map_or(String::new(), |threads| format!(", {}", count(threads.into(), "thread")));
        writeln!(out, "{TITLE}{}{TITLE:#}  {}{threads}, {}", self.method, self.file, self.work)?;
        let mut columns = Columns::new(2, &[Align::Left, Align::Right, Align::Left]);
        let mut row = |name: &str, value: String, note: String| {
            columns.row([Cell::new(name, DIM), value.into(), Cell::new(note, DIM)]);
        };
        row("open and verify", duration(self.open), String::new());
        row("load", duration(self.load), String::new());
        row("first run", duration(self.first_run), String::new());
        let Steady { runs, spread } = self.steady;
        row("steady run", time(spread.median_ns), format!("median of {runs}; {}", spread.in_words()));
        self.memory.rows().into_iter().for_each(|(name, value, note)| row(name, value, note.to_owned()));
        columns.print(out)?;
        self.roofline.iter().try_for_each(|roofline| roofline.print(out))
    }
}
