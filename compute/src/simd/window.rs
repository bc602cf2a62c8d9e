//! Windows over pixels whose channels are vectors: places of the input that taps meet, and sums over them.
#![allow(unsafe_code)]

use super::apart::each_row;
use super::floats::{Floats, LANES};

/// The most taps of a window over neighbouring pixels.
pub(crate) const MOST_TAPS: usize = 64;
/// The most places of the input that a [`Window`] knows.
const MOST_PLACES: usize = 1024;

/// Places of the input that windows over neighbouring pixels of a line meet: some lines of the input, of as many columns each.
/// At a place is one number per channel.
///
/// Invariant: each of the places that were added points to `channels` floats that are borrowed for `'a`.
pub(crate) struct Window<'a> {
    places: arrayvec::ArrayVec<*const f32, MOST_PLACES>,
    channels: usize,
    data: std::marker::PhantomData<&'a [f32]>,
}

impl<'a> Window<'a> {
    /// Without places, of pixels with so many channels.
    pub(crate) fn new(channels: usize) -> Self {
        Window { places: arrayvec::ArrayVec::new(), channels, data: std::marker::PhantomData }
    }

    /// Channels of a pixel.
    pub(crate) fn channels(&self) -> usize {
        self.channels
    }

    /// The most columns of so many lines.
    pub(crate) fn most_columns(lines: usize) -> usize {
        MOST_PLACES / lines.max(1)
    }

    /// Takes all places away.
    pub(crate) fn clear(&mut self) {
        self.places.clear();
    }

    /// Adds `count` columns that meet the same numbers.
    ///
    /// # Panics
    ///
    /// If there are too many places, or fewer numbers than channels.
    pub(crate) fn push_same(&mut self, numbers: &'a [f32], count: usize) {
        assert!(numbers.len() >= self.channels, "a pixel without all channels");
        self.places.extend(std::iter::repeat_n(numbers.as_ptr(), count));
    }

    /// Adds `count` columns of a line, each `step` numbers behind the one before it.
    ///
    /// # Panics
    ///
    /// If there are too many places, or the line ends before all channels of the last.
    pub(crate) fn push_line(&mut self, line: &'a [f32], step: usize, count: usize) {
        let Some(last) = count.checked_sub(1) else { return };
        let end = step.saturating_mul(last).saturating_add(self.channels);
        assert!(end <= line.len(), "a pixel without all channels");
        let start = line.as_ptr();
        self.places.extend((0..count).map(|column| start.wrapping_add(column * step)));
    }

    /// Adds to the sums of neighbouring pixels as [`Window::add_taps`] does, in the same order, for windows whose lines have
    /// `WIDTH` taps next to each other and are `STRIDE` places apart: what a place has is read once for all pixels. `columns`
    /// places of each of `lines` lines were added; the first tap of the first pixel meets place `from` of the first line.
    ///
    /// # Panics
    ///
    /// If there are fewer channels, weights or places.
    #[inline(always)]
    pub(crate) fn add_lines<
        F: Floats,
        const TILES: usize,
        const PIXELS: usize,
        const WIDTH: usize,
        const STRIDE: usize,
    >(
        &self,
        floats: F,
        weights: &[f32],
        [lines, columns, from]: [usize; 3],
        first: usize,
        sums: &mut [[F::V; TILES]; PIXELS],
    ) {
        let end = first.saturating_add(TILES * LANES);
        assert!(end <= self.channels, "channels beyond the last");
        let last = lines.saturating_sub(1).saturating_mul(columns).saturating_add(from);
        assert!(last.saturating_add(WIDTH + (PIXELS - 1) * STRIDE) <= self.places.len(), "places beyond the last");
        let mut all = *sums;
        for line in 0..lines {
            let places = self.places.as_ptr().wrapping_add(from + line * columns);
            let factors = self.factors::<F, TILES, WIDTH>(floats, weights, line * WIDTH, first);
            // SAFETY: the last place that the last pixel meets on the last line is one of those that there are, each place has as
            // many floats as there are channels, and `first` with the vectors behind it is within them.
            unsafe { add_line::<F, TILES, PIXELS, WIDTH, STRIDE, 1>(floats, places, [first, 0], &factors, &mut all) };
        }
        *sums = all;
    }

