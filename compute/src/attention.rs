//! Scaled dot product attention in blocks: `softmax(scale * q·kᵀ + mask)·v`, never a whole matrix of scores.
//!
//! Queries, keys and values are rows of `dim` elements, for every batch, position and head. A lane is one head of queries,
//! or, where there is one query per head, all heads that share keys. It goes over its keys block by block and holds,
//! for every query, the greatest score, the sum of exponentials and the weighted values so far; a greater score scales
//! down what was summed before it. Invariant: everything is computed in `f32`, whatever the elements are. A query that
//! may look at no key becomes NaN.

mod single;
#[cfg(test)]
mod tests;

use edgepack_format::scalar::Element;
use rten_simd::SimdUnaryOp;

use crate::error::{Error, ErrorKind, expect_elements};

use crate::fold::row_max;
use crate::gemm::{Fast, Gemm, Mat, Terms};
use crate::layout::reach;
use crate::number::{Cast, Compute, Number};
use crate::simd::wide;
use crate::threads::{Columns, Cost, Write, WriteAll, WriteColumns, try_for_each_at};
use single::Single;

/// Queries worked on at a time.
const QUERIES: usize = 64;
/// Keys worked on at a time.
const KEYS: usize = 512;
/// The most pieces that lanes with several queries are cut into; each has scratch of its own.
const PIECES: usize = 8;
/// A key that a query looks at, for each element.
const ELEMENT: f64 = 0.05;

/// Elements between neighbours along the dimensions of `[batch, position, head]`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Strides {
    batch: usize,
    position: usize,
    head: usize,
}

/// The sizes of one call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Geometry {
    /// Number of sequences.
    pub batch: usize,
    /// Heads of queries.
    pub heads: usize,
    /// Heads of keys and values; each serves as many heads of queries as another.
    pub key_heads: usize,
    /// Queries per head.
    pub queries: usize,
    /// Keys per head that may be looked at.
    pub keys: usize,
    /// Elements of a query, key, or value.
    pub dim: usize,
    /// True if the elements are not `f32`, so that they have to be converted.
    pub converted: bool,
    /// Distances of queries, and of results, in memory.
    pub query_strides: Strides,
    /// Distances of keys, and of values, in memory.
    pub key_strides: Strides,
}

impl Strides {
    /// Returns those of a contiguous tensor of heads: `[batch, position, head, dim]`, or heads before positions.
    pub fn new(positions: usize, heads: usize, dim: usize, heads_first: bool) -> Self {
        let batch = positions * heads * dim;
        match heads_first {
            true => Strides { batch, position: dim, head: positions * dim },
            false => Strides { batch, position: heads * dim, head: dim },
        }
    }

    /// Elements of memory up to the last of rows of `dim`, for so many batches, positions and heads.
    fn reach(&self, sizes: [usize; 3], dim: usize) -> usize {
        let dims = sizes.into_iter().zip([self.batch, self.position, self.head]);
        reach(dims.chain([(dim, 1)]))
    }
}

impl Geometry {
    /// Returns whether a lane is all the heads that share keys.
    fn is_grouped(&self) -> bool {
        self.queries == 1
    }

    /// Heads of queries per head of keys.
    fn repeats(&self) -> usize {
        self.heads.checked_div(self.key_heads).unwrap_or(0)
    }

    fn rows(&self) -> usize {
        if self.is_grouped() { self.repeats() } else { self.queries }
    }

    /// Elements of scratch for each row of a lane.
    fn per_row(&self) -> usize {
        self.keys.min(KEYS) + self.dim + 2 + if self.converted { self.dim } else { 0 }
    }

    /// Elements of scratch for converted keys.
    fn per_block(&self) -> usize {
        if self.converted { self.keys.min(KEYS) * self.dim } else { 0 }
    }

    /// Elements of scratch that one lane needs.
    fn lane(&self) -> usize {
        self.rows().min(QUERIES) * self.per_row() + self.per_block()
    }

