//! Blocks of pixels times tiles of channels, from inputs to results in memory.
//!
//! Invariant: results stay where they are: what was just written in pieces and is moved in large ones is waited for.

use super::band;
use super::patches::{Patches, Pixel};
use super::requantise::Epilogue;
use super::results::Results;
use crate::simd::apart::Apart;
use crate::simd::bytes::{Bytes, Offsets};
use crate::simd::dot::Group;

/// Patches times tiles of channels.
pub(super) struct Block<'a, B: Bytes, E: Epilogue, const C: usize, const R: usize> {
    pub rows: [&'a [[B::Input; 4]]; R],
    pub panel: &'a [[Group; C]],
    pub results: Results<'a, E, C>,
}

impl<B: Bytes, E: Epilogue, const C: usize, const R: usize> Apart<B> for Block<'_, B, E, C, R> {
    #[inline(always)]
    fn run(mut self, bytes: B) {
        block(bytes, self.rows, self.panel, &mut self.results);
    }
}

/// Results of rows of inputs, [`Block`] and [`Lined`] alike.
#[inline(always)]
fn block<B: Bytes, E: Epilogue, const C: usize, const R: usize>(
    bytes: B,
    rows: [&[[B::Input; 4]]; R],
    panel: &[[Group; C]],
    results: &mut Results<'_, E, C>,
) {
    let mut sums = [results.start(bytes); R];
    bytes.accumulate::<C, R, false>(&mut sums, rows, panel);
    results.write(bytes, 0, &sums);
}

/// Neighbouring pixels times tiles of channels.
pub(super) struct Lined<'a, B: Bytes, E: Epilogue, const C: usize, const R: usize> {
    pub line: &'a [[B::Input; 4]],
    pub step: usize,
    /// Number of pixels; with the last of them the rows that are left are computed, and written nowhere.
    pub count: usize,
    pub panel: &'a [[Group; C]],
    pub results: Results<'a, E, C>,
}

impl<B: Bytes, E: Epilogue, const C: usize, const R: usize> Apart<B> for Lined<'_, B, E, C, R> {
    #[inline(always)]
    fn run(mut self, bytes: B) {
        let Lined { line, step, count, panel, results } = &mut self;
        let (count, step) = (*count, *step);
        let mut rows: [&[[B::Input; 4]]; R] = [&[]; R];
        for (index, row) in rows.iter_mut().enumerate() {
            *row = &line[index.min(count - 1) * step..][..panel.len()];
        }
        block(bytes, rows, panel, results);
    }
}

/// Windows over a band times tiles of channels.
pub(super) struct Windowed<'a, B: Bytes, E: Epilogue, const C: usize, const R: usize> {
    pub patches: &'a Patches<'a>,
    pub band: &'a [B::Input],
    pub shape: band::Shape,
    pub places: &'a [usize; R],
    pub panel: &'a [[Group; C]],
    pub results: Results<'a, E, C>,
}

impl<B: Bytes, E: Epilogue, const C: usize, const R: usize> Apart<B> for Windowed<'_, B, E, C, R> {
    #[inline(always)]
    fn run(mut self, bytes: B) {
        let Windowed { patches, band, shape, places, panel, results } = &mut self;
        let (order, [down, right]) = (&patches.order, patches.windows.dilation);
        let mut sums = [results.start(bytes); R];
        let (span, seen) = (order.span(), seen(band, places, shape.reach(patches)));
        let mut panels = panel.chunks_exact((span / 4).max(1));
        for y in 0..order.rows {
            for x in 0..order.columns {
                let Some(panel) = panels.next() else { break };
                let at = shape.place(patches, [y * down, x * right]);
                let mut rows: [&[[B::Input; 4]]; R] = [&[]; R];
                for (row, seen) in rows.iter_mut().zip(&seen) {
                    *row = seen[at..at + span].as_chunks().0;
                }
                bytes.accumulate::<C, R, true>(&mut sums, rows, panel);
            }
        }
        results.write(bytes, 0, &sums);
    }
}

/// Inputs that windows over a band see, all of them equally many, so that one check is enough for the spans of all.
#[inline(always)]
fn seen<'a, I, const R: usize>(band: &'a [I], places: &[usize; R], reach: usize) -> [&'a [I]; R] {
    let mut seen: [&[I]; R] = [&[]; R];
    for (seen, place) in seen.iter_mut().zip(places) {
        *seen = &band[*place..][..reach];
    }
    seen
}

/// Windows over a band, of few inputs each, times tiles of channels.
pub(super) struct Scattered<'a, B: Bytes, E: Epilogue, const C: usize, const R: usize> {
    pub band: &'a [B::Input],
    pub offsets: &'a Offsets,
    pub places: &'a [usize; R],
    pub panel: &'a [[Group; C]],
    pub results: Results<'a, E, C>,
}

impl<B: Bytes, E: Epilogue, const C: usize, const R: usize> Apart<B> for Scattered<'_, B, E, C, R> {
    #[inline(always)]
    fn run(mut self, bytes: B) {
        let Scattered { band, offsets, places, panel, results } = &mut self;
        let mut sums = [results.start(bytes); R];
        bytes.accumulate_at::<C, R>(&mut sums, seen(band, places, offsets.reach()), offsets, panel);
        results.write(bytes, 0, &sums);
    }
}

/// Parts of patches times parts of tiles of channels.
pub(super) struct Products<'a, B: Bytes, const C: usize, const R: usize> {
    pub sums: &'a mut [[B::Sums; C]; R],
    pub rows: &'a [&'a [[B::Input; 4]]; R],
    pub panel: &'a [[Group; C]],
}

impl<B: Bytes, const C: usize, const R: usize> Apart<B> for Products<'_, B, C, R> {
    #[inline(always)]
    fn run(self, bytes: B) {
        bytes.accumulate::<C, R, false>(self.sums, *self.rows, self.panel);
    }
}

/// Sums of all parts.
pub(super) struct Finish<'a, B: Bytes, E: Epilogue, const C: usize, const R: usize> {
    pub sums: &'a [[B::Sums; C]; R],
    pub results: Results<'a, E, C>,
}

impl<B: Bytes, E: Epilogue, const C: usize, const R: usize> Apart<B> for Finish<'_, B, E, C, R> {
    #[inline(always)]
    fn run(mut self, bytes: B) {
        self.results.write(bytes, 0, self.sums);
    }
}

/// Pixels of which a part of the inputs is gathered.
pub(super) struct Gather<'a, B: Bytes> {
    pub patches: &'a Patches<'a>,
    /// The first pixel.
    pub pixel: Pixel,
    pub group: usize,
    /// Groups of four inputs in front of the part, and in it.
    pub start: usize,
    pub row: usize,
    pub padding: i8,
    pub to: &'a mut [[B::Input; 4]],
}

impl<B: Bytes> Apart<B> for Gather<'_, B> {
    #[inline(always)]
    fn run(self, _: B) {
        let Gather { patches, mut pixel, group, start, row, padding, to } = self;
        for row in to.chunks_exact_mut(row) {
            patches.gather::<B>(pixel, group, 4 * start, padding, row.as_flattened_mut());
            patches.advance(&mut pixel);
        }
    }
}
