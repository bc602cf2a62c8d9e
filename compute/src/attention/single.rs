//! Attention of one query per head, to keys and values that memory holds as floats: bounded by reading them once.
//!
//! A piece of the work is some heads of keys with the heads of queries that they serve. Keys, and then values, are read
//! position by position, those of all heads of the piece together: where heads lie next to each other, that is one stream.

use super::{ELEMENT, Geometry, KEYS, weigh};
use crate::gemm::single::add_rows;
use crate::number::{Cast, Number};
use crate::simd::apart::each_row;
use crate::simd::float_path::FloatPath;
use crate::simd::floats::{Floats, LANES, WithFloats, write};
use crate::threads::{self, Cost, WriteAll, for_each_at};

/// Positions whose values are added at once.
const VALUES: usize = 8;

/// The operands of a call.
pub(super) struct Single<'a> {
    pub geometry: Geometry,
    pub query: &'a [f32],
    pub key: &'a [f32],
    pub value: &'a [f32],
    /// Positions that queries look at, from the first on.
    pub seen: usize,
    /// A number that is added to the score of each position, if there are such.
    pub mask: Option<&'a [f32]>,
    pub scale: f32,
}

impl Single<'_> {
    /// Computes all heads into a dense output; operands reach as far as the geometry says, and there is its scratch.
    pub(super) fn run<T: Number + Send>(&self, out: &mut [T], scratch: &mut [f32])
    where
        f32: Cast<T>,
    {
        let Geometry { batch, key_heads, dim, .. } = self.geometry;
        let (lane, results) = (self.geometry.lane(), self.geometry.repeats() * dim);
        let cost = |heads: usize| Cost::nanoseconds(ELEMENT * (heads * results) as f64 * self.seen as f64);
        let shared = cost(1).pays(key_heads);
        let each = if shared { key_heads.div_ceil(threads::current()) } else { key_heads };
        for (batch, out) in out.chunks_exact_mut(key_heads * results).enumerate().take(batch) {
            let pieces = (WriteAll(out, each * results), WriteAll(scratch, each * lane));
            for_each_at(cost(each), pieces, |piece, (out, scratch)| self.heads([batch, piece * each], out, scratch));
        }
    }

    /// Computes the heads of queries that heads of keys serve, from `head` on.
    fn heads<T: Number>(&self, [batch, head]: [usize; 2], out: &mut [T], scratch: &mut [f32])
    where
        f32: Cast<T>,
    {
        let Geometry { dim, query_strides, key_strides, .. } = self.geometry;
        let count = out.len() / dim;
        let query = &self.query[batch * query_strides.batch + head * self.geometry.repeats() * dim..][..count * dim];
        let (greatest, scratch) = scratch.split_at_mut(count);
        let (sums, scratch) = scratch.split_at_mut(count);
        let (values, scores) = scratch.split_at_mut(count * dim);
        greatest.fill(f32::NEG_INFINITY);
        sums.fill(0.0);
        values.fill(0.0);
        let path = FloatPath::best();
        for first in (0..self.seen).step_by(KEYS) {
            let width = KEYS.min(self.seen - first);
            let scores = &mut scores[..count * width];
            let start = batch * key_strides.batch + head * key_strides.head + first * key_strides.position;
            path.run(Scores { single: self, query, start, width, scores });
            for (index, scores) in scores.chunks_exact_mut(width).enumerate() {
                if let Some(mask) = self.mask {
                    scores.iter_mut().zip(&mask[first..]).for_each(|(score, mask)| *score += mask);
                }
                let earlier = weigh(scores, &mut greatest[index], &mut sums[index]);
                if first > 0 {
                    values[index * dim..][..dim].iter_mut().for_each(|value| *value *= earlier);
                }
            }
            path.run(Values { single: self, start, width, scores, values });
        }
        for (out, (values, sum)) in out.chunks_exact_mut(dim).zip(values.chunks_exact(dim).zip(sums)) {
            out.iter_mut().zip(values).for_each(|(out, &value)| *out = (value / *sum).cast());
        }
    }

    /// The row of a head of keys at a position; `start` is that of the first head at the first position.
    #[inline(always)]
    fn row<'a>(&self, all: &'a [f32], start: usize, [position, head]: [usize; 2]) -> &'a [f32] {
        let Geometry { dim, key_strides, .. } = self.geometry;
        &all[start + position * key_strides.position + head * key_strides.head..][..dim]
    }

    /// Asks for rows of a head some positions behind these: a machine that foresees streams does not foresee all of these.
    #[inline(always)]
    fn prefetch<F: Floats>(&self, floats: F, rows: &[&[f32]], ahead: usize) {
        for row in rows {
            let ahead = row.as_ptr().wrapping_add(ahead * self.geometry.key_strides.position);
            for line in 0..row.len().div_ceil(LANES) {
                floats.prefetch(ahead.wrapping_add(line * LANES).cast());
            }
        }
    }
}