    /// Heads of queries of a piece that one thread takes: a lane, or several lanes one after the other.
    fn heads_of_piece(&self) -> usize {
        if self.is_grouped() { self.repeats() } else { self.heads.div_ceil(PIECES) }
    }

    /// Returns the elements of scratch that a call with these sizes needs.
    pub fn scratch(&self) -> usize {
        self.lane().saturating_mul(self.heads.div_ceil(self.heads_of_piece().max(1)))
    }

    /// Returns the elements of scratch that are enough for these sizes and all smaller ones.
    pub fn greatest_scratch(&self) -> usize {
        let lane = QUERIES.min(self.queries).saturating_mul(self.per_row()).saturating_add(self.per_block());
        let grouped =
            self.heads.saturating_mul(self.per_row()).saturating_add(self.key_heads.saturating_mul(self.per_block()));
        lane.saturating_mul(PIECES.min(self.heads)).max(grouped)
    }
}

/// The keys a query may look at, and what is added to its scores.
#[derive(Clone, Copy, Debug)]
pub enum Visible<'a> {
    /// All keys.
    All,
    /// Keys up to the query's own place; the first query is at this place.
    Causal(usize),
    /// All keys, with a number for each query and key: `[query, key]`.
    Mask(&'a [f32]),
}

/// A source of rows of `f32`.
pub trait Rows: Sync {
    /// Returns an error unless elements up to `reach`, of rows of `dim`, are there.
    fn expect(&self, reach: usize, dim: usize) -> Result<(), Error>;

    /// Returns all elements, where memory holds them as `f32`.
    fn floats(&self) -> Option<&[f32]> {
        None
    }

    /// Returns rows of a `shape` of rows and elements, `step` elements apart, the first at element `first`. They are converted
    /// into the buffer unless memory holds them as `f32` already.
    fn rows<'s>(
        &'s self,
        first: usize,
        step: usize,
        shape: [usize; 2],
        buffer: &'s mut [f32],
    ) -> Result<Mat<'s, f32>, Error>;
}

/// Floats, converted if they are not `f32`.
pub struct Floats<'a, T>(pub &'a [T]);

impl<T: Number + Sync> Rows for Floats<'_, T> {
    fn expect(&self, reach: usize, _: usize) -> Result<(), Error> {
        expect_elements("an operand", self.0.len(), reach)
    }

    fn floats(&self) -> Option<&[f32]> {
        // A slice of `f32` casts to itself; another type of this width does not come here.
        if T::SCALAR_TYPE == f32::SCALAR_TYPE { bytemuck::try_cast_slice(self.0).ok() } else { None }
    }

    fn rows<'s>(
        &'s self,
        first: usize,
        step: usize,
        [count, dim]: [usize; 2],
        buffer: &'s mut [f32],
    ) -> Result<Mat<'s, f32>, Error> {
        if let Some(floats) = self.floats() {
            return Mat::new(floats.get(first..).unwrap_or(&[]), [count, dim], [step, 1]);
        }
        for (row, to) in buffer.chunks_exact_mut(dim.max(1)).enumerate().take(count) {
            to.iter_mut().zip(&self.0[first + row * step..][..dim]).for_each(|(to, &from)| *to = from.cast());
        }
        Mat::new(buffer, [count, dim], [dim, 1])
    }
}

/// Bytes with a scale and a zero point for every row of `dim` elements.
pub struct Bytes<'a> {
    /// Stored numbers: each, less its row's zero point and times its row's scale, is an element.
    pub values: &'a [i8],
    /// One for each row.
    pub scales: &'a [f32],
    /// One for each row.
    pub zeros: &'a [i8],
}

