//! Scaled dot product attention in blocks: `softmax(scale * q·kᵀ + mask)·v`, never a whole matrix of scores.
//!
//! A lane is one head of queries, or, where there is one query per head, all heads that share keys. It goes over its keys
//! block by block and keeps, for every query, the greatest score, the sum of exponentials and the weighted values so far;
//! a greater score scales down what was summed before it. Invariant: everything is computed in `f32`, whatever the
//! elements are. A query that may look at no key becomes NaN.

use edgepack_executor::kernel::KernelError;
use edgepack_format::scalar::Element;
use rten_simd::SimdUnaryOp;

use edgepack_compute::fold::row_max;
use edgepack_compute::gemm::{Fast, Gemm, Mat, Terms};
use edgepack_compute::number::{Cast, Compute, Number};
use edgepack_compute::simd::wide;
use edgepack_compute::threads::{Write, try_for_each};

/// Queries worked on at a time.
const QUERIES: usize = 64;
/// Keys worked on at a time.
const KEYS: usize = 512;
/// From this many multiplications on, lanes with one query each are given to several threads.
const WORTH_THREADS: usize = 1 << 18;

/// Elements between neighbours along the dimensions of `[batch, position, head]`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Steps {
    batch: usize,
    position: usize,
    head: usize,
}

/// The sizes of one call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Geometry {
    /// Sequences.
    pub batch: usize,
    /// Heads of queries.
    pub heads: usize,
    /// Heads of keys and values; each serves as many heads of queries as another.
    pub shared: usize,
    /// Queries per head.
    pub queries: usize,
    /// Keys per head that may be looked at.
    pub keys: usize,
    /// Elements of a query, key, or value.
    pub dim: usize,
    /// Whether they are not `f32`.
    pub converted: bool,
    /// How queries, and results, lie in memory.
    pub query_steps: Steps,
    /// How keys and values lie in memory.
    pub key_steps: Steps,
}

impl Steps {
    /// Of a contiguous tensor of heads: `[batch, position, head, dim]`, or heads before positions.
    pub fn new(positions: usize, heads: usize, dim: usize, heads_first: bool) -> Self {
        let batch = positions * heads * dim;
        match heads_first {
            true => Steps { batch, position: dim, head: positions * dim },
            false => Steps { batch, position: heads * dim, head: dim },
        }
    }
}

impl Geometry {
    /// Whether a lane is all the heads that share keys.
    fn is_grouped(&self) -> bool {
        self.queries == 1
    }

    /// Heads of queries per head of keys.
    fn repeats(&self) -> usize {
        self.heads.checked_div(self.shared).unwrap_or(0)
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

    /// Elements of scratch that a call with these sizes needs.
    pub fn scratch(&self) -> usize {
        let lanes = if self.is_grouped() { self.batch.saturating_mul(self.shared) } else { 1 };
        self.lane().saturating_mul(lanes)
    }

    /// Elements of scratch that are enough for these sizes and all smaller ones.
    pub fn greatest_scratch(&self) -> usize {
        let one = QUERIES.min(self.queries) * self.per_row() + self.per_block();
        let grouped =
            self.heads.saturating_mul(self.per_row()).saturating_add(self.shared.saturating_mul(self.per_block()));
        one.max(self.batch.saturating_mul(grouped))
    }
}

/// Which keys a query may look at, and what is added to its scores.
#[derive(Clone, Copy, Debug)]
pub enum Sight<'a> {
    /// All keys.
    All,
    /// Those up to its own place, the first query standing at this one.
    Causal(usize),
    /// All keys, with a number for each query and key.
    Mask(&'a [f32]),
}

/// Where rows of `f32` come from.
pub trait Rows: Sync {
    /// Rows of a `shape` of rows and elements, `step` elements apart, the first at element `first`. They are converted
    /// into the buffer unless they lie in memory as they are.
    fn rows<'s>(
        &'s self,
        first: usize,
        step: usize,
        shape: [usize; 2],
        buffer: &'s mut [f32],
    ) -> Result<Mat<'s, f32>, KernelError>;
}

