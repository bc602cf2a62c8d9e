//! Instructions compared with the limits of this machine: the time of each, the bytes it moves, the products it
//! computes, and the fraction of the limit that it reaches.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use edgepack_compute::peak::Peak;
use edgepack_executor::observer::{Event, Observer, Results};
use edgepack_executor::tensor::TensorShape;
use serde::Serialize;

use crate::style::{DIM, TITLE};
use crate::table::{Align, Cell, Columns};
use crate::units::{bytes, duration, share};

/// The instructions of a run in order.
#[derive(Serialize)]
pub struct Roofline {
    /// A second, on all threads.
    multiply_adds_per_second: f64,
    bytes_per_second: f64,
    instructions: Vec<Instruction>,
}

/// One instruction, at its best of several runs.
#[derive(Serialize)]
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

/// Watches runs.
pub struct Watch {
    roofline: Roofline,
    next: usize,
    start: Instant,
}

impl Watch {
    /// Measures the machine first, of which so many threads are used.
    pub fn new(threads: usize) -> Watch {
        let (Peak { multiply_adds, bytes }, threads) = (Peak::measure(), threads as f64);
        let roofline = Roofline {
            multiply_adds_per_second: multiply_adds * threads,
            bytes_per_second: bytes * threads,
            instructions: Vec::new(),
        };
        Watch { roofline, next: 0, start: Instant::now() }
    }

    /// Returns what was seen.
    pub fn finish(self) -> Roofline {
        self.roofline
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl Observer for Watch {
    fn started(&mut self) {
        self.next = 0;
    }

    fn before(&mut self, _: &Event<'_>) {
        self.start = Instant::now();
    }

    fn after(&mut self, event: &Event<'_>, results: &Results<'_>) {
        let time_ns = nanos(self.start.elapsed());
        let index = self.next;
        self.next += 1;
        if let Some(known) = self.roofline.instructions.get_mut(index).filter(|known| known.name == event.name) {
            known.time_ns = known.time_ns.min(time_ns);
            return;
        }
        let written = results.tensors().first().map(|tensor| tensor.meta());
        let moved = results.read().iter().map(TensorShape::byte_len).sum::<usize>()
            + results.tensors().iter().map(|tensor| tensor.meta().byte_len()).sum::<usize>();
        let multiplied = written.map_or(0, |out| multiply_adds(event.name, results.read(), &out));
        let seconds = (multiplied as f64 / self.roofline.multiply_adds_per_second)
            .max(moved as f64 / self.roofline.bytes_per_second);
        self.roofline.instructions.truncate(index);
        self.roofline.instructions.push(Instruction {
            name: event.name.to_owned(),
            index: event.instruction,
            node: event.node,
            sizes: written.map_or(Vec::new(), |out| out.sizes.to_vec()),
            time_ns,
            bytes: moved as u64,
            multiply_adds: multiplied as u64,
            limit_ns: (seconds * 1e9) as u64,
        });
    }
}

/// The multiplications of convolutions and products of matrices; those of other operators hardly count.
fn multiply_adds(name: &str, read: &[TensorShape<'_>], out: &TensorShape<'_>) -> usize {
    let last = |at: usize| read.get(at).and_then(|shape| shape.sizes.last()).copied().unwrap_or(0);
    let is = |part: &str| name.contains(part);
    if is("convolution") {
        let [Some(input), Some(weight)] = [read.first(), read.get(1)] else { return 0 };
        // A tap by output and input channel for each element of the output; transposed, by input and output channel for each
        // element of the input.
        let taps = weight.element_count() / weight.sizes.first().copied().unwrap_or(1).max(1);
        let batch = out.sizes.len().saturating_sub(weight.sizes.len() - 1).min(1);
        let places = if out.sizes.get(batch) == weight.sizes.first() { out } else { input };
        return places.element_count().saturating_mul(taps);
    }
    let inner = if is("addmm") || is("baddbmm") {
        last(1)
    } else if is("::mm") || is("::bmm") || is("linear") {
        last(0)
    } else {
        0
    };
    out.element_count().saturating_mul(inner)
}

impl Roofline {
    /// Prints a row for every instruction, and their sum.
    pub fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        let giga = |x: f64| format!("{:.1}", x / 1e9);
        let (products, moved) = (giga(self.multiply_adds_per_second), giga(self.bytes_per_second));
        writeln!(out, "\n{TITLE}roofline{TITLE:#}  at most {products} G multiply-adds and {moved} GB a second")?;
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