    /// Adds to the sums of neighbouring pixels as [`Window::add_lines`] does, for windows with `taps` of any number on a line: a few
    /// of them at a time.
    ///
    /// # Panics
    ///
    /// If there are fewer channels, weights or places.
    #[inline(always)]
    pub(crate) fn add_long_lines<F: Floats, const TILES: usize, const PIXELS: usize, const STRIDE: usize>(
        &self,
        floats: F,
        (taps, weights): (usize, &[f32]),
        [lines, columns, from]: [usize; 3],
        first: usize,
        sums: &mut [[F::V; TILES]; PIXELS],
    ) {
        let mut all = *sums;
        for line in 0..lines {
            let (tap, place) = (line * taps, line * columns + from);
            let mut done = 0;
            while done < taps {
                let at = [tap + done, place + done, first];
                done += match taps - done {
                    3 | 6 => self.add_some::<F, TILES, PIXELS, 3, STRIDE>(floats, weights, at, &mut all),
                    4 | 7 => self.add_some::<F, TILES, PIXELS, 4, STRIDE>(floats, weights, at, &mut all),
                    5.. => self.add_some::<F, TILES, PIXELS, 5, STRIDE>(floats, weights, at, &mut all),
                    _ => self.add_some::<F, TILES, PIXELS, 1, STRIDE>(floats, weights, at, &mut all),
                };
            }
        }
        *sums = all;
    }

    /// Adds products of `WIDTH` taps next to each other to the sums of neighbouring pixels: from a tap on, which meets a place.
    /// Returns how many taps those are.
    #[inline(always)]
    fn add_some<F: Floats, const TILES: usize, const PIXELS: usize, const WIDTH: usize, const STRIDE: usize>(
        &self,
        floats: F,
        weights: &[f32],
        [tap, place, first]: [usize; 3],
        sums: &mut [[F::V; TILES]; PIXELS],
    ) -> usize {
        let places = &self.places[place..][..WIDTH + (PIXELS - 1) * STRIDE];
        let factors = self.factors::<F, TILES, WIDTH>(floats, weights, tap, first);
        // SAFETY: there are so many places, each place has as many floats as there are channels, and the factors are of channels
        // that there are.
        unsafe { add_line::<F, TILES, PIXELS, WIDTH, STRIDE, 1>(floats, places.as_ptr(), [first, 0], &factors, sums) };
        WIDTH
    }

    /// The factors of `WIDTH` taps from one on, for some vectors of channels from `first` on.
    ///
    /// # Panics
    ///
    /// If there are fewer channels or weights.
    #[inline(always)]
    pub(crate) fn factors<F: Floats, const TILES: usize, const WIDTH: usize>(
        &self,
        floats: F,
        weights: &[f32],
        tap: usize,
        first: usize,
    ) -> [[F::V; TILES]; WIDTH] {
        assert!(first.saturating_add(TILES * LANES) <= self.channels, "channels beyond the last");
        let taps = tap.saturating_add(WIDTH);
        assert!(taps.saturating_mul(self.channels) <= weights.len(), "a tap without weights");
        let mut weight = weights.as_ptr().wrapping_add(tap * self.channels);
        let mut factors = [[floats.splat(0.0); TILES]; WIDTH];
        for factors in &mut factors {
            for (tile, factor) in factors.iter_mut().enumerate() {
                // SAFETY: `weight` is that of channel 0 of a tap, whose weights are in the slice, and `first` with the vectors
                // behind it is within the channels; an array is aligned as its elements.
                *factor = floats.load(unsafe { &*weight.add(first + tile * LANES).cast::<[f32; LANES]>() });
            }
            weight = weight.wrapping_add(self.channels);
        }
        factors
    }

    /// Adds to the sums of neighbouring pixels as [`Window::add_lines`] does, for windows of as many lines as columns, of which
    /// all factors are at hand.
    ///
    /// # Panics
    ///
    /// If there are fewer channels or places.
    #[inline(always)]
    pub(crate) fn add_square<
        F: Floats,
        const TILES: usize,
        const PIXELS: usize,
        const WIDTH: usize,
        const STRIDE: usize,
    >(
        &self,
        floats: F,
        factors: &[[[F::V; TILES]; WIDTH]; WIDTH],
        [columns, from]: [usize; 2],
        first: usize,
        sums: &mut [[F::V; TILES]; PIXELS],
    ) {
        assert!(first.saturating_add(TILES * LANES) <= self.channels, "channels beyond the last");
        let last = (WIDTH - 1).saturating_mul(columns).saturating_add(from);
        assert!(last.saturating_add(WIDTH + (PIXELS - 1) * STRIDE) <= self.places.len(), "places beyond the last");
        let mut all = *sums;
        each_row!(line < WIDTH => {
            let (places, factors) = (self.places.as_ptr().wrapping_add(from + line * columns), &factors[line]);
            // SAFETY: as in `add_lines`.
            unsafe { add_line::<F, TILES, PIXELS, WIDTH, STRIDE, 1>(floats, places, [first, 0], factors, &mut all) };
        });
        *sums = all;
    }