/// Floats, converted if they are not `f32`.
pub struct Floats<'a, T>(pub &'a [T]);

impl<T: Number + Sync> Rows for Floats<'_, T> {
    fn rows<'s>(
        &'s self,
        first: usize,
        step: usize,
        [count, dim]: [usize; 2],
        buffer: &'s mut [f32],
    ) -> Result<Mat<'s, f32>, KernelError> {
        // A slice of `f32` casts to itself; another type of this width does not come here.
        if T::SCALAR_TYPE == f32::SCALAR_TYPE
            && let Ok(floats) = bytemuck::try_cast_slice::<T, f32>(self.0)
        {
            return Ok(Mat::new(floats.get(first..).unwrap_or(&[]), [count, dim], [step, 1])?);
        }
        for (row, to) in buffer.chunks_exact_mut(dim.max(1)).enumerate().take(count) {
            to.iter_mut().zip(&self.0[first + row * step..][..dim]).for_each(|(to, &from)| *to = from.cast());
        }
        Ok(Mat::new(buffer, [count, dim], [dim, 1])?)
    }
}

/// Bytes with a scale and a zero point for every row of `dim` elements.
pub struct Bytes<'a> {
    /// The elements.
    pub values: &'a [i8],
    /// One for each row.
    pub scales: &'a [f32],
    /// One for each row.
    pub zeros: &'a [i8],
}

impl Rows for Bytes<'_> {
    fn rows<'s>(
        &'s self,
        first: usize,
        step: usize,
        [count, dim]: [usize; 2],
        buffer: &'s mut [f32],
    ) -> Result<Mat<'s, f32>, KernelError> {
        for (row, to) in buffer.chunks_exact_mut(dim.max(1)).enumerate().take(count) {
            let at = first + row * step;
            let (scale, zero) = (self.scales[at / dim], i16::from(self.zeros[at / dim]));
            let values = &self.values[at..][..dim];
            wide(|| to.iter_mut().zip(values).for_each(|(to, &x)| *to = f32::from(i16::from(x) - zero) * scale));
        }
        Ok(Mat::new(buffer, [count, dim], [dim, 1])?)
    }
}

/// The operands of one call.
pub struct Attention<'a, R> {
    /// The sizes.
    pub geometry: Geometry,
    /// The queries.
    pub query: R,
    /// The keys.
    pub key: R,
    /// The values.
    pub value: R,
    /// Which keys are looked at.
    pub sight: Sight<'a>,
    /// Factor of every score.
    pub scale: f32,
}

