//! Memory as text: a picture of which values are where and when, and what is alive at the peak.

use std::io::{self, Write};

use super::graph::{Graph, Node, View};
use crate::profile::{Alive, Arenas};
use crate::style::{DIM, NAME, SHAPE, TITLE, WARN};
use crate::table::{Align, Cell, Columns};
use crate::units::{bytes, count, share};

/// Columns of a picture, each some nodes.
const WIDE: usize = 72;
/// Rows of a picture, each some bytes.
const HIGH: usize = 16;
/// Values at the peak that have a letter; the largest ones.
const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// Prints the memories of all graphs that have some.
pub fn print(view: &View, out: &mut dyn Write) -> io::Result<()> {
    let mut some = false;
    for graph in &view.graphs {
        if let Some(memory) = &graph.memory {
            if some {
                writeln!(out)?;
            }
            some = true;
            print_graph(&view.file, graph, memory, out)?;
        }
    }
    match some {
        true => Ok(()),
        false => {
            writeln!(out, "{TITLE}{}{TITLE:#}  {WARN}it does not say where values are in memory{WARN:#}", view.file)
        }
    }
}

/// `12 aten::add.out`.
fn label(node: Option<&Node>) -> String {
    match node {
        Some(node) if node.place.is_empty() => node.name.clone(),
        Some(node) => format!("{} {}", node.place, node.name),
        None => "nothing".to_owned(),
    }
}

fn print_graph(file: &str, graph: &Graph, memory: &Arenas, out: &mut dyn Write) -> io::Result<()> {
    let at = memory.peak_position;
    let node = |index: usize| label(graph.nodes.get(index));
    writeln!(out, "{TITLE}{}{TITLE:#}  {file}", graph.name)?;
    writeln!(out, "  {} hold values at the peak, first at {NAME}{}{NAME:#}", bytes(memory.peak_bytes), node(at))?;
    let mut alive: Vec<&Alive> =
        memory.values.iter().filter(|one| one.first <= at && at <= one.last && one.bytes > 0).collect();
    alive.sort_by(|a, b| (b.bytes, a.part, a.offset).cmp(&(a.bytes, b.part, b.offset)));
    let letters: Vec<(&Alive, char)> = alive.iter().copied().zip(LETTERS.iter().map(|&byte| byte.into())).collect();
    for (index, part) in memory.parts.iter().enumerate() {
        let values: Vec<&Alive> = memory.values.iter().filter(|value| value.part == index).collect();
        writeln!(
            out,
            "\n  {TITLE}memory {}{TITLE:#}  {}, {}",
            part.name,
            bytes(part.bytes),
            count(values.len(), "value")
        )?;
        picture(graph, memory, part.bytes, &values, &letters, out)?;
    }
    writeln!(out, "\n  {TITLE}alive at the peak{TITLE:#}  {}", count(alive.len(), "value"))?;
    let mut columns =
        Columns::new(4, &[Align::Left, Align::Right, Align::Right, Align::Left, Align::Left, Align::Left]);
    let known: std::collections::HashMap<&str, &str> =
        graph.values.iter().map(|value| (value.name.as_str(), value.kind.as_str())).collect();
    for (value, letter) in &letters {
        columns.row([
            letter.to_string().into(),
            bytes(value.bytes).into(),
            Cell::new(share(value.bytes, memory.peak_bytes), DIM),
            Cell::new(&value.name, NAME),
            Cell::new(known.get(value.name.as_str()).copied().unwrap_or_default(), SHAPE),
            Cell::new(format!("{} to {}", node(value.first), node(value.last)), DIM),
        ]);
    }
    columns.print(out)?;
    match alive.len() - letters.len() {
        0 => Ok(()),
        more => writeln!(out, "    {DIM}and {more} more{DIM:#}"),
    }
}

/// Draws one memory: a letter where a value of the peak is, a dot where another is. Lowest addresses are at the bottom.
fn picture(
    graph: &Graph,
    memory: &Arenas,
    len: u64,
    values: &[&Alive],
    letters: &[(&Alive, char)],
    out: &mut dyn Write,
) -> io::Result<()> {
    let (nodes, wide) = (graph.nodes.len().max(1), graph.nodes.len().clamp(1, WIDE));
    let high = HIGH.min(usize::try_from(len).unwrap_or(HIGH)).max(1);
    let mut rows = vec![vec![' '; wide]; high];
    let column = |node: usize| (node * wide / nodes).min(wide - 1);
    let row = |offset: u64| {
        let row = u128::from(offset) * high as u128 / u128::from(len.max(1));
        usize::try_from(row).unwrap_or(high).min(high - 1)
    };
    let letter = |value: &Alive| letters.iter().find(|(one, _)| std::ptr::eq(*one, value)).map(|(_, letter)| *letter);
    // Small ones first, so that the large ones are seen; those with letters last.
    let mut sorted: Vec<(bool, u64, &Alive)> = values
        .iter()
        .filter(|value| value.bytes > 0)
        .map(|value| (letter(value).is_some(), value.bytes, *value))
        .collect();
    sorted.sort_by_key(|(lettered, bytes, _)| (*lettered, *bytes));
    // Every value takes as many cells as the picture has at most.
    for (_, _, value) in sorted {
        let mark = letter(value).unwrap_or('·');
        let last = value.offset.saturating_add(value.bytes).saturating_sub(1);
        for row in &mut rows[row(value.offset)..=row(last)] {
            row[column(value.first)..=column(value.last)].fill(mark);
        }
    }
    let peak = column(memory.peak_position);
    let width = bytes(len).chars().count();
    for (index, row) in rows.iter().enumerate().rev() {
        let end = u64::try_from(u128::from(len) * (index as u128 + 1) / high as u128).unwrap_or(len);
        writeln!(out, "  {DIM}{:>width$}{DIM:#} |{}|", bytes(end), row.iter().collect::<String>())?;
    }
    writeln!(out, "  {DIM}{:>width$}  {:>column$} peak{DIM:#}", "", "^", column = peak + 1)
}