/// The scores of positions, by head of queries: products with the keys, times the scale.
struct Scores<'a, 'o> {
    single: &'a Single<'a>,
    query: &'a [f32],
    start: usize,
    width: usize,
    scores: &'o mut [f32],
}

impl WithFloats for Scores<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<F: Floats>(self, floats: F) {
        match F::TILES {
            4 => self.all::<F, 8>(floats),
            _ => self.all::<F, 4>(floats),
        }
    }
}

impl Scores<'_, '_> {
    /// All scores, so many sums at a time.
    #[inline(always)]
    fn all<F: Floats, const SUMS: usize>(self, floats: F) {
        let Scores { single, query, start, width, scores } = self;
        let dim = single.geometry.dim;
        let (repeats, scale) = (single.geometry.repeats(), floats.splat(single.scale));
        for first in (0..width).step_by(LANES) {
            let positions = LANES.min(width - first);
            for (head, query) in query.chunks_exact(repeats * dim).enumerate() {
                // Past the last position, rows are that of the last one.
                let mut rows: [&[f32]; LANES] = [&[]; LANES];
                for (at, row) in rows.iter_mut().enumerate() {
                    *row = single.row(single.key, start, [first + at.min(positions - 1), head]);
                }
                single.prefetch(floats, &rows, LANES);
                for (index, query) in query.chunks_exact(dim).enumerate() {
                    let mut all = [floats.splat(0.0); LANES];
                    for (all, rows) in all.chunks_exact_mut(SUMS).zip(rows.as_chunks::<SUMS>().0) {
                        all.copy_from_slice(&products(floats, query, rows));
                    }
                    let totals = floats.fma(floats.totals(all), scale, floats.splat(-0.0));
                    let scores = &mut scores[(head * repeats + index) * width..][first..first + positions];
                    write(floats, totals, scores);
                }
            }
        }
    }
}

/// Products of a query with rows, summed by lane.
#[inline(always)]
fn products<F: Floats, const ROWS: usize>(floats: F, query: &[f32], rows: &[&[f32]; ROWS]) -> [F::V; ROWS] {
    let mut sums = [floats.splat(0.0); ROWS];
    let (whole, last) = query.as_chunks::<LANES>();
    for (at, query) in whole.iter().enumerate() {
        let query = floats.load(query);
        each_row!(row < ROWS => {
            let chunk: &[f32; LANES] = &rows[row].as_chunks().0[at];
            sums[row] = floats.fma(query, floats.load(chunk), sums[row]);
        });
    }
    if !last.is_empty() {
        let query = floats.load_some(last, 0.0);
        each_row!(row < ROWS => {
            let numbers = floats.load_some(&rows[row][whole.len() * LANES..], 0.0);
            sums[row] = floats.fma(query, numbers, sums[row]);
        });
    }
    sums
}

/// Values of positions times the weights by head of queries, added to what is there.
struct Values<'a, 'o> {
    single: &'a Single<'a>,
    start: usize,
    width: usize,
    scores: &'a [f32],
    values: &'o mut [f32],
}

impl WithFloats for Values<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<F: Floats>(self, floats: F) {
        let Values { single, start, width, scores, values } = self;
        let dim = single.geometry.dim;
        let repeats = single.geometry.repeats();
        let whole = width / VALUES * VALUES;
        for first in (0..whole).step_by(VALUES) {
            for (head, values) in values.chunks_exact_mut(repeats * dim).enumerate() {
                let mut rows: [&[f32]; VALUES] = [&[]; VALUES];
                for (at, row) in rows.iter_mut().enumerate() {
                    *row = single.row(single.value, start, [first + at, head]);
                }
                single.prefetch(floats, &rows, VALUES);
                for (index, values) in values.chunks_exact_mut(dim).enumerate() {
                    let mut weights = [0.0; VALUES];
                    weights.copy_from_slice(&scores[(head * repeats + index) * width..][first..first + VALUES]);
                    add_rows(floats, rows, weights, values);
                }
            }
        }
        for at in whole..width {
            for (index, values) in values.chunks_exact_mut(dim).enumerate() {
                let row = single.row(single.value, start, [at, index / repeats]);
                add_rows(floats, [row], [scores[index * width + at]], values);
            }
        }
    }
}