    /// Adds to the sums of neighbouring pixels as [`Window::add_lines`] does, where channels are in groups of `GROUP`, from an
    /// output channel each: the sums over the input channels of its group. Each vector of output channels has weights by line,
    /// input channel of the group and tap of the line.
    ///
    /// # Panics
    ///
    /// If there are fewer channels, weights or places.
    #[inline(always)]
    pub(crate) fn add_groups<
        F: Floats,
        const TILES: usize,
        const PIXELS: usize,
        const WIDTH: usize,
        const STRIDE: usize,
        const GROUP: usize,
    >(
        &self,
        floats: F,
        weights: [&[[f32; LANES]]; TILES],
        [lines, columns, from]: [usize; 3],
        first: usize,
        sums: &mut [[F::V; TILES]; PIXELS],
    ) {
        let end = first.saturating_add(TILES * LANES);
        assert!(end <= self.channels, "channels beyond the last");
        let last = lines.saturating_sub(1).saturating_mul(columns).saturating_add(from);
        assert!(last.saturating_add(WIDTH + (PIXELS - 1) * STRIDE) <= self.places.len(), "places beyond the last");
        let mut all = *sums;
        for line in 0..lines {
            let places = self.places.as_ptr().wrapping_add(from + line * columns);
            for number in 0..GROUP {
                let mut factors = [[floats.splat(0.0); TILES]; WIDTH];
                for tile in 0..TILES {
                    let taps = &weights[tile][(line * GROUP + number) * WIDTH..][..WIDTH];
                    for (factors, tap) in factors.iter_mut().zip(taps) {
                        factors[tile] = floats.load(tap);
                    }
                }
                let at = [first, number];
                // SAFETY: the last place that the last pixel meets on the last line is one of those that there are, each place
                // has as many floats as there are channels, and `first` with the vectors behind it is within them.
                unsafe { add_line::<F, TILES, PIXELS, WIDTH, STRIDE, GROUP>(floats, places, at, &factors, &mut all) };
            }
        }
        *sums = all;
    }

    /// Adds what one tap of neighbouring pixels meets times its weights to sums of some output channels, lane by lane: all
    /// channels, a vector after the other. The tap meets place `from`, and that of the next pixel `step` further. Weights are by
    /// vector and output channel.
    ///
    /// # Panics
    ///
    /// If there are fewer channels or places.
    #[inline(always)]
    pub(crate) fn add_tap<F: Floats, const OUTPUTS: usize, const PIXELS: usize>(
        &self,
        floats: F,
        weights: &[[f32; LANES]],
        [from, step]: [usize; 2],
        sums: &mut [[F::V; OUTPUTS]; PIXELS],
    ) {
        let (weights, _) = weights.as_chunks::<OUTPUTS>();
        assert!(weights.len() * LANES <= self.channels, "channels beyond the last");
        let last = step.saturating_mul(PIXELS - 1).saturating_add(from);
        assert!(last < self.places.len(), "places beyond the last");
        let mut pixels = [self.places[from]; PIXELS];
        for (pixel, place) in pixels.iter_mut().enumerate() {
            *place = self.places[from + pixel * step];
        }
        let mut all = *sums;
        for (vector, weights) in weights.iter().enumerate() {
            let mut factors = [floats.splat(0.0); OUTPUTS];
            for (factor, weights) in factors.iter_mut().zip(weights) {
                *factor = floats.load(weights);
            }
            each_row!(pixel < PIXELS => {
                // SAFETY: each place has `channels` floats, and all vectors are within them; an array is aligned as its elements.
                let value = floats.load(unsafe { &*pixels[pixel].add(vector * LANES).cast::<[f32; LANES]>() });
                for output in 0..OUTPUTS {
                    all[pixel][output] = floats.fma(value, factors[output], all[pixel][output]);
                }
            });
        }
        *sums = all;
    }