impl Rows for Bytes<'_> {
    fn expect(&self, reach: usize, dim: usize) -> Result<(), Error> {
        let rows = reach.checked_div(dim).unwrap_or(0);
        expect_elements("an operand", self.values.len(), reach)?;
        expect_elements("a list of scales", self.scales.len(), rows)?;
        expect_elements("a list of zero points", self.zeros.len(), rows)
    }

    fn rows<'s>(
        &'s self,
        first: usize,
        step: usize,
        [count, dim]: [usize; 2],
        buffer: &'s mut [f32],
    ) -> Result<Mat<'s, f32>, Error> {
        for (row, to) in buffer.chunks_exact_mut(dim.max(1)).enumerate().take(count) {
            let at = first + row * step;
            let (scale, zero) = (self.scales[at / dim], i16::from(self.zeros[at / dim]));
            let values = &self.values[at..][..dim];
            wide(|| to.iter_mut().zip(values).for_each(|(to, &x)| *to = f32::from(i16::from(x) - zero) * scale));
        }
        Mat::new(buffer, [count, dim], [dim, 1])
    }
}

/// The operands of one call.
pub struct Attention<'a, R> {
    /// Sizes, and strides that the operands are read by.
    pub geometry: Geometry,
    /// Rows of `[batch, queries, heads]`, placed by `query_strides`.
    pub query: R,
    /// Rows of `[batch, keys, key_heads]`, placed by `key_strides`.
    pub key: R,
    /// Rows of `[batch, keys, key_heads]`, placed by `key_strides`; results are weighted sums of them.
    pub value: R,
    /// Keys that each query looks at, and what is added to their scores.
    pub visible: Visible<'a>,
    /// Factor of every score.
    pub scale: f32,
}