impl<R: Rows> Attention<'_, R> {
    /// Computes all lanes into an output that lies as the queries do.
    pub fn run<T: Number + Send>(&self, out: &mut [T], scratch: &mut [f32]) -> Result<(), KernelError>
    where
        f32: Cast<T>,
    {
        let geometry = &self.geometry;
        if out.is_empty() {
            return Ok(());
        }
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
            self.lane(index / geometry.shared, index % geometry.shared * geometry.repeats(), out, scratch)
        })
    }

    /// The lane that starts with this head.
    fn lane<T: Number>(&self, batch: usize, head: usize, out: &mut [T], scratch: &mut [f32]) -> Result<(), KernelError>
    where
        f32: Cast<T>,
    {
        let geometry = &self.geometry;
        let (steps, grouped, dim) = (geometry.query_steps, geometry.is_grouped(), geometry.dim);
        let step = if grouped { steps.head } else { steps.position };
        let start = batch * steps.batch + head * steps.head;
        let rows = geometry.rows();
        for first in (0..rows).step_by(QUERIES) {
            let count = QUERIES.min(rows - first);
            // In a group all rows stand at one place.
            let places = if grouped { [0, 0] } else { [first, 1] };
            let (converted, scratch) = scratch.split_at_mut(if geometry.converted { count * dim } else { 0 });
            let queries = self.query.rows(start + first * step, step, [count, dim], converted)?;
            let keys = batch * geometry.key_steps.batch + head / geometry.repeats() * geometry.key_steps.head;
            let (sums, values) = self.block(queries, places, keys, scratch)?;
            // Results of a group come without what stands before them.
            let start = if grouped { 0 } else { start };
            for (row, (values, &sum)) in values.chunks_exact(dim).zip(sums).enumerate() {
                let out = &mut out[start + (first + row) * step..][..dim];
                out.iter_mut().zip(values).for_each(|(out, &value)| *out = (value / sum).cast());
            }
        }
        Ok(())
    }

    /// The sums of exponentials and the sums of values they weight, of a block of queries over all keys from element
    /// `keys` on. Query number `i` stands at place `place[0] + i * place[1]`.
    fn block<'s>(
        &self,
        queries: Mat<'_, f32>,
        place: [usize; 2],
        keys: usize,
        scratch: &'s mut [f32],
    ) -> Result<(&'s [f32], &'s [f32]), KernelError> {
        let Geometry { dim, key_steps, .. } = self.geometry;
        let count = queries.rows;
        let (greatest, scratch) = scratch.split_at_mut(count);
        let (sums, scratch) = scratch.split_at_mut(count);
        let (values, scratch) = scratch.split_at_mut(count * dim);
        let (all_scores, converted) = scratch.split_at_mut(count * self.geometry.keys.min(KEYS));
        greatest.fill(f32::NEG_INFINITY);
        sums.fill(0.0);
        values.fill(0.0);
        let at = |row: usize| place[0] + row * place[1];
        let visible = match self.sight {
            Sight::Causal(start) => (start + at(count - 1) + 1).min(self.geometry.keys),
            _ => self.geometry.keys,
        };
        for first in (0..visible).step_by(KEYS) {
            let width = KEYS.min(visible - first);
            let scores = &mut all_scores[..count * width];
            let start = keys + first * key_steps.position;
            let block = self.key.rows(start, key_steps.position, [width, dim], converted)?;
            let terms = Terms { alpha: self.scale, ..Terms::default() };
            Fast::multiply(scores, queries.into(), block.transposed().into(), terms)?;
            for (row, scores) in scores.chunks_exact_mut(width).enumerate() {
                match self.sight {
                    Sight::All => {}
                    Sight::Causal(start) => {
                        let seen = (start + at(row) + 1).saturating_sub(first);
                        scores.get_mut(seen..).into_iter().flatten().for_each(|score| *score = f32::NEG_INFINITY);
                    }
                    Sight::Mask(mask) => {
                        let mask = &mask[at(row) * self.geometry.keys + first..][..width];
                        scores.iter_mut().zip(mask).for_each(|(score, mask)| *score += mask);
                    }
                }
                let kept = weigh(scores, &mut greatest[row], &mut sums[row]);
                if first > 0 {
                    values[row * dim..][..dim].iter_mut().for_each(|value| *value *= kept);
                }
            }
            let block = self.value.rows(start, key_steps.position, [width, dim], converted)?;
            let weights = Mat::new(scores, [count, width], [width, 1])?;
            let terms = Terms { beta: if first > 0 { 1.0 } else { 0.0 }, ..Terms::default() };
            Fast::multiply(values, weights.into(), block.into(), terms)?;
        }
        Ok((sums, values))
    }
}

/// Turns scores into weights relative to the greatest score so far, adds them to the sum, and returns the factor of what
/// was summed before.
fn weigh(scores: &mut [f32], greatest: &mut f32, sum: &mut f32) -> f32 {
    let max = wide(|| row_max(scores)).greater_of(*greatest);
    if max == f32::NEG_INFINITY {
        // Nothing to look at yet: the difference of infinities is no number.
        scores.fill(0.0);
        return 1.0;
    }
    wide(|| scores.iter_mut().for_each(|score| *score -= max));
    rten_vecmath::Exp {}.map_mut(scores);
    let kept = (*greatest - max).exp();
    *sum = *sum * kept + wide(|| total(scores));
    *greatest = max;
    kept
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
