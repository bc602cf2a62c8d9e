//! Instructions compared with the limits of this machine: the time of each, the bytes it moves, the products it
//! computes, and the fraction of the limit that it reaches.

use std::io::{self, Write};
use std::time::Duration;

use edgepack_compute::peak::Peak;
use serde::Serialize;

use crate::profile::{Node, Observation, Step, Work};
use crate::style::{DIM, TITLE};
use crate::table::{Align, Cell, Columns};
use crate::units::{bytes, duration, share};

/// The instructions of a run in order.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Roofline {
    /// A second, on all threads: of floats, and of bytes.
    multiply_adds_per_second: f64,
    byte_multiply_adds_per_second: f64,
    bytes_per_second: f64,
    instructions: Vec<Instruction>,
}

/// One instruction, at its best of several runs.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct Instruction {
    name: String,
    /// The index in the file, and the node of the payload of a delegate.
    index: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<u32>,
    /// Sizes of the first result.
    sizes: Vec<usize>,
    time_ns: u64,
    bytes: u64,
    multiply_adds: u64,
    /// Time at the limit of the machine.
    limit_ns: u64,
}

impl Roofline {
    /// Compares instructions that were watched with the limits of the machine, which are measured first, and of which so many
    /// threads are used.
    pub fn of(observation: Observation, threads: usize) -> Roofline {
        let (peak, threads) = (Peak::measure(), threads as f64);
        let [multiply_adds_per_second, byte_multiply_adds_per_second, bytes_per_second] =
            [peak.multiply_adds, peak.byte_multiply_adds, peak.bytes].map(|one| one * threads);
        let instruction = |step: Step| {
            let Work { bytes, multiply_adds, of_bytes } = step.work.unwrap_or_default();
            let products = if of_bytes { byte_multiply_adds_per_second } else { multiply_adds_per_second };
            let seconds = (multiply_adds as f64 / products).max(bytes as f64 / bytes_per_second);
            Instruction {
                name: step.name,
                index: step.instruction,
                node: step.node.map(|node| match node {
                    Node::Number(number) => number,
                    Node::Copies | Node::Text(_) => u32::MAX,
                }),
                sizes: step.sizes.unwrap_or_default(),
                time_ns: step.samples.into_iter().min().unwrap_or(0),
                bytes,
                multiply_adds,
                limit_ns: (seconds * 1e9) as u64,
            }
        };
        let instructions = observation.steps.into_iter().map(instruction).collect();
        Roofline { multiply_adds_per_second, byte_multiply_adds_per_second, bytes_per_second, instructions }
    }

    /// Prints a row for every instruction, and their sum.
    pub fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        let giga = |x: f64| format!("{:.1}", x / 1e9);
        let [products, of_bytes, moved] =
            [self.multiply_adds_per_second, self.byte_multiply_adds_per_second, self.bytes_per_second].map(giga);
        let most = format!("{products} G multiply-adds of floats, {of_bytes} G of bytes, and {moved} GB");
        writeln!(out, "\n{TITLE}roofline{TITLE:#}  at most {most} a second")?;
        let aligns = [Align::Right, Align::Right, Align::Right, Align::Right, Align::Right, Align::Right, Align::Left];
        let mut columns = Columns::new(2, &aligns);
        let heads = ["time", "of all", "bytes", "multiply-adds", "limit", "reached", "instruction"];
        columns.row(heads.map(Cell::from));
        let sum = |of: fn(&Instruction) -> u64| self.instructions.iter().map(of).fold(0, u64::saturating_add);
        let all = sum(|instruction| instruction.time_ns);
        let mut row = |[time, moved, products, limit]: [u64; 4], name: String| {
            let time_of = |nanos| duration(Duration::from_nanos(nanos));
            let products = if products == 0 { String::new() } else { products.to_string() };
            let cells =
                [time_of(time), share(time, all), bytes(moved), products, time_of(limit), share(limit, time), name];
            columns.row(cells.map(Cell::from));
        };
        for instruction in &self.instructions {
            let Instruction { name, index, node, sizes, time_ns, bytes, multiply_adds, limit_ns } = instruction;
            let node = node.map_or(String::new(), |node| format!(".{node}"));
            row([*time_ns, *bytes, *multiply_adds, *limit_ns], format!("{index}{node} {name} {sizes:?}"));
        }
        let sums = [all, sum(|i| i.bytes), sum(|i| i.multiply_adds), sum(|i| i.limit_ns)];
        row(sums, "all".to_owned());
        columns.print(out)?;
        if self.instructions.iter().any(|instruction| instruction.limit_ns > instruction.time_ns) {
            writeln!(
                out,
                "  {DIM}over 100 %: the bytes were in caches, which are faster than the memory of the limit{DIM:#}"
            )?;
        }
        Ok(())
    }
}
