//! Aligned columns.

use std::io::{self, Write};

use anstyle::Style;

/// Side to which a column is aligned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Align {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// One cell: text and how it looks.
#[derive(Clone, Debug)]
pub struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    /// A cell with a style.
    pub fn new(text: impl Into<String>, style: Style) -> Self {
        Cell { text: text.into(), style }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Cell::new(text, Style::new())
    }
}

/// The widest cell that others are aligned with: what is written stays in proportion to the cells.
const WIDEST: usize = 200;

/// Rows of cells that are printed with aligned columns, two spaces apart. The last column is never padded, and a cell that
/// is wider than any sensible column moves nothing but what follows in its row.
pub struct Columns {
    aligns: Vec<Align>,
    rows: Vec<Vec<Cell>>,
    indent: usize,
}

impl Columns {
    /// Columns with these alignments, the whole indented.
    pub fn new(indent: usize, aligns: &[Align]) -> Self {
        Columns { aligns: aligns.to_vec(), rows: Vec::new(), indent }
    }

    /// Returns whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Adds a row; it may be shorter than others.
    pub fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Adds a row of dimmed headings.
    pub fn heading(&mut self, names: &[&str]) {
        self.row(names.iter().map(|name| Cell::new(*name, crate::style::DIM)));
    }

    /// Prints all rows.
    pub fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.text.chars().count()).filter(|&width| width <= WIDEST).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for row in &self.rows {
            write!(out, "{:1$}", "", self.indent)?;
            // Trailing empty cells would leave trailing spaces.
            let used = row.iter().rposition(|cell| !cell.text.is_empty()).map_or(0, |last| last + 1);
            for (column, cell) in row.iter().take(used).enumerate() {
                let fill = widths[column].saturating_sub(cell.text.chars().count());
                let (before, after) = match self.aligns.get(column) {
                    Some(Align::Right) => (fill, 0),
                    _ => (0, fill),
                };
                let after = if column + 1 == used { 0 } else { after + 2 };
                let Cell { text, style } = cell;
                write!(out, "{:before$}{style}{text}{style:#}{:after$}", "", "")?;
            }
            writeln!(out)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_align_and_lines_do_not_trail() {
        let mut columns = Columns::new(2, &[Align::Left, Align::Right, Align::Left]);
        columns.row(["a".into(), "1".into(), "x".into()]);
        columns.row(["long".into(), "1000".into(), "".into()]);
        let mut out = Vec::new();
        columns.print(&mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "  a        1  x\n  long  1000\n");
    }

    #[test]
    fn a_cell_without_end_does_not_widen_every_row() {
        let mut columns = Columns::new(0, &[Align::Left, Align::Left]);
        columns.row(["x".repeat(100_000).into(), "1".into()]);
        (0..1000).for_each(|_| columns.row(["ab".into(), "1".into()]));
        let mut out = Vec::new();
        columns.print(&mut out).unwrap();
        assert!(out.len() < 110_000 && out.ends_with(b"\nab  1\n"), "{}", out.len());
    }
}
