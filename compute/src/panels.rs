//! Products with a matrix that is not stored as `f32`: 16-bit floats, or 8-bit integers with scales.
//!
//! The matrix is brought into `f32` some columns at a time, in scratch memory, and multiplied from there. So it stays as
//! small in memory as it is in the file, and what is read from memory is the small form.

use std::ops::Range;

use crate::error::{Error, ErrorKind};
use crate::gemm::{Fast, Gemm, Mat, Terms};

/// Approximate number of elements of a panel: as many as the second level of cache holds next to other data.
const PANEL: usize = 1 << 15;
/// The fewest columns of a panel.
const LEAST: usize = 32;

/// A product of `m` rows of `k` elements with a matrix of `n` columns.
#[derive(Clone, Copy, Debug)]
pub struct Panels {
    /// Rows.
    pub m: usize,
    /// Columns of the left side and rows of the matrix: the dimension that is summed over.
    pub k: usize,
    /// Columns.
    pub n: usize,
}

/// Order of the elements of a panel in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lies {
    /// Column after column.
    Columns,
    /// Row after row.
    Rows,
}

/// Operations on panels and results. Blocks of results have a row per row of the product and a column per column
/// named.
pub trait Panel {
    /// Returns the order in which [`Panel::fill`] stores elements.
    fn lies(&self) -> Lies;

    /// Writes the named columns of the matrix.
    fn fill(&self, columns: Range<usize>, panel: &mut [f32]);

    /// Writes what is added to a block, if anything is.
    fn start(&self, columns: Range<usize>, block: &mut [f32]);

    /// Takes a block of results.
    fn take(&mut self, columns: Range<usize>, block: &[f32]);
}

impl Panels {
    fn wanted(&self) -> usize {
        (PANEL / self.k.max(1)).max(LEAST).min(self.n)
    }

    /// Elements of scratch memory that a product up to this size needs.
    pub fn scratch(&self) -> usize {
        self.wanted().saturating_mul(self.k.saturating_add(self.m))
    }

    /// Multiplies. The scratch memory is that of a product at least as large.
    pub fn multiply(
        &self,
        lhs: Mat<'_, f32>,
        [alpha, beta]: [f32; 2],
        scratch: &mut [f32],
        panel: &mut impl Panel,
    ) -> Result<(), Error> {
        let Panels { m, k, n } = *self;
        if m * n == 0 {
            return Ok(());
        }
        let fits = scratch.len().checked_div(k + m).unwrap_or(0).min(self.wanted());
        if fits == 0 {
            return Err(Error::new(ErrorKind::Unsupported, "the product is larger than at load"));
        }
        let (columns, block) = scratch.split_at_mut(fits * k);
        for first in (0..n).step_by(fits) {
            let range = first..(first + fits).min(n);
            let (columns, block) = (&mut columns[..range.len() * k], &mut block[..range.len() * m]);
            panel.fill(range.clone(), columns);
            let rhs = match panel.lies() {
                Lies::Columns => Mat::new(columns, [range.len(), k], [k, 1])?.transposed(),
                Lies::Rows => Mat::new(columns, [k, range.len()], [range.len(), 1])?,
            };
            if beta != 0.0 {
                panel.start(range.clone(), block);
            }
            Fast::multiply(block, lhs, rhs.into(), Terms { alpha, beta, ..Terms::default() })?;
            panel.take(range, block);
        }
        Ok(())
    }
}
