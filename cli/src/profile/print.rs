//! A profile, for people.

use std::io::{self, Write};
use std::time::Duration;

use super::report::{By, Profile, Row};
use crate::style::{DIM, NAME, TITLE};
use crate::table::{Align, Cell, Columns};
use crate::units::{bytes, count, duration};

/// Prints the whole run, its memory, and the most expensive rows of one kind.
pub fn print(profile: &Profile, by: By, top: usize, out: &mut dyn Write) -> io::Result<()> {
    let Profile { file, method, threads, runs, run, .. } = profile;
    let method = method.as_deref().unwrap_or("trace");
    let threads = threads.map_or(String::new(), |threads| format!(", {}", count(threads.into(), "thread")));
    writeln!(out, "{TITLE}{method}{TITLE:#}  {file}{threads}")?;
    let mut columns = Columns::new(2, &[Align::Left, Align::Right, Align::Left]);
    let mut row = |name: &str, value: String, note: String| {
        columns.row([Cell::new(name, DIM), value.into(), Cell::new(note, DIM)]);
    };
    let time = |nanos| duration(Duration::from_nanos(nanos));
    row("run", time(run.median_ns), format!("median of {runs}; {}", run.in_words()));
    if let Some(overhead) = profile.overhead {
        let adds = match overhead.share() {
            // Runs of nanoseconds: the clock alone takes longer.
            more if more > 1.0 => {
                format!("a watched call takes {}, {:.1} times as long", time(overhead.watched_ns), more + 1.0)
            }
            more => format!("watching adds {:.1} %", more * 100.0),
        };
        row("call, not watched", time(overhead.unwatched_ns), adds);
    }
    row("outside of instructions", time(profile.outside_ns), String::new());
    if let Some(memory) = &profile.memory {
        let most = profile.nodes.iter().filter(|row| row.position.is_some_and(|at| at <= memory.arenas.peak_position));
        let at = most.max_by_key(|row| row.position);
        let at = at.map_or(String::new(), |row| format!("first at {}", label(row)));
        row("values, at their peak", bytes(memory.arenas.peak_bytes), at);
        for part in &memory.arenas.parts {
            row(&format!("memory {}", part.name), bytes(part.bytes), String::new());
        }
        row("scratch", bytes(memory.scratch_bytes as u64), String::new());
        row("constants", bytes(memory.constant_bytes as u64), String::new());
        row("packed weights", bytes(memory.packed_bytes as u64), String::new());
    }
    columns.print(out)?;
    table(profile.rows(by), by, top, out)
}

/// `12 aten::add.out`.
fn label(row: &Row) -> String {
    match &row.place {
        Some(place) => format!("{place} {}", row.name),
        None => row.name.clone(),
    }
}

fn table(rows: &[Row], by: By, top: usize, out: &mut dyn Write) -> io::Result<()> {
    let noun = match by {
        By::Instruction => "instruction",
        By::Operator => "operator",
        By::Node => "node",
        By::Module => "module",
    };
    writeln!(out, "\n{TITLE}{}{TITLE:#}", count(rows.len(), noun))?;
    let mut aligns = [Align::Right; 9];
    aligns[8] = Align::Left;
    let mut columns = Columns::new(2, &aligns);
    columns.heading(&[
        "time",
        "of all",
        "half within",
        "calls",
        "bytes",
        "a second",
        "multiply-adds",
        "a second",
        noun,
    ]);
    let time = |nanos| duration(Duration::from_nanos(nanos));
    for row in rows.iter().take(top) {
        let spread = format!("{} to {}", time(row.time.lower_quartile_ns), time(row.time.upper_quartile_ns));
        let sizes = row.sizes.as_ref().map_or(String::new(), |sizes| format!(" {sizes:?}"));
        let products = row.multiply_adds.filter(|products| *products > 0);
        let per_second =
            |rate: Option<f64>, unit: &str| rate.map_or(String::new(), |rate| format!("{:.2} {unit}", rate / 1e9));
        columns.row([
            time(row.time.median_ns).into(),
            percent(row.share).into(),
            Cell::new(spread, DIM),
            row.calls.to_string().into(),
            row.bytes.map_or(String::new(), bytes).into(),
            Cell::new(per_second(row.bytes_per_second, "GB"), DIM),
            products.map_or(String::new(), |products| products.to_string()).into(),
            Cell::new(products.map_or(String::new(), |_| per_second(row.multiply_adds_per_second, "G")), DIM),
            Cell::new(format!("{}{sizes}", label(row)), NAME),
        ]);
    }
    columns.print(out)?;
    let rest = rows.get(top..).unwrap_or_default();
    if !rest.is_empty() {
        let share = rest.iter().map(|row| row.share).sum();
        writeln!(out, "  {DIM}and {}, {} of the time{DIM:#}", count(rest.len(), "more row"), percent(share))?;
    }
    Ok(())
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}
