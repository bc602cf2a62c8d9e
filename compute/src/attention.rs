//! Scaled dot product attention in blocks: `softmax(scale * q·kᵀ + mask)·v`, never a whole matrix of scores.
//!
//! Queries, keys and values are rows of `dim` elements, for every batch, position and head. A lane is one head of queries,
//! or, where there is one query per head, all heads that share keys. It goes over its keys block by block and holds,
//! for every query, the greatest score, the sum of exponentials and the weighted values so far; a greater score scales
//! down what was summed before it. Invariant: everything is computed in `f32`, whatever the elements are. A query that
//! may look at no key becomes NaN.

use edgepack_format::scalar::Element;
use rten_simd::SimdUnaryOp;

use crate::error::{Error, ErrorKind, expect_elements};

use crate::fold::row_max;
use crate::gemm::{Fast, Gemm, Mat, Terms};
use crate::layout::reach;
use crate::number::{Cast, Compute, Number};
use crate::simd::wide;
use crate::threads::{Write, try_for_each};

/// Queries worked on at a time.
const QUERIES: usize = 64;
/// Keys worked on at a time.
const KEYS: usize = 512;
/// From this many multiplications on, lanes with one query each are given to several threads.
const WORTH_THREADS: usize = 1 << 18;

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

    /// Returns the elements of scratch that a call with these sizes needs.
    pub fn scratch(&self) -> usize {
        let lanes = if self.is_grouped() { self.batch.saturating_mul(self.key_heads) } else { 1 };
        self.lane().saturating_mul(lanes)
    }

    /// Returns the elements of scratch that are enough for these sizes and all smaller ones.
    pub fn greatest_scratch(&self) -> usize {
        let one = QUERIES.min(self.queries) * self.per_row() + self.per_block();
        let grouped =
            self.heads.saturating_mul(self.per_row()).saturating_add(self.key_heads.saturating_mul(self.per_block()));
        one.max(self.batch.saturating_mul(grouped))
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

    fn rows<'s>(
        &'s self,
        first: usize,
        step: usize,
        [count, dim]: [usize; 2],
        buffer: &'s mut [f32],
    ) -> Result<Mat<'s, f32>, Error> {
        // A slice of `f32` casts to itself; another type of this width does not come here.
        if T::SCALAR_TYPE == f32::SCALAR_TYPE
            && let Ok(floats) = bytemuck::try_cast_slice::<T, f32>(self.0)
        {
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
        let lane = geometry.lane().max(1);
        if !geometry.is_grouped() {
            for (batch, head) in pairs(geometry.batch, geometry.heads) {
                self.lane(batch, head, out, scratch)?;
            }
            return Ok(());
        }
        // With one query per head, the results of a lane are neighbours.
        let width = geometry.repeats() * geometry.dim;
        let work = geometry.batch * geometry.heads * geometry.keys * geometry.dim;
        try_for_each(work >= WORTH_THREADS, (Write(out, width), Write(scratch, lane)), |index, (out, scratch)| {
            self.lane(index / geometry.key_heads, index % geometry.key_heads * geometry.repeats(), out, scratch)
        })
    }

    fn expect(&self, out: usize, scratch: usize) -> Result<(), Error> {
        let geometry = &self.geometry;
        let Geometry { batch, heads, key_heads, queries, keys, dim, .. } = *geometry;
        if key_heads == 0 || !heads.is_multiple_of(key_heads) {
            let message = format!("{key_heads} heads of keys do not serve {heads} heads of queries alike");
            return Err(Error::new(ErrorKind::Geometry, message));
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

    /// The lane that starts with this head.
    fn lane<T: Number>(&self, batch: usize, head: usize, out: &mut [T], scratch: &mut [f32]) -> Result<(), Error>
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
            // Results of a group come without the elements before them.
            let start = if grouped { 0 } else { start };
            for (row, (values, &sum)) in values.chunks_exact(dim).zip(sums).enumerate() {
                let out = &mut out[start + (first + row) * step..][..dim];
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

fn pairs(outer: usize, inner: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..outer).flat_map(move |a| (0..inner).map(move |b| (a, b)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// The definition, one query at a time: operands are `[position, head, element]`.
    fn naive(geometry: &Geometry, [query, key, value]: [&[f32]; 3], causal: bool, scale: f32) -> Vec<f64> {
        let Geometry { heads, key_heads, queries, keys, dim, .. } = *geometry;
        let mut out = Vec::new();
        for (position, head) in pairs(queries, heads) {
            let query = &query[(position * heads + head) * dim..][..dim];
            let row = |all: &[f32], at: usize| -> Vec<f64> {
                let start = (at * key_heads + head / (heads / key_heads)) * dim;
                all[start..][..dim].iter().map(|&x| f64::from(x)).collect()
            };
            let seen = if causal { keys - queries + position + 1 } else { keys };
            let score = |at: usize| -> f64 { row(key, at).iter().zip(query).map(|(k, &q)| k * f64::from(q)).sum() };
            let weights: Vec<f64> = (0..seen).map(|at| (score(at) * f64::from(scale)).exp()).collect();
            let sum: f64 = weights.iter().sum();
            out.extend((0..dim).map(|i| {
                let terms = weights.iter().enumerate().map(|(at, weight)| weight * row(value, at)[i]);
                terms.sum::<f64>() / sum
            }));
        }
        out
    }

    #[test]
    fn blocks_agree_with_the_definition() {
        let mut random = Random::new(41);
        // More keys than a block, one query per head and several, heads that share keys.
        for (queries, keys, heads, key_heads) in [(1, 700, 4, 2), (3, 9, 2, 2), (70, 600, 2, 1), (1, 1, 1, 1)] {
            let dim = 5;
            let (query_strides, key_strides) =
                (Strides::new(queries, heads, dim, false), Strides::new(keys, key_heads, dim, false));
            let geometry = Geometry {
                batch: 1,
                heads,
                key_heads,
                queries,
                keys,
                dim,
                converted: false,
                query_strides,
                key_strides,
            };
            let query = random.floats(queries * heads * dim);
            let (key, value) = (random.floats(keys * key_heads * dim), random.floats(keys * key_heads * dim));
            for causal in [false, true] {
                let visible = if causal { Visible::Causal(keys - queries) } else { Visible::All };
                let operands = [&query, &key, &value].map(|list| Floats(&list[..]));
                let [q, k, v] = operands;
                let attention = Attention { geometry, query: q, key: k, value: v, visible, scale: 0.5 };
                let (mut out, mut scratch) = (vec![0.0f32; query.len()], vec![0.0; geometry.scratch()]);
                attention.run(&mut out, &mut scratch).unwrap();
                for (have, want) in out.iter().zip(naive(&geometry, [&query, &key, &value], causal, 0.5)) {
                    assert!((f64::from(*have) - want).abs() < 1e-5, "{geometry:?}: {have} {want}");
                }
            }
        }
    }

    #[test]
    fn operands_that_do_not_fit_are_refused() {
        let strides = Strides::new(2, 2, 3, false);
        let geometry = Geometry {
            batch: 1,
            heads: 2,
            key_heads: 2,
            queries: 2,
            keys: 2,
            dim: 3,
            converted: false,
            query_strides: strides,
            key_strides: strides,
        };
        let all = [0.5f32; 12];
        let run = |geometry: Geometry, key: usize, mask: usize, scratch: usize| {
            let (query, key, value) = (Floats(&all[..]), Floats(&all[..key]), Floats(&all[..]));
            let visible = Visible::Mask(&all[..mask]);
            let attention = Attention { geometry, query, key, value, visible, scale: 1.0 };
            attention.run(&mut [0.0f32; 12], &mut vec![0.0; scratch]).map_err(|error| error.kind)
        };
        let scratch = geometry.scratch();
        assert_eq!(run(geometry, 12, 4, scratch), Ok(()));
        assert_eq!(run(geometry, 11, 4, scratch), Err(ErrorKind::Geometry));
        assert_eq!(run(geometry, 12, 3, scratch), Err(ErrorKind::Geometry));
        assert_eq!(run(geometry, 12, 4, scratch - 1), Err(ErrorKind::Geometry));
        assert_eq!(run(Geometry { heads: 3, ..geometry }, 12, 4, scratch), Err(ErrorKind::Geometry));
    }
}