    /// Adds what taps meet times their weights to the sums of neighbouring pixels, for some vectors of channels from `first`
    /// on. A tap meets the place that is `taps` of it behind `from`, and that of the next pixel `step` further; it has as
    /// many weights as there are channels.
    ///
    /// # Panics
    ///
    /// If there are fewer channels, weights or places.
    #[inline(always)]
    pub(crate) fn add_taps<F: Floats, const TILES: usize, const PIXELS: usize>(
        &self,
        floats: F,
        (taps, weights): (&[usize], &[f32]),
        [from, step]: [usize; 2],
        first: usize,
        sums: &mut [[F::V; TILES]; PIXELS],
    ) {
        let end = first.saturating_add(TILES * LANES);
        assert!(end <= self.channels, "channels beyond the last");
        assert!(taps.len().saturating_mul(self.channels) <= weights.len(), "a tap without weights");
        let last = step.saturating_mul(PIXELS - 1).saturating_add(from);
        let room = self.places.len().checked_sub(last).expect("places beyond the last");
        let mut pixels = [self.places.as_ptr().wrapping_add(from); PIXELS];
        for (pixel, places) in pixels.iter_mut().enumerate() {
            *places = places.wrapping_add(step.wrapping_mul(pixel));
        }
        let (mut all, mut weight) = (*sums, weights.as_ptr());
        for &tap in taps {
            assert!(tap < room, "places beyond the last");
            let mut factors = [floats.splat(0.0); TILES];
            for (tile, factor) in factors.iter_mut().enumerate() {
                // SAFETY: `weight` is that of channel 0 of this tap, whose weights are in the slice, and `first` with the
                // vectors behind it is within the channels; an array is aligned as its elements.
                *factor = floats.load(unsafe { &*weight.add(first + tile * LANES).cast::<[f32; LANES]>() });
            }
            for pixel in 0..PIXELS {
                // SAFETY: the place of the last pixel is one of those that there are.
                let place = unsafe { *pixels[pixel].add(tap) };
                for tile in 0..TILES {
                    // SAFETY: each place has `channels` floats, and `first` with the vectors behind it is within them.
                    let values = unsafe { &*place.add(first + tile * LANES).cast::<[f32; LANES]>() };
                    all[pixel][tile] = floats.fma(floats.load(values), factors[tile], all[pixel][tile]);
                }
            }
            weight = weight.wrapping_add(self.channels);
        }
        *sums = all;
    }
}

/// Adds products of one line to the sums of neighbouring pixels: what each column has in the lanes from `first` on, or, of
/// each group of lanes, the number at a place of it, times the factors of the taps that meet the column.
///
/// # Safety
///
/// There are `WIDTH + (PIXELS - 1) * STRIDE` places, each of which has `first` floats and `TILES` vectors behind them.
#[inline(always)]
unsafe fn add_line<
    F: Floats,
    const TILES: usize,
    const PIXELS: usize,
    const WIDTH: usize,
    const STRIDE: usize,
    const GROUP: usize,
>(
    floats: F,
    places: *const *const f32,
    [first, number]: [usize; 2],
    factors: &[[F::V; TILES]; WIDTH],
    all: &mut [[F::V; TILES]; PIXELS],
) {
    each_row!(column < WIDTH + (PIXELS - 1) * STRIDE => {
        // SAFETY: by the caller.
        let place = unsafe { *places.add(column) };
        let mut values = [floats.splat(0.0); TILES];
        for (tile, value) in values.iter_mut().enumerate() {
            // SAFETY: by the caller; an array is aligned as its elements.
            *value = floats.load(unsafe { &*place.add(first + tile * LANES).cast::<[f32; LANES]>() });
            if GROUP > 1 {
                *value = floats.spread::<GROUP>(*value, number);
            }
        }
        each_row!(pixel < PIXELS => {
            if column >= pixel * STRIDE && column - pixel * STRIDE < WIDTH {
                for tile in 0..TILES {
                    let factor = factors[column - pixel * STRIDE][tile];
                    all[pixel][tile] = floats.fma(values[tile], factor, all[pixel][tile]);
                }
            }
        });
    });
}
