//! A trace, for people.

use std::io::{self, Write};

use super::summary::TraceSummary;
use crate::style::{DIM, NAME, TITLE};
use crate::table::{Align, Cell, Columns};
use crate::units::{bytes, count, share};

/// Prints a trace.
pub fn print(trace: &TraceSummary, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{DIM}version {}{DIM:#}", trace.version)?;
    for (index, block) in trace.blocks.iter().enumerate() {
        let mut facts = vec![count(block.events, "event")];
        if block.values > 0 {
            facts.push(count(block.values, "recorded value"));
        }
        facts.extend(block.bundled_input.map(|input| format!("recorded input {input}")));
        writeln!(out, "\n{TITLE}block {index}  {}{TITLE:#}  {}", block.name, facts.join(", "))?;
        let total = block.times.iter().map(|time| time.ticks).max().unwrap_or(0);
        let mut columns = Columns::new(2, &[Align::Right, Align::Right, Align::Right, Align::Left]);
        columns.heading(&["count", "ticks", "of longest", "what"]);
        for time in &block.times {
            columns.row([
                format!("{}×", time.count).into(),
                time.ticks.to_string().into(),
                Cell::new(share(time.ticks, total), DIM),
                Cell::new(&time.name, NAME),
            ]);
        }
        if !block.times.is_empty() {
            columns.print(out)?;
        }
        let mut columns = Columns::new(2, &[Align::Right, Align::Left]);
        for allocator in block.allocators.iter().filter(|allocator| allocator.bytes > 0) {
            columns.row([bytes(allocator.bytes).into(), format!("taken from {}", allocator.name).into()]);
        }
        columns.print(out)?;
    }
    Ok(())
}