impl<R: Rows> Attention<'_, R> {
    /// Computes all lanes into an output laid out as the queries; `scratch` has [`Geometry::scratch`] elements.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Geometry`] if heads of keys do not divide those of queries, or if a slice
    /// has fewer elements than the geometry says.
    ///
    /// ```
    /// use edgepack_compute::attention::{Attention, Floats, Geometry, Strides, Visible};
    ///
    /// // One query that looks at two keys: both have the same score, so the result is the mean of the values.
    /// let query_strides = Strides::new(1, 1, 2, false);
    /// let key_strides = Strides::new(2, 1, 2, false);
    /// let geometry = Geometry {
    ///     batch: 1, heads: 1, key_heads: 1, queries: 1, keys: 2, dim: 2, converted: false, query_strides, key_strides,
    /// };
    /// let (query, key, value) = (Floats(&[1.0f32, 0.0][..]), Floats(&[0.0; 4][..]), Floats(&[2.0, 4.0, 6.0, 8.0][..]));
    /// let attention = Attention { geometry, query, key, value, visible: Visible::All, scale: 1.0 };
    /// let (mut out, mut scratch) = ([0.0f32; 2], vec![0.0; geometry.scratch()]);
    /// attention.run(&mut out, &mut scratch)?;
    /// assert_eq!(out, [4.0, 6.0]);
    /// # Ok::<(), edgepack_compute::Error>(())
    /// ```
    pub fn run<T: Number + Send>(&self, out: &mut [T], scratch: &mut [f32]) -> Result<(), Error>
    where
        f32: Cast<T>,
    {
        let geometry = &self.geometry;
        if out.is_empty() {
            return Ok(());
        }
        self.expect(out.len(), scratch.len())?;
        if let Some(single) = self.single() {
            single.run(out, scratch);
            return Ok(());
        }
        let Geometry { batch, heads, queries, keys, dim, query_strides, .. } = *geometry;
        let (each, lane) = (geometry.heads_of_piece().max(1), geometry.lane().max(1));
        let cost = Cost::nanoseconds(ELEMENT * each as f64 * queries as f64 * keys as f64 * dim as f64);
        // The results of a head are dense, or columns next to those of the other heads.
        let heads_first = query_strides.head > dim;
        for batch in 0..batch {
            let out = &mut out[batch * query_strides.batch..][..heads * queries * dim];
            if heads_first {
                let head = queries * dim;
                try_for_each_at(cost, (WriteAll(out, each * head), Write(scratch, lane)), |piece, (out, scratch)| {
                    for (index, out) in out.chunks_exact_mut(head).enumerate() {
                        self.lane(batch, piece * each + index, &mut Columns::all(out, dim), 0, scratch)?;
                    }
                    Ok(())
                })?;
                continue;
            }
            let pieces = (WriteColumns(out, heads * dim, each * dim), Write(scratch, lane));
            try_for_each_at(cost, pieces, |piece, (mut out, scratch)| {
                let lanes = if geometry.is_grouped() { 1 } else { out.columns() / dim };
                (0..lanes).try_for_each(|index| self.lane(batch, piece * each + index, &mut out, index * dim, scratch))
            })?;
        }
        Ok(())
    }

    /// The operands of one query per head, if keys and values need not be converted.
    fn single(&self) -> Option<Single<'_>> {
        let [query, key, value] = [self.query.floats()?, self.key.floats()?, self.value.floats()?];
        let geometry = self.geometry;
        if geometry.queries != 1 || geometry.converted || geometry.repeats() > QUERIES {
            return None;
        }
        let (seen, mask) = match self.visible {
            Visible::All => (geometry.keys, None),
            Visible::Causal(start) => (geometry.keys.min(start.saturating_add(1)), None),
            Visible::Mask(mask) => (geometry.keys, Some(mask)),
        };
        Some(Single { geometry, query, key, value, seen, mask, scale: self.scale })
    }

    fn expect(&self, out: usize, scratch: usize) -> Result<(), Error> {
        let geometry = &self.geometry;
        let Geometry { batch, heads, key_heads, queries, keys, dim, .. } = *geometry;
        if key_heads == 0 || !heads.is_multiple_of(key_heads) {
            let message = format!("{key_heads} heads of keys do not serve {heads} heads of queries alike");
            return Err(Error::new(ErrorKind::Geometry, message));
        }
        if ![false, true]
            .map(|heads_first| Strides::new(queries, heads, dim, heads_first))
            .contains(&geometry.query_strides)
        {
            return Err(Error::new(ErrorKind::Geometry, "queries that are not dense"));
        }
        let query_reach = geometry.query_strides.reach([batch, queries, heads], dim);
        let key_reach = geometry.key_strides.reach([batch, keys, key_heads], dim);
        self.query.expect(query_reach, dim)?;
        self.key.expect(key_reach, dim)?;
        self.value.expect(key_reach, dim)?;
        if let Visible::Mask(mask) = self.visible {
            expect_elements("the mask", mask.len(), queries.saturating_mul(keys))?;
        }
        expect_elements("the output", out, query_reach)?;
        expect_elements("the scratch", scratch, geometry.scratch())
    }

    /// The lane that starts with this head. A row of results has its elements from `column` on.
    fn lane<T: Number>(
        &self,
        batch: usize,
        head: usize,
        out: &mut Columns<'_, T>,
        column: usize,
        scratch: &mut [f32],
    ) -> Result<(), Error>
    where
        f32: Cast<T>,
    {
        let geometry = &self.geometry;
        let (strides, grouped, dim) = (geometry.query_strides, geometry.is_grouped(), geometry.dim);
        let step = if grouped { strides.head } else { strides.position };
        let start = batch * strides.batch + head * strides.head;
        let rows = geometry.rows();
        for first in (0..rows).step_by(QUERIES) {
            let count = QUERIES.min(rows - first);
            // In a group all rows are at one place.
            let places = if grouped { [0, 0] } else { [first, 1] };
            let (converted, scratch) = scratch.split_at_mut(if geometry.converted { count * dim } else { 0 });
            let queries = self.query.rows(start + first * step, step, [count, dim], converted)?;
            let keys = batch * geometry.key_strides.batch + head / geometry.repeats() * geometry.key_strides.head;
            let (sums, values) = self.block(queries, places, keys, scratch)?;
            for (row, (values, &sum)) in (first..).zip(values.chunks_exact(dim).zip(sums)) {
                let (row, column) = if grouped { (0, column + row * dim) } else { (row, column) };
                let out = &mut out.row(row)[column..][..dim];
                out.iter_mut().zip(values).for_each(|(out, &value)| *out = (value / sum).cast());
            }
        }
        Ok(())
    }

    /// The sums of exponentials and the sums of values they weight, of a block of queries over all keys from element
    /// `keys` on. Query number `i` is at place `place[0] + i * place[1]`.
    fn block<'s>(
        &self,
        queries: Mat<'_, f32>,
        place: [usize; 2],
        keys: usize,
        scratch: &'s mut [f32],
    ) -> Result<(&'s [f32], &'s [f32]), Error> {
        let Geometry { dim, key_strides, .. } = self.geometry;
        let count = queries.rows;
        let (greatest, scratch) = scratch.split_at_mut(count);
        let (sums, scratch) = scratch.split_at_mut(count);
        let (values, scratch) = scratch.split_at_mut(count * dim);
        let (all_scores, converted) = scratch.split_at_mut(count * self.geometry.keys.min(KEYS));
        greatest.fill(f32::NEG_INFINITY);
        sums.fill(0.0);
        values.fill(0.0);
        let at = |row: usize| place[0] + row * place[1];
        let seen = match self.visible {
            Visible::Causal(start) => (start + at(count - 1) + 1).min(self.geometry.keys),
            _ => self.geometry.keys,
        };
        for first in (0..seen).step_by(KEYS) {
            let width = KEYS.min(seen - first);
            let scores = &mut all_scores[..count * width];
            let start = keys + first * key_strides.position;
            let block = self.key.rows(start, key_strides.position, [width, dim], converted)?;
            let terms = Terms { alpha: self.scale, ..Terms::default() };
            Fast::multiply(scores, queries, block.transposed().into(), terms)?;
            for (row, scores) in scores.chunks_exact_mut(width).enumerate() {
                match self.visible {
                    Visible::All => {}
                    Visible::Causal(start) => {
                        let seen = (start + at(row) + 1).saturating_sub(first);
                        scores.get_mut(seen..).into_iter().flatten().for_each(|score| *score = f32::NEG_INFINITY);
                    }
                    Visible::Mask(mask) => {
                        let mask = &mask[at(row) * self.geometry.keys + first..][..width];
                        scores.iter_mut().zip(mask).for_each(|(score, mask)| *score += mask);
                    }
                }
                let earlier = weigh(scores, &mut greatest[row], &mut sums[row]);
                if first > 0 {
                    values[row * dim..][..dim].iter_mut().for_each(|value| *value *= earlier);
                }
            }
            let block = self.value.rows(start, key_strides.position, [width, dim], converted)?;
            let weights = Mat::new(scores, [count, width], [width, 1])?;
            let terms = Terms { beta: if first > 0 { 1.0 } else { 0.0 }, ..Terms::default() };
            Fast::multiply(values, weights, block.into(), terms)?;
        }
        Ok((sums, values))
    }
}

/// Turns scores into weights relative to the greatest score so far, adds them to the sum, and returns the factor of what
/// was summed before.
fn weigh(scores: &mut [f32], greatest: &mut f32, sum: &mut f32) -> f32 {
    let max = wide(|| row_max(scores)).greater_of(*greatest);
    if max == f32::NEG_INFINITY {
        // Nothing to look at yet: the difference of infinities is NaN.
        scores.fill(0.0);
        return 1.0;
    }
    wide(|| scores.iter_mut().for_each(|score| *score -= max));
    rten_vecmath::Exp {}.map_mut(scores);
    let earlier = (*greatest - max).exp();
    *sum = *sum * earlier + wide(|| total(scores));
    *greatest = max;
    earlier
}

/// The sum in independent parts, so that it vectorises.
#[inline(always)]
fn total(values: &[f32]) -> f32 {
    let mut parts = [0.0; 16];
    let (chunks, rest) = values.as_chunks::<16>();
    for chunk in chunks {
        parts.iter_mut().zip(chunk).for_each(|(part, x)| *part += x);
    }
    parts.iter().chain(rest).sum()
}
